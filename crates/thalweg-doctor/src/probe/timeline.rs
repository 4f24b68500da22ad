//! Records which threads ran, waited and were blocked, and when.

use crate::probe::procfs::Scheduled;
use crate::probe::record::{Event, What};
use crate::probe::thread::{EndedSpan, Thread};
use crate::probe::totals::{Sums, Totals};
use crate::recording::State;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The owner of a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Owner {
    #[default]
    Nobody,
    Peer,
    Other,
    /// This process, which would not be there without the observation.
    Doctor,
}

#[derive(Debug, Clone, Copy, Default)]
struct Core {
    pub(crate) owner: Owner,
    tid: i32,
    /// The number of threads of the program that wait for it.
    queued: u64,
    /// The time at which a thread of the program last left it.
    pub(crate) left_ns: u64,
}

/// The maximum number of threads that are remembered after their end.
const GONE_MAX: usize = 20_000;

/// The maximum number of threads whose counts are read where a gap begins and ends.
const SCHEDULED_MAX: usize = 64;

/// The state of the program according to the records, up to the last one.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    pub(crate) threads: HashMap<i32, Thread>,
    pub(crate) gone: Vec<(i32, Thread)>,
    /// The threads whose ends were recorded: some switch once more, and do not count as alive
    /// because of it.
    ended: HashSet<i32>,
    /// The time of the last recorded end of a thread, unless others may have ended after it.
    exit_ns: Option<u64>,
    pub(crate) processes: HashSet<i32>,
    pub(crate) totals: Totals,
    pub(crate) from_ns: u64,
    pub(crate) now_ns: u64,
    /// The number of sleeps that were sampled, and the sum of 1/length over them.
    pub(crate) sleeps: u64,
    pub(crate) sleeps_per_ns: f64,
    /// The time since which all threads are blocked, if they are.
    pub(crate) idle_since_ns: Option<u64>,
    /// The time up to which records were lost.
    lost_ns: Option<u64>,
    gap: Gap,
    cores: Vec<Core>,
    /// By the owner of a core: the number of cores, and of threads of the program that wait there.
    held: [u64; 4],
    queued: [u64; 4],
    /// Whether it is known which thread has which core.
    whole_machine: bool,
    pub(crate) known: bool,
    own_pid: i32,
}

/// The upper limit on the duration of a switch between two threads: 2 to 5 µs (Zen 4, KVM).
const SWITCH_NS: u64 = 10_000;

