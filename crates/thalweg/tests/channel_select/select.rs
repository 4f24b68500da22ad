//! One thread that selects: what it gets, and what it leaves alone.

use super::SHORT;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use thalweg::channel::{
    Builder, Overflow, RecvError, Select, SelectEmpty, SelectList, SelectTimeout, SendError,
    TryRecvError, mpmc, mpsc, spsc, unbounded,
};

#[test]
fn the_arm_that_is_ready_fires() {
    let (mut numbers, mut from_numbers) = spsc::<u32>(4);
    let (_words, mut from_words) = mpsc::<String>(4);
    let (_zero, mut from_zero) = mpmc::<()>(0);
    numbers.send(3).unwrap();
    let got = Select::new()
        .recv(&mut from_zero, |_| "zero".to_string())
        .recv(&mut from_words, |word| word.unwrap())
        .recv(&mut from_numbers, |number| {
            format!("number {}", number.unwrap())
        })
        .wait();
    assert_eq!(got, "number 3");
}

#[test]
fn what_is_to_be_sent_stays_unless_it_is_sent() {
    let (mut tx, mut rx) = spsc(1);
    let (_other, mut silent) = spsc::<u8>(1);
    let mut value = Some(String::from("first"));
    let outcome = Select::new()
        .recv(&mut silent, |_| unreachable!("nothing comes"))
        .send(&mut tx, &mut value, |sent| sent)
        .wait();
    assert_eq!((outcome, value), (Ok(()), None));

    let mut value = Some(String::from("second"));
    let outcome = Select::new()
        .recv(&mut silent, |_| Ok(()))
        .send(&mut tx, &mut value, |sent| sent)
        .wait_timeout(SHORT);
    assert_eq!(outcome, Err(SelectTimeout));
    assert_eq!(value.as_deref(), Some("second"));
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), ["first"]);

    drop(rx);
    let outcome = Select::new().send(&mut tx, &mut value, |sent| sent).wait();
    assert_eq!(outcome, Err(SendError::Disconnected(())));
    assert_eq!(value.as_deref(), Some("second"));
}

