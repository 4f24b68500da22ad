//! Snapshots in a directory: found, read, written, given up.

use std::io;
use std::sync::Arc;

use thalweg_hash::Xxh64;
use thalweg_journal::{
    Error as JournalError, Storage, StorageFile, WriteSync, read_fully, write_fully,
};

use super::file::{HEADER_BYTES, SUM_BYTES, SnapshotHeader, decode};
use super::file_error::{Skipped, SnapshotFileError};
use crate::durable::error::OpenError;
use crate::durable::options::SessionLimits;
use crate::durable::replay::Image;

/// A snapshot that is being written; worthless after a crash.
pub(crate) const PART_NAME: &str = "snapshot.part";
/// Written and made durable in pieces of this, so that commits do not have to wait for all of it.
const PIECE_BYTES: usize = 256 << 10;

/// Returns the name of the snapshot after this number of commands.
pub(crate) fn snapshot_name(commands: u64) -> String {
    format!("snapshot-{commands:020}.thw")
}

/// Returns the number in a snapshot's name; none for other files.
pub(crate) fn snapshot_commands(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("snapshot-")?.strip_suffix(".thw")?;
    let is_ours = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_ours.then(|| digits.parse().ok()).flatten()
}

/// The newest whole snapshot.
pub(crate) struct Found {
    pub(crate) image: Image,
    pub(crate) header: SnapshotHeader,
    /// Those that are newer and damaged.
    pub(crate) skipped: Vec<Skipped>,
}

pub(crate) fn io_error<S: Storage>(
    storage: &S,
    name: &str,
    what: &'static str,
) -> impl FnOnce(io::Error) -> JournalError {
    let file = match name {
        "" => storage.location(),
        name => format!("{}/{name}", storage.location()),
    };
    move |source| JournalError::Io {
        file,
        what,
        source: Arc::new(source),
    }
}

/// By how many commands they hold, ascending.
pub(crate) fn list<S: Storage>(storage: &S) -> Result<Vec<u64>, JournalError> {
    let names = storage.list().map_err(io_error(storage, "", "be listed"))?;
    let mut commands: Vec<u64> = names
        .iter()
        .filter_map(|name| snapshot_commands(name))
        .collect();
    commands.sort_unstable();
    Ok(commands)
}

/// Reads until `into` is full or the file ends; gives how much.
fn fill(file: &impl StorageFile, offset: u64, into: &mut [u8]) -> Result<usize, SnapshotFileError> {
    let done = read_fully(file, offset, into);
    done.map_err(|error| SnapshotFileError::Io(error.to_string()))
}

/// Returns a snapshot's file, and what it says of itself, if it is as long as it says.
fn open<S: Storage>(
    storage: &S,
    name: &str,
) -> Result<(S::File, SnapshotHeader), SnapshotFileError> {
    let unreadable = |error: io::Error| SnapshotFileError::Io(error.to_string());
    let file = storage.open(name, false).map_err(unreadable)?;
    let mut bytes = [0; HEADER_BYTES];
    let done = fill(&file, 0, &mut bytes)?;
    let header = SnapshotHeader::decode(&bytes[..done])?;
    let (bytes, expected) = (
        file.length_bytes().map_err(unreadable)?,
        header.file_bytes(),
    );
    match bytes == expected {
        true => Ok((file, header)),
        false => Err(SnapshotFileError::Length { bytes, expected }),
    }
}

/// Returns all bytes of a snapshot. Memory is taken for what its header says, not for any file.
fn read<S: Storage>(storage: &S, name: &str) -> Result<Vec<u8>, SnapshotFileError> {
    let (file, header) = open(storage, name)?;
    let length = header.file_bytes();
    let no_memory = || SnapshotFileError::Io(format!("no memory for its {length} bytes"));
    let bytes = usize::try_from(length).map_err(|_| no_memory())?;
    let mut all = Vec::new();
    all.try_reserve_exact(bytes).map_err(|_| no_memory())?;
    all.resize(bytes, 0);
    let done = fill(&file, 0, &mut all)?;
    all.truncate(done);
    Ok(all)
}

