//! Everything goes to bytes and back; bytes that are not right are refused, and never more.

mod errors;
pub(crate) mod faults;
pub(crate) mod golden;
mod heads;
mod values;

use proptest::prelude::*;
use thalweg_exchange::Command;
use thalweg_exchange::codec::{
    CodecError, FRAME_BYTES_MAX, Family, MESSAGE_BYTES_MAX, MESSAGE_VERSION, REPORT_BYTES,
    REPORT_VERSION, SESSION_VERSION, SINGLE_COMMAND_BYTES_MAX, VERSION, command_bytes,
    decode_command, decode_message, decode_report, decode_snapshot, encode_command, encode_message,
    encode_report, encode_snapshot, message_bytes, peek, snapshot_bytes,
};

use crate::fuzz::frames;

/// Returns the frame that `encode` writes, if it needs `bytes`: not one more, and it says so where
/// there is less.
fn frame(
    bytes: usize,
    encode: impl Fn(&mut [u8]) -> Result<usize, CodecError>,
) -> Result<Vec<u8>, TestCaseError> {
    let mut out = vec![0xAA; bytes + 3];
    prop_assert_eq!(encode(&mut out), Ok(bytes));
    prop_assert_eq!(&out[bytes..], &[0xAA; 3]);
    out.truncate(bytes);
    let mut small = vec![0xAA; bytes - 1];
    let no_room = CodecError::BufferTooSmall {
        needed: bytes,
        have: bytes - 1,
    };
    prop_assert_eq!(encode(&mut small), Err(no_room));
    prop_assert!(small.iter().all(|byte| *byte == 0xAA), "written in part");
    Ok(out)
}

/// Checks a decoder's answer to every beginning of a frame.
fn beginnings_are_incomplete<T: std::fmt::Debug + PartialEq>(
    frame: &[u8],
    mut decode: impl FnMut(&[u8]) -> Result<T, CodecError>,
) -> Result<(), TestCaseError> {
    for have in 0..frame.len() {
        let needed = if have < 8 { 8 } else { frame.len() };
        let expected = Err(CodecError::Incomplete { needed, have });
        prop_assert_eq!(decode(&frame[..have]), expected);
    }
    Ok(())
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        values::command().prop_map(|command| {
            let mut out = vec![0; command_bytes(&command)];
            encode_command(&command, &mut out).expect("there is room");
            out
        }),
        values::report().prop_map(|report| {
            let mut out = vec![0; REPORT_BYTES];
            encode_report(&report, &mut out).expect("there is room");
            out
        }),
        values::message().prop_map(|message| {
            let mut out = vec![0; message_bytes(&message)];
            encode_message(&message, &mut out).expect("there is room");
            out
        }),
        values::snapshot().prop_map(|snapshot| {
            let mut out = vec![0; snapshot_bytes(&snapshot)];
            encode_snapshot(&snapshot, &mut out).expect("there is room");
            out
        }),
    ]
}

