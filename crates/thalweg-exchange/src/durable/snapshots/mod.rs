//! Snapshots of all that is durable, made beside the exchange and without stopping it.
//!
//! A thread reads the newest whole snapshot, copies the sessions and reports of the live exchange
//! ([`table_copy`](super::table_copy)), executes the journal after the snapshot up to a command of
//! which the live exchange gave its digest, compares, and writes the next. So each snapshot is read
//! before the one after the next is relied on, by the code that would read it after a crash. When
//! the new one is durable, all but the newest few go, and the journal before the oldest of these.

mod disk;
mod file;
mod file_error;
mod saved;
mod writer;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use thalweg_journal::Storage;

pub(super) use self::disk::{
    Part, Pieces, header_of, image_of, io_error, list as commands_in_order, newest, read_file,
    remove, snapshot_commands, whole_header,
};
use self::file::Moment;
pub use self::file::SnapshotHeader;
pub use self::file_error::{SNAPSHOT_VERSION, Skipped, SnapshotFileError};
pub(super) use self::writer::Writer;
use super::error::SnapshotWriteError;
use super::options::{SessionLimits, SnapshotOptions};
use super::stats::SnapshotStats;
use super::tables::{Reports, Tables};
use crate::digest::Digest;
use crate::engine::state::State;

/// Returns all bytes of the snapshot of this state.
pub(super) fn all_of(
    state: &State,
    tables: &Tables,
    journal: u64,
    digest: Digest,
    sessions: SessionLimits,
) -> Vec<u8> {
    let moment = Moment {
        journal,
        digest,
        sessions,
    };
    file::encode(state, tables, moment).0
}

/// The maker of snapshots: a thread, or the owner where it is asked.
#[derive(Debug)]
pub(super) struct Snapshots<S: Storage> {
    pub(super) writer: Writer<S>,
    stats: Arc<Mutex<SnapshotStats>>,
    orders: Option<SyncSender<Reports>>,
    thread: Option<JoinHandle<()>>,
    options: SnapshotOptions,
    /// When the next one is due, by bytes and by time.
    due_bytes: u64,
    due_at: Option<Instant>,
    /// Commands of the last one that was asked for.
    asked: u64,
}

impl<S: Storage> Snapshots<S> {
    /// Starts after a snapshot of this number of commands.
    pub(super) fn new(writer: Writer<S>, options: SnapshotOptions, commands: u64) -> Self {
        let stats = Arc::new(Mutex::new(SnapshotStats::default()));
        let (orders, inbox) = sync_channel(1);
        let (orders, thread) = match options.in_background {
            false => (None, None),
            true => {
                let (writer, stats) = (writer.clone(), Arc::clone(&stats));
                let thread = thread::Builder::new().name("snapshot".into());
                let thread = thread.spawn(move || run(&writer, &inbox, &stats));
                // Without a thread it works as well, only slower for the owner.
                match thread {
                    Ok(thread) => (Some(orders), Some(thread)),
                    Err(_) => (None, None),
                }
            }
        };
        Self {
            writer,
            stats,
            orders,
            thread,
            options,
            due_bytes: options.every_bytes,
            due_at: Instant::now().checked_add(options.every),
            asked: commands,
        }
    }

    /// Counts bytes of commands that came after the last snapshot before the exchange was opened.
    pub(super) fn count(&mut self, bytes: u64) {
        self.due_bytes = self.due_bytes.saturating_sub(bytes);
    }

    /// Returns whether a snapshot is due when `bytes` bytes of commands came since the exchange was
    /// opened.
    #[inline]
    pub(super) fn is_due_by(&self, bytes: u64) -> bool {
        bytes >= self.due_bytes
    }

    pub(super) fn is_due_now(&self) -> bool {
        self.due_at.is_some_and(|due| Instant::now() >= due)
    }

    /// Has one made of what is published by now, which is this number of commands, or by some later
    /// moment.
    pub(super) fn ask(&mut self, commands: u64, tables: &Reports, bytes: u64) {
        self.due_bytes = bytes.saturating_add(self.options.every_bytes);
        self.due_at = Instant::now().checked_add(self.options.every);
        // One that failed is made when it is asked for again.
        if commands <= self.asked && lock(&self.stats).failed.is_none() {
            return;
        }
        match &self.orders {
            // One that waits, while another is being made, is enough.
            Some(orders) => {
                if orders.try_send(tables.clone()).is_ok() {
                    self.asked = commands;
                }
            }
            None => {
                self.asked = commands;
                make_one(&self.writer, tables, &self.stats);
            }
        }
    }

    pub(super) fn stats(&self) -> SnapshotStats {
        SnapshotStats {
            archive: lock(&self.writer.archive).clone(),
            ..lock(&self.stats).clone()
        }
    }

    /// Ends the thread; what it is at is left.
    pub(super) fn end(&mut self) {
        // ORDERING: Relaxed, pairs with the load in make(); a wish.
        self.writer.is_closing.store(true, Ordering::Relaxed);
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // Its panics are caught.
            let _ = thread.join();
        }
    }
}

impl<S: Storage> Drop for Snapshots<S> {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run<S: Storage>(writer: &Writer<S>, orders: &Receiver<Reports>, stats: &Mutex<SnapshotStats>) {
    for tables in orders {
        lock(stats).is_running = true;
        make_one(writer, &tables, stats);
        lock(stats).is_running = false;
    }
}

fn make_one<S: Storage>(writer: &Writer<S>, tables: &Reports, stats: &Mutex<SnapshotStats>) {
    // The exchange goes on without it, and says so.
    let made = catch_unwind(AssertUnwindSafe(|| writer.make(tables)))
        .unwrap_or_else(|panic| Err(SnapshotWriteError::panicked(&*panic)));
    let mut stats = lock(stats);
    match made {
        Ok(Some(made)) => {
            stats.made += 1;
            stats.last = Some(made);
            stats.failed = None;
        }
        Ok(None) => stats.failed = None,
        Err(failed) => {
            stats.failures += 1;
            stats.failed = Some(failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_journal::SimDisk;

    use super::*;
    use crate::command::Command;
    use crate::durable::exchange::Exchange;
    use crate::durable::faults::{Faults, Seeded};
    use crate::durable::opening::Opening;
    use crate::durable::options::Options;
    use crate::durable::record::Origin;

    #[test]
    fn a_panic_of_the_snapshot_thread_is_reported_and_the_exchange_goes_on() {
        let seeded = Some(Seeded::PanicInSnapshot);
        let open = Opening {
            progress: &mut |_, _| (),
            faults: Faults { seeded },
        };
        let opened = Exchange::open_with(SimDisk::new(), Options::default(), |_| (), open);
        let (mut exchange, _) = opened.expect("it opens");
        for failures in 1..=2 {
            let taken = exchange.submit(Origin::Engine, &Command::Nop, 0);
            taken.expect("it goes on");
            exchange.drain().expect("it goes on");
            exchange.snapshot_now();
            while exchange.snapshots().failures < failures {
                thread::yield_now();
            }
            let failed = exchange.snapshots().failed.expect("it failed");
            assert_eq!(
                failed.to_string(),
                "no snapshot was written: making it has panicked: a seeded fault"
            );
        }
        while exchange.snapshots().is_running {
            thread::yield_now();
        }
        exchange.close().expect("it ends");
    }
}
