//! The doctor's role in the tests, and helpers that run a doctor.

use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::time::Duration;
use thalweg_doctor::observe::{Options, attach, observe};
use thalweg_doctor::report::Ending;
use thalweg_doctor::target::Target;

/// Observes a command (or a process), and prints the evidence as the last line of stderr.
pub(crate) fn play(arguments: &[OsString]) -> ExitCode {
    let mut options = Options::default();
    let mut attached = None;
    let mut words = arguments.iter().cloned();
    let number = |word: Option<OsString>| word.unwrap().to_str().unwrap().parse::<u64>().unwrap();
    let program = loop {
        let word = words.next();
        match word.as_ref().and_then(|word| word.to_str()) {
            Some("--grace-ms") => options.grace = Duration::from_millis(number(words.next())),
            Some("--no-events") => options.events = false,
            Some("--attach") => attached = Some(number(words.next()) as i32),
            _ => break word,
        }
    };
    let seen = match (attached, program) {
        (Some(pid), time) => attach(pid, Duration::from_millis(number(time)), &options),
        (None, Some(program)) => observe(
            &Target {
                program,
                arguments: words.collect(),
            },
            &options,
        ),
        (None, None) => panic!("no command"),
    };
    let code = match seen {
        Ok(seen) => {
            let seen_as = serde_json::json!({
                "evidence": seen.evidence, "recording": seen.recording, "exit": seen.exit,
            });
            eprintln!("\n{seen_as}");
            seen.exit.map_or(0, Ending::code)
        }
        Err(error) => {
            eprintln!("doctor: {error}");
            error.code()
        }
    };
    ExitCode::from(u8::try_from(code).unwrap())
}

/// Returns a command that runs this program in another role.
pub(crate) fn this(part: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(part);
    command
}

/// The output of a doctor.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Seen {
    /// Returns the line that it printed last, parsed.
    pub(crate) fn report(&self) -> Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {}", self.said()))
    }

    /// Returns the output besides reports, which are long, and the first part of those.
    pub(crate) fn said(&self) -> String {
        let lines = self.stderr.lines().filter(|line| !line.starts_with('{'));
        let text: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        text.join("\n").chars().take(500).collect()
    }

    /// Checks that a figure is above this value.
    pub(crate) fn above(&self, name: &str, least: f64) {
        let value = self.value(name);
        assert!(
            value > least,
            "{name} {value} is not above {least}; it lacks {:?}",
            self.lacks()
        );
    }

    /// Returns the value of a figure.
    pub(crate) fn value(&self, name: &str) -> f64 {
        let reading = &self.report()["evidence"][name];
        reading["value"]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {reading}; it lacks {:?}", self.lacks()))
    }

    /// Returns what the recording lacks, by its own account.
    pub(crate) fn lacks(&self) -> Vec<String> {
        let lacks = &self.report()["recording"]["lacks"];
        let lacks = lacks.as_array().into_iter().flatten();
        lacks
            .map(|lack| lack.as_str().unwrap_or("").to_owned())
            .collect()
    }

    /// Returns what it says of records that were lost; empty if none were.
    pub(crate) fn lost(&self) -> String {
        let mut lacks = self.lacks().into_iter();
        lacks
            .find(|lack| lack.ends_with(" records, as a ring was full"))
            .unwrap_or_default()
    }

    /// Returns whether a figure is absent since records were lost, and prints that the test is
    /// skipped then: a doctor that has no core for long cannot read them in time.
    pub(crate) fn lost_figure(&self, name: &str) -> bool {
        let lost = self.lost();
        let is_lost = !lost.is_empty() && self.quality(name) == "absent";
        if is_lost {
            skip(&format!("no {name}: {lost}"));
        }
        is_lost
    }

    pub(crate) fn quality(&self, name: &str) -> String {
        self.report()["evidence"][name]["quality"]
            .as_str()
            .unwrap()
            .into()
    }
}

/// Runs the doctor with these arguments to its end.
pub(crate) fn see(words: &[&str]) -> Seen {
    finish(this("as-doctor").args(words).stdin(Stdio::null()))
}

pub(crate) fn finish(command: &mut Command) -> Seen {
    let output = command.output().unwrap();
    assert_eq!(output.status.signal(), None, "the doctor itself was killed");
    Seen {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into(),
    }
}

/// A doctor that is running.
pub(crate) struct AtWork {
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
}

