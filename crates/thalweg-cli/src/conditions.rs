//! `--latency` and `--faults` of `thalweg exchange serve`.

use crate::failure::Failure;
use clap::Args;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use thalweg_gateway::keys::is_api_key;
use thalweg_server::conditions::{DELAY_MAX, Delay, Delays, Faults, NetworkConditions};

/// The largest standard deviation of a logarithm: e⁵ is 148.
const SIGMA_MAX: f64 = 5.0;

/// The options of a network that is slow and loses commands.
#[derive(Debug, Args)]
pub(crate) struct ConditionOptions {
    /// Delays of what users send and get: in=5ms,out=normal:5ms:1ms or lognormal:5ms:0.5 (median,
    /// sigma); key=ID: before them for one user or API key; may be given several times
    #[arg(long, value_name = "[key=ID:]in=D,out=D", value_parser = latency)]
    latency: Vec<Latency>,

    /// Parts of users' commands that are lost, refused, or lost with their connection:
    /// drop=0.01,reject=0.01,disconnect=0.001
    #[arg(long, value_name = "drop=P,reject=P,disconnect=P", value_parser = faults)]
    faults: Option<Faults>,
}

/// A value of `--latency`.
#[derive(Clone, Debug, PartialEq)]
struct Latency {
    /// The user or the API key; `None` for all others.
    key: Option<String>,
    delays: Delays,
}

impl ConditionOptions {
    /// Returns whether some were given.
    pub(crate) const fn are_given(&self) -> bool {
        !self.latency.is_empty() || self.faults.is_some()
    }

    /// Returns the conditions that were asked for, if any were.
    ///
    /// # Errors
    /// Two latencies are of the same key.
    pub(crate) fn open(&self, seed: u64) -> Result<Option<Arc<NetworkConditions>>, Failure> {
        if !self.are_given() {
            return Ok(None);
        }
        let mut general = None;
        let mut by_key = BTreeMap::new();
        for Latency { key, delays } in &self.latency {
            let (older, whose) = match key {
                None => (general.replace(*delays), "all".to_owned()),
                Some(key) => (by_key.insert(key.clone(), *delays), format!("key={key}")),
            };
            if older.is_some() {
                let text = format!("--latency: given twice for {whose}");
                return Err(Failure::Misuse(text));
            }
        }
        Ok(Some(Arc::new(NetworkConditions {
            general,
            by_key,
            faults: self.faults.unwrap_or_default(),
            seed,
            ..NetworkConditions::default()
        })))
    }
}

/// Parses `name=value,name=value`; each of the names may come once.
fn pairs<T: Copy, const N: usize>(
    text: &str,
    names: [&str; N],
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<[Option<T>; N], String> {
    let mut values = [None; N];
    for part in text.split(',') {
        let pair = part.split_once('=');
        let found = pair.and_then(|(name, value)| {
            let at = names.iter().position(|known| *known == name)?;
            Some((at, value))
        });
        let Some((at, value)) = found else {
            let names = names.map(|name| format!("{name}=")).join(", ");
            return Err(format!("`{part}` begins with none of {names}"));
        };
        let value = parse(value).map_err(|why| format!("{}: {why}", names[at]))?;
        if values[at].replace(value).is_some() {
            return Err(format!("{} is given twice", names[at]));
        }
    }
    Ok(values)
}

fn latency(text: &str) -> Result<Latency, String> {
    let (key, delays) = match text.strip_prefix("key=") {
        None => (None, text),
        Some(rest) => {
            let split = rest.split_once(':');
            let (key, delays) = split.ok_or("after key=ID comes `:`, and in= or out=")?;
            (Some(id(key)?), delays)
        }
    };
    let [inbound, outbound] = pairs(delays, ["in", "out"], delay)?;
    Ok(Latency {
        key,
        delays: Delays {
            inbound: inbound.unwrap_or_default(),
            outbound: outbound.unwrap_or_default(),
        },
    })
}

/// Returns the number of a user as it is written elsewhere, or an API key.
fn id(text: &str) -> Result<String, String> {
    if is_api_key(text) {
        return Ok(text.to_owned());
    }
    let user = text.parse::<i64>().ok().filter(|user| *user >= 0);
    let user = user.map(|user| user.to_string());
    user.ok_or_else(|| {
        format!("key: `{text}` is neither the number of a user nor an API key of 64 characters")
    })
}

fn delay(text: &str) -> Result<Delay, String> {
    let parts: Vec<&str> = text.split(':').collect();
    Ok(match parts[..] {
        [fixed] => Delay::Fixed(duration(fixed)?),
        ["normal", mean, deviation] => Delay::Normal {
            mean: duration(mean)?,
            deviation: duration(deviation)?,
        },
        ["lognormal", median, sigma] => Delay::LogNormal {
            median: duration(median)?,
            sigma: number(sigma, SIGMA_MAX, "sigma")?,
        },
        _ => {
            return Err(format!(
                "`{text}` is none of 5ms, normal:MEAN:DEVIATION, lognormal:MEDIAN:SIGMA"
            ));
        }
    })
}

/// Parses a time with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let units = [("us", 1e6), ("ms", 1e3), ("s", 1.0)];
    let parsed = units.iter().find_map(|(unit, in_second)| {
        let number = text.strip_suffix(unit)?;
        let number: f64 = number.parse().ok()?;
        Some(number / in_second)
    });
    let seconds = parsed.filter(|seconds| (0.0..=DELAY_MAX.as_secs_f64()).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        let most = DELAY_MAX.as_secs();
        format!("`{text}` is not a time from 0s to {most}s, as 250us, 5ms or 1.5s")
    })
}

