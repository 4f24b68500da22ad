//! `thalweg doctor`.

use crate::arguments::values::{self, Format};
use crate::failure::{Failure, Finding};
use crate::output::{Output, print, print_json};
use crate::terminal::{self, Interruption, Notes};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use thalweg_doctor::caps;
use thalweg_doctor::compare::{CommandLine, CompareError, Comparison, Plan};
use thalweg_doctor::observe::{self, Observation, Options};
use thalweg_doctor::report::{Ending, Report};
use thalweg_doctor::target::{ObserveError, Target};

const EXAMPLES: &str = "\
Examples:
  thalweg doctor -- ./server --port 8080
      Run it; when it ends, a page on standard error says what held it up
  thalweg doctor --format json --output report.json -- make test
      The same as JSON, into a file
  thalweg doctor --html report.html -- ./server
      Also as a page with flame graphs and a timeline
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
    pid: i32,

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

    /// Show all figures behind the page, with the file or event that each came from; JSON always
    /// has them
    #[arg(long)]
    pub(crate) evidence: bool,
}

/// Adds to the error of a line without `--` what the user has probably meant.
pub(crate) fn hint(error: &mut clap::Error, line: &[OsString]) {
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

/// Runs a command, observes a process, or lists the figures that can be measured here.
pub(crate) fn doctor(asked: &Doctor) -> Result<Finding, Failure> {
    match &asked.other {
        None => run(asked),
        Some(Other::Attach(asked)) => attach(asked),
        Some(Other::Compare(asked)) => compare(asked),
        Some(Other::Caps { format }) => capabilities(*format == Format::Json),
    }
}

fn run(asked: &Doctor) -> Result<Finding, Failure> {
    let mut sink = Sink::open(&asked.shown)?;
    let mut words = asked.command.iter();
    let target = Target {
        program: words.next().cloned().unwrap_or_default(),
        arguments: words.cloned().collect(),
    };
    let observed = match observe::observe(&target, &Options::default()) {
        Ok(observed) => observed,
        Err(error) => return Ok(refusal(&error)),
    };
    let words = asked.command.iter();
    let command = words.map(|word| word.to_string_lossy().into_owned());
    let exit = observed.exit;
    sink.show(command.collect(), observed, &asked.shown)?;
    Ok(finding(exit))
}

fn attach(asked: &Attach) -> Result<Finding, Failure> {
    let mut sink = Sink::open(&asked.shown)?;
    let observed = match observe::attach(asked.pid, asked.time, &Options::default()) {
        Ok(observed) => observed,
        Err(error) => return Ok(refusal(&error)),
    };
    let command = vec![format!("process {}", asked.pid)];
    sink.show(command, observed, &asked.shown)?;
    Ok(Finding::Fine)
}

/// Reports why a program could not be observed. The exit code is the one that a shell would return.
fn refusal(error: &ObserveError) -> Finding {
    let _ = writeln!(io::stderr(), "thalweg: {error}");
    Finding::Of(error.code().try_into().unwrap_or(2))
}

/// Converts an exit status. The exit code of a program is its lowest byte, also on systems whose
/// codes have more.
fn finding(exit: Option<Ending>) -> Finding {
    Finding::Of(exit.map_or(0, Ending::code).to_le_bytes()[0])
}

/// The places where the report and its HTML page are written.
struct Sink {
    report: Place,
    html: Option<Output>,
}

enum Place {
    Error,
    Output(Output),
}

impl Sink {
    /// Opens the files. They are opened before the program starts, so that a wrong path is reported
    /// at once.
    fn open(shown: &Shown) -> Result<Sink, Failure> {
        let report = match (&shown.output, shown.format) {
            (Some(path), _) => Output::open(path).map(Place::Output)?,
            (None, Format::Json) => Output::open("-".as_ref()).map(Place::Output)?,
            (None, Format::Text) => Place::Error,
        };
        let html = shown.html.as_deref().map(Output::open).transpose()?;
        if let (Place::Output(report), Some(html)) = (&report, &html)
            && report.is_same(html)
        {
            let name = html.name();
            let text = format!("the report and the page of --html would both go to {name}");
            return Err(Failure::Misuse(text));
        }
        Ok(Sink { report, html })
    }

    fn show(
        &mut self,
        command: Vec<String>,
        observed: Observation,
        shown: &Shown,
    ) -> Result<(), Failure> {
        let report = Report::new(command, observed.exit, observed.evidence);
        // A full disk for one of the two files does not prevent the other.
        let result = self.report.show(&report, shown);
        if let Some(html) = &mut self.html {
            write(html, &report.html(&observed.recording))?;
        }
        result
    }
}

impl Place {
    fn show(&mut self, report: &Report, shown: &Shown) -> Result<(), Failure> {
        let text = match shown.format {
            Format::Json => crate::output::json(report)?,
            Format::Text => {
                let colours = match self {
                    Place::Error => terminal::colours_on(&io::stderr()),
                    Place::Output(output) => output.is_standard() && terminal::colours(),
                };
                let mut text = report.page(colours);
                if shown.evidence {
                    text += "\n";
                    text += &report.figures();
                }
                text
            }
        };
        match self {
            Place::Error => match write!(io::stderr(), "\n{text}") {
                Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
                    let name = "standard error".to_owned();
                    Err(Failure::Write { name, source })
                }
                // If nothing reads the report, the exit code is still the program's.
                _ => Ok(()),
            },
            Place::Output(output) => write(output, &text),
        }
    }
}

