//! LOBSTER messages and order book rows, as CSV. LOBSTER writes no header; programs that save its
//! files again do.
//!
//! Messages have the form `seconds,type,order_id,size,price·10⁴,direction`; direction 1 is a bid,
//! −1 an ask. Row k of the order book is the state after message k: `ask,size,bid,size` for each
//! level.

use crate::input::error::{InputError, excerpt};
use crate::input::fields::{Fields, Row};
use crate::input::lines::Lines;
use thalweg_exchange::Action;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A new order rests (type 1).
    Added,
    /// A part of an order is cancelled (type 2).
    Reduced,
    /// An order is cancelled (type 3).
    Deleted,
    /// A visible order is executed (type 4).
    Executed,
    /// A hidden order is executed (type 5), a cross trade happens (6), or trading halts (7): the
    /// visible book does not change.
    Unseen,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) order: i64,
    /// The side of the named order, which for an execution is the resting one.
    pub(crate) action: Action,
    pub(crate) price: i64,
    pub(crate) size: i64,
    /// When it came, in nanoseconds of its day.
    pub(crate) time_ns: u64,
}

/// Returns whether a line begins a message file.
pub(crate) fn is_message(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.split(|&b| b == b',').map(<[u8]>::trim_ascii).collect();
    let data = || is_seconds(fields[0]) && matches!(fields[5], b"1" | b"-1" | b"0");
    fields.len() == 6 && (is_header(line) || data())
}

/// Returns whether a line begins an order book file.
pub(crate) fn is_row(line: &[u8]) -> bool {
    let mut count = 0;
    let whole = line.split(|&b| b == b',').all(|field| {
        count += 1;
        let digits = field.strip_prefix(b"-").unwrap_or(field);
        !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    });
    count % 4 == 0 && (whole || is_header(line))
}

/// Returns whether a line names columns: the first begins with a letter, and one of them is a
/// price.
fn is_header(line: &[u8]) -> bool {
    let first = line.strip_prefix(b"\"").unwrap_or(line).first();
    let is_price = |name: &[u8]| name.eq_ignore_ascii_case(b"price");
    first.is_some_and(u8::is_ascii_alphabetic) && line.windows(5).any(is_price)
}

/// Returns `None` for a line that names columns, and the record of any other line.
fn data<T>(line: &[u8], record: fn(&[u8]) -> Result<T, String>) -> Result<Option<T>, String> {
    match is_header(line) {
        true => Ok(None),
        false => record(line).map(Some),
    }
}

/// Returns whether the text is a time: a number of seconds, in which the point may be missing if
/// the number is whole.
fn is_seconds(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|b| b.is_ascii_digit() || *b == b'.')
}

/// Returns a number of seconds in nanoseconds; digits beyond these do not count.
fn nanoseconds(seconds: &[u8]) -> u64 {
    let mut parts = seconds.split(|&b| b == b'.');
    let mut part = |digits: usize| {
        let digits = parts
            .next()
            .unwrap_or_default()
            .iter()
            .chain([b'0'; 9].iter().take(digits));
        digits.copied().collect::<Vec<u8>>()
    };
    let (whole, mut fraction) = (part(0), part(9));
    fraction.truncate(9);
    let number = |digits: &[u8]| {
        let digits = digits.iter().map(|digit| u64::from(digit - b'0'));
        digits.fold(0_u64, |sum, digit| {
            sum.saturating_mul(10).saturating_add(digit)
        })
    };
    number(&whole)
        .saturating_mul(1_000_000_000)
        .saturating_add(number(&fraction))
}

/// Returns all messages of a file, with their line numbers.
pub(crate) fn messages(lines: &mut Lines) -> Result<Vec<(u64, Message)>, InputError> {
    lines.records(|line| data(line, message))
}

