//! Publishing in tasks.

use crate::bus::note::{BLOCK, CONFLATE, Note, REJECT, RETAINED, bus, note};
use crate::bus::watchdog::watched;
use crate::bus::{check_totals, sum};
use futures_executor::block_on;
use std::pin::pin;
use std::task::Poll;
use std::thread;
use thalweg::bus::{
    Bus, Consumer, Message, Priority, Reason, TopicId, TopicInfo, TopicOverflow, Topics,
};
use thalweg::channel::RecvError;
use thalweg::state::Lifecycle;
use thalweg_testkit::wakers::{Alarm, poll_once};

fn is_send<F: Future + Send>(future: F) -> F {
    future
}

#[test]
fn a_dropped_future_has_published_nothing() {
    let bus = bus(4);
    let (mut rx, mut other) = (
        bus.subscribe(Topics::ALL).unwrap(),
        bus.subscribe(Topics::ALL).unwrap(),
    );
    let mut tx = bus.publisher("feed").unwrap();
    (0..3).for_each(|n| assert_eq!(tx.publish(note(BLOCK, n)).unwrap(), 2));
    // Room in one of the two.
    rx.recv().unwrap();
    let figures = || {
        let totals = bus.totals();
        (totals.outcomes, totals.consumers.waiting)
    };
    let before = figures();
    {
        let mut future = pin!(is_send(tx.publish_async(note(BLOCK, 9))));
        assert!(poll_once(&mut future).is_pending());
    }
    assert_eq!(figures(), before);
    assert_eq!(tx.next_sequence(BLOCK), 3);
    other.recv().unwrap();
    assert_eq!(tx.publish(note(BLOCK, 3)).unwrap(), 2);
    for (rx, left) in [(&mut rx, 3), (&mut other, 3)] {
        let mut next = 4 - left;
        let _ = rx.try_recv_each(9, |got| {
            assert_eq!(
                (got.sequence, got.message.value, got.lost_before),
                (next, next, 0)
            );
            next += 1;
        });
        assert_eq!(next, 4);
    }
    check_totals(&bus.totals());
}

#[test]
fn a_future_is_done_when_there_is_room_everywhere() {
    let bus = bus(1);
    let (mut rx, mut other) = (
        bus.subscribe(Topics::ALL).unwrap(),
        bus.subscribe(Topics::ALL).unwrap(),
    );
    let mut tx = bus.publisher("feed").unwrap();
    tx.publish_with_priority(Priority::Critical, note(BLOCK, 0))
        .unwrap();
    let alarm = Alarm::new();
    let mut future = pin!(tx.publish_with_priority_async(Priority::Critical, note(BLOCK, 1)));
    assert!(alarm.poll(&mut future).is_pending());
    rx.recv().unwrap();
    assert_eq!(alarm.count(), 1);
    assert!(alarm.poll(&mut future).is_pending());
    // Another publisher is faster, in the inbox that had room.
    let mut fast = bus.publisher("fast").unwrap();
    let error = fast
        .try_publish_with_priority(Priority::Critical, note(BLOCK, 7))
        .unwrap_err();
    assert_eq!(error.admitted, 1);
    other.recv().unwrap();
    assert!(alarm.poll(&mut future).is_pending());
    assert_eq!(rx.recv().unwrap().message.value, 7);
    let Poll::Ready(published) = alarm.poll(&mut future) else {
        panic!("there is room everywhere");
    };
    assert_eq!(published.unwrap(), 2);
    assert_eq!(rx.recv().unwrap().message.value, 1);
    assert_eq!(other.recv().unwrap().message.value, 1);
    check_totals(&bus.totals());
}

#[test]
fn a_task_gets_the_same_outcomes_as_a_thread() {
    // Low priority fills 4 of 8.
    let bus = bus(8);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    block_on(async {
        for topic in [BLOCK, REJECT, CONFLATE, RETAINED] {
            assert_eq!(tx.publish_async(note(topic, 1)).await.unwrap(), 1);
        }
        let error = tx.publish_async(note(REJECT, 2)).await.unwrap_err();
        assert_eq!(
            (error.reason, error.message),
            (Reason::Refused, note(REJECT, 2))
        );
        bus.pause();
        let error = tx.publish_async(note(REJECT, 3)).await.unwrap_err();
        assert_eq!(error.reason, Reason::Paused);
        {
            let mut future = pin!(tx.publish_async(note(BLOCK, 4)));
            assert!(poll_once(&mut future).is_pending());
            bus.resume();
            let _ = rx.try_recv_each(9, drop);
            assert_eq!(future.await.unwrap(), 1);
        }
        let published = tx
            .publish_with_priority_async(Priority::Low, note(BLOCK, 5))
            .await;
        assert_eq!(published.unwrap(), 1);
        bus.close();
        let error = tx.publish_async(note(BLOCK, 6)).await.unwrap_err();
        assert_eq!(error.reason, Reason::Closed);
    });
    assert_eq!(rx.try_recv_each(9, drop), Ok(2));
    check_totals(&bus.totals());
}

/// A message whose topic is retained, and blocks.
#[derive(Clone, Debug, PartialEq)]
struct Price(u64);

impl Message for Price {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo {
        overflow: TopicOverflow::Block,
        is_retained: true,
        ..TopicInfo::new("price")
    }];

    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

