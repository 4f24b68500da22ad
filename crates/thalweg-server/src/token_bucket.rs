//! Token buckets, which fill with time: they bound how fast a session may send.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use thalweg_exchange::session::SessionKey;

use crate::config::Sessions;
use crate::lock;

/// A bucket that holds `burst` tokens at most and gains `per_s` of them a second.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    /// 0 for no limit.
    per_s: u32,
    burst_ns: u64,
    /// Tokens as the time in which they came, so that nothing is lost by rounding.
    filled_ns: u64,
    last: Instant,
}

const SECOND_NS: u64 = 1_000_000_000;

impl TokenBucket {
    /// Returns a full bucket.
    pub(crate) fn new(per_s: u32, burst: u32, now: Instant) -> Self {
        // A token is a second's nanoseconds; each nanosecond brings `per_s` of them.
        let burst_ns = u64::from(burst) * SECOND_NS;
        Self {
            per_s,
            burst_ns,
            filled_ns: burst_ns,
            last: now,
        }
    }

    pub(crate) fn is_full(&mut self, now: Instant) -> bool {
        self.take(0, now);
        self.per_s == 0 || self.filled_ns == self.burst_ns
    }

    /// Takes tokens, if there are enough, or the bucket is full and holds no more.
    pub(crate) fn take(&mut self, tokens: u32, now: Instant) -> bool {
        let price = self.price(tokens, now);
        let is_enough = self.filled_ns >= price;
        if is_enough {
            self.filled_ns -= price;
        }
        is_enough
    }

    /// Returns how many times, `most` at most, one token can be taken now.
    pub(crate) fn times(&mut self, most: usize, now: Instant) -> usize {
        let price = self.price(1, now);
        let times = self.filled_ns.checked_div(price);
        times.map_or(most, |times| most.min(times as usize))
    }

    /// Returns how long until that many can be taken, if no other session takes any.
    pub(crate) fn time_to(&mut self, tokens: u32, now: Instant) -> Duration {
        let missing = self.price(tokens, now).saturating_sub(self.filled_ns);
        Duration::from_nanos(missing.div_ceil(u64::from(self.per_s).max(1)))
    }

    /// Adds what came by now, and returns what `tokens` cost: no more than a full bucket.
    fn price(&mut self, tokens: u32, now: Instant) -> u64 {
        if self.per_s == 0 {
            return 0;
        }
        let since = now.saturating_duration_since(self.last);
        self.last = self.last.max(now);
        let since_ns = since.min(Duration::from_secs(3_600)).as_nanos() as u64;
        let gained = since_ns.saturating_mul(self.per_s.into());
        self.filled_ns = self.filled_ns.saturating_add(gained).min(self.burst_ns);
        (u64::from(tokens) * SECOND_NS).min(self.burst_ns)
    }
}

/// The bucket of a session, whichever connection it has.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    is_limited: bool,
    tokens: Rc<RefCell<TokenBucket>>,
}

impl Bucket {
    /// As [`TokenBucket::take`].
    pub(crate) fn take(&self, tokens: u32, now: Instant) -> bool {
        !self.is_limited || self.tokens.borrow_mut().take(tokens, now)
    }

    /// As [`TokenBucket::times`].
    pub(crate) fn times(&self, most: usize, now: Instant) -> usize {
        match self.is_limited {
            true => self.tokens.borrow_mut().times(most, now),
            false => most,
        }
    }

    /// As [`TokenBucket::time_to`].
    pub(crate) fn time_to(&self, tokens: u32, now: Instant) -> Duration {
        self.tokens.borrow_mut().time_to(tokens, now)
    }
}

/// Which lines about connections are logged: strangers could else fill the disk with them. Those
/// that are left out are counted, and the next line has their number.
#[derive(Debug)]
pub(crate) struct LogLimit {
    inner: Mutex<(TokenBucket, u64)>,
}

