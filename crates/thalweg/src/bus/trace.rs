//! The last decisions, written by one thread and read by any, without locks.
//!
//! *State*: a ring of entries of four words, and a count of those written.
//!
//! *Rules*: (1) the writer stores the words of entry `n` in slot `n % slots`, then `n + 1` in the
//! count; (2) a reader loads the count, then entries, then the count again, and keeps entry `n`
//! only if the second count is below `n + slots`.
//!
//! *Why it works*: the first count makes entry `n` visible. If a word that was read was of entry
//! `n + slots` (or a later one) instead, its Release store comes behind the store of count
//! `n + slots`, and its Acquire load before the second load of the count, which so is at least
//! `n + slots`: the entry is not kept.

use crate::ring::sync::{Arc, AtomicU64, Mutex, Ordering, lock, order};

/// One decision: what changed, from what to what, and the number that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// When, in ns on the clock of the readings.
    pub at_ns: u64,
    /// What changed.
    pub event: Event,
    /// Which inbox it is about, by its [index](super::InboxId::index); 0 for the bus itself.
    pub inbox: u32,
    /// The value before: a level, a verdict, a size, or 0 and 1 for off and on.
    pub from: u32,
    /// The value after.
    pub to: u32,
    /// The number that decided: what waited, a rate, a gap.
    pub number: u64,
}

macro_rules! events {
    ($($(#[$doc:meta])* $event:ident = $number:literal $name:literal,)+) => {
        /// What a decision changed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Event {$(
            $(#[$doc])*
            $event = $number,
        )+}

        impl Event {
            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$event => $name,)+
                }
            }

            fn of(number: u64) -> Option<Self> {
                match number {
                    $($number => Some(Self::$event),)+
                    _ => None,
                }
            }
        }
    };
}

events! {
    /// The level of an inbox.
    Level = 1 "level",
    /// The verdict over an inbox.
    Verdict = 2 "verdict",
    /// The batch size of a consumer.
    Batch = 3 "batch",
    /// Whether producers keep a gap.
    Slow = 4 "slow-producers",
    /// Whether a consumer spins before it parks.
    Spin = 5 "spin-before-park",
    /// Whether batches go by occupancy.
    Batching = 6 "batch-by-occupancy",
    /// The state of the bus: started, paused, and so on.
    State = 7 "state",
}

const WORDS: usize = 4;

type Entry = [AtomicU64; WORDS];

#[derive(Debug)]
struct Ring {
    slots: Box<[Entry]>,
    count: AtomicU64,
}

/// The writing end: one thread at a time has it.
#[derive(Debug)]
pub struct Tracer {
    ring: Arc<Ring>,
    count: u64,
}

/// A writing end that several threads share. Decisions are rare, and a lock is held for five
/// stores.
#[derive(Debug)]
pub(super) struct Recorder {
    tracer: Mutex<Tracer>,
    trace: Trace,
}

impl Recorder {
    pub(super) fn new(decisions: usize) -> Self {
        let tracer = Tracer::new(decisions);
        Self {
            trace: tracer.trace(),
            tracer: Mutex::new(tracer),
        }
    }

    #[cold]
    pub(super) fn note(&self, decision: &Decision) {
        lock(&self.tracer).note(decision);
    }

    pub(super) fn trace(&self) -> &Trace {
        &self.trace
    }
}

/// The reading end.
#[derive(Debug, Clone)]
pub struct Trace {
    ring: Arc<Ring>,
}

impl Tracer {
    /// Keeps the last `decisions`, at least 1, at 32 bytes each.
    pub fn new(decisions: usize) -> Self {
        // One more for the entry that is being written.
        let slots = decisions.max(1).saturating_add(1);
        let ring = Ring {
            slots: (0..slots).map(|_| Entry::default()).collect(),
            count: AtomicU64::new(0),
        };
        Self {
            ring: Arc::new(ring),
            count: 0,
        }
    }

    /// A reading end.
    pub fn trace(&self) -> Trace {
        Trace {
            ring: Arc::clone(&self.ring),
        }
    }

    /// Keeps a decision: five stores, no read-modify-write, no allocation.
    pub fn note(&mut self, decision: &Decision) {
        let slot = slot(&self.ring, self.count);
        for (word, value) in slot.iter().zip(encoded(decision)) {
            // ORDERING: Release, pairs with the Acquire of words in last(); a reader that sees a
            // new word sees the count that was stored before.
            word.store(value, order::publish());
        }
        self.count += 1;
        // ORDERING: Release, pairs with the Acquire of the count in last(); publishes the entry.
        self.ring.count.store(self.count, order::publish());
    }
}

