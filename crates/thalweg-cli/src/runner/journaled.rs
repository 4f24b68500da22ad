//! The engines that a run goes through: the exchange service, and the exchange service with a
//! journal.

use crate::failure::{Failure, RunError};
use crate::message::counted;
use crate::report::facts::Journal;
use crate::runner::distribution;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use thalweg_exchange::durable::{
    self, Exchange, OpenError, Origin, Published, Storage, SubmitError, SyncMode, newest_header,
};
use thalweg_exchange::service::{self, LEFT_OVER_TAG, Outcome, Service, ServiceOptions};
use thalweg_exchange::snapshot::state_hash;
use thalweg_exchange::{Command, Events, Rules, State, apply_left_over};

/// An engine that takes the commands of a run.
pub(crate) trait Engine {
    /// Sends a command that was due at the time `due` and is handed over now.
    fn submit_due(&mut self, command: &Command, due: u64, now: u64) -> Result<(), Failure>;

    /// Waits until all commands are published.
    fn drain(&mut self) -> Result<(), Failure>;

    /// Ends the engine, and returns the facts of its journal, where there is one.
    fn finish(self) -> Result<(service::ServiceResults, Option<Journal>), Failure>;
}

/// The starting point of a run.
pub(crate) trait Launch {
    /// The engine that takes the commands.
    type Engine: Engine;

    /// Starts the engine with the stages where these options place them; outcomes count from 0.
    fn start(
        self,
        options: ServiceOptions,
        publish: impl FnMut(Outcome<'_>) + Send + 'static,
    ) -> Result<Self::Engine, Failure>;
}

fn failed(error: impl ToString) -> Failure {
    RunError(error.to_string()).into()
}

impl Launch for State {
    type Engine = Service;

    fn start(
        self,
        options: ServiceOptions,
        publish: impl FnMut(Outcome<'_>) + Send + 'static,
    ) -> Result<Service, Failure> {
        Service::start(self, options, publish).map_err(failed)
    }
}

impl Engine for Service {
    #[inline]
    fn submit_due(&mut self, command: &Command, due: u64, now: u64) -> Result<(), Failure> {
        Service::submit_due(self, command, due, now).map_err(failed)
    }

    fn drain(&mut self) -> Result<(), Failure> {
        Service::drain(self).map_err(failed)
    }

    fn finish(self) -> Result<(service::ServiceResults, Option<Journal>), Failure> {
        let finished = self.join().map_err(failed)?;
        Ok((finished, None))
    }
}

/// The stream that goes into a durable exchange, and its starting point.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) rules: Rules,
    /// The number of the first command, counting from 1.
    pub(crate) from: u64,
    /// The state before the first command.
    pub(crate) before: State,
    /// The commands before it that are not in the stream.
    pub(crate) further: u64,
    /// Whether the stream may continue an exchange that other streams have left; otherwise it
    /// brings its own beginning.
    pub(crate) is_open: bool,
}

/// A durable exchange that will be opened or created.
pub(crate) struct Journaled<'p, S: Storage> {
    pub(crate) storage: S,
    pub(crate) sync: SyncMode,
    pub(crate) stream: Stream,
    /// A callback while an existing exchange is recovered, with the number of bytes read and their
    /// total.
    pub(crate) progress: &'p mut dyn FnMut(u64, u64),
    /// The place for the state that the exchange begins with.
    pub(crate) begin: Option<&'p mut State>,
}

/// The number of commands and the state that an exchange was found to have, or the reason why the
/// stream cannot continue it.
type Found = Result<(u64, Option<State>), String>;

