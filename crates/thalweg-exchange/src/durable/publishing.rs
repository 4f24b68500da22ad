//! The publish stage: keeps the answers and reports of commands that are durable, and publishes
//! them.

use std::sync::Arc;

use super::error::Failed;
use super::faults::{Faults, Seeded};
use super::gate::Gate;
use super::record::Origin;
use super::tables::{NumberedReport, Reports};
use crate::digest::Digest;
use crate::engine::state::State;
use crate::service::{Answered, Note, Outcome, Publisher};

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
    /// Published commands have left the pipeline, which has [room](super::Exchange::room) for more.
    Room,
    /// The exchange has stopped; nothing comes after this.
    Failed(&'p Failed),
}

/// Reports for which there is room from one chunk to the next.
const REPORTS_ROOM: usize = 4096;

/// What was noted of a command of the current chunk.
#[derive(Debug)]
struct Noted {
    origin: Origin,
    reports_end: usize,
}

pub(super) struct Publishing<P> {
    pub(super) gate: Arc<Gate>,
    pub(super) reports: Reports,
    pub(super) faults: Faults,
    pub(super) publish: P,
    pub(super) chunk: ChunkNotes,
}

/// What is known of the current chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkNotes {
    /// By command.
    noted: Vec<Noted>,
    reports: Vec<NumberedReport>,
    /// The next one to be published.
    next: usize,
    next_report: usize,
    is_failure_published: bool,
}

impl ChunkNotes {
    /// The chunk is published. Room for more reports than most chunks have is given back: few users
    /// could else make it that of the longest sweep.
    fn forget(&mut self) {
        self.noted.clear();
        self.reports.clear();
        self.reports.shrink_to(REPORTS_ROOM);
        (self.next, self.next_report) = (0, 0);
    }
}

impl<P: FnMut(Published<'_>) + Send + 'static> Publisher for Publishing<P> {
    fn is_on(&mut self) -> bool {
        let Some(failed) = self.gate.failed() else {
            return true;
        };
        if self.faults.has(Seeded::PublishFailed) {
            return true;
        }
        if !self.chunk.is_failure_published {
            self.chunk.is_failure_published = true;
            (self.publish)(Published::Failed(failed));
        }
        false
    }

    fn look(&mut self, position: u64, visit: impl FnOnce(&mut dyn FnMut(&Outcome<'_>, Note))) {
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
        drop(tables);
        // Before the first answer leaves: who has it may send the next command at once.
        self.gate.set_answered(position);
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

    fn answer(&mut self, tag: u64, answered: Answered) {
        (self.publish)(Published::Answer { tag, answered });
    }

    fn end(&mut self, position: u64, digest: Option<Digest>) {
        if let Some(digest) = digest {
            (self.publish)(Published::ChunkEnd);
            self.gate.set_published(digest);
        }
        self.chunk.forget();
        self.gate.set_passed(position);
        (self.publish)(Published::Room);
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
        let mut chunk = ChunkNotes::default();
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
