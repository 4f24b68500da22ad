//! Reads numbered lines of a file, of a gzip file or of standard input.

use crate::input::error::{InputError, excerpt};
use crate::message::shown;
use flate2::bufread::GzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use thalweg_exchange::stream::{StreamError, StreamErrorKind};

/// The maximum length of a line, in bytes. A book row of 20 levels has about 1,000.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The maximum number of records that are kept in memory: about one gigabyte.
pub(crate) const RECORDS_MAX: usize = 20_000_000;
/// The size of the beginning that is kept until there is a line of data, in bytes.
const HEAD_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// The size of the part that is checked for damage when a line of a gzip file is wrong, in bytes.
const DAMAGE_BYTES_MAX: u64 = 1 << 30;
/// The first bytes of files in other compressed formats.
const PACKED: [(&str, &[u8]); 4] = [
    ("zip", b"PK\x03\x04"),
    ("bzip2", b"BZh"),
    ("zstd", b"\x28\xb5\x2f\xfd"),
    ("xz", b"\xfd7zXZ\0"),
];
const BOM: &[u8] = "\u{feff}".as_bytes();

/// A stream whose beginning was read ahead: it yields the beginning, then an error that reading
/// ahead met, then the rest.
struct ReadAhead<R> {
    head: Cursor<Vec<u8>>,
    error: Option<io::Error>,
    rest: R,
}

impl<R: Read> ReadAhead<R> {
    /// Reads ahead until `enough` returns true. `enough` is called each time the amount has doubled
    /// since the last call.
    fn new(mut rest: R, enough: impl Fn(&[u8]) -> bool) -> ReadAhead<R> {
        let mut head = Vec::new();
        let mut error = None;
        let mut asked = 0;
        loop {
            let filled = head.len();
            head.resize(filled + (8 << 10), 0);
            let read = rest.read(&mut head[filled..]);
            head.truncate(filled + read.as_ref().map_or(0, |n| *n));
            match read {
                Ok(0) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    error = Some(e);
                    break;
                }
                Ok(_) if head.len() < 2 * asked => {}
                Ok(_) if enough(&head) => break,
                Ok(_) => asked = head.len(),
            }
        }
        ReadAhead {
            head: Cursor::new(head),
            error,
            rest,
        }
    }
}

/// Returns whether the head contains a whole line of data, or is too long to read on.
fn has_data(head: &[u8]) -> bool {
    let mut lines = head
        .strip_prefix(BOM)
        .unwrap_or(head)
        .split(|&b| b == b'\n');
    let last = lines.next_back().unwrap_or_default();
    head.len() >= HEAD_BYTES_MAX || last.len() > LINE_BYTES_MAX || lines.any(is_data)
}

fn is_data(line: &[u8]) -> bool {
    !matches!(trim_end(line), [] | [b'#', ..])
}

impl<R: Read> Read for ReadAhead<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.head.read(out)?;
        if n > 0 {
            return Ok(n);
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => self.rest.read(out),
        }
    }
}

/// The lines of one input, numbered from 1. Gzip is recognised by its magic bytes, whatever the
/// file's name.
pub(crate) struct Lines {
    name: String,
    reader: BufReader<Box<dyn Read + Send>>,
    head: Vec<u8>,
    gzip: bool,
    /// The error that ended reading the head, if neither the head's size nor the input's end did.
    broken: Option<io::Error>,
    line: u64,
    buffer: Vec<u8>,
}

impl Lines {
    /// Opens a file, or standard input where the path is `-`, and reads up to its first line of
    /// data.
    pub(crate) fn open(path: &Path) -> Result<Lines, InputError> {
        if path.as_os_str() == "-" {
            return Ok(Lines::new("standard input", io::stdin()));
        }
        let name = shown(path.as_os_str());
        let file = File::open(path).and_then(|file| {
            if file.metadata()?.is_dir() {
                return Err(io::Error::other("it is a directory"));
            }
            Ok(file)
        });
        match file {
            Ok(file) => Ok(Lines::new(&name, file)),
            Err(source) => Err(InputError::Open { file: name, source }),
        }
    }

