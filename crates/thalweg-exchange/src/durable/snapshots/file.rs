//! A snapshot as bytes: the state, sessions and reports after a number of commands.
//!
//! `docs/durable-format.md` has the tables.

use std::mem::offset_of;

use thalweg_hash::xxh64;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::file_error::{SNAPSHOT_VERSION, SnapshotFileError};
use super::saved::{encode_reports, encode_sessions, restore_reports, restore_sessions};
use crate::digest::Digest;
use crate::durable::options::SessionLimits;
use crate::durable::replay::Image;
use crate::durable::tables::Tables;
use crate::engine::state::State;
use crate::snapshot::{decode_state, encode_state};
use crate::wire::{Form, wire};

const MAGIC: [u8; 8] = *b"thalwegS";

/// The header of a snapshot's file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct HeaderForm {
    magic: [u8; 8],
    version: U32,
    reserved: U32,
    journal: U64,
    commands: U64,
    digest: U64,
    state_hash: U64,
    state_bytes: U64,
    sessions_bytes: U64,
    reports_bytes: U64,
    sessions: LimitsForm,
    unused: [U32; 7],
    /// XXH64 of all before it.
    sum: U64,
}

wire! {
    struct LimitsForm = SessionLimits {
        answers_kept: u32, reports_kept: u32, reports_max: u32, sessions_per_user: u32,
        sessions_max: u32,
    }
}

pub(crate) const HEADER_BYTES: usize = size_of::<HeaderForm>();
const HEADER_SUM_AT: usize = offset_of!(HeaderForm, sum);
pub(crate) const SUM_BYTES: usize = 8;

/// The header of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The number of the journal that it belongs to.
    pub journal: u64,
    /// How many commands it holds; the number of the next one.
    pub commands: u64,
    /// The digest of all of them.
    pub digest: Digest,
    /// The hash of the state.
    pub state_hash: u64,
    /// Bytes of the state.
    pub state_bytes: u64,
    /// Bytes of the sessions.
    pub sessions_bytes: u64,
    /// Bytes of the reports.
    pub reports_bytes: u64,
    /// The limits of answers, reports and sessions that were kept for clients that reconnect.
    pub sessions: SessionLimits,
}

/// The exchange and the moment of a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) journal: u64,
    pub(crate) digest: Digest,
    pub(crate) sessions: SessionLimits,
}

/// Returns all bytes of a snapshot, and its header.
pub(crate) fn encode(state: &State, tables: &Tables, moment: Moment) -> (Vec<u8>, SnapshotHeader) {
    let mut out = vec![0; HEADER_BYTES];
    encode_state(state, &mut out);
    let state_end = out.len();
    encode_sessions(&tables.sessions, &mut out);
    let sessions_end = out.len();
    encode_reports(&tables.reports, &mut out);
    let header = SnapshotHeader {
        journal: moment.journal,
        commands: moment.digest.outcomes(),
        digest: moment.digest,
        state_hash: xxh64(0, &out[HEADER_BYTES..state_end]),
        state_bytes: (state_end - HEADER_BYTES) as u64,
        sessions_bytes: (sessions_end - state_end) as u64,
        reports_bytes: (out.len() - sessions_end) as u64,
        sessions: moment.sessions,
    };
    out[..HEADER_BYTES].copy_from_slice(header.encode().as_bytes());
    let sum = xxh64(0, &out);
    out.extend_from_slice(&sum.to_le_bytes());
    (out, header)
}

