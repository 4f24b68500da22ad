//! Records which threads ran, waited and were blocked, and when.

use super::gap::Gap;
use super::record::{Event, What};
pub(crate) use super::sums::Thread;
use super::sums::{Sums, Totals};
use crate::recording::State;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The owner of a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Owner {
    #[default]
    Nobody,
    Peer,
    Other,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Core {
    pub(super) owner: Owner,
    tid: i32,
    /// The number of threads of the program that wait for it.
    pub(super) queued: u64,
    /// The time at which a thread of the program last left it.
    pub(super) left_ns: u64,
}

/// The maximum number of threads that are remembered after their end.
const GONE_MAX: usize = 20_000;

/// A span of a thread's life that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Past {
    pub(crate) tid: i32,
    pub(crate) state: State,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// The state of the program according to the records, up to the last one.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) threads: HashMap<i32, Thread>,
    pub(crate) gone: Vec<(i32, Thread)>,
    /// The threads whose ends were recorded: some switch once more, and do not count as alive
    /// because of it.
    ended: HashSet<i32>,
    pub(crate) processes: HashSet<i32>,
    pub(crate) totals: Totals,
    pub(crate) from_ns: u64,
    pub(crate) now_ns: u64,
    /// The number of sleeps that were sampled, and the sum of 1/length over them.
    pub(crate) sleeps: u64,
    pub(crate) sleeps_per_ns: f64,
    /// The time since which all threads are blocked, if they are.
    pub(crate) idle_since_ns: Option<u64>,
    pub(super) gap: Gap,
    cores: Vec<Core>,
    pub(super) running: u64,
    queued_peers: u64,
    queued_others: u64,
    others: u64,
    /// Whether it is known which thread has which core.
    pub(super) whole_machine: bool,
    pub(super) known: bool,
    own_pid: i32,
}

impl Timeline {
    pub(crate) fn new(from_ns: u64, whole_machine: bool) -> Timeline {
        Timeline {
            threads: HashMap::new(),
            gone: Vec::new(),
            ended: HashSet::new(),
            processes: HashSet::new(),
            totals: Totals::default(),
            from_ns,
            now_ns: from_ns,
            sleeps: 0,
            sleeps_per_ns: 0.0,
            idle_since_ns: Some(from_ns),
            gap: Gap::new(from_ns),
            cores: Vec::new(),
            running: 0,
            queued_peers: 0,
            queued_others: 0,
            others: 0,
            whole_machine,
            known: true,
            own_pid: i32::try_from(std::process::id()).unwrap_or(0),
        }
    }

    /// Adds a thread that exists. Returns whether its process is new.
    pub(crate) fn adopt(&mut self, pid: i32, tid: i32, name: &str) -> bool {
        self.ended.remove(&tid);
        let new = self.processes.insert(pid);
        self.totals.processes += u64::from(new);
        let now_ns = self.now_ns;
        self.threads.entry(tid).or_insert_with(|| Thread {
            pid,
            name: name.into(),
            state: State::Blocked,
            since_ns: now_ns,
            core: 0,
            gone_ns: None,
            ran_ns: 0,
            waited_ns: 0,
            blocked_ns: 0,
            slept_ns: None,
            blocks: 0,
            before: ([0; 3], 0),
        });
        self.totals.threads_max = self.totals.threads_max.max(self.threads.len());
        new
    }

