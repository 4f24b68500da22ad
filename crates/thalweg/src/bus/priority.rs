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
//! *The size of a reserve*, with [`Reserves`]. Let the lower ones fill it up to `limit[p − 1]`,
//! just when the consumer stalls: from then on, only messages of `p` and above come in. So `p`
//! loses nothing if `limit[p] − limit[p − 1]` is the queue that `p` and all above it need together:
//! the largest of what has come in the time since a stall began, less what was served. Those above
//! count, since they may use that room too. (The arrival and service curves of network calculus, Le
//! Boudec and Thiran, 2001; `docs/notes/bus-balance.md` has the derivation.)

use std::time::Duration;

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
        Self(Shares::Reserve([0, medium, high, critical]))
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

/// Returns limits that keep the reserves free, which were computed for bursts and a stall.
impl From<Reserves> for Admission {
    fn from(reserves: Reserves) -> Self {
        Self(Shares::Reserve(reserves.elements))
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

/// Bursts to look at after a stall. Later messages are bounded by their mean rate.
const BURSTS_MAX: usize = 100_000;

/// A burst of messages that recurs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// The number of messages that come together.
    pub messages: u64,
    /// The rate at which they come, in messages a second.
    pub rate_per_s: f64,
    /// The time from the start of one burst to the start of the next.
    pub period: Duration,
}

/// The reason why no capacity is enough for bursts.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum BurstError {
    /// More messages arrive than are served: whatever its length, the queue fills up.
    Overload {
        /// The mean arrival rate, in messages a second.
        arrival_per_s: f64,
        /// Messages that are served in a second.
        service_per_s: f64,
    },
    /// A rate is not a positive number, a burst has no message, or a burst lasts longer than its
    /// period.
    Invalid {
        /// The number of messages in a burst.
        messages: u64,
        /// The rate at which they arrive, in messages a second.
        rate_per_s: f64,
        /// The time from burst to burst, in seconds.
        period_s: f64,
        /// Messages that are served in a second.
        service_per_s: f64,
    },
}

errors!(BurstError {
    Self::Overload { arrival_per_s, service_per_s } =>
        "no queue length helps: {arrival_per_s:.0} messages/s come and {service_per_s:.0}/s are \
         served";
    Self::Invalid { messages, rate_per_s, period_s, service_per_s } =>
        "no burst: {messages} messages at {rate_per_s}/s every {period_s} s, served at \
         {service_per_s}/s";
});

impl Burst {
    /// Returns the mean arrival rate, in messages a second.
    pub fn mean_per_s(&self) -> f64 {
        self.messages as f64 / self.period.as_secs_f64()
    }

    /// Returns the capacity, in messages, with which an inbox loses no message of these bursts,
    /// where a consumer serves `service_per_s` and may once stall for `stall`. It is at most two
    /// more than needed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg::bus::Burst;
    ///
    /// let second = Duration::from_secs(1);
    /// let burst = Burst { messages: 10_000, rate_per_s: 1e6, period: second };
    /// assert_eq!(burst.capacity(500_000.0, Duration::ZERO)?, 5_002);
    /// let error = burst.capacity(9_000.0, Duration::ZERO).unwrap_err().to_string();
    /// assert_eq!(error, "no queue length helps: 10000 messages/s come and 9000/s are served");
    /// # Ok::<(), thalweg::bus::BurstError>(())
    /// ```
    ///
    /// # Errors
    /// [`BurstError::Overload`] if no queue is long enough; [`BurstError::Invalid`].
    pub fn capacity(&self, service_per_s: f64, stall: Duration) -> Result<u64, BurstError> {
        self.check(service_per_s)?;
        needed(&[*self], service_per_s, stall.as_secs_f64())
    }

    /// Returns an error unless the numbers are a burst and a service rate.
    fn check(&self, service_per_s: f64) -> Result<(), BurstError> {
        let period_s = self.period.as_secs_f64();
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        let is_burst = self.messages > 0
            && is_rate(self.rate_per_s)
            && period_s > 0.0
            && self.lasts_s() < period_s;
        if is_burst && is_rate(service_per_s) {
            return Ok(());
        }
        Err(BurstError::Invalid {
            messages: self.messages,
            rate_per_s: self.rate_per_s,
            period_s,
            service_per_s,
        })
    }

    /// Returns the seconds from the first message of a burst to its last.
    fn lasts_s(&self) -> f64 {
        self.messages.saturating_sub(1) as f64 / self.rate_per_s
    }
}

