//! Tests `thalweg exchange serve`: the program, its signals, and the state that a kill leaves.

use crate::program;
#[path = "../../thalweg-server/tests/serving/client.rs"]
#[allow(
    dead_code,
    reason = "made for the tests of the server; this file needs a part of it"
)]
pub(crate) mod client;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command as Program, Stdio};

use client::{Client, Received, hello, submit_of};
use program::{LISTEN, Scratch, command, serve, signal, thalweg};
use thalweg_exchange::codec::session::{CloseReason, Hello, Welcome};
use thalweg_exchange::session::Role;
use thalweg_exchange::{AccountSpec, Command, CurrencyId, UserId};
use thalweg_server::config::DEFAULT_TEXT;

const TERM: u32 = 15;

/// A server in a process of its own, which is killed when this is dropped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) admin: SocketAddr,
    pub(crate) trade: String,
    pub(crate) http: String,
    pub(crate) gateway: Option<String>,
}

impl Serving {
    pub(crate) fn start(directory: &str) -> Serving {
        Serving::start_as(command(&[]), directory, &[])
    }

    /// Starts where traders connect to this address.
    pub(crate) fn start_at(directory: &str, trade: &str, more: &[&str]) -> Serving {
        let mut listen = LISTEN;
        listen[1] = trade;
        Serving::begin(command(&[]), directory, &[&listen, more].concat())
    }

    /// Starts a program with these additional options.
    pub(crate) fn start_as(program: Program, directory: &str, more: &[&str]) -> Serving {
        Serving::begin(program, directory, &[&LISTEN, more].concat())
    }

