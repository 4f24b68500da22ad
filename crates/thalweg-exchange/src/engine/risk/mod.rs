//! The risk check and settlement: users, balances, symbols, fees. Knows no books.
//!
//! [`Risk::check`] holds money before a command may match; [`Risk::settle`] books its outcome. A
//! check that refuses changes nothing, but that it may take away the empty record that a futures
//! order of no size left.
//!
//! Most commands take the fast path of the `fast_path` module, which recognises orders that need no
//! further check; the other modules define the answer.
//!
//! # Holds
//! A settlement in a pair takes no more than was held, so that it only raises balances: with `f` =
//! taker fee ≥ maker fee = `m` per lot (of fees of the value: see `fees`), prices above zero, and
//! each order's lots held for at its reserve price or budget,
//! - a buying maker gets s·((hold − p)·qK + f − m) ≥ 0, as a bid never rests above its reserve;
//! - a buying taker gets (Σ s·hold − Σ s·p)·qK ≥ 0, as it never pays above its limit, which is not
//!   above its reserve; with a budget: cost ≤ budget;
//! - a seller with a limit price gets s·(p·qK − fee) ≥ 0, as its limit covers the taker fee;
//! - a budget ASK sells no lot under its fee, where budgets are bounded; where they are not, it may
//!   lose what `reference` makes room for;
//! - rejects, reductions and removals give back part of a hold ≥ 0;
//! - a market order never pays above its worst price nor sells below it, which are a limit here;
//! - a stop order that the command triggers has a limit price, and its lots are held for since it
//!   began to wait: it is settled as a taker above, for any owner;
//! - an order that must not meet its owner's is filled in part at most where it has a limit price
//!   or no budget to bring in: a FOK_BUDGET ASK counts only lots that it would get.
//!
//! The exceptions are quirks of [`Rules::REFERENCE`]: a maker fee above the taker fee, sizes and
//! prices not above zero, asks moved under the fee. There must be room for what they lose before
//! such a command is accepted.
//!
//! # Overflow
//! See the `ledger` module: whatever could leave 64 bits in a settlement is refused here, with
//! [`ResultCode::RiskArithmeticOverflow`]. Margins and estimates are computed in 128 bits, and
//! refused where one leaves 64. In matching, sums of sizes stay inside 64 bits because
//! every resting lot stands for at least one unit of held (or reserved) money.

mod admin;
mod amend;
mod auction;
mod conditional;
mod cover;
mod fast_path;
mod fees;
mod futures;
mod gate;
mod ids;
mod ledger;
mod limits;
mod pair;
mod position;
mod reference;
mod removed;
mod saved;
mod settlement;
mod symbol;
mod trades;
mod trading;
mod user;
mod view;

pub use self::cover::{FUTURES_LOTS_MAX, FUTURES_PRICE_MAX};
pub use self::gate::TradingLimits;
pub use self::ids::ID_WINDOW;
pub(crate) use self::ids::Ids;
pub use self::ledger::Currency;
use self::ledger::Ledger;
use self::limits::FastPathLimits;
pub use self::position::{Direction, LastPrices, Position};
pub(crate) use self::reference::Seen;
pub(crate) use self::saved::{Account, Kept, SavedSymbol};
use self::symbol::{Symbol, Symbols};
use self::user::Users;
pub use self::user::{User, UserStatus};
use crate::command::{Command, Place, UserLimits};
use crate::event::UserHint;
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// Users, balances, symbols and totals: one of the parts of a [`State`](crate::State).
#[derive(Clone, Debug)]
pub struct Risk {
    rules: Rules,
    users: Users,
    symbols: Symbols,
    ledger: Ledger,
    /// The time of the last [`Command::Clock`].
    clock: Option<i64>,
    /// The limits of every user without limits of its own.
    limits: UserLimits,
    fast_path_limits: FastPathLimits,
    /// Raised with every change of a symbol's gate; see [`User::kept_cover`].
    epoch: u64,
}

