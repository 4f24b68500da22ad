//! The gateway's log: orders before they are sent, then trades and reports.
//!
//! A record is a byte that says which, and fields in little-endian order. Order and reports come in
//! the order in which they were applied, so that reading them again gives the same memory.
//!
//! Parts of checkpoints ([`CheckpointPart`]) are among them. Segments before a whole checkpoint are
//! removed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_exchange::UserId;
use thalweg_exchange::codec::{REPORT_BYTES, decode_report, encode_report};
use thalweg_exchange::session::ReportNumber;
use thalweg_journal::{GroupCommit, Journal, JournalOptions, Lsn, Reader, Shared};
use thalweg_server::private_files::make_directory;

use super::checkpoint_part::{self, CheckpointPart};
use super::fields::{Bytes, Writer, decode_order, decode_trade, encode_order, encode_trade};
use super::memory::OrderKey;
use super::order::{Order, UserReport};
use crate::GatewayError;
use crate::market::Trade;

const ORDER: u8 = 1;
const REPORT: u8 = 2;
const TRADE: u8 = 3;
const BEGIN: u8 = 4;
/// A report of an auction.
const AUCTION: u8 = 5;
const FORGOTTEN: u8 = 6;
/// The shortest segments of the log, and the longest.
const SEGMENT_BYTES: [u64; 2] = [512 << 10, 8 << 20];
const PAGE_BYTES: u64 = 4_096;

/// A record of the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// An order that is about to be sent.
    Order(Box<Order>),
    /// A report that was applied.
    Report(UserReport),
    /// A trade, and which of its command it is.
    Trade(Trade, u32),
    /// A user's reports up to this one were before the gateway, or are lost.
    Begin(UserId, ReportNumber),
    /// An order of a user that was not executed, and never will be.
    Forgotten(UserId, OrderKey),
    /// A part of a checkpoint.
    Checkpoint(CheckpointPart),
}

impl Record {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(192));
        match self {
            Self::Order(order) => encode_order(order, out.byte(ORDER)),
            Self::Report(reported) => {
                let mut report = [0; REPORT_BYTES];
                encode_report(&reported.report, &mut report).expect("the report has its room");
                let code = if reported.is_auction { AUCTION } else { REPORT };
                out.byte(code).int(reported.number.0 as i64);
                out.optional(reported.trade).int(reported.time_us);
                out.0.extend_from_slice(&report);
            }
            Self::Trade(trade, index) => {
                encode_trade(trade, out.byte(TRADE));
                out.int((*index).into());
            }
            Self::Begin(user, number) => {
                out.byte(BEGIN).int(user.0).int(number.0 as i64);
            }
            Self::Forgotten(user, (symbol, id)) => {
                out.byte(FORGOTTEN).int(user.0);
                out.int((*symbol).into()).int(*id);
            }
            Self::Checkpoint(kept) => kept.encode(&mut out),
        }
        out.0
    }

    /// Reads a record; `None` for bytes that are none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let fields = &mut Bytes(bytes);
        let code = fields.byte()?;
        let record = match code {
            ORDER => Self::Order(Box::new(decode_order(fields)?)),
            REPORT | AUCTION => {
                let number = ReportNumber(fields.int()? as u64);
                let (trade, time_us) = (fields.optional()?, fields.int()?);
                let (report, _) = decode_report(fields.take(REPORT_BYTES)?).ok()?;
                Self::Report(UserReport {
                    number,
                    report,
                    trade,
                    time_us,
                    is_auction: code == AUCTION,
                })
            }
            TRADE => {
                let (trade, index) = (decode_trade(fields)?, fields.int()? as u32);
                Self::Trade(trade, index)
            }
            BEGIN => Self::Begin(UserId(fields.int()?), ReportNumber(fields.int()? as u64)),
            FORGOTTEN => {
                let (user, symbol) = (UserId(fields.int()?), fields.int()?.try_into().ok()?);
                Self::Forgotten(user, (symbol, fields.int()?))
            }
            code if code >= checkpoint_part::FIRST => {
                Self::Checkpoint(CheckpointPart::decode(code, fields)?)
            }
            _ => return None,
        };
        fields.0.is_empty().then_some(record)
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Log {
    journal: Shared<[u8]>,
    directory: Arc<Path>,
    /// Bytes of records that were appended.
    bytes: Arc<AtomicU64>,
    /// Records that find no room yet.
    #[cfg(test)]
    pub(super) refused: Arc<AtomicU64>,
}

