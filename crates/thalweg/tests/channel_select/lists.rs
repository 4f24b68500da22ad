//! Selects whose number of arms is known at run time only, and selects with an order of priority.

use super::{LONG, SHORT, watched};
use std::thread;
use std::time::Duration;
use thalweg::channel::{
    RecvError, Select, SelectEmpty, SelectList, SelectTimeout, SendError, mpmc, spsc, unbounded,
};
use thalweg_testkit::wakers::block_on;

#[test]
fn the_place_of_the_arm_is_reported() {
    let mut channels: Vec<_> = (0..100).map(|_| spsc::<u8>(1)).collect();
    for at in [77, 3] {
        channels[at].0.send(5).unwrap();
        let mut select = Select::dynamic();
        for (_, rx) in &mut channels {
            select.push_recv(rx, |at, got| (at, got));
        }
        assert_eq!(select.wait(), Ok((at, Ok(5))));
    }
    channels.truncate(9);
    drop(channels.swap_remove(4).0);
    let (tx, mut rx) = spsc::<u8>(1);
    drop(tx);
    let mut select = Select::dynamic();
    for (_, rx) in &mut channels {
        select.push_recv(rx, |at, got| (at, got));
    }
    assert_eq!(select.push_recv(&mut rx, |at, got| (at, got)), 8);
    assert_eq!(select.wait_timeout(LONG), Ok((8, Err(RecvError))));
}

#[test]
fn elements_of_other_types_and_fixed_arms_beside_a_list() {
    let (_numbers, mut from_numbers) = mpmc::<u32>(0);
    let (mut words, mut from_words) = unbounded::<String>(4);
    let (mut out, mut sink) = spsc::<char>(1);
    words.send("word".into()).unwrap();
    let mut letter = Some('x');
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut select = Select::dynamic();
        select.push_recv(&mut from_numbers, |_, got| format!("{got:?}"));
        select.push_recv(&mut from_words, |at, got| format!("{at} {got:?}"));
        select.push_send(&mut out, &mut letter, |at, sent| format!("{at} {sent:?}"));
        seen.push(select.after(LONG, |_| "late".into()).wait());
    }
    seen.sort();
    assert_eq!(seen, ["1 Ok(\"word\")", "2 Ok(())"]);
    assert_eq!(sink.try_recv(), Ok('x'));
}

#[test]
fn an_empty_list_waits_for_a_time_limit_only() {
    let empty = SelectList::<u8>::dynamic;
    assert_eq!(empty().wait(), Err(SelectEmpty));
    assert_eq!(empty().wait_timeout(SHORT), Err(SelectTimeout));
    assert_eq!((empty().try_wait(), empty().or_else(|| 3)), (None, 3));
    assert_eq!(block_on(empty().wait_async()), Err(SelectEmpty));
}

#[test]
fn elements_come_back_from_a_list() {
    let mut channels: Vec<_> = (0..5).map(|n| mpmc::<String>(n / 3)).collect();
    channels[3].0.send("full".into()).unwrap();
    channels[4].0.send("full".into()).unwrap();
    let mut values: Vec<_> = (0..5).map(|n| Some(n.to_string())).collect();
    let mut select = Select::dynamic();
    for ((tx, _), value) in channels.iter_mut().zip(&mut values) {
        select.push_send(tx, value, |at, sent| (at, sent));
    }
    assert_eq!(select.wait_timeout(SHORT), Err(SelectTimeout));
    assert!(values.iter().all(Option::is_some));
    let (tx, rx) = mpmc::<String>(0);
    drop(rx);
    channels[2].0 = tx;
    let mut select = Select::dynamic();
    for ((tx, _), value) in channels.iter_mut().zip(&mut values) {
        select.push_send(tx, value, |at, sent| (at, sent));
    }
    assert_eq!(select.wait(), Ok((2, Err(SendError::Disconnected(())))));
    assert!(values.iter().all(Option::is_some));
}

