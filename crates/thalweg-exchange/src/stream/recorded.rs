//! Parser of recorded streams: commands with what they did.
//!
//! ASCII, comma-separated, the first field is the kind of line; `#` starts a comment. Inputs are
//! `S` (add symbols) and `W` (add accounts), of which consecutive lines with the same counter are
//! one batch, and `C` (every other command). All other kinds are what the reference answered. The
//! first line is a comment with `marginTrading=ENABLED` or `DISABLED`.

use std::io::BufRead;

use super::error::StreamError;
use super::fields::Fields;
use super::lines::Lines;
use crate::command::{AccountSpec, Action, AdjustmentKind, Command, OrderType, Place, SymbolSpec};
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};
use crate::rules::Rules;

const MARGIN: &str = "marginTrading=";

/// One thing in a recorded stream. Comments are skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A command, and the line or first line that it was read from.
    Command {
        /// Its counter, from 1 without gaps.
        seq: u64,
        /// The command.
        command: Command,
        /// The line.
        text: String,
    },
    /// A line that the reference printed.
    Output(String),
    /// `# FINAL STATE`: the whole state follows.
    FinalState,
    /// `# END`: nothing follows.
    End,
}

/// A recorded stream as an iterator of [`Item`]s with their line numbers.
///
/// Reads on from `reader` as it is asked, so gzip goes through a decoder in between.
#[derive(Debug)]
pub struct Recording<R> {
    lines: Lines<R>,
    margin_trading: bool,
    seq: u64,
    /// A line that was read to see that a batch is over.
    ahead: Option<(u64, String)>,
    failed: bool,
}

impl<R: BufRead> Recording<R> {
    /// Begins to read a stream.
    ///
    /// # Errors
    /// If the first line is not a comment that states whether margin trading is on.
    pub fn new(reader: R) -> Result<Self, StreamError> {
        let mut lines = Lines::new(reader);
        let header = lines.next_line()?.unwrap_or_default();
        let setting = header.strip_prefix('#').and_then(|comment| {
            comment
                .split_whitespace()
                .find_map(|word| word.strip_prefix(MARGIN))
        });
        let margin_trading = match setting {
            Some("ENABLED") => true,
            Some("DISABLED") => false,
            _ => {
                let expected = "marginTrading=ENABLED or marginTrading=DISABLED";
                return Err(StreamError::no_header(expected));
            }
        };
        Ok(Self {
            lines,
            margin_trading,
            seq: 0,
            ahead: None,
            failed: false,
        })
    }

    /// Returns whether the stream was recorded with margin trading on.
    #[must_use]
    pub const fn margin_trading(&self) -> bool {
        self.margin_trading
    }

    /// Returns the rules under which the stream was recorded.
    #[must_use]
    pub const fn rules(&self) -> Rules {
        Rules::REFERENCE.with_margin_trading(self.margin_trading)
    }

    /// Returns the number of the last line that was read; past the end, one more than there are.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.lines.line
    }

    fn take_line(&mut self) -> Result<Option<(u64, String)>, StreamError> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        let text = self.lines.next_line()?.map(str::to_owned);
        Ok(text.map(|text| (self.lines.line, text)))
    }

    fn next_item(&mut self) -> Result<Option<(u64, Item)>, StreamError> {
        while let Some((line, text)) = self.take_line()? {
            let mut fields = Fields::new(line, &text);
            let item = match fields.text("kind")? {
                "# FINAL STATE" => Item::FinalState,
                "# END" => Item::End,
                comment if comment.starts_with('#') => continue,
                kind @ ("S" | "W" | "C") => {
                    let seq = self.sequence(&mut fields)?;
                    let command = match kind {
                        "S" => self.symbols(seq, fields)?,
                        "W" => self.accounts(seq, fields)?,
                        _ => command(fields)?,
                    };
                    self.seq = seq;
                    Item::Command { seq, command, text }
                }
                kind if is_output(kind) => Item::Output(text),
                kind => return Err(fields.unknown_kind(kind)),
            };
            return Ok(Some((line, item)));
        }
        Ok(None)
    }

    fn sequence(&self, fields: &mut Fields<'_>) -> Result<u64, StreamError> {
        let found = fields.within("counter", (1, i64::MAX))?.unsigned_abs();
        let expected = self.seq + 1;
        if found == expected {
            Ok(found)
        } else {
            let what = format!("the command counter is {found}, expected {expected}");
            Err(fields.error(what))
        }
    }

    /// Returns the next line, if it belongs to the batch of this kind and counter.
    fn continues(&mut self, kind: &str, seq: u64) -> Result<Option<(u64, String)>, StreamError> {
        let Some((line, text)) = self.take_line()? else {
            return Ok(None);
        };
        let mut fields = text.split(',');
        let same = fields.next() == Some(kind)
            && fields.next().is_some_and(|field| field.parse() == Ok(seq));
        if same {
            return Ok(Some((line, text)));
        }
        self.ahead = Some((line, text));
        Ok(None)
    }

    fn symbols(&mut self, seq: u64, first: Fields<'_>) -> Result<Command, StreamError> {
        let mut specs = vec![symbol(first)?];
        while let Some((line, text)) = self.continues("S", seq)? {
            specs.push(symbol(skip_head(line, &text))?);
        }
        Ok(Command::AddSymbols(specs.into()))
    }

    fn accounts(&mut self, seq: u64, first: Fields<'_>) -> Result<Command, StreamError> {
        let mut accounts = vec![account(first)?];
        while let Some((line, text)) = self.continues("W", seq)? {
            accounts.push(account(skip_head(line, &text))?);
        }
        Ok(Command::AddAccounts(accounts.into()))
    }
}

