//! The number of a record, and the promise that it is on disk.

use std::fmt;

/// Log sequence number: the number of a record. The first record of a journal has 1; none is used
/// twice, except after a [`truncate`](crate::truncate()).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(u64);

impl Lsn {
    /// The number before the first record, which an empty journal has as its last one.
    pub const ZERO: Lsn = Lsn(0);
    /// The first record of a new journal.
    pub const FIRST: Lsn = Lsn(1);

    /// Returns the record with this number.
    #[inline]
    #[must_use]
    pub const fn new(number: u64) -> Lsn {
        Lsn(number)
    }

    /// Returns the number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the record `records` further on. Numbers do not wrap: at one a nanosecond they last
    /// for five centuries.
    #[inline]
    pub(crate) const fn after(self, records: u64) -> Lsn {
        Lsn(self.0.saturating_add(records))
    }

    /// Returns the record before; that before the first is [`Lsn::ZERO`].
    #[inline]
    pub(crate) const fn before(self) -> Lsn {
        Lsn(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The promise that records up to this one survive a crash of the program and of the machine.
///
/// Only a commit makes one, so a function that takes a `Durable<Lsn>` cannot be called for a record
/// that was merely appended:
///
/// ```compile_fail,E0308
/// # use thalweg_journal::{Durable, Error, Journal, Lsn, JournalOptions};
/// fn acknowledge(order: Durable<Lsn>) {}
///
/// # fn example(directory: &std::path::Path) -> Result<(), Error> {
/// let mut journal = Journal::<[u64; 4]>::open(directory, JournalOptions::default())?;
/// let lsn = journal.append_with(|order| order[0] = 7)?;
/// acknowledge(lsn); // not on disk yet: expected `Durable<Lsn>`, found `Lsn`
/// # Ok(())
/// # }
/// ```
///
/// Nor can one be made by hand:
///
/// ```compile_fail,E0423
/// # use thalweg_journal::{Durable, Lsn};
/// let forged = Durable(Lsn::new(7));
/// ```
///
/// After the commit there is one:
///
/// ```
/// # use thalweg_journal::{Durable, Error, Journal, Lsn, JournalOptions, SimDisk};
/// fn acknowledge(order: Durable<Lsn>) {}
///
/// # fn example() -> Result<(), Error> {
/// # let disk = SimDisk::new();
/// let mut journal = Journal::<[u64; 4], _>::open_in(disk, JournalOptions::default())?;
/// let lsn = journal.append_with(|order| order[0] = 7)?;
/// let durable = journal.commit()?;
/// assert_eq!(durable.get(), lsn);
/// acknowledge(durable);
/// # Ok(())
/// # }
/// # example().unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[must_use = "it is what may be acknowledged"]
pub struct Durable<T>(T);

impl Durable<Lsn> {
    /// Made where a sync has returned, and nowhere else.
    #[inline]
    pub(crate) const fn promise(lsn: Lsn) -> Durable<Lsn> {
        Durable(lsn)
    }

    /// Returns the last record that is durable; [`Lsn::ZERO`] while there is none.
    #[inline]
    #[must_use]
    pub const fn get(self) -> Lsn {
        self.0
    }

    /// Returns the promise for an earlier record; none for a later one.
    #[inline]
    #[must_use]
    pub fn covering(self, lsn: Lsn) -> Option<Durable<Lsn>> {
        (lsn <= self.0).then_some(Durable(lsn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_covers_what_is_before_it() {
        let promise = Durable::promise(Lsn::new(7));
        let covered = promise.covering(Lsn::new(3));
        assert_eq!(covered.map(Durable::get), Some(Lsn::new(3)));
        assert_eq!(promise.covering(Lsn::new(8)), None);
        assert_eq!(Lsn::ZERO.before(), Lsn::ZERO);
        assert_eq!(Lsn::FIRST.after(2).to_string(), "3");
    }
}
