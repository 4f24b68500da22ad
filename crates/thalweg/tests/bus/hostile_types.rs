//! Messages whose own code panics, or calls back into the bus, wherever the bus runs it.

use crate::bus::watchdog::watched;
use crate::bus::{check_totals, sum};
use futures_executor::block_on;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use thalweg::bus::{Bus, Message, Publisher, TopicId, TopicInfo, TopicOverflow, Topics};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Clone,
    Drop,
    Key,
}

type Hook = dyn Fn(Moment, u64) + Send + Sync;

/// The hook that a test runs at each moment of a message of its own; none before it is set.
#[derive(Clone, Default)]
pub(crate) struct Hooks(Arc<Mutex<Option<Arc<Hook>>>>);

impl Hooks {
    pub(crate) fn set(&self, hook: impl Fn(Moment, u64) + Send + Sync + 'static) {
        *self.0.lock().unwrap() = Some(Arc::new(hook));
    }

    /// The hook may hold the bus, and messages in the bus the hook.
    pub(crate) fn clear(&self) {
        let hook = self.0.lock().unwrap().take();
        drop(hook);
    }

    fn run(&self, moment: Moment, value: u64) {
        let hook = self.0.lock().unwrap().clone();
        if let Some(hook) = hook {
            hook(moment, value);
        }
    }
}

pub(crate) struct Trap {
    topic: TopicId,
    pub(crate) value: u64,
    hooks: Hooks,
}

const PLAIN: TopicId = TopicId::new(0);
const OLDEST: TopicId = TopicId::new(1);
const CONFLATE: TopicId = TopicId::new(2);
const RETAINED: TopicId = TopicId::new(3);
pub(crate) const BLOCK: TopicId = TopicId::new(4);
pub(crate) const BLOCK_RETAINED: TopicId = TopicId::new(5);
const TOPICS: [TopicId; 6] = [PLAIN, OLDEST, CONFLATE, RETAINED, BLOCK, BLOCK_RETAINED];

impl Trap {
    /// One without hooks.
    pub(crate) fn new(topic: TopicId, value: u64) -> Self {
        Self::hooked(topic, value, &Hooks::default())
    }

    pub(crate) fn hooked(topic: TopicId, value: u64, hooks: &Hooks) -> Self {
        let hooks = hooks.clone();
        Self {
            topic,
            value,
            hooks,
        }
    }
}

impl Message for Trap {
    const TOPICS: &'static [TopicInfo] = &[
        TopicInfo {
            overflow: TopicOverflow::Reject,
            ..TopicInfo::new("plain")
        },
        TopicInfo {
            overflow: TopicOverflow::DropOldest { keep: 1 },
            ..TopicInfo::new("oldest")
        },
        TopicInfo {
            overflow: TopicOverflow::Conflate { keys: 1 },
            ..TopicInfo::new("conflate")
        },
        TopicInfo {
            overflow: TopicOverflow::Reject,
            is_retained: true,
            ..TopicInfo::new("retained")
        },
        TopicInfo::new("block"),
        TopicInfo {
            is_retained: true,
            ..TopicInfo::new("block.retained")
        },
    ];

    fn topic(&self) -> TopicId {
        self.topic
    }

    fn key(&self) -> u64 {
        self.hooks.run(Moment::Key, self.value);
        0
    }
}

impl Clone for Trap {
    fn clone(&self) -> Self {
        self.hooks.run(Moment::Clone, self.value);
        Self {
            hooks: self.hooks.clone(),
            ..*self
        }
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.hooks.run(Moment::Drop, self.value);
    }
}

/// Without the noise of a panic hook.
pub(crate) fn throw() {
    resume_unwind(Box::new("the user's code"));
}

pub(crate) struct World {
    pub(crate) bus: Bus<Trap>,
    pub(crate) tx: Publisher<Trap>,
    pub(crate) hooks: Hooks,
    /// Publishes as a task does.
    is_task: bool,
}

/// As a thread, and as a task.
const BOTH: [bool; 2] = [false, true];

impl World {
    fn new(is_task: bool) -> Self {
        Self::with(is_task, 256)
    }

    pub(crate) fn with(is_task: bool, capacity: usize) -> Self {
        let bus = Bus::builder().capacity(capacity).build().unwrap();
        Self {
            tx: bus.publisher("feed").unwrap(),
            bus,
            hooks: Hooks::default(),
            is_task,
        }
    }

    pub(crate) fn trap(&self, topic: TopicId, value: u64) -> Trap {
        Trap::hooked(topic, value, &self.hooks)
    }