impl<R: BufRead> Iterator for Recording<R> {
    type Item = Result<(u64, Item), StreamError>;

    /// Returns the next item with the number of its first line. Ends after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let item = self.next_item();
        self.failed = item.is_err();
        item.transpose()
    }
}

fn skip_head(line: u64, text: &str) -> Fields<'_> {
    let mut fields = Fields::new(line, text);
    fields.optional();
    fields.optional();
    fields
}

fn is_output(kind: &str) -> bool {
    const KINDS: &[&str] = &[
        "R", "T", "J", "D", "K", "U", "A", "P", "F", "X", "Z", "L", "O", "Q", "G", "I",
    ];
    KINDS.contains(&kind.strip_prefix(['+', '-']).unwrap_or(kind))
}

fn symbol(fields: Fields<'_>) -> Result<SymbolSpec, StreamError> {
    let any = (i64::MIN, i64::MAX);
    fields.symbol(any, any)
}

fn account(mut fields: Fields<'_>) -> Result<AccountSpec, StreamError> {
    let uid = UserId(fields.i64("user")?);
    let mut balances = Vec::new();
    while let Some(pair) = fields.optional() {
        let (currency, amount) = pair.split_once(':').unwrap_or((pair, ""));
        let currency = fields.parse(
            "currency of currency:amount",
            currency,
            (i32::MIN.into(), i32::MAX.into()),
        )?;
        let currency = CurrencyId(i32::try_from(currency).expect("it is within its limits"));
        let amount = fields.parse("amount of currency:amount", amount, (i64::MIN, i64::MAX))?;
        balances.push((currency, amount));
    }
    Ok(AccountSpec { uid, balances })
}

fn command(mut fields: Fields<'_>) -> Result<Command, StreamError> {
    let f = &mut fields;
    let name = f.text("command")?;
    let command = match name {
        "PLACE" => Command::Place(place(f)?),
        "CANCEL" => {
            let (uid, symbol, order_id) = order(f)?;
            Command::cancel(uid, symbol, order_id)
        }
        "MOVE" => {
            let (uid, symbol, order_id) = order(f)?;
            Command::move_to(uid, symbol, order_id, f.i64("new price")?)
        }
        "REDUCE" => {
            let (uid, symbol, order_id) = order(f)?;
            Command::reduce(uid, symbol, order_id, f.i64("size")?)
        }
        "ADD_USER" => Command::AddUser {
            uid: UserId(f.i64("user")?),
        },
        "SUSPEND" => Command::Suspend {
            uid: UserId(f.i64("user")?),
        },
        "RESUME" => Command::Resume {
            uid: UserId(f.i64("user")?),
        },
        "BALANCE" => balance(f)?,
        "NOP" => Command::Nop,
        "RESET" => Command::Reset,
        _ => {
            let allowed = "PLACE, CANCEL, MOVE, REDUCE, ADD_USER, BALANCE, SUSPEND, RESUME, NOP, \
                           RESET";
            return Err(f.unknown_word("command", name, allowed));
        }
    };
    fields.end()?;
    Ok(command)
}

fn balance(fields: &mut Fields<'_>) -> Result<Command, StreamError> {
    let uid = UserId(fields.i64("user")?);
    let currency = CurrencyId(fields.i32("currency")?);
    let amount = fields.i64("amount")?;
    let transaction_id = fields.i64("transaction id")?;
    let kind = fields.within("adjustment type", (0, 1))?;
    let kind = AdjustmentKind::ALL[usize::try_from(kind).expect("0 or 1")];
    Ok(Command::Balance {
        uid,
        currency,
        amount,
        transaction_id,
        kind,
    })
}

fn order(fields: &mut Fields<'_>) -> Result<(UserId, SymbolId, OrderId), StreamError> {
    let uid = UserId(fields.i64("user")?);
    let symbol = SymbolId(fields.i32("symbol")?);
    Ok((uid, symbol, OrderId(fields.i64("order")?)))
}

fn place(fields: &mut Fields<'_>) -> Result<Place, StreamError> {
    let (uid, symbol, order_id) = order(fields)?;
    let types = OrderType::ALL.map(|order_type| (order_type.name(), order_type));
    let actions = [("ASK", Action::Ask), ("BID", Action::Bid)];
    Ok(Place {
        uid,
        symbol,
        order_id,
        order_type: fields.word(
            "order type",
            &types,
            "GTC, IOC, IOC_BUDGET, FOK, FOK_BUDGET",
        )?,
        action: fields.word("action", &actions, "ASK, BID")?,
        price: fields.i64("price")?,
        reserve_price: fields.i64("reserve price")?,
        size: fields.i64("size")?,
        flags: crate::OrderFlags::NONE,
    })
}