#[test]
fn a_message_is_retained_when_it_is_published() {
    let bus = Bus::<Price>::builder().capacity(2).build().unwrap();
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    block_on(tx.publish_async(Price(1))).unwrap();
    {
        let mut future = pin!(tx.publish_async(Price(2)));
        assert!(poll_once(&mut future).is_pending());
    }
    let late = || {
        bus.subscription(Topics::ALL)
            .replay_retained()
            .open()
            .unwrap()
    };
    let first = late().recv().unwrap();
    assert!(first.is_replay && first.message == Price(1));
    rx.recv().unwrap();
    assert_eq!(block_on(tx.publish_async(Price(3))).unwrap(), 1);
    let second = late().recv().unwrap();
    assert_eq!((second.message, second.sequence), (Price(3), 1));
}

#[test]
fn tasks_and_threads_share_little_room() {
    const EACH: u64 = 1_000;
    watched(|| {
        let bus = bus(3);
        let mut consumers = [(); 2].map(|()| bus.subscribe(Topics::of(&[BLOCK])).unwrap());
        let threads = [true, true, false].map(|is_task| {
            let mut tx = bus.publisher("stream").unwrap();
            thread::spawn(move || {
                for n in 0..EACH {
                    let published = match is_task {
                        true => block_on(tx.publish_async(note(BLOCK, n))),
                        false => tx.publish(note(BLOCK, n)),
                    };
                    assert_eq!(published.unwrap(), 2);
                }
                tx
            })
        });
        let check = |rx: &mut thalweg::bus::Consumer<Note>| {
            let mut next = [0; 3];
            for _ in 0..3 * EACH {
                let got = rx.recv().unwrap();
                let next = &mut next[got.publisher.index()];
                assert_eq!(
                    (got.sequence, got.message.value, got.lost_before),
                    (*next, *next, 0)
                );
                *next += 1;
            }
        };
        thread::scope(|scope| {
            for rx in &mut consumers {
                scope.spawn(move || check(rx));
            }
        });
        let publishers = threads.map(|thread| thread.join().unwrap());
        assert_eq!(sum(bus.totals().outcomes.admitted), 6 * EACH);
        check_totals(&bus.totals());
        drop(publishers);
    });
}

/// The bus stops with the last consumer that gets the end: messages that waited elsewhere are taken
/// by then.
#[test]
fn a_task_that_gets_the_end_stops_the_bus() {
    let bus = bus(4);
    let [mut rx, mut other] = [BLOCK, REJECT].map(|topic| {
        let topics = Topics::of(&[topic]);
        bus.subscribe(topics).unwrap()
    });
    let state = bus.state();
    let mut future = pin!(rx.recv_async());
    assert!(poll_once(&mut future).is_pending());
    let mut tx = bus.publisher("feed").unwrap();
    tx.publish(note(REJECT, 1)).unwrap();
    bus.close();
    assert_eq!(other.try_recv().unwrap().message.value, 1);
    assert!(state.is(Lifecycle::Draining));
    assert_eq!(poll_once(&mut future), Poll::Ready(Err(RecvError)));
    assert!(state.is(Lifecycle::Stopped));
}

/// Futures that are forgotten: all ends stay.
#[test]
fn a_forgotten_receive_keeps_nothing_from_its_group() {
    watched(|| {
        let bus = bus(4);
        let mut rx = bus.subscribe(Topics::ALL).unwrap();
        let mut tx = bus.publisher("feed").unwrap();
        let mut other = rx.share();
        let forget_receive = |rx: &mut Consumer<Note>| {
            let mut future = Box::pin(rx.recv_async());
            assert!(poll_once(&mut future).is_pending());
            crate::forgotten::forget(future);
        };
        forget_receive(&mut rx);
        assert!(rx.try_recv().is_err());
        let alarm = Alarm::new();
        let mut future = Box::pin(other.recv_async());
        assert!(alarm.poll(&mut future).is_pending());
        tx.publish(note(BLOCK, 0)).unwrap();
        assert_eq!(alarm.count(), 1);
        assert!(alarm.poll(&mut future).is_ready());
        drop(future);
        // A thread is woken though the receiver is not used again.
        forget_receive(&mut rx);
        let thread = thread::spawn(move || (other.recv().unwrap().message.value, other));
        tx.publish(note(BLOCK, 1)).unwrap();
        assert_eq!(thread.join().unwrap().0, 1);
        drop(rx);
    });
}

#[test]
fn a_forgotten_publish_keeps_no_room_from_others() {
    watched(|| {
        let bus = bus(4);
        let mut rx = bus.subscribe(Topics::ALL).unwrap();
        let (mut tx, mut other) = (bus.publisher("a").unwrap(), bus.publisher("b").unwrap());
        while tx.try_publish(note(BLOCK, 0)).is_ok() {}
        let mut future = Box::pin(tx.publish_async(note(BLOCK, 9)));
        assert!(poll_once(&mut future).is_pending());
        crate::forgotten::forget(future);
        let alarm = Alarm::new();
        let mut future = Box::pin(other.publish_async(note(BLOCK, 2)));
        assert!(alarm.poll(&mut future).is_pending());
        rx.recv().unwrap();
        assert_eq!(alarm.count(), 1);
        assert!(alarm.poll(&mut future).is_ready());
        drop(future);
        let thread = thread::spawn(move || (tx.publish(note(BLOCK, 3)).unwrap(), tx));
        rx.recv().unwrap();
        assert_eq!(thread.join().unwrap().0, 1);
    });
}
