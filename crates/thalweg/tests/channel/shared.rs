//! Senders behind a shared reference.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use thalweg::channel::{
    Builder, ManySenders, Overflow, RecvError, SendError, SharedSender, mpmc, mpsc,
};

use thalweg_testkit::wakers::{block_on, poll_once};

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

#[test]
fn a_shared_sender_has_as_many_senders_as_calls_at_once_and_keeps_a_few() {
    let (tx, mut rx) = mpmc(1);
    let shared = tx.into_shared();
    shared.send(0).expect("there is room");
    assert_eq!(rx.sender_count(), 1);
    let sends = (1..=20).map(|n| Box::pin(shared.send_async(n)));
    let mut waiting: Vec<_> = sends.collect();
    for send in &mut waiting {
        assert!(poll_once(send).is_pending());
    }
    assert_eq!(rx.sender_count(), 20);
    // One that gave up, and gave its sender back, waits no more.
    drop(waiting.remove(0));
    for (n, mut send) in (2..=20).zip(waiting) {
        rx.recv().expect("there is one");
        assert_eq!(poll_once(&mut send), Poll::Ready(Ok(())), "{n}");
    }
    assert_eq!(rx.recv(), Ok(20));
    assert_eq!(rx.sender_count(), 8);
    // A sender that waited before sends as a new one does.
    let mut send = pin!(shared.send_async(21));
    assert_eq!(poll_once(&mut send), Poll::Ready(Ok(())));
    assert_eq!(rx.recv(), Ok(21));
}

/// Sends to the channel that it was in.
struct Answers(Arc<SharedSender<Answers>>, bool);

impl Drop for Answers {
    fn drop(&mut self) {
        if self.1 {
            let answer = Answers(Arc::clone(&self.0), false);
            assert!(self.0.try_send(answer).is_ok());
        }
    }
}

#[test]
fn an_element_that_is_dropped_may_send_by_the_same_sender() {
    let builder = Builder::new(1).overflow(Overflow::DropOldest);
    let (tx, mut rx) = builder.mpmc::<Answers>().expect("valid");
    let shared = Arc::new(tx.into_shared());
    let element = |answers| Answers(Arc::clone(&shared), answers);
    assert!(shared.send(element(true)).is_ok());
    // It displaces the first, whose drop sends and displaces this one.
    assert!(shared.send(element(false)).is_ok());
    assert!(!rx.recv().expect("the answer").1);
    assert!(rx.try_recv().is_err());
}
