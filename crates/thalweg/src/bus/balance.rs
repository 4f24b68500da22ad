//! Whether an inbox keeps up, from readings of its counters.
//!
//! Rates are EWMA over wall time: a reading after `d` counts for `1 − exp(−d/horizon)`, so that it
//! does not matter how often they are taken. The service rate is what consumers take in the time
//! that they work; neither back-pressure nor how they wait changes it, so what is decided by it
//! does not feed on itself.
//!
//! More comes than is served, for a while, in a burst: that is what a queue is for. It is an
//! overload if the mean over the long horizon is above the service rate. Producers that are slowed
//! hide that, since what they would have sent does not come; but then the queue does not run empty
//! any more, and a queue that stands is an overload as well (as in CoDel, Nichols and Jacobson,
//! 2012: a good queue is one that empties).

/// Hysteresis of the verdict, in load: where an overload or burst begins, and where it ends.
const LOAD_BEGIN: f64 = 1.0;
const LOAD_END: f64 = 0.95;
/// A queue that never has less than this share over the long horizon stands; and one that had less
/// than the second share does not any more.
const STANDING_PERCENT: u64 = 50;
const STANDING_END_PERCENT: u64 = 25;

/// Counters of an inbox at one moment. They only grow, except that a message which is given back
/// when the bus ends no longer counts as issued. They may be read one after the other while others
/// write them, and so need not agree to the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// The time of the reading, in ns on any clock that does not go back.
    pub at_ns: u64,
    /// The number of messages that publishers wanted to put in.
    pub issued: u64,
    /// The number of messages that came in.
    pub admitted: u64,
    /// The number of messages that were lost.
    pub lost: u64,
    /// The number of messages that consumers took.
    pub taken: u64,
    /// The time that consumers were at work, of all of them together, in ns.
    pub busy_ns: u64,
    /// The number of messages in the inbox, but for its express lane, and with consumers that have
    /// not got them yet; no more than `capacity`, which says that it is full. There may be more: a
    /// consumer that takes a batch frees its places at once, topics that drop the oldest or
    /// conflate have places besides, and a batch that is just being taken may count twice.
    /// [`Service::waiting`](super::Service) has no such bound.
    pub waiting: u64,
    /// The number of messages that its ring holds.
    pub capacity: u64,
    /// The number of consumers that share the inbox.
    pub consumers: u64,
}

/// The times over which rates are averaged, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizons {
    /// The time for reported rates: 100 ms by default.
    pub short_ns: u64,
    /// The window that distinguishes a burst from an overload: 10 s by default. Bursts should come
    /// at least four times in it. An overload of twice the service rate is reported after seven
    /// tenths of it.
    pub long_ns: u64,
}

impl Default for Horizons {
    fn default() -> Self {
        Self {
            short_ns: 100_000_000,
            long_ns: 10_000_000_000,
        }
    }
}

/// Whether an inbox keeps up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Verdict {
    /// Less comes than is served.
    #[default]
    Stable,
    /// More comes than is served, or the consumer stalls; but not for long so far.
    Burst,
    /// More comes than is served in the long run: no queue is long enough.
    Overload,
}

/// The verdict and the rates that the readings amount to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Report {
    /// The number of messages that publishers want to put in, a second.
    pub arrival_per_s: f64,
    /// The number of messages that come in, a second.
    pub admitted_per_s: f64,
    /// The number of messages that are taken, a second.
    pub taken_per_s: f64,
    /// The number of messages that all consumers together take in a second of work; `None` until
    /// one has worked.
    pub service_per_s: Option<f64>,
    /// The share of the time that consumers work, 0 to 1.
    pub utilisation: f64,
    /// The number of arrivals over the long horizon for one message of service; above 1 is too
    /// much. `None` where the service rate is not known.
    pub load: Option<f64>,
    /// The time until the inbox is full if these rates go on, in ns; `None` if it does not fill.
    pub time_to_full_ns: Option<u64>,
    /// Whether messages wait, and none was taken for as long as the short horizon.
    pub is_stalled: bool,
    /// Whether the inbox keeps up.
    pub verdict: Verdict,
}

