//! The command line of `doctor`.

use super::Format;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  thalweg doctor -- ./server --port 8080
      Run it; when it ends, a page on standard error says what held it up
  thalweg doctor --json --output report.json -- make test
      The same as JSON, into a file";

/// What `doctor` takes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) shown: Shown,

    /// The program to run, and its arguments, behind --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
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
        assert_eq!(doctor.command, ["caps", "--format", "--"]);
        assert_eq!(doctor.shown.format(), Format::Json);
    }

    #[test]
    fn misuse_is_refused() {
        let wrong: [&[&str]; 5] = [
            &[],
            &["ls"],
            &["--json", "--format", "text", "--", "ls"],
            &["--json", "caps"],
            &["caps", "--", "ls"],
        ];
        for line in wrong {
            assert!(parsed(line).is_err(), "{line:?}");
        }
    }
}
