//! The express lane: what overtakes what, what is admitted, and how it ends.

use crate::bus::hostile_types::{BLOCK_RETAINED as TRAP, Moment, Trap, World};
use crate::bus::note::{BLOCK, CONFLATE, Note, OLDEST, REJECT, RETAINED, bus, keyed, note};
use crate::bus::watchdog::watched;
use crate::bus::{check_totals, sum};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use thalweg::bus::Priority::{Critical, High, Low, Medium};
use thalweg::bus::{Admission, Bus, BusError, Consumer, Priority, Reason, Topics};
use thalweg::channel::{RecvTimeoutError, TryRecvError};
use thalweg::state::Lifecycle;

fn express(bus: &Bus<Note>, from: Priority, messages: usize) -> Consumer<Note> {
    let options = bus.subscription(Topics::ALL).express(from, messages);
    options.open().unwrap()
}

/// The values that are there now, with their sequences and gaps.
fn taken(rx: &mut Consumer<Note>) -> Vec<(u64, u64, u64)> {
    std::iter::from_fn(|| rx.try_recv().ok())
        .map(|got| (got.message.value, got.sequence, got.lost_before))
        .collect()
}

#[test]
fn high_messages_come_first_and_report_the_gap_before_them() {
    let bus = bus(4);
    let mut rx = express(&bus, High, 2);
    // Low messages have 2 of 4 places, and medium ones 3; the lane has 2 for both of its
    // priorities.
    assert_eq!(rx.limits(), [2, 3, 2, 2]);
    let mut tx = bus.publisher("p").unwrap();
    let mut publish = |priority, value| {
        let outcome = tx.try_publish_with_priority(priority, note(BLOCK, value));
        outcome.map_err(|error| error.reason)
    };
    for value in 0..3 {
        assert_eq!(publish(Medium, value), Ok(1));
    }
    // The ring is above the limit, and the lane is not.
    assert_eq!(publish(Medium, 3), Err(Reason::Refused));
    assert_eq!(publish(High, 4), Ok(1));
    assert_eq!(publish(Critical, 5), Ok(1));
    assert_eq!(publish(Critical, 6), Err(Reason::Refused));
    let lane = rx.express().unwrap();
    assert_eq!((lane.from, lane.capacity, lane.waiting), (High, 2, 2));
    let figures = &bus.snapshot().inboxes[0];
    assert_eq!(figures.express, Some(lane));
    assert_eq!((figures.reading.waiting, figures.reading.capacity), (3, 4));
    assert_eq!(figures.consumers.waiting, 5);
    let lost = [(4, 4, 1), (5, 5, 0), (0, 0, 0), (1, 1, 0), (2, 2, 0)];
    assert_eq!(taken(&mut rx), lost);
    // The next message of either lane reports the loss behind all of these.
    assert_eq!(tx.publish(note(BLOCK, 7)).unwrap(), 1);
    assert_eq!(taken(&mut rx), [(7, 7, 1)]);
    check_totals(&bus.totals());
    assert_eq!(bus.totals().consumers.reported, 2);
}

#[test]
fn it_overtakes_what_is_left_of_a_batch() {
    let bus = bus(1_024);
    let mut rx = express(&bus, Critical, 8);
    let mut tx = bus.publisher("p").unwrap();
    for value in 0..100 {
        tx.publish(note(BLOCK, value)).unwrap();
    }
    let mut order = Vec::new();
    let count = rx.try_recv_each(200, |got| {
        order.push(got.message.value);
        if got.message.value == 40 {
            tx.publish_with_priority(Critical, note(REJECT, 900))
                .unwrap();
        }
    });
    let expected: Vec<u64> = (0..=40).chain([900]).chain(41..100).collect();
    assert_eq!((count, order), (Ok(101), expected));
    // Nothing but the lane has something.
    tx.publish_with_priority(Critical, note(BLOCK, 901))
        .unwrap();
    tx.publish_with_priority(Critical, note(BLOCK, 902))
        .unwrap();
    assert_eq!(rx.try_recv_each(9, |_| {}), Ok(2));
}

