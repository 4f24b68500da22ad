//! Futures that are covered by money at the worst price of their band, whatever users do.
//!
//! *Cover.* With the band `low..=high`, `v` lots open (sold: below zero) for which `paid` was paid
//! (sold: received), and `b` and `s` lots pending to buy and to sell, the most that the owner can
//! lose is, whichever of the pending lots trade and in whatever order,
//!
//! > max(paid − v·low + b·(high − low), paid − v·high + s·(high − low)) + fee·opens
//!
//! since every trade is at a price of the band, and the loss at a last price is greatest at an end
//! of the band; `opens` is the most lots that can be opened, `b` + max(0, `s` − `v`) of a buyer.
//! A trade of pending lots never raises it by more than it takes from the balance: so *it is asked
//! for when an order is placed, and never again*: moves, trades, cancels and reductions leave a
//! covered user covered. The symbol's margin is asked for as well, as a floor.
//!
//! *Fees* are paid from the balance, so it alone must have all of `fee·opens`: profit that waits
//! covers losses only. A loss takes from the balance no more than what profit does not cover, and
//! leaves the fees there, since what is asked for is never below them.
//!
//! *Realised profit and loss* go to what [waits](super::User::waiting) of the currency. A loss is
//! paid from the balance at once, as far as there is money, into the *pool* of the currency; profit
//! is paid out of the pool to owners who pay in or withdraw. So the pool is never below zero, nor
//! is a balance, and Σ balances + holds + fees + pool = deposits: whatever happens, all that can be
//! withdrawn is there.
//!
//! *Uncovered losses* come only from a band that the market's operator moves: from then on, as long
//! as any user of the currency is short of cover, all profit waits, so that no user is paid from
//! what others lost to others. A user who is short may still close.

use super::Risk;
use super::ledger::Currency;
use super::positions::Position;
use super::symbols::{FUTURES_LOTS_MAX, Symbol, Symbols};
use super::users::User;
use crate::command::{Action, Place};
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::result_code::ResultCode;
use crate::rules::Rules;

/// The money that a position, or all of them, require of their owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cover {
    /// The most that can be lost.
    loss: i128,
    /// The money that must be there to place more or to withdraw: the loss, and the margin at
    /// least.
    asked: i128,
    /// The part of both that must be in the balance: the fees on what can be opened.
    fees: i128,
}

impl Cover {
    /// Returns the balance that must be there to place more or to withdraw; not below zero.
    fn balance(&self) -> i128 {
        self.asked.max(self.fees)
    }
}

impl Position {
    /// Returns the cover with this number of further lots pending.
    fn cover(&self, symbol: &Symbol, more_buys: i64, more_sells: i64) -> Cover {
        let spec = &symbol.spec;
        let (low, high) = symbol.gate.band();
        let [low, high] = [low, high].map(i128::from);
        let open = self.open();
        let paid = self.direction.signed(self.open_price_sum.into()) - i128::from(self.profit);
        let buys = i128::from(self.pending_buy) + i128::from(more_buys);
        let sells = i128::from(self.pending_sell) + i128::from(more_sells);
        let falls = paid - open * low + buys * (high - low);
        let rises = paid - open * high + sells * (high - low);
        let loss = falls.max(rises);
        let opens = if open >= 0 {
            buys + (sells - open).max(0)
        } else {
            sells + (buys + open).max(0)
        };
        let fees = i128::from(symbol.fee_in_band()) * opens;
        let buying = i128::from(spec.margin_buy) * (buys + open);
        let margin = buying.max(i128::from(spec.margin_sell) * (sells - open));
        Cover {
            loss: loss + fees,
            asked: loss.max(margin) + fees,
            fees,
        }
    }

    /// Returns the required money with this number of further lots pending, and the fees in it;
    /// `None` where 64 bits are not enough for them.
    #[inline]
    pub(super) fn asked_in_64_bits(
        &self,
        symbol: &Symbol,
        more_buys: i64,
        more_sells: i64,
    ) -> Option<(i64, i64)> {
        let spec = &symbol.spec;
        let (low, high) = symbol.gate.band();
        let width = high.checked_sub(low)?;
        let side = self.direction as i64;
        let open = self.open_volume * side;
        let paid = (self.open_price_sum * side).checked_sub(self.profit)?;
        let buys = self.pending_buy.checked_add(more_buys)?;
        let sells = self.pending_sell.checked_add(more_sells)?;
        let loss = |lots: i64, price: i64| {
            let worth = open.checked_mul(price)?;
            paid.checked_sub(worth)?
                .checked_add(lots.checked_mul(width)?)
        };
        let loss = loss(buys, low)?.max(loss(sells, high)?);
        let (bought, sold) = (buys.checked_add(open)?, sells.checked_sub(open)?);
        // Most lots that can be opened.
        let opens = if open >= 0 {
            buys.checked_add(sold.max(0))?
        } else {
            sells.checked_add(bought.max(0))?
        };
        let fees = symbol.fee_in_band().checked_mul(opens)?;
        let margin = spec.margin_buy.checked_mul(bought)?;
        let margin = margin.max(spec.margin_sell.checked_mul(sold)?);
        Some((loss.max(margin).checked_add(fees)?, fees))
    }

