//! `thalweg exchange conform`.

use crate::arguments::values::{Format, RulesSetting};
use crate::failure::{Failure, Finding};
use crate::input::lines::Lines;
use crate::message::{counted, shown};
use crate::stdin;
use clap::Args;
use serde::Serialize;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thalweg_exchange::conformance::{CheckError, Checker, Mismatch, Summary};
use thalweg_exchange::stream::Recording;
use thalweg_exchange::{Rules, State};

const CONFORM_EXAMPLES: &str = "\
Exit code: 0 if every stream agrees, 1 if one does not, 2 if one cannot be read.

Examples:
  thalweg exchange conform conformance/edge_nomargin.txt.gz
  thalweg exchange conform conformance/*.txt.gz --format json
  thalweg exchange conform edge_quirks.txt.gz --rules default";

/// The options of `exchange conform`.
#[derive(Debug, Args)]
#[command(after_help = CONFORM_EXAMPLES)]
pub(crate) struct Conform {
    /// Recorded streams, gzip or plain, `-` for standard input
    pub(crate) files: Vec<PathBuf>,

    /// Rules of the exchange
    #[arg(long, value_enum, default_value_t = RulesSetting::Reference)]
    pub(crate) rules: RulesSetting,

    /// Format of the findings on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// The result for one stream.
#[derive(Debug, Default, Serialize)]
struct Verdict {
    file: String,
    agrees: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Compared>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disagreement: Option<Difference>,
    /// The reason why the stream could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The amounts that were compared.
#[derive(Debug, Serialize)]
struct Compared {
    commands: u64,
    events: u64,
    checkpoints: u64,
    lines: u64,
}

/// The first line that differs.
#[derive(Debug, Serialize)]
struct Difference {
    line: u64,
    expected: Option<String>,
    got: Option<String>,
    command_line: u64,
    command: String,
}

/// Compares every stream, and shows the first disagreement of each.
///
/// # Errors
/// Returns an error if streams cannot be read. Each of them is reported in its turn, after the
/// verdicts on all others.
pub(crate) fn conform(options: &Conform) -> Result<Finding, Failure> {
    let mut verdicts = Vec::new();
    let mut finding = Finding::Fine;
    let mut unread = 0;
    let piped = [PathBuf::from("-")];
    let files = match &options.files[..] {
        [] if stdin::is_given() => &piped[..],
        [] => return Err(Failure::Misuse("a FILE to compare is missing".to_owned())),
        files => files,
    };
    for file in files {
        let verdict = check(file, options.rules).unwrap_or_else(|failure| {
            unread += 1;
            Verdict {
                file: shown(file.as_os_str()),
                error: Some(failure.to_string()),
                ..Verdict::default()
            }
        });
        if let Some(error) = &verdict.error {
            let _ = writeln!(io::stderr(), "thalweg: {error}");
        } else if !verdict.agrees {
            finding = Finding::Negative;
        }
        match options.format {
            // Text is for people, who want to see the result of each stream when it is done.
            Format::Text => crate::output::print(text(&verdict).as_bytes())?,
            Format::Json => verdicts.push(verdict),
        }
    }
    if options.format == Format::Json {
        crate::output::print_json(&verdicts)?;
    }
    match unread {
        0 => Ok(finding),
        1 if files.len() == 1 => Err(Failure::Reported),
        files => Err(Failure::Unread { files }),
    }
}

fn check(file: &Path, rules: RulesSetting) -> Result<Verdict, Failure> {
    let mut lines = Lines::open(file)?;
    if lines.head().all(<[u8]>::is_empty) {
        return Err(lines.nothing().into());
    }
    let recorded = Recording::new(lines.reader()).map_err(CheckError::from);
    let compared = recorded.and_then(|recorded| {
        let rules = match rules {
            RulesSetting::Reference => recorded.rules(),
            RulesSetting::Default => {
                Rules::default().with_margin_trading(recorded.margin_trading())
            }
        };
        Checker::new(recorded, State::new(rules)).run()
    });
    let name = lines.name().to_owned();
    match compared {
        Ok(summary) => Ok(agreement(name, &summary)),
        Err(CheckError::Mismatch(found)) => {
            lines.intact(found.line)?;
            Ok(disagreement(name, *found))
        }
        Err(CheckError::Stream(error)) => Err(lines.stream_error(error).into()),
        Err(other) => Err(lines.wrong(other.to_string()).into()),
    }
}

fn agreement(file: String, summary: &Summary) -> Verdict {
    let compared = Compared {
        commands: summary.commands,
        events: summary.events,
        checkpoints: summary.checkpoints,
        lines: summary.lines,
    };
    Verdict {
        file,
        agrees: true,
        compared: Some(compared),
        ..Verdict::default()
    }
}

fn disagreement(file: String, found: Mismatch) -> Verdict {
    let difference = Difference {
        line: found.line,
        expected: found.expected,
        got: found.got,
        command_line: found.command_line,
        command: found.command,
    };
    Verdict {
        file,
        disagreement: Some(difference),
        ..Verdict::default()
    }
}

fn text(verdict: &Verdict) -> String {
    let file = &verdict.file;
    match (&verdict.compared, &verdict.disagreement) {
        (Some(c), _) => format!(
            "{file}: agrees: {}, {}, {}, {} compared\n",
            counted(c.commands, "command"),
            counted(c.events, "event"),
            counted(c.checkpoints, "checkpoint"),
            counted(c.lines, "line"),
        ),
        (None, Some(d)) => {
            let shown = |side: &Option<String>| side.clone().unwrap_or("nothing".to_owned());
            format!(
                "{file}:{}: disagrees\n  recorded: {}\n  engine:   {}\n  command (line {}): {}\n",
                d.line,
                shown(&d.expected),
                shown(&d.got),
                d.command_line,
                d.command
            )
        }
        (None, None) => String::new(),
    }
}