fn message(line: &[u8]) -> Result<Message, String> {
    let mut fields = Fields::new(line);
    let seconds = fields.text("seconds")?;
    if !is_seconds(seconds) {
        return Err(format!(
            "seconds {} is not a decimal number",
            excerpt(seconds)
        ));
    }
    let kind = match fields.text("type")? {
        b"1" => Kind::Added,
        b"2" => Kind::Reduced,
        b"3" => Kind::Deleted,
        b"4" => Kind::Executed,
        b"5" | b"6" | b"7" => Kind::Unseen,
        other => return Err(format!("type {} is not one of 1 to 7", excerpt(other))),
    };
    // A cross has an order number of -1 or below; a halt has no order, no size, and a price of -1,
    // 0 or 1. Neither has a side.
    let least = |least| {
        if kind == Kind::Unseen {
            i64::MIN
        } else {
            least
        }
    };
    let order = fields.number("order_id", least(0))?;
    let size = fields.number("size", least(1))?;
    let price = fields.number("price", least(1))?;
    let action = match fields.text("direction")? {
        b"1" => Action::Bid,
        b"-1" => Action::Ask,
        b"0" if kind == Kind::Unseen => Action::Ask,
        other => return Err(format!("direction {} is not one of 1, -1", excerpt(other))),
    };
    fields.end()?;
    Ok(Message {
        kind,
        order,
        action,
        price,
        size,
        time_ns: nanoseconds(seconds),
    })
}

/// Returns the rows of an order book file.
pub(crate) fn rows(lines: &mut Lines) -> impl Iterator<Item = Result<Row, InputError>> {
    let rows = lines.each(|line| data(line, row));
    rows.map(|next| next.map(|(_, row)| row))
}

fn row(line: &[u8]) -> Result<Row, String> {
    let mut row = Row::default();
    let mut fields = Fields::new(line);
    while fields.more() {
        for side in [&mut row.asks, &mut row.bids] {
            // An empty level has a price of ±9999999999 and the size 0.
            let price = fields.number("price", i64::MIN)?;
            let size = fields.number("size", 0)?;
            if size > 0 && price < 1 {
                return Err(format!("price {price} is below the smallest value 1"));
            }
            if size > 0 {
                side.push((price, size));
            }
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn parse(text: &str) -> Result<Vec<Message>, String> {
        let found = messages(&mut Lines::new("m", Cursor::new(text.to_owned())));
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|(_, message)| message).collect())
    }

    #[test]
    fn messages_have_kinds() {
        let text = "34200.1,1,16,18,5853300,1\n34200.2,4,16,8,5853300,1\n34200.3,7,0,0,-1,-1\n";
        let found = parse(text).unwrap();
        let kinds: Vec<Kind> = found.iter().map(|m| m.kind).collect();
        assert_eq!(kinds, [Kind::Added, Kind::Executed, Kind::Unseen]);
        assert_eq!(
            (found[0].price, found[0].size, found[0].action),
            (5853300, 18, Action::Bid)
        );
    }

    #[test]
    fn times_are_nanoseconds() {
        for (text, time_ns) in [
            ("34200.004241176", 34_200_004_241_176),
            ("1", 1_000_000_000),
            ("1.5", 1_500_000_000),
            (".25", 250_000_000),
            ("2.0000000019", 2_000_000_001),
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), time_ns, "{text}");
        }
    }

    #[test]
    fn faults_name_line_field_and_limit() {
        for (line, text) in [
            ("1.0,1,5,x,2,1", "size `x` is not a whole number"),
            ("1.0,1,5,-1,2,1", "size -1 is below the smallest value 1"),
            ("1.0,9,5,1,2,1", "type `9` is not one of 1 to 7"),
            ("1.0,1,5,1,2,0", "direction `0` is not one of 1, -1"),
            ("a,1,5,1,2,1", "seconds `a` is not a decimal number"),
        ] {
            assert_eq!(parse(line), Err(format!("m:1: {text}")));
        }
    }

    #[test]
    fn rows_leave_out_empty_levels() {
        let text = "5859400,200,5853300,18,9999999999,0,-9999999999,0\n";
        let first = |text: &'static str| {
            let mut lines = Lines::new("b", Cursor::new(text));
            rows(&mut lines).next().unwrap()
        };
        assert_eq!(
            first(text).unwrap(),
            Row {
                bids: vec![(5853300, 18)],
                asks: vec![(5859400, 200)]
            }
        );
        let error = first("1,2,3\n").unwrap_err();
        assert_eq!(error.to_string(), "b:1: the field size is missing");
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = messages(&mut Lines::new("m", Cursor::new(bytes.clone())));
            let _ = rows(&mut Lines::new("m", Cursor::new(bytes))).last();
        }

        #[test]
        fn near_misses_are_messages_or_an_error(text in "[0-9.,\n-]{0,200}") {
            let _ = parse(&text);
            let _ = rows(&mut Lines::new("m", Cursor::new(text))).last();
        }
    }
}
