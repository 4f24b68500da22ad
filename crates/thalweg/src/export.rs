//! Statistics of pipelines, buses and [channels with a name](crate::channel::Builder::name) for a
//! program that watches this one from outside.
//!
//! One of them is exported if the environment variable [`THALWEG_EXPORT`](ENV_VAR) names a
//! directory when it is built, or if `export_to` does
//! ([pipeline](crate::pipeline::PipelineBuilder::export_to),
//! [bus](crate::bus::BusBuilder::export_to), [channel](crate::channel::NamedBuilder::export_to)): a
//! background thread then writes its statistics into a file in this directory, ten times a second
//! and once more at the end. The directory should be in memory, such as one under `/dev/shm`, and
//! used by this user alone. `thalweg top` shows the statistics; `thalweg doctor` creates a
//! directory and reads them. The
//! [format](https://github.com/thalweg-rs/thalweg/blob/main/docs/export-format.md) is documented.
//!
//! ```
//! use thalweg::pipeline::{Pipeline, Placement};
//!
//! let directory = std::env::temp_dir().join(format!("figures-{}", std::process::id()));
//! std::fs::create_dir(&directory)?;
//! let mut pipeline = Pipeline::builder(64, || 0_u64)
//!     .stage("double", |event, _| *event *= 2)
//!     .placement(Placement::inline())
//!     .export_to(&directory)
//!     .build()?;
//! pipeline.publish(|event| *event = 1)?;
//! pipeline.join()?;
//! let file = std::fs::read_dir(&directory)?.next().expect("one file")?;
//! assert!(std::fs::read_to_string(file.path())?.contains("\"published\": 1,"));
//! std::fs::remove_dir_all(&directory)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//! Without the variable, each of them reads the environment once. With it, one thread for all of
//! them wakes a hundred times a second and reads counters that are kept anyway. Nothing waits for
//! it.
//!
//! # Atomic snapshots
//! A snapshot is written under another name and renamed. A snapshot that cannot be written, because
//! the directory is not there or full, is left out, and nothing else is affected: the next snapshot
//! may be written.

use std::any::Any;
use std::fmt::{Display, Write as _};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[cfg(feature = "stats")]
use thalweg_measure::histogram::Histogram;
use thalweg_measure::random::SplitMix;

use crate::ring::sync::IS_MODEL;

/// The environment variable that names the directory.
pub const ENV_VAR: &str = "THALWEG_EXPORT";

/// The most pipelines, buses and channels of a process that are exported, since their files stay.
pub const EXPORTS_MAX: u64 = 256;

/// The version of the format.
pub const FORMAT_VERSION: u32 = 1;

/// Returns the directory that was asked for, or else that of the environment. None in a model.
pub(crate) fn directory(asked: Option<PathBuf>) -> Option<PathBuf> {
    let named = || std::env::var_os(ENV_VAR).filter(|named| !named.is_empty());
    match IS_MODEL {
        true => None,
        false => asked.or_else(|| named().map(PathBuf::from)),
    }
}

/// Returns whether a ring with this part of its capacity taken counts as full: a producer that
/// waits for a free slot continues when an eighth is free.
pub(crate) fn is_full(taken: u64, capacity: u64) -> bool {
    capacity > 0 && taken >= capacity - capacity / 8
}

/// Follows sampled events in their order.
///
/// Each comes with its number and with when it was due, so that the rate is that of the senders,
/// also where the events had to wait to be sent. The burst is the longest queue of an unbounded
/// buffer between such arrivals and a server of the known rate: Lindley's recursion (1952), with
/// the events between two samples as one arrival.
#[derive(Debug, Default, Clone)]
pub(crate) struct Arrivals {
    first: Option<(u64, u64)>,
    last: (u64, u64),
    queue: f64,
    burst: f64,
}

