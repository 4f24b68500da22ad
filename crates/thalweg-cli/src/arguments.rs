//! The command line: what can be asked for, with defaults and limits.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

mod values;
use thalweg_exchange::service::Options;
use thalweg_hash::Stride;
use thalweg_measure::load::Rate;
pub(crate) use values::Place;

/// Moves orders through an exchange, and says where every microsecond went.
#[derive(Debug, Parser)]
#[command(
    name = "thalweg",
    version,
    propagate_version = true,
    disable_help_subcommand = true
)]
#[command(
    after_help = "Data goes to standard output, everything else to standard error.\n\
    Exit codes: 0 fine, 1 a negative finding, 2 misuse or failure.\n\
    NO_COLOR turns colours off."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// An exchange: risk, matching and settlement, deterministic and measured stage by stage
    #[command(subcommand)]
    Exchange(Exchange),
    /// Print or check XXH64 checksums, in the format of xxhsum -H64
    ///
    /// Without FILE, or with -, standard input is read.
    ///
    /// Exit code: 0 fine; 1 if a checksum does not match; 2 misuse, or a file that cannot be read.
    Hash(Hash),
    /// Print completions for a shell
    #[command(hide = true)]
    Completions {
        /// The shell to complete in
        shell: clap_complete::Shell,
    },
    /// Print the manual pages of the program and of its commands, one after another
    #[command(hide = true)]
    Man,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Exchange {
    /// Send a stream of orders through the exchange and show what happened and how long it took
    ///
    /// The format of FILE is recognised by its content, and gzip by its magic: Bitstamp messages,
    /// LOBSTER messages, our own CSV (docs/orders-csv.md), recorded streams, load streams. Without
    /// FILE a realistic flow is made from a seed, the same on every machine.
    ///
    /// Latency counts from the moment a command was due, not from when it could be sent: a stall
    /// shows in every command that it delayed. The time that a command waited to be sent is the
    /// wait of the stage "send".
    ///
    /// Recorded market flow is turned into orders, and the exchange's books and trades are
    /// compared with the recorded ones. Orders older than the recording are learnt from the
    /// recorded books and counted as such.
    ///
    /// Exit code: 0 fine, also where real flow agrees in part only; 1 if a load stream leaves
    /// another book than it says; 2 misuse or failure.
    Run(Box<Run>),
    /// Compare recorded streams with this engine: every result, event, checkpoint and final line
    Conform(Conform),
}

const RUN_EXAMPLES: &str = "\
Examples:
  thalweg exchange run
      One million commands of a realistic flow, as fast as they go
  thalweg exchange run --rate 125k --report flow.html
      The same at 125,000 commands a second, with a report to open in a browser
  thalweg exchange run messages.csv.gz --books books.csv.gz
      Recorded order flow, checked against the books that were recorded with it
  thalweg exchange run orders.csv --format json | jq .latency
      Our own format (docs/orders-csv.md), the facts as JSON
  zcat stream.txt.gz | thalweg exchange run -
      Any format from standard input";

/// What `exchange run` takes.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct Run {
    /// The stream to run, `-` for standard input; none: a made-up flow
    pub(crate) file: Option<PathBuf>,

    /// Format of FILE
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format_in: FormatIn,

    /// Recorded books to check against: Bitstamp snapshots or LOBSTER order book rows
    #[arg(long, value_name = "FILE")]
    pub(crate) books: Option<PathBuf>,

    /// Commands a second, from 1 to 1000M, like 125k or 1.5M; or max
    #[arg(long, default_value = "max")]
    pub(crate) rate: Rate,

    /// Where the stages run: inline, threads:N with N from 1 to 64, or auto
    #[arg(long, default_value = "auto", value_parser = values::place)]
    pub(crate) placement: Place,

    #[command(flatten)]
    pub(crate) shards: Shards,

    /// Seed of the made-up flow
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "file")]
    pub(crate) seed: u64,

    /// Length of the made-up flow in commands, from 1 to 20M, like 50k
    #[arg(long, value_name = "N", default_value = "1M", value_parser = values::count)]
    #[arg(conflicts_with = "file")]
    pub(crate) commands: u64,

    /// Rules of the exchange: default, or those of the reference engine with its quirks
    #[arg(long, value_enum, default_value_t)]
    pub(crate) rules: RulesName,

    /// Format of the facts on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// Also write a report as one self-contained HTML file
    #[arg(long, value_name = "OUT.html")]
    pub(crate) report: Option<PathBuf>,

    /// No progress and no hints on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const CONFORM_EXAMPLES: &str = "\
