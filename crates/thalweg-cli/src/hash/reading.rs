//! Reads a file in pieces. A large file is read ahead of the thread that consumes the pieces.

use crate::message::shown;
use crate::stdin;
use crate::terminal::Notes;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::thread;
use thalweg::channel::{Receiver, Sender, Shape, spsc};

/// The size of a piece in bytes. Two pieces fit into the second-level cache of most processors.
const PIECE_BYTES: usize = 256 << 10;
/// The number of pieces in flight between the reading thread and the hashing thread.
const PIECES: usize = 8;
/// Files of at least this size are read by a thread of their own. Starting a thread costs about 50
/// µs.
const AHEAD_BYTES: u64 = 4 << 20;
/// For files of at least this size, progress is shown to a user who may be waiting.
const PROGRESS_BYTES: u64 = 256 << 20;

/// A file, or standard input.
pub(super) struct Input<'a> {
    file: Option<&'a Path>,
}

impl<'a> Input<'a> {
    /// Creates an input from a path of the command line.
    pub(super) fn of(file: &'a Path) -> Self {
        Self {
            file: (file != Path::new("-")).then_some(file),
        }
    }

    /// Creates an input from a name in a list, in which `stdin` is standard input.
    pub(super) fn named(name: &'a OsStr) -> Self {
        Self {
            file: (name != "stdin").then_some(Path::new(name)),
        }
    }

    pub(super) fn name(&self) -> &'a OsStr {
        self.file.map_or(OsStr::new("stdin"), Path::as_os_str)
    }

    /// Returns the name for people and JSON.
    pub(super) fn shown(&self) -> String {
        shown(self.name())
    }

    /// Reads the whole input into memory.
    ///
    /// # Errors
    /// Returns an error if the input cannot be opened or read, or is longer than the limit.
    pub(super) fn whole(&self, limit_bytes: u64) -> io::Result<Vec<u8>> {
        match self.file {
            None => stdin::whole(io::stdin(), limit_bytes),
            Some(path) => stdin::whole(File::open(path)?, limit_bytes),
        }
    }

    /// Passes the whole input to `take`, and returns its length.
    ///
    /// # Errors
    /// Returns an error if the input cannot be opened or read.
    pub(super) fn read(&self, notes: Notes, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
        let Some(path) = self.file else {
            // The length is not known: the input may be a pipe that never ends.
            return ahead(io::stdin(), take);
        };
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        if bytes < AHEAD_BYTES {
            return plainly(file, take);
        }
        if bytes < PROGRESS_BYTES {
            return ahead(file, take);
        }
        let bar = notes.progress_bytes(bytes, self.shown());
        let read = ahead(file, |piece| {
            take(piece);
            bar.inc(piece.len() as u64);
        });
        bar.finish_and_clear();
        read
    }
}

/// Fills the piece as far as there is data to read.
fn fill(input: &mut impl Read, piece: &mut Vec<u8>) -> io::Result<()> {
    piece.clear();
    input.take(PIECE_BYTES as u64).read_to_end(piece)?;
    Ok(())
}

fn plainly(mut input: impl Read, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
    let mut piece = Vec::new();
    let mut bytes = 0;
    loop {
        fill(&mut input, &mut piece)?;
        if piece.is_empty() {
            return Ok(bytes);
        }
        bytes += piece.len() as u64;
        take(&piece);
    }
}

/// Reads on one thread and consumes on this one. The pieces are reused, so nothing is allocated
/// after the start.
fn ahead(input: impl Read + Send, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
    let (full, mut pieces) = spsc(PIECES);
    let (mut empty, spare) = spsc(PIECES);
    thread::scope(|scope| {
        scope.spawn(|| read_all(input, full, spare));
        let mut bytes = 0;
        while let Ok(piece) = pieces.recv() {
            let piece: Vec<u8> = piece?;
            bytes += piece.len() as u64;
            take(&piece);
            // Sending fails if the reader is at its end already and needs no more pieces.
            let _ = empty.try_send(piece);
        }
        Ok(bytes)
    })
}

/// Reads pieces until the input ends, an error occurs, or no thread consumes pieces any more.
fn read_all<S: Shape>(
    mut input: impl Read,
    mut full: Sender<io::Result<Vec<u8>>, S>,
    mut spare: Receiver<Vec<u8>, S>,
) {
    let mut made = 0;
    loop {
        let next = match made < PIECES {
            true => {
                made += 1;
                Some(Vec::with_capacity(PIECE_BYTES))
            }
            false => spare.recv().ok(),
        };
        let Some(mut piece) = next else {
            return;
        };
        let read = match fill(&mut input, &mut piece) {
            Ok(()) if piece.is_empty() => return,
            Ok(()) => full.send(Ok(piece)),
            Err(error) => {
                let _ = full.send(Err(error));
                return;
            }
        };
        if read.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A reader that gives some bytes, then an error.
    struct Torn(Cursor<Vec<u8>>);

    impl Read for Torn {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.read(into)? {
                0 => Err(io::Error::other("torn")),
                bytes => Ok(bytes),
            }
        }
    }

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn both_ways_give_every_byte_in_order() {
        for count in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 20 * PIECE_BYTES + 77] {
            let data = bytes(count);
            let mut got = Vec::new();
            let read = plainly(Cursor::new(&data), |piece| got.extend_from_slice(piece));
            assert_eq!(read.expect("no reader fails here"), count as u64);
            assert!(got == data, "{count} bytes, plainly");
            got.clear();
            let read = ahead(Cursor::new(&data), |piece| got.extend_from_slice(piece));
            assert_eq!(read.expect("no reader fails here"), count as u64);
            assert!(got == data, "{count} bytes, read ahead");
        }
    }

    #[test]
    fn an_error_of_the_reader_arrives() {
        let torn = Torn(Cursor::new(bytes(3 * PIECE_BYTES)));
        let mut got = 0;
        let error = ahead(torn, |piece| got += piece.len()).unwrap_err();
        assert_eq!(error.to_string(), "torn");
        assert!(got <= 3 * PIECE_BYTES);
    }

    #[test]
    fn standard_input_has_a_name_of_its_own() {
        assert_eq!(Input::of(Path::new("-")).shown(), "stdin");
        assert_eq!(Input::named(OsStr::new("stdin")).shown(), "stdin");
        assert_eq!(Input::of(Path::new("stdin")).file, Some(Path::new("stdin")));
        assert_eq!(Input::named(OsStr::new("-")).file, Some(Path::new("-")));
    }
}
