//! All ends stay: senders, and clones that never send, live until all sent elements have been
//! confirmed. A suite that ends its cases by dropping all senders is saved by that: the end wakes a
//! thread that was forgotten, and shows an element that was hidden.

use crate::channel::crowds::await_parked;
use crate::channel::flavour::{Flavour, Made};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;
use thalweg::channel::{ManyReceivers, ManySenders, Receiver, Sender};
use thalweg_testkit::wakers::{Alarm, block_on, panicking};

const LONG: Duration = Duration::from_secs(3600);

/// A number, and where to send it back to; without that the receiver is to go.
type Request = (usize, Option<mpsc::Sender<usize>>);

type Form<S> = fn(&mut Receiver<usize, S>) -> Option<usize>;

/// Every form of receiving what is there.
fn looks<S: Made>() -> [Form<S>; 6] {
    fn into_vec(take: impl FnOnce(&mut Vec<usize>) -> bool) -> Option<usize> {
        let mut out = Vec::new();
        assert_eq!(take(&mut out), !out.is_empty());
        assert!(out.len() < 2);
        out.pop()
    }
    [
        |rx| rx.try_recv().ok(),
        |rx| into_vec(|out| rx.try_recv_many(out, 1).is_ok()),
        |rx| rx.batch(1).next(),
        |rx| rx.try_iter().next(),
        |rx| into_vec(|out| rx.try_recv_each(1, |value| out.push(value)) == Ok(1)),
        |rx| rx.recv_timeout(Duration::ZERO).ok(),
    ]
}

/// Every form of waiting for an element.
fn waits<S: Made>() -> [Form<S>; 5] {
    [
        |rx| rx.recv().ok(),
        |rx| rx.recv_timeout(LONG).ok(),
        |rx| rx.iter().next(),
        |rx| {
            let mut out = Vec::new();
            rx.recv_many(&mut out, 1).ok()?;
            out.pop()
        },
        |rx| block_on(rx.recv_async()).ok(),
    ]
}

/// Returns `count` senders of one channel.
fn crowd<S: Made + ManySenders>(
    tx: Sender<usize, S>,
    count: usize,
) -> Vec<Option<Sender<usize, S>>> {
    let clones: Vec<_> = (1..count).map(|_| tx.clone()).collect();
    [tx].into_iter().chain(clones).map(Some).collect()
}

/// Returns all pairs of a sender that leaves and one that sends, among `count`.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count * count).filter_map(move |n| {
        let (leaver, sender) = (n / count, n % count);
        (leaver != sender).then_some((leaver, sender))
    })
}

/// One of several senders leaves: the element of another is there at the first look, whichever was
/// received from last.
pub(crate) fn one_that_leaves_hides_no_other<S: Made + ManySenders>(flavour: Flavour<S>) {
    for count in 3..6 {
        for (leaver, sender) in pairs(count) {
            for look in looks::<S>() {
                for before in 0..=count {
                    let (tx, mut rx) = flavour.channel::<usize>(4);
                    let mut all = crowd(tx, count);
                    if let Some(Some(before)) = all.get_mut(before) {
                        before.send(9).unwrap();
                        assert_eq!(look(&mut rx), Some(9));
                    }
                    all[sender].as_mut().unwrap().send(sender).unwrap();
                    all[leaver] = None;
                    let got = look(&mut rx);
                    assert_eq!(
                        got,
                        Some(sender),
                        "{leaver} of {count} leaves after {before}"
                    );
                    drop(all);
                }
            }
        }
    }
}

/// One leaves, another sends, and waits for the answer of a receiver that sleeps, or is about to.
pub(crate) fn one_that_leaves_lets_the_receiver_wake<S: Made + ManySenders>(flavour: Flavour<S>) {
    const COUNT: usize = 4;
    for (n, wait) in waits::<S>().into_iter().enumerate() {
        for (leaver, sender) in pairs(COUNT) {
            let (tx, mut rx) = flavour.channel::<usize>(4);
            let mut all = crowd(tx, COUNT);
            let (reply, replies) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    for _ in 0..3 {
                        reply.send(wait(&mut rx)).unwrap();
                    }
                });
                if n % 2 == 0 {
                    await_parked(|| all[sender].as_ref().unwrap().counters().parked);
                }
                for round in 0..3 {
                    if round == 1 {
                        all[leaver] = None;
                    }
                    all[sender].as_mut().unwrap().send(round).unwrap();
                    assert_eq!(replies.recv().unwrap(), Some(round), "form {n}");
                }
                drop(all);
            });
        }
    }
}

