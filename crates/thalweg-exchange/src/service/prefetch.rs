//! Prefetch of the memory of a chunk of commands before the first of them is executed, where books,
//! users or symbols are too many for the nearer caches: then the lines of many commands are loaded
//! together, and not one after another.

use crate::command::Command;
use crate::engine::state::{PART, State};
use crate::matching::PrefetchGroup;

/// Prefetches what commands will need, as [`apply_batch`](crate::apply_batch) does.
#[derive(Debug, Default)]
pub(crate) struct Prefetcher {
    group: PrefetchGroup,
    /// Whether books, users or symbols were too many when that was last checked.
    is_large: bool,
    /// Commands until that is checked again.
    left: usize,
}

impl Prefetcher {
    /// Prefetches what `count` commands will need, if that pays. `each` calls its argument with
    /// each of them.
    #[inline(always)]
    pub(crate) fn prefetch(
        &mut self,
        state: &State,
        count: usize,
        each: impl FnMut(&mut dyn FnMut(&Command)),
    ) {
        // There is nothing to overlap a single one with.
        if count <= 1 {
            return;
        }
        if self.left < count || self.is_large {
            self.prefetch_slow(state, count, each);
        }
        self.left -= count;
    }

    #[inline(never)]
    fn prefetch_slow(
        &mut self,
        state: &State,
        count: usize,
        mut each: impl FnMut(&mut dyn FnMut(&Command)),
    ) {
        if self.left < count {
            self.left = PART.max(count);
            self.is_large = state.risk.is_large();
            each(&mut |command| self.is_large |= state.matching.is_large_for(command));
        }
        if self.is_large {
            each(&mut |command| state.prefetch_one(command, &mut self.group));
            self.group.prefetch(&state.matching);
        }
    }
}
