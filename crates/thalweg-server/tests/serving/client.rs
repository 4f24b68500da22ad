//! A client that sends and receives single frames.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use thalweg_exchange::codec::session::{
    Answer, Bye, ClientFrame, CloseReason, Conflated, Hello, KeyBytes, NumberedReport, QueryAnswer,
    QueryFrame, Refused, ReportGap, ServerFrame, SessionQuery, Symbols, Welcome,
    client_frame_bytes, decode_server_frame, encode_client_frame, encode_submit, submit_bytes,
};
use thalweg_exchange::codec::{CodecError, decode_message, decode_snapshot};
use thalweg_exchange::market::{Message, Snapshot};
use thalweg_exchange::session::{ClientSequence, ReportNumber, Role};
use thalweg_exchange::{Action, Command, OrderId, Place, ResultCode, SymbolId, UserId};

/// A frame of the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Received {
    Welcome(Welcome),
    Answer(Answer),
    Refused(Refused),
    Report(NumberedReport),
    ReportGap(ReportGap),
    Conflated(Conflated),
    QueryAnswer(QueryAnswer),
    Heartbeat,
    Bye(CloseReason, String),
    Message(Message),
    Snapshot(Box<Snapshot>),
    /// The connection is closed.
    Closed,
}

/// A hello of a session without a key.
pub(crate) fn hello(role: Role, holder: i64) -> Hello<'static> {
    Hello {
        version_min: 1,
        version_max: 1,
        role,
        holder,
        number: 0,
        last_report: Some(ReportNumber(0)),
        heartbeat_ms: 0,
        cancels_on_disconnect: false,
        market_data_only: false,
        key: KeyBytes(b""),
    }
}

/// The bytes of a frame.
pub(crate) fn bytes_of(frame: &ClientFrame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; client_frame_bytes(frame)];
    encode_client_frame(frame, &mut bytes).expect("there is room");
    bytes
}

/// The bytes of a command.
pub(crate) fn submit_of(sequence: u64, command: &Command) -> Vec<u8> {
    let mut bytes = vec![0; submit_bytes(command)];
    encode_submit(ClientSequence(sequence), command, &mut bytes).expect("there is room");
    bytes
}

/// A plain order in symbol 1.
pub(crate) fn order(user: i64, id: i64, action: Action, price: i64, size: i64) -> Command {
    Command::Place(Place::limit(
        (UserId(user), OrderId(id)),
        SymbolId(1),
        action,
        (price, size),
    ))
}

#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    bytes: Vec<u8>,
}

/// How long a client waits for what must come.
const TIMEOUT: Duration = Duration::from_secs(600);

impl Client {
    /// A connection without a hello.
    pub(crate) fn silent(to: SocketAddr) -> Client {
        let stream = TcpStream::connect(to).expect("the server listens");
        stream.set_nodelay(true).expect("a socket has the option");
        let set = stream.set_read_timeout(Some(TIMEOUT));
        set.expect("a socket has it");
        let bytes = Vec::new();
        Client { stream, bytes }
    }

    /// A connection that has sent a hello.
    pub(crate) fn with_hello(to: SocketAddr, hello: Hello<'_>) -> Client {
        let mut client = Client::silent(to);
        client.send(&ClientFrame::Hello(hello));
        client
    }

    /// A session that was welcomed.
    #[track_caller]
    pub(crate) fn connect(to: SocketAddr, hello: Hello<'_>) -> (Client, Welcome) {
        let mut client = Client::with_hello(to, hello);
        match client.receive() {
            Received::Welcome(welcome) => (client, welcome),
            other => panic!("a welcome was expected, not {other:?}"),
        }
    }