/// A sender that always has something hides no other, whatever the form.
pub(crate) fn a_busy_sender_hides_no_other<S: Made + ManySenders>(flavour: Flavour<S>) {
    let into_batches: [Form<S>; 2] = [
        |rx| {
            let mut out = Vec::new();
            rx.try_recv_many(&mut out, 3).ok()?;
            out.into_iter().max()
        },
        |rx| {
            let mut out = Vec::new();
            rx.recv_many(&mut out, 3).ok()?;
            out.into_iter().max()
        },
    ];
    for form in looks().into_iter().chain(waits()).chain(into_batches) {
        for quiet in 1..3 {
            let (mut busy, mut rx) = flavour.channel::<usize>(4);
            for _ in 0..3 {
                busy.send(0).unwrap();
            }
            form(&mut rx).unwrap();
            let mut quiet = vec![busy.clone(); quiet];
            quiet[0].send(1).unwrap();
            let is_heard = (0..500).any(|_| {
                let _ = busy.try_send(0);
                form(&mut rx) == Some(1)
            });
            assert!(is_heard, "the quiet sender's element does not come out");
        }
    }
}

/// Everybody asks and waits for the answer before it asks again. Some never ask.
fn ask_and_answer<S: Made + ManySenders>(
    flavour: Flavour<S>,
    receivers: impl FnOnce(Receiver<Request, S>) -> Vec<Receiver<Request, S>>,
) {
    const ASKERS: usize = 4;
    const EACH: usize = 300;
    let (tx, rx) = flavour.channel::<Request>(2);
    let receivers = receivers(rx);
    let silent = vec![tx.clone(); 3];
    thread::scope(|scope| {
        for mut rx in receivers {
            scope.spawn(move || {
                while let Ok((n, Some(reply))) = rx.recv() {
                    reply.send(n).unwrap();
                }
            });
        }
        let askers: Vec<_> = (0..ASKERS)
            .map(|asker| {
                let mut tx = tx.clone();
                scope.spawn(move || {
                    let (reply, replies) = mpsc::channel();
                    for n in 0..EACH {
                        tx.send((n, Some(reply.clone()))).unwrap();
                        assert_eq!(replies.recv().unwrap(), n);
                        if n == EACH / (asker + 1) {
                            // Followed by its clone, as a connection by the next.
                            tx = tx.clone();
                        }
                    }
                    tx
                })
            })
            .collect();
        let askers = askers.into_iter().map(|asker| asker.join().unwrap());
        let (askers, mut tx): (Vec<_>, _) = (askers.collect(), tx);
        // Until the last receiver has gone.
        while !tx.is_closed() {
            let _ = tx.try_send((0, None));
            thread::yield_now();
        }
        drop((askers, silent));
    });
}

pub(crate) fn everybody_is_answered<S: Made + ManySenders>(flavour: Flavour<S>) {
    ask_and_answer(flavour, |rx| vec![rx]);
}

pub(crate) fn everybody_is_answered_by_one_of_many<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    ask_and_answer(flavour, |rx| vec![rx; 3]);
}

/// A sender passes on what another channel gives; that is idle in between. The elements that it has
/// passed on are there, and so are those that others send, and all the room that it does not use.
pub(crate) fn an_iterator_that_blocks_hides_nothing<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (first, mut rx) = flavour.channel::<usize>(3);
    let mut second = first.clone();
    thread::scope(|scope| {
        for is_counted in [false, true] {
            let (feed, fed) = mpsc::channel();
            let mut forwarder = first.clone();
            scope.spawn(move || match is_counted {
                // It says how many there will be, and still waits for each.
                true => forwarder
                    .send_many((0..5).map(|_| fed.recv().unwrap()))
                    .unwrap(),
                false => forwarder.send_many(fed.iter()).unwrap(),
            });
            for round in 0..5 {
                feed.send(round).unwrap();
                assert_eq!(rx.recv(), Ok(round), "passed on before the iterator ends");
                // The iterator waits now, or is about to.
                for n in 10..13 {
                    second.send(n).unwrap();
                }
                for n in 10..13 {
                    assert_eq!(rx.recv(), Ok(n));
                }
            }
        }
        drop(first);
    });
}

/// The receiver sleeps while the iterator gives one element, and then waits for the answer.
pub(crate) fn an_iterator_may_wait_for_the_answer<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<usize>(8);
    thread::scope(|scope| {
        let (reply, replies) = mpsc::channel();
        scope.spawn(move || {
            for n in 0..50 {
                assert_eq!(rx.recv(), Ok(n));
                reply.send(()).unwrap();
            }
        });
        await_parked(|| tx.counters().parked);
        tx.send_many((0..50).inspect(|&n| {
            if n > 0 {
                replies.recv().unwrap();
            }
        }))
        .unwrap();
        replies.recv().unwrap();
    });
}

/// The receiver is a task that looks when it is woken. Connections come and go, each with a clone;
/// nothing of them stays.
pub(crate) fn a_sender_that_leaves_frees_what_it_had<S: Made + ManySenders>(flavour: Flavour<S>) {
    let (tx, mut rx) = flavour.channel::<usize>(4);
    let (alarm, mut looks) = (Alarm::new(), 0);
    let mut future = rx.recv_async();
    assert!(alarm.poll(&mut future).is_pending());
    for _ in 0..100 {
        drop(tx.clone());
        if alarm.count() > looks {
            looks = alarm.count();
            assert!(alarm.poll(&mut future).is_pending());
        }
    }
    drop(future);
    assert!(rx.capacity() <= 8, "{}", rx.capacity());
    drop(tx);
}

