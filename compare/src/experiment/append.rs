//! Records of 28 and of 32 bytes into a buffer, made elsewhere and copied, or built in place.
//!
//! A copy of 28 bytes is two stores of 16 bytes that overlap. Where it is read back at once, a load
//! of 16 bytes needs both of them, and a processor that cannot forward from two stores waits until
//! they are in the cache. A copy of 32 bytes is two stores that do not overlap, and loads of the
//! same places are forwarded. `llvm-mca` shows no difference: it has no model of store forwarding.

use std::hint::black_box;
use std::time::Instant;

use thalweg_journal::AppendBuffer;

use super::{Experiment, Settings, progress_note};
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, interleave};
use crate::target::{Limit, Target};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "append",
    shows: "records of 28 and 32 bytes into a buffer: copied by value, or built in place",
    run,
};

/// Repetitions, `[full, quick]`.
const REPETITIONS: [usize; 2] = [41, 9];
/// Length of a run, `[full, quick]`.
const SPAN_NS: [u64; 2] = [5_000_000, 1_000_000];
/// Records of the buffer: all of it fits into the first cache.
const RECORDS: usize = 512;

const METRICS: &[Metric] = &[Metric::lower("time", "ns")];
const TIME: usize = 0;

const CASE: &str = "append";
const COPIED_28: &str = "28 bytes by value";
const COPIED_32: &str = "32 bytes by value";
const BUILT_28: &str = "28 bytes in place";
const BUILT_32: &str = "32 bytes in place";

/// 28 bytes, side by side.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, packed)]
struct Packed {
    user: u64,
    price: u64,
    order: u64,
    lots: u32,
}

/// The same, and 4 bytes more.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, packed)]
struct Padded {
    fields: Packed,
    zero: u32,
}

const _: () = assert!(size_of::<Packed>() == 28 && size_of::<Padded>() == 32);

trait Fields: Copy + Default + 'static {
    fn set(&mut self, number: u64);
    fn number(&self) -> u64;
}

impl Fields for Packed {
    #[inline(always)]
    fn set(&mut self, number: u64) {
        self.user = number;
        self.price = number ^ 7;
        self.order = number + 1;
        self.lots = number as u32;
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        self.user
    }
}

impl Fields for Padded {
    #[inline(always)]
    fn set(&mut self, number: u64) {
        self.fields.set(number);
        self.zero = 0;
    }

    #[inline(always)]
    fn number(&self) -> u64 {
        self.fields.number()
    }
}

struct Load {
    records: u64,
}

struct Way {
    name: &'static str,
    append: fn(u64) -> (u64, f64),
}

impl Subject<Load> for Way {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        (self.append)(load.records / 8);
        let (sum, ns) = (self.append)(load.records);
        if sum != load.records * (load.records - 1) / 2 {
            return Err("records were lost".to_owned());
        }
        Ok(Run {
            values: vec![ns / load.records as f64],
            disturbance: 0.0,
            lost: 0,
            cut: false,
        })
    }
}

/// Sums up what is handed over, so that nothing of it can be left out, and times all.
fn timed<T: Fields>(records: u64, mut append: impl FnMut(&mut dyn FnMut(&[T]), u64)) -> (u64, f64) {
    let mut sum = 0;
    let begin = Instant::now();
    append(
        &mut |full| {
            let full = black_box(full);
            sum += full.iter().map(T::number).sum::<u64>();
        },
        records,
    );
    (sum, begin.elapsed().as_nanos() as f64)
}

/// A record is made, handed over by value, and stored: as a `push(record)` does that is not
/// inlined.
fn copied<T: Fields>(records: u64) -> (u64, f64) {
    timed::<T>(records, |full, records| {
        let mut buffer = AppendBuffer::new(RECORDS, T::default, |records: &mut [T]| full(records));
        let mut record = T::default();
        for number in 0..records {
            record.set(number);
            let copy = black_box(record);
            buffer.append_with(|slot| *slot = copy);
        }
        buffer.flush();
    })
}

/// The fields are set where the record stays.
fn built<T: Fields>(records: u64) -> (u64, f64) {
    timed::<T>(records, |full, records| {
        let mut buffer = AppendBuffer::new(RECORDS, T::default, |records: &mut [T]| full(records));
        for number in 0..records {
            buffer.append_with(|slot| slot.set(black_box(number)));
        }
        buffer.flush();
    })
}

fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    let way = |name, append: fn(u64) -> (u64, f64)| -> Box<dyn Subject<Load>> {
        Box::new(Way { name, append })
    };
    vec![
        way(COPIED_28, copied::<Packed>),
        way(COPIED_32, copied::<Padded>),
        way(BUILT_28, built::<Packed>),
        way(BUILT_32, built::<Padded>),
    ]
}

fn run(settings: &Settings) -> Report {
    let mut report = Report::new(EXPERIMENT.name);
    let subjects = subjects();
    let wanted = settings.wanted(CASE, &subjects);
    let repetitions = settings.repetitions_or(REPETITIONS);
    let load = Load {
        records: (settings.span_ns_or(SPAN_NS) / 3).max(RECORDS as u64),
    };
    progress_note(&format!(
        "{CASE}: {} subjects, {repetitions} runs",
        wanted.len()
    ));
    let trial = interleave(CASE, METRICS, &wanted, &load, repetitions);
    report.figures(
        "time of a record, in a buffer that fits into the first cache",
        &trial,
    );
    let mut targets = Vec::new();
    for (sides, at_least) in [
        ([BUILT_28, COPIED_28], 5.0),
        ([BUILT_28, BUILT_32], 1.0 / 1.3),
        ([COPIED_32, COPIED_28], 1.0),
    ] {
        let ratio = report.compare(&trial, sides, TIME);
        let limit = Limit::AtLeast(at_least);
        targets.push(Target::ratio("time of a record", sides, limit, ratio));
    }
    report.targets(&targets, settings);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_hands_over_every_record() {
        for subject in subjects() {
            let ran = subject.run(&Load { records: 10_000 });
            assert!(ran.is_ok(), "{}: {ran:?}", subject.name());
        }
    }
}