    /// Returns whether a balance and profit or loss that waits are enough for the order, if its
    /// owner has nothing but this record.
    #[inline(always)]
    pub(super) fn is_covered_with(
        &self,
        place: &Place,
        symbol: &Symbol,
        (balance, waiting): (i64, i64),
        holds_fees: bool,
    ) -> bool {
        let (buys, sells) = match place.action {
            Action::Ask => (0, place.size),
            Action::Bid => (place.size, 0),
        };
        let asked = self.asked_in_64_bits(symbol, buys, sells);
        place.size <= FUTURES_LOTS_MAX - self.most_open(place.action)
            && asked.is_some_and(|(asked, fees)| {
                let money = balance.checked_add(waiting);
                (fees <= balance || !holds_fees) && money.is_some_and(|money| asked <= money)
            })
    }

    /// Open lots, below zero where they are sold.
    fn open(&self) -> i128 {
        self.direction.signed(self.open_volume.into())
    }

    /// Returns the most lots that may come to be open on the side of an order.
    fn most_open(&self, action: Action) -> i64 {
        let open = self.open() as i64;
        match action {
            Action::Ask => self.pending_sell - open,
            Action::Bid => self.pending_buy + open,
        }
    }
}

impl Currency {
    /// Pays a debt from the owner's balance as far as there is money; gives what still waits.
    fn collect(&mut self, balance: &mut i64, waiting: i128) -> i128 {
        let paid = i128::from(*balance).min(-waiting).max(0);
        *balance -= paid as i64;
        self.pool += paid;
        waiting + paid
    }
}

/// Returns the cover of all of a user's futures of a currency, without one symbol and with waiting
/// profit or loss. Fees are those that the balance must have: none where [no
/// rule](crate::Rules::hold_futures_fees) says so.
fn covers(
    user: &User,
    (symbols, rules): (&Symbols, &Rules),
    currency: CurrencyId,
    except: Option<SymbolId>,
) -> Cover {
    let waiting = user.waiting_in(currency);
    let mut sum = Cover {
        loss: -waiting,
        asked: -waiting,
        fees: 0,
    };
    for position in user.positions() {
        if position.currency == currency && Some(position.symbol) != except {
            let cover = position.cover(symbols.at(position.slot), 0, 0);
            sum.loss += cover.loss;
            sum.asked += cover.asked;
            sum.fees += if rules.hold_futures_fees {
                cover.fees
            } else {
                0
            };
        }
    }
    sum
}

/// Returns how much of a balance must stay for a user's futures; not below zero.
pub(super) fn locked(user: &User, terms: (&Symbols, &Rules), currency: CurrencyId) -> i128 {
    covers(user, terms, currency, None).balance()
}

/// The money that can be withdrawn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Purse {
    /// The most; below zero where more is locked than there is.
    pub(super) most: i128,
    /// Profit that is paid out of the pool first.
    pub(super) profit: i128,
}

impl Risk {
    const fn terms(&self) -> (&Symbols, &Rules) {
        (&self.symbols, &self.rules)
    }

    /// Checks a new order in futures against the owner's money.
    pub(super) fn is_covered(
        &self,
        place: &Place,
        slot: u32,
        user: &User,
    ) -> Result<(), ResultCode> {
        if place.size <= 0 {
            return Err(ResultCode::RiskSizeNotPositive);
        }
        let symbol = self.symbols.at(slot);
        let new = Position::new(&symbol.spec, slot);
        let position = user.position(place.symbol).unwrap_or(&new);
        if place.size > FUTURES_LOTS_MAX - position.most_open(place.action) {
            return Err(ResultCode::RiskTooManyLots);
        }
        let (buys, sells) = match place.action {
            Action::Ask => (0, place.size),
            Action::Bid => (place.size, 0),
        };
        let then = position.cover(symbol, buys, sells);
        let currency = symbol.spec.quote_currency;
        let mut all = covers(user, self.terms(), currency, Some(place.symbol));
        all.asked += then.asked;
        if self.rules.hold_futures_fees {
            all.fees += then.fees;
        }
        if all.balance() <= i128::from(user.balance(currency)) {
            return Ok(());
        }
        // A user who is short may still place an order that requires no more.
        let today = position.cover(symbol, 0, 0);
        let fees_rise = self.rules.hold_futures_fees && then.fees > today.fees;
        if then.asked <= today.asked && then.loss <= today.loss && !fees_rise {
            return Ok(());
        }
        Err(ResultCode::RiskNsf)
    }

