//! `--from` of `thalweg exchange serve`: where a market begins.

use crate::arguments::values;
use crate::report::machine::{civil, date};
use std::fmt;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

/// Times that may be given.
const EXAMPLES: &str = "90s after the first, 09:30, or 2015-05-01T01:30:00Z";

/// Where a market begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beginning {
    /// The argument, for messages.
    text: String,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    /// The event of this number; the first is 1.
    Event(u64),
    /// This time after the first event, in nanoseconds.
    After(u64),
    /// Nanoseconds since midnight.
    TimeOfDay(u64),
    /// Nanoseconds since 1970.
    Time(u64),
}

/// The times of a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The recorded time of the first event, in nanoseconds since 1970 or since midnight; `None`
    /// where the recording has no times.
    pub(crate) began_ns: Option<u64>,
    /// The time of the last event after that; `u64::MAX` where there is none.
    pub(crate) length_ns: u64,
    /// How many events there are; `u64::MAX` where there is no end.
    pub(crate) events: u64,
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(began_ns) = self.began_ns else {
            let length = Duration::from_nanos(self.length_ns).as_secs_f64();
            return match self.length_ns {
                u64::MAX => write!(f, "the market has no times of day"),
                _ => write!(f, "the market has no times of day, and lasts {length:.1} s"),
            };
        };
        let clock = |ns: u64| {
            let seconds = ns % DAY_NS / SECOND_NS;
            let (hour, minute) = (seconds / 3_600, seconds / 60 % 60);
            format!("{hour:02}:{minute:02}:{:02}", seconds % 60)
        };
        let (from, to) = (clock(began_ns), clock(began_ns + self.length_ns));
        match began_ns >= DAY_NS {
            true => write!(
                f,
                "the market is of {}: {from} to {to}",
                date(began_ns / SECOND_NS)
            ),
            false => write!(f, "the market is of a day without a date: {from} to {to}"),
        }
    }
}

impl Beginning {
    /// Returns the number of the event, counted from 0, or the time after the first event. A time
    /// in the second in which the market begins is not before it: most times are given in seconds.
    ///
    /// # Errors
    /// The market has no such time, or ends before it.
    pub(crate) fn resolve(&self, span: Span) -> Result<Found, String> {
        let absent = || format!("--from {}: {span}", self.text);
        let after_ns = match (self.at, span.began_ns) {
            (At::Event(number), _) if number > span.events => {
                let (text, events) = (&self.text, span.events);
                return Err(format!("--from {text}: the market has {events} events"));
            }
            (At::Event(number), _) => return Ok(Found::Event(number - 1)),
            (At::After(after_ns), _) => Some(after_ns),
            (At::TimeOfDay(of_day), Some(began)) => {
                let before = began / DAY_NS * DAY_NS;
                since(before + of_day, began).or_else(|| since(before + DAY_NS + of_day, began))
            }
            (At::Time(time), Some(began)) if began >= DAY_NS => since(time, began),
            _ => None,
        };
        let after_ns = after_ns.filter(|after| *after <= span.length_ns);
        after_ns.map(Found::AfterNs).ok_or_else(absent)
    }
}

/// Returns how long after the beginning a time is: 0 in the second of it, `None` before that.
fn since(time: u64, began: u64) -> Option<u64> {
    let is_in_second = time / SECOND_NS == began / SECOND_NS;
    (time >= began || is_in_second).then(|| time.saturating_sub(began))
}

/// The beginning in a market.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Found {
    /// The event of this number, counted from 0.
    Event(u64),
    /// The first event at this time after the first one, or later.
    AfterNs(u64),
}

