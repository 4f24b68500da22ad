//! Turns of users: the user that has caused the least work is next.
//!
//! Start-time fair queueing (Goyal, Vin, Cheng 1996) by counted [work](thalweg_exchange::Events).
//! Each holder of keys has a virtual finish time, which the turns of all his sessions move on: by
//! the work that they are expected to be when they are asked for, and by what they were when they
//! end. The turn goes to the session with the lowest start, and virtual time is that of the last
//! turn. So a holder that was idle comes before busy ones, a single holder never waits, and a
//! holder that sends expensive commands has fewer turns. An administrator comes first.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use thalweg_exchange::session::{Role, SessionKey};

use crate::token_bucket::TokenBucket;

/// Work of a turn, about: some 20 to 50 µs.
pub(crate) const TURN_WORK: u64 = 256;
/// Commands of a turn, at most.
pub(crate) const COMMANDS_MAX: usize = 64;
/// Beyond this many holders, those without a connection or work to make up for are forgotten.
const HOLDERS_KEPT: usize = 1 << 12;
/// Frames that cost no tokens, such as heartbeats and refused commands, which a holder may send a
/// second, and at once; his connections are read no further while he has sent more.
const FREE_FRAMES: u32 = 10_000;

/// Work of a report that a gateway follows: it is logged, applied and made an event, for all users
/// by one thread.
const COPIED_REPORT_WORK: u64 = 8;
/// Reports that a holder's commands may leave in the drop copy since it was half full, before his
/// turns have pauses.
const COPIED_FREE: u64 = 1 << 12;

/// A slot in the table of sessions, and its generation: how many sessions have had it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SessionId {
    slot: u32,
    generation: u32,
}

impl SessionId {
    pub(crate) const fn new(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }

    pub(crate) const fn slot(self) -> usize {
        self.slot as usize
    }

    /// Returns the tag of its commands.
    pub(crate) const fn tag(self) -> u64 {
        (self.generation as u64) << 32 | self.slot as u64
    }

    pub(crate) const fn of_tag(tag: u64) -> Self {
        Self::new(tag as u32, (tag >> 32) as u32)
    }
}

/// The slot of a holder's account in its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HolderId(usize);

/// The kind of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnKind {
    /// The frames that its client sent are taken.
    Input,
    /// It is given market data.
    Market,
    /// The market that trades beside the sessions submits what is due.
    Flow,
}

/// Where a session waits: its virtual start, its arrival, and the work that is expected of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    start: u64,
    arrival: u64,
    expected: u64,
}

/// The work that a holder has caused; all its sessions share it.
#[derive(Debug)]
struct Holder {
    id: (Role, i64),
    /// Connections that are open.
    sessions: usize,
    /// Symbols that they name in their subscriptions.
    symbols: usize,
    /// The virtual time at which the turns that he has had or waits for end.
    finish: u64,
    /// The work of one of his commands, of late, and of one of his turns.
    command_work: u64,
    turn_work: u64,
    free_frames: TokenBucket,
    /// A time at which the drop copy was half full, and the reports in it since then.
    copied: (u64, u64),
}

impl Holder {
    fn is_first(&self) -> bool {
        self.id.0 == Role::Admin
    }
}

/// Returns a figure of late: it rises at once, and falls by an eighth a turn.
fn of_late(before: u64, now: u64) -> u64 {
    now.max(before - before.div_ceil(8))
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    /// Virtual time: when the last turn began.
    now: u64,
    /// By virtual start time, then in order of arrival.
    ready: BTreeMap<(u64, u64), (SessionId, TurnKind)>,
    arrivals: u64,
    holders: Vec<Option<Holder>>,
    vacant: Vec<usize>,
    by_id: HashMap<(Role, i64), usize>,
    is_copy_half_full: bool,
    /// How often the drop copy became half full.
    copy_fills: u64,
}

impl Scheduler {
    fn holder(&mut self, id: HolderId) -> &mut Holder {
        self.holders[id.0]
            .as_mut()
            .expect("a holder with a session or debt is kept")
    }

    /// Opens the account of a session's holder, or adds a session to it.
    pub(crate) fn enter(&mut self, key: SessionKey, time: Instant) -> HolderId {
        let holder = self.account(key, time);
        self.holder(holder).sessions += 1;
        holder
    }

