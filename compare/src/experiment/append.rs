//! Records of 28 and of 32 bytes into a buffer: copied and read back at once, handed over by value,
//! or built in place.
//!
//! A copy of 28 bytes is two stores of 16 bytes that overlap, and where it is read back at once, a
//! load of 16 bytes needs both of them. A processor that cannot forward from two stores waits until
//! they are in the cache. A record that is built field by field and handed over by value is written
//! by narrow stores and read by wide loads, whatever its size. `llvm-mca` shows none of this: it
//! has no model of store forwarding.

use std::hint::black_box;
use std::time::Instant;

use counts::records::{Fields, Packed, Padded};
use thalweg_journal::AppendBuffer;

use super::Experiment;
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Run, subject};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "append",
    shows: "records of 28 and 32 bytes into a buffer: copied, by value, or built in place",
    peers: &[],
    notes: "",
    cases,
};

/// Records of the buffer: all of it fits into the first cache.
const RECORDS: usize = 512;

const COPIED_28: &str = "28 bytes copied, read back at once";
const COPIED_32: &str = "32 bytes copied, read back at once";
const VALUE_28: &str = "28 bytes by value";
const BUILT_28: &str = "28 bytes in place";
const BUILT_32: &str = "32 bytes in place";

fn cases(settings: &Settings) -> Vec<Case> {
    let way = |name, append: fn(u64) -> (u64, f64)| {
        subject(name, move |&records: &u64| {
            append(records / 8);
            let (came, ns) = append(records);
            Ok(Run::of([ns / records as f64]).with_lost(records - came))
        })
    };
    let subjects = vec![
        way(COPIED_28, |records| timed::<Packed>(records, copied)),
        way(COPIED_32, |records| timed::<Padded>(records, copied)),
        way(VALUE_28, |records| timed::<Packed>(records, by_value)),
        way(BUILT_28, |records| timed::<Packed>(records, in_place)),
        way(BUILT_32, |records| timed::<Padded>(records, in_place)),
    ];
    const METRICS: &[Metric] = &[Metric::lower("time", "ns")];
    let records = settings.count(1_600_000).max(RECORDS as u64);
    let heading = "time of a record, in a buffer that fits into the first cache";
    let case = Case::of("append", heading, METRICS, subjects, records);
    vec![case.repeated(41).goals([
        Goal::ratio([BUILT_28, VALUE_28], 0, 5.0),
        Goal::ratio([BUILT_28, BUILT_32], 0, 1.0 / 1.3),
        Goal::shown([COPIED_32, COPIED_28], 0),
    ])]
}

type Buffer<'a, T> = AppendBuffer<T, &'a mut dyn FnMut(&mut [T])>;

/// A whole record is copied, and the copy is read at once: all that the compiler knows of it is
/// where it is.
#[inline(always)]
fn copied<T: Fields>(buffer: &mut Buffer<'_, T>, same: &T, _: u64) {
    let copy = black_box(*same);
    buffer.append_with(|slot| *slot = copy);
}

#[inline(never)]
fn push<T: Fields>(buffer: &mut Buffer<'_, T>, record: T) {
    buffer.append_with(|slot| *slot = record);
}

/// A record is made, and handed over to a `push` that is not inlined.
#[inline(always)]
fn by_value<T: Fields>(buffer: &mut Buffer<'_, T>, _: &T, number: u64) {
    let mut record = T::default();
    record.set(number);
    push(buffer, record);
}

/// The fields are set where the record stays.
#[inline(always)]
fn in_place<T: Fields>(buffer: &mut Buffer<'_, T>, _: &T, number: u64) {
    buffer.append_with(|slot| slot.set(number));
}

/// Appends records, none of which can be left out. Returns how many came, and the time, ns.
fn timed<T: Fields>(records: u64, append: impl Fn(&mut Buffer<'_, T>, &T, u64)) -> (u64, f64) {
    let mut came = 0;
    let begin = Instant::now();
    let mut full = |records: &mut [T]| came += black_box(records).len() as u64;
    let mut buffer: Buffer<'_, T> = AppendBuffer::new(RECORDS, T::default, &mut full);
    let mut same = T::default();
    same.set(records);
    // From here on it is memory, not fields in registers.
    let same = black_box(&same);
    for number in 0..records {
        append(&mut buffer, same, number);
    }
    buffer.flush();
    drop(buffer);
    (came, begin.elapsed().as_nanos() as f64)
}
