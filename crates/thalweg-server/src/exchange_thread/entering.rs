//! How a connection becomes a session, or is refused.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use mio::{Interest, Token};
use thalweg_exchange::codec::session::{CloseReason, ReportGap, ServerFrame, Welcome};
use thalweg_exchange::durable::Storage;
use thalweg_exchange::session::{ReportNumber, Role};

use super::{CONNECTION_WORK, CUT_OFF, ExchangeThread};
use crate::counters::raise;
use crate::feed::Subscription;
use crate::keys::Keys;
use crate::output::Output;
use crate::request::NewSession;
use crate::session::{Input, Session, SessionId};

/// The text of a bye to a session whose key is not among the new ones.
const WITHDRAWN: &str = "the key was withdrawn";
/// The version of the protocol from which on clients know a replica that is not the primary, and
/// the text of the bye to others.
const NAMES_PRIMARY: u16 = 2;
const NOT_PRIMARY: &str = "this replica is not the primary";

impl<S: Storage> ExchangeThread<S> {
    /// Enters a session in place of an older one, welcomes it, and gives it the reports that it
    /// missed.
    pub(super) fn enter(&mut self, new: NewSession, now: Instant) {
        let NewSession {
            stream,
            peer,
            connection_slot,
            bytes,
            terms,
            last_report,
        } = new;
        let id = self.sessions.next_id();
        let mut stream = mio::net::TcpStream::from_std(stream);
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if let Err(error) = registry.register(&mut stream, Token(id.slot()), interest) {
            tracing::error!(%error, %peer, "a connection could not be taken");
            return;
        }
        let limits = &self.shared.config.sessions;
        let (key, heartbeat) = (terms.key, terms.heartbeat);
        let session = Session::new(
            terms,
            (stream, peer, connection_slot),
            (self.scheduler.enter(key, now), self.buckets.of(key, now)),
            Input::new(bytes),
            Output::new(limits.out_bytes_max, Rc::clone(&self.budget)),
            Subscription::new(Arc::clone(&self.shared.feed)),
            now,
        );
        self.clocks.see(heartbeat);
        let connection_id = session.connection_slot.id;
        self.scheduler.charge(session.holder, CONNECTION_WORK);
        self.sessions.insert(Box::new(session));
        if let Some((why, text)) = self.objection(id, connection_id) {
            self.refuse(id, (why, &text));
            return;
        }
        let older = self.sessions.enter(id);
        // Before anything is published to it.
        self.welcome(id, last_report);
        if let Some(older) = older {
            self.end(older, CloseReason::Replaced, "");
            // Its orders go before the newer one has some.
            self.leave(older);
        }
        if let Some(left_out) = self.shared.log_welcomed.pass(now)
            && let Some(session) = self.sessions.get(id)
        {
            let (key_name, left_out) = (session.key_name(), (left_out > 0).then_some(left_out));
            tracing::info!(%peer, session = %key, key = key_name, left_out, "connected");
        }
        self.note_dirty(id);
        self.wait_for_turn(id);
    }

    /// Returns why a connection is not entered. One that was taken before the present connection of
    /// its session is older, even if its hello was read late.
    pub(super) fn objection(
        &mut self,
        id: SessionId,
        connection_id: u64,
    ) -> Option<(CloseReason, Cow<'static, str>)> {
        if self.has_failed {
            return Some((CloseReason::Failed, "".into()));
        }
        if self.is_stopping() {
            return Some((CloseReason::Shutdown, "".into()));
        }
        if self.is_cut_off {
            return Some((CloseReason::Shutdown, CUT_OFF.into()));
        }
        let keys = self.shared.keys();
        let session = self.sessions.get(id)?;
        // They may have changed since its hello was examined.
        if let (Some(keys), Some(shown)) = (keys, &session.terms.shown)
            && !keys.holds(shown)
        {
            return Some((CloseReason::WrongKey, WITHDRAWN.into()));
        }
        let key = session.terms.key;
        let replica = self.driver.exchange();
        if let Some(primary) = replica.primary()
            && key.role != Role::Read
        {
            // The log has no addresses for administrators.
            let text = if key.role == Role::Trade { primary } else { "" };
            return Some(match session.terms.version >= NAMES_PRIMARY {
                true => (CloseReason::NotPrimary, text.to_owned().into()),
                false => (CloseReason::Shutdown, NOT_PRIMARY.into()),
            });
        }
        let present = self.sessions.of_key(key)?;
        let present = self.sessions.get(present)?;
        (present.connection_slot.id > connection_id).then(|| (CloseReason::Replaced, "".into()))
    }

    /// Ends a connection that was not entered.
    fn refuse(&mut self, id: SessionId, (why, text): (CloseReason, &str)) {
        raise(&self.shared.counters.hellos_refused, 1);
        if let Some(session) = self.sessions.get(id) {
            session.has_left = true;
        }
        self.end(id, why, text);
    }

    fn welcome(&mut self, id: SessionId, last_report: Option<ReportNumber>) {
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let limits = &self.shared.config.sessions;
        let exchange = self.driver.exchange();
        let reports = exchange.reports();
        let (key, user) = (session.terms.key, session.user());
        session.output.push(&ServerFrame::Welcome(Welcome {
            version: session.terms.version,
            heartbeat_ms: session.terms.heartbeat.as_millis() as u32,
            holder: key.holder,
            last_executed: reports.session(key).last_executed,
            next_report: user.map_or(ReportNumber(1), |user| reports.next(user)),
            next_command: self.next_command,
            in_flight_max: limits.answers_kept,
            frame_bytes_max: match key.role {
                Role::Admin => limits.admin_frame_bytes_max,
                _ => limits.frame_bytes_max,
            },
            rate_max: limits.rate_per_s,
            epoch: self.shared.feed.epoch(),
            channels: self.shared.feed.channels,
            exchange: exchange.identity(),
        }));
        let Some(user) = user.filter(|_| session.terms.wants_reports) else {
            return;
        };
        let mut frames = Vec::new();
        let after = last_report.unwrap_or(ReportNumber(u64::MAX));
        let resumed = reports.resume(user, after, &mut frames);
        if let Some((from, to)) = resumed.gap {
            let gap = ServerFrame::ReportGap(ReportGap { from, to });
            session.output.push(&gap);
        }
        session.output.push_reports(resumed.first, &frames);
    }

    pub(super) fn withdraw(&mut self, keys: &Keys) {
        let mut ended = 0;
        for id in self.sessions.ids() {
            let shown = self.sessions.get(id).map(|session| &session.terms.shown);
            let is_out = shown.is_some_and(|key| key.as_ref().is_none_or(|key| !keys.holds(key)));
            if is_out && self.end(id, CloseReason::WrongKey, WITHDRAWN) {
                ended += 1;
            }
        }
        tracing::info!(keys = keys.len(), ended, "keys were read again");
    }
}
