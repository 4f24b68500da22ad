//! An auditor who sees commands, results and execution reports only, and knows what everybody has.

use std::collections::BTreeMap;

use thalweg_exchange::execution::{Execution, ExecutionReport, ExecutionReports};
use thalweg_exchange::{
    Action, Command, CurrencyId, Events, FeeUnit, OrderId, ResultCode, State, SymbolId, SymbolSpec,
    SymbolType, UserId,
};

use crate::accounts::orders::Order;

pub(crate) type Key = (UserId, SymbolId, OrderId);

/// A fault of an auditor, which must be noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// A stop order is charged together with the order that triggered it.
    OneBill,
    /// Both sides of an auction pay as ever.
    NoAuction,
    /// The fee of a seller in futures is of all lots, not of those opened.
    AllLots,
}

/// Lots that a fee is for, and what they are worth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bill {
    pub(crate) lots: i128,
    pub(crate) value: i128,
}

/// The auditor's own records.
#[derive(Default)]
pub(crate) struct Auditor {
    pub(crate) specs: BTreeMap<SymbolId, SymbolSpec>,
    pub(crate) orders: BTreeMap<Key, Order>,
    /// The money of each user, including holds for orders.
    cash: BTreeMap<(UserId, CurrencyId), i128>,
    /// Lots open in futures, below zero: sold.
    lots: BTreeMap<(UserId, SymbolId), i128>,
    fees: BTreeMap<CurrencyId, i128>,
    /// The taking order, and the price and fees of its trades so far.
    bill: Option<(Key, Bill)>,
    /// All trades are at the price of an auction.
    is_auction: bool,
    pub(crate) fault: Fault,
    pub(crate) seen: BTreeMap<String, usize>,
}

/// Rounded up; what is paid back is rounded down.
pub(crate) fn fee(spec: &SymbolSpec, rate: i64, bill: Bill) -> i128 {
    match spec.fee_unit {
        FeeUnit::PerLot => i128::from(rate) * bill.lots,
        FeeUnit::Millionth => -(i128::from(-rate) * bill.value).div_euclid(1_000_000),
    }
}

impl Auditor {
    fn pay(&mut self, uid: UserId, currency: CurrencyId, amount: i128) {
        *self.cash.entry((uid, currency)).or_default() += amount;
    }

    fn charge(&mut self, uid: UserId, spec: &SymbolSpec, amount: i128) {
        self.pay(uid, spec.quote_currency, -amount);
        *self.fees.entry(spec.quote_currency).or_default() += amount;
    }

    pub(crate) fn saw(&mut self, what: impl std::fmt::Debug) {
        let what = format!("{what:?}");
        let word = what.split([' ', '(']).next().unwrap_or_default();
        *self.seen.entry(word.into()).or_default() += 1;
    }

    /// Takes in a command and what came of it.
    pub(crate) fn note(
        &mut self,
        (sequence, command): (u64, &Command),
        result: ResultCode,
        events: &Events,
    ) -> Result<(), String> {
        self.saw(result);
        if !result.is_refusal() {
            self.begin(command);
        }
        for report in ExecutionReports::new(sequence, command, result, events) {
            self.saw(report.kind);
            self.take_in(&report, command)
                .map_err(|why| format!("{why}: {report:?}"))?;
        }
        self.close_bill();
        self.is_auction = false;
        if let (Command::RemoveSymbol { symbol }, false) = (command, result.is_refusal()) {
            self.specs.remove(symbol);
        }
        Ok(())
    }

    /// Notes a command that succeeds without a report.
    fn begin(&mut self, command: &Command) {
        match command {
            Command::AddSymbols(specs) => {
                for spec in specs.iter() {
                    self.specs.entry(spec.id).or_insert(*spec);
                }
            }
            Command::AddAccounts(accounts) => {
                for account in accounts.iter() {
                    for &(currency, amount) in &account.balances {
                        self.pay(account.uid, currency, amount.into());
                    }
                }
            }
            &Command::Balance {
                uid,
                currency,
                amount,
                ..
            } => self.pay(uid, currency, amount.into()),
            &Command::PayFees {
                uid,
                currency,
                amount,
                ..
            } => {
                self.pay(uid, currency, amount.into());
                *self.fees.entry(currency).or_default() -= i128::from(amount);
            }
            Command::Uncross { .. } => self.is_auction = self.fault != Fault::NoAuction,
            _ => {}
        }
    }

    fn close_bill(&mut self) {
        if let Some((key, bill)) = self.bill.take() {
            let spec = self.specs[&key.1];
            self.charge(key.0, &spec, fee(&spec, spec.taker_fee, bill));
        }
    }

    fn take_in(&mut self, report: &ExecutionReport, command: &Command) -> Result<(), String> {
        let key = (report.owner, report.symbol, report.order);
        match report.kind {
            Execution::New => {
                let place = command.place().ok_or("no order was placed")?;
                if self.orders.insert(key, Order::of(place)).is_some() {
                    return Err("a second order of this id".into());
                }
            }
            Execution::Rejected(_) | Execution::RequestRejected(_) => return Ok(()),
            Execution::Trade {
                price,
                size,
                is_maker,
                ..
            } => self.trade(key, (price, size), is_maker)?,
            Execution::Triggered if self.fault == Fault::OneBill => {}
            Execution::Triggered => {
                self.close_bill();
                self.is_auction = false;
            }
            _ => {}
        }
        let order = self.orders.get_mut(&key).ok_or("it is not there")?;
        match report.kind {
            Execution::Replaced { reduced_by } => {
                order.left -= reduced_by;
                order.price = report.price;
            }
            Execution::Cancelled { size, .. } | Execution::Expired { size } => order.left -= size,
            _ => {}
        }
        let is_over = order.left == 0;
        if (order.left, order.filled, is_over) != (report.left, report.filled, report.is_final()) {
            return Err(format!("{order:?}"));
        }
        if is_over {
            self.orders.remove(&key);
        }
        Ok(())
    }

