//! `thalweg exchange key` and `serve`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Make a key: it is printed once, and its SHA-256 added to a file
    ///
    /// Only the hash is kept: whoever reads the file cannot connect with it, and a key that is
    /// lost must be replaced. A server that runs reads its keys again at SIGHUP.
    ///
    /// Exit code: 0 fine; 2 misuse, or a file that cannot be read or written.
    #[command(after_help = "\
Examples:
  thalweg exchange key new --user 7 --role trade
  thalweg exchange key new --user 7 --role read --name dashboard --keys /etc/thalweg/keys.toml
  thalweg exchange key new --admin 1")]
    New(NewKey),
}

/// What the holder of a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyRole {
    /// Send orders for one user, and all that read may do
    Trade,
    /// Market data, and the reports and the account of one user
    Read,
}

#[derive(Debug, Args)]
pub(crate) struct NewKey {
    /// The user whose key it is
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(required_unless_present = "admin", conflicts_with = "admin")]
    pub(crate) user: Option<i64>,

    /// The administrator whose key it is: for commands about users, money and symbols
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(required_unless_present = "user")]
    pub(crate) admin: Option<i64>,

    /// What the user may do with it
    #[arg(long, value_enum, default_value = "trade", conflicts_with = "admin")]
    pub(crate) role: KeyRole,

    /// A name for it, which logs show [default: role and number]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The file to which its hash is added; made if it is not there
    #[arg(long, value_name = "FILE", default_value = "keys.toml")]
    pub(crate) keys: PathBuf,
}
