//! Parser of load streams: a million commands of the reference's load generator, compactly.
//!
//! First line `# symbol,id,type,base,quote,bK,qK,takerFee,makerFee,marginBuy,marginSell`, then
//! `U,uid,currencies…`, `P,uid,orderId,type,action,price,reserve,size` (type 0 GTC, 1 IOC,
//! 4 FOK_BUDGET; action 0 ask, 1 bid), `C,uid,orderId`, `M,uid,orderId,newPrice`,
//! `R,uid,orderId,by`, and last `Q,side,price,volume,orders`: the final book. Further lines that
//! start with `#` are comments.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::error::StreamError;
use super::fields::Fields;
use super::lines::Lines;
use crate::book::Level;
use crate::command::{AccountSpec, Action, Command, OrderType, Place, SymbolSpec, SymbolType};
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};

const POSITIVE: (i64, i64) = (1, i64::MAX);
const NOT_NEGATIVE: (i64, i64) = (0, i64::MAX);

/// A load stream, read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadStream {
    /// The one symbol.
    pub symbol: SymbolSpec,
    /// Commands that add the symbol and the users, and give futures a price band that all prices of
    /// the stream are in. Each currency of a user is funded with
    /// `i64::MAX` / (n + 1), n being the number of users with that currency.
    pub setup: Vec<Command>,
    /// The commands to time.
    pub commands: Vec<Command>,
    /// The levels that must be left, in the order of the file: asks, then bids, best first.
    pub final_levels: Vec<(Action, Level)>,
}

impl LoadStream {
    /// Reads a load stream.
    ///
    /// # Errors
    /// At the first line that is not of the format, or if reading fails.
    pub fn read(reader: impl BufRead) -> Result<Self, StreamError> {
        let mut lines = Lines::new(reader);
        let symbol = header(lines.next_line()?.unwrap_or_default())?;
        let mut users: Vec<AccountSpec> = Vec::new();
        let mut commands = Vec::new();
        let mut final_levels = Vec::new();
        while let Some(text) = lines.next_line()?.map(str::to_owned) {
            let mut fields = Fields::new(lines.line, &text);
            match fields.text("kind")? {
                "U" => users.push(user(fields)?),
                comment if comment.starts_with('#') => {}
                "Q" => final_levels.push(level(fields)?),
                kind @ ("P" | "C" | "M" | "R") => {
                    commands.push(command(kind, symbol.id, fields)?);
                }
                kind => return Err(fields.unknown_kind(kind)),
            }
        }
        fund(&mut users);
        let mut setup = vec![
            Command::AddSymbols([symbol].into()),
            Command::AddAccounts(users.into()),
        ];
        if symbol.symbol_type == SymbolType::Futures {
            let high = commands.iter().filter_map(limit_price).max();
            setup.push(Command::set_price_band(symbol.id, 1, high.unwrap_or(1)));
        }
        Ok(Self {
            symbol,
            setup,
            commands,
            final_levels,
        })
    }
}

/// Returns the limit price of a new or moved order.
fn limit_price(command: &Command) -> Option<i64> {
    match command {
        Command::Place(place) if !place.order_type.is_budget() => Some(place.price),
        Command::Move { price, .. } => Some(*price),
        _ => None,
    }
}

fn fund(users: &mut [AccountSpec]) {
    let mut counts: BTreeMap<CurrencyId, i64> = BTreeMap::new();
    for (currency, _) in users.iter().flat_map(|user| &user.balances) {
        *counts.entry(*currency).or_default() += 1;
    }
    for (currency, amount) in users.iter_mut().flat_map(|user| &mut user.balances) {
        *amount = i64::MAX / (counts[currency] + 1);
    }
}

fn header(text: &str) -> Result<SymbolSpec, StreamError> {
    const PREFIX: &str = "# symbol";
    let mut fields = Fields::new(1, text);
    if fields.optional() != Some(PREFIX) {
        return Err(StreamError::no_header("# symbol,id,type,…"));
    }
    fields.symbol(POSITIVE, NOT_NEGATIVE)
}

fn user(mut fields: Fields<'_>) -> Result<AccountSpec, StreamError> {
    let uid = UserId(fields.i64("user")?);
    let mut balances = vec![(CurrencyId(fields.i32("currency")?), 0)];
    while let Some(text) = fields.optional() {
        let currency = fields.parse("currency", text, (i32::MIN.into(), i32::MAX.into()))?;
        balances.push((
            CurrencyId(i32::try_from(currency).expect("within its limits")),
            0,
        ));
    }
    Ok(AccountSpec { uid, balances })
}

fn level(mut fields: Fields<'_>) -> Result<(Action, Level), StreamError> {
    let sides = [("A", Action::Ask), ("B", Action::Bid)];
    let side = fields.word("side", &sides, "A, B")?;
    let level = Level {
        price: fields.within("price", POSITIVE)?,
        volume: fields.within("volume", POSITIVE)?,
        orders: fields.within("orders", POSITIVE)?.unsigned_abs(),
    };
    fields.end()?;
    Ok((side, level))
}

fn command(kind: &str, symbol: SymbolId, mut fields: Fields<'_>) -> Result<Command, StreamError> {
    let uid = UserId(fields.i64("user")?);
    let order_id = OrderId(fields.i64("order")?);
    let command = match kind {
        "P" => {
            let types = [
                ("0", OrderType::Gtc),
                ("1", OrderType::Ioc),
                ("4", OrderType::FokBudget),
            ];
            let actions = [("0", Action::Ask), ("1", Action::Bid)];
            Command::Place(Place {
                uid,
                symbol,
                order_id,
                order_type: fields.word("order type", &types, "0, 1, 4")?,
                action: fields.word("action", &actions, "0, 1")?,
                price: fields.within("price", POSITIVE)?,
                reserve_price: fields.within("reserve price", NOT_NEGATIVE)?,
                size: fields.within("size", POSITIVE)?,
                flags: crate::OrderFlags::NONE,
            })
        }
        "C" => Command::cancel(uid, symbol, order_id),
        "M" => {
            let price = fields.within("new price", POSITIVE)?;
            Command::move_to(uid, symbol, order_id, price)
        }
        _ => {
            let by = fields.within("size", POSITIVE)?;
            Command::reduce(uid, symbol, order_id, by)
        }
    };
    fields.end()?;
    Ok(command)
}