/// Workers answer over rendezvous of their own; both sides live until all is answered.
#[test]
fn a_list_meets_many_and_answers() {
    watched(|| {
        const WORKERS: usize = 6;
        const EACH: usize = 300;
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let (mut ask, asked) = mpmc::<usize>(0);
                let (reply, mut replied) = mpmc::<usize>(0);
                receivers.push(asked);
                senders.push(reply);
                thread::spawn(move || {
                    for n in 0..EACH {
                        ask.send(n).unwrap();
                        assert_eq!(replied.recv(), Ok(n + 1));
                    }
                    (ask, replied)
                })
            })
            .collect();
        let mut owed: Vec<Option<usize>> = vec![None; WORKERS];
        for _ in 0..2 * WORKERS * EACH {
            let mut select = Select::dynamic();
            for rx in &mut receivers {
                select.push_recv(rx, |at, got| (at, Some(got.unwrap())));
            }
            for (tx, value) in senders.iter_mut().zip(&mut owed) {
                select.push_send(tx, value, |at, sent| (at - WORKERS, sent.ok().and(None)));
            }
            if let (at, Some(n)) = select.wait().unwrap() {
                assert_eq!(owed[at].replace(n + 1), None);
            }
        }
        assert!(owed.iter().all(Option::is_none));
        workers
            .into_iter()
            .for_each(|worker| drop(worker.join().unwrap()));
    });
}

#[test]
fn the_first_arm_of_a_biased_select_comes_first() {
    let mut channels = [(); 3].map(|()| spsc::<u8>(64));
    for (tx, _) in &mut channels {
        tx.send_many([0; 20]).unwrap();
    }
    let [(_a, mut from_a), (_b, mut from_b), (_c, mut from_c)] = channels;
    let order: Vec<_> = (0..60)
        .map(|_| {
            Select::new()
                .biased()
                .recv(&mut from_a, |_| 0)
                .recv(&mut from_b, |_| 1)
                .recv(&mut from_c, |_| 2)
                .wait()
        })
        .collect();
    assert!(order.is_sorted() && order.iter().filter(|at| **at == 1).count() == 20);

    let mut channels: Vec<_> = (0..70).map(|_| mpmc::<u8>(1)).collect();
    for at in [69, 5, 66] {
        channels[at].0.send(0).unwrap();
    }
    let mut order = Vec::new();
    for _ in 0..3 {
        let mut select = Select::dynamic();
        for (_, rx) in &mut channels {
            select.push_recv(rx, |at, _| at);
        }
        order.push(select.biased().wait().unwrap());
    }
    assert_eq!(order, [5, 66, 69]);
}

/// A select that waits in order of priority is woken by any arm.
#[test]
fn a_biased_select_that_sleeps_hears_of_all_its_arms() {
    watched(|| {
        let (mut first, mut from_first) = mpmc::<u8>(0);
        let (mut second, mut from_second) = mpmc::<u8>(1);
        let (mut reply, mut replied) = spsc::<u8>(0);
        let sender = thread::spawn(move || {
            for n in 0..200 {
                let outcome = if n % 2 == 0 {
                    first.send(n)
                } else {
                    second.send(n)
                };
                outcome.unwrap();
                assert_eq!(replied.recv(), Ok(n));
            }
            (first, second)
        });
        for n in 0..200 {
            let got = Select::new()
                .biased()
                .recv(&mut from_first, |got| got)
                .recv(&mut from_second, |got| got)
                .wait();
            assert_eq!(got, Ok(n));
            reply.send(n).unwrap();
        }
        drop(sender.join().unwrap());
    });
}

#[test]
fn a_list_is_awaited() {
    let mut channels: Vec<_> = (0..4).map(|_| mpmc::<u8>(0)).collect();
    let mut tx = channels[2].0.clone();
    let sender = thread::spawn(move || {
        tx.send_timeout(8, Duration::from_secs(600)).unwrap();
        tx
    });
    let mut select = Select::dynamic();
    for (_, rx) in &mut channels {
        select.push_recv(rx, |at, got| (at, got.unwrap()));
    }
    assert_eq!(block_on(select.wait_async()), Ok((2, 8)));
    drop(sender.join().unwrap());
}
