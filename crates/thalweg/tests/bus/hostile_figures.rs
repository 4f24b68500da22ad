//! Figures that must agree while no thread is at work.

use crate::bus::note::{CONFLATE, KEPT, OLDEST, bus, keyed, note};
use crate::bus::{check_totals, sum};
use thalweg::bus::{Bus, Message, Priority, TopicId, TopicInfo, TopicOverflow, Topics};
use thalweg::state::Lifecycle;

/// A member of a group takes the losses along that come with what it holds, and leaves.
#[test]
fn losses_before_what_a_member_takes_along_are_in_the_figures() {
    for topic in [OLDEST, CONFLATE] {
        let bus = bus(8);
        let mut leaver = bus.subscribe(Topics::ALL).unwrap();
        let mut stays = leaver.share();
        let mut publishers = [(); 2].map(|()| bus.publisher("feed").unwrap());
        publishers[0].publish(keyed(topic, 9, 0)).unwrap();
        for n in 0..KEPT as u64 + 2 {
            publishers[1].publish(keyed(topic, n % 4, n)).unwrap();
        }
        // The first of the second publisher's, with what was lost before it, waits with the leaver.
        leaver.recv().unwrap();
        assert!(leaver.counts().waiting > 0);
        drop(leaver);
        for tx in &mut publishers {
            tx.publish(keyed(topic, 9, 99)).unwrap();
            let got = stays.recv().unwrap();
            assert_eq!(got.publisher, tx.id());
        }
        let lost: u64 = stays
            .publisher_counts()
            .iter()
            .map(|losses| losses.outcomes.lost())
            .sum();
        assert!(lost > 0);
        let consumers = stays.counts();
        assert_eq!(consumers.reported + consumers.unreported, lost, "{topic:?}");
        check_totals(&bus.totals());
    }
}

/// Messages that a consumer has taken from a topic buffer are not received yet.
#[test]
fn a_bus_with_messages_that_wait_is_not_stopped() {
    let bus = bus(8);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    for n in 0..3 {
        tx.publish(note(OLDEST, n)).unwrap();
    }
    rx.recv().unwrap();
    assert!(bus.close());
    let mut received = 0;
    while bus.totals().consumers.waiting > 0 {
        assert!(bus.state().is(Lifecycle::Draining));
        rx.recv().unwrap();
        received += 1;
    }
    // This holds whichever call comes first.
    assert_eq!(bus.snapshot().state, Lifecycle::Stopped);
    assert_eq!(received, 2);
    assert!(rx.recv().is_err());
    assert!(bus.state().is(Lifecycle::Stopped));
}

/// Capacities that could hardly be less, and every topic there can be.
#[test]
fn the_smallest_topic_buffers_are_exact() {
    let bus = Bus::<Tiny>::builder().capacity(1).build().unwrap();
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    for round in 0..3_u64 {
        for topic in (0..64).map(TopicId::new) {
            for n in 0..3 {
                assert_eq!(tx.publish(Tiny(topic, n)).unwrap(), 1);
            }
        }
        assert_eq!(rx.counts().waiting, 64);
        let mut topics = 0;
        let taken = rx.try_recv_each(usize::MAX, |got| {
            assert_eq!((got.sequence, got.lost_before), (3 * round + 2, 2));
            assert_eq!((got.topic.index(), got.message.1), (topics, 2));
            topics += 1;
        });
        assert_eq!((taken, rx.counts().waiting), (Ok(64), 0));
        check_totals(&bus.totals());
    }
    assert_eq!(sum(rx.publisher_counts()[0].outcomes.evicted), 3 * 64 * 2);
}

#[derive(Clone)]
struct Tiny(TopicId, u64);

const NAMES: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

const fn tiny() -> [TopicInfo; 64] {
    let mut topics = [TopicInfo::new("a"); 64];
    let mut n = 0;
    while n < 64 {
        let (name, _) = NAMES.split_at(n + 1);
        let overflow = if n % 2 == 0 {
            TopicOverflow::DropOldest { keep: 1 }
        } else {
            TopicOverflow::Conflate { keys: 1 }
        };
        topics[n] = TopicInfo {
            overflow,
            priority: Priority::ALL[n % 4],
            ..TopicInfo::new(name)
        };
        n += 1;
    }
    topics
}

impl Message for Tiny {
    const TOPICS: &'static [TopicInfo] = &tiny();

    fn topic(&self) -> TopicId {
        self.0
    }
}
