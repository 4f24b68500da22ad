//! Keeping a distance between the two ends of a dense stream.
//!
//! Where both ends are about as fast, one follows right behind the other: each look at the other's
//! index finds a few elements (or a little room) more, and takes that line, and those of the
//! elements, away from a side that is just writing them. Looks that are further apart find more,
//! and the two sides work on different lines. So an endpoint whose looks find little, one after
//! another, pauses before the next; if that does not bring more, it lets it be for a while. After
//! the slip of FastForward (Giacomoni, Moseley and Vachharajani, 2008), without its clock.

use crate::ring::sync::{IS_MODEL, UnsafeCell, spin_hint};

/// How long to pause, in turns of some 10 ns.
const PAUSES: u32 = 32;
/// The number of cells that is enough at a check; a quarter of the ring if that is less.
const ENOUGH_MAX: u64 = 128;
/// The number that a check that found little adds to the score, from which one that found nothing
/// takes 1: with 8 and more of those between them, it is no dense stream.
const THIN_SCORE: u32 = 8;
/// The score at which pauses begin: four looks on end that found little.
const PAUSING_SCORE: u32 = 4 * THIN_SCORE;
/// The number of cells that a pause must bring to be worth it.
const GAIN_MIN: u64 = 8;
/// After a pause in vain, 2 looks that found little do not count, then 4, up to 2 to the power of
/// this.
const BACKOFF_MAX: u32 = 10;

/// The estimate of one endpoint of its distance to the other.
#[derive(Debug)]
struct Distance {
    enough: u64,
    pauses: bool,
    /// The next look is to be a closer one; `pauses` is set, too, so that others ask once.
    is_closer: bool,
    /// How much it looks like a dense stream without a distance.
    score: u32,
    /// The number of cells that looks found without a pause.
    unpaused: u64,
    /// Looks to pass without a pause, and the exponent of the next such time.
    skip: u32,
    backoff: u32,
}

impl Distance {
    fn new(capacity: usize) -> Self {
        Self {
            enough: (capacity as u64 / 4).min(ENOUGH_MAX),
            pauses: false,
            is_closer: false,
            score: 0,
            unpaused: 0,
            skip: 0,
            backoff: 0,
        }
    }

    /// Notes that a look has found `cells` cells.
    #[inline(always)]
    fn found(&mut self, cells: u64) {
        if cells == 0 {
            self.pauses = false;
            self.score = self.score.saturating_sub(1);
        } else if cells >= self.enough {
            if self.pauses {
                self.backoff = 0;
            }
            self.pauses = false;
            self.score = 0;
        } else {
            self.found_little(cells);
        }
    }

    fn found_little(&mut self, cells: u64) {
        if self.pauses {
            self.after_pause(cells);
        } else if self.skip > 0 {
            self.skip -= 1;
        } else {
            self.score += THIN_SCORE;
            if self.score >= PAUSING_SCORE {
                self.score = 0;
                self.unpaused = cells;
                self.pauses = true;
            }
        }
    }

    /// Not enough, even with a pause.
    fn after_pause(&mut self, cells: u64) {
        if cells >= self.unpaused + GAIN_MIN {
            self.backoff = 0;
        } else {
            self.pauses = false;
            self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
            self.skip = 1 << self.backoff;
        }
    }
}

/// The distance of one endpoint, on lines that the other never touches. It lives in the ring, not
/// in the endpoint, whose address is kept from functions on the way of a push or a pop.
#[repr(align(128))]
pub(super) struct Keeper(UnsafeCell<Distance>);

impl Keeper {
    pub(super) fn new(capacity: usize) -> Self {
        Self(UnsafeCell::new(Distance::new(capacity)))
    }

    /// Makes the next [`look`](Self::look) give `None`. That costs the other looks nothing.
    ///
    /// # Safety
    /// As [`look`](Self::look).
    #[inline(always)]
    pub(super) unsafe fn look_closer(&self) {
        // SAFETY: as in `look`.
        self.0.with_mut(|distance| unsafe {
            (*distance).pauses = true;
            (*distance).is_closer = true;
        });
    }

    /// Looks, after a pause if there should be one. `look` gives where the other side is and how
    /// many cells that makes. `None` after [`look_closer`](Self::look_closer), once.
    ///
    /// # Safety
    /// The caller is the endpoint that this belongs to.
    #[inline(always)]
    pub(super) unsafe fn look(&self, look: impl FnOnce() -> (u64, u64)) -> Option<u64> {
        // SAFETY: the one endpoint that this belongs to is on one thread at a time, and `look` has
        // no way to get here.
        self.0.with_mut(|distance| unsafe {
            if (*distance).pauses {
                if std::mem::take(&mut (*distance).is_closer) {
                    (*distance).pauses = false;
                    return None;
                }
                // A model would try every pause.
                for _ in 0..if IS_MODEL { 0 } else { PAUSES } {
                    spin_hint();
                }
            }
            let (position, cells) = look();
            (*distance).found(cells);
            Some(position)
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn after(capacity: usize, finds: &[u64]) -> Distance {
        let mut distance = Distance::new(capacity);
        for &cells in finds {
            distance.found(cells);
        }
        distance
    }

    #[test]
    fn pauses_after_thin_looks_on_end_and_only_then() {
        assert!(!after(1024, &[5, 5, 5]).pauses);
        assert!(after(1024, &[5, 5, 5, 5]).pauses);
        assert!(!after(1024, &[5, 5, 200, 5, 5]).pauses);
        // A few looks in vain between them: a reader that polls.
        assert!(after(1024, &[5, 0, 0, 5, 0, 5, 5, 5]).pauses);
        // Messages that come one by one, with time between them.
        let sparse = [1, 0, 0, 0, 0, 0, 0, 0, 0].repeat(10);
        assert!(!after(1024, &sparse).pauses);
    }

    #[test]
    fn goes_on_while_it_helps_and_stops_when_there_is_enough() {
        assert!(after(1024, &[5, 5, 5, 5, 40, 40]).pauses);
        assert!(!after(1024, &[5, 5, 5, 5, 40, 128]).pauses);
        assert!(!after(1024, &[5, 5, 5, 5, 0]).pauses);
    }

    #[test]
    fn a_pause_in_vain_is_tried_again_ever_more_rarely() {
        let mut distance = Distance::new(1024);
        let mut pauses = Vec::new();
        for look in 0..10_000 {
            distance.found(1);
            if distance.pauses {
                pauses.push(look);
            }
        }
        assert!(pauses.len() >= 8, "{pauses:?}");
        assert!(pauses.len() <= 20, "{pauses:?}");
        assert!(pauses[1] - pauses[0] < pauses[5] - pauses[4], "{pauses:?}");
    }

    #[test]
    fn a_small_ring_has_a_small_enough() {
        assert!(!after(8, &[2, 2, 2, 2, 2]).pauses);
        assert!(!after(1, &[1, 1, 1, 1, 1]).pauses);
        assert!(
            !after(0, &[1; 100]).pauses,
            "the consumer of a slotted ring"
        );
    }
}
