//! Opens input files, recognises their format by content, and reads them with errors that name file
//! and line.

pub(crate) mod bitstamp;
pub(crate) mod error;
mod fields;
mod gzip;
pub(crate) mod lines;
pub(crate) mod lobster;
pub(crate) mod orders;
pub(crate) mod rows;
pub(crate) mod streamed;

use error::InputError;
use lines::Lines;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Bitstamp,
    Lobster,
    Orders,
    Recorded,
    Load,
}

impl Format {
    /// Returns the name that the command line and the facts use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Bitstamp => "bitstamp",
            Format::Lobster => "lobster",
            Format::Orders => "orders",
            Format::Recorded => "recorded",
            Format::Load => "load",
        }
    }
}

/// Recognises a format by the first line, and by the first line of data.
pub(crate) fn recognise(lines: &mut Lines) -> Result<Format, InputError> {
    let first = lines.head().find(|line| !line.is_empty());
    if first.is_some_and(|line| line.starts_with(b"# symbol,")) {
        return Ok(Format::Load);
    }
    let Some(data) = lines.first_data() else {
        return Err(lines.nothing());
    };
    let books = match data {
        line if line.starts_with(b"thalweg-orders,") => return Ok(Format::Orders),
        line if bitstamp::is_message(line) => return Ok(Format::Bitstamp),
        line if is_recorded(line) => return Ok(Format::Recorded),
        line if lobster::is_message(line) => return Ok(Format::Lobster),
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    fn recognised(text: &[u8]) -> Result<Format, String> {
        recognise(&mut Lines::new("f", Cursor::new(text.to_vec()))).map_err(|e| e.to_string())
    }

    #[test]
    fn content_decides() {
        let known: [(&str, Format); 8] = [
            (
                "idx,ts_ms,type,order_id,side,price_cents,amount_1e8\n",
                Format::Bitstamp,
            ),
            (
                "0,1430438404518,C,65595247,B,23647,200000000\n",
                Format::Bitstamp,
            ),
            ("34200.004241176,1,16113575,18,5853300,1\n", Format::Lobster),
            ("# mine\n\nthalweg-orders,1\nuser,7\n", Format::Orders),
            (
                "# exchange-core oracle\n# x\nS,1,5001,0,10,20,100,10,30,10,0,0\n",
                Format::Recorded,
            ),
            ("C,1,NOP\n", Format::Recorded),
            ("W,1,5,1:2\n", Format::Recorded),
            (
                "# symbol,40000,0,3762,3928,100,10,1160,847,0,0\nU,1,3762\n",
                Format::Load,
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
}
