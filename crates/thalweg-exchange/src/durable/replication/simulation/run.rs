//! One run: what happens to three machines, the log and the clients, one step after another.

use std::collections::BTreeMap;

use thalweg_journal::{Fault, Operation, SimDisk, Storage};
use thalweg_measure::random::SplitMix;
use thalweg_testkit::linearizable::PresenceCall::{self, Look};

use super::Seeded;
use super::history::{self, History};
use super::machine::{Machine, Role};
use super::observer::{Observer, name_of};
use super::world::SimLog;
use crate::command::Command;
use crate::durable::error::SubmitError;
use crate::durable::record::Origin;
use crate::durable::replication::batch::BATCH_VERSION;
use crate::durable::replication::halt_reason::HaltReason;
use crate::durable::simulation::model::origin;
use crate::durable::simulation::{Verdict, counts, must, traffic};
use crate::durable::submission::SubmitOutcome;
use crate::engine::state::apply;
use crate::event::Events;
use crate::result_code::ResultCode;
use crate::session::{Refusal, SessionKey};
use crate::snapshot::state_hash;

const MACHINES: usize = 3;
const STEPS: u64 = 400;
/// Steps of a run for a fault that is rare, or that only clients can find.
const LONGER: u64 = 2_000;
/// Steps in which the log must be readable to its end, once all is well.
const HEALING: u64 = 4_000;

counts! {
    take_overs: "take-overs",
    stale_writers: "stale writers",
    unknown: "unknown outcomes",
    late_writes: "late writes",
    forgotten: "batches given up",
    packed: "packed batches",
    plain: "plain batches",
    crashes: "crashes",
    pauses: "pauses",
    repeated: "repeated answers",
    full_disks: "full disks",
    seeded_directories: "copied directories",
    answered: "answers",
    calls: "calls whose history is linearizable",
    parts: "looks at the log by a machine that has a part of a batch",
}

/// A session, with its commands that have no answer.
struct Client {
    key: SessionKey,
    next: u64,
    outstanding: BTreeMap<u64, Command>,
    /// The machine and its life that it is connected to.
    connected: Option<(usize, u64)>,
    /// The last sequence that was sent over this connection.
    sent: u64,
}

/// The last of the commands that come before all others.
const BEGINNING: u64 = 2;

impl Client {
    fn new(key: SessionKey) -> Self {
        let beginning = match key == traffic::ADMIN {
            true => (1..).zip(traffic::beginning()).collect(),
            false => BTreeMap::new(),
        };
        Self {
            key,
            next: BEGINNING + 1,
            outstanding: beginning,
            connected: None,
            sent: 0,
        }
    }

    /// Calls without an answer explain much: a session that makes them waits for each.
    fn outstanding_max(&self) -> usize {
        if history::is_ours(self.key) { 1 } else { 12 }
    }

    /// Whether there are no users or nothing to trade yet.
    fn must_begin(&self) -> bool {
        let first = self.outstanding.first_key_value();
        first.is_some_and(|(sequence, _)| *sequence <= BEGINNING)
    }
}

struct Run {
    random: SplitMix,
    seeded: Option<Seeded>,
    log: SimLog,
    machines: Vec<Machine>,
    clients: Vec<Client>,
    observer: Observer,
    /// Whether the observer's verdict counts, which may see more than clients do.
    is_observed: bool,
    history: History,
    counts: Counts,
    has_replayed: bool,
}

/// Runs under the observer's eyes.
pub(super) fn run(seed: u64, seeded: Option<Seeded>) -> Result<Counts, String> {
    let mut run = Run::new(seed, seeded);
    // It takes a log that has forgotten much.
    let is_rare = seeded == Some(Seeded::SkipPrevious);
    run.steps(if is_rare { LONGER } else { STEPS })?;
    run.history.check()?;
    run.counts.calls = run.history.len() as u64;
    let world = run.log.world();
    run.counts.unknown = world.unknown;
    run.counts.late_writes = world.late_writes;
    run.counts.forgotten = world.forgotten;
    for seen in world.history.values() {
        let is_packed = seen.bytes[..2] == BATCH_VERSION.to_le_bytes();
        run.counts.packed += u64::from(is_packed);
        run.counts.plain += u64::from(!is_packed);
    }
    run.counts.answered = run.observer.answers.len() as u64;
    Ok(run.counts)
}

