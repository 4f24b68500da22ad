//! The promises of the exchange, and the same commands executed without a break.

use std::collections::{BTreeMap, BTreeSet};

use super::traffic::sessions;
use super::{Verdict, must};
use crate::codec::{REPORT_BYTES, encode_report};
use crate::command::Command;
use crate::durable::record::Origin;
use crate::durable::tables::{FirstAnswer, Frame, Resumed};
use crate::engine::state::{State, apply};
use crate::event::Events;
use crate::execution::ExecutionReports;
use crate::ids::UserId;
use crate::result_code::ResultCode;
use crate::session::{ClientSequence, SessionKey};

/// An outcome as it was published.
#[derive(Clone, Debug)]
pub(super) struct PublishedOutcome {
    pub(super) number: u64,
    pub(super) origin: Origin,
    pub(super) result: ResultCode,
    /// The user, the number and the frame of each report.
    pub(super) reports: Vec<(UserId, u64, Frame)>,
}

/// A session, and the commands that it has sent and that have no answer.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) key: SessionKey,
    pub(super) next: u64,
    pub(super) outstanding: BTreeMap<u64, Command>,
    /// The commands that had an answer, and the last of them.
    pub(super) answered: BTreeMap<u64, Command>,
}

#[derive(Debug)]
pub(super) struct Model {
    /// The commands in their order, as far as they were taken and did not go with a crash.
    pub(super) log: Vec<(Origin, Command)>,
    pub(super) clients: Vec<Client>,
    /// Commands below this number were answered.
    pub(super) answered: u64,
    /// By number: the result, once it was published.
    results: BTreeMap<u64, ResultCode>,
    /// By user and number: the report, once it was seen.
    seen: BTreeMap<(UserId, u64), Frame>,
    /// The commands so far, executed without a break.
    state: State,
    executed: usize,
    reports: BTreeMap<UserId, Vec<Frame>>,
}

impl Model {
    pub(super) fn new() -> Self {
        let client = |key| Client {
            key,
            next: 1,
            outstanding: BTreeMap::new(),
            answered: BTreeMap::new(),
        };
        Self {
            log: Vec::new(),
            clients: sessions().into_iter().map(client).collect(),
            answered: 0,
            results: BTreeMap::new(),
            seen: BTreeMap::new(),
            state: State::default(),
            executed: 0,
            reports: BTreeMap::new(),
        }
    }

    /// A command was taken as a new one.
    pub(super) fn taken(&mut self, number: u64, origin: Origin, command: &Command) -> Verdict {
        let expected = self.log.len() as u64;
        must(number == expected, || format!("{number} after {expected}"))?;
        if let Origin::Session { .. } = origin {
            let before = self.log.iter().position(|(of, _)| *of == origin);
            must(before.is_none(), || {
                format!("{origin:?} was executed as {before:?}, and is taken again as {number}")
            })?;
        }
        self.log.push((origin, command.clone()));
        Ok(())
    }

    /// A command that comes again has this number.
    pub(super) fn known(&self, number: u64, origin: Origin) -> Verdict {
        let found = self.log.get(number as usize).map(|(of, _)| *of);
        must(found == Some(origin), || {
            format!("{origin:?} is given as {number}, which is {found:?}")
        })
    }

    /// A first answer was given again.
    pub(super) fn repeated(&mut self, first: FirstAnswer, origin: Origin) -> Verdict {
        self.known(first.number, origin)?;
        self.check_result(first.number, first.result)?;
        self.answer(origin);
        Ok(())
    }

    /// Checks that the result of a command is the same each time.
    fn check_result(&mut self, number: u64, result: ResultCode) -> Verdict {
        let before = *self.results.entry(number).or_insert(result);
        must(before == result, || {
            format!("command {number} had {before}, and now {result}")
        })
    }

    fn answer(&mut self, origin: Origin) {
        let Origin::Session { key, sequence } = origin else {
            return;
        };
        let client = self.clients.iter_mut().find(|client| client.key == key);
        if let Some(client) = client
            && let Some(command) = client.outstanding.remove(&sequence.0)
        {
            client.answered.insert(sequence.0, command);
        }
    }

