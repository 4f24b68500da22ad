//! Futures that wait and are kept, but not polled: a thread that waits beside them is woken all the
//! same. (A task is not: each async method says so.) Both ends stay alive throughout.

use crate::channel::crowds::await_parked_times;
use crate::channel::flavour::{Flavour, Made};
use crate::channel::forgotten::{each_receive, each_send};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;
use thalweg::channel::{ManyReceivers, ManySenders, Receiver, Select, Sender};
use thalweg_testkit::wakers::Alarm;

pub(crate) fn an_element_wakes_the_thread<S: Made + ManyReceivers>(flavour: Flavour<S>) {
    type Receive<S> = fn(&mut Receiver<u32, S>) -> u32;
    let ways: [Receive<S>; 3] = [
        |rx| rx.recv().unwrap(),
        |rx| rx.recv_timeout(Duration::MAX).unwrap(),
        |rx| Select::new().recv(rx, |got| got.unwrap()).wait(),
    ];
    let (mut tx, mut first) = flavour.channel::<u32>(2);
    let (alarm, mut second) = (Alarm::new(), Some(first.clone()));
    for receive in ways {
        each_receive!(
            first,
            alarm,
            |kept| {
                let (before, mut rx) = (tx.counters().parked, second.take().unwrap());
                let thread = thread::spawn(move || (receive(&mut rx), rx));
                await_parked_times(before + 1, || tx.counters().parked);
                tx.send(7).unwrap();
                let (got, rx) = thread.join().unwrap();
                assert_eq!(got, 7);
                second = Some(rx);
                drop(kept);
            },
            ()
        );
    }
}

pub(crate) fn room_wakes_the_thread<S: Made + ManySenders>(flavour: Flavour<S>) {
    type Send<S> = fn(&mut Sender<u32, S>);
    let mut ways: Vec<Send<S>> = vec![
        |tx| tx.send(7).unwrap(),
        |tx| tx.send_timeout(7, Duration::MAX).unwrap(),
        |tx| tx.send_many([7]).unwrap(),
        |tx| {
            (Select::new().send(tx, &mut Some(7), |sent| sent))
                .wait()
                .unwrap();
        },
    ];
    if flavour.has_claims {
        ways.push(|tx| {
            let mut claim = tx.claim(1).unwrap();
            claim.push(7).unwrap();
            claim.commit();
        });
    }
    let (mut first, mut rx) = flavour.channel::<u32>(2);
    let (alarm, mut second) = (Alarm::new(), Some(first.clone()));
    while first.try_send(7).is_ok() {}
    for send in ways {
        each_send!(
            first,
            flavour,
            alarm,
            |kept| {
                let (before, mut tx) = (rx.counters().parked, second.take().unwrap());
                let thread = thread::spawn(move || {
                    send(&mut tx);
                    tx
                });
                await_parked_times(before + 1, || rx.counters().parked);
                assert_eq!(rx.try_recv(), Ok(7));
                second = Some(thread.join().unwrap());
                drop(kept);
            },
            ()
        );
    }
}
