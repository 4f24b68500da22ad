//! Limits: request weight a minute of an address, new orders in ten seconds and a day of a user.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use thalweg_exchange::UserId;
use thalweg_server::config;

use crate::error::ApiError;

const MINUTE_US: i64 = 60_000_000;
const TEN_SECONDS_US: i64 = 10_000_000;
const DAY_US: i64 = 86_400_000_000;
/// Counters that are kept; those of past intervals are dropped first.
const KEPT_MAX: usize = 100_000;

/// Counts of one interval, by holder.
#[derive(Debug)]
struct Window<K> {
    length_us: i64,
    limit: u32,
    counts: Mutex<HashMap<K, (i64, u32)>>,
}

impl<K: Eq + Hash + Copy> Window<K> {
    fn new(length_us: i64, limit: u32) -> Self {
        Self {
            length_us,
            limit,
            counts: Mutex::default(),
        }
    }

    /// Adds to a count. Returns the count, or the seconds until the next interval where it is
    /// above the limit, and was not added.
    fn add(&self, key: K, amount: u32, now_us: i64) -> Result<u32, u64> {
        let interval = now_us.div_euclid(self.length_us);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() >= KEPT_MAX && !counts.contains_key(&key) {
            counts.retain(|_, (of, _)| *of == interval);
            if counts.len() >= KEPT_MAX {
                return Err(self.seconds_left(now_us));
            }
        }
        let (of, count) = counts.entry(key).or_insert((interval, 0));
        if *of != interval {
            (*of, *count) = (interval, 0);
        }
        match count.checked_add(amount).filter(|sum| *sum <= self.limit) {
            Some(sum) => {
                *count = sum;
                Ok(sum)
            }
            None => Err(self.seconds_left(now_us)),
        }
    }

    fn get(&self, key: K, now_us: i64) -> u32 {
        let interval = now_us.div_euclid(self.length_us);
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let found = counts.get(&key).filter(|(of, _)| *of == interval);
        found.map_or(0, |(_, count)| *count)
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
    weight_refusals: AtomicU64,
    orders_10s: Window<UserId>,
    orders_day: Window<UserId>,
}

/// Returns the address that weights and connections count for: a host of IPv6 has a network of
/// 2^64 addresses, and one of IPv4 that came to a listener of IPv6 is itself.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address @ IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::from((v6.to_bits() & !u128::from(u64::MAX)).to_be_bytes()),
    }
}

impl Limits {
    pub(crate) fn new(config: &config::Gateway) -> Self {
        Self {
            weight: Window::new(MINUTE_US, config.weight_per_minute),
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
        counted.map_err(|seconds| {
            // ORDERING: Relaxed; a count alone.
            self.weight_refusals.fetch_add(1, Ordering::Relaxed);
            let limit = self.weight.limit;
            let mut error = ApiError::WEIGHT.after(seconds);
            error.msg = format!(
                "Too much request weight used; current limit is {limit} request weight per 1 \
                 MINUTE. Please use WebSocket Streams for live updates to avoid polling the API."
            )
            .into();
            error
        })
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
        assert_eq!(limits.weigh(one, 5, 60_000_000), Ok(5));
        let [near, far] = ["2001:db8::1:2:3:4", "2001:db8:0:1::1"]
            .map(|text| text.parse::<IpAddr>().expect("an address"));
        let same = "2001:db8::ffff".parse().expect("an address");
        assert_eq!(limits.weigh(near, 6, 60_000_000), Ok(6));
        assert_eq!(limits.weigh(far, 6, 60_000_000), Ok(6));
        assert!(limits.weigh(same, 5, 60_000_000).is_err());
        // One that comes to a listener of IPv6.
        let mapped = "::ffff:127.0.0.2".parse().expect("an address");
        assert_eq!(limits.weigh(mapped, 1, 2_000_000), Ok(6));
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