    /// Reads lines from any reader; errors call it `name`.
    pub(crate) fn new(name: &str, reader: impl Read + Send + 'static) -> Lines {
        let raw = ReadAhead::new(reader, |head| head.len() >= MAGIC.len());
        let gzip = raw.head.get_ref().starts_with(&MAGIC);
        let plain: Box<dyn Read + Send> = if gzip {
            Box::new(Members::new(BufReader::with_capacity(64 << 10, raw)))
        } else {
            Box::new(raw)
        };
        let mut ahead = ReadAhead::new(plain, has_data);
        if ahead.head.get_ref().starts_with(BOM) {
            ahead.head.get_mut().drain(..BOM.len());
        }
        let head = ahead.head.get_ref().clone();
        let broken = ahead.error.as_ref().map(copy);
        Lines {
            name: name.to_owned(),
            reader: BufReader::with_capacity(64 << 10, Box::new(ahead)),
            head,
            gzip,
            broken,
            line: 0,
            buffer: Vec::new(),
        }
    }

    /// Returns the name of the input that errors use.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the first complete lines, from which a format is recognised; the last one may be cut
    /// off.
    pub(crate) fn head(&self) -> impl Iterator<Item = &[u8]> {
        self.head.split(|&b| b == b'\n').map(trim_end)
    }

    /// Returns the first line of data in the head.
    pub(crate) fn first_data(&self) -> Option<&[u8]> {
        self.head().find(|line| is_data(line))
    }

