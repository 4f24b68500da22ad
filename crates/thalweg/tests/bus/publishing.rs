//! Delivery of messages to inboxes, in one thread.

use crate::bus::check_totals;
use crate::bus::note::{BLOCK, Note, OLDEST, REJECT, bus, note};
use std::time::Duration;
use thalweg::bus::{Admission, Bus, Message, Priority, Reason, TopicId, TopicInfo, Topics};
use thalweg::channel::{RecvTimeoutError, TryRecvError};

#[test]
fn each_consumer_gets_its_topics() {
    let bus = bus(8);
    let mut all = bus.subscribe(Topics::ALL).unwrap();
    let mut some = bus.subscribe(Topics::of(&[REJECT])).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    assert_eq!(tx.publish(note(BLOCK, 1)).unwrap(), 1);
    assert_eq!(tx.publish(note(REJECT, 2)).unwrap(), 2);
    assert_eq!(
        tx.publish_with_priority(Priority::High, note(REJECT, 3))
            .unwrap(),
        2
    );
    let got = [(); 3].map(|()| all.recv().unwrap());
    assert_eq!(got.each_ref().map(|got| got.message.value), [1, 2, 3]);
    assert_eq!(got.each_ref().map(|got| got.sequence), [0, 0, 1]);
    let [medium, low, high] = [Priority::Medium, Priority::Low, Priority::High];
    assert_eq!(got.each_ref().map(|got| got.priority), [medium, low, high]);
    assert_eq!(got[0].publisher, tx.id());
    assert_eq!((tx.name(), tx.next_sequence(REJECT)), ("feed", 2));
    assert_eq!(some.recv().unwrap().message, note(REJECT, 2));
    assert_eq!(some.recv().unwrap().message, note(REJECT, 3));
    for rx in [&mut all, &mut some] {
        assert_eq!(rx.try_recv().unwrap_err(), TryRecvError::Empty);
        let timeout = rx.recv_timeout(Duration::ZERO).unwrap_err();
        assert_eq!(timeout, RecvTimeoutError::Timeout);
    }
    check_totals(&bus.totals());
    assert_eq!(all.counts().delivered, [1, 1, 1, 0]);
}

#[test]
fn a_publish_without_consumers_is_no_error() {
    let bus = bus(8);
    let mut tx = bus.publisher("feed").unwrap();
    assert_eq!(tx.publish(note(BLOCK, 1)).unwrap(), 0);
    let mut rx = bus.subscribe(Topics::of(&[OLDEST])).unwrap();
    assert_eq!(tx.publish(note(BLOCK, 1)).unwrap(), 0);
    assert_eq!(tx.publish(note(OLDEST, 2)).unwrap(), 1);
    assert_eq!(rx.recv().unwrap().message.value, 2);
}

#[test]
fn a_refused_message_comes_back() {
    let bus = Bus::<Note>::builder()
        .capacity(2)
        .admission(Admission::percent(50, 50, 50));
    let bus = bus.build().unwrap();
    let mut small = bus.subscribe(Topics::ALL).unwrap();
    let large = bus.subscription(Topics::ALL).capacity(16);
    let large = large.open().unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    for topic in [BLOCK, REJECT] {
        assert_eq!(tx.publish(note(topic, 1)).unwrap(), 2);
        let error = tx.try_publish(note(topic, 2)).unwrap_err();
        assert_eq!((error.reason, error.admitted), (Reason::Refused, 1));
        assert_eq!(error.message, note(topic, 2));
        let text = "there is no room for a message of this priority";
        assert_eq!(error.to_string(), text);
        assert_eq!(small.recv().unwrap().lost_before, 0);
        assert_eq!(tx.try_publish(note(topic, 3)).unwrap(), 2);
        let got = small.recv().unwrap();
        assert_eq!(
            (got.message.value, got.sequence, got.lost_before),
            (3, 2, 1)
        );
    }
    assert_eq!(large.counts().waiting, 6);
    check_totals(&bus.totals());
}

#[test]
fn no_room_in_time_is_a_loss() {
    let bus = bus(1);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    tx.publish(note(BLOCK, 1)).unwrap();
    let error = tx.publish_timeout(note(BLOCK, 2), Duration::from_micros(50));
    assert_eq!(error.unwrap_err().reason, Reason::TimedOut);
    // Where the policy is to reject, there is no wait.
    let error = tx.publish_timeout(note(REJECT, 2), Duration::MAX);
    assert_eq!(error.unwrap_err().reason, Reason::Refused);
    assert_eq!(rx.recv().unwrap().lost_before, 0);
    for topic in [BLOCK, REJECT] {
        tx.publish(note(topic, 3)).unwrap();
        assert_eq!(rx.recv().unwrap().lost_before, 1);
    }
    let outcomes = rx.publisher_counts()[0].outcomes;
    assert_eq!(
        (outcomes.timed_out, outcomes.refused),
        ([0, 1, 0, 0], [1, 0, 0, 0])
    );
    check_totals(&bus.totals());
}

#[test]
fn batches_are_received() {
    let bus = bus(16);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    for n in 0..7 {
        tx.publish(note(REJECT, n)).unwrap();
    }
    let mut got = Vec::new();
    assert_eq!(rx.wait_each(0, |_| panic!("none is asked for")).unwrap(), 0);
    assert_eq!(rx.wait_each(3, |d| got.push(d.sequence)).unwrap(), 3);
    assert_eq!(rx.try_recv_each(2, |d| got.push(d.sequence)), Ok(2));
    assert_eq!(rx.wait_each(9, |d| got.push(d.sequence)).unwrap(), 2);
    assert_eq!(
        rx.try_recv_each(9, |_| panic!("all were taken")),
        Err(TryRecvError::Empty)
    );
    assert_eq!(got, [0, 1, 2, 3, 4, 5, 6]);
    let busy = rx.counts().busy_ns;
    assert_eq!(rx.counts().busy_ns, busy, "it waits");
    assert_eq!(rx.counts().taken(), 7);
}

#[derive(Clone)]
struct Bad;

impl Message for Bad {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("only")];

    fn topic(&self) -> TopicId {
        TopicId::new(1)
    }
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn a_topic_that_is_not_there_is_a_panic() {
    let bus = Bus::<Bad>::new().unwrap();
    let _ = bus.publisher("feed").unwrap().publish(Bad);
}