    /// Returns whether it panicked.
    pub(crate) fn publish(&mut self, topic: TopicId, value: u64) -> bool {
        let trap = self.trap(topic, value);
        let (tx, is_task) = (&mut self.tx, self.is_task);
        let publish = AssertUnwindSafe(|| match is_task {
            true => assert!(block_on(tx.publish_async(trap)).is_ok()),
            false => assert!(tx.publish(trap).is_ok()),
        });
        catch_unwind(publish).is_err()
    }
}

/// Whatever panics, gaps in the sequences are losses, and are reported.
fn a_panic_leaves_no_unreported_gap(at: Moment) {
    for (topic, is_task) in TOPICS.into_iter().flat_map(|t| BOTH.map(|b| (t, b))) {
        let mut world = World::new(is_task);
        let mut consumers = [(); 3].map(|()| world.bus.subscribe(Topics::ALL).unwrap());
        let left = AtomicU64::new(1);
        world.hooks.set(move |moment, value| {
            let hits = moment == at && value == 2 && left.swap(0, SeqCst) > 0;
            if hits {
                throw();
            }
        });
        for value in 1..=4 {
            world.publish(topic, value);
            // The second one panics in the middle of what the bus does, as long as it is there.
            for rx in &mut consumers[1..] {
                let drain = AssertUnwindSafe(|| rx.try_recv_each(9, drop));
                let _ = catch_unwind(drain);
            }
        }
        for rx in &mut consumers {
            let _ = rx.try_recv_each(9, drop);
            let outcomes = rx.publisher_counts()[0].outcomes;
            let consumers = rx.counts();
            assert_eq!(
                consumers.reported,
                outcomes.lost(),
                "{topic:?} {outcomes:?} {consumers:?}"
            );
            let numbered = world.tx.next_sequence(topic);
            let known = consumers.taken() + outcomes.lost() + sum(outcomes.discarded);
            assert_eq!(numbered, known, "{topic:?} {outcomes:?} {consumers:?}");
        }
        check_totals(&world.bus.totals());
    }
}

#[test]
fn a_clone_that_panics_leaves_no_unreported_gap() {
    a_panic_leaves_no_unreported_gap(Moment::Clone);
}

#[test]
fn a_key_that_panics_leaves_no_unreported_gap() {
    a_panic_leaves_no_unreported_gap(Moment::Key);
}

#[test]
fn a_drop_that_panics_leaves_no_unreported_gap() {
    a_panic_leaves_no_unreported_gap(Moment::Drop);
}

/// A retained message has a number of its own, also if the message that it replaces panics.
#[test]
fn what_is_retained_is_published() {
    let cases = [RETAINED, BLOCK_RETAINED].map(|topic| BOTH.map(|is_task| (topic, is_task)));
    for (topic, is_task) in cases.into_iter().flatten() {
        let mut world = World::new(is_task);
        let mut rx = world.bus.subscribe(Topics::ALL).unwrap();
        assert!(!world.publish(topic, 1));
        rx.recv().unwrap();
        world.hooks.set(|moment, value| {
            if (moment, value) == (Moment::Drop, 1) {
                throw();
            }
        });
        assert!(world.publish(topic, 2), "the one that it replaces");
        let got = rx.try_recv().unwrap();
        assert_eq!((got.message.value, got.sequence), (2, 1));
        let late = world.bus.subscription(Topics::ALL).replay_retained();
        let got = late.open().unwrap().recv().unwrap();
        assert_eq!((got.message.value, got.sequence), (2, 1));
        assert!(!world.publish(topic, 3));
        assert_eq!(rx.recv().unwrap().sequence, 2);
    }
}

/// All that a bus offers, from inside of the user's code; a clone does not ask for more clones of
/// what it is a clone of.
fn call_back(bus: &Bus<Trap>, other: &Mutex<Publisher<Trap>>, replays: bool) {
    bus.totals();
    bus.inbox_readings();
    bus.state();
    let rx = bus.subscription(Topics::ALL);
    let rx = if replays { rx.replay_retained() } else { rx };
    drop(rx.open());
    drop(bus.publisher("inside"));
    for topic in TOPICS {
        let trap = Trap::new(topic, 100);
        let _ = other.lock().unwrap().try_publish(trap);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.hooks.clear();
    }
}