proptest! {
    #[test]
    fn commands_come_back(command in values::command(), rest in prop::collection::vec(0_u8.., 9)) {
        let bytes = command_bytes(&command);
        let mut frame = frame(bytes, |out| encode_command(&command, out))?;
        let family = peek(&frame).map(|frame| (frame.family, frame.bytes));
        prop_assert_eq!(family, Ok((Family::Command, bytes)));
        let is_batch = matches!(command, Command::AddSymbols(_) | Command::AddAccounts(_));
        prop_assert!(is_batch || bytes <= SINGLE_COMMAND_BYTES_MAX);
        beginnings_are_incomplete(&frame, decode_command)?;
        frame.extend(rest);
        prop_assert_eq!(decode_command(&frame), Ok((command, bytes)));
    }

    #[test]
    fn reports_come_back(report in values::report(), rest in prop::collection::vec(0_u8.., 9)) {
        let mut frame = frame(REPORT_BYTES, |out| encode_report(&report, out))?;
        let family = peek(&frame).map(|frame| (frame.family, frame.bytes));
        prop_assert_eq!(family, Ok((Family::Report, REPORT_BYTES)));
        beginnings_are_incomplete(&frame, decode_report)?;
        frame.extend(rest);
        prop_assert_eq!(decode_report(&frame), Ok((report, REPORT_BYTES)));
    }

    #[test]
    fn messages_come_back(message in values::message(), rest in prop::collection::vec(0_u8.., 9)) {
        let bytes = message_bytes(&message);
        let mut frame = frame(bytes, |out| encode_message(&message, out))?;
        let family = peek(&frame).map(|frame| (frame.family, frame.bytes));
        prop_assert_eq!(family, Ok((Family::Message, bytes)));
        prop_assert!(bytes <= MESSAGE_BYTES_MAX);
        beginnings_are_incomplete(&frame, decode_message)?;
        frame.extend(rest);
        prop_assert_eq!(decode_message(&frame), Ok((message, bytes)));
    }

    #[test]
    fn snapshots_come_back(
        snapshot in values::snapshot(),
        before in values::snapshot(),
        rest in prop::collection::vec(0_u8.., 9),
    ) {
        let bytes = snapshot_bytes(&snapshot);
        let mut frame = frame(bytes, |out| encode_snapshot(&snapshot, out))?;
        let family = peek(&frame).map(|frame| (frame.family, frame.bytes));
        prop_assert_eq!(family, Ok((Family::Snapshot, bytes)));
        // Whatever was in the buffer before.
        let mut back = before;
        beginnings_are_incomplete(&frame, |bytes| decode_snapshot(bytes, &mut back))?;
        frame.extend(rest);
        prop_assert_eq!(decode_snapshot(&frame, &mut back), Ok(bytes));
        prop_assert_eq!(back, snapshot);
    }

    #[test]
    fn changed_frames_are_refused_or_mean_something_else(
        frame in any_frame(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        head in prop::option::weighted(0.5, 0_usize..24),
    ) {
        let mut changed = frame.clone();
        for (at, byte) in changes {
            let length = head.map_or(changed.len(), |head| changed.len().min(head + 1));
            let at = at.index(length);
            changed[at] = byte;
        }
        frames::check(&changed, false);
        // One meaning, one form: other bytes are never the same thing.
        if changed != frame
            && let (Ok(one), Ok(other)) = (decode_report(&frame), decode_report(&changed))
        {
            prop_assert_ne!(one, other);
        }
        if changed != frame
            && let (Ok(one), Ok(other)) = (decode_command(&frame), decode_command(&changed))
        {
            prop_assert_ne!(one, other);
        }
    }

    #[test]
    fn random_bytes_do_no_harm(
        bytes in prop::collection::vec(0_u8.., 0..200),
        kind in 0_u8..,
        version in prop::sample::select(vec![0_u8, 1, 1, 2, 3, 3, 3]),
    ) {
        frames::check(&bytes, false);
        let mut framed = bytes;
        if framed.len() >= 8 {
            let length = framed.len() as u32;
            framed[..4].copy_from_slice(&length.to_le_bytes());
            let own = framed[6] & 3;
            framed[4..8].copy_from_slice(&[kind, version, own, 0]);
            frames::check(&framed, false);
            let known = match kind {
                0..128 => VERSION,
                128..160 => REPORT_VERSION,
                160..208 => MESSAGE_VERSION,
                208.. => SESSION_VERSION,
            };
            prop_assert!(peek(&framed).is_err() || version == known);
        }
    }
}

#[test]
fn a_batch_that_is_too_long_is_not_written() {
    let accounts = vec![thalweg_exchange::AccountSpec::default(); FRAME_BYTES_MAX / 12];
    let command = Command::AddAccounts(accounts.into());
    let length = command_bytes(&command);
    assert!(length > FRAME_BYTES_MAX);
    let mut out = vec![0; length];
    let error = encode_command(&command, &mut out);
    assert_eq!(error, Err(CodecError::TooLong { length }));
    assert_eq!(out[..8], [0; 8]);
}
