//! Models of pushes below a limit: never one too many, never one too few.

use super::{begin, beside, check, joined, pop, ring};
use crate::ring::{PushError, TicketEnd};
use loom::sync::Arc;
use loom::thread;

/// Pushes below a limit, as the callers of an end do it.
fn push<T>(end: &mut TicketEnd<T>, value: T, limit: u64) -> Result<(), PushError<T>> {
    match end.push_here_within(value, limit) {
        Ok(()) => Ok(()),
        Err(value) => end.try_push_within(value, limit),
    }
}

#[test]
fn two_producers_share_what_the_limit_allows() {
    check(
        || {
            let ring = ring(2);
            let other = beside(&ring, |ring| u8::from(ring.try_push_within(1, 1).is_ok()));
            begin();
            let own = u8::from(ring.try_push_within(2, 1).is_ok());
            assert_eq!(own + joined(other), 1, "one below the limit of 1");
            assert_eq!(ring.len(), 1);
        },
        &["limit_unasked"],
    );
}

/// Never more than one is in the ring besides what this thread pushes, so all are below 2.
#[test]
fn what_has_left_is_not_counted() {
    check(
        || {
            let ring = ring(2);
            let end = TicketEnd::new(Arc::clone(&ring));
            let other = {
                let mut end = end.clone();
                thread::spawn(move || {
                    assert_eq!(push(&mut end, 1, 2), Ok(()));
                    // One of the two, as soon as the first is published.
                    assert!(pop(|| ring.try_pop()).is_some());
                    assert_eq!(push(&mut end, 2, 2), Ok(()));
                })
            };
            begin();
            let mut end = end;
            assert_eq!(push(&mut end, 3, 2), Ok(()));
            joined(other);
        },
        &["head_old", "admit", "weigh"],
    );
}
