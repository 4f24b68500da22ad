//! The outcomes of calls, against members of etcd that do as they are asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
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

/// The work of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Asked {
    requests: usize,
    answered_bytes: usize,
    /// Requests that get no answer, from now on.
    unanswered: usize,
}

/// Starts a member that has these keys, and answers the reads of transactions, each on its
/// connection or on a new one. Returns its address.
fn store(keys: BTreeMap<Vec<u8>, Vec<u8>>) -> (String, Arc<Mutex<Asked>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let asked = Arc::<Mutex<Asked>>::default();
    let counted = Arc::clone(&asked);
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            answer_all(BufReader::new(stream), &keys, &counted);
        }
    });
    (address, asked)
}

/// Answers the reads of a connection, until one is to have no answer.
fn answer_all(
    mut reader: BufReader<TcpStream>,
    keys: &BTreeMap<Vec<u8>, Vec<u8>>,
    counted: &Mutex<Asked>,
) {
    while let Some(body) = request(&mut reader) {
        let mut asked = counted.lock().expect("no panic");
        if asked.unanswered > 0 {
            asked.unanswered -= 1;
            return;
        }
        let body: Value = serde_json::from_str(&body).expect("it is JSON");
        let reads = body["success"].as_array().expect("a list");
        let responses: Vec<Value> = reads.iter().map(|read| answer(keys, read)).collect();
        let header = json!({ "revision": "7" });
        let body = json!({ "header": header, "succeeded": true, "responses": responses });
        let body = body.to_string();
        asked.requests += 1;
        asked.answered_bytes += body.len();
        drop(asked);
        give_body(reader.get_mut(), "200 OK", &body);
    }
}

/// Returns the answer to a read. One with an order makes a member load the whole range.
fn answer(keys: &BTreeMap<Vec<u8>, Vec<u8>>, read: &Value) -> Value {
    let read = &read["request_range"];
    let bytes = |field: &str| {
        let text = read[field].as_str().unwrap_or_default();
        STANDARD.decode(text).expect("it is base64")
    };
    for field in ["sort_order", "sort_target"] {
        assert!(
            read.get(field).is_none(),
            "the limit does not count: {read}"
        );
    }
    let (from, end) = (bytes("key"), bytes("range_end"));
    let end = match end.is_empty() {
        true => [&from[..], &[0]].concat(),
        false => end,
    };
    let limit = read["limit"]
        .as_str()
        .map_or(1, |text| text.parse().expect("a number"));
    let entry = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        let value = match read["keys_only"] == true {
            true => "",
            false => &STANDARD.encode(value),
        };
        json!({ "key": STANDARD.encode(key), "mod_revision": "7", "value": value })
    };
    let found: Vec<Value> = keys.range(from..end).take(limit).map(entry).collect();
    json!({ "response_range": { "kvs": found } })
}

/// Returns the keys of a log with batches of 1 KiB at these indices.
fn keys(indices: &[u64]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let key = |index: &u64| (format!("x/log/{index:016x}").into_bytes(), vec![1; 1_024]);
    let mut keys: BTreeMap<_, _> = indices.iter().map(key).collect();
    let newest = indices
        .last()
        .map_or_else(String::new, |index| format!("{index:016x}"));
    keys.insert(b"x/newest".to_vec(), newest.into_bytes());
    keys.insert(b"x/claim".to_vec(), claim().encode());
    keys
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
    give_body(stream, status, body)
}

fn give_body(stream: &mut TcpStream, status: &str, body: &str) -> bool {
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
        log: 4,
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
    let address = thalweg_testkit::refusing().to_string();
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
        {"response_range":{"kvs":[{"key":"eC9uZXdlc3Q=","mod_revision":"5",
        "value":"MDAwMDAwMDAwMDAwMDAwYQ=="}]}},
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

#[test]
fn a_batch_is_found_by_any_number_in_it() {
    // Gaps as long as batches are: of one command, and of thousands.
    let indices = [7, 8, 9, 20, 21, 9_000, 9_001, 9_064, 9_200, 40_000];
    let (member, _) = store(keys(&indices));
    let mut log = log(&[&member]);
    for at in (0..100)
        .chain(8_990..9_300)
        .chain([39_999, 40_000, 41_000, u64::MAX])
    {
        let found = log.find(at).expect("it answers").map(|stored| stored.index);
        let expected = indices.into_iter().rfind(|index| *index <= at);
        assert_eq!(found, expected, "{at}");
    }
    let (member, _) = store(keys(&[]));
    assert_eq!(self::log(&[&member]).find(5), Ok(None));
}

#[test]
fn the_work_of_a_look_does_not_grow_with_the_log() {
    let work = |count: u64| {
        let indices: Vec<u64> = (0..count).map(|at| at * 10).collect();
        let end = count * 10;
        let (member, asked) = store(keys(&indices));
        let mut log = log(&[&member]);
        let tail = log.read(end).expect("it answers");
        assert_eq!((tail.newest, tail.batches.len()), (Some(end - 10), 0));
        assert_eq!(log.read(end - 200).expect("it answers").batches.len(), 8);
        assert_eq!(log.indices(0, end - 50).expect("it answers")[..2], [0, 10]);
        for at in [end - 10, end - 15, u64::MAX] {
            assert!(log.find(at).expect("it answers").is_some());
        }
        *asked.lock().expect("no panic")
    };
    assert_eq!(work(1_000), work(5_000));
}

#[test]
fn a_read_after_one_that_did_not_come_asks_for_few_batches() {
    let indices: Vec<u64> = (0..200).collect();
    let (member, asked) = store(keys(&indices));
    let mut log = log(&[&member]);
    let count = |log: &mut EtcdLog| log.read(0).expect("it answers").batches.len();
    for expected in [8, 16, 32, 64, 64] {
        assert_eq!(count(&mut log), expected);
    }
    // A read is sent twice.
    asked.lock().expect("no panic").unanswered = 2;
    log.read(0).expect_err("there is no answer");
    assert_eq!(count(&mut log), 8);
}

#[test]
fn notes_of_replicas_are_read_by_name() {
    let noted = [
        ("x/peer/a:1", "h:9 key"),
        ("x/peer/b:2", "i:9 other"),
        ("x/replica/a:1", "5 7000"),
    ];
    let keys = noted.map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec()));
    let (member, _) = store(keys.into());
    let mut log = log(&[&member]);
    let text = |(replica, place): (&str, &str)| (replica.to_owned(), place.to_owned());
    let peers = [("a:1", "h:9 key"), ("b:2", "i:9 other")].map(text);
    assert_eq!(log.peers().expect("it answers"), peers);
    let positions = log.positions().expect("it answers");
    assert_eq!(positions, [("a:1".to_owned(), 5)]);
}
