//! The plain exchange: lists, scans and 128-bit sums, obviously right, for small numbers.

use std::collections::BTreeMap;

use thalweg_exchange::{
    AccountSpec, AdjustmentKind, Command, CurrencyId, Event, Place, ResultCode, Rules, SymbolId,
    SymbolSpec, SymbolType, UserId,
};

use crate::properties::futures::Stake;

#[derive(Clone, Debug, Default)]
pub(crate) struct User {
    pub(crate) suspended: bool,
    pub(crate) last_id: i64,
    pub(crate) money: BTreeMap<CurrencyId, i128>,
    pub(crate) stakes: BTreeMap<SymbolId, Stake>,
    /// Realised in covered futures, and neither paid out nor paid in.
    pub(crate) waits: BTreeMap<CurrencyId, i128>,
}

#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) place: Place,
    pub(crate) filled: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) rules: Rules,
    pub(crate) users: BTreeMap<UserId, User>,
    pub(crate) symbols: BTreeMap<SymbolId, SymbolSpec>,
    /// All resting orders of all symbols, the oldest first.
    pub(crate) orders: Vec<Order>,
    pub(crate) fees: BTreeMap<CurrencyId, i128>,
    pub(crate) adjustments: BTreeMap<CurrencyId, i128>,
    pub(crate) suspends: BTreeMap<CurrencyId, i128>,
    /// Best ask and bid of futures symbols after the last success.
    pub(crate) last: BTreeMap<SymbolId, (i64, i64)>,
    pub(crate) bands: BTreeMap<SymbolId, (i64, i64)>,
    pub(crate) last_trades: BTreeMap<SymbolId, i64>,
    /// How far from the best price market orders take.
    pub(crate) protections: BTreeMap<SymbolId, i64>,
    /// Losses of covered futures that were paid in, less profit that was paid out.
    pub(crate) pool: BTreeMap<CurrencyId, i128>,
    /// Last transaction ids of users who are gone.
    pub(crate) retired: BTreeMap<UserId, i64>,
}

pub(crate) type Answer = Result<Vec<Event>, ResultCode>;

const DONE: Answer = Ok(Vec::new());

