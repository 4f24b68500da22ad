//! The priority of a message, and the share of an inbox that it may use.
//!
//! *The rule.* A message of priority p is admitted to an inbox if and only if fewer than `limit[p]`
//! elements are in the inbox's ring at the moment at which it claims its slot. Limits ascend,
//! and that of the highest priority is the capacity. An element is a message, or all that waits on
//! the topic buffer of one topic (`topic_buffer.rs`). In one case a slot is free and it is refused
//! all the same: where a consumer has been in the middle of taking an element for a lap of the
//! ring.
//!
//! *The guarantee of a reserve.* Let r be `limit[p]` less the limit of the next lower priority.
//! While consumers stall, the lower ones take what is below theirs at most; so the first r messages
//! of p are admitted, whatever the lower ones do. Higher ones may take that room, too; so may an
//! element of each topic buffer, which comes in whatever its priority, and r has to count those. A
//! reserve is a number of messages, for a rate and a time: a percentage that is enough for one
//! capacity is not for another.
//!
//! *The size of a reserve*. Let the lower ones fill it up to `limit[p − 1]`, just when the consumer
//! stalls: from then on, only messages of `p` and above come in. So `p` loses nothing if
//! `limit[p] − limit[p − 1]` is the queue that `p` and all above it need together: the largest of
//! what has come in the time since a stall began, less what was served. Those above count, since
//! they may use that room too. One burst of each, and what they bring in the stall by their mean
//! rates, is enough. (The arrival and service curves of network calculus, Le Boudec and Thiran,
//! 2001; `docs/notes/bus-balance.md` has the derivation.)

/// The priority of a message: when an inbox is nearly full, messages of lower priority are refused
/// first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Priority {
    /// Messages of this priority are refused first: by default from 60 % of the capacity on.
    Low,
    /// The default priority of a topic: by default its messages are refused from 80 % of the
    /// capacity on.
    #[default]
    Medium,
    /// Messages of this priority are still admitted where lower ones are refused: by default up to
    /// 99 % of the capacity.
    High,
    /// Messages of this priority are refused last: when the inbox is full.
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

/// The limit of each [`Priority`] in an inbox: the number of waiting messages from which on it is
/// refused.
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
    /// Messages by priority, for all but the lowest.
    Reserve([u64; Priority::COUNT - 1]),
}

/// Low up to 60 % of the capacity, medium 80 %, high 99 %, critical all.
impl Default for Admission {
    fn default() -> Self {
        Self::percent(60, 80, 99)
    }
}

impl Admission {
    /// Returns limits in percent of the capacity, 0 to 100 and ascending, rounded down, and at
    /// least 1 message; critical messages have all of it. Other numbers are refused, with
    /// [`AdmissionError::Percent`], by [`limits`](Self::limits) and when a bus or an inbox is
    /// built.
    pub const fn percent(low: u8, medium: u8, high: u8) -> Self {
        Self(Shares::Percent([low, medium, high]))
    }

    /// Returns limits that keep slots free for these numbers of messages: `medium` for medium
    /// priority and above, `high` more for high and above, and `critical` more for critical alone.
    /// Low ones have the rest. Add to each of the numbers one for each topic of the inbox that
    /// drops the oldest or conflates: all that waits there takes one slot, whatever its priority.
    pub const fn reserve(medium: u64, high: u64, critical: u64) -> Self {
        Self(Shares::Reserve([medium, high, critical]))
    }

    /// Returns the limit of each priority in an inbox of `capacity` messages: a message is admitted
    /// while fewer are in its ring.
    ///
    /// # Errors
    /// [`AdmissionError`] if the percentages are invalid, or the reserves do not fit into the
    /// capacity.
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
                let needed = reserved.saturating_add(1);
                if needed > capacity {
                    return Err(AdmissionError::Reserves { needed, capacity });
                }
                for lower in (0..Priority::COUNT - 1).rev() {
                    limits[lower] = limits[lower + 1] - reserves[lower];
                }
                Ok(limits)
            }
        }
    }
}

/// The reason why an [`Admission`] is invalid for a capacity.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AdmissionError {
    /// The percentages do not ascend, or one is above 100.
    Percent([u8; Priority::COUNT - 1]),
    /// The reserves, and one message of low priority, do not fit into the capacity.
    Reserves {
        /// The number of messages that need slots.
        needed: u64,
        /// The capacity of the inbox, in messages.
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
        let all = Admission::reserve(u64::MAX, u64::MAX, u64::MAX);
        assert!(all.limits(1 << 30).is_err());
    }

    /// The load of a priority: the messages that come at once, and when.
    type Bursts = (u64, u64);

    /// Counts what of high and critical messages is refused, in steps of 1 ms, over one stall of
    /// the consumer, while lower ones take all that they may.
    fn refused(
        bursts: [Bursts; 2],
        every_ms: u64,
        (stall_at, stall_ms): (u64, u64),
        (served, limits): (u64, [u64; 4]),
    ) -> u64 {
        let (mut waiting, mut refused) = (limits[1], 0);
        for now in 0..stall_at + stall_ms + 4 * every_ms {
            for (limit, (messages, at)) in limits[2..].iter().zip(bursts) {
                if now % every_ms == at % every_ms {
                    let admitted = messages.min(limit.saturating_sub(waiting));
                    waiting += admitted;
                    refused += messages - admitted;
                }
            }
            if !(stall_at..stall_at + stall_ms).contains(&now) {
                waiting = waiting.saturating_sub(served);
            }
            waiting = waiting.max(limits[1]);
        }
        refused
    }

    proptest::proptest! {
        /// The formula of the guide: a burst of each, what they bring in the stall, and one more.
        #[test]
        fn a_reserve_by_the_formula_of_the_guide_refuses_nothing(
            high in (0..2_000_u64, 0..1_000_u64),
            critical in (0..2_000_u64, 0..1_000_u64),
            every_ms in 1..1_000_u64,
            stall_at in 0..2_000_u64,
            stall_ms in 0..300_u64,
        ) {
            let enough = |burst: u64| burst + burst * stall_ms / every_ms + 1;
            let both = high.0 + critical.0;
            let served = both / every_ms + 1;
            let refused = |high_reserve, critical_reserve| {
                let admission = Admission::reserve(0, high_reserve, critical_reserve);
                let limits = admission.limits(1 << 21).expect("there is room");
                refused([high, critical], every_ms, (stall_at, stall_ms), (served, limits))
            };
            proptest::prop_assert_eq!(refused(enough(both), enough(critical.0)), 0);
        }
    }

    /// The reserve of the own burst alone is no guarantee, and the simulation says so.
    #[test]
    fn a_reserve_of_the_own_burst_alone_is_too_small() {
        let limits = Admission::reserve(0, 1_000, 2_000).limits(1 << 20);
        let limits = limits.expect("there is room");
        let bursts = [(1_000, 6), (2_000, 5)];
        assert!(refused(bursts, 500, (5, 50), (7, limits)) > 0);
        let limits = Admission::reserve(0, 3_000, 2_000).limits(1 << 20);
        let limits = limits.expect("there is room");
        assert_eq!(refused(bursts, 500, (5, 50), (7, limits)), 0);
    }
}
