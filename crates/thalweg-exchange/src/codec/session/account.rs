//! The views of a user's own account and orders.

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer, action, order_type};
use crate::command::{Action, ConditionalOrder, OrderFlags, OrderType};
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};
use crate::report::OpenOrders;
use crate::risk::{Direction, Position, User, UserStatus};

const BALANCE_BYTES: usize = 12;
const POSITION_BYTES: usize = 48;
const WAITING_BYTES: usize = 20;
/// User, last transaction, open orders, three numbers of items.
const ACCOUNT_BYTES_MIN: usize = 36;
pub(super) const ORDER_BYTES: usize = 80;

/// A user: balances, positions, what waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountView {
    /// The user.
    pub uid: UserId,
    /// Whether the user may trade.
    pub status: UserStatus,
    /// The transaction id of the last adjustment of a balance.
    pub last_transaction_id: i64,
    /// How many open orders there are.
    pub open_orders: u64,
    /// The free balances, by ascending currency.
    pub balances: Vec<(CurrencyId, i64)>,
    /// Positions in futures, by ascending symbol.
    pub positions: Vec<PositionView>,
    /// Profit and loss realised in covered futures that is neither paid out nor in yet, by
    /// ascending currency.
    pub waiting: Vec<(CurrencyId, i128)>,
}

/// A position in futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionView {
    /// The symbol.
    pub symbol: SymbolId,
    /// Its quote currency.
    pub currency: CurrencyId,
    /// Open lots; negative of what is sold.
    pub open: i64,
    /// Σ price × lots of what is open.
    pub open_price_sum: i64,
    /// Realised so far and not booked yet.
    pub profit: i64,
    /// Lots of sell orders that wait or rest.
    pub pending_sell: i64,
    /// Lots of buy orders that wait or rest.
    pub pending_buy: i64,
}

impl From<&Position> for PositionView {
    fn from(position: &Position) -> Self {
        Self {
            symbol: position.symbol,
            currency: position.currency,
            open: match position.direction {
                Direction::Short => -position.open_volume,
                Direction::Empty => 0,
                Direction::Long => position.open_volume,
            },
            open_price_sum: position.open_price_sum,
            profit: position.profit,
            pending_sell: position.pending_sell,
            pending_buy: position.pending_buy,
        }
    }
}

impl From<&User> for AccountView {
    fn from(user: &User) -> Self {
        Self {
            uid: user.uid,
            status: user.status,
            last_transaction_id: user.last_transaction_id,
            open_orders: user.open_orders(),
            balances: user.balances().collect(),
            positions: user.positions().iter().map(PositionView::from).collect(),
            waiting: user.waiting().to_vec(),
        }
    }
}

impl AccountView {
    pub(super) fn bytes(&self) -> usize {
        ACCOUNT_BYTES_MIN
            + self.balances.len() * BALANCE_BYTES
            + self.positions.len() * POSITION_BYTES
            + self.waiting.len() * WAITING_BYTES
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        let open_orders = self.open_orders as i64;
        out.longs([self.uid.0, self.last_transaction_id, open_orders]);
        out.count(self.balances.len());
        out.count(self.positions.len());
        out.count(self.waiting.len());
        for &(currency, amount) in &self.balances {
            out.int(currency.0);
            out.long(amount);
        }
        for position in &self.positions {
            out.int(position.symbol.0);
            out.int(position.currency.0);
            out.longs([position.open, position.open_price_sum, position.profit]);
            out.longs([position.pending_sell, position.pending_buy]);
        }
        for &(currency, amount) in &self.waiting {
            out.int(currency.0);
            out.bytes(amount.to_le_bytes());
        }
    }

    /// The status was in an own byte.
    pub(super) fn read(status: u8, fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let [uid, last_transaction_id, open_orders] = fields.longs()?;
        let balances = fields.count("balances", BALANCE_BYTES)?;
        let positions = fields.count("positions", POSITION_BYTES)?;
        let waiting = fields.count("waiting amounts", WAITING_BYTES)?;
        let mut view = Self {
            uid: UserId(uid),
            status: match status {
                0 => UserStatus::Active,
                _ => UserStatus::Suspended,
            },
            last_transaction_id,
            open_orders: open_orders as u64,
            balances: Vec::with_capacity(balances),
            positions: Vec::with_capacity(positions),
            waiting: Vec::with_capacity(waiting),
        };
        for _ in 0..balances {
            view.balances
                .push((CurrencyId(fields.int()?), fields.long()?));
        }
        for _ in 0..positions {
            let (symbol, currency) = (SymbolId(fields.int()?), CurrencyId(fields.int()?));
            let [open, open_price_sum, profit, pending_sell, pending_buy] = fields.longs()?;
            view.positions.push(PositionView {
                symbol,
                currency,
                open,
                open_price_sum,
                profit,
                pending_sell,
                pending_buy,
            });
        }
        for _ in 0..waiting {
            let currency = CurrencyId(fields.int()?);
            let [low, high] = fields.longs()?;
            let amount = i128::from(low as u64) | i128::from(high) << 64;
            view.waiting.push((currency, amount));
        }
        Ok(view)
    }
}