/// Returns a snapshot's header, if the checksum agrees. The file is read in pieces.
pub(crate) fn checked_header<S: Storage>(
    storage: &S,
    name: &str,
) -> Result<SnapshotHeader, SnapshotFileError> {
    let (file, header) = open(storage, name)?;
    let content = header.file_bytes() - SUM_BYTES as u64;
    let (mut hash, mut offset) = (Xxh64::new(0), 0);
    let mut piece = vec![0; PIECE_BYTES];
    while offset < content {
        let bytes = (content - offset).min(PIECE_BYTES as u64) as usize;
        let done = fill(&file, offset, &mut piece[..bytes])?;
        hash.update(&piece[..done]);
        offset += bytes as u64;
    }
    let mut sum = [0; SUM_BYTES];
    fill(&file, content, &mut sum)?;
    match sum == hash.digest().to_le_bytes() {
        true => Ok(header),
        false => Err(SnapshotFileError::Sum { what: "file" }),
    }
}

/// A snapshot's full name, and the error in it.
pub(crate) type Flawed = (String, SnapshotFileError);

/// Returns all bytes of a snapshot.
pub(crate) fn read_file<S: Storage>(storage: &S, commands: u64) -> Result<Vec<u8>, Flawed> {
    let name = snapshot_name(commands);
    read(storage, &name).map_err(|why| (format!("{}/{name}", storage.location()), why))
}

/// Returns the header of a snapshot whose checksum agrees, and which is what its name says.
pub(crate) fn whole_header<S: Storage>(
    storage: &S,
    commands: u64,
) -> Result<SnapshotHeader, Flawed> {
    let name = snapshot_name(commands);
    let header = checked_header(storage, &name).and_then(|header| match header.commands {
        found if found == commands => Ok(header),
        value => {
            let (what, at) = ("the number of commands", 24);
            Err(SnapshotFileError::Field { what, at, value })
        }
    });
    header.map_err(|why| (format!("{}/{name}", storage.location()), why))
}

/// Decodes a snapshot, with the tables as they were; from `bytes`, if it was read already.
pub(crate) fn image_of<S: Storage>(
    storage: &S,
    commands: u64,
    bytes: Option<&[u8]>,
) -> Result<(Image, SnapshotHeader), Flawed> {
    let read = match bytes {
        Some(_) => Vec::new(),
        None => read_file(storage, commands)?,
    };
    let bytes = bytes.unwrap_or(&read);
    let full = |why| {
        (
            format!("{}/{}", storage.location(), snapshot_name(commands)),
            why,
        )
    };
    let header = SnapshotHeader::decode(bytes).map_err(full)?;
    let (image, header) = decode(bytes, &header.sessions).map_err(full)?;
    check(commands, header.journal, image, header).map_err(full)
}

/// Returns a snapshot's header.
pub(crate) fn header_of<S: Storage>(storage: &S, commands: u64) -> Result<SnapshotHeader, Flawed> {
    let name = snapshot_name(commands);
    let opened = open(storage, &name).map(|(_, header)| header);
    opened.map_err(|why| (format!("{}/{name}", storage.location()), why))
}

/// Reads the newest whole snapshot; none where there is no snapshot at all.
///
/// # Errors
/// The directory cannot be read; a snapshot is of another version; all are damaged.
pub(crate) fn newest<S: Storage>(
    storage: &S,
    journal: u64,
    limits: &SessionLimits,
) -> Result<Option<Found>, OpenError> {
    let mut skipped = Vec::new();
    for commands in list(storage)?.into_iter().rev() {
        let name = snapshot_name(commands);
        let full = format!("{}/{name}", storage.location());
        let whole = read(storage, &name).and_then(|bytes| decode(&bytes, limits));
        let whole = whole.and_then(|(image, header)| check(commands, journal, image, header));
        match whole {
            Ok((image, header)) => {
                return Ok(Some(Found {
                    image,
                    header,
                    skipped,
                }));
            }
            Err(
                why @ (SnapshotFileError::Version { .. } | SnapshotFileError::OtherJournal { .. }),
            ) => {
                return Err(OpenError::Snapshot { file: full, why });
            }
            Err(why) => skipped.push(Skipped {
                file: full,
                commands,
                why,
            }),
        }
    }
    match skipped.is_empty() {
        true => Ok(None),
        false => Err(OpenError::NoSnapshot { skipped }),
    }
}

