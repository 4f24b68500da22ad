//! Any frame of a connection.

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer};
use super::super::frame::{FRAME_BYTES_MAX, HEAD_BYTES, Head, kind, room_for};
use super::answer::{
    ANSWER_BYTES, Answer, CONFLATED_BYTES, Conflated, NUMBERED_REPORT_BYTES, NumberedReport,
    REFUSED_BYTES, REPORT_GAP_BYTES, Refused, ReportGap, unknown_refusal,
};
use super::ending::{BYE_TEXT_BYTES_MAX, Bye, ending};
use super::opening::{
    HELLO_BYTES_MAX, HELLO_BYTES_MIN, HELLO_OWN_MAX, Hello, WELCOME_BYTES, WELCOME_OWN_MAX,
    Welcome, role,
};
use super::query::{
    QUERY_ANSWER_BYTES_MIN, QUERY_BYTES, QueryAnswer, QueryFrame, check_answer, check_kind,
};
use super::submit::{self, SUBMIT_BYTES_MIN, Submit, not_zero};
use super::symbols::{self, SYMBOLS_BYTES_MAX, Symbols};
use crate::session::Refusal;

/// A frame that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFrame<'b> {
    /// Identifies the session; the first frame, and only that.
    Hello(Hello<'b>),
    /// A command.
    Submit(Submit<'b>),
    /// A question.
    Query(QueryFrame),
    /// Which market data it wants, beside what it has (kind 216).
    Subscribe(Symbols<'b>),
    /// Which it wants no more (kind 217).
    Unsubscribe(Symbols<'b>),
    /// It is there (kind 215).
    Heartbeat,
    /// It goes.
    Bye(Bye<'b>),
}

/// A frame that a server sends, besides market messages and snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame<'b> {
    /// It takes the client; the first frame, and only that.
    Welcome(Welcome),
    /// A command was executed.
    Answer(Answer),
    /// A command was not taken.
    Refused(Refused),
    /// An execution report on an order of the user.
    Report(NumberedReport),
    /// Reports that are not kept any more.
    ReportGap(ReportGap),
    /// Market messages that the client did not get.
    Conflated(Conflated),
    /// An answer to a question.
    QueryAnswer(QueryAnswer),
    /// It is there (kind 215).
    Heartbeat,
    /// It closes the connection.
    Bye(Bye<'b>),
}

/// How long the frame of what a client sends is, in bytes.
#[must_use]
pub fn client_frame_bytes(frame: &ClientFrame<'_>) -> usize {
    match frame {
        ClientFrame::Hello(hello) => hello.bytes(),
        ClientFrame::Submit(submit) => submit.bytes(),
        ClientFrame::Query(_) => QUERY_BYTES,
        ClientFrame::Subscribe(symbols) | ClientFrame::Unsubscribe(symbols) => symbols.bytes(),
        ClientFrame::Heartbeat => HEAD_BYTES,
        ClientFrame::Bye(bye) => bye.bytes(),
    }
}

/// How long the frame of what a server sends is, in bytes.
#[must_use]
pub fn server_frame_bytes(frame: &ServerFrame<'_>) -> usize {
    match frame {
        ServerFrame::Welcome(_) => WELCOME_BYTES,
        ServerFrame::Answer(_) => ANSWER_BYTES,
        ServerFrame::Refused(_) => REFUSED_BYTES,
        ServerFrame::Report(_) => NUMBERED_REPORT_BYTES,
        ServerFrame::ReportGap(_) => REPORT_GAP_BYTES,
        ServerFrame::Conflated(_) => CONFLATED_BYTES,
        ServerFrame::QueryAnswer(answer) => answer.bytes(),
        ServerFrame::Heartbeat => HEAD_BYTES,
        ServerFrame::Bye(bye) => bye.bytes(),
    }
}

/// Writes what a client sends at the beginning of `out`; the result is the frame's length in bytes.
/// [`encode_submit`](super::encode_submit) does so for a command that is no frame yet.
///
/// # Errors
/// [`CodecError::NoRoom`]; [`CodecError::TooLong`] for a key above
/// [`KEY_BYTES_MAX`](super::KEY_BYTES_MAX). Nothing is written then.
pub fn encode_client_frame(frame: &ClientFrame<'_>, out: &mut [u8]) -> Result<usize, CodecError> {
    let length = client_frame_bytes(frame);
    if matches!(frame, ClientFrame::Hello(_)) && length > HELLO_BYTES_MAX {
        return Err(CodecError::TooLong { length });
    }
    let mut fields = Writer::new(room_for(out, length)?);
    match frame {
        ClientFrame::Hello(hello) => hello.write(&mut fields),
        ClientFrame::Submit(submit) => submit.write(&mut fields),
        ClientFrame::Query(query) => query.write(&mut fields),
        ClientFrame::Subscribe(symbols) => symbols.write(kind::SUBSCRIBE, &mut fields),
        ClientFrame::Unsubscribe(symbols) => symbols.write(kind::UNSUBSCRIBE, &mut fields),
        ClientFrame::Heartbeat => fields.head(HEAD_BYTES, kind::HEARTBEAT, 0),
        ClientFrame::Bye(bye) => bye.write(&mut fields),
    }
    Ok(length)
}

/// Writes what a server sends at the beginning of `out`; the result is the frame's length in bytes.
///
/// # Errors
/// [`CodecError::NoRoom`]; [`CodecError::TooLong`] for an account or a book that no frame can hold;
/// [`CodecError::BelowLeast`] for a sequence or a report's number of 0. Nothing is written then.
#[inline]
pub fn encode_server_frame(frame: &ServerFrame<'_>, out: &mut [u8]) -> Result<usize, CodecError> {
    let length = server_frame_bytes(frame);
    let numbered = match frame {
        ServerFrame::Answer(answer) => answer.sequence.0,
        ServerFrame::Refused(refused) => refused.sequence.0,
        ServerFrame::Report(report) => report.number.0,
        ServerFrame::ReportGap(gap) => gap.from.0,
        _ => 1,
    };
    not_zero("a sequence or the number of a report", numbered)?;
    let out = room_for(out, length)?;
    if let ServerFrame::Report(report) = frame {
        report.write(out)?;
        return Ok(length);
    }
    let mut fields = Writer::new(out);
    match frame {
        ServerFrame::Welcome(welcome) => welcome.write(&mut fields),
        ServerFrame::Answer(answer) => answer.write(&mut fields),
        ServerFrame::Refused(refused) => refused.write(&mut fields),
        ServerFrame::ReportGap(gap) => gap.write(&mut fields),
        ServerFrame::Conflated(conflated) => conflated.write(&mut fields),
        ServerFrame::QueryAnswer(answer) => answer.write(&mut fields),
        ServerFrame::Bye(bye) => bye.write(&mut fields),
        ServerFrame::Heartbeat | ServerFrame::Report(_) => {
            fields.head(HEAD_BYTES, kind::HEARTBEAT, 0);
        }
    }
    Ok(length)
}

/// Reads what a client sent at the beginning of `bytes`; with it, the length of the frame in bytes.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
#[inline]
pub fn decode_client_frame(bytes: &[u8]) -> Result<(ClientFrame<'_>, usize), CodecError> {
    match Submit::read_frequent(bytes) {
        Some(submit) => Ok((ClientFrame::Submit(submit), submit.bytes())),
        None => decode_any_client_frame(bytes),
    }
}

#[inline(never)]
fn decode_any_client_frame(bytes: &[u8]) -> Result<(ClientFrame<'_>, usize), CodecError> {
    let head = Head::read(bytes)?;
    let own = check(bytes, head)?;
    let kind = head.kind();
    if !is_from_client(kind) {
        let wanted = "frame of a client";
        return Err(CodecError::UnknownKind { kind, wanted });
    }
    let bytes = head.frame(bytes)?;
    let fields = &mut Reader::new(bytes, HEAD_BYTES);
    let frame = match kind {
        kind::HELLO => ClientFrame::Hello(Hello::read(own, fields)?),
        kind::SUBMIT => ClientFrame::Submit(Submit::read(fields)?),
        kind::QUERY => ClientFrame::Query(QueryFrame::read(own, fields)?),
        kind::SUBSCRIBE => ClientFrame::Subscribe(Symbols::read(own, fields)?),
        kind::UNSUBSCRIBE => ClientFrame::Unsubscribe(Symbols::read(own, fields)?),
        kind::BYE => ClientFrame::Bye(Bye::read(own, fields)?),
        _ => ClientFrame::Heartbeat,
    };
    fields.end()?;
    Ok((frame, bytes.len()))
}

/// Reads what a server sent at the beginning of `bytes`; with it, the length of the frame in bytes.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
pub fn decode_server_frame(bytes: &[u8]) -> Result<(ServerFrame<'_>, usize), CodecError> {
    let head = Head::read(bytes)?;
    let own = check(bytes, head)?;
    let kind = head.kind();
    if is_from_client(kind) && !matches!(kind, kind::HEARTBEAT | kind::BYE) {
        let wanted = "frame of a server";
        return Err(CodecError::UnknownKind { kind, wanted });
    }
    let bytes = head.frame(bytes)?;
    let fields = &mut Reader::new(bytes, HEAD_BYTES);
    let frame = match kind {
        kind::WELCOME => ServerFrame::Welcome(Welcome::read(own, fields)?),
        kind::ANSWER => ServerFrame::Answer(Answer::read(own, fields)?),
        kind::REFUSED => ServerFrame::Refused(Refused::read(own, fields)?),
        kind::NUMBERED_REPORT => ServerFrame::Report(NumberedReport::read(fields)?),
        kind::REPORT_GAP => ServerFrame::ReportGap(ReportGap::read(fields)?),
        kind::CONFLATED => ServerFrame::Conflated(Conflated::read(own, fields)?),
        kind::QUERY_ANSWER => ServerFrame::QueryAnswer(QueryAnswer::read(own, fields)?),
        kind::BYE => ServerFrame::Bye(Bye::read(own, fields)?),
        _ => ServerFrame::Heartbeat,
    };
    fields.end()?;
    Ok((frame, bytes.len()))
}

/// Kinds that clients send, those of both sides included.
const fn is_from_client(kind: u8) -> bool {
    matches!(
        kind,
        kind::HELLO
            | kind::SUBMIT
            | kind::QUERY
            | kind::SUBSCRIBE
            | kind::UNSUBSCRIBE
            | kind::HEARTBEAT
            | kind::BYE
    )
}

/// Returns a frame's own bytes, or the error that its head, and the head of the command in a
/// submit, prove whatever follows.
pub(in super::super) fn check(bytes: &[u8], head: Head) -> Result<[u8; 2], CodecError> {
    let length = head.length()?;
    let (kind, wanted) = (head.kind(), "frame of a session");
    let Form(what, [least, most], own_max) =
        form(kind).ok_or(CodecError::UnknownKind { kind, wanted })?;
    let own = head.own_up_to(what, own_max)?;
    let expected = match kind {
        kind::SUBSCRIBE | kind::UNSUBSCRIBE => symbols::length_up_to(length, own[0]),
        _ => length.clamp(least, most),
    };
    if length != expected {
        return Err(CodecError::WrongLength {
            what,
            length,
            expected,
        });
    }
    match kind {
        kind::HELLO => drop(role(own)?),
        kind::BYE => drop(ending(own)?),
        kind::QUERY => check_kind(own, own_max[0])?,
        kind::QUERY_ANSWER => check_answer(own)?,
        kind::REFUSED if Refusal::from_parts(own[0], 0).is_none() => {
            return Err(unknown_refusal(own[0], 6));
        }
        kind::SUBMIT => submit::check(bytes, length)?,
        _ => {}
    }
    Ok(own)
}

/// The name of a kind, the least and the greatest length of its frames, and the greatest values of
/// their own bytes; own bytes that are codes are checked separately.
struct Form(&'static str, [usize; 2], [u8; 2]);

fn form(kind: u8) -> Option<Form> {
    let exactly = |bytes: usize| [bytes; 2];
    let none = [0; 2];
    let code = [u8::MAX, 0];
    Some(match kind {
        kind::HELLO => Form("a hello", [HELLO_BYTES_MIN, HELLO_BYTES_MAX], HELLO_OWN_MAX),
        kind::WELCOME => Form("a welcome", exactly(WELCOME_BYTES), WELCOME_OWN_MAX),
        kind::SUBMIT => Form("a submit", [SUBMIT_BYTES_MIN, FRAME_BYTES_MAX], none),
        kind::ANSWER => Form("an answer", exactly(ANSWER_BYTES), [1, 0]),
        kind::REFUSED => Form("a refusal", exactly(REFUSED_BYTES), code),
        kind::NUMBERED_REPORT => Form("a report", exactly(NUMBERED_REPORT_BYTES), none),
        kind::REPORT_GAP => Form("a gap of reports", exactly(REPORT_GAP_BYTES), none),
        kind::HEARTBEAT => Form("a heartbeat", exactly(HEAD_BYTES), none),
        kind::SUBSCRIBE => Form("a subscription", [HEAD_BYTES, SYMBOLS_BYTES_MAX], [1, 0]),
        kind::UNSUBSCRIBE => Form("its end", [HEAD_BYTES, SYMBOLS_BYTES_MAX], [1, 0]),
        kind::CONFLATED => Form("a conflation", exactly(CONFLATED_BYTES), [1, 0]),
        kind::QUERY => Form("a query", exactly(QUERY_BYTES), [3, 0]),
        kind::QUERY_ANSWER => {
            let bytes = [QUERY_ANSWER_BYTES_MIN, FRAME_BYTES_MAX];
            Form("an answer to a query", bytes, [u8::MAX; 2])
        }
        kind::BYE => Form("a bye", [HEAD_BYTES, HEAD_BYTES + BYE_TEXT_BYTES_MAX], code),
        _ => return None,
    })
}
