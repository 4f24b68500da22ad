//! The outcomes of calls, against members of etcd that do as they are asked.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use thalweg_etcd::{Address, EtcdLog, Times};
use thalweg_exchange::durable::replication::{Claim, CommandLog, LogStart, WriteOutcome};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// A member's answer to a request.
#[derive(Clone)]
enum Answer {
    /// Frames of data, and the status behind them, if there is one.
    Data(Vec<Vec<u8>>, Option<&'static str>),
    /// A frame of data, without an end.
    Endless(Vec<u8>),
    /// A message, after which the connection is closed.
    Last(Vec<u8>),
    /// No message: as without a leader, or without room.
    Status(&'static str),
    /// Not gRPC's.
    Http(StatusCode),
    /// The call is broken off, the connection is not.
    Reset,
    /// The connection is closed without a word.
    Close,
    /// It does not come.
    Silence,
}

/// The header of an answer, with the revision 7; and that the comparisons hold.
const NO: &[u8] = &[0x0A, 2, 0x18, 7];
const YES: &[u8] = &[0x0A, 2, 0x18, 7, 0x10, 1];

/// Returns a message in gRPC's form.
fn prefixed(message: &[u8]) -> Vec<u8> {
    [&[0], &(message.len() as u32).to_be_bytes()[..], message].concat()
}

fn body(message: &[u8]) -> Answer {
    Answer::Data(vec![prefixed(message)], Some("0"))
}

/// Returns a field of bytes, whose number is below 16.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let (mut head, mut length) = (vec![number << 3 | 2], bytes.len());
    while length >= 0x80 {
        head.push(length as u8 | 0x80);
        length >>= 7;
    }
    head.push(length as u8);
    [&head, bytes].concat()
}

/// The value of a field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// Returns the fields of a request.
fn fields(mut message: &[u8]) -> Vec<(u64, Value)> {
    fn number(message: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (byte, rest) = message.split_first().expect("a byte of a number");
            *message = rest;
            value |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut fields = Vec::new();
    while !message.is_empty() {
        let head = number(&mut message);
        let value = number(&mut message);
        let value = match head & 7 {
            0 => Value::Number(value),
            2 => {
                let (bytes, rest) = message.split_at(value as usize);
                message = rest;
                Value::Bytes(bytes.to_vec())
            }
            other => panic!("a field of type {other}"),
        };
        fields.push((head >> 3, value));
    }
    fields
}

/// Returns the messages, or texts, that are fields with this number.
fn all(message: &[u8], number: u64) -> Vec<Vec<u8>> {
    let bytes = |(found, value)| match value {
        Value::Bytes(bytes) if found == number => Some(bytes),
        _ => None,
    };
    fields(message).into_iter().filter_map(bytes).collect()
}

/// Serves a connection: each request by this function, until it gives no answer. Notes how long
/// each may take.
async fn serve(
    stream: TcpStream,
    mut answer: impl FnMut(Vec<u8>) -> Option<Answer>,
    times: &Sender<String>,
) -> Result<(), h2::Error> {
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(request) = connection.accept().await {
        let (request, mut respond) = request?;
        let header = |name| request.headers().get(name).map(HeaderValue::as_bytes);
        assert_eq!(header("content-type"), Some(&b"application/grpc"[..]));
        assert_eq!(header("te"), Some(&b"trailers"[..]));
        let time = header("grpc-timeout").expect("it has an end");
        let _ = times.send(String::from_utf8_lossy(time).into_owned());
        let mut received = pin!(read(request.into_body()));
        let message = poll_fn(|context| match received.as_mut().poll(context) {
            Poll::Ready(read) => Poll::Ready(read),
            // The bytes that arrive are moved on while the connection is polled.
            Poll::Pending => match connection.poll_closed(context) {
                Poll::Ready(closed) => Poll::Ready(closed.map(|()| Vec::new())),
                Poll::Pending => Poll::Pending,
            },
        });
        let message = message.await?.split_off(5);
        let Some(answer) = answer(message) else {
            return Ok(());
        };
        let is_last = matches!(answer, Answer::Last(_));
        if !give(&mut respond, answer)? {
            return Ok(());
        }
        if is_last {
            // The answer is written at once.
            let _ = timeout(Duration::ZERO, connection.accept()).await;
            return Ok(());
        }
    }
    Ok(())
}

/// Gives an answer. Returns false where the connection is to be closed.
fn give(respond: &mut SendResponse<Bytes>, answer: Answer) -> Result<bool, h2::Error> {
    let mut head = Response::new(());
    match answer {
        Answer::Data(frames, code) => send(respond, frames, code)?,
        Answer::Last(message) => send(respond, vec![prefixed(&message)], Some("0"))?,
        Answer::Endless(frame) => {
            let mut stream = respond.send_response(head, false)?;
            stream.send_data(Bytes::from(frame), false)?;
            // It is reset when it is dropped.
            std::mem::forget(stream);
        }
        Answer::Status(code) => {
            *head.headers_mut() = status(code);
            respond.send_response(head, true)?;
        }
        Answer::Http(code) => {
            *head.status_mut() = code;
            respond.send_response(head, true)?;
        }
        Answer::Reset => respond.send_reset(Reason::INTERNAL_ERROR),
        Answer::Close => return Ok(false),
        // It is reset when it is dropped.
        Answer::Silence => std::mem::forget(respond.send_response(head, false)?),
    }
    Ok(true)
}

fn send(
    respond: &mut SendResponse<Bytes>,
    frames: Vec<Vec<u8>>,
    code: Option<&'static str>,
) -> Result<(), h2::Error> {
    let mut stream = respond.send_response(Response::new(()), false)?;
    for frame in frames {
        stream.send_data(Bytes::from(frame), false)?;
    }
    match code {
        Some(code) => stream.send_trailers(status(code)),
        None => stream.send_data(Bytes::new(), true),
    }
}

fn status(code: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("grpc-status", HeaderValue::from_static(code));
    headers.insert("grpc-message", HeaderValue::from_static("a reason"));
    headers
}

async fn read(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut bytes = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        body.flow_control().release_capacity(part.len())?;
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Starts a member that answers each request by this function, each on its connection or on a new
/// one. Returns its address.
fn start(answer: impl FnMut(Vec<u8>) -> Option<Answer> + Send + 'static) -> String {
    start_and_note(answer, channel().0, channel().0)
}

/// Does the same, and notes each connection that it has closed, and how long requests may take.
fn start_and_note(
    mut answer: impl FnMut(Vec<u8>) -> Option<Answer> + Send + 'static,
    closed: Sender<()>,
    times: Sender<String>,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).expect("it may wait");
            // A client may leave at any time.
            let _ = runtime.block_on(async {
                stream.set_nodelay(true).expect("it is connected");
                let stream = TcpStream::from_std(stream).expect("a poll");
                serve(stream, &mut answer, &times).await
            });
            let _ = closed.send(());
        }
    });
    address
}

