//! XXH64 beside the reference in C and other crates: one buffer of any length, lists of protected
//! sectors, many buffers, keys.
//!
//! Every subject is called with another seed each time, and has to give what the reference gives.

mod goals;
mod job;

use super::{Experiment, Settings};
use crate::report::{Report, times};
use crate::runner::{Metric, Trial};
use job::{Load, Subjects};
use thalweg_hash::Kernel;
use thalweg_measure::table::{Cell, Table};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hash",
    shows: "XXH64 of short and long buffers, sectors with gaps, many buffers, keys; C and others",
    run,
};

/// Repetitions, `[full, quick]`.
const REPETITIONS: [usize; 2] = [41, 9];
/// Length of a run, `[full, quick]`. Short, so that a pair is of the same moment.
const SPAN_NS: [u64; 2] = [3_000_000, 1_000_000];

/// Time of one hash.
const METRICS: &[Metric] = &[Metric::lower("time", "ns")];
const TIME: usize = 0;

/// The subjects that ratios are about.
const OURS: &str = "thalweg";
const C: &str = "C xxHash 0.8.3";

/// Lengths of long buffers.
const LONG_BYTES: [(&str, usize); 5] = [
    ("512B", 512),
    ("4KiB", 4 << 10),
    ("8KiB", 8 << 10),
    ("64KiB", 64 << 10),
    ("1MiB", 1 << 20),
];
/// Entries of 16 sectors, 512 bytes and 8 of protection each.
const ENTRIES: [usize; 3] = [1, 16, 256];
const MANY_BYTES: [(&str, usize); 2] = [("512B", 512), ("4KiB", 4 << 10)];

/// Lengths of short buffers: all up to two stripes, then every eighth.
fn short_bytes() -> impl Iterator<Item = usize> {
    (0..=64).chain((72..=256).step_by(8))
}

struct Session<'s> {
    settings: &'s Settings,
    report: Report,
    trials: Vec<Trial>,
}

impl Session<'_> {
    fn trial(&self, case: &str, subjects: &Subjects, load: &Load) -> Option<Trial> {
        self.settings
            .trial(case, METRICS, subjects, load, REPETITIONS)
    }

    fn case(&mut self, case: &str, heading: &str, subjects: &Subjects, load: &Load) {
        if let Some(trial) = self.trial(case, subjects, load) {
            self.report.figures(&format!("{case}: {heading}"), &trial);
            self.trials.push(trial);
        }
    }

    fn span_ns(&self) -> u64 {
        self.settings.span_ns_or(SPAN_NS)
    }

    /// One line a length: 90 tables are none.
    fn short(&mut self) {
        let mut table = Table::new(["bytes", C, OURS, "ratio", "interval"]);
        let subjects = job::short();
        let mut ran = false;
        for bytes in short_bytes() {
            let case = format!("short/{bytes}");
            let load = Load::one(bytes, self.span_ns());
            let Some(trial) = self.trial(&case, &subjects, &load) else {
                continue;
            };
            self.report.rows(&trial);
            if let Some(ratio) = self.report.compare(&trial, [OURS, C], TIME) {
                let time = |name: &str| {
                    let values = trial.of(name).map(|series| series.values(TIME));
                    let median = values.and_then(|v| thalweg_measure::statistics::median(&v));
                    Cell::Number(format!("{:.2} ns", median.unwrap_or(f64::NAN)))
                };
                table.row([
                    bytes.into(),
                    time(C),
                    time(OURS),
                    Cell::Number(times(ratio.value)),
                    Cell::Number(ratio.bounds(times)),
                ]);
                ran = true;
            }
            self.trials.push(trial);
        }
        if ran {
            self.report.say("short: one buffer of up to 256 bytes");
            self.report.append(&table);
        }
    }

    fn others(&mut self) {
        let span_ns = self.span_ns();
        for (name, bytes) in LONG_BYTES {
            let load = Load::one(bytes, span_ns);
            self.case(&format!("one/{name}"), "one buffer", &job::one(), &load);
        }
        for entries in ENTRIES {
            let load = Load::scatter(entries, span_ns);
            let heading = "entries of 16 sectors, 512 + 8 bytes each";
            self.case(
                &format!("scatter/{entries}"),
                heading,
                &job::scatter(),
                &load,
            );
        }
        for (name, bytes) in MANY_BYTES {
            let load = Load::many(bytes, span_ns);
            let heading = "64 buffers, time of one";
            self.case(&format!("many/{name}"), heading, &job::many(), &load);
        }
        self.keys::<8>();
        self.keys::<16>();
        self.keys::<32>();
        self.keys::<64>();
    }

    fn keys<const N: usize>(&mut self)
    where
        [u8; N]: thalweg_hash::Key,
    {
        let load = Load::keys(N, self.span_ns());
        let heading = "1,024 keys, time of one";
        self.case(&format!("keys/{N}B"), heading, &job::keys::<N>(), &load);
    }
}

fn run(settings: &Settings) -> Report {
    let mut session = Session {
        settings,
        report: Report::new(EXPERIMENT.name),
        trials: Vec::new(),
    };
    let kernels: Vec<&str> = Kernel::available().map(Kernel::name).collect();
    session.report.say(format!(
        "kernels here: {}, the first one picked; {} interleaved runs",
        kernels.join(", "),
        settings.repetitions_or(REPETITIONS)
    ));
    session.short();
    session.others();
    let Session {
        mut report, trials, ..
    } = session;
    let targets = goals::targets(&mut report, &trials, Kernel::best().name());
    report.targets(&targets, settings);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_buffers_are_of_every_kind_of_tail() {
        let lengths: Vec<usize> = short_bytes().collect();
        assert!((0..=64).all(|bytes| lengths.contains(&bytes)));
        assert_eq!(lengths.last(), Some(&256));
    }
}
