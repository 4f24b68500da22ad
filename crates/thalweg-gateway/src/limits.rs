//! Limits: request weight a minute of an address, new orders in ten seconds and a day of a user.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use serde_json::{Value, json};
use thalweg_exchange::UserId;
use thalweg_server::{config, network};

use crate::error::ApiError;
use crate::lock;

const MINUTE_US: i64 = 60_000_000;
const TEN_SECONDS_US: i64 = 10_000_000;
const DAY_US: i64 = 86_400_000_000;
/// Counters of an interval; holders that come when all are taken share one more.
const KEPT_MAX: usize = 100_000;

/// Counts of one interval, by holder.
#[derive(Debug)]
struct Window<K> {
    length_us: i64,
    limit: u32,
    counts: Mutex<Counts<K>>,
}

#[derive(Debug)]
struct Counts<K> {
    interval: i64,
    by_holder: HashMap<K, u32>,
    /// The count of all other holders together.
    others: u32,
}

impl<K: Eq + Hash + Copy> Counts<K> {
    fn new(interval: i64) -> Self {
        Self {
            interval,
            by_holder: HashMap::new(),
            others: 0,
        }
    }

    /// Begins an interval, unless it has begun. One that is just over is the present one: another
    /// thread has read the clock a little later.
    fn begin(&mut self, interval: i64) {
        if interval > self.interval || interval < self.interval - 1 {
            self.by_holder.clear();
            (self.interval, self.others) = (interval, 0);
        }
    }

    /// Returns whether a holder shares the count of others.
    fn is_other(&self, key: K) -> bool {
        self.by_holder.len() >= KEPT_MAX && !self.by_holder.contains_key(&key)
    }

    fn of(&mut self, key: K) -> &mut u32 {
        match self.is_other(key) {
            true => &mut self.others,
            false => self.by_holder.entry(key).or_insert(0),
        }
    }
}

impl<K: Eq + Hash + Copy> Window<K> {
    fn new(length_us: i64, limit: u32) -> Self {
        Self {
            length_us,
            limit,
            counts: Mutex::new(Counts::new(0)),
        }
    }

