//! The thread that writes figures down, and what it watches.

use std::any::Any;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{EXPORTS_MAX, Json, VERSION};

/// Between two looks, on average.
const LOOK: Duration = Duration::from_millis(10);
/// The number of looks per snapshot.
const LOOKS: u32 = 10;

/// The references that a look held, to be dropped when nothing is locked any more.
pub(crate) type Kept = Option<Arc<dyn Any + Send + Sync>>;

/// Something with figures.
pub(crate) trait Source: Send {
    /// Pipeline or bus.
    fn kind(&self) -> &'static str;

    /// Looks at what changes from moment to moment.
    fn look(&mut self) -> Kept;

    /// Writes the figures down.
    fn write(&mut self, json: &mut Json);
}

/// When to look. At a fixed rate, what comes at a multiple of it would always be met at the same
/// place; so the time between two looks is anything from a half of [`LOOK`] to one and a half.
#[derive(Debug)]
struct Pace(u64);

impl Pace {
    fn new() -> Self {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        Self(since.as_nanos() as u64 ^ u64::from(std::process::id()) << 32)
    }

    fn wait(&mut self) -> Duration {
        // SplitMix64: Steele, Lea and Flood 2014, Fast Splittable Pseudorandom Number Generators.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = (mixed >> 32) as f64 / f64::from(u32::MAX);
        LOOK.mul_f64(0.5 + part)
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
/// The last entry has gone.
static EMPTY: Condvar = Condvar::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A source in the hands of the reporter, until this is dropped.
pub(crate) struct Export(Arc<Entry>);

impl std::fmt::Debug for Export {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Export").field(&self.0.number).finish()
    }
}

impl Export {
    /// None if the process has exported too many.
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
            // Without a thread there is the snapshot of the end.
            registry.has_thread = thread.spawn(report).is_ok();
        }
        Some(Self(entry))
    }

    /// Looks now, besides the times at which the reporter does.
    pub(crate) fn look(&self) {
        self.0.look();
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
    fn look(&self) {
        let kept = lock(&self.watched).as_mut().map(|it| it.source.look());
        drop(kept);
    }

    fn snapshot(&self) {
        if let Some(watched) = &mut *lock(&self.watched) {
            self.write(watched, false);
        }
    }

    /// The last snapshot; nothing is written after it.
    fn end(&self) {
        let mut place = lock(&self.watched);
        let Some(mut watched) = place.take() else {
            return;
        };
        let kept = watched.source.look();
        self.write(&mut watched, true);
        drop(place);
        drop(kept);
    }

    fn write(&self, watched: &mut Watched, has_ended: bool) {
        watched.snapshots += 1;
        let process = std::process::id();
        let mut json = Json::new();
        json.put_text("format", "thalweg-export");
        json.put("version", VERSION);
        json.put_text("kind", watched.source.kind());
        json.put("process", process);
        json.put("number", self.number);
        json.put("snapshot", watched.snapshots);
        json.put("has_ended", has_ended);
        watched.source.write(&mut json);
        // A snapshot that cannot be written is left out: see the module.
        let _ = self.replace(&format!("{process}-{}", self.number), &json.end());
    }

    /// Puts a file in the place of the old one.
    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.directory.join(format!(".{name}.new"));
        let written = write_new(&new, text).and_then(|()| {
            let place = self.directory.join(name);
            fs::rename(&new, place)
        });
        if written.is_err() {
            // It may not be there at all.
            let _ = fs::remove_file(&new);
        }
        written
    }
}

/// Writes a file that does not exist yet: a link that another process put in its place is not
/// followed.
fn write_new(path: &PathBuf, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    options.open(path)?.write_all(text.as_bytes())
}

/// Looks and writes until nothing is left.
fn report() {
    let mut looks = 0_u32;
    let mut due = Instant::now();
    let mut pace = Pace::new();
    loop {
        due = (due + pace.wait()).max(Instant::now());
        let Some(entries) = next(due) else { return };
        looks = (looks + 1) % LOOKS;
        for entry in &entries {
            // The reference that it kept may be the last of a bus, with messages whose drop panics.
            let looked = catch_unwind(AssertUnwindSafe(|| entry.look()));
            if let Err(payload) = looked {
                crate::wait::discard(payload);
            }
            if looks == 0 {
                entry.snapshot();
            }
        }
    }
}

/// Waits until `due` and gives all entries; nothing, and the thread ends, when there are none.
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
    use super::*;

    /// Each burst fills the queue for 0.4 of the time to the next one.
    #[test]
    fn looks_meet_bursts_at_any_place() {
        for bursts_per_s in [100.0, 200.0, 300.0, 1_000.0, 37.0] {
            for seed in 0..4 {
                let (mut pace, mut now, mut full) = (Pace(seed), Duration::ZERO, 0);
                for _ in 0..10_000 {
                    now += pace.wait();
                    full += u32::from((now.as_secs_f64() * bursts_per_s).fract() < 0.4);
                }
                let share = f64::from(full) / 10_000.0;
                assert!((share - 0.4).abs() < 0.03, "{bursts_per_s}: {share}");
                let mean = now / 10_000;
                assert!(mean.abs_diff(LOOK) < LOOK / 50, "{mean:?}");
            }
        }
    }
}
