//! A copy of sessions and reports, taken while later commands change them.
//!
//! *State*: the lists of both tables, each copied after some command, its `since`.
//!
//! *Rules*: (1) lists are copied a slice at a time under the lock of the tables, whole, by rising
//! slot; (2) those that are new since the beginning are not copied; (3) the commands from the
//! beginning on are executed again, with their answers and reports, but a list gets none of
//! commands below its `since`.
//!
//! *Why it is exact*: a list depends on the commands before and on nothing else, but for the limit
//! of the reports of all users, and that is reached once. Where it is reached while lists are
//! copied, they are copied again.
//!
//! *Cost*: a command waits for one slice, which is one list at least. What later commands drop is
//! not kept for the copy.

use std::thread;
use std::time::Duration;

use super::options::SessionLimits;
use super::tables::{Answer, Frame, Reports, Session, Tables, UserReports};

/// Bytes from which on a slice ends, after a whole list. A list of 1,024 reports is 82 KB, and
/// takes 15 µs, in memory that is new 80 µs.
const SLICE_BYTES: usize = 32 << 10;
/// The bytes that take as long to copy as a list takes to be found and allocated.
const LIST_BYTES: usize = 256;
/// The pause between slices, in which the owner of the tables gets their lock.
const PAUSE: Duration = Duration::from_micros(50);

/// A copy that is being made.
struct Copying {
    copy: Tables,
    /// How many commands had been noted when it began.
    from: u64,
    /// How many sessions, and users with reports, there were.
    lists: [usize; 2],
    was_full: bool,
}

impl Copying {
    fn begin(live: &Reports, limits: &SessionLimits) -> Self {
        let tables = live.lock();
        Self {
            copy: Tables::new(limits),
            from: tables.noted.outcomes(),
            lists: [tables.sessions.list().len(), tables.reports.list().len()],
            was_full: tables.reports.is_full(),
        }
    }

    /// Copies a slice. Returns whether there is more.
    fn step(&mut self, live: &Reports, slice_bytes: usize) -> bool {
        let copied = |copy: &Tables| [copy.sessions.list().len(), copy.reports.list().len()];
        let [sessions, users] = copied(&self.copy);
        let mut bytes = 0;
        let mut fits = |list| {
            let before = bytes;
            bytes += LIST_BYTES + list;
            before < slice_bytes
        };
        let tables = live.lock();
        let since = tables.noted.outcomes();
        let some = tables.sessions.list()[sessions..self.lists[0]].iter();
        let some = some
            .take_while(|one| fits(size_of::<Session>() + one.answers.len() * size_of::<Answer>()));
        let some_sessions: Vec<Session> = some.cloned().collect();
        let some = tables.reports.list()[users..self.lists[1]].iter();
        let some = some
            .take_while(|one| fits(size_of::<UserReports>() + one.kept.len() * size_of::<Frame>()));
        let some_reports: Vec<UserReports> = some.cloned().collect();
        drop(tables);
        for session in some_sessions {
            self.copy.sessions.add(Session { since, ..session });
        }
        for user in some_reports {
            self.copy.reports.add(UserReports { since, ..user });
        }
        copied(&self.copy) != self.lists
    }

    /// Returns the number of the command at which it began, and the copy, which lacks the commands
    /// from there to its [`noted`](Tables::noted); none if the limit was reached meanwhile.
    fn end(mut self, live: &Reports) -> Option<(u64, Tables)> {
        let is_full = {
            let tables = live.lock();
            self.copy.noted = tables.noted;
            tables.reports.is_full()
        };
        // Without the lock: a copy that is dropped here may be large.
        (is_full == self.was_full).then_some((self.from, self.copy))
    }
}

