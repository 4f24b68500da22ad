//! Reads our own CSV of commands, which `docs/orders-csv.md` describes.

use crate::input::error::{InputError, excerpt};
use crate::input::fields::{Fields, number};
use crate::input::lines::Lines;
use std::sync::Arc;
use thalweg_exchange::{
    Action, Amend, Command, ConditionalOrder, CurrencyId, OrderFlags, OrderId, OrderType, Place,
    SelfTrade, SymbolId, SymbolSpec, SymbolType, UserId,
};

/// The first line of such a file: the name and version of the format.
pub(crate) const HEADER: &[u8] = b"thalweg-orders,1";

/// Passes the commands of a file with their line numbers, in order, to a callback until it wants no
/// more. Each line is one command.
pub(crate) fn commands(
    lines: &mut Lines,
    mut take: impl FnMut(u64, Command) -> bool,
) -> Result<(), InputError> {
    match lines.next_data()? {
        None => return Err(lines.empty()),
        Some(line) if line.trim_ascii_end() == HEADER => {}
        Some(other) => {
            let what = format!(
                "the first line is {}, it must be `{}`",
                excerpt(other),
                String::from_utf8_lossy(HEADER)
            );
            return Err(lines.wrong(what));
        }
    }
    let mut transaction = 0;
    while let Some(line) = lines.next_data()? {
        transaction += 1;
        let command = command(line, transaction).map_err(|what| lines.wrong(what))?;
        if !take(lines.line(), command) {
            break;
        }
    }
    match transaction {
        0 => Err(lines.empty()),
        _ => Ok(()),
    }
}

/// Parses one line. A deposit uses `transaction` as its id, which rises through the file.
pub(crate) fn command(line: &[u8], transaction: i64) -> Result<Command, String> {
    let mut fields = Fields::new(line);
    let command = of_name(&mut fields, transaction)?;
    fields.end()?;
    Ok(command)
}

/// The commands by their names, in the order in which an error lists them.
macro_rules! commands {
    ($fields:ident, $transaction:ident: $($name:literal => $command:expr;)*) => {
        fn of_name($fields: &mut Fields<'_>, $transaction: i64) -> Result<Command, String> {
            let names = [$($name),*];
            let name = $fields.text("command")?;
            let at = one_of("command", name, &names)?;
            $(if names[at] == $name {
                return Ok($command);
            })*
            unreachable!("it is one of the names")
        }
    };
}

commands! { fields, transaction:
    "symbol" => symbol(fields, SymbolType::CurrencyPair)?;
    "futures" => symbol(fields, SymbolType::Futures)?;
    "user" => Command::AddUser { uid: user(fields)? };
    "deposit" => Command::deposit(
        user(fields)?,
        CurrencyId(small(fields, "currency")?),
        fields.number("amount", 1)?,
        transaction,
    );
    "withdraw" => Command::deposit(
        user(fields)?,
        CurrencyId(small(fields, "currency")?),
        -fields.number("amount", 1)?,
        transaction,
    );
    "suspend" => Command::Suspend { uid: user(fields)? };
    "resume" => Command::Resume { uid: user(fields)? };
    "place" => {
        let place = place(fields)?;
        conditional_order(fields, place)?
    };
    "cancel" => {
        let (uid, symbol, order_id) = order(fields)?;
        Command::cancel(uid, symbol, order_id)
    };
    "move" => {
        let (uid, symbol, order_id) = order(fields)?;
        Command::move_to(uid, symbol, order_id, fields.number("price", 1)?)
    };
    "reduce" => {
        let (uid, symbol, order_id) = order(fields)?;
        Command::reduce(uid, symbol, order_id, fields.number("by", 1)?)
    };
    "amend" => amend(fields)?;
    "clock" => Command::Clock { time: fields.number("time", 0)? };
    "cancel_all" => Command::cancel_all(
        unless(fields, "user", b"all", 0)?.map(UserId),
        unless(fields, "symbol", b"all", 0)?
            .map(|value| in_32_bits(value, "symbol").map(SymbolId))
            .transpose()?,
    );
    "halt" => Command::Halt { symbol: symbol_id(fields)? };
    "unhalt" => Command::Unhalt { symbol: symbol_id(fields)? };
    "open" => Command::Unhalt { symbol: symbol_id(fields)? };
    "band" => Command::SetPriceBand {
        symbol: symbol_id(fields)?,
        low: unless(fields, "lowest price", b"none", 1)?.unwrap_or(i64::MIN),
        high: unless(fields, "highest price", b"none", 1)?.unwrap_or(i64::MAX),
    };
    "protection" => Command::SetMarketProtection {
        symbol: symbol_id(fields)?,
        ticks: unless(fields, "ticks", b"none", 0)?.unwrap_or(i64::MAX),
    };
    "auction" => Command::StartAuction { symbol: symbol_id(fields)? };
    "uncross" => Command::Uncross {
        symbol: symbol_id(fields)?,
        reference: match fields.more() {
            true => Some(fields.number("reference", 1)?),
            false => None,
        },
    };
    "run_stops" => Command::RunStops { symbol: symbol_id(fields)? };
    "remove" => Command::RemoveSymbol { symbol: symbol_id(fields)? };
}

