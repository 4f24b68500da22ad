//! The server's answers to commands, and its frames about orders.

use super::super::error::CodecError;
use super::super::fields::{Reader, Writer, nothing, put_longs};
use super::super::frame::{HEAD_BYTES, Head, kind};
use super::super::report::{REPORT_BYTES, decode_report, encode_report};
use super::submit::sequence;
use crate::execution::ExecutionReport;
use crate::ids::SymbolId;
use crate::result_code::ResultCode;
use crate::session::{ClientSequence, Refusal, ReportNumber};

pub(super) const ANSWER_BYTES: usize = HEAD_BYTES + 20;
pub(super) const REFUSED_BYTES: usize = HEAD_BYTES + 12;
/// The length of the frame of a report with its number, in bytes.
pub const NUMBERED_REPORT_BYTES: usize = REPORT_AT + REPORT_BYTES;
pub(super) const REPORT_GAP_BYTES: usize = HEAD_BYTES + 16;
pub(super) const CONFLATED_BYTES: usize = HEAD_BYTES + 12;
const REPORT_AT: usize = HEAD_BYTES + 8;

/// The answer to a command that was executed (kind 211). The outcome is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Which command of the session.
    pub sequence: ClientSequence,
    /// Its number in the exchange.
    pub number: u64,
    /// How it ended.
    pub result: ResultCode,
    /// Whether it was executed before, and this is its first answer once more.
    pub is_repeated: bool,
}

impl Answer {
    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.head(ANSWER_BYTES, kind::ANSWER, self.is_repeated.into());
        out.longs([self.sequence.0 as i64, self.number as i64]);
        out.int(self.result.code());
    }

    pub(super) fn read(own: [u8; 2], fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let sequence = sequence(fields)?;
        let number = fields.long()? as u64;
        let at = fields.at();
        let code = fields.int()?;
        let result = ResultCode::from_code(code).ok_or(CodecError::UnknownCode {
            what: "the result",
            at,
            code: code.into(),
        })?;
        Ok(Self {
            sequence,
            number,
            result,
            is_repeated: own[0] != 0,
        })
    }
}

/// A command that did not come into the exchange (kind 212).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which command of the session.
    pub sequence: ClientSequence,
    /// Why.
    pub why: Refusal,
}

impl Refused {
    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.head(REFUSED_BYTES, kind::REFUSED, self.why.code());
        out.long(self.sequence.0 as i64);
        out.bytes(self.why.limit().to_le_bytes());
    }

    pub(super) fn read(own: [u8; 2], fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let sequence = sequence(fields)?;
        let why = refusal(own[0], 6, fields)?;
        Ok(Self { sequence, why })
    }
}

/// A refusal whose code was read from byte `at`, and whose limit comes next.
pub(super) fn refusal(code: u8, at: usize, fields: &mut Reader<'_>) -> Result<Refusal, CodecError> {
    let limit_at = fields.at();
    let limit = fields.int()?.cast_unsigned();
    if let Some(refusal) = Refusal::from_parts(code, limit) {
        return Ok(refusal);
    }
    if Refusal::from_parts(code, 0).is_some() {
        nothing("the limit of a refusal without", limit_at, limit.into())?;
    }
    Err(unknown_refusal(code, at))
}

pub(super) fn unknown_refusal(code: u8, at: usize) -> CodecError {
    CodecError::UnknownCode {
        what: "the reason of a refusal",
        at,
        code: code.into(),
    }
}

/// A report with its number (kind 213).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedReport {
    /// Which report of the user.
    pub number: ReportNumber,
    /// The execution report.
    pub report: ExecutionReport,
}

impl NumberedReport {
    pub(super) fn write(&self, out: &mut [u8]) -> Result<(), CodecError> {
        let length = NUMBERED_REPORT_BYTES;
        let (head, frame) = out
            .split_first_chunk_mut::<REPORT_AT>()
            .ok_or(CodecError::TooShort { length })?;
        put_longs(head, 0, [REPORT_HEAD, self.number.0 as i64]);
        encode_report(&self.report, frame)?;
        Ok(())
    }

    pub(super) fn read(fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let number = report_number(fields)?;
        match decode_report(fields.rest()) {
            Ok((report, _)) => Ok(Self { number, report }),
            Err(error) => Err(error.within("the frame of a report", REPORT_AT)),
        }
    }
}

const REPORT_HEAD: i64 = Head::form(NUMBERED_REPORT_BYTES, kind::NUMBERED_REPORT) as i64;

/// Puts a number before the frame of a report, for a server that keeps those.
#[must_use]
#[inline]
pub fn numbered_report(
    number: ReportNumber,
    report: &[u8; REPORT_BYTES],
) -> [u8; NUMBERED_REPORT_BYTES] {
    let mut frame = [0; NUMBERED_REPORT_BYTES];
    put_longs(&mut frame, 0, [REPORT_HEAD, number.0 as i64]);
    frame[REPORT_AT..].copy_from_slice(report);
    frame
}

fn report_number(fields: &mut Reader<'_>) -> Result<ReportNumber, CodecError> {
    let number = fields.at_least("the number of a report", 1)?;
    Ok(ReportNumber(number))
}

/// Reports that are not kept any more (kind 214): the client did not get them and will not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportGap {
    /// The first of them.
    pub from: ReportNumber,
    /// The last of them.
    pub to: ReportNumber,
}

impl ReportGap {
    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.head(REPORT_GAP_BYTES, kind::REPORT_GAP, 0);
        out.longs([self.from.0 as i64, self.to.0 as i64]);
    }

    pub(super) fn read(fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let from = report_number(fields)?;
        let to = fields.at_least("the last report of a gap", from.0)?;
        let to = ReportNumber(to);
        Ok(Self { from, to })
    }
}

/// Market messages that the client did not get, since it reads too slowly (kind 218). Snapshots of
/// the symbols concerned follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflated {
    /// The symbol; `None` for all that are subscribed.
    pub symbol: Option<SymbolId>,
    /// How many.
    pub missed: u64,
}

impl Conflated {
    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.head(
            CONFLATED_BYTES,
            kind::CONFLATED,
            self.symbol.is_none().into(),
        );
        out.int(self.symbol.map_or(0, |symbol| symbol.0));
        out.long(self.missed as i64);
    }

    pub(super) fn read(own: [u8; 2], fields: &mut Reader<'_>) -> Result<Self, CodecError> {
        let at = fields.at();
        let symbol = fields.int()?;
        if own[0] != 0 {
            nothing("the symbol of all", at, i64::from(symbol.cast_unsigned()))?;
        }
        Ok(Self {
            symbol: (own[0] == 0).then_some(SymbolId(symbol)),
            missed: fields.long()? as u64,
        })
    }
}
