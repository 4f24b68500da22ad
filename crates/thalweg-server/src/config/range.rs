//! Which numbers a configuration may have.

use super::{Config, FRAME_BYTES_MAX, HEARTBEAT_MS_MAX};

/// A number, and what it may be.
pub(super) struct Range {
    pub(super) option: &'static str,
    pub(super) value: u64,
    /// The number that it must be a multiple of.
    pub(super) step: u64,
    pub(super) min: u64,
    pub(super) max: u64,
}

const fn range(option: &'static str, value: u64, min: u64, max: u64) -> Range {
    Range {
        option,
        value,
        step: 1,
        min,
        max,
    }
}

impl Config {
    /// The numbers that have limits.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range> {
        let kept = self.stored().into_iter().chain(self.remembered());
        self.sizes()
            .into_iter()
            .chain(self.of_sessions())
            .chain(self.of_gateway())
            .chain(kept)
    }

    fn stored(&self) -> [Range; 3] {
        let (every_bytes, every_s) = (self.snapshots.every_bytes, self.snapshots.every_s);
        let segment = self.journal.segment_bytes;
        // A segment has a page of its own beside the longest block.
        let segment = range("journal.segment_bytes", segment, 331_776, 1 << 40);
        [
            Range {
                step: 4096,
                ..segment
            },
            range("snapshots.every_bytes", every_bytes, 1, 1 << 40),
            range("snapshots.every_s", every_s, 1, 31_536_000),
        ]
    }

    fn remembered(&self) -> [Range; 5] {
        let s = &self.sessions;
        let sessions = s.remembered_max.into();
        [
            range("sessions.per_holder", s.per_holder.into(), 1, 1 << 16),
            range(
                "sessions.readers_per_holder",
                s.readers_per_holder.into(),
                1,
                1 << 20,
            ),
            range("sessions.remembered_max", sessions, 1, 1 << 20),
            range("sessions.reports_kept", s.reports_kept.into(), 1, 1 << 20),
            range("sessions.reports_max", s.reports_max.into(), 16, 1 << 30),
        ]
    }

    fn sizes(&self) -> [Range; 6] {
        let connections = self.server.connections_max as u64;
        let ring = self.market.ring_chunks as u64;
        let capacity = self.exchange.capacity as u64;
        [
            range(
                "server.worker_threads",
                self.server.worker_threads as u64,
                1,
                64,
            ),
            range("server.connections_max", connections, 1, 1 << 20),
            range("market.ring_chunks", ring, 2, 1 << 16),
            range("exchange.capacity", capacity, 1, 1 << 20),
            range("exchange.clock_ms", self.exchange.clock_ms, 0, 3_600_000),
            range("snapshots.kept", self.snapshots.kept as u64, 1, 100),
        ]
    }

    fn of_gateway(&self) -> [Range; 7] {
        let g = &self.gateway;
        let most = u32::MAX.into();
        [
            range("gateway.worker_threads", g.worker_threads as u64, 1, 64),
            range(
                "gateway.connections_max",
                g.connections_max as u64,
                1,
                1 << 20,
            ),
            range(
                "gateway.weight_per_minute",
                g.weight_per_minute.into(),
                1,
                most,
            ),
            range("gateway.orders_per_10s", g.orders_per_10s.into(), 1, most),
            range("gateway.orders_per_day", g.orders_per_day.into(), 1, most),
            range("gateway.orders_kept", g.orders_kept as u64, 1, 1 << 18),
            range(
                "gateway.checkpoint_bytes",
                g.checkpoint_bytes,
                1 << 16,
                1 << 40,
            ),
        ]
    }

    fn of_sessions(&self) -> [Range; 12] {
        let s = &self.sessions;
        let frame_max = FRAME_BYTES_MAX.into();
        let (frame, of_admin) = (s.frame_bytes_max.into(), s.admin_frame_bytes_max.into());
        let least = s.heartbeat_min_ms.into();
        let heartbeat = s.heartbeat_ms.into();
        [
            range("sessions.hello_ms", s.hello_ms, 1, 600_000),
            range("sessions.wrong_key_ms", s.wrong_key_ms, 0, 60_000),
            range("sessions.heartbeat_min_ms", least, 1, HEARTBEAT_MS_MAX),
            range("sessions.heartbeat_ms", heartbeat, least, HEARTBEAT_MS_MAX),
            range("sessions.frame_bytes_max", frame, 1024, frame_max),
            range("sessions.admin_frame_bytes_max", of_admin, 1024, frame_max),
            range(
                "sessions.out_bytes_max",
                s.out_bytes_max as u64,
                1 << 14,
                1 << 32,
            ),
            range(
                "sessions.out_bytes_total",
                s.out_bytes_total as u64,
                s.out_bytes_max as u64,
                1 << 40,
            ),
            range("sessions.socket_bytes", s.socket_bytes.into(), 0, 1 << 30),
            range("sessions.stall_ms", s.stall_ms, 1, 3_600_000),
            range(
                "sessions.rate_burst",
                s.rate_burst.into(),
                1,
                u32::MAX.into(),
            ),
            range("sessions.answers_kept", s.answers_kept.into(), 1, 1 << 20),
        ]
    }
}
