//! The hashes of commands with lists or many fields: symbols, accounts and limits.

use super::with;
use crate::command::{AccountSpec, SymbolSpec, UserLimits};
use crate::ids::UserId;

/// Lists begin with their lengths, so that none can be read in two ways.
pub(super) fn of_symbols(first: u64, symbols: &[SymbolSpec]) -> u64 {
    let add = |value, spec: &SymbolSpec| {
        let SymbolSpec {
            id,
            symbol_type,
            base_currency,
            quote_currency,
            base_scale,
            quote_scale,
            taker_fee,
            maker_fee,
            margin_buy,
            margin_sell,
            fee_unit,
        } = *spec;
        let currencies = [base_currency, quote_currency].map(|id| id.0.into());
        let small = symbol_type as i64 | (fee_unit as i64) << 8;
        let value = with(value, &[id.0.into(), small]);
        let value = with(value, &currencies);
        let value = with(value, &[base_scale, quote_scale, taker_fee, maker_fee]);
        with(value, &[margin_buy, margin_sell])
    };
    let first = with(first, &[symbols.len() as i64]);
    symbols.iter().fold(first, add)
}

pub(super) fn of_limits(first: u64, uid: Option<UserId>, limits: Option<UserLimits>) -> u64 {
    let are_there = [uid.is_some().into(), limits.is_some().into()];
    let limits = limits.unwrap_or_default();
    let (open, once) = (limits.open_orders.into(), limits.ids_once.into());
    let value = with(first, &are_there);
    with(
        value,
        &[uid.unwrap_or_default().0, open, limits.order_size, once],
    )
}

pub(super) fn of_accounts(first: u64, accounts: &[AccountSpec]) -> u64 {
    let add = |value, AccountSpec { uid, balances }: &AccountSpec| {
        let value = with(value, &[uid.0, balances.len() as i64]);
        balances.iter().fold(value, |value, &(currency, amount)| {
            with(value, &[currency.0.into(), amount])
        })
    };
    let first = with(first, &[accounts.len() as i64]);
    accounts.iter().fold(first, add)
}
