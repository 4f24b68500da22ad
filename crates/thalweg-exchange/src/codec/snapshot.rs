//! Snapshots of books as bytes.

use std::cmp::Ordering;
use std::mem::offset_of;

use zerocopy::little_endian::{I32, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::error::CodecError;
use super::fields::{Reader, Writer};
use super::frame::{Head, room_for};
use super::layout::{OWN_AT, kind};
use crate::book::Level;
use crate::ids::SymbolId;
use crate::market::{Channels, Epoch, FeedSequence, Snapshot, SymbolSequence};
use crate::wire::{Bits, Code, Wire, wire};

/// A snapshot, before its levels. Byte 6 says which sides are cut, byte 7 the channels.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SnapshotForm {
    head: Head,
    symbol: I32,
    epoch: U64,
    sequence: U64,
    as_of: U64,
    /// Levels that sell, and levels that buy.
    counts: [U32; 2],
}

wire! {
    pub(super) struct LevelForm = Level { price: i64, volume: i64, orders: u64 }
}

const BYTES_MIN: usize = size_of::<SnapshotForm>();
pub(super) const LEVEL_BYTES: usize = size_of::<LevelForm>();
/// Levels that sell are cut, and levels that buy.
const CUTS: u8 = 3;

/// Returns how long a snapshot's frame is, in bytes.
#[must_use]
pub const fn snapshot_bytes(snapshot: &Snapshot) -> usize {
    BYTES_MIN + (snapshot.asks.len() + snapshot.bids.len()) * LEVEL_BYTES
}

/// Writes a snapshot's frame at the beginning of `out`; the result is its length in bytes.
///
/// # Errors
/// [`CodecError::BufferTooSmall`], or of 700,000 levels [`CodecError::TooLong`]; nothing is
/// written then.
pub fn encode_snapshot(snapshot: &Snapshot, out: &mut [u8]) -> Result<usize, CodecError> {
    let length = snapshot_bytes(snapshot);
    let out = &mut Writer::new(room_for(out, length)?);
    let cuts = Bits::new(0).with(snapshot.asks_cut).with(snapshot.bids_cut);
    let own = [cuts.byte(), snapshot.channels.code()];
    let levels = [&snapshot.asks, &snapshot.bids];
    out.put(&SnapshotForm {
        head: Head::new(length, kind::SNAPSHOT, own),
        symbol: snapshot.symbol.bytes(),
        epoch: snapshot.epoch.bytes(),
        sequence: snapshot.sequence.bytes(),
        as_of: snapshot.as_of.bytes(),
        counts: levels.map(|list| U32::new(list.len() as u32)),
    });
    for level in levels.into_iter().flatten() {
        out.value::<LevelForm>(level);
    }
    Ok(length)
}

/// Returns the error that a snapshot's head and its numbers of items prove whatever follows.
pub(super) fn check(bytes: &[u8], head: Head) -> Result<(), CodecError> {
    let length = head.length()?;
    let what = "a snapshot";
    if head.kind != kind::SNAPSHOT {
        return head.unknown("snapshot");
    }
    let room = length.saturating_sub(BYTES_MIN);
    head.check_length(what, BYTES_MIN + room - room % LEVEL_BYTES)?;
    head.check_own(what, [CUTS, Channels::MAX])?;
    Channels::value(head.own[1], OWN_AT + 1)?;
    let at = offset_of!(SnapshotForm, counts);
    let counts = bytes
        .get(at..BYTES_MIN.min(bytes.len()))
        .unwrap_or_default();
    let counts = counts.as_chunks().0.iter();
    let items: usize = counts
        .map(|count| u32::from_le_bytes(*count) as usize)
        .sum();
    let max = room / LEVEL_BYTES;
    match items.cmp(&max) {
        Ordering::Greater => Err(CodecError::TooMany {
            what: "levels",
            at,
            count: items,
            max,
        }),
        Ordering::Less if bytes.len() >= BYTES_MIN => {
            let at = BYTES_MIN + items * LEVEL_BYTES;
            let bytes = length - at;
            Err(CodecError::TrailingBytes { at, bytes })
        }
        _ => Ok(()),
    }
}

/// Reads the snapshot at the beginning of `bytes` into `into`; the result is the length of its
/// frame in bytes. Levels are not checked against each other.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
/// `into` may hold a part of it then.
pub fn decode_snapshot(bytes: &[u8], into: &mut Snapshot) -> Result<usize, CodecError> {
    let head = Head::read(bytes)?;
    check(bytes, head)?;
    let frame = head.frame(bytes)?;
    let mut fields = Reader::new(frame, 0);
    let form: &SnapshotForm = fields.get()?;
    let [cuts, channels] = head.own;
    into.symbol = SymbolId(form.symbol.get());
    into.epoch = Epoch(form.epoch.get());
    into.sequence = FeedSequence(form.sequence.get());
    into.as_of = SymbolSequence(form.as_of.get());
    into.channels = Channels::value(channels, OWN_AT + 1)?;
    [into.asks_cut, into.bids_cut] = [cuts & 1 != 0, cuts & 2 != 0];
    let lists = [&mut into.asks, &mut into.bids];
    for (levels, count) in lists.into_iter().zip(form.counts) {
        levels.clear();
        levels.reserve_exact(count.get() as usize);
        for _ in 0..count.get() {
            levels.push(fields.value::<LevelForm>()?);
        }
    }
    fields.end()?;
    Ok(frame.len())
}