    /// Returns the next line without its end, or `None` at the end of the input.
    fn next_line(&mut self) -> Result<Option<&[u8]>, InputError> {
        self.buffer.clear();
        self.line += 1;
        let limit = LINE_BYTES_MAX as u64 + 1;
        match self
            .reader
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut self.buffer)
        {
            Err(source) => Err(self.read_error(self.line, source)),
            Ok(0) => Ok(None),
            Ok(n) if n > LINE_BYTES_MAX => Err(self.wrong(too_long())),
            Ok(_) => Ok(Some(trim_end(&self.buffer))),
        }
    }

    /// Like [`Lines::next_line`], but skips blank lines and lines that begin with `#`.
    pub(crate) fn next_data(&mut self) -> Result<Option<&[u8]>, InputError> {
        // The borrow checker requires two steps: the line is inspected, then returned from the
        // buffer.
        loop {
            match self.next_line()? {
                None => return Ok(None),
                Some(line) if !is_data(line) => {}
                Some(_) => return Ok(Some(trim_end(&self.buffer))),
            }
        }
    }

    /// Iterates over the records of the input with their line numbers; `record` returns `None` for
    /// a header.
    ///
    /// The iterator ends with an error where a line cannot be read or is not a record, and where
    /// there is no record at all.
    pub(crate) fn each<T>(
        &mut self,
        mut record: impl FnMut(&[u8]) -> Result<Option<T>, String>,
    ) -> impl Iterator<Item = Result<(u64, T), InputError>> {
        let (mut is_empty, mut is_over) = (true, false);
        std::iter::from_fn(move || {
            while !is_over {
                let next = match self.next_data() {
                    Ok(Some(line)) => record(line).map_err(|what| self.wrong(what)),
                    Ok(None) if is_empty => Err(self.empty()),
                    Ok(None) => return None,
                    Err(error) => Err(error),
                };
                is_over = next.is_err();
                if let Some(next) = next.transpose() {
                    is_empty = false;
                    return Some(next.map(|record| (self.line, record)));
                }
            }
            None
        })
    }

    /// Returns all records of the input, of which there may be [`RECORDS_MAX`].
    ///
    /// # Errors
    /// Returns the errors of [`Lines::each`], and an error where there are too many records.
    pub(crate) fn records<T>(
        &mut self,
        record: impl FnMut(&[u8]) -> Result<Option<T>, String>,
    ) -> Result<Vec<(u64, T)>, InputError> {
        let mut found = Vec::new();
        for next in self.each(record) {
            found.push(next?);
            if found.len() > RECORDS_MAX {
                break;
            }
        }
        match found.len() {
            ..=RECORDS_MAX => Ok(found),
            _ => Err(self.too_large(RECORDS_MAX as u64, "records")),
        }
    }

    /// Returns the error for an input that is longer than the part that is kept of it.
    pub(crate) fn too_large(&self, limit: u64, what: &str) -> InputError {
        InputError::TooLarge {
            file: self.name.clone(),
            limit: format!("{limit} {what}"),
        }
    }

    /// Returns the number of the line that was read last.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Returns an error about the line that was read last; for a damaged gzip file, the error is
    /// about the damage.
    pub(crate) fn wrong(&mut self, what: impl Into<String>) -> InputError {
        self.line_error(self.line, what.into())
    }

    fn line_error(&mut self, line: u64, what: String) -> InputError {
        match self.intact(line) {
            Err(damage) => damage,
            Ok(()) => InputError::Line {
                file: self.name.clone(),
                line,
                what,
            },
        }
    }

    /// Reads the rest of a gzip file to check whether it is whole: a line that is wrong because of
    /// damage is not the fault of the line.
    ///
    /// # Errors
    /// Returns the damage as an error of this line.
    pub(crate) fn intact(&mut self, line: u64) -> Result<(), InputError> {
        if !self.gzip {
            return Ok(());
        }
        let mut rest = self.reader.by_ref().take(DAMAGE_BYTES_MAX);
        match io::copy(&mut rest, &mut io::sink()) {
            Err(source) if is_damage(&source) => Err(self.read_error(line, source)),
            _ => Ok(()),
        }
    }

    /// Returns the error for an input without a line of data.
    pub(crate) fn empty(&self) -> InputError {
        InputError::Empty {
            file: self.name.clone(),
        }
    }

    /// Returns the error for an input whose head holds no data: it is empty, or cut off before its
    /// first line.
    pub(crate) fn nothing(&mut self) -> InputError {
        let lines = self.head().count() as u64;
        let last = self.head().last().map_or(0, <[u8]>::len);
        match &self.broken {
            Some(error) => self.read_error(lines, copy(error)),
            None if last > LINE_BYTES_MAX => self.line_error(lines, too_long()),
            None if self.head.len() >= HEAD_BYTES_MAX => self.line_error(
                lines,
                format!("no data but comments and blank lines in {HEAD_BYTES_MAX} bytes"),
            ),
            None => self.empty(),
        }
    }

    /// Returns an error about the first line of data.
    pub(crate) fn first_line(&mut self, what: impl Into<String>) -> InputError {
        self.line_error(self.data_line(), what.into())
    }

    fn data_line(&self) -> u64 {
        1 + self.head().take_while(|line| !is_data(line)).count() as u64
    }

    /// Returns the error for an input whose first line of data fits no format.
    pub(crate) fn unknown_format(&mut self) -> InputError {
        let line = self.data_line();
        if let Err(damage) = self.intact(line) {
            return damage;
        }
        let first = self.first_data().unwrap_or_default();
        if let Some((name, _)) = PACKED.iter().find(|(_, magic)| first.starts_with(magic)) {
            let what = format!("this is compressed with {name}, and only gzip is read: unpack it");
            return self.line_error(line, what);
        }
        if first.len() > LINE_BYTES_MAX {
            return self.line_error(line, too_long());
        }
        let first = excerpt(first);
        InputError::UnknownFormat {
            file: self.name.clone(),
            line,
            first,
        }
    }

    /// Returns the input from here on, for a parser that reads lines itself.
    pub(crate) fn reader(&mut self) -> &mut (impl BufRead + use<>) {
        &mut self.reader
    }

    /// Converts an error of such a parser.
    pub(crate) fn stream_error(&mut self, error: StreamError) -> InputError {
        match error.kind {
            StreamErrorKind::Io(source) => self.read_error(error.line, source),
            kind => self.line_error(error.line, kind.to_string()),
        }
    }

    fn read_error(&self, line: u64, source: io::Error) -> InputError {
        let file = self.name.clone();
        match (self.gzip, source.kind()) {
            (true, _) if is_trailing(&source) => InputError::Trailing { file, line },
            (true, io::ErrorKind::UnexpectedEof) => InputError::Truncated { file, line },
            (true, io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
                InputError::Corrupt { file, line }
            }
            _ => InputError::Read { file, line, source },
        }
    }
}

