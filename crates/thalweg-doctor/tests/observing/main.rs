//! Tests the doctor with programs that behave badly. Signals are for whole processes, so this
//! program plays the roles of the doctor and of the targets itself, each in a process of its own.
//!
//! `cargo test -p thalweg-doctor --test observing NAME` runs the tests whose names contain NAME.

#![allow(
    clippy::unwrap_used,
    reason = "a test, though not of the default harness"
)]

#[cfg(target_os = "linux")]
mod attached;
#[cfg(target_os = "linux")]
mod counted;
#[cfg(target_os = "linux")]
mod crowd;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod signalled;
#[cfg(target_os = "linux")]
mod target;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    match arguments.first().and_then(|first| first.to_str()) {
        Some("as-doctor") => doctor::play(&arguments[1..]),
        Some("as-target") => target::play(&arguments[1..]),
        _ => run(&arguments),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the doctor needs Linux");
}

/// Runs the tests whose names contain one of the words.
#[cfg(target_os = "linux")]
fn run(arguments: &[std::ffi::OsString]) -> std::process::ExitCode {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let words: Vec<&str> = words
        .into_iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let tests = [
        ends::TESTS,
        signalled::TESTS,
        crowd::TESTS,
        attached::TESTS,
        counted::TESTS,
    ]
    .concat();
    let mut failed = 0;
    for (name, test) in tests {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word)) {
            continue;
        }
        let passed = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += u8::from(!passed);
    }
    std::process::ExitCode::from(failed)
}