impl Stream {
    /// Checks whether the stream can continue an exchange that has executed this number of commands
    /// and is in this state.
    fn check(&self, state: &State, commands: u64) -> Result<(), String> {
        let Stream { name, from, .. } = self;
        if *state.risk.rules() != self.rules {
            return Err("its exchange was made under other rules than --rules says".to_owned());
        }
        let next = commands + 1;
        if commands == 0 && *from > 1 {
            return Err(format!(
                "--from {from}: its exchange has no commands, and those before are in no journal"
            ));
        }
        if commands == 0 || *from == 1 && self.is_open {
            return Ok(());
        }
        let has = counted(commands, "command");
        if *from == 1 {
            return Err(format!(
                "its exchange has {has}, and {name} begins with an empty one: to go on with an \
                 interrupted run, --from {next}"
            ));
        }
        let (mut state, mut done) = (state.clone(), commands);
        apply_left_over(&mut state, &mut Events::new(), |_, _, _| done += 1);
        match done + 1 == from + self.further && state_hash(&state) == state_hash(&self.before) {
            true => Ok(()),
            false => Err(format!(
                "--from {from}: its exchange has {has}, and is not where {name} is before command \
                 {from}"
            )),
        }
    }
}

impl<S: Storage> Launch for Journaled<'_, S> {
    type Engine = Durable<S>;

    fn start(
        self,
        options: ServiceOptions,
        mut publish: impl FnMut(Outcome<'_>) + Send + 'static,
    ) -> Result<Durable<S>, Failure> {
        let place = self.storage.location();
        let sessions = match newest_header(&self.storage) {
            Ok(header) => header.sessions,
            // Other faults are reported when the exchange is opened.
            Err(_) => durable::SessionLimits::default(),
        };
        let options = durable::Options {
            service: options,
            sync: self.sync,
            sessions,
            rules: self.stream.rules,
            snapshot: crate::durable::snapshots(&self.storage),
            ..durable::Options::default()
        };
        let found: Arc<Mutex<Option<Found>>> = Arc::default();
        let tell = Arc::clone(&found);
        let (stream, is_wanted) = (self.stream, self.begin.is_some());
        let mut first = 0;
        let hear = move |published: Published<'_>| match published {
            Published::Started { state, number } => {
                first = number;
                let checked = stream.check(state, number);
                let checked = checked.map(|()| (number, is_wanted.then(|| state.clone())));
                *tell.lock().unwrap_or_else(PoisonError::into_inner) = Some(checked);
            }
            Published::Outcomes(outcomes) => outcomes.for_each(|executed| {
                publish(Outcome {
                    sequence: executed.outcome.sequence - first,
                    ..executed.outcome
                });
            }),
            _ => {}
        };
        let opened = Exchange::open_showing(self.storage, options, hear, self.progress);
        let (exchange, recovered) = opened?;
        for skipped in &recovered.skipped {
            let _ = writeln!(io::stderr(), "thalweg: {skipped}");
        }
        let found = found.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (before, state) = match found {
            Some(Ok(found)) => found,
            Some(Err(why)) => return Err(Failure::Misuse(format!("--journal {place}: {why}"))),
            None => return Err(OpenError::NoExchange { place }.into()),
        };
        if let (Some(begin), Some(state)) = (self.begin, state) {
            *begin = state;
        }
        let mut durable = Durable {
            exchange,
            place,
            sync: self.sync,
            before,
        };
        durable.go_on(0)?;
        Ok(durable)
    }
}

/// An exchange with a journal.
#[derive(Debug)]
pub(crate) struct Durable<S: Storage> {
    exchange: Exchange<S>,
    place: String,
    sync: SyncMode,
    /// The number of commands that the exchange had before.
    before: u64,
}

impl<S: Storage> Durable<S> {
    /// Submits commands for what is left over until nothing is.
    fn go_on(&mut self, due: u64) -> Result<(), Failure> {
        while let Some(command) = self.exchange.left_over() {
            let origin = Origin::Engine;
            let submitted = self
                .exchange
                .submit_due(origin, &command, due, LEFT_OVER_TAG);
            submitted.map_err(|error| self.refused(error))?;
        }
        Ok(())
    }

