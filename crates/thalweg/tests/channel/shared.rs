//! Senders behind a shared reference.

use std::thread;

use thalweg::channel::{ManySenders, RecvError, SendError, SharedSender, mpmc, mpsc};

use crate::channel::executor::block_on;

fn is_send<T: Send>(value: T) -> T {
    value
}

/// Sends from two threads and a task by one reference.
fn all_arrive<S: ManySenders>(tx: &SharedSender<u32, S>) {
    thread::scope(|scope| {
        scope.spawn(|| tx.send(1).expect("the receiver is there"));
        scope.spawn(|| block_on(is_send(tx.send_async(2))).expect("the receiver is there"));
        scope.spawn(|| tx.clone().try_send(4).expect("there is room"));
    });
}

#[test]
fn threads_and_tasks_send_by_one_reference() {
    let (tx, mut rx) = mpsc(8);
    all_arrive(&tx.into_shared());
    assert_eq!(rx.iter().sum::<u32>(), 7);
    let (tx, rx) = mpmc(8);
    all_arrive(&tx.into_shared());
    assert_eq!(rx.into_iter().sum::<u32>(), 7);
}

#[test]
fn a_shared_sender_keeps_the_channel_open_and_gives_elements_back() {
    let (tx, mut rx) = mpsc(1);
    let shared = tx.into_shared();
    let mut own = shared.sender();
    own.send(1).expect("there is room");
    assert_eq!(shared.try_send(2), Err(SendError::Full(2)));
    assert_eq!(rx.recv(), Ok(1));
    drop(own);
    assert_eq!(rx.sender_count(), 1);
    let waiting = thread::spawn(move || rx.recv());
    drop(shared);
    assert_eq!(waiting.join().expect("it ends"), Err(RecvError));

    let (tx, rx) = mpmc(1);
    let shared = tx.into_shared();
    drop(rx);
    assert_eq!(shared.send(3), Err(SendError::Disconnected(3)));
    assert_eq!(
        block_on(shared.send_async(4)),
        Err(SendError::Disconnected(4))
    );
}