fn is_pair(spec: &SymbolSpec) -> bool {
    spec.symbol_type == SymbolType::CurrencyPair
}

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            users: BTreeMap::new(),
            symbols: BTreeMap::new(),
            orders: Vec::new(),
            fees: BTreeMap::new(),
            adjustments: BTreeMap::new(),
            suspends: BTreeMap::new(),
            last: BTreeMap::new(),
            protections: BTreeMap::new(),
            last_trades: BTreeMap::new(),
            bands: BTreeMap::new(),
            pool: BTreeMap::new(),
            retired: BTreeMap::new(),
        }
    }

    pub(crate) fn apply(&mut self, command: &Command) -> (ResultCode, Vec<Event>) {
        match self.answer(command) {
            Ok(events) => {
                let result = self.result(command, &events);
                for event in &events {
                    if let (Event::Trade { price, .. }, Some(symbol)) = (event, command.symbol()) {
                        self.last_trades.insert(symbol, *price);
                    }
                }
                let removed = match command {
                    Command::SetPriceBand { symbol, .. } if !events.is_empty() => Some(*symbol),
                    _ => None,
                };
                if result == ResultCode::Success
                    && let Some(symbol) = command.symbol().or(removed)
                    && self.is_futures(&self.symbols[&symbol])
                {
                    self.note_last(symbol);
                }
                (result, events)
            }
            Err(code) => (code, Vec::new()),
        }
    }

    /// An order that is rejected whole is refused.
    fn result(&self, command: &Command, events: &[Event]) -> ResultCode {
        match (command.place(), events) {
            (Some(_), [Event::Reject { why, .. }]) if self.rules.refuse_rejected => why.result(),
            _ => ResultCode::Success,
        }
    }

    fn answer(&mut self, command: &Command) -> Answer {
        let book = command.symbol().map(|id| self.symbols.get(&id).copied());
        let spec = match book {
            None => SymbolSpec::default(),
            Some(None) => return Err(ResultCode::MatchingInvalidOrderBookId),
            Some(Some(spec)) => spec,
        };
        match command {
            Command::Place(place) => self.place(place, &spec),
            Command::Cancel {
                uid,
                symbol,
                order_id,
            } => self.reduce(*uid, *symbol, *order_id, i64::MAX, &spec),
            Command::Reduce { by, .. } if *by <= 0 => {
                Err(ResultCode::MatchingReduceFailedWrongSize)
            }
            Command::Reduce {
                uid,
                symbol,
                order_id,
                by,
            } => self.reduce(*uid, *symbol, *order_id, *by, &spec),
            Command::Move {
                uid,
                symbol,
                order_id,
                price,
            } => self.move_order(*uid, *symbol, *order_id, *price, &spec),
            Command::AddUser { uid } => {
                if self.users.contains_key(uid) {
                    return Err(ResultCode::UserMgmtUserAlreadyExists);
                }
                self.add_user(*uid);
                DONE
            }
            Command::Balance {
                uid,
                currency,
                amount,
                transaction_id,
                kind,
            } => self.balance(*uid, *currency, *amount, *transaction_id, *kind),
            Command::Suspend { uid } => self.suspend(*uid),
            Command::Resume { uid } => match self.users.get_mut(uid) {
                None => {
                    self.add_user(*uid);
                    DONE
                }
                Some(user) if user.suspended => {
                    user.suspended = false;
                    DONE
                }
                Some(_) => Err(ResultCode::UserMgmtUserNotSuspended),
            },
            Command::AddSymbols(specs) => self.add_symbols(specs),
            Command::AddAccounts(accounts) => self.add_accounts(accounts),
            Command::SetPriceBand { symbol, low, high } => self.set_band(*symbol, *low, *high),
            Command::SetMarketProtection { symbol, ticks } => self.protect(*symbol, *ticks),
            Command::Nop => DONE,
            Command::Reset => {
                *self = Self::new(self.rules);
                DONE
            }
            other => unreachable!("no part of the reference: {other:?}"),
        }
    }

    fn protect(&mut self, symbol: SymbolId, ticks: i64) -> Answer {
        if !self.symbols.contains_key(&symbol) {
            return Err(ResultCode::InvalidSymbol);
        }
        self.protections.insert(symbol, ticks);
        DONE
    }

    fn add_symbols(&mut self, specs: &[SymbolSpec]) -> Answer {
        let over = |spec: &SymbolSpec| is_pair(spec) && spec.maker_fee > spec.taker_fee;
        let new = |spec: &&SymbolSpec| !self.symbols.contains_key(&spec.id);
        if self.rules.refuse_maker_fee_over_taker && specs.iter().filter(new).any(over) {
            return Err(ResultCode::SymbolMakerFeeOverTakerFee);
        }
        for spec in specs {
            self.symbols.entry(spec.id).or_insert(*spec);
        }
        DONE
    }

    fn add_accounts(&mut self, accounts: &[AccountSpec]) -> Answer {
        accounts
            .iter()
            .for_each(|account| self.add_account(account));
        DONE
    }

    fn add_account(&mut self, account: &AccountSpec) {
        if self.users.contains_key(&account.uid) {
            return;
        }
        self.add_user(account.uid);
        let balances: BTreeMap<_, _> = account.balances.iter().rev().copied().collect();
        for (currency, amount) in balances {
            let id = 1_000_000_000 + i64::from(currency.0);
            let _ = self.balance(
                account.uid,
                currency,
                amount,
                id,
                AdjustmentKind::Adjustment,
            );
        }
    }

    fn balance(
        &mut self,
        uid: UserId,
        currency: CurrencyId,
        amount: i64,
        id: i64,
        kind: AdjustmentKind,
    ) -> Answer {
        let user = self.users.get(&uid).ok_or(ResultCode::AuthInvalidUser)?;
        if id == user.last_id {
            return Err(ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedSame);
        }
        if id < user.last_id {
            return Err(ResultCode::UserMgmtAccountBalanceAdjustmentAlreadyAppliedMany);
        }
        let amount = i128::from(amount);
        let balance = user.money.get(&currency).copied().unwrap_or(0) + amount;
        if self.rules.cover_futures {
            let profit = self.payable(uid, currency);
            let locked = (self.asked(uid, currency, None) + profit).max(0);
            if amount < 0 && balance + profit < locked {
                return Err(ResultCode::UserMgmtAccountBalanceAdjustmentNsf);
            }
            self.book(uid, currency, amount, id, kind);
            self.pay_out(uid, currency, profit);
            return DONE;
        }
        let keeps = self.rules.withdrawal_keeps_margin;
        let needed = if keeps {
            -self.free(uid, currency, None)
        } else {
            0
        };
        if amount < 0 && balance < needed.max(0) {
            return Err(ResultCode::UserMgmtAccountBalanceAdjustmentNsf);
        }
        self.book(uid, currency, amount, id, kind);
        DONE
    }

    fn book(
        &mut self,
        uid: UserId,
        currency: CurrencyId,
        amount: i128,
        id: i64,
        kind: AdjustmentKind,
    ) {
        self.pay(uid, currency, amount);
        self.users.get_mut(&uid).expect("it was there").last_id = id;
        let totals = match kind {
            AdjustmentKind::Adjustment => &mut self.adjustments,
            AdjustmentKind::Suspend => &mut self.suspends,
        };
        *totals.entry(currency).or_default() -= amount;
    }

    fn add_user(&mut self, uid: UserId) {
        let last_id = self.retired.remove(&uid).unwrap_or(0);
        let user = User {
            last_id,
            ..User::default()
        };
        self.users.insert(uid, user);
    }

    fn suspend(&mut self, uid: UserId) -> Answer {
        let user = self
            .users
            .get(&uid)
            .ok_or(ResultCode::UserMgmtUserNotFound)?;
        if user.suspended {
            return Err(ResultCode::UserMgmtUserAlreadySuspended);
        }
        if user.stakes.values().any(|stake| !stake.is_empty()) {
            return Err(ResultCode::UserMgmtUserNotSuspendableHasPositions);
        }
        let mut amounts = user.money.values().chain(user.waits.values());
        if amounts.any(|&money| money != 0) {
            return Err(ResultCode::UserMgmtUserNotSuspendableNonEmptyAccounts);
        }
        if self.rules.keep_transaction_ids && user.last_id != 0 {
            self.retired.insert(uid, user.last_id);
        }
        self.users.remove(&uid);
        DONE
    }

    pub(crate) fn pay(&mut self, uid: UserId, currency: CurrencyId, amount: i128) {
        let user = self.user(uid);
        *user.money.entry(currency).or_default() += amount;
    }
}
