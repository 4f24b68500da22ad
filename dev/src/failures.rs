//! The tests that failed, by what their runner said.

use std::{iter, mem};

/// How many tests are named, how many lines of the message of each, and characters of a line.
const TESTS_MAX: usize = 8;
const LINES_MAX: usize = 4;
const CHARACTERS_MAX: usize = 200;

/// Returns a line for each test that failed, and below it the place and the message of its first
/// panic. The runner of cargo prints panics under a heading with the test's name, the one of the
/// doctor's tests before the line that says FAILED. A panic of a program that named no test is
/// returned alone.
pub(crate) fn failures(said: &str) -> String {
    let (mut tests, mut panic, mut heading) = (Vec::new(), String::new(), "");
    let mut lines = said.lines();
    while let Some(line) = lines.next() {
        let test = line.strip_prefix("test ");
        let under = line.strip_prefix("---- ");
        if let Some((name, outcome)) = test.and_then(|test| test.rsplit_once(" ... ")) {
            heading = "";
            let panic = mem::take(&mut panic);
            if outcome == "FAILED" {
                tests.push((name, panic));
            }
        } else if let Some(name) = under.and_then(|under| under.strip_suffix(" stdout ----")) {
            heading = name;
            // A process that it started may have panicked where all of them write.
            let of_heading = |test: &&mut (&str, String)| named(test.0) == heading;
            if let Some((_, panic)) = tests.iter_mut().rev().find(of_heading) {
                panic.clear();
            }
        } else if line.starts_with("thread '") && line.contains(" panicked at ") {
            let of_heading = |test: &&mut (&str, String)| named(test.0) == heading;
            let test = tests.iter_mut().rev().find(of_heading);
            let first = test.map_or(&mut panic, |(_, panic)| panic);
            if first.is_empty() {
                *first = message(line, lines.clone());
            }
        }
    }
    let more = tests.len().saturating_sub(TESTS_MAX);
    let more = (more > 0).then(|| format!("\n  and {more} more"));
    let named = tests.iter().take(TESTS_MAX);
    let named = named.map(|(name, panic)| format!("\n  {name}{panic}"));
    match tests.is_empty() {
        true => panic,
        false => named.chain(more).collect(),
    }
}

/// Returns the name of a test without what is expected of it, such as `should panic`.
fn named(test: &str) -> &str {
    test.split_once(" - ").map_or(test, |(name, _)| name)
}

/// Returns the line of a panic that names its place, and the first lines of its message.
fn message<'a>(place: &'a str, rest: impl Iterator<Item = &'a str>) -> String {
    let ends = ["note: ", "stack backtrace:", "test "];
    let is_part = |line: &&str| !line.is_empty() && !ends.iter().any(|end| line.starts_with(end));
    let rest = rest.take_while(is_part);
    let lines = iter::once(place).chain(rest).take(LINES_MAX);
    let lines = lines.map(|line| line.chars().take(CHARACTERS_MAX).collect::<String>());
    lines.map(|line| format!("\n    {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_test_is_named_with_its_first_panic() {
        let said = "test a::passes ... ok\ntest a::fails ... FAILED\ntest a::errs ... FAILED\n\
                    \nfailures:\n\n---- a::fails stdout ----\n\nthread 'a::fails' (7) panicked at \
                    a/src/b.rs:3:5:\nassertion `left == right` failed\n  left: 1\n right: 2\n\
                    note: run with `RUST_BACKTRACE=1`\n\nthread 'a::fails' (7) panicked at \
                    a/src/b.rs:9:1:\nlater\n\n---- a::errs stdout ----\nError: \"no\"\n";
        let expected = "\n  a::fails\n    thread 'a::fails' (7) panicked at a/src/b.rs:3:5:\n    \
                        assertion `left == right` failed\n      left: 1\n     right: 2\n  a::errs";
        assert_eq!(failures(said), expected);
    }

    #[test]
    fn a_panic_before_the_line_of_its_test_belongs_to_it() {
        let panic = "thread 'main' (7) panicked at c.rs:3:5:\n0.75 is not above 0.9\n";
        let of = "\n    thread 'main' (7) panicked at c.rs:3:5:\n    0.75 is not above 0.9";
        let ran = format!("{panic}test passes ... ok\n{panic}test fails ... FAILED\n");
        assert_eq!(failures(&ran), format!("\n  fails{of}"));
        assert_eq!(failures(panic), of, "it named no test");
        assert_eq!(failures("test passes ... ok\n"), "");
    }

    #[test]
    fn a_panic_under_the_heading_of_a_test_is_the_one_that_counts() {
        let said = "thread 'main' (9) panicked at child.rs:1:1:\nother\ntest a - should panic ... \
                    FAILED\n\n---- a stdout ----\n\nthread 'a' (7) panicked at a.rs:2:2:\nreal\n";
        let expected = "\n  a - should panic\n    thread 'a' (7) panicked at a.rs:2:2:\n    real";
        assert_eq!(failures(said), expected);
    }

    #[test]
    fn what_is_said_of_failures_is_bounded() {
        let long = format!(
            "thread 'main' panicked at c.rs:3:5:\n{}\n",
            "é\n".repeat(99)
        );
        let long = long.replace('é', &"é".repeat(9_999));
        let said = format!("{long}test fails ... FAILED\n").repeat(99);
        let text = failures(&said);
        assert!(text.len() < 16_384, "{}", text.len());
        assert!(text.ends_with("\n  and 91 more"), "{text}");
    }
}
