//! The journal stage: makes commands durable before the publish stage behind it has them.

use std::sync::Arc;
use std::time::Duration;

use thalweg::pipeline::Flow;
use thalweg_journal::{Lsn, Shared, Storage};
use thalweg_measure::clock::Clock;

use super::error::{Failed, shortage};
use super::faults::{Faults, Seeded};
use super::gate::Gate;
use super::options::SyncMode;
use super::stats::Meters;

pub(super) struct Committing<S: Storage> {
    pub(super) journal: Shared<[u8], S>,
    pub(super) sync: SyncMode,
    pub(super) room_pause: Duration,
    pub(super) gate: Arc<Gate>,
    pub(super) meters: Arc<Meters>,
    pub(super) faults: Faults,
    /// Commands below this number are durable.
    pub(super) durable: u64,
}

impl<S: Storage> Committing<S> {
    /// Makes the commands below this number durable. After a failure they pass, and the publish
    /// stage discards them.
    pub(super) fn commit(&mut self, end: u64) -> Flow {
        let is_trusted = self.sync == SyncMode::Never || self.faults.has(Seeded::PublishUnsynced);
        if end <= self.durable || is_trusted || self.gate.failed().is_some() {
            return Flow::Next;
        }
        let clock = Clock::global();
        let begin = clock.ticks();
        // The command with number n is record n + 1.
        let error = match self.journal.commit(Lsn::new(end)) {
            Ok(_) => {
                // All that came meanwhile is durable as well: the next chunks need no commit.
                let durable = self.journal.durable().get().number();
                self.meters
                    .note_commit(durable - self.durable, clock.ticks() - begin);
                self.durable = durable;
                self.gate.set_lack(None);
                return Flow::Next;
            }
            Err(error) => Arc::new(error),
        };
        let lack = shortage(&error);
        if lack.is_none() {
            self.gate.fail(Failed::Journal(error));
            return Flow::Next;
        }
        self.gate.set_lack(lack);
        if self.gate.pause(self.room_pause) {
            self.gate.fail(Failed::NoRoom(error));
            return Flow::Next;
        }
        // It may be the owner's thread, which has to refuse commands meanwhile.
        Flow::Retry
    }
}
