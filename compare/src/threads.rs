//! Threads on cores of their own, what they cost, and the spans that they measure.

use std::fs;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

use rustix::time::{ClockId, clock_gettime};
use thalweg::wait::cores;
use thalweg_measure::clock::Clock;

/// Which core each of two threads has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seats {
    sender: usize,
    receiver: usize,
}

impl Seats {
    /// Takes two different cores.
    ///
    /// # Errors
    /// There is but one.
    pub(crate) fn apart() -> Result<Self, String> {
        match *cores::usable().cpus() {
            [sender, receiver, ..] => Ok(Self { sender, receiver }),
            ref cpus => Err(format!("needs 2 cores to pin to, has {}", cpus.len())),
        }
    }

    /// Takes the same core for both.
    ///
    /// # Errors
    /// The system does not say which cores there are.
    pub(crate) fn together() -> Result<Self, String> {
        let usable = cores::usable();
        let core = *usable.cpus().first().ok_or("no core is known")?;
        let (sender, receiver) = (core, core);
        Ok(Self { sender, receiver })
    }

    /// Runs both, from a common start, the sender on the calling thread.
    ///
    /// # Errors
    /// A core refuses.
    pub(crate) fn run<S, R: Send>(
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
pub(crate) fn crew<T: Send, R: Send, A: Send, B: Send>(
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

/// Returns the calling thread's CPU time.
pub(crate) fn thread_cpu_ns() -> u64 {
    spent_ns(ClockId::ThreadCPUTime)
}

/// Returns this process's CPU time.
pub(crate) fn process_cpu_ns() -> u64 {
    spent_ns(ClockId::ProcessCPUTime)
}

/// Returns CPU time in ns and context switches of a thread of this process.
///
/// # Errors
/// The system does not count them.
pub(crate) fn account(thread: i32) -> Result<[f64; 2], String> {
    let read = |file: &str| {
        let path = format!("/proc/self/task/{thread}/{file}");
        fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
    };
    parse_account(&read("schedstat")?, &read("status")?)
}

fn parse_account(schedstat: &str, status: &str) -> Result<[f64; 2], String> {
    let cpu_ns = schedstat.split_whitespace().next().map(str::parse);
    let lines = status.lines().filter_map(|line| line.split_once(':'));
    let switches = lines.filter(|(key, _)| key.ends_with("voluntary_ctxt_switches"));
    let switches = switches.filter_map(|(_, value)| value.trim().parse::<f64>().ok());
    let cpu_ns = cpu_ns.and_then(Result::ok).ok_or("schedstat has no time")?;
    Ok([cpu_ns, switches.sum()])
}

/// Collects spans in memory that was touched before, so that recording one is one store.
#[derive(Debug)]
pub(crate) struct Samples {
    ticks: Vec<u32>,
}

impl Samples {
    /// Makes room for `max` spans; later ones are not recorded.
    pub(crate) fn with_room(max: usize) -> Self {
        let mut ticks = vec![1; max];
        ticks.clear();
        Self { ticks }
    }

    #[inline]
    pub(crate) fn take(&mut self, ticks: u64) {
        if !self.is_full() {
            self.ticks.push(u32::try_from(ticks).unwrap_or(u32::MAX));
        }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.ticks.len() == self.ticks.capacity()
    }

    /// Puts them together.
    pub(crate) fn merged(all: impl IntoIterator<Item = Self>) -> Self {
        let ticks = all.into_iter().flat_map(|samples| samples.ticks).collect();
        Self { ticks }
    }

    /// Returns the spans at these fractions, ns; infinite where there are none.
    pub(crate) fn quantiles_ns<const N: usize>(mut self, fractions: [f64; N]) -> [f64; N] {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_run_where_they_should_and_a_core_that_is_not_there_stops_both() {
        let seats = Seats::apart().unwrap_or_else(|why| {
            println!("skipped, both on one core: {why}");
            Seats::together().unwrap()
        });
        let ran = std::thread::spawn(move || seats.run(cores::current, cores::current));
        let expected = (Some(seats.sender), Some(seats.receiver));
        assert_eq!(ran.join().unwrap(), Ok(expected));
        let receiver = 9_999;
        let seats = Seats { receiver, ..seats };
        let ran = std::thread::spawn(move || seats.run(|| (), || ()));
        assert!(ran.join().unwrap().is_err());
    }

    #[test]
    fn every_thread_of_a_crew_runs_once() {
        let all = crew(vec![1, 2], vec![3], |at, n| (at, n), |at, n| (at, n));
        assert_eq!(all, (vec![(0, 1), (1, 2)], vec![(0, 3)]));
    }

    #[test]
    fn the_systems_account_is_read() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let account = parse_account("1554768 20 1\n", status);
        assert_eq!(account, Ok([1_554_768.0, 15.0]));
        assert!(parse_account("", status).is_err());
    }

    #[test]
    fn quantiles_are_of_what_was_recorded() {
        let clock = Clock::global();
        let mut samples = Samples::with_room(101);
        for at in (1..=101).rev() {
            samples.take(clock.ticks_from_ns(at * 1_000_000));
        }
        assert!(samples.is_full());
        samples.take(0);
        let found = samples.quantiles_ns([0.0, 0.5, 1.0]);
        for (found, expected) in found.into_iter().zip([1e6, 51e6, 101e6]) {
            assert!((found - expected).abs() < 10.0, "{found} {expected}");
        }
        assert_eq!(Samples::with_room(1).quantiles_ns([0.5]), [f64::INFINITY]);
    }
}
