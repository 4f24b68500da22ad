//! The commands that each role may send.

use thiserror::Error;

use crate::command::{Amend, Command, ConditionalOrder, Place};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::session::Role;

/// A command that a role has not; given back.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a session with role {role} has no such command")]
pub struct NotForRole {
    /// The role.
    pub role: Role,
    /// The command.
    pub command: Command,
}

/// A command about the orders of one user: a new one, its change, its cancel. Nothing else can be
/// put in here, and so nothing else comes out.
///
/// ```
/// use thalweg_exchange::codec::session::TradeCommand;
/// use thalweg_exchange::{Command, UserId};
///
/// assert!(TradeCommand::try_from(Command::AddUser { uid: UserId(7) }).is_err());
/// assert_eq!(TradeCommand::cancel_all(UserId(7), None).user(), UserId(7));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TradeCommand {
    command: Command,
    user: UserId,
}

impl TradeCommand {
    /// Takes an order out of its book.
    #[must_use]
    pub const fn cancel(uid: UserId, symbol: SymbolId, order_id: OrderId) -> Self {
        let command = Command::cancel(uid, symbol, order_id);
        Self { command, user: uid }
    }

    /// Changes an order's price.
    #[must_use]
    pub const fn move_to(uid: UserId, symbol: SymbolId, order_id: OrderId, price: i64) -> Self {
        let command = Command::move_to(uid, symbol, order_id, price);
        Self { command, user: uid }
    }

    /// Takes lots off an order.
    #[must_use]
    pub const fn reduce(uid: UserId, symbol: SymbolId, order_id: OrderId, by: i64) -> Self {
        let command = Command::reduce(uid, symbol, order_id, by);
        Self { command, user: uid }
    }

    /// Cancels all orders of the user, in a symbol or everywhere.
    #[must_use]
    pub const fn cancel_all(user: UserId, symbol: Option<SymbolId>) -> Self {
        let command = Command::cancel_all(Some(user), symbol);
        Self { command, user }
    }

    /// Returns the user whose orders a command is about; `None` if traders may not send it.
    pub(super) fn user_of(command: &Command) -> Option<UserId> {
        match command {
            Command::Place(place) => Some(place.uid),
            Command::PlaceConditional(order) => Some(order.place.uid),
            Command::Amend(amend) => Some(amend.uid),
            Command::Cancel { uid, .. }
            | Command::Move { uid, .. }
            | Command::Reduce { uid, .. } => Some(*uid),
            Command::CancelAll { uid, .. } => *uid,
            _ => None,
        }
    }

    /// Returns the user whose orders it is about.
    #[must_use]
    pub const fn user(&self) -> UserId {
        self.user
    }

    /// Returns the command as its general type.
    #[must_use]
    pub const fn as_command(&self) -> &Command {
        &self.command
    }

    /// Returns the command, as the exchange takes it.
    #[must_use]
    pub fn into_command(self) -> Command {
        self.command
    }
}

/// Each is a command about the orders of the user that it names.
macro_rules! from_orders {
    ($($order:ident: $($user:ident).+;)*) => {$(
        impl From<$order> for TradeCommand {
            fn from(order: $order) -> Self {
                let user = order.$($user).+;
                let command = order.into();
                Self { command, user }
            }
        }
    )*};
}

from_orders! {
    Place: uid;
    ConditionalOrder: place.uid;
    Amend: uid;
}

impl TryFrom<Command> for TradeCommand {
    type Error = NotForRole;

    fn try_from(command: Command) -> Result<Self, NotForRole> {
        match Self::user_of(&command) {
            Some(user) => Ok(Self { command, user }),
            None => Err(NotForRole {
                role: Role::Trade,
                command,
            }),
        }
    }
}

/// A command of the market's operator: users, money, symbols, halts, the time, and the cancel of
/// any user's orders. No orders, and neither [`Disconnect`](Command::Disconnect), which is the
/// server's own, nor [`Reset`](Command::Reset).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminCommand(Command);

impl AdminCommand {
    /// Returns the command as its general type.
    #[must_use]
    pub const fn as_command(&self) -> &Command {
        &self.0
    }

    /// Returns the command, as the exchange takes it.
    #[must_use]
    pub fn into_command(self) -> Command {
        self.0
    }
}

impl TryFrom<Command> for AdminCommand {
    type Error = NotForRole;

    fn try_from(command: Command) -> Result<Self, NotForRole> {
        match command {
            Command::Cancel { .. }
            | Command::CancelAll { .. }
            | Command::AddUser { .. }
            | Command::Balance { .. }
            | Command::PayFees { .. }
            | Command::SetLimits { .. }
            | Command::Suspend { .. }
            | Command::Resume { .. }
            | Command::AddSymbols(_)
            | Command::AddAccounts(_)
            | Command::SetPriceBand { .. }
            | Command::SetMarketProtection { .. }
            | Command::Halt { .. }
            | Command::Unhalt { .. }
            | Command::StartAuction { .. }
            | Command::Uncross { .. }
            | Command::RunStops { .. }
            | Command::RemoveSymbol { .. }
            | Command::Clock { .. }
            | Command::Nop => Ok(Self(command)),
            Command::Place(_)
            | Command::PlaceConditional(_)
            | Command::Move { .. }
            | Command::Amend(_)
            | Command::Reduce { .. }
            | Command::Disconnect { .. }
            | Command::Reset => Err(NotForRole {
                role: Role::Admin,
                command,
            }),
        }
    }
}
