//! Any bytes: what decodes as a frame of a session gives the same bytes again, and no session can
//! express what its role does not allow.

use thalweg_exchange::codec::session::{
    ClientFrame, SubmitFrameError, client_frame_bytes, decode_client_frame, decode_server_frame,
    encode_client_frame, encode_server_frame, server_frame_bytes,
};
use thalweg_exchange::codec::{CodecError, FRAME_BYTES_MAX, peek};
use thalweg_exchange::session::Refusal;
use thalweg_exchange::{Command, UserId};

/// Checks the property for any bytes; with a fault, that a second own byte is overlooked.
///
/// # Panics
/// If it does not hold.
pub(crate) fn check(bytes: &[u8], has_fault: bool) {
    let mut rest = bytes;
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
    if has_fault && bytes.len() > 7 && matches!(bytes[4], 210..220) {
        read[7] = 0;
    }
    let is_whole = peek(&read).is_ok_and(|frame| frame.bytes <= read.len());
    let mut again = vec![0; bytes.len()];
    match decode_client_frame(&read) {
        Ok((frame, length)) => {
            assert_eq!(client_frame_bytes(&frame), length);
            assert_eq!(encode_client_frame(&frame, &mut again), Ok(length));
            assert_eq!(&again[..length], &bytes[..length]);
            if let ClientFrame::Submit(submit) = frame {
                roles(&submit);
            }
        }
        Err(error) => assert!(!is_whole || !matches!(error, CodecError::Incomplete { .. })),
    }
    match decode_server_frame(&read) {
        Ok((frame, length)) => {
            assert_eq!(server_frame_bytes(&frame), length);
            assert_eq!(encode_server_frame(&frame, &mut again), Ok(length));
            assert_eq!(&again[..length], &bytes[..length]);
        }
        Err(error) => assert!(!is_whole || !matches!(error, CodecError::Incomplete { .. })),
    }
}

/// A trader has one user, and an operator places nothing.
fn roles(submit: &thalweg_exchange::codec::session::Submit<'_>) {
    let me = UserId(7);
    let (trade, admin) = (submit.trade(me), submit.admin());
    match submit.command() {
        Ok(command) => {
            if let Ok(taken) = &trade {
                assert_eq!((taken.user(), taken.as_command()), (me, &command));
            }
            if let Ok(taken) = &admin {
                assert!(taken.as_command() == &command && command.place().is_none());
            }
            let is_money = matches!(command, Command::Balance { .. } | Command::PayFees { .. });
            assert!(!is_money || trade == Err(SubmitFrameError::Refused(Refusal::Role)));
        }
        Err(error) => {
            assert_eq!(trade, Err(SubmitFrameError::Frame(error)));
            assert_eq!(admin, Err(SubmitFrameError::Frame(error)));
        }
    }
}