    /// Returns the account of a holder, who may have no session now.
    fn account(&mut self, key: SessionKey, time: Instant) -> HolderId {
        // One who trades and reads is one user.
        let role = match key.role {
            Role::Read => Role::Trade,
            role => role,
        };
        let id = (role, key.holder);
        if let Some(at) = self.by_id.get(&id) {
            return HolderId(*at);
        }
        if self.by_id.len() >= HOLDERS_KEPT {
            self.forget_idle();
        }
        let holder = Holder {
            id,
            sessions: 0,
            symbols: 0,
            finish: self.now,
            command_work: 1,
            turn_work: 1,
            free_frames: TokenBucket::new(FREE_FRAMES, FREE_FRAMES, time),
            copied: (0, 0),
        };
        let at = self.vacant.pop().unwrap_or_else(|| {
            self.holders.push(None);
            self.holders.len() - 1
        });
        self.holders[at] = Some(holder);
        self.by_id.insert(id, at);
        HolderId(at)
    }

    /// Takes a session that names this number of symbols off its holder's account, which is kept:
    /// he may come again.
    pub(crate) fn leave(&mut self, holder: HolderId, symbols: usize) {
        let holder = self.holder(holder);
        holder.sessions -= 1;
        holder.symbols -= symbols;
    }

    /// Notes that a session names another number of symbols than before. Returns how many all of
    /// its holder name.
    pub(crate) fn name(&mut self, holder: HolderId, before: usize, after: usize) -> usize {
        let holder = self.holder(holder);
        holder.symbols = holder.symbols - before + after;
        holder.symbols
    }

    fn forget_idle(&mut self) {
        for (at, slot) in self.holders.iter_mut().enumerate() {
            let is_idle = |holder: &mut Holder| holder.sessions == 0 && holder.finish <= self.now;
            if let Some(holder) = slot.take_if(is_idle) {
                self.by_id.remove(&holder.id);
                self.vacant.push(at);
            }
        }
    }

    /// Lets a session wait for a turn. So its holder's sessions that wait together come one after
    /// the other.
    pub(crate) fn wait(&mut self, session: SessionId, kind: TurnKind, holder: HolderId) -> Ticket {
        let now = self.now;
        let holder = self.holder(holder);
        let (start, expected) = match holder.is_first() {
            true => (0, 0),
            // Behind administrators, also at the beginning of time.
            false => (holder.finish.max(now).max(1), holder.turn_work),
        };
        holder.finish = start + expected;
        self.arrivals += 1;
        let arrival = self.arrivals;
        self.ready.insert((start, arrival), (session, kind));
        Ticket {
            start,
            arrival,
            expected,
        }
    }

    /// Takes a session out that waits, or has a turn that was no work.
    pub(crate) fn cancel(&mut self, ticket: Ticket, holder: HolderId) {
        self.ready.remove(&(ticket.start, ticket.arrival));
        let holder = self.holder(holder);
        holder.finish = holder.finish.saturating_sub(ticket.expected);
    }

    /// Returns the session that is next, and what for.
    pub(crate) fn next(&mut self) -> Option<(SessionId, TurnKind)> {
        let ((start, _), next) = self.ready.pop_first()?;
        self.now = self.now.max(start);
        Some(next)
    }

    /// Returns whether a session waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Ends a turn, in which a holder's commands were this work.
    pub(crate) fn end(&mut self, ticket: Ticket, holder: HolderId, commands: usize, work: u64) {
        let holder = self.holder(holder);
        if !holder.is_first() {
            holder.finish = holder.finish.saturating_sub(ticket.expected) + work;
        }
        holder.turn_work = of_late(holder.turn_work, work);
        if let Some(each) = work.checked_div(commands as u64) {
            holder.command_work = of_late(holder.command_work, each);
        }
    }

    /// Adds work that a holder has caused.
    pub(crate) fn charge(&mut self, holder: HolderId, work: u64) {
        let now = self.now;
        let holder = self.holder(holder);
        holder.finish = holder.finish.max(now) + work;
    }

    /// Adds the work of reports that a gateway follows, to the account of the holder of the session
    /// that sent their command: the session may have gone since.
    pub(crate) fn charge_copied(&mut self, key: SessionKey, reports: u64, time: Instant) {
        let holder = self.account(key, time);
        self.charge(holder, COPIED_REPORT_WORK * reports);
        let fills = self.copy_fills;
        let (of, count) = &mut self.holder(holder).copied;
        if *of != fills {
            (*of, *count) = (fills, 0);
        }
        *count += reports;
    }

    /// Notes whether the drop copy is half full.
    pub(crate) fn note_copy(&mut self, is_half_full: bool) {
        if is_half_full && !self.is_copy_half_full {
            self.copy_fills += 1;
        }
        self.is_copy_half_full = is_half_full;
    }

