//! Several elements at a time.

use crate::channel::flavour::{Flavour, Made};
use thalweg::channel::SendError;

pub(crate) fn try_forms_stop_where_room_ends<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(3);
    let mut values = 0..;
    let error = tx.try_send_many(&mut values).unwrap_err();
    assert_eq!((error.sent, error.error), (3, SendError::Full(3)));
    assert_eq!(
        values.next(),
        Some(4),
        "what comes behind it is not asked for"
    );
    let error = tx.try_send_many(&mut values).unwrap_err();
    assert_eq!((error.sent, error.error), (0, SendError::Full(5)));
    assert_eq!(tx.try_send_many([]), Ok(0));
    assert_eq!(rx.recv(), Ok(0));
    assert_eq!(tx.try_send_many([7, 8, 9]).unwrap_err().sent, 1);
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), [1, 2, 7]);
    assert_eq!(tx.try_send_many([1, 2, 3, 4]).unwrap_err().sent, 3);
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

/// A batch that is larger than the channel waits for room as often as it must.
pub(crate) fn batches_larger_than_the_channel<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(7);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            tx.send_many(0..1000).unwrap();
        });
        assert!(rx.iter().eq(0..1000));
    });
}

pub(crate) fn a_batch_into_a_channel_that_closes_reports_how_far_it_came<S: Made>(
    flavour: Flavour<S>,
) {
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let mut values = 0..;
            let error = tx.send_many(&mut values).unwrap_err();
            (error, values.next())
        });
        let received = rx.iter().take(10).count();
        rx.close();
        let rest = rx.iter().count();
        let (error, next) = sender.join().unwrap();
        let sent = (received + rest + rx.try_iter().count()) as u32;
        assert_eq!(error.sent, sent as usize);
        assert_eq!(error.error, SendError::Disconnected(sent));
        assert_eq!(
            next,
            Some(sent + 1),
            "what comes behind it is not asked for"
        );
        let text =
            format!("sending into a channel without receivers, after {sent} elements of a batch");
        assert_eq!(error.to_string(), text);
    });
}

/// `Iterator`s that say nothing about their length, or lie.
pub(crate) fn iterators_of_unknown_length<S: Made>(flavour: Flavour<S>) {
    struct Liar(u32, (usize, Option<usize>));
    impl Iterator for Liar {
        type Item = u32;
        fn next(&mut self) -> Option<u32> {
            self.0 = self.0.checked_sub(1)?;
            Some(self.0)
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            self.1
        }
    }
    let (mut tx, mut rx) = flavour.channel::<u32>(8);
    for _ in 0..20 {
        tx.send_many((0..9).filter(|n| n % 3 == 0)).unwrap();
        assert_eq!(rx.try_iter().collect::<Vec<_>>(), [0, 3, 6]);
        tx.send_many(Liar(3, (1000, None))).unwrap();
        assert_eq!(rx.try_iter().collect::<Vec<_>>(), [2, 1, 0]);
        tx.send_many(Liar(3, (1, Some(1)))).unwrap();
        assert_eq!(rx.try_iter().collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!(tx.try_send_many(Liar(3, (0, Some(0)))), Ok(3));
        assert_eq!(rx.try_iter().count(), 3);
        assert_eq!(tx.try_send_many(Liar(30, (0, None))).unwrap_err().sent, 8);
        assert_eq!(rx.try_iter().count(), 8);
    }
}

pub(crate) fn a_batch_leaves_what_it_is_not_asked_for<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(6);
    for round in 0..10 {
        tx.send_many(0..6).unwrap();
        let mut batch = rx.batch(4);
        assert_eq!((batch.next(), batch.next()), (Some(0), Some(1)));
        drop(batch);
        assert_eq!((tx.len(), rx.len()), (4, 4), "round {round}");
        assert_eq!(rx.batch(0).count(), 0);
        assert_eq!(rx.batch(3).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(tx.try_send_many([6; 9]).unwrap_err().sent, 5);
        assert_eq!(rx.batch(usize::MAX).sum::<u32>(), 5 + 5 * 6);
        assert_eq!(rx.batch(1).next(), None);
    }
}

/// The room that a batch gives back wakes the sender.
pub(crate) fn a_batch_wakes_the_sender<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(3);
    tx.send_many(0..3).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || tx.send_many(3..6).unwrap());
        for round in 0..2 {
            crate::channel::crowds::await_parked(|| rx.counters().parked);
            let mut seen = vec![];
            while seen.len() < 3 {
                seen.extend(rx.batch(3 - seen.len()));
            }
            assert!(seen.into_iter().eq(round * 3..round * 3 + 3));
        }
    });
}

/// A batch of everything is what there can be at one moment, however fast others refill it.
pub(crate) fn a_batch_follows_no_refills<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u64>(4);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // ORDERING: Relaxed; a hint to stop.
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = tx.try_send(1);
            }
        });
        let mut out = Vec::new();
        for _ in 0..20_000 {
            out.clear();
            let _ = rx.try_recv_many(&mut out, usize::MAX);
            assert!(out.len() <= 4, "{}", out.len());
        }
        // ORDERING: Relaxed, as above.
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
