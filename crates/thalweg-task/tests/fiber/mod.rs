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
use std::rc::Rc;
use thalweg_task::fiber::{StackOptions, StackPool};
use thalweg_testkit::wakers::poll_once;

fn pool() -> StackPool {
    StackPool::new(StackOptions::default()).unwrap()
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
