//! Fibers and generators from outside: waiting, nesting, unwinding, and their stacks.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used)] // all of it is tests, though not every function is #[test]

mod generators;
#[cfg(unix)]
#[allow(unsafe_code)] // a stack without a guard
mod processes;
mod stacks;
mod unwinding;
mod waiting;

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use thalweg_task::fiber::{Fiber, StackOptions, StackPool};

fn pool() -> StackPool {
    StackPool::new(StackOptions::default()).unwrap()
}

/// Polls once, with a waker that wakes no one.
fn poll_once<T>(fiber: &mut Fiber<T>) -> Poll<T> {
    Pin::new(fiber).poll(&mut Context::from_waker(Waker::noop()))
}

/// Counts how often it is dropped.
#[derive(Clone, Default)]
struct Drops(Rc<Cell<u32>>);

impl Drops {
    fn guard(&self) -> Guard {
        Guard(self.clone())
    }

    fn count(&self) -> u32 {
        self.0.get()
    }
}

struct Guard(Drops);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.0.set(self.0.count() + 1);
    }
}
