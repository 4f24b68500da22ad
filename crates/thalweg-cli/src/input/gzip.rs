//! Reads gzip files: one member after another. Data that is not gzip behind the last member is an
//! error.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};
use std::{error, fmt};

/// The first bytes of a gzip file.
pub(super) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// All members of a gzip file, read as one text.
pub(super) struct Members<R> {
    /// The current member; `None` at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Members<R> {
    pub(super) fn new(input: R) -> Members<R> {
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
#[derive(Debug)]
struct Trailing;

impl fmt::Display for Trailing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes behind the end of the compressed data")
    }
}

impl error::Error for Trailing {}

/// Returns whether the error is about bytes behind the last member.
pub(super) fn is_trailing(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Trailing>())
}

/// Returns whether the error means that a gzip file was damaged after it was written.
pub(super) fn is_damage(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// Returns a copy of the error.
pub(super) fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None if is_trailing(error) => io::Error::other(Trailing),
        None => error.kind().into(),
    }
}
