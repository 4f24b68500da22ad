//! Room that a shared queue keeps free for its higher priorities.
//!
//! A message of priority `p` is admitted while fewer than `limit[p]` elements are in the queue. Let
//! the lower ones fill it up to `limit[p − 1]`, just when the consumer stalls: from then on, only
//! messages of `p` and above come in. So `p` loses nothing if `limit[p] − limit[p − 1]` is the
//! queue that `p` and all above it need together ([`Burst::advice`], with their arrivals added).
//! Those above count, since they may use that room too.

use std::time::Duration;

use super::advice::{AdviceError, Burst, overload};
use super::priority::Priority;

/// Bursts to look at after a stall. What comes later is bounded by its mean rate.
const BURSTS_MAX: usize = 100_000;

/// Elements to keep free for each priority, from low to critical, and those above it.
///
/// What they guarantee: a priority whose bursts were given loses nothing, whatever lower ones do,
/// as long as it and those above it send no more than was given, the consumer serves the rate that
/// was given, and no stall is longer or comes before the last one is forgotten. A priority without
/// a burst gets no room of its own and is guaranteed nothing; above others, it must send nothing.
/// Topics that drop the oldest or conflate are admitted whatever their priority, and take one place
/// each: where an inbox has any, add their number to each reserve that is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserves {
    /// Elements that must be between the limit below and its own.
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
    ) -> Result<Self, AdviceError> {
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

/// The queue that all of them need together, rounded up by at most a message each and one.
fn needed(bursts: &[Burst], service_per_s: f64, stall_s: f64) -> Result<u64, AdviceError> {
    let mean_per_s: f64 = bursts.iter().map(Burst::mean_per_s).sum();
    if mean_per_s >= service_per_s {
        return Err(overload(mean_per_s, service_per_s));
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
        assert_eq!(refused, Err(overload(120_000.0, 1e5)));
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
