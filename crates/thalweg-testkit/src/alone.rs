//! Tests of what a process has once.

use std::any::type_name;
use std::env;
use std::process::Command;

/// Set in a process that runs one test.
const ALONE: &str = "THALWEG_TEST_ALONE";

/// Runs the work of a test in a process in which no other test runs: this starts it, with the
/// arguments of the test harness for this test.
///
/// # Panics
/// The work fails there.
pub fn alone<T: Fn()>(_test: T, work: impl FnOnce()) {
    if env::var_os(ALONE).is_some() {
        return work();
    }
    let name = type_name::<T>();
    let (_, name) = name.split_once("::").expect("it begins with its crate");
    let mut child = Command::new(env::current_exe().expect("this is a program"));
    child.args(["--exact", name]).env(ALONE, "1");
    let ended = child.output().expect("it can be run again");
    let said = String::from_utf8_lossy(&ended.stdout);
    let has_passed = ended.status.success() && said.contains("1 passed");
    let failed = String::from_utf8_lossy(&ended.stderr);
    assert!(has_passed, "{name} in its own process:\n{said}{failed}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_runs_alone() {
        alone(a_test_runs_alone, || assert!(env::var_os(ALONE).is_some()));
    }

    #[test]
    #[should_panic(expected = "in its own process")]
    fn work_that_fails_fails_the_test() {
        alone(work_that_fails_fails_the_test, || {
            // Not with the text that is expected outside, with which it would pass.
            panic!("seeded");
        });
    }
}
