//! Prints records while a journal is read, so that the memory does not depend on the number of
//! records.

use serde::Serialize;
use std::io::{self, BufWriter, StdoutLock, Write};

use crate::arguments::Format;
use crate::failure::{self, Failure};

const BUFFER_BYTES: usize = 64 << 10;

/// Records on their way to the output: lines of text, or a list that is the first field of a JSON
/// object.
///
/// Nothing is written before the first record or the end, so that a journal that cannot be read at
/// all leaves no incomplete object behind.
#[derive(Debug)]
pub(super) struct Rows {
    out: BufWriter<StdoutLock<'static>>,
    format: Format,
    taken: u64,
    taken_max: u64,
}

impl Rows {
    /// Creates rows that print at most `taken_max` records on standard output.
    pub(super) fn new(format: Format, taken_max: u64) -> Rows {
        Rows {
            out: BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()),
            format,
            taken: 0,
            taken_max,
        }
    }

    /// Takes the records that there is room for.
    pub(super) fn take<'r>(
        &mut self,
        records: impl Iterator<Item = (u64, &'r [u8])>,
    ) -> Result<(), Failure> {
        let left = usize::try_from(self.taken_max - self.taken).unwrap_or(usize::MAX);
        let mut records = records.take(left);
        let written = records.try_for_each(|(lsn, bytes)| self.write(lsn, bytes));
        written.map_err(Failure::Output)
    }

    fn write(&mut self, lsn: u64, bytes: &[u8]) -> io::Result<()> {
        let (begin, end) = match self.format {
            Format::Text => (format!("{lsn} "), "\n"),
            Format::Json => {
                let before = match self.taken {
                    0 => "{\n  \"records\": [\n",
                    _ => ",\n",
                };
                let begin = format!("{before}    {{ \"lsn\": {lsn}, \"hex\": \"");
                (begin, "\" }")
            }
        };
        self.taken += 1;
        self.out.write_all(begin.as_bytes())?;
        for byte in bytes {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
            self.out.write_all(&[high, low])?;
        }
        self.out.write_all(end.as_bytes())
    }

    /// Writes the part that follows the records: the text, or the other fields of the object.
    pub(super) fn end(mut self, facts: &impl Serialize, text: &str) -> Result<(), Failure> {
        let end = match self.format {
            Format::Text => text.to_owned(),
            Format::Json => {
                let list_end = match self.taken {
                    0 => "{\n  \"records\": [],",
                    _ => "\n  ],",
                };
                let fields = failure::json(facts)?;
                list_end.to_owned() + fields.trim_start_matches('{')
            }
        };
        let written = self.out.write_all(end.as_bytes());
        written
            .and_then(|()| self.out.flush())
            .map_err(Failure::Output)
    }
}