impl Reports {
    /// Copies the tables: see [`Copying::end`]. Returns none once `is_closing`, and where a panic
    /// has left the tables unfinished.
    pub(super) fn copied(
        &self,
        limits: &SessionLimits,
        is_closing: impl Fn() -> bool,
    ) -> Option<(u64, Tables)> {
        loop {
            let mut copying = Copying::begin(self, limits);
            while copying.step(self, SLICE_BYTES) {
                if is_closing() {
                    return None;
                }
                #[expect(clippy::disallowed_methods)] // the owner gets the lock meanwhile
                thread::sleep(PAUSE);
            }
            let copied = copying.end(self);
            if self.is_poisoned() {
                return None;
            }
            if copied.is_some() {
                return copied;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_testkit::Random;

    use super::*;
    use crate::command::Command;
    use crate::durable::record::Origin;
    use crate::durable::snapshots::all_of;
    use crate::engine::state::{State, apply};
    use crate::event::Events;
    use crate::ids::{OrderId, SymbolId, UserId};
    use crate::service::Outcome;
    use crate::session::{ClientSequence, Role, SessionKey};

    const LIMITS: SessionLimits = SessionLimits {
        answers_kept: 5,
        reports_kept: 40,
        reports_max: 200,
        sessions_per_user: 16,
        sessions_max: 1 << 14,
    };

    struct World {
        random: Random,
        live: Reports,
        /// The user and the session's number of each command.
        journal: Vec<(i64, u32)>,
        /// Users so far: more come.
        users: u64,
    }

    impl World {
        /// Notes commands that are refused, which their users get reports of.
        fn steps(&mut self, most: u64) {
            for _ in 0..self.random.below(most) {
                self.users += u64::from(self.random.one_in(40));
                let user = match self.random.one_in(2) {
                    true => self.users,
                    false => 1 + self.random.below(self.users),
                };
                self.journal
                    .push((user as i64, self.random.below(2) as u32));
                self.note(&mut self.live.lock(), self.journal.len() - 1);
            }
        }

        fn note(&self, tables: &mut Tables, number: usize) {
            let (user, session) = self.journal[number];
            let command = Command::cancel(UserId(user), SymbolId(1), OrderId(1));
            let mut events = Events::new();
            let result = apply(&mut State::default(), &command, &mut events);
            let check = (tables.noted).fold_and_check(&command, result, &events);
            let number = number as u64;
            let key = SessionKey::new(Role::Trade, user, session);
            let sequence = ClientSequence(1 + number);
            let origin = Origin::Session { key, sequence };
            let note = tables.note_of(origin, number).expect("they rise");
            let outcome = Outcome {
                sequence: number,
                tag: 0,
                due: 0,
                stamps: None,
                command: &command,
                result,
                events: &events,
            };
            tables.note(&outcome, (note, check), None);
        }

        /// Copies the tables while commands go on, and adds what the copy lacks. Returns whether
        /// the limit of reports was reached meanwhile.
        fn copy(&mut self, most: u64) -> bool {
            let mut copying = Copying::begin(&self.live, &LIMITS);
            while copying.step(&self.live, 1) {
                self.steps(most);
            }
            self.steps(most);
            let Some((from, mut copy)) = copying.end(&self.live) else {
                return true;
            };
            let noted = copy.noted;
            assert_eq!(noted.outcomes(), self.journal.len() as u64);
            for number in from as usize..self.journal.len() {
                self.note(&mut copy, number);
            }
            let bytes = |of: &Tables| all_of(&State::default(), of, 7, noted, LIMITS);
            assert!(bytes(&copy) == bytes(&self.live.lock()), "they differ");
            false
        }
    }

    #[test]
    fn a_copy_and_what_it_lacks_are_the_tables_whatever_is_noted_meanwhile() {
        let mut reached = 0;
        for seed in 1..=60 {
            let mut world = World {
                random: Random(seed),
                live: Reports::new(Tables::new(&LIMITS)),
                journal: Vec::new(),
                users: 1,
            };
            for _ in 0..4 {
                world.steps(200);
                reached += u32::from(world.copy(2 + 20 * (seed % 3)));
            }
        }
        assert!(
            (1..=60).contains(&reached),
            "{reached}: once in a world at most"
        );
    }

    #[test]
    fn a_copy_ends_when_the_exchange_closes() {
        let mut tables = Tables::new(&SessionLimits::default());
        let frame = [0; size_of::<Frame>()];
        for number in 0..4 * SLICE_BYTES / frame.len() {
            tables.reports.push(UserId(number as i64 % 8), &frame);
        }
        let live = Reports::new(tables);
        let limits = SessionLimits::default();
        assert!(live.copied(&limits, || true).is_none());
        assert!(live.copied(&limits, || false).is_some());
        let owner = live.clone();
        let panics = thread::spawn(move || {
            let _tables = owner.lock();
            panic!("within a chunk of commands");
        });
        panics.join().expect_err("it panics");
        let copied = live.copied(&limits, || false);
        assert!(copied.is_none(), "the tables may be unfinished");
    }
}
