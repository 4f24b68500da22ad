//! Threads on cores of their own, their processor time, and the spans that they measure.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use rustix::time::{ClockId, clock_gettime};
use thalweg::wait::cores;
use thalweg_measure::clock::Clock;

/// The cores of two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seats {
    /// The core of the calling thread.
    pub sender: usize,
    /// The core of the other thread.
    pub receiver: usize,
}

impl Seats {
    /// Takes two different cores.
    ///
    /// # Errors
    /// There is only one.
    pub fn apart() -> Result<Self, String> {
        match *cores::usable().cpus() {
            [sender, receiver, ..] => Ok(Self { sender, receiver }),
            ref cpus => Err(format!("needs 2 cores to pin to, has {}", cpus.len())),
        }
    }

    /// Takes the same core for both.
    ///
    /// # Errors
    /// The system does not report its cores.
    pub fn together() -> Result<Self, String> {
        let usable = cores::usable();
        let core = *usable.cpus().first().ok_or("no core is known")?;
        let (sender, receiver) = (core, core);
        Ok(Self { sender, receiver })
    }

    /// Runs both functions from a common start, the sender on the calling thread.
    ///
    /// # Errors
    /// A thread cannot be pinned.
    pub fn run<S, R: Send>(
        self,
        sender: impl FnOnce() -> S,
        receiver: impl FnOnce() -> R + Send,
    ) -> Result<(S, R), String> {
        let (start, failed) = (Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            // Spawned before the calling thread is pinned, since it inherits that.
            let receiver = scope.spawn(|| {
                sit(self.receiver, &start, &failed)?;
                Ok(receiver())
            });
            let sent = sit(self.sender, &start, &failed).map(|()| sender());
            let received: Result<R, String> = join(receiver);
            Ok((sent?, received?))
        })
    }
}

/// Pins the calling thread, and waits for the other one. Both fail if one cannot be pinned.
fn sit(core: usize, start: &Barrier, failed: &AtomicBool) -> Result<(), String> {
    let seated = cores::pin_current_thread(&[core]).map_err(|error| error.to_string());
    if seated.is_err() {
        // ORDERING: Relaxed; the barrier orders it before the load.
        failed.store(true, Ordering::Relaxed);
    }
    start.wait();
    // ORDERING: Relaxed; after the barrier, as the store is before it.
    match failed.load(Ordering::Relaxed) {
        true => seated.and(Err("the other thread could not be pinned".to_owned())),
        false => Ok(()),
    }
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs a thread for each sender and receiver, and returns what they returned.
pub fn crew<T: Send, R: Send, A: Send, B: Send>(
    senders: Vec<T>,
    receivers: Vec<R>,
    send: impl Fn(usize, T) -> A + Sync,
    receive: impl Fn(usize, R) -> B + Sync,
) -> (Vec<A>, Vec<B>) {
    let (send, receive) = (&send, &receive);
    std::thread::scope(|scope| {
        let receivers = receivers.into_iter().enumerate();
        let receivers = receivers.map(|(at, rx)| scope.spawn(move || receive(at, rx)));
        let receivers: Vec<_> = receivers.collect();
        let senders = senders.into_iter().enumerate();
        let senders = senders.map(|(at, tx)| scope.spawn(move || send(at, tx)));
        let senders: Vec<_> = senders.collect();
        (
            senders.into_iter().map(join).collect(),
            receivers.into_iter().map(join).collect(),
        )
    })
}

fn spent_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the processor time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    spent_ns(ClockId::ThreadCPUTime)
}

/// Returns the processor time of this process.
pub(crate) fn process_cpu_ns() -> u64 {
    spent_ns(ClockId::ProcessCPUTime)
}

/// Spans are recorded in memory that was touched before, so that recording one is one store.
#[derive(Debug)]
pub struct Samples {
    ticks: Vec<u32>,
}

impl Samples {
    /// Makes room for `max` spans; later ones are not recorded.
    pub fn with_room(max: usize) -> Self {
        let mut ticks = vec![1; max];
        ticks.clear();
        Self { ticks }
    }

    /// Records a span, if there is room.
    #[inline]
    pub fn take(&mut self, ticks: u64) {
        if !self.is_full() {
            self.ticks.push(u32::try_from(ticks).unwrap_or(u32::MAX));
        }
    }

    /// Returns whether there is no room.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.ticks.len() == self.ticks.capacity()
    }

    /// Returns the quantiles at these fractions, ns; infinite without spans.
    pub fn quantiles_ns<const N: usize>(mut self, fractions: [f64; N]) -> [f64; N] {
        self.ticks.sort_unstable();
        let Some(last) = self.ticks.len().checked_sub(1) else {
            return [f64::INFINITY; N];
        };
        fractions.map(|fraction| {
            let at = (fraction * last as f64).round() as usize;
            Clock::global().ns(u64::from(self.ticks[at])) as f64
        })
    }
}