#[test]
fn a_topic_buffer_goes_with_the_priority_of_its_topic() {
    let bus = bus(8);
    // Two of the four places are those of the topic buffers' tokens.
    let mut rx = express(&bus, Medium, 4);
    let mut tx = bus.publisher("p").unwrap();
    for value in 0..2 {
        tx.publish_with_priority(Low, note(BLOCK, value)).unwrap();
        tx.publish_with_priority(Low, note(OLDEST, 10 + value))
            .unwrap();
        tx.publish_with_priority(Critical, keyed(CONFLATE, value, 20 + value))
            .unwrap();
    }
    tx.publish(note(BLOCK, 30)).unwrap();
    tx.publish(note(BLOCK, 31)).unwrap();
    assert_eq!(rx.express().unwrap().waiting, 6);
    let values: Vec<u64> = taken(&mut rx).iter().map(|one| one.0).collect();
    assert_eq!(values, [10, 11, 20, 21, 30, 31, 0, 1]);
    // Messages that were in a topic buffer of the lane stay before those that come to the lane
    // later.
    tx.publish(note(OLDEST, 1)).unwrap();
    tx.publish(note(OLDEST, 2)).unwrap();
    assert_eq!(rx.recv().unwrap().message.value, 1);
    tx.publish(note(BLOCK, 3)).unwrap();
    assert_eq!([2, 3], [(); 2].map(|()| rx.recv().unwrap().message.value));
}

#[test]
fn retained_messages_come_before_all() {
    let bus = bus(8);
    let mut tx = bus.publisher("p").unwrap();
    tx.publish(note(RETAINED, 1)).unwrap();
    let options = bus.subscription(Topics::ALL).express(High, 4);
    let mut rx = options.replay_retained().open().unwrap();
    tx.publish(note(RETAINED, 2)).unwrap();
    tx.publish_with_priority(High, note(RETAINED, 3)).unwrap();
    let first = rx.recv().unwrap();
    assert!(first.is_replay && first.message.value == 1);
    assert_eq!(taken(&mut rx), [(3, 2, 0), (2, 1, 0)]);
}

#[test]
fn a_consumer_that_sleeps_is_woken_for_either() {
    let bus = bus(8);
    let mut rx = express(&bus, High, 4);
    let mut tx = bus.publisher("p").unwrap();
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    let timeout = Duration::from_millis(1);
    assert_eq!(rx.recv_timeout(timeout), Err(RecvTimeoutError::Timeout));
    let (asked, answer) = std::sync::mpsc::channel();
    let consuming = thread::spawn(move || {
        for _ in 0..200 {
            let value = rx.recv().unwrap().message.value;
            asked.send(value).unwrap();
        }
        // One is there when it is asked, and the next comes later.
        futures_executor::block_on(async {
            for value in 200..400 {
                assert_eq!(rx.recv_async().await.unwrap().message.value, value);
                asked.send(value).unwrap();
            }
        });
        assert!(rx.recv().is_err());
    });
    for value in 0..400 {
        let priority = if value % 2 == 0 { Medium } else { High };
        tx.publish_with_priority(priority, note(BLOCK, value))
            .unwrap();
        assert_eq!(answer.recv(), Ok(value));
    }
    bus.close();
    consuming.join().unwrap();
}

#[test]
fn a_publisher_waits_for_room_in_the_lane_alone() {
    let bus = bus(2);
    let mut rx = express(&bus, High, 1);
    let mut tx = bus.publisher("p").unwrap();
    tx.publish_with_priority(High, note(BLOCK, 1)).unwrap();
    let publishing = thread::spawn(move || {
        tx.publish_with_priority(High, note(BLOCK, 2)).unwrap();
        let sent = tx.publish_with_priority_async(Critical, note(BLOCK, 3));
        futures_executor::block_on(sent).unwrap();
        tx
    });
    for value in 1..=3 {
        assert_eq!(rx.recv().unwrap().message.value, value);
    }
    let mut tx = publishing.join().unwrap();
    // A place of the ring would not do.
    tx.publish_with_priority(High, note(BLOCK, 4)).unwrap();
    let published = tx.try_publish_with_priority(High, note(BLOCK, 5));
    assert_eq!(published.unwrap_err().reason, Reason::Refused);
    assert_eq!(rx.recv().unwrap().message.value, 4);
    check_totals(&bus.totals());
}

