//! Fibers that end before their bodies do: by a panic, or dropped while they wait.

use crate::fiber::{Drops, poll_once, pool};
use futures::channel::oneshot;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::task::Poll;
use std::thread;
use thalweg_task::fiber::{Fiber, FiberContext, Unwound};
use thalweg_task::{Local, LocalExecutor, SlotSender, slot};

/// A fiber that waits for ever, ten calls deep, with something to drop in each.
fn waiting(drops: &Drops) -> Fiber<()> {
    fn deep(ctx: &mut FiberContext<'_>, drops: &Drops, levels: u32) {
        let _guard = drops.guard();
        match levels {
            1 => ctx.wait(std::future::pending()),
            _ => deep(ctx, drops, levels - 1),
        }
    }
    let drops = drops.clone();
    pool().fiber(move |ctx| deep(ctx, &drops, 10)).unwrap()
}

#[test]
fn a_fiber_dropped_while_it_waits_drops_what_is_on_its_stack_once() {
    let drops = Drops::default();
    let mut fiber = waiting(&drops);
    for _ in 0..3 {
        assert!(poll_once(&mut fiber).is_pending());
    }
    assert_eq!(drops.count(), 0);
    drop(fiber);
    assert_eq!(drops.count(), 10);
}

#[test]
fn a_fiber_dropped_before_it_began_drops_what_it_captured_once() {
    for large in [false, true] {
        let (drops, stacks) = (Drops::default(), pool());
        let (guard, ballast) = (drops.guard(), [1_u8; 5000]);
        let fiber = if large {
            stacks.fiber(move |_| drop((guard, ballast)))
        } else {
            stacks.fiber(move |_| drop(guard))
        };
        assert_eq!(stacks.counts().in_use, 1);
        drop(fiber);
        assert_eq!((drops.count(), stacks.counts().in_use), (1, 0));
    }
}

#[test]
fn a_future_that_is_waited_for_is_dropped_with_the_fiber() {
    let (tx, rx) = oneshot::channel::<()>();
    let mut fiber = pool().fiber(move |ctx| ctx.wait(rx)).unwrap();
    assert!(poll_once(&mut fiber).is_pending());
    assert!(!tx.is_canceled());
    drop(fiber);
    assert!(tx.is_canceled());
}

#[test]
fn a_tower_of_fibers_is_unwound_from_below() {
    let (drops, stacks) = (Drops::default(), pool());
    fn tower(stacks: &thalweg_task::fiber::StackPool, drops: &Drops, levels: u32) -> Fiber<()> {
        let (more, drops) = (stacks.clone(), drops.clone());
        let body = move |ctx: &mut FiberContext<'_>| {
            let _guard = drops.guard();
            match levels {
                1 => ctx.suspend(),
                _ => ctx.wait(tower(&more, &drops, levels - 1)),
            }
        };
        stacks.fiber(body).unwrap()
    }
    let mut fiber = tower(&stacks, &drops, 20);
    assert!(poll_once(&mut fiber).is_pending());
    assert_eq!((stacks.counts().in_use, drops.count()), (20, 0));
    drop(fiber);
    assert_eq!((stacks.counts().in_use, drops.count()), (0, 20));
}

#[test]
fn a_panic_goes_out_of_the_poll_and_the_stack_back_to_the_pool() {
    let (drops, stacks) = (Drops::default(), pool());
    let guarded = drops.clone();
    let mut fiber = stacks
        .fiber(move |ctx| {
            let _guard = guarded.guard();
            ctx.suspend();
            panic!("in the fiber");
        })
        .unwrap();
    assert!(poll_once(&mut fiber).is_pending());
    let panicked = catch_unwind(AssertUnwindSafe(|| poll_once(&mut fiber))).unwrap_err();
    assert_eq!(panicked.downcast_ref(), Some(&"in the fiber"));
    assert_eq!((drops.count(), stacks.counts().in_use), (1, 0));
    assert!(!thread::panicking());
    let again = catch_unwind(AssertUnwindSafe(|| poll_once(&mut fiber))).unwrap_err();
    assert!(
        again
            .downcast_ref::<&str>()
            .unwrap()
            .contains("after it had finished")
    );
}

