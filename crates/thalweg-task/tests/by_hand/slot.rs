//! Slots, of both families: what is sent is received, refused, replaced, or given back.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use thalweg_task::fiber::{StackOptions, StackPool};
use thalweg_task::slot::{RecvError, SendError, TryRecvError, WaitEmptyError};
use thalweg_task::{Family, Local, LocalExecutor, Shared, slot, slot_many};
use thalweg_testkit::wakers::{Alarm, poll_once};

for_both! {
    send_now_runs_the_receiver_before_it_returns
    a_task_that_sends_to_itself_is_not_run_within_itself closed_and_cancelled_are_different
    a_sender_waits_for_room one_of_many_gets_each_value
    a_notified_receive_that_is_dropped_notifies_the_next tasks_that_resume_each_other_end_somewhere
    a_slot_serves_one_task_after_the_other a_fiber_receives_as_a_task_does
    a_send_sees_that_a_receiver_waited_and_went a_receive_that_was_given_up_is_not_woken
}

/// Polls until nothing is ready.
fn settle(executor: &LocalExecutor) {
    while executor.poll() {}
}

fn send_now_runs_the_receiver_before_it_returns<F: Family>() {
    let executor = LocalExecutor::new();
    let (tx, mut rx) = slot::<u64, F>();
    let sum = Rc::new(Cell::new(0));
    let within = Rc::clone(&sum);
    let task = executor.spawn(async move {
        while let Ok(value) = rx.recv().await {
            within.set(within.get() + value);
        }
    });
    // Before the task has run there is no task to resume.
    assert_eq!(tx.send_now(1), Ok(false));
    settle(&executor);
    for value in 2..=100 {
        assert_eq!(tx.send_now(value), Ok(true));
        assert_eq!(sum.get(), (1..=value).sum::<u64>());
    }
    assert!(!executor.poll(), "nothing is left to do");
    drop(tx);
    executor.block_on(task).unwrap();
}

fn a_task_that_sends_to_itself_is_not_run_within_itself<F: Family>() {
    let executor = LocalExecutor::new();
    let (tx, mut rx) = slot::<u32, F>();
    let (start, mut started) = slot::<(), F>();
    let task = executor.spawn(async move {
        let mut got = Vec::new();
        started.recv().await.unwrap();
        for n in 0..3 {
            assert_eq!(tx.send_now(n), Ok(false));
            got.push(rx.recv().await.unwrap());
        }
        got
    });
    settle(&executor);
    assert_eq!(start.send_now(()), Ok(true));
    assert_eq!(executor.block_on(task), Ok(vec![0, 1, 2]));
}

fn closed_and_cancelled_are_different<F: Family>() {
    let executor = LocalExecutor::new();
    let (tx, mut rx) = slot::<u8, F>();
    tx.send(1).unwrap();
    drop(tx);
    assert_eq!(executor.block_on(rx.recv()), Ok(1));
    assert_eq!(executor.block_on(rx.recv()), Err(RecvError::Closed));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));

    let (tx, mut rx) = slot::<Rc<u8>, F>();
    let value = Rc::new(2);
    tx.send(Rc::clone(&value)).unwrap();
    tx.cancel();
    assert_eq!(Rc::strong_count(&value), 1, "what was cancelled is dropped");
    assert_eq!(executor.block_on(rx.recv()), Err(RecvError::Cancelled));
    assert_eq!(rx.try_recv(), Err(TryRecvError::Cancelled));

    let (mut tx, rx) = slot::<Rc<u8>, F>();
    tx.send(Rc::clone(&value)).unwrap();
    rx.cancel();
    assert_eq!(Rc::strong_count(&value), 1);
    assert_eq!(tx.send(value), Err(SendError::Cancelled(Rc::new(2))));
    assert_eq!(
        executor.block_on(tx.wait_empty()),
        Err(WaitEmptyError::Cancelled)
    );

    let (mut tx, rx) = slot::<u8, F>();
    drop(rx);
    assert_eq!(tx.send_now(3), Err(SendError::Closed(3)));
    assert_eq!(
        executor.block_on(tx.wait_empty()),
        Err(WaitEmptyError::Closed)
    );
}

fn a_sender_waits_for_room<F: Family>() {
    let executor = LocalExecutor::new();
    let (mut tx, mut rx) = slot::<u32, F>();
    let sender = executor.spawn(async move {
        for n in 0..100 {
            tx.wait_empty().await.unwrap();
            tx.send(n).unwrap();
        }
        tx.wait_empty().await
    });
    let receiver = executor.spawn(async move {
        let mut got = Vec::new();
        while got.len() < 100 {
            got.push(rx.recv().await.unwrap());
        }
        (got, rx)
    });
    let (got, _rx) = executor.block_on(receiver).unwrap();
    assert!(got.into_iter().eq(0..100));
    assert_eq!(executor.block_on(sender), Ok(Ok(())));
}

fn one_of_many_gets_each_value<F: Family>() {
    let executor = LocalExecutor::new();
    let (mut tx, rx) = slot_many::<u32, F>();
    let mut tasks = Vec::new();
    for _ in 0..4 {
        let mut rx = rx.clone();
        tasks.push(executor.spawn(async move {
            let mut got = Vec::new();
            while let Ok(value) = rx.recv().await {
                got.push(value);
            }
            got
        }));
    }
    drop(rx);
    settle(&executor);
    executor.block_on(async {
        for n in 0..40 {
            tx.wait_empty().await.unwrap();
            tx.send(n).unwrap();
        }
        tx.wait_empty().await.unwrap();
    });
    drop(tx);
    let mut all = Vec::new();
    for task in tasks {
        let got = executor.block_on(task).unwrap();
        assert_eq!(got.len(), 10, "each has its turn: {got:?}");
        all.extend(got);
    }
    all.sort_unstable();
    assert!(all.into_iter().eq(0..40));
}

