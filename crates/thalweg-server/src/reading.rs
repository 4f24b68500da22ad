//! What a client sends, frame by frame.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use thalweg_exchange::codec::CodecError;
use thalweg_exchange::codec::session::{
    ClientFrame, Ending, QueryAnswer, QueryFrame, Refused, Said, ServerFrame, SessionQuery, Submit,
    SubmitError, Symbols, decode_client_frame,
};
use thalweg_exchange::service::Query;
use thalweg_exchange::session::{ClientSequence, Refusal, Role};
use thalweg_exchange::{Command, UserId};
use tokio::io::AsyncReadExt;
use tokio::net::tcp::OwnedReadHalf;

use crate::access::{Done, Gone};
use crate::figures::raise;
use crate::rate::Bucket;
use crate::request::Request;
use crate::session::{QUERIES_MAX, Session};
use crate::shared::Shared;
use crate::turns::{COMMANDS_MAX, Choosing, Holder, TURN_WORK, Turn};

/// Room for reading that a connection begins with, and comes back to.
const ROOM_BYTES: usize = 1 << 13;
/// Room while reads fill it: a window of 256 orders takes one.
const ROOM_BYTES_MAX: usize = 1 << 15;
/// Tokens that a query costs: one that goes through a book costs as much as many commands. So does
/// a change of what is subscribed, and one more for each symbol that it names.
const QUERY_TOKENS: u32 = 100;
/// This number of symbols that a session has subscribed to costs a token at each change.
const SYMBOLS_A_TOKEN: usize = 16;
/// Bytes of an order in an answer.
pub(crate) const OPEN_ORDER_BYTES: usize = 80;
/// Levels a side of a book that a query gives.
const QUERY_LEVELS_MAX: u32 = 1_000;
/// Open orders that a query gives.
pub(crate) const QUERY_ORDERS_MAX: usize = 5_000;
/// After this many of them, others have their turn.
const FREE_FRAMES_TOGETHER: u32 = 256;
/// This many of them are as much work as a command.
const FREE_FRAMES_A_COMMAND: u32 = 16;

/// See the [module](self).
pub(crate) struct Reading {
    shared: Arc<Shared>,
    session: Arc<Session>,
    bytes: Vec<u8>,
    /// How much is read at once, at most.
    room: usize,
    /// When the last bytes came: the clock is read once for all commands of a read.
    now: Instant,
    /// Where in the connection `bytes` begins.
    at: u64,
    frame_bytes_max: usize,
    rate: Bucket,
    commands: Vec<(ClientSequence, Command)>,
    holder: Arc<Holder>,
    /// Its last turn, until the next one is chosen: nobody has one meanwhile, so that it must be
    /// given up before this waits for anything else.
    choosing: Option<Choosing>,
    /// Work since others had their turn.
    work: u64,
    /// Frames without a price that were taken and not counted yet.
    free: u32,
}

fn is_over(_: Gone) -> Stop {
    Some((Ending::Shutdown, String::new()))
}

/// Why reading ends: a reason and its text for the client, or nothing if the client is gone.
type Stop = Option<(Ending, String)>;

impl Reading {
    /// Goes on with bytes that came behind the hello.
    pub(crate) fn new(shared: Arc<Shared>, session: Arc<Session>, bytes: Vec<u8>) -> Self {
        let limits = &shared.config.sessions;
        let frame_bytes_max = match session.key.role {
            Role::Admin => limits.admin_frame_bytes_max,
            _ => limits.frame_bytes_max,
        };
        let now = Instant::now();
        let rate = shared.buckets.of(session.key, now);
        let holder = shared.turns.holder(session.key);
        Self {
            shared,
            session,
            bytes,
            room: ROOM_BYTES,
            now,
            at: 0,
            frame_bytes_max: frame_bytes_max as usize,
            rate,
            commands: Vec::new(),
            holder,
            choosing: None,
            work: 0,
            free: 0,
        }
    }

    /// Reads to the end of the connection, or to what must end it, and ends the session.
    pub(crate) async fn run(mut self, mut from: OwnedReadHalf) {
        let stop = loop {
            match self.take_all().await {
                Ok(needed) => {
                    let room = needed.max(self.room).saturating_sub(self.bytes.len());
                    self.bytes.reserve(room.max(1));
                }
                Err(stop) => break stop,
            }
            match from.read_buf(&mut self.bytes).await {
                Ok(0) | Err(_) => break None,
                Ok(count) => self.note_read(count),
            }
        };
        match stop {
            Some((why, text)) => self.session.outbox.end(why, text),
            None => self.session.outbox.end_silently(Ending::Done),
        }
    }

