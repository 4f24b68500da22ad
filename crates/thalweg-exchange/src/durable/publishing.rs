//! The publish stage: makes a chunk durable, keeps its answers and reports, and only then lets
//! anybody hear of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thalweg_journal::{Lsn, Shared, Storage};
use thalweg_measure::clock::Clock;

use super::error::{Failed, shortage};
use super::faults::{Faults, Seeded};
use super::gate::Gate;
use super::options::SyncMode;
use super::record::Origin;
use super::stats::Meters;
use super::tables::{NumberedReport, Reports};
use crate::digest::Digest;
use crate::engine::state::State;
use crate::service::{Answered, Begun, Inquiry, Note, Outcome, Publisher};

/// A command that was executed and is durable.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'e> {
    /// What came of it; its [`sequence`](Outcome::sequence) is the command's number.
    pub outcome: Outcome<'e>,
    /// Who sent it.
    pub origin: Origin,
    /// What users are told of it, in order, each with its number among those of its owner.
    pub reports: &'e [NumberedReport],
}

/// What the publish stage tells, in the order of the commands.
#[derive(Debug)]
#[non_exhaustive]
pub enum Published<'p> {
    /// The exchange is open, and has executed nothing since: told once, first, on the thread that
    /// opens it.
    Started {
        /// What it goes on from.
        state: &'p State,
        /// The number of the next command.
        number: u64,
    },
    /// A command was executed.
    Outcome(Executed<'p>),
    /// A query was answered.
    Answer {
        /// The note of whoever asked.
        tag: u64,
        /// The answer. Like an outcome, it shows nothing that is not durable.
        answered: Answered,
    },
    /// Nothing more for now: the moment to pass on what was gathered.
    ChunkEnd,
    /// The exchange has stopped; nothing comes after this.
    Failed(&'p Failed),
}

/// Queries on their way, in order.
pub(super) type Inquiries = Arc<Mutex<VecDeque<Arc<Inquiry>>>>;

/// Reports for which there is room from one chunk to the next.
const REPORTS_ROOM: usize = 4096;

/// What was noted of a command of the chunk at hand.
#[derive(Debug)]
struct Noted {
    origin: Origin,
    reports_end: usize,
}

pub(super) struct Committing<S: Storage, P> {
    pub(super) journal: Shared<[u8], S>,
    pub(super) sync: SyncMode,
    pub(super) room_pause: Duration,
    pub(super) gate: Arc<Gate>,
    pub(super) meters: Arc<Meters>,
    pub(super) reports: Reports,
    pub(super) inquiries: Inquiries,
    pub(super) faults: Faults,
    pub(super) publish: P,
    pub(super) chunk: ChunkNotes,
}

/// What is known of the chunk at hand, and how far commands are durable.
#[derive(Debug, Default)]
pub(super) struct ChunkNotes {
    /// Commands below this number are durable.
    durable: u64,
    /// By command.
    noted: Vec<Noted>,
    reports: Vec<NumberedReport>,
    /// The next one to be published.
    next: usize,
    next_report: usize,
    is_failure_told: bool,
}

impl ChunkNotes {
    pub(super) fn new(durable: u64) -> Self {
        Self {
            durable,
            ..Self::default()
        }
    }

    /// The chunk is published. Room for more reports than most chunks have is given back: few users
    /// could else make it that of the longest sweep.
    fn forget(&mut self) {
        self.noted.clear();
        self.reports.clear();
        self.reports.shrink_to(REPORTS_ROOM);
        (self.next, self.next_report) = (0, 0);
    }
}

impl<S: Storage, P: FnMut(Published<'_>) + Send + 'static> Committing<S, P> {
    /// Makes the commands below this number durable.
    fn commit(&mut self, end: u64) -> Begun {
        if self.gate.failed().is_some() {
            return self.tell_failed();
        }
        let is_trusted = self.sync == SyncMode::Never || self.faults.has(Seeded::PublishUnsynced);
        if end <= self.chunk.durable || is_trusted {
            return Begun::Publish;
        }
        let clock = Clock::global();
        let begin = clock.ticks();
        // The command with number n is record n + 1.
        let error = match self.journal.commit(Lsn::new(end)) {
            Ok(_) => {
                // All that came meanwhile is durable as well: the next chunks need no commit.
                let durable = self.journal.durable().get().number();
                self.meters
                    .note_commit(durable - self.chunk.durable, clock.ticks() - begin);
                self.chunk.durable = durable;
                self.gate.set_lack(None);
                return Begun::Publish;
            }
            Err(error) => Arc::new(error),
        };
        let lack = shortage(&error);
        if lack.is_none() {
            return self.fail(Failed::Journal(error));
        }
        self.gate.set_lack(lack);
        if self.gate.pause(self.room_pause) {
            return self.fail(Failed::NoRoom(error));
        }
        // It may be the owner's thread, which has to refuse commands meanwhile.
        Begun::Later
    }

    fn fail(&mut self, failed: Failed) -> Begun {
        self.gate.fail(failed);
        self.tell_failed()
    }

    /// Whoever found it: the owner may have heard of it first.
    fn tell_failed(&mut self) -> Begun {
        if let Some(failed) = self.gate.failed()
            && !self.chunk.is_failure_told
        {
            self.chunk.is_failure_told = true;
            (self.publish)(Published::Failed(failed));
        }
        Begun::Discard
    }
}

impl<S: Storage, P: FnMut(Published<'_>) + Send + 'static> Publisher for Committing<S, P> {
    fn begin(&mut self, end: u64) -> Begun {
        self.commit(end)
    }

    fn look(&mut self, visit: impl FnOnce(&mut dyn FnMut(&Outcome<'_>, Note))) {
        let chunk = &mut self.chunk;
        let mut tables = self.reports.lock();
        visit(&mut |outcome, note| {
            let ChunkNotes { noted, reports, .. } = chunk;
            tables.note(outcome, note, |number, report, frame| {
                reports.push(NumberedReport {
                    number,
                    report: *report,
                    frame: *frame,
                });
            });
            noted.push(Noted {
                origin: tables.origin_of(note),
                reports_end: reports.len(),
            });
        });
    }

    fn outcome(&mut self, outcome: Outcome<'_>) {
        let chunk = &mut self.chunk;
        let Noted {
            origin,
            reports_end,
        } = chunk.noted[chunk.next];
        let reports = &chunk.reports[chunk.next_report..reports_end];
        chunk.next += 1;
        chunk.next_report = reports_end;
        (self.publish)(Published::Outcome(Executed {
            outcome,
            origin,
            reports,
        }));
    }

    fn answer(&mut self, tag: u64) {
        let mut inquiries = self
            .inquiries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let inquiry = inquiries.pop_front();
        drop(inquiries);
        if let Some(inquiry) = inquiry {
            let answered = inquiry.answered();
            (self.publish)(Published::Answer { tag, answered });
        }
    }

    fn end(&mut self, position: u64, digest: Option<Digest>) {
        if let Some(digest) = digest {
            (self.publish)(Published::ChunkEnd);
            self.gate.set_published(digest);
        }
        self.chunk.forget();
        self.gate.set_passed(position);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::REPORT_BYTES;
    use crate::execution::{Execution, ExecutionReport};
    use crate::ids::{OrderId, SymbolId, UserId};
    use crate::session::ReportNumber;

    #[test]
    fn room_for_the_reports_of_a_sweep_is_not_kept() {
        let report = ExecutionReport {
            command: 1,
            owner: UserId(7),
            symbol: SymbolId(1),
            order: OrderId(1),
            side: None,
            price: 1,
            left: 1,
            filled: 0,
            kind: Execution::New,
        };
        let numbered = NumberedReport {
            number: ReportNumber(1),
            report,
            frame: [0; REPORT_BYTES],
        };
        let mut chunk = ChunkNotes::new(0);
        chunk.reports.resize(100, numbered);
        let before = chunk.reports.capacity();
        chunk.forget();
        assert_eq!(chunk.reports.capacity(), before);
        chunk.reports.resize(100_000, numbered);
        chunk.forget();
        assert!(chunk.reports.is_empty());
        assert!(chunk.reports.capacity() <= 2 * REPORTS_ROOM);
    }
}