/// Bits of an order: side, type (three bits), which of trigger, display and last time it has.
const SIDE: u8 = 1;
const TYPE_BIT: u32 = 1;
const CONDITION_BITS: [u8; 3] = [1 << 4, 1 << 5, 1 << 6];
const BITS_MAX: u8 = 0x7F;

/// An order of a user that rests, or waits for its trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOrder {
    /// Its symbol.
    pub symbol: SymbolId,
    /// Its id.
    pub order_id: OrderId,
    /// Its side.
    pub action: Action,
    /// Its type; one that rests is [`Gtc`](OrderType::Gtc).
    pub order_type: OrderType,
    /// Its flags: post-only, self-trade prevention, cancel on disconnect.
    pub flags: OrderFlags,
    /// Its price.
    pub price: i64,
    /// Its reserve price.
    pub reserve_price: i64,
    /// Its size in lots, what is filled included.
    pub size: i64,
    /// Lots that are filled.
    pub filled: i64,
    /// Lots that are neither filled nor shown.
    pub hidden: i64,
    /// The trigger that it waits for.
    pub trigger: Option<i64>,
    /// How many lots it shows at a time.
    pub display: Option<i64>,
    /// When it expires.
    pub good_till: Option<i64>,
}

impl OpenOrder {
    /// All of a user's orders: those that rest, then those that wait.
    #[must_use]
    pub fn all(orders: &OpenOrders) -> Vec<Self> {
        let resting = orders.resting.iter().map(|(symbol, order)| Self {
            symbol: *symbol,
            order_id: order.order_id,
            action: order.action,
            order_type: OrderType::Gtc,
            flags: order.flags,
            price: order.price,
            reserve_price: order.reserve_price,
            size: order.size,
            filled: order.filled,
            hidden: order.hidden,
            trigger: None,
            display: order.display,
            good_till: order.good_till,
        });
        resting
            .chain(orders.waiting.iter().map(Self::from))
            .collect()
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        let conditions = [self.trigger, self.display, self.good_till];
        let mut bits = self.action as u8 | (self.order_type as u8) << TYPE_BIT;
        for (condition, bit) in conditions.iter().zip(CONDITION_BITS) {
            bits |= if condition.is_some() { bit } else { 0 };
        }
        out.int(self.symbol.0);
        out.bytes([bits, self.flags.code(), 0, 0]);
        out.longs([self.order_id.0, self.price, self.reserve_price]);
        out.longs([self.size, self.filled, self.hidden]);
        out.longs(conditions.map(Option::unwrap_or_default));
    }

    pub(super) fn read(fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let symbol = SymbolId(fields.int()?);
        let at = fields.at();
        let own = fields.int()?;
        let [bits, flags, rest @ ..] = own.to_le_bytes();
        let unknown = CodecError::UnknownCode {
            what: "the bits of an open order",
            at,
            code: own.into(),
        };
        let known = (bits <= BITS_MAX && rest == [0; 2]).then(|| {
            let order_type = order_type(bits >> TYPE_BIT & 7)?;
            Some((order_type, OrderFlags::from_code(flags)?))
        });
        let (order_type, flags) = known.flatten().ok_or(unknown)?;
        let [order_id, price, reserve_price] = fields.longs()?;
        let [size, filled, hidden] = fields.longs()?;
        let [trigger, display, good_till] = CONDITION_BITS.map(|bit| bits & bit != 0);
        Ok(Self {
            symbol,
            order_id: OrderId(order_id),
            action: action(bits & SIDE),
            order_type,
            flags,
            price,
            reserve_price,
            size,
            filled,
            hidden,
            trigger: fields.optional("the trigger of an order without one", trigger)?,
            display: fields.optional("the display size of an order without one", display)?,
            good_till: fields.optional("the last time of an order without one", good_till)?,
        })
    }
}

impl From<&ConditionalOrder> for OpenOrder {
    /// As it waits.
    fn from(order: &ConditionalOrder) -> Self {
        let place = &order.place;
        Self {
            symbol: place.symbol,
            order_id: place.order_id,
            action: place.action,
            order_type: place.order_type,
            flags: place.flags,
            price: place.price,
            reserve_price: place.reserve_price,
            size: place.size,
            filled: 0,
            hidden: 0,
            trigger: order.trigger,
            display: order.display,
            good_till: order.good_till,
        }
    }
}
