//! The floor of a hand-off: one cache line, without room, order or end. The sender must know that
//! the last message was taken.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Message, Pair, TryRecv, TrySend};

/// As it stands in tables.
const FLOOR: &str = "raw cache line";

/// One line.
#[derive(Debug)]
pub(crate) struct CacheLine;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    /// The message's first word + 1, so that it is never what it was before; the last one is 0.
    first: AtomicU64,
    others: [AtomicU64; 3],
}

/// Writes the line.
#[derive(Debug)]
pub(crate) struct Writer<M> {
    line: Arc<Line>,
    of: PhantomData<M>,
}

/// Reads the line.
#[derive(Debug)]
pub(crate) struct Reader<M> {
    line: Arc<Line>,
    seen: u64,
    of: PhantomData<M>,
}

impl<M: Message> Pair<M> for CacheLine {
    const NAME: &'static str = FLOOR;
    type Tx = Writer<M>;
    type Rx = Reader<M>;
    fn pair(_: usize) -> (Self::Tx, Self::Rx) {
        let line = Arc::new(Line::default());
        let tx = Writer {
            line: Arc::clone(&line),
            of: PhantomData,
        };
        let rx = Reader {
            line,
            seen: 0,
            of: PhantomData,
        };
        (tx, rx)
    }
}

impl<M: Message> TrySend<M> for Writer<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        let words = message.words();
        for (to, word) in self.line.others.iter().zip(&words[1..M::WORDS]) {
            // ORDERING: Relaxed; published by the store below.
            to.store(*word, Ordering::Relaxed);
        }
        let first = words[0].wrapping_add(1);
        // ORDERING: Release, pairs with the Acquire in try_recv; publishes the other words.
        self.line.first.store(first, Ordering::Release);
        true
    }
}

impl<M: Message> TryRecv<M> for Reader<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        // ORDERING: Acquire, pairs with the Release in try_send; the other words are there.
        let first = self.line.first.load(Ordering::Acquire);
        if first == self.seen {
            return None;
        }
        self.seen = first;
        let mut words = [first.wrapping_sub(1), 0, 0, 0];
        for (word, from) in words[1..M::WORDS].iter_mut().zip(&self.line.others) {
            // ORDERING: Relaxed; ordered by the load above.
            *word = from.load(Ordering::Relaxed);
        }
        Some(M::from_words(words))
    }
}
