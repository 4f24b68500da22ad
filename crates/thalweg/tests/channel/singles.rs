//! One thread, one element at a time.

use crate::channel::flavour::{Flavour, Made};
use thalweg::channel::{RecvError, SendError, TryRecvError, TrySendError};

pub(crate) fn smoke<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(4);
    tx.send(1).unwrap();
    tx.try_send(2).unwrap();
    assert_eq!(rx.recv(), Ok(1));
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    drop(tx);
    assert_eq!(rx.recv(), Err(RecvError));
}

pub(crate) fn zero_sized_elements<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<()>(100);
    for _ in 0..100 {
        tx.try_send(()).unwrap();
    }
    assert_eq!(tx.try_send(()), Err(TrySendError::Full(())));
    assert_eq!(rx.try_iter().count(), 100);
    tx.send_many(std::iter::repeat_n((), 60)).unwrap();
    let mut out = Vec::new();
    assert_eq!(rx.recv_many(&mut out, 60), Ok(60));
    drop(rx);
    assert_eq!(tx.send(()), Err(SendError::Disconnected(())));
}

pub(crate) fn large_elements<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<[u64; 500]>(3);
    for round in 0..20 {
        for n in 0..3 {
            tx.try_send([round * 3 + n; 500]).unwrap();
        }
        assert!(tx.is_full());
        for n in 0..3 {
            assert_eq!(rx.try_recv(), Ok([round * 3 + n; 500]));
        }
    }
}

/// A channel can carry ends of other channels, its own included.
pub(crate) fn channels_of_channels<S: Made>(flavour: Flavour<S>) {
    let (mut outer_tx, mut outer_rx) = flavour.channel::<crate::channel::flavour::Ends<S, u8>>(2);
    let (mut tx, rx) = flavour.channel::<u8>(2);
    tx.send(1).unwrap();
    outer_tx.send((tx, rx)).unwrap();
    let (mut tx, mut rx) = outer_rx.recv().unwrap();
    tx.send(2).unwrap();
    assert_eq!(rx.try_iter().collect::<Vec<_>>(), [1, 2]);
    outer_tx.send((tx, rx)).unwrap();
    drop((outer_tx, outer_rx));
}

pub(crate) fn iterators<S: Made>(flavour: Flavour<S>) {
    let (mut tx, mut rx) = flavour.channel::<u32>(10);
    tx.send_many(0..10).unwrap();
    assert_eq!(rx.try_iter().take(3).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(rx.iter().take(2).collect::<Vec<_>>(), [3, 4]);
    drop(tx);
    let mut seen = Vec::new();
    for n in &mut rx {
        seen.push(n);
        if n == 6 {
            break;
        }
    }
    assert_eq!(seen, [5, 6]);
    let mut rest = rx.into_iter();
    assert_eq!(rest.by_ref().collect::<Vec<_>>(), [7, 8, 9]);
    assert_eq!(rest.next(), None);
}

pub(crate) fn ends_say_what_they_are<S: Made>(flavour: Flavour<S>) {
    fn moves<T: Send>(_: &T) {}
    let (mut tx, rx) = flavour.channel::<u32>(3);
    moves(&tx);
    moves(&rx);
    tx.send(1).unwrap();
    assert_eq!(
        format!("{tx:?}"),
        "Sender { len: 1, capacity: 3, closed: false }"
    );
    assert_eq!(
        format!("{rx:?}"),
        "Receiver { len: 1, capacity: 3, closed: false }"
    );
    drop(rx);
    assert_eq!(
        format!("{tx:?}"),
        "Sender { len: 0, capacity: 3, closed: true }"
    );
}
