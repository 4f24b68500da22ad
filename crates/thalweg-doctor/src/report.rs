//! The report of a doctor's run: a page of text or HTML for people, JSON for programs.

mod html;
mod json;
mod marks;
mod page;
mod text;
mod time;

pub(crate) use text::wrapped;

pub use time::{Piece, Spent};

use crate::evidence::Evidence;
use crate::recording::Recording;
use crate::rules;
use crate::verdict::Verdict;
use serde::Serialize;
use std::fs;

/// The way in which the observed program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Ending {
    /// It ended by itself, with this exit code.
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
    /// The exit status is unknown, as only its parent receives it.
    Unknown,
}

/// The machine on which it was observed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The kernel's name and release.
    pub kernel: String,
    /// The processor, if the system names it.
    pub processor: Option<String>,
    /// The number of cores that exist, usable or not.
    pub cores: usize,
    /// Whether the doctor ran as root, and so could see more.
    pub root: bool,
}

impl Host {
    /// Reads the facts of this machine.
    #[must_use]
    pub fn here() -> Host {
        let line = |path| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let release = line("/proc/sys/kernel/osrelease").unwrap_or_default();
        let named = line("/proc/cpuinfo").unwrap_or_default();
        let mut lines = named.lines();
        let processor = lines.find_map(|line| line.strip_prefix("model name"));
        let processor = processor.map(|text| text.trim_matches([' ', '\t', ':']).to_owned());
        Host {
            kernel: format!("{} {release}", std::env::consts::OS)
                .trim()
                .to_owned(),
            processor,
            cores: named
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count(),
            root: is_root(),
        }
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// The contents of the report of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The command and its arguments; for a process that ran already, its name.
    pub command: Vec<String>,
    /// The way in which it ended; `None` if it still runs.
    pub exit: Option<Ending>,
    /// The division of the time.
    pub time: Vec<Spent>,
    /// The verdicts, the most likely first.
    pub verdicts: Vec<Verdict>,
    /// All figures.
    pub evidence: Evidence,
    /// The machine where it ran.
    pub machine: Host,
    /// The figures that are absent here, with the reasons; those with a common reason are grouped.
    pub cannot_tell: Vec<String>,
}

impl Report {
    /// Judges the figures of a run.
    #[must_use]
    pub fn new(command: Vec<String>, exit: Option<Ending>, evidence: Evidence) -> Report {
        Report {
            command,
            exit,
            time: time::spent(&evidence),
            verdicts: rules::judge(&evidence),
            cannot_tell: evidence.absent(evidence.readings().map(|(name, _)| name)),
            evidence,
            machine: Host::here(),
        }
    }

    /// Returns a page of text: at most 40 lines of 80 columns.
    #[must_use]
    pub fn page(&self, colours: bool) -> String {
        page::page(self, colours)
    }

    /// Returns all figures as a table of text, with the file or event that each came from.
    #[must_use]
    pub fn figures(&self) -> String {
        page::figures(&self.evidence)
    }

    /// Returns one self-contained HTML page, with charts of the recording and without external
    /// resources. Equal reports give equal pages. With 64 busy threads it has some megabytes.
    #[must_use]
    pub fn html(&self, recording: &Recording) -> String {
        html::page(self, recording)
    }

    /// Returns one JSON object.
    ///
    /// # Errors
    /// No error is known: every field can be written as JSON.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

#[cfg(test)]
mod tests;
