//! A running hash over all commands and their outcomes. Two replicas, or two placements, that start
//! from the same state have done the same if their digests after the same command are equal.
//!
//! It covers every field of a command, refused or not (a deposit, a resting order or a symbol's
//! terms produce no event), its result, its events, and the best prices of futures books. They are
//! folded in by multiplications of 64 by 64 bits whose halves are combined, as in wyhash (Wang Yi,
//! public domain): the fields of a command one after another, those of an event side by side, both
//! apart from what was before, so that only one multiplication a command and one an event wait for
//! it. No key, no clock, no order of memory: the same value on every machine and for any number of
//! threads.
//!
//! It finds faults, not forgeries. A user who can choose a single field of a command, even of one
//! that is refused, can calculate it so that the digest is that of another history; no other start
//! value prevents it. Where the users who choose commands are not trusted, keep the frames of
//! [`codec`](crate::codec) and hash or sign them with a cryptographic function.
//!
//! An order with conditions that has none is the same as one without.
//!
//! *Cost.* For a command, one multiplication, and one for each 64-bit field (five for an order, two
//! for a cancel, three for a reduction, seven for a move); for an event four or five, all but one
//! of which wait for nothing. Nothing is allocated. A cancel without events takes 69 instructions,
//! a move 72, an order 85 (callgrind, x86-64, compiled on its own, its loop included); before
//! commands were in it, each took 59. [`apply`](crate::apply) knows nothing of it.

use std::fmt;

use crate::codec::kind;
use crate::command::{
    AccountSpec, Amend, Command, ConditionalOrder, Place, SymbolSpec, UserLimits,
};
use crate::event::{Event, Events, MovedOrder, TopOfBook};
use crate::ids::{SymbolId, UserId};
use crate::result_code::ResultCode;

/// The fraction of π in hexadecimal, each number made odd: nothing was chosen.
const PI: [u64; 8] = [
    0x243F_6A88_85A3_08D3,
    0x1319_8A2E_0370_7345,
    0xA409_3822_299F_31D1,
    0x082E_FA98_EC4E_6C89,
    0x4528_21E6_38D0_1377,
    0xBE54_66CF_34E9_0C6D,
    0xC0AC_29B7_C97C_50DD,
    0x3F84_D5B5_B547_0917,
];

/// The hash of all commands and outcomes so far.
///
/// ```
/// use thalweg_exchange::digest::Digest;
/// use thalweg_exchange::{Command, Events, State, UserId, apply};
///
/// let mut replicas = [(State::default(), Digest::new()), (State::default(), Digest::new())];
/// let mut events = Events::new();
/// for (state, digest) in &mut replicas {
///     let command = Command::AddUser { uid: UserId(7) };
///     let result = apply(state, &command, &mut events);
///     digest.fold(&command, result, &events);
/// }
/// assert_eq!(replicas[0].1, replicas[1].1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest {
    value: u64,
    outcomes: u64,
}

impl Digest {
    /// Returns the digest of no command.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            value: PI[0],
            outcomes: 0,
        }
    }

    /// Returns a digest to continue from an earlier one, given its [value](Self::value) and its
    /// number of outcomes.
    ///
    /// ```
    /// use thalweg_exchange::digest::Digest;
    /// use thalweg_exchange::{Command, Events, ResultCode};
    ///
    /// let mut digest = Digest::new();
    /// digest.fold(&Command::Nop, ResultCode::Success, &Events::new());
    /// assert_eq!(Digest::from_parts(digest.value(), digest.outcomes()), digest);
    /// ```
    #[must_use]
    pub const fn from_parts(value: u64, outcomes: u64) -> Self {
        Self { value, outcomes }
    }

    /// Adds one command and its outcome.
    #[inline]
    pub fn fold(&mut self, command: &Command, result: ResultCode, events: &Events) {
        self.fold_and_check(command, result, events);
    }

    /// Adds as [`fold`](Self::fold) does, and returns the [`check`] of the command.
    #[inline(always)]
    pub(crate) fn fold_and_check(
        &mut self,
        command: &Command,
        result: ResultCode,
        events: &Events,
    ) -> u32 {
        let hash = of_command(command, result);
        let mut value = chain(self.value, hash);
        for event in events {
            value = chain(value, of_event(event));
        }
        if let Some(moved) = events.moved() {
            value = chain(value, of_moved(moved));
        }
        if !events.tops_of_book().is_empty() || events.top_of_book().is_some() {
            value = fold_tops_of_book(value, events);
        }
        self.value = value;
        self.outcomes += 1;
        check_of(hash)
    }

    /// Returns the hash.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// Returns the number of outcomes added so far.
    #[must_use]
    pub const fn outcomes(&self) -> u64 {
        self.outcomes
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Digest {
    /// Both parts, such as `0123456789abcdef after 7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x} after {}", self.value, self.outcomes)
    }
}

