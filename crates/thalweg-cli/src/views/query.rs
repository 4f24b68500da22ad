//! `thalweg exchange book`, `orders` and `account`: one query, and its answer.

use super::rows::{ListFormat, Rows};
use super::{Access, Names};
use crate::failure::{Failure, Finding};
use crate::message::counted;
use crate::terminal::Notes;
use clap::{ArgGroup, Args};
use serde_json::{Number, Value};
use thalweg_client::{BlockingClient, NoCommand, SessionCommand, SessionQuery};
use thalweg_exchange::codec::session::{
    AccountView, AdminCommand, OpenOrder, QueryAnswer, QueryResult,
};
use thalweg_exchange::report::BookReport;
use thalweg_exchange::risk::UserStatus;
use thalweg_exchange::{Action, OrderType, SymbolId, UserId};

/// How often a query tries to connect again before it gives up.
const ATTEMPTS_MAX: u32 = 5;
/// The session of an administrator who asks: far from those that programs take first, since a
/// second connection of a session ends the first.
const ADMIN_SESSION: u32 = 14;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("reader").args(["user", "admin"]).required(true))]
#[command(after_help = "\
Examples:
  thalweg exchange book 1 --user 7 --key-file seven.key
  thalweg exchange book BTCUSDT --user 7 --symbols symbols.toml --format csv")]
pub(crate) struct Book {
    /// The symbol: its number, or with --symbols its name
    symbol: String,

    /// Read with the key of this user
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    user: Option<i64>,

    /// Read with the key of this administrator
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    admin: Option<i64>,

    /// Levels a side, at most; the server gives no more than 1,000
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..))]
    depth: u32,

    #[command(flatten)]
    access: Access,

    /// Format of standard output
    #[arg(long, value_enum, default_value_t)]
    format: ListFormat,
}

/// The options of `exchange orders` and `account`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  thalweg exchange account --user 7 --key-file seven.key
  thalweg exchange orders --user 7 --admin 1 --key-file admin.key --format json")]
pub(crate) struct OfUser {
    /// Whose; also whose key it is, unless an administrator asks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    user: i64,

    /// Ask with the key of this administrator
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    admin: Option<i64>,

    #[command(flatten)]
    access: Access,

    /// Format of standard output
    #[arg(long, value_enum, default_value_t)]
    format: ListFormat,
}

/// Shows the levels of a book.
pub(crate) fn book(asked: &Book) -> Result<Finding, Failure> {
    let names = asked.access.names()?;
    let symbol = names.symbol(&asked.symbol)?;
    let query = SessionQuery::Book {
        symbol,
        depth: asked.depth,
    };
    let answer = ask(&asked.access, asked.user, asked.admin, query)?;
    let QueryResult::Book(book) = &answer.result else {
        return refused(&answer, &format!("symbol {}", asked.symbol));
    };
    let name = names.of(symbol);
    let title = format!("{name} after {}", counted(answer.number, "command"));
    levels(book, &names.value(symbol), asked.format).print(asked.format, &title)?;
    Ok(Finding::Fine)
}

/// Returns the levels: as a ladder for people, best first for programs.
fn levels(book: &BookReport, symbol: &Value, format: ListFormat) -> Rows<5> {
    let mut rows = Rows::new(["symbol", "side", "price", "size", "orders"]);
    let asks: Vec<_> = match format {
        ListFormat::Text => book.asks.iter().rev().collect(),
        _ => book.asks.iter().collect(),
    };
    let asks = asks.into_iter().map(|level| (Action::Ask, level));
    let bids = book.bids.iter().map(|level| (Action::Bid, level));
    for (side, level) in asks.chain(bids) {
        rows.push([
            symbol.clone(),
            side_name(side).into(),
            level.price.into(),
            level.volume.into(),
            level.orders.into(),
        ]);
    }
    rows
}

pub(crate) const fn side_name(side: Action) -> &'static str {
    match side {
        Action::Ask => "sell",
        Action::Bid => "buy",
    }
}

/// Shows a user's open orders.
pub(crate) fn orders(asked: &OfUser) -> Result<Finding, Failure> {
    let names = asked.access.names()?;
    let user = UserId(asked.user);
    let query = SessionQuery::OpenOrders(user);
    let answer = ask(&asked.access, Some(asked.user), asked.admin, query)?;
    let QueryResult::OpenOrders { orders, is_cut } = &answer.result else {
        return refused(&answer, &format!("user {user}"));
    };
    let rows = order_rows(orders, &names);
    let count = counted(orders.len() as u64, "open order");
    let more = if *is_cut { ", and more" } else { "" };
    rows.print(asked.format, &format!("user {user}: {count}{more}"))?;
    if *is_cut {
        let text = "the user has more open orders than the server gives";
        Notes::new(asked.format == ListFormat::Text).hint(text);
    }
    Ok(Finding::Fine)
}