impl Timeline {
    pub(crate) fn new(from_ns: u64, whole_machine: bool) -> Timeline {
        Timeline {
            from_ns,
            now_ns: from_ns,
            idle_since_ns: Some(from_ns),
            gap: Gap {
                window_from_ns: from_ns,
                ..Gap::default()
            },
            whole_machine,
            known: true,
            own_pid: i32::try_from(std::process::id()).unwrap_or(0),
            ..Timeline::default()
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
            since_ns: now_ns,
            began_before: true,
            counted_ns: now_ns,
            ..Thread::default()
        });
        self.totals.threads_max = self.totals.threads_max.max(self.threads.len());
        new
    }

    /// Sets that an adopted thread wants this core, as `/proc` shows: until the first record,
    /// another thread is assumed to have it.
    pub(crate) fn adopt_wanting(&mut self, tid: i32, core: usize) {
        if self.core(core).owner == Owner::Nobody {
            self.change(core, |core| core.owner = Owner::Other);
        }
        self.set_state(tid, State::Runnable, core, &mut |_| {});
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.began_before = true;
        }
        self.idle_since_ns = self.idle_since_ns.filter(|_| self.is_idle());
    }

    /// Returns the time at which the program ended, if it has, and its end was recorded.
    pub(crate) fn end_ns(&self) -> Option<u64> {
        self.exit_ns.filter(|_| self.threads.is_empty())
    }

    /// Adds the time up to `now_ns` to the current states.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        let span_ns = now_ns.saturating_sub(self.now_ns);
        if span_ns == 0 {
            return;
        }
        if self.gap.is_open() || self.end_ns().is_some() {
            self.now_ns = now_ns;
            return;
        }
        let mut spent = Sums {
            ran_ns: span_ns * self.running(),
            waited_peers_ns: span_ns * self.queued[Owner::Peer as usize],
            waited_others_ns: span_ns * self.queued[Owner::Other as usize],
            ..Sums::default()
        };
        if self.is_busy() {
            self.totals.end_blocked();
        }
        if self.running() + self.queued[Owner::Doctor as usize] > 0 {
            spent.running_ns = span_ns;
        } else if self.is_busy() {
            spent.waiting_ns = span_ns;
        } else if !self.threads.is_empty() {
            spent.blocked_ns = span_ns;
            self.totals.blocked_since_ns += span_ns;
        }
        self.totals.all.add(spent);
        if self.known {
            self.totals.known.add(spent);
        }
        self.totals.others_ns += span_ns * self.held[Owner::Other as usize];
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
    pub(crate) fn apply(&mut self, event: &Event, span: &mut impl FnMut(EndedSpan)) -> Option<u64> {
        self.take_in(event, span);
        let (before, now_ns) = (self.idle_since_ns, self.now_ns);
        self.idle_since_ns = self.is_idle().then(|| before.unwrap_or(now_ns));
        before.filter(|_| self.idle_since_ns.is_none())
    }

    fn take_in(&mut self, event: &Event, span: &mut impl FnMut(EndedSpan)) {
        self.advance(event.time_ns);
        let (pid, tid, core) = (event.pid, event.tid, event.core as usize);
        match &event.what {
            What::In
            | What::Out { .. }
            | What::Woken { .. }
            | What::Sampled(_)
            | What::SeenBlocked
                if self.gap.is_open() => {}
            What::In => self.switched_in(pid, tid, core, span),
            What::Out { preempted } => self.switched_out(pid, tid, core, *preempted, span),
            What::Woken { target } => self.woken(tid, *target as usize, span),
            What::Forked { parent } if self.processes.contains(parent) => {
                let from = self.threads.get(parent);
                let name = from.map_or("".into(), |from| from.name.clone());
                self.adopt(pid, tid, &name);
            }
            What::Exited if self.threads.contains_key(&tid) => {
                // Such a record also says that a program got the rights of another user, whose
                // events the kernel then ends.
                let has_ended = !self.threads[&tid].is_loading;
                self.exited(pid, tid, span);
                self.exit_ns = has_ended.then_some(self.now_ns);
                if self.threads.is_empty() {
                    self.end_gap(self.now_ns, |_, _| None, span);
                }
            }
            What::Named { name, exec } => {
                // A thread that runs another program gets the id of the first thread.
                self.ended.remove(&tid);
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.name = name.clone();
                    thread.is_loading |= exec;
                }
            }
            What::Mapped(_) => {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    thread.is_loading = false;
                }
            }
            // It ran before it was watched, or the record of its start was lost.
            What::Sampled(_) if self.ours(pid, tid) && !self.runs(tid) => {
                self.switched_in(pid, tid, core, span);
            }
            What::Lost(records) => {
                self.totals.lost += records;
                self.lost_ns = self.lost_ns.max(Some(event.time_ns));
            }
            What::SeenBlocked => self.seen_blocked(tid, span),
            _ => {}
        }
    }

    fn runs(&self, tid: i32) -> bool {
        let thread = self.threads.get(&tid);
        thread.is_some_and(|thread| thread.state == State::Running)
    }

    fn core(&mut self, core: usize) -> &mut Core {
        if core >= self.cores.len() {
            self.held[Owner::Nobody as usize] += (core + 1 - self.cores.len()) as u64;
            self.cores.resize(core + 1, Core::default());
        }
        &mut self.cores[core]
    }

    /// Changes a core, and updates the counts that depend on it.
    fn change(&mut self, core: usize, change: impl FnOnce(&mut Core)) {
        let before = *self.core(core);
        change(self.core(core));
        let after = self.cores[core];
        let (old, new) = (before.owner as usize, after.owner as usize);
        self.queued[old] -= before.queued;
        self.queued[new] += after.queued;
        self.held[new] += 1;
        self.held[old] -= 1;
    }

    fn set_state(&mut self, tid: i32, state: State, core: usize, span: &mut impl FnMut(EndedSpan)) {
        let now_ns = self.now_ns;
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        let before = (thread.state, thread.core);
        if thread.state != state {
            span(thread.span(tid, now_ns));
            thread.add(now_ns);
            let from_ns = thread.since_ns;
            // Records arrive late: the sample may belong to a span after this one.
            if thread.slept_ns.is_some_and(|at_ns| at_ns <= now_ns) {
                let slept = thread.state == State::Blocked && thread.slept_ns >= Some(from_ns);
                if slept && !thread.began_before {
                    self.sleeps += 1;
                    self.sleeps_per_ns += 1.0 / (now_ns - from_ns).max(1) as f64;
                }
                thread.slept_ns = None;
            }
            (thread.state, thread.since_ns, thread.began_before) = (state, now_ns, false);
        }
        thread.core = core;
        if before.0 == State::Runnable {
            self.change(before.1, |core| core.queued -= 1);
        }
        if state == State::Runnable {
            self.change(core, |core| core.queued += 1);
        }
    }

    fn switched_in(&mut self, pid: i32, tid: i32, core: usize, span: &mut impl FnMut(EndedSpan)) {
        let owner = if self.ours(pid, tid) {
            self.end_switch(core);
            self.set_state(tid, State::Running, core, span);
            Owner::Peer
        } else if pid == self.own_pid {
            Owner::Doctor
        } else if pid <= 0 {
            Owner::Nobody
        } else {
            Owner::Other
        };
        // A thread whose end was lost does not continue to run, as another thread has its core.
        let before = *self.core(core);
        if before.owner == Owner::Peer && before.tid != tid {
            self.set_state(before.tid, State::Blocked, core, span);
            if let Some(thread) = self.threads.get_mut(&before.tid) {
                thread.began_before = true;
            }
        }
        self.change(core, |core| (core.owner, core.tid) = (owner, tid));
    }

    fn switched_out(
        &mut self,
        pid: i32,
        tid: i32,
        core: usize,
        preempted: bool,
        span: &mut impl FnMut(EndedSpan),
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

    fn woken(&mut self, tid: i32, target: usize, span: &mut impl FnMut(EndedSpan)) {
        let thread = self.threads.get(&tid);
        if thread.is_some_and(|thread| thread.state == State::Blocked) {
            self.set_state(tid, State::Runnable, target, span);
        }
    }

    /// Blocks a thread that was seen blocked, if the record of that may have been lost. The wait
    /// began at an unknown time, up to that of the loss.
    fn seen_blocked(&mut self, tid: i32, span: &mut impl FnMut(EndedSpan)) {
        let thread = self.threads.get(&tid);
        let runs = thread.filter(|it| it.state != State::Blocked && self.is_doubtful(it.since_ns));
        let (Some(core), Some(lost_ns)) = (runs.map(|thread| thread.core), self.lost_ns) else {
            return;
        };
        self.leave_core(tid, core, span);
        if let Some(thread) = self.threads.get_mut(&tid) {
            (thread.since_ns, thread.began_before) = (lost_ns, true);
        }
    }

    /// Returns whether records were lost since this time: what has been so since then may have
    /// changed in between.
    pub(crate) fn is_doubtful(&self, since_ns: u64) -> bool {
        self.lost_ns.is_some_and(|lost_ns| since_ns <= lost_ns)
    }

    fn leave_core(&mut self, tid: i32, core: usize, span: &mut impl FnMut(EndedSpan)) {
        if self.core(core).tid == tid {
            self.change(core, |core| (core.owner, core.tid) = (Owner::Nobody, 0));
        }
        self.set_state(tid, State::Blocked, core, span);
    }

    fn exited(&mut self, pid: i32, tid: i32, span: &mut impl FnMut(EndedSpan)) {
        let core = self.threads[&tid].core;
        self.leave_core(tid, core, span);
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
        // Its first thread may have ended before the others.
        let has_none = || !self.threads.values().any(|thread| thread.pid == pid);
        if (pid == tid || self.has_ended(pid)) && has_none() {
            self.processes.remove(&pid);
        }
    }

    /// Returns whether the end of a thread was noted.
    pub(crate) fn has_ended(&self, tid: i32) -> bool {
        self.ended.contains(&tid)
    }

    /// Drops the threads that are not in `alive`: their ends were not recorded.
    pub(crate) fn forget_others(&mut self, alive: &BTreeSet<i32>) {
        let threads = self.threads.iter();
        let dead = threads.filter(|(tid, _)| !alive.contains(tid));
        let dead: Vec<_> = dead.map(|(&tid, thread)| (thread.pid, tid)).collect();
        for (pid, tid) in dead {
            self.exited(pid, tid, &mut |_| {});
            self.exit_ns = None;
        }
    }

    /// Returns all threads that were seen, including those that have ended.
    pub(crate) fn all_threads(&self) -> impl Iterator<Item = (i32, &Thread)> {
        let alive = self.threads.iter().map(|(&tid, thread)| (tid, thread));
        alive.chain(self.gone.iter().map(|(tid, thread)| (*tid, thread)))
    }

    /// Returns all processes that were seen, including those that have ended.
    pub(crate) fn all_processes(&self) -> HashSet<i32> {
        let gone = self.gone.iter().map(|(_, thread)| thread.pid);
        self.processes.iter().copied().chain(gone).collect()
    }

    /// Ends the spans that are open.
    pub(crate) fn close(&mut self, now_ns: u64, span: &mut impl FnMut(EndedSpan)) {
        self.end_gap(now_ns, Scheduled::with_state, span);
        self.advance(now_ns);
        self.totals.end_blocked();
        let none_ended = self.sleeps == 0;
        for (&tid, thread) in &mut self.threads {
            span(thread.span(tid, now_ns));
            thread.add(now_ns);
            // Where no sleep has ended, the current sleeps are used: their length is a lower bound.
            let sleeps = thread.state == State::Blocked && thread.slept_ns >= Some(thread.since_ns);
            if none_ended && sleeps {
                self.sleeps += 1;
                self.sleeps_per_ns += 1.0 / now_ns.saturating_sub(thread.since_ns).max(1) as f64;
            }
            thread.since_ns = now_ns;
        }
        self.now_ns = now_ns;
    }

    /// Returns the number of threads that run.
    pub(crate) fn running(&self) -> u64 {
        self.held[Owner::Peer as usize]
    }

    /// Returns whether a thread of the program runs or waits for a core.
    pub(crate) fn is_busy(&self) -> bool {
        let queued: u64 = self.queued[Owner::Peer as usize..].iter().sum();
        self.running() + queued > 0
    }

    /// Corrects the sums if a thread of the program gets a core so soon after another one that no
    /// other thread had it in between: the time was that of the switch.
    fn end_switch(&mut self, core: usize) {
        let Core {
            owner,
            queued,
            left_ns,
            ..
        } = *self.core(core);
        let switch_ns = self.now_ns - left_ns;
        if owner != Owner::Other || self.whole_machine || switch_ns > SWITCH_NS {
            return;
        }
        let runs_elsewhere = self.running() > 0;
        let amend = |sums: &mut Sums| {
            let waited_ns = switch_ns * queued;
            sums.waited_others_ns = sums.waited_others_ns.saturating_sub(waited_ns);
            if !runs_elsewhere {
                sums.waiting_ns = sums.waiting_ns.saturating_sub(switch_ns);
                sums.running_ns += switch_ns;
            }
        };
        self.totals.others_ns = self.totals.others_ns.saturating_sub(switch_ns);
        amend(&mut self.totals.all);
        if self.known {
            amend(&mut self.totals.known);
        }
    }

    /// Returns whether switches are currently not recorded.
    pub(crate) fn in_gap(&self) -> bool {
        self.gap.is_open()
    }

    /// Returns whether it is known that no thread is running or runnable.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_busy() && !self.gap.is_open()
    }

    /// Returns the total time for which switches were not recorded.
    pub(crate) fn gaps_ns(&self) -> u64 {
        self.gap.total_ns
    }

    /// Begins a gap: from `now_ns` on, switches are not recorded. The records since the last gap
    /// cost the program `cost_ns`, on all cores. `scheduled` returns what the kernel has counted of
    /// a thread.
    pub(crate) fn begin_gap(
        &mut self,
        now_ns: u64,
        cost_ns: f64,
        scheduled: impl Fn(i32, i32) -> Option<Scheduled>,
        span: &mut impl FnMut(EndedSpan),
    ) {
        self.advance(now_ns);
        let few = self.threads.len() <= SCHEDULED_MAX;
        for (&tid, thread) in &mut self.threads {
            span(thread.span(tid, now_ns));
            thread.add(now_ns);
            thread.scheduled = few.then(|| scheduled(thread.pid, tid)).flatten();
        }
        self.gap = Gap {
            since_ns: Some(now_ns),
            cost_ns,
            threads: self.threads.len(),
            idle_since_ns: self.idle_since_ns.take(),
            ..self.gap
        };
    }

    /// Returns what threads got in the gap, if all of them are known, were blocked in the window
    /// before it, and are blocked at its end. Threads that want a core now wait for one.
    fn got_in_gap(
        &mut self,
        scheduled: impl Fn(i32, i32) -> Option<Scheduled>,
        span: &mut impl FnMut(EndedSpan),
    ) -> Option<Scheduled> {
        let was_idle = self.gap.idle_since_ns? <= self.gap.window_from_ns;
        let same = self.gap.threads == self.threads.len();
        let mut all = Some(Scheduled::default()).filter(|_| was_idle && same);
        let mut wanting = Vec::new();
        for (&tid, thread) in &self.threads {
            let got = (scheduled(thread.pid, tid).zip(thread.scheduled))
                .map(|(now, before)| now.since(before));
            if got.is_some_and(|got| got.wants) {
                wanting.push((tid, thread.core));
            }
            all = all.zip(got).map(|(sum, got)| Scheduled {
                ran_ns: sum.ran_ns + got.ran_ns,
                waited_ns: sum.waited_ns + got.waited_ns,
                runs: sum.runs + got.runs,
                wants: false,
            });
        }
        let none_wants = wanting.is_empty();
        for (tid, core) in wanting {
            self.set_state(tid, State::Runnable, core, span);
        }
        all.filter(|_| none_wants)
    }

    /// Ends a gap: from `now_ns` on, switches are recorded again. Returns whether no thread can
    /// have run in it. The time of the gap, if there was one, is divided among the states as the
    /// kernel counted it, if all threads were blocked in the window before it, otherwise as in that
    /// window. The threads are assumed to be in their previous states, which is as likely as at any
    /// other moment.
    pub(crate) fn end_gap(
        &mut self,
        now_ns: u64,
        scheduled: impl Fn(i32, i32) -> Option<Scheduled>,
        span: &mut impl FnMut(EndedSpan),
    ) -> bool {
        let Some(since_ns) = self.gap.since_ns else {
            return false;
        };
        self.advance(now_ns);
        let gap_ns = self.now_ns - since_ns;
        let window_ns = (since_ns - self.gap.window_from_ns).max(1);
        let factor = gap_ns as f64 / window_ns as f64;
        let often = self.gap.often(&self.totals, window_ns);
        let known = self.got_in_gap(scheduled, span);
        let is_still = known.is_some_and(|known| known.runs == 0);
        match known {
            Some(known) => self.totals.add_gap(gap_ns, known),
            None => {
                self.totals.end_blocked();
                self.totals.repeat(&self.gap.before, factor, often);
            }
        }
        for (&tid, thread) in &mut self.threads {
            if is_still {
                span(thread.span(tid, now_ns));
                thread.add(now_ns);
                thread.mark();
                continue;
            }
            let mut from_ns = thread.counted_ns;
            for (state, length_ns) in thread.repeat(now_ns, often) {
                let to_ns = from_ns + length_ns;
                span(EndedSpan {
                    tid,
                    state,
                    from_ns,
                    to_ns,
                });
                from_ns = to_ns;
            }
            (thread.since_ns, thread.counted_ns, thread.slept_ns) = (now_ns, now_ns, None);
            thread.began_before = true;
            thread.mark();
        }
        let idle_since_ns = self.gap.idle_since_ns.filter(|_| is_still);
        self.gap = Gap {
            window_from_ns: now_ns,
            before: self.totals,
            total_ns: self.gap.total_ns + gap_ns,
            ..Gap::default()
        };
        self.idle_since_ns = (self.is_idle()).then(|| idle_since_ns.unwrap_or(now_ns));
        is_still
    }
}