fn too_long() -> String {
    format!("the line is longer than {LINE_BYTES_MAX} bytes")
}

fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The first bytes of a gzip file.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// All members of a gzip file, read as one text.
struct Members<R> {
    /// The current member; `None` at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    pub(crate) fn new(input: R) -> Members<R> {
        Members {
            member: Some(GzDecoder::new(input)),
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(out)?;
            if read > 0 || out.is_empty() {
                return Ok(read);
            }
            match member.get_mut().fill_buf()? {
                [] => self.member = None,
                [first, ..] if *first == MAGIC[0] => {
                    self.member = self.member.take().map(|m| GzDecoder::new(m.into_inner()));
                }
                _ => return Err(io::Error::other(Trailing)),
            }
        }
        Ok(0)
    }
}

/// An error: there is data behind the last member.
#[derive(Debug, thiserror::Error)]
#[error("bytes behind the end of the compressed data")]
struct Trailing;

/// Returns whether the error is about bytes behind the last member.
fn is_trailing(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Trailing>())
}

/// Returns whether the error means that a gzip file was damaged after it was written.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// Returns a copy of the error.
pub(crate) fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None if is_trailing(error) => io::Error::other(Trailing),
        None => error.kind().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn all(lines: &mut Lines) -> Result<Vec<String>, InputError> {
        let mut found = Vec::new();
        while let Some(line) = lines.next_line()? {
            found.push(String::from_utf8_lossy(line).into_owned());
        }
        Ok(found)
    }

    #[test]
    fn plain_and_gzip_give_the_same_lines() {
        let text = b"a,b\r\nc\n\nlast";
        for bytes in [
            text.to_vec(),
            gzip(text),
            [gzip(b"a,b\r\nc\n"), gzip(b"\nlast")].concat(),
        ] {
            let mut lines = Lines::new("x", Cursor::new(bytes));
            assert_eq!(all(&mut lines).unwrap(), ["a,b", "c", "", "last"]);
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        for text in ["\u{feff}a\n", "\u{feff}# c\na"] {
            for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
                let mut lines = Lines::new("x", Cursor::new(bytes));
                assert_eq!(lines.first_data(), Some(&b"a"[..]));
                assert_eq!(lines.next_data().unwrap(), Some(&b"a"[..]));
            }
        }
    }

    #[test]
    fn comments_before_the_data_may_be_long() {
        let comments = "# a comment\n\n".repeat(20_000);
        let mut lines = Lines::new("x", Cursor::new(format!("{comments}a\n")));
        assert_eq!(lines.first_data(), Some(&b"a"[..]));
        assert_eq!(lines.first_line("w").to_string(), "x:40001: w");
        let endless = io::repeat(b'\n').take(1 << 40);
        assert_eq!(
            Lines::new("x", endless).nothing().to_string(),
            "x:1048577: no data but comments and blank lines in 1048576 bytes"
        );
        let line = Cursor::new("# c\n#").chain(io::repeat(b'c').take(1 << 40));
        assert_eq!(
            Lines::new("x", line).nothing().to_string(),
            "x:2: the line is longer than 1048576 bytes"
        );
    }

    #[test]
    fn bytes_after_a_gzip_are_reported() {
        for trailing in [&b"0"[..], &[0; 600], b"user,7\n", b"\x1f"] {
            let bytes = [&gzip(b"a\n")[..], trailing].concat();
            let error = all(&mut Lines::new("x.gz", Cursor::new(bytes.clone()))).unwrap_err();
            match trailing {
                b"\x1f" => assert!(error.to_string().contains("truncated gzip"), "{error}"),
                _ => assert_eq!(
                    error.to_string(),
                    "x.gz: bytes that are not gzip after the compressed data, which ends in line \
                     2; cut them off, or fetch the file again"
                ),
            }
            let nothing = [&gzip(b"# c\n")[..], b"0"].concat();
            let error = Lines::new("x.gz", Cursor::new(nothing)).nothing();
            assert!(
                error.to_string().contains("bytes that are not gzip"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_wrong_line_of_a_damaged_gzip_is_the_damage() {
        let mut bytes = gzip(b"a\nb\n");
        let mut lines = Lines::new("x.gz", Cursor::new(bytes.clone()));
        lines.next_line().unwrap();
        assert_eq!(lines.wrong("w").to_string(), "x.gz:1: w");
        let crc = bytes.len() - 8;
        bytes[crc] ^= 1;
        // The whole input is read ahead, so the damage is known before the first line is taken.
        let mut lines = Lines::new("x.gz", Cursor::new(bytes));
        assert!(lines.unknown_format().to_string().contains("corrupt gzip"));
    }

    #[test]
    fn a_truncated_gzip_names_the_line_reached() {
        let mut text = Vec::new();
        // The lines do not repeat, so that the cut loses some of them.
        let mut state = 1_u64;
        for _ in 0..5000 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            writeln!(text, "{state}").unwrap();
        }
        let whole = gzip(&text);
        for cut in [3, 11, whole.len() / 2, whole.len() - 1] {
            let mut lines = Lines::new("x.gz", Cursor::new(whole[..cut].to_vec()));
            let error = all(&mut lines).unwrap_err();
            assert!(
                error.to_string().contains("truncated gzip"),
                "cut at {cut}: {error}"
            );
        }
    }

    #[test]
    fn a_corrupt_gzip_is_distinguished_from_a_truncated_one() {
        let mut bytes = gzip(&[b'a'; 4000]);
        let crc = bytes.len() - 6;
        bytes[crc] ^= 0xff;
        let error = all(&mut Lines::new("x.gz", Cursor::new(bytes))).unwrap_err();
        assert!(error.to_string().contains("corrupt gzip"), "{error}");
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = Lines::new("x", io::repeat(b'1').take(1 << 22));
        let error = all(&mut lines).unwrap_err();
        assert_eq!(
            error.to_string(),
            "x:1: the line is longer than 1048576 bytes"
        );
    }

    #[test]
    fn data_skips_blanks_and_comments() {
        let mut lines = Lines::new("x", Cursor::new("# c\n\na\n#\nb\n"));
        assert_eq!(lines.next_data().unwrap(), Some(&b"a"[..]));
        assert_eq!(lines.wrong("w").to_string(), "x:3: w");
        assert_eq!(lines.next_data().unwrap(), Some(&b"b"[..]));
        assert_eq!(lines.next_data().unwrap(), None);
    }

    #[test]
    fn records_leave_out_headers_and_name_the_wrong_line() {
        let all = |text: &'static str| {
            let mut lines = Lines::new("x", Cursor::new(text));
            let found = lines.records(|line| match line {
                b"head" => Ok(None),
                b"bad" => Err("it is bad".to_owned()),
                line => Ok(Some(line.len())),
            });
            found.map_err(|e| e.to_string())
        };
        assert_eq!(all("head\n#\na\n\nbc\n"), Ok(vec![(3, 1), (5, 2)]));
        assert_eq!(all("head\n\na\nbad\nb\n"), Err("x:4: it is bad".to_owned()));
        assert_eq!(all("head\n"), all(""), "a header alone is no data");
    }
}
