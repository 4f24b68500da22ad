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
        way(COPIED_28, timed::<Packed, Copied>),
        way(COPIED_32, timed::<Padded, Copied>),
        way(VALUE_28, timed::<Packed, ByValue>),
        way(BUILT_28, timed::<Packed, InPlace>),
        way(BUILT_32, timed::<Padded, InPlace>),
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

/// Appends records, none of which can be left out. Returns how many came, and the time, ns.
fn timed<T: Fields, W: Way<T>>(records: u64) -> (u64, f64) {
    let mut came = 0;
    let begin = Instant::now();
    let full = |records: &mut [T]| came += black_box(records).len() as u64;
    let mut buffer = AppendBuffer::new(RECORDS, T::default, full);
    let mut same = T::default();
    same.set(records);
    // From here on it is memory, not fields in registers.
    let same = black_box(&same);
    for number in 0..records {
        W::append(&mut buffer, same, number);
    }
    buffer.flush();
    drop(buffer);
    (came, begin.elapsed().as_nanos() as f64)
}
