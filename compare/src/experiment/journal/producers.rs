//! Several threads append records, which are acknowledged once they are durable.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use thalweg::channel::{self, Mpsc, OneshotReceiver, OneshotSender, Receiver};
use thalweg_journal::{Durable, Journal, JournalOptions, Lsn};

use super::{Record, Scratch, bytes_of, figures, record};
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Run, subject, text};
use crate::threads::crew;

/// This many records may wait for the journal's thread.
const CAPACITY: usize = 1024;
/// A commit has at most this many records.
const GROUP_MAX: usize = 4096;
/// This many threads append.
const PRODUCERS: usize = 8;
/// A producer has at most this many records without an acknowledgement.
const WINDOW: usize = 64;

const METRICS: &[Metric] =
    &Metric::times(["time of a record", "acknowledged p50", "acknowledged p99"]);
const RING: &str = "ring to a journal's thread";
const RING_WINDOW: &str = "ring to a journal's thread, 64 on their way";
const MUTEX: &str = "mutex, growing file + fdatasync";

struct Request {
    record: Record,
    durable: OneshotSender<Durable<Lsn>>,
}

/// The time at which a record was sent, and the receiver of its acknowledgement.
type Sent = (Instant, OneshotReceiver<Durable<Lsn>>);

/// The times from before records are sent until they are acknowledged, ns.
type Times = Result<Vec<f64>, String>;

/// Appends the records that have come, commits them together, and acknowledges them.
fn serve(mut journal: Journal<Record>, mut inbox: Receiver<Request, Mpsc>) -> Result<(), String> {
    let mut group = Vec::with_capacity(GROUP_MAX);
    while inbox.recv_many(&mut group, GROUP_MAX).is_ok() {
        for request in &group {
            journal.append(&request.record).map_err(text)?;
        }
        let durable = journal.commit().map_err(text)?;
        for request in group.drain(..) {
            // A producer that has gone needs no acknowledgement.
            let _ = request.durable.send(durable);
        }
    }
    Ok(())
}

fn ring(place: &Scratch, span: &Duration, window: usize) -> Times {
    let journal = Journal::open(&place.0, JournalOptions::default()).map_err(text)?;
    let (sender, inbox) = channel::mpsc::<Request>(CAPACITY);
    thread::scope(|scope| {
        let server = scope.spawn(move || serve(journal, inbox));
        let times = crowd(sender, |begin, sender| {
            produce(begin, *span, window, sender)
        });
        server.join().map_err(|_| "the server has panicked")??;
        times
    })
}

fn produce(
    begin: Instant,
    span: Duration,
    window: usize,
    mut sender: channel::Sender<Request, Mpsc>,
) -> Times {
    let mut times = Vec::new();
    let mut on_the_way: VecDeque<Sent> = VecDeque::with_capacity(window);
    let mut number = 0;
    loop {
        let goes_on = number == 0 || begin.elapsed() < span;
        if on_the_way.len() == window || !goes_on {
            let Some((sent, acknowledged)) = on_the_way.pop_front() else {
                return Ok(times);
            };
            let _ = acknowledged.recv().map_err(text)?;
            times.push(sent.elapsed().as_nanos() as f64);
        }
        if goes_on {
            let (durable, acknowledged) = channel::oneshot();
            let record = record(number);
            number += 1;
            on_the_way.push_back((Instant::now(), acknowledged));
            sender.send(Request { record, durable }).map_err(text)?;
        }
    }
}

fn mutex(place: &Scratch, span: &Duration) -> Times {
    let file = Arc::new(Mutex::new(place.file()?));
    crowd(file, |begin, file| {
        let mut times = Vec::new();
        // Each thread appends one record at least, however late it has started.
        while times.is_empty() || begin.elapsed() < *span {
            let sent = Instant::now();
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            let written = file.write_all(bytes_of(&record(times.len() as u64)).as_flattened());
            written.and_then(|()| file.sync_data()).map_err(text)?;
            drop(file);
            times.push(sent.elapsed().as_nanos() as f64);
        }
        Ok(times)
    })
}

/// Runs the producers, each with a clone of `end`, and returns the times of all.
fn crowd<T: Clone + Send>(end: T, produce: impl Fn(Instant, T) -> Times + Sync) -> Times {
    let begin = Instant::now();
    let produce = |_, end: T| produce(begin, end);
    let (times, _) = crew(vec![end; PRODUCERS], vec![(); 0], produce, |_, ()| ());
    let times: Result<Vec<Vec<f64>>, String> = times.into_iter().collect();
    Ok(times?.concat())
}

/// Makes the case.
pub(crate) fn case(settings: &Settings) -> Case {
    let way = |name, produce: fn(&Scratch, &Duration) -> Times| {
        subject(name, move |span: &Duration| {
            let times = produce(&Scratch::new(name), span)?;
            let span_ns = span.as_nanos() as f64;
            Ok(Run::of(figures(span_ns, times.len() as u64, &times)))
        })
    };
    let subjects = vec![
        way(RING, |place, span| ring(place, span, 1)),
        way(RING_WINDOW, |place, span| ring(place, span, WINDOW)),
        way(MUTEX, mutex),
    ];
    let heading = "threads whose records are acknowledged once they are durable";
    let span = Duration::from_nanos(settings.count(150_000_000));
    let case = Case::of("producers/8", heading, METRICS, subjects, span);
    case.goals([0, 2].map(|at| Goal::shown([RING, MUTEX], at)))
}
