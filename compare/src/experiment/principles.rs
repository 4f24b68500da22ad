//! Five well-known principles of lock-free buses, each put to the test on one core and on two: the
//! usual article's own form, its flaw if it has one, and the mended form.
//!
//! A claim is a ratio, or a share, and a limit. It holds where the whole interval is at the limit
//! or above it.

mod course;
mod diagnosis;
mod formula;
mod judge;
mod loss;
mod optimisations;
mod page;
mod place;
mod rings;
mod state;
mod strategies;
mod trials;
mod verdict;
mod waiting;

use thalweg::wait::cores;

use super::{Experiment, Settings};
use crate::report::Report;
use course::Course;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "principles",
    shows: "five principles of lock-free buses, which of them hold here, on one core and on two",
    run,
};

fn run(settings: &Settings) -> Report {
    let mut course = Course::new(settings, Report::new(EXPERIMENT.name));
    trials::state(&mut course);
    trials::waiting(&mut course);
    trials::loss(&mut course);
    trials::diagnosis(&mut course);
    trials::optimisations(&mut course);
    course.end(&machine())
}

/// What the page says of the machine.
fn machine() -> String {
    let cores = cores::usable().count();
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    let model = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!(
        "{model}, {cores} usable cores. Medians of interleaved runs; a ratio above 1 means that \
         the first-named is better, and a claim holds where its whole interval, in brackets, is at \
         the limit or above it."
    )
}
