//! A turn of a session: what its client sent is taken, frame by frame.

use std::time::Instant;

use thalweg_exchange::codec::CodecError;
use thalweg_exchange::codec::session::{
    ClientFrame, CloseReason, QueryAnswer, QueryFrame, QueryResult, Refused, SYMBOLS_MAX,
    ServerFrame, SessionQuery, Submit, SubmitFrameError, Symbols, decode_client_frame,
    decode_own_order,
};
use thalweg_exchange::durable::{ExchangeError, Storage};
use thalweg_exchange::service::Query;
use thalweg_exchange::session::{ClientSequence, Refusal, Role};
use thalweg_exchange::{Command, UserId};

use crate::conditions::Fault;
use crate::counters::raise;
use crate::driver::Driver;
use crate::feed::Requested;
use crate::scheduler::{Scheduler, TURN_WORK};
use crate::session::{Input, QUERIES_MAX, Session, SessionId};
use crate::shared::Shared;

/// Tokens that a query costs: one that goes through a book costs as much as many commands. So does
/// a change of what is subscribed, and one more for each symbol that it names.
const QUERY_TOKENS: u32 = 100;
/// This number of symbols that a session has subscribed to costs a token at each change.
const SYMBOLS_A_TOKEN: usize = 16;
/// Symbols that all connections of a user may name in their subscriptions together; each may name
/// [`SYMBOLS_MAX`].
const SYMBOLS_OF_HOLDER: usize = 1 << 16;
/// Bytes of an order in an answer.
pub(crate) const OPEN_ORDER_BYTES: usize = 80;
/// Levels a side of a book that a query gives.
const QUERY_LEVELS_MAX: u32 = 1_000;
/// Open orders that a query gives.
pub(crate) const QUERY_ORDERS_MAX: usize = 5_000;
/// Commands of a turn that are executed together at first; twice as many follow while all that were
/// are less work than a turn is.
const COMMANDS_TOGETHER: usize = 8;
/// After this many of them, others have their turn.
const FREE_FRAMES_TOGETHER: u32 = 256;
/// This many of them are as much work as a command.
const FREE_FRAMES_A_COMMAND: u32 = 16;

/// The event that a session waits for after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Input.
    Input,
    /// Another turn: there is more.
    Turn,
    /// Room in the exchange.
    Room,
    /// Tokens, which it has at this time.
    Tokens(Instant),
}

/// See the [module](self).
pub(crate) struct Turn<'t, S: Storage> {
    pub(crate) shared: &'t Shared,
    pub(crate) driver: &'t mut Driver<S>,
    pub(crate) scheduler: &'t mut Scheduler,
    pub(crate) id: SessionId,
    pub(crate) session: &'t mut Session,
    /// Commands that were decoded; the first `count` of them are to be submitted.
    pub(crate) commands: &'t mut Vec<(ClientSequence, Command)>,
    pub(crate) count: usize,
    /// Commands that were submitted.
    pub(crate) submitted: usize,
    /// Whether a query was asked, or a subscription changed, with which a turn ends.
    pub(crate) has_asked: bool,
    /// Why the session ends behind what was submitted.
    pub(crate) ending: Option<TurnEnding>,
    pub(crate) now: Instant,
}

/// Why a session ends, and the text of its bye; no bye where there is none.
#[derive(Debug)]
pub(crate) struct TurnEnding {
    pub(crate) why: CloseReason,
    pub(crate) text: Option<String>,
}

/// Why a frame is not taken now.
enum Stop {
    /// It waits.
    After(After),
    /// The session ends.
    End,
    Failed(ExchangeError),
}

impl From<ExchangeError> for Stop {
    fn from(failed: ExchangeError) -> Self {
        Self::Failed(failed)
    }
}