/// Returns a hash of a command with its result: by what one that comes again is known.
pub(crate) fn check(command: &Command, result: ResultCode) -> u32 {
    check_of(of_command(command, result))
}

#[inline(always)]
const fn check_of(hash: u64) -> u32 {
    chain(PI[1], hash) as u32
}

/// Both halves of the product.
#[inline(always)]
const fn multiply(one: u64, other: u64) -> u64 {
    let product = one as u128 * other as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Hashes one more field.
#[inline(always)]
const fn add(value: u64, field: i64) -> u64 {
    multiply(value, PI[7]) ^ field as u64
}

/// As [`add`], for the commands that are rare.
#[cold]
#[inline(never)]
fn with(value: u64, fields: &[i64]) -> u64 {
    let add = |value, &field: &i64| add(value, field);
    fields.iter().fold(value, add)
}

/// Returns the one step that depends on the order.
#[inline(always)]
const fn chain(value: u64, next: u64) -> u64 {
    multiply(value ^ next, PI[7])
}

/// Hashes five fields and the kind of the event that has them.
#[inline(always)]
const fn mix(what: u64, fields: [i64; 5]) -> u64 {
    let [a, b, c, d, e] = fields;
    multiply(a as u64 ^ PI[1], b as u64 ^ PI[2])
        ^ multiply(c as u64 ^ PI[3], d as u64 ^ PI[4])
        ^ multiply(e as u64 ^ PI[5], what ^ PI[6])
}

/// Hashes an order's filled lots, and those left.
#[inline(always)]
const fn of_progress(filled: i64, left: i64) -> u64 {
    multiply(filled as u64 ^ PI[0], left as u64 ^ PI[3].rotate_left(32))
}

#[inline(always)]
fn of_event(event: &Event) -> u64 {
    let bits = bits_of;
    match *event {
        Event::Trade {
            price,
            size,
            maker_order,
            maker_uid,
            maker_filled,
            maker_left,
            maker_completed,
            taker_completed,
            bidder_hold_price,
            taker_action,
        } => {
            let is_bid = taker_action as u8 == 1;
            let what = bits(1, [is_bid, maker_completed, taker_completed]);
            let (order, uid) = (maker_order.0, maker_uid.0);
            mix(what, [price, size, order, uid, bidder_hold_price])
                ^ of_progress(maker_filled, maker_left)
        }
        Event::Reject {
            order,
            price,
            size,
            bidder_hold_price,
            why,
        } => {
            let what = 2 | (why as u64) << 16;
            mix(what, [price, size, order.0, 0, bidder_hold_price])
        }
        Event::Reduce {
            order,
            price,
            size,
            left,
            filled,
            completed,
            bidder_hold_price,
            action,
        } => {
            let what = bits(3, [action as u8 == 1, completed, false]);
            mix(what, [price, size, order.0, 0, bidder_hold_price]) ^ of_progress(filled, left)
        }
        _ => of_rare_event(event),
    }
}

/// Sides and whatever else is true of it, above its kind.
#[inline(always)]
const fn bits_of(kind: u64, bits: [bool; 3]) -> u64 {
    let [a, b, c] = bits;
    kind | (a as u64) << 8 | (b as u64) << 9 | (c as u64) << 10
}

#[cold]
fn of_rare_event(event: &Event) -> u64 {
    let bits = bits_of;
    match *event {
        Event::Removed {
            symbol,
            order,
            uid,
            action,
            price,
            size,
            left,
            filled,
            bidder_hold_price,
            why,
        } => {
            let what = bits(4, [action as u8 == 1, false, false]) | (why as u64) << 16;
            let what = what | u64::from(symbol.0 as u32) << 32;
            mix(what, [price, size, order.0, uid.0, bidder_hold_price]) ^ of_progress(filled, left)
        }
        Event::Triggered {
            order,
            uid,
            action,
            price,
            size,
            bidder_hold_price,
        } => {
            let what = bits(5, [action as u8 == 1, false, false]);
            mix(what, [price, size, order.0, uid.0, bidder_hold_price])
        }
        Event::Uncrossed {
            order,
            uid,
            action,
            price,
            size,
            filled,
            bidder_hold_price,
        } => {
            let what = 9 | (action as u64) << 8;
            mix(what, [price, size, order.0, uid.0, bidder_hold_price]) ^ of_progress(filled, 0)
        }
        Event::Refilled { order, uid, size } => mix(6, [0, size, order.0, uid.0, 0]),
        Event::Trade { .. } | Event::Reject { .. } | Event::Reduce { .. } => of_event(event),
    }
}

/// How futures books stand: the one of the command's symbol, then those of others. Not inlined: six
/// instructions less for a command without (callgrind, as above).
#[inline(never)]
fn fold_tops_of_book(mut value: u64, events: &Events) -> u64 {
    if let Some(top_of_book) = events.top_of_book() {
        value = chain(value, of_top_of_book(7, top_of_book));
    }
    for (symbol, top_of_book) in events.tops_of_book() {
        let what = 8 | u64::from(symbol.0 as u32) << 32;
        value = chain(value, of_top_of_book(what, top_of_book));
    }
    value
}

fn of_top_of_book(what: u64, top_of_book: &TopOfBook) -> u64 {
    let TopOfBook { ask, bid } = *top_of_book;
    let there = [ask, bid].map(|price| u64::from(price.is_some()));
    let what = what | there[0] << 8 | there[1] << 9;
    let [ask, bid] = [ask, bid].map(Option::unwrap_or_default);
    mix(what, [ask, bid, 0, 0, 0])
}

/// How an order stood before it was moved.
#[inline]
const fn of_moved(moved: &MovedOrder) -> u64 {
    let MovedOrder {
        action,
        price,
        left,
        filled,
    } = *moved;
    mix(9 | (action as u64) << 8, [price, left, filled, 0, 0])
}

/// Hashes a command's kind, its result and all its fields: before each field, what was before it is
/// multiplied; the last is left to be multiplied with the digest.
#[inline(always)]
fn of_command(command: &Command, result: ResultCode) -> u64 {
    // Codes have four digits.
    let result = u64::from(result.code() as u16) << 16;
    let first = |kind: u8| u64::from(kind) << 8 | result;
    match *command {
        Command::Place(ref place) => of_place(first(kind::PLACE), place),
        Command::PlaceConditional(ref order) if order.has_conditions() => {
            of_conditional(first(kind::PLACE_WITH), order)
        }
        Command::PlaceConditional(ref order) => of_place(first(kind::PLACE), &order.place),
        Command::Cancel {
            uid,
            symbol,
            order_id,
        } => in_symbol(first(kind::CANCEL), symbol, [uid.0, order_id.0]),
        Command::Move {
            uid,
            symbol,
            order_id,
            price,
        } => in_symbol(first(kind::MOVE), symbol, [uid.0, order_id.0, price]),
        Command::Reduce {
            uid,
            symbol,
            order_id,
            by,
        } => in_symbol(first(kind::REDUCE), symbol, [uid.0, order_id.0, by]),
        Command::Amend(ref amend) => of_amend(first(kind::AMEND), amend),
        Command::AddUser { uid } => with(first(kind::ADD_USER), &[uid.0]),
        Command::Balance {
            uid,
            currency,
            amount,
            transaction_id,
            kind: total,
        } => {
            let numbers = [uid.0, amount, currency.0.into(), transaction_id];
            with(first(kind::BALANCE) | total as u64, &numbers)
        }
        Command::PayFees {
            uid,
            currency,
            amount,
            transaction_id,
        } => {
            let numbers = [uid.0, amount, currency.0.into(), transaction_id];
            with(first(kind::PAY_FEES), &numbers)
        }
        Command::SetLimits { uid, limits } => of_limits(first(kind::SET_LIMITS), uid, limits),
        Command::Suspend { uid } => with(first(kind::SUSPEND), &[uid.0]),
        Command::Resume { uid } => with(first(kind::RESUME), &[uid.0]),
        Command::AddSymbols(ref symbols) => of_symbols(first(kind::ADD_SYMBOLS), symbols),
        Command::AddAccounts(ref accounts) => of_accounts(first(kind::ADD_ACCOUNTS), accounts),
        Command::CancelAll { uid, symbol } => {
            let of_user = [uid.is_some().into(), uid.unwrap_or_default().0];
            let of_symbol = [symbol.is_some().into(), symbol.unwrap_or_default().0.into()];
            with(with(first(kind::CANCEL_ALL), &of_user), &of_symbol)
        }
        _ => of_the_market(command, first),
    }
}

/// Hashes commands that concern no single order, account or batch.
#[cold]
#[inline(never)]
fn of_the_market(command: &Command, first: impl Fn(u8) -> u64) -> u64 {
    match *command {
        Command::Disconnect { uid } => with(first(kind::DISCONNECT), &[uid.0]),
        Command::Clock { time } => with(first(kind::CLOCK), &[time]),
        Command::SetPriceBand { symbol, low, high } => {
            with(first(kind::SET_PRICE_BAND), &[symbol.0.into(), low, high])
        }
        Command::SetMarketProtection { symbol, ticks } => with(
            first(kind::SET_MARKET_PROTECTION),
            &[symbol.0.into(), ticks],
        ),
        Command::StartAuction { symbol } => with(first(kind::START_AUCTION), &[symbol.0.into()]),
        Command::Uncross { symbol, reference } => with(
            first(kind::UNCROSS),
            &[
                symbol.0.into(),
                reference.is_some().into(),
                reference.unwrap_or_default(),
            ],
        ),
        Command::Halt { symbol } => with(first(kind::HALT), &[symbol.0.into()]),
        Command::Unhalt { symbol } => with(first(kind::UNHALT), &[symbol.0.into()]),
        Command::RunStops { symbol } => with(first(kind::RUN_STOPS), &[symbol.0.into()]),
        Command::RemoveSymbol { symbol } => with(first(kind::REMOVE_SYMBOL), &[symbol.0.into()]),
        Command::Nop => first(kind::NOP),
        Command::Reset => first(kind::RESET),
        _ => unreachable!("`of_command` has seen to these"),
    }
}

/// The upper half of the first word is the symbol.
#[inline(always)]
fn in_symbol<const F: usize>(first: u64, symbol: SymbolId, fields: [i64; F]) -> u64 {
    let first = first | u64::from(symbol.0 as u32) << 32;
    fields.into_iter().fold(first, add)
}

/// Its lowest byte is what an order says in few bits, its type and its flags; the side is the
/// highest bit of the next, since kinds of commands are below 128.
#[inline(always)]
fn of_place(first: u64, place: &Place) -> u64 {
    let Place {
        uid,
        symbol,
        order_id,
        order_type,
        action,
        price,
        reserve_price,
        size,
        flags,
    } = *place;
    let small = (action as u64) << 15 | (order_type as u64) << 5 | u64::from(flags.code());
    let fields = [uid.0, order_id.0, price, reserve_price, size];
    in_symbol(first | small, symbol, fields)
}

fn of_amend(first: u64, amend: &Amend) -> u64 {
    let Amend {
        uid,
        symbol,
        order_id,
        action,
        reserve_price,
        size_before,
        price,
        size,
    } = *amend;
    let ids = [uid.0, symbol.0.into(), order_id.0];
    let after = [reserve_price, size_before, price, size];
    with(with(first | action as u64, &ids), &after)
}

/// A condition of zero is another than none.
#[cold]
#[inline(never)]
fn of_conditional(first: u64, order: &ConditionalOrder) -> u64 {
    let ConditionalOrder {
        ref place,
        trigger,
        display,
        good_till,
    } = *order;
    let conditions = [trigger, display, good_till];
    let are_there = conditions.map(|condition| condition.is_some().into());
    let value = with(of_place(first, place), &are_there);
    with(value, &conditions.map(Option::unwrap_or_default))
}

/// Lists begin with their lengths, so that none can be read in two ways.
fn of_symbols(first: u64, symbols: &[SymbolSpec]) -> u64 {
    let add = |value, spec: &SymbolSpec| {
        let SymbolSpec {
            id,
            symbol_type,
            base_currency,
            quote_currency,
            base_scale,
            quote_scale,
            taker_fee,
            maker_fee,
            margin_buy,
            margin_sell,
            fee_unit,
        } = *spec;
        let currencies = [base_currency, quote_currency].map(|id| id.0.into());
        let small = symbol_type as i64 | (fee_unit as i64) << 8;
        let value = with(value, &[id.0.into(), small]);
        let value = with(value, &currencies);
        let value = with(value, &[base_scale, quote_scale, taker_fee, maker_fee]);
        with(value, &[margin_buy, margin_sell])
    };
    let first = with(first, &[symbols.len() as i64]);
    symbols.iter().fold(first, add)
}

fn of_limits(first: u64, uid: Option<UserId>, limits: Option<UserLimits>) -> u64 {
    let are_there = [uid.is_some().into(), limits.is_some().into()];
    let limits = limits.unwrap_or_default();
    let (open, once) = (limits.open_orders.into(), limits.ids_once.into());
    let value = with(first, &are_there);
    with(
        value,
        &[uid.unwrap_or_default().0, open, limits.order_size, once],
    )
}

fn of_accounts(first: u64, accounts: &[AccountSpec]) -> u64 {
    let add = |value, AccountSpec { uid, balances }: &AccountSpec| {
        let value = with(value, &[uid.0, balances.len() as i64]);
        balances.iter().fold(value, |value, &(currency, amount)| {
            with(value, &[currency.0.into(), amount])
        })
    };
    let first = with(first, &[accounts.len() as i64]);
    accounts.iter().fold(first, add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Action;
    use crate::event::{RejectReason, RemovalReason};
    use crate::ids::{OrderId, SymbolId, UserId};

    fn trade(price: i64, maker: i64) -> Event {
        Event::Trade {
            price,
            size: 5,
            maker_order: OrderId(maker),
            maker_uid: UserId(11),
            maker_filled: 5,
            maker_left: 0,
            maker_completed: true,
            taker_completed: false,
            bidder_hold_price: 102,
            taker_action: Action::Bid,
        }
    }

    fn removed(why: RemovalReason) -> Event {
        Event::Removed {
            symbol: SymbolId(1),
            order: OrderId(2),
            uid: UserId(3),
            action: Action::Ask,
            price: 4,
            size: 5,
            left: 0,
            filled: 7,
            bidder_hold_price: 6,
            why,
        }
    }

    fn events(list: &[Event]) -> Events {
        let mut events = Events::new();
        list.iter().for_each(|event| events.push(*event));
        events
    }

    fn top_of_book(ask: Option<i64>, bid: Option<i64>, moved: Option<(i64, i64)>) -> Events {
        let mut events = Events::new();
        events.set_top_of_book(TopOfBook { ask, bid });
        if let Some((price, left)) = moved {
            events.set_moved(MovedOrder {
                action: Action::Ask,
                price,
                left,
                filled: 0,
            });
        }
        events
    }

    fn of_all(outcomes: &[(ResultCode, Events)]) -> u64 {
        let mut digest = Digest::new();
        for (result, events) in outcomes {
            digest.fold(&Command::Nop, *result, events);
        }
        assert_eq!(digest.outcomes(), outcomes.len() as u64);
        digest.value()
    }

    /// Returns one of each kind, and each with one field different.
    fn variants() -> Vec<Events> {
        let mut variants = vec![Events::new()];
        let mut add = |event| variants.push(events(&[event]));
        for (price, maker) in [(101, 9), (102, 9), (101, 10), (9, 101)] {
            add(trade(price, maker));
        }
        for (price, size) in [(1, 2), (2, 1), (0, 0)] {
            let bidder_hold_price = 3;
            // Reasons that were added later come last: the value of those before is fixed.
            for why in RejectReason::ALL.into_iter().take(6) {
                add(Event::Reject {
                    order: OrderId(5),
                    price,
                    size,
                    bidder_hold_price,
                    why,
                });
            }
            for (completed, action) in [(false, Action::Ask), (true, Action::Ask)] {
                add(Event::Reduce {
                    order: OrderId(5),
                    price,
                    size,
                    left: price,
                    filled: size,
                    completed,
                    bidder_hold_price,
                    action,
                });
            }
            let order = OrderId(price);
            add(Event::Refilled {
                order,
                uid: UserId(7),
                size,
            });
            add(Event::Triggered {
                order,
                uid: UserId(1),
                action: Action::Bid,
                price,
                size,
                bidder_hold_price,
            });
        }
        add(removed(RemovalReason::CancelAll));
        add(removed(RemovalReason::Cancelled));
        variants.push(events(&[trade(1, 1), trade(2, 2)]));
        variants.push(events(&[trade(2, 2), trade(1, 1)]));
        variants.push(events(&[trade(1, 1), trade(2, 2), trade(2, 2)]));
        for ask in [None, Some(0), Some(1)] {
            for bid in [None, Some(0), Some(1)] {
                for moved in [None, Some((0, 0)), Some((0, 1)), Some((1, 0))] {
                    variants.push(top_of_book(ask, bid, moved));
                }
            }
        }
        for symbol in [SymbolId(1), SymbolId(2)] {
            let mut events = Events::new();
            events.add_top_of_book(symbol, TopOfBook::default());
            variants.push(events);
        }
        variants.extend(RejectReason::ALL.into_iter().skip(6).map(rejected));
        variants
    }

    fn rejected(why: RejectReason) -> Events {
        events(&[Event::Reject {
            order: OrderId(5),
            price: 1,
            size: 2,
            bidder_hold_price: 3,
            why,
        }])
    }

    /// Returns a buyer's trades in an auction, and then with one field different.
    fn auctions() -> Vec<Events> {
        let uncrossed = |action, [order, uid, price, size, filled, bidder_hold_price]: [i64; 6]| {
            events(&[Event::Uncrossed {
                order: OrderId(order),
                uid: UserId(uid),
                action,
                price,
                size,
                filled,
                bidder_hold_price,
            }])
        };
        let fields = [1, 2, 3, 4, 5, 6];
        let mut auctions = vec![
            uncrossed(Action::Bid, fields),
            uncrossed(Action::Ask, fields),
        ];
        for at in 0..fields.len() {
            let mut fields = fields;
            fields[at] = 0;
            auctions.push(uncrossed(Action::Bid, fields));
        }
        auctions
    }

    #[test]
    fn whatever_differs_gives_another_digest() {
        let success = ResultCode::Success;
        let mut variants = variants();
        variants.extend(auctions());
        let mut seen = std::collections::BTreeMap::new();
        for (at, events) in variants.iter().enumerate() {
            for result in [success, ResultCode::RiskNsf] {
                // With more before and after it, a difference does not get lost.
                let more = (success, Events::new());
                let outcomes = [more.clone(), (result, events.clone()), more];
                let earlier = seen.insert(of_all(&outcomes), (at, result));
                assert_eq!(earlier, None, "{events:?}");
            }
        }
        // The order of outcomes counts.
        let two = [&variants[1], &variants[2]].map(|events| (success, events.clone()));
        let [one, other] = two.clone();
        assert_ne!(of_all(&two), of_all(&[other, one.clone()]));
        // One outcome of two events is not two of one.
        let both = events(&[trade(1, 1), trade(2, 2)]);
        let each = [trade(1, 1), trade(2, 2)].map(|event| (success, events(&[event])));
        assert_ne!(of_all(&[(success, both)]), of_all(&each));
        assert_ne!(of_all(&[]), of_all(std::slice::from_ref(&one)));
    }

    /// The digest has the same value on every machine and in every later version.
    #[test]
    fn the_value_is_fixed() {
        let outcomes: Vec<_> = variants()
            .into_iter()
            .map(|events| (ResultCode::Success, events))
            .take(78)
            .collect();
        let mut digest = Digest::new();
        assert_eq!(digest.to_string(), "243f6a8885a308d3 after 0");
        for (result, events) in &outcomes {
            digest.fold(&Command::Nop, *result, events);
        }
        assert_eq!(digest.to_string(), "f8bb9eddb16cf504 after 78");
    }
}
