//! Foreign code that panics at every call: clones, drops, keys, handlers and wakers, in a bus with
//! topics of every policy, groups, and publishers that are threads and tasks. The ledger adds up,
//! every loss is in it, and each message is dropped once.

use crate::bus::check_totals;
use crate::bus::hostile_types::{BLOCK, Hooks, Moment, Trap};
use crate::bus::watchdog::watched;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use thalweg::bus::{Bus, BusError, Consumer, Message, Publisher, TopicId, Topics};
use thalweg_testkit::fuse::{Fuse, at_every_call, attempt};

/// Messages there are, and the fuse that their hooks burn.
fn hooks(fuse: &Arc<Fuse>, messages: &Arc<AtomicI64>) -> Hooks {
    let (hooks, fuse, messages) = (Hooks::default(), Arc::clone(fuse), Arc::clone(messages));
    hooks.set(move |moment, _| match moment {
        Moment::Drop => {
            // ORDERING: SeqCst, a test's count.
            messages.fetch_sub(1, SeqCst);
            fuse.burn();
        }
        Moment::Clone => {
            fuse.burn();
            // ORDERING: SeqCst, a test's count.
            messages.fetch_add(1, SeqCst);
        }
        Moment::Key => fuse.burn(),
    });
    hooks
}

fn receive_all(consumers: [&mut Consumer<Trap>; 2]) {
    for rx in consumers {
        while !matches!(attempt(|| rx.try_recv_each(64, drop)), Some(Err(_))) {}
    }
}

/// There is room, or it waits, and goes.
fn publish_in_a_task(tx: &mut Publisher<Trap>, message: Trap, fuse: &Arc<Fuse>) {
    let mut waits = Box::pin(tx.publish_async(message));
    let done = fuse.poll(&mut waits);
    attempt(|| drop(waits));
    attempt(|| drop(done));
}

#[test]
fn the_ledger_adds_up_whatever_panics() {
    let topics: Vec<_> = (0..Trap::TOPICS.len()).map(TopicId::new).collect();
    at_every_call(60, |fuse| {
        let messages = Arc::<AtomicI64>::default();
        let hooks = hooks(fuse, &messages);
        let make = |topic: TopicId, value| {
            // ORDERING: SeqCst, a test's count.
            messages.fetch_add(1, SeqCst);
            Trap::hooked(topic, value, &hooks)
        };
        let bus = Bus::<Trap>::builder().capacity(8).build().unwrap();
        let mut alone = bus.subscribe(Topics::ALL).unwrap();
        let mut member = bus.subscribe(Topics::ALL).unwrap();
        let mut other = member.share();
        let mut tx = bus.publisher("feed").unwrap();
        for value in 0..3 {
            for &topic in &topics {
                let message = make(topic, value);
                match value {
                    1 => publish_in_a_task(&mut tx, message, fuse),
                    _ => _ = attempt(|| drop(tx.try_publish(message))),
                }
            }
            // A handler panics with a message in hand; what else it took along is still there.
            attempt(|| member.try_recv_each(4, |got| (fuse.burn(), drop(got)).0));
            attempt(|| drop(other.try_recv()));
        }
        // A member leaves with what it has, the first handle of it with a batch.
        attempt(|| drop(member));
        let late = attempt(|| bus.subscription(Topics::ALL).replay_retained().open());
        receive_all([&mut alone, &mut other]);
        attempt(|| drop(late));
        check_totals(&bus.totals());
        for rx in [&alone, &other] {
            let numbered: u64 = topics.iter().map(|&topic| tx.next_sequence(topic)).sum();
            let (outcomes, consumers) = (rx.publisher_counts()[0].outcomes, rx.counts());
            let discarded: u64 = outcomes.discarded.iter().sum();
            assert_eq!(consumers.waiting, 0);
            assert_eq!(
                numbered,
                consumers.taken() + outcomes.lost() + discarded,
                "{outcomes:?}"
            );
            let reported = consumers.reported + consumers.unreported;
            assert!(reported <= outcomes.lost(), "{outcomes:?} {consumers:?}");
        }
        // With messages behind them, all losses are reported.
        let mut is_quiet = false;
        while !is_quiet {
            let publish = |&topic| attempt(|| drop(tx.publish(make(topic, 9))));
            is_quiet = topics.iter().filter_map(publish).count() == topics.len();
            receive_all([&mut alone, &mut other]);
        }
        for rx in [&alone, &other] {
            let consumers = rx.counts();
            let reported = consumers.reported + consumers.unreported;
            assert_eq!(reported, rx.publisher_counts()[0].outcomes.lost());
        }
        check_totals(&bus.totals());
        attempt(|| drop((alone, other)));
        attempt(|| drop(tx));
        attempt(|| drop(bus));
        hooks.clear();
        // ORDERING: SeqCst, a test's count.
        assert_eq!(messages.load(SeqCst), 0, "each is dropped once");
    });
}

