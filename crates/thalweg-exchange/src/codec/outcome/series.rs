//! Outcomes that are too long for one frame: one frame after another, each as full as can be.

use super::{BYTES_MIN, Outcome, STANDING_BYTES, STANDING_OF_BYTES, event_bytes, front_bytes};
use super::{put_event, put_front, put_moved, put_standing};
use crate::codec::error::CodecError;
use crate::codec::frame::{FRAME_BYTES_MAX, HEAD_BYTES, Head, kind};
use crate::event::{Event, Events, Standing};
use crate::ids::SymbolId;

/// One thing of the list of an outcome.
enum Item<'e> {
    Event(&'e Event),
    Standing(Option<SymbolId>, &'e Standing),
}

impl Item<'_> {
    const fn bytes(&self) -> usize {
        match self {
            Self::Event(event) => event_bytes(event),
            Self::Standing(None, _) => STANDING_BYTES,
            Self::Standing(Some(_), _) => STANDING_OF_BYTES,
        }
    }

    fn put(&self, out: &mut [u8]) {
        match self {
            Self::Event(event) => drop(put_event(event, out)),
            Self::Standing(symbol, standing) => drop(put_standing(*symbol, standing, out)),
        }
    }
}

/// Everything in the list, in order.
fn items(events: &Events) -> impl Iterator<Item = Item<'_>> {
    let own = events.standing().into_iter();
    let others = events.standings().iter();
    let standings = own
        .map(|standing| Item::Standing(None, standing))
        .chain(others.map(|(symbol, standing)| Item::Standing(Some(*symbol), standing)));
    events.iter().map(Item::Event).chain(standings)
}

/// All frames together.
#[cold]
pub(super) fn series_bytes(events: &Events) -> usize {
    let (mut before, mut frame) = (0, front_bytes(events));
    for item in items(events) {
        if frame + item.bytes() > FRAME_BYTES_MAX {
            before += frame;
            frame = BYTES_MIN;
        }
        frame += item.bytes();
    }
    before + frame
}

/// Writes all frames into bytes of that number.
#[cold]
pub(super) fn encode_series(outcome: Outcome, events: &Events, out: &mut [u8]) {
    let (mut start, mut at, mut count) = (0, front_bytes(events), 0);
    let (mut kind, mut bits) = (kind::OUTCOME, put_moved(events, &mut out[BYTES_MIN..]));
    for item in items(events) {
        if at - start + item.bytes() > FRAME_BYTES_MAX {
            put_front(&mut out[start..at], (kind, [bits, 1]), outcome, count);
            (kind, bits) = (kind::OUTCOME_ON, 0);
            (start, count) = (at, 0);
            at += BYTES_MIN;
        }
        item.put(&mut out[at..]);
        at += item.bytes();
        count += 1;
    }
    put_front(&mut out[start..at], (kind, [bits, 0]), outcome, count);
}

/// Whether another frame of the same outcome follows.
pub(super) const fn goes_on(head: Head) -> bool {
    head.own()[1] != 0
}

/// Looks at the heads of all frames of an outcome, of which the first is there: all must be.
///
/// # Errors
/// [`CodecError::Incomplete`] up to the end of the next frame, or of its head; a frame of something
/// else.
#[cold]
pub(super) fn all_are_there(bytes: &[u8], first: Head) -> Result<(), CodecError> {
    let (mut at, mut head) = (0, first);
    while goes_on(head) {
        at += head.length()?;
        let have = bytes.len();
        let incomplete = |needed| CodecError::Incomplete { needed, have };
        let rest = &bytes[at..];
        head = Head::read(rest).map_err(|_| incomplete(at + HEAD_BYTES))?;
        is_next(head)?;
        if rest.len() < head.length()? {
            return Err(incomplete(at + head.length()?));
        }
    }
    Ok(())
}

/// The head is that of a frame with which an outcome goes on.
pub(super) fn is_next(head: Head) -> Result<(), CodecError> {
    if head.kind() != kind::OUTCOME_ON {
        let kind = head.kind();
        let wanted = "frame with which an outcome goes on";
        return Err(CodecError::UnknownKind { kind, wanted });
    }
    super::check(head).map(drop)
}
