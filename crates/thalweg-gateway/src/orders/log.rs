//! The gateway's log: orders before they are sent, then trades and reports.
//!
//! A record is a byte that says which, and fields in little-endian order. Order and reports come in
//! the order in which they were applied, so that reading them again gives the same memory.

use std::path::Path;

use thalweg_exchange::codec::{REPORT_BYTES, decode_report, encode_report};
use thalweg_exchange::session::ReportNumber;
use thalweg_exchange::{Action, OrderFlags, SymbolId, UserId};
use thalweg_journal::{GroupCommit, Journal, JournalOptions, Lsn, Reader, Shared};

use super::order::{Kind, Life, Order};
use crate::GatewayError;
use crate::market::Trade;
use crate::reported::Reported;

const ORDER: u8 = 1;
const REPORT: u8 = 2;
const TRADE: u8 = 3;
const BEGIN: u8 = 4;
/// Segments of the log.
const SEGMENT_BYTES: u64 = 8 << 20;
/// Stands for an absent number.
const NONE: i64 = i64::MIN;

/// A record of the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// An order that is about to be sent.
    Order(Box<Order>),
    /// A report that was applied.
    Report(Reported),
    /// A trade, and which of its command it is.
    Trade(Trade, u32),
    /// A user's reports up to this one were before the gateway, or are lost.
    Begin(UserId, ReportNumber),
}

struct Writer(Vec<u8>);

impl Writer {
    fn int(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }
}

struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn int(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn optional(&mut self) -> Option<Option<i64>> {
        self.int().map(|value| (value != NONE).then_some(value))
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn side(&mut self) -> Option<Action> {
        Action::from_code(self.byte()?)
    }
}

impl Record {
    fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(192));
        match self {
            Self::Order(order) => encode_order(order, &mut out),
            Self::Report(reported) => {
                let mut report = [0; REPORT_BYTES];
                encode_report(&reported.report, &mut report).expect("the report has its room");
                out.byte(REPORT).int(reported.number.0 as i64);
                out.int(reported.trade.unwrap_or(NONE))
                    .int(reported.time_us);
                out.0.extend_from_slice(&report);
            }
            Self::Trade(trade, index) => {
                out.byte(TRADE).int(trade.id).int(trade.symbol.0.into());
                out.int(trade.price)
                    .int(trade.lots)
                    .byte(trade.taker_side as u8);
                out.int(trade.time_us)
                    .int(trade.command as i64)
                    .int((*index).into());
            }
            Self::Begin(user, number) => {
                out.byte(BEGIN).int(user.0).int(number.0 as i64);
            }
        }
        out.0
    }

    /// Reads a record; `None` for bytes that are none.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let fields = &mut Bytes(bytes);
        let record = match fields.byte()? {
            ORDER => Self::Order(Box::new(decode_order(fields)?)),
            REPORT => {
                let number = ReportNumber(fields.int()? as u64);
                let (trade, time_us) = (fields.optional()?, fields.int()?);
                let (report, _) = decode_report(fields.take(REPORT_BYTES)?).ok()?;
                Self::Report(Reported {
                    number,
                    report,
                    trade,
                    time_us,
                })
            }
            TRADE => {
                let (id, symbol) = (fields.int()?, SymbolId(fields.int()?.try_into().ok()?));
                let (price, lots) = (fields.int()?, fields.int()?);
                let (taker_side, time_us) = (fields.side()?, fields.int()?);
                let (command, index) = (fields.int()? as u64, fields.int()? as u32);
                let trade = Trade {
                    id,
                    command,
                    symbol,
                    price,
                    lots,
                    taker_side,
                    time_us,
                };
                Self::Trade(trade, index)
            }
            BEGIN => Self::Begin(UserId(fields.int()?), ReportNumber(fields.int()? as u64)),
            _ => return None,
        };
        fields.0.is_empty().then_some(record)
    }
}

fn encode_order(order: &Order, out: &mut Writer) {
    out.byte(ORDER).int(order.user.0).int(order.symbol.into());
    out.int(order.id).byte(order.client_id.len() as u8);
    out.0.extend_from_slice(order.client_id.as_bytes());
    out.byte(order.kind as u8)
        .byte(order.life as u8)
        .byte(order.side as u8);
    out.int(order.price).int(order.lots).int(order.quote);
    out.int(order.stop.unwrap_or(NONE))
        .int(order.display.unwrap_or(NONE));
    out.byte(order.flags.code()).int(order.created_us);
}

