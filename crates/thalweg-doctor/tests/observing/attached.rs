//! Tests processes that run already.

use crate::doctor::{AtWork, faults, is_alive, see, skip, sleeps_in, this};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("a_process_that_runs_is_watched_for_a_while", spinner),
    ("a_process_that_ends_ends_the_watch", ends),
    ("a_process_that_is_not_there_is_an_error", missing),
    ("a_process_that_has_ended_is_an_error", zombie),
    ("a_thread_of_the_kernel_is_an_error", kernels),
    ("children_that_come_and_go_are_counted", children),
    (
        "a_process_whose_first_thread_has_ended_is_watched",
        headless,
    ),
];

fn spinner() {
    let mut target = this("as-target")
        .args(["spin", "1000000"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(target.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let seen = see(&["--attach", &target.id().to_string(), "500"]);
    target.kill().unwrap();
    target.wait().unwrap();
    assert_eq!(seen.code, 0, "{}", seen.said());
    assert!(seen.value("time.wall") >= 0.5);
    assert!(seen.report()["exit"].is_null());
    if seen.lost_figure("threads.max") {
        return;
    }
    assert_eq!(seen.value("threads.max"), 1.0);
    // It always runs, or waits for a core that others have.
    seen.above("threads.busy", 0.5);
    if seen.quality("spin.cpu_share") == "sampled" {
        seen.above("spin.cpu_share", 0.3);
    }
}

fn ends() {
    let mut target = this("as-target")
        .args(["spin", "200"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let seen = see(&["--attach", &target.id().to_string(), "1000000"]);
    target.wait().unwrap();
    assert_eq!(seen.code, 0, "{}", seen.said());
    assert_eq!(seen.report()["exit"], "unknown");
}

fn zombie() {
    let mut target = this("as-target").args(["spin", "0"]).spawn().unwrap();
    let pid = target.id();
    while is_alive(pid) {
        std::thread::yield_now();
    }
    let seen = see(&["--attach", &pid.to_string(), "10"]);
    target.wait().unwrap();
    let why = format!("doctor: process {pid} has ended, and waits for its parent to take note\n");
    assert_eq!((seen.code, seen.stderr), (2, why));
}

fn kernels() {
    let stat = std::fs::read_to_string("/proc/2/stat").unwrap_or_default();
    if !stat.contains("(kthreadd)") || !rustix::process::geteuid().is_root() {
        return skip("no thread of the kernel can be seen, or not by this user");
    }
    let seen = see(&["--attach", "2", "10"]);
    let why = "doctor: process 2 is a thread of the kernel, and runs no program\n";
    assert_eq!((seen.code, seen.stderr.as_str()), (2, why));
}

/// Starts a doctor that observes until it gets a signal. Its events count before it waits, and then
/// it sleeps.
fn attached(words: &[&str]) -> AtWork {
    let doctor = AtWork::start(&[words, &["1000000"]].concat());
    let pid = doctor.child.id();
    while is_alive(pid) && !sleeps_in(pid, "poll", &[libc::SYS_ppoll]) {
        std::thread::yield_now();
    }
    doctor
}

/// Compares the faults of children that live for some ms each with the kernel's count for their
/// parent.
fn children() {
    let script = "read -r line; i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i + 1)); done; \
                  echo done; read -r line";
    let mut target = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = target.id();
    let doctor = attached(&["--attach", &pid.to_string()]);
    let made = || faults(pid).expect("it waits for input").iter().sum::<u64>() as f64;
    let before = made();
    let mut input = target.stdin.take().unwrap();
    input.write_all(b"go\n").unwrap();
    let mut output = BufReader::new(target.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    let made = made() - before;
    doctor.send("INT");
    let seen = doctor.finish();
    drop(input);
    target.wait().unwrap();
    let counted = seen.value("fault.minor") * seen.value("time.wall");
    assert!(made > 200.0 * 30.0, "{made}");
    assert!(
        (counted / made - 1.0).abs() < 0.05,
        "{counted}, and {made} were made"
    );
}

fn headless() {
    let script = "import ctypes, threading, time\n\
                  def rest():\n    print('rests', flush=True)\n    time.sleep(1000)\n\
                  threading.Thread(target=rest).start()\n\
                  ctypes.CDLL(None).pthread_exit(None)";
    let mut python = Command::new("python3");
    python.args(["-c", script]).stdout(Stdio::piped());
    let Ok(mut target) = python.spawn() else {
        return skip("there is no python3 to end a first thread alone");
    };
    let pid = target.id();
    let mut output = BufReader::new(target.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    while is_alive(pid) {
        std::thread::yield_now();
    }
    let pid = pid.to_string();
    let with_events = see(&["--attach", &pid, "300"]);
    // On a busy machine, 300 ms may pass before the first look.
    let without = attached(&["--no-events", "--attach", &pid]);
    without.await_runs(20);
    without.send("INT");
    let without = without.finish();
    target.kill().unwrap();
    target.wait().unwrap();
    for seen in [with_events, without] {
        assert_eq!(seen.code, 0, "{}", seen.said());
        assert!(seen.report()["exit"].is_null());
        if seen.lost_figure("threads.max") {
            continue;
        }
        assert_eq!(
            seen.value("threads.max"),
            1.0,
            "it lacks {:?}",
            seen.lacks()
        );
        seen.above("state.blocked", 0.5);
    }
}

fn missing() {
    let seen = see(&["--attach", "2147483000", "10"]);
    assert_eq!(
        (seen.code, seen.stderr.as_str()),
        (2, "doctor: there is no process 2147483000\n")
    );
}
