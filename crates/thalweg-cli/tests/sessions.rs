//! Tests `exchange send` and `exchange load` against a scripted server.

#[path = "../../thalweg-client/tests/client/mock.rs"]
#[allow(
    dead_code,
    reason = "made for the tests of the client; this file needs a part of it"
)]
mod mock;
use crate::program;

use std::io::Write;
use std::process::Stdio;

use mock::{Fault, Mock, bye};
use program::{Ended, Scratch, command, thalweg, words};
use serde_json::Value;
use thalweg_client::exchange::codec::session::CloseReason;
use thalweg_client::exchange::session::Refusal;

const ORDERS: &str = "thalweg-orders,1\n# two orders\nplace,7,1,1,buy,gtc,500,20\n\n\
                      place,7,1,2,sell,gtc,600,3\ncancel,7,1,1\n";

fn send(mock: &Mock, more: &[&str]) -> Ended {
    let address = mock.address.to_string();
    let arguments = ["exchange", "send", "--connect", &address];
    thalweg(&[&arguments[..], more].concat())
}

/// Returns the objects of the lines whose record is one of these.
fn objects(ended: &Ended, record: &[&str]) -> Vec<Value> {
    let lines = ended.stdout.lines();
    let objects = lines.map(|line| serde_json::from_str(line).expect("a line is an object"));
    let wanted = |object: &Value| record.iter().any(|name| object["record"] == *name);
    objects.filter(wanted).collect()
}

#[test]
fn a_file_is_sent_and_answers_and_reports_are_shown() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", ORDERS);
    let mock = Mock::new([]);
    let ended = send(&mock, &["--user", "7", &orders]);
    let text = ended.fine();
    for line in [
        " command 0 line 3 name place user 7 symbol 1 order 1 result SUCCESS",
        " command 2 line 6 name cancel user 7 symbol 1 order 1 result SUCCESS",
        "request_rejected report 3 command 2 user 7 symbol 1 order 3",
    ] {
        assert!(text.contains(line), "`{line}` is not in {text}");
    }
    assert_eq!(text.lines().count(), 6, "{text}");
}

/// The output must be the same, whatever happens to the connection.
#[test]
fn a_connection_that_breaks_is_made_again() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", ORDERS);
    for fault in [
        Fault::AfterReading(130),
        Fault::AfterWriting(90),
        Fault::Mute(3),
    ] {
        let mock = Mock::new([fault]);
        let ended = send(&mock, &["--user", "7", "--format", "json", &orders]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("; trying again\n"), "{ended:?}");
        let answers = objects(&ended, &["command"]);
        let answered = answers
            .iter()
            .map(|answer| (answer["line"].as_u64(), answer["command"].as_u64()));
        let expected = [(Some(3), Some(0)), (Some(5), Some(1)), (Some(6), Some(2))];
        assert!(answered.eq(expected), "{answers:?}");
        assert_eq!(objects(&ended, &["request_rejected"]).len(), 3);
        assert_eq!(mock.world().executed.len(), 3);
    }
}

#[test]
fn commands_may_come_from_a_pipe_without_the_name_of_the_format() {
    let mock = Mock::new([]);
    let address = mock.address.to_string();
    let arguments = ["exchange", "send", "--user", "7", "--connect", &address];
    let mut child = command(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(b"cancel,7,1,5\n").expect("it reads");
    // The command is sent while the pipe is still open.
    while mock.world().executed.is_empty() {
        std::thread::yield_now();
    }
    input.write_all(b"cancel,7,1,6\n").expect("it reads");
    drop(input);
    let ended: Ended = child.wait_with_output().expect("it ends").into();
    assert_eq!(ended.fine().lines().count(), 4);
}

#[test]
fn a_refused_command_makes_the_exit_code_1() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", ORDERS);
    let mock = Mock::new([Fault::Refuse(Refusal::DiskFull)]);
    let ended = send(&mock, &["--user", "7", "--format", "json", &orders]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let refused = objects(&ended, &["refused"]);
    assert_eq!(refused.len(), 3, "{ended:?}");
    assert_eq!(refused[0]["result"], "DISK_FULL");
}

#[test]
fn what_is_wrong_is_named() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", ORDERS);
    let mock = Mock::new([]);
    send(&mock, &["--user", "7", "none.csv"]).refused(&["none.csv"]);
    let empty = scratch.file("empty.key", "\n");
    let key = ["--user", "7", "--key-file", &empty, &orders];
    send(&mock, &key).refused(&["empty.key: holds no key"]);
    let long = scratch.file("long.key", "k".repeat(257));
    let key = ["--user", "7", "--key-file", &long, &orders];
    send(&mock, &key).refused(&["long.key: a key has 256 bytes at most"]);
    let key = ["--user", "7", "--key-file", "no.key", &orders];
    send(&mock, &key).refused(&["no.key"]);
    assert_eq!(mock.world().hellos, 0);
    let wrong = scratch.file("wrong.csv", "cancel,7,1\n");
    send(&mock, &["--user", "7", &wrong]).refused(&["wrong.csv:1:"]);
    let deposit = scratch.file("deposit.csv", "thalweg-orders,1\ndeposit,7,10,5\n");
    let text = "deposit.csv:2: a session with role trade has no such command";
    send(&mock, &["--user", "7", &deposit]).refused(&[text]);
    let order = scratch.file("order.csv", "thalweg-orders,1\nplace,7,1,1,buy,gtc,5,2\n");
    let text = "order.csv:2: a session with role admin has no such command";
    send(&mock, &["--admin", "1", &order]).refused(&[text]);
    assert!(mock.world().executed.is_empty());
    send(&mock, &[&orders]).refused(&["--user"]);
}