Exit code: 0 if every stream agrees, 1 if one does not, 2 if one cannot be read.

Examples:
  thalweg exchange conform conformance/edge_nomargin.txt.gz
  thalweg exchange conform conformance/*.txt.gz --format json
  thalweg exchange conform edge_quirks.txt.gz --rules default
  thalweg exchange conform conformance/*.txt.gz --placement threads:2
  thalweg exchange conform conformance/*.txt.gz --risk-shards 2 --match-shards 3";

/// Into how many parts the stages are cut.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Shards {
    /// Shards of the risk check and of settlement, by user, from 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) risk_shards: u8,

    /// Shards of matching, by symbol, from 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) match_shards: u8,
}

impl Shards {
    /// How a service runs with these.
    pub(crate) fn options(self, placement: Place) -> Options {
        Options {
            placement: placement.placement(),
            risk_shards: self.risk_shards.into(),
            match_shards: self.match_shards.into(),
            ..Options::default()
        }
    }

    /// Whether anything is cut.
    pub(crate) fn any(self) -> bool {
        self.risk_shards > 1 || self.match_shards > 1
    }
}

/// What `exchange conform` takes.
#[derive(Debug, Args)]
#[command(after_help = CONFORM_EXAMPLES)]
pub(crate) struct Conform {
    /// Recorded streams, gzip or plain
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Rules of the exchange
    #[arg(long, value_enum, default_value_t = RulesName::Reference)]
    pub(crate) rules: RulesName,

    /// Run the stages as a pipeline: inline, threads:N with N from 1 to 64, or auto. Without this,
    /// the engine executes one command after another
    #[arg(long, value_parser = values::place)]
    pub(crate) placement: Option<Place>,

    #[command(flatten)]
    pub(crate) shards: Shards,

    /// Format of the findings on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

const HASH_EXAMPLES: &str = "\
Examples:
  thalweg hash *.iso > SUMS
      A line for each file, as xxhsum -H64 writes it
  thalweg hash --check SUMS
      OK or FAILED for each file of the list
  thalweg hash --stride 512:8 disk.img
      Sectors of 512 bytes, without the 8 bytes of protection behind each
  tar c src | thalweg hash --format json";

/// What `hash` takes.
#[derive(Debug, Args)]
#[command(after_help = HASH_EXAMPLES)]
pub(crate) struct Hash {
    /// Files to hash, `-` for standard input
    pub(crate) files: Vec<PathBuf>,

    /// Check the files of a list, as this command or xxhsum -H64 has written it; `-` for standard
    /// input
    #[arg(long, short, value_name = "LIST", conflicts_with = "files")]
    pub(crate) check: Option<PathBuf>,

    /// Seed; the lists of xxhsum are made with 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Leave out what lies between sectors: bytes that count, and bytes behind them that do not
    #[arg(long, value_name = "TAKE:SKIP")]
    pub(crate) stride: Option<Stride>,

    /// Format of the checksums or findings on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No progress, and no OK for files that match
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// A format of an input stream, or its recognition by content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatIn {
    /// By content
    #[default]
    Auto,
    /// Bitstamp order messages
    Bitstamp,
    /// LOBSTER messages
    Lobster,
    /// Our own CSV (docs/orders-csv.md)
    Orders,
    /// A stream recorded from the reference engine
    Recorded,
    /// A stream of the reference's load generator
    Load,
}

/// A dialect of the exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RulesName {
    /// With the reference's quirks mended
    #[default]
    Default,
    /// As the reference engine does it, quirks included
    Reference,
}

impl RulesName {
    /// The name as the command line has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RulesName::Default => "default",
            RulesName::Reference => "reference",
        }
    }
}

/// A format of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// One JSON object, its keys stable
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_help() {
        let parsed = Arguments::try_parse_from(["thalweg", "exchange", "run"]).unwrap();
        let Command::Exchange(Exchange::Run(run)) = parsed.command else {
            panic!("not a run");
        };
        assert_eq!(run.rate, Rate::MAX);
        assert_eq!(run.placement, Place::Auto);
        assert_eq!((run.seed, run.commands), (1, 1_000_000));
        assert_eq!(run.rules, RulesName::Default);
    }

    #[test]
    fn a_seed_means_nothing_beside_a_file() {
        let line = ["thalweg", "exchange", "run", "a.csv", "--seed", "2"];
        assert!(Arguments::try_parse_from(line).is_err());
    }
}