/// The numbers of slots to keep free for each priority and those above it, from low to critical.
///
/// The guarantee: a priority whose bursts were given loses no message, whatever lower ones send, as
/// long as it and those above it send no more than was given, the consumer serves at the rate that
/// was given, and no stall is longer or comes before the queue of the last one is served. A
/// priority without a burst gets no slots of its own and no guarantee; above others, it must send
/// nothing. Topics that drop the oldest or conflate are admitted whatever their priority, and take
/// one slot each: where an inbox has any, add their number to each reserve that is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserves {
    /// The difference between the limit of each priority and that of the next lower one, in
    /// elements.
    pub elements: [u64; Priority::COUNT],
}

impl Reserves {
    /// Returns the reserves for the bursts of each priority, from low to critical.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg::bus::{Admission, Burst, Reserves};
    ///
    /// let period = Duration::from_secs(1);
    /// let high = Burst { messages: 20_000, rate_per_s: 1e6, period };
    /// let critical = Burst { messages: 1_000, rate_per_s: 1e6, period };
    /// let bursts = [None, None, Some(high), Some(critical)];
    /// let reserves = Reserves::sized(&bursts, 500_000.0, Duration::from_millis(50))?;
    /// let limits = Admission::from(reserves).limits(131_072)?;
    /// assert_eq!(limits, [109_070, 109_070, 130_071, 131_072]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`BurstError::Overload`] if the bursts together arrive faster than they are served;
    /// [`BurstError::Invalid`].
    pub fn sized(
        bursts: &[Option<Burst>; Priority::COUNT],
        service_per_s: f64,
        stall: Duration,
    ) -> Result<Self, BurstError> {
        let mut elements = [0; Priority::COUNT];
        let mut together = Vec::with_capacity(Priority::COUNT);
        for (reserve, burst) in elements.iter_mut().zip(bursts).rev() {
            if let Some(burst) = burst {
                burst.check(service_per_s)?;
                together.push(*burst);
                *reserve = needed(&together, service_per_s, stall.as_secs_f64())?;
            }
        }
        Ok(Self { elements })
    }
}

/// Returns the queue that all of them need together, rounded up by at most a message each and one.
fn needed(bursts: &[Burst], service_per_s: f64, stall_s: f64) -> Result<u64, BurstError> {
    let mean_per_s: f64 = bursts.iter().map(Burst::mean_per_s).sum();
    if mean_per_s >= service_per_s {
        return Err(BurstError::Overload {
            arrival_per_s: mean_per_s,
            service_per_s,
        });
    }
    let arrived = |at_s: f64| -> f64 { bursts.iter().map(|burst| envelope(burst, at_s)).sum() };
    let waiting = |at_s: f64| arrived(at_s) - service_per_s * (at_s - stall_s);
    let mut at_s = stall_s;
    let mut most = arrived(stall_s);
    for _ in 0..BURSTS_MAX {
        let boundary = |burst: &Burst| boundary_after(burst, at_s);
        at_s = bursts.iter().map(boundary).fold(f64::INFINITY, f64::min);
        let now = waiting(at_s);
        most = most.max(now);
        if now <= 0.0 {
            return Ok((most.ceil() as u64).saturating_add(1));
        }
    }
    // Before the queue runs empty, later bursts bring no more than their mean rate and one burst.
    let at_once: f64 = bursts.iter().map(|burst| burst.messages as f64).sum();
    let later = at_once + mean_per_s * at_s - service_per_s * (at_s - stall_s);
    Ok((most.max(later).ceil() as u64).saturating_add(1))
}

/// Messages that may have come `at_s` seconds after a burst began, at most, without steps inside a
/// burst.
fn envelope(burst: &Burst, at_s: f64) -> f64 {
    let period_s = burst.period.as_secs_f64();
    // A boundary that rounding puts just before a burst is the burst's.
    let bursts = (at_s / period_s * (1.0 + 1e-12)).floor();
    let within_s = (at_s - bursts * period_s).max(0.0);
    let messages = burst.messages as f64;
    bursts * messages + (burst.rate_per_s * within_s + 1.0).min(messages)
}

