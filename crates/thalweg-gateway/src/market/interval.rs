//! The intervals of candles, and where they begin.

use std::fmt;
use std::str::FromStr;

const SECOND: i64 = 1_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
/// 5 January 1970 was the first Monday.
const FIRST_MONDAY: i64 = 4 * DAY;

/// The length of a candle. Weeks begin on Mondays, months on their first day, all in UTC; three
/// days are counted from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Interval(u8);

/// The names, and the lengths in milliseconds; months have none.
const TABLE: [(&str, i64); Interval::COUNT] = [
    ("1s", SECOND),
    ("1m", MINUTE),
    ("3m", 3 * MINUTE),
    ("5m", 5 * MINUTE),
    ("15m", 15 * MINUTE),
    ("30m", 30 * MINUTE),
    ("1h", HOUR),
    ("2h", 2 * HOUR),
    ("4h", 4 * HOUR),
    ("6h", 6 * HOUR),
    ("8h", 8 * HOUR),
    ("12h", 12 * HOUR),
    ("1d", DAY),
    ("3d", 3 * DAY),
    ("1w", WEEK),
    ("1M", 0),
];

impl Interval {
    /// How many there are.
    pub(crate) const COUNT: usize = 16;
    /// One minute.
    pub(crate) const MINUTE: Self = Self(1);
    /// One hour.
    pub(crate) const HOUR: Self = Self(6);
    /// One day.
    pub(crate) const DAY: Self = Self(12);
    const WEEK: Self = Self(14);
    const MONTH: Self = Self(15);

    /// Returns all intervals, the shortest first.
    pub(crate) fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    /// Returns the name, such as `15m`.
    pub(crate) const fn name(self) -> &'static str {
        TABLE[self.0 as usize].0
    }

    /// Returns the position in [`all`](Self::all).
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    const fn length(self) -> i64 {
        TABLE[self.0 as usize].1
    }

    /// Returns when the candle opened that a time belongs to; in milliseconds since 1970, both.
    pub(crate) const fn open(self, time: i64) -> i64 {
        match self {
            Self::MONTH => first_day(month_of(time.div_euclid(DAY))) * DAY,
            Self::WEEK => (time - FIRST_MONDAY).div_euclid(WEEK) * WEEK + FIRST_MONDAY,
            _ => time.div_euclid(self.length()) * self.length(),
        }
    }

    /// Returns when the next candle opens after one that opened at `open`.
    pub(crate) const fn next(self, open: i64) -> i64 {
        match self {
            Self::MONTH => first_day(month_of(open.div_euclid(DAY)) + 1) * DAY,
            _ => open + self.length(),
        }
    }

    /// Returns when the candle opened that is `count` before one that opened at `open`.
    pub(crate) const fn back(self, open: i64, count: i64) -> i64 {
        match self {
            Self::MONTH => first_day(month_of(open.div_euclid(DAY)) - count) * DAY,
            _ => open - count * self.length(),
        }
    }
}

/// Returns the number of months since January of year 0 for a day since 1970.
///
/// After Howard Hinnant, *chrono-compatible low-level date algorithms*, `civil_from_days`.
const fn month_of(day: i64) -> i64 {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Years begin in March here: month 0 is March, month 10 January of the next year.
    let month = (5 * of_year + 2) / 153;
    (year_of_era + era * 400) * 12 + month + 2
}

/// Returns the day since 1970 on which a month begins: the reverse of [`month_of`].
const fn first_day(month: i64) -> i64 {
    let (year, month) = ((month - 2).div_euclid(12), (month - 2).rem_euclid(12));
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Interval {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::all()
            .find(|interval| interval.name() == name)
            .ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(name: &str) -> Interval {
        name.parse().expect("an interval")
    }

    #[test]
    fn months_begin_on_their_first_day() {
        // 1970-01-01, 2000-02-29, 2000-03-01, 2026-11-29, 2100-03-01.
        let cases = [
            (0, 0),
            (11_016, 10_988),
            (11_017, 11_017),
            (20_786, 20_758),
            (47_541, 47_541),
        ];
        for (day, first) in cases {
            assert_eq!(interval("1M").open(day * DAY + 5), first * DAY, "{day}");
        }
        let mut open = 0;
        for month in 0..12 * 300 {
            let next = interval("1M").next(open);
            assert!([28, 29, 30, 31].contains(&((next - open) / DAY)), "{month}");
            assert_eq!(interval("1M").back(next, 1), open);
            assert_eq!(interval("1M").open(next - 1), open);
            assert_eq!(interval("1M").back(next, month + 1), 0);
            open = next;
        }
        // 1 January 2270.
        assert_eq!(open / DAY, 109_573);
    }

    #[test]
    fn weeks_begin_on_mondays() {
        // Sunday, 29 November 2026.
        assert_eq!(interval("1w").open(20_786 * DAY), 20_780 * DAY);
        assert_eq!(interval("1w").open(20_780 * DAY), 20_780 * DAY);
        assert_eq!(interval("1w").next(20_780 * DAY), 20_787 * DAY);
    }

    #[test]
    fn each_time_is_in_one_candle() {
        for interval in Interval::all() {
            for time in [0, 1, 999, 1_796_000_123_456, 4_102_444_799_999] {
                let open = interval.open(time);
                assert!(
                    open <= time && time < interval.next(open),
                    "{interval} {time}"
                );
                assert_eq!(interval.open(open), open);
                assert_eq!(interval.back(interval.next(open), 1), open);
            }
            assert_eq!(interval.name().parse(), Ok(interval));
        }
        assert_eq!("7m".parse::<Interval>(), Err(()));
    }
}
