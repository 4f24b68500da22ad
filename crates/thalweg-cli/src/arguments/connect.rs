//! Options of the commands that connect to a served exchange.

use clap::{ArgGroup, Args};
use std::path::PathBuf;
use std::time::Duration;
use thalweg_measure::load::Rate;

use super::{Format, values};

/// The options of `exchange send`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("sender").args(["user", "admin"]).required(true))]
#[command(after_help = "\
Examples:
  thalweg exchange send orders.csv --user 7 --key-file trader.key
  thalweg exchange send setup.csv --admin 1 --key-file admin.key
  echo place,7,1,1,buy,gtc,500,20 | thalweg exchange send --user 7 --format json
  thalweg exchange send --user 7
      Commands from the terminal, one a line")]
pub(crate) struct Send {
    /// Commands as docs/orders-csv.md has them, `-` or none for standard input. The first line of
    /// the format may be missing
    pub(crate) file: Option<PathBuf>,

    /// Host and port of the exchange [default: 127.0.0.1:7411, with --admin 127.0.0.1:7412]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) connect: Option<String>,

    /// Trade for this user
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) user: Option<i64>,

    /// Run the market, with the key of this administrator
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) admin: Option<i64>,

    /// Which of the holder's sessions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) session: u32,

    /// A file that holds the key; without one, none is sent
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// Remember in this file which sequences were used and which reports were shown, so that the
    /// next start goes on there
    #[arg(long, value_name = "FILE")]
    pub(crate) store: Option<PathBuf>,

    /// Give up after N failed attempts in a row to reconnect [default: never]
    #[arg(long, value_name = "N")]
    pub(crate) attempts: Option<u32>,

    /// Format of answers and reports on standard output; JSON has one object a line
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No hints on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The options of `exchange load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  thalweg exchange load --setup 127.0.0.1:7412 --sessions 8 --rate 20k --for 30s
      Makes a symbol and 8 users with money first; of a server without keys
  thalweg exchange load --user 7 --key-file trader.key --sessions 4 --format json
      4 sessions of user 7")]
pub(crate) struct Load {
    /// Host and port of the exchange
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7411")]
    pub(crate) connect: String,

    /// Sessions, from 1 to 1024
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) sessions: u32,

    /// Commands a second, of all sessions together; or max
    #[arg(long, default_value = "10k")]
    pub(crate) rate: Rate,

    /// For how long, like 500ms, 10s or 2m
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = values::time)]
    pub(crate) time: Duration,

    /// The first user; each session has the next one. With --key-file all are this user's
    #[arg(long, value_name = "N", default_value_t = 1_000_001)]
    #[arg(value_parser = clap::value_parser!(i64).range(0..=i64::MAX - 1_024))]
    pub(crate) user: i64,

    /// The symbol to trade in, a pair of currencies
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) symbol: i32,

    /// The middle of the prices, in ticks
    #[arg(long, value_name = "TICKS", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(i64).range(100..=1_000_000_000))]
    pub(crate) price: i64,

    /// Commands of a session without an answer at most
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) in_flight: u32,

    /// A file that holds the key
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// Make symbol and users first, if they are not there, through the admin listener here
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) setup: Option<String>,

    /// The administrator who does so
    #[arg(long, value_name = "N", default_value_t = 1, requires = "setup")]
    #[arg(value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) admin: i64,

    /// A file that holds that key
    #[arg(long, value_name = "FILE", requires = "setup")]
    pub(crate) admin_key_file: Option<PathBuf>,

    /// Format of the facts on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No progress and no hints on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
