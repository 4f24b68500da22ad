//! Room that a shared queue keeps free for its higher priorities.
//!
//! A message of priority `p` is admitted while fewer than `limit[p]` elements are in the queue. Let
//! the lower ones fill it up to `limit[p − 1]`, just when the consumer stalls: from then on, only
//! messages of `p` and above come in. So `p` loses nothing if `limit[p] − limit[p − 1]` is the
//! queue that `p` and all above it need together: the largest of what has come in the time since a
//! stall began, less what was served. Those above count, since they may use that room too. (The
//! arrival and service curves of network calculus, Le Boudec and Thiran, 2001;
//! `docs/notes/bus-balance.md` has the derivation.)

use std::time::Duration;

use super::priority::Priority;

/// Bursts to look at after a stall. Later messages are bounded by their mean rate.
const BURSTS_MAX: usize = 100_000;

/// Messages that come together, again and again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// The number of messages that come together.
    pub messages: u64,
    /// The rate at which they come, in messages a second.
    pub rate_per_s: f64,
    /// The time from the begin of one burst to the begin of the next.
    pub period: Duration,
}

/// The reason why no room is enough for bursts.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum BurstError {
    /// More comes than is served: whatever the length, the queue fills and then loses.
    Overload {
        /// Messages that come in a second, on average.
        arrival_per_s: f64,
        /// Messages that are served in a second.
        service_per_s: f64,
    },
    /// A rate that is not a positive number, no message in a burst, or a burst that lasts longer
    /// than its period.
    Invalid {
        /// Messages in a burst.
        messages: u64,
        /// How fast they come.
        rate_per_s: f64,
        /// Seconds from burst to burst.
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
    /// Returns how many messages a second come, on average.
    pub fn mean_per_s(&self) -> f64 {
        self.messages as f64 / self.period.as_secs_f64()
    }

    /// Returns how many messages an inbox must hold so that it loses none of these, at most two
    /// more than it needs, where a consumer serves `service_per_s` and may once stall for `stall`.
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
    /// An overload, for which no queue is long enough; numbers that are no burst.
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

/// Elements to keep free for each priority, from low to critical, and those above it.
///
/// The guarantee: a priority whose bursts were given loses nothing, whatever lower ones do, as long
/// as it and those above it send no more than was given, the consumer serves the rate that was
/// given, and no stall is longer or comes before the last one is forgotten. A priority without a
/// burst gets no room of its own and is guaranteed nothing; above others, it must send nothing.
/// Topics that drop the oldest or conflate are admitted whatever their priority, and take one place
/// each: where an inbox has any, add their number to each reserve that is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserves {
    /// The number of elements between the limit below and its own, by priority.
    pub elements: [u64; Priority::COUNT],
}

impl Reserves {
    /// Reserves for the bursts of each priority, from low to critical.
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
    /// Bursts that come to more than is served; numbers that are no burst.
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
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
