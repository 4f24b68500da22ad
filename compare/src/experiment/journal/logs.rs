//! This project's journal, and what a program writes that has no library.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use thalweg_journal::{Journal, Options};

use super::{Load, Log, Opened, Record, bytes_of, record};

const BUFFER_BYTES: usize = 64 << 10;
const SEGMENT_BYTES: u64 = 48 << 20;

struct Ours {
    journal: Journal<Record>,
    is_synced: bool,
}

impl Log for Ours {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        let told = |error: thalweg_journal::Error| error.to_string();
        for number in first..first + group {
            self.journal
                .append_with(|slot| *slot = record(number))
                .map_err(told)?;
        }
        if self.is_synced {
            let _ = self.journal.commit().map_err(told)?;
        }
        Ok(())
    }
}

/// One segment, which is prepared before the clock starts.
pub(super) fn ours(place: &Path, load: &Load) -> Opened {
    let options = Options::default()
        .segment_bytes(SEGMENT_BYTES)
        .in_background(false);
    let journal = Journal::open(place, options).map_err(|error| error.to_string())?;
    let is_synced = load.is_synced;
    Ok(Box::new(Ours { journal, is_synced }))
}

struct Buffered(BufWriter<File>);

impl Log for Buffered {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        for number in first..first + group {
            let written = self.0.write_all(bytes_of(&record(number)).as_flattened());
            written.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn file(place: &Path) -> Result<File, String> {
    fs::create_dir_all(place)
        .and_then(|()| File::create(place.join("log")))
        .map_err(|error| error.to_string())
}

pub(super) fn buffered(place: &Path, _: &Load) -> Opened {
    let file = BufWriter::with_capacity(BUFFER_BYTES, file(place)?);
    Ok(Box::new(Buffered(file)))
}

/// A block with a checksum in front, and a sync.
struct Growing {
    file: File,
    block: Vec<u8>,
}

impl Log for Growing {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        self.block.resize(8, 0);
        for number in first..first + group {
            let bytes = bytes_of(&record(number));
            self.block.extend_from_slice(bytes.as_flattened());
        }
        let sum = crc32c::crc32c(&self.block[8..]);
        self.block[..4].copy_from_slice(&sum.to_le_bytes());
        let written = self.file.write_all(&self.block);
        let synced = written.and_then(|()| self.file.sync_data());
        self.block.clear();
        synced.map_err(|error| error.to_string())
    }
}

pub(super) fn growing(place: &Path, _: &Load) -> Opened {
    let (file, block) = (file(place)?, Vec::new());
    Ok(Box::new(Growing { file, block }))
}