    /// An outcome was published.
    pub(super) fn published(&mut self, outcome: PublishedOutcome) -> Verdict {
        let PublishedOutcome { number, origin, .. } = outcome;
        must(number == self.answered, || {
            format!("{number} is published after {}", self.answered)
        })?;
        self.known(number, origin)?;
        self.check_result(number, outcome.result)?;
        for (user, number, frame) in outcome.reports {
            self.see(user, number, &frame)?;
        }
        self.answered = number + 1;
        self.answer(origin);
        Ok(())
    }

    fn see(&mut self, user: UserId, number: u64, frame: &Frame) -> Verdict {
        let before = *self.seen.entry((user, number)).or_insert(*frame);
        must(before == *frame, || {
            format!("report {number} of {user} is another one than before")
        })
    }

    /// The exchange is open again, with this number of commands, and this state.
    pub(super) fn recovered(&mut self, commands: u64, hash: u64) -> Verdict {
        let taken = self.log.len() as u64;
        must((self.answered..=taken).contains(&commands), || {
            let answered = self.answered;
            format!("{commands} commands are there; {answered} answered, {taken} taken")
        })?;
        self.log.truncate(commands as usize);
        self.catch_up()?;
        // A session that asks for a recovered command gets its answer.
        self.answered = commands;
        let expected = crate::snapshot::state_hash(&self.state);
        must(hash == expected, || {
            format!("after {commands} commands: another state")
        })
    }

    /// Executes the commands that were taken, and compares the published results and reports with
    /// theirs.
    pub(super) fn catch_up(&mut self) -> Verdict {
        let mut events = Events::new();
        while let Some((_, command)) = self.log.get(self.executed) {
            let number = self.executed as u64;
            let result = apply(&mut self.state, command, &mut events);
            for report in ExecutionReports::new(number, command, result, &events) {
                let mut frame = [0; REPORT_BYTES];
                encode_report(&report, &mut frame).expect("there is room");
                self.reports.entry(report.owner).or_default().push(frame);
            }
            self.executed += 1;
            self.check_result(number, result)?;
        }
        let seen: BTreeSet<(UserId, u64)> = self.seen.keys().copied().collect();
        for (user, number) in seen {
            let frame = self
                .reports
                .get(&user)
                .and_then(|all| all.get(number as usize - 1));
            must(frame == self.seen.get(&(user, number)), || {
                format!("report {number} of {user} is not the one of an unbroken run")
            })?;
        }
        Ok(())
    }

    pub(super) fn state_hash(&self) -> u64 {
        crate::snapshot::state_hash(&self.state)
    }

    /// Checks a user's resumption after a report, of which at least `least` reports are kept.
    pub(super) fn resumed(
        &self,
        user: UserId,
        after: u64,
        least: usize,
        (resumed, frames): (Resumed, &[u8]),
    ) -> Verdict {
        let all = self.reports.get(&user).map_or(&[][..], Vec::as_slice);
        let next = all.len() as u64 + 1;
        let (first, reported) = (resumed.first.0, resumed.next.0);
        must(reported == next, || {
            format!("the next report of {user} is given as {reported}; it is {next}")
        })?;
        let wanted = (after + 1).min(next);
        let gap = (wanted < first).then(|| (wanted, first - 1));
        must(resumed.gap.map(|(from, to)| (from.0, to.0)) == gap, || {
            format!("{resumed:?} after {after}")
        })?;
        let given = frames.len() / REPORT_BYTES;
        let behind = (next - wanted) as usize;
        must(given >= behind.min(least), || {
            format!("{given} reports of {user} after {after}; there are {behind}")
        })?;
        must(frames == all[first as usize - 1..].concat(), || {
            format!("the reports of {user} from {first} on are others")
        })
    }
}

pub(in crate::durable) fn origin(key: SessionKey, sequence: u64) -> Origin {
    let sequence = ClientSequence(sequence);
    Origin::Session { key, sequence }
}
