//! A session over TCP: the greeting, frames out, frames in, without waiting; and the commands of an
//! administrator.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use thalweg_client::blocking::AdminClient;
use thalweg_client::{AdminCommand, Options};
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

/// Sends these as an administrator.
pub(super) fn administer(to: SocketAddr, commands: &[Command]) -> Result<(), String> {
    let (client, _) = AdminClient::connect(Options::new(to.to_string(), 1)).map_err(text)?;
    for command in commands {
        let command = AdminCommand::try_from(command.clone()).map_err(text)?;
        let outcome = client.submit(command).map_err(text)?.wait();
        if outcome.result() != Some(ResultCode::Success) {
            return Err(format!("an administrator's command: {outcome}"));
        }
    }
    Ok(())
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
    is_welcome: bool,
    /// When those without an answer were due, in ticks, in order.
    due: VecDeque<u64>,
}

impl Session {
    /// Connects a session that the server welcomes.
    pub(super) fn connect(
        to: SocketAddr,
        user: i64,
        wants_reports: bool,
    ) -> Result<Session, String> {
        let stream = TcpStream::connect(to).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
        let hello = ClientFrame::Hello(Hello {
            version_min: 1,
            version_max: 1,
            role: Role::Trade,
            holder: user,
            number: 0,
            last_report: Some(ReportNumber(0)),
            heartbeat_ms: 0,
            cancels_on_disconnect: false,
            market_data_only: !wants_reports,
            key: KeyBytes(b""),
        });
        let mut out = vec![0; client_frame_bytes(&hello)];
        encode_client_frame(&hello, &mut out).map_err(text)?;
        let mut session = Session {
            stream,
            orders: Orders::of(user),
            sequence: 0,
            out,
            written: 0,
            bytes: vec![0; ROOM_BYTES].into(),
            filled: 0,
            is_welcome: false,
            due: VecDeque::new(),
        };
        session.flush()?;
        while !session.is_welcome {
            session.receive(|_| ())?;
        }
        session.stream.set_nonblocking(true).map_err(text)?;
        Ok(session)
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
                Ok((frame, length)) => {
                    self.is_welcome |= matches!(frame, ServerFrame::Welcome(_));
                    done += length;
                }
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
