//! `--hdr` writes histograms as a log that the tools of HdrHistogram read.

use crate::failure::Failure;
use crate::output::Output;
use crate::report::facts::Latency;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::io;
use std::time::{Duration, SystemTime};
use thalweg_measure::histogram::Histogram;

/// Writes one interval, which is the run, with a tagged line for each histogram.
///
/// # Errors
/// Returns an error if writing fails.
pub(crate) fn write(
    histograms: &[(String, Histogram)],
    latency: &Latency,
    output: &mut Output,
) -> Result<(), Failure> {
    let log = log(histograms, Duration::from_nanos(latency.elapsed_ns));
    let log = log.map_err(|error| output.failure(error))?;
    output.write(&log)
}

fn log(histograms: &[(String, Histogram)], elapsed: Duration) -> io::Result<Vec<u8>> {
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let began = SystemTime::now()
        .checked_sub(elapsed)
        .unwrap_or(SystemTime::UNIX_EPOCH);
    let other = |error: &dyn std::fmt::Debug| io::Error::other(format!("{error:?}"));
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment("[Latencies of thalweg exchange run, in nanoseconds]")
        .with_start_time(began)
        .with_base_time(began)
        .with_max_value_divisor(1.0)
        .begin_log_with(&mut log, &mut serializer)?;
    for (name, times) in histograms {
        let mut counts = hdrhistogram::Histogram::<u64>::new(3).map_err(|e| other(&e))?;
        for (value, count) in times.iter_recorded() {
            counts.record_n(value, count).map_err(|e| other(&e))?;
        }
        let tag = Tag::new(name);
        writer
            .write_histogram(&counts, Duration::ZERO, elapsed, tag)
            .map_err(|e| other(&e))?;
    }
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn the_log_reads_back() {
        let mut times = Histogram::new();
        times.record_n(850, 3);
        times.record(1_250_000);
        let histograms = [
            ("end_to_end".to_owned(), times),
            ("a.waited".to_owned(), Histogram::new()),
        ];
        let log = log(&histograms, Duration::from_millis(5)).unwrap();
        let entries = IntervalLogIterator::new(&log).filter_map(|entry| match entry {
            Ok(LogEntry::Interval(interval)) => Some(interval),
            Ok(_) => None,
            Err(error) => panic!("{error:?}"),
        });
        let intervals: Vec<_> = entries.collect();
        let tags: Vec<&str> = intervals
            .iter()
            .map(|i| i.tag().unwrap().as_str())
            .collect();
        assert_eq!(tags, ["end_to_end", "a.waited"]);
        assert_eq!(intervals[0].duration(), Duration::from_millis(5));
        let bytes = base64(intervals[0].encoded_histogram());
        let read = Deserializer::new()
            .deserialize::<u64, _>(&mut &bytes[..])
            .unwrap();
        assert_eq!((read.len(), read.value_at_quantile(0.5)), (4, 850));
        assert!(read.equivalent(read.max(), 1_250_000));
    }

    fn base64(text: &str) -> Vec<u8> {
        let digit = |c: u8| match c {
            b'A'..=b'Z' => u32::from(c - b'A'),
            b'a'..=b'z' => u32::from(c - b'a') + 26,
            b'0'..=b'9' => u32::from(c - b'0') + 52,
            b'+' => 62,
            b'/' => 63,
            _ => 0,
        };
        let groups = text.as_bytes().chunks(4);
        groups
            .flat_map(|group| {
                let bits = group.iter().fold(0, |bits, c| bits << 6 | digit(*c));
                bits.to_be_bytes()[1..].to_vec()
            })
            .collect()
    }
}
