//! The changes that a command caused, as recorded streams print them.

use std::collections::BTreeMap;

use crate::command::Command;
use crate::engine::state::State;
use crate::event::Event;
use crate::ids::{CurrencyId, SymbolId, UserId};
use crate::report::state_text::position_line;
use crate::risk::{LastPrices, Position, User, UserStatus};

/// Users, fees and last prices as they were after the last command.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    users: BTreeMap<UserId, Copied>,
    fees: BTreeMap<CurrencyId, i64>,
    last_prices: BTreeMap<SymbolId, LastPrices>,
}

#[derive(Debug, PartialEq, Eq)]
struct Copied {
    status: UserStatus,
    last_transaction_id: i64,
    balances: BTreeMap<CurrencyId, i64>,
    positions: BTreeMap<SymbolId, Position>,
}

impl From<&User> for Copied {
    fn from(user: &User) -> Self {
        Self {
            status: user.status,
            last_transaction_id: user.last_transaction_id,
            balances: user.balances().collect(),
            positions: user
                .positions()
                .iter()
                .map(|position| (position.symbol, *position))
                .collect(),
        }
    }
}

impl Mirror {
    /// The lines that tell what the command changed: `+` lines by user and kind, then fees, then
    /// last prices, then `-` lines.
    pub(super) fn changes(
        &mut self,
        command: &Command,
        events: &[Event],
        state: &State,
    ) -> Vec<String> {
        if *command == Command::Reset {
            // The reference prints nothing here: everything is gone.
            *self = Self::default();
            return Vec::new();
        }
        let mut lines = Vec::new();
        let mut gone = Vec::new();
        for uid in touched(command, events) {
            let new = state.risk.user(uid).map(Copied::from);
            let old = self.users.remove(&uid);
            compare(uid, old.as_ref(), new.as_ref(), &mut lines, &mut gone);
            if let Some(new) = new {
                self.users.insert(uid, new);
            }
        }
        if events
            .iter()
            .any(|event| matches!(event, Event::Trade { .. }))
        {
            for currency in state.risk.currencies() {
                let old = self.fees.insert(currency.id, currency.fees);
                if currency.fees != old.unwrap_or(0) {
                    lines.push(format!("+F,{},{}", currency.id, currency.fees));
                }
            }
        }
        for (symbol, last) in state.risk.last_prices() {
            if self.last_prices.insert(symbol, last) != Some(last) {
                lines.push(format!("+L,{symbol},{},{}", last.ask, last.bid));
            }
        }
        lines.append(&mut gone);
        lines
    }
}

fn compare(
    uid: UserId,
    old: Option<&Copied>,
    new: Option<&Copied>,
    lines: &mut Vec<String>,
    gone: &mut Vec<String>,
) {
    let head = |user: &Copied| (user.status, user.last_transaction_id);
    match new {
        Some(new) if old.map(head) != Some(head(new)) => {
            let (status, last_transaction_id) = head(new);
            lines.push(format!("+U,{uid},{},{last_transaction_id}", status as u8));
        }
        None if old.is_some() => gone.push(format!("-U,{uid}")),
        _ => {}
    }
    for (currency, balance) in new.iter().flat_map(|user| &user.balances) {
        if old.and_then(|user| user.balances.get(currency)) != Some(balance) {
            lines.push(format!("+A,{uid},{currency},{balance}"));
        }
    }
    for currency in old.iter().flat_map(|user| user.balances.keys()) {
        if new.is_none_or(|user| !user.balances.contains_key(currency)) {
            gone.push(format!("-A,{uid},{currency}"));
        }
    }
    for (symbol, position) in new.iter().flat_map(|user| &user.positions) {
        if old.and_then(|user| user.positions.get(symbol)) != Some(position) {
            lines.push(format!("+{}", position_line(uid, position)));
        }
    }
    for symbol in old.iter().flat_map(|user| user.positions.keys()) {
        if new.is_none_or(|user| !user.positions.contains_key(symbol)) {
            gone.push(format!("-P,{uid},{symbol}"));
        }
    }
}

/// Everyone whom a command can concern, each once, by ascending id.
fn touched(command: &Command, events: &[Event]) -> Vec<UserId> {
    let mut users: Vec<UserId> = command.uid().into_iter().collect();
    if let Command::AddAccounts(accounts) = command {
        users.extend(accounts.iter().map(|account| account.uid));
    }
    users.extend(events.iter().filter_map(|event| match event {
        Event::Trade { maker_uid, .. } => Some(*maker_uid),
        _ => None,
    }));
    users.sort_unstable();
    users.dedup();
    users
}