    fn trade(&mut self, key: Key, trade: (i64, i64), is_maker: bool) -> Result<(), String> {
        let spec = self.specs[&key.1];
        let order = self.orders.get_mut(&key).ok_or("it is not there")?;
        order.left -= trade.1;
        order.filled += trade.1;
        let sign = match order.side {
            Action::Ask => -1,
            Action::Bid => 1,
        };
        let (price, lots) = (i128::from(trade.0), i128::from(trade.1));
        let (scale, opened) = if spec.symbol_type == SymbolType::CurrencyPair {
            let coins = sign * lots * i128::from(spec.base_scale);
            self.pay(key.0, spec.base_currency, coins);
            (i128::from(spec.quote_scale), lots)
        } else {
            let open = self.lots.entry((key.0, key.1)).or_default();
            let closed = (-sign * *open).clamp(0, lots);
            *open += sign * lots;
            let is_wrong = self.fault == Fault::AllLots && sign < 0;
            (1, if is_wrong { lots } else { lots - closed })
        };
        self.pay(key.0, spec.quote_currency, -sign * price * scale * lots);
        let bill = Bill {
            lots: opened,
            value: price * scale * opened,
        };
        match &mut self.bill {
            _ if self.is_auction => self.charge(key.0, &spec, fee(&spec, spec.taker_fee, bill)),
            _ if is_maker => self.charge(key.0, &spec, fee(&spec, spec.maker_fee, bill)),
            Some((taker, sum)) if *taker == key => {
                sum.lots += bill.lots;
                sum.value += bill.value;
            }
            Some((taker, _)) if self.fault == Fault::None => {
                return Err(format!("{taker:?} takes at the same time"));
            }
            _ => self.bill = Some((key, bill)),
        }
        Ok(())
    }

    fn cash_of(&self, uid: UserId, currency: CurrencyId) -> i128 {
        let cash = self.cash.get(&(uid, currency)).copied();
        cash.unwrap_or_default()
    }

    /// Returns how much a user can use of a currency, if it depends on nothing but pairs: profit
    /// may wait for long.
    pub(crate) fn free(&self, uid: UserId, currency: CurrencyId) -> Option<i128> {
        let is_futures = |symbol: &SymbolId| {
            let spec = self.specs.get(symbol);
            spec.is_some_and(|spec| {
                spec.symbol_type == SymbolType::Futures && spec.quote_currency == currency
            })
        };
        let mut orders = self.orders.keys();
        let mut traded = self.lots.keys();
        let has_futures = orders.any(|key| key.0 == uid && is_futures(&key.1))
            || traded.any(|(of, symbol)| *of == uid && is_futures(symbol));
        (!has_futures).then(|| self.cash_of(uid, currency) - self.held(uid, currency))
    }

    fn held(&self, uid: UserId, currency: CurrencyId) -> i128 {
        let own = self.orders.iter().filter(|(key, _)| key.0 == uid);
        own.filter_map(|(key, order)| order.held(&self.specs[&key.1]))
            .filter(|held| held.0 == currency)
            .map(|held| held.1)
            .sum()
    }

    /// The engine must say the same.
    pub(crate) fn agrees(&self, state: &State) -> Result<(), String> {
        for (&(uid, currency), cash) in &self.cash {
            let expected = cash - self.held(uid, currency);
            let user = state.risk.user(uid);
            let got = user.map_or(0, |user| {
                let positions = user.positions().iter();
                let own = positions.filter(|position| position.currency == currency);
                let open: i128 = own.map(|position| position.cash()).sum();
                i128::from(user.balance(currency)) + user.waiting_in(currency) + open
            });
            if expected != got {
                return Err(format!("{uid} has {got} of {currency}, not {expected}"));
            }
        }
        for currency in state.risk.currencies() {
            let fees = self.fees.get(&currency.id).copied().unwrap_or_default();
            if fees != i128::from(currency.fees) {
                return Err(format!("{currency:?} has other fees than {fees}"));
            }
        }
        self.positions_agree(state)?;
        crate::accounts::orders::agree(&self.orders, &self.specs, state)
    }

    fn positions_agree(&self, state: &State) -> Result<(), String> {
        for user in state.risk.users() {
            for position in user.positions() {
                let lots = self.lots.get(&(user.uid, position.symbol));
                let is = i128::from(position.open_volume) * i128::from(position.direction as i8);
                let own = |side| -> i64 {
                    let own = self.orders.iter().filter(|(key, order)| {
                        (key.0, key.1, order.side) == (user.uid, position.symbol, side)
                    });
                    own.map(|(_, order)| order.left).sum()
                };
                let pending = (position.pending_sell, position.pending_buy);
                if lots.copied().unwrap_or_default() != is
                    || (own(Action::Ask), own(Action::Bid)) != pending
                {
                    return Err(format!("{position:?} of {} is not {lots:?}", user.uid));
                }
            }
        }
        Ok(())
    }
}
