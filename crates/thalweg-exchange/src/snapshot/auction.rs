//! The end of an auction that goes on in further commands: behind the orders of its book.

use std::collections::BTreeSet;

use zerocopy::little_endian::I64;

use super::SnapshotError;
use super::forms::SearchForm;
use super::reader::{Reader, at_least, within};
use super::symbols::forbid;
use super::writer::Writer;
use crate::book::{Lots, Uncrossing, Walk};
use crate::ids::UserId;
use crate::risk::TradingLimits;
use crate::wire::{Bits, Wire};

/// The bits of its parts.
const REFERENCE: u8 = 1;
const PRICE: u8 = 2;
const SEARCH: u8 = 4;
const LEAVING: u8 = 8;
const CANCELS_ALL: u8 = 16;
/// An owner whose orders leave, and whether those do that go with a session.
const LEAVING_BYTES: usize = 9;

fn search_form(walk: &Walk) -> SearchForm {
    let [ask, bid] = [walk.ask, walk.bid].map(|left| left.expect("both sides are left, and cross"));
    let (worst_ask, worst_bid) = walk.worst.expect("a search that goes on has matched lots");
    let lots = |lots| I64::new(i64::try_from(lots).expect("the lots of a side fit 64 bits"));
    SearchForm {
        ask: ask.price.bytes(),
        ask_lots: lots(ask.lots),
        bid: bid.price.bytes(),
        bid_lots: lots(bid.lots),
        worst_ask: worst_ask.bytes(),
        worst_bid: worst_bid.bytes(),
        volume: lots(walk.volume),
    }
}

pub(super) fn encode(progress: &Uncrossing, out: &mut Writer<'_>) {
    let walk = progress.walk.as_ref().map(search_form);
    let bits = Bits::new(0)
        .with(progress.reference.is_some())
        .with(progress.price.is_some())
        .with(walk.is_some())
        .with(!progress.leaving.is_empty())
        .with(progress.cancels_all);
    out.put(&bits.byte());
    for price in [progress.reference, progress.price].into_iter().flatten() {
        out.put(&price.bytes());
    }
    if let Some(form) = walk {
        out.put(&form);
    }
    if !progress.leaving.is_empty() {
        out.count(progress.leaving.len());
        for &(UserId(uid), is_end) in &progress.leaving {
            out.put(&uid.bytes());
            out.put(&u8::from(is_end));
        }
    }
}

pub(super) fn decode(
    fields: &mut Reader<'_>,
    limits: TradingLimits,
) -> Result<Uncrossing, SnapshotError> {
    let at = fields.at();
    let bits: u8 = fields.get("the parts of an uncross")?;
    within("the parts of an uncross", at, bits, 0, 2 * CANCELS_ALL - 1)?;
    let why = "its price was found";
    let is_both = bits & SEARCH != 0 && bits & PRICE != 0;
    forbid(is_both, at, "a search for a price", why)?;
    let (low, high) = (limits.low.max(1), limits.high);
    let mut price = |what, bit, low, high| {
        if bits & bit == 0 {
            return Ok(None);
        }
        let at = fields.at();
        let price = fields.get::<I64>(what)?.get();
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
        let uid = UserId(fields.get::<I64>("an owner whose orders leave")?.get());
        let end_at = fields.at();
        let is_end: u8 = fields.get("the end of a session")?;
        within("the end of a session", end_at, is_end, 0, 1)?;
        let owner = (uid, is_end == 1);
        let why = "those before it come later";
        let is_later = leaving.last().is_none_or(|last| *last < owner);
        forbid(!is_later, at, "an owner whose orders leave", why)?;
        leaving.insert(owner);
    }
    Ok(leaving)
}

fn decode_search(fields: &mut Reader<'_>, (low, high): (i64, i64)) -> Result<Walk, SnapshotError> {
    let at = fields.at();
    let form: SearchForm = fields.get("a search for a price")?;
    let [ask, bid] = [form.ask.get(), form.bid.get()];
    let [worst_ask, worst_bid] = [form.worst_ask.get(), form.worst_bid.get()];
    let lots = [form.ask_lots, form.bid_lots, form.volume].map(I64::get);
    let [ask_lots, bid_lots, volume] = lots;
    within("the worst ask that traded", at + 32, worst_ask, low, ask)?;
    within("the best ask that is left", at, ask, low, bid)?;
    within("the worst bid that traded", at + 40, worst_bid, bid, high)?;
    for (at, lots) in [(at + 8, ask_lots), (at + 24, bid_lots), (at + 48, volume)] {
        at_least("the lots of a search", at, lots, 1)?;
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
