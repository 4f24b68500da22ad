//! Commands come in as bytes, and bytes go out: each command's answer, and its market data.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg_exchange::codec::session::{Answer, ServerFrame, encode_server_frame};
use thalweg_exchange::codec::{self, MESSAGE_BYTES_MAX};
use thalweg_exchange::market::{Builder, Channels, Epoch, Message};
use thalweg_exchange::session::ClientSequence;
use thalweg_exchange::{Command, Events, ResultCode, State, apply};

use super::flow::Flow;

/// The account of the bytes that go out for a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// The number of bytes.
    pub bytes: u64,
    /// A checksum of the bytes that [`Outgoing`] looks at.
    check: u64,
}

/// A flow with its commands as bytes.
#[derive(Debug)]
pub struct Wire {
    pub(crate) flow: Flow,
    /// The frames of the commands, one after another.
    pub(crate) bytes: Vec<u8>,
    /// The bytes that must go out for it.
    pub total: Total,
}

impl Wire {
    /// Encodes a flow, and executes it once, to know its output.
    pub fn new(flow: Flow) -> Self {
        let mut bytes = Vec::new();
        for command in &flow.commands {
            let begin = bytes.len();
            bytes.resize(begin + codec::command_bytes(command), 0);
            let encoded = codec::encode_command(command, &mut bytes[begin..]);
            encoded.expect("there are as many bytes as the frame has");
        }
        let total = Total::default();
        let mut wire = Self { flow, bytes, total };
        let (mut state, mut publisher) = wire.ready();
        let mut events = Events::with_capacity(1024).with_levels();
        for (at, command) in wire.flow.commands.iter().enumerate() {
            let result = apply(&mut state, command, &mut events);
            publisher.publish(at as u64, command, result, &events);
        }
        wire.total = publisher.out.total();
        wire
    }

    /// Returns a state before the commands, and a publisher that has followed it so far.
    pub(crate) fn ready(&self) -> (State, Publisher) {
        let mut builder = Builder::new(Epoch(1), Channels::default());
        let state = self.flow.ready(|command, result, events| {
            let number = builder.command().map_or(0, |last| last + 1);
            let applied = builder.apply(number, command, result, events);
            assert!(applied.is_ok(), "wrong result: {applied:?}");
        });
        let publisher = Publisher {
            builder,
            out: Outgoing::new(),
            total: Arc::default(),
        };
        (state, publisher)
    }
}

/// Decodes the first command of some frames, which begin behind it then.
///
/// # Panics
/// There is none: the program made the bytes itself.
#[inline]
pub(crate) fn decode(frames: &mut &[u8], command: &mut Command) {
    let length = codec::decode_command_into(frames, command);
    *frames = &frames[length.expect("the frames were encoded here")..];
}

/// The work of the publish stage: it makes market data, and the bytes that go out.
#[derive(Debug)]
pub(crate) struct Publisher {
    builder: Builder,
    out: Outgoing,
    /// The account of all bytes, once the publisher is dropped.
    pub(crate) total: Arc<Mutex<Total>>,
}

impl Publisher {
    /// # Panics
    /// The outcome does not follow those before it.
    #[inline]
    pub(crate) fn publish(
        &mut self,
        sequence: u64,
        command: &Command,
        result: ResultCode,
        events: &Events,
    ) {
        self.out.answer(sequence, result);
        // The commands of the rehearsal have numbers, too.
        let number = self.builder.command().map_or(0, |last| last + 1);
        let messages = self.builder.apply(number, command, result, events);
        for message in messages.expect("every outcome came, in order") {
            self.out.message(message);
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        *self.total.lock().unwrap_or_else(PoisonError::into_inner) = self.out.total();
    }
}

/// The bytes that go out are written to a buffer, which begins again when it is full, as if sent.
#[derive(Debug)]
struct Outgoing {
    buffer: Box<[u8]>,
    at: usize,
    total: Total,
}

impl Outgoing {
    /// A buffer with this many bytes is sent.
    const FULL_BYTES: usize = 1 << 16;
    /// The last bytes of each full buffer, and its length, go into the checksum: enough to detect
    /// wrong bytes, and too few to take time.
    const CHECKED_BYTES: usize = 1 << 10;

    fn new() -> Self {
        Self {
            buffer: vec![0; 2 * Self::FULL_BYTES].into(),
            at: 0,
            total: Total::default(),
        }
    }

    fn total(&self) -> Total {
        let mut total = self.total;
        total.bytes += self.at as u64;
        total.check = check(total.check, &self.buffer[..self.at]);
        total
    }

    #[inline]
    fn answer(&mut self, number: u64, result: ResultCode) {
        let answer = ServerFrame::Answer(Answer {
            sequence: ClientSequence(number + 1),
            number,
            result,
            is_repeated: false,
        });
        let length = encode_server_frame(&answer, &mut self.buffer[self.at..]);
        self.wrote(length.expect("half of the buffer is free"));
    }

    #[inline]
    fn message(&mut self, message: &Message) {
        const { assert!(MESSAGE_BYTES_MAX < Self::FULL_BYTES) };
        let length = codec::encode_message(message, &mut self.buffer[self.at..]);
        self.wrote(length.expect("half of the buffer is free"));
    }

    #[inline]
    fn wrote(&mut self, bytes: usize) {
        self.at += bytes;
        if self.at >= Self::FULL_BYTES {
            self.send();
        }
    }

    #[cold]
    fn send(&mut self) {
        let last = &self.buffer[self.at - Self::CHECKED_BYTES..self.at];
        self.total.check = check(self.total.check, last);
        self.total.check = check(self.total.check, &self.at.to_le_bytes());
        self.total.bytes += self.at as u64;
        self.at = 0;
    }
}

fn check(before: u64, bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    bytes.iter().fold(before, step)
}
