//! Sessions over TCP: one that never waits, for the loader, and one that waits for each answer.
//!
//! `thalweg-client` would be most of what the loader spends on a command, and a thread more between
//! an answer and its user: the server would be measured beside it. So these write and read frames.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use thalweg_exchange::codec::CodecError;
use thalweg_exchange::codec::session::{
    ClientFrame, Hello, KeyBytes, ServerFrame, client_frame_bytes, decode_server_frame,
    encode_client_frame, encode_submit, submit_bytes,
};
use thalweg_exchange::session::{ClientSequence, ReportNumber, Role};
use thalweg_exchange::{Command, ResultCode};

use crate::runner::text;

/// A server may take this long for a frame.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Makes the hello of the first session of a holder.
pub(crate) fn hello(role: Role, holder: i64, wants_reports: bool) -> Hello<'static> {
    Hello {
        version_min: 1,
        version_max: 1,
        role,
        holder,
        number: 0,
        last_report: Some(ReportNumber(0)),
        heartbeat_ms: 0,
        cancels_on_disconnect: false,
        market_data_only: !wants_reports,
        key: KeyBytes(b""),
    }
}

/// Appends a frame.
pub(crate) fn push_frame(bytes: &mut Vec<u8>, frame: &ClientFrame<'_>) {
    let at = bytes.len();
    bytes.resize(at + client_frame_bytes(frame), 0);
    encode_client_frame(frame, &mut bytes[at..]).expect("there is room");
}

/// Appends the frame of a command with this sequence, from 1.
pub(crate) fn push_submit(bytes: &mut Vec<u8>, sequence: u64, command: &Command) {
    let at = bytes.len();
    bytes.resize(at + submit_bytes(command), 0);
    let encoded = encode_submit(ClientSequence(sequence), command, &mut bytes[at..]);
    encoded.expect("there is room, and a sequence");
}

/// Connects a session that the server welcomes. Its reads block, up to [`TIMEOUT`].
pub(crate) fn connect(to: SocketAddr, hello: Hello<'_>) -> Result<TcpStream, String> {
    let mut stream = TcpStream::connect(to).map_err(text)?;
    stream.set_nodelay(true).map_err(text)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(text)?;
    let mut bytes = Vec::new();
    push_frame(&mut bytes, &ClientFrame::Hello(hello));
    stream.write_all(&bytes).map_err(text)?;
    let welcome = hear(&mut stream, &mut Vec::new(), |frame| {
        matches!(frame, ServerFrame::Welcome(_)).then_some(())
    })?;
    welcome.ok_or("the server sends no welcome".to_owned())?;
    Ok(stream)
}

/// Reads frames until `wanted` returns a value; returns `None` at the server's bye.
pub(crate) fn hear<T>(
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    mut wanted: impl FnMut(&ServerFrame<'_>) -> Option<T>,
) -> Result<Option<T>, String> {
    let mut piece = [0; 4096];
    loop {
        match decode_server_frame(bytes) {
            Ok((ServerFrame::Bye(_), _)) => return Ok(None),
            Ok((frame, length)) => {
                let found = wanted(&frame);
                bytes.drain(..length);
                if found.is_some() {
                    return Ok(found);
                }
            }
            Err(CodecError::Incomplete { .. }) => match stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(text(error)),
            },
            Err(error) => return Err(text(error)),
        }
    }
}

/// Sends the commands as an administrator, one after the other.
pub(crate) fn administer(to: SocketAddr, commands: &[Command]) -> Result<(), String> {
    let mut caller = Caller::connect(to, hello(Role::Admin, 1, false))?;
    commands.iter().try_for_each(|command| caller.call(command))
}

/// A session that waits for each answer.
#[derive(Debug)]
pub(crate) struct Caller {
    stream: TcpStream,
    heard: Vec<u8>,
    sequence: u64,
}

impl Caller {
    pub(crate) fn connect(to: SocketAddr, hello: Hello<'_>) -> Result<Self, String> {
        Ok(Self {
            stream: connect(to, hello)?,
            heard: Vec::new(),
            sequence: 0,
        })
    }

    /// Sends a command, which must succeed, and waits for its answer.
    pub(crate) fn call(&mut self, command: &Command) -> Result<(), String> {
        self.sequence += 1;
        let mut bytes = Vec::new();
        push_submit(&mut bytes, self.sequence, command);
        self.stream.write_all(&bytes).map_err(text)?;
        let answer = hear(&mut self.stream, &mut self.heard, |frame| match frame {
            ServerFrame::Answer(answer) => Some(Ok(answer.result)),
            ServerFrame::Refused(refused) => Some(Err(refused.why)),
            _ => None,
        })?;
        match answer {
            Some(Ok(ResultCode::Success)) => Ok(()),
            other => Err(format!("{command:?}: {other:?}")),
        }
    }
}