    /// Notes a read of `count` bytes. Room grows while reads fill it, and shrinks while they take
    /// little of it.
    fn note_read(&mut self, count: usize) {
        raise(&self.shared.figures.bytes_in, count as u64);
        self.now = Instant::now();
        self.session.hear(self.now);
        if self.bytes.len() == self.bytes.capacity() {
            self.room = (self.room * 2).min(ROOM_BYTES_MAX);
        } else if count < self.room / 4 {
            self.room = (self.room / 2).max(ROOM_BYTES);
        }
    }

    /// Takes all whole frames that are there. Gives how many bytes the next one needs.
    async fn take_all(&mut self) -> Result<usize, Stop> {
        let mut done = 0;
        // Taken out, so that frames can borrow of it.
        let bytes = std::mem::take(&mut self.bytes);
        let outcome = loop {
            let rest = &bytes[done..];
            match decode_client_frame(rest) {
                Ok((frame, length)) => {
                    if length > self.frame_bytes_max {
                        break Err(self.too_long(done, length));
                    }
                    let taken = match &frame {
                        ClientFrame::Submit(submit) => {
                            match self.submit(submit, done, rest.len() / length) {
                                Ok(Some(why)) => self.refuse_admin(submit, done, why).await,
                                Ok(None) => Ok(()),
                                Err(stop) => Err(stop),
                            }
                        }
                        other => self.take(other).await,
                    };
                    if let Err(stop) = taken {
                        break Err(stop);
                    }
                    done += length;
                    if self.commands.len() == COMMANDS_MAX
                        && let Err(stop) = self.send_commands(true).await
                    {
                        break Err(stop);
                    }
                    if self.free >= FREE_FRAMES_TOGETHER {
                        self.count_free().await;
                    }
                }
                Err(CodecError::Incomplete { needed, .. }) if needed <= self.frame_bytes_max => {
                    break Ok(needed);
                }
                Err(CodecError::Incomplete { needed, .. }) => {
                    break Err(self.too_long(done, needed));
                }
                Err(error) => break Err(self.bad_frame(done, &error)),
            }
        };
        // What came before a frame that cannot be read is executed.
        let sent = self.send_commands(false).await;
        self.session.release_answers();
        self.count_free().await;
        // What comes next may be long in coming.
        self.choosing = None;
        self.bytes = bytes;
        self.bytes.drain(..done);
        self.at += done as u64;
        if self.bytes.is_empty() && self.bytes.capacity() > 2 * self.room {
            self.bytes.shrink_to(self.room);
        }
        sent.and(outcome)
    }

    fn bad_frame(&self, done: usize, error: &CodecError) -> Stop {
        let at = self.at + done as u64;
        Some((
            Ending::BadFrame,
            format!("frame at byte {at} after the hello: {error}"),
        ))
    }

    fn too_long(&self, done: usize, bytes: usize) -> Stop {
        let (at, limit) = (self.at + done as u64, self.frame_bytes_max);
        let text =
            format!("frame at byte {at} after the hello: {bytes} bytes, the limit is {limit}");
        Some((Ending::FrameTooLong, text))
    }

    /// Takes a frame other than a submit.
    async fn take(&mut self, frame: &ClientFrame<'_>) -> Result<(), Stop> {
        match frame {
            ClientFrame::Query(query) => self.query(query).await,
            ClientFrame::Subscribe(symbols) => {
                self.pay_for(symbols).await?;
                let fits = self.session.subscribe(symbols);
                let text = "too many symbols are subscribed";
                fits.then_some(())
                    .ok_or(Some((Ending::BadFrame, text.to_owned())))
            }
            ClientFrame::Unsubscribe(symbols) => {
                self.pay_for(symbols).await?;
                self.session.unsubscribe(symbols);
                Ok(())
            }
            ClientFrame::Heartbeat | ClientFrame::Submit(_) => {
                self.free += 1;
                Ok(())
            }
            ClientFrame::Bye(_) => Err(None),
            ClientFrame::Hello(_) => Err(Some((Ending::NoHello, "a second hello".to_owned()))),
        }
    }