/// Returns which of the words a field is.
fn one_of(name: &str, field: &[u8], words: &[&str]) -> Result<usize, String> {
    let found = words.iter().position(|word| word.as_bytes() == field);
    found.ok_or_else(|| {
        format!(
            "{name} {} is not one of {}",
            excerpt(field),
            words.join(", ")
        )
    })
}

fn symbol(fields: &mut Fields<'_>, symbol_type: SymbolType) -> Result<Command, String> {
    let mut spec = SymbolSpec::pair(
        SymbolId(small(fields, "symbol")?),
        CurrencyId(small(fields, "base currency")?),
        CurrencyId(small(fields, "quote currency")?),
    )
    .with_scales(
        fields.number("base scale", 1)?,
        fields.number("quote scale", 1)?,
    )
    .with_type(symbol_type)
    .with_fees(
        fields.number("taker fee", 0)?,
        fields.number("maker fee", 0)?,
    );
    if symbol_type == SymbolType::Futures {
        spec.margin_buy = fields.number("margin to buy", 0)?;
        spec.margin_sell = fields.number("margin to sell", 0)?;
    }
    Ok(Command::AddSymbols(Arc::new([spec])))
}

fn amend(fields: &mut Fields<'_>) -> Result<Command, String> {
    let (uid, symbol, order_id) = order(fields)?;
    let action = side(fields)?;
    let size_before = fields.number("old size", 1)?;
    let price = fields.number("price", 1)?;
    let size = fields.number("size", 0)?;
    let reserve_price = if fields.more() {
        fields.number("reserve price", 1)?
    } else {
        price
    };
    Ok(Command::Amend(Arc::new(Amend {
        uid,
        symbol,
        order_id,
        action,
        reserve_price,
        size_before,
        price,
        size,
    })))
}

fn side(fields: &mut Fields<'_>) -> Result<Action, String> {
    let side = one_of("side", fields.text("side")?, &["buy", "sell"])?;
    Ok([Action::Bid, Action::Ask][side])
}

/// The names of order types, in the order of [`OrderType::ALL`].
pub(crate) const TYPES: [&str; 6] = ["gtc", "ioc", "ioc_budget", "fok", "fok_budget", "market"];

fn place(fields: &mut Fields<'_>) -> Result<Place, String> {
    let (uid, symbol, order_id) = order(fields)?;
    let action = side(fields)?;
    let order_type = OrderType::ALL[one_of("type", fields.text("type")?, &TYPES)?];
    let price = fields.number("price", 1)?;
    let size = fields.number("size", 1)?;
    Ok(Place::limit((uid, order_id), symbol, action, (price, size)).with_type(order_type))
}

fn order(fields: &mut Fields<'_>) -> Result<(UserId, SymbolId, OrderId), String> {
    let uid = user(fields)?;
    let symbol = symbol_id(fields)?;
    Ok((uid, symbol, OrderId(fields.number("order", 0)?)))
}

fn user(fields: &mut Fields<'_>) -> Result<UserId, String> {
    Ok(UserId(fields.number("user", 0)?))
}

fn symbol_id(fields: &mut Fields<'_>) -> Result<SymbolId, String> {
    Ok(SymbolId(small(fields, "symbol")?))
}

/// Parses an identifier of 32 bits.
fn small(fields: &mut Fields<'_>, name: &str) -> Result<i32, String> {
    in_32_bits(fields.number(name, 0)?, name)
}

fn in_32_bits(value: i64, name: &str) -> Result<i32, String> {
    i32::try_from(value)
        .map_err(|_| format!("{name} {value} is above the largest value {}", i32::MAX))
}