    #[cold]
    fn refused(&mut self, error: SubmitError) -> Failure {
        let why = match error {
            SubmitError::Failed(failed) => return Failure::Durable(failed),
            other => other,
        };
        // Commands that were taken before may be on their way to the disk, and have room there.
        if let Err(failed) = self.exchange.drain_while_room() {
            return Failure::Durable(failed);
        }
        let durable = self.exchange.stats();
        let durable = durable.map_or(0, |stats| stats.number - stats.in_flight as u64);
        failed(format!(
            "{}: {why}; {} of this run {} durable",
            self.place,
            counted(durable - self.before, "command"),
            if durable - self.before == 1 {
                "is"
            } else {
                "are"
            },
        ))
    }
}

impl<S: Storage> Engine for Durable<S> {
    #[inline]
    fn submit_due(&mut self, command: &Command, due: u64, now: u64) -> Result<(), Failure> {
        match self.exchange.submit_due(Origin::Engine, command, due, now) {
            Ok(_) => self.go_on(due),
            Err(error) => Err(self.refused(error)),
        }
    }

    fn drain(&mut self) -> Result<(), Failure> {
        self.exchange.drain().map_err(Failure::Durable)
    }

    fn finish(self) -> Result<(service::ServiceResults, Option<Journal>), Failure> {
        let stats = self.exchange.stats().map(|stats| stats.journal);
        let finished = self.exchange.close().map_err(Failure::Durable)?;
        let commits = stats.as_ref().filter(|stats| stats.commits > 0);
        let mut journal = Journal {
            directory: self.place,
            sync: match self.sync {
                SyncMode::Always => "always",
                SyncMode::Never => "never",
            },
            commands_before: self.before,
            commands: finished.commands,
            bytes: stats.as_ref().map_or(0, |stats| stats.bytes),
            commits: stats.as_ref().map_or(0, |stats| stats.commits),
            commit: commits.map(|stats| distribution(&stats.commit_ns)),
            commands_per_commit: commits.map(|stats| stats.group.mean()),
            digest: format!("{:016x}", finished.digest.value()),
            state_hash: format!("{:016x}", state_hash(&finished.service.state)),
            snapshot: None,
            snapshot_failed: None,
        };
        match finished.snapshot {
            Ok(_) => journal.snapshot = Some(finished.commands),
            Err(failed) => journal.snapshot_failed = Some(failed.to_string()),
        }
        Ok((finished.service, Some(journal)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_exchange::durable::{JournalOptions, SimDisk};
    use thalweg_journal::{Fault, Operation};
    use thalweg_measure::clock::Clock;

    #[test]
    fn a_full_disk_ends_a_run_and_the_error_says_how_much_is_durable() {
        let disk = SimDisk::new();
        let options = durable::Options {
            journal: JournalOptions::default()
                .segment_bytes(64 << 10)
                .block_bytes_max(16 << 10)
                .in_background(false),
            ..durable::Options::default()
        };
        let opened = Exchange::open_in(disk.clone(), options, |_| ());
        let mut durable = Durable {
            exchange: opened.expect("it opens").0,
            place: "sim".to_owned(),
            sync: SyncMode::Always,
            before: 0,
        };
        let now = Clock::global().ticks();
        for _ in 0..100 {
            let taken = durable.submit_due(&Command::Nop, now, now);
            taken.expect("there is room");
        }
        durable.drain().expect("the disk is well");
        (0..1_000).for_each(|_| disk.fail(Operation::Allocate, 0, Fault::Full));
        let failed = (0..100_000).find_map(|_| durable.submit_due(&Command::Nop, now, now).err());
        let text = failed.expect("it is full").to_string();
        let count = text.strip_prefix("the exchange stopped: sim: the journal's disk is full; ");
        let count = count.and_then(|rest| rest.strip_suffix(" commands of this run are durable"));
        let count: u64 = count.and_then(|count| count.parse().ok()).expect(&text);
        assert!(count >= 100, "{count}");
    }
}