impl Arrivals {
    /// The event of this number was due at `at`. One that is not later than the last changes
    /// nothing. `service` is how long the server takes for an event, where that is known.
    pub(crate) fn see(&mut self, number: u64, at: u64, service: Option<f64>) {
        if self.first.is_none() {
            self.first = Some((number, at));
            self.last = (number, at);
            return;
        }
        let (last_number, last_at) = self.last;
        if number <= last_number || at < last_at {
            return;
        }
        if let Some(service) = service.filter(|&service| service > 0.0) {
            let served = (at - last_at) as f64 / service;
            self.queue = (self.queue + (number - last_number) as f64 - served).max(0.0);
            self.burst = self.burst.max(self.queue);
        }
        self.last = (number, at);
    }

    /// Returns the number of the last event that was seen.
    pub(crate) fn last(&self) -> Option<u64> {
        self.first.map(|_| self.last.0)
    }

    /// Events from the first seen to the last, and the time between them.
    pub(crate) fn span(&self) -> (u64, u64) {
        let (first, from) = self.first.unwrap_or_default();
        (self.last.0 - first, self.last.1 - from)
    }

    /// Returns the longest queue, in events.
    pub(crate) fn burst(&self) -> u64 {
        self.burst.ceil() as u64
    }
}

/// The sums over all looks at a queue.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    capacity: u64,
    waiting: u64,
    waiting_max: u64,
    waiting_sum: u64,
    count: u64,
    full: u64,
    pub(crate) arrivals: Arrivals,
}

impl Looks {
    pub(crate) fn see(&mut self, waiting: u64, capacity: u64) {
        self.capacity = capacity;
        self.waiting = waiting;
        self.waiting_max = self.waiting_max.max(waiting);
        self.waiting_sum += waiting;
        self.count += 1;
        self.full += u64::from(is_full(waiting, capacity));
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting
    }

    pub(crate) fn write(&self, json: &mut Json) {
        json.put("capacity", self.capacity);
        json.put("waiting", self.waiting);
        json.put("waiting_max", self.waiting_max);
        json.put("waiting_sum", self.waiting_sum);
        json.put("looks", self.count);
        json.put("full_looks", self.full);
    }

    pub(crate) fn write_arrivals(&self, json: &mut Json) {
        let (arrived, arrived_ns) = self.arrivals.span();
        json.put("arrived", arrived);
        json.put("arrived_ns", arrived_ns);
        json.put("burst", self.arrivals.burst().max(self.waiting_max));
    }
}

/// A name for each.
#[cfg(feature = "stats")]
struct Latencies(Vec<(String, Histogram)>);

#[cfg(feature = "stats")]
impl Source for Latencies {
    fn kind(&self) -> &'static str {
        "latencies"
    }

    fn sample(&mut self) -> Held {
        None
    }

    fn write(&mut self, json: &mut Json) {
        json.objects("latencies", &self.0, |json, (name, times)| {
            json.put_text("name", name);
            write_times(json, times, times.mean());
        });
    }
}

/// Exports histograms of latencies in ns, under names that the caller chooses: the total first,
/// then its parts. It is for a program that has measured them and is about to end; pipelines export
/// their own. Nothing is written unless [`ENV_VAR`] names a directory. Each call writes another
/// file. The histogram is a type of the crate `thalweg-measure`.
///
/// ```
/// use thalweg_measure::histogram::Histogram;
///
/// let mut times = Histogram::new();
/// times.record(1_200);
/// thalweg::export::export_latencies(&[("end to end".to_owned(), times)]);
/// ```
#[cfg(feature = "stats")]
pub fn export_latencies(named: &[(String, Histogram)]) {
    if let Some(directory) = directory(None) {
        // The end writes it.
        drop(Export::new(directory, Latencies(named.to_vec())));
    }
}

#[cfg(feature = "stats")]
pub(crate) fn write_times(json: &mut Json, times: &Histogram, mean_ns: f64) {
    let summary = times.summary();
    json.put("count", summary.count);
    json.put_fraction("mean_ns", mean_ns);
    json.put("p50_ns", summary.p50);
    json.put("p90_ns", summary.p90);
    json.put("p99_ns", summary.p99);
    json.put("p999_ns", summary.p999);
    json.put("p9999_ns", summary.p9999);
    json.put("max_ns", summary.max);
}

/// An object in the making, a line for each of its members.
#[derive(Debug)]
pub(crate) struct Json {
    text: String,
    depth: usize,
    is_empty: bool,
}

