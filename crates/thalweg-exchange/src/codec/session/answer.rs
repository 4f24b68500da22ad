//! The server's answers to commands, and its frames about orders.

use zerocopy::little_endian::{I32, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use super::super::error::CodecError;
use super::super::frame::{Body, Whole};
use super::super::layout::{HEAD_BYTES, kind};
use super::super::report::{REPORT_BYTES, decode_report, report_frame};
use crate::execution::ExecutionReport;
use crate::ids::SymbolId;
use crate::result_code::ResultCode;
use crate::session::{ClientSequence, Refusal, ReportNumber};
use crate::wire::{Form, Wire, check_zero, present, wire};

wire! {
    pub(super) struct AnswerForm = Answer [is_repeated: bool] {
        sequence: ClientSequence, number: u64, result: ResultCode,
    }
    pub(super) struct ReportGapForm = ReportGap { from: ReportNumber, to: ReportNumber }
}

/// A refusal: its code in byte 6, and the limit that it names; 0 where it names none.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RefusedForm {
    sequence: U64,
    limit: U32,
}

/// A report with its number: the frame of the report is inside.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct NumberedReportForm {
    number: U64,
    report: [u8; REPORT_BYTES],
}

/// A loss; bit 0 of byte 6: of all symbols, and the symbol is 0.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ConflatedForm {
    symbol: I32,
    missed: U64,
}

/// The length of the frame of a report with its number, in bytes.
pub const NUMBERED_REPORT_BYTES: usize = NumberedReportForm::BYTES;
/// The length of the frame of an answer, in bytes.
pub const ANSWER_BYTES: usize = AnswerForm::BYTES;
const REPORT_AT: usize = HEAD_BYTES + size_of::<U64>();

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

/// The refusal of a command, which was not executed (kind 212).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which command of the session.
    pub sequence: ClientSequence,
    /// Why.
    pub why: Refusal,
}

impl Form for RefusedForm {
    type Value = Refused;
    const SMALL_MAX: [u8; 2] = [u8::MAX, 0];

    #[inline]
    fn of(refused: &Refused) -> ([u8; 2], Self) {
        let (sequence, limit) = (refused.sequence.bytes(), refused.why.limit().bytes());
        ([refused.why.code(), 0], Self { sequence, limit })
    }

    fn value(&self, [code, _]: [u8; 2], [code_at, at]: [usize; 2]) -> Result<Refused, CodecError> {
        let sequence = ClientSequence(self.sequence.get());
        let why = refusal((code, code_at), (self.limit, at + size_of::<U64>()))?;
        Ok(Refused { sequence, why })
    }
}

/// Returns a refusal by its code and its limit, and where those are.
pub(super) fn refusal(
    (code, at): (u8, usize),
    (limit, limit_at): (U32, usize),
) -> Result<Refusal, CodecError> {
    if let Some(refusal) = Refusal::from_parts(code, limit.get()) {
        return Ok(refusal);
    }
    if Refusal::from_parts(code, 0).is_some() {
        check_zero("the limit of a refusal without", limit_at, limit.get())?;
    }
    Err(CodecError::unknown("the reason of a refusal", at, code))
}

/// A report with its number (kind 213).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedReport {
    /// Which report of the user.
    pub number: ReportNumber,
    /// The execution report.
    pub report: ExecutionReport,
}

impl Body for NumberedReportForm {
    const KIND: u8 = kind::NUMBERED_REPORT;
    const WHAT: &'static str = "a report";

    /// There are none; and zeros are no report.
    fn check_codes(_: [u8; 2]) -> Result<(), CodecError> {
        Ok(())
    }
}

impl Form for NumberedReportForm {
    type Value = NumberedReport;
    const SMALL_MAX: [u8; 2] = [0; 2];

    #[inline]
    fn of(numbered: &NumberedReport) -> ([u8; 2], Self) {
        let (number, report) = (numbered.number.bytes(), report_frame(&numbered.report));
        ([0; 2], Self { number, report })
    }

    fn value(&self, _: [u8; 2], _: [usize; 2]) -> Result<NumberedReport, CodecError> {
        let number = ReportNumber(self.number.get());
        match decode_report(&self.report) {
            Ok((report, _)) => Ok(NumberedReport { number, report }),
            Err(error) => Err(error.within("the frame of a report", REPORT_AT)),
        }
    }
}

/// Puts a number before the frame of a report, for a server that keeps those.
#[must_use]
#[inline]
pub fn numbered_report(
    number: ReportNumber,
    report: &[u8; REPORT_BYTES],
) -> [u8; NUMBERED_REPORT_BYTES] {
    let (number, report) = (number.bytes(), *report);
    transmute!(Whole::new([0; 2], NumberedReportForm { number, report }))
}

/// Returns the frame of an answer, whose sequence is at least 1.
#[must_use]
#[inline]
pub fn answer_frame(answer: &Answer) -> [u8; ANSWER_BYTES] {
    transmute!(Whole::<AnswerForm>::of(answer))
}

/// Reports that are not kept any more (kind 214): the client did not get them and will not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportGap {
    /// The first of them.
    pub from: ReportNumber,
    /// The last of them.
    pub to: ReportNumber,
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

impl Form for ConflatedForm {
    type Value = Conflated;
    const SMALL_MAX: [u8; 2] = [1, 0];

    fn of(conflated: &Conflated) -> ([u8; 2], Self) {
        let form = Self {
            symbol: conflated.symbol.bytes(),
            missed: conflated.missed.bytes(),
        };
        ([conflated.symbol.is_none().into(), 0], form)
    }

    fn value(&self, own: [u8; 2], [_, at]: [usize; 2]) -> Result<Conflated, CodecError> {
        let symbol = Some(SymbolId(self.symbol.get()));
        Ok(Conflated {
            symbol: present(own[0] == 0, symbol, "the symbol of all", at)?,
            missed: self.missed.get(),
        })
    }
}