/// Parses a beginning.
pub(crate) fn beginning(text: &str) -> Result<Beginning, String> {
    let at = match text.contains(':') {
        true => time(text).or_else(|| time_of_day(text).map(At::TimeOfDay)),
        false if text.ends_with(|last: char| last.is_ascii_lowercase() && last != 'k') => {
            let time = values::time(text)?;
            Some(At::After(time.as_nanos() as u64))
        }
        false => {
            let number = values::from_one(text);
            let number =
                number.map_err(|error| format!("{error}, or a time such as {EXAMPLES}"))?;
            Some(At::Event(number))
        }
    };
    let text = text.to_owned();
    match at {
        Some(at) => Ok(Beginning { text, at }),
        None => Err(format!(
            "a beginning is the number of an event, or a time such as {EXAMPLES}"
        )),
    }
}

/// Parses `HH:MM`, `HH:MM:SS` or that with parts of a second, to nanoseconds since midnight.
fn time_of_day(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let [hour, minute] = [parts.next()?, parts.next()?].map(|part| digits(part, 2));
    let (second, part) = match parts.next() {
        Some(second) => second.split_once('.').unwrap_or((second, "0")),
        None => ("00", "0"),
    };
    let ns =
        digits(part, part.len()).filter(|_| part.len() <= 9)? * 10_u64.pow(9 - part.len() as u32);
    let (hour, minute, second) = (hour?, minute?, digits(second, 2)?);
    let is_right = hour < 24 && minute < 60 && second < 60 && parts.next().is_none();
    is_right.then_some((hour * 3_600 + minute * 60 + second) * SECOND_NS + ns)
}

fn digits(text: &str, count: usize) -> Option<u64> {
    let is_right = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_right)
}

/// Parses a time by RFC 3339.
fn time(text: &str) -> Option<At> {
    let (day, rest) = text.split_once(['T', 't', ' '])?;
    let (clock, offset_ns) = match rest.strip_suffix(['Z', 'z']) {
        Some(clock) => (clock, 0),
        None => {
            let at = rest.rfind(['+', '-'])?;
            let offset = time_of_day(&rest[at + 1..])? as i64;
            (
                &rest[..at],
                if rest[at..].starts_with('-') {
                    -offset
                } else {
                    offset
                },
            )
        }
    };
    let mut parts = day.split('-');
    let (year, month) = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?);
    let day = digits(parts.next()?, 2)?;
    let is_right = (1970..2500).contains(&year) && (1..=12).contains(&month) && day > 0;
    if !is_right || parts.next().is_some() {
        return None;
    }
    let days = days(year, month, day);
    if civil(days) != (year, month, day) {
        return None;
    }
    let utc_ns = days * DAY_NS + time_of_day(clock)?;
    utc_ns.checked_add_signed(-offset_ns).map(At::Time)
}