#[test]
fn a_refused_connection_names_the_reason() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", ORDERS);
    let mock = Mock::new([Fault::Reject(bye(CloseReason::WrongKey, ""))]);
    let text = "the exchange closed the connection: the key does not open this session: none was \
                sent; --key-file names a file that holds one\n";
    send(&mock, &["--user", "7", &orders]).refused(&[text]);
    let address = mock.address.to_string();
    drop(mock);
    let arguments = [
        "exchange",
        "send",
        "--user",
        "7",
        "--connect",
        &address,
        &orders,
    ];
    let text = format!("thalweg: cannot connect to {address}: ");
    thalweg(&arguments).refused(&[&text]);
}

#[test]
fn who_gives_up_says_which_commands_have_no_answer() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", ORDERS);
    // The second connection, and with it the only attempt, is closed at once.
    let mock = Mock::new([Fault::Mute(3), Fault::AfterReading(0)]);
    let options = [
        "--user",
        "7",
        "--attempts",
        "1",
        "--format",
        "json",
        &orders,
    ];
    let ended = send(&mock, &options);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(objects(&ended, &["unknown"]).len(), 3, "{ended:?}");
}

#[test]
fn a_session_that_is_remembered_goes_on() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", ORDERS);
    let store = &scratch.path("session");
    let mock = Mock::new([]);
    let options = ["--user", "7", "--store", store, "--format", "json", &orders];
    let mut last = 0;
    for _ in 0..3 {
        let ended = send(&mock, &options);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        for answer in objects(&ended, &["command"]) {
            let sequence = answer["sequence"].as_u64().expect("it has one");
            assert!(sequence > last, "{answer} after {last}");
            last = sequence;
        }
        assert_eq!(objects(&ended, &["request_rejected"]).len(), 3, "{ended:?}");
    }
}

fn load(mock: &Mock, more: &[&str]) -> Ended {
    let address = mock.address.to_string();
    let arguments = ["exchange", "load", "--quiet", "--connect", &address];
    thalweg(&[&arguments[..], more].concat())
}

#[test]
fn a_load_counts_what_it_sent_and_measures_it() {
    let mock = Mock::new([]);
    let setup = mock.address.to_string();
    let options = [
        "--sessions",
        "3",
        "--rate",
        "2k",
        "--for",
        "300ms",
        "--setup",
        &setup,
    ];
    let facts = load(&mock, &[&options[..], &["--format", "json"]].concat()).json();
    assert_eq!(facts["sent"], 600, "{facts}");
    assert_eq!(facts["executed"], 600, "{facts}");
    assert_eq!(facts["results"]["SUCCESS"], 600, "{facts}");
    assert_eq!(facts["unanswered"], 0, "{facts}");
    let latency = &facts["latency_ns"];
    assert!(
        latency["p50"].as_u64() <= latency["max"].as_u64(),
        "{facts}"
    );
    assert!(
        latency.get("p99").is_none(),
        "600 commands have no p99: {facts}"
    );
    let counted = facts["histogram"].as_array().expect("a list").iter();
    let counted: u64 = counted.filter_map(|row| row[1].as_u64()).sum();
    assert_eq!(counted, 600, "{facts}");
    // Two of the commands are those of the set-up.
    assert_eq!(mock.world().executed.len(), 602);
    let text = load(&mock, &options);
    let text = text.fine();
    for part in [
        "600 commands by 3 sessions, ",
        "executed   600\n",
        "\nlimit      ",
        "≤ ",
    ] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
}

/// With room for one command per session, the exchange is the limit, and the facts must say so.
#[test]
fn a_load_says_that_the_exchange_was_the_limit() {
    let mock = Mock::new([]);
    let options = words("--sessions 1 --rate max --for 200ms --in-flight 1");
    let facts = load(&mock, &[&options[..], &["--format", "json"]].concat()).json();
    assert_eq!(facts["limit"], "exchange", "{facts}");
    assert_eq!(facts["sent"], facts["executed"], "{facts}");
}

#[test]
fn a_load_that_is_refused_is_no_success() {
    let mock = Mock::new([Fault::Refuse(Refusal::Draining)]);
    let options = words("--sessions 1 --rate 1k --for 50ms --format json");
    let ended = load(&mock, &options);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let facts: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(facts["refused"]["DRAINING"], 50, "{facts}");
    load(&mock, &["--for", "5"]).refused(&["a time is a whole number of ms, s, m or h"]);
    load(&mock, &["--admin", "5"]).refused(&["--setup"]);
}
