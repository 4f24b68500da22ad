//! Execution reports as bytes: what a gateway sends to an order's owner.

use super::error::CodecError;
use super::fields::{action, int, long, nothing, put_int, put_longs};
use super::frame::{HEAD_BYTES, Head, kind, room};
use crate::event::{RejectReason, Removal};
use crate::execution::{CancelReason, Execution, ExecutionReport, TradeId};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;

/// The length of the frame of a report, in bytes.
pub const REPORT_BYTES: usize = 80;

const SYMBOL_AT: usize = 56;
/// The trade's number within the command; or the result code of a refusal.
const NUMBER_AT: usize = 60;
/// The price of a trade.
const PRICE_AT: usize = 64;
/// Lots that were traded, taken off or cancelled.
const SIZE_AT: usize = 72;

/// The first own byte: what happened, and three bits.
const WHAT: u8 = 0x0F;
const HAS_SIDE: u8 = 1 << SIDE_BIT;
const SIDE_BIT: u32 = 4;
const BID_BIT: u32 = 5;
const BID: u8 = 1 << BID_BIT;
const IS_MAKER: u8 = 0x40;

const NEW: u8 = 0;
const TRADE: u8 = 1;
const REPLACED: u8 = 2;
const CANCELLED: u8 = 3;
const EXPIRED: u8 = 4;
const TRIGGERED: u8 = 5;
const REJECTED: u8 = 6;
const REQUEST_REJECTED: u8 = 7;

/// The second own byte, of what is cancelled: 0 where it was asked for; from here on the code of a
/// [`RejectReason`];
const LEFT: u8 = 1;
/// and from here on that of a [`Removal`].
const REMOVED: u8 = 64;

/// The fields that not every execution has.
#[derive(Clone, Copy, Default)]
struct Fields {
    what: u8,
    why: u8,
    number: i32,
    price: i64,
    size: i64,
}

impl Fields {
    fn of(kind: Execution) -> Self {
        let sized = |what, size| Self {
            what,
            size,
            ..Self::default()
        };
        let code = |what, code: ResultCode| Self {
            what,
            number: code.code(),
            ..Self::default()
        };
        match kind {
            Execution::New => sized(NEW, 0),
            Execution::Trade {
                id,
                price,
                size,
                is_maker,
            } => Self {
                what: TRADE | if is_maker { IS_MAKER } else { 0 },
                why: 0,
                number: id.index as i32,
                price,
                size,
            },
            Execution::Replaced { reduced_by } => sized(REPLACED, reduced_by),
            Execution::Cancelled { size, why } => Self {
                why: match why {
                    CancelReason::Requested => 0,
                    CancelReason::Left(why) => LEFT + why as u8,
                    CancelReason::Removed(why) => REMOVED + why as u8,
                },
                ..sized(CANCELLED, size)
            },
            Execution::Expired { size } => sized(EXPIRED, size),
            Execution::Triggered => sized(TRIGGERED, 0),
            Execution::Rejected(result) => code(REJECTED, result),
            Execution::RequestRejected(result) => code(REQUEST_REJECTED, result),
        }
    }

    /// Decodes the execution; a field that its kind does not use must be 0.
    fn execution(self, command: u64) -> Result<Execution, CodecError> {
        let Self {
            what,
            why,
            number,
            price,
            size,
        } = self;
        let kind = what & WHAT;
        if kind != TRADE {
            nothing("the price of no trade", PRICE_AT, price)?;
        }
        if !matches!(kind, TRADE | REJECTED | REQUEST_REJECTED) {
            nothing("the number of no trade", NUMBER_AT, number.into())?;
        }
        if matches!(kind, NEW | TRIGGERED | REJECTED | REQUEST_REJECTED) {
            nothing("the size of no change", SIZE_AT, size)?;
        }
        Ok(match kind {
            NEW => Execution::New,
            TRADE => Execution::Trade {
                id: TradeId {
                    command,
                    index: number as u32,
                },
                price,
                size,
                is_maker: what & IS_MAKER != 0,
            },
            REPLACED => Execution::Replaced { reduced_by: size },
            CANCELLED => Execution::Cancelled {
                size,
                why: reason(why)?,
            },
            EXPIRED => Execution::Expired { size },
            TRIGGERED => Execution::Triggered,
            REJECTED => Execution::Rejected(result(number)?),
            _ => Execution::RequestRejected(result(number)?),
        })
    }
}

/// Whether a removal is reported by another kind of report than a cancel.
const fn has_kind_of_its_own(reason: CancelReason) -> bool {
    matches!(
        reason,
        CancelReason::Removed(
            Removal::Expired | Removal::Cancelled | Removal::Reduced | Removal::Decremented
        )
    )
}