impl Json {
    pub(crate) fn new() -> Self {
        Self {
            text: "{".to_owned(),
            depth: 1,
            is_empty: true,
        }
    }

    /// Returns the whole text.
    pub(crate) fn end(mut self) -> String {
        self.close('}');
        self.text.push('\n');
        self.text
    }

    /// A number, `true` or `false`.
    pub(crate) fn put(&mut self, key: &str, value: impl Display) {
        self.key(key);
        self.write(value);
    }

    /// A fraction, to three places; 0 for what is no number.
    pub(crate) fn put_fraction(&mut self, key: &str, value: f64) {
        let value = if value.is_finite() { value } else { 0.0 };
        self.put(key, format_args!("{value:.3}"));
    }

    pub(crate) fn put_text(&mut self, key: &str, value: &str) {
        self.key(key);
        self.text.push('"');
        for symbol in value.chars() {
            match symbol {
                '"' | '\\' => self.text.extend(['\\', symbol]),
                symbol if symbol < ' ' => self.write(format_args!("\\u{:04x}", symbol as u32)),
                symbol => self.text.push(symbol),
            }
        }
        self.text.push('"');
    }

    /// An object in this one.
    pub(crate) fn object(&mut self, key: &str, members: impl FnOnce(&mut Self)) {
        self.key(key);
        self.nested(('{', '}'), members);
    }

    /// An array of objects in this one.
    pub(crate) fn objects<I: IntoIterator>(
        &mut self,
        key: &str,
        items: I,
        mut members: impl FnMut(&mut Self, I::Item),
    ) {
        self.key(key);
        self.nested(('[', ']'), |json| {
            for item in items {
                json.next();
                json.nested(('{', '}'), |json| members(json, item));
            }
        });
    }

    fn nested(&mut self, (open, close): (char, char), members: impl FnOnce(&mut Self)) {
        self.text.push(open);
        self.depth += 1;
        self.is_empty = true;
        members(self);
        self.close(close);
    }

    fn close(&mut self, close: char) {
        self.depth -= 1;
        if !self.is_empty {
            self.line();
        }
        self.is_empty = false;
        self.text.push(close);
    }

    fn key(&mut self, key: &str) {
        self.next();
        self.write(format_args!("\"{key}\": "));
    }

    fn next(&mut self) {
        if !self.is_empty {
            self.text.push(',');
        }
        self.is_empty = false;
        self.line();
    }

    fn line(&mut self) {
        let indent = self.depth;
        self.write(format_args!("\n{:indent$}", ""));
    }

    fn write(&mut self, value: impl Display) {
        // Writing to a text does not fail.
        let _ = write!(self.text, "{value}");
    }
}

/// The mean time between two samples of a source.
const SAMPLE_PERIOD: Duration = Duration::from_millis(10);
/// The number of samples per snapshot.
const SAMPLES_PER_SNAPSHOT: u32 = 10;

/// The references that a sample held, to be dropped when no lock is held.
pub(crate) type Held = Option<Arc<dyn Any + Send + Sync>>;

/// Something with figures.
pub(crate) trait Source: Send {
    /// Pipeline, bus or channel.
    fn kind(&self) -> &'static str;

    /// Samples figures that change from moment to moment.
    fn sample(&mut self) -> Held;

    /// Writes the figures.
    fn write(&mut self, json: &mut Json);
}

/// The times of samples. With a fixed period, events that repeat with a multiple of it would always
/// be sampled in the same phase; so the time between two samples is random, from a half of
/// [`SAMPLE_PERIOD`] to one and a half.
#[derive(Debug)]
struct SampleTimes(SplitMix);

impl SampleTimes {
    fn new() -> Self {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let seed = since.as_nanos() as u64 ^ u64::from(std::process::id()) << 32;
        Self(SplitMix::new(seed))
    }

    fn wait(&mut self) -> Duration {
        SAMPLE_PERIOD.mul_f64(0.5 + self.0.unit())
    }
}

struct Entry {
    directory: PathBuf,
    number: u64,
    /// None when it has ended.
    watched: Mutex<Option<Watched>>,
}