impl<S: Storage> Turn<'_, S> {
    /// Reads, if nothing is left of the last read, and takes as many frames as a turn may have.
    ///
    /// # Errors
    /// The exchange has stopped.
    pub(crate) fn run(&mut self) -> Result<After, ExchangeError> {
        if !self.session.input.may_have_frame() && self.session.is_readable {
            match self.session.read() {
                Ok(count) => raise(&self.shared.counters.bytes_in, count as u64),
                Err(_) => {
                    let why = CloseReason::Done;
                    self.ending = Some(TurnEnding { why, text: None });
                    return Ok(After::Input);
                }
            }
        }
        let room = self.driver.room()?;
        let commands_max = self.scheduler.commands_max(self.session.holder).min(room);
        let mut input = std::mem::take(&mut self.session.input);
        let stop = self.take_frames(&mut input, commands_max);
        self.session.input = input;
        // The commands before a frame that cannot be read are executed.
        self.submit_all()?;
        let after = match stop {
            Stop::After(after) => after,
            Stop::End => After::Input,
            Stop::Failed(failed) => return Err(failed),
        };
        Ok(self.count_free().map_or(after, After::Tokens))
    }

    fn take_frames(&mut self, input: &mut Input, commands_max: usize) -> Stop {
        let frame_bytes_max = self.frame_bytes_max();
        let before = self.driver.work();
        // Commands up to which those that were taken are executed: how much work they are is not
        // known before.
        let mut together = COMMANDS_TOGETHER;
        loop {
            let taken = self.submitted + self.count;
            if taken >= together {
                if let Err(failed) = self.submit_all() {
                    return Stop::Failed(failed);
                }
                together = 2 * taken;
            }
            let is_long = self.driver.work() - before >= TURN_WORK;
            let is_full = self.has_asked || is_long || taken > 0 && taken >= commands_max;
            if is_full || self.session.free >= FREE_FRAMES_TOGETHER {
                return Stop::After(After::Turn);
            }
            if self.take_orders(input, together.min(commands_max).saturating_sub(taken)) {
                continue;
            }
            match decode_client_frame(input.rest()) {
                Ok((_, length)) if length > frame_bytes_max => {
                    return self.too_long(input.at(), length, frame_bytes_max);
                }
                Ok((frame, length)) => {
                    let taken = self.take(&frame, input.at(), commands_max);
                    match taken {
                        Ok(()) => input.take(length),
                        Err(stop) => return stop,
                    }
                }
                Err(CodecError::Incomplete { needed, .. }) if needed <= frame_bytes_max => {
                    input.need(needed);
                    return Stop::After(match self.session.is_readable {
                        true => After::Turn,
                        false => After::Input,
                    });
                }
                Err(CodecError::Incomplete { needed, .. }) => {
                    return self.too_long(input.at(), needed, frame_bytes_max);
                }
                Err(error) => return self.bad_frame(input.at(), &error),
            }
        }
    }

    /// Takes the next frames, `most` at most, as long as each is about an order of the session's
    /// own user and may be sent now: with one look at the session for all of them. Submits them at
    /// once, unless others are to be submitted before them. Returns whether it took any.
    fn take_orders(&mut self, input: &mut Input, most: usize) -> bool {
        let key = self.session.terms.key;
        if key.role != Role::Trade || self.shared.conditions_of(key).is_some() {
            return false;
        }
        let most = self.session.rate.times(most, self.now);
        if self.count == 0 {
            let session = (self.id, key);
            let (count, bytes) = self.driver.submit_frames(session, input.rest(), most);
            if count > 0 {
                input.take(bytes);
                self.submitted += count;
                self.session.rate.take(count as u32, self.now);
                return true;
            }
        }
        let end = self.count + most;
        if self.commands.len() < end {
            let none = (ClientSequence(0), Command::Nop);
            self.commands.resize(end, none);
        }
        let (all, mut taken, mut count) = (input.rest(), 0, 0);
        for (sequence, command) in &mut self.commands[self.count..end] {
            let order = decode_own_order(&all[taken..], UserId(key.holder), command);
            let Some((of_order, length)) = order else {
                break;
            };
            *sequence = of_order;
            taken += length;
            count += 1;
        }
        if count == 0 {
            return false;
        }
        input.take(taken);
        self.count += count;
        self.session.rate.take(count as u32, self.now);
        true
    }

    fn frame_bytes_max(&self) -> usize {
        let limits = &self.shared.config.sessions;
        let bytes = match self.session.terms.key.role {
            Role::Admin => limits.admin_frame_bytes_max,
            _ => limits.frame_bytes_max,
        };
        bytes as usize
    }

    fn end(&mut self, why: CloseReason, text: impl Into<String>) -> Stop {
        let text = Some(text.into());
        self.ending = Some(TurnEnding { why, text });
        Stop::End
    }

    fn bad_frame(&mut self, at: u64, error: &CodecError) -> Stop {
        let text = format!("frame at byte {at} after the hello: {error}");
        self.end(CloseReason::BadFrame, text)
    }

    fn too_long(&mut self, at: u64, bytes: usize, limit: usize) -> Stop {
        let text =
            format!("frame at byte {at} after the hello: {bytes} bytes, the limit is {limit}");
        self.end(CloseReason::FrameTooLong, text)
    }

    /// Takes a frame, or returns why it is not taken now.
    fn take(&mut self, frame: &ClientFrame<'_>, at: u64, room: usize) -> Result<(), Stop> {
        match frame {
            ClientFrame::Submit(_) | ClientFrame::Query(_) if room == 0 => {
                Err(Stop::After(After::Room))
            }
            ClientFrame::Submit(submit) => self.take_submit(submit, at),
            ClientFrame::Query(query) => self.take_query(query),
            ClientFrame::Subscribe(symbols) => {
                self.pay_for(symbols)?;
                self.change_requested(|requested| requested.add(symbols))
            }
            ClientFrame::Unsubscribe(symbols) => {
                self.pay_for(symbols)?;
                self.change_requested(|requested| requested.remove(symbols))
            }
            ClientFrame::Heartbeat => {
                self.session.free += 1;
                Ok(())
            }
            ClientFrame::Bye(_) => {
                let why = CloseReason::Done;
                self.ending = Some(TurnEnding { why, text: None });
                Err(Stop::End)
            }
            ClientFrame::Hello(_) => Err(self.end(CloseReason::NoHello, "a second hello")),
        }
    }

    /// Adds a command to those to be submitted, or refuses it.
    fn take_submit(&mut self, submit: &Submit<'_>, at: u64) -> Result<(), Stop> {
        let sequence = submit.sequence;
        let key = self.session.terms.key;
        if let Some(conditions) = self.shared.conditions_of(key)
            && let Some(fault) = conditions.fault(key.holder)
        {
            return self.fail(sequence, fault);
        }
        if self.count == self.commands.len() {
            self.commands.push((sequence, Command::Nop));
        }
        let (slot, command) = &mut self.commands[self.count];
        let taken = match key.role {
            Role::Trade => submit.trade_into(UserId(key.holder), command),
            Role::Admin => submit.admin().map(|admin| *command = admin.into_command()),
            Role::Read => Err(SubmitFrameError::Refused(Refusal::Role)),
        };
        let why = match taken {
            Ok(()) if self.session.rate.take(1, self.now) => {
                *slot = sequence;
                self.count += 1;
                return Ok(());
            }
            Ok(()) => Refusal::Rate {
                limit: self.shared.config.sessions.rate_per_s,
            },
            Err(SubmitFrameError::Refused(why)) => why,
            Err(SubmitFrameError::Frame(error)) => return Err(self.bad_frame(at, &error)),
        };
        if key.role == Role::Admin {
            let command = submit.command().map_err(|e| self.bad_frame(at, &e))?;
            // After those before it: it leaves a line in the log.
            self.submit_all()?;
            self.driver.refuse(self.session, (sequence, &command), why);
            return Ok(());
        }
        self.refuse(sequence, why);
        Ok(())
    }

    fn refuse(&mut self, sequence: ClientSequence, why: Refusal) {
        self.session.free += 1;
        self.shared.counters.refuse(why);
        let refused = ServerFrame::Refused(Refused { sequence, why });
        self.session.output.push(&refused);
    }

    /// Has a command meet a fault of the network.
    fn fail(&mut self, sequence: ClientSequence, fault: Fault) -> Result<(), Stop> {
        match fault {
            Fault::Drop => self.session.free += 1,
            Fault::Reject => self.refuse(sequence, Refusal::Resources),
            Fault::Disconnect => {
                let why = CloseReason::Done;
                self.ending = Some(TurnEnding { why, text: None });
                return Err(Stop::End);
            }
        }
        Ok(())
    }

    /// Has the commands executed that were taken.
    fn submit_all(&mut self) -> Result<(), ExchangeError> {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return Ok(());
        }
        self.submitted += count;
        let session = (self.id, &mut *self.session);
        self.driver.submit(session, &self.commands[..count])
    }

    /// Counts the frames that cost no tokens. Returns when it may go on where there were too many.
    fn count_free(&mut self) -> Option<Instant> {
        let frames = self.session.free;
        if frames == 0 {
            return None;
        }
        let holder = self.session.holder;
        if let Some(wait) = self.scheduler.take_free(holder, frames, self.now) {
            return Some(self.now + wait);
        }
        self.session.free = 0;
        let work = u64::from(frames / FREE_FRAMES_A_COMMAND);
        self.scheduler.charge(holder, work);
        None
    }

    /// Pays for a change of subscriptions, or returns when there are tokens for it: there is no
    /// answer to it that could refuse it.
    fn pay_for(&mut self, symbols: &Symbols<'_>) -> Result<(), Stop> {
        // All that it names is looked through.
        let all = self.session.requested.symbols.len();
        let tokens = QUERY_TOKENS + (symbols.iter().count() + all / SYMBOLS_A_TOKEN) as u32;
        if self.session.rate.take(tokens, self.now) {
            let work = u64::from(tokens) + all as u64;
            self.scheduler.charge(self.session.holder, work);
            (self.session.has_request_changed, self.has_asked) = (true, true);
            return Ok(());
        }
        let wait = self.session.rate.time_to(tokens, self.now);
        Err(Stop::After(After::Tokens(self.now + wait)))
    }

    /// Changes what the session has subscribed to, within the bounds of symbols that are named.
    fn change_requested(&mut self, change: impl FnOnce(&mut Requested)) -> Result<(), Stop> {
        let requested = &mut self.session.requested;
        let before = requested.symbols.len();
        change(requested);
        let after = requested.symbols.len();
        let named = self.scheduler.name(self.session.holder, before, after);
        if after > SYMBOLS_MAX {
            let text = format!("more than {SYMBOLS_MAX} symbols: subscribe to all");
            return Err(self.end(CloseReason::BadFrame, text));
        }
        if named > SYMBOLS_OF_HOLDER {
            let text = format!("all of one user name more than {SYMBOLS_OF_HOLDER} symbols");
            return Err(self.end(CloseReason::BadFrame, text));
        }
        Ok(())
    }

    fn take_query(&mut self, frame: &QueryFrame) -> Result<(), Stop> {
        let id = frame.id;
        let session = &mut *self.session;
        let own = |user: UserId| session.user().is_none_or(|own| own == user);
        let asked = match frame.query {
            SessionQuery::Account(user) if own(user) => Ok(Query::User(user)),
            SessionQuery::OpenOrders(user) if own(user) => {
                // One more shows that there are more.
                let most = QUERY_ORDERS_MAX.min(session.output.half() / OPEN_ORDER_BYTES) + 1;
                Ok(Query::OpenOrders { user, most })
            }
            SessionQuery::Book { symbol, depth } => {
                let depth = depth.min(QUERY_LEVELS_MAX) as usize;
                Ok(Query::Book { symbol, depth })
            }
            _ => Err(Refusal::NotYourUser),
        };
        session.queries += 1;
        let refusal = match asked {
            Err(why) => why,
            Ok(_) if session.queries > QUERIES_MAX => Refusal::InFlight { limit: QUERIES_MAX },
            Ok(_) if !session.rate.take(QUERY_TOKENS, self.now) => Refusal::Rate {
                limit: self.shared.config.sessions.rate_per_s,
            },
            Ok(Query::OpenOrders { .. }) if session.is_listing => Refusal::InFlight { limit: 1 },
            Ok(query) => {
                session.is_listing |= matches!(query, Query::OpenOrders { .. });
                // It is about what was sent before it.
                self.submit_all()?;
                (self.submitted, self.has_asked) = (self.submitted + 1, true);
                let session = (self.id, &mut *self.session);
                return Ok(self.driver.query(session, id, query)?);
            }
        };
        session.free += 1;
        self.shared.counters.refuse(refusal);
        session.answer_query(QueryAnswer {
            id,
            number: 0,
            result: QueryResult::Refused(refusal),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
