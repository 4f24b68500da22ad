//! Tests idle pipes: standard input is a pipe that no process writes to and no process closes, as
//! under an IDE, `docker run -i` or a CI runner. The tests keep it open until they have read the
//! notice.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStderr, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use crate::hostile::ORDERS;
use crate::program::{Ended, Scratch, command, thalweg};

/// The time for which a program without FILE waits for data.
const WAIT: Duration = Duration::from_secs(5);

/// A program whose standard input is an open pipe.
struct Idle {
    began: Instant,
    child: Child,
    input: ChildStdin,
    errors: BufReader<ChildStderr>,
}

impl Idle {
    fn start(arguments: &[&str]) -> Idle {
        let began = Instant::now();
        let mut command = command(arguments);
        let piped = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the program can be started");
        let input = child.stdin.take().expect("it is piped");
        let errors = BufReader::new(child.stderr.take().expect("it is piped"));
        Idle {
            began,
            child,
            input,
            errors,
        }
    }

    /// Returns the next line on standard error.
    fn notice(&mut self) -> String {
        let mut line = String::new();
        self.errors.read_line(&mut line).expect("it writes UTF-8");
        assert!(!line.is_empty(), "the program has ended");
        line
    }

    /// Waits until the program has taken all that was written, or has ended.
    fn await_empty(&mut self) {
        let mut is_over = || self.child.try_wait().expect("it is ours").is_some();
        while rustix::io::ioctl_fionread(&self.input).expect("it is a pipe") > 0 && !is_over() {
            std::thread::yield_now();
        }
    }

    /// Closes the input, and waits for the program to end.
    fn ended(self) -> Ended {
        let Idle {
            child,
            input,
            mut errors,
            ..
        } = self;
        drop(input);
        let mut said: Ended = child.wait_with_output().expect("it ends").into();
        std::io::Read::read_to_string(&mut errors, &mut said.stderr).expect("it writes UTF-8");
        said
    }

    /// Reads the notice, then writes this data and closes the input. Returns `None` where the
    /// program did not wait for as long as this thread had no core.
    #[track_caller]
    fn says_then_gets(mut self, data: &[u8]) -> Option<Ended> {
        let notice = self.notice();
        let wanted = "standard input: it is a pipe, and nothing has come from it yet";
        assert!(notice.contains(wanted), "{notice}");
        let written = self.input.write_all(data);
        let is_late = self.began.elapsed() >= WAIT;
        let said = self.ended();
        if is_late && said.stderr.contains("nothing came from standard input") {
            return None;
        }
        written.expect("the program reads it");
        Some(said)
    }
}

/// Starts a program, reads its notice, then writes this data and closes the input.
#[track_caller]
fn says_then_gets(arguments: &[&str], data: &str) -> Ended {
    let mut attempts = (0..10).map(|_| Idle::start(arguments).says_then_gets(data.as_bytes()));
    let said = attempts.find_map(|said| said);
    said.expect("this thread has a core in one of ten attempts")
}

#[test]
fn every_reader_of_standard_input_uses_what_comes() {
    let stream = "# marginTrading=ENABLED\nC,1,ADD_USER,7\nR,SUCCESS\n+U,7,0,0\n\
                  # FINAL STATE\nU,7,0,0\n# END\n";
    let scratch = Scratch::new();
    let messages = scratch.file("messages.csv", b"34200.1,1,11,18,5853300,1\n");
    let hashed = thalweg(&["hash", &messages]).fine().to_owned();
    let name_of_orders = |sum: &str| format!("{}  stdin\n", &sum[..16]);
    let run = ["exchange", "run", "-", "--format", "json"];
    let cases: [(&[&str], &str, &str); 8] = [
        (&run, ORDERS, "\"total\": 2"),
        (
            &["exchange", "run", "-", "--format-in", "orders"],
            ORDERS,
            "2 commands",
        ),
        (
            &["exchange", "run", &messages, "--books", "-"],
            "9999999999,0,5853300,18\n",
            "1 of 1",
        ),
        (
            &["exchange", "sweep", "-", "--placement", "inline"],
            ORDERS,
            "inline",
        ),
        (
            &["exchange", "conform"],
            stream,
            "standard input: agrees: 1 command",
        ),
        (
            &["exchange", "conform", "-"],
            stream,
            "standard input: agrees: 1 command",
        ),
        (&["hash", "--check", "-"], &hashed, "messages.csv: OK"),
        (
            &["hash"],
            "34200.1,1,11,18,5853300,1\n",
            &name_of_orders(&hashed),
        ),
    ];
    for (arguments, data, wanted) in cases {
        let mut idle = Idle::start(arguments);
        let (first, rest) = data.as_bytes().split_at(data.len() / 2);
        idle.input.write_all(first).expect("it is read");
        idle.await_empty();
        idle.input.write_all(rest).expect("it is read");
        let said = idle.ended();
        assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
        assert!(said.stdout.contains(wanted), "{arguments:?}: {said:?}");
    }
}

