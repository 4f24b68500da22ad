//! The channels: their ways to send and receive where nobody has to wait, and their refusals.

use std::hint::black_box;

use thalweg::channel::{Receiver, Sender, Shape, mpmc, oneshot, spsc};

use super::{BATCH, CAPACITY, Cases, Work, rounds};

macro_rules! add {
    ($cases:ident, $($name:literal => $work:ident),+) => {
        $(
            add!(@shape $cases, "spsc", $name, $work, spsc);
            add!(@shape $cases, "mpmc", $name, $work, mpmc);
        )+
    };
    (@shape $cases:ident, $shape:literal, $name:literal, $work:ident, $new:ident) => {
        let name = concat!("channel/", $shape, "/8B/", $name);
        $cases.insert(name.to_owned(), || $work($new(CAPACITY)));
    };
}

/// A channel of elements of 8 bytes, packed, as they come at this capacity.
type Ends<S> = (Sender<u64, S>, Receiver<u64, S>);

pub(super) fn add(cases: &mut Cases) {
    add!(cases,
        "send-recv" => send_recv,
        "try" => try_send_recv,
        "many-64" => many,
        "try-empty" => try_empty,
        "try-full" => try_full);
    cases.insert("channel/oneshot/8B/send-recv".to_owned(), one);
}

/// Made, sent, received; what an allocation takes is the system's.
fn one() -> Work {
    rounds(|number| {
        let (tx, rx) = oneshot();
        assert!(tx.send(black_box(number)).is_ok());
        black_box(rx.recv().expect("just sent"));
    })
}

fn send_recv<S: Shape>((mut tx, mut rx): Ends<S>) -> Work {
    rounds(move |number| {
        assert!(tx.send(black_box(number)).is_ok());
        black_box(rx.recv().expect("just sent"));
    })
}

fn try_send_recv<S: Shape>((mut tx, mut rx): Ends<S>) -> Work {
    rounds(move |number| {
        assert!(tx.try_send(black_box(number)).is_ok());
        black_box(rx.try_recv().expect("just sent"));
    })
}

fn many<S: Shape>((mut tx, mut rx): Ends<S>) -> Work {
    let values = vec![1; BATCH];
    let mut out = Vec::with_capacity(BATCH);
    rounds(move |_| {
        assert!(tx.send_many(black_box(&values).iter().copied()).is_ok());
        assert_eq!(rx.recv_many(&mut out, BATCH), Ok(BATCH));
        black_box(&mut out).clear();
    })
}

/// The cost of a poll that finds nothing.
fn try_empty<S: Shape>((tx, mut rx): Ends<S>) -> Work {
    rounds(move |_| {
        assert!(rx.try_recv().is_err());
        black_box(&tx);
    })
}

/// The cost of a refused element.
fn try_full<S: Shape>((mut tx, rx): Ends<S>) -> Work {
    while tx.try_send(0).is_ok() {}
    rounds(move |number| {
        assert!(tx.try_send(black_box(number)).is_err());
        black_box(&rx);
    })
}
