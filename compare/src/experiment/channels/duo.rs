//! A sender and a receiver, each on a core of its own.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg::wait::cores;

/// Which core each of the two has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::experiment) struct Seats {
    pub(in crate::experiment) sender: usize,
    pub(super) receiver: usize,
}

impl Seats {
    /// Two different cores.
    ///
    /// # Errors
    /// There is but one.
    pub(in crate::experiment) fn apart() -> Result<Self, String> {
        match *cores::usable().cpus() {
            [sender, receiver, ..] => Ok(Self { sender, receiver }),
            ref cpus => Err(format!("needs 2 cores to pin to, has {}", cpus.len())),
        }
    }

    /// The same core for both.
    ///
    /// # Errors
    /// The system does not tell the cores.
    pub(in crate::experiment) fn together() -> Result<Self, String> {
        let usable = cores::usable();
        let core = *usable.cpus().first().ok_or("the system tells no cores")?;
        Ok(Self {
            sender: core,
            receiver: core,
        })
    }

    /// Runs both, from a common start, the sender on the calling thread.
    ///
    /// # Errors
    /// A core refuses.
    pub(in crate::experiment) fn run<S, R: Send>(
        self,
        sender: impl FnOnce() -> S,
        receiver: impl FnOnce() -> R + Send,
    ) -> Result<(S, R), String> {
        let (mut sent, mut received) = (None, None);
        let (mut sender, mut receiver) = (Some(sender), Some(receiver));
        self.run_both(
            &mut || sent = sender.take().map(|sender| sender()),
            &mut || received = receiver.take().map(|receiver| receiver()),
        )?;
        sent.zip(received).ok_or_else(|| OTHER_FAILED.to_owned())
    }

    /// As [`run`](Self::run), and compiled once, not for each subject.
    fn run_both(
        self,
        sender: &mut dyn FnMut(),
        receiver: &mut (dyn FnMut() + Send),
    ) -> Result<(), String> {
        let start = Barrier::new(2);
        let failed = AtomicBool::new(false);
        let sit = |core| {
            let seated = cores::pin_current_thread(&[core]).map_err(|error| error.to_string());
            if seated.is_err() {
                // ORDERING: Relaxed; the barrier orders it before the load.
                failed.store(true, Ordering::Relaxed);
            }
            start.wait();
            // ORDERING: Relaxed; after the barrier, as the store is before it.
            match failed.load(Ordering::Relaxed) {
                true => Err(seated.err().unwrap_or_else(|| OTHER_FAILED.to_owned())),
                false => Ok(()),
            }
        };
        std::thread::scope(|scope| {
            // Spawned before the calling thread is pinned, since it inherits that.
            let receiver = scope.spawn(|| sit(self.receiver).map(|()| receiver()));
            let sent = sit(self.sender).map(|()| sender());
            match receiver.join() {
                Ok(received) => sent.and(received),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

const OTHER_FAILED: &str = "the other thread could not be pinned";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_run_where_they_should() {
        let seats = Seats::apart().unwrap_or_else(|why| {
            println!("skipped, both on one core: {why}");
            Seats::together().unwrap()
        });
        let ran = std::thread::spawn(move || seats.run(cores::current, cores::current));
        let expected = (Some(seats.sender), Some(seats.receiver));
        assert_eq!(ran.join().unwrap(), Ok(expected));
    }

    #[test]
    fn a_core_that_is_not_there_stops_both() {
        let seats = Seats {
            sender: Seats::together().unwrap().sender,
            receiver: 9_999,
        };
        let ran = std::thread::spawn(move || seats.run(|| (), || ()))
            .join()
            .unwrap();
        assert!(ran.is_err());
    }
}