#[test]
fn a_panic_that_the_body_catches_stays_inside() {
    let mut fiber = pool()
        .fiber(|ctx| {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                ctx.suspend();
                panic!("caught");
            }));
            ctx.suspend();
            caught.unwrap_err().downcast_ref() == Some(&"caught")
        })
        .unwrap();
    assert!(poll_once(&mut fiber).is_pending());
    assert!(poll_once(&mut fiber).is_pending());
    assert_eq!(poll_once(&mut fiber), Poll::Ready(true));
}

#[test]
fn a_body_that_catches_its_unwinding_sees_what_it_is_and_may_end_well() {
    let seen = Rc::new(Cell::new(0));
    for rethrows in [true, false] {
        let (stacks, counted) = (pool(), seen.clone());
        let mut fiber = stacks
            .fiber(move |ctx| {
                let payload = catch_unwind(AssertUnwindSafe(|| ctx.suspend())).unwrap_err();
                counted.set(counted.get() + u32::from(payload.is::<Unwound>()));
                if rethrows {
                    resume_unwind(payload);
                }
            })
            .unwrap();
        assert!(poll_once(&mut fiber).is_pending());
        drop(fiber);
        assert_eq!(stacks.counts().in_use, 0);
    }
    assert_eq!(seen.get(), 2);
}

#[test]
fn a_body_that_catches_its_unwinding_and_waits_again_is_unwound_again() {
    let (drops, stacks, caught) = (Drops::default(), pool(), Rc::new(Cell::new(0)));
    let (guarded, counted) = (drops.clone(), caught.clone());
    let mut fiber = stacks
        .fiber(move |ctx| {
            let _guard = guarded.guard();
            for _ in 0..10 {
                let waited = AssertUnwindSafe(|| ctx.wait(std::future::pending::<()>()));
                counted.set(counted.get() + u32::from(catch_unwind(waited).is_err()));
            }
            ctx.wait(std::future::pending::<()>());
        })
        .unwrap();
    assert!(poll_once(&mut fiber).is_pending());
    drop(fiber);
    assert_eq!((caught.get(), drops.count()), (10, 1));
    assert_eq!((stacks.counts().in_use, stacks.counts().leaked), (0, 0));
}

/// Waits when it is dropped.
struct WaitsAtLast<'a, 'f>(&'a mut FiberContext<'f>, bool, Rc<Cell<u32>>);

impl Drop for WaitsAtLast<'_, '_> {
    fn drop(&mut self) {
        self.2.set(self.0.wait(async { 7 }));
        if self.1 {
            self.0.suspend();
        }
    }
}

#[test]
fn a_destructor_has_what_is_ready_while_its_fiber_is_unwound() {
    let (stacks, got) = (pool(), Rc::new(Cell::new(0)));
    let result = got.clone();
    let mut fiber: Fiber<()> = stacks
        .fiber(move |ctx| {
            let waits = WaitsAtLast(ctx, false, result);
            waits.0.wait(std::future::pending())
        })
        .unwrap();
    assert!(poll_once(&mut fiber).is_pending());
    drop(fiber);
    assert_eq!((got.get(), stacks.counts().in_use), (7, 0));
}