/// A publish that waits for room keeps its message, and its copies, whatever is dropped meanwhile.
#[test]
fn a_publish_in_a_task_goes_on_whatever_panics() {
    at_every_call(6, |fuse| {
        let messages = Arc::<AtomicI64>::default();
        let hooks = hooks(fuse, &messages);
        let make = |value| {
            // ORDERING: SeqCst, a test's count.
            messages.fetch_add(1, SeqCst);
            Trap::hooked(BLOCK, value, &hooks)
        };
        let bus = Bus::<Trap>::builder().capacity(4).build().unwrap();
        let mut consumers = [(); 2].map(|()| bus.subscribe(Topics::ALL).unwrap());
        let mut tx: Publisher<Trap> = bus.publisher("feed").unwrap();
        while attempt(|| tx.try_publish(make(1)).map_err(drop)) != Some(Err(())) {}
        let before = bus.totals().outcomes;
        let mut waits = Box::pin(tx.publish_async(make(99)));
        assert!(fuse.poll(&mut waits).is_none());
        for rx in &mut consumers {
            attempt(|| drop(rx.try_recv()));
        }
        let done = fuse.poll(&mut waits);
        attempt(|| drop(waits));
        let issued = bus.totals().outcomes.issued.iter().sum::<u64>();
        let is_published = issued == before.issued.iter().sum::<u64>() + 2;
        assert!(is_published || done.is_none(), "all inboxes, or none");
        check_totals(&bus.totals());
        attempt(|| drop(done));
        for rx in consumers {
            attempt(|| drop(rx));
        }
        attempt(|| drop(tx));
        attempt(|| drop(bus));
        hooks.clear();
        // ORDERING: SeqCst, a test's count.
        assert_eq!(messages.load(SeqCst), 0, "each is dropped once");
    });
}

/// The clone of a retained message runs where others wait for it.
#[test]
fn a_clone_that_asks_for_its_own_message_is_refused() {
    watched(|| {
        let bus = Bus::<Trap>::new().unwrap();
        let retained = TopicId::new(3);
        let mut tx = bus.publisher("feed").unwrap();
        let hooks = Hooks::default();
        tx.publish(Trap::hooked(retained, 1, &hooks)).unwrap();
        let (inside, answers) = (bus.clone(), Arc::<AtomicI64>::default());
        let refused = Arc::clone(&answers);
        hooks.set(move |moment, _| {
            if moment == Moment::Clone {
                let late = inside.subscription(Topics::ALL).replay_retained().open();
                assert!(matches!(late, Err(BusError::ReentrantClone)));
                // ORDERING: SeqCst, a test's count.
                refused.fetch_add(1, SeqCst);
            }
        });
        let mut late = bus
            .subscription(Topics::ALL)
            .replay_retained()
            .open()
            .unwrap();
        assert_eq!(late.recv().unwrap().message.value, 1);
        // ORDERING: SeqCst, a test's count.
        assert_eq!((answers.load(SeqCst), bus.inbox_readings().len()), (1, 1));
        hooks.clear();
    });
}
