//! The end of an auction that goes on in further commands: behind the orders of its book.

use std::collections::BTreeSet;

use super::SnapshotError;
use super::reader::{Reader, within};
use super::symbols::forbid;
use super::writer::Writer;
use crate::book::{Lots, Uncrossing, Walk};
use crate::ids::UserId;
use crate::risk::TradingLimits;

/// The bits of its parts.
const REFERENCE: u8 = 1;
const PRICE: u8 = 2;
const SEARCH: u8 = 4;
const LEAVING: u8 = 8;
const CANCELS_ALL: u8 = 16;
/// An owner whose orders leave, and whether those do that go with a session.
const LEAVING_BYTES: usize = 9;

/// The search between two steps: the price and the lots of the best ask and the best bid that are
/// left, which cross; the worst ask and the worst bid that traded; and the volume.
fn fields_of(walk: &Walk) -> [i64; 7] {
    let [ask, bid] = [walk.ask, walk.bid].map(|left| left.expect("both sides are left, and cross"));
    let (worst_ask, worst_bid) = walk.worst.expect("a search that goes on has matched lots");
    let [ask_lots, bid_lots, volume] = [ask.lots, bid.lots, walk.volume]
        .map(|lots| i64::try_from(lots).expect("the lots of a side fit 64 bits"));
    [
        ask.price, ask_lots, bid.price, bid_lots, worst_ask, worst_bid, volume,
    ]
}

pub(super) fn encode(progress: &Uncrossing, out: &mut Writer<'_>) {
    let walk = progress.walk.as_ref().map(fields_of);
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    out.byte(
        bit(progress.reference.is_some(), REFERENCE)
            | bit(progress.price.is_some(), PRICE)
            | bit(walk.is_some(), SEARCH)
            | bit(!progress.leaving.is_empty(), LEAVING)
            | bit(progress.cancels_all, CANCELS_ALL),
    );
    for price in [progress.reference, progress.price].into_iter().flatten() {
        out.long(price);
    }
    if let Some(fields) = walk {
        out.longs(fields);
    }
    if !progress.leaving.is_empty() {
        out.count(progress.leaving.len());
        for &(UserId(uid), is_end) in &progress.leaving {
            out.long(uid);
            out.byte(is_end.into());
        }
    }
}

pub(super) fn decode(
    fields: &mut Reader<'_>,
    limits: TradingLimits,
) -> Result<Uncrossing, SnapshotError> {
    let at = fields.at();
    let bits = fields.small("the parts of an uncross", 2 * CANCELS_ALL - 1)?;
    let why = "its price was found";
    let is_both = bits & SEARCH != 0 && bits & PRICE != 0;
    forbid(is_both, at, "a search for a price", why)?;
    let (low, high) = (limits.low.max(1), limits.high);
    let mut price = |what, bit, low, high| {
        if bits & bit == 0 {
            return Ok(None);
        }
        let at = fields.at();
        let price = fields.long(what)?;
        within(what, at, price, low, high).map(|()| Some(price))
    };
    let reference = price("a reference price", REFERENCE, 1, i64::MAX)?;
    let price = price("the price of an uncross", PRICE, low, high)?;
    let walk = match bits & SEARCH {
        0 => None,
        _ => Some(decode_search(fields, (low, high))?),
    };
    let leaving = match bits & LEAVING {
        0 => BTreeSet::new(),
        _ => decode_leaving(fields)?,
    };
    Ok(Uncrossing {
        reference,
        walk,
        price,
        leaving,
        cancels_all: bits & CANCELS_ALL != 0,
    })
}

fn decode_leaving(fields: &mut Reader<'_>) -> Result<BTreeSet<(UserId, bool)>, SnapshotError> {
    let at = fields.at();
    let count = fields.count("owners whose orders leave", LEAVING_BYTES)?;
    forbid(
        count == 0,
        at,
        "owners whose orders leave",
        "there are none",
    )?;
    let mut leaving = BTreeSet::new();
    for _ in 0..count {
        let at = fields.at();
        let uid = UserId(fields.long("an owner whose orders leave")?);
        let is_end = fields.small("the end of a session", 1)? == 1;
        let owner = (uid, is_end);
        let why = "those before it come later";
        let is_later = leaving.last().is_none_or(|last| *last < owner);
        forbid(!is_later, at, "an owner whose orders leave", why)?;
        leaving.insert(owner);
    }
    Ok(leaving)
}

fn decode_search(fields: &mut Reader<'_>, (low, high): (i64, i64)) -> Result<Walk, SnapshotError> {
    let at = fields.at();
    let [ask, ask_lots, bid, bid_lots, worst_ask, worst_bid, volume] =
        fields.longs("a search for a price")?;
    within("the worst ask that traded", at + 32, worst_ask, low, ask)?;
    within("the best ask that is left", at, ask, low, bid)?;
    within("the worst bid that traded", at + 40, worst_bid, bid, high)?;
    for (at, lots) in [(at + 8, ask_lots), (at + 24, bid_lots), (at + 48, volume)] {
        within("the lots of a search", at, lots, 1, i64::MAX)?;
    }
    let some = |price: i64, lots: i64| {
        let lots = lots.into();
        Some(Lots { price, lots })
    };
    Ok(Walk {
        ask: some(ask, ask_lots),
        bid: some(bid, bid_lots),
        worst: Some((worst_ask, worst_bid)),
        volume: volume.into(),
    })
}
