//! Lines of a file, of a gzip file or of standard input, with their numbers.

use super::error::{InputError, excerpt};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use thalweg_exchange::stream::{StreamError, StreamErrorKind};

/// The longest line that is read, in bytes. A book row of 20 levels has about 1,000.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;
/// How much of the beginning is looked at to recognise a format, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The beginning of a stream, read ahead, then an error that reading ahead met, then the rest.
struct ReadAhead<R> {
    head: Cursor<Vec<u8>>,
    error: Option<io::Error>,
    rest: R,
}

impl<R: Read> ReadAhead<R> {
    fn new(mut rest: R, bytes_max: usize) -> ReadAhead<R> {
        let mut head = vec![0; bytes_max];
        let mut filled = 0;
        let mut error = None;
        while filled < bytes_max {
            match rest.read(&mut head[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    error = Some(e);
                    break;
                }
            }
        }
        head.truncate(filled);
        ReadAhead {
            head: Cursor::new(head),
            error,
            rest,
        }
    }
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

/// Lines of one input, numbered from 1. Gzip is recognised by its magic, however the file is named.
pub(crate) struct Lines {
    name: String,
    reader: BufReader<Box<dyn Read>>,
    head: Vec<u8>,
    gzip: bool,
    /// What reading the head ended with, if not with the head's size or the input's end.
    broken: Option<io::ErrorKind>,
    line: u64,
    buffer: Vec<u8>,
}

impl Lines {
    /// Opens a file, or standard input where the path is `-`.
    pub(crate) fn open(path: &Path) -> Result<Lines, InputError> {
        if path.as_os_str() == "-" {
            return Ok(Lines::new("standard input", io::stdin()));
        }
        let name = path.display().to_string();
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

    /// Lines of any reader; `name` stands for it in errors.
    pub(crate) fn new(name: &str, reader: impl Read + 'static) -> Lines {
        let raw = ReadAhead::new(reader, GZIP_MAGIC.len());
        let gzip = raw.head.get_ref().as_slice() == GZIP_MAGIC;
        let plain: Box<dyn Read> = if gzip {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(64 << 10, raw)))
        } else {
            Box::new(raw)
        };
        let ahead = ReadAhead::new(plain, HEAD_BYTES_MAX);
        let head = ahead.head.get_ref().clone();
        let broken = ahead.error.as_ref().map(io::Error::kind);
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

    /// The name of the input as errors give it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The first complete lines, to recognise a format by; the last one may be cut off.
    pub(crate) fn head(&self) -> impl Iterator<Item = &[u8]> {
        self.head.split(|&b| b == b'\n').map(trim_end)
    }

    /// The next line without its end, or nothing at the end of the input.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, InputError> {
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
            Ok(n) if n > LINE_BYTES_MAX => {
                Err(self.wrong(format!("the line is longer than {LINE_BYTES_MAX} bytes")))
            }
            Ok(_) => Ok(Some(trim_end(&self.buffer))),
        }
    }

    /// Like [`Lines::next_line`], but without blank lines and lines that begin with `#`.
    pub(crate) fn next_data(&mut self) -> Result<Option<&[u8]>, InputError> {
        // Two passes over the borrow: the line is looked at, then handed out from the buffer.
        loop {
            match self.next_line()? {
                None => return Ok(None),
                Some(line) if line.is_empty() || line[0] == b'#' => {}
                Some(_) => return Ok(Some(trim_end(&self.buffer))),
            }
        }
    }

    /// All records of the input, one a line of data; `record` gives nothing for a header.
    ///
    /// # Errors
    /// Where a line cannot be read or is no record, and where there is no record at all.
    pub(super) fn records<T>(
        &mut self,
        mut record: impl FnMut(&[u8]) -> Result<Option<T>, String>,
    ) -> Result<Vec<T>, InputError> {
        let mut found = Vec::new();
        while let Some(line) = self.next_data()? {
            match record(line) {
                Ok(next) => found.extend(next),
                Err(what) => return Err(self.wrong(what)),
            }
        }
        if found.is_empty() {
            Err(self.empty())
        } else {
            Ok(found)
        }
    }

    /// An error of the line that was read last.
    pub(crate) fn wrong(&self, what: impl Into<String>) -> InputError {
        InputError::Line {
            file: self.name.clone(),
            line: self.line,
            what: what.into(),
        }
    }

    /// The error of an input without a line of data.
    pub(crate) fn empty(&self) -> InputError {
        InputError::Empty {
            file: self.name.clone(),
        }
    }

    /// The error of an input whose head holds no data: empty, or cut off before its first line.
    pub(crate) fn nothing(&self) -> InputError {
        match self.broken {
            Some(kind) => self.read_error(1, io::Error::from(kind)),
            None => self.empty(),
        }
    }

    /// An error of the first line.
    pub(crate) fn first_line(&self, what: impl Into<String>) -> InputError {
        InputError::Line {
            file: self.name.clone(),
            line: 1,
            what: what.into(),
        }
    }

    /// The error of an input whose first line fits no format.
    pub(crate) fn unknown_format(&self) -> InputError {
        let first = self.head().find(|l| !l.is_empty()).unwrap_or_default();
        InputError::UnknownFormat {
            file: self.name.clone(),
            first: excerpt(first),
        }
    }

    /// The input from here on, for a parser that reads lines of its own.
    pub(crate) fn reader(&mut self) -> &mut (impl BufRead + use<>) {
        &mut self.reader
    }

    /// What such a parser found wrong.
    pub(crate) fn stream_error(&self, error: StreamError) -> InputError {
        match error.kind {
            StreamErrorKind::Io(source) => self.read_error(error.line, source),
            kind => {
                let (file, line, what) = (self.name.clone(), error.line, kind.to_string());
                InputError::Line { file, line, what }
            }
        }
    }

    fn read_error(&self, line: u64, source: io::Error) -> InputError {
        let file = self.name.clone();
        match (self.gzip, source.kind()) {
            (true, io::ErrorKind::UnexpectedEof) => InputError::Truncated { file, line },
            (true, io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
                InputError::Corrupt { file, line }
            }
            _ => InputError::Read { file, line, source },
        }
    }
}

fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
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
    fn a_truncated_gzip_names_the_line_reached() {
        let mut text = Vec::new();
        // Lines that do not repeat, so that the cut loses some of them.
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
    fn a_corrupt_gzip_is_told_from_a_truncated_one() {
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
        assert_eq!(all("head\n#\na\n\nbc\n"), Ok(vec![1, 2]));
        assert_eq!(all("head\n\na\nbad\nb\n"), Err("x:4: it is bad".to_owned()));
        assert_eq!(all("head\n"), all(""), "a header alone is no data");
    }
}
