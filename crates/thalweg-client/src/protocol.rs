//! The protocol of a connection without the connection: bytes come in, bytes go out.
//!
//! *Rules.*
//! 1. A sequence is saved as used before a frame has it, so that no start of the program uses it
//!    again for another command.
//! 2. A command stays in [`Pending`] until its answer or refusal is read, and is written to every
//!    connection anew. The exchange executes it once.
//! 3. A report is passed on only if its number is the next one; the hello of the next connection
//!    asks for those after it.

mod receive;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use thalweg_exchange::Command;
use thalweg_exchange::codec::session::{
    Bye, ClientFrame, CloseReason, HELLO_BYTES_MAX, Hello, KeyBytes, QueryAnswer, QueryFrame,
    SessionQuery, Welcome, client_frame_bytes, encode_client_frame, encode_submit, submit_bytes,
};
use thalweg_exchange::codec::{SESSION_VERSION, SESSION_VERSION_MAX};
use thalweg_exchange::session::{ClientSequence, ReportNumber, Role};
use tokio::sync::oneshot;

use crate::disconnect_reason::DisconnectReason;
use crate::event::{Event, Seen};
use crate::options::Options;
use crate::outcome::{Done, Outcome};
use crate::pending::Pending;
use crate::store::{SavedSession, SessionStore};
use crate::subscriptions::Subscriptions;

/// The number of sequences that are saved as used at a time.
const RESERVED: u64 = 1_024;
/// Queries without an answer at most.
const QUERIES_MAX: usize = 64;
/// Commands are written while fewer bytes than this wait to be.
const OUT_BYTES_ENOUGH: usize = 1 << 18;

/// A user's request to the client.
#[derive(Debug)]
pub(crate) enum Request {
    Submit(Command, Done),
    Query(SessionQuery, oneshot::Sender<QueryAnswer>),
    Subscribe(Subscriptions),
    Unsubscribe(Subscriptions),
    /// The sender is dropped when all is done.
    Close(oneshot::Sender<Infallible>),
}

struct PendingQuery {
    query: SessionQuery,
    answer: oneshot::Sender<QueryAnswer>,
}

/// The client's side of the protocol.
pub(crate) struct Protocol {
    role: Role,
    options: Options,
    store: Box<dyn SessionStore>,
    saved: SavedSession,
    seen: Arc<Seen>,
    /// The last sequence that was used.
    sequence: ClientSequence,
    /// The last report that was passed on.
    report: Option<ReportNumber>,
    pending: Pending,
    queries: BTreeMap<u64, PendingQuery>,
    queries_asked: u64,
    subscriptions: Subscriptions,
    /// The welcome of the last connection that had one.
    welcome: Option<Welcome>,
    is_open: bool,
    input: Vec<u8>,
    out: Vec<u8>,
    events: VecDeque<Event>,
}

impl Protocol {
    pub(crate) fn new(
        role: Role,
        options: Options,
        mut store: Box<dyn SessionStore>,
        seen: Arc<Seen>,
    ) -> Result<Self, DisconnectReason> {
        let saved = store.load().map_err(DisconnectReason::Store)?;
        Ok(Self {
            role,
            store,
            saved,
            seen,
            sequence: saved.last_sequence,
            report: saved.last_report.or(options.reports_after),
            pending: Pending::default(),
            queries: BTreeMap::new(),
            queries_asked: 0,
            subscriptions: Subscriptions::default(),
            welcome: None,
            is_open: false,
            input: Vec::new(),
            out: Vec::new(),
            events: VecDeque::new(),
            options,
        })
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the server's welcome of the last connection that had one.
    pub(crate) const fn welcome(&self) -> Option<&Welcome> {
        self.welcome.as_ref()
    }

    /// Returns whether the present connection was welcomed.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns whether nothing is without an answer.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.open() == 0 && self.queries.is_empty()
    }

    /// Returns whether it takes one more request.
    pub(crate) fn has_room(&self) -> bool {
        self.pending.open() < self.options.in_flight_max && self.queries.len() < QUERIES_MAX
    }

    /// Returns which reports the user has seen.
    pub(crate) fn seen(&self) -> Arc<Seen> {
        Arc::clone(&self.seen)
    }

    /// Returns the bytes to be written.
    pub(crate) fn out(&self) -> &[u8] {
        &self.out
    }

