//! Asking for the memory of a chunk of commands before the first of them is executed, where books,
//! users or symbols are too many for the nearer caches: then the lines of many commands come
//! together, and not one after another.

use thalweg::pipeline::Chunk;

use super::Slot;
use crate::matching::{Ahead, Matching};
use crate::risk::Risk;

/// What the match stage asks for.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    ahead: Ahead,
    /// Whether books were large when they were last looked at.
    is_large: bool,
    /// Commands to go before books are looked at again.
    left: usize,
}

impl Outlook {
    /// Books are taken to stay as large as they were for so many commands.
    const PART: usize = 4096;

    /// Asks for what the commands of a chunk will need of the books, if these are large.
    #[inline(always)]
    pub(super) fn ask(&mut self, books: &Matching, chunk: &mut Chunk<'_, Slot>) {
        // There is nothing to overlap a single one with.
        if chunk.len() == 1 {
            return;
        }
        if self.left < chunk.len() {
            self.look_again(books, chunk);
        }
        self.left -= chunk.len();
        if self.is_large {
            self.ask_for_orders(books, chunk);
        }
    }

    #[inline(never)]
    fn ask_for_orders(&mut self, books: &Matching, chunk: &mut Chunk<'_, Slot>) {
        chunk.look(|slot| self.ahead.note(books, &slot.command));
        self.ahead.ask(books);
    }

    #[cold]
    #[inline(never)]
    fn look_again(&mut self, books: &Matching, chunk: &mut Chunk<'_, Slot>) {
        self.left = Self::PART.max(chunk.len());
        self.is_large = false;
        chunk.look(|slot| self.is_large |= books.is_large_for(&slot.command));
    }
}

/// What the risk stage asks for.
#[derive(Debug, Default)]
pub(super) struct Foresight {
    /// Commands below this number were asked for: those that wait are offered again.
    until: u64,
}

impl Foresight {
    /// Asks for the users and symbols of a chunk of commands, if there are many.
    #[inline(always)]
    pub(super) fn ask(&mut self, risk: &Risk, chunk: &mut Chunk<'_, Slot>) {
        if chunk.len() > 1 && risk.is_large() {
            self.ask_for_money(risk, chunk);
        }
    }

    #[inline(never)]
    fn ask_for_money(&mut self, risk: &Risk, chunk: &mut Chunk<'_, Slot>) {
        let first = chunk.first_sequence();
        if first >= self.until {
            self.until = first + chunk.len() as u64;
            chunk.look(|slot| risk.fetch(&slot.command));
        }
    }
}
