//! The command line of the program: its commands, and how a line is read.

pub(crate) mod doctor;
pub(crate) mod values;

use crate::conform::Conform;
use crate::hash::Hash;
use crate::run::Run;
use crate::sweep::Sweep;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Moves orders through an exchange, and says where every microsecond went.
#[derive(Debug, Parser)]
#[command(name = "thalweg", version, propagate_version = true)]
#[command(
    after_help = "Data goes to standard output, everything else to standard error.\n\
    Exit codes: 0 fine, 1 a negative finding, 2 misuse or failure, 3 a replica whose place\n\
    another one has taken (`exchange serve`), 130 Ctrl-C, 143 SIGTERM;\n\
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
    /// Look at a journal: what it holds, whether it is whole; truncate it
    #[command(subcommand)]
    Journal(crate::journal::Journal),
    /// Show the queues of running programs: depth, time in queue, rates, losses, what is slowest
    ///
    /// DIR is the directory that the environment variable THALWEG_EXPORT named when the programs
    /// were started: those on pipelines, buses and named channels of Thalweg write their
    /// figures there (docs/export-format.md). On a terminal, a page that changes each second; else
    /// a line for each queue, each second. `wait` is the mean of the last second: of a bus by the
    /// length of its queue; percentiles are since the program's start.
    ///
    /// Exit code: 0 ended by q; 1 where --once found no queue; 2 misuse or failure, such as a
    /// directory that is not there; 130 after Ctrl-C in a pipe, 143 after SIGTERM.
    #[cfg(target_os = "linux")]
    Top(crate::top::Top),
    /// Measure what this machine costs: clock, caches, waking, switching, sleeping, disk
    ///
    /// And what that means for how long to spin and where to run threads. Takes some 3 s, of both
    /// first cores: run it while nothing else runs.
    Machine(crate::machine::Machine),
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
    /// 130 and 143 where that came before clients were served, or a second time; 3 a replica
    /// whose place another one has taken.
    Serve(Box<crate::serve::Serve>),
    /// Show which replica of an exchange on several machines is the primary, and how far each is
    ///
    /// A replica notes once a second how many commands it has executed, so one that has stopped
    /// stays where it was.
    ///
    /// Exit code: 0 fine; 1 no replica has made this command log; 2 misuse, or etcd does not
    /// answer.
    #[cfg(all(unix, feature = "etcd"))]
    Status(crate::replicas::Status),
    /// Send commands to a served exchange; answers and reports are shown as they come
    ///
    /// Commands are sent without waiting for their answers. A connection that is lost is made
    /// again, and what has no answer is sent again: each command is executed once.
    ///
    /// Exit code: 0 if every command succeeded; 1 if one was refused or failed; 2 misuse or
    /// failure: no server listens, the key is refused, a line is wrong, or commands have no answer.
    Send(Box<crate::send::Send>),
    /// Load a served exchange with orders at a rate, and measure how long acknowledgements take
    ///
    /// Each session places orders around a price, trades some, and cancels what it placed. Latency
    /// counts from when a command was due to its durable acknowledgement. The facts say whether
    /// the exchange or this program was the limit.
    ///
    /// Exit code: 0 fine; 1 if a command has no answer or was refused; 2 misuse or failure.
    Load(Box<crate::load::Load>),
    /// Watch a market of a served exchange: ladder, last trades, own orders, figures by stage
    ///
    /// On a terminal, a picture that changes with the market; a lost connection is shown as STALE
    /// and made again. Where standard output is no terminal, a line for each trade and each change
    /// of a best level. Prices are in ticks and sizes in lots, as in docs/orders-csv.md.
    ///
    /// Exit code: 0 ended by q; 1 where --once found no book; 2 misuse or failure; 130 after
    /// Ctrl-C in a pipe, 143 after SIGTERM.
    Watch(Box<crate::views::watch::Watch>),
    /// Show the levels of a book of a served exchange
    ///
    /// Exit code: 0 fine; 1 the exchange has no such symbol, or refuses; 2 misuse or failure.
    Book(Box<crate::views::query::Book>),
    /// Show trades of a served exchange as they come, or those that a user has made
    ///
    /// The exchange keeps no past trades of others: they are shown from now on, until Ctrl-C. With
    /// --own, the user's trades among the reports that it keeps (sessions.reports_kept: 1,024).
    ///
    /// Exit code: 0 fine; 2 misuse or failure; 130 after Ctrl-C, 143 after SIGTERM.
    Trades(Box<crate::views::trades::Trades>),
    /// Show the open orders of a user of a served exchange
    ///
    /// Exit code: 0 fine; 1 the exchange has no such user, or refuses; 2 misuse or failure.
    Orders(Box<crate::views::query::OfUser>),
    /// Show the balances and positions of a user of a served exchange
    ///
    /// Balances are what is free, without what is held for open orders, in the smallest unit of
    /// their currency.
    ///
    /// Exit code: 0 fine; 1 the exchange has no such user, or refuses; 2 misuse or failure.
    Account(Box<crate::views::query::OfUser>),
    #[command(flatten)]
    Durable(crate::durable::Durable),
}