/// Senders wait for room, the first with a waker that panics, and the channel ends: the others get
/// the error, and the elements in it are kept, or dropped with the last receiver.
pub(crate) fn a_waker_that_panics_keeps_no_other_waiting<S: Made + ManySenders>(
    flavour: Flavour<S>,
) {
    for by_close in [true, false] {
        let (tx, rx) = flavour.channel::<Arc<()>>(1);
        let (mut rx, element) = (Some(rx), Arc::new(()));
        let mut senders = [tx.clone(), tx.clone(), tx];
        for sender in &mut senders {
            while sender.try_send(Arc::clone(&element)).is_ok() {}
        }
        let held = Arc::strong_count(&element) - 1;
        let [first, second, third] = &mut senders;
        let waker = panicking();
        let mut bomb = first.send_async(Arc::new(()));
        let pending = Pin::new(&mut bomb).poll(&mut Context::from_waker(&waker));
        assert!(pending.is_pending());
        let alarm = Alarm::new();
        let mut others = [second, third].map(|tx| tx.send_async(Arc::new(())));
        for other in &mut others {
            assert!(alarm.poll(other).is_pending());
        }
        match by_close {
            true => rx.as_mut().unwrap().close(),
            false => drop(rx.take()),
        }
        assert_eq!(alarm.count(), 2);
        for other in &mut others {
            assert!(matches!(alarm.poll(other), Poll::Ready(Err(_))));
        }
        let got = rx.as_mut().map_or(0, |rx| rx.try_iter().count());
        assert_eq!(got, if by_close { held } else { 0 });
        assert_eq!(Arc::strong_count(&element), 1);
    }
}

/// A call that takes an element, or brings one, has no part in the panic of a waker.
pub(crate) fn a_waker_that_panics_takes_no_element_along<S: Made>(flavour: Flavour<S>) {
    let waker = panicking();
    let context = &mut Context::from_waker(&waker);
    let (mut tx, mut rx) = flavour.channel::<u32>(2);
    let mut filled = 0;
    while tx.try_send(filled).is_ok() {
        filled += 1;
    }
    let mut bomb = tx.send_async(filled);
    assert!(Pin::new(&mut bomb).poll(context).is_pending());
    assert_eq!(rx.try_recv(), Ok(0));
    assert!(Pin::new(&mut bomb).poll(context).is_ready());
    drop(bomb);
    assert!(rx.try_iter().eq(1..=filled));
    let mut bomb = rx.recv_async();
    assert!(Pin::new(&mut bomb).poll(context).is_pending());
    assert_eq!(tx.try_send(7), Ok(()));
    assert_eq!(Pin::new(&mut bomb).poll(context), Poll::Ready(Ok(7)));
}

type Act<S> = (
    &'static str,
    fn(&mut Sender<usize, S>, &mut Receiver<usize, S>),
);

/// Returns the acts of an end that take a lock, or wait for no other end.
fn acts<S: Made + ManySenders + ManyReceivers>() -> [Act<S>; 10] {
    [
        ("close", |_, rx| rx.close()),
        ("the receiver's counters", |_, rx| _ = rx.counters()),
        ("the sender's counters", |tx, _| _ = tx.counters()),
        ("a sender's clone comes and goes", |tx, _| drop(tx.clone())),
        ("a receiver's clone comes and goes", |_, rx| {
            drop(rx.clone())
        }),
        ("a sender is followed by its clone", |tx, _| {
            *tx = tx.clone()
        }),
        ("lengths", |tx, rx| _ = (tx.len(), rx.len(), rx.capacity())),
        ("ends", |tx, rx| _ = (tx.is_closed(), rx.is_closed())),
        ("send", |tx, _| _ = tx.try_send(1)),
        ("receive", |_, rx| _ = rx.try_recv()),
    ]
}

/// Each act against each other, on threads: no thread waits for ever.
pub(crate) fn no_two_acts_lock_each_other_out<S>(flavour: Flavour<S>)
where
    S: Made + ManySenders + ManyReceivers,
{
    const TIMES: usize = 400;
    for (n, one) in acts::<S>().into_iter().enumerate() {
        for other in &acts::<S>()[..=n] {
            let (tx, rx) = flavour.channel::<usize>(4);
            // Some more, which a lock is held for.
            let crowd = (vec![tx.clone(); 6], vec![rx.clone(); 2]);
            println!("{} against {}", one.0, other.0);
            thread::scope(|scope| {
                for act in [one.1, other.1] {
                    let (mut tx, mut rx) = (tx.clone(), rx.clone());
                    scope.spawn(move || (0..TIMES).for_each(|_| act(&mut tx, &mut rx)));
                }
            });
            drop(crowd);
        }
    }
}
