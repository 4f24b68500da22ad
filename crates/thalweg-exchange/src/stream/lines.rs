//! Lines of a file, numbered, with a limit on their length.

use std::io::{BufRead, Read};

use super::error::{StreamError, StreamErrorKind};

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Reads a file line by line.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: R,
    /// The number of the last line read; 0 at first.
    pub(super) line: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            line: 0,
            buffer: Vec::new(),
        }
    }

    /// Returns the next line that is not blank, without its end; `None` after the last.
    pub(super) fn next_line(&mut self) -> Result<Option<&str>, StreamError> {
        while self.read_line()? {
            if !self.buffer.is_empty() {
                let text = str::from_utf8(&self.buffer);
                return Ok(Some(text.expect("ASCII is UTF-8")));
            }
        }
        Ok(None)
    }

    /// Reads a line into the buffer, without its end; false after the last.
    fn read_line(&mut self) -> Result<bool, StreamError> {
        self.line += 1;
        let line = self.line;
        self.buffer.clear();
        let limit = LINE_BYTES_MAX as u64 + 2;
        let read = self
            .reader
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut self.buffer);
        let failed = |cause| StreamError {
            line,
            kind: StreamErrorKind::Io(cause),
        };
        if read.map_err(failed)? == 0 {
            return Ok(false);
        }
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        }
        if self.buffer.last() == Some(&b'\r') {
            self.buffer.pop();
        }
        if self.buffer.len() > LINE_BYTES_MAX {
            let what = format!("the line is longer than the limit of {LINE_BYTES_MAX} bytes");
            return Err(StreamError::content(line, what));
        }
        if !self.buffer.is_ascii() {
            return Err(StreamError::content(line, "not ASCII text"));
        }
        Ok(true)
    }
}
