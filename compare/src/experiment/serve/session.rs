//! A session over TCP: the greeting, frames out, frames in, without waiting; and the commands of an
//! administrator.

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

use super::Orders;
use crate::runner::text;

/// How long a server may take for a frame.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the hello of the first session of a holder.
pub(super) fn hello(role: Role, holder: i64, wants_reports: bool) -> Hello<'static> {
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

/// Connects a session that the server welcomes. Reads block still.
pub(super) fn connect(to: SocketAddr, hello: Hello<'_>) -> Result<TcpStream, String> {
    let mut stream = TcpStream::connect(to).map_err(text)?;
    stream.set_nodelay(true).map_err(text)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    let hello = ClientFrame::Hello(hello);
    let mut bytes = vec![0; client_frame_bytes(&hello)];
    encode_client_frame(&hello, &mut bytes).map_err(text)?;
    stream.write_all(&bytes).map_err(text)?;
    let welcome = hear(&mut stream, &mut Vec::new(), |frame| {
        matches!(frame, ServerFrame::Welcome(_)).then_some(())
    })?;
    welcome.ok_or("the server sends no welcome".to_owned())?;
    Ok(stream)
}

/// Reads frames until `wanted` gives something; `None` where the next one says bye.
pub(super) fn hear<T>(
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

/// Sends these as an administrator, one after the other.
pub(super) fn administer(to: SocketAddr, commands: &[Command]) -> Result<(), String> {
    let mut caller = Caller::connect(to, hello(Role::Admin, 1, false))?;
    commands.iter().try_for_each(|command| caller.call(command))
}

/// A session that waits for each answer.
#[derive(Debug)]
pub(super) struct Caller {
    stream: TcpStream,
    heard: Vec<u8>,
    sequence: u64,
}

impl Caller {
    pub(super) fn connect(to: SocketAddr, hello: Hello<'_>) -> Result<Self, String> {
        Ok(Self {
            stream: connect(to, hello)?,
            heard: Vec::new(),
            sequence: 0,
        })
    }

    /// Sends a command, which must succeed, and waits for its answer.
    pub(super) fn call(&mut self, command: &Command) -> Result<(), String> {
        self.sequence += 1;
        let mut bytes = vec![0; submit_bytes(command)];
        encode_submit(ClientSequence(self.sequence), command, &mut bytes).map_err(text)?;
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

/// Room for what is read at once.
const ROOM_BYTES: usize = 1 << 17;

/// A trader's session.
#[derive(Debug)]
pub(super) struct Session {
    stream: TcpStream,
    orders: Orders,
    sequence: u64,
    /// Frames to be written, from `written` on.
    out: Vec<u8>,
    written: usize,
    /// What was read, up to `filled`.
    bytes: Box<[u8]>,
    filled: usize,
    /// When those without an answer were due, in ticks, in order.
    due: VecDeque<u64>,
}

impl Session {
    pub(super) fn connect(
        to: SocketAddr,
        user: i64,
        wants_reports: bool,
    ) -> Result<Session, String> {
        let stream = connect(to, hello(Role::Trade, user, wants_reports))?;
        stream.set_nonblocking(true).map_err(text)?;
        Ok(Session {
            stream,
            orders: Orders::of(user),
            sequence: 0,
            out: Vec::new(),
            written: 0,
            bytes: vec![0; ROOM_BYTES].into(),
            filled: 0,
            due: VecDeque::new(),
        })
    }

    /// Commands without an answer.
    pub(super) fn under_way(&self) -> usize {
        self.due.len()
    }

    /// Makes one more command, which was due at this time.
    pub(super) fn push(&mut self, due_ticks: u64) {
        let command = self.orders.next();
        self.sequence += 1;
        let at = self.out.len();
        self.out.resize(at + submit_bytes(&command), 0);
        encode_submit(ClientSequence(self.sequence), &command, &mut self.out[at..])
            .expect("there is room, and a sequence");
        self.due.push_back(due_ticks);
    }

    /// Writes what the socket takes.
    pub(super) fn flush(&mut self) -> Result<(), String> {
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

    /// Reads once. Calls `heard` with the time at which the command of each answer was due, and
    /// returns how many answers there were.
    pub(super) fn receive(&mut self, mut heard: impl FnMut(u64)) -> Result<usize, String> {
        match self.stream.read(&mut self.bytes[self.filled..]) {
            Ok(0) => return Err("the server closed a connection".to_owned()),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(text(error)),
        }
        let (mut done, mut answers) = (0, 0);
        loop {
            match decode_server_frame(&self.bytes[done..self.filled]) {
                Ok((ServerFrame::Answer(answer), length)) => {
                    let expected = self.sequence - self.due.len() as u64 + 1;
                    let due = self.due.pop_front();
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
                Err(CodecError::Incomplete { .. }) => break,
                Err(error) => return Err(text(error)),
            }
        }
        self.bytes.copy_within(done..self.filled, 0);
        self.filled -= done;
        Ok(answers)
    }
}

/// Waits until one of the sessions may do something, and notes which.
pub(super) fn wait(
    sessions: &[Session],
    limit: Duration,
    ready: &mut Vec<bool>,
) -> Result<(), String> {
    let asked = sessions.iter().map(|session| {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, session.written < session.out.len());
        PollFd::new(&session.stream, flags)
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
