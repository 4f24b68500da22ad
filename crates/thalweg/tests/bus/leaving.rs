//! Publishers that come and go, and messages that cannot be cloned.

use crate::bus::note::{BLOCK, CONFLATE, KEPT, Note, OLDEST, REJECT, bus, keyed, note};
use crate::bus::{check_totals, sum};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use thalweg::bus::{
    Bus, Consumer, Message, Priority, Publisher, TopicId, TopicInfo, TopicOverflow, Topics,
};

fn names(rx: &Consumer<Note>) -> Vec<String> {
    let losses = rx.publisher_counts();
    losses.iter().map(|row| row.name.to_string()).collect()
}

#[test]
fn publishers_that_have_gone_are_a_sum() {
    let bus = bus(100);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut stays = bus.publisher("stays").unwrap();
    for round in 0..1_000 {
        let mut tx = bus.publisher("passing").unwrap();
        for topic in [BLOCK, CONFLATE, OLDEST] {
            tx.publish(keyed(topic, round % 3, round)).unwrap();
        }
        drop(tx);
        let _ = rx.try_recv_each(2, drop);
        let _ = rx.try_recv_each(9, |got| assert_eq!((got.sequence, got.lost_before), (0, 0)));
        assert!(rx.publisher_counts().len() <= 3, "{:?}", names(&rx));
    }
    stays.publish(note(REJECT, 0)).unwrap();
    let _next = bus.publisher("next").unwrap();
    assert_eq!(names(&rx), ["stays", "next"]);
    let snapshot = bus.snapshot();
    assert_eq!(sum(snapshot.inboxes[0].outcomes.admitted), 3_001);
    check_totals(&snapshot.totals);
}

/// This holds for each policy, and though no consumer reads.
#[test]
fn publishers_that_have_gone_take_no_memory_where_no_consumer_reads() {
    for topic in [BLOCK, REJECT, OLDEST, CONFLATE] {
        let bus = bus(8);
        let rx = bus.subscribe(Topics::ALL).unwrap();
        for n in 0..1_000 {
            let mut tx = bus.publisher("passing").unwrap();
            let _ = tx.try_publish(keyed(topic, n % 20, n));
        }
        // Those whose messages are there, some with a loss that was never reported, and the last.
        let most = 8 + KEPT + 64 + 1;
        assert!(
            rx.publisher_counts().len() <= most,
            "{topic:?} {}",
            rx.publisher_counts().len()
        );
        let issued = sum(bus.totals().outcomes.issued);
        assert_eq!(issued, 1_000);
        check_totals(&bus.totals());
    }
}

/// Messages that wait in one ring keep no publishers of the other.
#[test]
fn publishers_of_an_express_lane_are_not_kept_by_what_it_overtakes() {
    let bus = bus(8);
    let options = bus.subscription(Topics::ALL).express(Priority::High, 4);
    let mut rx = options.open().unwrap();
    let mut stays = bus.publisher("stays").unwrap();
    stays.publish(note(BLOCK, 0)).unwrap();
    for n in 1..=1_000 {
        let mut tx = bus.publisher("passing").unwrap();
        tx.publish_with_priority(Priority::High, note(BLOCK, n))
            .unwrap();
        tx.publish_with_priority(Priority::High, note(OLDEST, n))
            .unwrap();
        drop(tx);
        assert_eq!(rx.recv().unwrap().message.value, n);
        assert!(
            rx.publisher_counts().len() <= 3 + KEPT + 64,
            "{}",
            rx.publisher_counts().len()
        );
    }
    assert_eq!(sum(bus.totals().outcomes.issued), 2_001);
    check_totals(&bus.totals());
}

/// A message that is discarded with a member of a group had a gap before it. A later message can't
/// report that: one that came in between was delivered.
#[test]
fn a_gap_before_what_a_member_takes_along_is_counted_and_not_reported_later() {
    let bus = bus(16);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let member = rx.share();
    let mut tx = bus.publisher("p").unwrap();
    let mut publish = |value| {
        tx.try_publish_with_priority(Priority::Critical, note(BLOCK, value))
            .is_ok()
    };
    assert_eq!((0..19).filter(|&value| publish(value)).count(), 16);
    assert_eq!((0..14).filter(|_| rx.recv().is_ok()).count(), 14);
    assert!((19..30).all(&mut publish));
    // The first it has, the second it has when it panics, and the third would report the gap.
    let mut seen = Vec::new();
    let batch = AssertUnwindSafe(|| {
        let mut member = member;
        member.try_recv_each(8, |got| {
            seen.push(got.sequence);
            if got.sequence == 15 {
                std::panic::resume_unwind(Box::new("the user's code"));
            }
        })
    });
    assert!(catch_unwind(batch).is_err());
    assert_eq!(seen, [14, 15]);
    assert!(sum(bus.totals().outcomes.discarded) > 0);
    assert_eq!((rx.counts().reported, rx.counts().unreported), (0, 3));
    assert!(publish(30));
    let mut next = None;
    let _ = rx.try_recv_each(16, |got| {
        assert_eq!(got.lost_before, 0, "before {}", got.sequence);
        assert!(next.is_none_or(|next| next == got.sequence), "{next:?}");
        next = Some(got.sequence + 1);
    });
    assert_eq!(next, Some(31));
    let totals = bus.totals();
    assert_eq!(
        (totals.consumers.unreported, totals.outcomes.lost()),
        (3, 3)
    );
    check_totals(&bus.totals());
}

