//! Ends: of consumers, of publishers, of the bus.

use crate::bus::note::{BLOCK, CONFLATE, Note, OLDEST, REJECT, bus, keyed, note};
use crate::bus::{check_totals, sum, watchdog::watched};
use std::sync::Arc;
use std::thread;
use thalweg::bus::{Bus, Message, Reason, TopicId, TopicInfo, Topics};
use thalweg::channel::{RecvError, TryRecvError};
use thalweg::state::Lifecycle;

#[test]
fn publishers_go_on_without_a_consumer_that_went() {
    let bus = bus(8);
    let gone = bus.subscribe(Topics::ALL).unwrap();
    let mut stays = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    for topic in [BLOCK, OLDEST, CONFLATE] {
        assert_eq!(tx.publish(keyed(topic, 0, 0)).unwrap(), 2);
    }
    drop(gone);
    for topic in [BLOCK, OLDEST, CONFLATE] {
        assert_eq!(tx.publish(keyed(topic, 1, 1)).unwrap(), 1);
    }
    assert_eq!(
        stays.try_recv_each(9, |got| assert_eq!(got.lost_before, 0)),
        Ok(6)
    );
    let totals = bus.totals();
    assert_eq!(
        (sum(totals.outcomes.issued), sum(totals.outcomes.discarded)),
        (9, 3)
    );
    check_totals(&totals);
    drop(tx);
    assert_eq!(bus.totals(), totals);
}

#[test]
fn a_drained_bus_delivers_what_it_has() {
    let bus = bus(8);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    tx.publish(note(REJECT, 1)).unwrap();
    assert_eq!(bus.state().get(), Lifecycle::Running);
    assert!(bus.close() && !bus.close() && !bus.pause() && !bus.resume());
    assert_eq!(bus.state().get(), Lifecycle::Draining);
    for topic in [BLOCK, REJECT, OLDEST] {
        let error = tx.publish(note(topic, 2)).unwrap_err();
        assert_eq!(
            (error.reason, error.message),
            (Reason::Closed, note(topic, 2))
        );
    }
    assert_eq!(rx.recv().unwrap().message.value, 1);
    assert_eq!(rx.recv(), Err(RecvError));
    assert_eq!(rx.try_recv().unwrap_err(), TryRecvError::Disconnected);
    assert_eq!(rx.try_recv_each(9, drop), Err(TryRecvError::Disconnected));
    assert_eq!(rx.try_recv_each(0, drop), Ok(0));
    assert_eq!(bus.state().get(), Lifecycle::Stopped);
    check_totals(&bus.totals());
}

#[test]
fn a_stopped_bus_discards_what_it_has() {
    let bus = bus(8);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    for topic in [REJECT, OLDEST, OLDEST] {
        tx.publish(note(topic, 1)).unwrap();
    }
    assert!(bus.stop() && !bus.stop() && !bus.close());
    assert_eq!(
        (rx.recv(), bus.state().get()),
        (Err(RecvError), Lifecycle::Stopped)
    );
    let totals = bus.totals();
    assert_eq!(totals.outcomes.discarded, [1, 2, 0, 0]);
    check_totals(&totals);
}

#[test]
fn the_last_handle_drains() {
    let bus = bus(8);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    drop(bus.clone());
    drop(bus);
    tx.publish(note(REJECT, 1)).unwrap();
    drop(tx);
    assert_eq!(rx.recv().unwrap().message.value, 1);
    assert_eq!(rx.recv(), Err(RecvError));
}

/// One thread ends the bus for which another one waits; handles stay.
fn an_end_reaches_who_waits(end: fn(&Bus<Note>)) {
    for _ in 0..100 {
        let bus = bus(1);
        let rx = bus.subscribe(Topics::of(&[BLOCK])).unwrap();
        let mut idle = bus.subscribe(Topics::of(&[REJECT])).unwrap();
        let mut tx = bus.publisher("feed").unwrap();
        tx.publish(note(BLOCK, 1)).unwrap();
        let publishing = thread::spawn(move || (tx.publish(note(BLOCK, 2)), tx));
        let receiving = thread::spawn(move || (idle.recv(), idle));
        end(&bus);
        let (published, _tx) = publishing.join().unwrap();
        assert_eq!(published.unwrap_err().reason, Reason::Closed);
        let (received, _idle) = receiving.join().unwrap();
        assert_eq!(received, Err(RecvError));
        check_totals(&bus.totals());
        drop(rx);
    }
}

#[test]
fn a_drain_reaches_who_waits() {
    watched(|| an_end_reaches_who_waits(|bus| assert!(bus.close())));
}

#[test]
fn a_stop_reaches_who_waits() {
    watched(|| {
        an_end_reaches_who_waits(|bus| {
            // A publisher that waits for the room that this makes may still get it.
            bus.close();
            assert!(bus.stop());
        });
    });
}

#[test]
fn a_consumer_that_goes_frees_who_waits_for_it() {
    watched(|| {
        for _ in 0..100 {
            let bus = bus(1);
            let rx = bus.subscribe(Topics::of(&[BLOCK])).unwrap();
            let mut tx = bus.publisher("feed").unwrap();
            tx.publish(note(BLOCK, 1)).unwrap();
            let publishing = thread::spawn(move || (tx.publish(note(BLOCK, 2)), tx));
            drop(rx);
            let (published, mut tx) = publishing.join().unwrap();
            assert_eq!(published.unwrap(), 0);
            assert_eq!(tx.publish(note(BLOCK, 3)).unwrap(), 0);
            check_totals(&bus.totals());
        }
    });
}

/// A message that can be counted.
#[derive(Clone)]
struct Held(Arc<()>);

impl Message for Held {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("held")];

    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

#[test]
fn a_panic_in_a_consumer_takes_nothing_along() {
    let bus = Bus::<Held>::new().unwrap();
    let (mut bad, mut good) = (
        bus.subscribe(Topics::ALL).unwrap(),
        bus.subscribe(Topics::ALL).unwrap(),
    );
    let mut tx = bus.publisher("feed").unwrap();
    let alive = Arc::new(());
    for _ in 0..4 {
        tx.publish(Held(Arc::clone(&alive))).unwrap();
    }
    assert_eq!(Arc::strong_count(&alive), 9);
    let outcome = thread::spawn(move || bad.try_recv_each(9, |_| panic!("a bad consumer")));
    outcome.join().unwrap_err();
    assert_eq!(Arc::strong_count(&alive), 5, "what it had is gone");
    assert_eq!(tx.publish(Held(Arc::clone(&alive))).unwrap(), 1);
    let check = |held: Held| assert!(Arc::ptr_eq(&held.0, &alive));
    assert_eq!(good.try_recv_each(9, |got| check(got.message)), Ok(5));
    assert_eq!(Arc::strong_count(&alive), 1);
    check_totals(&bus.totals());
}
