//! Foreign code that panics, or reaches back, where a waker is cloned, woken or dropped.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::{Duration, Instant};

use super::alarm::{Bomb, poll};
use thalweg_task::{Family, Local, LocalExecutor, Shared, Task, slot, slot_many};
use thalweg_testkit::fuse::{Fuse, at_every_call};
use thalweg_testkit::wakers::{Alarm, panicking};

fn quietly(run: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(run));
}

fn sender_goes<F: Family>() {
    let (tx, rx) = slot_many::<u32, F>();
    let (mut one, mut other) = (rx.clone(), rx);
    let (mut one, mut other) = (one.recv(), other.recv());
    let (alarm, waker) = Alarm::pair();
    assert!(poll(&mut one, &panicking()).is_pending());
    assert!(poll(&mut other, &waker).is_pending());
    quietly(|| tx.cancel());
    assert_eq!(alarm.count(), 1, "woken");
}

#[test]
fn all_receivers_hear_of_an_end_though_a_waker_panics() {
    sender_goes::<Local>();
    sender_goes::<Shared>();
}

fn receiver_goes<F: Family>() {
    let (mut tx, rx) = slot_many::<u32, F>();
    let (mut one, mut other) = (rx.clone(), rx.clone());
    let (mut one, mut other) = (one.recv(), other.recv());
    let (alarm, waker) = Alarm::pair();
    assert!(poll(&mut one, Waker::noop()).is_pending());
    assert!(poll(&mut other, &panicking()).is_pending());
    tx.send(1).unwrap();
    let mut vacant = tx.wait_empty();
    assert!(poll(&mut vacant, &waker).is_pending());
    quietly(|| rx.cancel());
    assert_eq!(alarm.count(), 1, "woken");
}

#[test]
fn a_sender_hears_of_an_end_though_a_waker_panics() {
    receiver_goes::<Local>();
    receiver_goes::<Shared>();
}

/// Tasks, the wakers that they left, and their polls.
type Leaving = (Vec<Task<()>>, Rc<RefCell<Vec<Waker>>>, Rc<Cell<usize>>);

/// Tasks that leave a waker each, and count their polls.
fn leaving(executor: &LocalExecutor, count: usize) -> Leaving {
    let (wakers, polls) = (
        Rc::<RefCell<Vec<Waker>>>::default(),
        Rc::<Cell<usize>>::default(),
    );
    let tasks = (0..count)
        .map(|_| {
            let (wakers, polls) = (Rc::clone(&wakers), Rc::clone(&polls));
            executor.spawn(poll_fn(move |context| {
                wakers.borrow_mut().push(context.waker().clone());
                polls.set(polls.get() + 1);
                Poll::Pending
            }))
        })
        .collect();
    while executor.poll() {}
    (tasks, wakers, polls)
}

#[test]
fn a_drivers_waker_that_panics_loses_no_wake_up() {
    let executor = LocalExecutor::new();
    let (_tasks, wakers, polls) = leaving(&executor, 3);
    let mut drive = executor.drive(|_| pending::<()>());
    assert!(poll(&mut drive, &panicking()).is_pending());
    let left: Vec<_> = wakers.borrow_mut().drain(..).collect();
    // The event count's clone of the driver's waker panics there.
    let _ =
        std::thread::spawn(move || left.iter().for_each(|w| quietly(|| w.wake_by_ref()))).join();
    for _ in 0..4 {
        quietly(|| while executor.poll() {});
    }
    assert_eq!(polls.get(), 6);
}

#[test]
fn the_last_drive_is_notified_and_no_other() {
    let executor = LocalExecutor::new();
    let (_tasks, wakers, _) = leaving(&executor, 1);
    let (_, old) = Alarm::pair();
    let mut drives = [(); 3].map(|()| executor.drive(|_| pending::<()>()));
    let (alarm, waker) = Alarm::pair();
    let [first, second, last] = &mut drives;
    assert!(poll(first, &old).is_pending());
    assert!(poll(second, &old).is_pending());
    assert!(poll(last, &waker).is_pending());
    let left = wakers.borrow_mut().pop().unwrap();
    std::thread::spawn(move || left.wake()).join().unwrap();
    assert_eq!(alarm.count(), 1, "woken");
}

