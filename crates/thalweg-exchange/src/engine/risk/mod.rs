//! The risk check and settlement: users, balances, symbols, fees. Knows no books.
//!
//! [`Risk::check`] holds money before a command may match; [`Risk::settle`] books its outcome. A
//! check that refuses changes nothing, but that it may take away the empty record that a futures
//! order of no size left.
//!
//! Most commands take a fast path (`pairs`, `checks`), which recognises orders that need no
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

mod checks;
mod cover;
mod fees;
mod futures;
mod ledger;
mod limits;
mod pairs;
mod positions;
mod reference;
mod settlement;
mod snapshot;
mod symbols;
mod users;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use self::cover::Purse;
use self::futures::free_margin;
pub use self::ledger::Currency;
use self::ledger::Ledger;
use self::limits::FastPathLimits;
#[cfg(test)]
use self::pairs::is_exact;
pub use self::positions::{Direction, Position};
pub(crate) use self::snapshot::{Account, SavedSymbol, SavedUser};
pub(crate) use self::symbols::Seen;
pub use self::symbols::{FUTURES_LOTS_MAX, FUTURES_PRICE_MAX, LastPrices, TradingLimits};
use self::symbols::{Symbol, Symbols, check_spec};
pub(crate) use self::users::Ids;
use self::users::Users;
pub use self::users::{ID_WINDOW, User, UserStatus};
use crate::command::{AccountSpec, AdjustmentKind, Command, Place, SymbolSpec, UserLimits};
use crate::event::UserHint;
use crate::ids::{CurrencyId, SymbolId, UserId};
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
    /// Raised with every change of a symbol's gate; see [`User::cached_cover`].
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
            Command::Place(ref place) => self.check_new(place),
            _ => self.check_other(command),
        }
    }

    #[inline(never)]
    fn check_new(&mut self, place: &Place) -> (ResultCode, UserHint) {
        let pair = self.pair(place.symbol);
        match pair.and_then(|mut pair| pair.hold(place)) {
            Some(owner) => (ResultCode::ValidForMatchingEngine, owner),
            None => self.check_unheld(place),
        }
    }

    /// Checks a new order that its pair does not hold at once.
    #[inline(never)]
    pub(crate) fn check_unheld(&mut self, place: &Place) -> (ResultCode, UserHint) {
        let owner = self.place_in_futures_fast(place).map(UserHint);
        match owner.or_else(|| self.place_fast(place)) {
            Some(owner) => (ResultCode::ValidForMatchingEngine, owner),
            None => self.check_slow(&Command::Place(*place)),
        }
    }

    #[inline(never)]
    fn check_other(&mut self, command: &Command) -> (ResultCode, UserHint) {
        match *command {
            Command::Move {
                uid, symbol, price, ..
            } if self.move_takes_fast_path(uid, symbol, price) => {
                (ResultCode::ValidForMatchingEngine, UserHint::UNKNOWN)
            }
            _ => self.check_slow(command),
        }
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
            Command::PlaceConditional(order) => return self.check_place_with(order),
            Command::Amend(amend) => return self.check_amend(amend),
            Command::Clock { time } => self.set_clock(*time)?,
            Command::Nop | Command::Disconnect { .. } => {}
            Command::Reset => return self.check_reset(),
        }
        Ok(ResultCode::Success)
    }

    /// Returns true where users or symbols are too many for the nearer caches, so that prefetching
    /// pays.
    pub(crate) const fn is_large(&self) -> bool {
        self.users.is_large() || self.symbols.are_many()
    }

    /// Prefetches what a command will need. Changes nothing.
    #[inline]
    pub(crate) fn prefetch(&self, command: &Command) {
        if let Some(uid) = command.uid() {
            self.users.prefetch(uid);
        }
        if let Some(symbol) = command.symbol()
            && self.symbols.are_many()
        {
            self.symbols.prefetch(symbol);
        }
    }
}

// The public view of the risk state.

impl Risk {
    /// Returns a user, unless unknown or suspended without money since.
    #[must_use]
    pub fn user(&self, uid: UserId) -> Option<&User> {
        self.users.get(uid)
    }