/// Parses a number that is at least `min`, or the word that stands for none.
fn unless(
    fields: &mut Fields<'_>,
    name: &str,
    word: &[u8],
    min: i64,
) -> Result<Option<i64>, String> {
    let field = fields.text(name)?;
    if field == word {
        return Ok(None);
    }
    let is_word = field.first().is_some_and(u8::is_ascii_alphabetic);
    if is_word {
        let word = String::from_utf8_lossy(word);
        return Err(format!(
            "{name} {} is neither a number nor `{word}`",
            excerpt(field)
        ));
    }
    number(field, name, min).map(Some)
}

/// The words that were read so far. Each may occur once.
#[derive(Default)]
struct Conditions {
    post_only: Option<()>,
    self_trade: Option<SelfTrade>,
    stop: Option<i64>,
    display: Option<i64>,
    good_till: Option<i64>,
}

/// Reads the reserve price, if there is one, and the words after it, and returns the whole command.
fn conditional_order(fields: &mut Fields<'_>, mut place: Place) -> Result<Command, String> {
    let mut conditions = Conditions::default();
    let mut is_first = true;
    while fields.more() {
        let field = fields.text("reserve price")?;
        let is_word = field.first().is_some_and(u8::is_ascii_lowercase);
        if is_first && !is_word {
            place.reserve_price = number(field, "reserve price", 1)?;
        } else {
            conditions.read(field)?;
        }
        is_first = false;
    }
    Ok(conditions.command(place))
}

impl Conditions {
    fn read(&mut self, field: &[u8]) -> Result<(), String> {
        let (word, value) = match field.iter().position(|&b| b == b'=') {
            Some(at) => (&field[..at], Some(&field[at + 1..])),
            None => (field, None),
        };
        match (word, value) {
            (b"post_only", None) => once(&mut self.post_only, "post_only", ()),
            (b"self_trade", Some(value)) => {
                once(&mut self.self_trade, "self_trade", self_trade(value)?)
            }
            (b"stop", Some(value)) => once(&mut self.stop, "stop", number(value, "stop", 1)?),
            (b"display", Some(value)) => {
                once(&mut self.display, "display", number(value, "display", 1)?)
            }
            (b"good_till", Some(value)) => {
                let time = number(value, "good_till", 0)?;
                once(&mut self.good_till, "good_till", time)
            }
            _ => Err(format!(
                "{} is not one of post_only, self_trade=MODE, stop=PRICE, display=LOTS, \
                 good_till=TIME",
                excerpt(field)
            )),
        }
    }

    fn command(self, mut place: Place) -> Command {
        place.flags = OrderFlags::NONE.with_self_trade(self.self_trade.unwrap_or_default());
        if self.post_only.is_some() {
            place.flags = place.flags.with_post_only();
        }
        let Self {
            stop: trigger,
            display,
            good_till,
            ..
        } = self;
        if trigger.or(display).or(good_till).is_none() {
            return Command::Place(place);
        }
        Command::PlaceConditional(Arc::new(ConditionalOrder {
            place,
            trigger,
            display,
            good_till,
        }))
    }
}

fn once<T>(condition: &mut Option<T>, name: &str, value: T) -> Result<(), String> {
    match condition.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!("{name} is given twice")),
    }
}