    /// Returns the counts of the interval of a time.
    fn counts(&self, now_us: i64) -> MutexGuard<'_, Counts<K>> {
        let mut counts = lock(&self.counts);
        counts.begin(now_us.div_euclid(self.length_us));
        counts
    }

    /// Adds to a count. Returns the count, or the seconds until the next interval where it is
    /// above the limit, and was not added.
    fn add(&self, key: K, amount: u32, now_us: i64) -> Result<u32, u64> {
        let mut counts = self.counts(now_us);
        let count = counts.of(key);
        match count.checked_add(amount).filter(|sum| *sum <= self.limit) {
            Some(sum) => {
                *count = sum;
                Ok(sum)
            }
            None => Err(self.seconds_left(now_us)),
        }
    }

    fn get(&self, key: K, now_us: i64) -> u32 {
        let counts = self.counts(now_us);
        match counts.is_other(key) {
            true => counts.others,
            false => counts.by_holder.get(&key).copied().unwrap_or(0),
        }
    }

    fn seconds_left(&self, now_us: i64) -> u64 {
        let left_us = self.length_us - now_us.rem_euclid(self.length_us);
        (left_us / 1_000_000 + 1) as u64
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Limits {
    weight: Window<IpAddr>,
    /// The weight of signed requests of addresses that share their count with others.
    weight_of_users: Window<UserId>,
    weight_refusals: AtomicU64,
    orders_10s: Window<UserId>,
    orders_day: Window<UserId>,
}

impl Limits {
    pub(crate) fn new(config: &config::Gateway) -> Self {
        Self {
            weight: Window::new(MINUTE_US, config.weight_per_minute),
            weight_of_users: Window::new(MINUTE_US, config.weight_per_minute),
            weight_refusals: AtomicU64::new(0),
            orders_10s: Window::new(TEN_SECONDS_US, config.orders_per_10s),
            orders_day: Window::new(DAY_US, config.orders_per_day),
        }
    }

    /// Counts a request's weight. Returns the weight of the minute so far.
    ///
    /// # Errors
    /// -1003 with the seconds to wait.
    pub(crate) fn weigh(&self, address: IpAddr, weight: u32, now_us: i64) -> Result<u32, ApiError> {
        let counted = self.weight.add(network(address), weight, now_us);
        counted.map_err(|seconds| self.refused(seconds))
    }

    /// Counts the weight of a request that a user has signed, for an address whose
    /// [count is shared](Self::is_shared).
    ///
    /// # Errors
    /// As [`weigh`](Self::weigh).
    pub(crate) fn weigh_user(
        &self,
        user: UserId,
        weight: u32,
        now_us: i64,
    ) -> Result<u32, ApiError> {
        let counted = self.weight_of_users.add(user, weight, now_us);
        counted.map_err(|seconds| self.refused(seconds))
    }

    fn refused(&self, seconds: u64) -> ApiError {
        // ORDERING: Relaxed; a count alone.
        self.weight_refusals.fetch_add(1, Ordering::Relaxed);
        let limit = self.weight.limit;
        let mut error = ApiError::WEIGHT.after(seconds);
        error.msg = format!(
            "Too much request weight used; current limit is {limit} request weight per 1 MINUTE. \
             Please use WebSocket Streams for live updates to avoid polling the API."
        )
        .into();
        error
    }

    /// Returns whether an address shares its count with others: the table of this minute is full.
    pub(crate) fn is_shared(&self, address: IpAddr, now_us: i64) -> bool {
        self.weight.counts(now_us).is_other(network(address))
    }

    /// Returns how many requests were refused by their weight.
    pub(crate) fn weight_refusals(&self) -> u64 {
        // ORDERING: Relaxed; a count alone.
        self.weight_refusals.load(Ordering::Relaxed)
    }

    /// Returns the weight that an address has used in this minute.
    pub(crate) fn weight_used(&self, address: IpAddr, now_us: i64) -> u32 {
        self.weight.get(network(address), now_us)
    }

    /// Counts a new order of a user.
    ///
    /// # Errors
    /// -1015 with the seconds to wait.
    pub(crate) fn count_order(&self, user: UserId, now_us: i64) -> Result<(), ApiError> {
        for (window, name) in [(&self.orders_10s, "10 SECOND"), (&self.orders_day, "1 DAY")] {
            window.add(user, 1, now_us).map_err(|seconds| {
                let limit = window.limit;
                let mut error = ApiError::ORDER_RATE.after(seconds);
                let msg =
                    format!("Too many new orders; current limit is {limit} orders per {name}.");
                error.msg = msg.into();
                error
            })?;
        }
        Ok(())
    }

    /// Returns the new orders of a user in these ten seconds and this day.
    pub(crate) fn orders(&self, user: UserId, now_us: i64) -> (u32, u32) {
        (
            self.orders_10s.get(user, now_us),
            self.orders_day.get(user, now_us),
        )
    }

    /// Returns the limits as `exchangeInfo` has them; with counts, as responses of the WebSocket
    /// API have them.
    pub(crate) fn to_json(&self, used: Option<(IpAddr, Option<UserId>)>, now_us: i64) -> Value {
        let weight = used.map(|(address, _)| self.weight_used(address, now_us));
        let orders = used.and_then(|(_, user)| Some(self.orders(user?, now_us)));
        let row = |kind, interval, number, limit, count: Option<u32>| {
            let mut row = json!({
                "rateLimitType": kind, "interval": interval, "intervalNum": number, "limit": limit,
            });
            if let Some(count) = count {
                row["count"] = count.into();
            }
            row
        };
        let mut rows = vec![row(
            "REQUEST_WEIGHT",
            "MINUTE",
            1,
            self.weight.limit,
            weight,
        )];
        if used.is_none() || orders.is_some() {
            let (in_10s, in_day) = orders.unzip();
            rows.push(row("ORDERS", "SECOND", 10, self.orders_10s.limit, in_10s));
            rows.push(row("ORDERS", "DAY", 1, self.orders_day.limit, in_day));
        }
        Value::Array(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_count_by_minute_and_address() {
        let limits = Limits::new(&config::Gateway {
            weight_per_minute: 10,
            ..config::Gateway::default()
        });
        let [one, other] = [1, 2].map(|n| IpAddr::from([127, 0, 0, n]));
        assert_eq!(limits.weigh(one, 6, 1_000_000), Ok(6));
        let refused = limits.weigh(one, 5, 2_000_000).expect_err("it is too much");
        assert_eq!(
            (refused.status, refused.code, refused.retry_after),
            (429, -1003, Some(59))
        );
        assert_eq!(limits.weigh(one, 4, 2_000_000), Ok(10));
        assert_eq!(limits.weigh(other, 5, 2_000_000), Ok(5));
        // One that comes to a listener of IPv6.
        let mapped = "::ffff:127.0.0.2".parse().expect("an address");
        assert_eq!(limits.weigh(mapped, 1, 2_000_000), Ok(6));
        assert_eq!(limits.weigh(one, 5, 60_000_000), Ok(5));
        let [near, far] = ["2001:db8::1:2:3:4", "2001:db8:0:1::1"]
            .map(|text| text.parse::<IpAddr>().expect("an address"));
        let same = "2001:db8::ffff".parse().expect("an address");
        assert_eq!(limits.weigh(near, 6, 60_000_000), Ok(6));
        assert_eq!(limits.weigh(far, 6, 60_000_000), Ok(6));
        assert!(limits.weigh(same, 5, 60_000_000).is_err());
    }

    #[test]
    fn addresses_beyond_the_table_share_one_count_until_the_next_minute() {
        let limits = Limits::new(&config::Gateway {
            weight_per_minute: 10,
            ..config::Gateway::default()
        });
        let address = |at: usize| IpAddr::from((at as u32).to_be_bytes());
        for at in 0..KEPT_MAX {
            assert_eq!(limits.weigh(address(at), 4, 0), Ok(4));
        }
        let [one, other] = [KEPT_MAX, KEPT_MAX + 1].map(address);
        assert!(!limits.is_shared(address(0), 0) && limits.is_shared(one, 0));
        // They are not shut out, have one count together, and no memory.
        assert_eq!(limits.weigh(one, 6, 0), Ok(6));
        assert_eq!(limits.weigh(other, 4, 0), Ok(10));
        assert!(limits.weigh(one, 1, 0).is_err() && limits.weigh(other, 1, 0).is_err());
        assert_eq!(limits.weight_used(other, 0), 10);
        assert_eq!(limits.weight.counts(0).by_holder.len(), KEPT_MAX);
        // Those that have a count, and users who sign, do not notice.
        assert_eq!(limits.weigh(address(7), 6, 0), Ok(10));
        assert_eq!(limits.weigh_user(UserId(1), 10, 0), Ok(10));
        assert!(limits.weigh_user(UserId(1), 1, 0).is_err());
        assert_eq!(limits.weigh_user(UserId(2), 10, 0), Ok(10));
        // The table is emptied once a minute, not searched at each refusal.
        assert_eq!(limits.weigh(one, 10, MINUTE_US), Ok(10));
        assert_eq!(limits.weigh(other, 10, MINUTE_US), Ok(10));
        assert_eq!(limits.weight.counts(MINUTE_US).by_holder.len(), 2);
        // A thread that read the clock before does not begin the last minute again.
        assert!(limits.weigh(one, 1, MINUTE_US - 1).is_err());
        // A clock that was set back does.
        assert_eq!(limits.weigh(one, 10, -MINUTE_US), Ok(10));
    }

    #[test]
    fn orders_count_by_user_in_both_intervals() {
        let limits = Limits::new(&config::Gateway {
            orders_per_10s: 2,
            orders_per_day: 3,
            ..config::Gateway::default()
        });
        let count = |now| {
            limits
                .count_order(UserId(7), now)
                .map_err(|error| error.msg)
        };
        assert_eq!((count(0), count(1)), (Ok(()), Ok(())));
        let text = "Too many new orders; current limit is 2 orders per 10 SECOND.";
        assert_eq!(count(2), Err(text.into()));
        assert_eq!(count(10_000_000), Ok(()));
        let text = "Too many new orders; current limit is 3 orders per 1 DAY.";
        assert_eq!(count(20_000_000), Err(text.into()));
        assert_eq!(limits.orders(UserId(7), 20_000_001), (1, 3));
    }
}