impl Risk {
    /// Returns a state without users, symbols and money.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            users: Users::default(),
            symbols: Symbols::default(),
            ledger: Ledger::default(),
            clock: None,
            limits: UserLimits::NONE,
            fast_path_limits: FastPathLimits::of(&UserLimits::NONE),
            epoch: 1,
        }
    }

    /// Returns the rules that apply.
    #[must_use]
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Runs the first part of [`apply`](crate::apply), for tests of it.
    ///
    /// Checks a command, and if it is accepted holds the money for it, or does what it asks where
    /// that needs no book.
    ///
    /// Returns [`ResultCode::ValidForMatchingEngine`] for accepted commands that go to a book,
    /// [`ResultCode::Success`] for the others, and otherwise why it is refused, having changed
    /// nothing. Must be followed by matching, also when it refuses.
    #[doc(hidden)]
    #[inline]
    pub fn check(&mut self, command: &Command) -> ResultCode {
        self.check_hinted(command).0
    }

    /// Checks a command as [`check`](Self::check) does, and returns where the owner of a new order
    /// is kept: matching may give it back with the order's events
    /// ([`Matching::execute_for`](crate::matching::Matching::execute_for)), which spares settlement
    /// a look-up.
    #[inline]
    pub(crate) fn check_hinted(&mut self, command: &Command) -> (ResultCode, UserHint) {
        match *command {
            Command::Move {
                uid, symbol, price, ..
            } if self.passes_move(uid, symbol, price) => {
                (ResultCode::ValidForMatchingEngine, UserHint::UNKNOWN)
            }
            Command::Cancel { .. } | Command::Reduce { .. } => {
                (ResultCode::ValidForMatchingEngine, UserHint::UNKNOWN)
            }
            Command::Place(ref place) => self.check_new(place, command),
            _ => self.check_other(command),
        }
    }

    #[inline(never)]
    fn check_new(&mut self, place: &Place, command: &Command) -> (ResultCode, UserHint) {
        let pair = self.pair(place.symbol);
        match pair.and_then(|mut pair| pair.hold(place)) {
            Some(owner) => (ResultCode::ValidForMatchingEngine, owner),
            None => self.check_other(command),
        }
    }

    #[inline(never)]
    pub(crate) fn check_other(&mut self, command: &Command) -> (ResultCode, UserHint) {
        let passes = ResultCode::ValidForMatchingEngine;
        match *command {
            Command::Move {
                uid, symbol, price, ..
            } if self.move_takes_fast_path(uid, symbol, price) => {
                return (passes, UserHint::UNKNOWN);
            }
            Command::Place(ref place) => {
                let owner = self.place_in_futures_fast(place).map(UserHint);
                if let Some(owner) = owner.or_else(|| self.place_fast(place)) {
                    return (passes, owner);
                }
            }
            _ => {}
        }
        self.check_slow(command)
    }

    #[cold]
    fn check_slow(&mut self, command: &Command) -> (ResultCode, UserHint) {
        let checked = self.checked(command);
        let mut owner = None;
        if let Command::Place(place) = command {
            owner = self.users.slot(place.uid).map(UserHint);
            if checked.is_ok() {
                self.bring_near(place);
            }
        }
        let (Ok(code) | Err(code)) = checked;
        (code, owner.unwrap_or(UserHint::UNKNOWN))
    }

    /// Brings the balances that an accepted order in a pair is about near: the next one of its
    /// owner may be about the same.
    fn bring_near(&mut self, place: &Place) {
        let symbol = self.symbols.get(place.symbol);
        if let Some(symbol) = symbol.filter(|symbol| symbol.is_pair()) {
            self.users.bring_near(place.uid, symbol.currencies);
        }
    }

    fn checked(&mut self, command: &Command) -> Result<ResultCode, ResultCode> {
        match command {
            Command::Place(place) => {
                return self.check_place(place, place.order_type.has_limit());
            }
            Command::Move {
                uid, symbol, price, ..
            } => {
                return self.check_move(*uid, *symbol, *price);
            }
            Command::Cancel { .. } | Command::Reduce { .. } | Command::CancelAll { .. } => {
                return Ok(ResultCode::ValidForMatchingEngine);
            }
            Command::AddUser { uid } => self.add_user(*uid)?,
            Command::Balance {
                uid,
                currency,
                amount,
                transaction_id,
                kind,
            } => {
                self.adjust(*uid, *currency, *amount, *transaction_id, *kind)?;
            }
            Command::PayFees {
                uid,
                currency,
                amount,
                transaction_id,
            } => self.pay_fees((*uid, *currency), *amount, *transaction_id)?,
            Command::SetLimits { uid, limits } => self.set_limits_of(*uid, *limits)?,
            Command::Suspend { uid } => self.suspend(*uid)?,
            Command::Resume { uid } => self.resume(*uid)?,
            Command::AddSymbols(specs) => self.add_symbols(specs)?,
            Command::AddAccounts(accounts) => self.add_accounts(accounts)?,
            Command::SetPriceBand { symbol, low, high } => self.set_band(*symbol, *low, *high)?,
            Command::SetMarketProtection { symbol, ticks } => {
                if self.symbols.get(*symbol).is_none() {
                    return Err(ResultCode::InvalidSymbol);
                }
                if *ticks < 0 {
                    return Err(ResultCode::SymbolInvalidSpec);
                }
            }
            Command::Halt { symbol } => self.halt(*symbol, true)?,
            Command::Unhalt { symbol } => self.halt(*symbol, false)?,
            Command::RemoveSymbol { symbol } => return self.check_removal(*symbol),
            Command::StartAuction { symbol } => self.start_auction(*symbol)?,
            Command::Uncross { symbol, reference } => {
                return self.check_uncross(*symbol, *reference);
            }
            Command::RunStops { symbol } => return self.check_run_stops(*symbol),
            Command::PlaceWith(order) => return self.check_place_with(order),
            Command::Amend(amend) => return self.check_amend(amend),
            Command::Clock { time } => self.set_clock(*time)?,
            Command::Nop | Command::Disconnect { .. } => {}
            Command::Reset => return self.check_reset(),
        }
        Ok(ResultCode::Success)
    }

    /// True where users or symbols are too many for the nearer caches, so that asking ahead pays.
    pub(crate) const fn is_large(&self) -> bool {
        self.users.is_large() || self.symbols.are_many()
    }

    /// Asks for what a command will need soon. Changes nothing.
    #[inline]
    pub(crate) fn fetch(&self, command: &Command) {
        if let Some(uid) = command.uid() {
            self.users.fetch(uid);
        }
        if let Some(symbol) = command.symbol()
            && self.symbols.are_many()
        {
            self.symbols.fetch(symbol);
        }
    }
}
