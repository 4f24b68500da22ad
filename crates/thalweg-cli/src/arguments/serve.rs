//! `thalweg exchange key` and `serve`.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

use super::Format;

const SERVE_EXAMPLES: &str = "\
Examples:
  thalweg exchange serve --demo
      A market that trades by itself, with keys to try, on loopback addresses
  thalweg exchange serve --print-config > serve.toml
      The configuration with its defaults and comments, to be changed
  thalweg exchange serve /var/lib/thalweg --config serve.toml
      An exchange in that directory
  curl -s http://127.0.0.1:7413/metrics
      Its figures, for Prometheus";

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// The directory of the exchange; of a demo [default: thalweg-demo among temporary files]
    #[arg(value_name = "DIR", required_unless_present_any = ["print_config", "demo"])]
    pub(crate) directory: Option<PathBuf>,

    /// The configuration, TOML [default: what --print-config prints]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Print the default configuration with a comment for each option, and end
    #[arg(long)]
    pub(crate) print_config: bool,

    /// Make test users, symbols and a flow of made-up orders, and print keys
    #[arg(long, conflicts_with_all = ["key_file", "print_config"])]
    pub(crate) demo: bool,

    /// The file of the keys' hashes, in place of keys.file of the configuration
    #[arg(long, alias = "keys", value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// Where trade and read sessions connect, in place of trade.listen; port 0 for any that is free
    #[arg(long, alias = "trade", value_name = "ADDRESS")]
    pub(crate) trade_listen: Option<SocketAddr>,

    /// Where admin sessions connect, in place of admin.listen
    #[arg(long, alias = "admin", value_name = "ADDRESS")]
    pub(crate) admin_listen: Option<SocketAddr>,

    /// Where metrics are served, in place of http.listen
    #[arg(long, alias = "http", value_name = "ADDRESS")]
    pub(crate) http_listen: Option<SocketAddr>,

    /// Format of the addresses on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key: it is printed once, or written to a file, and its SHA-256 added to another
    ///
    /// Only the hash is kept: a reader of the file cannot connect with it, and a key that is
    /// lost must be replaced. A server that runs reads its keys again at SIGHUP.
    ///
    /// Exit code: 0 fine; 2 misuse, or a file that cannot be read or written.
    #[command(after_help = "\
Examples:
  thalweg exchange key new --user 7 --role trade --output seven.key
  thalweg exchange key new --user 7 --role read --name dashboard --key-file /etc/thalweg/keys.toml
  thalweg exchange key new --admin 1")]
    New(NewKey),
}

/// The rights of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyRole {
    /// Send orders for one user, and all that read may do
    Trade,
    /// Market data, and the reports and the account of one user
    Read,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("holder").args(["user", "admin"]).required(true))]
pub(crate) struct NewKey {
    /// The user whose key it is
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) user: Option<i64>,

    /// The administrator whose key it is: for commands about users, money and symbols
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) admin: Option<i64>,

    /// The rights of the user
    #[arg(long, value_enum, default_value = "trade", conflicts_with = "admin")]
    pub(crate) role: KeyRole,

    /// A name for it, which logs show [default: role and number]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// A new file for the key, which its owner alone may read; else it is printed
    #[arg(long, alias = "out", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The file to which its hash is added; made if it is not there
    #[arg(long, alias = "keys", value_name = "FILE", default_value = "keys.toml")]
    pub(crate) key_file: PathBuf,
}
