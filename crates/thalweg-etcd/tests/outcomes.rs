//! The outcomes of calls, against members of etcd that do as they are asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use thalweg_etcd::{Address, EtcdLog};
use thalweg_exchange::durable::replication::{Claim, CommandLog, Start, Written};

/// A member's answer to a request.
#[derive(Clone, Copy)]
enum Answer {
    Body(&'static str),
    /// 503, as without a leader.
    Unavailable,
    /// The connection is closed without a word.
    Close,
}

const YES: Answer = Answer::Body(r#"{"header":{"revision":"7"},"succeeded":true,"responses":[]}"#);
const NO: Answer = Answer::Body(r#"{"header":{"revision":"7"},"responses":[]}"#);

/// Starts a member that gives these answers, one after the other, each on its connection or on a
/// new one. Returns its address, and the bodies of the requests.
fn member(answers: Vec<Answer>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let (sender, bodies) = channel();
    thread::spawn(move || {
        let mut answers = answers.into_iter().peekable();
        while answers.peek().is_some() {
            let Ok((stream, _)) = listener.accept() else {
                return;
            };
            let mut reader = BufReader::new(stream);
            while let Some(body) = request(&mut reader) {
                let _ = sender.send(body);
                let Some(answer) = answers.next() else {
                    return;
                };
                if !give(reader.get_mut(), answer) {
                    break;
                }
            }
        }
    });
    (address, bodies)
}

/// Reads a request. Returns its body.
fn request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_lowercase();
        if let Some(text) = line.strip_prefix("content-length: ") {
            length = text.parse().ok()?;
        }
        if line.is_empty() {
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            return String::from_utf8(body).ok();
        }
    }
}

/// Returns whether the connection goes on.
fn give(stream: &mut TcpStream, answer: Answer) -> bool {
    let (status, body) = match answer {
        Answer::Body(body) => ("200 OK", body),
        Answer::Unavailable => ("503 Service Unavailable", r#"{"error":"no leader"}"#),
        Answer::Close => return false,
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(head.as_bytes()).is_ok()
}

fn log(members: &[&str]) -> EtcdLog {
    let address = format!("etcd://{}/x", members.join(","));
    let address: Address = address.parse().expect("an address");
    EtcdLog::new(address).expect("a poll")
}

fn claim() -> Claim {
    Claim {
        epoch: 1,
        nonce: 2,
        identity: 3,
        start: Start::default(),
        holder: "a:1".to_owned(),
    }
}

fn is_unknown(written: &Written) -> bool {
    matches!(written, Written::Unknown(_))
}

#[test]
fn an_append_is_one_transaction_that_compares_the_claim_and_the_place() {
    let (member, bodies) = member(vec![YES, NO]);
    let mut log = log(&[&member]);
    assert_eq!(log.append(&claim(), Some(9), 10, b"batch"), Written::Acked);
    assert_eq!(log.append(&claim(), Some(9), 10, b"batch"), Written::Fenced);
    let body: serde_json::Value =
        serde_json::from_str(&bodies.recv().expect("a request")).expect("it is JSON");
    let compare = body["compare"].as_array().expect("a list");
    let targets: Vec<_> = compare.iter().map(|one| one["target"].as_str()).collect();
    assert_eq!(targets, [Some("VALUE"), Some("CREATE"), Some("CREATE")]);
    // `x/log/000000000000000a`
    assert_eq!(compare[1]["key"], "eC9sb2cvMDAwMDAwMDAwMDAwMDAwYQ==");
    assert_eq!(compare[1]["result"], "EQUAL");
    assert_eq!(compare[2]["key"], "eC9sb2cvMDAwMDAwMDAwMDAwMDAwOQ==");
    assert_eq!(compare[2]["result"], "GREATER");
    assert_eq!(body["success"][0]["request_put"]["value"], "YmF0Y2g=");
}

#[test]
fn a_write_without_a_clear_answer_is_unknown_and_is_sent_once() {
    for answer in [Answer::Close, Answer::Unavailable, Answer::Body("<html>")] {
        let (first, first_bodies) = member(vec![answer]);
        let (second, second_bodies) = member(vec![YES]);
        let mut log = log(&[&first, &second]);
        let written = log.append(&claim(), Some(9), 10, b"batch");
        assert!(is_unknown(&written), "{written:?}");
        assert_eq!(first_bodies.try_iter().count(), 1);
        assert_eq!(second_bodies.try_iter().count(), 0, "it is not tried again");
    }
}

#[test]
fn a_member_that_cannot_be_reached_is_passed_over() {
    let gone = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = gone.local_addr().expect("it is bound").to_string();
    drop(gone);
    let (second, _bodies) = member(vec![YES]);
    assert_eq!(log(&[&address, &second]).beat(&claim()), Written::Acked);
    let written = log(&[&address]).beat(&claim());
    let Written::Unknown(text) = written else {
        panic!("{written:?}");
    };
    assert!(
        text.contains(&format!("{address} cannot be reached")),
        "{text}"
    );
}

#[test]
fn a_read_is_tried_at_another_member() {
    let (first, _bodies) = member(vec![Answer::Close]);
    let tail = Answer::Body(
        r#"{"header":{"revision":"9"},"succeeded":true,"responses":[{"response_range":{}},
        {"response_range":{"kvs":[{"key":"eC9iZWF0","mod_revision":"8","value":"MQ=="}]}},
        {"response_range":{"kvs":[{"key":"eC9sb2cvMDAwMDAwMDAwMDAwMDAwYQ==","mod_revision":"5"}]}},
        {"response_range":{}}]}"#,
    );
    let (second, _bodies) = member(vec![tail]);
    let tail = log(&[&first, &second])
        .read(11)
        .expect("the second answers");
    assert_eq!((tail.pulse, tail.newest), (8, Some(10)));
    assert!(tail.claim.is_none() && tail.batches.is_empty());
}

#[test]
fn an_answer_that_lacks_a_part_is_an_error() {
    let part = Answer::Body(
        r#"{"header":{"revision":"9"},"succeeded":true,"responses":[{"response_range":{}}]}"#,
    );
    let (member, _bodies) = member(vec![part]);
    let error = log(&[&member]).read(0).expect_err("three are missing");
    let text = "the command log cannot be read: an answer without all that was asked";
    assert_eq!(error.to_string(), text);
}
