//! Which order ids a user has used, as far as a window reaches: the anti-replay window of IPsec
//! (RFC 4303, 3.4.3), kept as a ring of bits (RFC 6479), so that nothing is ever moved.

use crate::ids::OrderId;
use crate::result_code::ResultCode;

/// How many ids up to the highest one that was used are known one by one.
pub const ID_WINDOW: u64 = 1024;

const BITS: u64 = u64::BITS as u64;
const WORDS: usize = (ID_WINDOW / BITS) as usize;

/// The ids of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    highest: i64,
    /// By the lowest bits of the id; of ids outside the window none is set.
    used: [u64; WORDS],
}

/// Where the bit of an id is.
const fn place(id: i64) -> (usize, u64) {
    let low = id.cast_unsigned() % ID_WINDOW;
    ((low / BITS) as usize, 1 << (low % BITS))
}

impl Ids {
    pub(super) const fn new(OrderId(first): OrderId) -> Self {
        let mut used = [0; WORDS];
        let (word, bit) = place(first);
        used[word] |= bit;
        let highest = first;
        Self { highest, used }
    }

    /// The ids as [`Self::parts`] gave them; `None` where they were none: the highest one is used,
    /// and no bit stands for an id below all numbers.
    pub(crate) fn from_parts(highest: i64, used: [u64; WORDS]) -> Option<Self> {
        let ids = Self { highest, used };
        let steps_down = highest.abs_diff(i64::MIN);
        let mut below = steps_down.saturating_add(1)..ID_WINDOW;
        let is_none = below.all(|back| !ids.has(highest.wrapping_sub_unsigned(back)));
        (ids.has(highest) && is_none).then_some(ids)
    }

    /// The highest id, and the bits of the window: that of an id is at its lowest ten bits.
    pub(crate) const fn parts(&self) -> (i64, &[u64; WORDS]) {
        (self.highest, &self.used)
    }

    const fn has(&self, id: i64) -> bool {
        let (word, bit) = place(id);
        self.used[word] & bit != 0
    }

    /// Refuses an id that was used, or that is too old to know.
    pub(super) const fn check(&self, OrderId(id): OrderId) -> Result<(), ResultCode> {
        if id > self.highest {
            return Ok(());
        }
        if self.highest.abs_diff(id) >= ID_WINDOW {
            return Err(ResultCode::RiskOrderIdTooOld);
        }
        if self.has(id) {
            Err(ResultCode::RiskOrderIdUsed)
        } else {
            Ok(())
        }
    }

    /// Notes an id that passed the check. Cost: a step for each id that is left out, up to the
    /// width of the window.
    pub(super) fn note(&mut self, OrderId(id): OrderId) {
        if id > self.highest {
            if id.abs_diff(self.highest) >= ID_WINDOW {
                self.used = [0; WORDS];
            } else {
                for skipped in self.highest + 1..id {
                    let (word, bit) = place(skipped);
                    self.used[word] &= !bit;
                }
            }
            self.highest = id;
        }
        let (word, bit) = place(id);
        self.used[word] |= bit;
    }

    /// The highest id, and which of those below are used: bit 0 is the highest itself.
    pub(super) fn highest_and_used(&self) -> (i64, String) {
        let is_used = |back: u64| self.has(self.highest.wrapping_sub_unsigned(back));
        let digit =
            |at: u64| (0..4).fold(0, |sum, bit| sum | u32::from(is_used(at * 4 + bit)) << bit);
        let digits = (0..ID_WINDOW / 4).map(digit);
        let text: String = digits
            .filter_map(|digit| char::from_digit(digit, 16))
            .collect();
        (self.highest, text.trim_end_matches('0').to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_counts_once_and_old_ones_never(
            start in prop_oneof![Just(0), Just(i64::MIN), Just(i64::MAX - 5_000), any::<i64>()],
            steps in prop::collection::vec(
                prop_oneof![4 => -40..60_i64, 1 => -1_100..-900_i64, 1 => 900..1_100_i64,
                    1 => 2_000..9_000_i64],
                1..200,
            ),
        ) {
            let mut ids = Ids::new(OrderId(start));
            let mut used = BTreeSet::from([start]);
            let mut highest = start;
            for step in steps {
                let id = highest.saturating_add(step);
                let expected = if id <= highest && highest.abs_diff(id) >= ID_WINDOW {
                    Err(ResultCode::RiskOrderIdTooOld)
                } else if used.contains(&id) {
                    Err(ResultCode::RiskOrderIdUsed)
                } else {
                    Ok(())
                };
                prop_assert_eq!(ids.check(OrderId(id)), expected, "{} after {}", id, highest);
                if expected.is_ok() {
                    ids.note(OrderId(id));
                    used.insert(id);
                    highest = highest.max(id);
                }
            }
        }
    }

    #[test]
    fn used_ids_are_listed_from_the_highest_on() {
        let mut ids = Ids::new(OrderId(70));
        ids.note(OrderId(68));
        ids.note(OrderId(66));
        assert_eq!(ids.highest_and_used(), (70, "51".to_owned()));
        ids.note(OrderId(5_000));
        assert_eq!(ids.highest_and_used(), (5_000, "1".to_owned()));
    }
}
