//! Bitstamp order messages and book snapshots, as CSV.
//!
//! Messages: `idx,ts_ms,type,order_id,side,price_cents,amount_1e8` with type C (created),
//! U (changed; amount is the new remainder), D (deleted), T (trade). Snapshots:
//! `after_msgs,ts_ms,n_bids,n_asks`, then price and volume of each bid and of each ask.

use crate::input::error::{InputError, excerpt};
use crate::input::fields::{Fields, Row, level};
use crate::input::lines::Lines;
use thalweg_exchange::Action;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An order arrived: it matches, and its remainder rests.
    Created,
    /// An order has a new remainder.
    Changed,
    /// An order is gone.
    Deleted,
    /// A trade happened. The order is the trade's own number, and the side is not known.
    Trade,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) order: i64,
    pub(crate) action: Action,
    pub(crate) price: i64,
    /// For a created order its size, for a changed or deleted order its remainder, for a trade the
    /// traded amount.
    pub(crate) amount: i64,
    /// When it came, in nanoseconds since 1970.
    pub(crate) time_ns: u64,
}

/// The book columns of one snapshot, which belongs to a message file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The number of messages that had arrived before the snapshot was taken.
    pub(crate) after_messages: u64,
    pub(crate) row: Row,
}

/// The maximum number of levels on each side of a snapshot.
const LEVELS_MAX: i64 = 10_000;

/// Returns whether a line begins a message file.
pub(crate) fn is_message(line: &[u8]) -> bool {
    if line.starts_with(b"idx,ts_ms,type,order_id,") {
        return true;
    }
    let fields: Vec<&[u8]> = line.split(|&b| b == b',').map(<[u8]>::trim_ascii).collect();
    fields.len() == 7 && matches!(fields[2], b"C" | b"U" | b"D" | b"T")
}

/// Returns whether a line begins a snapshot file.
pub(crate) fn is_snapshot(line: &[u8]) -> bool {
    line.starts_with(b"after_msgs,")
}

/// Returns all messages of a file, with their line numbers.
pub(crate) fn messages(lines: &mut Lines) -> Result<Vec<(u64, Message)>, InputError> {
    lines.records(|line| match line.starts_with(b"idx,") {
        true => Ok(None),
        false => message(line).map(Some),
    })
}

fn message(line: &[u8]) -> Result<Message, String> {
    let mut fields = Fields::new(line);
    fields.number("idx", 0)?;
    let time_ms = fields.number("ts_ms", 0)?;
    let kind = match fields.text("type")? {
        b"C" => Kind::Created,
        b"U" => Kind::Changed,
        b"D" => Kind::Deleted,
        b"T" => Kind::Trade,
        other => return Err(format!("type {} is not one of C, U, D, T", excerpt(other))),
    };
    let order = fields.number("order_id", 0)?;
    let action = match (fields.text("side")?, kind) {
        (b"B", _) => Action::Bid,
        // Trades have no side; they are never sent to the exchange.
        (b"A", _) | (b"", Kind::Trade) => Action::Ask,
        (other, _) => return Err(format!("side {} is not one of A, B", excerpt(other))),
    };
    // A market sell has the price 0. Captures contain orders and trades of size 0.
    let price = fields.number("price_cents", 0)?;
    let amount = fields.number("amount_1e8", 0)?;
    fields.end()?;
    Ok(Message {
        kind,
        order,
        action,
        price,
        amount,
        time_ns: time_ms.unsigned_abs().saturating_mul(1_000_000),
    })
}

/// Returns the snapshots of a file, in ascending order of messages.
pub(crate) fn snapshots(lines: &mut Lines) -> impl Iterator<Item = Result<Snapshot, InputError>> {
    let mut before = 0;
    let snapshots = lines.each(move |line| {
        if is_snapshot(line) {
            return Ok(None);
        }
        let next = snapshot(line)?;
        let after = next.after_messages;
        if after < before {
            return Err(format!(
                "after_msgs {after} is below the {before} of the line before"
            ));
        }
        before = after;
        Ok(Some(next))
    });
    snapshots.map(|next| next.map(|(_, snapshot)| snapshot))
}

