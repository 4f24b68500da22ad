//! The command line of `doctor`, which is refused where programs cannot be observed.

use crate::arguments::values::{self, Format};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  thalweg doctor -- ./server --port 8080
      Run it; when it ends, a page on standard error says what held it up
  thalweg doctor --format json --output report.json -- make test
      The same as JSON, into a file
  thalweg doctor --html report.html -- ./server
      Also as a page with flame graphs and a timeline
  thalweg doctor --perfetto trace.json --firefox profile.json -- ./server
      Also for ui.perfetto.dev and profiler.firefox.com
  thalweg doctor attach 4711 --for 10s
      A program that runs already
  thalweg doctor caps
      What can be measured here, what not, and why";

/// The options of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true)]
pub(crate) struct Doctor {
    #[command(subcommand)]
    pub(crate) other: Option<Other>,

    #[command(flatten)]
    pub(crate) shown: Shown,

    /// The program to run, and its arguments, behind --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// The subcommands of the doctor.
#[derive(Debug, Subcommand)]
pub(crate) enum Other {
    /// Observe a process that runs already, with its threads and all processes that descend from it
    ///
    /// It goes on undisturbed afterwards. Ctrl-C ends the observation early, and so does the end of
    /// the process, whose exit code only its parent can read.
    ///
    /// Exit code: 0 observed, in whole or in part; 2 misuse or failure, such as a process that does
    /// not exist or is another user's, or a report that cannot be written.
    Attach(Attach),
    /// Run two commands in turn, and say which is faster, by how much, and how sure that is
    ///
    /// Time, processor time, memory, page faults, switches and waits for a core are compared. Where
    /// others took more of one command than of the other, no difference is reported.
    Compare(Box<Compare>),
    /// Say what can be measured here, what not, why, and what it costs
    Caps {
        /// Format of the list on standard output
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

/// The options of `doctor attach`.
#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// Number of the process
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: i32,

    /// How long: a time from 1ms to 24h, like 500ms, 10s or 2m
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = values::time)]
    pub(crate) time: Duration,

    #[command(flatten)]
    pub(crate) shown: Shown,
}

/// How a report is shown.
#[derive(Debug, Args)]
pub(crate) struct Shown {
    /// Format of the report: text goes to standard error, JSON to standard output, after what a
    /// COMMAND wrote there
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// Write the report to FILE instead; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write the report as one page of HTML as well, with stacks and a timeline of the threads
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write what the threads did, and their stacks, as a trace for ui.perfetto.dev as well
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,

    /// Write the same as a profile for profiler.firefox.com as well
    #[arg(long, value_name = "FILE")]
    pub(crate) firefox: Option<PathBuf>,

    /// Name each figure on the page with its threshold and source, and those that miss theirs
    #[arg(long)]
    pub(crate) verbose: bool,

    /// Show all figures behind the page, with the file or event that each came from; JSON always
    /// has them
    #[arg(long)]
    pub(crate) evidence: bool,
}