struct Watched {
    source: Box<dyn Source>,
    snapshots: u64,
}

#[derive(Default)]
struct Registry {
    entries: Vec<Arc<Entry>>,
    exports: u64,
    has_thread: bool,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    entries: Vec::new(),
    exports: 0,
    has_thread: false,
});
/// Notified when the last entry is removed.
static EMPTY: Condvar = Condvar::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The registration of a source with the reporter, until this is dropped.
pub(crate) struct Export(Arc<Entry>);

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Export").field(&self.0.number).finish()
    }
}

impl Export {
    /// Registers a source; returns `None` if the process has exported too many.
    pub(crate) fn new(directory: PathBuf, source: impl Source + 'static) -> Option<Self> {
        let mut registry = lock(&REGISTRY);
        if registry.exports == EXPORTS_MAX {
            return None;
        }
        registry.exports += 1;
        let number = registry.exports;
        let watched = Watched {
            source: Box::new(source),
            snapshots: 0,
        };
        let entry = Arc::new(Entry {
            directory,
            number,
            watched: Mutex::new(Some(watched)),
        });
        registry.entries.push(Arc::clone(&entry));
        if !registry.has_thread {
            let thread = std::thread::Builder::new().name("thalweg-export".to_owned());
            // Without a thread, only the snapshot at the end is written.
            registry.has_thread = thread.spawn(report).is_ok();
        }
        Some(Self(entry))
    }

    /// Samples the source now, besides the samples of the reporter.
    pub(crate) fn sample(&self) {
        self.0.sample();
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        let mut registry = lock(&REGISTRY);
        registry
            .entries
            .retain(|entry| !Arc::ptr_eq(entry, &self.0));
        if registry.entries.is_empty() {
            EMPTY.notify_all();
        }
        drop(registry);
        self.0.end();
    }
}

impl Entry {
    fn sample(&self) {
        let held = lock(&self.watched).as_mut().map(|it| it.source.sample());
        drop(held);
    }

    fn snapshot(&self) {
        if let Some(watched) = &mut *lock(&self.watched) {
            self.write(watched, false);
        }
    }

    /// Writes the last snapshot.
    fn end(&self) {
        let mut guard = lock(&self.watched);
        let Some(mut watched) = guard.take() else {
            return;
        };
        let held = watched.source.sample();
        self.write(&mut watched, true);
        drop(guard);
        drop(held);
    }

    fn write(&self, watched: &mut Watched, has_ended: bool) {
        watched.snapshots += 1;
        let process = std::process::id();
        let mut json = Json::new();
        json.put_text("format", "thalweg-export");
        json.put("version", FORMAT_VERSION);
        json.put_text("kind", watched.source.kind());
        json.put("process", process);
        json.put("number", self.number);
        json.put("snapshot", watched.snapshots);
        json.put("has_ended", has_ended);
        watched.source.write(&mut json);
        // A snapshot that cannot be written is left out: see the module.
        let _ = self.replace(&format!("{process}-{}", self.number), &json.end());
    }

    /// Replaces a file.
    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.directory.join(format!(".{name}.new"));
        let written = write_new(&new, text).and_then(|()| {
            let path = self.directory.join(name);
            fs::rename(&new, path)
        });
        if written.is_err() {
            // It may not exist.
            let _ = fs::remove_file(&new);
        }
        written
    }
}

/// Writes a file that does not exist yet: a link that another process made there is not followed.
fn write_new(path: &PathBuf, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    options.open(path)?.write_all(text.as_bytes())
}

/// Samples the sources and writes snapshots until no entry is left.
fn report() {
    let mut samples = 0_u32;
    let mut due = Instant::now();
    let mut times = SampleTimes::new();
    loop {
        due = (due + times.wait()).max(Instant::now());
        let Some(entries) = next(due) else { return };
        samples = (samples + 1) % SAMPLES_PER_SNAPSHOT;
        for entry in &entries {
            // The reference that it held may be the last of a bus, with messages whose drop panics.
            let sampled = catch_unwind(AssertUnwindSafe(|| entry.sample()));
            if let Err(payload) = sampled {
                crate::wait::discard(payload);
            }
            if samples == 0 {
                entry.snapshot();
            }
        }
    }
}