/// Starts a member that gives these answers, one after the other. Returns its address, and the
/// requests.
fn member(answers: Vec<Answer>) -> (String, Receiver<Vec<u8>>) {
    let (sender, bodies) = channel();
    let mut answers = answers.into_iter();
    let address = start(move |body| {
        let _ = sender.send(body);
        answers.next()
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
    let asked = Arc::<Mutex<Asked>>::default();
    let counted = Arc::clone(&asked);
    let address = start(move |request| {
        let mut asked = counted.lock().expect("no panic");
        if asked.unanswered > 0 {
            asked.unanswered -= 1;
            return None;
        }
        let reads = all(&request, 2);
        let responses = reads.iter().map(|read| range(&keys, &all(read, 1)[0]));
        let responses = responses.map(|range| field(3, &field(1, &range)));
        let message = [YES.to_vec()].into_iter().chain(responses);
        let message = message.collect::<Vec<_>>().concat();
        asked.requests += 1;
        asked.answered_bytes += message.len();
        Some(body(&message))
    });
    (address, asked)
}

/// Returns the answer to a read. One with an order makes a member load the whole range.
fn range(keys: &BTreeMap<Vec<u8>, Vec<u8>>, read: &[u8]) -> Vec<u8> {
    let fields = fields(read);
    let value = |number| fields.iter().find(|(found, _)| *found == number);
    assert!(
        value(5).is_none() && value(6).is_none(),
        "the limit does not count: {read:?}"
    );
    let bytes = |number| all(read, number).pop().unwrap_or_default();
    let (from, end) = (bytes(1), bytes(2));
    let end = match end.is_empty() {
        true => [&from[..], &[0]].concat(),
        false => end,
    };
    let limit = match value(3) {
        Some((_, Value::Number(limit))) => *limit as usize,
        _ => 1,
    };
    let keys_only = value(8) == Some(&(8, Value::Number(1)));
    let entry = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        let value: &[u8] = if keys_only { &[] } else { value };
        // The revision is 7.
        field(2, &[field(1, key), vec![0x18, 7], field(5, value)].concat())
    };
    let found = keys.range(from..end).take(limit).map(entry);
    found.collect::<Vec<_>>().concat()
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

/// More than any call takes, however busy the machine is.
const ENOUGH: Times = Times {
    connect: Duration::from_secs(600),
    call: Duration::from_secs(600),
    write_min: Duration::from_secs(600),
};

fn log(members: &[&str]) -> EtcdLog {
    log_in(members, ENOUGH)
}

fn log_in(members: &[&str], times: Times) -> EtcdLog {
    let address = format!("etcd://{}/x", members.join(","));
    let address: Address = address.parse().expect("an address");
    EtcdLog::with_times(address, times).expect("a poll")
}

/// Runs a scenario in which a member leaves a request without an answer, with more and more time
/// for each call, until it returns that no other call was given up, and that the member has got
/// that request in its time: how much that takes depends on the machine.
fn given_up(scenario: impl Fn(Times) -> bool) {
    let calls = (0..7).map(|doublings| Duration::from_millis(100 << doublings));
    let mut attempts = calls.map(|call| scenario(Times { call, ..ENOUGH }));
    assert!(
        attempts.any(|is_seen| is_seen),
        "calls took more than 6.4 s"
    );
}

/// Returns whether a write, or the read before it, had no answer in its time.
fn is_late(written: &WriteOutcome) -> bool {
    matches!(written, WriteOutcome::Unknown(text) if text.contains("no answer from"))
}

fn claim() -> Claim {
    Claim {
        epoch: 1,
        nonce: 2,
        log: 4,
        identity: 3,
        start: LogStart::default(),
        holder: "a:1".to_owned(),
    }
}

#[test]
fn an_append_is_one_transaction_that_compares_the_claim_and_the_place() {
    let (member, bodies) = member(vec![body(YES), body(NO)]);
    let mut log = log(&[&member]);
    assert_eq!(
        log.append(&claim(), Some(9), 10, b"batch"),
        WriteOutcome::Acked
    );
    assert_eq!(
        log.append(&claim(), Some(9), 10, b"batch"),
        WriteOutcome::Fenced
    );
    let body = bodies.recv().expect("a request");
    let compare: Vec<_> = all(&body, 1).iter().map(|one| fields(one)).collect();
    let (bytes, number) = (|text: &[u8]| Value::Bytes(text.to_vec()), Value::Number);
    let there = |result, key: &str| {
        let key = bytes(key.as_bytes());
        vec![
            (1, number(result)),
            (2, number(1)),
            (3, key),
            (5, number(0)),
        ]
    };
    let claim = [(3, bytes(b"x/claim")), (7, bytes(&claim().encode()))];
    assert_eq!(
        compare[0],
        [&[(1, number(0)), (2, number(3))], &claim[..]].concat()
    );
    assert_eq!(compare[1], there(0, "x/log/000000000000000a"));
    assert_eq!(compare[2], there(1, "x/log/0000000000000009"));
    let puts: Vec<_> = all(&body, 2)
        .iter()
        .map(|one| fields(&all(one, 2)[0]))
        .collect();
    let put = |key: &[u8], value: &[u8]| vec![(1, bytes(key)), (2, bytes(value))];
    let newest = put(b"x/newest", b"000000000000000a");
    assert_eq!(puts, [put(b"x/log/000000000000000a", b"batch"), newest]);
}

#[test]
fn a_write_without_a_clear_answer_is_unknown_and_is_sent_once() {
    let whole = prefixed(YES);
    let compressed = [&[1], &whole[1..]].concat();
    let data = |bytes: &[u8]| Answer::Data(vec![bytes.to_vec()], Some("0"));
    for (answer, why) in [
        (Answer::Close, "does not speak gRPC"),
        (Answer::Reset, "is broken"),
        (Answer::Http(StatusCode::BAD_GATEWAY), "502"),
        (Answer::Status("14"), "14: a reason"),
        (Answer::Data(vec![whole.clone()], Some("4")), "4: a reason"),
        (Answer::Data(vec![whole.clone()], None), "no status"),
        (data(&compressed), "something else than a message"),
        (
            data(&[&whole[..], &whole].concat()),
            "something else than a message",
        ),
        (
            data(&whole[..whole.len() - 1]),
            "something else than a message",
        ),
        (data(&[]), "something else than a message"),
        (body(b"<html>"), "an answer that etcd does not give"),
        // The length is enough to refuse it; this one has no end.
        (
            Answer::Endless([&[0], &(1_u32 << 30).to_be_bytes()[..]].concat()),
            "more than a log has",
        ),
    ] {
        assert_eq!(sent_and_unknown(answer, why, ENOUGH), 1);
    }
    given_up(|times| {
        let why = format!("in {} ms", times.call.as_millis());
        let sent = sent_and_unknown(Answer::Silence, &why, times);
        assert!(sent <= 1, "it was sent {sent} times");
        sent == 1
    });
}

/// Sends a write that has an answer from which nothing is known, and is not sent to another member.
/// Returns how often the first one has got it.
fn sent_and_unknown(answer: Answer, why: &str, times: Times) -> usize {
    let (first, first_bodies) = member(vec![answer]);
    let (second, second_bodies) = member(vec![body(YES)]);
    let mut log = log_in(&[&first, &second], times);
    let written = log.append(&claim(), Some(9), 10, b"batch");
    let WriteOutcome::Unknown(text) = written else {
        panic!("{written:?}, where {why} is expected");
    };
    assert!(text.contains(why), "{text}");
    assert_eq!(second_bodies.try_iter().count(), 0, "it is not tried again");
    first_bodies.try_iter().count()
}

#[test]
fn an_answer_is_read_that_comes_in_pieces_or_is_long() {
    let long = vec![3; 20 << 20];
    let key = b"x/log/000000000000000b";
    let entry = [field(1, key), vec![0x18, 7], field(5, &long)].concat();
    let ranges = [Vec::new(), Vec::new(), Vec::new(), field(2, &entry)];
    let responses = ranges.map(|range| field(3, &field(1, &range))).concat();
    let whole = prefixed(&[YES, &responses].concat());
    let pieces = [&whole[..2], &whole[2..5], &whole[5..40], &whole[40..]];
    let pieces = pieces.map(<[u8]>::to_vec).to_vec();
    let (member, _bodies) = member(vec![Answer::Data(pieces, Some("0"))]);
    let tail = log(&[&member]).read(11).expect("it answers");
    assert!(tail.batches[0].bytes == long && tail.batches[0].index == 11);
}

#[test]
fn a_status_that_each_member_would_give_keeps_the_connection() {
    for (code, is_kept) in [("8", true), ("14", false)] {
        let (first, _bodies) = member(vec![Answer::Status(code), body(YES)]);
        let (second, others) = member(vec![body(YES)]);
        let mut log = log(&[&first, &second]);
        let written = log.heartbeat(&claim());
        assert!(matches!(written, WriteOutcome::Unknown(_)), "{written:?}");
        assert_eq!(log.heartbeat(&claim()), WriteOutcome::Acked);
        assert_eq!(others.try_iter().count(), usize::from(!is_kept), "{code}");
    }
}

#[test]
fn a_connection_that_was_closed_meanwhile_is_made_again() {
    let (sender, closed) = channel();
    let first = start_and_note(
        move |_| Some(Answer::Last(YES.to_vec())),
        sender,
        channel().0,
    );
    let mut log = log(&[&first]);
    for _ in 0..3 {
        assert_eq!(log.heartbeat(&claim()), WriteOutcome::Acked);
        closed.recv().expect("it is closed");
    }
}

#[test]
fn a_port_of_another_protocol_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
        stream.write_all(answer).expect("the client reads");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let WriteOutcome::Unknown(text) = log(&[&address]).heartbeat(&claim()) else {
        panic!("it has not answered");
    };
    assert!(text.contains("does not speak gRPC"), "{text}");
    assert!(text.ends_with("without TLS?"), "{text}");
}

#[test]
fn a_write_has_little_time_where_etcd_is_quick_and_a_claim_has_all_of_it() {
    let (times, noted) = channel();
    let member = start_and_note(|_| Some(body(YES)), channel().0, times);
    let times = Times {
        call: Duration::from_secs(640),
        write_min: Duration::from_secs(80),
        ..ENOUGH
    };
    let mut log = log_in(&[&member], times);
    for index in 1..=20 {
        let written = log.append(&claim(), Some(index - 1), index, b"batch");
        assert_eq!(written, WriteOutcome::Acked);
    }
    let times: Vec<String> = noted.try_iter().collect();
    assert_eq!(times[0], "640000m");
    assert!(times.iter().any(|time| time == "80000m"), "{times:?}");
    let _ = log.claim(Some(&claim()), &claim());
    let _ = log.note_halt("a:1", 5, "why");
    assert_eq!(noted.try_iter().collect::<Vec<_>>(), ["640000m", "640000m"]);
}

#[test]
fn a_beat_after_a_write_that_was_given_up_is_sent_behind_a_read() {
    given_up(|times| {
        let nothing = body(&[YES, &field(3, &field(1, &[]))].concat());
        let answers = vec![body(YES), Answer::Silence, nothing, body(YES), body(YES)];
        let (member, bodies) = member(answers);
        let mut log = log_in(&[&member], times);
        let first = log.heartbeat(&claim());
        let lost = log.append(&claim(), Some(0), 1, b"batch");
        assert!(is_late(&lost), "{lost:?}");
        let sent: Vec<Vec<u8>> = bodies.try_iter().collect();
        let then = [log.heartbeat(&claim()), log.heartbeat(&claim())];
        if sent.len() < 2 || is_late(&first) || then.iter().any(is_late) {
            return false;
        }
        assert_eq!(first, WriteOutcome::Acked);
        assert_eq!(then, [WriteOutcome::Acked, WriteOutcome::Acked]);
        let is_read = |body: Vec<u8>| all(&body, 2).iter().all(|one| fields(one)[0].0 == 1);
        let reads: Vec<bool> = sent
            .into_iter()
            .chain(bodies.try_iter())
            .map(is_read)
            .collect();
        assert_eq!(reads, [false, false, true, false, false]);
        true
    });
}

#[test]
fn no_beat_is_sent_where_the_read_before_it_fails() {
    let no_leader = || Answer::Status("14");
    given_up(|times| {
        let (member, bodies) = member(vec![Answer::Silence, no_leader(), no_leader(), body(YES)]);
        let mut log = log_in(&[&member], times);
        let lost = log.append(&claim(), Some(0), 1, b"batch");
        assert!(is_late(&lost), "{lost:?}");
        let sent = bodies.try_iter().count();
        let beat = log.heartbeat(&claim());
        if sent == 0 || is_late(&beat) {
            return false;
        }
        let WriteOutcome::Unknown(text) = beat else {
            panic!("no read was answered");
        };
        assert!(text.contains("14: a reason"), "{text}");
        // A read is tried twice.
        assert_eq!((sent, bodies.try_iter().count()), (1, 2));
        true
    });
}

#[test]
fn no_append_waits_until_the_history_is_given_up() {
    let (sender, bodies) = channel();
    let member = start(move |body| {
        let _ = sender.send((body[0], body.len()));
        Some(crate::body(YES))
    });
    let mut log = log(&[&member]);
    let batch = vec![5; 256 << 10];
    for index in 1..=256 {
        let written = log.append(&claim(), Some(index - 1), index, &batch);
        assert_eq!(written, WriteOutcome::Acked);
    }
    let appended: Vec<_> = bodies.try_iter().collect();
    assert_eq!(appended.len(), 256, "one call each");
    assert!(appended.iter().all(|(_, length)| *length > batch.len()));
    assert_eq!(log.note_position("a:1", 5), WriteOutcome::Acked);
    let noted = bodies.try_iter().map(|(first, _)| first);
    // A revision; then a write.
    assert_eq!(noted.collect::<Vec<_>>(), [0x08, 0x12]);
    assert_eq!(log.note_position("a:1", 5), WriteOutcome::Acked);
    assert_eq!(bodies.try_iter().count(), 1);
}

#[test]
fn an_entry_without_its_key_is_an_error() {
    let unasked = [field(1, b"y"), vec![0x18, 7]].concat();
    let ours = field(1, b"x/peer/a");
    for (entry, why) in [
        (Vec::new(), "without its key or revision"),
        (ours, "without its key or revision"),
        (unasked, "y was not asked"),
    ] {
        let answer = [YES, &field(3, &field(1, &field(2, &entry)))].concat();
        let (member, _bodies) = member(vec![body(&answer), body(&answer)]);
        let error = log(&[&member]).peers().expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_member_that_cannot_be_reached_is_passed_over() {
    let address = thalweg_testkit::refusing().to_string();
    let (second, _bodies) = member(vec![body(YES)]);
    assert_eq!(
        log(&[&address, &second]).heartbeat(&claim()),
        WriteOutcome::Acked
    );
    let written = log(&[&address]).heartbeat(&claim());
    let WriteOutcome::Unknown(text) = written else {
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
    let one = |key: &[u8], revision, value: &[u8]| {
        field(
            2,
            &[field(1, key), vec![0x18, revision], field(5, value)].concat(),
        )
    };
    let ranges = [
        Vec::new(),
        one(b"x/beat", 8, b"1"),
        one(b"x/newest", 5, b"000000000000000a"),
        Vec::new(),
    ];
    let responses = ranges.map(|range| field(3, &field(1, &range))).concat();
    let tail = body(&[YES, &responses].concat());
    let (second, _bodies) = member(vec![tail]);
    let tail = log(&[&first, &second])
        .read(11)
        .expect("the second answers");
    assert_eq!((tail.revision, tail.newest), (8, Some(10)));
    assert!(tail.claim.is_none() && tail.batches.is_empty());
}

#[test]
fn an_answer_that_lacks_a_part_is_an_error() {
    let part = body(&[YES, &field(3, &field(1, &[]))].concat());
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
