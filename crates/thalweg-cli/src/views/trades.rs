//! `thalweg exchange trades`: those of a symbol as they come, or those that a user has made.

use super::query::{missing, side_name};
use super::rows::{ListFormat, Rows};
use super::{Access, Names};
use crate::arguments::values;
use crate::failure::{Failure, Finding};
use crate::output::print;
use crate::terminal::{Interruption, Notes};
use clap::Args;
use serde_json::Value;
use std::time::Duration;
use thalweg_client::{BlockingReadClient, DisconnectReason, Event};
use thalweg_exchange::SymbolId;
use thalweg_exchange::execution::{Execution, ExecutionReport};
use thalweg_exchange::market::{Body, Message};
use thalweg_exchange::session::ReportNumber;

/// How often the program looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  thalweg exchange trades 1 --user 7 --key-file seven.key --limit 100 --format csv
  thalweg exchange trades --own --user 7 --key-file seven.key")]
pub(crate) struct Trades {
    /// The symbol: its number, or with --symbols its name [default: all]
    symbol: Option<String>,

    /// The user whose key it is
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    user: i64,

    /// The user's own trades that the exchange keeps for it, and no further ones
    #[arg(long)]
    own: bool,

    /// The read session for --own: a second program with the same number ends the first
    #[arg(long, value_name = "N", default_value_t = 0, requires = "own")]
    session: u32,

    /// End after N trades
    #[arg(long, value_name = "N", value_parser = values::from_one)]
    limit: Option<u64>,

    #[command(flatten)]
    access: Access,

    /// Format of standard output
    #[arg(long, value_enum, default_value_t)]
    format: ListFormat,
}

pub(crate) fn trades(asked: &Trades) -> Result<Finding, Failure> {
    let names = asked.access.names()?;
    let symbol = asked.symbol.as_deref();
    let symbol = symbol.map(|text| names.symbol(text)).transpose()?;
    match asked.own {
        true => own(asked, symbol, &names),
        false => public(asked, symbol, &names),
    }
}

/// Shows trades as they come.
fn public(asked: &Trades, symbol: Option<SymbolId>, names: &Names) -> Result<Finding, Failure> {
    let notes = Notes::new(false);
    let options = asked.access.options("127.0.0.1:7411", asked.user)?;
    let interruption = Interruption::new();
    let (client, mut events) = asked.access.open(options)?;
    let client: BlockingReadClient = client;
    if let (Some(symbol), Some(text)) = (symbol, &asked.symbol)
        && let Some(finding) = missing(&client, symbol, text)
    {
        return Ok(finding);
    }
    let subscribed = match symbol {
        Some(symbol) => client.subscribe([symbol]),
        None => client.subscribe_all(),
    };
    let rows = Rows::new(["symbol", "price", "size", "taker"]);
    if asked.format == ListFormat::Csv {
        print(rows.names().as_bytes())?;
    }
    let mut left = asked.limit.unwrap_or(u64::MAX);
    while left > 0 && subscribed.is_ok() {
        if interruption.has_come() {
            return Ok(interruption.finding());
        }
        match events.next_timeout(LOOK) {
            Some(Event::Market(message)) => {
                if let Some(row) = trade(&message, names) {
                    print(rows.line(asked.format, &row).as_bytes())?;
                    left -= 1;
                }
            }
            Some(Event::Conflated(missed)) => {
                notes.hint(&format!("{} messages were missed", missed.missed));
            }
            Some(Event::Disconnected(reason)) => notes.hint(&format!("{reason}; trying again")),
            Some(Event::Closed(reason)) => return Err(asked.access.failure(reason)),
            _ => {}
        }
    }
    match subscribed {
        Ok(()) => Ok(Finding::Fine),
        Err(_) => Err(asked.access.ended(events)),
    }
}

fn trade(message: &Message, names: &Names) -> Option<[Value; 4]> {
    let Body::Trade {
        price,
        size,
        taker_side,
    } = message.body
    else {
        return None;
    };
    Some([
        names.value(message.symbol),
        price.into(),
        size.into(),
        side_name(taker_side).into(),
    ])
}

/// Shows the trades among the reports that the exchange keeps for the user.
fn own(asked: &Trades, symbol: Option<SymbolId>, names: &Names) -> Result<Finding, Failure> {
    let notes = Notes::new(false);
    let mut options = asked.access.options("127.0.0.1:7411", asked.user)?;
    options.without_reports = false;
    options.number = asked.session;
    options.reports_after = Some(ReportNumber(0));
    options.attempts_max = Some(0);
    let (client, mut events) = asked.access.open(options)?;
    let client: BlockingReadClient = client;
    let last = client.welcome().next_report.0.saturating_sub(1);
    let mut rows = Rows::new([
        "trade", "symbol", "order", "side", "role", "price", "size", "left", "filled",
    ]);
    let mut seen = 0;
    while seen < last {
        match events.next() {
            Some(Event::Report(report)) => {
                seen = report.number.0;
                let report = &report.report;
                let is_wanted = symbol.is_none_or(|symbol| symbol == report.symbol);
                if let Some(row) = own_trade(report, names).filter(|_| is_wanted) {
                    rows.push(row);
                }
            }
            Some(Event::ReportGap(gap)) => {
                seen = gap.to.0;
                notes.hint(&format!(
                    "the first {} reports of user {} are no longer kept",
                    gap.to.0, asked.user
                ));
            }
            Some(Event::Closed(reason)) => return Err(asked.access.failure(reason)),
            Some(_) => {}
            None => return Err(Failure::Client(DisconnectReason::Closed)),
        }
    }
    let limit = asked.limit.map_or(usize::MAX, |limit| limit as usize);
    rows.keep_last(limit);
    let title = format!("user {}: {}", asked.user, rows.counted("trade"));
    rows.print(asked.format, &title)?;
    Ok(Finding::Fine)
}

fn own_trade(report: &ExecutionReport, names: &Names) -> Option<[Value; 9]> {
    let Execution::Trade {
        id,
        price,
        size,
        is_maker,
    } = report.kind
    else {
        return None;
    };
    Some([
        id.to_string().into(),
        names.value(report.symbol),
        report.order.0.into(),
        report.side.map(side_name).into(),
        if is_maker { "maker" } else { "taker" }.into(),
        price.into(),
        size.into(),
        report.left.into(),
        report.filled.into(),
    ])
}
