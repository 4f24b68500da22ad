//! Snapshots of books as bytes.

use super::error::CodecError;
use super::fields::{Reader, Writer};
use super::frame::{HEAD_BYTES, Head, kind, room_for};
use super::message::channels_of;
use crate::book::Level;
use crate::ids::SymbolId;
use crate::market::{Channels, Epoch, FeedSequence, Snapshot, SymbolSequence};

/// Two numbers of items: levels that sell, levels that buy.
const COUNTS_AT: usize = HEAD_BYTES + 28;
const BYTES_MIN: usize = COUNTS_AT + 8;
/// A level: three numbers.
const ITEM_BYTES: usize = 24;
/// Bits of the first own byte.
const ASKS_CUT: u8 = 1;
const BIDS_CUT: u8 = 2;

/// Returns how long a snapshot's frame is, in bytes.
#[must_use]
pub const fn snapshot_bytes(snapshot: &Snapshot) -> usize {
    let levels = snapshot.asks.len() + snapshot.bids.len();
    BYTES_MIN + levels * ITEM_BYTES
}

/// Writes a snapshot's frame at the beginning of `out`; the result is its length in bytes.
///
/// # Errors
/// [`CodecError::NoRoom`], or of 700,000 levels [`CodecError::TooLong`]; nothing is
/// written then.
pub fn encode_snapshot(snapshot: &Snapshot, out: &mut [u8]) -> Result<usize, CodecError> {
    let length = snapshot_bytes(snapshot);
    let out = &mut Writer::new(room_for(out, length)?);
    let cut = |is_cut, bit| if is_cut { bit } else { 0 };
    let cuts = cut(snapshot.asks_cut, ASKS_CUT) | cut(snapshot.bids_cut, BIDS_CUT);
    let head = Head::new(length, kind::SNAPSHOT, [cuts, snapshot.channels.code()]);
    out.bytes(head.0.to_le_bytes());
    out.int(snapshot.symbol.0);
    let numbers = [snapshot.epoch.0, snapshot.sequence.0, snapshot.as_of.0];
    out.longs(numbers.map(|number| number as i64));
    let levels = [&snapshot.asks, &snapshot.bids];
    levels.iter().for_each(|list| out.count(list.len()));
    for level in levels.into_iter().flatten() {
        out.longs([level.price, level.volume, level.orders as i64]);
    }
    Ok(length)
}

/// Returns a snapshot's own bytes, or the error that its head and its numbers of items prove
/// whatever follows.
pub(super) fn check(bytes: &[u8], head: Head) -> Result<[u8; 2], CodecError> {
    let length = head.length()?;
    let (kind, what) = (head.kind(), "a snapshot");
    if kind != kind::SNAPSHOT {
        let wanted = "snapshot";
        return Err(CodecError::UnknownKind { kind, wanted });
    }
    let room = length.saturating_sub(BYTES_MIN);
    let expected = BYTES_MIN + room - room % ITEM_BYTES;
    if length != expected {
        return Err(CodecError::WrongLength {
            what,
            length,
            expected,
        });
    }
    let own = head.own_up_to(what, [ASKS_CUT | BIDS_CUT, Channels::CODE_MAX])?;
    let counts = bytes.get(COUNTS_AT..BYTES_MIN).unwrap_or_default();
    let counts = counts.as_chunks().0.iter();
    let items: u64 = counts
        .map(|count| u64::from(u32::from_le_bytes(*count)))
        .sum();
    let max = room / ITEM_BYTES;
    let has_counts = bytes.len() >= BYTES_MIN;
    match items.cmp(&(max as u64)) {
        std::cmp::Ordering::Greater => Err(CodecError::TooMany {
            what: "levels",
            at: COUNTS_AT,
            count: items as usize,
            max,
        }),
        std::cmp::Ordering::Less if has_counts => {
            let at = BYTES_MIN + items as usize * ITEM_BYTES;
            let bytes = length - at;
            Err(CodecError::Surplus { at, bytes })
        }
        _ => Ok(own),
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
    let [cuts, channels] = check(bytes, head)?;
    let frame = head.frame(bytes)?;
    let mut fields = Reader::new(frame, HEAD_BYTES);
    into.symbol = SymbolId(fields.int()?);
    let [epoch, sequence, as_of] = fields.longs()?.map(|number| number as u64);
    into.epoch = Epoch(epoch);
    into.sequence = FeedSequence(sequence);
    into.as_of = SymbolSequence(as_of);
    into.channels = channels_of(channels)?;
    into.asks_cut = cuts & ASKS_CUT != 0;
    into.bids_cut = cuts & BIDS_CUT != 0;
    let mut counts = [0; 2];
    for count in &mut counts {
        *count = fields.count("levels", ITEM_BYTES)?;
    }
    let [asks, bids] = counts;
    for (levels, count) in [(&mut into.asks, asks), (&mut into.bids, bids)] {
        levels.clear();
        levels.reserve_exact(count);
        for _ in 0..count {
            let [price, volume, orders] = fields.longs()?;
            let orders = orders as u64;
            levels.push(Level {
                price,
                volume,
                orders,
            });
        }
    }
    fields.end()?;
    Ok(frame.len())
}