impl AtWork {
    pub(crate) fn start(words: &[&str]) -> AtWork {
        AtWork::spawn(this("as-doctor").args(words))
    }

    /// Starts a doctor in a process group of its own, whose id is that of the doctor.
    pub(crate) fn start_in_group(words: &[&str]) -> AtWork {
        AtWork::spawn(this("as-doctor").args(words).process_group(0))
    }

    pub(crate) fn spawn(command: &mut Command) -> AtWork {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        AtWork { child, stdout }
    }

    /// Returns the next line of the program.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    /// Waits until the doctor's threads have run this often more: on a busy machine it may not look
    /// at the program for seconds.
    pub(crate) fn await_runs(&self, times: u64) {
        let doctor = self.child.id();
        let before = runs(doctor);
        while is_alive(doctor) && runs(doctor) < before + times {
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    pub(crate) fn send(&self, signal: &str) {
        send(self.child.id(), signal);
    }

    pub(crate) fn finish(mut self) -> Seen {
        // Both outputs are read at the same time, as a report may be larger than a pipe.
        let mut errors = self.child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut stderr = String::new();
            errors.read_to_string(&mut stderr).unwrap();
            stderr
        });
        let mut stdout = Vec::new();
        self.stdout.read_to_end(&mut stdout).unwrap();
        let stderr = errors.join().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), None, "the doctor itself was killed");
        Seen {
            code: status.code().unwrap(),
            stdout,
            stderr,
        }
    }
}

pub(crate) fn send(pid: u32, signal: &str) {
    let sent = Command::new("kill")
        .args(["-s", signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Returns how often the threads of a process got a core.
pub(crate) fn runs(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let times = threads.into_iter().flatten().flatten().map(|thread| {
        let times = std::fs::read_to_string(thread.path().join("schedstat"));
        let times = times.unwrap_or_default();
        let runs = times.split_whitespace().nth(2);
        runs.and_then(|runs| runs.parse::<u64>().ok()).unwrap_or(0)
    });
    times.sum()
}

/// Returns a field of a process's line in `/proc`, from the third one on, by its number in the
/// manual; `None` if the process is gone.
fn field(pid: u32, number: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.rsplit_once(')')?.1;
    fields.split_whitespace().nth(number - 3).map(str::to_owned)
}

/// Returns the minor page faults of a process, and of the children that it waited for.
pub(crate) fn faults(pid: u32) -> Option<[u64; 2]> {
    let count = |number| field(pid, number)?.parse().ok();
    Some([count(10)?, count(11)?])
}

/// Returns the child of a process that has one.
pub(crate) fn child_of(pid: u32) -> Option<u32> {
    let processes = std::fs::read_dir("/proc")
        .expect("there is /proc")
        .flatten();
    let mut pids = processes.filter_map(|it| it.file_name().to_str()?.parse().ok());
    pids.find(|&child| field(child, 4).is_some_and(|parent| parent == pid.to_string()))
}

/// Returns whether the first thread of a process sleeps in one of these calls, by the name of the
/// kernel's function, or by the number of the call where that is hidden.
pub(crate) fn sleeps_in(pid: u32, function: &str, calls: &[libc::c_long]) -> bool {
    let read = |name| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let call = read("syscall");
    let call = call.split(' ').next().and_then(|word| word.parse().ok());
    let is_in_call = call.is_some_and(|call| calls.contains(&call));
    let is_asleep = field(pid, 3).is_some_and(|state| state == "S");
    is_asleep && (is_in_call || read("wchan").contains(function))
}

/// Waits for the end of a shell that has got SIGKILL: it may still be on its way out. One that has
/// not would take note of the ends of its children; one that has may take note of one, as the
/// kernel looks for ended children before it looks for signals.
pub(crate) fn await_killed(pid: u32) {
    let noted = || faults(pid).map(|[_, of_children]| of_children);
    let (mut before, mut changes) = (noted(), 0);
    while is_alive(pid) {
        let now = noted();
        if now.is_some() && now != before {
            (before, changes) = (now, changes + 1);
            assert_eq!(changes, 1, "process {pid} was not killed");
        }
        std::thread::yield_now();
    }
}

/// Returns whether a process runs (or waits to be reaped by a process other than us).
pub(crate) fn is_alive(pid: u32) -> bool {
    field(pid, 3).is_some_and(|state| state != "Z" && state != "X")
}

pub(crate) fn skip(why: &str) {
    let _ = writeln!(std::io::stdout(), "skipped: {why}");
}