/// Follows one inbox.
#[derive(Debug, Clone, Default)]
pub struct Balance {
    horizons: Horizons,
    last: Option<Reading>,
    arrival: Rate,
    arrival_long: Rate,
    admitted: Rate,
    taken: Rate,
    utilisation: Rate,
    /// Messages taken and time at work, both forgotten by the time at work.
    served: f64,
    worked_ns: f64,
    standing: Standing,
    stalled_ns: u64,
    report: Report,
}

impl Balance {
    /// Returns a balance that knows nothing: before the first reading, nothing came.
    pub fn new(horizons: Horizons) -> Self {
        Self {
            horizons: Horizons {
                short_ns: horizons.short_ns.max(1),
                long_ns: horizons.long_ns.max(1),
            },
            ..Self::default()
        }
    }

    /// Returns the report of the last reading.
    pub fn report(&self) -> Report {
        self.report
    }

    /// Takes a reading in. The first one is where counting begins; one that is not later than the
    /// last changes nothing.
    pub fn update(&mut self, reading: Reading) -> Report {
        let Some(last) = self.last else {
            self.last = Some(reading);
            self.standing = Standing::new(&reading);
            return self.report;
        };
        let passed_ns = reading.at_ns.saturating_sub(last.at_ns);
        if passed_ns == 0 {
            return self.report;
        }
        let new = newer(&last, &reading);
        self.last = Some(new);
        let taken = new.taken - last.taken;
        self.count(&last, &new, passed_ns);
        self.count_service(taken, new.busy_ns - last.busy_ns);
        self.standing.see(&new, self.horizons.long_ns);
        self.stalled_ns = if taken > 0 || new.waiting == 0 {
            0
        } else {
            self.stalled_ns.saturating_add(passed_ns)
        };
        self.report = self.judged(&new);
        self.report
    }

    fn count(&mut self, last: &Reading, new: &Reading, passed_ns: u64) {
        let Horizons { short_ns, long_ns } = self.horizons;
        let issued = (new.issued - last.issued) as f64;
        self.arrival.add(issued, passed_ns, short_ns);
        self.arrival_long.add(issued, passed_ns, long_ns);
        let admitted = (new.admitted - last.admitted) as f64;
        self.admitted.add(admitted, passed_ns, short_ns);
        let taken = (new.taken - last.taken) as f64;
        self.taken.add(taken, passed_ns, short_ns);
        let worked_s = (new.busy_ns - last.busy_ns) as f64 / 1e9;
        self.utilisation.add(worked_s, passed_ns, short_ns);
    }

    fn count_service(&mut self, taken: u64, worked_ns: u64) {
        let keep = (-(worked_ns as f64) / self.horizons.short_ns as f64).exp();
        self.served = self.served * keep + taken as f64;
        self.worked_ns = self.worked_ns * keep + worked_ns as f64;
    }

    fn judged(&self, new: &Reading) -> Report {
        let consumers = new.consumers.max(1) as f64;
        let service_per_s = (self.served > 0.0 && self.worked_ns > 0.0)
            .then(|| consumers * self.served * 1e9 / self.worked_ns);
        let mut report = Report {
            arrival_per_s: self.arrival.fair_per_s(),
            admitted_per_s: self.admitted.fair_per_s(),
            taken_per_s: self.taken.fair_per_s(),
            service_per_s,
            utilisation: (self.utilisation.fair_per_s() / consumers).min(1.0),
            load: service_per_s.map(|service_per_s| self.arrival_long.per_s / service_per_s),
            time_to_full_ns: None,
            is_stalled: self.stalled_ns >= self.horizons.short_ns,
            verdict: Verdict::Stable,
        };
        report.time_to_full_ns = time_to_full_ns(new, &report);
        report.verdict = self.verdict(new, &report);
        report
    }

