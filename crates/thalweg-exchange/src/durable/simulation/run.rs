//! One run: lives of an exchange, and what happens to its disk.

use thalweg_journal::{Fault, Operation, SimDisk, Storage};
use thalweg_measure::random::SplitMix;

use super::model::{Model, origin};
use super::recorder::{Counts, Recorder};
use super::traffic::{self, USERS, beginning, command};
use super::{ANSWERS_KEPT, REPORTS_KEPT, Verdict, must, options};
use crate::command::Command;
use crate::durable::error::{ExchangeError, OpenError, SubmitError};
use crate::durable::exchange::Exchange;
use crate::durable::faults::{Faults, Seeded};
use crate::durable::opening::Opening;
use crate::durable::record::Origin;
use crate::durable::submission::{Submission, SubmitOutcome};
use crate::ids::UserId;
use crate::session::{Refusal, ReportNumber};
use crate::snapshot::state_hash;

struct Run {
    random: SplitMix,
    disk: SimDisk,
    model: Model,
    faults: Faults,
    counts: Counts,
    /// A snapshot that was damaged, while it is there.
    damaged: Option<String>,
    /// Whether there are more orders than one command may take out.
    has_many_orders: bool,
}

/// Why a life ended, if it was no fault.
enum End {
    Power,
    Stopped,
    Closed,
}

pub(super) fn run(seed: u64, seeded: Option<Seeded>) -> Result<Counts, String> {
    let mut run = Run {
        random: SplitMix::new(seed),
        disk: SimDisk::new(),
        model: Model::new(),
        faults: Faults { seeded },
        counts: Counts::default(),
        damaged: None,
        has_many_orders: seed % 2 == 1,
    };
    for life in 0..6 + run.random.below(6) {
        // The many orders come in the first life.
        let may_fail = life > 0 || !run.has_many_orders;
        if run.random.below(8) > 0 && may_fail {
            let spread = [40, 400, 2_000][run.random.below(3) as usize];
            let at = run.disk.operations() + 1 + run.random.below(spread);
            run.disk.fail_power_at(at);
        }
        match run.life()? {
            End::Power => run.counts.crashes += 1,
            End::Stopped => run.counts.stopped += 1,
            End::Closed => run.counts.closed += 1,
        }
        run.disk.restart(run.random.next_u64());
        run.damage();
    }
    run.last_life()?;
    Ok(run.counts)
}

impl Run {
    /// Opens, and compares what is there with what was promised.
    fn open(&mut self) -> Result<Result<(Exchange<SimDisk>, Recorder), OpenError>, String> {
        let recorder = Recorder::default();
        let disk = self.disk.clone();
        let open = Opening {
            progress: &mut |_, _| (),
            faults: self.faults,
        };
        let opened = Exchange::open_with(disk, options(8 << 10), recorder.closure(), open);
        let (exchange, recovered) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let taken = self.model.log.len() as u64;
        self.counts.lost += taken - recovered.commands.min(taken);
        self.counts.kept_unanswered += recovered.commands.saturating_sub(self.model.answered);
        self.counts.fallbacks += u64::from(!recovered.skipped.is_empty());
        must(
            self.damaged.is_some() || recovered.skipped.is_empty(),
            || format!("skipped without need: {:?}", recovered.skipped),
        )?;
        let hash = recorder.hash().ok_or("the state was not published")?;
        self.model.recovered(recovered.commands, hash)?;
        self.counts.left_over += u64::from(exchange.left_over().is_some());
        self.resume(&exchange)?;
        Ok(Ok((exchange, recorder)))
    }

    fn resume(&mut self, exchange: &Exchange<SimDisk>) -> Verdict {
        for user in (1..=USERS as i64).map(UserId) {
            let after = self.random.below(60);
            let mut frames = Vec::new();
            let reports = exchange.reports();
            let resumed = reports.resume(user, ReportNumber(after), &mut frames);
            let least = REPORTS_KEPT as usize;
            self.model.resumed(user, after, least, (resumed, &frames))?;
        }
        Ok(())
    }