impl LogLimit {
    /// Lets `burst` lines pass at once, and `per_s` a second.
    pub(crate) fn new(per_s: u32, burst: u32) -> Self {
        let bucket = TokenBucket::new(per_s, burst, Instant::now());
        Self {
            inner: Mutex::new((bucket, 0)),
        }
    }

    /// Returns how many lines were left out before this one, or `None` where it is left out, too.
    pub(crate) fn pass(&self, now: Instant) -> Option<u64> {
        let mut inner = lock(&self.inner);
        let (bucket, left_out) = &mut *inner;
        if bucket.take(1, now) {
            return Some(std::mem::take(left_out));
        }
        *left_out += 1;
        None
    }
}

/// The buckets of sessions, which outlive connections: a new one has no more than was left.
#[derive(Debug)]
pub(crate) struct Buckets {
    per_s: u32,
    burst: u32,
    /// Sessions of a holder with numbers from here on share one; only those that read have such.
    per_holder: u32,
    kept: HashMap<SessionKey, Bucket>,
}

/// Beyond this number, full buckets without a connection are forgotten when another is made.
const KEPT_MAX: usize = 1 << 12;

impl Buckets {
    pub(crate) fn new(limits: &Sessions) -> Self {
        Self {
            per_s: limits.rate_per_s,
            burst: limits.rate_burst,
            per_holder: limits.per_holder,
            kept: HashMap::new(),
        }
    }

    /// Returns the bucket of a session that connects.
    pub(crate) fn of(&mut self, mut key: SessionKey, now: Instant) -> Bucket {
        key.number = key.number.min(self.per_holder);
        let kept = &mut self.kept;
        if kept.len() >= KEPT_MAX && !kept.contains_key(&key) {
            let is_full = |tokens: &RefCell<TokenBucket>| tokens.borrow_mut().is_full(now);
            kept.retain(|_, of| Rc::strong_count(&of.tokens) > 1 || !is_full(&of.tokens));
        }
        let new = || TokenBucket::new(self.per_s, self.burst, now);
        let bucket = kept.entry(key).or_insert_with(|| Bucket {
            is_limited: self.per_s > 0,
            tokens: Rc::new(RefCell::new(new())),
        });
        bucket.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_as_many_as_come_in_time() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(10, 3, start);
        let after = |ms| start + Duration::from_millis(ms);
        let taken: Vec<bool> = (0..5).map(|_| bucket.take(1, after(0))).collect();
        assert_eq!(taken, [true, true, true, false, false]);
        assert!(!bucket.take(1, after(99)));
        assert!(bucket.take(1, after(100)));
        assert!(!bucket.take(1, after(199)));
        // Time that goes back brings nothing, and takes nothing.
        assert!(!bucket.take(1, after(0)));
        assert!(bucket.take(1, after(200)));
        // No more than the burst is saved up; what costs more than that passes when it is full.
        assert!(bucket.take(100, after(60_000)));
        assert!(!bucket.take(1, after(60_000)));
    }

    #[test]
    fn the_time_to_wait_is_that_after_which_the_tokens_are_there() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(10, 3, start);
        assert_eq!(bucket.time_to(3, start), Duration::ZERO);
        assert!(bucket.take(3, start));
        for (tokens, ms) in [(1, 100), (3, 300), (100, 300)] {
            assert_eq!(bucket.time_to(tokens, start), Duration::from_millis(ms));
        }
        let later = start + bucket.time_to(100, start);
        assert!(bucket.take(100, later));
        assert_eq!(
            TokenBucket::new(0, 1, start).time_to(9, start),
            Duration::ZERO
        );
    }

    #[test]
    fn lines_that_are_left_out_are_counted() {
        let limit = LogLimit::new(10, 2);
        let start = Instant::now();
        let passed: Vec<_> = (0..5).map(|_| limit.pass(start)).collect();
        assert_eq!(passed, [Some(0), Some(0), None, None, None]);
        assert_eq!(limit.pass(start + Duration::from_millis(100)), Some(3));
    }

    #[test]
    fn nothing_a_second_is_no_limit() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(0, 1, start);
        assert!((0..1000).all(|_| bucket.take(1, start)));
    }
}
