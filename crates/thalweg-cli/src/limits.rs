//! Limits that a run must keep: `--fail-if 'p99>50us'`.

use crate::message::counted;
use crate::report::facts::{Distribution, commands_min};
use std::str::FromStr;
use thalweg_measure::load::{NumberError, whole_number};
use thalweg_measure::table::Nanoseconds;

const FORM: &str = "a limit is a figure, > or <, and a value, such as 'p99>50us' or \
     'throughput<1M'; figures are mean, p50, p90, p99, p99.9, p99.99, max, and throughput";

/// A figure of a run, and the value beyond which the run fails.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    text: String,
    figure: Measure,
    is_above: bool,
    /// The limit, in nanoseconds or in commands a second.
    value: u64,
}

#[derive(Clone, Copy, Debug)]
enum Measure {
    /// A figure of the end-to-end latency, in nanoseconds.
    Time(fn(&Distribution) -> f64),
    Throughput,
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Limit, String> {
        let at = text.find(['<', '>']).ok_or(FORM)?;
        let (name, value) = (text[..at].trim(), text[at + 1..].trim());
        let figure = match name {
            "throughput" => Measure::Throughput,
            "mean" => Measure::Time(|d| d.summary.mean),
            "p50" => Measure::Time(|d| d.summary.p50 as f64),
            "p90" => Measure::Time(|d| d.summary.p90 as f64),
            "p99" => Measure::Time(|d| d.summary.p99 as f64),
            "p99.9" => Measure::Time(|d| d.summary.p999 as f64),
            "p99.99" => Measure::Time(|d| d.summary.p9999 as f64),
            "max" => Measure::Time(|d| d.summary.max as f64),
            _ => return Err(FORM.to_owned()),
        };
        let value = match figure {
            Measure::Throughput => whole_number(value).map_err(|error| error.to_string())?,
            Measure::Time(_) => time_ns(value)?,
        };
        Ok(Limit {
            text: text.to_owned(),
            figure,
            is_above: text[at..].starts_with('>'),
            value,
        })
    }
}

/// Parses a time such as `50us` or `1.5ms` into nanoseconds.
fn time_ns(text: &str) -> Result<u64, String> {
    const FORM: &str = "a time is a number and ns, us, ms or s";
    let units = [("ns", 0), ("us", 3), ("µs", 3), ("ms", 6), ("s", 9)];
    let (number, zeros) = units
        .into_iter()
        .find_map(|(unit, zeros)| Some((text.strip_suffix(unit)?.trim_end(), zeros)))
        .ok_or(FORM)?;
    if !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(FORM.to_owned());
    }
    whole_number(&format!("{number}e{zeros}")).map_err(|error| match error {
        NumberError::TooLarge => format!("a time is at most {}s", u64::MAX / 1_000_000_000),
        _ => FORM.to_owned(),
    })
}

impl Limit {
    fn name(&self) -> &str {
        let name = self.text.split(['<', '>']).next();
        name.unwrap_or_default().trim()
    }

    /// Returns a message where this number of commands is too small to judge by; `None` where it
    /// suffices.
    pub(crate) fn too_few(&self, commands: u64) -> Option<String> {
        let least = commands_min(self.name());
        (commands < least).then(|| {
            let commands = counted(commands, "command");
            let verb = if commands.ends_with('s') { "are" } else { "is" };
            format!(
                "--fail-if {}: {commands} {verb} too few to judge {} by, it takes {least}",
                self.text,
                self.name()
            )
        })
    }

    /// Returns a message for a run that exceeds the limit; `None` for a run that keeps it.
    pub(crate) fn failed(&self, times: &Distribution, throughput_per_s: f64) -> Option<String> {
        let (found, shown) = match self.figure {
            Measure::Time(of) => (of(times), Nanoseconds(of(times)).to_string()),
            Measure::Throughput => (throughput_per_s, format!("{throughput_per_s:.0} a second")),
        };
        let limit = self.value as f64;
        let failed = match self.is_above {
            true => found > limit,
            false => found < limit,
        };
        failed.then(|| format!("--fail-if {}: {} is {shown}", self.text, self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::distribution;
    use proptest::prelude::*;
    use thalweg_measure::histogram::Histogram;

    #[test]
    fn limits_are_held_or_reported() {
        let mut times = Histogram::new();
        times.record_n(50_000, 3);
        let times = distribution(&times);
        let failed = |text: &str| text.parse::<Limit>().unwrap().failed(&times, 1_000.0);
        for held in [
            "p99>50us",
            "p99 > 0.05ms",
            "p50<50000ns",
            "throughput<1k",
            "max>1s",
        ] {
            assert_eq!(failed(held), None, "{held}");
        }
        assert_eq!(
            failed("max>49.999us").unwrap(),
            "--fail-if max>49.999us: max is 50.0 µs"
        );
        assert_eq!(
            failed("throughput < 1001").unwrap(),
            "--fail-if throughput < 1001: throughput is 1000 a second"
        );
    }

    #[test]
    fn a_percentile_of_too_few_is_not_judged() {
        let refusal = |text: &str, commands| text.parse::<Limit>().unwrap().too_few(commands);
        assert_eq!(
            refusal("p99.9>50us", 9_999).unwrap(),
            "--fail-if p99.9>50us: 9999 commands are too few to judge p99.9 by, it takes 10000"
        );
        assert_eq!(refusal("p99.9 > 50us", 10_000), None);
        let one = refusal("p90>1us", 1).unwrap();
        assert!(one.contains("1 command is too few"), "{one}");
        for figure in ["p50>1us", "max>1us", "mean>1us", "throughput<1"] {
            assert_eq!(refusal(figure, 1), None, "{figure}");
        }
    }

    #[test]
    fn what_is_no_limit_is_reported() {
        let wrong = |text: &str| text.parse::<Limit>().unwrap_err();
        for text in ["", "p99", "p98>1us", ">1us", "p99=1us"] {
            assert_eq!(wrong(text), FORM, "{text}");
        }
        for text in [
            "p99>50",
            "p99>us",
            "p99>0.5ns",
            "p99>-1us",
            "p99>1e3us",
            "p99>>1us",
        ] {
            assert_eq!(
                wrong(text),
                "a time is a number and ns, us, ms or s",
                "{text}"
            );
        }
        assert!(wrong("throughput<fast").contains("such as 250"));
        assert_eq!(wrong("p99>18446744074s"), "a time is at most 18446744073s");
    }

    proptest! {
        #[test]
        fn any_text_is_a_limit_or_an_error(text in "(p99|max|throughput)?[<>]?.{0,8}") {
            let _ = text.parse::<Limit>();
        }
    }
}
