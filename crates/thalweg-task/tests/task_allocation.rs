//! Tasks, slots and timers allocate nothing after the warm-up. A binary of its own, for its
//! allocator.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // all of it is a test

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use thalweg_task::{
    Elapsed, Family, Handle, Local, LocalExecutor, Shared, SlotReceiver, SlotSender, slot,
    yield_now,
};
use thalweg_testkit::counting::calls;

type Ends<F> = (SlotSender<u32, F>, SlotReceiver<u32, F>);

/// Tasks of two sizes that wait for messages, timers and each other, and such as are cancelled.
fn round<F: Family>(executor: &LocalExecutor, handle: &Handle, ends: &mut Option<Ends<F>>) {
    let (tx, mut rx) = ends.take().unwrap();
    let receiver = executor.spawn(async move {
        let mut sum = 0;
        while sum < 45 {
            sum += rx.recv().await.unwrap();
        }
        rx
    });
    let large = [1_u8; 4000];
    let within = handle.clone();
    let waits = executor.spawn(async move {
        within.sleep(Duration::from_secs(3600)).await;
        large
    });
    let waits = waits.deadline(Duration::from_secs(600));
    while executor.poll() {}
    let sender = executor.spawn(async move {
        for n in 0..10 {
            while tx.is_full() {
                yield_now().await;
            }
            tx.send(n).unwrap();
        }
        tx
    });
    while !(receiver.is_finished() && sender.is_finished()) {
        executor.poll();
    }
    assert!(waits.cancel());
    drop(waits);
    // A `block_on` allocates once, and frees that.
    assert_eq!(
        calls(|| *ends =
            Some(executor.block_on(async { (sender.await.unwrap(), receiver.await.unwrap()) }))),
        2
    );
}

fn nothing_is_allocated<F: Family>() {
    const ROUNDS: u64 = 100;
    let executor = LocalExecutor::new();
    let handle = executor.handle();
    let mut ends = Some(slot::<u32, F>());
    (0..3).for_each(|_| round(&executor, &handle, &mut ends));
    let all = calls(|| (0..ROUNDS).for_each(|_| round(&executor, &handle, &mut ends)));
    assert_eq!(all, 2 * ROUNDS);
}

#[test]
fn nothing_is_allocated_after_the_warm_up() {
    nothing_is_allocated::<Local>();
    nothing_is_allocated::<Shared>();
    // Futures that are too large for the pool allocate, as the documentation says.
    let executor = LocalExecutor::new();
    let large = || {
        executor.block_on(executor.spawn(async {
            let large = [1_u8; 9000];
            yield_now().await;
            large.len()
        }))
    };
    assert_eq!(large(), Ok(9000));
    assert_eq!(calls(|| assert_eq!(large(), Ok(9000))), 4);
}

#[test]
fn timers_that_fire_allocate_nothing_after_the_warm_up() {
    let now = Rc::new(Cell::new(Instant::now()));
    let read = Rc::clone(&now);
    let executor = LocalExecutor::builder()
        .clock(move || read.get())
        .build()
        .unwrap();
    let round = || {
        for n in 0..100_u64 {
            let (handle, time) = (executor.handle(), Duration::from_micros(100 * n));
            let task = executor.spawn(async move {
                handle.sleep(time).await;
                let late = handle.timeout(time, std::future::pending::<()>()).await;
                assert_eq!(late, Err(Elapsed));
                handle.sleep(time * 100).await;
            });
            task.deadline(time * 10).detach();
        }
        for _ in 0..200 {
            now.set(now.get() + Duration::from_millis(1));
            while executor.poll() {}
        }
        assert_eq!(executor.handle().task_count(), 0);
    };
    (0..3).for_each(|_| round());
    assert_eq!(calls(|| (0..20).for_each(|_| round())), 0);
}
