//! `cargo compare EXPERIMENT`: this project and its peers side by side, in one process and in
//! interleaved runs, with intervals.
#![deny(unsafe_code)]

mod case;
mod channels;
mod experiment;
mod report;
mod runner;
mod sender;
mod subject;
mod target;
mod workload;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use case::Cases;
use experiment::{EXPERIMENTS, Experiment, Settings};
use report::Report;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for people.
    Text,
    /// One JSON object a line: measurements and comparisons.
    Json,
}

/// Compares this project with its peers, side by side.
///
/// Every repetition runs every subject once, in changing order. A ratio above 1 means that the
/// first of the two is better. Targets are shown, not enforced.
#[derive(Debug, Parser)]
#[command(name = "cargo compare")]
struct Arguments {
    /// Which experiment to run; see --list.
    #[arg(required_unless_present_any = ["list", "child"])]
    experiment: Option<String>,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Shorter runs, for a first look.
    #[arg(long)]
    quick: bool,
    /// Names the experiments and what each shows.
    #[arg(long)]
    list: bool,
    /// Only cases whose name `case/subject` contains one of these (comma between them, * for
    /// anything).
    #[arg(long, value_name = "PATTERN", value_parser = Cases::parse)]
    cases: Option<Cases>,
    /// Runs of each subject and case [default: 11; the channels' experiments have their own].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    repetitions: Option<u16>,
    /// Load of each run in seconds [default: 0.15, quick 0.04; the channels' experiments have
    /// their own].
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,
    /// Also writes a page with plots to this file (experiment `principles`).
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// What the experiment `serve` measures is another process: this program again.
    #[arg(long, hide = true, num_args = 1..)]
    child: Option<Vec<String>>,
}

const SECONDS_MAX: f64 = 60.0;

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= SECONDS_MAX => Ok(seconds),
        _ => Err(format!(
            "{text:?} is not a number above 0, up to {SECONDS_MAX}"
        )),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(child) = &arguments.child {
        return experiment::serve::child(child);
    }
    let mut out = io::stdout().lock();
    let written = if arguments.list {
        list(&mut out).map(|()| ExitCode::SUCCESS)
    } else {
        let name = arguments.experiment.as_deref().unwrap_or_default();
        let Some(experiment) = EXPERIMENTS.iter().find(|known| known.name == name) else {
            let known: Vec<&str> = EXPERIMENTS.iter().map(|known| known.name).collect();
            eprintln!(
                "error: no experiment {name:?}; there are {}",
                known.join(", ")
            );
            return ExitCode::from(2);
        };
        if arguments.html.is_some() && !experiment::has_page(experiment) {
            eprintln!("error: experiment {name:?} has no page");
            return ExitCode::from(2);
        }
        let cases = arguments.cases.clone().unwrap_or_default();
        let report = run(experiment, &arguments, cases.clone());
        if let Some(known) = cases.without_any() {
            eprintln!("error: no case of {name:?} is asked for; there are {known}");
            return ExitCode::from(2);
        }
        write(&report, &arguments, &mut out)
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
        Err(_) => ExitCode::SUCCESS,
        Ok(code) => code,
    }
}

fn list(out: &mut impl Write) -> io::Result<()> {
    let width = EXPERIMENTS.iter().map(|known| known.name.len()).max();
    let width = width.unwrap_or(0);
    EXPERIMENTS
        .iter()
        .try_for_each(|known| writeln!(out, "{:width$}  {}", known.name, known.shows))
}

fn run(experiment: &Experiment, arguments: &Arguments, cases: Cases) -> Report {
    let settings = Settings::new(
        arguments.quick,
        cases,
        arguments.repetitions.map(usize::from),
        arguments.seconds,
    );
    (experiment.run)(&settings)
}

/// Gives 1 if something failed that must hold.
fn write(report: &Report, arguments: &Arguments, out: &mut impl Write) -> io::Result<ExitCode> {
    if let Some((file, page)) = arguments.html.as_ref().zip(report.page()) {
        std::fs::write(file, page).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", file.display()))
        })?;
    }
    match arguments.format {
        Format::Text => report.write_text(out),
        Format::Json => report.write_json(out),
    }?;
    Ok(u8::from(report.has_failed()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn seconds_have_limits() {
        assert_eq!(seconds("0.05"), Ok(0.05));
        for text in ["0", "-1", "61", "NaN", "inf", "x", ""] {
            let error = seconds(text).unwrap_err();
            assert_eq!(error, format!("{text:?} is not a number above 0, up to 60"));
        }
    }

    #[test]
    fn every_experiment_is_listed_once_with_what_it_shows() {
        let mut text = Vec::new();
        list(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count(), EXPERIMENTS.len());
        for experiment in EXPERIMENTS {
            let name = experiment.name;
            assert_eq!(
                text.lines().filter(|line| line.starts_with(name)).count(),
                1
            );
            assert!(!experiment.shows.is_empty());
        }
    }
}