    pub(crate) fn send(&mut self, frame: &ClientFrame<'_>) {
        self.write(&bytes_of(frame));
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    pub(crate) fn submit(&mut self, sequence: u64, command: &Command) {
        self.write(&submit_of(sequence, command));
    }

    pub(crate) fn query(&mut self, id: u64, query: SessionQuery) {
        self.send(&ClientFrame::Query(QueryFrame { id, query }));
    }

    pub(crate) fn subscribe(&mut self, symbols: &[i32]) {
        let ids: Vec<SymbolId> = symbols.iter().map(|id| SymbolId(*id)).collect();
        let symbols = Symbols::of(&ids).unwrap_or(Symbols::ALL);
        self.send(&ClientFrame::Subscribe(symbols));
    }

    /// Returns the next frame.
    #[track_caller]
    pub(crate) fn receive(&mut self) -> Received {
        self.receive_cut().expect("it was closed within a frame")
    }

    /// Returns what comes next, if it is here or comes within some milliseconds.
    pub(crate) fn receive_soon(&mut self) -> Option<Received> {
        if decode(&self.bytes).is_none() {
            self.read_within(Duration::from_millis(2));
        }
        let (received, length) = decode(&self.bytes)?;
        self.bytes.drain(..length);
        Some(received)
    }

    /// Reads what comes within a time; later reads wait as long as before.
    fn read_within(&mut self, time: Duration) {
        let wait = |stream: &TcpStream, time| {
            let set = stream.set_read_timeout(Some(time));
            set.expect("a socket has it");
        };
        wait(&self.stream, time);
        let mut more = [0; 1 << 14];
        if let Ok(count) = self.stream.read(&mut more) {
            self.bytes.extend_from_slice(&more[..count]);
        }
        wait(&self.stream, TIMEOUT);
    }

    /// Returns the next frame; `None` where the connection ends within a frame.
    #[track_caller]
    pub(crate) fn receive_cut(&mut self) -> Option<Received> {
        loop {
            if let Some((received, length)) = decode(&self.bytes) {
                self.bytes.drain(..length);
                return Some(received);
            }
            let mut more = [0; 1 << 14];
            match self.stream.read(&mut more) {
                Ok(0) if !self.bytes.is_empty() => return None,
                Ok(0) => return Some(Received::Closed),
                Ok(count) => self.bytes.extend_from_slice(&more[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    return Some(Received::Closed);
                }
                // The process was stopped for a while.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    /// Returns what comes next, if something comes within a time.
    pub(crate) fn next_within(&mut self, time: Duration) -> Option<Received> {
        if self.bytes.is_empty() {
            self.read_within(time);
        }
        (!self.bytes.is_empty()).then(|| self.receive_cut())?
    }

    /// The next answer; reports and heartbeats before it are passed over.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Answer {
        loop {
            match self.receive() {
                Received::Answer(answer) => return answer,
                Received::Report(_) | Received::Heartbeat => {}
                other => panic!("an answer was expected, not {other:?}"),
            }
        }
    }

    /// The next answer is of this command, which succeeded now.
    #[track_caller]
    pub(crate) fn succeeds(&mut self, sequence: u64) -> u64 {
        let answer = self.answer();
        let outcome = (answer.sequence.0, answer.result, answer.is_repeated);
        assert_eq!(outcome, (sequence, ResultCode::Success, false));
        answer.number
    }

    #[track_caller]
    pub(crate) fn refused(&mut self) -> Refused {
        loop {
            match self.receive() {
                Received::Refused(refused) => return refused,
                Received::Report(_) | Received::Heartbeat => {}
                other => panic!("a refusal was expected, not {other:?}"),
            }
        }
    }

    #[track_caller]
    pub(crate) fn report(&mut self) -> NumberedReport {
        loop {
            match self.receive() {
                Received::Report(report) => return report,
                Received::Answer(_) | Received::Heartbeat => {}
                other => panic!("a report was expected, not {other:?}"),
            }
        }
    }

    /// The bye that ends it; whatever else comes before is passed over.
    #[track_caller]
    pub(crate) fn bye(&mut self) -> (CloseReason, String) {
        loop {
            match self.receive() {
                Received::Bye(why, text) => {
                    assert_eq!(self.receive(), Received::Closed, "after a bye");
                    return (why, text);
                }
                Received::Closed => panic!("it was closed without a bye"),
                _ => {}
            }
        }
    }
}

fn decode(bytes: &[u8]) -> Option<(Received, usize)> {
    match bytes.get(4)? {
        160..192 => match decode_message(bytes) {
            Ok((message, length)) => Some((Received::Message(message), length)),
            Err(CodecError::Incomplete { .. }) => None,
            Err(error) => panic!("no message: {error}"),
        },
        192..208 => {
            let mut snapshot = Box::new(Snapshot::default());
            match decode_snapshot(bytes, &mut snapshot) {
                Ok(length) => Some((Received::Snapshot(snapshot), length)),
                Err(CodecError::Incomplete { .. }) => None,
                Err(error) => panic!("no snapshot: {error}"),
            }
        }
        _ => match decode_server_frame(bytes) {
            Ok((frame, length)) => Some((owned(frame), length)),
            Err(CodecError::Incomplete { .. }) => None,
            Err(error) => panic!("no frame of a server: {error}"),
        },
    }
}

fn owned(frame: ServerFrame<'_>) -> Received {
    match frame {
        ServerFrame::Welcome(welcome) => Received::Welcome(welcome),
        ServerFrame::Answer(answer) => Received::Answer(answer),
        ServerFrame::Refused(refused) => Received::Refused(refused),
        ServerFrame::Report(report) => Received::Report(report),
        ServerFrame::ReportGap(gap) => Received::ReportGap(gap),
        ServerFrame::Conflated(conflated) => Received::Conflated(conflated),
        ServerFrame::QueryAnswer(answer) => Received::QueryAnswer(answer),
        ServerFrame::Heartbeat => Received::Heartbeat,
        ServerFrame::Bye(Bye { why, text }) => Received::Bye(why, text.to_owned()),
    }
}
