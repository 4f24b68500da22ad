//! A session of the loader: frames out, frames in, without waiting.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use thalweg_exchange::codec::CodecError;
use thalweg_exchange::codec::session::{
    ServerFrame, decode_server_frame, encode_submit, submit_bytes,
};
use thalweg_exchange::session::{ClientSequence, Role};

use super::greeting::{connect, hello};
use super::venue::Orders;
use super::{Told, told};

/// Room for what is read at once.
const ROOM_BYTES: usize = 1 << 17;

/// See the [module](self).
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
    /// Frames beside answers.
    pub(super) others: u64,
}

impl Session {
    pub(super) fn connect(to: SocketAddr, user: i64, wants_reports: bool) -> Told<Session> {
        let stream = connect(to, hello(Role::Trade, user, wants_reports))?;
        stream.set_nonblocking(true).map_err(told)?;
        Ok(Session {
            stream,
            orders: Orders::of(user),
            sequence: 0,
            out: Vec::new(),
            written: 0,
            bytes: vec![0; ROOM_BYTES].into(),
            filled: 0,
            due: VecDeque::new(),
            others: 0,
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
    pub(super) fn flush(&mut self) -> Told<()> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(told(error)),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads once, and tells of each answer when its command was due; gives how many there were.
    pub(super) fn receive(&mut self, mut heard: impl FnMut(u64)) -> Told<usize> {
        match self.stream.read(&mut self.bytes[self.filled..]) {
            Ok(0) => return Err("the server closed a connection".to_owned()),
            Ok(count) => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(told(error)),
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
                Ok((_, length)) => {
                    self.others += 1;
                    done += length;
                }
                Err(CodecError::Incomplete { .. }) => break,
                Err(error) => return Err(told(error)),
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
    limit: Option<Duration>,
    ready: &mut Vec<bool>,
) -> Told<()> {
    let asked = sessions.iter().map(|session| {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, session.written < session.out.len());
        PollFd::new(&session.stream, flags)
    });
    let mut asked: Vec<PollFd<'_>> = asked.collect();
    let limit = limit.map(|limit| Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: limit.subsec_nanos().into(),
    });
    match poll(&mut asked, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(told(error)),
    }
    ready.clear();
    ready.extend(asked.iter().map(|asked| !asked.revents().is_empty()));
    Ok(())
}
