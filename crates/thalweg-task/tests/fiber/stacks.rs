//! The pool: reuse, limits, decay.

use crate::fiber::{poll_once, pool};
use futures::executor::block_on;
use std::rc::Rc;
use thalweg_task::fiber::{Fiber, StackError, StackOptions, StackPool};

fn with(options: StackOptions) -> StackPool {
    StackPool::new(options).unwrap()
}

fn fibers(stacks: &StackPool, count: usize) -> Vec<Fiber<()>> {
    (0..count)
        .map(|_| stacks.fiber(|ctx| ctx.suspend()).unwrap())
        .collect()
}

#[test]
fn nothing_is_mapped_after_the_warm_up() {
    let stacks = pool();
    for _ in 0..100 {
        let mut fibers = fibers(&stacks, 10);
        fibers
            .iter_mut()
            .for_each(|fiber| assert!(poll_once(fiber).is_pending()));
        // Half of them end, half are dropped as they wait.
        fibers
            .iter_mut()
            .skip(5)
            .for_each(|fiber| assert!(poll_once(fiber).is_ready()));
        drop(fibers);
        assert_eq!(stacks.counts().mapped, 10);
    }
    let counts = stacks.counts();
    assert_eq!((counts.idle, counts.in_use, counts.leaked), (10, 0, 0));
}

#[test]
fn a_pool_has_no_more_than_its_stacks() {
    let stacks = with(StackOptions {
        max: 3,
        ..StackOptions::default()
    });
    let mut three = fibers(&stacks, 3);
    let refused = stacks.fiber(|_| ()).unwrap_err();
    assert!(
        matches!(refused, StackError::Exhausted { max: 3, leaked: 0 }),
        "{refused}"
    );
    three.pop();
    assert!(stacks.fiber(|_| ()).is_ok());
    assert!(poll_once(&mut three[0]).is_pending());
}

#[test]
fn options_outside_of_their_ranges_are_refused() {
    let refused = |size_bytes, min, max| {
        let options = StackOptions {
            size_bytes,
            min,
            max,
            ..StackOptions::default()
        };
        StackPool::new(options)
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert_eq!(refused(8192, 0, 1), Ok(()));
    for (size_bytes, min, max, text) in [
        (
            8191,
            0,
            1,
            "a stack of 8191 bytes: it must have 8192 to 1073741824",
        ),
        (usize::MAX, 0, 1, "a stack of 18446744073709551615 bytes"),
        (1 << 16, 2, 1, "a pool of at least 2 and at most 1 stacks"),
        (1 << 16, 0, 0, "a pool of at least 0 and at most 0 stacks"),
    ] {
        let message = refused(size_bytes, min, max).unwrap_err();
        assert!(message.starts_with(text), "{message}");
    }
}

#[test]
fn a_pool_begins_with_the_stacks_that_it_keeps() {
    let stacks = with(StackOptions {
        min: 5,
        decay_after: 0,
        ..StackOptions::default()
    });
    assert_eq!((stacks.counts().idle, stacks.counts().mapped), (5, 5));
    drop(fibers(&stacks, 8));
    assert_eq!(stacks.decay(), 0, "all eight were in use");
    assert_eq!(stacks.decay(), 3);
    assert_eq!((stacks.decay(), stacks.counts().idle), (0, 5));
}

#[test]
fn stacks_that_a_period_did_not_need_are_unmapped() {
    let stacks = with(StackOptions {
        decay_after: 100,
        ..StackOptions::default()
    });
    drop(fibers(&stacks, 50));
    let mut least = 50;
    for begun in 0..1000 {
        drop(fibers(&stacks, 2));
        let idle = stacks.counts().idle;
        assert!(least - idle <= 16, "{least} to {idle} at once");
        assert!(idle >= 2, "two are needed each time");
        least = idle;
        assert!(begun > 20 || idle == 50, "not before a period is over");
    }
    assert_eq!(least, 2);
    assert_eq!(stacks.counts().mapped, 50);
}

#[test]
fn a_peak_in_each_period_keeps_its_stacks() {
    let stacks = with(StackOptions {
        decay_after: 100,
        ..StackOptions::default()
    });
    for _ in 0..50 {
        drop(fibers(&stacks, 30));
        (0..40).for_each(|_| drop(fibers(&stacks, 1)));
    }
    assert_eq!((stacks.counts().idle, stacks.counts().mapped), (30, 30));
}

#[test]
fn fibers_outlive_the_handles_to_their_pool() {
    let shared = Rc::new(5);
    let stacks = pool();
    let captured = shared.clone();
    let mut fiber = stacks
        .fiber(move |ctx| {
            ctx.suspend();
            *captured
        })
        .unwrap();
    assert!(poll_once(&mut fiber).is_pending());
    drop(stacks);
    assert_eq!(block_on(fiber), 5);
    assert_eq!(Rc::strong_count(&shared), 1);
}