    /// Returns whether a holder's turns have pauses: the drop copy is half full, and he goes on to
    /// fill it. The gateway has a thread for all users; it would show others' orders late.
    pub(crate) fn pauses(&mut self, holder: HolderId) -> bool {
        let (is_half_full, fills) = (self.is_copy_half_full, self.copy_fills);
        let holder = self.holder(holder);
        let (of, count) = holder.copied;
        is_half_full && !holder.is_first() && of == fills && count > COPIED_FREE
    }

    /// Returns how many of a holder's commands a turn should have.
    pub(crate) fn commands_max(&mut self, holder: HolderId) -> usize {
        let work = self.holder(holder).command_work.max(1);
        ((TURN_WORK / work) as usize).clamp(1, COMMANDS_MAX)
    }

    /// Takes frames that cost no tokens; else returns how long it takes until he may send them.
    pub(crate) fn take_free(
        &mut self,
        holder: HolderId,
        frames: u32,
        now: Instant,
    ) -> Option<Duration> {
        let free = &mut self.holder(holder).free_frames;
        (!free.take(frames, now)).then(|| free.time_to(frames, now))
    }
}

#[cfg(test)]
impl Scheduler {
    /// Returns the work up to which a holder has been charged.
    pub(crate) fn finish(&mut self, holder: HolderId) -> u64 {
        self.holder(holder).finish
    }
}

#[cfg(test)]
mod tests {
    use super::TurnKind::Input;
    use super::*;

    fn session(at: u32) -> SessionId {
        SessionId::new(at, 0)
    }

    /// Holders 1 to `count` with a session each, which has the holder's number.
    fn with_holders(count: i64) -> (Scheduler, Vec<HolderId>) {
        let mut scheduler = Scheduler::default();
        let enter = |id| scheduler.enter(SessionKey::new(Role::Trade, id, 0), Instant::now());
        let holders = (0..=count).map(enter).collect();
        (scheduler, holders)
    }

    /// Has turns for sessions that always have more, and returns how often each had one. The turns
    /// of a session are this work each.
    fn turns(works: &[u64], turns: usize) -> Vec<usize> {
        let (mut scheduler, holders) = with_holders(works.len() as i64);
        let wait = |scheduler: &mut Scheduler, at: usize| {
            scheduler.wait(session(at as u32), Input, holders[at])
        };
        let mut tickets: Vec<Ticket> = (0..works.len())
            .map(|at| wait(&mut scheduler, at))
            .collect();
        let mut had = vec![0; works.len()];
        for _ in 0..turns {
            let at = scheduler.next().expect("all wait").0.slot();
            had[at] += 1;
            scheduler.end(tickets[at], holders[at], 1, works[at]);
            tickets[at] = wait(&mut scheduler, at);
        }
        had
    }

    #[test]
    fn turns_are_shared_by_work() {
        let had = turns(&[100, 100, 400], 900);
        assert!(
            (390..=410).contains(&had[0]) && (390..=410).contains(&had[1]),
            "{had:?}"
        );
        assert!((90..=110).contains(&had[2]), "{had:?}");
    }

    #[test]
    fn sessions_of_one_holder_share_his_turns() {
        let (mut scheduler, holders) = with_holders(2);
        // Ten sessions of holder 0, one of holder 1.
        let holder_of = |at: usize| holders[usize::from(at == 10)];
        let mut tickets: Vec<Ticket> = (0..=10)
            .map(|at| scheduler.wait(session(at as u32), Input, holder_of(at)))
            .collect();
        let mut had = [0; 2];
        for _ in 0..200 {
            let at = scheduler.next().expect("all wait").0.slot();
            had[usize::from(at == 10)] += 1;
            scheduler.end(tickets[at], holder_of(at), 1, 50);
            tickets[at] = scheduler.wait(session(at as u32), Input, holder_of(at));
        }
        assert!(had[1] >= 95, "{had:?}");
    }

    #[test]
    fn a_holder_that_was_idle_is_next_and_has_saved_nothing() {
        let (mut scheduler, holders) = with_holders(2);
        for _ in 0..1_000 {
            let ticket = scheduler.wait(session(0), Input, holders[0]);
            assert_eq!(scheduler.next(), Some((session(0), Input)));
            scheduler.end(ticket, holders[0], 64, 200);
        }
        let mut tickets = [0, 1].map(|at| scheduler.wait(session(at), Input, holders[at as usize]));
        let mut order = Vec::new();
        for _ in 0..20 {
            let at = scheduler.next().expect("both wait").0.slot();
            order.push(at);
            scheduler.end(tickets[at], holders[at], 64, 200);
            tickets[at] = scheduler.wait(session(at as u32), Input, holders[at]);
        }
        assert_eq!(order[0], 1);
        let longest = order.chunk_by(|a, b| a == b).map(<[usize]>::len).max();
        assert!(longest <= Some(2), "{order:?}");
    }