/// Waits until `due` and returns all entries; returns `None` when there are none, which ends the
/// thread.
fn next(due: Instant) -> Option<Vec<Arc<Entry>>> {
    let mut registry = lock(&REGISTRY);
    while !registry.entries.is_empty() {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(registry.entries.clone());
        }
        let waited = EMPTY.wait_timeout(registry, left);
        registry = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    registry.has_thread = false;
    None
}

#[cfg(test)]
mod tests {
    use super::{Arrivals, Json, *};

    #[test]
    fn the_longest_queue_is_that_of_a_server_of_this_rate() {
        let mut arrivals = Arrivals::default();
        assert_eq!((arrivals.span(), arrivals.last()), ((0, 0), None));
        // One event in 10, and the server takes 5; then 100 in 100, 20 of which it can serve.
        for number in 0..10 {
            arrivals.see(number, 1_000 + 10 * number, Some(5.0));
        }
        assert_eq!(arrivals.burst(), 0);
        arrivals.see(109, 1_190, Some(5.0));
        assert_eq!(arrivals.burst(), 80);
        // The queue is empty again after 400; a smaller burst is none.
        arrivals.see(110, 1_690, Some(5.0));
        arrivals.see(150, 1_700, Some(5.0));
        assert_eq!((arrivals.burst(), arrivals.span()), (80, (150, 700)));
    }

    #[test]
    fn two_bursts_without_a_pause_make_one() {
        let mut arrivals = Arrivals::default();
        for (number, at) in [(0, 0), (50, 100), (100, 200)] {
            arrivals.see(number, at, Some(10.0));
        }
        assert_eq!(arrivals.burst(), 80);
    }

    #[test]
    fn what_cannot_be_changes_nothing() {
        let mut arrivals = Arrivals::default();
        arrivals.see(100, 1_000, None);
        for (number, at) in [(100, 2_000), (90, 2_000), (101, 999)] {
            arrivals.see(number, at, Some(1.0));
        }
        assert_eq!((arrivals.span(), arrivals.burst()), ((0, 0), 0));
        arrivals.see(200, 2_000, Some(0.0));
        assert_eq!((arrivals.span(), arrivals.burst()), ((100, 1_000), 0));
    }

    #[test]
    fn members_are_on_lines_of_their_own_and_texts_are_escaped() {
        let mut json = Json::new();
        json.put("count", 7);
        json.put_fraction("share", f64::NAN);
        json.put_text("name", "a\"b\\c\n");
        json.object("none", |_| {});
        json.objects("stages", [1, 2], |json, number| json.put("number", number));
        let expected = [
            r#"{"#,
            r#" "count": 7,"#,
            r#" "share": 0.000,"#,
            r#" "name": "a\"b\\c\u000a","#,
            r#" "none": {},"#,
            r#" "stages": ["#,
            r#"  {"#,
            r#"   "number": 1"#,
            r#"  },"#,
            r#"  {"#,
            r#"   "number": 2"#,
            r#"  }"#,
            r#" ]"#,
            "}\n",
        ];
        assert_eq!(json.end(), expected.join("\n"));
    }

    /// Each burst fills the queue for 0.4 of the time to the next one.
    #[test]
    fn samples_hit_bursts_in_any_phase() {
        for bursts_per_s in [100.0, 200.0, 300.0, 1_000.0, 37.0] {
            for seed in 0..4 {
                let (mut pace, mut now, mut full) =
                    (SampleTimes(SplitMix::new(seed)), Duration::ZERO, 0);
                for _ in 0..10_000 {
                    now += pace.wait();
                    full += u32::from((now.as_secs_f64() * bursts_per_s).fract() < 0.4);
                }
                let share = f64::from(full) / 10_000.0;
                assert!((share - 0.4).abs() < 0.03, "{bursts_per_s}: {share}");
                let mean = now / 10_000;
                assert!(
                    mean.abs_diff(SAMPLE_PERIOD) < SAMPLE_PERIOD / 50,
                    "{mean:?}"
                );
            }
        }
    }
}