impl Trace {
    /// How many decisions there were in all.
    pub fn count(&self) -> u64 {
        // ORDERING: Acquire, pairs with the Release of the count in note().
        self.ring.count.load(order::observe())
    }

    /// The last decisions, the oldest first. One that is overwritten meanwhile is left out.
    pub fn last(&self) -> Vec<Decision> {
        let count = self.count();
        let slots = self.ring.slots.len() as u64;
        let first = count.saturating_sub(slots - 1);
        let mut decisions = Vec::new();
        for number in first..count {
            // ORDERING: Acquire, pairs with the Release of words in note(); keeps these loads
            // before that of the count below, which then is new if a word was.
            let words = slot(&self.ring, number)
                .each_ref()
                .map(|word| word.load(order::observe()));
            // ORDERING: Relaxed; what it must see came before a word that was seen.
            let is_whole = self.ring.count.load(Ordering::Relaxed) < number + slots;
            if is_whole {
                decisions.extend(decoded(words));
            }
        }
        decisions
    }
}

fn slot(ring: &Ring, number: u64) -> &Entry {
    &ring.slots[(number % ring.slots.len() as u64) as usize]
}

fn encoded(decision: &Decision) -> [u64; WORDS] {
    [
        decision.at_ns,
        decision.event as u64 | u64::from(decision.inbox) << 16,
        u64::from(decision.from) << 32 | u64::from(decision.to),
        decision.number,
    ]
}

fn decoded([at_ns, what, change, number]: [u64; WORDS]) -> Option<Decision> {
    Some(Decision {
        at_ns,
        event: Event::of(what & 0xFFFF)?,
        inbox: (what >> 16) as u32,
        from: (change >> 32) as u32,
        to: change as u32,
        number,
    })
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ring::sync::fault;
    use loom::thread;

    fn note(tracer: &mut Tracer, number: u64) {
        tracer.note(&Decision {
            at_ns: number,
            event: Event::Level,
            inbox: 0,
            from: 0,
            to: 0,
            number,
        });
    }

    /// A reader beside a writer that goes round: no entry is of two decisions, and they ascend.
    fn entries_are_whole() {
        let mut tracer = Tracer::new(1);
        let trace = tracer.trace();
        let writer = thread::spawn(move || {
            for number in 1..=3 {
                note(&mut tracer, number);
            }
        });
        for decision in trace.last() {
            assert_eq!(decision.at_ns, decision.number);
            assert_ne!(decision.number, 0);
        }
        writer.join().unwrap();
        assert_eq!(trace.last().len(), 1);
    }

    #[test]
    fn no_entry_is_torn() {
        loom::model(entries_are_whole);
    }

    #[test]
    fn weak_orderings_tear_entries() {
        assert!(fault::caught("publish", entries_are_whole));
        assert!(fault::caught("observe", entries_are_whole));
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decision(number: u64) -> Decision {
        Decision {
            at_ns: number,
            event: Event::Batch,
            inbox: u32::MAX,
            from: 1,
            to: u32::MAX,
            number: !number,
        }
    }

    #[test]
    fn the_last_decisions_are_kept() {
        let mut tracer = Tracer::new(3);
        let trace = tracer.trace();
        assert_eq!(trace.last(), []);
        for number in 0..5 {
            tracer.note(&decision(number));
        }
        assert_eq!(trace.last(), [2, 3, 4].map(decision));
        assert_eq!(trace.count(), 5);
        let mut other = Tracer::new(0);
        other.note(&decision(3));
        assert_eq!(other.trace().last(), [decision(3)]);
    }

    #[test]
    fn a_reader_beside_a_writer_sees_whole_decisions() {
        let mut tracer = Tracer::new(8);
        let trace = tracer.trace();
        let writer = std::thread::spawn(move || {
            for number in 1..=50_000 {
                tracer.note(&decision(number));
            }
        });
        let mut seen = 0_u64;
        while seen < 50_000 {
            for was in trace.last() {
                assert_eq!(was, decision(was.at_ns));
                assert!(was.at_ns >= seen.saturating_sub(8));
                seen = seen.max(was.at_ns);
            }
            std::thread::yield_now();
        }
        writer.join().unwrap();
    }

    proptest! {
        #[test]
        fn a_decision_comes_back_as_it_was(
            at_ns: u64, event in 1_u64..=7, inbox: u32, from: u32, to: u32, number: u64,
        ) {
            let event = Event::of(event).unwrap();
            let decision = Decision { at_ns, event, inbox, from, to, number };
            prop_assert_eq!(decoded(encoded(&decision)), Some(decision));
            prop_assert!(!event.name().is_empty());
        }
    }
}
