//! The role of a program that has many threads, or burns time.

use crate::doctor::{is_alive, runs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
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
        ["spin-until-held", pid] => spin_until_held(pid),
        ["burn", ms] => burn(ms.parse().expect("a number of milliseconds")),
        ["yield", ms] => yields(ms.parse().unwrap()),
        ["calls", count, name] => calls(count.parse().unwrap(), name),
        ["poll", ms, count] => poll_for(ms.parse().unwrap(), count.parse().unwrap()),
        _ => panic!("no such part: {words:?}"),
    }
    ExitCode::SUCCESS
}

/// Starts this number of threads, which all live at once.
fn threads(count: usize) {
    let barrier = Barrier::new(count);
    std::thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| barrier.wait());
        }
    });
}

/// Runs four threads that yield their cores for this time.
fn yields(ms: u128) {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while began.elapsed().as_millis() < ms {
                    std::thread::yield_now();
                }
            });
        }
    });
}

/// Makes this number of yields or writes, and a tenth as many polls that do not wait.
fn calls(count: u64, name: &str) {
    let (silent, _writer) = std::io::pipe().unwrap();
    let mut null = File::options().write(true).open("/dev/null").unwrap();
    for number in 0..count {
        match name {
            "yield" => std::thread::yield_now(),
            _ => null.write_all(b"0").unwrap(),
        }
        if number % 10 == 0 {
            poll_one(&silent, 0);
        }
    }
}

/// Polls a pipe that no process writes to, with this timeout, this number of times.
fn poll_for(ms: i64, count: u64) {
    let (silent, _writer) = std::io::pipe().unwrap();
    (0..count).for_each(|_| poll_one(&silent, ms));
}

fn poll_one(file: &std::io::PipeReader, ms: i64) {
    let timeout = Timespec {
        tv_sec: ms / 1_000,
        tv_nsec: ms % 1_000 * 1_000_000,
    };
    let mut files = [PollFd::new(file, PollFlags::IN)];
    poll(&mut files, Some(&timeout)).unwrap();
}

/// Spins, and prints a line first. The function keeps its name where the compiler inlines.
#[inline(never)]
fn spin(ms: u128) {
    println!("spins");
    let began = Instant::now();
    while began.elapsed().as_millis() < ms {
        for _ in 0..1_000 {
            std::hint::spin_loop();
        }
    }
}

/// Spins for this processor time, and until the doctor that started this program has had a core
/// often enough to look at it, if the kernel counts that.
fn burn(ms: u64) {
    let until_ns = taken_ns().saturating_add(ms * 1_000_000);
    let doctor = std::os::unix::process::parent_id();
    let before = runs(doctor);
    let waits = || before > 0 && is_alive(doctor) && runs(doctor) < before + 20;
    while taken_ns() < until_ns || waits() {
        (0..100_000).for_each(|_| std::hint::spin_loop());
    }
}

/// Returns the processor time of the first thread.
fn taken_ns() -> u64 {
    let times = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let taken = times.split(' ').next().and_then(|ns| ns.parse().ok());
    taken.unwrap_or(u64::MAX)
}

/// Spins until a process has the file of this program open, or has taken 9 s of processor time: on
/// a busy machine the doctor, too, gets to it late.
fn spin_until_held(pid: &str) {
    let own = std::fs::metadata("/proc/self/exe").expect("the program's own file");
    let is_own = |file: std::fs::DirEntry| {
        let found = std::fs::metadata(file.path());
        found.is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()))
    };
    let holds = || {
        let mut files =
            std::fs::read_dir(format!("/proc/{pid}/fd")).expect("the doctor waits for us");
        files.any(|file| file.is_ok_and(is_own))
    };
    loop {
        spin(300);
        if holds() || taken_ns() > 9_000_000_000 {
            break;
        }
    }
}