/// Returns the command line of the program. An option accepts a negative number as its value, so
/// that the error for `--limit -1` explains what is wrong with -1.
pub(crate) fn command() -> clap::Command {
    fn with_negative_numbers(command: clap::Command) -> clap::Command {
        let command = command.mut_args(|arg| {
            let is_option = !arg.is_positional() && arg.get_action().takes_values();
            arg.allow_negative_numbers(is_option)
        });
        command.mut_subcommands(with_negative_numbers)
    }
    with_negative_numbers(Arguments::command())
}

/// Reads a command line, whose first word is the name of the program.
///
/// # Errors
/// Returns an error if the line is not a valid command line of this program, or if it asks for
/// help.
pub(crate) fn parse(line: &[OsString]) -> Result<Arguments, clap::Error> {
    let matches = command().try_get_matches_from(with_format(line));
    let parsed = matches.and_then(|mut matches| Arguments::from_arg_matches_mut(&mut matches));
    parsed.map_err(|mut error| {
        doctor::hint(&mut error, line);
        successor(&error, line).unwrap_or(error)
    })
}

/// Options and commands that were renamed or removed: the former name, the one that takes its
/// place, and the text of the error.
const FORMER: [(&str, &str, &str); 10] = [
    ("cut", "truncate", "is called 'truncate'"),
    ("--json", "format", "is called '--format json'"),
    ("--out", "output", "is called '--output'"),
    (
        "--hdr",
        "html",
        "is gone: '--html' and '--format json' have the curves",
    ),
    ("--report", "html", "is called '--html'"),
    ("--save", "output", "is called '--output'"),
    ("--users", "user", "is called '--user'"),
    ("--risk-shards", "placement", NO_SHARDS),
    ("--match-shards", "placement", NO_SHARDS),
    // Only `exchange conform` has rules and no placement.
    (
        "--placement",
        "rules",
        "is gone, as each gives the same: 'exchange run' and 'exchange sweep' have it",
    ),
];
const NO_SHARDS: &str = "is gone, as the exchange executes on one thread: '--placement' says on \
                         which";

/// Returns an error that names the successor if the line uses the former name of an option or a
/// command, and there is the one that takes its place.
fn successor(error: &clap::Error, line: &[OsString]) -> Option<clap::Error> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let wrong = (error.get(ContextKind::InvalidArg))
        .or_else(|| error.get(ContextKind::InvalidSubcommand))?;
    let ContextValue::String(wrong) = wrong else {
        return None;
    };
    let (old, new, text) = FORMER.iter().find(|(old, ..)| wrong == old)?;
    let mut program = command();
    program.build();
    let mut found = &mut program;
    for word in line[1..].iter().filter_map(|word| word.to_str()) {
        if found.find_subcommand(word).is_some() {
            found = found.find_subcommand_mut(word)?;
        }
    }
    let is_there = found.find_subcommand(new).is_some()
        || found.get_arguments().any(|arg| arg.get_long() == Some(new));
    let what = match old.starts_with("--") {
        true => "option",
        false => "command",
    };
    is_there.then(|| {
        let text = format!("the {what} '{old}' {text}");
        found.error(ErrorKind::UnknownArgument, text)
    })
}

/// Replaces `--json` by `--format=json` in the line, because `doctor` and `machine` have always
/// accepted `--json`.
fn with_format(line: &[OsString]) -> impl Iterator<Item = OsString> {
    let end = line.iter().position(|word| word == "--");
    let takes_json = line
        .get(1)
        .is_some_and(|word| word == "doctor" || word == "machine");
    let line = line.iter().cloned().enumerate();
    line.map(move |(at, word)| match word == "--json" && takes_json {
        true if end.is_none_or(|end| at < end) => "--format=json".into(),
        _ => word,
    })
}

