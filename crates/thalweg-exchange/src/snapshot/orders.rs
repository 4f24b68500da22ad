//! Resting orders, and what every order must obey.

use super::SnapshotError;
use super::field::{Field, written};
use super::money::Money;
use super::reader::{Reader, within};
use super::symbols::{Listed, forbid};
use super::writer::Writer;
use crate::book::{Book, RestingOrder, Turns};
use crate::command::{Action, OrderFlags, SymbolSpec, display_is_large_enough};
use crate::event::UserHint;
use crate::ids::{OrderId, UserId};
use crate::risk::{FUTURES_PRICE_MAX, Risk};

/// One without conditions.
pub(super) const BYTES: usize = 42;

const HIDES: u8 = 1;
const EXPIRES: u8 = 2;

/// The conditions that a symbol sets for its orders.
#[derive(Clone, Copy, Debug)]
pub(super) struct SymbolConditions {
    spec: SymbolSpec,
    is_pair: bool,
    /// True for futures that are traded: they are covered.
    pub(super) is_covered: bool,
    pub(super) is_auction: bool,
    /// The base and the quote currency in the ledger; of futures twice the quote currency. `None`
    /// where the ledger has none.
    pub(super) currencies: Option<[u32; 2]>,
    /// Prices are above zero.
    has_prices: bool,
    /// Lots are not: an order of negative size was accepted once.
    has_inverted: bool,
    ask_min: i64,
    /// The largest order in a pair that is remembered, where one is.
    size_max: Option<i64>,
    /// The price band of covered futures.
    band: (i64, i64),
    clock: Option<i64>,
    /// The price of the last trade, which no waiting order has been reached by.
    pub(super) passed: Option<i64>,
}

impl SymbolConditions {
    pub(super) fn new(symbol: &Listed, risk: &Risk) -> Self {
        let rules = risk.rules();
        let spec = symbol.saved.spec;
        let is_pair = symbol.is_pair();
        let is_traded = symbol.is_futures() && rules.margin_trading;
        let quote = risk.currency_slot(spec.quote_currency);
        let base = if is_pair {
            risk.currency_slot(spec.base_currency)
        } else {
            quote.filter(|_| is_traded)
        };
        let limits = symbol.saved.limits;
        let is_covered = is_traded && rules.cover_futures;
        let is_auction = limits.auction;
        Self {
            spec,
            is_pair,
            is_covered,
            is_auction,
            currencies: base.zip(quote).map(|(base, quote)| [base, quote]),
            has_prices: rules.refuse_not_positive,
            has_inverted: symbol.saved.seen.inverted && !rules.refuse_not_positive,
            ask_min: if is_pair && rules.refuse_moved_ask_under_fee {
                spec.lowest_ask()
            } else {
                i64::MIN
            },
            size_max: (is_pair && rules.remember_orders()).then_some(symbol.saved.seen.size_max),
            band: match is_covered {
                // Orders outside the band are removed in further commands.
                true if rules.bound_work && (limits.busy || is_auction) => (1, FUTURES_PRICE_MAX),
                true => (limits.low, limits.high),
                false => (i64::MIN, i64::MAX),
            },
            // Where work is bounded, expired orders may be left over for the next clock command.
            clock: risk.clock().filter(|_| !rules.bound_work),
            passed: symbol
                .traded_at
                .filter(|_| rules.trigger_passed_stops && !is_auction && !symbol.has_left_over),
        }
    }

    /// The least and the greatest price at which orders of a side can rest.
    pub(super) fn prices(&self, side: Action) -> (i64, i64) {
        let mut least = self.band.0;
        if self.has_prices {
            least = least.max(1);
        }
        if side == Action::Ask {
            least = least.max(self.ask_min);
        }
        (least, self.band.1)
    }

    /// Looks at the sizes of an order, and gives all that is left of it.
    fn check_lots(
        &self,
        at: usize,
        [left, filled, hidden]: [i64; 3],
    ) -> Result<i64, SnapshotError> {
        let may_invert = self.is_pair && self.has_inverted;
        if !may_invert {
            within("what is left of an order", at, left, 1, i64::MAX)?;
            within("what is filled of an order", at, filled, 0, i64::MAX)?;
        }
        forbid(left == 0, at, "an order", "nothing is left of it")?;
        let all = left.checked_add(hidden);
        let size = all.and_then(|all| all.checked_add(filled));
        forbid(
            size.is_none(),
            at,
            "an order",
            "it has more lots than 64 bits",
        )?;
        if let (Some(size), Some(most)) = (size, self.size_max) {
            // A move takes room for this number of lots.
            let (size, most) = (i128::from(size).abs(), most.into());
            within("the size of an order", at, size, 0, most)?;
        }
        Ok(all.unwrap_or(left))
    }

    /// A size of an iceberg order.
    fn check_display(
        &self,
        at: usize,
        display: i64,
        [left, filled, hidden]: [i64; 3],
    ) -> Result<(), SnapshotError> {
        within("lots shown at a time", at, display, 1, i64::MAX)?;
        if self.is_pair && self.has_inverted {
            return Ok(());
        }
        within("what is left to show", at, left, 1, display)?;
        let size = left.saturating_add(filled).saturating_add(hidden);
        let why = "it shows less than a thousandth";
        forbid(
            !display_is_large_enough(display, size),
            at,
            "an iceberg order",
            why,
        )
    }

    pub(super) fn check_good_till(&self, at: usize, time: i64) -> Result<(), SnapshotError> {
        let is_over = self.clock.is_some_and(|now| time <= now);
        forbid(
            is_over,
            at,
            "an order",
            "the time until which it lives is over",
        )
    }
}