/// Reads a snapshot; tables keep what these limits say.
pub(crate) fn decode(
    bytes: &[u8],
    limits: &SessionLimits,
) -> Result<(Image, SnapshotHeader), SnapshotFileError> {
    let header = SnapshotHeader::decode(bytes)?;
    let expected = header.file_bytes();
    if bytes.len() as u64 != expected {
        let bytes = bytes.len() as u64;
        return Err(SnapshotFileError::Length { bytes, expected });
    }
    let (content, sum) = bytes.split_at(bytes.len() - SUM_BYTES);
    if sum != xxh64(0, content).to_le_bytes() {
        return Err(SnapshotFileError::Sum { what: "file" });
    }
    let (state, rest) = content[HEADER_BYTES..].split_at(header.state_bytes as usize);
    let (sessions, reports) = rest.split_at(header.sessions_bytes as usize);
    if xxh64(0, state) != header.state_hash {
        return Err(SnapshotFileError::StateHash);
    }
    let mut tables = Tables::new(limits);
    restore_sessions(sessions, header.commands, &mut tables.sessions)?;
    restore_reports(reports, &mut tables.reports)?;
    let image = Image {
        state: decode_state(state).map_err(SnapshotFileError::State)?,
        tables,
        digest: header.digest,
        number: header.commands,
    };
    Ok((image, header))
}

impl SnapshotHeader {
    /// Returns how long the file is, by its header.
    pub(crate) fn file_bytes(&self) -> u64 {
        let parts = [self.state_bytes, self.sessions_bytes, self.reports_bytes];
        let fixed = (HEADER_BYTES + SUM_BYTES) as u64;
        parts.into_iter().fold(fixed, u64::saturating_add)
    }

    fn encode(&self) -> HeaderForm {
        let mut form = HeaderForm {
            magic: MAGIC,
            version: U32::new(SNAPSHOT_VERSION),
            reserved: U32::ZERO,
            journal: U64::new(self.journal),
            commands: U64::new(self.commands),
            digest: U64::new(self.digest.value()),
            state_hash: U64::new(self.state_hash),
            state_bytes: U64::new(self.state_bytes),
            sessions_bytes: U64::new(self.sessions_bytes),
            reports_bytes: U64::new(self.reports_bytes),
            sessions: LimitsForm::of(&self.sessions).1,
            unused: [U32::ZERO; 7],
            sum: U64::ZERO,
        };
        form.sum = U64::new(xxh64(0, &form.as_bytes()[..HEADER_SUM_AT]));
        form
    }