    /// Adds the time up to `now_ns` to the current states.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        let span_ns = now_ns.saturating_sub(self.now_ns);
        if span_ns == 0 {
            return;
        }
        if self.gap.is_open() {
            self.now_ns = now_ns;
            return;
        }
        let mut spent = Sums {
            ran_ns: span_ns * self.running,
            waited_peers_ns: span_ns * self.queued_peers,
            waited_others_ns: span_ns * self.queued_others,
            ..Sums::default()
        };
        if self.running + self.queued_peers + self.queued_others > 0 {
            self.totals.end_blocked();
        }
        if self.running > 0 {
            spent.running_ns = span_ns;
        } else if self.queued_peers + self.queued_others > 0 {
            spent.waiting_ns = span_ns;
        } else if !self.threads.is_empty() {
            spent.blocked_ns = span_ns;
            self.totals.blocked_since_ns += span_ns;
        }
        self.totals.all.add(spent);
        if self.known {
            self.totals.known.add(spent);
        }
        self.totals.others_ns += span_ns * self.others;
        self.now_ns = now_ns;
    }

    /// Sets whether wake-ups are recorded from `now_ns` on.
    pub(crate) fn set_known(&mut self, known: bool, now_ns: u64) {
        self.advance(now_ns);
        self.known = known;
    }

    /// Returns whether it is a thread of the program.
    fn ours(&mut self, pid: i32, tid: i32) -> bool {
        if self.threads.contains_key(&tid) {
            return true;
        }
        let ours = self.processes.contains(&pid) && tid > 0 && !self.ended.contains(&tid);
        if ours {
            self.adopt(pid, tid, "");
        }
        ours
    }

    /// Applies an event; events must be in the order of time. If it ends a span in which all
    /// threads were blocked, returns the beginning of that span.
    pub(crate) fn apply(&mut self, event: &Event, span: &mut impl FnMut(Past)) -> Option<u64> {
        self.take_in(event, span);
        let (before, now_ns) = (self.idle_since_ns, self.now_ns);
        self.idle_since_ns = self.is_idle().then(|| before.unwrap_or(now_ns));
        before.filter(|_| self.idle_since_ns.is_none())
    }

    fn take_in(&mut self, event: &Event, span: &mut impl FnMut(Past)) {
        self.advance(event.time_ns);
        let (pid, tid, core) = (event.pid, event.tid, event.core as usize);
        match &event.what {
            What::In | What::Out { .. } | What::Woken { .. } | What::Ticked(_)
                if self.gap.is_open() => {}
            What::In => self.switched_in(pid, tid, core, span),
            What::Out { preempted } => self.switched_out(pid, tid, core, *preempted, span),
            What::Woken { target } => self.woken(tid, *target as usize, span),
            What::Forked { parent } if self.processes.contains(parent) => {
                let from = self.threads.get(parent);
                let name = from.map_or("".into(), |from| from.name.clone());
                self.adopt(pid, tid, &name);
            }
            What::Exited if self.threads.contains_key(&tid) => self.exited(pid, tid, span),
            What::Named { name, .. } => {
                // A thread that runs another program gets the id of the first thread.
                self.ended.remove(&tid);
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.name = name.clone();
                }
            }
            // It ran before it was watched, or the record of its start was lost.
            What::Ticked(_) if self.ours(pid, tid) && !self.runs(tid) => {
                self.switched_in(pid, tid, core, span);
            }
            What::Lost(records) => self.totals.lost += records,
            What::Throttled => self.totals.throttled += 1,
            _ => {}
        }
    }

    fn runs(&self, tid: i32) -> bool {
        let thread = self.threads.get(&tid);
        thread.is_some_and(|thread| thread.state == State::Running)
    }

    pub(super) fn core(&mut self, core: usize) -> &mut Core {
        if core >= self.cores.len() {
            self.cores.resize(core + 1, Core::default());
        }
        &mut self.cores[core]
    }

    /// Changes a core, and updates the counts that depend on it.
    fn change(&mut self, core: usize, change: impl FnOnce(&mut Core)) {
        let before = *self.core(core);
        change(self.core(core));
        let after = self.cores[core];
        let count = |core: Core, owner| if core.owner == owner { core.queued } else { 0 };
        let is = |core: Core, owner| u64::from(core.owner == owner);
        self.queued_peers -= count(before, Owner::Peer);
        self.queued_peers += count(after, Owner::Peer);
        self.queued_others -= count(before, Owner::Other);
        self.queued_others += count(after, Owner::Other);
        self.running -= is(before, Owner::Peer);
        self.running += is(after, Owner::Peer);
        self.others -= is(before, Owner::Other);
        self.others += is(after, Owner::Other);
    }

    fn set_state(&mut self, tid: i32, state: State, core: usize, span: &mut impl FnMut(Past)) {
        let now_ns = self.now_ns;
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let before = (thread.state, thread.core);
        if thread.state != state {
            thread.add(now_ns);
            let from_ns = thread.since_ns;
            // Records arrive late: the sample may belong to a span after this one.
            if thread.slept_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                if thread.state == State::Blocked && thread.slept_ns >= Some(from_ns) {
                    self.sleeps += 1;
                    self.sleeps_per_ns += 1.0 / (now_ns - from_ns).max(1) as f64;
                }
                thread.slept_ns = None;
            }
            span(Past {
                tid,
                state: thread.state,
                from_ns,
                to_ns: now_ns,
            });
            (thread.state, thread.since_ns) = (state, now_ns);
        }
        thread.core = core;
        if before.0 == State::Runnable {
            self.change(before.1, |core| core.queued -= 1);
        }
        if state == State::Runnable {
            self.change(core, |core| core.queued += 1);
        }
    }

    fn switched_in(&mut self, pid: i32, tid: i32, core: usize, span: &mut impl FnMut(Past)) {
        let owner = if self.ours(pid, tid) {
            self.end_switch(core);
            self.set_state(tid, State::Running, core, span);
            Owner::Peer
        } else if pid <= 0 || pid == self.own_pid {
            Owner::Nobody
        } else {
            Owner::Other
        };
        // A thread whose end was lost does not continue to run, as another thread has its core.
        let before = *self.core(core);
        if before.owner == Owner::Peer && before.tid != tid {
            self.set_state(before.tid, State::Blocked, core, span);
        }
        self.change(core, |core| (core.owner, core.tid) = (owner, tid));
    }

    fn switched_out(
        &mut self,
        pid: i32,
        tid: i32,
        core: usize,
        preempted: bool,
        span: &mut impl FnMut(Past),
    ) {
        if self.ours(pid, tid) {
            let (switches, state) = match preempted {
                true => (&mut self.totals.switches_preempted, State::Runnable),
                false => (&mut self.totals.switches_blocked, State::Blocked),
            };
            *switches += 1;
            self.set_state(tid, state, core, span);
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.blocks += u64::from(!preempted);
            }
        }
        // The thread that preempted it has the core; if it is one of ours, its record follows.
        let taken = preempted && !self.whole_machine;
        let owner = if taken { Owner::Other } else { Owner::Nobody };
        let left_ns = self.now_ns;
        self.change(core, |core| {
            (core.owner, core.tid, core.left_ns) = (owner, 0, left_ns)
        });
    }

    fn woken(&mut self, tid: i32, target: usize, span: &mut impl FnMut(Past)) {
        let thread = self.threads.get(&tid);
        if thread.is_some_and(|thread| thread.state == State::Blocked) {
            self.set_state(tid, State::Runnable, target, span);
        }
    }

    fn exited(&mut self, pid: i32, tid: i32, span: &mut impl FnMut(Past)) {
        let core = self.threads[&tid].core;
        if self.core(core).tid == tid {
            self.change(core, |core| (core.owner, core.tid) = (Owner::Nobody, 0));
        }
        self.set_state(tid, State::Blocked, core, span);
        if let Some(mut thread) = self.threads.remove(&tid) {
            thread.add(self.now_ns);
            thread.gone_ns = Some(self.now_ns);
            if self.gone.len() < GONE_MAX {
                self.gone.push((tid, thread));
            }
            if self.ended.len() >= GONE_MAX {
                self.ended.clear();
            }
            self.ended.insert(tid);
        }
        if pid == tid && !self.threads.values().any(|thread| thread.pid == pid) {
            self.processes.remove(&pid);
        }
    }

    /// Drops the threads that are not in `alive`: their ends were not recorded.
    pub(crate) fn forget_others(&mut self, alive: &BTreeSet<i32>) {
        let threads = self.threads.iter();
        let dead = threads.filter(|(tid, _)| !alive.contains(tid));
        let dead: Vec<_> = dead.map(|(&tid, thread)| (thread.pid, tid)).collect();
        for (pid, tid) in dead {
            self.exited(pid, tid, &mut |_| {});
        }
    }

    /// Returns all processes that were seen, including those that have ended.
    pub(crate) fn all_processes(&self) -> HashSet<i32> {
        let gone = self.gone.iter().map(|(_, thread)| thread.pid);
        self.processes.iter().copied().chain(gone).collect()
    }

    /// Ends the spans that are open.
    pub(crate) fn close(&mut self, now_ns: u64, span: &mut impl FnMut(Past)) {
        self.end_gap(now_ns, span);
        self.advance(now_ns);
        self.totals.end_blocked();
        let none_ended = self.sleeps == 0;
        for (&tid, thread) in &mut self.threads {
            thread.add(now_ns);
            // Where no sleep has ended, the current sleeps are used: their length is a lower bound.
            let sleeps = thread.state == State::Blocked && thread.slept_ns >= Some(thread.since_ns);
            if none_ended && sleeps {
                self.sleeps += 1;
                self.sleeps_per_ns += 1.0 / now_ns.saturating_sub(thread.since_ns).max(1) as f64;
            }
            span(Past {
                tid,
                state: thread.state,
                from_ns: thread.since_ns,
                to_ns: now_ns,
            });
            thread.since_ns = now_ns;
        }
    }

    /// Returns whether a thread of the program runs or waits for a core.
    pub(crate) fn is_busy(&self) -> bool {
        self.running + self.queued_peers + self.queued_others > 0
    }
}