fn decode_order(fields: &mut Bytes<'_>) -> Option<Order> {
    let (user, symbol) = (UserId(fields.int()?), fields.int()?.try_into().ok()?);
    let id = fields.int()?;
    let length = fields.byte()?.into();
    let client_id = std::str::from_utf8(fields.take(length)?).ok()?.to_owned();
    let kind = Kind::from_code(fields.byte()?)?;
    let life = Life::from_code(fields.byte()?)?;
    let side = fields.side()?;
    let (price, lots, quote) = (fields.int()?, fields.int()?, fields.int()?);
    let (stop, display) = (fields.optional()?, fields.optional()?);
    let flags = OrderFlags::from_code(fields.byte()?)?;
    let created_us = fields.int()?;
    Some(Order {
        kind,
        life,
        quote,
        stop,
        display,
        flags,
        ..Order::pending(
            (user, symbol, id),
            client_id,
            (side, price, lots),
            created_us,
        )
    })
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Log(Shared<[u8]>);

impl Log {
    /// Opens the log in a directory, and gives every record that it has, in order.
    ///
    /// # Errors
    /// Files that cannot be read or written, or are damaged; a record of another version.
    pub(crate) fn open(
        directory: &Path,
        mut record: impl FnMut(Record),
    ) -> Result<Self, GatewayError> {
        std::fs::create_dir_all(directory).map_err(|source| GatewayError::File {
            path: directory.to_owned(),
            source,
        })?;
        let options = JournalOptions::default().segment_bytes(SEGMENT_BYTES);
        let journal = Journal::<[u8]>::open(directory, options)?;
        if journal.next() > Lsn::new(1) {
            let mut reader = Reader::open(directory, Lsn::new(1))?;
            while let Some(block) = reader.next_block()? {
                for (lsn, bytes) in block.bytes() {
                    record(Record::decode(bytes).ok_or_else(|| GatewayError::Content {
                        path: directory.to_owned(),
                        what: format!("record {} is none of this version", lsn.number()),
                    })?);
                }
            }
        }
        Ok(Self(journal.share(GroupCommit::default())))
    }

    /// Appends a record, which is not durable yet.
    ///
    /// # Errors
    /// The log has failed, or its disk is full.
    pub(crate) fn append(&self, record: &Record) -> Result<Lsn, GatewayError> {
        let bytes = record.encode();
        let build = |slot: &mut [u8]| slot.copy_from_slice(&bytes);
        Ok(self.0.append_bytes_with(bytes.len(), build)?)
    }

    /// Waits until a record is durable. Blocks the thread.
    ///
    /// # Errors
    /// The log has failed, or its disk is full.
    pub(crate) fn commit(&self, lsn: Lsn) -> Result<(), GatewayError> {
        self.0.commit(lsn).map(drop).map_err(GatewayError::Log)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::execution::{Execution, ExecutionReport, TradeId};
    use thalweg_exchange::{OrderId, SelfTrade};

    use super::*;

    pub(crate) fn order(id: i64) -> Order {
        Order {
            kind: Kind::StopLossLimit,
            life: Life::Ioc,
            stop: Some(4),
            flags: OrderFlags::NONE.with_self_trade(SelfTrade::Decrement),
            ..Order::pending(
                (UserId(7), -1, id),
                format!("x-1{id}"),
                (Action::Bid, 5, 6),
                8,
            )
        }
    }

    fn records() -> Vec<Record> {
        let trade = Trade {
            id: 3,
            command: 12,
            symbol: SymbolId(-1),
            price: 5,
            lots: 2,
            taker_side: Action::Ask,
            time_us: 9,
        };
        let id = TradeId {
            command: 12,
            index: 1,
        };
        let report = ExecutionReport {
            command: 12,
            owner: UserId(7),
            symbol: SymbolId(-1),
            order: OrderId(1),
            side: Some(Action::Bid),
            price: 5,
            left: 4,
            filled: 2,
            kind: Execution::Trade {
                id,
                price: 5,
                size: 2,
                is_maker: true,
            },
        };
        vec![
            Record::Begin(UserId(7), ReportNumber(4)),
            Record::Order(Box::new(order(1))),
            Record::Trade(trade, 1),
            Record::Report(Reported {
                number: ReportNumber(5),
                report,
                trade: Some(3),
                time_us: 9,
            }),
        ]
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        for record in records() {
            let bytes = record.encode();
            assert_eq!(Record::decode(&bytes), Some(record));
            for length in 0..bytes.len() {
                assert_eq!(Record::decode(&bytes[..length]), None);
            }
            assert_eq!(Record::decode(&[&bytes[..], &[0]].concat()), None);
        }
        assert_eq!(Record::decode(&[9]), None);
    }

    #[test]
    fn a_log_that_is_opened_again_gives_what_was_committed() {
        let name = format!("thalweg-gateway-log-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let log = Log::open(&directory, |_| panic!("it is new")).expect("it opens");
        let mut last = Lsn::new(1);
        for record in records() {
            last = log.append(&record).expect("there is room");
        }
        log.commit(last).expect("there is room");
        drop(log);
        let mut read = Vec::new();
        drop(Log::open(&directory, |record| read.push(record)).expect("it opens"));
        assert_eq!(read, records());
        std::fs::remove_dir_all(&directory).expect("it is there");
    }
}