#[test]
fn a_drain_delivers_both_and_a_stop_discards_both() {
    for is_drained in [true, false] {
        let bus = bus(8);
        let mut rx = express(&bus, High, 4);
        let mut tx = bus.publisher("p").unwrap();
        tx.publish(note(BLOCK, 1)).unwrap();
        tx.publish_with_priority(High, note(BLOCK, 2)).unwrap();
        tx.publish(note(OLDEST, 3)).unwrap();
        let values = if is_drained {
            assert!(bus.close() && bus.state().is(Lifecycle::Draining));
            taken(&mut rx).iter().map(|one| one.0).collect()
        } else {
            assert!(bus.stop());
            assert_eq!(sum(bus.totals().outcomes.discarded), 3);
            vec![]
        };
        let expected: &[u64] = if is_drained { &[2, 1, 3] } else { &[] };
        assert_eq!(values, expected);
        assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
        assert!(bus.state().is(Lifecycle::Stopped));
        check_totals(&bus.totals());
    }
}

#[test]
fn what_is_in_the_lane_is_discarded_with_its_last_consumer() {
    let bus = bus(8);
    let rx = express(&bus, High, 4);
    let mut tx = bus.publisher("p").unwrap();
    for priority in Priority::ALL {
        tx.publish_with_priority(priority, note(BLOCK, 0)).unwrap();
    }
    let second = rx.share();
    drop(rx);
    assert_eq!(sum(bus.totals().outcomes.discarded), 0);
    drop(second);
    assert_eq!(bus.totals().outcomes.discarded, [1; 4]);
    check_totals(&bus.totals());
}

/// Both rings are closed before the first message of either is dropped.
#[test]
fn what_is_dropped_with_the_last_consumer_may_publish() {
    watched(|| {
        let mut world = World::with(false, 4);
        let options = world.bus.subscription(Topics::ALL).express(High, 1);
        let rx = options.open().unwrap();
        assert!(!world.publish(TRAP, 1));
        let second = world.trap(TRAP, 2);
        assert!(world.tx.publish_with_priority(High, second).is_ok());
        let other = Mutex::new(world.bus.publisher("other").unwrap());
        world.hooks.set(move |moment, value| {
            if (moment, value) == (Moment::Drop, 1) {
                let sent = Trap::new(TRAP, 3);
                assert_eq!(
                    other.lock().unwrap().publish_with_priority(High, sent).ok(),
                    Some(0)
                );
            }
        });
        drop(rx);
        assert_eq!(sum(world.bus.totals().outcomes.discarded), 2);
        check_totals(&world.bus.totals());
    });
}

#[test]
fn what_cannot_be_is_refused() {
    let bus = bus(8);
    let open = |from, messages| {
        let options = bus.subscription(Topics::ALL).express(from, messages);
        options.open().map(drop)
    };
    assert_eq!(open(Low, 4), Err(BusError::Express));
    for messages in [0, usize::MAX] {
        assert_eq!(open(High, messages), Err(BusError::Capacity(messages)));
    }
    let message = BusError::Express.to_string();
    assert!(
        message.starts_with("an express lane needs a priority above low"),
        "{message}"
    );
    // Admission does not apply to the lane.
    let options = bus.subscription(Topics::ALL).express(High, 3);
    let rx = options.admission(Admission::percent(10, 50, 50)).open();
    assert_eq!(rx.unwrap().limits(), [1, 4, 3, 3]);
}
