//! Asking for the memory of a chunk of commands before the first of them is executed, where books,
//! users or symbols are too many for the nearer caches: then the lines of many commands come
//! together, and not one after another.

use crate::command::Command;
use crate::engine::state::{PART, State};
use crate::matching::Ahead;

/// Asks for what commands will need, as [`apply_batch`](crate::apply_batch) does.
#[derive(Debug, Default)]
pub(crate) struct Foresight {
    ahead: Ahead,
    /// Whether books, users or symbols were too many when they were last looked at.
    is_large: bool,
    /// Commands to go before they are looked at again.
    left: usize,
}

impl Foresight {
    /// Asks for what this number of commands will need, if that pays. `look` calls its argument
    /// with each of them.
    #[inline(always)]
    pub(crate) fn ask(
        &mut self,
        state: &State,
        count: usize,
        look: impl FnMut(&mut dyn FnMut(&Command)),
    ) {
        // There is nothing to overlap a single one with.
        if count <= 1 {
            return;
        }
        if self.left < count || self.is_large {
            self.look(state, count, look);
        }
        self.left -= count;
    }

    #[inline(never)]
    fn look(
        &mut self,
        state: &State,
        count: usize,
        mut look: impl FnMut(&mut dyn FnMut(&Command)),
    ) {
        if self.left < count {
            self.left = PART.max(count);
            self.is_large = state.risk.is_large();
            look(&mut |command| self.is_large |= state.matching.is_large_for(command));
        }
        if self.is_large {
            look(&mut |command| state.fetch_one(command, &mut self.ahead));
            self.ahead.ask(&state.matching);
        }
    }
}
