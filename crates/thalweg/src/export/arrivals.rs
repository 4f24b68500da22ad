//! How fast events came, and the longest queue that this would have made.

/// Follows sampled events in their order.
///
/// Each comes with its number and with when it was due, so that the rate is that of the senders,
/// also where the events had to wait to be sent. The burst is the longest queue of an unbounded
/// buffer between such arrivals and a server of the known rate: Lindley's recursion (1952), with
/// the events between two samples as one arrival.
#[derive(Debug, Default, Clone)]
pub(crate) struct Arrivals {
    first: Option<(u64, u64)>,
    last: (u64, u64),
    queue: f64,
    burst: f64,
}

impl Arrivals {
    /// The event of this number was due at `at`. One that is not later than the last changes
    /// nothing. `service` is how long the server takes for an event, where that is known.
    pub(crate) fn see(&mut self, number: u64, at: u64, service: Option<f64>) {
        if self.first.is_none() {
            self.first = Some((number, at));
            self.last = (number, at);
            return;
        }
        let (last_number, last_at) = self.last;
        if number <= last_number || at < last_at {
            return;
        }
        if let Some(service) = service.filter(|&service| service > 0.0) {
            let served = (at - last_at) as f64 / service;
            self.queue = (self.queue + (number - last_number) as f64 - served).max(0.0);
            self.burst = self.burst.max(self.queue);
        }
        self.last = (number, at);
    }

    /// Returns the number of the last event that was seen.
    pub(crate) fn last(&self) -> Option<u64> {
        self.first.map(|_| self.last.0)
    }

    /// Events from the first seen to the last, and the time between them.
    pub(crate) fn span(&self) -> (u64, u64) {
        let (first, from) = self.first.unwrap_or_default();
        (self.last.0 - first, self.last.1 - from)
    }

    /// Returns the longest queue, in events.
    pub(crate) fn burst(&self) -> u64 {
        self.burst.ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Arrivals;

    #[test]
    fn the_longest_queue_is_that_of_a_server_of_this_rate() {
        let mut arrivals = Arrivals::default();
        assert_eq!((arrivals.span(), arrivals.last()), ((0, 0), None));
        // One event in 10, and the server takes 5; then 100 in 100, 20 of which it can serve.
        for number in 0..10 {
            arrivals.see(number, 1_000 + 10 * number, Some(5.0));
        }
        assert_eq!(arrivals.burst(), 0);
        arrivals.see(109, 1_190, Some(5.0));
        assert_eq!(arrivals.burst(), 80);
        // The queue is empty again after 400; a smaller burst is none.
        arrivals.see(110, 1_690, Some(5.0));
        arrivals.see(150, 1_700, Some(5.0));
        assert_eq!((arrivals.burst(), arrivals.span()), (80, (150, 700)));
    }

    #[test]
    fn two_bursts_without_a_pause_make_one() {
        let mut arrivals = Arrivals::default();
        for (number, at) in [(0, 0), (50, 100), (100, 200)] {
            arrivals.see(number, at, Some(10.0));
        }
        assert_eq!(arrivals.burst(), 80);
    }

    #[test]
    fn what_cannot_be_changes_nothing() {
        let mut arrivals = Arrivals::default();
        arrivals.see(100, 1_000, None);
        for (number, at) in [(100, 2_000), (90, 2_000), (101, 999)] {
            arrivals.see(number, at, Some(1.0));
        }
        assert_eq!((arrivals.span(), arrivals.burst()), ((0, 0), 0));
        arrivals.see(200, 2_000, Some(0.0));
        assert_eq!((arrivals.span(), arrivals.burst()), ((100, 1_000), 0));
    }
}
