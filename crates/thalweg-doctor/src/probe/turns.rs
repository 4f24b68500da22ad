//! Infers which thread wakes which from the switches of threads, where the kernel does not report
//! wake-ups.

use super::record::{Event, What};
use std::collections::{HashMap, HashSet, VecDeque};

/// The maximum time until a woken thread gets a core, if one is free: 5 to 50 µs (Zen 4, KVM).
const WAKE_NS: u64 = 50_000;

/// The most recent switches.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The thread on each core.
    running: HashMap<u32, i32>,
    /// The threads that left a core, with the times.
    left: VecDeque<(u64, i32)>,
    /// The threads that blocked when they left a core.
    blocked: HashSet<i32>,
}

impl Turns {
    /// Takes an event of the program, in the order of time. Returns the thread that must have woken
    /// the one that now gets a core, because no other thread of the program ran within the time
    /// that a wake-up takes.
    pub(crate) fn see(&mut self, event: &Event) -> Option<i32> {
        let Event { tid, core, .. } = *event;
        match event.what {
            What::Out { preempted } => {
                if self.running.get(&core) == Some(&tid) {
                    self.running.remove(&core);
                }
                self.left.push_back((event.time_ns, tid));
                if !preempted {
                    self.blocked.insert(tid);
                }
                None
            }
            What::In => {
                let since_ns = event.time_ns.saturating_sub(WAKE_NS);
                while self
                    .left
                    .pop_front_if(|(at_ns, _)| *at_ns < since_ns)
                    .is_some()
                {}
                let waker = self.waker(tid);
                self.running.insert(core, tid);
                self.blocked.remove(&tid).then_some(waker).flatten()
            }
            What::Exited => {
                self.blocked.remove(&tid);
                self.running.retain(|_, running| *running != tid);
                None
            }
            _ => None,
        }
    }

    /// Returns the other thread that runs or has just run, if there is exactly one.
    fn waker(&self, woken: i32) -> Option<i32> {
        let left = self.left.iter().map(|(_, tid)| *tid);
        let mut others = left
            .chain(self.running.values().copied())
            .filter(|&tid| tid != woken);
        let first = others.next()?;
        others.all(|tid| tid == first).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: What = What::Out { preempted: false };

    fn wakers(events: Vec<(u64, i32, u32, What)>) -> Vec<(i32, i32)> {
        let mut turns = Turns::default();
        let mut seen = Vec::new();
        for (us, tid, core, what) in events {
            let event = Event {
                time_ns: us * 1_000,
                pid: 1,
                tid,
                core,
                what,
            };
            seen.extend(turns.see(&event).map(|waker| (waker, tid)));
        }
        seen
    }

    /// The holder of the lock waits for a disk meanwhile, and then wakes the next thread.
    #[test]
    fn a_thread_is_woken_by_the_one_that_just_ran() {
        let mut events = vec![(0, 1, 0, What::In), (5, 1, 0, BLOCKS)];
        for turn in 0..3_u64 {
            let (holder, next) = (1 + turn as i32, 2 + turn as i32);
            let at = 1_000 * (turn + 1);
            // The disk wakes it: no thread of the program ran.
            events.push((at, holder, 0, What::In));
            events.push((at + 4, holder, 0, BLOCKS));
            events.push((at + 20, next, 1, What::In));
            events.push((at + 24, next, 1, BLOCKS));
        }
        // It is known only from the second time on that they ever blocked.
        assert_eq!(wakers(events.clone()), []);
        events.extend(
            events
                .clone()
                .into_iter()
                .map(|(us, tid, core, what)| (us + 100_000, tid, core, what)),
        );
        assert_eq!(wakers(events), [(1, 2), (2, 3), (3, 4)]);
    }

    #[test]
    fn of_two_that_ran_none_is_named() {
        let ready = [(0, 3, 0, What::In), (1, 3, 0, BLOCKS)];
        let run = |second_us| {
            let more = [
                (1_000, 1, 0, What::In),
                (second_us, 2, 1, What::In),
                (second_us + 1, 2, 1, BLOCKS),
                (3_000, 3, 1, What::In),
            ];
            wakers(ready.clone().into_iter().chain(more).collect())
        };
        assert_eq!(run(2_990), [], "either of them");
        assert_eq!(run(2_000), [(1, 3)]);
    }

    #[test]
    fn one_that_was_preempted_is_not_woken() {
        let events = vec![
            (0, 1, 0, What::In),
            (0, 2, 1, What::In),
            (10, 2, 1, What::Out { preempted: true }),
            (900, 2, 1, What::In),
        ];
        assert_eq!(wakers(events), []);
    }
}