    fn life(&mut self) -> Result<End, String> {
        let (mut exchange, recorder) = match self.open()? {
            Ok(opened) => opened,
            Err(error) => {
                self.counts.crashes_in_open += 1;
                return ended(&error.to_string(), false);
            }
        };
        if self.model.log.is_empty() {
            let requests = beginning().map(|command| (Origin::Engine, command));
            self.submit(&mut exchange, &requests, &recorder)?;
            let orders = if self.has_many_orders {
                traffic::many_orders()
            } else {
                Vec::new()
            };
            for some in orders.chunks(650) {
                self.submit(&mut exchange, &by_engine(some), &recorder)?;
            }
        }
        self.send_again(&mut exchange, &recorder)?;
        for _ in 0..self.random.below(80) {
            match self.random.below(24) {
                0 => {
                    exchange.snapshot_now();
                    self.check_retention(&exchange)?;
                }
                1 => self.send_again(&mut exchange, &recorder)?,
                2 => self.ask_again(&mut exchange, &recorder)?,
                3 => {
                    let count = 1 + self.random.below(3);
                    (0..count).for_each(|_| self.disk.fail(Operation::Allocate, 0, Fault::Full));
                }
                4 if self.random.below(8) == 0 => {
                    let kinds = [Operation::WriteNow, Operation::Sync];
                    let kind = kinds[self.random.below(2) as usize];
                    self.disk.fail(kind, self.random.below(3), Fault::Io);
                }
                5 if self.has_many_orders => {
                    let operation = traffic::operation(&mut self.random);
                    self.submit(&mut exchange, &by_engine(&[operation]), &recorder)?;
                }
                _ => self.send(&mut exchange, &recorder)?,
            }
            self.go_on(&mut exchange, &recorder)?;
            let idle = exchange.idle();
            self.check_published(&recorder)?;
            if let Err(failed) = idle {
                return ended(&failed.to_string(), true);
            }
        }
        self.close(exchange, &recorder)
    }

    fn close(&mut self, exchange: Exchange<SimDisk>, recorder: &Recorder) -> Result<End, String> {
        if self.random.below(2) == 0 {
            return Ok(End::Power);
        }
        let commands = exchange.number();
        let closed = exchange.close();
        self.check_published(recorder)?;
        let finished = match closed {
            Ok(finished) => finished,
            Err(ExchangeError::NoRoom(_)) => return Ok(End::Stopped),
            Err(failed) => return ended(&failed.to_string(), true),
        };
        must(self.model.answered == commands, || {
            let answered = self.model.answered;
            format!("closed with {commands} commands; {answered} answered")
        })?;
        self.model.catch_up()?;
        must(
            state_hash(&finished.service.state) == self.model.state_hash(),
            || format!("closed after {commands} commands with another state"),
        )?;
        self.counts.snapshots += u64::from(matches!(finished.snapshot, Ok(Some(_))));
        Ok(End::Closed)
    }

    /// The disk is well: opens, closes, and opens once more.
    fn last_life(&mut self) -> Verdict {
        let (mut exchange, recorder) = self.open()?.map_err(|error| error.to_string())?;
        self.send_again(&mut exchange, &recorder)?;
        self.check_published(&recorder)?;
        let unanswered = self
            .model
            .clients
            .iter()
            .map(|client| client.outstanding.len());
        must(unanswered.sum::<usize>() == 0, || {
            "commands have no answer".into()
        })?;
        let finished = exchange.close().map_err(|failed| failed.to_string())?;
        finished.snapshot.map_err(|failed| failed.to_string())?;
        let (exchange, _) = self.open()?.map_err(|error| error.to_string())?;
        must(exchange.number() == finished.commands, || {
            "others are there".into()
        })
    }

