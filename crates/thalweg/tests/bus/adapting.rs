//! What the bus decides by itself, and what it tells of that.

use crate::bus::note::{BLOCK, CONFLATE, Note, OLDEST, REJECT, bus, keyed, note};
use crate::bus::watchdog::watched;
use crate::bus::{check_totals, sum};
use futures_executor::block_on;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::yield_now;
use thalweg::bus::{
    Bus, Consumer, Decision, Event, Level, Priority, Publisher, Rule, Topics, Verdict,
};
use thalweg::state::Lifecycle;
use thalweg::wait::Mode;

fn ends(bus: &Bus<Note>) -> (Publisher<Note>, Consumer<Note>) {
    let rx = bus.subscribe(Topics::ALL).unwrap();
    (bus.publisher("feed").unwrap(), rx)
}

fn publish(tx: &mut Publisher<Note>, values: std::ops::Range<u64>) {
    for value in values {
        tx.publish(note(BLOCK, value)).unwrap();
    }
}

fn waiting(bus: &Bus<Note>) -> u64 {
    bus.totals().service.waiting
}

#[test]
fn a_batch_makes_room_at_once_and_counts_as_waiting() {
    // Medium priority fills 51 of 64.
    let bus = bus(64);
    let (mut tx, mut rx) = ends(&bus);
    publish(&mut tx, 0..51);
    assert!(tx.try_publish(note(BLOCK, 0)).is_err());
    let mut seen = Vec::new();
    let taken = rx.recv_each(20, |got| {
        if seen.is_empty() {
            assert_eq!(tx.try_publish(note(BLOCK, 51)).ok(), Some(1));
        }
        if seen.len() == 1 {
            // The rest of a batch of 16 has left the ring, too.
            publish(&mut tx, 52..67);
            assert_eq!(waiting(&bus), 65);
        }
        seen.push((got.message.value, got.lost_before));
    });
    assert_eq!((taken, waiting(&bus)), (20, 47));
    rx.recv_each(99, |got| seen.push((got.message.value, got.lost_before)));
    let told = |value| (value, u64::from(value == 51));
    assert_eq!(seen, (0..67).map(told).collect::<Vec<_>>());
    check_totals(&bus.totals());
}

#[test]
fn a_batch_is_not_lost_with_a_panic() {
    let bus = bus(64);
    let (mut tx, mut rx) = ends(&bus);
    publish(&mut tx, 0..40);
    let mut count = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        rx.recv_each(40, |_| {
            count += 1;
            assert!(count < 5, "a bad handler");
        })
    }));
    outcome.unwrap_err();
    assert_eq!(waiting(&bus), 35);
    assert_eq!(rx.recv().unwrap().message.value, 5);
    assert_eq!(rx.try_recv().unwrap().message.value, 6);
    let mut next = 7;
    assert_eq!(
        rx.wait_each(3, |got| next += u64::from(got.message.value == next)),
        Ok(3)
    );
    assert_eq!((next, waiting(&bus)), (10, 30));
    drop(rx);
    assert_eq!(sum(bus.totals().flow.discarded), 30);
    check_totals(&bus.totals());
}

#[test]
fn what_is_on_shelves_comes_in_its_place_of_a_batch() {
    let bus = bus(64);
    let (mut tx, mut rx) = ends(&bus);
    publish(&mut tx, 0..3);
    for key in [1, 2, 1] {
        tx.publish(keyed(CONFLATE, key, 100 + key)).unwrap();
    }
    publish(&mut tx, 3..5);
    tx.publish(note(OLDEST, 200)).unwrap();
    publish(&mut tx, 5..7);
    assert_eq!(waiting(&bus), 10);
    let mut seen = Vec::new();
    assert_eq!(rx.recv_each(99, |got| seen.push(got.message.value)), 10);
    assert_eq!(seen, [0, 1, 2, 102, 101, 3, 4, 200, 5, 6]);
    check_totals(&bus.totals());
}

#[test]
fn members_of_a_group_leave_each_other_their_share() {
    let bus = bus(64);
    let (mut tx, mut rx) = ends(&bus);
    let mut other = rx.share();
    publish(&mut tx, 0..41);
    let mut is_first = true;
    let taken = rx.recv_each(99, |_| {
        if !std::mem::take(&mut is_first) {
            return;
        }
        // The first one alone.
        assert_eq!(other.recv_each(10, drop), 10);
    });
    assert_eq!(taken, 31);
    publish(&mut tx, 0..41);
    rx.recv_each(2, |_| ());
    // A batch of half of the 40.
    assert_eq!(other.recv_each(99, drop), 41 - 2);
    check_totals(&bus.totals());
}

#[test]
fn batches_can_be_switched_off() {
    let bus = Bus::builder()
        .capacity(64)
        .batching(Rule::batch_by_occupancy().off());
    let bus = bus.build().unwrap();
    let (mut tx, mut rx) = ends(&bus);
    publish(&mut tx, 0..40);
    let mut left = 40;
    assert_eq!(
        rx.recv_each(40, |_| {
            left -= 1;
            assert_eq!(waiting(&bus), left);
        }),
        40
    );
    let told = bus.explain()[1].to_string();
    assert_eq!(
        told,
        "inbox 0: batch-by-occupancy is off: it is not switched on"
    );
    assert!(
        bus.trace()
            .iter()
            .all(|decision| decision.event != Event::Batch)
    );
}