    /// Reads a snapshot's header, without a look at the rest.
    ///
    /// # Errors
    /// The error in the header.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, SnapshotFileError> {
        let too_short = SnapshotFileError::Length {
            bytes: bytes.len() as u64,
            expected: (HEADER_BYTES + SUM_BYTES) as u64,
        };
        let (form, _) = HeaderForm::ref_from_prefix(bytes).map_err(|_| too_short)?;
        if form.magic != MAGIC {
            return Err(SnapshotFileError::Magic);
        }
        // Every version has its sum here: a version that is damaged is not another one.
        if form.sum != xxh64(0, &form.as_bytes()[..HEADER_SUM_AT]) {
            return Err(SnapshotFileError::Sum { what: "header" });
        }
        let version = form.version.get();
        if version != SNAPSHOT_VERSION {
            return Err(SnapshotFileError::Version { version });
        }
        let unused = (offset_of!(HeaderForm, unused)..)
            .step_by(4)
            .zip(form.unused);
        let reserved = [(offset_of!(HeaderForm, reserved), form.reserved)];
        if let Some((at, value)) = reserved
            .into_iter()
            .chain(unused)
            .find(|(_, value)| *value != 0)
        {
            let (what, value) = ("the reserved field", value.get().into());
            return Err(SnapshotFileError::Field { what, at, value });
        }
        let sessions = form.sessions.value([0; 2], [0; 2]);
        Ok(Self {
            journal: form.journal.get(),
            commands: form.commands.get(),
            digest: Digest::from_parts(form.digest.get(), form.commands.get()),
            state_hash: form.state_hash.get(),
            state_bytes: form.state_bytes.get(),
            sessions_bytes: form.sessions_bytes.get(),
            reports_bytes: form.reports_bytes.get(),
            sessions: sessions.expect("any numbers are limits"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::tables::tests::filled;

    fn whole() -> Vec<u8> {
        let (state, tables, digest) = filled();
        let moment = Moment {
            journal: 0x77,
            digest,
            sessions: SessionLimits::default(),
        };
        encode(&state, &tables, moment).0
    }

    /// Puts other bytes at a place, and makes both checksums agree again.
    fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut forged = whole();
        forged[at..at + bytes.len()].copy_from_slice(bytes);
        let sum = xxh64(0, &forged[..HEADER_SUM_AT]);
        forged[HEADER_SUM_AT..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        let end = forged.len() - SUM_BYTES;
        let sum = xxh64(0, &forged[..end]);
        forged[end..].copy_from_slice(&sum.to_le_bytes());
        forged
    }

    fn refused(bytes: &[u8]) -> String {
        let decoded = decode(bytes, &SessionLimits::default());
        decoded.map(|_| ()).expect_err("it is refused").to_string()
    }

    /// Checks forged bytes. Each line says how far behind `from` a byte is forged, that byte, and
    /// why it is refused.
    fn all_refused(from: usize, faults: &str) {
        for fault in faults.lines() {
            let mut words = fault.trim_start().splitn(3, ' ');
            let [at, byte, text] = [(); 3].map(|()| words.next().expect("three columns"));
            let at = from + at.parse::<usize>().expect("a place");
            let byte = byte.parse().expect("a byte");
            assert_eq!(refused(&with(at, &[byte])), text);
        }
    }

    #[test]
    fn what_is_read_gives_the_same_bytes_again() {
        let bytes = whole();
        let (image, header) = decode(&bytes, &SessionLimits::default()).expect("it is whole");
        let moment = Moment {
            journal: header.journal,
            digest: image.digest,
            sessions: header.sessions,
        };
        assert_eq!(encode(&image.state, &image.tables, moment).0, bytes);
        assert_eq!(image.number, 3);
        assert_eq!(image.tables.sessions.list().len(), 1);
    }

    #[test]
    fn every_byte_counts() {
        let bytes = whole();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            refused(&damaged);
            refused(&bytes[..at]);
        }
    }

    #[test]
    fn a_forged_snapshot_is_refused_and_says_why() {
        let header = SnapshotHeader::decode(&whole()).expect("it is whole");
        let sessions = HEADER_BYTES + header.state_bytes as usize;
        let long = |value: u64| value.to_le_bytes();
        let text = "the reserved field at byte 100 is 1, which cannot be";
        assert_eq!(refused(&with(100, &[1])), text);
        let length = whole().len();
        let text = format!("it has {length} bytes instead of {}", length + 1);
        assert_eq!(refused(&with(64, &long(header.reports_bytes + 1))), text);
        let text = "its state has another hash than its header gives";
        assert_eq!(refused(&with(40, &long(1))), text);
        all_refused(
            sessions,
            "4 2 the role at byte 4 is 2, which cannot be
             0 2 the sessions end at byte 88, too early
             0 0 the surplus of a part at byte 4 is 84, which cannot be
             20 9 the last sequence at byte 84 is 9, which cannot be
             20 0 the last sequence at byte 28 is 0, which cannot be
             28 4 the sequence of an answer at byte 60 is 3, which cannot be
             40 5 the sequence of an answer at byte 84 is 5, which cannot be
             48 2 the number of an answer at byte 84 is 2, which cannot be
             72 3 the number of an answer at byte 84 is 3, which cannot be
             80 7 the result of an answer at byte 80 is 4294964231, which cannot be",
        );
    }

    #[test]
    fn forged_reports_are_refused_and_say_why() {
        let header = SnapshotHeader::decode(&whole()).expect("it is whole");
        let sessions = HEADER_BYTES + header.state_bytes as usize;
        let reports = sessions + header.sessions_bytes as usize;
        all_refused(
            reports,
            "4 8 the frame of a report at byte 24 is 129, which cannot be
             12 1 the number of the next report at byte 20 is 1, which cannot be
             19 128 the number of the next report at byte 20 is 9223372036854775811, which cannot be
             0 2 the reports end at byte 184, too early",
        );
    }
}
