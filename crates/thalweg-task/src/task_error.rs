//! How a task ends without an output.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The reason why a task has no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// It was cancelled, or its executor is gone.
    #[error("the task was cancelled")]
    Cancelled,
    /// It was not over at its deadline.
    #[error("the task was not over at its deadline")]
    TimedOut,
    /// It panicked, with this text.
    #[error("the task panicked: {0}")]
    Panicked(String),
}

/// Returns the text of a panic. The payload is dropped; if that panics as well, the second panic is
/// discarded.
pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = match payload.downcast_ref::<&'static str>() {
        Some(text) => (*text).to_owned(),
        None => match payload.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => "a value that is no text".to_owned(),
        },
    };
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    text
}
