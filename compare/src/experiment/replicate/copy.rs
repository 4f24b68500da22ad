//! A copy of a replica over loopback: received, and received and opened.

use std::io::BufReader;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use thalweg_exchange::durable::replication::copying::{receive, send};
use thalweg_exchange::durable::{Exchange, Files, Options};

use crate::case::{Case, Goal, Settings};
use crate::experiment::journal::Scratch;
use crate::experiment::serve::inprocess::{Left, leave};
use crate::runner::{Metric, Ran, Run, subject, text};

const COPIED: &str = "copied";
const METRICS: &[Metric] = &[
    Metric::higher("commands a second, received", "1/s"),
    Metric::higher("commands a second, received and opened", "1/s"),
    Metric::lower("bytes of a command", "1"),
];

pub(super) fn case(settings: &Settings) -> Case {
    let commands = settings.count(3_000_000);
    let heading = format!("{commands} commands of a journal in the page cache, over loopback");
    let subjects = vec![subject(COPIED, copied)];
    let left = move || leave(commands);
    let case = Case::new("copy", heading, METRICS, subjects, left);
    case.goal(Goal::at_least(COPIED, 1, 1e6))
}

fn copied(left: &Left) -> Ran {
    let place = Scratch::new("copied");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(text)?;
    let address = listener.local_addr().map_err(text)?;
    let (from, to, options) = (
        Files::new(&left.place.0),
        Files::new(&place.0),
        Options::default(),
    );
    let began = Instant::now();
    let copied = thread::scope(|scope| {
        let sent = scope.spawn(|| {
            let (mut stream, _) = listener.accept().map_err(text)?;
            send(&from, left.commands, &mut stream, |_| ()).map_err(text)
        });
        let stream = TcpStream::connect(address).map_err(text)?;
        let received = receive(&to, &mut BufReader::new(stream), &options).map_err(text)?;
        match sent.join() {
            Ok(sent) if sent == Ok(received) => Ok(received),
            other => Err(format!("{other:?} was sent, {received:?} received")),
        }
    })?;
    let received = began.elapsed();
    let (_, recovered) = Exchange::open(&place.0, options, |_| ()).map_err(text)?;
    let opened = began.elapsed();
    if recovered.commands != left.commands {
        return Err(format!(
            "{} commands of {}",
            recovered.commands, left.commands
        ));
    }
    let commands = left.commands as f64;
    Ok(Run::of([
        commands / received.as_secs_f64(),
        commands / opened.as_secs_f64(),
        copied.bytes as f64 / commands,
    ]))
}