    /// Adds a command to those to be executed, or refuses it; of an administrator, returns why it
    /// is to be refused. `there`: about how many commands were read.
    fn submit(
        &mut self,
        submit: &Submit<'_>,
        at: usize,
        there: usize,
    ) -> Result<Option<Refusal>, Stop> {
        let sequence = submit.sequence;
        let key = self.session.key;
        let mut command = Command::Nop;
        let taken = match key.role {
            Role::Trade => submit.trade_into(UserId(key.holder), &mut command),
            Role::Admin => submit.admin().map(|admin| command = admin.into_command()),
            Role::Read => Err(SubmitError::Refused(Refusal::Role)),
        };
        let why = match taken {
            Ok(()) if self.rate.take(1, self.now) => {
                if self.commands.is_empty() {
                    self.commands.reserve(there.min(COMMANDS_MAX));
                }
                self.commands.push((sequence, command));
                return Ok(None);
            }
            Ok(()) => Refusal::Rate {
                limit: self.shared.config.sessions.rate_per_s,
            },
            Err(SubmitError::Refused(why)) => why,
            Err(SubmitError::Frame(error)) => return Err(self.bad_frame(at, &error)),
        };
        if key.role == Role::Admin {
            return Ok(Some(why));
        }
        self.free += 1;
        self.shared.figures.refuse(why);
        let refused = ServerFrame::Refused(Refused { sequence, why });
        self.session.outbox.push(&refused);
        self.session.outbox.wake();
        Ok(None)
    }

    /// Has the exchange refuse a command, after those before it: it leaves a line in the log.
    async fn refuse_admin(
        &mut self,
        submit: &Submit<'_>,
        at: usize,
        why: Refusal,
    ) -> Result<(), Stop> {
        let command = submit.command().map_err(|e| self.bad_frame(at, &e))?;
        self.send_commands(false).await?;
        let session = Arc::clone(&self.session);
        let sequence = submit.sequence;
        self.send(Request::Refused {
            session,
            sequence,
            command,
            why,
        })
        .await
    }

    /// Has the commands executed that were read, as many a turn as the holder may; waits while the
    /// exchange has no room. Holds the answers while more are to come.
    async fn send_commands(&mut self, is_more: bool) -> Result<(), Stop> {
        if self.commands.is_empty() {
            return Ok(());
        }
        let commands = std::mem::take(&mut self.commands);
        let mut rest = &commands[..];
        let mut sent = Ok(());
        while !rest.is_empty() && sent.is_ok() {
            sent = self.send_part(&mut rest, is_more).await;
        }
        self.commands = commands;
        self.commands.clear();
        sent
    }

    /// Has as many of the commands executed as a turn has.
    async fn send_part(
        &mut self,
        rest: &mut &[(ClientSequence, Command)],
        is_more: bool,
    ) -> Result<(), Stop> {
        let turn = self.turn().await;
        let (commands, others) = rest.split_at(rest.len().min(self.holder.commands_max()));
        *rest = others;
        let is_more = is_more || !others.is_empty();
        let done = self.shared.access.try_submit(&self.session, commands);
        let Done { count, mut work } = done.map_err(is_over)?;
        if count < commands.len() {
            // Who has the turn has the next room.
            self.session.leave_unread();
            let rest = &commands[count..];
            let rest = self.shared.access.submit(&self.session, rest).await;
            self.note_wait();
            work += rest.map_err(is_over)?;
        }
        self.end(turn, commands.len(), work);
        if is_more {
            self.session.hold_answers();
        } else {
            self.session.release_answers();
        }
        self.yield_to_others().await;
        if !is_more {
            self.choosing = None;
        }
        Ok(())
    }

    /// Waits for a turn of the holder.
    async fn turn(&mut self) -> Turn {
        let choosing = self.choosing.take();
        if choosing.is_none()
            && let Some(turn) = self.shared.turns.try_begin(&self.holder)
        {
            return turn;
        }
        let turn = {
            let mut turn = pin!(self.shared.turns.begin(&self.holder, choosing));
            let begun = poll_fn(|context| Poll::Ready(turn.as_mut().poll(context))).await;
            if let Poll::Ready(turn) = begun {
                return turn;
            }
            self.session.note_unread();
            turn.await
        };
        self.note_wait();
        turn
    }