fn reason(code: u8) -> Result<CancelReason, CodecError> {
    let known = match code {
        0 => Some(CancelReason::Requested),
        LEFT..REMOVED => RejectReason::from_code(code - LEFT).map(CancelReason::Left),
        REMOVED.. => Removal::from_code(code - REMOVED)
            .map(CancelReason::Removed)
            .filter(|reason| !has_kind_of_its_own(*reason)),
    };
    known.ok_or(CodecError::UnknownCode {
        what: "the reason of a cancel",
        at: 7,
        code: code.into(),
    })
}

fn result(code: i32) -> Result<ResultCode, CodecError> {
    ResultCode::from_code(code).ok_or(CodecError::UnknownCode {
        what: "the code of a rejection",
        at: NUMBER_AT,
        code: code.into(),
    })
}

/// Writes a report's frame at the beginning of `out`; the result is its length in bytes. A trade's
/// [id](TradeId) has the report's own command.
///
/// # Errors
/// [`CodecError::NoRoom`]; nothing is written then.
#[inline]
pub fn encode_report(report: &ExecutionReport, out: &mut [u8]) -> Result<usize, CodecError> {
    let out = room::<REPORT_BYTES>(out)?;
    let fields = Fields::of(report.kind);
    let side = report
        .side
        .map_or(0, |side| HAS_SIDE | (side as u8) << BID_BIT);
    let head = Head::new(REPORT_BYTES, kind::REPORT, [fields.what | side, fields.why]);
    put_longs(
        out,
        0,
        [
            head.0 as i64,
            report.command as i64,
            report.owner.0,
            report.order.0,
            report.price,
            report.left,
            report.filled,
        ],
    );
    put_int(out, SYMBOL_AT, report.symbol.0);
    put_int(out, NUMBER_AT, fields.number);
    put_longs(out, PRICE_AT, [fields.price, fields.size]);
    Ok(REPORT_BYTES)
}

/// Reads the report at the beginning of `bytes`; with it, the length of its frame in bytes.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
pub fn decode_report(bytes: &[u8]) -> Result<(ExecutionReport, usize), CodecError> {
    let head = Head::read(bytes)?;
    let ([bits, why], wrong) = check(head)?;
    let frame = head.frame(bytes)?;
    let frame: &[u8; REPORT_BYTES] = frame.first_chunk().ok_or(wrong)?;
    let at = |field: usize| long(frame, HEAD_BYTES + field * 8);
    let command = at(0) as u64;
    let fields = Fields {
        what: bits,
        why,
        number: int(frame, NUMBER_AT),
        price: long(frame, PRICE_AT),
        size: long(frame, SIZE_AT),
    };
    let report = ExecutionReport {
        command,
        owner: UserId(at(1)),
        symbol: SymbolId(int(frame, SYMBOL_AT)),
        order: OrderId(at(2)),
        side: (bits & HAS_SIDE != 0).then(|| action(bits >> BID_BIT)),
        price: at(3),
        left: at(4),
        filled: at(5),
        kind: fields.execution(command)?,
    };
    Ok((report, REPORT_BYTES))
}

/// Returns a report's own bytes and the error for another length, or the error that its head alone
/// proves.
pub(super) fn check(head: Head) -> Result<([u8; 2], CodecError), CodecError> {
    let length = head.length()?;
    let kind = head.kind();
    if kind != kind::REPORT {
        let wanted = "execution report";
        return Err(CodecError::UnknownKind { kind, wanted });
    }
    let what = "an execution report";
    let wrong = CodecError::WrongLength {
        what,
        length,
        expected: REPORT_BYTES,
    };
    if length != REPORT_BYTES {
        return Err(wrong);
    }
    let [bits, why] = head.own_up_to(what, [WHAT | HAS_SIDE | BID | IS_MAKER, u8::MAX])?;
    let code = bits & WHAT;
    if code > REQUEST_REJECTED {
        return Err(CodecError::UnknownCode {
            what: "the execution",
            at: 6,
            code: code.into(),
        });
    }
    if bits & HAS_SIDE == 0 {
        nothing("the side of no order", 6, (bits & BID).into())?;
    }
    if code != TRADE {
        nothing("the maker's bit of no trade", 6, (bits & IS_MAKER).into())?;
    }
    if code == CANCELLED {
        reason(why)?;
    } else {
        nothing("the reason of no cancel", 7, why.into())?;
    }
    Ok(([bits, why], wrong))
}
