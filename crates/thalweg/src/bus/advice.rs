//! How long a queue must be.
//!
//! Bursts of `B` messages come at rate `P`, one every `T`; the consumer serves `C` a second and
//! once does nothing for `t`. In the time `w` since a burst and the stall began, at most `A(w)`
//! messages arrive and at least `C·(w − t)` are served, so the queue needs the largest
//! `A(w) − C·(w − t)`. (The arrival and service curves of network calculus, Le Boudec and Thiran,
//! 2001.) With `B ≤ C·T` that is reached where the stall ends, or where the burst ends that is
//! under way then or comes next; without a stall it is `B·(1 − C/P)`. With `B > C·T` it grows
//! without end. The derivation is in `docs/notes/bus-balance.md`.

use std::time::Duration;

/// A relative error of the arithmetic, and an absolute one in messages: results are rounded towards
/// the longer queue, by at most one message.
const EPSILON: f64 = 1e-12;
const EPSILON_MESSAGES: f64 = 1e-6;

/// Messages that come together, again and again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Burst {
    /// How many come together.
    pub messages: u64,
    /// How fast they come, in messages a second.
    pub rate_per_s: f64,
    /// From the begin of one burst to the begin of the next.
    pub period: Duration,
}

/// What a queue needs so that it loses nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Advice {
    /// Messages that the queue must hold; the one that is being served counts until it is done.
    pub capacity: u64,
    /// The share of the time that the consumer is busy: 1 is the most that is stable.
    pub load: f64,
    /// How far apart two stalls must begin, so that the first is forgotten; `None` where the
    /// consumer has no time to spare and never catches up.
    pub stalls_apart: Option<Duration>,
}

/// Why there is no capacity to advise.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum AdviceError {
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

errors!(AdviceError {
    Self::Overload { arrival_per_s, service_per_s } =>
        "no queue length helps: {arrival_per_s:.0} messages/s come and {service_per_s:.0}/s are \
         served";
    Self::Invalid { messages, rate_per_s, period_s, service_per_s } =>
        "no burst: {messages} messages at {rate_per_s}/s every {period_s} s, served at \
         {service_per_s}/s";
});

impl Burst {
    /// Messages a second, on average.
    pub fn mean_per_s(&self) -> f64 {
        self.messages as f64 / self.period.as_secs_f64()
    }

    /// The capacity that loses nothing where a consumer serves `service_per_s` and may once stall
    /// for `stall`. Exact to one message for evenly spaced messages; any other bursts that are no
    /// larger, slower or further apart need no more.
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg::bus::Burst;
    ///
    /// let second = Duration::from_secs(1);
    /// let burst = Burst { messages: 10_000, rate_per_s: 1e6, period: second };
    /// let advice = burst.advice(500_000.0, Duration::ZERO)?;
    /// assert_eq!(advice.capacity, 5_001);
    /// let told = burst.advice(9_000.0, Duration::ZERO).unwrap_err().to_string();
    /// assert_eq!(told, "no queue length helps: 10000 messages/s come and 9000/s are served");
    /// # Ok::<(), thalweg::bus::AdviceError>(())
    /// ```
    ///
    /// # Errors
    /// An overload, for which no queue is long enough; numbers that are no burst.
    pub fn advice(&self, service_per_s: f64, stall: Duration) -> Result<Advice, AdviceError> {
        self.check(service_per_s)?;
        let load = self.mean_per_s() / service_per_s;
        if load > 1.0 + EPSILON {
            return Err(overload(self.mean_per_s(), service_per_s));
        }
        let stall_s = stall.as_secs_f64();
        let spare_per_s = service_per_s - self.mean_per_s();
        let apart_s = (self.messages as f64 + service_per_s * stall_s) / spare_per_s;
        Ok(Advice {
            capacity: self.needed(service_per_s, stall_s),
            load,
            stalls_apart: Duration::try_from_secs_f64(apart_s).ok(),
        })
    }

    /// Whether the numbers are a burst and a service rate.
    pub(super) fn check(&self, service_per_s: f64) -> Result<(), AdviceError> {
        let period_s = self.period.as_secs_f64();
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        let is_burst = self.messages > 0
            && is_rate(self.rate_per_s)
            && period_s > 0.0
            && self.lasts_s() < period_s;
        if is_burst && is_rate(service_per_s) {
            return Ok(());
        }
        Err(AdviceError::Invalid {
            messages: self.messages,
            rate_per_s: self.rate_per_s,
            period_s,
            service_per_s,
        })
    }

    /// Seconds from the first message of a burst to its last.
    pub(super) fn lasts_s(&self) -> f64 {
        self.messages.saturating_sub(1) as f64 / self.rate_per_s
    }