fn the_users_code_may_call_the_bus(at: Moment) {
    for (topic, is_task) in TOPICS.into_iter().flat_map(|t| BOTH.map(|b| (t, b))) {
        let mut world = World::new(is_task);
        let other = Mutex::new(world.bus.publisher("other").unwrap());
        let calls = Arc::new(AtomicU64::new(0));
        let mut rx = world.bus.subscribe(Topics::ALL).unwrap();
        let second = world.bus.subscribe(Topics::ALL).unwrap();
        let (inside, counted) = (world.bus.clone(), Arc::clone(&calls));
        let is_inside = AtomicU64::new(0);
        world.hooks.set(move |moment, value| {
            if moment == at && value < 100 && is_inside.swap(1, SeqCst) == 0 {
                counted.fetch_add(1, SeqCst);
                call_back(&inside, &other, at != Moment::Clone);
                is_inside.store(0, SeqCst);
            }
        });
        for value in 1..=3 {
            assert!(!world.publish(topic, value));
        }
        let late = world.bus.subscription(Topics::ALL).replay_retained();
        let mut late = late.open().unwrap();
        let _ = rx.try_recv_each(usize::MAX, drop);
        assert!(!world.publish(topic, 4));
        let _ = late.try_recv_each(usize::MAX, drop);
        drop(second);
        assert!(!world.publish(topic, 5));
        let _ = rx.try_recv_each(usize::MAX, drop);
        check_totals(&world.bus.totals());
        let is_asked = at != Moment::Key || topic == CONFLATE;
        assert_eq!(calls.load(SeqCst) > 0, is_asked, "{topic:?}");
    }
}

#[test]
fn a_clone_may_call_the_bus() {
    watched(|| the_users_code_may_call_the_bus(Moment::Clone));
}

/// A late joiner's copy of what is retained.
#[test]
fn a_clone_for_a_late_joiner_may_call_the_bus() {
    watched(|| {
        let mut world = World::new(false);
        assert!(!world.publish(RETAINED, 1));
        let other = Mutex::new(world.bus.publisher("other").unwrap());
        let (inside, is_inside) = (world.bus.clone(), AtomicU64::new(0));
        world.hooks.set(move |moment, value| {
            if (moment, value) == (Moment::Clone, 1) && is_inside.swap(1, SeqCst) == 0 {
                call_back(&inside, &other, false);
            }
        });
        let late = world.bus.subscription(Topics::ALL).replay_retained();
        let mut late = late.open().unwrap();
        assert_eq!(late.recv().unwrap().message.value, 1);
        // Messages that were published inside come behind, or were before the inbox.
        let _ = late.try_recv_each(9, |got| assert!(!got.is_replay));
        check_totals(&world.bus.totals());
    });
}

#[test]
fn a_clone_for_a_late_joiner_that_panics_leaves_no_inbox() {
    let mut world = World::new(false);
    assert!(!world.publish(RETAINED, 1));
    world.hooks.set(|moment, value| {
        if (moment, value) == (Moment::Clone, 1) {
            throw();
        }
    });
    let late = world.bus.subscription(Topics::ALL).replay_retained();
    assert!(catch_unwind(AssertUnwindSafe(|| late.open())).is_err());
    assert!(world.bus.inbox_readings().is_empty());
    assert!(!world.publish(RETAINED, 2));
    let late = world.bus.subscription(Topics::ALL).replay_retained();
    assert_eq!(late.open().unwrap().recv().unwrap().message.value, 2);
    check_totals(&world.bus.totals());
}

#[test]
fn a_drop_may_call_the_bus() {
    watched(|| the_users_code_may_call_the_bus(Moment::Drop));
}

#[test]
fn a_key_may_call_the_bus() {
    watched(|| the_users_code_may_call_the_bus(Moment::Key));
}

/// The last handles of the bus may be in its own messages, and a consumer in one, too.
#[test]
fn the_users_code_may_end_the_bus() {
    watched(|| {
        for ends in 0..4 {
            let mut world = World::new(false);
            let mut rx = world.bus.subscribe(Topics::ALL).unwrap();
            let kept = Mutex::new(Some(world.bus.subscribe(Topics::ALL).unwrap()));
            let bus = world.bus.clone();
            world.hooks.set(move |moment, value| {
                if (moment, value) == (Moment::Drop, 1) {
                    match ends {
                        0 => _ = bus.close(),
                        1 => _ = bus.stop(),
                        2 => _ = bus.pause(),
                        _ => {
                            let rx = kept.lock().unwrap().take();
                            drop(rx);
                        }
                    }
                }
            });
            assert!(!world.publish(OLDEST, 1));
            let trap = world.trap(OLDEST, 2);
            // The first is evicted here, and dropped.
            let _ = world.tx.publish(trap);
            let _ = rx.try_recv_each(9, drop);
            check_totals(&world.bus.totals());
        }
    });
}