#[test]
fn an_old_drive_that_goes_leaves_the_new_one_alone() {
    let executor = LocalExecutor::new();
    let (_tasks, wakers, _) = leaving(&executor, 1);
    let (mut old, mut new) = (
        executor.drive(|_| pending::<()>()),
        executor.drive(|_| pending::<()>()),
    );
    let (alarm, waker) = Alarm::pair();
    assert!(poll(&mut old, Waker::noop()).is_pending());
    assert!(poll(&mut new, &waker).is_pending());
    drop(old);
    wakers.borrow_mut().pop().unwrap().wake();
    assert_eq!(alarm.count(), 1, "woken");
}

std::thread_local! {
    static AT_CLONE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    static RINGS: Cell<usize> = const { Cell::new(0) };
}

/// A waker that only counts, and runs `AT_CLONE` where it is cloned.
static HOOKED: RawWakerVTable = RawWakerVTable::new(
    |data| {
        if let Some(run) = AT_CLONE.take() {
            run();
        }
        RawWaker::new(data, &HOOKED)
    },
    |_| RINGS.set(RINGS.get() + 1),
    |_| RINGS.set(RINGS.get() + 1),
    |_| {},
);

fn hooked(run: impl FnOnce() + 'static) -> Waker {
    AT_CLONE.set(Some(Box::new(run)));
    RINGS.set(0);
    // SAFETY: nothing is owned; it stays on this thread.
    unsafe { Waker::new(std::ptr::null(), &HOOKED) }
}

#[test]
fn a_sleep_that_is_over_while_its_waker_is_cloned_is_ready_or_wakes() {
    let begin = Instant::now();
    let now = Rc::new(Cell::new(begin));
    let read = Rc::clone(&now);
    let executor = Rc::new(
        LocalExecutor::builder()
            .clock(move || read.get())
            .build()
            .unwrap(),
    );
    let mut sleep = executor.handle().sleep(Duration::from_secs(1));
    assert!(poll(&mut sleep, Waker::noop()).is_pending());
    let within = Rc::clone(&executor);
    let waker = hooked(move || {
        now.set(begin + Duration::from_secs(2));
        while within.poll() {}
    });
    let polled = poll(&mut sleep, &waker);
    assert!(polled.is_ready() || RINGS.get() > 0, "it has been a second");
}

#[test]
fn a_sleep_whose_core_goes_while_its_waker_is_cloned_panics_or_wakes() {
    let executor = LocalExecutor::new();
    let mut sleep = executor.handle().sleep(Duration::from_secs(1));
    let waker = hooked(move || drop(executor));
    let polled = catch_unwind(AssertUnwindSafe(|| poll(&mut sleep, &waker)));
    // That its executor is gone is reported by a panic, then or at the next look.
    let is_reported = polled.is_err() || RINGS.get() > 0;
    assert!(is_reported, "its timer is not advanced");
}

#[test]
fn a_drive_whose_waker_wakes_a_task_when_it_is_cloned_runs_it() {
    let executor = LocalExecutor::new();
    let (_tasks, wakers, polls) = leaving(&executor, 1);
    let mut drive = executor.drive(|_| pending::<()>());
    let left = wakers.borrow_mut().pop().unwrap();
    let waker = hooked(move || left.wake());
    assert!(poll(&mut drive, &waker).is_pending());
    assert!(polls.get() == 2 || RINGS.get() > 0, "it was woken");
}

