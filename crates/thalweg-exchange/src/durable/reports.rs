//! The execution reports of each user, numbered from 1 without gaps, and the last of them.
//!
//! A user's numbers depend on the journal alone, not on which session caused the reports, so that a
//! client that reconnects can name the last report that it saw, also after a crash.

use std::collections::VecDeque;

use thalweg::ring::prefetch;

use super::options::{REPORTS_LEAST, SessionLimits};
use crate::codec::REPORT_BYTES;
use crate::engine::index::Index;
use crate::ids::UserId;
use crate::session::ReportNumber;

/// The frame of a report.
pub(super) type Frame = [u8; REPORT_BYTES];

/// The answer to a user who resumes after a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Reports that are not kept any more: the first and the last of them.
    pub gap: Option<(ReportNumber, ReportNumber)>,
    /// The number of the first one that was given; [`next`](Self::next) if none was.
    pub first: ReportNumber,
    /// The number that the user's next report gets.
    pub next: ReportNumber,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserReports {
    pub(super) user: UserId,
    /// The number of the next one.
    pub(super) next: u64,
    /// The last ones.
    pub(super) kept: VecDeque<Frame>,
    /// The list was copied after the commands below this number; 0 where it was not.
    pub(super) since: u64,
}

impl UserReports {
    /// The number of the oldest that is kept.
    fn oldest(&self) -> u64 {
        self.next - self.kept.len() as u64
    }
}

/// The reports of all users.
#[derive(Clone, Debug)]
pub(super) struct ReportTable {
    list: Vec<UserReports>,
    index: Index,
    /// The user whose report was numbered last: most often the next one is the same user's.
    last: Option<(UserId, u32)>,
    /// The highest [`since`](UserReports::since).
    since_max: u64,
    /// Kept of all users together.
    total: usize,
    kept: usize,
    total_max: usize,
}

impl ReportTable {
    pub(super) fn new(limits: &SessionLimits) -> Self {
        Self {
            list: Vec::new(),
            index: Index::default(),
            last: None,
            since_max: 0,
            total: 0,
            kept: limits.reports_kept as usize,
            total_max: limits.reports_max as usize,
        }
    }

    pub(super) fn list(&self) -> &[UserReports] {
        &self.list
    }

    /// Kept of all users together: at most the limit, and [`REPORTS_LEAST`] for each user.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Whether the limit is reached. Once it is, it stays so.
    pub(super) fn is_full(&self) -> bool {
        self.total >= self.total_max
    }

    /// Whether a user's list was copied after this command, and so has its reports.
    #[inline(always)]
    pub(super) fn has(&self, user: UserId, command: u64) -> bool {
        command < self.since_max && self.was_copied_after(user, command)
    }

    #[cold]
    fn was_copied_after(&self, user: UserId, command: u64) -> bool {
        let slot = self.find(user);
        slot.is_some_and(|slot| command < self.list[slot as usize].since)
    }

    fn find(&self, user: UserId) -> Option<u32> {
        let id_of = |slot: u32| self.list[slot as usize].user.0;
        self.index.find(user.0, id_of)
    }

    /// Adds a user who is not here.
    pub(super) fn add(&mut self, mut reports: UserReports) -> u32 {
        let slot = u32::try_from(self.list.len()).expect("memory runs out before users do");
        let over = reports.kept.len().saturating_sub(self.kept);
        reports.kept.drain(..over);
        self.total += reports.kept.len();
        self.since_max = self.since_max.max(reports.since);
        self.index.insert(reports.user.0, slot);
        self.list.push(reports);
        slot
    }

    /// Numbers and keeps a report.
    #[inline]
    pub(super) fn push(&mut self, user: UserId, frame: &Frame) -> ReportNumber {
        let slot = match self.last {
            Some((last, slot)) if last == user => slot,
            _ => self.slot_of(user),
        };
        let reports = &mut self.list[slot as usize];
        let kept = reports.kept.len();
        let may_grow = kept < REPORTS_LEAST as usize || self.total < self.total_max;
        if kept < self.kept && may_grow {
            self.total += 1;
        } else {
            reports.kept.pop_front();
        }
        reports.kept.push_back(*frame);
        let number = ReportNumber(reports.next);
        reports.next += 1;
        number
    }

    /// Returns the place of a user, who may be new.
    fn slot_of(&mut self, user: UserId) -> u32 {
        let slot = self.find(user).unwrap_or_else(|| {
            self.add(UserReports {
                user,
                next: 1,
                kept: VecDeque::new(),
                since: 0,
            })
        });
        self.last = Some((user, slot));
        slot
    }

