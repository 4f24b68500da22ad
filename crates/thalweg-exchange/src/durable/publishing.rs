//! The output of an exchange: the answers and reports of commands that are durable.

use std::sync::Arc;

use thalweg_journal::Storage;
use thalweg_measure::clock::Clock;

use super::committer::Gate;
use super::error::Failed;
use super::exchange::Exchange;
use super::faults::Seeded;
use super::published::{Executed, Published};
use super::record::Origin;
use crate::service::Outcome;

/// Commands that are published together at most: their reports are kept until all are noted.
const TOGETHER: usize = 256;
impl<S: Storage> Exchange<S> {
    /// Makes durable what was executed, or has that begun, and publishes what is.
    pub(super) fn publish(&mut self) -> Result<(), Failed> {
        let durable = match self.faults.has(Seeded::PublishUnsynced) {
            true => u64::MAX,
            false => self.releasable(),
        };
        if let Some(failed) = self.gate.failed()
            && !self.faults.has(Seeded::PublishFailed)
        {
            let failed = failed.clone();
            if !std::mem::replace(&mut self.owner.is_failure_published, true) {
                self.leave_log();
                (self.publish)(Published::Failed(&failed));
            }
            return Err(failed);
        }
        // Read before anything is published: a client that has its answer may send the next command
        // at once.
        let durable = match self.faults.has(Seeded::PublishFailed) {
            true => u64::MAX,
            false => durable,
        };
        self.hand_over();
        loop {
            let count = self.in_flight.publishable(durable).min(TOGETHER);
            if count == 0 {
                return Ok(());
            }
            self.publish_next(count);
        }
    }

    fn publish_next(&mut self, count: usize) {
        let guard = StopIfPanicked(Arc::clone(&self.gate));
        self.note_next(count);
        let clock = Clock::global();
        let mut reports = &self.reported.reports[..];
        for at in 0..count {
            let slot = self.in_flight.next(at);
            if let Some(question) = &mut slot.question {
                if let Some(answered) = question.answered.take() {
                    let tag = slot.tag;
                    (self.publish)(Published::Answer { tag, answered });
                }
                continue;
            }
            let (own, others) = reports.split_at(self.reported.counts[at]);
            reports = others;
            let is_stamped = slot.stamps.begun > 0;
            if is_stamped {
                slot.stamps.journaled = clock.ticks();
            }
            let outcome = Outcome {
                sequence: slot.number,
                tag: slot.tag,
                due: slot.sent(),
                stamps: is_stamped.then_some(slot.stamps),
                command: &slot.command,
                result: slot.result,
                events: &slot.events,
            };
            (self.publish)(Published::Outcome(Executed {
                outcome,
                origin: self.reported.origins[at],
                reports: own,
            }));
            if is_stamped {
                self.stage_times.record(slot, clock.ticks());
            }
        }
        (self.publish)(Published::ChunkEnd);
        drop(guard);
        self.in_flight.free(count);
        self.reported.clear();
    }

    /// Notes the next commands in the digest and the tables.
    fn note_next(&mut self, count: usize) {
        let mut tables = self.reports.lock();
        let reported = &mut self.reported;
        for at in 0..count {
            let slot = self.in_flight.next(at);
            let before = reported.reports.len();
            if slot.question.is_some() {
                reported.origins.push(Origin::Engine);
                reported.counts.push(0);
                continue;
            }
            let note = slot.note;
            let check = (self.digest).fold_and_check(&slot.command, slot.result, &slot.events);
            let outcome = Outcome {
                sequence: slot.number,
                tag: slot.tag,
                due: slot.due,
                stamps: None,
                command: &slot.command,
                result: slot.result,
                events: &slot.events,
            };
            tables.note(&outcome, (note, check), Some(&mut reported.reports));
            reported.origins.push(tables.origin_of(note));
            reported.counts.push(reported.reports.len() - before);
            self.admission.answer(note);
        }
        tables.noted = self.digest;
    }
}

/// Stops the exchange where the closure has panicked: it has missed something.
struct StopIfPanicked(Arc<Gate>);

impl Drop for StopIfPanicked {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Failed::Panicked);
        }
    }
}
