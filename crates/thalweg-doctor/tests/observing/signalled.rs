//! Tests signals that reach the doctor.

use crate::doctor::{AtWork, await_killed, child_of, is_alive, skip, sleeps_in, this};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("a_signal_to_the_doctor_alone_is_passed_on", passed_on),
    ("a_second_signal_kills_all_that_ignore_the_first", second),
    ("a_program_that_ignores_signals_has_a_time_of_grace", grace),
    ("a_killed_program_was_blocked_in_something", blocked),
    ("an_ignored_signal_stays_ignored", ignored),
    ("ctrl_c_reaches_the_program_once", ctrl_c),
    ("a_signal_to_the_group_reaches_the_program_once", group),
];

/// A background job may have been started with ignored signals, which a shell cannot trap.
const DEFAULTS: &str = "--default-signal=INT,TERM,HUP,QUIT,USR1";
/// Options with which a program is not killed, however long it takes to end.
const PATIENT: [&str; 2] = ["--grace-ms", "1000000"];
const WAITS: &str = "while :; do sleep 0.01; done";

fn passed_on() {
    for (signal, code) in [("INT", 5), ("TERM", 6), ("HUP", 7), ("USR1", 8)] {
        let script = format!("trap 'exit {code}' {signal}; echo ready; {WAITS}");
        let program = ["env", DEFAULTS, "sh", "-c", &script];
        let mut doctor = AtWork::start(&[&PATIENT[..], &program].concat());
        assert_eq!(doctor.line(), "ready");
        doctor.send(signal);
        let seen = doctor.finish();
        assert_eq!(seen.code, code, "SIG{signal}");
        assert_eq!(seen.report()["exit"]["code"], code);
    }
}

/// A shell and its child that ignore signals; the child's id is the first line.
const STUBBORN: &str = "trap '' TERM INT; (while :; do sleep 0.01; done) & \
                        echo $!; while :; do sleep 0.01; done";

fn second() {
    let mut doctor = AtWork::start(&[&PATIENT[..], &["sh", "-c", STUBBORN]].concat());
    let child = doctor.line().parse().unwrap();
    doctor.send("TERM");
    doctor.send("INT");
    let seen = doctor.finish();
    assert_eq!(seen.code, 137);
    await_killed(child);
}

fn grace() {
    let mut doctor = AtWork::start(&["--grace-ms", "50", "sh", "-c", STUBBORN]);
    let child = doctor.line().parse().unwrap();
    doctor.send("TERM");
    let seen = doctor.finish();
    assert_eq!(seen.code, 137);
    await_killed(child);
}

/// The waiting shell is killed first, and wakes first.
fn blocked() {
    // Neither file is read from a disk later: on a busy machine the doctor may look three times.
    let warm = Command::new("sh").args(["-c", "sleep 0; true"]).status();
    assert!(warm.expect("there is a shell").success());
    let script = "trap '' TERM; echo $$; sleep 1000; echo";
    let mut doctor = AtWork::start(&["--grace-ms", "2000", "sh", "-c", script]);
    let shell = doctor.line().parse().expect("its number");
    let calls = [libc::SYS_nanosleep, libc::SYS_clock_nanosleep];
    let sleeps = |pid| sleeps_in(pid, "nanosleep", &calls);
    while is_alive(shell) && !child_of(shell).is_some_and(sleeps) {
        std::thread::yield_now();
    }
    doctor.await_runs(100);
    doctor.send("TERM");
    let seen = doctor.finish();
    assert_eq!(seen.code, 137);
    if !seen.lost_figure("block.sleep") {
        seen.above("block.sleep", 0.9);
    }
}

fn ignored() {
    let own = std::env::current_exe().unwrap();
    let script = format!(
        "trap '' HUP; exec {} as-doctor sh -c 'kill -HUP $$; exit 3'",
        own.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
}

/// A script that prints a line, and ends with the number of signals that arrived: the first one and
/// those within about 100 ms. It starts no process, so that none is missed.
const COUNTS: &str = "n=0; trap 'n=$((n + 1))' INT TERM; echo ready; while [ $n = 0 ]; do :; done; \
                      i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; exit $n";

fn group() {
    let own = std::env::current_exe().unwrap();
    let nested = [&[own.to_str().unwrap(), "as-doctor"], &PATIENT[..]].concat();
    let program = ["env", DEFAULTS, "sh", "-c", COUNTS];
    for depth in 0..3 {
        let words = [&PATIENT[..], &nested.repeat(depth), &program].concat();
        let mut doctor = AtWork::start_in_group(&words);
        assert_eq!(doctor.line(), "ready");
        let group = format!("-{}", doctor.child.id());
        let mut kill = Command::new("kill");
        kill.args(["-s", "INT", "--", &group]);
        assert!(kill.status().unwrap().success());
        assert_eq!(doctor.finish().code, 1, "{depth} doctors of doctors");
    }
    let words = [&PATIENT[..], &nested, &program].concat();
    let mut doctor = AtWork::start_in_group(&words);
    assert_eq!(doctor.line(), "ready");
    doctor.send("TERM");
    assert_eq!(doctor.finish().code, 1, "what came to the doctor alone");
}

fn ctrl_c() {
    if !Command::new("setsid")
        .arg("--version")
        .output()
        .is_ok_and(|out| out.status.success())
    {
        return skip("there is no setsid to give a program a terminal");
    }
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let open = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap()
    };
    // The first signal counts; after a second one within a moment, the exit code would differ.
    let script = "count=0; trap 'count=$((count + 1))' INT; tty; i=0; \
                  while [ $count = 0 ]; do sleep 0.01; done; \
                  while [ $i -lt 20 ]; do sleep 0.01; i=$((i + 1)); done; exit $count";
    let doctor = this("as-doctor");
    let mut child = Command::new("setsid")
        .args(["--ctty", "--wait"])
        .arg(doctor.get_program())
        .args(doctor.get_args())
        .args(["--grace-ms", "1000000", "env", DEFAULTS, "sh", "-c", script])
        .stdin(open())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line.trim_end(), name.to_str().unwrap());
    File::from(terminal.try_clone().unwrap())
        .write_all(b"\x03")
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