    /// Prefetches the lines that the user's next report is written to: others' reports have had the
    /// caches since the last one.
    #[inline]
    pub(super) fn prefetch(&self, user: UserId) {
        if let Some(slot) = self.find(user)
            && let Some([first, .., last]) = self.list[slot as usize].kept.front()
        {
            prefetch(first);
            prefetch(last);
        }
    }

    pub(super) fn next(&self, user: UserId) -> ReportNumber {
        let next = |slot: u32| self.list[slot as usize].next;
        ReportNumber(self.find(user).map_or(1, next))
    }

    /// Appends the frames after a report that are kept.
    pub(super) fn resume(&self, user: UserId, after: ReportNumber, out: &mut Vec<u8>) -> Resumed {
        let Some(slot) = self.find(user) else {
            let none = ReportNumber(1);
            return Resumed {
                gap: None,
                first: none,
                next: none,
            };
        };
        let reports = &self.list[slot as usize];
        let wanted = after.0.saturating_add(1).min(reports.next);
        let first = wanted.max(reports.oldest());
        let skipped = (first - reports.oldest()) as usize;
        for frame in reports.kept.range(skipped..) {
            out.extend_from_slice(frame);
        }
        Resumed {
            gap: (wanted < first).then(|| (ReportNumber(wanted), ReportNumber(first - 1))),
            first: ReportNumber(first),
            next: ReportNumber(reports.next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(reports_kept: u32, reports_max: u32) -> ReportTable {
        ReportTable::new(&SessionLimits {
            reports_kept,
            reports_max,
            ..SessionLimits::default()
        })
    }

    fn frame(of: u64) -> Frame {
        [of as u8; REPORT_BYTES]
    }

    fn resumed(table: &ReportTable, user: i64, after: u64) -> (Resumed, Vec<u8>) {
        let mut out = Vec::new();
        let resumed = table.resume(UserId(user), ReportNumber(after), &mut out);
        let firsts = out.chunks(REPORT_BYTES).map(|frame| frame[0]).collect();
        (resumed, firsts)
    }

    #[test]
    fn a_user_goes_on_after_the_last_one_seen_and_learns_of_a_gap() {
        let mut table = table(3, 100);
        for number in 1..=5 {
            assert_eq!(table.push(UserId(7), &frame(number)), ReportNumber(number));
        }
        assert_eq!(table.push(UserId(8), &frame(9)), ReportNumber(1));
        let [one, two, four, five, next] = [1, 2, 4, 5, 6].map(ReportNumber);
        let (all, frames) = resumed(&table, 7, 0);
        assert_eq!(all.gap, Some((one, two)));
        assert_eq!((all.first, all.next), (ReportNumber(3), next));
        assert_eq!(frames, [3, 4, 5]);
        let (some, frames) = resumed(&table, 7, 3);
        assert_eq!((some.gap, some.first, frames), (None, four, vec![4, 5]));
        assert_eq!(resumed(&table, 7, 4).0.first, five);
        for nothing in [5, 6, u64::MAX] {
            let (resumption, frames) = resumed(&table, 7, nothing);
            assert_eq!(
                (resumption.gap, resumption.first, resumption.next),
                (None, next, next)
            );
            assert!(frames.is_empty());
        }
        assert_eq!(resumed(&table, 1, 0).0.next, one);
        assert_eq!(table.next(UserId(7)), next);
        assert_eq!(table.next(UserId(1)), one);
    }

    #[test]
    fn no_user_loses_reports_because_others_have_many() {
        let mut table = table(100, 50);
        let push = |table: &mut ReportTable, user, count| {
            (0..count).for_each(|of| _ = table.push(UserId(user), &frame(of)));
        };
        push(&mut table, 1, 40);
        push(&mut table, 2, 30);
        push(&mut table, 3, 30);
        push(&mut table, 1, 100);
        let kept: Vec<usize> = table.list().iter().map(|user| user.kept.len()).collect();
        assert_eq!(kept, [40, 16, 16]);
        assert_eq!(table.total(), 72);
        (4..1_000).for_each(|user| push(&mut table, user, 100));
        assert_eq!(table.total(), 40 + 998 * REPORTS_LEAST as usize);
        assert_eq!(resumed(&table, 1, 0).0.first, ReportNumber(101));
    }

    #[test]
    fn fewer_reports_are_taken_over_where_fewer_are_kept() {
        let mut all = table(5, 100);
        (1..=5).for_each(|of| _ = all.push(UserId(7), &frame(of)));
        let mut fewer = table(2, 100);
        fewer.add(all.list()[0].clone());
        let (resumption, frames) = resumed(&fewer, 7, 0);
        assert_eq!((resumption.first, frames), (ReportNumber(4), vec![4, 5]));
        assert_eq!(fewer.push(UserId(7), &frame(6)), ReportNumber(6));
        assert_eq!(resumed(&fewer, 7, 0).1, [5, 6]);
    }
}