#[test]
fn a_destructor_that_runs_because_of_a_panic_may_wait() {
    let (stacks, got) = (pool(), Rc::new(Cell::new(0)));
    let result = got.clone();
    let mut fiber: Fiber<()> = stacks
        .fiber(move |ctx| {
            let _waits = WaitsAtLast(ctx, true, result);
            panic!("and waits then");
        })
        .unwrap();
    assert!(poll_once(&mut fiber).is_pending());
    assert!(thread::panicking(), "as documented");
    // Others may panic meanwhile, and be caught.
    let mut other: Fiber<()> = stacks.fiber(|_| panic!("another")).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| poll_once(&mut other))).is_err());
    let panicked = catch_unwind(AssertUnwindSafe(|| poll_once(&mut fiber))).unwrap_err();
    assert_eq!(panicked.downcast_ref(), Some(&"and waits then"));
    assert!(!thread::panicking());
    assert_eq!((got.get(), stacks.counts().in_use), (7, 0));
}

#[test]
fn fibers_are_unwound_while_their_thread_panics() {
    let drops = Drops::default();
    let kept = drops.clone();
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let mut fibers: Vec<_> = (0..3).map(|_| waiting(&kept)).collect();
        fibers
            .iter_mut()
            .for_each(|fiber| assert!(poll_once(fiber).is_pending()));
        panic!("with three fibers");
    }));
    assert_eq!(
        panicked.unwrap_err().downcast_ref(),
        Some(&"with three fibers")
    );
    assert_eq!(drops.count(), 30);
    assert!(!thread::panicking());
}

#[test]
fn a_body_that_catches_its_unwinding_may_do_so_while_its_thread_panics() {
    let caught = Rc::new(Cell::new(0));
    let counted = caught.clone();
    let panicked = catch_unwind(AssertUnwindSafe(move || {
        let mut fiber = pool()
            .fiber(move |ctx| {
                for _ in 0..3 {
                    let waited = catch_unwind(AssertUnwindSafe(|| ctx.suspend()));
                    counted.set(counted.get() + u32::from(waited.unwrap_err().is::<Unwound>()));
                }
            })
            .unwrap();
        assert!(poll_once(&mut fiber).is_pending());
        panic!("with a fiber");
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"with a fiber"));
    assert_eq!((caught.get(), thread::panicking()), (3, false));
}

/// A value that sends when it is dropped, and notes whether the receiver ran.
struct SendsAtLast(SlotSender<u8, Local>, Rc<Cell<Option<bool>>>);

impl Drop for SendsAtLast {
    fn drop(&mut self) {
        self.1.set(self.0.send_now(1).ok());
    }
}

#[test]
fn a_destructor_runs_no_other_task_on_the_stack_of_its_fiber() {
    let (executor, stacks, ran) = (LocalExecutor::new(), pool(), Rc::new(Cell::new(None)));
    let (tx, mut rx) = slot::<u8, Local>();
    let received = executor.spawn(async move { rx.recv().await });
    executor.poll();
    let sends = SendsAtLast(tx, ran.clone());
    let mut fiber = stacks
        .fiber(move |ctx| {
            let _sends = sends;
            ctx.suspend();
        })
        .unwrap();
    assert!(poll_once(&mut fiber).is_pending());
    drop(fiber);
    assert_eq!(ran.get(), Some(false));
    assert_eq!(executor.block_on(received).unwrap(), Ok(1));
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in a destructor");
    }
}

#[test]
fn a_destructor_that_panics_loses_no_stack() {
    let (drops, stacks) = (Drops::default(), pool());
    // Captured and never begun; on the stack of one that ends well, dropped as it returns.
    let (bomb, guard) = (Bomb, drops.guard());
    let unbegun = stacks.fiber(move |_| drop((bomb, guard))).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| drop(unbegun))).unwrap_err();
    assert_eq!(panicked.downcast_ref(), Some(&"in a destructor"));
    let guard = drops.guard();
    let mut returns = stacks
        .fiber(move |ctx| {
            let _caught = catch_unwind(AssertUnwindSafe(|| ctx.suspend()));
            (Bomb, guard)
        })
        .unwrap();
    assert!(poll_once(&mut returns).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(returns))).is_err());
    assert_eq!((drops.count(), stacks.counts().in_use), (2, 0));
    assert!(!thread::panicking());
}