impl Log {
    /// Opens the log in a directory. A checkpoint comes each `checkpoint_bytes`.
    ///
    /// # Errors
    /// Files that cannot be read or written.
    pub(crate) fn open(directory: &Path, checkpoint_bytes: u64) -> Result<Self, GatewayError> {
        make_directory(directory).map_err(|source| GatewayError::File {
            path: directory.to_owned(),
            source,
        })?;
        let segment_bytes = (checkpoint_bytes / 4).clamp(SEGMENT_BYTES[0], SEGMENT_BYTES[1]);
        let segment_bytes = segment_bytes.next_multiple_of(PAGE_BYTES);
        let options = JournalOptions::default().segment_bytes(segment_bytes);
        let journal = Journal::<[u8]>::open(directory, options)?;
        Ok(Self {
            journal: journal.share(GroupCommit::default()),
            directory: directory.into(),
            bytes: Arc::default(),
            #[cfg(test)]
            refused: Arc::default(),
        })
    }

    /// Gives every durable record with its length, in order; begins where segments were not
    /// removed. Returns the number of the first.
    ///
    /// # Errors
    /// Files that cannot be read, or are damaged; a record of another version.
    pub(crate) fn read(&self, mut record: impl FnMut(Record, u64)) -> Result<Lsn, GatewayError> {
        if self.journal.durable().get() == Lsn::ZERO {
            return Ok(Lsn::FIRST);
        }
        let mut reader = Reader::open(&self.directory, Lsn::ZERO)?;
        let first = reader.next();
        while let Some(block) = reader.next_block()? {
            for (lsn, bytes) in block.bytes() {
                let what = || format!("record {} is none of this version", lsn.number());
                let decoded = Record::decode(bytes).ok_or_else(|| self.content(what()))?;
                record(decoded, bytes.len() as u64);
            }
        }
        Ok(first)
    }

    /// Returns the error of a log that has something wrong.
    pub(crate) fn content(&self, what: String) -> GatewayError {
        let path = self.directory.to_path_buf();
        GatewayError::Content { path, what }
    }

    /// Returns the bytes of all records that were appended.
    pub(crate) fn appended_bytes(&self) -> u64 {
        // ORDERING: Relaxed; a count alone.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of the last durable record.
    pub(crate) fn last_record(&self) -> u64 {
        self.journal.durable().get().number()
    }

    /// Appends a record, which is not durable yet.
    ///
    /// # Errors
    /// The log has failed, or its disk is full.
    pub(crate) fn append(&self, record: &Record) -> Result<Lsn, GatewayError> {
        #[cfg(test)]
        self.check_room()?;
        let bytes = record.encode();
        let build = |slot: &mut [u8]| slot.copy_from_slice(&bytes);
        let lsn = self.journal.append_bytes_with(bytes.len(), build)?;
        // ORDERING: Relaxed; a count alone.
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(lsn)
    }

    #[cfg(test)]
    fn check_room(&self) -> Result<(), GatewayError> {
        let one_less = |left: u64| left.checked_sub(1);
        // ORDERING: Relaxed; a count alone.
        let had = (self.refused).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        had.map_or(Ok(()), |_| {
            Err(GatewayError::Log(thalweg_journal::Error::Io {
                file: "log".to_owned(),
                what: "be written",
                source: Arc::new(std::io::ErrorKind::StorageFull.into()),
            }))
        })
    }

    /// Waits until a record is durable. Blocks the thread.
    ///
    /// # Errors
    /// The log has failed, or its disk is full.
    pub(crate) fn commit(&self, lsn: Lsn) -> Result<(), GatewayError> {
        let committed = self.journal.commit(lsn);
        committed.map(drop).map_err(GatewayError::Log)
    }

    /// Removes the segments that hold only records before this one.
    ///
    /// # Errors
    /// The file system.
    pub(crate) fn truncate_before(&self, lsn: Lsn) -> Result<(), GatewayError> {
        let retained = self.journal.truncate_before(lsn);
        retained.map(drop).map_err(GatewayError::Log)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::execution::{Execution, ExecutionReport, TradeId};
    use thalweg_exchange::{Action, OrderFlags, OrderId, SelfTrade, SymbolId};

    use super::super::order::{Kind, Life};
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
            Record::Forgotten(UserId(7), (-1, 1)),
            Record::Trade(trade, 1),
            Record::Report(UserReport {
                number: ReportNumber(5),
                report,
                trade: Some(3),
                time_us: 9,
                is_auction: false,
            }),
            Record::Report(UserReport {
                number: ReportNumber(6),
                report,
                trade: Some(3),
                time_us: 9,
                is_auction: true,
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
        let directory = thalweg_testkit::Scratch::new("gateway-log");
        let log = Log::open(&directory, 1 << 20).expect("it opens");
        log.read(|_, _| panic!("it is new")).expect("it is empty");
        let mut last = Lsn::new(1);
        for record in records() {
            last = log.append(&record).expect("there is room");
        }
        log.commit(last).expect("there is room");
        drop(log);
        let mut read = Vec::new();
        let log = Log::open(&directory, 1 << 20).expect("it opens");
        let first = log.read(|record, _| read.push(record));
        assert_eq!(first.expect("it is whole"), Lsn::FIRST);
        assert_eq!(read, records());
    }
}
