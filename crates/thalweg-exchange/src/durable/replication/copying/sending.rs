//! The sender of a copy.

use std::io::Write;

use thalweg_journal::{Lsn, Reader, Storage};
use zerocopy::IntoBytes;

use super::{CHUNK_BYTES_MAX, ChunkForm, Copied, CopyError, HeadForm};
use crate::durable::snapshots::{Pieces, SnapshotHeader, commands_in_order, whole_header};

/// Bytes of the length before a record.
const LENGTH_BYTES: usize = size_of::<u32>();

/// Sends a copy of the exchange in this directory, which may be open meanwhile: its newest whole
/// snapshot with at most `until` commands, and what its journal has after it, up to `until`
/// commands. Calls `pace` with the number of bytes after each piece.
///
/// # Errors
/// There is no such snapshot, it cannot be read, the journal cannot be, or has given up meanwhile
/// what was to be sent; `out` does not take the bytes.
pub fn send<S: Storage>(
    storage: &S,
    until: u64,
    out: &mut impl Write,
    mut pace: impl FnMut(usize),
) -> Result<Copied, CopyError> {
    let header = newest_until(storage, until)?;
    let snapshot = header.commands;
    let mut bytes = header.file_bytes();
    out.write_all(HeadForm::new(header.journal, snapshot, bytes).as_bytes())?;
    let flawed = |(file, why)| CopyError::Snapshot { file, why };
    let mut pieces = Pieces::of(storage, snapshot).map_err(flawed)?;
    while let Some(piece) = pieces.next().map_err(flawed)? {
        out.write_all(piece)?;
        pace(piece.len());
    }
    let mut reader = Reader::open_in(storage.clone(), Lsn::new(snapshot + 1))?;
    let mut chunk = Chunk::new(snapshot);
    while chunk.next() < until
        && let Some(block) = reader.next_block()?
    {
        // The command with number n is record n + 1.
        for (_, record) in block.bytes().take_while(|(lsn, _)| lsn.number() <= until) {
            if chunk.records.len() + LENGTH_BYTES + record.len() > CHUNK_BYTES_MAX {
                bytes += chunk.send(out, &mut pace)?;
            }
            chunk.push(record);
        }
        bytes += chunk.send(out, &mut pace)?;
    }
    // The last one is empty.
    chunk.send_form(out)?;
    out.flush()?;
    let commands = chunk.first;
    Ok(Copied {
        snapshot,
        commands,
        bytes,
    })
}

/// Returns the header of the newest whole snapshot with at most `until` commands.
fn newest_until<S: Storage>(storage: &S, until: u64) -> Result<SnapshotHeader, CopyError> {
    let all = commands_in_order(storage)?;
    let mut old_enough = all.into_iter().rev().filter(|commands| *commands <= until);
    let whole = old_enough.find_map(|commands| whole_header(storage, commands).ok());
    let place = storage.location();
    whole.ok_or(CopyError::NoSnapshot { place, until })
}

/// Commands that are sent together.
struct Chunk {
    /// The number of the first one.
    first: u64,
    count: u32,
    records: Vec<u8>,
}

impl Chunk {
    const fn new(first: u64) -> Self {
        Self {
            first,
            count: 0,
            records: Vec::new(),
        }
    }

    /// Returns the number of the next command.
    fn next(&self) -> u64 {
        self.first + u64::from(self.count)
    }

    fn push(&mut self, record: &[u8]) {
        let length = record.len() as u32;
        self.records.extend_from_slice(&length.to_le_bytes());
        self.records.extend_from_slice(record);
        self.count += 1;
    }

    fn send_form(&self, out: &mut impl Write) -> Result<(), CopyError> {
        let form = ChunkForm::new(self.first, self.count, &self.records);
        Ok(out.write_all(form.as_bytes())?)
    }

    /// Sends the commands, if there are any. Returns the bytes of their records.
    fn send(
        &mut self,
        out: &mut impl Write,
        pace: &mut impl FnMut(usize),
    ) -> Result<u64, CopyError> {
        if self.count == 0 {
            return Ok(0);
        }
        self.send_form(out)?;
        out.write_all(&self.records)?;
        let bytes = self.records.len();
        pace(bytes);
        (self.first, self.count) = (self.next(), 0);
        self.records.clear();
        Ok(bytes as u64)
    }
}