fn self_trade(value: &[u8]) -> Result<SelfTrade, String> {
    let modes = [
        ("allow", SelfTrade::Allow),
        ("cancel_taker", SelfTrade::CancelTaker),
        ("cancel_maker", SelfTrade::CancelMaker),
        ("cancel_both", SelfTrade::CancelBoth),
        ("decrement", SelfTrade::Decrement),
    ];
    let mode = one_of("self_trade", value, &modes.map(|(name, _)| name))?;
    Ok(modes[mode].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;
    use thalweg_exchange::{Action, OrderId, SymbolId, UserId};

    fn parse(text: &str) -> Result<Vec<Command>, String> {
        let mut found = Vec::new();
        let mut lines = Lines::new("o", Cursor::new(text.to_owned()));
        let read = commands(&mut lines, |_, command| {
            found.push(command);
            true
        });
        read.map(|()| found).map_err(|error| error.to_string())
    }

    fn one(line: &str) -> Result<Command, String> {
        parse(&format!("thalweg-orders,1\n{line}\n")).map(|mut all| all.remove(0))
    }

    #[test]
    fn every_command_is_read() {
        let (uid, symbol, order_id) = (UserId(7), SymbolId(1), OrderId(9));
        assert_eq!(one("user,7"), Ok(Command::AddUser { uid }));
        assert_eq!(
            one("cancel,7,1,9"),
            Ok(Command::cancel(uid, symbol, order_id))
        );
        assert_eq!(
            one("move,7,1,9,50"),
            Ok(Command::move_to(uid, symbol, order_id, 50))
        );
        assert_eq!(
            one("reduce,7,1,9,3"),
            Ok(Command::reduce(uid, symbol, order_id, 3))
        );
        let place = Place::limit((uid, order_id), symbol, Action::Bid, (50, 4));
        assert_eq!(one("place,7,1,9,buy,gtc,50,4"), Ok(Command::Place(place)));
        let reserved = place.with_reserve(60);
        assert_eq!(
            one("place,7,1,9,buy,gtc,50,4,60"),
            Ok(Command::Place(reserved))
        );
        let both = parse("thalweg-orders,1\ndeposit,7,20,5\ndeposit,7,20,6\n").unwrap();
        let ids = both.iter().map(|c| match c {
            Command::Balance { transaction_id, .. } => *transaction_id,
            _ => 0,
        });
        assert_eq!(ids.collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn order_types_have_the_names_of_recorded_streams() {
        let names = OrderType::ALL.map(|order_type| order_type.name().to_ascii_lowercase());
        assert_eq!(names, TYPES);
    }

    #[test]
    fn operations_are_read() {
        let symbol = SymbolId(1);
        for (line, command) in [
            ("clock,0", Command::Clock { time: 0 }),
            ("halt,1", Command::Halt { symbol }),
            ("unhalt,1", Command::Unhalt { symbol }),
            ("remove,1", Command::RemoveSymbol { symbol }),
            (
                "cancel_all,7,1",
                Command::cancel_all(Some(UserId(7)), Some(symbol)),
            ),
            ("cancel_all,all, all", Command::cancel_all(None, None)),
            (
                "band,1,5,none",
                Command::set_price_band(symbol, 5, i64::MAX),
            ),
            (
                "band,1,none,9",
                Command::set_price_band(symbol, i64::MIN, 9),
            ),
        ] {
            assert_eq!(one(line), Ok(command), "{line}");
        }
        let spec = SymbolSpec::pair(symbol, CurrencyId(10), CurrencyId(20))
            .with_type(SymbolType::Futures)
            .with_fees(3, 2)
            .with_margins(40, 50);
        assert_eq!(
            one("futures,1,10,20,1,1,3,2,40,50"),
            Ok(Command::AddSymbols([spec].into()))
        );
    }

    #[test]
    fn amendments_auctions_and_protections_are_read() {
        let symbol = SymbolId(1);
        for (line, command) in [
            ("auction,1", Command::StartAuction { symbol }),
            ("open,1", Command::Unhalt { symbol }),
            ("suspend,7", Command::Suspend { uid: UserId(7) }),
            ("resume,7", Command::Resume { uid: UserId(7) }),
            (
                "withdraw,7,20,50",
                Command::deposit(UserId(7), CurrencyId(20), -50, 1),
            ),
            ("run_stops,1", Command::RunStops { symbol }),
            (
                "uncross,1",
                Command::Uncross {
                    symbol,
                    reference: None,
                },
            ),
            (
                "uncross,1,50",
                Command::Uncross {
                    symbol,
                    reference: Some(50),
                },
            ),
            (
                "amend,7,1,9,buy,4,50,6,60",
                Command::Amend(Arc::new(Amend {
                    uid: UserId(7),
                    symbol,
                    order_id: OrderId(9),
                    action: Action::Bid,
                    reserve_price: 60,
                    size_before: 4,
                    price: 50,
                    size: 6,
                })),
            ),
            (
                "protection,1,3",
                Command::SetMarketProtection { symbol, ticks: 3 },
            ),
            (
                "protection,1,none",
                Command::SetMarketProtection {
                    symbol,
                    ticks: i64::MAX,
                },
            ),
        ] {
            assert_eq!(one(line), Ok(command), "{line}");
        }
    }

    /// Checks every line of `faults`, which holds a line of a file and the error expected for it.
    fn all_wrong(faults: &str) {
        for fault in faults.lines() {
            let (line, text) = fault.trim_start().split_once(' ').expect("two columns");
            assert_eq!(one(line), Err(format!("o:2: {text}")));
        }
    }

    #[test]
    fn faults_of_operations_name_line_field_and_limit() {
        all_wrong(
            "clock,-1 time -1 is below the smallest value 0
             halt the field symbol is missing
             halt,1,2 `2` is one field too many
             open the field symbol is missing
             suspend,x user `x` is not a whole number
             withdraw,7,20,-5 amount -5 is below the smallest value 1
             cancel_all,7,2147483648 symbol 2147483648 is above the largest value 2147483647
             cancel_all,everybody,1 user `everybody` is neither a number nor `all`
             cancel_all,7 the field symbol is missing
             band,1,0,9 lowest price 0 is below the smallest value 1
             band,1,5,high highest price `high` is neither a number nor `none`
             futures,1,10,20,1,1,3,2,40 the field margin to sell is missing
             place,7,1,9,buy,gtc,5,4,6,stop=0 stop 0 is below the smallest value 1",
        );
    }

    #[test]
    fn faults_name_line_field_and_limit() {
        all_wrong(
            "place,7,1,9,buy,gtc,5o,4 price `5o` is not a whole number
             place,7,1,9,buy,gtc,5,-4 size -4 is below the smallest value 1
             cancel,7,1,9223372036854775808 order `9223372036854775808` is above the largest \
                 value 9223372036854775807
             cancel,7,2147483648,9 symbol 2147483648 is above the largest value 2147483647
             user,7,8 `8` is one field too many",
        );
        let wrong = |text: &str| parse(text).unwrap_err();
        for (line, text) in [
            ("place,7,1,9,hold,gtc,5,4", "not one of buy, sell"),
            ("place,7,1,9,buy,day,5,4", "not one of gtc, ioc"),
            ("pay,7", "not one of symbol, futures, user"),
        ] {
            assert!(one(line).unwrap_err().contains(text), "{line}");
        }
        assert!(wrong("user,7").contains("it must be `thalweg-orders,1`"));
        assert_eq!(wrong("thalweg-orders,1\n"), wrong(""));
    }

    proptest! {
        #[test]
        fn any_bytes_are_commands_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let text = [HEADER, b"\n", &bytes].concat();
            let _ = commands(&mut Lines::new("o", Cursor::new(text)), |_, _| true);
            let _ = commands(&mut Lines::new("o", Cursor::new(bytes)), |_, _| true);
        }

        #[test]
        fn near_misses_are_commands_or_an_error(
            text in "((place|move|user|symbol|deposit|band|cancel_all|futures|clock),\
                ([0-9a-z-]{0,20}|stop=[0-9]{0,3}|post_only|all|none,){0,10}\n){0,5}"
        ) {
            let _ = parse(&format!("thalweg-orders,1\n{text}"));
        }
    }

    const PLACE: Place = Place::limit((UserId(7), OrderId(9)), SymbolId(1), Action::Bid, (50, 4));

    fn read(line: &str) -> Result<Command, String> {
        let mut fields = Fields::new(line.as_bytes());
        fields.text("command")?;
        conditional_order(&mut fields, PLACE)
    }

    #[test]
    fn wishes_are_read_in_any_order() {
        let flags = OrderFlags::NONE.with_post_only();
        assert_eq!(
            read("x,post_only"),
            Ok(Command::Place(Place { flags, ..PLACE }))
        );
        let flags = flags.with_self_trade(SelfTrade::CancelBoth);
        let place = PLACE.with_reserve(60).with_flags(flags);
        let all = ConditionalOrder::from(place)
            .with_trigger(49)
            .with_display(2)
            .with_good_till(0);
        let all = Ok(Command::PlaceConditional(Arc::new(all)));
        for line in [
            "x,60,post_only,self_trade=cancel_both,stop=49,display=2,good_till=0",
            "x, 60 ,good_till=0,display=2, stop=49 ,self_trade=cancel_both,post_only",
        ] {
            assert_eq!(read(line), all, "{line}");
        }
        assert_eq!(read("x"), Ok(Command::Place(PLACE)));
    }

    #[test]
    fn faults_name_wish_and_limit() {
        let wrong = |line: &str| read(line).unwrap_err();
        assert_eq!(wrong("x,stop=0"), "stop 0 is below the smallest value 1");
        assert_eq!(
            wrong("x,60,display=two"),
            "display `two` is not a whole number"
        );
        assert_eq!(
            wrong("x,good_till=-1"),
            "good_till -1 is below the smallest value 0"
        );
        assert_eq!(wrong("x,stop=5,stop=5"), "stop is given twice");
        assert_eq!(wrong("x,post_only,post_only"), "post_only is given twice");
        assert_eq!(
            wrong("x,self_trade=no"),
            "self_trade `no` is not one of allow, cancel_taker, cancel_maker, cancel_both, \
             decrement"
        );
        for line in ["x,hidden", "x,stop", "x,post_only=1", "x,60,61", "x,60,"] {
            assert!(
                wrong(line).contains("is not one of post_only, self_trade=MODE"),
                "{line}"
            );
        }
        assert_eq!(wrong("x,"), "reserve price `` is not a whole number");
    }
}
