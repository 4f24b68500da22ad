//! Resting orders, and what every order must obey.

use std::mem::offset_of;

use super::SnapshotError;
use super::field::{Field, written};
use super::forms::{ExpiryForm, HiddenForm, OrderForm};
use super::money::Money;
use super::reader::{Reader, at_least, within};
use super::symbols::{Listed, forbid};
use super::writer::Writer;
use crate::book::{Book, RestingOrder, Turns};
use crate::command::{Action, OrderFlags, SymbolSpec, display_is_large_enough};
use crate::event::UserHint;
use crate::ids::{OrderId, UserId};
use crate::risk::{FUTURES_PRICE_MAX, Risk};
use crate::wire::Wire;

/// The length of one without conditions.
pub(super) const BYTES: usize = size_of::<OrderForm>();

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

    /// Returns the least and the greatest price at which orders of a side can rest.
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
            at_least("what is left of an order", at, left, 1)?;
            at_least("what is filled of an order", at, filled, 0)?;
        }
        forbid(left == 0, at, "an order", "nothing is left of it")?;
        let all = left.checked_add(hidden);
        let size = all.and_then(|all| all.checked_add(filled));
        let why = "it has more lots than 64 bits";
        forbid(size.is_none(), at, "an order", why)?;
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
        at_least("lots displayed at a time", at, display, 1)?;
        if self.is_pair && self.has_inverted {
            return Ok(());
        }
        within("displayed lots", at, left, 1, display)?;
        let size = left.saturating_add(filled).saturating_add(hidden);
        let why = "it displays less than a thousandth";
        forbid(
            !display_is_large_enough(display, size),
            at,
            "an iceberg order",
            why,
        )
    }

    pub(super) fn check_good_till(&self, at: usize, time: i64) -> Result<(), SnapshotError> {
        let is_over = self.clock.is_some_and(|now| time <= now);
        let why = "the time until which it lives is over";
        forbid(is_over, at, "an order", why)
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
    /// Takes when an order expires, and its turn, if it does.
    #[inline]
    pub(super) fn expiry(
        &mut self,
        expires: bool,
        fields: &mut Reader<'_>,
    ) -> Result<(Option<i64>, u32), SnapshotError> {
        if !expires {
            return Ok((None, 0));
        }
        let at = fields.at();
        let form: ExpiryForm = fields.get("the time until which an order lives")?;
        let time = form.good_till.get();
        self.terms.check_good_till(at, time)?;
        self.expiring += 1;
        Ok((Some(time), form.turn.get()))
    }

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
        let owner = owner.ok_or_else(|| SnapshotError::unknown("user", at, uid.0))?;
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
                at_least("a reserve price", at, reserve, price)?;
                i64::try_from(spec.held_per_lot(reserve)).ok()
            }
        };
        let held = per_lot.and_then(|per_lot| per_lot.checked_mul(lots));
        let why = "its hold has more than 64 bits";
        forbid(held.is_none(), at, "an order", why)?;
        Ok(held.unwrap_or(0))
    }
}

pub(super) fn encode(order: &RestingOrder, turns: &Turns, out: &mut Writer<'_>) {
    let displayed = order.size - order.filled - order.hidden;
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    out.put(&OrderForm {
        uid: order.uid.bytes(),
        order_id: order.order_id.bytes(),
        reserve_price: order.reserve_price.bytes(),
        left: displayed.bytes(),
        filled: written(Field::Filled, order.filled).bytes(),
        flags: written(Field::Flags, order.flags).code(),
        bits: bit(order.hidden > 0, HIDES) | bit(order.good_till.is_some(), EXPIRES),
    });
    if order.hidden > 0 {
        out.put(&HiddenForm {
            hidden: order.hidden.bytes(),
            display: written(Field::Display, order.display)
                .unwrap_or(displayed)
                .bytes(),
        });
    }
    if let Some(time) = order.good_till {
        let turn = turns.of(order.uid, order.order_id);
        out.put(&ExpiryForm {
            good_till: time.bytes(),
            turn: written(Field::Turn, turn).bytes(),
        });
    }
}

/// Puts an order into the book; returns the lots that it displays.
pub(super) fn decode(
    fields: &mut Reader<'_>,
    (side, price): (Action, i64),
    owned: &mut Owned<'_>,
) -> Result<i64, SnapshotError> {
    let at = fields.at();
    let form: OrderForm = fields.get("an order")?;
    let (reserve_price, left, filled) =
        (form.reserve_price.get(), form.left.get(), form.filled.get());
    let flags_at = at + offset_of!(OrderForm, flags);
    let flags = check_flags(flags_at, form.flags)?;
    let bits = form.bits;
    within("an order's bits", flags_at + 1, bits, 0, HIDES | EXPIRES)?;
    let (mut hidden, mut display) = (0, None);
    let terms = owned.terms;
    if bits & HIDES != 0 {
        let at = fields.at();
        let form: HiddenForm = fields.get("hidden lots")?;
        (hidden, display) = (form.hidden.get(), Some(form.display.get()));
        at_least("hidden lots", at, hidden, 1)?;
        terms.check_display(at, form.display.get(), [left, filled, hidden])?;
    }
    let (good_till, turn) = owned.expiry(bits & EXPIRES != 0, fields)?;
    let lots = terms.check_lots(at + 24, [left, filled, hidden])?;
    let order = RestingOrder {
        order_id: OrderId(form.order_id.get()),
        uid: UserId(form.uid.get()),
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
        return Err(SnapshotError::twice(at, order.order_id.0));
    }
    Ok(left)
}

pub(super) fn check_flags(at: usize, code: u8) -> Result<OrderFlags, SnapshotError> {
    let flags = OrderFlags::from_code(code);
    forbid(flags.is_none(), at, "an order's flag", "it is not known")?;
    Ok(flags.unwrap_or_default())
}