fn number(text: &str, most: f64, what: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number| (0.0..=most).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a {what} from 0 to {most}"))
}

fn faults(text: &str) -> Result<Faults, String> {
    let probability = |text: &str| number(text, 1.0, "probability");
    let parts = pairs(text, ["drop", "reject", "disconnect"], probability)?;
    let [drop, reject, disconnect] = parts.map(Option::unwrap_or_default);
    let sum = drop + reject + disconnect;
    if sum > 1.0 {
        return Err(format!("the probabilities are {sum} together, 1 at most"));
    }
    Ok(Faults {
        drop,
        reject,
        disconnect,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn latencies_have_a_key_two_directions_and_three_distributions() {
        let (mean, deviation) = (5 * MS, Duration::from_micros(500));
        let (median, sigma) = (Duration::from_secs(1), 0.5);
        let inbound = Delay::Normal { mean, deviation };
        let outbound = Delay::LogNormal { median, sigma };
        let delays = Delays { inbound, outbound };
        let text = "in=normal:5ms:500us,out=lognormal:1s:0.5";
        assert_eq!(latency(text), Ok(Latency { key: None, delays }));
        let key = Some("7".to_owned());
        assert_eq!(
            latency(&format!("key=07:{text}")),
            Ok(Latency { key, delays })
        );
        let api_key = "k".repeat(64);
        let delays = Delays {
            outbound: Delay::Fixed(1_500 * MS),
            ..Delays::default()
        };
        let key = Some(api_key.clone());
        let parsed = latency(&format!("key={api_key}:out=1.5s"));
        assert_eq!(parsed, Ok(Latency { key, delays }));
    }

    #[test]
    fn wrong_latencies_are_named_with_their_limits() {
        for (wrong, text) in [
            ("5ms", "`5ms` begins with none of in=, out="),
            ("", "`` begins with none of"),
            ("in=5", "in: `5` is not a time from 0s to 60s"),
            ("out=61s", "out: `61s` is not a time from 0s to 60s"),
            ("in=-1ms", "in: `-1ms` is not a time"),
            ("in=NaNms", "in: `NaNms` is not a time"),
            (
                "in=normal:5ms",
                "in: `normal:5ms` is none of 5ms, normal:MEAN",
            ),
            ("in=lognormal:5ms:6", "in: `6` is not a sigma from 0 to 5"),
            ("in=1ms,in=2ms", "in is given twice"),
            ("key=7", "after key=ID comes `:`"),
            ("key=-7:in=1ms", "key: `-7` is neither the number"),
            ("key=7:", "`` begins with none of"),
        ] {
            let error = latency(wrong).expect_err("it is wrong");
            assert!(error.contains(text), "{wrong}: {error}");
        }
    }

    #[test]
    fn faults_are_probabilities_of_1_at_most_together() {
        let parsed = faults("drop=0.5,disconnect=0.25");
        let expected = Faults {
            drop: 0.5,
            reject: 0.0,
            disconnect: 0.25,
        };
        assert_eq!(parsed, Ok(expected));
        for (wrong, text) in [
            ("drop=2", "drop: `2` is not a probability from 0 to 1"),
            ("reject=-0.1", "reject: `-0.1` is not"),
            ("drop=x", "drop: `x` is not"),
            (
                "drop",
                "`drop` begins with none of drop=, reject=, disconnect=",
            ),
            ("drop=0.6,reject=0.6", "are 1.2 together, 1 at most"),
        ] {
            let error = faults(wrong).expect_err("it is wrong");
            assert!(error.contains(text), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_key_has_one_latency() {
        let one = |text: &str| latency(text).expect("it is right");
        let options = |texts: [&str; 2]| ConditionOptions {
            latency: texts.map(one).to_vec(),
            faults: None,
        };
        let opened = options(["in=1ms", "key=7:in=2ms"]).open(1);
        let opened = opened.expect("they differ").expect("they are given");
        assert_eq!((opened.general.is_some(), opened.by_key.len()), (true, 1));
        for (twice, text) in [
            (["in=1ms", "out=2ms"], "given twice for all"),
            (["key=7:in=1ms", "key=07:in=2ms"], "given twice for key=7"),
        ] {
            let Err(Failure::Misuse(error)) = options(twice).open(1) else {
                panic!("{twice:?} was accepted");
            };
            assert!(error.contains(text), "{error}");
        }
    }
}