/// Where orders go as they are decoded.
#[derive(Debug)]
pub(super) struct Owned<'d> {
    pub(super) book: &'d mut Book,
    pub(super) risk: &'d mut Risk,
    pub(super) money: &'d mut Money,
    pub(super) terms: &'d SymbolConditions,
    /// Orders that expire, so far.
    pub(super) expiring: usize,
}

impl Owned<'_> {
    /// Counts an order's lots for its owner, and what is held or reserved for them.
    #[inline]
    pub(super) fn own(
        &mut self,
        at: usize,
        uid: UserId,
        (side, price, reserve): (Action, i64, i64),
        lots: i64,
    ) -> Result<UserHint, SnapshotError> {
        let owner = self.risk.restore_open_order(uid);
        let owner = owner.ok_or(SnapshotError::Unknown {
            what: "user",
            at,
            id: uid.0,
        })?;
        let Some(currencies) = self.terms.currencies else {
            return Ok(owner);
        };
        if self.terms.is_pair {
            let held = self.held(at, (side, price, reserve), lots)?;
            self.money.note_hold(currencies[side as usize], held);
            return Ok(owner);
        }
        let symbol = self.terms.spec.id;
        match self.risk.restore_pending(owner, symbol, (side, lots)) {
            Some(true) => {}
            Some(false) => {
                let why = "its owner's have more lots than 64 bits";
                forbid(true, at, "an order", why)?;
            }
            None => forbid(true, at, "an order", "its owner has no record in futures")?,
        }
        if !self.terms.is_covered {
            let reserved = self.risk.reserved_for(symbol, price, lots);
            self.money.note_reserved(currencies[1], reserved);
        }
        Ok(owner)
    }

    /// Returns the hold for lots of an order in a pair.
    #[inline]
    fn held(
        &self,
        at: usize,
        (side, price, reserve): (Action, i64, i64),
        lots: i64,
    ) -> Result<i64, SnapshotError> {
        let spec = &self.terms.spec;
        let per_lot = match side {
            Action::Ask => Some(spec.base_scale),
            Action::Bid => {
                within("a reserve price", at, reserve, price, i64::MAX)?;
                i64::try_from(spec.held_per_lot(reserve)).ok()
            }
        };
        let held = per_lot.and_then(|per_lot| per_lot.checked_mul(lots));
        forbid(
            held.is_none(),
            at,
            "an order",
            "its hold has more than 64 bits",
        )?;
        Ok(held.unwrap_or(0))
    }
}

pub(super) fn encode(order: &RestingOrder, turns: &Turns, out: &mut Writer<'_>) {
    let shown = order.size - order.filled - order.hidden;
    let fields = [
        order.uid.0,
        order.order_id.0,
        order.reserve_price,
        shown,
        written(Field::Filled, order.filled),
    ];
    let mut bytes = [0; BYTES];
    for (place, field) in bytes.as_chunks_mut().0.iter_mut().zip(fields) {
        *place = field.to_le_bytes();
    }
    let hides = if order.hidden > 0 { HIDES } else { 0 };
    let expires = if order.good_till.is_some() {
        EXPIRES
    } else {
        0
    };
    bytes[BYTES - 2] = written(Field::Flags, order.flags).code();
    bytes[BYTES - 1] = hides | expires;
    out.bytes(bytes);
    if order.hidden > 0 {
        let display = written(Field::Display, order.display);
        out.longs([order.hidden, display.unwrap_or(shown)]);
    }
    if let Some(time) = order.good_till {
        out.long(time);
        let turn = turns.of(order.uid, order.order_id);
        out.bytes(written(Field::Turn, turn).to_le_bytes());
    }
}

/// Puts an order into the book; gives the lots that it shows.
pub(super) fn decode(
    fields: &mut Reader<'_>,
    (side, price): (Action, i64),
    owned: &mut Owned<'_>,
) -> Result<i64, SnapshotError> {
    let at = fields.at();
    let [uid, id, reserve_price, left, filled] = fields.longs("an order")?;
    let flags = decode_flags(fields)?;
    let bits = fields.small("an order's bits", HIDES | EXPIRES)?;
    let (mut hidden, mut display, mut good_till, mut turn) = (0, None, None, 0);
    let terms = owned.terms;
    if bits & HIDES != 0 {
        let at = fields.at();
        let [lots, shown] = fields.longs("hidden lots")?;
        within("hidden lots", at, lots, 1, i64::MAX)?;
        (hidden, display) = (lots, Some(shown));
        terms.check_display(at, shown, [left, filled, hidden])?;
    }
    if bits & EXPIRES != 0 {
        let at = fields.at();
        let time = fields.long("the time until which an order lives")?;
        terms.check_good_till(at, time)?;
        (good_till, turn) = (Some(time), fields.word("an order's turn")?);
        owned.expiring += 1;
    }
    let lots = terms.check_lots(at + 24, [left, filled, hidden])?;
    let order = RestingOrder {
        order_id: OrderId(id),
        uid: UserId(uid),
        action: side,
        price,
        reserve_price,
        size: lots + filled,
        filled,
        hidden,
        display,
        good_till,
        flags,
    };
    let owner = owned.own(at, order.uid, (side, price, reserve_price), lots)?;
    if !owned.book.restore_resting(&order, turn, owner) {
        return Err(SnapshotError::Twice { at, order: id });
    }
    Ok(left)
}

pub(super) fn decode_flags(fields: &mut Reader<'_>) -> Result<OrderFlags, SnapshotError> {
    let at = fields.at();
    let code = fields.byte("an order's flags")?;
    let flags = OrderFlags::from_code(code);
    forbid(flags.is_none(), at, "an order's flag", "it is not known")?;
    Ok(flags.unwrap_or_default())
}