    fn verdict(&self, new: &Reading, report: &Report) -> Verdict {
        let was = self.report.verdict;
        let above = |load: f64, is_over: bool| load > if is_over { LOAD_END } else { LOAD_BEGIN };
        let was_overload = was == Verdict::Overload;
        if report.load.is_some_and(|load| above(load, was_overload))
            || self.standing.is_standing(new.capacity, was_overload)
            || self.stalled_ns >= self.horizons.long_ns
        {
            return Verdict::Overload;
        }
        let now = |service_per_s: f64| report.arrival_per_s / service_per_s;
        let is_above = report.service_per_s.is_some_and(|service_per_s| {
            above(now(service_per_s), was != Verdict::Stable) && report.arrival_per_s > 0.0
        });
        // A burst is over when it has been worked off.
        let is_left =
            was != Verdict::Stable && is_share(new.waiting, new.capacity, STANDING_END_PERCENT);
        if is_above || is_left || report.is_stalled {
            Verdict::Burst
        } else {
            Verdict::Stable
        }
    }
}

/// Returns the later of two readings; where a counter seems to have gone back, it stays.
fn newer(last: &Reading, reading: &Reading) -> Reading {
    Reading {
        issued: reading.issued.max(last.issued),
        admitted: reading.admitted.max(last.admitted),
        lost: reading.lost.max(last.lost),
        taken: reading.taken.max(last.taken),
        busy_ns: reading.busy_ns.max(last.busy_ns),
        waiting: reading.waiting.min(reading.capacity),
        ..*reading
    }
}

fn time_to_full_ns(new: &Reading, report: &Report) -> Option<u64> {
    let room = new.capacity.saturating_sub(new.waiting);
    if room == 0 {
        return Some(0);
    }
    let more_per_s = report.admitted_per_s - report.taken_per_s;
    // A conversion from float gives the largest number for what is larger.
    (more_per_s > 0.0).then(|| (room as f64 / more_per_s * 1e9) as u64)
}

/// Returns whether `waiting` messages are at least `percent` of the capacity.
fn is_share(waiting: u64, capacity: u64, percent: u64) -> bool {
    u128::from(waiting) * 100 >= u128::from(capacity) * u128::from(percent)
}

/// An EWMA of a rate.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    /// As if nothing had come before the first reading.
    per_s: f64,
    /// How much of the average is known, 0 to 1.
    known: f64,
}

impl Rate {
    fn add(&mut self, count: f64, passed_ns: u64, horizon_ns: u64) {
        let weight = -(-(passed_ns as f64) / horizon_ns as f64).exp_m1();
        let per_s = count * 1e9 / passed_ns as f64;
        self.per_s += (per_s - self.per_s) * weight;
        self.known += (1.0 - self.known) * weight;
    }

    /// Returns the average over what is known.
    fn fair_per_s(&self) -> f64 {
        if self.known > 0.0 {
            self.per_s.max(0.0) / self.known
        } else {
            0.0
        }
    }
}

/// The fewest messages that waited over the last one to two horizons.
#[derive(Debug, Clone, Copy, Default)]
struct Standing {
    began_ns: u64,
    before: u64,
    now: u64,
}

impl Standing {
    fn new(reading: &Reading) -> Self {
        Self {
            began_ns: reading.at_ns,
            before: 0,
            now: reading.waiting,
        }
    }

    fn see(&mut self, reading: &Reading, horizon_ns: u64) {
        self.now = self.now.min(reading.waiting);
        if reading.at_ns.saturating_sub(self.began_ns) >= horizon_ns {
            self.before = self.now;
            self.now = reading.waiting;
            self.began_ns = reading.at_ns;
        }
    }

    fn is_standing(&self, capacity: u64, was_overload: bool) -> bool {
        let percent = if was_overload {
            STANDING_END_PERCENT
        } else {
            STANDING_PERCENT
        };
        capacity > 0 && is_share(self.before.min(self.now), capacity, percent)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