/// A read takes as many bytes at most.
const ROOM_BYTES: usize = 1 << 17;

/// A socket that never waits, with the bytes that are on their way.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    /// The bytes to be written, from `written` on.
    pub(crate) out: Vec<u8>,
    written: usize,
    /// The bytes that were read, up to `filled`.
    bytes: Box<[u8]>,
    filled: usize,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Result<Self, String> {
        stream.set_nonblocking(true).map_err(text)?;
        Ok(Self {
            stream,
            out: Vec::new(),
            written: 0,
            bytes: vec![0; ROOM_BYTES].into(),
            filled: 0,
        })
    }

    /// Writes as much as the system takes.
    pub(crate) fn flush(&mut self) -> Result<(), String> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(text(error)),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads once. `take` returns how many of the bytes it has dealt with, from the first one on.
    pub(crate) fn receive(
        &mut self,
        take: impl FnOnce(&[u8]) -> Result<usize, String>,
    ) -> Result<(), String> {
        match self.stream.read(&mut self.bytes[self.filled..]) {
            Ok(0) => return Err("the server closed a connection".to_owned()),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(text(error)),
        }
        let done = take(&self.bytes[..self.filled])?;
        self.bytes.copy_within(done..self.filled, 0);
        self.filled -= done;
        Ok(())
    }
}

/// A connection of the loader.
pub(crate) trait Line {
    fn socket(&mut self) -> &mut Socket;

    /// Returns the number of requests without an answer.
    fn in_flight(&self) -> usize;

    /// Makes the next request, which was due at this time.
    fn push(&mut self, due_ticks: u64);

    /// Reads once. Calls `heard` with the time at which the request of each answer was due, and
    /// returns how many answers there were.
    fn receive(&mut self, heard: impl FnMut(u64)) -> Result<usize, String>;
}

/// A session of a trader that never waits.
pub(crate) struct Session {
    socket: Socket,
    next: Box<dyn FnMut() -> Command>,
    sequence: u64,
    /// The times at which the commands without an answer were due, in ticks, in order.
    due: VecDeque<u64>,
}

impl Session {
    pub(crate) fn connect(
        to: SocketAddr,
        user: i64,
        reports: bool,
        next: impl FnMut() -> Command + 'static,
    ) -> Result<Self, String> {
        let stream = connect(to, hello(Role::Trade, user, reports))?;
        Ok(Self {
            socket: Socket::new(stream)?,
            next: Box::new(next),
            sequence: 0,
            due: VecDeque::new(),
        })
    }
}

impl Line for Session {
    fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    fn in_flight(&self) -> usize {
        self.due.len()
    }

    fn push(&mut self, due_ticks: u64) {
        self.sequence += 1;
        push_submit(&mut self.socket.out, self.sequence, &(self.next)());
        self.due.push_back(due_ticks);
    }

    fn receive(&mut self, mut heard: impl FnMut(u64)) -> Result<usize, String> {
        let (sequence, in_flight) = (self.sequence, &mut self.due);
        let mut answers = 0;
        self.socket.receive(|bytes| {
            let mut done = 0;
            loop {
                match decode_server_frame(&bytes[done..]) {
                    Ok((ServerFrame::Answer(answer), length)) => {
                        let expected = sequence - in_flight.len() as u64 + 1;
                        let due = in_flight.pop_front();
                        let Some(due) = due.filter(|_| answer.sequence.0 == expected) else {
                            return Err(format!("answer {answer:?} where {expected} was due"));
                        };
                        heard(due);
                        answers += 1;
                        done += length;
                    }
                    Ok((ServerFrame::Refused(refused), _)) => return Err(format!("{refused:?}")),
                    Ok((ServerFrame::Bye(bye), _)) => return Err(format!("{bye:?}")),
                    Ok((_, length)) => done += length,
                    Err(CodecError::Incomplete { .. }) => return Ok(done),
                    Err(error) => return Err(text(error)),
                }
            }
        })?;
        Ok(answers)
    }
}

/// Waits until sockets can be read or written, and notes which.
pub(crate) fn wait<'s>(
    sockets: impl Iterator<Item = &'s mut Socket>,
    limit: Duration,
    ready: &mut Vec<bool>,
) -> Result<(), String> {
    let asked = sockets.map(|socket| {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, socket.written < socket.out.len());
        PollFd::new(&socket.stream, flags)
    });
    let mut asked: Vec<PollFd<'_>> = asked.collect();
    let limit = Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: limit.subsec_nanos().into(),
    };
    match poll(&mut asked, Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(text(error)),
    }
    ready.clear();
    ready.extend(asked.iter().map(|asked| !asked.revents().is_empty()));
    Ok(())
}
