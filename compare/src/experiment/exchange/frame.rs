//! Commands and results as bytes of fixed length, little-endian: what an exchange reads from a
//! gateway and writes for it, at its simplest.

use thalweg_exchange::{
    Action, Command, Event, OrderId, OrderType, Place, ResultCode, SymbolId, UserId,
};

/// Bytes of a command: kind, type, action, 0, symbol (4), then uid, order, price, reserve and
/// size (8 each).
pub(super) const COMMAND_BYTES: usize = 48;
/// Bytes of an event.
pub(super) const EVENT_BYTES: usize = 48;
/// Bytes of a result, before its events.
pub(super) const RESULT_BYTES: usize = 24;

pub(super) type CommandFrame = [u8; COMMAND_BYTES];

const PLACE: u8 = 1;
const CANCEL: u8 = 2;
const MOVE: u8 = 3;
const REDUCE: u8 = 4;

/// A command's frame; `None` for those that are not of a book.
pub(super) fn of_command(command: &Command) -> Option<CommandFrame> {
    let (head, fields): ([u8; 3], [i64; 5]) = match *command {
        Command::Place(ref place) => {
            let head = [PLACE, place.order_type as u8, place.action as u8];
            let (uid, order) = (place.uid.0, place.order_id.0);
            (
                head,
                [uid, order, place.price, place.reserve_price, place.size],
            )
        }
        Command::Cancel { uid, order_id, .. } => ([CANCEL, 0, 0], [uid.0, order_id.0, 0, 0, 0]),
        Command::Move {
            uid,
            order_id,
            price,
            ..
        } => ([MOVE, 0, 0], [uid.0, order_id.0, price, 0, 0]),
        Command::Reduce {
            uid, order_id, by, ..
        } => ([REDUCE, 0, 0], [uid.0, order_id.0, 0, 0, by]),
        _ => return None,
    };
    let mut frame = [0; COMMAND_BYTES];
    frame[..3].copy_from_slice(&head);
    frame[4..8].copy_from_slice(&command.symbol()?.0.to_le_bytes());
    for (field, bytes) in fields.iter().zip(frame[8..].chunks_exact_mut(8)) {
        bytes.copy_from_slice(&field.to_le_bytes());
    }
    Some(frame)
}

/// Reads a frame; `None` if it is of no known kind, type or action.
#[inline]
pub(super) fn parse(frame: &CommandFrame) -> Option<Command> {
    let (words, _) = frame.as_chunks::<8>();
    let [_, uid, order_id, price, reserve_price, size] =
        [0, 1, 2, 3, 4, 5].map(|word: usize| i64::from_le_bytes(words[word]));
    let symbol = SymbolId(i32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]]));
    let (uid, order_id) = (UserId(uid), OrderId(order_id));
    Some(match frame[0] {
        PLACE => Command::Place(Place {
            uid,
            symbol,
            order_id,
            order_type: *OrderType::ALL.get(usize::from(frame[1]))?,
            action: match frame[2] {
                0 => Action::Ask,
                1 => Action::Bid,
                _ => return None,
            },
            price,
            reserve_price,
            size,
            flags: thalweg_exchange::OrderFlags::NONE,
        }),
        CANCEL => Command::Cancel {
            uid,
            symbol,
            order_id,
        },
        MOVE => Command::Move {
            uid,
            symbol,
            order_id,
            price,
        },
        REDUCE => Command::Reduce {
            uid,
            symbol,
            order_id,
            by: size,
        },
        _ => return None,
    })
}

/// Bytes that go out: as they are written, the earlier ones are overwritten, as if they were sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    buffer: Vec<u8>,
    written: u64,
    /// Changes with every byte that differs, cheaply: checks that two runs wrote the same.
    check: u64,
}

impl Outgoing {
    /// What the buffer holds before it begins anew.
    const BUFFER_BYTES: usize = 1 << 18;

    pub(super) fn new() -> Self {
        let buffer = Vec::with_capacity(2 * Self::BUFFER_BYTES);
        Self {
            buffer,
            written: 0,
            check: 0,
        }
    }

