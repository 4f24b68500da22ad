//! Values of the command line: counts and placements.

use thalweg::pipeline::Placement;

/// The longest made-up flow: its commands are kept, 56 bytes each.
const COUNT_MAX: u64 = 20_000_000;
/// The most threads that a placement may ask for.
const THREADS_MAX: usize = 64;

/// Where the stages run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the thread that sends.
    Inline,
    /// On so many threads of their own.
    Threads(usize),
    /// Chosen from the usable cores.
    Auto,
}

impl Place {
    /// The same for a pipeline.
    pub(crate) fn placement(self) -> Placement {
        match self {
            Place::Inline => Placement::inline(),
            Place::Threads(n) => Placement::threads(n),
            Place::Auto => Placement::auto(),
        }
    }
}

/// A number of commands.
pub(super) fn count(text: &str) -> Result<u64, String> {
    match scaled(text) {
        Some(n) if (1..=COUNT_MAX).contains(&n) => Ok(n),
        _ => Err("a number of commands is from 1 to 20M, like 50k or 1M".to_owned()),
    }
}

/// A placement.
pub(super) fn place(text: &str) -> Result<Place, String> {
    let threads = || text.strip_prefix("threads:")?.parse().ok();
    match text {
        "inline" => Ok(Place::Inline),
        "auto" => Ok(Place::Auto),
        _ => match threads() {
            Some(n) if (1..=THREADS_MAX).contains(&n) => Ok(Place::Threads(n)),
            _ => Err(format!(
                "a placement is inline, auto, or threads:N with N from 1 to {THREADS_MAX}"
            )),
        },
    }
}

/// A decimal number with an optional k or M behind it, if it is a whole number in the end.
fn scaled(text: &str) -> Option<u64> {
    let (digits, scale) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1_000_u64),
        b'm' | b'M' => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if whole.is_empty() || digits.ends_with('.') || !plain(whole) || !plain(part) {
        return None;
    }
    let number = |s: &str| s.replace('_', "").parse::<u64>().ok();
    let mut value = number(whole)?.checked_mul(scale)?;
    let mut unit = scale;
    for digit in part.bytes().filter(u8::is_ascii_digit) {
        if unit % 10 != 0 {
            return None;
        }
        unit /= 10;
        value = value.checked_add(u64::from(digit - b'0') * unit)?;
    }
    Some(value)
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
            "1e6",
            "9999999999999M",
            ".",
        ] {
            assert!(count(bad).unwrap_err().contains("from 1 to 20M"), "{bad}");
        }
    }

    #[test]
    fn placements_have_limits() {
        assert_eq!(place("inline"), Ok(Place::Inline));
        assert_eq!(place("threads:3"), Ok(Place::Threads(3)));
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