/// Returns the number of a day from the first of 1970, the inverse of [`civil`]; for a day that its
/// month has not, that of a later one.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let of_year = ((month + 9) % 12 * 153 + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_NS: u64 = 60 * SECOND_NS;

    fn at(text: &str) -> At {
        beginning(text).expect("it is right").at
    }

    #[test]
    fn a_beginning_is_an_event_or_a_time() {
        assert_eq!(at("1"), At::Event(1));
        assert_eq!(at("50k"), At::Event(50_000));
        assert_eq!(at("90s"), At::After(90 * SECOND_NS));
        assert_eq!(at("5m"), At::After(5 * MINUTE_NS));
        assert_eq!(at("09:30"), At::TimeOfDay(570 * MINUTE_NS));
        assert_eq!(at("00:00:01.5"), At::TimeOfDay(SECOND_NS * 3 / 2));
        let first = 1_430_438_400 * SECOND_NS;
        assert_eq!(at("2015-05-01T00:00:00Z"), At::Time(first));
        assert_eq!(
            at("2015-05-01T02:00:00.25+02:00"),
            At::Time(first + SECOND_NS / 4)
        );
        assert_eq!(at("2015-04-30 23:30:00-00:30"), At::Time(first));
        let leap = 951_782_400 * SECOND_NS;
        assert_eq!(at("2000-02-29T00:00:00z"), At::Time(leap));
        assert_eq!(at("1970-01-01T00:00:00Z"), At::Time(0));
    }

    #[test]
    fn what_is_no_beginning_is_refused() {
        for wrong in [
            "0",
            "-1",
            "x",
            "",
            "9:30",
            "24:00",
            "09:60",
            "09:30:60",
            "09:30:00.",
        ] {
            assert!(beginning(wrong).is_err(), "{wrong}");
        }
        for wrong in [
            "00:00:00.1234567890",
            "2015-02-29T00:00:00Z",
            "2015-05-01T00:00:00",
        ] {
            assert!(beginning(wrong).is_err(), "{wrong}");
        }
        for wrong in [
            "2015-13-01T00:00:00Z",
            "15-05-01T00:00:00Z",
            "1970-01-01T00:00:00+01:00",
        ] {
            assert!(beginning(wrong).is_err(), "{wrong}");
        }
        let error = beginning("9:30").expect_err("it has one digit");
        assert!(error.contains("a time such as 90s"), "{error}");
    }

    #[test]
    fn a_time_is_one_after_the_first_event_of_a_recording() {
        let found = |text: &str, began_ns, length_ns| {
            let span = Span {
                began_ns,
                length_ns,
                events: 8,
            };
            beginning(text).expect("it is right").resolve(span)
        };
        let began = Some(1_430_438_404 * SECOND_NS);
        let hour = 60 * MINUTE_NS;
        let after = |seconds| Ok(Found::AfterNs(seconds * SECOND_NS));
        assert_eq!(found("3", None, 0), Ok(Found::Event(2)));
        assert_eq!(found("10s", None, hour), after(10));
        assert_eq!(found("00:00:10", began, hour), after(6));
        assert_eq!(found("2015-05-01T00:01:00Z", began, hour), after(56));
        assert_eq!(found("09:31", Some(570 * MINUTE_NS), hour), after(60));
        assert_eq!(found("8", None, 0), Ok(Found::Event(7)));
        let error = found("9", None, 0).expect_err("there are 8");
        assert_eq!(error, "--from 9: the market has 8 events");
        // A recording begins some time after the second that names it, whatever its length.
        let late = |began_ns| Some(began_ns + 4_000_000);
        let day = 1_430_438_400 * SECOND_NS;
        for began in [570 * MINUTE_NS, day + 570 * MINUTE_NS] {
            assert_eq!(found("09:30", late(began), hour), after(0));
            assert_eq!(found("09:30", late(began), 2 * DAY_NS), after(0));
            let part = Ok(Found::AfterNs(6_000_000));
            assert_eq!(found("09:30:00.01", late(began), hour), part);
            // The first such time at or after the beginning.
            let next = DAY_NS - SECOND_NS - 4_000_000;
            let next = Ok(Found::AfterNs(next));
            assert_eq!(found("09:29:59", late(began), 2 * DAY_NS), next);
            assert!(found("09:29:59", late(began), hour).is_err());
        }
        let began = late(day + 570 * MINUTE_NS);
        assert_eq!(found("2015-05-01T09:30:00Z", began, hour), after(0));
        assert!(found("2015-05-01T09:29:59Z", began, hour).is_err());
        let began = Some(day + 4 * SECOND_NS);
        // A recording may go beyond midnight.
        assert_eq!(found("00:10", Some(1_430 * MINUTE_NS), hour), after(1_200));
        for (text, began, why) in [
            (
                "2h",
                began,
                "the market is of 2015-05-01 00:00 UTC: 00:00:04 to 01:00:04",
            ),
            ("23:59", began, "--from 23:59: the market is of 2015-05-01"),
            ("2015-04-30T23:59:59Z", began, "the market is of 2015-05-01"),
            ("09:30", None, "no times of day, and lasts 3600.0 s"),
            (
                "2015-05-01T00:01:00Z",
                Some(MINUTE_NS),
                "without a date: 00:01:00 to 01:01:00",
            ),
        ] {
            let error = found(text, began, hour).expect_err("there is no such time");
            assert!(error.contains(why), "{error}");
        }
    }
}
