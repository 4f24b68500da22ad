//! The command line of the program: its commands and options, with their defaults and limits.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

pub(crate) mod connect;
pub(crate) mod doctor;
pub(crate) mod doctor_compare;
#[cfg(unix)]
pub(crate) mod durable;
mod hash;
#[cfg(unix)]
pub(crate) mod journal;
pub(crate) mod line;
pub(crate) mod machine;
mod placement;
#[cfg(unix)]
pub(crate) mod serve;
mod sweep;
mod values;
use crate::limits::Limit;
pub(crate) use hash::Hash;
#[cfg(unix)]
pub(crate) use placement::journaled_options;
pub(crate) use placement::{Removed, options as service_options};
pub(crate) use sweep::{Pace, Sweep};
use thalweg_measure::load::Rate;
pub(crate) use values::{Place, RulesName};

/// The seed of the generated flow where the command line gives none.
pub(crate) const SEED: u64 = 1;
/// The length of the generated flow, in commands, where the command line gives none.
pub(crate) const COMMANDS: u64 = 1_000_000;

/// Moves orders through an exchange, and says where every microsecond went.
#[derive(Debug, Parser)]
#[command(name = "thalweg", version, propagate_version = true)]
#[command(
    after_help = "Data goes to standard output, everything else to standard error.\n\
    Exit codes: 0 fine, 1 a negative finding, 2 misuse or failure, 130 Ctrl-C, 143 SIGTERM;\n\
    `thalweg doctor -- COMMAND` has that of COMMAND.\n\
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
    /// Say which kind of bottleneck a program has, with evidence and a next step
    ///
    /// Runs COMMAND, in any language, as root or not, and watches it, its threads and its children
    /// from outside. Its input, output and terminal are its own; Ctrl-C reaches it, and three
    /// within a second kill it. docs/diagnosing.md says what each verdict means, and where each
    /// figure comes from.
    ///
    /// Exit code: that of COMMAND; 128 plus the number of the signal that ended it; 126 if COMMAND
    /// cannot be run, 127 if it does not exist; 2 misuse, or a report that cannot be written. Linux
    /// only.
    Doctor(Box<doctor::Doctor>),
    /// Print or check XXH64 checksums, in the format of xxhsum -H64
    ///
    /// Without FILE, or with -, standard input is read.
    ///
    /// Exit code: 0 fine; 1 if a checksum does not match, or with --strict a line is improperly
    /// formatted; 2 misuse, or a file that cannot be read.
    Hash(Hash),
    /// Look at a journal: what it holds, whether it is whole; cut its end off
    #[cfg(unix)]
    #[command(subcommand)]
    Journal(journal::Journal),
    /// Measure what this machine costs: clock, caches, waking, switching, sleeping, disk
    ///
    /// And what that means for how long to spin and where to run threads. Takes some 3 s, of both
    /// first cores: run it while nothing else runs.
    Machine(machine::Machine),
    /// Print completions for a shell
    ///
    /// For bash: thalweg completions bash > ~/.local/share/bash-completion/completions/thalweg
    Completions {
        /// The shell to complete in
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of the program and of its commands, a file each
    ///
    /// The paths of the pages are listed on standard output. Without DIRECTORY, the page of the
    /// program alone goes there: thalweg man | man -l -
    Man {
        /// Where the pages go, as thalweg.1, thalweg-exchange-run.1 and so on
        directory: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Exchange {
    /// Send a stream of orders through the exchange and show what happened and how long it took
    ///
    /// FILE may be compressed with gzip. Its format is recognised by its content
    /// (docs/formats.md):
    ///
    /// our own CSV (docs/orders-csv.md);
    ///
    /// Bitstamp and LOBSTER messages: what happened in a real market;
    ///
    /// recorded streams: commands for exchange-core 0.5, a Java exchange, and all of its answers;
    ///
    /// load streams: commands from the load generator of exchange-core 0.5, and the book that they
    /// leave.
    ///
    /// Without FILE, commands are read from standard input if it is a file, or a pipe that has data
    /// within five seconds. Otherwise a realistic flow is made up from a seed, the same on every
    /// machine; at once with --commands or --seed. Standard input is waited for where FILE is `-`.
    ///
    /// Our own CSV and recorded streams may be of any length: the first million commands are read
    /// before the run, the others during it. If the sender had to wait for them, the program says
    /// for how long. All else is kept in memory: at most 20 million messages, or a load stream of
    /// 1 GiB.
    ///
    /// Latency counts from the moment a command was due, not from when it could be sent: a stall
    /// shows in every command that it delayed. The time that a command waited to be sent is the
    /// wait of the stage "send".
    ///
    /// Recorded market flow is turned into orders, and the exchange's books and trades are
    /// compared with the recorded ones. Orders older than the recording are inferred from the
    /// recorded books, and counted.
    ///
    /// Ctrl-C and SIGTERM end the run, and the program reports what it has measured by then.
    ///
    /// Exit code: 0 fine, even if market flow agrees only in part; 1 if a load stream leaves a book
    /// other than the recorded one, a limit of --fail-if is passed, or the last snapshot of
    /// --journal could not be written; 2 misuse or failure; 130 after Ctrl-C, 143 after SIGTERM.
    Run(Box<Run>),
    /// Run the same commands with several placements and rates, and compare the latencies
    ///
    /// Each placement runs at each rate, one after another, and all must end in the same state. All
    /// commands are kept in memory: 20 million at most.
    ///
    /// Exit code: 0 fine; 2 misuse or failure; 130 after Ctrl-C and 143 after SIGTERM, with a table
    /// of the runs that were complete.
    Sweep(Box<Sweep>),
    /// Compare recorded streams with this engine: every result, event, checkpoint and final line
    ///
    /// A recorded stream holds commands for exchange-core 0.5, a Java exchange, and all of its
    /// answers. If a stream cannot be read, the others are compared all the same.
    Conform(Conform),
    /// Serve an exchange over TCP: durable, with keys, private reports, market data and metrics
    ///
    /// DIR holds the exchange: its journal and its snapshots. A new one is made if it is not there,
    /// and an older one goes on where it was, also after a crash.
    ///
    /// Programs connect by a binary protocol (docs/exchange-protocol.md), with keys that
    /// `thalweg exchange key new` makes. Without keys, only loopback addresses are served, and
    /// every client there may act for any user. Traffic is in the clear: keep it within a
    /// network that you trust.
    ///
    /// When clients are served, the addresses are printed on standard output; the log goes to
    /// standard error. Ctrl-C and SIGTERM end it in order: no new orders, all answers, a last
    /// snapshot. SIGHUP reads the keys again. docs/serving.md is for operators.
    ///
    /// Exit code: 0 ended by Ctrl-C or SIGTERM; 2 misuse or failure, such as a disk that fails;
    /// 130 and 143 where that came before clients were served, or a second time.
    #[cfg(unix)]
    Serve(Box<serve::Serve>),
    /// Send commands to a served exchange; answers and reports are shown as they come
    ///
    /// Commands are sent without waiting for their answers. A connection that is lost is made
    /// again, and what has no answer is sent again: each command is executed once.
    ///
    /// Exit code: 0 if every command succeeded; 1 if one was refused or failed; 2 misuse or
    /// failure: no server listens, the key is refused, a line is wrong, or commands have no answer.
    Send(Box<connect::Send>),
    /// Load a served exchange with orders at a rate, and measure how long acknowledgements take
    ///
    /// Each session places orders around a price, trades some, and cancels what it placed. Latency
    /// counts from when a command was due to its durable acknowledgement. The facts say whether
    /// the exchange or this program was the limit.
    ///
    /// Exit code: 0 fine; 1 if a command has no answer or was refused; 2 misuse or failure.
    Load(Box<connect::Load>),
    #[cfg(unix)]
    #[command(flatten)]
    Durable(durable::Durable),
}

const RUN_EXAMPLES: &str = "\
Examples:
  thalweg exchange run
      One million commands of a realistic flow, as fast as they go
  thalweg exchange run --rate 125k --html flow.html
      The same at 125,000 commands a second, with a report to open in a browser
  thalweg exchange run messages.csv.gz --books books.csv.gz
      Recorded order flow, checked against the books that were recorded with it
  thalweg exchange run orders.csv --format json | jq .latency
      Our own format (docs/orders-csv.md), the facts as JSON
  thalweg exchange run orders.csv --output results.jsonl
      Results, trades and rejects of every command, final balances and open orders
  thalweg exchange run --rate 1M --fail-if 'p99>50us'
      Exit code 1 if more than 1 % of the commands take longer than 50 µs
  thalweg exchange run orders.csv --journal exchange
      The same durably: the directory holds the exchange, which can be served afterwards
  zcat stream.txt.gz | thalweg exchange run
      Any format from standard input";

/// Which commands are run.
#[derive(Debug, Args)]
pub(crate) struct Intended {
    /// The stream to run, `-` for standard input [default: a made-up flow]
    pub(crate) file: Option<PathBuf>,

    /// Format of FILE
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) format_in: FormatIn,

    /// Recorded books to check against: Bitstamp snapshots or LOBSTER order book rows
    #[arg(long, value_name = "FILE")]
    pub(crate) books: Option<PathBuf>,

    /// Seed of the made-up flow [default: 1]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = values::any, conflicts_with = "file")]
    pub(crate) seed: Option<u64>,

    /// Length of the made-up flow in commands, from 1 to 20M, like 50k [default: 1M]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = values::count, conflicts_with = "file")]
    pub(crate) commands: Option<u64>,

    /// Rules of the exchange
    #[arg(long, value_enum, default_value_t)]
    pub(crate) rules: RulesName,

    /// Costs of waiting, as `thalweg machine --output` wrote them: waits begin with these
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,

    /// Run at most N commands
    #[arg(long, value_name = "N")]
    #[arg(value_parser = values::from_one)]
    pub(crate) limit: Option<u64>,

    /// Begin with command N, counting from 1; the commands before it are executed, but not measured
    #[arg(long, value_name = "N")]
    #[arg(default_value = "1", value_parser = values::from_one)]
    pub(crate) from: u64,
}

/// The options of `exchange run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) input: Intended,

    /// Commands a second, from 1 to 1000M, like 125k or 1.5M; or max
    #[arg(long, default_value = "max")]
    pub(crate) rate: Rate,

    /// Where the stages execute and publish run: inline, threads:1, threads:2, or auto. With
    /// --journal the sender's thread executes and publishes, and waits for the disk where this is
    /// inline; else (threads:1, auto) another thread does
    #[arg(long, default_value = "auto", value_parser = values::place)]
    pub(crate) placement: Place,

    #[command(flatten)]
    pub(crate) removed: Removed,

    #[cfg(unix)]
    #[command(flatten)]
    pub(crate) durable: durable::Journaling,

    /// Also write what became of every command: results, trades, rejects, final balances and open
    /// orders (docs/orders-csv.md). The name of FILE ends in .jsonl or .csv; `-` writes JSON lines
    /// to standard output, and the facts to standard error. More than a million commands are read
    /// a second time for this: from a file, not from a pipe
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Exit with 1 if a figure is beyond a limit, like 'p99>50us' or 'throughput<1M'; may be
    /// repeated. Figures are mean, p50, p90, p99, p99.9, p99.99, max, and throughput. A percentile
    /// above the median takes ten commands beyond it: p99 1,000, p99.9 10,000
    #[arg(long, value_name = "LIMIT")]
    pub(crate) fail_if: Vec<Limit>,

    /// Also write all latencies as a log of HdrHistogram, in nanoseconds: end to end, the wait to
    /// be sent, and each stage
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr: Option<PathBuf>,

    /// Format of the facts on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// Also write a report as one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

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
  thalweg exchange conform conformance/*.txt.gz --placement threads:2";

/// The options of `exchange conform`.
#[derive(Debug, Args)]
#[command(after_help = CONFORM_EXAMPLES)]
pub(crate) struct Conform {
    /// Recorded streams, gzip or plain, `-` for standard input
    pub(crate) files: Vec<PathBuf>,

    /// Rules of the exchange
    #[arg(long, value_enum, default_value_t = RulesName::Reference)]
    pub(crate) rules: RulesName,

    /// Run the stages as a pipeline: inline, threads:1, threads:2, or auto. Without this, the
    /// engine executes one command after another
    #[arg(long, value_parser = values::place)]
    pub(crate) placement: Option<Place>,

    #[command(flatten)]
    pub(crate) removed: Removed,

    /// Format of the findings on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
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
    /// Commands for exchange-core 0.5, with its answers
    Recorded,
    /// Commands from the load generator of exchange-core 0.5, with the final book
    Load,
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

    #[test]
    fn defaults_are_those_of_the_help() {
        let parsed = line::parse(&line::words("thalweg exchange run")).unwrap();
        let Command::Exchange(Exchange::Run(run)) = parsed.command else {
            panic!("not a run");
        };
        assert_eq!(run.rate, Rate::MAX);
        assert_eq!(run.placement, Place::Auto);
        assert_eq!((run.input.seed, run.input.commands), (None, None));
        assert_eq!((SEED, COMMANDS), (1, 1_000_000));
        assert_eq!(run.input.rules, RulesName::Default);
    }

    #[test]
    fn a_seed_means_nothing_beside_a_file() {
        assert!(line::parse(&line::words("thalweg exchange run a.csv --seed 2")).is_err());
    }
}