    #[test]
    fn a_user_who_reads_and_trades_has_one_account() {
        let (mut scheduler, holders) = with_holders(1);
        let mut enter = |role| scheduler.enter(SessionKey::new(role, 1, 0), Instant::now());
        assert_eq!(enter(Role::Read), holders[1]);
        assert_ne!(enter(Role::Admin), holders[1]);
    }

    #[test]
    fn an_administrator_comes_first_and_expensive_commands_have_short_turns() {
        let (mut scheduler, holders) = with_holders(1);
        let admin = scheduler.enter(SessionKey::new(Role::Admin, 1, 0), Instant::now());
        scheduler.wait(session(0), Input, holders[0]);
        scheduler.wait(session(9), Input, admin);
        assert_eq!(scheduler.next(), Some((session(9), Input)));
        assert_eq!(scheduler.next(), Some((session(0), Input)));
        assert_eq!(scheduler.next(), None);
        assert_eq!(scheduler.commands_max(holders[0]), COMMANDS_MAX);
        let ticket = scheduler.wait(session(0), Input, holders[0]);
        scheduler.next();
        scheduler.end(ticket, holders[0], 2, 200);
        assert_eq!(scheduler.commands_max(holders[0]), 2);
    }

    #[test]
    fn a_session_that_waits_no_more_costs_nothing() {
        let (mut scheduler, holders) = with_holders(2);
        scheduler.charge(holders[0], 5);
        let ticket = scheduler.wait(session(0), Input, holders[0]);
        scheduler.cancel(ticket, holders[0]);
        assert_eq!(scheduler.holder(holders[0]).finish, 5);
        assert!(!scheduler.is_waited_for());
    }

    #[test]
    fn holders_that_fill_a_copy_which_is_half_full_pause_and_others_do_not() {
        let (mut scheduler, holders) = with_holders(2);
        let now = Instant::now();
        let trade = |holder| SessionKey::new(Role::Trade, holder, 0);
        let keys = [trade(0), trade(1), SessionKey::new(Role::Admin, 1, 0)];
        let admin = scheduler.enter(keys[2], now);
        let all = [holders[0], holders[1], admin];
        let pausing = |scheduler: &mut Scheduler| all.map(|holder| scheduler.pauses(holder));
        // Whatever came before it was half full.
        scheduler.charge_copied(keys[1], 100 * COPIED_FREE, now);
        assert_eq!(scheduler.finish(holders[1]), 8 * 100 * COPIED_FREE);
        scheduler.note_copy(true);
        assert_eq!(pausing(&mut scheduler), [false; 3]);
        for (holder, reports) in [(0, COPIED_FREE + 1), (1, COPIED_FREE), (2, COPIED_FREE + 1)] {
            scheduler.charge_copied(keys[holder], reports, now);
        }
        scheduler.note_copy(true);
        assert_eq!(pausing(&mut scheduler), [true, false, false]);
        scheduler.note_copy(false);
        assert_eq!(pausing(&mut scheduler), [false; 3]);
        scheduler.note_copy(true);
        assert_eq!(pausing(&mut scheduler), [false; 3]);
    }

    #[test]
    fn holders_without_connection_or_debt_are_forgotten() {
        let mut scheduler = Scheduler::default();
        let key = |id| SessionKey::new(Role::Trade, id, 0);
        let now = Instant::now();
        let kept = scheduler.enter(key(-1), now);
        let debtor = scheduler.enter(key(-2), now);
        scheduler.charge(debtor, 5);
        scheduler.charge(kept, 7);
        scheduler.leave(debtor, 0);
        for id in 0..=HOLDERS_KEPT as i64 {
            let holder = scheduler.enter(key(id), now);
            scheduler.leave(holder, 0);
        }
        assert!(scheduler.by_id.len() <= HOLDERS_KEPT);
        let finish = |scheduler: &mut Scheduler, id| {
            let holder = scheduler.enter(key(id), now);
            scheduler.holder(holder).finish
        };
        assert_eq!(
            (finish(&mut scheduler, -1), finish(&mut scheduler, -2)),
            (7, 5)
        );
    }
}