    /// Returns all users by ascending id. Cost: sorts them.
    #[must_use]
    pub fn users(&self) -> Vec<&User> {
        self.users.sorted()
    }

    /// Returns the last transaction ids of removed users, where they are kept, by ascending id of
    /// the user.
    pub fn removed_users(&self) -> impl Iterator<Item = (UserId, i64)> + '_ {
        let retired = self.users.retired();
        let last = retired
            .iter()
            .map(|(&uid, kept)| (uid, kept.last_transaction_id));
        last.filter(|&(_, last)| last != 0)
    }

    /// Returns a user's balance in a currency; `None` where there is no such user.
    #[must_use]
    pub fn balance(&self, uid: UserId, currency: CurrencyId) -> Option<i64> {
        self.users.get(uid).map(|user| user.balance(currency))
    }

    /// Returns the last prices of each futures symbol where a command has succeeded, by ascending
    /// id. Cost: sorts them.
    #[must_use]
    pub fn last_prices(&self) -> Vec<(SymbolId, LastPrices)> {
        let symbols = self.symbols.iter();
        let mut prices: Vec<_> = symbols
            .filter_map(|symbol| symbol.last.map(|last| (symbol.spec.id, last)))
            .collect();
        prices.sort_unstable_by_key(|&(symbol, _)| symbol);
        prices
    }

    /// Returns all currencies that were paid in or traded since the last reset, by ascending id.
    /// Cost: sorts them.
    #[must_use]
    pub fn currencies(&self) -> Vec<&Currency> {
        let mut currencies: Vec<&Currency> = self.ledger.iter().collect();
        currencies.sort_unstable_by_key(|currency| currency.id);
        currencies
    }
}

// Commands about users, their money, and symbols.

type Checked = Result<(), ResultCode>;

/// A first balance has this transaction id plus its currency.
const FIRST_TRANSACTION_ID: i64 = 1_000_000_000;

impl Currency {
    /// Books a deposit against a total; `None` where that, or the ledger's bound, would not hold.
    fn booked(mut self, amount: i64, kind: AdjustmentKind) -> Option<Self> {
        let total = match kind {
            AdjustmentKind::Adjustment => &mut self.adjustments,
            AdjustmentKind::Suspend => &mut self.suspends,
        };
        *total = total.checked_sub(amount)?;
        // A withdrawal needs no room.
        (amount <= 0 || self.has_room(0)).then_some(self)
    }
}

impl Risk {
    /// Checks that no more would have to be forgotten than one command may visit.
    fn check_reset(&self) -> Result<ResultCode, ResultCode> {
        match self.users.has_more_than(self.rules.work_max()) {
            true => Err(ResultCode::MatchingRejectedWorkLimit),
            false => Ok(ResultCode::ValidForMatchingEngine),
        }
    }

    fn add_user(&mut self, uid: UserId) -> Checked {
        if self.users.get(uid).is_some() {
            return Err(ResultCode::UserMgmtUserAlreadyExists);
        }
        self.users.add(uid, UserStatus::Active);
        Ok(())
    }

    fn adjust(
        &mut self,
        uid: UserId,
        currency: CurrencyId,
        amount: i64,
        transaction_id: i64,
        kind: AdjustmentKind,
    ) -> Checked {
        let user = self.check_transaction(uid, transaction_id)?;
        let mut profit = 0;
        if amount < 0 || self.rules.cover_futures {
            let purse = self.most(user, currency)?;
            if amount < 0 && -i128::from(amount) > purse.most {
                return Err(ResultCode::UserMgmtAccountBalanceAdjustmentNsf);
            }
            profit = purse.profit;
        }
        let booked = self.ledger.look(currency).booked(amount, kind);
        let booked = booked.ok_or(ResultCode::RiskArithmeticOverflow)?;

        let slot = self.ledger.find_or_add(currency);
        let total = self.ledger.get_mut(slot);
        *total = booked;
        let user = self.users.get_mut(uid).expect("looked up before");
        user.last_transaction_id = transaction_id;
        total.add(user.balance_mut(currency), i128::from(amount) + profit);
        if user.waiting_in(currency) != 0 {
            self.settle_waiting(uid, currency, profit);
        }
        Ok(())
    }

