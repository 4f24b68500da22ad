//! The clocks of sessions: which are silent, take nothing, or need a heartbeat.

use std::ops::Range;
use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::{CloseReason, ServerFrame};
use thalweg_exchange::durable::Storage;

use super::ExchangeThread;
use crate::session::Waits;

/// How often the clocks of sessions are looked at, at least and at most.
const TICK_MIN: Duration = Duration::from_millis(5);
const TICK_MAX: Duration = Duration::from_millis(500);
/// Slots of sessions that are looked at before others have their turn.
const LOOK_TOGETHER: usize = 256;
/// Work of a heartbeat: a write.
const HEARTBEAT_WORK: u64 = 16;

/// When the clocks are looked at: an eighth of the shortest heartbeat after the last time.
#[derive(Debug)]
pub(super) struct Clocks {
    longest: Duration,
    tick: Duration,
    began: Instant,
    /// The slots that were looked at, and the tick of their sessions, while some are left.
    looking: Option<(usize, Duration)>,
    /// When the next look was due at the end of the last one. Sessions that have entered since make
    /// it earlier, and no look late.
    expected: Instant,
    /// By how much more than a tick this look is late: this thread, or the whole machine, stood
    /// still, so clients are not silent for that.
    late: Duration,
}

impl Clocks {
    pub(super) fn new(stall: Duration, now: Instant) -> Self {
        let longest = (stall / 4).clamp(TICK_MIN, TICK_MAX);
        Self {
            longest,
            tick: longest,
            began: now,
            looking: None,
            expected: now + longest,
            late: Duration::ZERO,
        }
    }

    /// Returns when to look next.
    pub(super) fn due(&self) -> Instant {
        match self.looking {
            Some(_) => self.began,
            None => self.began + self.tick,
        }
    }

    /// Notes a session that is new, or is looked at.
    pub(super) fn see(&mut self, heartbeat: Duration) {
        let tick = (heartbeat / 8).max(TICK_MIN);
        self.tick = self.tick.min(tick);
        if let Some((_, of_seen)) = &mut self.looking {
            *of_seen = tick.min(*of_seen);
        }
    }

    /// Returns the slots to look at now, out of a number of them.
    fn begin(&mut self, slots: usize, now: Instant) -> Option<Range<usize>> {
        if self.looking.is_none() && now < self.due() {
            return None;
        }
        let (from, of_seen) = self.looking.unwrap_or_else(|| {
            let late = now.saturating_duration_since(self.expected);
            self.late = late.saturating_sub(self.tick);
            self.began = now;
            (0, self.longest)
        });
        let to = slots.min(from + LOOK_TOGETHER);
        self.looking = Some((to, of_seen));
        Some(from..to)
    }

    /// Ends the look at some slots. Returns whether all were looked at.
    fn end(&mut self, slots: usize, now: Instant) -> bool {
        let all = self.looking.take_if(|(to, _)| *to >= slots);
        if let Some((_, tick)) = all {
            self.tick = tick;
            self.expected = now.max(self.began + tick);
        }
        all.is_some()
    }
}

impl<S: Storage> ExchangeThread<S> {
    /// Looks at the clocks of some sessions, if it is time.
    pub(super) fn look_at_clocks(&mut self, now: Instant) {
        let slots = self.sessions.slots();
        let Some(some) = self.clocks.begin(slots, now) else {
            return;
        };
        // The sockets were looked at before; the thread may have waited for the disk since.
        let received = Instant::now();
        let late = self.clocks.late;
        let stall = Duration::from_millis(self.shared.config.sessions.stall_ms);
        for slot in some {
            let Some(id) = self.sessions.id_at(slot) else {
                continue;
            };
            let Some(session) = self.sessions.get(id) else {
                continue;
            };
            if let Waits::End(until) = session.waits {
                if until <= now {
                    self.close(id);
                }
                continue;
            }
            let heartbeat = session.terms.heartbeat;
            self.clocks.see(heartbeat);
            session.last_received = now.min(session.last_received + late);
            session.stalled = session.stalled.map(|since| now.min(since + late));
            let has_received = std::mem::take(&mut session.has_received);
            if has_received || session.waits != Waits::Input || session.is_readable {
                // Something came, or waits for this thread.
                session.last_received = received;
            }
            if now.duration_since(session.last_received) >= heartbeat * 3 {
                let text = format!("nothing for {} ms", (heartbeat * 3).as_millis());
                self.end(id, CloseReason::Silent, &text);
            } else if let Some(since) = session.stalled {
                if now.duration_since(since) >= stall {
                    // In the midst of a frame there is no place for a bye.
                    session.output.end_silently(CloseReason::SlowReader);
                    self.leave(id);
                    self.close(id);
                }
            } else if now.duration_since(session.wrote) >= heartbeat / 2 {
                session.output.push(&ServerFrame::Heartbeat);
                self.scheduler.charge(session.holder, HEARTBEAT_WORK);
                self.note_dirty(id);
            }
        }
        if self.clocks.end(slots, now) {
            self.readers.wake_held();
        }
        self.flush_all(now);
    }
}