    fn begin(mut program: Program, directory: &str, options: &[&str]) -> Serving {
        program.args(["exchange", "serve", directory, "--format", "json"]);
        let mut child = program
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let stdout = child.stdout.as_mut().expect("it is piped");
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it says where it listens");
        let printed: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
        let admin = printed["admin"].as_str().and_then(|at| at.parse().ok());
        let admin = admin.expect("an address");
        let at = |name: &str| printed[name].as_str().expect("an address").to_owned();
        Serving {
            child,
            admin,
            trade: at("trade"),
            http: at("http"),
            gateway: printed["gateway"].as_str().map(str::to_owned),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns a figure of `/metrics`, once it is there.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        loop {
            let mut stream = TcpStream::connect(&self.http).expect("it listens");
            let request = b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
            stream.write_all(request).expect("it reads");
            let mut page = String::new();
            stream.read_to_string(&mut page).expect("it answers");
            let value = page.lines().find_map(|line| line.strip_prefix(name));
            if let Some(value) = value {
                return value.trim().parse::<f64>().expect("a number") as u64;
            }
        }
    }

    /// Returns the exit code and the log.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        // The log is read before the process is waited for: lines that no thread reads are dropped.
        let mut log = String::new();
        let stderr = self.child.stderr.as_mut().expect("it is piped");
        stderr.read_to_string(&mut log).expect("it logs UTF-8");
        let code = self.child.wait().expect("it can be waited for").code();
        (code, log)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects a session of the administrator.
fn connect(serving: &Serving) -> (Client, Welcome) {
    let hello = Hello {
        last_report: None,
        heartbeat_ms: 600_000,
        ..hello(Role::Admin, 1)
    };
    Client::connect(serving.admin, hello)
}

/// Returns `false` where the connection is gone.
fn add_user(admin: &mut Client, number: u64) -> bool {
    let uid = UserId(number as i64);
    let bytes = submit_of(number, &Command::AddUser { uid });
    admin.stream.write_all(&bytes).is_ok()
}

/// Returns the next message from a server that may disappear within a frame.
fn receive(admin: &mut Client) -> Received {
    admin.receive_cut().unwrap_or(Received::Closed)
}

#[test]
fn the_default_configuration_is_printed() {
    let printed = thalweg(&["exchange", "serve", "--print-config"]);
    assert_eq!(printed.fine(), DEFAULT_TEXT);
}

/// The gateway's threads end within a task of the server then, which was a panic.
#[test]
fn an_address_of_the_gateway_that_is_in_use_is_named() {
    let scratch = Scratch::new();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = busy.local_addr().expect("it is bound").to_string();
    let directory = scratch.path("exchange");
    let gateway = ["--demo", &directory, "--gateway", &address];
    serve(&gateway).refused(&["gateway.listen", &address, "cannot be listened on"]);
}

/// The process ended while its WebSockets were being closed, and clients saw no reason.
#[test]
fn a_websocket_is_closed_with_a_code_when_the_server_is_terminated() {
    let scratch = Scratch::new();
    let symbols = scratch.path("symbols.toml");
    std::fs::write(&symbols, "").expect("there is room");
    let more = ["--gateway", "127.0.0.1:0", "--symbols", &symbols];
    let serving = Serving::start_as(command(&[]), &scratch.path("exchange"), &more);
    let address = serving.gateway.as_deref().expect("it has a gateway");
    let mut socket = TcpStream::connect(address).expect("it listens");
    let head = "GET /ws HTTP/1.1\r\nHost: g\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n";
    socket.write_all(head.as_bytes()).expect("it reads");
    let mut received = vec![0; 12];
    socket.read_exact(&mut received).expect("it answers");
    assert_eq!(received, b"HTTP/1.1 101");
    signal(serving.child.id(), TERM);
    socket.read_to_end(&mut received).expect("it closes");
    let text = String::from_utf8_lossy(&received);
    assert!(text.contains("serverShutdown"), "{text}");
    let close = [&[0x88, 18, 0x03, 0xe9][..], b"the server stops"].concat();
    assert!(received.ends_with(&close), "{text}");
    assert_eq!(serving.ended().0, Some(0));
}

#[test]
fn what_cannot_be_served_is_reported_at_once() {
    thalweg(&["exchange", "serve"]).refused(&["<DIR>"]);
    let scratch = Scratch::new();
    let directory = scratch.path("exchange");
    let open = [
        "exchange",
        "serve",
        &directory,
        "--trade-listen",
        "0.0.0.0:0",
    ];
    thalweg(&open).refused(&["trade.listen is 0.0.0.0:0", "there are no keys"]);
    let config = scratch.file("serve.toml", b"[trade]\nport = 1\n");
    let wrong = ["exchange", "serve", &directory, "--config", &config];
    thalweg(&wrong).refused(&["serve.toml:2: unknown field `port`"]);
    assert!(
        !std::path::Path::new(&directory).exists(),
        "nothing was made"
    );
    // The directory holds files of something else.
    let other = scratch.file("letter.txt", b"dear");
    let place = std::path::Path::new(&other)
        .parent()
        .and_then(|place| place.to_str());
    serve(&[place.expect("UTF-8")])
        .refused(&["no exchange is here, and the directory is not empty"]);
}

#[test]
fn sigterm_ends_it_in_order_while_commands_come() {
    let scratch = Scratch::new();
    let directory = scratch.path("exchange");
    let serving = Serving::start(&directory);
    let (mut admin, _) = connect(&serving);
    let mut sent = 0;
    for _ in 0..200 {
        sent += 1;
        assert!(add_user(&mut admin, sent));
    }
    signal(serving.child.id(), TERM);
    let (mut answered, mut is_over) = (0, false);
    while !is_over {
        sent += 1;
        let _ = add_user(&mut admin, sent);
        match receive(&mut admin) {
            Received::Answer(answer) => answered = answer.sequence.0,
            Received::Refused(_) => {}
            Received::Bye(why, _) => {
                assert_eq!(why, CloseReason::Shutdown);
                is_over = true;
            }
            // The connection was closed while commands were in flight.
            Received::Closed => is_over = true,
            other => panic!("{other:?}"),
        }
    }
    let (code, log) = serving.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("the exchange is closed"), "{log}");
    let again = Serving::start(&directory);
    let (_, welcome) = connect(&again);
    assert!(
        welcome.last_executed.0 >= answered,
        "{welcome:?}, {answered} were answered"
    );
}

#[test]
fn what_was_answered_before_a_kill_is_there_once() {
    let scratch = Scratch::new();
    let directory = scratch.path("exchange");
    let (mut next, mut answered) = (1, 0);
    for round in 1..=3 {
        let mut serving = Serving::start(&directory);
        let (mut admin, welcome) = connect(&serving);
        assert!(welcome.last_executed.0 >= answered, "round {round}");
        // Commands without an answer are sent again, and executed once: a user is added once.
        for sequence in answered + 1..next {
            assert!(add_user(&mut admin, sequence));
        }
        while answered + 1 < next {
            match receive(&mut admin) {
                Received::Answer(answer) => {
                    assert_eq!(answer.sequence.0, answered + 1);
                    assert_eq!(answer.result, thalweg_exchange::ResultCode::Success);
                    answered += 1;
                }
                other => panic!("round {round}: {other:?}"),
            }
        }
        for _ in 0..300 {
            add_user(&mut admin, next);
            next += 1;
        }
        while answered < next - 150 {
            match receive(&mut admin) {
                Received::Answer(answer) => answered = answer.sequence.0,
                other => panic!("round {round}: {other:?}"),
            }
        }
        // At this point a second server must find the directory in use.
        if round == 1 {
            serve(&[&directory]).refused(&[]);
        }
        serving.child.kill().expect("it runs");
        while let Received::Answer(answer) = receive(&mut admin) {
            answered = answer.sequence.0;
        }
    }
    let serving = Serving::start(&directory);
    let (_, welcome) = connect(&serving);
    assert!(welcome.last_executed.0 >= answered);
}

#[test]
fn a_file_is_no_place_for_an_exchange() {
    let scratch = Scratch::new();
    let file = scratch.file("file", b"mine");
    serve(&["--demo", &file]).refused(&[&file, "not a directory"]);
    serve(&[&file]).refused(&[&file, "not a directory"]);
    for command in ["recover", "verify", "export"] {
        let message = format!("{file}: cannot be listed: Not a directory");
        thalweg(&["exchange", command, &file]).refused(&[&message]);
    }
}

#[test]
fn an_audit_line_is_in_the_file_for_each_command_of_an_administrator() {
    let scratch = Scratch::new();
    let audit = scratch.path("audit.jsonl");
    let text = format!("[admin]\naudit_file = {audit:?}\n");
    let config = scratch.file("serve.toml", text.as_bytes());
    for (first, last) in [(1, 3), (4, 5)] {
        let more = ["--config", &config];
        let serving = Serving::start_as(command(&[]), &scratch.path("exchange"), &more);
        let (mut admin, _) = connect(&serving);
        for number in first..=last {
            assert!(add_user(&mut admin, number));
            assert_eq!(admin.answer().sequence.0, number);
        }
        signal(serving.child.id(), TERM);
        assert_eq!(serving.ended().0, Some(0));
    }
    let text = std::fs::read_to_string(&audit).expect("it was made");
    let lines = text.lines().zip(1..).map(|(line, number)| {
        let printed: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(printed["sequence"], number, "{line}");
        assert_eq!(printed["result"], "SUCCESS", "{line}");
        assert_eq!(printed["admin"], 1, "{line}");
    });
    assert_eq!(lines.count(), 5);
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let scratch = Scratch::new();
    // Standard error is a pipe that is full after a few hundred lines.
    let serving = Serving::start(&scratch.path("exchange"));
    let (mut admin, _) = connect(&serving);
    for first in (1..=10_000).step_by(500) {
        (first..first + 500).for_each(|number| assert!(add_user(&mut admin, number)));
        (first..first + 500).for_each(|number| assert_eq!(admin.answer().sequence.0, number));
    }
    signal(serving.child.id(), TERM);
    while !matches!(receive(&mut admin), Received::Bye(..) | Received::Closed) {}
    let mut serving = serving;
    assert_eq!(serving.child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_port_in_use_and_a_wrong_key_file_are_reported_with_their_place() {
    let scratch = Scratch::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("it has one").to_string();
    let directory = scratch.path("exchange");
    let any = "127.0.0.1:0";
    let serve = |trade: &str, more: &[&str]| {
        let mut words = vec!["exchange", "serve", &directory, "--trade-listen", trade];
        words.extend(["--admin-listen", any, "--http-listen", any]);
        words.extend(more);
        thalweg(&words)
    };
    let message = format!("trade.listen: {taken} cannot be listened on: ");
    serve(&taken, &[]).refused(&[&message]);
    let keys = scratch.file("keys.toml", b"[[key]]\nname = \"a\"\nrole = \"root\"\n");
    serve(any, &["--key-file", &keys]).refused(&["keys.toml:1: "]);
    let none = scratch.path("none.toml");
    serve(any, &["--key-file", &none]).refused(&["none.toml: "]);
    assert!(
        !std::path::Path::new(&directory).exists(),
        "nothing was made"
    );
}

/// A limit on the size of files simulates a full disk.
#[test]
fn a_last_snapshot_that_finds_no_room_is_reported_and_nothing_is_gone() {
    let scratch = Scratch::new();
    let directory = scratch.path("exchange");
    let config = scratch.file("serve.toml", b"[journal]\nsegment_bytes = 1048576\n");
    let more = ["--config", &config];
    let mut shell = Program::new("bash");
    // The limit is in units of 1,024 bytes: a segment fits, the snapshot does not.
    let script = "trap '' XFSZ; ulimit -f 1100; exec \"$0\" \"$@\"";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_thalweg")]);
    let serving = Serving::start_as(shell, &directory, &more);
    let (mut admin, _) = connect(&serving);
    const USERS: i64 = 40_000;
    let account = |user| AccountSpec::new(UserId(user), vec![(CurrencyId(1), 5)]);
    for (number, first) in (1..).zip((1..=USERS).step_by(1_000)) {
        let accounts = (first..first + 1_000).map(account).collect();
        admin.submit(number, &Command::AddAccounts(accounts));
        assert_eq!(admin.answer().sequence.0, number);
    }
    signal(serving.child.id(), TERM);
    let (code, log) = serving.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("the last snapshot was not written"), "{log}");
    let again = Serving::start_as(command(&[]), &directory, &more);
    let (_, welcome) = connect(&again);
    assert_eq!(welcome.last_executed.0, (USERS / 1_000) as u64);
}

#[test]
fn a_demo_trades_by_itself_and_prints_keys() {
    let scratch = Scratch::new();
    let directory = scratch.path("demo");
    let mut child = command(&["exchange", "serve", "--demo", &directory])
        .args(LISTEN)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be started");
    let stdout = BufReader::new(child.stdout.as_mut().expect("it is piped"));
    let lines: Vec<String> = stdout
        .lines()
        .take(5)
        .map(|line| line.expect("UTF-8"))
        .collect();
    assert!(
        lines[0].starts_with("listening: trade 127.0.0.1:"),
        "{lines:?}"
    );
    assert_eq!(
        lines.iter().filter(|line| line.contains("twk_")).count(),
        3,
        "{lines:?}"
    );
    let http = lines[0].split("http ").nth(1).expect("an address");
    loop {
        let mut stream = TcpStream::connect(http).expect("it listens");
        let request = b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        stream.write_all(request).expect("it reads");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("it answers");
        let count = page
            .lines()
            .find_map(|line| line.strip_prefix("thalweg_commands_total "));
        if count.and_then(|count| count.parse().ok()) > Some(50_u64) {
            break;
        }
        std::thread::yield_now();
    }
    let keys = scratch.path("demo/keys.toml");
    let before = std::fs::read(&keys).expect("it is there");
    serve(&["--demo", &directory]).refused(&["another journal writes here"]);
    let after = std::fs::read(&keys).expect("it is there");
    assert_eq!(before, after, "the keys of the one that runs");
    signal(child.id(), TERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
