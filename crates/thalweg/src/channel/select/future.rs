//! A select in a task.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::Select;
use super::arm::Waits;
use super::round::State;

/// See [`Select::wait_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct SelectFuture<R, A> {
    pub(super) select: Select<R, A>,
    pub(super) state: State,
}

// Nothing is pinned: arms are on lists by number, not by address.
impl<R, A> Unpin for SelectFuture<R, A> {}

impl<R, A: Waits<R>> Future for SelectFuture<R, A> {
    type Output = A::Waited;

    /// # Panics
    /// If the closure does, and when polled after it is done.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A::Waited> {
        let Self { select, state } = self.get_mut();
        if select.arms.count() == 0 && matches!(state, State::New) {
            *state = State::Done;
            return Poll::Ready(A::waited(None));
        }
        let found = select.round().poll(state, context.waker());
        found.map(|at| A::waited(Some(select.arms.finish(at))))
    }
}