    /// New commands of some sessions, together.
    fn send(&mut self, exchange: &mut Exchange<SimDisk>, recorder: &Recorder) -> Verdict {
        let mut requests = Vec::new();
        for _ in 0..1 + self.random.below(12) {
            if self.random.below(30) == 0 {
                let time = self.model.log.len() as i64;
                requests.push((Origin::Engine, Command::Clock { time }));
                continue;
            }
            let at = self.random.below(self.model.clients.len() as u64) as usize;
            let client = &mut self.model.clients[at];
            if client.outstanding.len() >= ANSWERS_KEPT as usize / 2 {
                continue;
            }
            let command = command(&mut self.random, client.key);
            let sequence = client.next;
            client.next += 1 + self.random.below(2);
            client.outstanding.insert(sequence, command.clone());
            requests.push((origin(client.key, sequence), command));
        }
        self.submit(exchange, &requests, recorder)
    }

    /// Submits the command for what is left over, as a server does, now and then.
    fn go_on(&mut self, exchange: &mut Exchange<SimDisk>, recorder: &Recorder) -> Verdict {
        let Some(command) = exchange.left_over() else {
            return Ok(());
        };
        match self.random.below(10) {
            0 => self.submit(exchange, &by_engine(&[command]), recorder),
            _ => Ok(()),
        }
    }

    /// All that has no answer yet, as after a break.
    fn send_again(&mut self, exchange: &mut Exchange<SimDisk>, recorder: &Recorder) -> Verdict {
        for at in 0..self.model.clients.len() {
            let client = &self.model.clients[at];
            let again = client.outstanding.iter();
            let requests: Vec<(Origin, Command)> = again
                .map(|(sequence, command)| (origin(client.key, *sequence), command.clone()))
                .collect();
            let before = self.model.log.len();
            self.submit(exchange, &requests, recorder)?;
            self.counts.sent_again += (self.model.log.len() - before) as u64;
        }
        Ok(())
    }

    /// Some that had an answer long ago, or just now.
    fn ask_again(&mut self, exchange: &mut Exchange<SimDisk>, recorder: &Recorder) -> Verdict {
        let at = self.random.below(self.model.clients.len() as u64) as usize;
        let client = &self.model.clients[at];
        let skipped = self.random.below(client.answered.len() as u64 + 1) as usize;
        let again = client.answered.iter().skip(skipped).take(3);
        let requests: Vec<(Origin, Command)> = again
            .map(|(sequence, command)| (origin(client.key, *sequence), command.clone()))
            .collect();
        self.submit(exchange, &requests, recorder)
    }

    fn submit(
        &mut self,
        exchange: &mut Exchange<SimDisk>,
        requests: &[(Origin, Command)],
        recorder: &Recorder,
    ) -> Verdict {
        let each = requests.iter().map(|(origin, command)| Submission {
            origin: *origin,
            command,
            tag: 0,
        });
        let mut results = Vec::new();
        exchange.submit_many(each, |at, result| results.push((at, result)));
        must(results.len() == requests.len(), || {
            "not all have a result".into()
        })?;
        for (at, result) in results {
            let (origin, command) = &requests[at];
            self.submitted(*origin, command, result)?;
        }
        self.check_published(recorder)
    }

    fn submitted(
        &mut self,
        origin: Origin,
        command: &Command,
        result: Result<SubmitOutcome, SubmitError>,
    ) -> Verdict {
        match result {
            Ok(SubmitOutcome::New { number }) => self.model.taken(number, origin, command),
            Ok(SubmitOutcome::Pending { number }) => self.model.known(number, origin),
            Ok(SubmitOutcome::Repeat(first)) => {
                self.counts.repeated += 1;
                self.model.repeated(first, origin)
            }
            Err(SubmitError::Refused(Refusal::DiskFull)) => {
                self.counts.refused_full += 1;
                Ok(())
            }
            // The exchange has stopped; what it did is seen when it is opened again.
            Err(SubmitError::Failed(_)) => Ok(()),
            Err(SubmitError::Refused(refusal)) => self.refused(origin, refusal),
            Err(other) => Err(format!("{origin:?}: {other}")),
        }
    }

