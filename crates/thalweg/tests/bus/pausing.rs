//! The control state: pausing, going on, and coming to the end.

use crate::bus::check_totals;
use crate::bus::note::{BLOCK, CONFLATE, Note, OLDEST, REJECT, bus, keyed, note};
use crate::bus::watchdog::watched;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use thalweg::bus::{Bus, PublishError, Reason, Topics};
use thalweg::state::Lifecycle;

type Outcome = Result<usize, PublishError<Note>>;

#[test]
fn publishers_that_do_not_wait_get_messages_back_from_a_paused_bus() {
    let bus = bus(8);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    assert!(bus.pause() && !bus.pause());
    assert!(bus.state().is(Lifecycle::Paused));
    let check = |outcome: Outcome, topic| {
        let error = outcome.unwrap_err();
        assert_eq!(
            (error.reason, error.message, error.admitted),
            (Reason::Paused, note(topic, 1), 0)
        );
    };
    for topic in [REJECT, OLDEST, CONFLATE] {
        check(tx.publish(note(topic, 1)), topic);
    }
    check(tx.try_publish(note(BLOCK, 1)), BLOCK);
    let timeout = Duration::from_millis(1);
    check(tx.publish_timeout(note(BLOCK, 1), timeout), BLOCK);
    assert_eq!(bus.totals().outcomes.issued, [0; 4]);
    assert!(bus.resume() && !bus.resume());
    for topic in [BLOCK, REJECT, OLDEST] {
        tx.publish(note(topic, 1)).unwrap();
        let got = rx.recv().unwrap();
        assert_eq!((got.sequence, got.lost_before), (0, 0));
    }
    check_totals(&bus.totals());
}

#[test]
fn consumers_get_what_is_there_while_the_bus_is_paused() {
    let bus = bus(8);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    tx.publish(note(BLOCK, 1)).unwrap();
    tx.publish(keyed(CONFLATE, 1, 2)).unwrap();
    bus.pause();
    assert_eq!(rx.try_recv_each(9, drop), Ok(2));
    let mut late = bus.subscribe(Topics::ALL).unwrap();
    bus.resume();
    assert_eq!(tx.publish(note(BLOCK, 3)).unwrap(), 2);
    assert_eq!(late.recv().unwrap().message.value, 3);
}

/// Publishers that wait for the end of a pause, which comes as `end`; all handles stay.
fn who_is_held_back(end: fn(&Bus<Note>) -> bool, check: fn(Outcome)) {
    for _ in 0..200 {
        let bus = bus(64);
        let rx = bus.subscribe(Topics::ALL).unwrap();
        bus.pause();
        let (done, dones) = mpsc::channel();
        let threads = [Duration::from_secs(600), Duration::MAX].map(|timeout| {
            let mut tx = bus.publisher("held").unwrap();
            let done = done.clone();
            thread::spawn(move || {
                done.send(tx.publish_timeout(note(BLOCK, 1), timeout))
                    .unwrap();
                done.send(tx.publish(note(BLOCK, 2))).unwrap();
                tx
            })
        });
        assert!(end(&bus));
        (0..4).for_each(|_| check(dones.recv().unwrap()));
        let _stay = threads.map(|thread| thread.join().unwrap());
        check_totals(&bus.totals());
        drop(rx);
    }
}

#[test]
fn a_resume_reaches_who_is_held_back() {
    watched(|| who_is_held_back(Bus::resume, |outcome| assert_eq!(outcome.unwrap(), 1)));
}

fn check_closed(outcome: Outcome) {
    assert_eq!(outcome.unwrap_err().reason, Reason::Closed);
}

#[test]
fn a_drain_reaches_who_is_held_back() {
    watched(|| who_is_held_back(Bus::close, check_closed));
}

#[test]
fn a_stop_reaches_who_is_held_back() {
    watched(|| who_is_held_back(Bus::stop, check_closed));
}

/// The bus is paused again and again, and every publisher gets through in the end.
#[test]
fn pauses_under_load_lose_nothing() {
    const EACH: u64 = 2_000;
    watched(|| {
        let bus = bus(16);
        let mut rx = bus.subscribe(Topics::ALL).unwrap();
        let threads = ["a", "b"].map(|name| {
            let mut tx = bus.publisher(name).unwrap();
            thread::spawn(move || {
                for n in 0..EACH {
                    assert_eq!(tx.publish(note(BLOCK, n)).unwrap(), 1);
                }
                tx
            })
        });
        let pausing = thread::spawn({
            let bus = bus.clone();
            move || {
                while !threads.iter().all(thread::JoinHandle::is_finished) {
                    bus.pause();
                    thread::yield_now();
                    bus.resume();
                    thread::yield_now();
                }
                threads.map(|thread| thread.join().unwrap())
            }
        });
        for _ in 0..2 * EACH {
            assert_eq!(rx.recv().unwrap().lost_before, 0);
        }
        let publishers = pausing.join().unwrap();
        check_totals(&bus.totals());
        drop(publishers);
    });
}

#[test]
fn the_state_has_its_history_and_can_be_waited_for() {
    watched(|| {
        let bus = bus(8);
        let mut rx = bus.subscribe(Topics::ALL).unwrap();
        let other = rx.share();
        let mut tx = bus.publisher("feed").unwrap();
        for topic in [BLOCK, OLDEST, OLDEST] {
            tx.publish(note(topic, 1)).unwrap();
        }
        let waiting = thread::spawn({
            let bus = bus.clone();
            move || bus.state().wait_for(Lifecycle::Stopped)
        });
        bus.pause();
        bus.resume();
        bus.close();
        for _ in 0..3 {
            assert!(bus.state().is(Lifecycle::Draining));
            rx.recv().unwrap();
        }
        rx.recv().unwrap_err();
        waiting.join().unwrap().unwrap();
        let changes = bus.state().changes();
        let history = changes.iter().map(|change| (change.to.name(), change.why));
        assert_eq!(
            history.collect::<Vec<_>>(),
            [
                ("running", "built"),
                ("paused", "paused"),
                ("running", "resumed"),
                ("draining", "closed"),
                ("stopped", "every inbox is empty"),
            ]
        );
        drop(other);
    });
}

#[test]
fn a_bus_that_drains_stops_when_its_last_consumer_goes() {
    let bus = bus(8);
    let rx = bus.subscribe(Topics::ALL).unwrap();
    bus.publisher("feed")
        .unwrap()
        .publish(note(BLOCK, 1))
        .unwrap();
    let state = bus.clone();
    let state = state.state();
    bus.close();
    assert!(state.is(Lifecycle::Draining));
    drop(rx);
    assert!(state.is(Lifecycle::Stopped));
}