/// Runs, and looks only at what the clients of one order have seen until the end, or until a
/// replica halts.
pub(super) fn run_unobserved(seed: u64, seeded: Seeded) -> Verdict {
    let mut run = Run::new(seed, Some(seeded));
    run.is_observed = false;
    let _ = run.steps(LONGER);
    run.history.check()
}

impl Run {
    fn new(seed: u64, seeded: Option<Seeded>) -> Self {
        let sessions = traffic::sessions().into_iter();
        Self {
            random: SplitMix::new(seed),
            seeded,
            log: SimLog::new(seed, seeded),
            machines: (0..MACHINES).map(Machine::new).collect(),
            clients: sessions
                .chain(history::sessions())
                .map(Client::new)
                .collect(),
            observer: Observer::default(),
            is_observed: true,
            history: History::default(),
            counts: Counts::default(),
            has_replayed: false,
        }
    }

    fn steps(&mut self, count: u64) -> Verdict {
        (0..count).try_for_each(|_| self.step())?;
        self.heal()
    }

    fn step(&mut self) -> Verdict {
        match self.random.below(100) {
            0..55 => {
                let at = self.random.below(MACHINES as u64) as usize;
                self.turn(at)
            }
            55..90 => self.send(),
            90..95 => {
                self.log.world().arrive();
                Ok(())
            }
            _ => self.disturb(),
        }
    }

