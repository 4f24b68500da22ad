//! Fibers allocate and map nothing after the warm-up. A binary of its own, for its allocator.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // all of it is a test

use std::pin::Pin;
use std::task::{Context, Waker};
use thalweg_task::fiber::{Fiber, StackOptions, StackPool};
use thalweg_testkit::counting::calls;

/// Fibers that begin, wait and end, side by side, and one that is dropped before it begins.
fn round(stacks: &StackPool, fibers: &mut Vec<Fiber<usize>>) {
    let mut cx = Context::from_waker(Waker::noop());
    for index in 0..10 {
        let fiber = stacks.fiber(move |ctx| {
            (0..index).for_each(|_| ctx.suspend());
            index
        });
        fibers.push(fiber.unwrap());
    }
    drop(stacks.fiber(|_| ()).unwrap());
    while !fibers.is_empty() {
        fibers.retain_mut(|fiber| Pin::new(fiber).poll(&mut cx).is_pending());
    }
    let generator = stacks.generator(|ctx, ()| (0..10).for_each(|number| ctx.suspend(number)));
    assert_eq!(generator.unwrap().sum::<u32>(), 45);
}

#[test]
fn nothing_is_allocated_or_mapped_after_the_warm_up() {
    let stacks = StackPool::new(StackOptions::default()).unwrap();
    let mut fibers = Vec::with_capacity(10);
    round(&stacks, &mut fibers);
    let mapped = stacks.counts().mapped;
    assert_eq!(
        calls(|| (0..500).for_each(|_| round(&stacks, &mut fibers))),
        0
    );
    assert_eq!(stacks.counts().mapped, mapped);
}

#[test]
fn a_fiber_that_ends_allocates_nothing_at_a_new_maximum_of_fibers() {
    let stacks = StackPool::new(StackOptions::default()).unwrap();
    let fibers: Vec<_> = (0..100).map(|_| stacks.fiber(|_| ()).unwrap()).collect();
    let ends = |fiber| assert_eq!(calls(|| drop(fiber)), 0);
    fibers.into_iter().for_each(ends);
    assert_eq!(stacks.counts().idle, 100);
}
