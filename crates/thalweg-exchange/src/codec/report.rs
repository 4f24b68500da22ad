//! Execution reports as bytes: what a gateway sends to an order's owner.

use zerocopy::little_endian::{I32, I64, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use super::error::CodecError;
use super::frame::{Body, Head, Whole, put, read};
use super::layout::kind;
use crate::command::Action;
use crate::event::{RejectReason, RemovalReason};
use crate::execution::{CancelReason, Execution, ExecutionReport, TradeId};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;
use crate::wire::{Code, Form, Wire, check_zero};

/// A report. Byte 6 has what happened and three bits, byte 7 the reason of a cancel.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ReportForm {
    command: U64,
    owner: I64,
    order: I64,
    price: I64,
    left: I64,
    filled: I64,
    symbol: I32,
    /// The trade's number within the command; or the result code of a refusal.
    number: I32,
    /// The price of a trade.
    last_price: I64,
    /// Lots that were traded, taken off or cancelled.
    last_size: I64,
}

impl Body for ReportForm {
    const KIND: u8 = kind::REPORT;
    const WHAT: &'static str = "an execution report";
}

/// The length of the frame of a report, in bytes.
pub const REPORT_BYTES: usize = ReportForm::BYTES;

const NUMBER_AT: usize = REPORT_BYTES - 20;
const PRICE_AT: usize = REPORT_BYTES - 16;
const SIZE_AT: usize = REPORT_BYTES - 8;

/// The first own byte: what happened, and three bits.
const WHAT: u8 = 0x0F;
const HAS_SIDE: u8 = 0x10;
const BID: u8 = 0x20;
const IS_MAKER: u8 = 0x40;

const NEW: u8 = 0;
const TRADE: u8 = 1;
const REPLACED: u8 = 2;
const CANCELLED: u8 = 3;
const EXPIRED: u8 = 4;
const TRIGGERED: u8 = 5;
const REJECTED: u8 = 6;
const REQUEST_REJECTED: u8 = 7;

/// The second own byte of a cancel: 0 where it was asked for; from here on the code of a
/// [`RejectReason`];
const LEFT: u8 = 1;
/// and from here on that of a [`RemovalReason`].
const REMOVED: u8 = 64;

impl Form for ReportForm {
    type Value = ExecutionReport;
    const SMALL_MAX: [u8; 2] = [WHAT | HAS_SIDE | BID | IS_MAKER, u8::MAX];

    #[inline(always)]
    fn of(report: &ExecutionReport) -> ([u8; 2], Self) {
        let (what, why, number, price, size) = match report.kind {
            Execution::New => (NEW, 0, 0, 0, 0),
            Execution::Trade {
                id,
                price,
                size,
                is_maker,
            } => {
                let maker = if is_maker { IS_MAKER } else { 0 };
                (TRADE | maker, 0, id.index as i32, price, size)
            }
            Execution::Replaced { reduced_by } => (REPLACED, 0, 0, 0, reduced_by),
            Execution::Cancelled { size, why } => (CANCELLED, why.code(), 0, 0, size),
            Execution::Expired { size } => (EXPIRED, 0, 0, 0, size),
            Execution::Triggered => (TRIGGERED, 0, 0, 0, 0),
            Execution::Rejected(result) => (REJECTED, 0, result.code(), 0, 0),
            Execution::RequestRejected(result) => (REQUEST_REJECTED, 0, result.code(), 0, 0),
        };
        let side = match report.side {
            None => 0,
            Some(Action::Ask) => HAS_SIDE,
            Some(Action::Bid) => HAS_SIDE | BID,
        };
        let form = Self {
            command: report.command.bytes(),
            owner: report.owner.bytes(),
            order: report.order.bytes(),
            price: report.price.bytes(),
            left: report.left.bytes(),
            filled: report.filled.bytes(),
            symbol: report.symbol.bytes(),
            number: number.bytes(),
            last_price: price.bytes(),
            last_size: size.bytes(),
        };
        ([what | side, why], form)
    }