#[test]
fn an_element_comes_back_from_a_rendezvous_that_did_not_happen() {
    let (mut tx, mut rx) = spsc(0);
    let (_other, mut silent) = spsc::<u8>(1);
    let mut value = Some(String::from("mine"));
    let outcome = Select::new()
        .send(&mut tx, &mut value, |sent| sent)
        .recv(&mut silent, |_| Ok(()))
        .wait_timeout(SHORT);
    assert_eq!(outcome, Err(SelectTimeout));
    assert_eq!(value.as_deref(), Some("mine"));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn an_arm_without_an_element_takes_no_part() {
    let (mut tx, mut rx) = spsc::<u8>(1);
    let (mut zero, _rx) = spsc::<u8>(0);
    let (mut nothing, mut nothing_else) = (None, None);
    let outcome = Select::new()
        .send(&mut tx, &mut nothing, |_| ())
        .send(&mut zero, &mut nothing_else, |_| ())
        .wait_timeout(SHORT);
    assert_eq!(outcome, Err(SelectTimeout));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn a_disconnected_arm_is_ready() {
    let (tx, mut rx) = mpsc::<u8>(1);
    drop(tx);
    let (zero, mut from_zero) = mpmc::<u8>(0);
    drop(zero);
    let (_alive, mut silent) = mpmc::<u8>(1);
    for _ in 0..100 {
        let got = Select::new()
            .recv(&mut rx, |got| got)
            .recv(&mut from_zero, |got| got)
            .recv(&mut silent, |_| unreachable!("nothing comes"))
            .wait();
        assert_eq!(got, Err(RecvError));
    }
    let got = Select::new().recv(&mut rx, |got| got).try_wait();
    assert_eq!(got, Some(Err(RecvError)));
}

#[test]
fn what_was_sent_before_a_disconnect_comes_first() {
    let (mut tx, mut rx) = unbounded(100);
    tx.send(1).unwrap();
    drop(tx);
    let mut next = || Select::new().recv(&mut rx, |got| got.ok()).wait();
    assert_eq!((next(), next()), (Some(1), None));
}

#[test]
fn a_default_is_for_when_nothing_is_ready() {
    let (mut tx, mut rx) = spsc(1);
    let mut look = |fallback| {
        Select::new()
            .recv(&mut rx, |got: Result<u8, _>| got.unwrap())
            .or_else(|| fallback)
    };
    assert_eq!(look(9), 9);
    tx.send(1).unwrap();
    assert_eq!((look(9), look(8)), (1, 8));
    assert_eq!(Select::<u8>::new().try_wait(), None);
}

#[test]
fn time_limits_are_kept() {
    let (_tx, mut rx) = mpmc::<u8>(1);
    let (_zero, mut from_zero) = mpmc::<u8>(0);
    let begin = Instant::now();
    let mut wait = |deadline| {
        Select::new()
            .recv(&mut rx, |_| ())
            .recv(&mut from_zero, |_| ())
            .wait_deadline(deadline)
    };
    assert_eq!(wait(begin + SHORT), Err(SelectTimeout));
    assert!(begin.elapsed() >= SHORT);
    assert_eq!(wait(begin), Err(SelectTimeout));
    assert_eq!(
        SelectTimeout.to_string(),
        "selecting among channels of which none was ready until the time limit"
    );
    let mut endless = spsc(1);
    endless.0.send(1).unwrap();
    let got = Select::new()
        .recv(&mut endless.1, |got| got)
        .wait_timeout(Duration::MAX);
    assert_eq!(got, Ok(Ok(1)));
}

#[test]
fn policies_that_do_not_wait_make_an_arm_ready() {
    let make = |overflow| Builder::new(1).overflow(overflow).spsc().unwrap();
    for (overflow, expected) in [
        (Overflow::Reject, (Err(SendError::Full(())), Some(2), 1)),
        (Overflow::DropNewest, (Ok(()), None, 1)),
        (Overflow::DropOldest, (Ok(()), None, 2)),
    ] {
        let (mut tx, mut rx) = make(overflow);
        tx.send(1).unwrap();
        let mut value = Some(2);
        let outcome = Select::new().send(&mut tx, &mut value, |sent| sent).wait();
        assert_eq!(
            (outcome, value, rx.recv().unwrap()),
            expected,
            "{overflow:?}"
        );
    }
}

#[test]
fn a_panic_in_a_closure_leaves_everything_in_order() {
    let (mut tx, mut rx) = mpmc(4);
    let (mut zero, mut from_zero) = mpmc::<u8>(0);
    tx.send_many([1, 2]).unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        Select::new()
            .recv(&mut rx, |_| panic!("made up"))
            .recv(&mut from_zero, |_| ())
            .wait()
    }));
    assert!(outcome.is_err());
    assert_eq!(rx.try_recv(), Ok(2));
    assert!(zero.try_send(1).is_err(), "no receiver waits");
    assert_eq!(rx.counters().parked, rx.counters().woken);
}

#[test]
fn a_select_within_a_closure_is_a_select_of_its_own() {
    let (mut tx, mut rx) = spsc(1);
    let (_zero, mut from_zero) = spsc::<u8>(0);
    tx.send(1).unwrap();
    let inner = Cell::new(0);
    Select::new()
        .recv(&mut rx, |_| {
            let outcome = Select::new()
                .recv(&mut from_zero, |_| ())
                .wait_timeout(SHORT);
            assert!(outcome.is_err());
            inner.set(1);
        })
        .wait();
    assert_eq!(inner.get(), 1);
}

#[test]
fn waiting_for_nothing_at_all_is_an_error() {
    assert_eq!(SelectList::<()>::dynamic().wait(), Err(SelectEmpty));
    assert_eq!(
        SelectEmpty.to_string(),
        "selecting among no channels at all, without a time limit"
    );
}

#[test]
fn zero_sized_elements_are_counted() {
    let (mut tx, mut rx) = spsc::<()>(3);
    let (_zero, mut from_zero) = spsc::<()>(0);
    for _ in 0..3 {
        let sent = Select::new()
            .send(&mut tx, &mut Some(()), |sent| sent)
            .wait();
        assert_eq!(sent, Ok(()));
    }
    for left in [2, 1, 0] {
        Select::new()
            .recv(&mut from_zero, |got| got)
            .recv(&mut rx, |got| got)
            .wait()
            .unwrap();
        assert_eq!(tx.len(), left);
    }
}
