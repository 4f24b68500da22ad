//! loom models of a meeting. A lost wake-up is a deadlock, which loom reports.

use super::*;
use crate::channel::error::SendTimeoutError;
use crate::ring::sync::fault;
use crate::wait::{Mode, Pace, Signal};
use loom::thread;
// A model's own can't be dropped where it has failed.
use std::sync::Arc;
use std::time::Instant;

struct Shared {
    meeting: Meeting<u32>,
    watchers: Signal,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            meeting: Meeting::new(),
            watchers: Signal::new(),
        })
    }

    fn send(&self, value: u32, deadline: Option<Instant>) -> Result<(), SendTimeoutError<u32>> {
        let mut pace = Pace::new(Mode::Power);
        self.meeting.send(value, &mut pace, deadline)
    }

    fn recv(&self, deadline: Option<Instant>) -> Option<u32> {
        let mut pace = Pace::new(Mode::Power);
        self.meeting.recv(&mut pace, deadline, &self.watchers).ok()
    }

    fn is_empty(&self) -> bool {
        !self.meeting.can_pop() && !self.meeting.can_push()
    }
}

fn spawn<R: 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) -> R + 'static,
) -> thread::JoinHandle<R> {
    let shared = Arc::clone(shared);
    thread::spawn(move || work(&shared))
}

fn one_meets_one() {
    let shared = Shared::new();
    let sender = spawn(&shared, |shared| shared.send(7, None));
    assert_eq!(shared.recv(None), Some(7));
    assert_eq!(sender.join().unwrap(), Ok(()));
    assert!(shared.is_empty());
}

#[test]
fn a_sender_and_a_receiver_meet() {
    loom::model(one_meets_one);
}

#[test]
fn a_sender_that_lists_itself_without_looking_is_caught() {
    assert!(fault::caught("meeting_look", one_meets_one));
}

/// In a model a deadline may be reached at any moment.
#[test]
fn both_sides_agree_whether_they_met() {
    loom::model(|| {
        let shared = Shared::new();
        let now = Some(Instant::now());
        let sender = spawn(&shared, move |shared| shared.send(7, now));
        let got = shared.recv(now);
        let sent = sender.join().unwrap();
        match got {
            Some(value) => assert_eq!((value, sent), (7, Ok(()))),
            None => assert_eq!(sent, Err(SendTimeoutError::Timeout(7))),
        }
        assert!(shared.is_empty());
    });
}

/// As a dropped future does, while another receiver waits.
fn a_cancelled_receiver() {
    let shared = Shared::new();
    let Wished::Listed(seat) = shared.meeting.wish(Waker::noop(), None) else {
        unreachable!("nobody is there");
    };
    let sender = spawn(&shared, |shared| shared.meeting.try_push(7).is_ok());
    let cancelled = spawn(&shared, move |shared| {
        shared.meeting.cancel_recv(Some(seat));
    });
    let got = shared.recv(Some(Instant::now()));
    let is_sent = sender.join().unwrap();
    cancelled.join().unwrap();
    let left = shared.meeting.try_pop_at().ok().map(|(_, value)| value);
    let there = [got, left].into_iter().flatten().count();
    assert_eq!(there, usize::from(is_sent), "neither lost nor doubled");
    assert!(shared.is_empty());
}

#[test]
fn a_cancelled_receiver_loses_nothing() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(a_cancelled_receiver);
}

#[test]
fn an_element_that_is_not_given_back_is_caught() {
    assert!(fault::caught("meeting_give_back", a_cancelled_receiver));
}

#[test]
fn closing_ends_a_wait_or_comes_too_late() {
    loom::model(|| {
        let shared = Shared::new();
        let sender = spawn(&shared, |shared| shared.send(7, None));
        let closer = spawn(&shared, |shared| shared.meeting.close());
        let got = shared.recv(None);
        closer.join().unwrap();
        match got {
            Some(value) => assert_eq!((value, sender.join().unwrap()), (7, Ok(()))),
            None => assert_eq!(
                sender.join().unwrap(),
                Err(SendTimeoutError::Disconnected(7))
            ),
        }
    });
}
