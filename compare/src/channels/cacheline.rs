//! The floor of a hand-off: one cache line, without room, order or end. The sender must know that
//! the last message was taken.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Message, Pair, TryRecv, TrySend};

/// As it stands in tables.
pub(crate) const FLOOR: &str = "raw cache line";

/// One line.
#[derive(Debug)]
pub(crate) struct CacheLine;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    /// Number of the message + 1, then what else belongs to it.
    sequence: AtomicU64,
    words: [AtomicU64; 4],
}

/// Writes the line.
#[derive(Debug)]
pub(crate) struct Writer<M> {
    line: Arc<Line>,
    sent: u64,
    of: PhantomData<M>,
}

/// Reads the line.
#[derive(Debug)]
pub(crate) struct Reader<M> {
    line: Arc<Line>,
    received: u64,
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
            sent: 0,
            of: PhantomData,
        };
        let rx = Reader {
            line,
            received: 0,
            of: PhantomData,
        };
        (tx, rx)
    }
}

impl<M: Message> TrySend<M> for Writer<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        let words = message.words();
        for (to, word) in self.line.words.iter().zip(&words[..M::WORDS]) {
            // ORDERING: Relaxed; published by the store below.
            to.store(*word, Ordering::Relaxed);
        }
        self.sent += 1;
        // ORDERING: Release, pairs with the Acquire in try_recv; publishes the words.
        self.line.sequence.store(self.sent, Ordering::Release);
        true
    }
}

impl<M: Message> TryRecv<M> for Reader<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        // ORDERING: Acquire, pairs with the Release in try_send; the words are there.
        if self.line.sequence.load(Ordering::Acquire) != self.received + 1 {
            return None;
        }
        self.received += 1;
        let mut words = [0; 4];
        for (word, from) in words[..M::WORDS].iter_mut().zip(&self.line.words) {
            // ORDERING: Relaxed; ordered by the load above.
            *word = from.load(Ordering::Relaxed);
        }
        Some(M::from_words(words))
    }
}