/// Adds to the error of a line without `--` what the user has probably meant.
pub(super) fn hint(error: &mut clap::Error, line: &[OsString]) {
    use clap::error::{ContextKind, ContextValue};
    let is_other = |word: &OsString| {
        let other = ["attach", "compare", "caps", "help", "--"];
        other.iter().any(|other| word == other)
    };
    let is_doctors = line.get(1).is_some_and(|word| word == "doctor");
    if !is_doctors || line.iter().skip(2).any(is_other) {
        return;
    }
    let kinds = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let wrong = kinds.iter().find_map(|&kind| match error.get(kind)? {
        ContextValue::String(word) if !word.starts_with('-') => Some(word.clone()),
        _ => None,
    });
    let begin = wrong.and_then(|wrong| line.iter().position(|word| *word == *wrong));
    if let Some(begin) = begin {
        let words = line[begin..].iter().map(|word| word.to_string_lossy());
        let words = words.collect::<Vec<_>>().join(" ");
        let tip = format!("a program is run behind --: 'thalweg doctor -- {words}'");
        let tips = vec![clap::builder::StyledStr::from(tip)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

const COMPARE_EXAMPLES: &str = "\
Exit code: 0 fine, whether or not a difference is shown; 1 if others took more of one command than
of the other; 2 misuse or failure, also of a run; 130 after Ctrl-C, 143 after SIGTERM.

Examples:
  thalweg doctor compare --a './old input.txt' --b './new input.txt'
  thalweg doctor compare -n 50 --warmup 3 --a 'sort big' --b 'sort --parallel=1 big'
  thalweg doctor compare --format json --a 'zcat a.gz | wc -l' --b 'gunzip < a.gz | wc -l'
      Pipes, redirections and variables: these are run by sh -c";

/// The options of `doctor compare`.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct Compare {
    /// The command that the other is compared with, as one string: split into words as a shell
    /// does, and run without a shell unless it needs one
    #[arg(long, value_name = "COMMAND")]
    pub(crate) a: String,

    /// The other command
    #[arg(long, value_name = "COMMAND")]
    pub(crate) b: String,

    /// Measured runs of each, from 6 to 1000: fewer can show nothing
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    #[arg(value_parser = clap::value_parser!(u64).range(6..=1000))]
    pub(crate) runs: u64,

    /// Runs of each before, which are not measured, up to 1000
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1000))]
    pub(crate) warmup: u64,

    /// Seed of the order of the runs
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::any)]
    pub(crate) seed: u64,

    /// Count runs whose exit code is not 0
    #[arg(long)]
    pub(crate) ignore_failure: bool,

    /// Show what the commands write, on standard error; else it is dropped
    #[arg(long)]
    pub(crate) show_output: bool,

    /// Format of the result on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Command;

    fn parsed(line: &[&str]) -> Result<Box<Doctor>, clap::Error> {
        let line = ["thalweg", "doctor"].iter().chain(line).map(OsString::from);
        match crate::arguments::parse(&line.collect::<Vec<_>>())?.command {
            Command::Doctor(doctor) => Ok(doctor),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_stands_behind_the_dashes_is_the_commands() {
        let doctor = parsed(&["--json", "--", "caps", "--format", "--"]).unwrap();
        assert!(doctor.other.is_none());
        assert_eq!(doctor.command, ["caps", "--format", "--"]);
        assert_eq!(doctor.shown.format, Format::Json);
    }

    #[test]
    fn a_process_is_observed_for_ten_seconds() {
        let doctor = parsed(&["attach", "4711"]).unwrap();
        let Some(Other::Attach(attach)) = doctor.other else {
            panic!("not attach");
        };
        assert_eq!((attach.pid, attach.time), (4711, Duration::from_secs(10)));
    }

    #[test]
    fn a_program_without_dashes_is_reminded_of_them() {
        let said = |line: &[&str]| {
            let error = parsed(line).expect_err("it is refused");
            error.to_string()
        };
        for (line, tip) in [
            (&["ls", "-l"][..], "'thalweg doctor -- ls -l'"),
            (&["--json", "./server"], "'thalweg doctor -- ./server'"),
        ] {
            let said = said(line);
            assert!(said.contains("tip: a program is run behind --: "), "{said}");
            assert!(said.contains(tip), "{said}");
        }
        let others: [&[&str]; 4] = [&["--no-such", "ls"], &["attach", "x"], &["caps", "ls"], &[]];
        for line in others {
            assert!(!said(line).contains("behind --:"), "{line:?}");
        }
    }

    #[test]
    fn misuse_is_refused() {
        let wrong: [&[&str]; 7] = [
            &[],
            &["ls"],
            &["--json", "--format", "text", "--", "ls"],
            &["--json", "caps"],
            &["attach", "0"],
            &["attach", "1", "--for", "0s"],
            &["caps", "--", "ls"],
        ];
        for line in wrong {
            assert!(parsed(line).is_err(), "{line:?}");
        }
    }
}
