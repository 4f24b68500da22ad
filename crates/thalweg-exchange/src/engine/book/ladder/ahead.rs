//! Asking for the cache lines of the ladder.

use thalweg::ring::prefetch;

use super::Ladder;

impl Ladder {
    /// Asks for what every command reads.
    #[inline]
    pub(in crate::engine::book) fn ask_for_itself(&self) {
        prefetch(&self.nodes);
        prefetch(&self.bound);
    }

    /// Asks for the level of a price in the window.
    #[inline]
    pub(in crate::engine::book) fn ask_for_level(&self, price: i64) {
        let offset = self.offset(price);
        if let Some(tick) = self.occupied.tick(offset) {
            prefetch(tick);
            prefetch(&self.nodes[offset as u32]);
        }
    }
}