    /// Bytes written, and their check.
    pub(super) fn total(&self) -> (u64, u64) {
        (self.written + self.buffer.len() as u64, self.check)
    }

    /// Writes a result and its events.
    #[inline]
    pub(super) fn result(&mut self, sequence: u64, code: ResultCode, events: &[Event]) {
        if self.buffer.len() >= Self::BUFFER_BYTES {
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        let mut head = [0; RESULT_BYTES];
        head[..8].copy_from_slice(&sequence.to_le_bytes());
        head[8..12].copy_from_slice(&(code as i32).to_le_bytes());
        head[16..].copy_from_slice(&(events.len() as u64).to_le_bytes());
        self.buffer.extend_from_slice(&head);
        self.check = (self.check ^ sequence ^ code as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for event in events {
            self.event(event);
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        let (kind, flags, fields): (u8, u8, [i64; 5]) = match *event {
            Event::Trade {
                price,
                size,
                maker_order,
                maker_uid,
                maker_completed,
                taker_completed,
                bidder_hold_price,
                taker_action,
                ..
            } => {
                let completed = u8::from(maker_completed) | u8::from(taker_completed) << 1;
                let flags = completed | (taker_action as u8) << 2;
                (
                    1,
                    flags,
                    [price, size, maker_order.0, maker_uid.0, bidder_hold_price],
                )
            }
            Event::Reject {
                price,
                size,
                bidder_hold_price,
                ..
            } => (2, 0, [price, size, 0, 0, bidder_hold_price]),
            Event::Reduce {
                price,
                size,
                completed,
                bidder_hold_price,
                action,
                ..
            } => {
                let flags = u8::from(completed) | (action as u8) << 2;
                (3, flags, [price, size, 0, 0, bidder_hold_price])
            }
            Event::Removed { .. } | Event::Triggered { .. } | Event::Refilled { .. } => {
                unreachable!("no command of the mixes leads to one")
            }
        };
        let mut bytes = [0; EVENT_BYTES];
        bytes[..2].copy_from_slice(&[kind, flags]);
        for (field, bytes) in fields.iter().zip(bytes[8..].chunks_exact_mut(8)) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        self.buffer.extend_from_slice(&bytes);
        let [price, size, maker, ..] = fields;
        self.check = self
            .check
            .wrapping_add((price ^ size << 20 ^ maker << 32) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::super::flow::Tape;
    use super::super::mixes::{self, Resting};
    use super::*;
    use thalweg_exchange::{Events, Rules};

    #[test]
    fn commands_come_back_from_their_bytes() {
        let flows = [mixes::trading(500), Resting::plain(100, 10, 5).flow(500)];
        for command in flows.iter().flat_map(|flow| &flow.commands) {
            let frame = of_command(command).unwrap();
            assert_eq!(parse(&frame).as_ref(), Some(command));
        }
        assert_eq!(of_command(&Command::Nop), None);
        for wrong in [[0, 0, 0], [9, 0, 0], [PLACE, 5, 0], [PLACE, 0, 2]] {
            let mut frame = [0; COMMAND_BYTES];
            frame[..3].copy_from_slice(&wrong);
            assert_eq!(parse(&frame), None);
        }
    }

    #[test]
    fn results_have_their_length_and_their_check() {
        let tape = Tape::record(&mixes::trading(2_000), Rules::MENDED).unwrap();
        let total = |rounds: u64, events: &[Events]| {
            let mut out = Outgoing::new();
            for sequence in 0..rounds {
                let events = &events[sequence as usize % events.len()];
                out.result(sequence, ResultCode::Success, events);
            }
            out.total()
        };
        let all: usize = tape.events.iter().map(|events| events.len()).sum();
        let (bytes, check) = total(10_000, &tape.events);
        assert_eq!(
            bytes,
            (10_000 * RESULT_BYTES + 5 * all * EVENT_BYTES) as u64
        );
        assert_eq!(total(10_000, &tape.events).1, check);
        let mut other = tape.events.clone();
        let trades = other.iter_mut().find(|events| !events.is_empty());
        trades.unwrap().clear();
        assert_ne!(total(2_000, &other).1, total(2_000, &tape.events).1);
    }
}