/// Splits a line into words.
#[cfg(test)]
pub(crate) fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::values::{Place, RulesSetting};
    use crate::source::{COMMANDS, SEED};
    use clap::error::{ContextKind, ErrorKind};
    use thalweg_measure::load::Rate;

    #[test]
    fn defaults_are_those_of_the_help() {
        let parsed = parse(&words("thalweg exchange run")).unwrap();
        let Command::Exchange(Exchange::Run(run)) = parsed.command else {
            panic!("not a run");
        };
        assert_eq!(run.rate, Rate::MAX);
        assert_eq!(run.placement, Place::Auto);
        assert_eq!((run.input.seed, run.input.commands), (None, None));
        assert_eq!((SEED, COMMANDS), (1, 1_000_000));
        assert_eq!(run.input.rules, RulesSetting::Default);
    }

    #[test]
    fn a_seed_means_nothing_beside_a_file() {
        assert!(parse(&words("thalweg exchange run a.csv --seed 2")).is_err());
    }

    /// Calls `look` with every command of the program, and with the words that lead to it.
    fn every_command(look: &mut impl FnMut(&str, &clap::Command)) {
        fn visit(path: &str, at: &clap::Command, look: &mut impl FnMut(&str, &clap::Command)) {
            look(path, at);
            for below in at.get_subcommands().filter(|c| c.get_name() != "help") {
                visit(&format!("{path} {}", below.get_name()), below, look);
            }
        }
        let mut program = command();
        program.build();
        visit("thalweg", &program, look);
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn a_former_name_is_refused_and_names_its_successor() {
        for (line, new) in [
            ("exchange run --report a.html", "is called '--html'"),
            ("exchange run --hdr=a.hlog", "is gone: '--html' and"),
            ("exchange run --out=a.csv", "is called '--output'"),
            ("exchange run a.csv --json", "is called '--format json'"),
            ("hash --json a", "is called '--format json'"),
            ("machine --save a.json", "is called '--output'"),
            ("exchange load --users 7", "is called '--user'"),
            (
                "exchange run --risk-shards 2",
                "'--placement' says on which",
            ),
            (
                "exchange sweep --match-shards",
                "'--placement' says on which",
            ),
            (
                "exchange conform a.csv --placement=threads:2",
                "'--placement' is gone, as each gives the same: 'exchange run' and",
            ),
        ] {
            let refused = parse(&words(&format!("thalweg {line}"))).expect_err("a former name");
            let text = refused.to_string();
            assert!(text.contains(new), "{line}: {text}");
            let command = line.split(" -").next().expect("there is a command");
            let usage = format!("Usage: thalweg {}", command.trim_end_matches(" a.csv"));
            assert!(text.contains(&usage), "{text}");
        }
        let cut = parse(&words("thalweg journal cut place")).expect_err("a former name");
        let text = "the command 'cut' is called 'truncate'";
        assert!(cut.to_string().contains(text), "{cut}");
        let other = parse(&words("thalweg exchange conform --report a"));
        let other = other.expect_err("it has no reports").to_string();
        assert!(!other.contains("is called"), "{other}");
    }

    #[test]
    fn names_that_are_still_taken() {
        for line in [
            "doctor --json -- ls",
            "doctor attach --json 4711",
            "doctor compare --json --a x --b y",
            "doctor caps --json",
            "machine --json",
            "exchange serve d --trade 127.0.0.1:0 --admin 127.0.0.1:0 --http 127.0.0.1:0 --keys k",
            "exchange key new --user 7 --keys k",
            "exchange send --admin 1",
        ] {
            parse(&words(&format!("thalweg {line}"))).unwrap();
        }
    }

    /// Expands a usage line: one line with the first of its alternatives, one with the second, and
    /// so on. Optional parts are left out.
    fn instances(usage: &str) -> Vec<String> {
        let mut plain = String::new();
        let mut depth = 0;
        for c in usage.chars() {
            depth += i32::from(c == '[') - i32::from(c == ']');
            if depth == 0 && c != ']' {
                plain.push(c);
            }
        }
        let value = |text: &str| {
            let with = [
                ("<N>", "1"),
                ("<PID>", "1"),
                ("<SHELL>", "bash"),
                ("<ADDRESS>", "[::1]:1"),
                ("<URL>", "etcd://[::1]:1/exchange"),
                ("<HOST:PORT>", "[::1]:1"),
            ];
            let text = with
                .iter()
                .fold(text.to_owned(), |text, (a, b)| text.replace(a, b));
            text.replace("...", "").replace(['<', '>'], "")
        };
        let Some(begin) = plain.find("<-") else {
            return vec![value(&plain)];
        };
        let mut depth = 0;
        let end = plain[begin..].find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        });
        let end = begin + end.expect("it is closed");
        let choices = plain[begin + 1..end].split('|');
        let made = choices.map(|one| format!("{}{one}{}", &plain[..begin], &plain[end + 1..]));
        made.map(|line| value(&line)).collect()
    }

    /// Splits an example into the words of `thalweg`, without what a shell does around it.
    fn example_words(line: &str) -> Vec<OsString> {
        let mut words = vec![String::new()];
        let mut is_quoted = false;
        for c in line.chars() {
            match c {
                '\'' => is_quoted = !is_quoted,
                '|' | '>' if !is_quoted => break,
                ' ' if !is_quoted => words.push(String::new()),
                _ => words.last_mut().expect("there is one").push(c),
            }
        }
        let words = words.into_iter().filter(|word| !word.is_empty());
        words.map(OsString::from).collect()
    }

    /// Every example in a help text must be accepted, and each of its placements must be possible.
    #[test]
    fn examples_of_the_help_are_accepted() {
        let mut seen = 0;
        every_command(&mut |path, at| {
            let help = at.get_after_help().map(ToString::to_string);
            for line in help.unwrap_or_default().lines() {
                let example = line
                    .strip_prefix("  ")
                    .filter(|line| !line.starts_with(' '));
                let Some(at) = example.and_then(|line| line.find("thalweg ")) else {
                    continue;
                };
                let line = &example.expect("it has the program's name")[at..];
                let parsed = parse(&example_words(line)).unwrap_or_else(|e| panic!("{line}: {e}"));
                let placements = match parsed.command {
                    Command::Exchange(Exchange::Run(run)) => vec![run.placement],
                    Command::Exchange(Exchange::Sweep(sweep)) => sweep.placement,
                    _ => Vec::new(),
                };
                for placement in placements {
                    let options = values::service_options(placement);
                    assert!(options.is_ok(), "{path}: {line}: {placement:?}");
                }
                seen += 1;
            }
        });
        assert!(seen > 30, "{seen} examples");
    }

    /// Every usage line that an error prints must itself be accepted.
    #[test]
    fn printed_usage_lines_are_not_refused() {
        let mut program = command();
        let mut given = |line: &str| program.try_get_matches_from_mut(words(line)).map(|_| ());
        let (mut seen, mut refused) = (0, Vec::new());
        every_command(&mut |path, at| {
            let longs = at.get_arguments().filter_map(|arg| {
                let has_value = arg.get_action().takes_values();
                Some(format!(
                    "--{}{}",
                    arg.get_long()?,
                    if has_value { "=1" } else { "" }
                ))
            });
            for option in longs.chain([String::new()]) {
                let Err(error) = given(&format!("{path} {option}")) else {
                    continue;
                };
                if error.kind() != ErrorKind::MissingRequiredArgument {
                    continue;
                }
                seen += 1;
                let text = error.to_string();
                let usage = text.lines().find_map(|line| line.strip_prefix("Usage: "));
                for line in instances(usage.expect("the error has a usage line")) {
                    if let Err(error) = given(&line) {
                        refused.push(format!("{text} as {line}: {error}"));
                    }
                }
            }
        });
        assert!(seen > 20, "{seen} usage lines");
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }

    /// Every option must refuse a number below or above its range with an error that names the
    /// option and the limit.
    #[test]
    fn numbers_out_of_range_are_refused_by_every_option() {
        use clap::builder::ValueParser;
        let text = [
            ValueParser::os_string(),
            ValueParser::path_buf(),
            ValueParser::string(),
        ];
        let mut program = command();
        let mut seen = 0;
        every_command(&mut |path, at| {
            for arg in at.get_opts() {
                let parser = arg.get_value_parser();
                if text.iter().any(|text| text.type_id() == parser.type_id()) {
                    continue;
                }
                let long = arg.get_long().expect("every option has a long name");
                for number in ["-3", "-9223372036854775809", "36893488147419103232"] {
                    let line = format!("{path} --{long} {number}");
                    let error = program.try_get_matches_from_mut(words(&line)).unwrap_err();
                    let wanted = [ErrorKind::ValueValidation, ErrorKind::InvalidValue];
                    assert!(wanted.contains(&error.kind()), "{line}: {error}");
                    let named = error.get(ContextKind::InvalidArg).map(ToString::to_string);
                    assert!(named.unwrap_or_default().contains(long), "{line}: {error}");
                    seen += 1;
                }
            }
        });
        assert!(seen > 100, "{seen} numbers");
    }
}
