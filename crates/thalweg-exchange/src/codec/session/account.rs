//! The views of a user's own account and orders.

use zerocopy::little_endian::{I64, I128, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer};
use crate::command::{Action, ConditionalOrder, OrderFlags, OrderType};
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};
use crate::report::OpenOrders;
use crate::risk::{Direction, Position, User, UserStatus};
use crate::wire::{AmountForm, Form, Wire, check_most, wire};

/// An account before its balances, positions, and amounts that wait.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AccountForm {
    uid: I64,
    last_transaction_id: I64,
    open_orders: U64,
}

wire! {
    struct PositionForm = PositionView {
        symbol: SymbolId, currency: CurrencyId, open: i64, open_price_sum: i64, profit: i64,
        pending_sell: i64, pending_buy: i64,
    }
    /// An order; its small bytes are the first two at `small`.
    struct OpenOrderForm = OpenOrder [
        action: Action, order_type: OrderType; flags: OrderFlags
        | trigger: "the trigger of an order without one",
        display: "the display size of an order without one",
        good_till: "the last time of an order without one"
    ] {
        symbol: SymbolId | small: u32, order_id: OrderId, price: i64, reserve_price: i64,
        size: i64, filled: i64, hidden: i64,
        trigger: Option<i64>, display: Option<i64>, good_till: Option<i64>,
    }
}

const BALANCE_BYTES: usize = size_of::<AmountForm<I64>>();
const POSITION_BYTES: usize = size_of::<PositionForm>();
pub(super) const ORDER_BYTES: usize = size_of::<OpenOrderForm>();
const WAITING_BYTES: usize = size_of::<AmountForm<I128>>();

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
        size_of::<AccountForm>()
            + 3 * size_of::<U32>()
            + self.balances.len() * BALANCE_BYTES
            + self.positions.len() * POSITION_BYTES
            + self.waiting.len() * WAITING_BYTES
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.put(&AccountForm {
            uid: self.uid.bytes(),
            last_transaction_id: self.last_transaction_id.bytes(),
            open_orders: self.open_orders.bytes(),
        });
        out.count(self.balances.len());
        out.count(self.positions.len());
        out.count(self.waiting.len());
        self.balances
            .iter()
            .for_each(|balance| out.put(&AmountForm::of(balance)));
        self.positions
            .iter()
            .for_each(|position| out.value::<PositionForm>(position));
        self.waiting
            .iter()
            .for_each(|amount| out.put(&AmountForm::of(amount)));
    }

    /// The status was in an own byte.
    pub(super) fn read(status: UserStatus, fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let form = fields.get::<AccountForm>()?;
        let balances = fields.count("balances", BALANCE_BYTES)?;
        let positions = fields.count("positions", POSITION_BYTES)?;
        let waiting = fields.count("waiting amounts", WAITING_BYTES)?;
        Ok(Self {
            uid: UserId(form.uid.get()),
            status,
            last_transaction_id: form.last_transaction_id.get(),
            open_orders: form.open_orders.get(),
            balances: fields.amounts(balances)?,
            positions: fields.values::<PositionForm>(positions)?,
            waiting: fields.amounts(waiting)?,
        })
    }
}

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
    /// Returns all of a user's orders: those that rest, then those that wait.
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
        let ([bits, flags], mut form) = OpenOrderForm::of(self);
        form.small = U32::from_bytes([bits, flags, 0, 0]);
        out.put(&form);
    }

    pub(super) fn read(fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let at = [fields.at() + size_of::<U32>(), fields.at()];
        let mut form = *fields.get::<OpenOrderForm>()?;
        let [bits, flags, third, fourth] = form.small.to_bytes();
        form.small = U32::from_bytes([0, 0, third, fourth]);
        let what = "the bits of an open order";
        check_most(what, at[0], bits, OpenOrderForm::SMALL_MAX[0])?;
        form.value([bits, flags], at)
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