    /// A field that its kind does not use must be 0.
    fn value(&self, [bits, why]: [u8; 2], at: [usize; 2]) -> Result<ExecutionReport, CodecError> {
        let (what, at) = (bits & WHAT, at[0]);
        if bits & HAS_SIDE == 0 {
            check_zero("the side of no order", at, bits & BID)?;
        }
        if what > REQUEST_REJECTED {
            return Err(CodecError::unknown("the execution", at, what));
        }
        if what != TRADE {
            check_zero("the maker's bit of no trade", at, bits & IS_MAKER)?;
            let what = "the price of no trade";
            check_zero(what, PRICE_AT, self.last_price.get() as u64)?;
        }
        if what != CANCELLED {
            check_zero("the reason of no cancel", at + 1, why)?;
        }
        if !matches!(what, TRADE | REJECTED | REQUEST_REJECTED) {
            let what = "the number of no trade";
            check_zero(what, NUMBER_AT, self.number.get() as u32)?;
        }
        if !matches!(what, TRADE | REPLACED | CANCELLED | EXPIRED) {
            let what = "the size of no change";
            check_zero(what, SIZE_AT, self.last_size.get() as u64)?;
        }
        let (command, size) = (self.command.get(), self.last_size.get());
        let kind = match what {
            NEW => Execution::New,
            TRADE => Execution::Trade {
                id: TradeId {
                    command,
                    index: self.number.get() as u32,
                },
                price: self.last_price.get(),
                size,
                is_maker: bits & IS_MAKER != 0,
            },
            REPLACED => Execution::Replaced { reduced_by: size },
            CANCELLED => Execution::Cancelled {
                size,
                why: CancelReason::value(why, at + 1)?,
            },
            EXPIRED => Execution::Expired { size },
            TRIGGERED => Execution::Triggered,
            REJECTED => Execution::Rejected(ResultCode::value(self.number, NUMBER_AT)?),
            _ => Execution::RequestRejected(ResultCode::value(self.number, NUMBER_AT)?),
        };
        Ok(ExecutionReport {
            command,
            owner: UserId(self.owner.get()),
            symbol: SymbolId(self.symbol.get()),
            order: OrderId(self.order.get()),
            side: match bits & (HAS_SIDE | BID) {
                0 => None,
                HAS_SIDE => Some(Action::Ask),
                _ => Some(Action::Bid),
            },
            price: self.price.get(),
            left: self.left.get(),
            filled: self.filled.get(),
            kind,
        })
    }
}

impl Code for CancelReason {
    const WHAT: &'static str = "the reason of a cancel";
    const BITS: u32 = 8;
    const MAX: u8 = u8::MAX;

    #[inline]
    fn code(self) -> u8 {
        match self {
            Self::Requested => 0,
            Self::Left(why) => LEFT + why as u8,
            Self::Removed(why) => REMOVED + why as u8,
        }
    }

    /// Some removals are reported by another kind of report than a cancel.
    fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Requested),
            LEFT..REMOVED => RejectReason::from_code(code - LEFT).map(Self::Left),
            REMOVED.. => match RemovalReason::from_code(code - REMOVED)? {
                RemovalReason::Expired
                | RemovalReason::Cancelled
                | RemovalReason::Reduced
                | RemovalReason::Decremented => None,
                why => Some(Self::Removed(why)),
            },
        }
    }
}

/// Writes a report's frame at the beginning of `out`; the result is its length in bytes. A trade's
/// [id](TradeId) has the report's own command.
///
/// # Errors
/// [`CodecError::BufferTooSmall`]; nothing is written then.
#[inline]
pub fn encode_report(report: &ExecutionReport, out: &mut [u8]) -> Result<usize, CodecError> {
    put::<ReportForm>(report, out)
}

/// Returns the frame of a report.
#[inline(always)]
pub(crate) fn report_frame(report: &ExecutionReport) -> [u8; REPORT_BYTES] {
    transmute!(Whole::<ReportForm>::of(report))
}

/// Reads the report at the beginning of `bytes`; with it, the length of its frame in bytes.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
pub fn decode_report(bytes: &[u8]) -> Result<(ExecutionReport, usize), CodecError> {
    let head = Head::read(bytes)?;
    check(head)?;
    Ok((read::<ReportForm>(bytes, head)?, REPORT_BYTES))
}

/// Returns the error that a report's head proves whatever follows.
pub(super) fn check(head: Head) -> Result<(), CodecError> {
    head.length()?;
    match head.kind {
        kind::REPORT => head.check::<ReportForm>(),
        _ => head.unknown("execution report"),
    }
}
