//! The durable tables beside the state: sessions with their answers, and reports.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::in_flight::Note;
use super::options::SessionLimits;
use super::record::{Origin, RecordError};
use super::reports::{ReportTable, Resumed};
use super::sessions::{Answer, SessionSlot, SessionState, Sessions};
use crate::codec::{REPORT_BYTES, decode_report, encode_report};
use crate::digest::Digest;
use crate::execution::{ExecutionReport, for_each_report};
use crate::ids::UserId;
use crate::service::Outcome;
use crate::session::{ClientSequence, ReportNumber, SessionKey};

/// An execution report with its number among those of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportFrame {
    /// The number.
    pub number: ReportNumber,
    /// The user whom it is for.
    pub owner: UserId,
    /// The codec's frame of it.
    pub frame: [u8; REPORT_BYTES],
}

impl ReportFrame {
    /// Returns the report.
    ///
    /// # Panics
    /// Never, if the frame is that of a report.
    #[must_use]
    pub fn report(&self) -> ExecutionReport {
        let (report, _) = decode_report(&self.frame).expect("the frame was encoded from one");
        report
    }
}

/// The tables.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    pub(super) sessions: Sessions,
    pub(super) reports: ReportTable,
    /// The digest of the commands that are noted here, in the tables of an open exchange.
    pub(super) noted: Digest,
}

impl Tables {
    pub(super) fn new(limits: &SessionLimits) -> Self {
        Self {
            sessions: Sessions::new(limits),
            reports: ReportTable::new(limits),
            noted: Digest::new(),
        }
    }

    /// The note of the command with this number out of the journal; none where its session was
    /// copied after it.
    pub(super) fn note_of(&mut self, origin: Origin, number: u64) -> Result<Note, RecordError> {
        let Origin::Session { key, sequence } = origin else {
            return Ok(Note::NONE);
        };
        let slot = self.sessions.open(key);
        if number < self.sessions.since(slot) {
            return Ok(Note::NONE);
        }
        let last = self.sessions.last_executed(slot);
        if sequence.0 <= last {
            let sequence = sequence.0;
            return Err(RecordError::Repeated { sequence, last });
        }
        Ok(Note {
            session: slot.0,
            sequence: sequence.0,
        })
    }

    /// Returns the sender of a note's command.
    pub(super) fn origin_of(&self, note: Note) -> Origin {
        if note.session == Note::NONE.session {
            return Origin::Engine;
        }
        Origin::Session {
            key: self.sessions.key(SessionSlot(note.session)),
            sequence: ClientSequence(note.sequence),
        }
    }

    /// Keeps the answer of a command that was executed, with its check, and numbers and keeps its
    /// reports, which are added to `reported`.
    #[inline]
    pub(super) fn note(
        &mut self,
        outcome: &Outcome<'_>,
        (note, check): (Note, u32),
        mut reported: Option<&mut Vec<ReportFrame>>,
    ) {
        if note != Note::NONE {
            let answer = Answer {
                sequence: note.sequence,
                number: outcome.sequence,
                result: outcome.result,
                check,
            };
            self.sessions.note(SessionSlot(note.session), answer);
        }
        let reports = &mut self.reports;
        let Outcome {
            sequence,
            result,
            command,
            events,
            ..
        } = *outcome;
        for_each_report(sequence, command, (result, events), |report| {
            let owner = report.owner;
            if reports.has(owner, sequence) {
                return;
            }
            let mut frame = [0; REPORT_BYTES];
            encode_report(report, &mut frame).expect("a frame has room for a report");
            let number = reports.push(owner, &frame);
            if let Some(reported) = &mut reported {
                reported.push(ReportFrame {
                    number,
                    owner,
                    frame,
                });
            }
        });
    }
}

/// A handle to the sessions and the reports, for any thread: all that it returns is durable.
#[derive(Clone, Debug)]
pub struct Reports(Arc<Mutex<Tables>>);

impl Reports {
    pub(super) fn new(tables: Tables) -> Self {
        Self(Arc::new(Mutex::new(tables)))
    }

    /// Returns whether a thread has panicked with the lock: the tables may be unfinished.
    pub(super) fn is_poisoned(&self) -> bool {
        self.0.is_poisoned()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Tables> {
        // A thread that panics with the lock stops the exchange.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the frames of a user's reports after this one to `out`, as far as they are kept,
    /// [`REPORT_BYTES`] each. With [`ReportNumber`]`(u64::MAX)`, none.
    ///
    /// A report may come twice to a user who also gets those that are published: from here, and
    /// right after, by `publish`. Its number shows the repetition.
    pub fn resume(&self, user: UserId, after: ReportNumber, out: &mut Vec<u8>) -> Resumed {
        self.lock().reports.resume(user, after, out)
    }

    /// Returns the number that the user's next report gets.
    #[must_use]
    pub fn next(&self, user: UserId) -> ReportNumber {
        self.lock().reports.next(user)
    }

    /// Returns all sessions that have executed a command.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionKey> {
        let tables = self.lock();
        tables.sessions.list().iter().map(|one| one.key).collect()
    }

    /// Returns the state of a session; of one that never sent a command, that there is none.
    #[must_use]
    pub fn session(&self, key: SessionKey) -> SessionState {
        self.lock().sessions.state(key)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::command::Command;
    use crate::engine::state::{State, apply};
    use crate::event::Events;
    use crate::ids::{OrderId, SymbolId};
    use crate::session::Role;

    /// A state and tables after three commands: of the exchange itself, and two of a session, which
    /// are refused, and reported.
    pub(in crate::durable) fn filled() -> (State, Tables, Digest) {
        let mut state = State::default();
        let mut tables = Tables::new(&SessionLimits::default());
        let (mut digest, mut events) = (Digest::new(), Events::new());
        let key = SessionKey {
            role: Role::Trade,
            holder: 7,
            number: 1,
        };
        for number in 0..3 {
            let command = match number {
                0 => Command::AddUser { uid: UserId(7) },
                number => Command::Cancel {
                    uid: UserId(7),
                    symbol: SymbolId(1),
                    order_id: OrderId(number),
                },
            };
            let result = apply(&mut state, &command, &mut events);
            let check = digest.fold_and_check(&command, result, &events);
            let origin = match number {
                0 => Origin::Engine,
                number => Origin::Session {
                    key,
                    sequence: ClientSequence(1 + number as u64 * 2),
                },
            };
            let note = tables.note_of(origin, number as u64).expect("they rise");
            let outcome = Outcome {
                sequence: number as u64,
                tag: 0,
                due: 0,
                stamps: None,
                command: &command,
                result,
                events: &events,
            };
            tables.note(&outcome, (note, check), None);
        }
        (state, tables, digest)
    }

    #[test]
    fn a_sequence_is_not_executed_twice() {
        let (_, mut tables, _) = filled();
        let key = tables.sessions.list()[0].key;
        let again = |sequence| Origin::Session {
            key,
            sequence: ClientSequence(sequence),
        };
        let refused = tables.note_of(again(5), 3).expect_err("it was executed");
        let text = "its sequence is 5, and the session executed 5 before";
        assert_eq!(refused.to_string(), text);
        assert!(tables.note_of(again(6), 3).is_ok());
    }
}
