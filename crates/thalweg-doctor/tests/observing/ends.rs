//! Tests how a program starts and ends, and its output.

use crate::doctor::{finish, is_alive, see, send, skip, this};
use std::io::Read as _;
use std::process::Stdio;

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("a_program_that_is_not_there_is_127", missing),
    ("a_file_that_cannot_be_run_is_126", not_executable),
    ("an_exit_code_passes_through", code),
    ("an_end_by_a_signal_is_128_and_the_signal", killed),
    ("a_program_that_ends_at_once_has_figures", at_once),
    ("what_a_program_leaves_running_is_left_alone", grandchildren),
    ("gigabytes_of_output_pass_through", gigabytes),
    ("a_program_has_our_group_and_input", untouched),
    ("a_doctor_can_watch_a_doctor", nested),
    ("ignored_signals_stay_ignored", ignored),
    ("a_pipe_in_the_place_of_a_program_is_not_its_file", replaced),
];

fn missing() {
    let seen = see(&["/nowhere/program"]);
    assert_eq!(seen.code, 127);
    assert_eq!(seen.stderr, "doctor: /nowhere/program: no such program\n");
}

fn not_executable() {
    let seen = see(&["/etc/passwd"]);
    assert_eq!(seen.code, 126);
    assert!(seen.stderr.contains("/etc/passwd: "), "{}", seen.said());
}

fn code() {
    let seen = see(&["sh", "-c", "echo out; echo err >&2; exit 3"]);
    assert_eq!((seen.code, seen.stdout.as_slice()), (3, &b"out\n"[..]));
    assert!(seen.stderr.starts_with("err\n"), "{}", seen.said());
    assert_eq!(seen.report()["exit"]["code"], 3);
}

/// A parent that ignored SIGCHLD got neither the report nor the exit code; SIGPIPE was reset.
fn ignored() {
    let script = "trap '' CHLD PIPE; exec \"$0\" as-doctor sh -c \
                  'grep SigIgn /proc/self/status; exit 7'";
    let this = std::env::current_exe().expect("a test has a file");
    let output = std::process::Command::new("bash")
        .args(["-c", script])
        .arg(this)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let mask = said.trim().strip_prefix("SigIgn:").expect(&said).trim();
    let mask = u64::from_str_radix(mask, 16).expect("a mask in hexadecimal digits");
    let is_ignored = |signal: i32| mask >> (signal - 1) & 1 == 1;
    assert!(is_ignored(libc::SIGPIPE), "{mask:x}");
    assert!(!is_ignored(libc::SIGUSR1), "{mask:x}");
}

fn killed() {
    let seen = see(&["sh", "-c", "kill -KILL $$"]);
    assert_eq!(seen.code, 137);
    assert_eq!(seen.report()["exit"]["signal"], 9);
}

fn at_once() {
    for _ in 0..20 {
        let seen = see(&["true"]);
        assert_eq!(seen.code, 0);
        assert!(seen.value("time.wall") > 0.0);
        if !seen.lost_figure("processes.started") {
            assert_eq!(seen.value("processes.started"), 1.0);
        }
    }
}

fn grandchildren() {
    let script = "sleep 1000 <&- >/dev/null 2>&1 & echo $!; exit 4";
    let seen = see(&["sh", "-c", script]);
    assert_eq!(seen.code, 4);
    let pid = String::from_utf8(seen.stdout.clone())
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(is_alive(pid), "the doctor waited for it, or ended it");
    send(pid, "KILL");
}

fn gigabytes() {
    let bytes = 1_u64 << 30;
    let mut doctor = this("as-doctor")
        .args(["head", "-c", &bytes.to_string(), "/dev/zero"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = doctor.stdout.take().unwrap();
    let mut buffer = vec![0; 1 << 20];
    let mut came = 0;
    loop {
        match output.read(&mut buffer).unwrap() {
            0 => break,
            read => came += read as u64,
        }
    }
    assert_eq!(came, bytes);
    assert!(doctor.wait().unwrap().success());
}

fn untouched() {
    // The fifth field is the process group, the sixth the session.
    let script = "read -r _ _ _ _ group session _ </proc/$$/stat; \
                  read -r _ _ _ _ group2 session2 _ </proc/$PPID/stat; \
                  readlink /proc/$$/fd/0; test $group = $group2 && test $session = $session2";
    let seen = see(&["bash", "-c", script]);
    assert_eq!(
        (seen.code, seen.stdout.as_slice()),
        (0, &b"/dev/null\n"[..]),
        "{}",
        seen.said()
    );
}

fn nested() {
    let own = std::env::current_exe().unwrap();
    let seen = see(&[
        own.to_str().unwrap(),
        "as-doctor",
        "sh",
        "-c",
        "echo in; exit 9",
    ]);
    assert_eq!((seen.code, seen.stdout.as_slice()), (9, &b"in\n"[..]));
    assert_eq!(seen.report()["exit"]["code"], 9);
    let reports = seen
        .stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .count();
    assert_eq!(reports, 2, "{}", seen.said());
}

/// The doctor had read names from the file that lay at the path at the end, and had waited for a
/// pipe.
fn replaced() {
    let own = std::env::current_exe().unwrap();
    let name = format!("thalweg-doctor-{}-r", std::process::id());
    let place = std::env::temp_dir().join(name);
    std::fs::copy(&own, &place).unwrap();
    let path = place.to_str().unwrap();
    // The time at which the doctor opens a file depends on when it gets a core.
    let held = format!("{path} as-target spin-until-held $PPID");
    let script = format!("{held}; rm {path}; mkfifo {path}");
    let mut doctor = std::process::Command::new("timeout");
    doctor.arg("300").arg(&own).arg("as-doctor");
    let seen = finish(doctor.args(["sh", "-c", &script]).stdin(Stdio::null()));
    std::fs::remove_file(&place).unwrap();
    assert_eq!(seen.code, 0, "124: it waited; {}", seen.said());
    let stacks = seen.report()["recording"]["on_cpu"].to_string();
    // "spin" alone may be in a kernel name, as in `_raw_spin_lock`.
    match stacks.contains("target::spin") {
        false if seen.quality("spin.cpu_share") == "absent" => skip("no events for this user"),
        named => assert!(named, "the program's functions have no names: {stacks}"),
    }
}
