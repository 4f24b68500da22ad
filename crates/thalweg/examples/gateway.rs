//! A gateway: connections on threads of their own send requests into one pipeline, and each gets
//! the answers to its own requests.
//!
//! `cargo run -p thalweg --example gateway`

use std::error::Error;
use std::thread;

use thalweg::channel::{Sender, Spsc, spsc};
use thalweg::pipeline::{Pipeline, Placement};

const CONNECTIONS: usize = 3;
const REQUESTS_EACH: u64 = 1_000;

/// A request and, once the stages have run, its answer. The ring keeps its slots: `publish` gets
/// what an earlier round left there, so it writes every field.
#[derive(Default)]
struct Request {
    connection: usize,
    number: u64,
    text: String,
    is_valid: bool,
    words: usize,
}

type Answer = (u64, Result<usize, &'static str>);

fn main() -> Result<(), Box<dyn Error>> {
    let (mut replies, inboxes): (Vec<Sender<Answer, Spsc>>, Vec<_>) =
        (0..CONNECTIONS).map(|_| spsc(64)).unzip();
    let mut pipeline = Pipeline::builder(1024, Request::default)
        .producers(CONNECTIONS)
        .stage("check", |request, _| {
            request.is_valid = !request.text.is_empty()
        })
        .stage("count", |request, _| {
            request.words = request.text.split_whitespace().count();
        })
        .after("check")
        .observe("reply", move |request, _| {
            let answer = match request.is_valid {
                true => Ok(request.words),
                false => Err("an empty request"),
            };
            // An error says that the connection has gone: no client waits for the answer.
            let _ = replies[request.connection].send((request.number, answer));
        })
        .after("count")
        .placement(Placement::threads(1))
        .build()?;

    let producers = pipeline.take_producers();
    let connections: Vec<_> = producers
        .into_iter()
        .zip(inboxes)
        .enumerate()
        .map(|(connection, (mut producer, mut inbox))| {
            thread::spawn(move || {
                let mut words = 0;
                for number in 0..REQUESTS_EACH {
                    let sent = producer.publish(|request| {
                        request.connection = connection;
                        request.number = number;
                        request.text.clear();
                        request.text.push_str("buy 3 lots");
                    });
                    // The pipeline stops only where a stage panics.
                    sent.expect("the pipeline runs");
                    let (answered, answer) = inbox.recv().expect("every request is answered");
                    assert_eq!(answered, number, "answers come in order");
                    words += answer.unwrap_or(0);
                }
                words
            })
        })
        .collect();
    for (connection, thread) in connections.into_iter().enumerate() {
        let words = thread.join().expect("a connection does not panic");
        println!("connection {connection}: {REQUESTS_EACH} requests of {words} words in all");
        assert_eq!(words as u64, 3 * REQUESTS_EACH);
    }
    print!("{}", pipeline.join()?);
    Ok(())
}
