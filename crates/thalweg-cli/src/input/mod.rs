//! Recognises the format of an input by its content.

pub(crate) mod bitstamp;
pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod lines;
pub(crate) mod lobster;
pub(crate) mod orders;

use crate::input::error::InputError;
use crate::input::lines::Lines;
use thalweg_exchange::Command;
use thalweg_exchange::stream::{Item, Recording, StreamError};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputFormat {
    Bitstamp,
    Lobster,
    Orders,
    Recorded,
    Load,
}

impl InputFormat {
    /// Returns the name that the command line and the facts use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            InputFormat::Bitstamp => "bitstamp",
            InputFormat::Lobster => "lobster",
            InputFormat::Orders => "orders",
            InputFormat::Recorded => "recorded",
            InputFormat::Load => "load",
        }
    }
}

/// Recognises a format by the first line, and by the first line of data.
pub(crate) fn recognise(lines: &mut Lines) -> Result<InputFormat, InputError> {
    let first = lines.head().find(|line| !line.is_empty());
    if first.is_some_and(|line| line.starts_with(b"# symbol,")) {
        return Ok(InputFormat::Load);
    }
    let Some(data) = lines.first_data() else {
        return Err(lines.nothing());
    };
    let books = match data {
        line if line.starts_with(b"thalweg-orders,") => return Ok(InputFormat::Orders),
        line if bitstamp::is_message(line) => return Ok(InputFormat::Bitstamp),
        line if is_recorded(line) => return Ok(InputFormat::Recorded),
        line if lobster::is_message(line) => return Ok(InputFormat::Lobster),
        line if bitstamp::is_snapshot(line) => "book snapshots",
        line if lobster::is_row(line) => "order book rows",
        _ => return Err(lines.unknown_format()),
    };
    Err(lines.first_line(format!(
        "this is a file of {books}: name it with --books, beside its messages"
    )))
}

/// Returns whether a line begins a recorded stream: it is a batch or a command, with its number.
fn is_recorded(line: &[u8]) -> bool {
    let mut fields = line.split(|&b| b == b',');
    let kind = matches!(fields.next(), Some(b"S" | b"W" | b"C"));
    let number = |f: &[u8]| !f.is_empty() && f.iter().all(u8::is_ascii_digit);
    kind && fields.next().is_some_and(number)
}

/// A format whose lines are commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streamed {
    Orders,
    Recorded,
}

impl Streamed {
    /// Returns this format as one of all formats.
    pub(crate) fn format(self) -> InputFormat {
        match self {
            Streamed::Orders => InputFormat::Orders,
            Streamed::Recorded => InputFormat::Recorded,
        }
    }
}

/// Passes the commands of a stream with their line numbers, in order, to a callback until it wants
/// no more. Before the first command, `begin` is called with whether margin trading was on, where
/// the stream says it.
///
/// # Errors
/// Returns an error for a line that does not conform to the format, and for a stream without
/// commands.
pub(crate) fn each<T: FnMut(u64, Command) -> bool>(
    lines: &mut Lines,
    format: Streamed,
    begin: impl FnOnce(Option<bool>) -> T,
) -> Result<(), InputError> {
    match format {
        Streamed::Orders => orders::commands(lines, begin(None)),
        Streamed::Recorded => {
            let found = recorded(lines, begin).map_err(|error| lines.stream_error(error))?;
            found.then_some(()).ok_or_else(|| lines.empty())
        }
    }
}

/// Reads a recorded stream. Returns whether it had a command.
fn recorded<T: FnMut(u64, Command) -> bool>(
    lines: &mut Lines,
    begin: impl FnOnce(Option<bool>) -> T,
) -> Result<bool, StreamError> {
    let stream = Recording::new(lines.reader())?;
    let mut take = begin(Some(stream.margin_trading()));
    let mut is_found = false;
    for item in stream {
        if let (line, Item::Command { command, .. }) = item? {
            is_found = true;
            if !take(line, command) {
                break;
            }
        }
    }
    Ok(is_found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn recognised(text: &[u8]) -> Result<InputFormat, String> {
        recognise(&mut Lines::new("f", Cursor::new(text.to_vec()))).map_err(|e| e.to_string())
    }

    #[test]
    fn content_decides() {
        let known: [(&str, InputFormat); 8] = [
            (
                "idx,ts_ms,type,order_id,side,price_cents,amount_1e8\n",
                InputFormat::Bitstamp,
            ),
            (
                "0,1430438404518,C,65595247,B,23647,200000000\n",
                InputFormat::Bitstamp,
            ),
            (
                "34200.004241176,1,16113575,18,5853300,1\n",
                InputFormat::Lobster,
            ),
            ("# mine\n\nthalweg-orders,1\nuser,7\n", InputFormat::Orders),
            (
                "# exchange-core oracle\n# x\nS,1,5001,0,10,20,100,10,30,10,0,0\n",
                InputFormat::Recorded,
            ),
            ("C,1,NOP\n", InputFormat::Recorded),
            ("W,1,5,1:2\n", InputFormat::Recorded),
            (
                "# symbol,40000,0,3762,3928,100,10,1160,847,0,0\nU,1,3762\n",
                InputFormat::Load,
            ),
        ];
        for (text, format) in known {
            assert_eq!(recognised(text.as_bytes()), Ok(format), "{text}");
        }
    }

    #[test]
    fn books_are_distinguished_from_messages() {
        let snapshots = recognised(b"after_msgs,ts_ms,n_bids\n").unwrap_err();
        assert!(snapshots.contains("--books"), "{snapshots}");
        let rows = recognised(b"5859400,200,5853300,18\n").unwrap_err();
        assert!(
            rows.contains("order book rows: name it with --books"),
            "{rows}"
        );
    }

    #[test]
    fn nothing_and_anything_else_are_errors() {
        for text in ["", "\n\n", "# only a comment\n"] {
            let error = recognised(text.as_bytes()).unwrap_err();
            assert!(error.contains("empty file"), "{error}");
        }
        let error = recognised(b"hello, world\n").unwrap_err();
        assert!(error.contains("f:1: unknown format, the file begins with `hello, world`"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_format_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = recognised(&bytes);
        }
    }

    #[test]
    fn parsers_of_whole_streams_name_the_file() {
        let error_of = |text: &'static str| {
            let mut lines = Lines::new("r.txt", Cursor::new(text));
            let read = each(&mut lines, Streamed::Recorded, |_| |_, _| true);
            read.unwrap_err().to_string()
        };
        let error = error_of("# marginTrading=ENABLED\nC,1,NOP\nC,2,FLY\n");
        assert!(error.starts_with("r.txt:3: "), "{error}");
        let error = error_of("# marginTrading=ENABLED\n");
        assert!(error.contains("empty file"), "{error}");
    }
}
