//! Any bytes: what decodes gives the same bytes again.

use thalweg_exchange::codec::{
    CodecError, FRAME_BYTES_MAX, REPORT_BYTES, command_bytes, decode_command, decode_message,
    decode_report, decode_snapshot, encode_command, encode_message, encode_report, encode_snapshot,
    message_bytes, peek, snapshot_bytes,
};
use thalweg_exchange::market::Snapshot;

/// Checks the property for any bytes; with a fault, that an own byte of a cancel is overlooked.
///
/// # Panics
/// If it does not hold.
pub(crate) fn check(bytes: &[u8], has_fault: bool) {
    let mut rest = bytes;
    // Frame by frame, as a gateway reads them.
    while let Ok(frame) = peek(rest) {
        let Some(whole) = rest.get(..frame.bytes) else {
            assert!(frame.bytes <= FRAME_BYTES_MAX);
            break;
        };
        one(whole, has_fault);
        rest = &rest[frame.bytes..];
    }
    one(rest, has_fault);
}

fn one(bytes: &[u8], has_fault: bool) {
    let mut read = bytes.to_vec();
    if has_fault && bytes.len() > 8 && bytes[4] == 2 {
        read[6] = 0;
    }
    if peek(&read).is_ok_and(|frame| frame.bytes <= read.len()) {
        let errors = [
            decode_command(&read).err(),
            decode_report(&read).err(),
            decode_message(&read).err(),
            decode_snapshot(&read, &mut Snapshot::default()).err(),
        ];
        for error in errors.into_iter().flatten() {
            let is_incomplete = matches!(error, CodecError::Incomplete { .. });
            assert!(!is_incomplete, "all of the frame is there: {error}");
        }
    }
    let mut again = vec![0; bytes.len()];
    let mut decoded = 0;
    let mut same = |length: usize, encoded: Result<usize, CodecError>, again: &[u8]| {
        assert_eq!(encoded, Ok(length));
        assert_eq!(&again[..length], &bytes[..length]);
        decoded += 1;
    };
    if let Ok((command, length)) = decode_command(&read) {
        assert_eq!(command_bytes(&command), length);
        let encoded = encode_command(&command, &mut again);
        same(length, encoded, &again);
    }
    if let Ok((message, length)) = decode_message(&read) {
        assert_eq!(message_bytes(&message), length);
        let encoded = encode_message(&message, &mut again);
        same(length, encoded, &again);
    }
    if let Ok((report, length)) = decode_report(&read) {
        assert_eq!(length, REPORT_BYTES);
        let encoded = encode_report(&report, &mut again);
        same(length, encoded, &again);
    }
    let mut snapshot = Snapshot::default();
    if let Ok(length) = decode_snapshot(&read, &mut snapshot) {
        assert_eq!(snapshot_bytes(&snapshot), length);
        let encoded = encode_snapshot(&snapshot, &mut again);
        same(length, encoded, &again);
    }
    assert!(decoded <= 1, "two meanings");
}