    /// Returns the user, if the id is of a transaction that was not applied yet.
    fn check_transaction(&self, uid: UserId, id: i64) -> Result<&User, ResultCode> {
        let user = self.users.get(uid).ok_or(ResultCode::AuthInvalidUser)?;
        match id.cmp(&user.last_transaction_id) {
            Ordering::Greater => Ok(user),
            Ordering::Equal => Err(ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedSame),
            Ordering::Less => Err(ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedMany),
        }
    }

    /// Returns how much a user can withdraw of a currency.
    fn most(&self, user: &User, currency: CurrencyId) -> Result<Purse, ResultCode> {
        if self.rules.cover_futures {
            return Ok(self.purse(user, currency));
        }
        let mut needed = 0;
        if self.rules.withdrawal_keeps_margin && !user.positions().is_empty() {
            needed = -free_margin(user, &self.symbols, currency, None)?;
        }
        // Profit in futures is no money yet: it covers margin, and is not paid out.
        Ok(Purse {
            most: i128::from(user.balance(currency)) - needed.max(0),
            profit: 0,
        })
    }

    fn suspend(&mut self, uid: UserId) -> Checked {
        let user = self
            .users
            .get(uid)
            .ok_or(ResultCode::UserMgmtUserNotFound)?;
        if user.status == UserStatus::Suspended {
            return Err(ResultCode::UserMgmtUserAlreadySuspended);
        }
        if user.positions().iter().any(|position| !position.is_empty()) {
            return Err(ResultCode::UserMgmtUserNotSuspendableHasPositions);
        }
        if user.has_money() {
            return Err(ResultCode::UserMgmtUserNotSuspendableNonEmptyAccounts);
        }
        self.users.remove(uid, self.rules.keep_transaction_ids);
        Ok(())
    }

    fn resume(&mut self, uid: UserId) -> Checked {
        match self.users.get_mut(uid) {
            None => {
                self.users.add(uid, UserStatus::Active);
            }
            Some(user) if user.status == UserStatus::Suspended => user.status = UserStatus::Active,
            Some(_) => return Err(ResultCode::UserMgmtUserNotSuspended),
        }
        Ok(())
    }

    fn add_symbols(&mut self, specs: &[SymbolSpec]) -> Checked {
        for spec in specs {
            if self.symbols.get(spec.id).is_none() {
                check_spec(spec, &self.rules)?;
            }
        }
        for spec in specs {
            self.symbols.add(spec, &mut self.ledger, &self.rules);
        }
        Ok(())
    }

    fn add_accounts(&mut self, accounts: &[AccountSpec]) -> Checked {
        self.check_accounts(accounts)?;
        for account in accounts {
            if self.add_user(account.uid).is_err() {
                continue;
            }
            for (currency, amount) in ascending(account) {
                let id = FIRST_TRANSACTION_ID + i64::from(currency.0);
                // A balance that is refused (negative, or the second in a currency) is skipped.
                let _ = self.adjust(
                    account.uid,
                    currency,
                    amount,
                    id,
                    AdjustmentKind::Adjustment,
                );
            }
        }
        Ok(())
    }

    /// Refuses the batch if any of its balances would overflow, so that it is booked whole or not
    /// at all. Counts no less than will be booked: what is skipped for its transaction id counts.
    fn check_accounts(&self, accounts: &[AccountSpec]) -> Checked {
        let mut totals: BTreeMap<CurrencyId, Currency> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for account in accounts {
            if self.users.get(account.uid).is_some() || !seen.insert(account.uid) {
                continue;
            }
            for (currency, amount) in ascending(account).into_iter().filter(|&(_, a)| a > 0) {
                let total = totals
                    .entry(currency)
                    .or_insert_with(|| self.ledger.look(currency));
                let booked = total.booked(amount, AdjustmentKind::Adjustment);
                *total = booked.ok_or(ResultCode::RiskArithmeticOverflow)?;
            }
        }
        Ok(())
    }
}

/// Returns the balances of an account by ascending currency, the first of those of one currency
/// first.
fn ascending(account: &AccountSpec) -> Vec<(CurrencyId, i64)> {
    let mut balances = account.balances.clone();
    balances.sort_by_key(|&(currency, _)| currency);
    balances
}
