//! Properties that only the type checker knows: `Send`, `Sync`, `Unpin`, and what must not escape.

#[path = "../../../thalweg/tests/types/compiler.rs"]
mod compiler;

use thalweg_journal::{AppendBuffer, Block, Journal, Reader, Record, RecordType, Records, Shared};
use thalweg_journal::{Durable, Storage};

fn send<T: Send>() {}
fn sync<T: Sync>() {}
fn unpin<T: Unpin>() {}

/// The type of records says nothing of the thread: no journal holds any.
#[expect(dead_code, reason = "compiled is all that it has to be")]
fn moves<K: RecordType + ?Sized, R: Record, S: Storage, T, F: FnMut(&mut [T]) + Send>()
where
    T: Send,
    S::File: Sync,
{
    send::<(
        Journal<K, S>,
        Shared<K, S>,
        Reader<S>,
        Records<'_, R, S>,
        Block<'_>,
    )>();
    send::<(AppendBuffer<T, F>, Durable<T>)>();
    sync::<Shared<K, S>>();
    unpin::<(Shared<K, S>, Block<'_>)>();
}

#[test]
fn what_would_be_wrong_does_not_compile() {
    compiler::assert_refused("thalweg_journal", include_str!("refused.rs"));
}