fn snapshot(line: &[u8]) -> Result<Snapshot, String> {
    let mut fields = Fields::new(line);
    let after_messages = fields.number("after_msgs", 0)?.unsigned_abs();
    fields.number("ts_ms", 0)?;
    let mut counts = [0; 2];
    for (count, name) in counts.iter_mut().zip(["n_bids", "n_asks"]) {
        *count = fields.number(name, 0)?;
        if *count > LEVELS_MAX {
            return Err(format!(
                "{name} {count} is above the largest value {LEVELS_MAX}"
            ));
        }
    }
    let mut row = Row::default();
    for _ in 0..counts[0] {
        row.bids.push(level(&mut fields)?);
    }
    for _ in 0..counts[1] {
        row.asks.push(level(&mut fields)?);
    }
    fields.end()?;
    Ok(Snapshot {
        after_messages,
        row,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn parse(text: &str) -> Result<Vec<Message>, String> {
        let found = messages(&mut Lines::new("m.csv", Cursor::new(text.to_owned())));
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|(_, message)| message).collect())
    }

    #[test]
    fn messages_have_kinds() {
        let text = "idx,ts_ms,type,order_id,side,price_cents,amount_1e8\n\
            0,1,C,65,B,23647,200\n1,2,U,65,B,23647,100\n2,3,D,65,B,23647,0\n3,4,T,81,,23647,100\n";
        let found = parse(text).unwrap();
        let kinds: Vec<Kind> = found.iter().map(|m| m.kind).collect();
        assert_eq!(
            kinds,
            [Kind::Created, Kind::Changed, Kind::Deleted, Kind::Trade]
        );
        let first = Message {
            kind: Kind::Created,
            order: 65,
            action: Action::Bid,
            price: 23647,
            amount: 200,
            time_ns: 1_000_000,
        };
        assert_eq!(found[0], first);
    }

    #[test]
    fn faults_name_line_field_and_limit() {
        let line = |text: &str| parse(&format!("0,1,C,65,B,23647,200\n{text}\n")).unwrap_err();
        for (faulty, text) in [
            (
                "1,2,U,65,B,2x647,1",
                "price_cents `2x647` is not a whole number",
            ),
            (
                "1,2,C,65,B,1,-5",
                "amount_1e8 -5 is below the smallest value 0",
            ),
            ("1,2,X,65,B,1,5", "type `X` is not one of C, U, D, T"),
            ("1,2,C,65,,1,5", "side `` is not one of A, B"),
            ("1,2,C,65", "the field side is missing"),
            ("1,2,C,65,B,1,5,9", "`9` is one field too many"),
        ] {
            assert_eq!(line(faulty), format!("m.csv:2: {text}"));
        }
        let large = line("1,2,C,9223372036854775808,B,1,5");
        assert!(
            large.contains("order_id") && large.contains("above the largest value"),
            "{large}"
        );
        assert!(parse("# nothing\n").unwrap_err().contains("empty file"));
    }

    #[test]
    fn snapshots_have_two_sides() {
        let text = "after_msgs,ts_ms,n\n6,1,2,1,10,5,9,6,11,7\n6,2,0,0\n";
        let snapshots = |text: &'static str| {
            let mut lines = Lines::new("b", Cursor::new(text));
            snapshots(&mut lines).collect::<Result<Vec<_>, _>>()
        };
        let found = snapshots(text).unwrap();
        assert_eq!(
            found[0].row,
            Row {
                bids: vec![(10, 5), (9, 6)],
                asks: vec![(11, 7)]
            }
        );
        assert_eq!(found[1].row, Row::default());
        let back = "6,1,0,0\n5,1,0,0\n";
        let error = snapshots(back).unwrap_err();
        assert_eq!(
            error.to_string(),
            "b:2: after_msgs 5 is below the 6 of the line before"
        );
        let huge = snapshots("6,1,10001,0\n").unwrap_err();
        assert!(huge.to_string().contains("above the largest value 10000"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = messages(&mut Lines::new("m", Cursor::new(bytes.clone())));
            let _ = snapshots(&mut Lines::new("m", Cursor::new(bytes))).last();
        }

        #[test]
        fn near_misses_are_messages_or_an_error(text in "[0-9CUDTAB,\n-]{0,200}") {
            let _ = parse(&text);
            let _ = snapshots(&mut Lines::new("m", Cursor::new(text))).last();
        }
    }
}
