//! Other logs and stores, each with what it has for making a group of records durable.

use std::io;
use std::path::Path;

use commitlog::message::MessageBuf;
use commitlog::{CommitLog, LogOptions};
use fjall::{KeyspaceCreateOptions, PersistMode};
use okaywal::{Configuration, Entry, EntryId, LogManager, SegmentReader, WriteAheadLog};
use redb::{Database, TableDefinition};

use super::{Load, Log, Opened, RECORD_BYTES, bytes_of, record, told};

/// Neither recovers nor checkpoints: a run only appends.
#[derive(Debug)]
struct Manager;

impl LogManager for Manager {
    fn recover(&mut self, _: &mut Entry<'_>) -> io::Result<()> {
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _: EntryId,
        _: &mut SegmentReader,
        _: &WriteAheadLog,
    ) -> io::Result<()> {
        Ok(())
    }
}

struct Okaywal(WriteAheadLog);

impl Log for Okaywal {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        let mut entry = self.0.begin_entry().map_err(told)?;
        for number in first..first + group {
            let bytes = bytes_of(&record(number));
            entry.write_chunk(bytes.as_flattened()).map_err(told)?;
        }
        entry.commit().map(drop).map_err(told)
    }
}

/// An entry a group. The segment is prepared before the clock starts, as ours is.
pub(super) fn okaywal(place: &Path, load: &Load) -> Opened {
    // A chunk has 9 bytes of its own; an entry some more.
    let bytes = load.groups * (load.group * (RECORD_BYTES + 16) + 64);
    let bytes = u32::try_from(bytes + (1 << 20)).map_err(told)?;
    let wal = Configuration::default_for(place)
        .preallocate_bytes(bytes)
        .checkpoint_after_bytes(bytes.into())
        .open(Manager);
    Ok(Box::new(Okaywal(wal.map_err(told)?)))
}

struct Commitlog {
    log: CommitLog,
    messages: MessageBuf,
}

impl Log for Commitlog {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        self.messages.clear();
        for number in first..first + group {
            let bytes = bytes_of(&record(number));
            let pushed = self.messages.push(bytes.as_flattened());
            pushed.map_err(|error| format!("{error:?}"))?;
        }
        let appended = self.log.append(&mut self.messages);
        appended.map_err(|error| format!("{error:?}"))?;
        self.log.flush().map_err(told)
    }
}

/// `flush` after each group: the most that it has. It does not sync the log's file.
pub(super) fn commitlog(place: &Path, load: &Load) -> Opened {
    let mut options = LogOptions::new(place);
    options.index_max_items((load.groups * load.group) as usize + 1);
    let log = CommitLog::new(options).map_err(told)?;
    let messages = MessageBuf::default();
    Ok(Box::new(Commitlog { log, messages }))
}

struct Fjall {
    database: fjall::Database,
    records: fjall::Keyspace,
}

impl Log for Fjall {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        let batch = self.database.batch();
        let mut batch = batch.durability(Some(PersistMode::SyncData));
        for number in first..first + group {
            let bytes = bytes_of(&record(number));
            batch.insert(&self.records, number.to_be_bytes(), bytes.as_flattened());
        }
        batch.commit().map_err(told)
    }
}

/// A batch a group, with `PersistMode::SyncData`.
pub(super) fn fjall(place: &Path, _: &Load) -> Opened {
    let database = fjall::Database::builder(place).open().map_err(told)?;
    let records = database.keyspace("records", KeyspaceCreateOptions::default);
    let records = records.map_err(told)?;
    Ok(Box::new(Fjall { database, records }))
}

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");

struct Redb(Database);

impl Log for Redb {
    fn group(&mut self, first: u64, group: u64) -> Result<(), String> {
        let transaction = self.0.begin_write().map_err(told)?;
        let mut table = transaction.open_table(TABLE).map_err(told)?;
        for number in first..first + group {
            let bytes = bytes_of(&record(number));
            table.insert(number, bytes.as_flattened()).map_err(told)?;
        }
        drop(table);
        transaction.commit().map_err(told)
    }
}

/// A transaction a group, `Durability::Immediate`, which is its default.
pub(super) fn redb(place: &Path, _: &Load) -> Opened {
    std::fs::create_dir_all(place).map_err(told)?;
    let database = Database::create(place.join("log")).map_err(told)?;
    Ok(Box::new(Redb(database)))
}