#[test]
fn every_rule_says_why_it_is_on_or_off() {
    let bus = Bus::builder()
        .capacity(1_000)
        .slowing(Rule::slow_producers());
    let bus = bus.mode(Mode::Power).build().unwrap();
    let (_tx, _rx) = ends(&bus);
    let explained = bus.explain();
    let told: Vec<_> = explained.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "inbox 0: spin-before-park is off: it is not switched on",
            "inbox 0: batch-by-occupancy is on: 1000 capacity, at least 8",
            "inbox 0: slow-producers is off: 0 % occupied, at least 30",
        ]
    );
    let slow = &explained[2];
    assert_eq!((slow.limits.capacity_min, slow.facts.capacity), (64, 1_000));
    assert!(slow.facts.cores > 0);
    let small = bus
        .subscription(Topics::ALL)
        .capacity(7)
        .mode(Mode::Balanced);
    let _small = small.open().unwrap();
    let explained = bus.explain();
    let told: Vec<_> = explained[3..].iter().map(ToString::to_string).collect();
    assert!(
        told[0].starts_with("inbox 1: spin-before-park is o"),
        "{told:?}"
    );
    assert_eq!(
        told[1],
        "inbox 1: batch-by-occupancy is off: 7 capacity, at least 8"
    );
    // The rule of spinning is the waiting thread's own: it holds by what that has learned.
    let (spin, facts) = (explained[3].explanation, explained[3].facts);
    let gap_ns = 1e9 / facts.arrival_per_s;
    assert_eq!(
        spin.is_on,
        facts.cores > 1 && gap_ns <= explained[3].limits.gap_ns_max
    );
}

#[test]
fn the_trace_has_the_last_decisions() {
    let bus = Bus::builder().capacity(256).trace(4).build().unwrap();
    let (mut tx, mut rx) = ends(&bus);
    for round in 0..5 {
        publish(&mut tx, 0..40 + round);
        rx.recv_each(99, drop);
        for _ in 0..16 {
            publish(&mut tx, 0..2);
            rx.recv_each(9, drop);
        }
    }
    bus.pause();
    let trace = bus.trace();
    assert!(trace.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
    let of = |event| move |decision: &&Decision| decision.event == event;
    assert_eq!(trace.iter().filter(of(Event::State)).count(), 2);
    let batches: Vec<_> = trace.iter().filter(of(Event::Batch)).collect();
    assert_eq!(batches.len(), 4, "{trace:?}");
    let last = batches[3];
    assert_eq!(
        (last.inbox, last.from, last.to, last.number),
        (0, 64, 32, 1)
    );
    assert!(bus.snapshot().decisions > 4);
    assert_eq!(trace.last().unwrap().event.name(), "state");
}

#[test]
fn a_snapshot_has_all_figures() {
    let bus = bus(100);
    let (mut tx, mut rx) = ends(&bus);
    publish(&mut tx, 0..80);
    tx.publish(note(REJECT, 0)).unwrap_err();
    let snapshot = bus.snapshot();
    assert_eq!(snapshot.state, Lifecycle::Running);
    assert_eq!(snapshot.totals, bus.totals());
    let inbox = &snapshot.inboxes[0];
    assert_eq!((inbox.inbox, inbox.level), (rx.inbox(), Level::High));
    assert_eq!((inbox.reading.waiting, inbox.reading.lost), (80, 1));
    assert_eq!(
        (inbox.flow.refused, inbox.flow.admitted),
        ([1, 0, 0, 0], [0, 80, 0, 0])
    );
    assert_eq!(
        (inbox.batch, inbox.gap_ns, inbox.topics),
        (1, None, Topics::ALL)
    );
    assert_eq!(inbox.report.verdict, Verdict::Stable);
    assert_eq!(tx.level(), Level::High);
    rx.recv_each(99, drop);
    let inbox = &bus.snapshot().inboxes[0];
    assert_eq!((inbox.level, inbox.batch), (Level::Normal, 25));
    assert_eq!((tx.level(), inbox.service.taken()), (Level::Normal, 80));
    let of = |event| move |decision: &&Decision| decision.event == event;
    assert_eq!(bus.trace().iter().filter(of(Event::Level)).count(), 2);
}

/// Whoever publishes, and however: nobody else has to look.
#[test]
fn a_publisher_learns_the_level_by_asking() {
    watched(|| {
        for rule in [Rule::slow_producers(), Rule::slow_producers().off()] {
            let bus = Bus::builder().capacity(100).slowing(rule);
            let bus = bus.build().unwrap();
            let (mut tx, mut rx) = ends(&bus);
            for round in 0..9_u64 {
                for n in 0..80 {
                    let message = note(BLOCK, n);
                    let published = match round % 3 {
                        0 => tx.try_publish(message),
                        1 => block_on(tx.publish_at_async(Priority::High, message)),
                        _ => tx.publish_at(Priority::High, message),
                    };
                    published.unwrap();
                }
                while tx.level() != Level::High {
                    yield_now();
                }
                assert_eq!(rx.recv_each(99, drop), 80);
                while tx.level() != Level::Normal {
                    yield_now();
                }
            }
        }
    });
}