    /// Books what a trade made its owner win or lose, and the fee on what was opened, as far as
    /// there is money for it: a covered user has it in the balance.
    pub(super) fn settle_covered(&mut self, slot: u32, place: u32, gain: i64, fee: i128) {
        let symbol = self.symbols.at(slot);
        let currency = symbol.spec.quote_currency;
        let total = self.ledger.get_mut(symbol.quote);
        let user = self.users.at_mut(place);
        if gain != 0 {
            let waiting = user.waiting_in(currency) + i128::from(gain);
            let waiting = total.collect(user.balance_mut(currency), waiting);
            user.set_waiting(currency, waiting);
        }
        if fee != 0 {
            let balance = user.balance_mut(currency);
            let fee = i128::from(*balance).max(0).min(fee);
            *balance -= fee as i64;
            total.add_fees(fee);
        }
    }

    /// Returns how much a user can withdraw of a currency.
    pub(super) fn purse(&self, user: &User, currency: CurrencyId) -> Purse {
        let balance = i128::from(user.balance(currency));
        if !user.has_futures() {
            return Purse {
                most: balance,
                profit: 0,
            };
        }
        let waiting = user.waiting_in(currency);
        let total = self.ledger.look(currency);
        let mut profit = waiting.min(total.pool).max(0);
        if profit > 0 && total.must_check_cover {
            profit = if self.is_anybody_short(currency) {
                0
            } else {
                profit
            };
        }
        let mut cover = covers(user, self.terms(), currency, None);
        cover.asked += profit;
        Purse {
            most: balance + profit - cover.balance(),
            profit,
        }
    }

    /// Takes profit that was paid out from what waits and from the pool, and pays a debt, of a user
    /// whose balance has changed.
    pub(super) fn settle_waiting(&mut self, uid: UserId, currency: CurrencyId, profit: i128) {
        let Some(user) = self.users.get_mut(uid) else {
            return;
        };
        let waiting = user.waiting_in(currency);
        if waiting == 0 {
            return;
        }
        let slot = self.ledger.find_or_add(currency);
        let total = self.ledger.get_mut(slot);
        if profit > 0 {
            total.must_check_cover = false;
        }
        let balance = user.balance_mut(currency);
        total.pool -= profit;
        let waiting = total.collect(balance, waiting - profit);
        user.set_waiting(currency, waiting);
    }

    /// Returns how many records of its user's futures a command visits; 0 where that is one at
    /// most.
    pub(crate) fn visits(&self, uid: Option<UserId>) -> usize {
        let user = uid.and_then(|uid| self.users.get(uid));
        match user.map_or(0, |user| user.positions().len()) {
            0 | 1 => 0,
            records => records,
        }
    }

    /// Returns whether any user could lose more than there is. Cost: visits every user.
    pub(super) fn is_anybody_short(&self, currency: CurrencyId) -> bool {
        self.users.iter().any(|user| {
            let loss = covers(user, self.terms(), currency, None).loss;
            user.has_futures() && loss > i128::from(user.balance(currency))
        })
    }

    /// After a band of futures moved, users may be short.
    pub(super) fn note_band_moved(&mut self, symbol: SymbolId) {
        if let Some(symbol) = self.symbols.get(symbol) {
            let slot = self.ledger.find_or_add(symbol.spec.quote_currency);
            self.ledger.get_mut(slot).must_check_cover = true;
        }
    }

    /// Returns the most that a user can withdraw of a currency now: the balance and profit that can
    /// be paid out, without what is locked for futures. `None` where there is no such user, and
    /// where margins leave 64 bits.
    ///
    /// Cost: a look at each record of the user in futures; where profit waits and a band was moved
    /// since profit was last paid out in that currency, at every user.
    #[must_use]
    pub fn withdrawable(&self, uid: UserId, currency: CurrencyId) -> Option<i64> {
        let most = self.most(self.users.get(uid)?, currency).ok()?.most;
        i64::try_from(most.max(0)).ok()
    }
}