struct Counted(Rc<Cell<usize>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn an_output_is_dropped_though_a_joiners_waker_panics() {
    let executor = LocalExecutor::new();
    let drops = Rc::<Cell<usize>>::default();
    let output = Counted(Rc::clone(&drops));
    let mut output = Some(output);
    let task = executor.spawn(poll_fn(move |_| {
        Poll::Ready(output.take().expect("an ended task is not polled again"))
    }));
    let mut task = Box::pin(task);
    let waker = Waker::from(Arc::new(Bomb));
    assert!(
        task.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(waker);
    quietly(|| drop(task));
    while executor.poll() {}
    assert_eq!(drops.get(), 1);
}

#[test]
fn a_task_whose_waker_refuses_to_wake_ends() {
    let executor = LocalExecutor::new();
    let (tx, mut rx) = slot::<u32, Local>();
    let mut task = pin!(executor.spawn(async move { rx.recv().await }));
    let waker = panicking();
    assert!(
        task.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    while executor.poll() {}
    assert_eq!(tx.send_now(3), Ok(true));
    assert_eq!(executor.block_on(task), Ok(Ok(3)));
}

/// A value that counts its drops, and burns.
struct Value(Arc<Fuse>, Rc<Cell<usize>>);

impl Drop for Value {
    fn drop(&mut self) {
        self.1.set(self.1.get() + 1);
        self.0.burn();
    }
}

fn values_are_received_once_whatever_panics<F: Family>() {
    at_every_call(10, |fuse| {
        let drops = Rc::<Cell<usize>>::default();
        let value = || Value(Arc::clone(fuse), Rc::clone(&drops));
        let (mut tx, mut rx) = slot_many::<Value, F>();
        let mut second = rx.clone();
        let (mut made, mut got) = (0, 0);
        // A receiver waits, moves to another task, and gets the value, or goes before.
        for goes in [false, true] {
            let mut waits = rx.recv();
            for _ in 0..2 {
                assert!(fuse.poll(&mut waits).is_none());
            }
            assert!(
                tx.send(value()).is_ok(),
                "a waker's panic is not the sender's"
            );
            made += 1;
            if !goes && let Some(Ok(value)) = fuse.poll(&mut waits) {
                got += 1;
                quietly(|| drop(value));
            }
            quietly(|| drop(waits));
            if let Ok(value) = second.try_recv() {
                got += 1;
                quietly(|| drop(value));
            }
            assert_eq!((got, drops.get()), (made, made));
        }
        // A sender waits for the slot to be empty, and the receiver that takes the value has to
        // wake it.
        assert!(tx.send(value()).is_ok());
        let mut vacant = tx.wait_empty();
        for _ in 0..2 {
            assert!(fuse.poll(&mut vacant).is_none());
        }
        let value = rx.try_recv();
        assert!(value.is_ok(), "a waker's panic is not the receiver's");
        quietly(|| drop(value));
        quietly(|| drop(vacant));
        assert_eq!(drops.get(), made + 1);
        // Both ends still wake each other.
        let (alarm, waker) = Alarm::pair();
        let mut waits = rx.recv();
        assert!(poll(&mut waits, &waker).is_pending());
        assert!(tx.send(Value(Arc::clone(fuse), Rc::clone(&drops))).is_ok());
        assert_eq!(alarm.count(), 1, "woken");
        quietly(|| drop(poll(&mut waits, &waker)));
        quietly(|| drop(waits));
        assert!(fuse.poll(&mut second.recv()).is_none());
        quietly(|| drop(tx));
        quietly(|| drop((rx, second)));
        assert_eq!(drops.get(), made + 2);
    });
}

#[test]
fn a_slot_loses_no_value_whatever_panics() {
    values_are_received_once_whatever_panics::<Local>();
    values_are_received_once_whatever_panics::<Shared>();
}

#[test]
fn tasks_and_sleeps_end_whatever_panics() {
    at_every_call(8, |fuse| {
        let drops = Rc::<Cell<usize>>::default();
        let now = Rc::new(Cell::new(Instant::now()));
        let read = Rc::clone(&now);
        let executor = LocalExecutor::builder()
            .clock(move || read.get())
            .build()
            .unwrap();
        let value = Value(Arc::clone(fuse), Rc::clone(&drops));
        let (tx, mut rx) = slot::<Value, Local>();
        let mut task = executor.spawn(async move { rx.recv().await });
        let mut sleeps = [(); 2].map(|()| executor.handle().sleep(Duration::from_secs(1)));
        let mut drive = executor.drive(|_| pending::<()>());
        assert!(fuse.poll(&mut drive).is_none());
        for _ in 0..2 {
            assert!(fuse.poll(&mut task).is_none());
            assert!(fuse.poll(&mut sleeps[0]).is_none());
        }
        let (alarm, waker) = Alarm::pair();
        assert!(poll(&mut sleeps[1], &waker).is_pending());
        now.set(now.get() + Duration::from_secs(2));
        assert!(matches!(tx.send_now(value), Ok(true)));
        while executor.poll() {}
        assert_eq!(alarm.count(), 1, "a sleep behind one whose waker panics");
        quietly(|| drop(drive));
        let output = fuse.poll(&mut task);
        assert!(matches!(output, Some(Ok(Ok(_)))), "the task's output");
        quietly(|| drop(output));
        quietly(|| drop((task, sleeps)));
        quietly(|| drop((tx, executor)));
        assert_eq!(drops.get(), 1);
    });
}
