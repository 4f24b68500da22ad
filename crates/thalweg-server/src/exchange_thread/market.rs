//! Market data: readers have turns for it, as others have for their commands.
//!
//! A turn gives what [`Subscription::take`](crate::feed::Subscription::take) gives together, and
//! writes it. Its holder is charged for it, so who has a thousand readers, or one for thousands of
//! books, waits behind others.

use std::collections::BTreeSet;

use thalweg_exchange::durable::Storage;

use super::{ExchangeThread, MarketData};
use crate::scheduler::TurnKind;
use crate::session::{MarketWaits, SessionId};

/// Readers for which there may be something, that ask for a turn before others have theirs.
const WOKEN_TOGETHER: usize = 256;
/// Work of a turn, besides its bytes: a write.
const MARKET_TURN_WORK: u64 = 16;
/// This many bytes are as much work as a command's.
const BYTES_A_WORK: usize = 256;

/// Sessions that were given all the market data there was.
#[derive(Debug, Default)]
pub(super) struct Readers {
    idle: BTreeSet<SessionId>,
    /// Those that were idle when there was more, and have not asked for a turn yet.
    woken: BTreeSet<SessionId>,
    /// Those that were given nothing, since too much waits in all.
    held: BTreeSet<SessionId>,
    /// Chunks of the feed at that time.
    chunks: u64,
}

impl Readers {
    /// Returns whether some have to ask for a turn.
    pub(super) fn is_due(&self) -> bool {
        !self.woken.is_empty()
    }

    /// Returns whether a session was given all there was.
    #[cfg(test)]
    pub(super) fn is_idle(&self, id: SessionId) -> bool {
        self.idle.contains(&id)
    }

    /// Lets those that were given nothing ask for a turn again.
    pub(super) fn wake_held(&mut self) {
        self.woken.append(&mut self.held);
    }
}

impl<S: Storage> ExchangeThread<S> {
    /// Lets readers ask for a turn where there is something new, but not more at once than others
    /// can wait for.
    pub(super) fn wake_readers(&mut self) {
        let chunks = self.shared.feed.chunks();
        let readers = &mut self.readers;
        if chunks != readers.chunks {
            readers.chunks = chunks;
            // A writer that is behind has room, though nothing may be published for long.
            self.shared.feed.hand_over();
            if readers.woken.is_empty() {
                std::mem::swap(&mut readers.woken, &mut readers.idle);
            } else {
                readers.woken.append(&mut readers.idle);
            }
        }
        for _ in 0..WOKEN_TOGETHER {
            let Some(id) = self.readers.woken.pop_first() else {
                return;
            };
            self.wait_for_market_turn(id);
        }
    }

    /// Lets a session wait for a turn in which it is given market data.
    pub(super) fn wait_for_market_turn(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get(id)
            && !matches!(session.market_waits, MarketWaits::Turn(_))
        {
            let ticket = self.scheduler.wait(id, TurnKind::Market, session.holder);
            session.market_waits = MarketWaits::Turn(ticket);
        }
    }

    /// Serves another subscription: in a turn, unless it is none.
    pub(super) fn change_subscription(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        if session.requested.all || !session.requested.symbols.is_empty() {
            self.wait_for_market_turn(id);
            self.shared.feed.want();
            if self.market == MarketData::Off {
                (self.market, self.is_woken) = (MarketData::Starting, true);
            }
        } else {
            session.has_request_changed = false;
            session.market.serve(session.requested.clone());
            self.read_no_more(id);
        }
    }

    /// Takes a session out of the readers.
    pub(super) fn read_no_more(&mut self, id: SessionId) {
        self.readers.idle.remove(&id);
        self.readers.woken.remove(&id);
        self.readers.held.remove(&id);
        if let Some(session) = self.sessions.get(id)
            && let MarketWaits::Turn(ticket) =
                std::mem::replace(&mut session.market_waits, MarketWaits::Feed)
        {
            self.scheduler.cancel(ticket, session.holder);
        }
    }

    /// Gives a reader what there is, unless something waits for it already, and writes it.
    pub(super) fn market_turn(&mut self, id: SessionId) {
        // Answers that wait come first.
        self.flush(id);
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let MarketWaits::Turn(ticket) = session.market_waits else {
            return;
        };
        let holder = session.holder;
        session.market_waits = MarketWaits::Feed;
        let mut work = MARKET_TURN_WORK;
        let mut may_have_more = false;
        let may_fill = session.output.is_empty() && session.output.ending().is_none();
        if may_fill && self.budget.is_market_over() {
            // It falls behind meanwhile, and begins again with snapshots.
            self.scheduler.end(ticket, holder, 0, work);
            self.market_work += work;
            self.readers.held.insert(id);
            return;
        }
        if may_fill {
            if std::mem::take(&mut session.has_request_changed) {
                session.market.serve(session.requested.clone());
            }
            let (output, market) = (&mut session.output, &mut session.market);
            let mut seen = 0;
            output.fill(|bytes| (may_have_more, seen) = market.take(bytes));
            work += (seen / BYTES_A_WORK) as u64;
        }
        self.scheduler.end(ticket, holder, 0, work);
        self.market_work += work;
        self.flush(id);
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        if session.output.ending().is_some() {
            return;
        }
        if !session.output.is_empty() {
            session.market_waits = MarketWaits::Socket;
        } else if may_have_more {
            self.wait_for_market_turn(id);
        } else {
            self.readers.idle.insert(id);
        }
    }
}
