//! Records of 28 and of 32 bytes into a buffer: copied, handed over by value, or built in place.
//!
//! A copy of 28 bytes is two stores of 16 bytes that overlap, and where it is read back at once, a
//! load of 16 bytes needs both of them. A processor that cannot forward from two stores waits until
//! they are in the cache. A copy of 32 bytes is two stores that do not overlap, and loads of the
//! same places are forwarded. A record that is built field by field and handed over by value is
//! written by narrow stores and read by wide loads, whatever its size. `llvm-mca` shows none of
//! this: it has no model of store forwarding.

use std::hint::black_box;
use std::time::Instant;

use counts::records::{Fields, Packed, Padded};
use thalweg_journal::AppendBuffer;

use super::{Experiment, Settings};
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, subject};
use crate::target::{Limit, Target};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "append",
    shows: "records of 28 and 32 bytes into a buffer: copied, by value, or built in place",
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
const COPIED_28: &str = "28 bytes copied, read back at once";
const COPIED_32: &str = "32 bytes copied, read back at once";
const VALUE_28: &str = "28 bytes by value";
const VALUE_32: &str = "32 bytes by value";
const BUILT_28: &str = "28 bytes in place";
const BUILT_32: &str = "32 bytes in place";
const CALLED_28: &str = "28 bytes in place, by a call";
const CALLED_32: &str = "32 bytes in place, by a call";

/// How a record comes into the buffer.
trait Way<T: Fields> {
    fn append<F: FnMut(&mut [T])>(buffer: &mut AppendBuffer<T, F>, same: &T, number: u64);
}

/// A whole record is copied, and the copy is read at once: all that the compiler knows of it is
/// where it is.
struct Copied;

impl<T: Fields> Way<T> for Copied {
    #[inline(always)]
    fn append<F: FnMut(&mut [T])>(buffer: &mut AppendBuffer<T, F>, same: &T, _: u64) {
        let copy = black_box(*same);
        buffer.append_with(|slot| *slot = copy);
    }
}

/// A record is made, and handed over to a `push` that is not inlined.
struct ByValue;

#[inline(never)]
fn push<T: Fields, F: FnMut(&mut [T])>(buffer: &mut AppendBuffer<T, F>, record: T) {
    buffer.append_with(|slot| *slot = record);
}

impl<T: Fields> Way<T> for ByValue {
    #[inline(always)]
    fn append<F: FnMut(&mut [T])>(buffer: &mut AppendBuffer<T, F>, _: &T, number: u64) {
        let mut record = T::default();
        record.set(number);
        push(buffer, record);
    }
}

/// The fields are set where the record stays.
struct InPlace;

impl<T: Fields> Way<T> for InPlace {
    #[inline(always)]
    fn append<F: FnMut(&mut [T])>(buffer: &mut AppendBuffer<T, F>, _: &T, number: u64) {
        buffer.append_with(|slot| slot.set(number));
    }
}

/// The same in a function that is not inlined, as `push` is not.
struct InPlaceByCall;

impl<T: Fields> Way<T> for InPlaceByCall {
    #[inline(never)]
    fn append<F: FnMut(&mut [T])>(buffer: &mut AppendBuffer<T, F>, _: &T, number: u64) {
        buffer.append_with(|slot| slot.set(number));
    }
}

/// Appends so many records; `full` is shown every full buffer.
fn append<T: Fields, W: Way<T>>(records: u64, mut full: impl FnMut(&[T])) {
    let mut buffer = AppendBuffer::new(RECORDS, T::default, |records: &mut [T]| full(records));
    let mut same = T::default();
    same.set(records);
    // From here on it is memory, not fields in registers.
    let same = black_box(&same);
    for number in 0..records {
        W::append(&mut buffer, same, number);
    }
    buffer.flush();
}

/// Appends so many records, none of which can be left out; gives how many came, and the time, ns.
fn timed<T: Fields, W: Way<T>>(records: u64) -> (u64, f64) {
    let mut came = 0;
    let begin = Instant::now();
    append::<T, W>(records, |full| came += black_box(full).len() as u64);
    (came, begin.elapsed().as_nanos() as f64)
}

struct Load {
    records: u64,
}

fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    let subject = |name, append: fn(u64) -> (u64, f64)| {
        subject(name, move |&Load { records }: &Load| {
            append(records / 8);
            let (came, ns) = append(records);
            Ok(Run::of(vec![ns / records as f64]).with_lost(records - came))
        })
    };
    vec![
        subject(COPIED_28, timed::<Packed, Copied>),
        subject(COPIED_32, timed::<Padded, Copied>),
        subject(VALUE_28, timed::<Packed, ByValue>),
        subject(VALUE_32, timed::<Padded, ByValue>),
        subject(BUILT_28, timed::<Packed, InPlace>),
        subject(BUILT_32, timed::<Padded, InPlace>),
        subject(CALLED_28, timed::<Packed, InPlaceByCall>),
        subject(CALLED_32, timed::<Padded, InPlaceByCall>),
    ]
}

/// The first is at least so many times as fast as the second. A copy of 28 bytes may stall: by how
/// much is a matter of the processor.
const GOALS: [([&str; 2], Limit); 5] = [
    ([BUILT_28, VALUE_28], Limit::AtLeast(5.0)),
    ([BUILT_28, BUILT_32], Limit::AtLeast(1.0 / 1.3)),
    ([COPIED_32, COPIED_28], Limit::Shown),
    ([CALLED_28, VALUE_28], Limit::Shown),
    ([CALLED_32, VALUE_32], Limit::Shown),
];

fn run(settings: &Settings) -> Report {
    let mut report = Report::new(EXPERIMENT.name);
    let load = Load {
        records: (settings.span_ns_or(SPAN_NS) / 3).max(RECORDS as u64),
    };
    let Some(trial) = settings.trial(CASE, METRICS, &subjects(), &load, REPETITIONS) else {
        return report;
    };
    report.figures(
        "time of a record, in a buffer that fits into the first cache",
        &trial,
    );
    let mut targets = Vec::new();
    for (sides, limit) in GOALS {
        let ratio = report.compare(&trial, sides, TIME);
        targets.push(Target::ratio("time of a record", sides, limit, ratio));
    }
    report.targets(&targets, settings);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Fields + PartialEq + std::fmt::Debug, W: Way<T>>(repeats: bool) {
        let (records, mut came) = (10_000, 0);
        append::<T, W>(records, |full| {
            for record in full {
                let mut wanted = T::default();
                wanted.set(if repeats { records } else { came });
                assert_eq!(*record, wanted);
                came += 1;
            }
        });
        assert_eq!(came, records);
    }

    #[test]
    fn every_way_hands_over_every_record() {
        check::<Packed, Copied>(true);
        check::<Padded, Copied>(true);
        check::<Packed, ByValue>(false);
        check::<Padded, ByValue>(false);
        check::<Packed, InPlace>(false);
        check::<Padded, InPlace>(false);
        check::<Packed, InPlaceByCall>(false);
        check::<Padded, InPlaceByCall>(false);
        for subject in subjects() {
            let ran = subject.run(&Load { records: 1_000 });
            assert_eq!(ran.map(|run| run.lost), Ok(0), "{}", subject.name());
        }
    }
}
