//! Books: levels of both sides, best price first, with their orders as they stand; then stop
//! orders.

use zerocopy::little_endian::I64;

use super::SnapshotError;
use super::money::Money;
use super::orders::{Owned, SymbolConditions};
use super::reader::{Reader, at_least, within};
use super::symbols::{Listed, forbid};
use super::writer::Writer;
use super::{auction, orders, stops};
use crate::book::{Book, Outline, Saved};
use crate::command::{Action, SymbolType};
use crate::risk::Risk;
use crate::rules::Rules;
use crate::wire::Wire;

const LEVEL_BYTES: usize = 12 + orders::BYTES;

pub(super) fn encode(book: &Book, out: &mut Writer<'_>) {
    let turns = book.turns();
    out.count(book.order_count());
    out.count(book.waiting().count());
    for side in [Action::Ask, Action::Bid] {
        out.count(book.count_levels(side));
        book.visit_saved(side, |saved| match saved {
            Saved::Level(level) => {
                out.put(&level.price.bytes());
                out.count(level.orders as usize);
            }
            Saved::Order(order) => orders::encode(order, &turns, out),
        });
    }
    for stop in book.waiting() {
        stops::encode(&stop, &turns, out);
    }
    if let Some((low, high)) = book.left_over() {
        out.put(&[low, high].map(I64::new));
    }
    if let Some(progress) = book.uncrossing() {
        auction::encode(progress, out);
    }
}

pub(super) fn decode(
    fields: &mut Reader<'_>,
    symbol: &Listed,
    risk: &mut Risk,
    money: &mut Money,
) -> Result<Book, SnapshotError> {
    let at = fields.at();
    let resting = fields.count("resting orders", orders::BYTES)?;
    let waiting = fields.count("stop orders", stops::BYTES)?;
    let spec = symbol.saved.spec;
    let terms = SymbolConditions::new(symbol, risk);
    check_traded(resting + waiting > 0, at, symbol, &terms)?;
    let limits = symbol.saved.limits;
    let outline = Outline {
        band: (limits.low, limits.high),
        protection: symbol.protection,
        last: symbol.traded_at,
        is_auction: limits.auction,
        orders: resting + waiting,
    };
    let mut book = Book::outlined(spec, risk.rules(), &outline);
    let mut owned = Owned {
        book: &mut book,
        risk,
        money,
        terms: &terms,
        expiring: 0,
    };
    let mut found = 0;
    for side in [Action::Ask, Action::Bid] {
        found += decode_side(fields, side, &mut owned)?;
    }
    let (found, wanted) = (found as u64, resting as u64);
    within("the number of resting orders", at, wanted, found, found)?;
    stops::decode(fields, waiting, &mut owned)?;
    let expiring = owned.expiring;
    if symbol.has_left_over {
        restore_left_over(fields, &mut book, risk.rules())?;
    }
    if limits.auction && limits.busy {
        book.restore_uncrossing(auction::decode(fields, limits)?);
    }
    let why = "those of one time are not 0, 1, 2 and so on";
    forbid(!book.has_turns(expiring), at, "an order's turn", why)?;
    if symbol.saved.has_last_prices {
        risk.restore_last_prices(spec.id, &book.top_of_book());
    }
    Ok(book)
}

fn restore_left_over(
    fields: &mut Reader<'_>,
    book: &mut Book,
    rules: &Rules,
) -> Result<(), SnapshotError> {
    let at = fields.at();
    let prices: [I64; 2] = fields.get("the lowest price that reached stop orders")?;
    let [low, high] = prices.map(I64::get);
    at_least("the highest price that reached them", at + 8, high, low)?;
    let is_there = rules.bound_work && book.restore_left_over((low, high));
    let why = "no stop order that waits was reached";
    forbid(!is_there, at, "a price by which orders are left over", why)
}

/// Orders are there only where a symbol is traded.
fn check_traded(
    has_orders: bool,
    at: usize,
    symbol: &Listed,
    terms: &SymbolConditions,
) -> Result<(), SnapshotError> {
    if !has_orders || symbol.is_pair() {
        return Ok(());
    }
    let has_last = symbol.saved.has_last_prices;
    let is_option = symbol.saved.spec.symbol_type == SymbolType::Option;
    let is_there = is_option || !has_last || terms.currencies.is_none();
    forbid(is_there, at, "an order", "its symbol was never traded")?;
    let has_band = symbol.saved.limits.low > 0;
    let why = "covered futures need a price band";
    forbid(terms.is_covered && !has_band, at, "an order", why)
}

/// How many orders there are.
fn decode_side(
    fields: &mut Reader<'_>,
    side: Action,
    owned: &mut Owned<'_>,
) -> Result<usize, SnapshotError> {
    let count = fields.count("levels", LEVEL_BYTES)?;
    let (mut least, mut most) = owned.terms.prices(side);
    // The book is not crossed but in an auction.
    if side == Action::Bid
        && !owned.terms.is_auction
        && let Some(ask) = owned.book.best(Action::Ask)
    {
        most = most.min(ask.price.saturating_sub(1));
        forbid(
            ask.price == i64::MIN && count > 0,
            fields.at(),
            "a bid",
            "it crosses",
        )?;
    }
    let mut found = 0;
    for level in 0..count {
        let at = fields.at();
        let price = fields.get::<I64>("a level's price")?.get();
        within("a level's price", at, price, least, most)?;
        // Those that follow are worse.
        let is_last = level + 1 == count;
        match side {
            Action::Ask if is_last => {}
            Action::Ask => least = next(price.checked_add(1), at, price)?,
            Action::Bid if is_last => {}
            Action::Bid => most = next(price.checked_sub(1), at, price)?,
        }
        found += decode_level(fields, side, price, owned)?;
    }
    Ok(found)
}

fn next(price: Option<i64>, at: usize, value: i64) -> Result<i64, SnapshotError> {
    price.ok_or_else(|| SnapshotError::out_of_order("levels", at, value, value))
}

fn decode_level(
    fields: &mut Reader<'_>,
    side: Action,
    price: i64,
    owned: &mut Owned<'_>,
) -> Result<usize, SnapshotError> {
    let at = fields.at();
    let count = fields.count("orders of a level", orders::BYTES)?;
    forbid(count == 0, at, "a level without orders", "none is kept")?;
    let mut volume = 0_i64;
    for _ in 0..count {
        let at = fields.at();
        let displayed = orders::decode(fields, (side, price), owned)?;
        let sum = volume.checked_add(displayed);
        let why = "its level has more lots than 64 bits";
        forbid(sum.is_none(), at, "an order", why)?;
        volume = sum.unwrap_or(volume);
    }
    Ok(count)
}