    /// Messages that have come `at_s` seconds after a burst began, the one at that moment included.
    pub(super) fn arrived(&self, at_s: f64) -> u64 {
        let period_s = self.period.as_secs_f64();
        let bursts = (at_s / period_s * (1.0 + EPSILON)).floor();
        let within_s = (at_s - bursts * period_s).max(0.0);
        let come = (self.rate_per_s * within_s * (1.0 + EPSILON) + EPSILON_MESSAGES).floor();
        self.times(bursts)
            .saturating_add(self.messages.min((come as u64).saturating_add(1)))
    }

    fn times(&self, bursts: f64) -> u64 {
        self.messages.saturating_mul(bursts as u64)
    }

    fn needed(&self, service_per_s: f64, stall_s: f64) -> u64 {
        let period_s = self.period.as_secs_f64();
        let waiting =
            |arrived: u64, at_s: f64| arrived.saturating_sub(served(service_per_s, at_s - stall_s));
        // Where the stall ends: all that came is still there.
        let stalled = self.arrived(stall_s);
        // The message after that may come before another one is served.
        let bursts = (stall_s / period_s).floor();
        let of_burst = stalled.saturating_sub(self.times(bursts));
        let next_s = if of_burst < self.messages {
            bursts * period_s + of_burst as f64 / self.rate_per_s
        } else {
            (bursts + 1.0) * period_s
        };
        // The end of the burst that is under way then, or of the next.
        let bursts = ((stall_s - self.lasts_s()) / period_s).ceil().max(0.0);
        let end_s = bursts * period_s + self.lasts_s();
        stalled
            .max(waiting(stalled.saturating_add(1), next_s.max(stall_s)))
            .max(waiting(self.times(bursts + 1.0), end_s))
            .max(1)
    }
}

pub(super) fn overload(arrival_per_s: f64, service_per_s: f64) -> AdviceError {
    AdviceError::Overload {
        arrival_per_s,
        service_per_s,
    }
}

/// Messages that are served for certain in so many seconds of work.
pub(super) fn served(service_per_s: f64, work_s: f64) -> u64 {
    let served = service_per_s * work_s * (1.0 - EPSILON) - EPSILON_MESSAGES;
    served.floor().max(0.0) as u64
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn burst(messages: u64, rate_per_s: f64) -> Burst {
        Burst {
            messages,
            rate_per_s,
            period: Duration::from_secs(1),
        }
    }

    #[test]
    fn an_overload_gets_no_capacity() {
        let refused = burst(10_001, 1e6).advice(10_000.0, Duration::ZERO);
        assert_eq!(refused, Err(overload(10_001.0, 10_000.0)));
        let told = refused.unwrap_err().to_string();
        assert!(told.starts_with("no queue length helps"), "{told}");
        // The limit itself is stable, and never catches up.
        let at_limit = burst(10_000, 1e6).advice(10_000.0, Duration::ZERO).unwrap();
        assert_eq!(at_limit.stalls_apart, None);
    }

    #[test]
    fn a_stall_costs_what_is_not_served_in_it() {
        // 10,000 in 10 ms, of which 5,000 are served: a stall of 5 ms adds 2,500.
        let advice = |stall_ms| {
            let stall = Duration::from_millis(stall_ms);
            burst(10_000, 1e6).advice(5e5, stall).unwrap().capacity
        };
        assert_eq!([0, 5, 10, 900].map(advice), [5_001, 7_501, 10_000, 10_000]);
        assert_eq!([1_000, 1_005, 2_900].map(advice), [15_001, 17_501, 30_000]);
    }

    #[test]
    fn what_is_no_burst_is_refused() {
        let second = Duration::from_secs(1);
        let refused = |messages, rate_per_s, period, service_per_s| {
            let burst = Burst {
                messages,
                rate_per_s,
                period,
            };
            let refused = burst.advice(service_per_s, Duration::ZERO);
            matches!(refused, Err(AdviceError::Invalid { .. }))
        };
        assert!(refused(0, 1.0, second, 1.0));
        assert!(refused(1, f64::NAN, second, 1.0));
        assert!(refused(1, 1.0, Duration::ZERO, 1.0));
        assert!(refused(1, 1.0, second, 0.0));
        assert!(refused(1, 1.0, second, f64::INFINITY));
        assert!(refused(11, 10.0, second, 100.0));
        assert!(!refused(10, 10.0, second, 100.0));
        let told = burst(0, 1.0).advice(2.0, second).unwrap_err().to_string();
        assert_eq!(told, "no burst: 0 messages at 1/s every 1 s, served at 2/s");
    }
}
