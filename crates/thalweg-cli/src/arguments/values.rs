//! Types and parsers for values of the command line.

use crate::failure::Failure;
use clap::ValueEnum;
use std::time::Duration;
use thalweg::pipeline::Placement;
use thalweg_exchange::State;
use thalweg_exchange::service::{Service, ServiceOptions};
use thalweg_measure::load::{NumberError, whole_number};

/// The maximum length of a generated flow, in commands. Its commands are kept in memory, 56 bytes
/// each.
const COUNT_MAX: u64 = 20_000_000;
/// The maximum number of threads that a placement may ask for.
const THREADS_MAX: u64 = 64;

/// The threads that the stages run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The stages run on the thread that sends.
    Inline,
    /// The stages run on this number of threads of their own.
    Threads(usize),
    /// The placement is chosen from the usable cores.
    Auto,
}

impl Place {
    /// Converts this placement into one for a pipeline.
    pub(crate) fn placement(self) -> Placement {
        match self {
            Place::Inline => Placement::inline(),
            Place::Threads(n) => Placement::threads(n),
            Place::Auto => Placement::auto(),
        }
    }
}

/// A set of rules of the exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RulesSetting {
    /// exchange-core 0.5 rules with its known defects fixed, and more (docs/exchange-rules.md)
    #[default]
    Default,
    /// exchange-core 0.5 rules with its quirks: for example, it answers SUCCESS to an order that
    /// it rejects
    Reference,
}

impl RulesSetting {
    /// Returns the name that the command line uses.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RulesSetting::Default => "default",
            RulesSetting::Reference => "reference",
        }
    }
}

/// Parses a number of commands.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    const RANGE: &str = "a number of commands is from 1 to 20M";
    match whole_number(text) {
        Ok(n @ 1..=COUNT_MAX) => Ok(n),
        Ok(_) | Err(NumberError::TooLarge | NumberError::Negative) => Err(RANGE.to_owned()),
        Err(error) => Err(format!("{RANGE}: {error}")),
    }
}

/// Parses a number that is at least 1.
pub(crate) fn from_one(text: &str) -> Result<u64, String> {
    match whole_number(text) {
        Ok(0) => Err("the least is 1".to_owned()),
        other => other.map_err(|error| error.to_string()),
    }
}

/// Parses a time between one millisecond and one day.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
    let ms = units.iter().find_map(|(unit, ms)| {
        let number = whole_number(text.strip_suffix(unit)?.trim_ascii_end()).ok()?;
        number.checked_mul(*ms)
    });
    match ms {
        Some(ms @ 1..=86_400_000) => Ok(Duration::from_millis(ms)),
        _ => Err("a time is a whole number of ms, s, m or h, up to 24h, like 10s".to_owned()),
    }
}

/// Parses a number without a limit on its value.
pub(crate) fn any(text: &str) -> Result<u64, NumberError> {
    whole_number(text)
}

/// Parses a placement.
pub(crate) fn place(text: &str) -> Result<Place, String> {
    match (text, text.strip_prefix("threads:").map(whole_number)) {
        ("inline", _) => Ok(Place::Inline),
        ("auto", _) => Ok(Place::Auto),
        (_, Some(Ok(n))) if (1..=THREADS_MAX).contains(&n) => Ok(Place::Threads(n as usize)),
        _ => Err(format!(
            "a placement is inline, auto, or threads:N with N from 1 to {THREADS_MAX}"
        )),
    }
}

/// A format of an input stream, or its recognition by content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatIn {
    /// By content
    #[default]
    Auto,
    /// Bitstamp order messages
    Bitstamp,
    /// LOBSTER messages
    Lobster,
    /// Our own CSV (docs/orders-csv.md)
    Orders,
    /// Commands for exchange-core 0.5, with its answers
    Recorded,
    /// Commands from the load generator of exchange-core 0.5, with the final book
    Load,
}

/// A format of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// One JSON object, its keys stable
    Json,
}

/// Returns the options of a service whose stages run at `placement`.
///
/// # Errors
/// Returns an error if a service cannot run with this placement.
pub(crate) fn service_options(placement: Place) -> Result<ServiceOptions, Failure> {
    let options = ServiceOptions::placed(placement.placement());
    Service::start(State::default(), options.clone(), |_| {}).map_err(|error| {
        let placement = &options.placement;
        Failure::Misuse(format!("--placement {placement}: {error}"))
    })?;
    Ok(options)
}

/// Returns the options of a durable exchange. With `inline` the sender's thread waits for the disk;
/// with any other placement another thread does, which publishes as well.
///
/// # Errors
/// Returns an error if the placement asks for more than one other thread.
pub(crate) fn journaled_options(placement: Place) -> Result<ServiceOptions, Failure> {
    let placement = match placement {
        Place::Threads(threads @ 2..) => {
            return Err(Failure::Misuse(format!(
                "--placement threads:{threads}: with --journal, the sender's thread executes and \
                 one other thread waits for the disk: inline, threads:1 and auto are possible"
            )));
        }
        Place::Auto => Placement::caller_and_threads(1, 1),
        other => other.placement(),
    };
    Ok(ServiceOptions::placed(placement))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_have_limits() {
        assert_eq!(count("50k"), Ok(50_000));
        assert_eq!(count("1.5M"), Ok(1_500_000));
        assert_eq!(count("2_000"), Ok(2_000));
        for bad in [
            "0",
            "",
            "k",
            "1.5",
            "-1",
            "1.0001k",
            "21M",
            "1e9",
            "9999999999999M",
            ".",
        ] {
            assert!(count(bad).unwrap_err().contains("from 1 to 20M"), "{bad}");
        }
        assert_eq!(count("1e6"), Ok(1_000_000));
    }

    #[test]
    fn placements_have_limits() {
        assert_eq!(place("inline"), Ok(Place::Inline));
        assert_eq!(place("threads:3"), Ok(Place::Threads(3)));
        assert_eq!(place("threads:0x3"), Ok(Place::Threads(3)));
        for bad in [
            "threads:0",
            "threads:65",
            "threads:",
            "threads",
            "Inline",
            "threads:-1",
        ] {
            assert!(place(bad).unwrap_err().contains("N from 1 to 64"), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_value_or_an_error(text in ".{0,20}") {
            let _ = (count(&text), place(&text));
        }
    }
}
