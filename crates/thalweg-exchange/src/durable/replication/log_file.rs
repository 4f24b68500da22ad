//! The log to which a directory belongs: a small file in it.
//!
//! A replica writes it once the digest of all its commands was compared with the log; where it
//! begins as the log does, before it executes the log's first command. So a directory that is
//! behind the log, whose commands the log has given up, is known as the log's, or as another one's,
//! which is kept. `docs/durable-format.md` has the bytes.

use std::io;

use thalweg_hash::xxh64;
use thalweg_journal::{Error as JournalError, Storage, StorageFile, WriteSync, write_fully};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::durable::snapshots::{io_error, remove};

/// The name of the file.
pub const LOG_FILE: &str = "command-log.thw";
/// Its name while it is written. What is left of it is worth nothing.
const PART_NAME: &str = "command-log.part";
const MAGIC: [u8; 8] = *b"thalwegL";
const VERSION: u32 = 1;

/// The file, little-endian.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct LogForm {
    magic: [u8; 8],
    version: U32,
    reserved: U32,
    /// The [start of the log's chain](super::Claim::chain_start).
    log: U64,
    /// The XXH64 of the fields above.
    sum: U64,
}

impl LogForm {
    fn new(log: u64) -> Self {
        let mut form = Self {
            magic: MAGIC,
            version: U32::new(VERSION),
            reserved: U32::ZERO,
            log: U64::new(log),
            sum: U64::ZERO,
        };
        let bytes = form.as_bytes();
        form.sum = U64::new(xxh64(0, &bytes[..bytes.len() - size_of::<U64>()]));
        form
    }
}

/// Returns the [start of the chain](super::Claim::chain_start) of the log to which a directory
/// belongs, where that is known.
///
/// # Errors
/// The file cannot be read, or was not written by this version.
pub fn log_of<S: Storage>(storage: &S) -> Result<Option<u64>, JournalError> {
    let failed = || io_error(storage, LOG_FILE, "be read");
    let file = match storage.open(LOG_FILE, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed())?,
    };
    let mut form = LogForm::new_zeroed();
    file.read_at(0, form.as_mut_bytes()).map_err(failed())?;
    let log = form.log.get();
    match form.as_bytes() == LogForm::new(log).as_bytes() {
        true => Ok(Some(log)),
        false => Err(failed()(io::ErrorKind::InvalidData.into())),
    }
}

/// Notes the log to which a directory belongs from now on.
///
/// # Errors
/// The directory takes no file.
pub fn note_log<S: Storage>(storage: &S, log: u64) -> Result<(), JournalError> {
    let write = || {
        remove(storage, PART_NAME)?;
        let file = storage.create(PART_NAME)?;
        write_fully(&file, 0, LogForm::new(log).as_bytes(), WriteSync::Immediate)?;
        file.sync()?;
        storage.rename(PART_NAME, LOG_FILE)?;
        storage.sync_names()
    };
    write().map_err(io_error(storage, LOG_FILE, "be written"))
}

/// Removes the note: the directory goes on as that of one machine, and belongs to no log any more.
/// Returns whether there was one.
///
/// # Errors
/// The directory refuses it.
pub fn forget_log<S: Storage>(storage: &S) -> Result<bool, JournalError> {
    let remove = || match storage.remove(LOG_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.and_then(|()| storage.sync_names()).map(|()| true),
    };
    remove().map_err(io_error(storage, LOG_FILE, "be removed"))
}

#[cfg(test)]
mod tests {
    use thalweg_journal::SimDisk;

    use super::*;

    #[test]
    fn the_log_of_a_directory_is_read_as_it_was_noted_and_no_other_bytes_are() {
        let disk = SimDisk::new();
        assert_eq!(log_of(&disk).expect("there is none"), None);
        note_log(&disk, 7).expect("there is room");
        note_log(&disk, 0x1234_5678_9ABC_DEF0).expect("it is replaced");
        disk.restart(1);
        assert_eq!(
            log_of(&disk).expect("it is whole"),
            Some(0x1234_5678_9ABC_DEF0)
        );
        let bytes = disk.contents(LOG_FILE).expect("it is there");
        assert_eq!(bytes.len(), 32);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            disk.put(LOG_FILE, damaged);
            let error = log_of(&disk).expect_err("it is damaged").to_string();
            assert!(error.contains("command-log.thw"), "{at}: {error}");
        }
        disk.put(LOG_FILE, bytes[..31].to_vec());
        log_of(&disk).expect_err("it is too short");
        assert!(forget_log(&disk).expect("it is removed"));
        disk.restart(1);
        assert!(!forget_log(&disk).expect("there is none"));
    }
}