/// When the next burst begins or ends.
fn boundary_after(burst: &Burst, at_s: f64) -> f64 {
    let period_s = burst.period.as_secs_f64();
    let bursts = (at_s / period_s).floor();
    let boundaries = [
        bursts * period_s + burst.lasts_s(),
        (bursts + 1.0) * period_s,
        (bursts + 1.0) * period_s + burst.lasts_s(),
        (bursts + 2.0) * period_s,
    ];
    let is_later = |boundary: &f64| *boundary > at_s;
    // A period that is lost in rounding beside `at_s` moves on by the smallest step there is.
    boundaries
        .into_iter()
        .find(is_later)
        .unwrap_or(at_s.next_up())
}

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

    #[cfg(not(shuttle))]
    mod reserves {
        use super::super::*;
        use crate::bus::Admission;

        fn burst(messages: u64, rate_per_s: f64, period_ms: u64) -> Burst {
            Burst {
                messages,
                rate_per_s,
                period: Duration::from_millis(period_ms),
            }
        }

        #[test]
        fn a_reserve_counts_those_above() {
            let bursts = [
                None,
                None,
                Some(burst(300, 1e6, 1_000)),
                Some(burst(20, 1e6, 500)),
            ];
            let stall = Duration::from_millis(10);
            let reserves = Reserves::sized(&bursts, 1e5, stall).unwrap();
            assert_eq!(reserves.elements, [0, 0, 321, 21]);
            let limits = |capacity| Admission::from(reserves).limits(capacity);
            assert_eq!(limits(1_000), Ok([658, 658, 979, 1_000]));
            assert!(limits(342).is_err());
            assert_eq!(limits(343).unwrap()[0], 1);
        }

        #[test]
        fn a_stall_over_several_bursts_needs_all_of_them() {
            let bursts = [None, None, None, Some(burst(20, 1e6, 500))];
            let needed = |stall_ms| {
                let stall = Duration::from_millis(stall_ms);
                Reserves::sized(&bursts, 1e5, stall).unwrap().elements[3]
            };
            assert_eq!([0, 499, 501, 1_400].map(needed), [20, 21, 41, 61]);
        }

        #[test]
        fn bursts_that_come_to_more_than_is_served_are_refused() {
            let bursts = [None, None, Some(burst(60, 1e6, 1)), Some(burst(60, 1e6, 1))];
            let refused = Reserves::sized(&bursts, 1e5, Duration::ZERO);
            let overload = BurstError::Overload {
                arrival_per_s: 120_000.0,
                service_per_s: 1e5,
            };
            assert_eq!(refused, Err(overload));
        }

        #[test]
        fn a_stall_costs_what_is_not_served_in_it() {
            // 10,000 in 10 ms, of which 5,000 are served: a stall of 5 ms adds 2,500.
            let capacity = |stall_ms| {
                let stall = Duration::from_millis(stall_ms);
                burst(10_000, 1e6, 1_000).capacity(5e5, stall).unwrap()
            };
            let exact = [5_001, 7_501, 10_000, 10_000, 15_001, 17_501, 30_000];
            let capacities = [0, 5, 10, 900, 1_000, 1_005, 2_900].map(capacity);
            let more: Vec<_> = capacities
                .iter()
                .zip(exact)
                .map(|(all, n)| all - n)
                .collect();
            assert!(more.iter().all(|&more| more <= 2), "{more:?}");
        }

        #[test]
        fn what_is_no_burst_is_refused() {
            let refused = |messages, rate_per_s, period_ms, service_per_s| {
                let burst = burst(messages, rate_per_s, period_ms);
                let refused = burst.capacity(service_per_s, Duration::ZERO);
                matches!(refused, Err(BurstError::Invalid { .. }))
            };
            assert!(refused(0, 1.0, 1_000, 1.0));
            assert!(refused(1, f64::NAN, 1_000, 1.0));
            assert!(refused(1, 1.0, 0, 1.0));
            assert!(refused(1, 1.0, 1_000, 0.0));
            assert!(refused(1, 1.0, 1_000, f64::INFINITY));
            assert!(refused(11, 10.0, 1_000, 100.0));
            assert!(!refused(10, 10.0, 1_000, 100.0));
            let error = burst(0, 1.0, 1_000)
                .capacity(2.0, Duration::ZERO)
                .unwrap_err();
            assert_eq!(
                error.to_string(),
                "no burst: 0 messages at 1/s every 1 s, served at 2/s"
            );
        }

        #[test]
        fn a_load_that_never_ends_is_bounded_by_its_mean() {
            let bursts = [
                None,
                None,
                Some(burst(500, 1e6, 10)),
                Some(burst(699, 1e6, 14)),
            ];
            // 99,929 messages/s of 100,000: it takes days to catch up with a stall of an hour.
            let stall = Duration::from_secs(3_600);
            let reserves = Reserves::sized(&bursts, 1e5, stall).unwrap();
            assert!(reserves.elements[2] >= 3_600 * 99_928);
            assert!(reserves.elements[2] <= 3_600 * 99_930 + 1_202);
        }
    }
}