/// This is the first command of the README.
#[test]
fn without_file_and_data_the_made_up_flow_runs() {
    let mut idle = Idle::start(&["exchange", "run", "--limit", "5", "--format", "json"]);
    let first = idle.notice();
    assert!(
        first.contains("waiting for commands from standard input: it is a pipe"),
        "{first}"
    );
    assert!(first.contains("after 5s a made-up flow runs"), "{first}");
    let second = idle.notice();
    assert!(
        second.contains("nothing came from standard input: a made-up flow runs"),
        "{second}"
    );
    // The pipe remains open all this time.
    let Idle { child, input, .. } = idle;
    let said = Ended::from(child.wait_with_output().expect("it ends"));
    drop(input);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout.contains("\"format\": \"generated\""),
        "{said:?}"
    );
}

#[test]
fn a_pipe_without_file_is_used_when_its_data_comes_after_the_notice() {
    let said = says_then_gets(&["exchange", "run", "--format", "json"], ORDERS);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout.contains("\"name\": \"standard input\""),
        "{said:?}"
    );
}

#[test]
fn an_empty_pipe_is_no_input() {
    let idle = Idle::start(&["exchange", "run", "--limit", "5"]);
    let said = idle.ended();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stderr
            .contains("standard input holds no data: a made-up flow runs"),
        "{said:?}"
    );
    Idle::start(&["exchange", "run", "-"])
        .ended()
        .refused(&["standard input: empty file"]);
}

#[test]
fn a_seed_or_a_length_asks_for_the_made_up_flow_at_once() {
    for option in ["--commands", "--seed"] {
        let idle = Idle::start(&["exchange", "run", option, "5", "--limit", "5"]);
        let Idle {
            child,
            input,
            mut errors,
            ..
        } = idle;
        let said = Ended::from(child.wait_with_output().expect("it ends"));
        drop(input);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut errors, &mut text).expect("it writes UTF-8");
        assert_eq!((said.code, &text[..]), (Some(0), ""), "{said:?}");
    }
}

/// Data that arrives when the generated flow has begun must not be lost silently. Where this thread
/// had no core until the flow was over, a longer one is run.
#[test]
fn data_that_comes_too_late_is_a_failure() {
    for seconds in [1, 10, 100] {
        // The flow begins when the program has waited.
        let until = WAIT + Duration::from_millis(900) * seconds;
        let limit = format!("{seconds}k");
        let mut idle = Idle::start(&["exchange", "run", "--rate", "1k", "--limit", &limit]);
        while !idle.notice().contains("nothing came from standard input") {}
        let written = idle.input.write_all(ORDERS.as_bytes());
        let is_in_time = idle.began.elapsed() < until;
        let said = idle.ended();
        if !is_in_time && said.code == Some(0) {
            continue;
        }
        assert!(written.is_ok(), "{written:?}");
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(
            said.stderr.contains("with `-` as FILE it is waited for"),
            "{said:?}"
        );
        return;
    }
    panic!("this thread had no core for so long each time");
}

/// A named pipe blocks the process that opens it until a writer opens it too.
#[test]
fn a_named_pipe_is_read() {
    let scratch = Scratch::new();
    for arguments in [
        &["exchange", "run"][..],
        &["hash"],
        &["exchange", "run", "--costs"],
    ] {
        let pipe = scratch.path("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("there is such a command").success());
        let idle = Idle::start(&[arguments, &[&pipe]].concat());
        std::fs::write(&pipe, ORDERS).expect("the program reads it");
        let said = idle.ended();
        let is_read = said.code == Some(0) || said.stderr.contains("not what `thalweg machine");
        assert!(is_read, "{arguments:?}: {said:?}");
        std::fs::remove_file(pipe).expect("it was made above");
    }
}
