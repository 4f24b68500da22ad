//! Turns of the market that trades beside the sessions: as a session's, by its work.

use std::time::Instant;

use thalweg_exchange::durable::Storage;

use super::ExchangeThread;
use crate::scheduler::TurnKind;
use crate::session::SessionId;

/// No session has this id.
const FLOW_ID: SessionId = SessionId::new(u32::MAX, u32::MAX);
/// Work that a turn is at least.
const FLOW_WORK_LEAST: u64 = 1;

impl<S: Storage> ExchangeThread<S> {
    /// Returns when the market is to have a turn, where it waits for its time alone.
    pub(super) fn flow_due(&self, now: Instant) -> Option<Instant> {
        let flow = self.flow.as_deref().filter(|_| self.serves_flow())?;
        flow.due(now)
    }

    fn serves_flow(&self) -> bool {
        !self.has_failed && !self.is_stopping()
    }

    /// Lets the market wait for a turn, if it is time.
    pub(super) fn wake_flow(&mut self, now: Instant) {
        if self.flow.is_some() && self.flow_due(now).is_some_and(|due| due <= now) {
            self.wait_for_flow_turn(now);
        }
    }

    fn wait_for_flow_turn(&mut self, now: Instant) {
        if let Some(flow) = &mut self.flow {
            let key = flow.key();
            let enter = || self.scheduler.enter(key, now);
            let holder = *flow.holder.get_or_insert_with(enter);
            flow.ticket = Some(self.scheduler.wait(FLOW_ID, TurnKind::Flow, holder));
        }
    }

    pub(super) fn flow_turn(&mut self, now: Instant) {
        let serves = self.serves_flow();
        let Some(flow) = &mut self.flow else {
            return;
        };
        let (Some(ticket), Some(holder)) = (flow.ticket.take(), flow.holder) else {
            return;
        };
        if !serves {
            return self.scheduler.end(ticket, holder, 0, 0);
        }
        let before = self.driver.work();
        let most = self.scheduler.commands_max(holder);
        let room = self.driver.room();
        let submitted = room.and_then(|room| flow.turn(&mut self.driver, most.min(room), now));
        let work = (self.driver.work() - before).max(FLOW_WORK_LEAST);
        let count = submitted.as_ref().map_or(0, |count| *count);
        self.scheduler.end(ticket, holder, count, work);
        self.deliver();
        self.check(submitted);
        self.wake_flow(now);
    }

    /// Lets the market go on that waits for room.
    pub(super) fn unblock_flow(&mut self) {
        if let Some(flow) = &mut self.flow {
            flow.is_blocked = false;
        }
    }
}
