//! How much a message matters, and how much room that gives it.
//!
//! *The rule.* A message of priority p is admitted to an inbox if and only if fewer than `limit[p]`
//! elements are in the inbox's ring at the moment at which it draws its place there. Limits ascend,
//! and that of the highest priority is the capacity. An element is a message, or all that waits on
//! the shelf of one topic (`shelf.rs`). In one case there is room and it is refused all the same:
//! where a consumer has been in the middle of taking an element for a lap of the ring.
//!
//! *The guarantee of a reserve.* Let r be `limit[p]` less the limit of the next lower priority.
//! While consumers stall, the lower ones take what is below theirs at most; so the first r messages
//! of p are admitted, whatever the lower ones do. Higher ones may take that room, too; so may an
//! element of each shelf, which comes in whatever its priority, and r has to count those. A reserve
//! is a number of messages, for a rate and a time: a percentage that is enough for one capacity is
//! not for another ([`Reserves`]).

use super::reserve::Reserves;

/// The priority of a message: where a bus has little room left, lower ones are refused first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Priority {
    /// The first to be refused.
    Low,
    /// The priority of a topic by default.
    #[default]
    Medium,
    /// Still admitted where those below are refused.
    High,
    /// The last to be refused.
    Critical,
}

impl Priority {
    /// The number of priorities.
    pub const COUNT: usize = 4;
    /// All priorities, ascending.
    pub const ALL: [Self; Self::COUNT] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// Returns the index of the priority, 0 for the lowest.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The shares of an inbox's room by [`Priority`].
///
/// ```
/// use thalweg::bus::Admission;
///
/// assert_eq!(Admission::default().limits(1_000), Ok([600, 800, 990, 1_000]));
/// assert_eq!(Admission::reserve(0, 100, 50).limits(1_000), Ok([850, 850, 950, 1_000]));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Admission(Shares);

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Shares {
    /// Percentages of the capacity, for all priorities but the highest.
    Percent([u8; Priority::COUNT - 1]),
    /// Messages by priority. The number for the lowest is given, too, though no room is kept for
    /// it.
    Reserve([u64; Priority::COUNT]),
}

/// Low up to 60 % of the capacity, medium 80 %, high 99 %, critical all.
impl Default for Admission {
    fn default() -> Self {
        Self::percent(60, 80, 99)
    }
}

impl Admission {
    /// Limits in percent of the capacity, rounded down, and at least 1 message; critical messages
    /// have all of it.
    pub const fn percent(low: u8, medium: u8, high: u8) -> Self {
        Self(Shares::Percent([low, medium, high]))
    }

    /// Keeps room free for these numbers of messages: `medium` for medium priority and above,
    /// `high` more for high and above, and `critical` more for critical alone. Low ones have the
    /// rest. Add to each of the numbers one for each topic of the inbox that drops the oldest or
    /// conflates: what waits there takes one place, whatever its priority.
    pub const fn reserve(medium: u64, high: u64, critical: u64) -> Self {
        Self(Shares::Reserve([0, medium, high, critical]))
    }

    /// Returns the numbers of messages, in the ring of an inbox of `capacity`, below which each
    /// priority is admitted.
    ///
    /// # Errors
    /// [`AdmissionError`] if that leaves no room for one of them.
    pub fn limits(&self, capacity: usize) -> Result<[u64; Priority::COUNT], AdmissionError> {
        let capacity = capacity as u64;
        match self.0 {
            Shares::Percent(percent) => {
                if percent.is_sorted() && percent[2] <= 100 {
                    // Capacities end far below where this product would.
                    let limit = |percent| (capacity * u64::from(percent) / 100).max(1);
                    let [low, medium, high] = percent.map(limit);
                    Ok([low, medium, high, capacity])
                } else {
                    Err(AdmissionError::Percent(percent))
                }
            }
            Shares::Reserve(reserves) => {
                let mut limits = [capacity; Priority::COUNT];
                let reserved = reserves.iter().fold(0_u64, |sum, &r| sum.saturating_add(r));
                let needed = reserved.saturating_add((reserves[0] == 0).into());
                if needed > capacity {
                    return Err(AdmissionError::Reserves { needed, capacity });
                }
                for lower in (0..Priority::COUNT - 1).rev() {
                    limits[lower] = limits[lower + 1] - reserves[lower + 1];
                }
                Ok(limits)
            }
        }
    }
}

/// Takes the reserves that were sized for bursts and a stall.
impl From<Reserves> for Admission {
    fn from(reserves: Reserves) -> Self {
        Self(Shares::Reserve(reserves.elements))
    }
}

/// An [`Admission`] that a capacity can't have.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AdmissionError {
    /// The percentages do not ascend, or go beyond 100.
    Percent([u8; Priority::COUNT - 1]),
    /// The reserves, and one message of low priority, do not fit.
    Reserves {
        /// Messages that need room.
        needed: u64,
        /// Messages that have room.
        capacity: u64,
    },
}

errors!(AdmissionError {
    Self::Percent(percent) => "limits of {percent:?} percent do not ascend up to 100";
    Self::Reserves { needed, capacity } =>
        "reserves need room for {needed} messages, and an inbox has {capacity}";
});

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn limits_by_percent() {
        let admission = Admission::default();
        assert_eq!(
            admission.limits(131_072),
            Ok([78_643, 104_857, 129_761, 131_072])
        );
        assert_eq!(admission.limits(1), Ok([1; 4]));
        for percent in [[60, 50, 99], [60, 80, 101]] {
            let [low, medium, high] = percent;
            let error = Admission::percent(low, medium, high).limits(10);
            assert_eq!(error, Err(AdmissionError::Percent(percent)));
        }
    }

    #[test]
    fn reserves_are_kept_or_refused() {
        let admission = Admission::reserve(1, 2, 3);
        assert_eq!(admission.limits(7), Ok([1, 2, 4, 7]));
        let refused = AdmissionError::Reserves {
            needed: 7,
            capacity: 6,
        };
        assert_eq!(admission.limits(6), Err(refused));
        assert_eq!(
            refused.to_string(),
            "reserves need room for 7 messages, and an inbox has 6"
        );
        let all = Reserves {
            elements: [u64::MAX; 4],
        };
        assert!(Admission::from(all).limits(1 << 30).is_err());
    }
}
