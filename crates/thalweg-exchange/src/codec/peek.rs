//! A look at the head of any frame, before the frame is decoded.

use super::error::CodecError;
use super::frame::{Family, Head};
use super::{command, message, report, session, snapshot};

/// The decoded head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which of the decoders is for it.
    pub family: Family,
    /// Its length in bytes: the next frame begins right after it.
    pub bytes: usize,
}

/// Returns the kind of the first frame of `bytes` and its length; `bytes` may hold only a part of
/// the frame.
///
/// # Errors
/// A head that is not all there, or one that no frame begins with: its version or kind is not
/// known, or its length or own bytes are not of its kind. Where the number of items of a batch or a
/// snapshot is there, the length must fit that number; where the head of the command in a submit is
/// there, that must be the head of one.
pub fn peek(bytes: &[u8]) -> Result<Frame, CodecError> {
    let head = Head::read(bytes)?;
    let family = Family::of(head.kind);
    let length = head.length()?;
    match family {
        Family::Command => command::check(bytes, head)?,
        Family::Report => report::check(head)?,
        Family::Message => message::check(head)?,
        Family::Snapshot => snapshot::check(bytes, head)?,
        Family::Session => session::check(bytes, head)?,
    }
    Ok(Frame {
        family,
        bytes: length,
    })
}
