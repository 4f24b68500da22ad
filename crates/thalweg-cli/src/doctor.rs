//! `thalweg doctor`.

use crate::arguments::doctor::{Attach, Compare, Doctor, Other, Shown};
use crate::arguments::values::Format;
use crate::failure::{Failure, Finding};
use crate::output::{Output, print, print_json};
use crate::terminal::{self, Interruption, Notes};
use std::io::{self, Write};
use std::path::PathBuf;
use thalweg_doctor::caps;
use thalweg_doctor::compare::{CommandLine, CompareError, Comparison, Plan};
use thalweg_doctor::observe::{self, Observation, Options};
use thalweg_doctor::report::{Ending, Report, Style};
use thalweg_doctor::target::{ObserveError, Target};

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

/// The places where the report, its HTML page and files for other tools are written.
struct Sink {
    report: Place,
    html: Option<Output>,
    perfetto: Option<Output>,
    firefox: Option<Output>,
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
        let open = |path: &Option<PathBuf>| path.as_deref().map(Output::open).transpose();
        let sink = Sink {
            report,
            html: open(&shown.html)?,
            perfetto: open(&shown.perfetto)?,
            firefox: open(&shown.firefox)?,
        };
        sink.check()?;
        Ok(sink)
    }

    /// Checks that no file would overwrite another.
    fn check(&self) -> Result<(), Failure> {
        let report = match &self.report {
            Place::Output(report) => Some(report),
            Place::Error => None,
        };
        let all = [
            ("the report", report),
            ("the page of --html", self.html.as_ref()),
            ("the trace of --perfetto", self.perfetto.as_ref()),
            ("the profile of --firefox", self.firefox.as_ref()),
        ];
        for (at, (first, one)) in all.iter().enumerate() {
            for (second, other) in &all[at + 1..] {
                if let (Some(one), Some(other)) = (one, other)
                    && one.is_same(other)
                {
                    let name = other.name();
                    let text = format!("{first} and {second} would both go to {name}");
                    return Err(Failure::Misuse(text));
                }
            }
        }
        Ok(())
    }

    fn show(
        &mut self,
        command: Vec<String>,
        observed: Observation,
        shown: &Shown,
    ) -> Result<(), Failure> {
        let name = command.join(" ");
        let report = Report::new(command, observed.exit, observed.evidence);
        let recording = &observed.recording;
        // A full disk for one of the files does not prevent the others.
        let mut results = vec![self.report.show(&report, shown)];
        if let Some(html) = &mut self.html {
            results.push(write(html, &report.html(recording)));
        }
        let as_failure = |error| Failure::Output(io::Error::other(error));
        if let Some(file) = &mut self.perfetto {
            let trace = recording.perfetto(&name).map_err(as_failure);
            results.push(trace.and_then(|trace| write(file, &trace)));
        }
        if let Some(file) = &mut self.firefox {
            let profile = recording.firefox(&name).map_err(as_failure);
            results.push(profile.and_then(|profile| write(file, &profile)));
        }
        results.into_iter().collect()
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
                let mut text = report.page(Style {
                    colours,
                    verbose: shown.verbose,
                });
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
