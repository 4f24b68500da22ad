//! Writing: bytes that wait for sessions are written, and sessions that have ended are closed.

use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::CloseReason;
use thalweg_exchange::durable::Storage;

use super::{ExchangeThread, FLUSH_BYTES, MarketData, SHORT_BYTES};
use crate::counters::raise;
use crate::output::Written;
use crate::session::{MarketWaits, SessionId, WRITE_BYTES_MAX, Waits};

/// How long answers are held back at most while turns of their session go on: one write for all
/// that was read costs half of two.
const HELD_MAX: Duration = Duration::from_millis(1);
/// This many slots that are looked at are as much work as a command's.
const SLOTS_A_WORK: usize = 16;

impl<S: Storage> ExchangeThread<S> {
    /// Writes to the sessions for which something waits, but to those whose turns go on: first
    /// what is short, then to as many of the others as may have something before others have their
    /// turn.
    pub(super) fn flush_all(&mut self, now: Instant) {
        let mut left = Vec::new();
        let mut long = Vec::new();
        for id in std::mem::take(&mut self.dirty) {
            let Some(session) = self.sessions.get(id) else {
                continue;
            };
            let is_open = session.output.ending().is_none();
            let goes_on = matches!(session.waits, Waits::Turn(_)) && session.input.may_have_frame();
            let since = *session.dirty_since.get_or_insert(now);
            let is_short = now.saturating_duration_since(since) < HELD_MAX
                && session.output.len() < (session.output.half() / 2).min(WRITE_BYTES_MAX);
            let may_hold = is_open && self.market != MarketData::Starting;
            if may_hold && goes_on && is_short {
                left.push(id);
            } else if is_open && session.output.len() > SHORT_BYTES {
                long.push(id);
            } else {
                session.is_dirty = false;
                self.flush(id);
            }
        }
        let mut written = 0;
        for id in long {
            if written >= FLUSH_BYTES {
                left.push(id);
            } else if let Some(session) = self.sessions.get(id) {
                session.is_dirty = false;
                written += self.flush(id);
            }
        }
        // Those that were left come first in the next round.
        left.append(&mut self.dirty);
        self.dirty = left;
        while self.budget.is_over()
            && let Some(id) = self.sessions.largest()
        {
            // It was looked for among all.
            let work = (self.sessions.slots() / SLOTS_A_WORK) as u64;
            let Some(session) = self.sessions.get(id) else {
                break;
            };
            self.scheduler.charge(session.holder, work);
            match session.output.ending() {
                None => {
                    session.output.end_largest();
                    self.flush(id);
                }
                Some(_) => {
                    self.leave(id);
                    self.close(id);
                }
            }
        }
    }

    /// Writes what waits for a session. One that has ended leaves, and goes when all is written.
    /// Returns how many bytes were written.
    pub(super) fn flush(&mut self, id: SessionId) -> usize {
        let Some(session) = self.sessions.get(id) else {
            return 0;
        };
        session.dirty_since = None;
        let Ok(Written { count, market }) = session.flush() else {
            session.output.end_silently(CloseReason::Done);
            self.leave(id);
            self.close(id);
            return 0;
        };
        raise(&self.shared.counters.bytes_out, (count - market) as u64);
        raise(&self.shared.counters.market_bytes_out, market as u64);
        let is_empty = session.output.is_empty();
        if count >= WRITE_BYTES_MAX && !is_empty && !session.is_dirty {
            // The socket may take more.
            session.is_dirty = true;
            self.dirty.push(id);
        }
        if session.output.ending().is_some() {
            if !session.has_left || !matches!(session.waits, Waits::End(_)) {
                self.leave(id);
            }
            if is_empty {
                self.close(id);
            }
        } else if is_empty && session.market_waits == MarketWaits::Socket {
            self.wait_for_market_turn(id);
        }
        count
    }

    /// Closes a connection that has left.
    pub(super) fn close(&mut self, id: SessionId) {
        let Some(mut session) = self.sessions.remove(id) else {
            return;
        };
        session.shut_down();
        let _ = self.poll.registry().deregister(&mut session.stream);
        let symbols = session.requested.symbols.len();
        self.scheduler.leave(session.holder, symbols);
        let why = session.output.ending().unwrap_or(CloseReason::Done);
        self.shared.counters.end(why);
        if let Some(left_out) = self.shared.log_welcomed.pass(Instant::now()) {
            let (why, left_out) = (why.text(), (left_out > 0).then_some(left_out));
            let (peer, key) = (session.peer, session.terms.key);
            tracing::info!(%peer, session = %key, why, left_out, "disconnected");
        }
    }
}