    /// Ends a turn. The next one is chosen later: others who come meanwhile take part.
    fn end(&mut self, turn: Turn, commands: usize, work: u64) {
        self.work += work;
        self.choosing = Some(turn.end(&self.holder, commands, work));
    }

    /// Yields to other connections, and to the poll for new input, after the work of a turn.
    async fn yield_to_others(&mut self) {
        if self.work >= u64::from(TURN_WORK / 4) && self.shared.connections() > 1 {
            self.work = 0;
            tokio::task::yield_now().await;
        }
    }

    async fn send(&mut self, request: Request) -> Result<(), Stop> {
        let turn = self.turn().await;
        self.session.leave_unread();
        let work = self.shared.access.serve(request).await;
        self.note_wait();
        self.end(turn, 0, work.map_err(is_over)?);
        self.yield_to_others().await;
        self.choosing = None;
        Ok(())
    }

    /// Counts the frames that cost no tokens, and waits while there were too many.
    async fn count_free(&mut self) {
        let frames = std::mem::take(&mut self.free);
        if frames == 0 {
            return;
        }
        let work = u64::from(frames / FREE_FRAMES_A_COMMAND);
        self.work += work;
        self.shared.turns.charge(&self.holder, work);
        while let Some(wait) = self.holder.take_free(frames, self.now) {
            self.choosing = None;
            self.session.leave_unread();
            tokio::time::sleep(wait).await;
            self.note_wait();
        }
        self.yield_to_others().await;
    }

    /// Nothing was read meanwhile.
    fn note_wait(&mut self) {
        self.now = Instant::now();
        self.session.hear(self.now);
    }

    /// Waits for the tokens of a subscription: there is no answer to it that could refuse it.
    async fn pay_for(&mut self, symbols: &Symbols<'_>) -> Result<(), Stop> {
        // All that it names is looked through.
        let all = self.session.symbols() / SYMBOLS_A_TOKEN;
        let tokens = QUERY_TOKENS + (symbols.iter().count() + all) as u32;
        let mut wait = self.rate.time_to(tokens, self.now);
        if !wait.is_zero() {
            self.send_commands(false).await?;
            self.choosing = None;
            self.session.leave_unread();
        }
        // Others of the holder may take tokens meanwhile.
        while !self.rate.take(tokens, self.now) {
            self.choosing = None;
            tokio::time::sleep(wait).await;
            self.now = Instant::now();
            wait = self.rate.time_to(tokens, self.now);
        }
        self.session.hear(self.now);
        Ok(())
    }

    async fn query(&mut self, frame: &QueryFrame) -> Result<(), Stop> {
        let id = frame.id;
        let begun = self.session.begin_query();
        let limits = &self.shared.config.sessions;
        let own = |user: UserId| self.session.user().is_none_or(|own| own == user);
        let asked = match frame.query {
            SessionQuery::Account(user) if own(user) => Ok(Query::User(user)),
            SessionQuery::OpenOrders(user) if own(user) => {
                // One more tells that there are more.
                let most = QUERY_ORDERS_MAX.min(self.session.outbox.half() / OPEN_ORDER_BYTES) + 1;
                Ok(Query::OpenOrders { user, most })
            }
            SessionQuery::Book { symbol, depth } => {
                let depth = depth.min(QUERY_LEVELS_MAX) as usize;
                Ok(Query::Book { symbol, depth })
            }
            _ => Err(Refusal::NotYourUser),
        };
        let refusal = match asked {
            Err(why) => why,
            Ok(_) if !begun => Refusal::InFlight { limit: QUERIES_MAX },
            Ok(_) if !self.rate.take(QUERY_TOKENS, self.now) => Refusal::Rate {
                limit: limits.rate_per_s,
            },
            Ok(Query::OpenOrders { .. }) if !self.session.begin_list() => {
                Refusal::InFlight { limit: 1 }
            }
            Ok(query) => {
                // It is about what was sent before it.
                self.send_commands(false).await?;
                let session = Arc::clone(&self.session);
                return self.send(Request::Query { session, id, query }).await;
            }
        };
        self.free += 1;
        self.shared.figures.refuse(refusal);
        self.session.answer_query(&QueryAnswer {
            id,
            number: 0,
            said: Said::Refused(refusal),
        });
        Ok(())
    }
}