/// The minimum share of a window that must remain after the cost of its records is subtracted.
const LEFT_MIN: f64 = 0.3;

/// The window that a gap follows, and the gap.
#[derive(Debug, Default)]
struct Gap {
    window_from_ns: u64,
    before: Totals,
    since_ns: Option<u64>,
    /// The time since which all threads were blocked when it began, if they were.
    idle_since_ns: Option<u64>,
    /// The number of threads when it began.
    threads: usize,
    /// The time that the records of the window cost the program.
    cost_ns: f64,
    total_ns: u64,
}

impl Gap {
    /// Returns the factor by which events are more frequent while they are not recorded: the
    /// records lengthen the window by their cost, divided by the number of threads that run at
    /// once.
    fn often(&self, totals: &Totals, window_ns: u64) -> f64 {
        let ran_ns = totals.all.ran_ns - self.before.all.ran_ns;
        let window_ns = window_ns as f64;
        let at_once = (ran_ns as f64 / window_ns).max(1.0);
        let left = 1.0 - self.cost_ns / at_once / window_ns;
        1.0 / left.max(LEFT_MIN)
    }

    fn is_open(&self) -> bool {
        self.since_ns.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::record::{Event, What};
    use crate::recording::State;

    /// Two threads on one core call `sched_yield` in turn; the other one gets the core after
    /// `switch_ns`.
    fn yielding(switch_ns: u64) -> (f64, f64) {
        let mut timeline = Timeline::new(0, false);
        for tid in [7, 8] {
            timeline.adopt(7, tid, "a");
        }
        for turn in 0..1_000_u64 {
            let at_ns = turn * (2_000 + switch_ns);
            let leaves = What::Out { preempted: true };
            for (time_ns, what) in [(at_ns, What::In), (at_ns + 2_000, leaves)] {
                let tid = 7 + (turn % 2) as i32;
                let event = Event {
                    time_ns,
                    core: 0,
                    pid: 7,
                    tid,
                    what,
                };
                timeline.apply(&event, &mut |_| {});
            }
        }
        let all = timeline.totals.all;
        let time_ns = timeline.now_ns as f64;
        (
            all.waited_others_ns as f64 / time_ns,
            all.waiting_ns as f64 / time_ns,
        )
    }

    /// Threads that yield run for 2 µs at a time. The verdict had been CONTAMINATED at 0.87 for a
    /// user who cannot see which thread has a core.
    #[test]
    fn nobody_has_the_core_while_it_switches() {
        let (others, waiting) = yielding(1_500);
        assert!(others < 0.01 && waiting < 0.01, "{others} {waiting}");
        let (others, waiting) = yielding(50_000);
        assert!(others > 0.9 && waiting > 0.9, "{others} {waiting}");
    }

    /// A thread that computed was blocked for as long as it had no record.
    #[test]
    fn a_thread_that_exists_may_want_a_core() {
        let mut timeline = Timeline::new(0, true);
        timeline.adopt(7, 7, "a");
        timeline.adopt_wanting(7, 0);
        assert_eq!(timeline.idle_since_ns, None);
        timeline.advance(300);
        let (all, thread) = (timeline.totals.all, &timeline.threads[&7]);
        assert_eq!((all.waiting_ns, all.waited_others_ns), (300, 300));
        assert!(thread.began_before, "since when is not known");
        timeline.apply(&event(400, What::In), &mut |_| {});
        timeline.advance(1_000);
        let all = timeline.totals.all;
        let states = (all.running_ns, all.waiting_ns, all.blocked_ns);
        assert_eq!(states, (600, 400, 0));
        assert_eq!(timeline.threads[&7].waited_ns, 400);
    }

    /// Records that a program runs another one and computes, and whose events end 4 µs later.
    fn ending(is_mapped: bool) -> Timeline {
        let mut timeline = Timeline::new(0, true);
        timeline.adopt(7, 7, "a");
        let (name, exec) = ("b".into(), true);
        let mapping = What::Mapped(Box::default());
        let events = [
            (1_000, What::In),
            (2_000, What::Named { name, exec }),
            (3_000, mapping),
            (4_000, What::Exited),
        ];
        let events = events
            .into_iter()
            .filter(|(at_ns, _)| is_mapped || *at_ns != 3_000);
        for (time_ns, what) in events {
            timeline.apply(&event(time_ns, what), &mut |_| {});
        }
        timeline
    }

    /// A doctor that had no core at the end of a program counted the time until it had one.
    #[test]
    fn nothing_counts_after_the_last_end() {
        let other = |time_ns, what| Event {
            pid: 99,
            tid: 99,
            ..event(time_ns, what)
        };
        let after = |mut timeline: Timeline| {
            timeline.apply(&other(5_000, What::In), &mut |_| {});
            timeline.advance(100_000);
            (timeline.end_ns(), timeline.totals.others_ns)
        };
        assert_eq!(after(ending(true)), (Some(4_000), 0));
        // The kernel records an end where it ends the events of a program that gets the rights of
        // another user.
        assert_eq!(after(ending(false)), (None, 95_000));
        let mut child = ending(true);
        child.adopt(8, 8, "c");
        assert_eq!(child.end_ns(), None, "another process goes on");
        child.forget_others(&BTreeSet::new());
        assert_eq!(child.end_ns(), None, "when it ended is not known");
    }

    /// The time of a gap is that of the window before it, up to the end only.
    #[test]
    fn a_gap_ends_with_the_program() {
        let mut timeline = Timeline::new(0, true);
        timeline.adopt(7, 7, "a");
        timeline.apply(&event(0, What::In), &mut |_| {});
        timeline.begin_gap(1_000, 0.0, |_, _| None, &mut |_| {});
        timeline.apply(&event(4_000, What::Exited), &mut |_| {});
        timeline.advance(100_000);
        timeline.close(4_000, &mut |_| {});
        let all = timeline.totals.all;
        assert_eq!((all.running_ns, all.all_ns()), (4_000, 4_000));
        assert_eq!((timeline.gaps_ns(), timeline.now_ns), (3_000, 4_000));
    }

    fn event(time_ns: u64, what: What) -> Event {
        Event {
            time_ns,
            core: 0,
            pid: 7,
            tid: 7,
            what,
        }
    }

    /// On a busy machine 190,000 records were lost, and a program that slept for 2 s was never seen
    /// wholly blocked.
    #[test]
    fn a_thread_whose_switch_was_lost_is_blocked_once_it_is_seen_so() {
        let mut timeline = Timeline::new(0, true);
        timeline.adopt(7, 7, "a");
        let mut apply = |time_ns, what| {
            timeline.apply(&event(time_ns, what), &mut |_| {});
            (timeline.is_idle(), timeline.threads[&7].since_ns)
        };
        assert_eq!(apply(10, What::In), (false, 10));
        assert_eq!(apply(20, What::SeenBlocked), (false, 10), "none was lost");
        assert_eq!(apply(30, What::Lost(5)), (false, 10));
        assert_eq!(apply(40, What::SeenBlocked), (true, 30));
        assert_eq!(apply(50, What::In), (false, 50));
        assert_eq!(apply(60, What::SeenBlocked), (false, 50), "none since");
        assert!(timeline.is_doubtful(30) && !timeline.is_doubtful(31));
        assert_eq!(timeline.running(), 1, "the core was free");
        timeline.apply(&event(70, What::Lost(1)), &mut |_| {});
        timeline.begin_gap(80, 0.0, |_, _| None, &mut |_| {});
        timeline.apply(&event(90, What::SeenBlocked), &mut |_| {});
        assert_eq!(timeline.threads[&7].state, State::Running, "a gap");
    }

    /// The doctor's own time made a thread that computes look blocked, the more the busier the
    /// machine was.
    #[test]
    fn a_thread_that_waits_for_the_doctor_is_not_blocked() {
        let mut timeline = Timeline::new(0, true);
        timeline.adopt(7, 7, "a");
        let own = std::process::id().cast_signed();
        for at_ns in (0..100_000).step_by(1_000) {
            for (time_ns, pid, what) in [
                (at_ns, 7, What::In),
                (at_ns + 400, 7, What::Out { preempted: true }),
                (at_ns + 400, own, What::In),
                (at_ns + 1_000, own, What::Out { preempted: true }),
            ] {
                let event = Event {
                    pid,
                    tid: pid,
                    ..event(time_ns, what)
                };
                timeline.apply(&event, &mut |_| {});
            }
        }
        let all = timeline.totals.all;
        let states = (all.running_ns, all.waiting_ns, all.blocked_ns);
        assert_eq!((states, all.ran_ns), ((100_000, 0, 0), 40_000));
    }

    /// Adds a window in which a thread runs for a quarter of the time, in spans of 1 µs.
    fn window(timeline: &mut Timeline, from_ns: u64, spans: u64, pasts: &mut Vec<EndedSpan>) {
        for at_ns in (0..spans).map(|round| from_ns + 4_000 * round) {
            for (time_ns, what) in [
                (at_ns, What::In),
                (at_ns + 1_000, What::Out { preempted: false }),
            ] {
                timeline.apply(&event(time_ns, what), &mut |past| pasts.push(past));
            }
        }
    }

    #[test]
    fn a_thread_that_ended_is_not_there_again() {
        let mut timeline = Timeline::new(0, true);
        timeline.adopt(7, 7, "a");
        let other = |time_ns, what| Event {
            tid: 8,
            ..event(time_ns, what)
        };
        let events = [
            other(0, What::Forked { parent: 7 }),
            other(1_000, What::In),
            // The thread still has to leave its core, is preempted in between, and its last switch
            // has no thread id.
            other(2_000, What::Exited),
            other(3_000, What::Out { preempted: true }),
            other(4_000, What::In),
            Event {
                pid: -1,
                tid: -1,
                ..other(5_000, What::Out { preempted: false })
            },
        ];
        for event in &events {
            timeline.apply(event, &mut |_| {});
        }
        assert_eq!(timeline.threads.len(), 1, "the first one");
        timeline.apply(&other(6_000, What::Forked { parent: 7 }), &mut |_| {});
        timeline.apply(&other(7_000, What::In), &mut |_| {});
        assert_eq!(
            timeline.threads[&8].state,
            State::Running,
            "its number again"
        );
        assert_eq!(timeline.totals.threads_max, 2);
    }

    /// A program that waits beside others that switch often: windows of 5 ms, gaps of 250. Its
    /// waits came out as long as a window.
    #[test]
    fn a_thread_that_never_switched_is_where_it_was() {
        let waits = |runs: &dyn Fn(u64) -> Scheduled| {
            let mut timeline = Timeline::new(0, true);
            for tid in [7, 8] {
                timeline.adopt(7, tid, "a");
            }
            let other = Event {
                pid: 99,
                tid: 99,
                ..event(0, What::In)
            };
            timeline.apply(&other, &mut |_| {});
            let mut pasts = Vec::new();
            let mut still = 0;
            for round in 0..10 {
                let (from_ns, to_ns) = (round * 255_000_000 + 5_000_000, (round + 1) * 255_000_000);
                let span = &mut |past| pasts.push(past);
                timeline.begin_gap(from_ns, 0.0, |_, _| Some(runs(round)), span);
                still += u64::from(timeline.end_gap(to_ns, |_, _| Some(runs(round + 1)), span));
            }
            timeline.close(2_560_000_000, &mut |past| pasts.push(past));
            let spent: u64 = pasts.iter().map(|past| past.to_ns - past.from_ns).sum();
            assert_eq!(spent, 2 * 2_560_000_000);
            (still, timeline.totals)
        };
        let idle = |_| Scheduled {
            runs: 3,
            ..Scheduled::default()
        };
        let (still, totals) = waits(&idle);
        assert_eq!((still, totals.all.blocked_ns), (10, 2_560_000_000));
        assert_eq!(totals.blocked_mean_ns(), Some(2.56e9));
        // They want a core, and have got none all the time: they were not blocked.
        let starved = |_| Scheduled {
            wants: true,
            ..idle(0)
        };
        let (still, totals) = waits(&starved);
        assert_eq!(still, 0);
        assert!(totals.all.waiting_ns > 0, "{totals:?}");
        // Each of the two threads runs once in a gap, for 1 ms.
        let (still, totals) = waits(&|round| Scheduled {
            ran_ns: round * 1_000_000,
            runs: 1 + round,
            ..Scheduled::default()
        });
        assert_eq!((still, totals.switches_blocked), (0, 20));
        assert_eq!(totals.all.running_ns, 20_000_000);
        let mean_ns = totals.blocked_mean_ns().expect("it was blocked");
        assert!((80e6..180e6).contains(&mean_ns), "{mean_ns}");
    }

    #[test]
    fn a_gap_is_spent_as_the_window_before_it() {
        let mut timeline = Timeline::new(0, true);
        timeline.adopt(7, 7, "a");
        let mut pasts = Vec::new();
        window(&mut timeline, 0, 1_000, &mut pasts);
        let unknown = |_, _| None;
        timeline.begin_gap(4_000_000, 0.0, unknown, &mut |past| pasts.push(past));
        assert_eq!(timeline.idle_since_ns, None, "unknown is not idle");
        // A late record of a switch must not be used.
        timeline.apply(&event(5_000_000, What::In), &mut |past| pasts.push(past));
        timeline.end_gap(24_000_000, unknown, &mut |past| pasts.push(past));
        window(&mut timeline, 24_000_000, 1_000, &mut pasts);
        let cost_ns = 2_000_000.0;
        timeline.begin_gap(28_000_000, cost_ns, unknown, &mut |past| pasts.push(past));
        timeline.close(40_000_000, &mut |past| pasts.push(past));
        let totals = timeline.totals;
        assert_eq!(totals.all.running_ns, 10_000_000);
        assert_eq!(totals.all.blocked_ns, 30_000_000);
        // Half of the second window is the cost of its records.
        assert_eq!(totals.switches_blocked, 1_000 + 5_000 + 1_000 + 2 * 3_000);
        assert_eq!(timeline.gaps_ns(), 32_000_000);
        let mean_ns = totals.blocked_mean_ns().expect("it was blocked");
        assert!((2_900.0..3_100.0).contains(&mean_ns), "{mean_ns}");
        let thread = &timeline.threads[&7];
        assert_eq!((thread.ran_ns, thread.blocks), (10_000_000, 13_000));
        // The spans have no gaps between them and are in order.
        let mut end_ns = 0;
        for past in &pasts {
            assert_eq!(past.from_ns, end_ns);
            end_ns = past.to_ns;
        }
        assert_eq!(end_ns, 40_000_000);
        let ran = pasts.iter().filter(|past| past.state == State::Running);
        assert_eq!(
            ran.map(|past| past.to_ns - past.from_ns).sum::<u64>(),
            10_000_000
        );
    }
}