    /// Something goes wrong with a machine.
    fn disturb(&mut self) -> Verdict {
        let at = self.random.below(MACHINES as u64) as usize;
        let node = &mut self.machines[at];
        match self.random.below(10) {
            0 | 1 if !matches!(node.role, Role::Down) => {
                node.crash(self.random.next_u64());
                self.counts.crashes += 1;
            }
            2..5 => {
                node.paused = self.random.below(120);
                self.counts.pauses += 1;
            }
            5 | 9 => node.disk.fail(Operation::Allocate, 0, Fault::Full),
            6 => match &mut node.role {
                Role::Primary(primary) => primary.exchange.snapshot_now(),
                Role::Follower(replica, _) => replica.exchange_mut().snapshot_now(),
                Role::Down => {}
            },
            7 if matches!(self.seeded, Some(Seeded::Diverge | Seeded::DivergeUnseen)) => {
                if let Role::Follower(replica, _) = &mut node.role {
                    let command = Command::cancel_all(None, None);
                    let state = &mut replica.exchange_mut().state;
                    let _ = apply(state, &command, &mut Events::new());
                    node.has_diverged = true;
                }
            }
            7 => {
                let at = node.disk.operations() + 1 + self.random.below(60);
                node.disk.fail_power_at(at);
            }
            8 if self.seeded == Some(Seeded::Replay) && !self.has_replayed => {
                self.log.world().replay();
                self.has_replayed = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// A machine does something.
    fn turn(&mut self, at: usize) -> Verdict {
        let node = &mut self.machines[at];
        if node.paused > 0 {
            node.paused -= 1;
            return Ok(());
        }
        match &mut node.role {
            Role::Down => match self.random.below(4) {
                0 => node.start(self.random.next_u64(), self.seeded),
                _ => Ok(()),
            },
            Role::Follower(..) => self.follow(at),
            Role::Primary(primary) => {
                if self.random.below(3) > 0 {
                    primary.write(&mut self.log);
                    return Ok(());
                }
                let idle = primary.exchange.idle();
                self.check_published(at)?;
                self.ended(at, idle.map(drop))
            }
        }
    }

    /// A follower reads, acts upon what it has read, or claims the log.
    fn follow(&mut self, at: usize) -> Verdict {
        let node = &mut self.machines[at];
        let Role::Follower(replica, read) = &mut node.role else {
            return Ok(());
        };
        let Some(answer) = read.take() else {
            // A log that does not answer is asked again.
            *read = replica.question().ask(&mut self.log).ok();
            return Ok(());
        };
        let taken = replica.take(&answer);
        self.counts.parts += u64::from(replica.has_part_of_a_batch());
        let _ = node.recorder.take();
        let polled = match taken {
            Ok(polled) => polled,
            Err(halted) => return self.halted(at, &halted),
        };
        if polled.may_lead {
            self.counts.take_overs += 1;
            return node.lead(self.seeded).map_err(|halted| halted.to_string());
        }
        // Its clock says that the primary is silent, which may be wrong.
        let may_claim = match polled.revision {
            Some(_) => self.random.below(30) == 0,
            // One machine makes the log.
            None => at == 0,
        };
        if may_claim {
            let nonce = self.random.next_u64();
            let _ = replica.claim(&mut self.log, nonce, &node.name);
        }
        Ok(())
    }

    fn halted(&mut self, at: usize, halted: &HaltReason) -> Verdict {
        match halted {
            HaltReason::NoRoom => {
                self.counts.full_disks += 1;
                Ok(())
            }
            halted if halted.is_transient() => Ok(()),
            halted if halted.to_string().contains("the power is off") => {
                self.machines[at].crash(self.random.next_u64());
                self.counts.crashes += 1;
                Ok(())
            }
            // It has seen the fault. Clients go on.
            _ if !self.is_observed => self.copy_directory(at),
            // The log has given up what it needs: an operator copies another directory.
            HaltReason::Behind { commands, .. } => {
                let oldest = self.log.world().oldest();
                must(oldest.is_some_and(|oldest| oldest > *commands), || {
                    format!("{halted}; the oldest batch is {oldest:?}")
                })?;
                self.copy_directory(at)
            }
            halted => Err(format!("{} halts: {halted}", self.machines[at].name)),
        }
    }

    /// Replaces the directory of a machine by that of one that has most.
    fn copy_directory(&mut self, at: usize) -> Verdict {
        let others = (0..MACHINES).filter(|other| *other != at);
        let commands = |node: &Machine| match &node.role {
            Role::Follower(replica, _) => replica.exchange().number(),
            Role::Primary(primary) => primary.exchange.journaled(),
            Role::Down => 0,
        };
        let Some(from) = others.max_by_key(|other| commands(&self.machines[*other])) else {
            return Ok(());
        };
        // It is stopped for that.
        self.machines[from].crash(self.random.next_u64());
        let copied = copy_of(&self.machines[from].disk)?;
        self.machines[at].role = Role::Down;
        self.machines[at].disk = copied;
        self.counts.seeded_directories += 1;
        Ok(())
    }

    /// An exchange may have stopped: it was fenced, or its disk is full.
    fn ended(
        &mut self,
        at: usize,
        result: Result<(), crate::durable::error::ExchangeError>,
    ) -> Verdict {
        let Err(failed) = result else {
            return Ok(());
        };
        let text = failed.to_string();
        let is_fenced = text.contains("another replica has claimed");
        let is_full = text.contains("no storage space");
        let is_off = text.contains("the power is off");
        self.counts.crashes += u64::from(is_off);
        self.counts.stale_writers += u64::from(is_fenced);
        self.counts.full_disks += u64::from(is_full);
        must(is_fenced || is_full || is_off, || text)?;
        self.machines[at].crash(self.random.next_u64());
        Ok(())
    }

    /// Compares what a primary has published, which its clients hear now.
    fn check_published(&mut self, at: usize) -> Verdict {
        let Role::Primary(primary) = &self.machines[at].role else {
            return Ok(());
        };
        let epoch = primary.sequencer.claim().epoch;
        for (number, origin, result) in self.machines[at].recorder.take() {
            if self.is_observed {
                let world = self.log.world();
                (self.observer).answered(&world, epoch, origin, (number, result))?;
            }
            self.hear(origin, result)?;
        }
        Ok(())
    }

    fn hear(&mut self, origin: Origin, result: ResultCode) -> Verdict {
        let Origin::Session { key, sequence } = origin else {
            return Ok(());
        };
        if let Some(client) = self.clients.iter_mut().find(|client| client.key == key) {
            client.outstanding.remove(&sequence.0);
        }
        self.history.answered(key, sequence.0, result)
    }

    /// A client sends, and one that makes calls.
    fn send(&mut self) -> Verdict {
        if let Some(first) = self.clients.iter().position(Client::must_begin) {
            return self.send_from(first);
        }
        let calls = history::SESSIONS as usize;
        let others = self.clients.len() - calls;
        let who = self.random.below(others as u64) as usize;
        self.send_from(who)?;
        let who = others + self.random.below(calls as u64) as usize;
        self.send_from(who)
    }

    /// A client sends its next command to a machine that takes it, all that has no answer first.
    fn send_from(&mut self, who: usize) -> Verdict {
        let client = &mut self.clients[who];
        let lives: Vec<(usize, u64)> = (self.machines.iter().enumerate())
            .filter(|(_, node)| matches!(node.role, Role::Primary(_)) && node.paused == 0)
            .map(|(at, node)| (at, node.life))
            .collect();
        if lives.is_empty() {
            return Ok(());
        }
        let is_connected = client.connected.is_some_and(|one| lives.contains(&one));
        if !is_connected || self.random.below(16) == 0 {
            let one = lives[self.random.below(lives.len() as u64) as usize];
            (client.connected, client.sent) = (Some(one), 0);
        }
        let at = client.connected.map_or(0, |(at, _)| at);
        if self.random.below(30) == 0 {
            self.clock(at);
        }
        for _ in 0..1 + self.random.below(4) {
            if !self.send_one(who, at)? {
                break;
            }
        }
        self.check_published(at)
    }

    /// The exchange has a command of its own.
    fn clock(&mut self, at: usize) {
        if let Role::Primary(primary) = &mut self.machines[at].role {
            let time = self.history.len() as i64;
            // It is not sent again where there is no room.
            let _ = primary
                .exchange
                .submit(Origin::Engine, &Command::Clock { time }, 0);
        }
    }

    /// Sends one command. Returns whether the next may follow.
    fn send_one(&mut self, who: usize, at: usize) -> Result<bool, String> {
        let client = &mut self.clients[who];
        let Role::Primary(primary) = &mut self.machines[at].role else {
            return Ok(false);
        };
        if !matches!(primary.exchange.room(), Ok(room) if room > 0) {
            return Ok(false);
        }
        let unsent = client.outstanding.range(client.sent + 1..).next();
        let (sequence, command) = match unsent {
            Some((sequence, command)) => (*sequence, command.clone()),
            None if client.outstanding.len() >= client.outstanding_max() => return Ok(false),
            None => {
                let call = PresenceCall::ALL[self.random.below(3) as usize];
                let is_call = history::is_ours(client.key);
                if is_call && self.seeded == Some(Seeded::LookAnywhere) && call == Look {
                    self.look();
                    return Ok(true);
                }
                let command = match is_call {
                    true => history::command(call),
                    false => traffic::command(&mut self.random, client.key),
                };
                let sequence = client.next;
                if is_call {
                    self.history.called(client.key, sequence, call);
                }
                client.next += 1 + self.random.below(2);
                client.outstanding.insert(sequence, command.clone());
                (sequence, command)
            }
        };
        let key = client.key;
        let origin = origin(key, sequence);
        match primary.exchange.submit(origin, &command, 0) {
            Ok(SubmitOutcome::New { .. } | SubmitOutcome::Pending { .. }) => {}
            Ok(SubmitOutcome::Repeat(first)) => {
                self.counts.repeated += 1;
                if self.is_observed {
                    (self.observer).note(origin, (first.number, first.result))?;
                }
                self.clients[who].sent = sequence;
                self.hear(origin, first.result)?;
                return Ok(true);
            }
            Err(SubmitError::Refused(
                Refusal::InFlight { .. } | Refusal::DiskFull | Refusal::Resources,
            )) => return Ok(false),
            Err(SubmitError::Failed(_)) => return Ok(false),
            Err(other) => return Err(format!("{:?}: {other}", name_of(origin))),
        }
        client.sent = sequence;
        Ok(true)
    }

    /// A client looks at the state of any machine, whether that is the primary or not.
    fn look(&mut self) {
        let at = self.random.below(MACHINES as u64) as usize;
        let state = match &self.machines[at].role {
            Role::Follower(replica, _) => replica.exchange().state(),
            Role::Primary(primary) => primary.exchange.state(),
            Role::Down => return,
        };
        self.history.seen(history::is_in(state));
    }

    /// All is well again: every command is answered, and all replicas come to the same state.
    fn heal(&mut self) -> Verdict {
        self.log.world().is_well = true;
        for node in &mut self.machines {
            node.paused = 0;
        }
        let mut is_done = false;
        for _ in 0..HEALING {
            let at = self.random.below(MACHINES as u64) as usize;
            self.log.world().arrive();
            self.turn(at)?;
            self.send_rest()?;
            let is_answered = self
                .clients
                .iter()
                .all(|client| client.outstanding.is_empty());
            if is_answered && self.are_equal() {
                is_done = true;
                break;
            }
        }
        let hash = {
            let world = self.log.world();
            self.observer.close(&world)?
        };
        must(is_done, || {
            format!("the replicas do not come together: {:?}", self.positions())
        })?;
        self.compare(hash)
    }

    /// Clients send what has no answer, and nothing new.
    fn send_rest(&mut self) -> Verdict {
        let primary = self.machines.iter();
        let primary = { primary }.position(|node| matches!(node.role, Role::Primary(_)));
        let Some(at) = primary else {
            return Ok(());
        };
        for who in 0..self.clients.len() {
            let client = &mut self.clients[who];
            let life = Some((at, self.machines[at].life));
            if client.connected != life {
                (client.connected, client.sent) = (life, 0);
            }
            while client_has_unsent(&self.clients[who]) && self.send_one(who, at)? {}
        }
        self.check_published(at)
    }

    fn positions(&self) -> Vec<u64> {
        let number = |node: &Machine| match &node.role {
            Role::Follower(replica, _) => replica.exchange().number(),
            Role::Primary(primary) => primary.exchange.number(),
            Role::Down => 0,
        };
        self.machines.iter().map(number).collect()
    }

    /// Whether all machines run, and have executed all that is in the log.
    fn are_equal(&self) -> bool {
        let world = self.log.world();
        let end = world.history.last_key_value();
        let end = end.map_or(0, |(index, seen)| {
            index + super::observer::count_of(&seen.bytes)
        });
        drop(world);
        let is_idle = |node: &Machine| match &node.role {
            Role::Down => false,
            Role::Follower(..) => true,
            Role::Primary(primary) => primary.exchange.in_flight() == 0,
        };
        self.machines.iter().all(is_idle)
            && self.positions().iter().all(|position| *position == end)
    }

    fn compare(&self, (commands, hash): (u64, u64)) -> Verdict {
        for node in &self.machines {
            let state = match &node.role {
                Role::Follower(replica, _) => replica.exchange().state(),
                Role::Primary(primary) => primary.exchange.state(),
                Role::Down => continue,
            };
            must(state_hash(state) == hash, || {
                format!("{} has another state after {commands} commands", node.name)
            })?;
        }
        Ok(())
    }
}

fn copy_of(disk: &SimDisk) -> Result<SimDisk, String> {
    let copy = SimDisk::new();
    for name in disk.list().map_err(|error| error.to_string())? {
        let contents = disk.contents(&name);
        copy.put(&name, contents.ok_or("a file that is not there")?);
    }
    Ok(copy)
}

fn client_has_unsent(client: &Client) -> bool {
    client.outstanding.range(client.sent + 1..).next().is_some()
}
