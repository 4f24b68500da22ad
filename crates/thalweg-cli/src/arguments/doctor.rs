//! The command line of `doctor`.

use super::{Format, values};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  thalweg doctor -- ./server --port 8080
      Run it; when it ends, a page on standard error says what held it up
  thalweg doctor --json --output report.json -- make test
      The same as JSON, into a file
  thalweg doctor attach 4711 --for 10s
      A program that runs already
  thalweg doctor caps
      What can be measured here, what not, and why";

/// What `doctor` takes.
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

/// What the doctor can do beside running a command.
#[derive(Debug, Subcommand)]
pub(crate) enum Other {
    /// Observe a process that runs already, with all of its threads and new children
    ///
    /// It goes on undisturbed afterwards. Ctrl-C ends the observation early.
    ///
    /// Exit code: 0 fine; 2 misuse or failure: there is no such process, or it is another user's.
    Attach(Attach),
    /// Say what can be measured here, what not, why, and what it costs
    Caps {
        /// Format of the list on standard output
        #[arg(long, value_enum, default_value_t)]
        format: Format,

        /// Short for --format json
        #[arg(long, conflicts_with = "format")]
        json: bool,
    },
}

/// What `doctor attach` takes.
#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// Number of the process
    #[arg(value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: i32,

    /// How long: a time from 1ms to 24h, like 500ms, 10s or 2m
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    #[arg(value_parser = values::time)]
    pub(crate) time: Duration,

    #[command(flatten)]
    pub(crate) shown: Shown,
}

/// How a report is shown.
#[derive(Debug, Args)]
pub(crate) struct Shown {
    /// Format of the report: text goes to standard error, JSON to standard output behind what the
    /// program wrote there
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Write the report to FILE instead; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Show all figures behind the page, with the file or event that each came from; JSON always
    /// has them
    #[arg(long)]
    pub(crate) evidence: bool,
}

impl Shown {
    /// The format that was asked for, in either way.
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arguments, Command};
    use super::*;
    use clap::Parser;

    fn parsed(line: &[&str]) -> Result<Box<Doctor>, clap::Error> {
        let line = ["thalweg", "doctor"].iter().chain(line);
        match Arguments::try_parse_from(line)?.command {
            Command::Doctor(doctor) => Ok(doctor),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_stands_behind_the_dashes_is_the_commands() {
        let doctor = parsed(&["--json", "--", "caps", "--format", "--"]).unwrap();
        assert!(doctor.other.is_none());
        assert_eq!(doctor.command, ["caps", "--format", "--"]);
        assert_eq!(doctor.shown.format(), Format::Json);
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
