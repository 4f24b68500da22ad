//! Any frame of a connection.

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer, at_least};
use super::super::frame::{Body, Head, Whole, put, read, room_for};
use super::super::layout::{HEAD_BYTES, OWN_AT, kind};
use super::answer::{
    Answer, AnswerForm, Conflated, ConflatedForm, NumberedReport, NumberedReportForm, Refused,
    RefusedForm, ReportGap, ReportGapForm,
};
use super::close_reason::{BYE_TEXT_BYTES_MAX, Bye, CloseReason};
use super::opening::{
    HELLO_BYTES_MAX, HELLO_BYTES_MIN, HELLO_OWN_MAX, Hello, Welcome, WelcomeForm,
};
use super::query::{QUERY_ANSWER_BYTES_MIN, QueryAnswer, QueryForm, QueryFrame, check_answer};
use super::submit::{self, SUBMIT_BYTES_MIN, Submit, check_sequence};
use super::symbols::{self, Symbols};
use crate::session::Role;
use crate::wire::Wire;

/// A frame that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFrame<'b> {
    /// Identifies the session; the first frame, and only that.
    Hello(Hello<'b>),
    /// A command.
    Submit(Submit<'b>),
    /// A question.
    Query(QueryFrame),
    /// Subscribes to further market data (kind 216).
    Subscribe(Symbols<'b>),
    /// Unsubscribes from market data (kind 217).
    Unsubscribe(Symbols<'b>),
    /// Shows that the client is alive (kind 215).
    Heartbeat,
    /// Closes the connection.
    Bye(Bye<'b>),
}

/// A frame that a server sends, besides market messages and snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame<'b> {
    /// Accepts the client; it is the first frame, and is sent once.
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
    /// Shows that the server is alive (kind 215).
    Heartbeat,
    /// Closes the connection.
    Bye(Bye<'b>),
}

/// Returns how long a client frame is, in bytes.
#[must_use]
pub fn client_frame_bytes(frame: &ClientFrame<'_>) -> usize {
    match frame {
        ClientFrame::Hello(hello) => hello.bytes(),
        ClientFrame::Submit(submit) => submit.bytes(),
        ClientFrame::Query(_) => QueryForm::BYTES,
        ClientFrame::Subscribe(symbols) | ClientFrame::Unsubscribe(symbols) => symbols.bytes(),
        ClientFrame::Heartbeat => HEAD_BYTES,
        ClientFrame::Bye(bye) => bye.bytes(),
    }
}

/// Returns how long a server frame is, in bytes.
#[must_use]
pub fn server_frame_bytes(frame: &ServerFrame<'_>) -> usize {
    match frame {
        ServerFrame::Welcome(_) => WelcomeForm::BYTES,
        ServerFrame::Answer(_) => AnswerForm::BYTES,
        ServerFrame::Refused(_) => RefusedForm::BYTES,
        ServerFrame::Report(_) => NumberedReportForm::BYTES,
        ServerFrame::ReportGap(_) => ReportGapForm::BYTES,
        ServerFrame::Conflated(_) => ConflatedForm::BYTES,
        ServerFrame::QueryAnswer(answer) => answer.bytes(),
        ServerFrame::Heartbeat => HEAD_BYTES,
        ServerFrame::Bye(bye) => bye.bytes(),
    }
}

/// Writes what a client sends at the beginning of `out`; the result is the frame's length in bytes.
/// [`encode_submit`](super::encode_submit) does so for a command that is no frame yet.
///
/// # Errors
/// [`CodecError::BufferTooSmall`]; [`CodecError::TooLong`] for a key above
/// [`KEY_BYTES_MAX`](super::KEY_BYTES_MAX). Nothing is written then.
pub fn encode_client_frame(frame: &ClientFrame<'_>, out: &mut [u8]) -> Result<usize, CodecError> {
    let length = client_frame_bytes(frame);
    if matches!(frame, ClientFrame::Hello(_)) && length > HELLO_BYTES_MAX {
        return Err(CodecError::TooLong { length });
    }
    let fields = &mut Writer::new(room_for(out, length)?);
    match frame {
        ClientFrame::Hello(hello) => hello.write(fields),
        ClientFrame::Submit(submit) => submit.write(fields),
        ClientFrame::Query(query) => fields.put(&Whole::<QueryForm>::of(query)),
        ClientFrame::Subscribe(symbols) => symbols.write(kind::SUBSCRIBE, fields),
        ClientFrame::Unsubscribe(symbols) => symbols.write(kind::UNSUBSCRIBE, fields),
        ClientFrame::Heartbeat => fields.put(&Head::new(length, kind::HEARTBEAT, [0; 2])),
        ClientFrame::Bye(bye) => bye.write(fields),
    }
    Ok(length)
}

/// Writes what a server sends at the beginning of `out`; the result is the frame's length in bytes.
///
/// # Errors
/// [`CodecError::BufferTooSmall`]; [`CodecError::TooLong`] for an account or a book that no frame
/// can hold; [`CodecError::TooSmall`] for a sequence or a report's number of 0. Nothing is written
/// then.
#[inline]
pub fn encode_server_frame(frame: &ServerFrame<'_>, out: &mut [u8]) -> Result<usize, CodecError> {
    check_numbers(frame)?;
    match frame {
        ServerFrame::Welcome(welcome) => put::<WelcomeForm>(welcome, out),
        ServerFrame::Answer(answer) => put::<AnswerForm>(answer, out),
        ServerFrame::Refused(refused) => put::<RefusedForm>(refused, out),
        ServerFrame::Report(report) => put::<NumberedReportForm>(report, out),
        ServerFrame::ReportGap(gap) => put::<ReportGapForm>(gap, out),
        ServerFrame::Conflated(conflated) => put::<ConflatedForm>(conflated, out),
        _ => encode_variable(frame, out),
    }
}

/// Writes a frame whose length varies, or that has only a head.
fn encode_variable(frame: &ServerFrame<'_>, out: &mut [u8]) -> Result<usize, CodecError> {
    let length = server_frame_bytes(frame);
    let mut fields = Writer::new(room_for(out, length)?);
    match frame {
        ServerFrame::QueryAnswer(answer) => answer.write(&mut fields),
        ServerFrame::Bye(bye) => bye.write(&mut fields),
        _ => fields.put(&Head::new(length, kind::HEARTBEAT, [0; 2])),
    }
    Ok(length)
}

/// Sequences and numbers of reports count from 1.
fn check_numbers(frame: &ServerFrame<'_>) -> Result<(), CodecError> {
    let report = "the number of a report";
    match frame {
        ServerFrame::Answer(Answer { sequence, .. })
        | ServerFrame::Refused(Refused { sequence, .. }) => check_sequence(*sequence),
        ServerFrame::Report(of) => at_least(report, HEAD_BYTES, of.number.0, 1),
        ServerFrame::ReportGap(ReportGap { from, to }) => {
            at_least(report, HEAD_BYTES, from.0, 1)?;
            at_least("the last report of a gap", HEAD_BYTES + 8, to.0, from.0)
        }
        _ => Ok(()),
    }
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
    check(bytes, head)?;
    let kind = head.kind;
    if !is_from_client(kind) {
        return head.unknown("frame of a client");
    }
    let bytes = head.frame(bytes)?;
    let fields = &mut Reader::new(bytes, HEAD_BYTES);
    let frame = match kind {
        kind::HELLO => ClientFrame::Hello(Hello::read(bytes)?),
        kind::SUBMIT => ClientFrame::Submit(Submit::read(bytes)?),
        kind::QUERY => ClientFrame::Query(read::<QueryForm>(bytes, head)?),
        kind::SUBSCRIBE => ClientFrame::Subscribe(Symbols::read(head.own, fields)?),
        kind::UNSUBSCRIBE => ClientFrame::Unsubscribe(Symbols::read(head.own, fields)?),
        kind::BYE => ClientFrame::Bye(Bye::read(head.own, fields)?),
        _ => ClientFrame::Heartbeat,
    };
    Ok((frame, bytes.len()))
}

/// Reads what a server sent at the beginning of `bytes`; with it, the length of the frame in bytes.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
pub fn decode_server_frame(bytes: &[u8]) -> Result<(ServerFrame<'_>, usize), CodecError> {
    let head = Head::read(bytes)?;
    check(bytes, head)?;
    let kind = head.kind;
    if is_from_client(kind) && !matches!(kind, kind::HEARTBEAT | kind::BYE) {
        return head.unknown("frame of a server");
    }
    let bytes = head.frame(bytes)?;
    let frame = match kind {
        kind::WELCOME => ServerFrame::Welcome(read::<WelcomeForm>(bytes, head)?),
        kind::ANSWER => ServerFrame::Answer(read::<AnswerForm>(bytes, head)?),
        kind::REFUSED => ServerFrame::Refused(read::<RefusedForm>(bytes, head)?),
        kind::NUMBERED_REPORT => ServerFrame::Report(read::<NumberedReportForm>(bytes, head)?),
        kind::REPORT_GAP => ServerFrame::ReportGap(read::<ReportGapForm>(bytes, head)?),
        kind::CONFLATED => ServerFrame::Conflated(read::<ConflatedForm>(bytes, head)?),
        kind::QUERY_ANSWER => ServerFrame::QueryAnswer(QueryAnswer::read(bytes)?),
        kind::BYE => {
            let fields = &mut Reader::new(bytes, HEAD_BYTES);
            ServerFrame::Bye(Bye::read(head.own, fields)?)
        }
        _ => ServerFrame::Heartbeat,
    };
    check_numbers(&frame)?;
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

/// Returns the error that a frame's head, and the head of the command in a submit, prove whatever
/// follows.
pub(in super::super) fn check(bytes: &[u8], head: Head) -> Result<(), CodecError> {
    let length = head.length()?;
    let own = head.own;
    let code = [u8::MAX, 0];
    let (what, expected, own_max) = match head.kind {
        kind::WELCOME => return head.check::<WelcomeForm>(),
        kind::ANSWER => return head.check::<AnswerForm>(),
        kind::REFUSED => return head.check::<RefusedForm>(),
        kind::NUMBERED_REPORT => return head.check::<NumberedReportForm>(),
        kind::REPORT_GAP => return head.check::<ReportGapForm>(),
        kind::CONFLATED => return head.check::<ConflatedForm>(),
        kind::QUERY => return head.check::<QueryForm>(),
        kind::HEARTBEAT => ("a heartbeat", HEAD_BYTES, [0; 2]),
        kind::HELLO => {
            let expected = length.clamp(HELLO_BYTES_MIN, HELLO_BYTES_MAX);
            ("a hello", expected, HELLO_OWN_MAX)
        }
        kind::SUBMIT => ("a submit", length.max(SUBMIT_BYTES_MIN), [0; 2]),
        kind::SUBSCRIBE => (
            "a subscription",
            symbols::length_up_to(length, own[0]),
            [1, 0],
        ),
        kind::UNSUBSCRIBE => ("its end", symbols::length_up_to(length, own[0]), [1, 0]),
        kind::QUERY_ANSWER => {
            let expected = length.max(QUERY_ANSWER_BYTES_MIN);
            ("an answer to a query", expected, [u8::MAX; 2])
        }
        kind::BYE => ("a bye", length.min(HEAD_BYTES + BYE_TEXT_BYTES_MAX), code),
        _ => return head.unknown("frame of a session"),
    };
    head.check_own(what, own_max)?;
    head.check_length(what, expected)?;
    match head.kind {
        kind::HELLO => Role::value(own[0], OWN_AT).map(drop),
        kind::BYE => CloseReason::value(own[0], OWN_AT).map(drop),
        kind::QUERY_ANSWER => check_answer(own),
        kind::SUBMIT => submit::check(bytes, length),
        _ => Ok(()),
    }
}

macro_rules! bodies {
    ($($KIND:ident: $what:literal, $form:ident;)*) => {$(
        impl Body for $form {
            const KIND: u8 = kind::$KIND;
            const WHAT: &'static str = $what;
        }
    )*};
}

bodies! {
    WELCOME: "a welcome", WelcomeForm;
    ANSWER: "an answer", AnswerForm;
    REFUSED: "a refusal", RefusedForm;
    REPORT_GAP: "a gap of reports", ReportGapForm;
    CONFLATED: "a conflation", ConflatedForm;
    QUERY: "a query", QueryForm;
}