/// Checks that a snapshot is what its name says, and of this exchange.
fn check(
    commands: u64,
    journal: u64,
    image: Image,
    header: SnapshotHeader,
) -> Result<(Image, SnapshotHeader), SnapshotFileError> {
    if header.journal != journal {
        let journal = header.journal;
        return Err(SnapshotFileError::OtherJournal { journal });
    }
    if header.commands != commands {
        let (what, at, value) = ("the number of commands", 24, header.commands);
        return Err(SnapshotFileError::Field { what, at, value });
    }
    Ok((image, header))
}

/// Writes a snapshot, and makes it durable under its name.
pub(crate) fn write<S: Storage>(
    storage: &S,
    commands: u64,
    bytes: &[u8],
) -> Result<(), JournalError> {
    let mut part = Part::new(storage)?;
    bytes
        .chunks(PIECE_BYTES)
        .try_for_each(|piece| part.write(piece))?;
    part.finish(commands)
}

/// A snapshot that is being written, in pieces.
pub(crate) struct Part<'s, S: Storage> {
    storage: &'s S,
    file: S::File,
    written_bytes: usize,
}

impl<'s, S: Storage> Part<'s, S> {
    pub(crate) fn new(storage: &'s S) -> Result<Self, JournalError> {
        let failed = |what| io_error(storage, PART_NAME, what);
        remove(storage, PART_NAME).map_err(failed("be removed"))?;
        let file = storage.create(PART_NAME).map_err(failed("be made"))?;
        Ok(Self {
            storage,
            file,
            written_bytes: 0,
        })
    }

    /// Half a snapshot is of no use, and takes room on a disk that may be full.
    fn or_remove(&self, done: io::Result<()>) -> Result<(), JournalError> {
        if done.is_err() {
            let _ = self.storage.remove(PART_NAME);
        }
        done.map_err(io_error(self.storage, PART_NAME, "be written"))
    }

    pub(crate) fn write(&mut self, piece: &[u8]) -> Result<(), JournalError> {
        self.or_remove(write_fully(
            &self.file,
            self.written_bytes as u64,
            piece,
            WriteSync::Immediate,
        ))?;
        self.written_bytes += piece.len();
        Ok(())
    }

    /// Makes it durable as the snapshot after this number of commands.
    pub(crate) fn finish(self, commands: u64) -> Result<(), JournalError> {
        self.or_remove(self.file.sync())?;
        let storage = self.storage;
        let failed = |what| io_error(storage, PART_NAME, what);
        let renamed = storage.rename(PART_NAME, &snapshot_name(commands));
        renamed.map_err(failed("be renamed"))?;
        storage
            .sync_names()
            .map_err(failed("be made durable in its directory"))
    }
}

/// The bytes of a snapshot's file, in pieces.
pub(crate) struct Pieces<F> {
    file: F,
    name: String,
    bytes: u64,
    offset: u64,
    piece: Vec<u8>,
}

impl<F: StorageFile> Pieces<F> {
    pub(crate) fn of<S: Storage<File = F>>(storage: &S, commands: u64) -> Result<Self, Flawed> {
        let name = snapshot_name(commands);
        let opened = open(storage, &name);
        let name = format!("{}/{name}", storage.location());
        let (file, header) = opened.map_err(|why| (name.clone(), why))?;
        Ok(Self {
            file,
            name,
            bytes: header.file_bytes(),
            offset: 0,
            piece: vec![0; PIECE_BYTES],
        })
    }

    /// Returns the next piece; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Flawed> {
        let expected = (self.bytes - self.offset).min(PIECE_BYTES as u64);
        let piece = &mut self.piece[..expected as usize];
        let done = fill(&self.file, self.offset, piece);
        let done = done.map_err(|why| (self.name.clone(), why))? as u64;
        if done < expected {
            let (bytes, expected) = (self.offset + done, self.bytes);
            let why = SnapshotFileError::Length { bytes, expected };
            return Err((self.name.clone(), why));
        }
        self.offset += done;
        Ok((done > 0).then_some(piece))
    }
}

/// Removes a file, if it is there.
pub(crate) fn remove<S: Storage>(storage: &S, name: &str) -> io::Result<()> {
    match storage.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways_and_others_are_none() {
        for commands in [0, 17, u64::MAX] {
            assert_eq!(snapshot_commands(&snapshot_name(commands)), Some(commands));
        }
        for other in [
            PART_NAME,
            "snapshot-17.thw",
            "snapshot-0000000000000000001x.thw",
        ] {
            assert_eq!(snapshot_commands(other), None, "{other}");
        }
    }
}
