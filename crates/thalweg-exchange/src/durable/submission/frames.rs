//! Commands that are taken as the frames that a trader's session sends.

use thalweg_journal::Storage;

use super::{ROUND, Records};
use crate::codec::session::{SUBMIT_HEAD_BYTES, decode_own_order};
use crate::durable::exchange::Exchange;
use crate::durable::record::{HEAD_BYTES, Origin, encode_frame};
use crate::ids::UserId;
use crate::session::{Role, SessionKey};

impl<S: Storage> Exchange<S> {
    /// Submits the commands at the beginning of `bytes`, frames that a trader's session has sent,
    /// `most` at most. Does what [`submit_many`](Self::submit_many) does, but decodes each command
    /// where it is executed. It ends before the first frame that it does not know as a new order,
    /// cancel, move or reduction of this trader's own: that one is for
    /// [`submit_many`](Self::submit_many), or an error. Returns how many commands it took, and
    /// their length in bytes.
    pub fn submit_frames(
        &mut self,
        (key, tag): (SessionKey, u64),
        bytes: &[u8],
        most: usize,
    ) -> (usize, usize) {
        let mut run = Run::default();
        while run.count < most && !run.is_over {
            self.take_frames((key, tag), bytes, most, &mut run);
            if self.in_flight.to_execute() == ROUND {
                self.execute();
                let _ = self.publish();
            }
        }
        if self.in_flight.to_execute() > 0 {
            self.execute();
            // A failure has stopped the exchange, which the next call says.
            let _ = self.publish();
        }
        (run.count, run.bytes)
    }

    /// Takes the next commands, up to the end of the ring or of a round, or to one that is stamped.
    #[inline(always)]
    fn take_frames(
        &mut self,
        (key, tag): (SessionKey, u64),
        bytes: &[u8],
        most: usize,
        run: &mut Run,
    ) {
        run.is_over = true;
        let room = self.room_of_run().min(ROUND - self.in_flight.to_execute());
        let Some((session, mut last, of_session)) = self.admission.room_of(key) else {
            return;
        };
        let room = room.min(most - run.count).min(of_session);
        let room = room.min(self.stamping.until_due() as usize);
        if room == 0 || key.role != Role::Trade {
            return;
        }
        let Some(mut records) = Records::of(&mut self.replication, &self.journal) else {
            return;
        };
        let before = self.owner.number;
        let (mut number, mut at, mut appended) = (before, run.bytes, 0);
        let slots = self.in_flight.free_slots(room);
        run.is_over = false;
        for slot in &mut *slots {
            let order = decode_own_order(&bytes[at..], UserId(key.holder), &mut slot.command);
            let Some((sequence, length)) = order.filter(|(sequence, _)| sequence.0 > last) else {
                run.is_over = true;
                break;
            };
            let origin = Origin::Session { key, sequence };
            let frame = &bytes[at + SUBMIT_HEAD_BYTES..at + length];
            let Some(bytes) = records.append_frame(origin, frame) else {
                run.is_over = true;
                break;
            };
            slot.belong((origin, tag), (number, session.0), 0);
            (number, last) = (number + 1, sequence.0);
            (at, appended) = (at + length, appended + bytes);
        }
        drop(records);
        let count = number - before;
        if self.stamping.pass(count)
            && let Some(slot) = slots.get_mut(count as usize - 1)
        {
            slot.stamp();
        }
        (run.count, run.bytes) = (run.count + count as usize, at);
        self.in_flight.take_first(count as usize);
        self.admission.take_run(session, last, count as u32);
        self.owner.note_run(count, appended);
        self.look_at_snapshots(before);
    }
}

/// The frames that were taken of those that are submitted together.
#[derive(Debug, Default)]
struct Run {
    count: usize,
    bytes: usize,
    /// Whether the next one is not to be taken so.
    is_over: bool,
}

impl<S: Storage> Records<'_, S> {
    /// Writes the record of a command with this frame. Returns how many bytes it has, if there is
    /// room.
    #[inline(always)]
    fn append_frame(&mut self, origin: Origin, frame: &[u8]) -> Option<usize> {
        let bytes = HEAD_BYTES + frame.len();
        match self {
            Self::Journal(journal) => {
                encode_frame(origin, frame, journal.claim(bytes)?);
                journal.finish();
            }
            Self::Log(pending) => pending.push_with(bytes, |out| encode_frame(origin, frame, out)),
        }
        Some(bytes)
    }
}