    /// Notes that `bytes` of them were written.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.out.drain(..bytes);
        self.write_pending();
    }

    pub(crate) const fn events(&mut self) -> &mut VecDeque<Event> {
        &mut self.events
    }

    /// Begins a new connection with a hello.
    pub(crate) fn connected(&mut self) {
        self.disconnected();
        let heartbeat_ms = u32::try_from(self.options.heartbeat.as_millis()).unwrap_or(u32::MAX);
        let key = std::mem::take(&mut self.options.key);
        let hello = Hello {
            version_min: SESSION_VERSION.into(),
            version_max: SESSION_VERSION_MAX.into(),
            role: self.role,
            holder: self.options.holder,
            number: self.options.number,
            last_report: self.report,
            heartbeat_ms,
            cancels_on_disconnect: self.options.cancels_on_disconnect,
            market_data_only: self.options.without_reports,
            key: KeyBytes(&key),
        };
        self.out.reserve(HELLO_BYTES_MAX);
        self.write(&ClientFrame::Hello(hello));
        self.options.key = key;
    }

    /// Forgets the state of the connection, which is gone.
    pub(crate) fn disconnected(&mut self) {
        self.is_open = false;
        self.input.clear();
        self.out.clear();
        self.pending.rewind();
    }

    fn write(&mut self, frame: &ClientFrame<'_>) {
        let at = self.out.len();
        self.out.resize(at + client_frame_bytes(frame), 0);
        // There is room, and what could be too long was checked before.
        if encode_client_frame(frame, &mut self.out[at..]).is_err() {
            self.out.truncate(at);
        }
    }

    pub(crate) fn heartbeat(&mut self) {
        self.write(&ClientFrame::Heartbeat);
    }

    /// Writes why the client ends the connection.
    pub(crate) fn bye(&mut self, why: CloseReason, text: &str) {
        self.write(&ClientFrame::Bye(Bye { why, text }));
    }

    fn write_pending(&mut self) {
        if !self.is_open {
            return;
        }
        let allowed = self
            .welcome
            .map_or(0, |welcome| welcome.in_flight_max as usize);
        while self.out.len() < OUT_BYTES_ENOUGH
            && let Some(frame) = self.pending.write_next(allowed.max(1))
        {
            self.out.extend_from_slice(frame);
        }
    }

    /// Takes a request of the user; [`Request::Close`] is for the connection.
    pub(crate) fn take(&mut self, request: Request) -> Result<(), DisconnectReason> {
        match request {
            Request::Submit(command, done) => self.submit(&command, done)?,
            Request::Query(query, answer) => {
                self.queries_asked += 1;
                let id = self.queries_asked;
                self.queries.insert(id, PendingQuery { query, answer });
                if self.is_open {
                    self.write(&ClientFrame::Query(QueryFrame { id, query }));
                }
            }
            Request::Subscribe(more) => {
                self.subscriptions.add(&more);
                self.write_symbols(&more, true);
            }
            Request::Unsubscribe(fewer) => {
                self.subscriptions.remove(&fewer);
                self.write_symbols(&fewer, false);
            }
            Request::Close(_) => {}
        }
        Ok(())
    }

    fn write_symbols(&mut self, symbols: &Subscriptions, is_more: bool) {
        if !self.is_open {
            return;
        }
        symbols.lists(|list| {
            self.write(&if is_more {
                ClientFrame::Subscribe(list)
            } else {
                ClientFrame::Unsubscribe(list)
            });
        });
    }

    fn submit(&mut self, command: &Command, done: Done) -> Result<(), DisconnectReason> {
        let bytes = submit_bytes(command);
        let bytes_max = self
            .welcome
            .map_or(usize::MAX, |welcome| welcome.frame_bytes_max as usize);
        let mut frame = vec![0; bytes.min(bytes_max)].into_boxed_slice();
        let sequence = self.sequence.next();
        if bytes > bytes_max || encode_submit(sequence, command, &mut frame).is_err() {
            done.complete(Outcome::TooLong { bytes, bytes_max });
            return Ok(());
        }
        if sequence > self.saved.last_sequence {
            self.saved.last_sequence = ClientSequence(sequence.0 + RESERVED);
            if let Err(error) = self.store.save(&self.saved) {
                done.complete(Outcome::NotSent);
                return Err(DisconnectReason::Store(error));
            }
        }
        self.sequence = sequence;
        self.pending.push(sequence, frame, done);
        self.write_pending();
        Ok(())
    }

    /// Saves which report the user has seen, if that has changed.
    pub(crate) fn save_seen(&mut self) -> Result<(), DisconnectReason> {
        let seen = ReportNumber(self.seen.get());
        if self.saved.last_report.is_some_and(|saved| saved >= seen) || seen.0 == 0 {
            return Ok(());
        }
        self.saved.last_report = Some(seen);
        self.store
            .save(&self.saved)
            .map_err(DisconnectReason::Store)
    }

    /// Ends all requests: nothing comes any more, and every waiting caller is notified.
    pub(crate) fn give_up(&mut self) {
        self.disconnected();
        self.pending.give_up();
        self.queries.clear();
    }
}
