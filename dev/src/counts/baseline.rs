//! The file of expected counts: a line each, sorted, so that a change of one is a change of a line.
//!
//! Reads the subset of TOML that it writes.

use std::collections::BTreeMap;
use std::fmt;

use super::TARGET_CPU;

/// Instructions of an operation, by its name.
pub(super) type Counts = BTreeMap<String, f64>;

const TABLE: &str = "[instructions]";

/// The expected counts, and the compiler that they hold for.
#[derive(Debug, PartialEq)]
pub(super) struct Baseline {
    /// The release, as in `1.95.0`.
    pub(super) rustc: String,
    pub(super) counts: Counts,
}

impl Baseline {
    /// # Errors
    /// The line that is not as this module writes it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut rustc, mut cpu, mut in_table) = (None, None, false);
        let mut counts = Counts::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line == TABLE {
                in_table = true;
                continue;
            }
            let (key, value) = line
                .split_once(" = ")
                .ok_or_else(|| format!("line {number}: `{line}` is not `key = value`"))?;
            if !in_table {
                let value = value.trim_matches('"').to_owned();
                match key {
                    "rustc" => rustc = Some(value),
                    "target-cpu" => cpu = Some(value),
                    _ => return Err(format!("line {number}: `{key}` is not known")),
                }
                continue;
            }
            let (name, count) = entry(key, value).map_err(|why| format!("line {number}: {why}"))?;
            if let Some((last, _)) = counts.last_key_value()
                && *last >= name
            {
                return Err(format!("line {number}: {name} must stand before {last}"));
            }
            counts.insert(name, count);
        }
        match cpu {
            Some(cpu) if cpu == TARGET_CPU => {}
            _ => return Err(format!("no line `target-cpu = \"{TARGET_CPU}\"`")),
        }
        let rustc = rustc.ok_or("no line `rustc = \"…\"`")?;
        Ok(Self { rustc, counts })
    }
}

fn entry(key: &str, value: &str) -> Result<(String, f64), String> {
    let name = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
    let name = name.ok_or_else(|| format!("`{key}` has no quotes"))?;
    match value.parse::<f64>() {
        Ok(count) if count.is_finite() && count > 0.0 => Ok((name.to_owned(), count)),
        _ => Err(format!("`{value}` is not a count above 0")),
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# Instructions of an operation at steady state, see docs/measuring.md.\n\
             # `cargo dev counts` compares, `cargo dev counts --update` rewrites this file.\n\
             rustc = \"{}\"\n\
             target-cpu = \"{TARGET_CPU}\"\n\n\
             {TABLE}",
            self.rustc
        )?;
        for (name, count) in &self.counts {
            writeln!(f, "\"{name}\" = {count:.2}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "rustc = \"1.95.0\"\ntarget-cpu = \"x86-64\"\n[instructions]\n";

    fn error(lines: &str) -> String {
        Baseline::parse(&format!("{HEAD}{lines}")).unwrap_err()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let counts = [("ring/b", 53.01), ("ring/a", 4226.5)];
        let counts = counts.map(|(name, count)| (name.to_owned(), count));
        let written = Baseline {
            rustc: "1.95.0".to_owned(),
            counts: counts.into(),
        };
        let text = written.to_string();
        assert!(
            text.ends_with("[instructions]\n\"ring/a\" = 4226.50\n\"ring/b\" = 53.01\n"),
            "{text}"
        );
        assert_eq!(Baseline::parse(&text), Ok(written));
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        assert_eq!(error("\"a\": 1"), "line 4: `\"a\": 1` is not `key = value`");
        assert_eq!(error("a = 1"), "line 4: `a` has no quotes");
        for count in ["0.00", "-1", "nan", "inf", "x"] {
            let why = format!("line 4: `{count}` is not a count above 0");
            assert_eq!(error(&format!("\"a\" = {count}")), why);
        }
        assert_eq!(
            error("\"b\" = 1\n\"a\" = 1"),
            "line 5: a must stand before b"
        );
        assert_eq!(
            error("\"a\" = 1\n\"a\" = 2"),
            "line 5: a must stand before a"
        );
    }

    #[test]
    fn a_head_that_is_wrong_is_named() {
        let parse = |text| Baseline::parse(text).unwrap_err();
        assert_eq!(parse(""), "no line `target-cpu = \"x86-64\"`");
        assert_eq!(
            parse("target-cpu = \"native\""),
            "no line `target-cpu = \"x86-64\"`"
        );
        assert_eq!(parse("target-cpu = \"x86-64\""), "no line `rustc = \"…\"`");
        assert_eq!(parse("rust = 1"), "line 1: `rust` is not known");
    }
}
