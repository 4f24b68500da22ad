//! Commands that come in as bytes, and what goes out as bytes: each command's outcome, and the
//! market data that it makes.

use std::sync::{Arc, Mutex, PoisonError};

use thalweg_exchange::codec::{self, MESSAGE_BYTES_MAX};
use thalweg_exchange::market::{Builder, Epoch, Message, Options};
use thalweg_exchange::{Command, Events, ResultCode, Rules, State};

use super::engine::Load;

/// What goes out for a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) bytes: u64,
    pub(super) messages: u64,
    /// Of the bytes that [`Outgoing`] looks at.
    check: u64,
}

/// A flow with its commands as bytes.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) load: Load,
    /// The commands' frames, one after another.
    pub(super) bytes: Vec<u8>,
    /// What must go out for it.
    pub(super) total: Total,
}

impl Wire {
    pub(super) fn new(load: Load) -> Self {
        let mut bytes = Vec::new();
        for command in &load.flow.commands {
            let begin = bytes.len();
            bytes.resize(begin + codec::command_bytes(command), 0);
            let encoded = codec::encode_command(command, &mut bytes[begin..]);
            encoded.expect("there are as many bytes as the frame has");
        }
        let (_, mut desk) = ready(&load);
        let tape = &load.tape;
        for (at, command) in load.flow.commands.iter().enumerate() {
            desk.publish(at as u64, command, tape.results[at], &tape.events[at]);
        }
        let total = desk.total();
        Self { load, bytes, total }
    }

    /// A state right before the commands, and a desk that has followed it so far.
    pub(super) fn ready(&self) -> (State, Desk) {
        ready(&self.load)
    }
}

fn ready(load: &Load) -> (State, Desk) {
    let mut builder = Builder::new(Epoch(1), Options::default());
    let state = load
        .flow
        .ready_seen(Rules::MENDED, |command, result, events| {
            let number = builder.command().map_or(0, |last| last + 1);
            let told = builder.apply(number, command, result, events);
            assert!(told.is_ok(), "wrong result: {told:?}");
        });
    let desk = Desk {
        builder,
        out: Outgoing::new(),
        told: Arc::default(),
    };
    (state, desk)
}

/// The commands of some bytes, one after another.
#[derive(Debug)]
pub(super) struct Incoming<'b> {
    bytes: &'b [u8],
}

impl<'b> Incoming<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    /// Decodes the next one.
    ///
    /// # Panics
    /// There is none: the program made the bytes itself.
    #[inline]
    pub(super) fn next_into(&mut self, command: &mut Command) {
        let length = codec::decode_command_into(self.bytes, command);
        self.bytes = &self.bytes[length.expect("the frames were encoded here")..];
    }
}

/// What the publish stage does: market data, and bytes of all that goes out. Tells the total where
/// its [`Told`] is asked, once it is dropped.
#[derive(Debug)]
pub(super) struct Desk {
    builder: Builder,
    out: Outgoing,
    told: Told,
}

/// What a desk has sent in all, when it is gone.
pub(super) type Told = Arc<Mutex<Total>>;

impl Desk {
    /// # Panics
    /// The outcome does not follow those before it.
    #[inline]
    pub(super) fn publish(
        &mut self,
        sequence: u64,
        command: &Command,
        result: ResultCode,
        events: &Events,
    ) {
        self.out.outcome(sequence, result, events);
        // The commands before these were numbered, too.
        let number = self.builder.command().map_or(0, |last| last + 1);
        let messages = self.builder.apply(number, command, result, events);
        for message in messages.expect("every outcome came, in order") {
            self.out.message(message);
        }
    }

    pub(super) fn total(&self) -> Total {
        self.out.total()
    }

    pub(super) fn told(&self) -> Told {
        Arc::clone(&self.told)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = self.out.total();
    }
}

/// Bytes that go out: written to a buffer over and over, as if it was sent each time it is full.
#[derive(Debug)]
struct Outgoing {
    buffer: Box<[u8]>,
    at: usize,
    total: Total,
}

impl Outgoing {
    /// Then it is sent.
    const FULL_BYTES: usize = 1 << 16;
    /// Of each full buffer so many bytes, the last ones, are compared with what they should be, and
    /// its length: enough to find what differs, and too few to be felt.
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
    fn outcome(&mut self, sequence: u64, result: ResultCode, events: &Events) {
        let outcome = codec::Outcome { sequence, result };
        let length = codec::encode_outcome(outcome, events, &mut self.buffer[self.at..]);
        self.wrote(length.expect("no command of the mixes has events for half of a buffer"));
    }

    #[inline]
    fn message(&mut self, message: &Message) {
        const { assert!(MESSAGE_BYTES_MAX < Self::FULL_BYTES) };
        let length = codec::encode_message(message, &mut self.buffer[self.at..]);
        self.total.messages += 1;
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

#[cfg(test)]
mod tests {
    use super::super::mixes::{self, Resting};
    use super::*;

    #[test]
    fn commands_come_back_from_their_bytes() {
        for flow in [mixes::trading(500), Resting::plain(100, 10, 5).flow(500)] {
            let wire = Wire::new(Load::new(flow));
            let mut incoming = Incoming::new(&wire.bytes);
            let mut command = Command::Nop;
            for expected in &wire.load.flow.commands {
                incoming.next_into(&mut command);
                assert_eq!(command, *expected);
            }
            assert!(incoming.bytes.is_empty());
        }
    }

    #[test]
    fn what_goes_out_is_counted_and_checked() {
        let wire = Wire::new(Load::new(mixes::trading(3_000)));
        let tape = &wire.load.tape;
        let total = |skip: usize| {
            let (_, mut desk) = wire.ready();
            let told = desk.told();
            for (at, command) in wire.load.flow.commands.iter().enumerate() {
                let result = tape.results[at];
                if at == skip {
                    desk.out
                        .outcome(at as u64, ResultCode::RiskNsf, &Events::new());
                }
                desk.publish(at as u64, command, result, &tape.events[at]);
            }
            drop(desk);
            *told.lock().unwrap()
        };
        assert_eq!(total(usize::MAX), wire.total);
        assert!(wire.total.bytes > 3_000 * 64 && wire.total.messages > 6_000);
        let other = total(100);
        assert!(other.bytes > wire.total.bytes && other.check != wire.total.check);
    }
}
