//! As fast as it goes, one to one: one message at a time, or batches.

use std::hint::spin_loop;

use thalweg_measure::clock::Clock;

use super::duo::Seats;
use crate::channels::{BatchPair, Message, RecvBatch, SendBatch, TryPair, TryRecv, TrySend};
use crate::experiment::subjects::{BatchJob, Job, Subjects, TryJob};
use crate::runner::{Metric, Run, Subject};

/// Messages of a batch.
pub(super) const BATCH: usize = 64;
/// Messages between two looks at the clock.
const LOOK_EVERY: u64 = 256;

pub(super) const METRICS: &[Metric] = &[Metric::lower("time_per_message", "ns")];

/// How much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) capacity: usize,
    pub(super) span_ns: u64,
}

impl Load {
    /// The first messages, which are sent and not measured: every slot has been touched then.
    fn warm_up(&self) -> u64 {
        (self.capacity + self.capacity / 4) as u64 + LOOK_EVERY
    }
}

/// Checks that messages come whole and in their order.
#[derive(Debug, Default)]
pub(super) struct Checker {
    /// The number of the next one.
    pub(super) next: u64,
    pub(super) misplaced: u64,
    pub(super) over: bool,
}

impl Checker {
    #[inline]
    pub(super) fn take<M: Message>(&mut self, message: M) {
        if message == M::of(self.next) {
            self.next += 1;
        } else {
            self.odd(message);
        }
    }

    #[cold]
    fn odd<M: Message>(&mut self, message: M) {
        if message == M::of(M::LAST) {
            self.over = true;
        } else {
            self.misplaced += 1;
            self.next = message.value().wrapping_add(1);
        }
    }

    pub(super) fn lost(&self, sent: u64) -> u64 {
        sent.abs_diff(self.next) + self.misplaced
    }
}

/// Sends chunks of [`LOOK_EVERY`] messages by `send(first)` for the span.
#[inline]
fn send_for(load: Load, mut send: impl FnMut(u64)) -> u64 {
    let clock = Clock::global();
    let mut sent = 0;
    while sent < 2 * load.warm_up() {
        send(sent);
        sent += LOOK_EVERY;
    }
    let end = clock.ticks() + clock.ticks_from_ns(load.span_ns);
    while clock.ticks() < end {
        send(sent);
        sent += LOOK_EVERY;
    }
    sent
}

/// What the receiver saw: the checker, and ns per message after the warm-up.
#[inline]
fn receive(load: Load, mut receive: impl FnMut(&mut Checker)) -> (Checker, f64) {
    let clock = Clock::global();
    let mut checker = Checker::default();
    let warm_up = load.warm_up();
    while checker.next < warm_up && !checker.over {
        receive(&mut checker);
    }
    let (first, begin) = (checker.next, clock.ticks());
    while !checker.over {
        receive(&mut checker);
    }
    let took_ns = clock.ns(clock.ticks().saturating_sub(begin)) as f64;
    let each_ns = took_ns / checker.next.saturating_sub(first).max(1) as f64;
    (checker, each_ns)
}

fn figures(sent: u64, (checker, each_ns): (Checker, f64)) -> Run {
    Run::of(vec![each_ns]).with_lost(checker.lost(sent))
}

/// One message a call.
struct OneByOne;

impl Job for OneByOne {
    type Load = Load;
}

impl<M: Message> TryJob<M> for OneByOne {
    fn run<P: TryPair<M>>(load: &Load) -> Result<Run, String> {
        let seats = Seats::apart()?;
        let (mut tx, mut rx) = P::pair(load.capacity);
        let mut put = move |value| {
            while !tx.try_send(M::of(value)) {
                spin_loop();
            }
        };
        let sender = move || {
            let sent = send_for(*load, |first| {
                (first..first + LOOK_EVERY).for_each(&mut put);
            });
            put(M::LAST);
            // The channel must outlive the last message.
            (sent, put)
        };
        let receiver = || {
            receive(*load, |checker| match rx.try_recv() {
                Some(message) => checker.take(message),
                None => spin_loop(),
            })
        };
        let ((sent, _), seen) = seats.run(sender, receiver)?;
        Ok(figures(sent, seen))
    }
}

/// [`BATCH`] messages a call.
struct Batches;

impl Job for Batches {
    type Load = Load;
}

/// Sends `count` messages, in as many calls as it takes.
#[inline]
fn put_all<M: Message>(tx: &mut impl SendBatch<M>, count: usize, of: impl Fn(usize) -> u64) {
    let mut done = 0;
    while done < count {
        let sent = tx.send_batch(count - done, |at| M::of(of(done + at)));
        if sent == 0 {
            spin_loop();
        }
        done += sent;
    }
}

impl<M: Message> BatchJob<M> for Batches {
    fn run<P: BatchPair<M>>(load: &Load) -> Result<Run, String> {
        let seats = Seats::apart()?;
        let (mut tx, mut rx) = P::pair(load.capacity);
        let sender = move || {
            let sent = send_for(*load, |first| {
                for batch in 0..LOOK_EVERY / BATCH as u64 {
                    let first = first + batch * BATCH as u64;
                    put_all(&mut tx, BATCH, |at| first + at as u64);
                }
            });
            put_all(&mut tx, 1, |_| M::LAST);
            (sent, tx)
        };
        let receiver = || {
            receive(*load, |checker| {
                if rx.recv_batch(BATCH, |message| checker.take(message)) == 0 {
                    spin_loop();
                }
            })
        };
        let ((sent, _), seen) = seats.run(sender, receiver)?;
        Ok(figures(sent, seen))
    }
}

/// The subjects that send one at a time.
pub(super) fn one_by_one<M: Message>() -> Vec<Box<dyn Subject<Load>>> {
    Subjects::<OneByOne>::new().trying::<M>().all()
}

/// The subjects that send batches.
pub(super) fn batches<M: Message>() -> Vec<Box<dyn Subject<Load>>> {
    Subjects::<Batches>::new().with_batches::<M>().all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::Wide;

    #[test]
    fn the_checker_tells_what_is_lost_torn_or_out_of_place() {
        let lost = |values: &[u64], sent: u64| {
            let mut checker = Checker::default();
            for value in values {
                checker.take(Wide::of(*value));
            }
            checker.lost(sent)
        };
        assert_eq!(lost(&[0, 1, 2], 3), 0);
        assert_eq!(lost(&[0, 1], 3), 1);
        assert_eq!(lost(&[0, 2], 3), 1);
        assert!(lost(&[0, 2, 1], 3) >= 2);
        let mut checker = Checker::default();
        let mut torn = Wide::of(0).words();
        torn[3] ^= 1;
        checker.take(Wide::from_words(torn));
        assert_eq!(checker.lost(1), 1);
        checker.take(Wide::of(Wide::LAST));
        assert!(checker.over);
    }
}