#[test]
fn a_publisher_is_known_as_long_as_its_messages_wait() {
    let bus = bus(10);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let leave = |topic, name: &str| {
        let mut tx = bus.publisher(name).unwrap();
        tx.publish(note(topic, 1)).unwrap();
    };
    leave(BLOCK, "ring");
    leave(OLDEST, "buffered");
    assert_eq!(names(&rx), ["ring", "buffered"]);
    rx.recv().unwrap();
    leave(REJECT, "another");
    assert_eq!(names(&rx), ["buffered", "another"]);
    // Messages that a consumer holds when it goes are counted, whether its publisher has a row or
    // not.
    rx.recv().unwrap();
    let other = bus.publisher("other").unwrap();
    assert_eq!(names(&rx), ["another", "other"]);
    drop((rx, other));
    assert_eq!(sum(bus.totals().outcomes.discarded), 1);
    check_totals(&bus.totals());
}

#[test]
fn a_batch_of_publishers_that_have_gone_is_counted() {
    let bus = bus(10);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    for _ in 0..8 {
        let mut tx = bus.publisher("passing").unwrap();
        tx.publish(note(BLOCK, 1)).unwrap();
    }
    let mut count = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        rx.try_recv_each(9, |_| {
            count += 1;
            assert!(count < 3, "a bad handler");
        })
    }));
    outcome.unwrap_err();
    let _next = bus.publisher("next").unwrap();
    drop(rx);
    assert_eq!(sum(bus.totals().outcomes.discarded), 5);
    check_totals(&bus.totals());
}

#[test]
fn some_of_those_that_left_with_an_unreported_loss_are_known() {
    let bus = bus(10);
    let rx = bus.subscribe(Topics::ALL).unwrap();
    let mut filler = bus.publisher("filler").unwrap();
    (0..8).for_each(|n| assert_eq!(filler.publish(note(BLOCK, n)).unwrap(), 1));
    for n in 0..100 {
        let mut tx = bus.publisher(&format!("refused {n}")).unwrap();
        tx.publish(note(REJECT, 0)).unwrap_err();
    }
    let names = names(&rx);
    assert_eq!((names.len(), names[1].as_str()), (65, "refused 36"));
    assert_eq!(sum(bus.totals().outcomes.refused), 100);
    check_totals(&bus.totals());
}

/// A message whose clones panic when they are set to.
#[derive(Debug)]
struct Frail {
    topic: TopicId,
    clones_left: Arc<AtomicU32>,
}

impl Clone for Frail {
    fn clone(&self) -> Self {
        let left = self.clones_left.fetch_sub(1, Ordering::Relaxed);
        assert_ne!(left, 0, "a bad clone");
        let clones_left = Arc::clone(&self.clones_left);
        Self {
            topic: self.topic,
            clones_left,
        }
    }
}

impl Message for Frail {
    const TOPICS: &'static [TopicInfo] = &[
        TopicInfo {
            overflow: TopicOverflow::Block,
            ..TopicInfo::new("ring")
        },
        TopicInfo {
            overflow: TopicOverflow::DropOldest { keep: 4 },
            ..TopicInfo::new("buffered")
        },
        TopicInfo {
            is_retained: true,
            ..TopicInfo::new("retained")
        },
    ];

    fn topic(&self) -> TopicId {
        self.topic
    }
}

fn frail(topic: usize, clones_left: u32) -> Frail {
    Frail {
        topic: TopicId::new(topic),
        clones_left: Arc::new(AtomicU32::new(clones_left)),
    }
}

fn frail_bus() -> (Bus<Frail>, [Consumer<Frail>; 3], Publisher<Frail>) {
    let bus = Bus::<Frail>::builder().capacity(8).build().unwrap();
    let consumers = [(); 3].map(|()| bus.subscribe(Topics::ALL).unwrap());
    let tx = bus.publisher("feed").unwrap();
    (bus, consumers, tx)
}

#[test]
fn a_clone_that_panics_is_a_counted_loss_of_its_inbox() {
    for topic in [0, 1] {
        let (bus, mut consumers, mut tx) = frail_bus();
        let publish = AssertUnwindSafe(|| tx.publish(frail(topic, 1)));
        catch_unwind(publish).unwrap_err();
        check_totals(&bus.totals());
        assert_eq!(
            (bus.totals().outcomes.lost(), bus.totals().consumers.waiting),
            (1, 2)
        );
        assert_eq!(tx.publish(frail(topic, 9)).unwrap(), 3);
        let mut reported = 0;
        for rx in &mut consumers {
            let _ = rx.try_recv_each(9, |got| reported += got.lost_before);
        }
        assert_eq!(reported, 1);
        check_totals(&bus.totals());
    }
}

#[test]
fn a_first_clone_that_panics_has_published_nothing() {
    let (bus, mut consumers, mut tx) = frail_bus();
    catch_unwind(AssertUnwindSafe(|| tx.publish(frail(2, 0)))).unwrap_err();
    let publish = |tx: &mut Publisher<Frail>, clones| {
        futures_executor::block_on(tx.publish_async(frail(0, clones))).unwrap()
    };
    catch_unwind(AssertUnwindSafe(|| publish(&mut tx, 1))).unwrap_err();
    assert_eq!(bus.totals(), thalweg::bus::Totals::default());
    assert_eq!(publish(&mut tx, 2), 3);
    for rx in &mut consumers {
        let got = rx.recv().unwrap();
        assert_eq!((got.sequence, got.lost_before), (0, 0));
    }
    check_totals(&bus.totals());
}
