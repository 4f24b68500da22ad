//! Asking for the memory of a chunk of commands before the first of them is executed, where books,
//! users or symbols are too many for the nearer caches: then the lines of many commands come
//! together, and not one after another.

use thalweg::pipeline::Chunk;

use super::slot::Slot;
use crate::engine::state::{PART, State};
use crate::matching::Ahead;

/// Asks for what commands will need, as [`apply_batch`](crate::apply_batch) does.
#[derive(Debug, Default)]
pub(super) struct Foresight {
    ahead: Ahead,
    /// Whether books, users or symbols were too many when they were last looked at.
    is_large: bool,
    /// Commands to go before they are looked at again.
    left: usize,
}

impl Foresight {
    /// Asks for what the commands of a chunk will need, if that pays.
    #[inline(always)]
    pub(super) fn ask(&mut self, state: &State, chunk: &mut Chunk<'_, Slot>) {
        // There is nothing to overlap a single one with.
        if chunk.len() == 1 {
            return;
        }
        if self.left < chunk.len() {
            self.look_again(state, chunk);
        }
        self.left -= chunk.len();
        if self.is_large {
            self.fetch(state, chunk);
        }
    }

    #[inline(never)]
    fn fetch(&mut self, state: &State, chunk: &mut Chunk<'_, Slot>) {
        chunk.look(|slot| state.fetch_one(&slot.command, &mut self.ahead));
        self.ahead.ask(&state.matching);
    }

    #[cold]
    #[inline(never)]
    fn look_again(&mut self, state: &State, chunk: &mut Chunk<'_, Slot>) {
        self.left = PART.max(chunk.len());
        self.is_large = state.risk.is_large();
        chunk.look(|slot| self.is_large |= state.matching.is_large_for(&slot.command));
    }
}
