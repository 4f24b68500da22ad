//! The frames of a connection: to bytes and back, what is refused and how it is said, and which
//! commands a session can express.

mod errors;
pub(crate) use crate::codec::faults;
mod golden;
mod page;
mod roles;
pub(crate) mod samples;

use thalweg_exchange::codec::session::{
    NUMBERED_REPORT_BYTES, NumberedReport, ServerFrame, decode_client_frame, decode_server_frame,
    encode_client_frame, encode_server_frame, encode_submit, numbered_report,
};
use thalweg_exchange::codec::{CodecError, Family, REPORT_BYTES, encode_report, peek};
use thalweg_exchange::session::{ClientSequence, ReportNumber};
use thalweg_exchange::{Command, UserId};

use crate::fuzz::session::check;
use crate::session::samples::{client_frames, report, server_frames};

/// Returns which side decodes the bytes. Whatever decodes gives the same bytes.
fn decodes_to_itself(bytes: &[u8]) -> [bool; 2] {
    check(bytes, false);
    [
        decode_client_frame(bytes).is_ok(),
        decode_server_frame(bytes).is_ok(),
    ]
}

fn all_frames() -> Vec<Vec<u8>> {
    [client_frames(), server_frames()].concat()
}

#[test]
fn frames_come_back_to_the_side_that_they_are_for() {
    for (frames, side) in [(client_frames(), 0), (server_frames(), 1)] {
        for frame in frames {
            let is_of_both = matches!(frame[4], 215 | 221);
            let decoded = decodes_to_itself(&frame);
            assert_eq!(decoded, [side == 0 || is_of_both, side == 1 || is_of_both]);
            let peeked = peek(&frame).expect("it is a frame");
            assert_eq!(
                (peeked.family, peeked.bytes),
                (Family::Session, frame.len())
            );
            let followed = [&frame[..], &[1, 2, 3]].concat();
            assert_eq!(decodes_to_itself(&followed), decoded);
        }
    }
}

#[test]
fn beginnings_are_incomplete() {
    for frame in all_frames() {
        for have in 0..frame.len() {
            let needed = if have < 8 { 8 } else { frame.len() };
            let expected = CodecError::Incomplete { needed, have };
            let errors = [
                decode_client_frame(&frame[..have]).err(),
                decode_server_frame(&frame[..have]).err(),
            ];
            assert!(errors.contains(&Some(expected)), "{frame:?}: {errors:?}");
        }
    }
}

/// Every byte with every other value: another meaning, or none; never the same one.
#[test]
fn a_changed_byte_is_refused_or_means_something_else() {
    let mut refused = 0;
    for frame in all_frames() {
        let meant = (
            decode_client_frame(&frame).ok(),
            decode_server_frame(&frame).ok(),
        );
        for at in 0..frame.len() {
            let mut changed = frame.clone();
            for value in (0..=u8::MAX).filter(|value| *value != frame[at]) {
                changed[at] = value;
                let decoded = decodes_to_itself(&changed);
                refused += usize::from(decoded == [false; 2]);
                if let (Some(one), Ok(other)) = (&meant.0, decode_client_frame(&changed)) {
                    assert_ne!(*one, other.clone(), "byte {at}");
                }
                if let (Some(one), Ok(other)) = (&meant.1, decode_server_frame(&changed)) {
                    assert_ne!(*one, other.clone(), "byte {at}");
                }
            }
        }
    }
    assert!(refused > 10_000, "{refused}");
}

/// Every length that a head can give, with as many bytes.
#[test]
fn a_wrong_length_is_refused_at_once_or_when_all_is_there() {
    for frame in all_frames() {
        for length in 0..frame.len() as u32 + 40 {
            let mut other = frame.clone();
            other[..4].copy_from_slice(&length.to_le_bytes());
            other.resize(frame.len().max(length as usize), 0);
            decodes_to_itself(&other);
            let errors = [
                decode_client_frame(&other).err(),
                decode_server_frame(&other).err(),
            ];
            for error in errors.into_iter().flatten() {
                let is_incomplete = matches!(error, CodecError::Incomplete { .. });
                assert!(!is_incomplete, "all of the frame is there: {error}");
            }
        }
    }
}

#[test]
fn nothing_is_written_where_there_is_no_room() {
    for frame in client_frames() {
        let (decoded, needed) = decode_client_frame(&frame).expect("a good frame");
        let mut small = vec![0xAA; needed - 1];
        let have = needed - 1;
        let expected = Err(CodecError::BufferTooSmall { needed, have });
        assert_eq!(encode_client_frame(&decoded, &mut small), expected);
        assert!(small.iter().all(|byte| *byte == 0xAA));
    }
    for frame in server_frames() {
        let (decoded, needed) = decode_server_frame(&frame).expect("a good frame");
        let mut small = vec![0xAA; needed - 1];
        let have = needed - 1;
        let expected = Err(CodecError::BufferTooSmall { needed, have });
        assert_eq!(encode_server_frame(&decoded, &mut small), expected);
        assert!(small.iter().all(|byte| *byte == 0xAA));
    }
    let add = Command::AddUser { uid: UserId(1) };
    let mut small = [0xAA; 31];
    let expected = Err(CodecError::BufferTooSmall {
        needed: 32,
        have: 31,
    });
    assert_eq!(encode_submit(ClientSequence(1), &add, &mut small), expected);
    assert_eq!(small, [0xAA; 31]);
}

#[test]
fn a_report_that_is_a_frame_already_gets_its_number() {
    let (number, report) = (ReportNumber(5), report());
    let mut frame = [0; REPORT_BYTES];
    encode_report(&report, &mut frame).expect("there is room");
    let mut out = [0; NUMBERED_REPORT_BYTES];
    let numbered = ServerFrame::Report(NumberedReport { number, report });
    encode_server_frame(&numbered, &mut out).expect("there is room");
    assert_eq!(numbered_report(number, &frame), out);
}