fn a_notified_receive_that_is_dropped_notifies_the_next<F: Family>() {
    let executor = LocalExecutor::new();
    let (tx, rx) = slot_many::<u32, F>();
    let (mut first, mut second) = (rx.clone(), rx);
    let other = executor.spawn(async move { second.recv().await });
    executor.block_on(async {
        let mut waiting = Box::pin(first.recv());
        let polled = poll_fn(|ctx| Poll::Ready(waiting.as_mut().poll(ctx))).await;
        assert!(polled.is_pending());
        while executor.handle().status(other.id()) != thalweg_task::Status::Waiting {
            thalweg_task::yield_now().await;
        }
        tx.send(7).unwrap();
        drop(waiting);
    });
    // Both ends are alive: only the passed-on word can end this.
    assert_eq!(executor.block_on(other), Ok(Ok(7)));
    drop((tx, first));
}

fn tasks_that_resume_each_other_end_somewhere<F: Family>() {
    let executor = LocalExecutor::new();
    let length = 1_000;
    let (first, mut rx) = slot::<u32, F>();
    let mut tasks = Vec::new();
    for _ in 0..length {
        let (next, next_rx) = slot::<u32, F>();
        let mut here = std::mem::replace(&mut rx, next_rx);
        tasks.push(executor.spawn(async move {
            while let Ok(value) = here.recv().await {
                next.send_now(value + 1).unwrap();
            }
        }));
    }
    settle(&executor);
    for round in 0..3 {
        assert_eq!(first.send_now(round), Ok(true));
        assert_eq!(executor.block_on(rx.recv()), Ok(round + length));
    }
    assert_eq!(executor.handle().task_count(), length as usize);
}

/// The fast path of a slot knows that the receiver waited; it must not take the value for one that
/// is gone.
fn a_send_sees_that_a_receiver_waited_and_went<F: Family>() {
    for cancels in [false, true] {
        for gives_up in [false, true] {
            let (tx, mut rx) = slot::<u64, F>();
            let mut recv = rx.recv();
            assert!(poll_once(&mut recv).is_pending());
            if gives_up {
                drop(recv);
            } else {
                // As it is where a task's frame goes without a destructor.
                std::mem::forget(recv);
            }
            let expected = match cancels {
                true => {
                    rx.cancel();
                    SendError::Cancelled(1)
                }
                false => {
                    drop(rx);
                    SendError::Closed(1)
                }
            };
            assert_eq!(tx.send(1), Err(expected));
        }
    }
}

fn a_receive_that_was_given_up_is_not_woken<F: Family>() {
    let (tx, mut rx) = slot::<u64, F>();
    let alarm = Alarm::new();
    for number in 0..3 {
        let mut recv = Box::pin(rx.recv());
        assert!(alarm.poll(&mut recv).is_pending());
        drop(recv);
        tx.send(number).unwrap();
        assert_eq!(alarm.count(), 0);
        assert_eq!(rx.try_recv(), Ok(number));
    }
}

fn a_slot_serves_one_task_after_the_other<F: Family>() {
    let executor = LocalExecutor::new();
    let (tx, rx) = slot::<u32, F>();
    let rx = Rc::new(RefCell::new(rx));
    for n in 0..10 {
        let rx = Rc::clone(&rx);
        #[allow(clippy::await_holding_refcell_ref)] // one task has it at a time
        let task = executor.spawn(async move { rx.borrow_mut().recv().await });
        settle(&executor);
        assert_eq!(
            tx.send_now(n),
            Ok(true),
            "the new task is resumed, not the one before"
        );
        assert_eq!(executor.block_on(task), Ok(Ok(n)));
    }
}

fn a_fiber_receives_as_a_task_does<F: Family>() {
    let executor = LocalExecutor::new();
    let stacks = StackPool::new(StackOptions::default()).unwrap();
    let (tx, mut rx) = slot::<u32, F>();
    let (next, mut last) = slot::<u32, F>();
    let fiber = stacks.fiber(move |ctx| {
        while let Ok(value) = rx.recv_fiber(ctx) {
            // On a fiber's stack no other task is run.
            assert_eq!(next.send_now(value * 2), Ok(false));
        }
    });
    let fiber = executor.spawn(fiber.unwrap());
    let sum = executor.spawn(async move {
        let mut sum = 0;
        while let Ok(value) = last.recv().await {
            sum += value;
        }
        sum
    });
    settle(&executor);
    for value in 0..10 {
        assert_eq!(tx.send_now(value), Ok(true));
        settle(&executor);
    }
    drop(tx);
    assert_eq!(executor.block_on(fiber), Ok(()));
    assert_eq!(executor.block_on(sum), Ok(90));
}

/// Threads: a value is there when its receiver is woken, and no wake-up is lost.
#[test]
fn a_shared_slot_crosses_threads() {
    let (mut tx, mut rx) = slot::<u64, Shared>();
    let (mut back, mut answers) = slot::<u64, Shared>();
    let server = std::thread::spawn(move || {
        let executor = LocalExecutor::new();
        executor.block_on(async {
            while let Ok(value) = rx.recv().await {
                back.wait_empty().await.unwrap();
                back.send(value * 2).unwrap();
            }
        });
        back
    });
    let executor = LocalExecutor::new();
    executor.block_on(async {
        for n in 0..2_000 {
            tx.wait_empty().await.unwrap();
            assert!(matches!(tx.send_now(n), Ok(false)));
            assert_eq!(answers.recv().await, Ok(n * 2));
        }
    });
    drop(tx);
    drop(server.join().unwrap());
    assert_eq!(answers.try_recv(), Err(TryRecvError::Closed));
}