    /// A sequence that lost its turn to a later one, or whose answer is too old.
    fn refused(&mut self, origin: Origin, refusal: Refusal) -> Verdict {
        let Origin::Session { key, sequence } = origin else {
            return Err(format!("{refusal}"));
        };
        let was_executed = self.model.log.iter().any(|(of, _)| *of == origin);
        let of_session = |(of, _): &&(Origin, Command)| of.key() == Some(key);
        let later = self.model.log.iter().rev().filter(of_session);
        let later = later.take_while(|(of, _)| *of != origin).count();
        let is_right = match refusal {
            Refusal::NotExecuted => !was_executed && later > 0,
            Refusal::AnswerGone => later >= ANSWERS_KEPT as usize,
            _ => false,
        };
        must(is_right, || {
            format!("{origin:?} is refused: {refusal}; executed: {was_executed}, {later} later")
        })?;
        let client = self
            .model
            .clients
            .iter_mut()
            .find(|client| client.key == key);
        if let Some(client) = client {
            client.outstanding.remove(&sequence.0);
        }
        Ok(())
    }

    fn check_published(&mut self, recorder: &Recorder) -> Verdict {
        recorder
            .take()
            .into_iter()
            .try_for_each(|outcome| self.model.published(outcome))
    }

    fn snapshot_names(&self) -> Vec<String> {
        let mut names = self.disk.list().unwrap_or_default();
        names.retain(|name| name.starts_with("snapshot-"));
        names.sort();
        names
    }

    /// The journal is given up to the oldest snapshot: each segment has one command at least.
    fn check_retention(&mut self, exchange: &Exchange<SimDisk>) -> Verdict {
        let stats = exchange.snapshots.stats();
        let (Some(last), None) = (stats.last, stats.failed) else {
            return Ok(());
        };
        // One look: the disk may fail the next.
        let names = self.disk.list().unwrap_or_default();
        let segments = names
            .iter()
            .filter(|name| name.ends_with(".segment"))
            .count() as u64;
        self.counts.snapshots += 1;
        let commands_of = |name: &String| {
            let digits = name.strip_prefix("snapshot-")?.strip_suffix(".thw")?;
            digits.parse::<u64>().ok()
        };
        let oldest = names.iter().filter_map(commands_of).min();
        let oldest = oldest.unwrap_or(last.commands);
        let room = exchange.number() - oldest + 4;
        must(segments <= room, || {
            format!("{segments} segments, and the oldest snapshot has {oldest} commands")
        })
    }

    /// Damages the newest snapshot, where there is one before it.
    fn damage(&mut self) {
        let names = self.snapshot_names();
        self.damaged = self
            .damaged
            .take()
            .filter(|damaged| names.contains(damaged));
        if self.damaged.is_some() || names.len() < 2 || self.random.below(4) > 0 {
            return;
        }
        let newest = &names[names.len() - 1];
        if let Some(mut bytes) = self.disk.contents(newest) {
            let at = 16 + self.random.below(bytes.len() as u64 - 16) as usize;
            bytes[at] ^= 1;
            self.disk.put(newest, bytes);
            self.damaged = Some(newest.clone());
        }
    }
}

fn by_engine(commands: &[Command]) -> Vec<(Origin, Command)> {
    let commands = commands.iter();
    commands
        .map(|command| (Origin::Engine, command.clone()))
        .collect()
}

/// An error is no fault where the disk gave one, or has no power.
fn ended(what: &str, may_stop: bool) -> Result<End, String> {
    if what.contains("the power is off") {
        return Ok(End::Power);
    }
    let is_from_disk = what.contains("Input/output error") || what.contains("no storage space");
    match is_from_disk || may_stop && what.contains("has stopped") {
        true => Ok(End::Stopped),
        false => Err(what.to_owned()),
    }
}
