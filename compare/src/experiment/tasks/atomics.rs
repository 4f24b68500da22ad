//! What an atomic operation costs here where nobody else wants its line, beside the same without.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::runner::{Run, Subject, subject};

/// Operations of a run.
#[derive(Debug)]
pub(super) struct Times(pub(super) u64);

fn timed(times: &Times, mut operation: impl FnMut()) -> Result<Run, String> {
    let begin = Instant::now();
    for _ in 0..times.0 {
        operation();
    }
    Ok(Run::of(vec![
        begin.elapsed().as_nanos() as f64 / times.0 as f64,
    ]))
}

pub(super) fn subjects() -> Vec<Box<dyn Subject<Times>>> {
    vec![
        subject("plain read-modify-write", |times| {
            let word = Cell::new(0_u64);
            timed(times, || {
                let word = black_box(&word);
                word.set(word.get() + 1);
            })
        }),
        subject("locked read-modify-write", |times| {
            let word = AtomicU64::new(0);
            // ORDERING: Relaxed; nobody else knows the word, the lock prefix is what costs.
            timed(times, || {
                _ = black_box(&word).fetch_add(1, Ordering::Relaxed)
            })
        }),
        subject("Rc clone + drop", |times| {
            let rc = Rc::new(0_u64);
            timed(times, || drop(black_box(Rc::clone(black_box(&rc)))))
        }),
        subject("Arc clone + drop", |times| {
            let arc = Arc::new(0_u64);
            timed(times, || drop(black_box(Arc::clone(black_box(&arc)))))
        }),
        subject("RefCell borrow", |times| {
            let cell = RefCell::new(0_u64);
            timed(times, || *black_box(&cell).borrow_mut() += 1)
        }),
        subject("Mutex lock + unlock", |times| {
            let mutex = Mutex::new(0_u64);
            timed(times, || {
                let locked = black_box(&mutex).lock();
                *locked.unwrap_or_else(PoisonError::into_inner) += 1;
            })
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_takes_time() {
        for subject in subjects() {
            let run = subject.run(&Times(1_000)).expect("nothing can refuse");
            assert!(run.values[0] > 0.0, "{}", subject.name());
        }
    }
}
