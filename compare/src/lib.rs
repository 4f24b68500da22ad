//! `cargo compare EXPERIMENT`: this project and its peers side by side, in one process and in
//! interleaved runs, with intervals.
//!
//! The program is a thin `main` around [`main`], and the tests link this library, so that every
//! experiment is compiled once.
#![allow(
    missing_docs,
    reason = "the only users are the program and the tests of this package"
)]

pub mod case;
pub mod channels;
pub mod experiment;
pub mod goal;
pub mod pipelines;
pub mod report;
pub mod runner;
pub mod sender;
pub mod threads;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use case::{Patterns, Settings};
use experiment::{EXPERIMENTS, Experiment};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Prints tables for people.
    Text,
    /// Prints one JSON object a line: measurements and comparisons.
    Json,
}

/// Compares this project with its peers, side by side.
///
/// Every repetition runs every subject once, in changing order. A ratio above 1 means that the
/// first of the two is better. Targets are shown, not enforced.
#[derive(Debug, Parser)]
#[command(name = "cargo compare")]
struct Arguments {
    /// Which experiment to run, or `all`; see --list.
    #[arg(required_unless_present_any = ["list", "child"])]
    experiment: Option<String>,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Three runs of a fifth of the length, for a first look.
    #[arg(long)]
    quick: bool,
    /// Names the experiments and what each shows; with an experiment, its cases and subjects.
    #[arg(long)]
    list: bool,
    /// Only cases where `experiment/case/subject` contains one of these (comma between them, * for
    /// anything).
    #[arg(long, value_name = "PATTERN", value_parser = Patterns::parse)]
    cases: Option<Patterns>,
    /// Runs of each subject and case [default: each case has its own].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    repetitions: Option<u16>,
    /// Length of runs and size of loads, in parts of the full ones [default: 1, quick 0.2].
    #[arg(long, value_name = "FACTOR", value_parser = scale)]
    scale: Option<f64>,
    /// Experiments start this program again, as the process that they measure.
    #[arg(long, hide = true, num_args = 1..)]
    child: Option<Vec<String>>,
}

fn scale(text: &str) -> Result<f64, String> {
    const MAX: f64 = 1_000.0;
    match text.parse() {
        Ok(scale) if scale > 0.0 && scale <= MAX => Ok(scale),
        _ => Err(format!("{text:?} is not a number above 0, up to {MAX}")),
    }
}

/// Parses the arguments of the process, runs what they ask for, and prints it.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(child) = &arguments.child {
        let replica = experiment::replicate::child(child);
        return replica.unwrap_or_else(|| experiment::serve::child(child));
    }
    match run(&arguments) {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => refuse(&error.to_string()),
            _ => ExitCode::SUCCESS,
        },
        Err(error) => refuse(&error),
    }
}

fn refuse(error: &str) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(2)
}

/// Runs the experiments, and returns the text for standard output.
fn run(arguments: &Arguments) -> Result<String, String> {
    let settings = Settings {
        cases: arguments.cases.clone().unwrap_or_default(),
        quick: arguments.quick,
        repetitions: arguments.repetitions.map(usize::from),
        scale: arguments.scale,
    };
    let Some(name) = &arguments.experiment else {
        return Ok(list());
    };
    let is_named = |known: &&Experiment| known.name == name || name == "all";
    let experiments: Vec<&Experiment> = EXPERIMENTS.iter().filter(is_named).collect();
    if experiments.is_empty() {
        let known: Vec<&str> = EXPERIMENTS.iter().map(|known| known.name).collect();
        let known = known.join(", ");
        return Err(format!("no experiment {name:?}; there are {known}, all"));
    }
    if arguments.list {
        let paths = experiments.iter().flat_map(|one| paths(one, &settings));
        return Ok(paths.map(|path| path + "\n").collect());
    }
    let mut out = String::new();
    let reports = experiments.iter().filter_map(|one| one.run(&settings));
    for report in reports {
        match arguments.format {
            Format::Json => out.extend(report.rows.iter().map(|row| format!("{row}\n"))),
            Format::Text if name == "all" => {
                out += &format!("# {}\n\n{}\n", report.experiment, report.text);
            }
            Format::Text => out += &report.text,
        }
    }
    if out.is_empty() {
        let cases = experiments.iter().flat_map(|one| (one.cases)(&settings));
        let cases: Vec<String> = cases.map(|case| case.name).collect();
        let known = cases.join(", ");
        return Err(format!(
            "no case of {name:?} is asked for; there are {known}"
        ));
    }
    Ok(out)
}

fn list() -> String {
    let width = EXPERIMENTS.iter().map(|known| known.name.len()).max();
    let width = width.unwrap_or(0);
    let line = |known: &Experiment| format!("{:width$}  {}\n", known.name, known.shows);
    EXPERIMENTS.iter().map(line).collect()
}

/// Returns `experiment/case/subject` of all that an experiment can run.
fn paths(experiment: &Experiment, settings: &Settings) -> Vec<String> {
    let name = experiment.name;
    let cases = (experiment.cases)(settings).into_iter().flat_map(|case| {
        let subjects = case.subjects.into_iter();
        let path = subjects.map(move |subject| format!("{name}/{}/{subject}", case.name));
        path.collect::<Vec<_>>()
    });
    cases.collect()
}