fn write(output: &mut Output, text: &str) -> Result<(), Failure> {
    match output.write(text.as_bytes()) {
        // The reader closed the pipe because it has read enough; the exit code is still the
        // program's.
        Err(failure) if failure.is_broken_pipe() => Ok(()),
        written => written,
    }
}

fn capabilities(as_json: bool) -> Result<Finding, Failure> {
    let all = caps::capabilities();
    if as_json {
        crate::output::print_json(&all)?;
        return Ok(Finding::Fine);
    }
    crate::output::print(caps::page(&all).as_bytes())?;
    Ok(Finding::Fine)
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
    warmup: u64,

    /// Seed of the order of the runs
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = values::any)]
    pub(crate) seed: u64,

    /// Count runs whose exit code is not 0
    #[arg(long)]
    ignore_failure: bool,

    /// Show what the commands write, on standard error; else it is dropped
    #[arg(long)]
    show_output: bool,

    /// Format of the result on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Runs two commands in turn, and reports which one is faster.
///
/// # Errors
/// Returns an error if a command is empty, cannot be started or fails.
pub(crate) fn compare(options: &Compare) -> Result<Finding, Failure> {
    let line = |name: &str, text: &str| {
        CommandLine::parse(text)
            .map_err(|error| Failure::Misuse(format!("--{name} '{text}': {error}")))
    };
    let plan = Plan {
        a: line("a", &options.a)?,
        b: line("b", &options.b)?,
        runs: options.runs as usize,
        warmup: options.warmup as usize,
        seed: options.seed,
        ignores_failure: options.ignore_failure,
        shows_output: options.show_output,
    };
    let interruption = Interruption::new();
    let bar = Notes::new(options.quiet).progress(Some(2 * (plan.runs + plan.warmup)), "runs");
    let pairs = plan.measure(&interruption.stop, || bar.inc(1));
    bar.finish_and_clear();
    let pairs = match pairs {
        Ok(pairs) => pairs,
        Err(CompareError::Interrupted) => return Ok(interruption.finding()),
        Err(error) => return Err(Failure::Misuse(error.to_string())),
    };
    let found = Comparison::of(&plan, [&options.a, &options.b], &pairs);
    match options.format == Format::Json {
        true => print_json(&found)?,
        false => print(found.to_string().as_bytes())?,
    }
    Ok(match found.contaminated {
        Some(_) => Finding::Negative,
        None => Finding::Fine,
    })
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
