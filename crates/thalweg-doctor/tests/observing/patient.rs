//! The part of a program that has many threads, or burns time.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Barrier;
use std::time::Instant;

pub(crate) fn play(arguments: &[OsString]) -> ExitCode {
    let words: Vec<&str> = arguments
        .iter()
        .map(|word| word.to_str().unwrap())
        .collect();
    match words[..] {
        ["threads", count] => threads(count.parse().unwrap()),
        ["spin", ms] => spin(ms.parse().unwrap()),
        _ => panic!("no such part: {words:?}"),
    }
    ExitCode::SUCCESS
}

/// So many threads that all live at once.
fn threads(count: usize) {
    let barrier = Barrier::new(count);
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| barrier.wait());
        }
    });
}

/// Spins, and says that it does.
fn spin(ms: u128) {
    println!("spins");
    let began = Instant::now();
    while began.elapsed().as_millis() < ms {
        for _ in 0..1_000 {
            std::hint::spin_loop();
        }
    }
}