fn order_rows(orders: &[OpenOrder], names: &Names) -> Rows<13> {
    let mut rows = Rows::new([
        "record",
        "symbol",
        "order",
        "side",
        "type",
        "price",
        "size",
        "left",
        "filled",
        "stop",
        "display",
        "good_till",
        "post_only",
    ]);
    for order in orders {
        let record = match order.trigger {
            Some(_) => "waiting",
            None => "open",
        };
        rows.push([
            record.into(),
            names.value(order.symbol),
            order.order_id.0.into(),
            side_name(order.action).into(),
            type_name(order.order_type).into(),
            order.price.into(),
            order.size.into(),
            (order.size - order.filled).into(),
            order.filled.into(),
            order.trigger.into(),
            order.display.into(),
            order.good_till.into(),
            match order.flags.is_post_only() {
                true => true.into(),
                false => Value::Null,
            },
        ]);
    }
    rows
}

/// Returns the name that docs/orders-csv.md has for a type.
fn type_name(order_type: OrderType) -> &'static str {
    let at = OrderType::ALL.iter().position(|known| *known == order_type);
    at.map_or("", |at| crate::input::orders::TYPES[at])
}

/// Shows a user's balances and positions.
pub(crate) fn account(asked: &OfUser) -> Result<Finding, Failure> {
    let names = asked.access.names()?;
    let user = UserId(asked.user);
    let query = SessionQuery::Account(user);
    let answer = ask(&asked.access, Some(asked.user), asked.admin, query)?;
    let QueryResult::Account(account) = &answer.result else {
        return refused(&answer, &format!("user {user}"));
    };
    let status = match account.status {
        UserStatus::Active => "active",
        UserStatus::Suspended => "suspended",
    };
    let count = counted(account.open_orders, "open order");
    let title = format!("user {user}: {status}, {count}");
    account_rows(account, status, &names).print(asked.format, &title)?;
    Ok(Finding::Fine)
}

fn account_rows(account: &AccountView, status: &str, names: &Names) -> Rows<10> {
    let mut rows = Rows::new([
        "record", "user", "status", "currency", "amount", "symbol", "open", "cost", "profit",
        "orders",
    ]);
    let user = || Value::from(account.uid.0);
    let none = Value::Null;
    rows.push([
        "account".into(),
        user(),
        status.into(),
        none.clone(),
        none.clone(),
        none.clone(),
        none.clone(),
        none.clone(),
        none.clone(),
        account.open_orders.into(),
    ]);
    let balances = account.balances.iter();
    let balances = balances.map(|&(currency, amount)| ("balance", currency, i128::from(amount)));
    let waiting = account.waiting.iter();
    let waiting = waiting.map(|&(currency, amount)| ("settling", currency, amount));
    for (record, currency, amount) in balances.chain(waiting) {
        let amount = Number::from_i128(amount).map_or_else(
            // No more than JSON's numbers hold is lost: the digits are a text then.
            || Value::from(amount.to_string()),
            Value::Number,
        );
        let mut row = [const { Value::Null }; 10];
        (row[0], row[1], row[3], row[4]) = (record.into(), user(), currency.0.into(), amount);
        rows.push(row);
    }
    for position in &account.positions {
        rows.push([
            "position".into(),
            user(),
            none.clone(),
            position.currency.0.into(),
            none.clone(),
            names.value(position.symbol),
            position.open.into(),
            position.open_price_sum.into(),
            position.profit.into(),
            none.clone(),
        ]);
    }
    rows
}

/// Asks one query, as an administrator where there is one.
fn ask(
    access: &Access,
    user: Option<i64>,
    admin: Option<i64>,
    query: SessionQuery,
) -> Result<QueryAnswer, Failure> {
    match admin {
        Some(admin) => ask_as::<AdminCommand>(access, ("127.0.0.1:7412", admin), query),
        None => ask_as::<NoCommand>(access, ("127.0.0.1:7411", user.unwrap_or_default()), query),
    }
}

fn ask_as<C: SessionCommand>(
    access: &Access,
    (address, holder): (&str, i64),
    query: SessionQuery,
) -> Result<QueryAnswer, Failure> {
    let mut options = access.options(address, holder)?;
    options.attempts_max = Some(ATTEMPTS_MAX);
    if C::ROLE != NoCommand::ROLE {
        options.number = ADMIN_SESSION;
        options.without_reports = false;
    }
    let (client, events): (BlockingClient<C>, _) = access.open(options)?;
    client.query(query).map_err(|_| access.ended(events))
}

/// Returns the result of the program where the exchange does not have a symbol, and says so.
pub(super) fn missing(
    client: &BlockingClient<NoCommand>,
    symbol: SymbolId,
    text: &str,
) -> Option<Finding> {
    let answer = client.query(SessionQuery::Book { symbol, depth: 1 }).ok()?;
    match answer.result {
        QueryResult::UnknownSymbol => refused(&answer, &format!("symbol {text}")).ok(),
        _ => None,
    }
}

/// Says why there is no answer of the kind that was asked for.
fn refused(answer: &QueryAnswer, about: &str) -> Result<Finding, Failure> {
    let why = match &answer.result {
        QueryResult::UnknownUser => "the exchange has no such user".to_owned(),
        QueryResult::UnknownSymbol => "the exchange has no such symbol".to_owned(),
        QueryResult::Refused(why) => format!("refused: {why}"),
        _ => return Err(Failure::Misuse("the answer is to another query".to_owned())),
    };
    Notes::new(false).hint(&format!("{about}: {why}"));
    Ok(Finding::Negative)
}
