//! Which numbers a configuration may have.

use std::ops::RangeInclusive;

use super::{Config, HEARTBEAT_MS_MAX};

/// A number, and what it may be.
#[derive(Clone)]
pub(super) struct Range {
    pub(super) option: &'static str,
    pub(super) value: u64,
    /// The number that it must be a multiple of.
    pub(super) step: u64,
    pub(super) possible: RangeInclusive<u64>,
}

impl Range {
    pub(super) fn new(
        (option, value): (&'static str, impl TryInto<u64>),
        possible: RangeInclusive<u64>,
    ) -> Self {
        Self {
            option,
            value: value.try_into().unwrap_or(u64::MAX),
            step: 1,
            possible,
        }
    }
}

impl Config {
    /// Returns the numbers that have limits.
    pub(super) fn ranges(&self) -> Vec<Range> {
        let s = &self.sessions;
        let (least, out_bytes_max) = (s.heartbeat_min_ms.into(), s.out_bytes_max as u64);
        let heartbeat = ("sessions.heartbeat_ms", s.heartbeat_ms);
        let out_bytes = ("sessions.out_bytes_total", s.out_bytes_total);
        let segment = ("journal.segment_bytes", self.journal.segment_bytes);
        let others = vec![
            Range::new(heartbeat, least..=HEARTBEAT_MS_MAX),
            Range::new(out_bytes, out_bytes_max..=1 << 40),
            Range {
                step: 4096,
                // A segment has a page of its own beside the longest block.
                ..Range::new(segment, 331_776..=1 << 40)
            },
        ];
        [
            self.trade.ranges(),
            self.admin.ranges(),
            self.http.ranges(),
            self.gateway.ranges(),
            self.keys.ranges(),
            self.server.ranges(),
            self.sessions.ranges(),
            self.market.ranges(),
            self.exchange.ranges(),
            self.journal.ranges(),
            self.snapshots.ranges(),
            others,
        ]
        .concat()
    }
}
