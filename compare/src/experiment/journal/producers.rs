//! Several threads whose records are acknowledged once they are durable.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use thalweg::channel::{self, Mpsc, Receiver, oneshot};
use thalweg_journal::{Durable, GroupCommit, Journal, Lsn, Options};
use thalweg_measure::statistics::quantile;

use super::{REPETITIONS, Record, Scratch, Settings, bytes_of, record, told};
use crate::report::Report;
use crate::runner::{Metric, Run, Subject, subject};

const PRODUCERS: [usize; 4] = [1, 2, 4, 8];
/// Length of a run, `[full, quick]`.
const SPAN_NS: [u64; 2] = [150_000_000, 30_000_000];
/// Records that wait for the journal's thread.
const CAPACITY: usize = 1024;
/// Records of a commit.
const GROUP_MAX: usize = 4096;
/// Records that a producer has on their way.
const WINDOW: usize = 64;

const METRICS: &[Metric] = &[
    Metric::lower("time of a record", "ns"),
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
];
const TIME: usize = 0;
const P99: usize = 2;

const RING: &str = "ring to a journal's thread";
const RING_WINDOW: &str = "ring to a journal's thread, 64 on their way";
const SHARED: &str = "Shared";
const MUTEX: &str = "mutex, growing file + fdatasync";

struct Load {
    producers: usize,
    span: Duration,
}

struct Request {
    record: Record,
    durable: oneshot::Sender<Durable<Lsn>>,
}

/// When a record was sent, and what waits for its answer.
type Sent = (Instant, oneshot::Receiver<Durable<Lsn>>);

/// Times from before a record is sent until it is acknowledged, ns.
type Times = Result<Vec<f64>, String>;

/// Appends what has come, commits it once, and acknowledges.
fn serve(mut journal: Journal<Record>, mut inbox: Receiver<Request, Mpsc>) -> Result<(), String> {
    let mut group = Vec::with_capacity(GROUP_MAX);
    while inbox.recv_many(&mut group, GROUP_MAX).is_ok() {
        for request in &group {
            journal.append(&request.record).map_err(told)?;
        }
        let durable = journal.commit().map_err(told)?;
        for request in group.drain(..) {
            // A producer that has gone needs no answer.
            let _ = request.durable.send(durable);
        }
    }
    Ok(())
}

fn ring(place: &Scratch, load: &Load, window: usize) -> Times {
    let journal = Journal::open(&place.0, Options::default()).map_err(told)?;
    let (sender, inbox) = channel::mpsc::<Request>(CAPACITY);
    thread::scope(|scope| {
        let server = scope.spawn(move || serve(journal, inbox));
        let times = crowd(load, |begin| {
            let mut sender = sender.clone();
            move || produce(begin, load.span, window, &mut sender)
        });
        drop(sender);
        server.join().map_err(|_| "the server has panicked")??;
        times
    })
}

fn produce(
    begin: Instant,
    span: Duration,
    window: usize,
    sender: &mut channel::Sender<Request, Mpsc>,
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
            let _ = acknowledged.recv().map_err(told)?;
            times.push(sent.elapsed().as_nanos() as f64);
        }
        if goes_on {
            let (durable, acknowledged) = channel::oneshot();
            let record = record(number);
            number += 1;
            on_the_way.push_back((Instant::now(), acknowledged));
            sender.send(Request { record, durable }).map_err(told)?;
        }
    }
}

/// Every thread appends and commits; one that waits writes for all.
fn shared(place: &Scratch, load: &Load) -> Times {
    let journal = Journal::open(&place.0, Options::default()).map_err(told)?;
    let journal = journal.share(GroupCommit::default());
    crowd(load, |begin| {
        let journal = journal.clone();
        move || {
            one_by_one(begin, load.span, |number| {
                let lsn = journal.append_with(|slot| *slot = record(number));
                journal.commit(lsn.map_err(told)?).map_err(told).map(drop)
            })
        }
    })
}

fn mutex(place: &Scratch, load: &Load) -> Times {
    std::fs::create_dir_all(&place.0).map_err(told)?;
    let file = Mutex::new(File::create(place.0.join("log")).map_err(told)?);
    crowd(load, |begin| {
        let file = &file;
        move || {
            one_by_one(begin, load.span, |number| {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let written = file.write_all(bytes_of(&record(number)).as_flattened());
                written.and_then(|()| file.sync_data()).map_err(told)
            })
        }
    })
}

fn one_by_one(
    begin: Instant,
    span: Duration,
    mut append: impl FnMut(u64) -> Result<(), String>,
) -> Times {
    let mut times = Vec::new();
    // One record at least, however late the thread has started.
    while times.is_empty() || begin.elapsed() < span {
        let sent = Instant::now();
        append(times.len() as u64)?;
        times.push(sent.elapsed().as_nanos() as f64);
    }
    Ok(times)
}

/// Runs so many threads, and gives the times of all.
fn crowd<P>(load: &Load, producer: impl Fn(Instant) -> P) -> Times
where
    P: FnOnce() -> Times + Send,
{
    let begin = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..load.producers)
            .map(|_| scope.spawn(producer(begin)))
            .collect();
        let mut times = Vec::new();
        for thread in threads {
            times.extend(thread.join().map_err(|_| "a producer has panicked")??);
        }
        Ok(times)
    })
}

fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    let way = |name, produce: fn(&Scratch, &Load) -> Times| {
        subject(name, move |load: &Load| {
            let times = produce(&Scratch::new(name), load)?;
            let of = |q| quantile(&times, q).unwrap_or(f64::NAN);
            let time = load.span.as_nanos() as f64 / times.len() as f64;
            Ok(Run::of(vec![time, of(0.5), of(0.99)]))
        })
    };
    vec![
        way(RING, |place, load| ring(place, load, 1)),
        way(RING_WINDOW, |place, load| ring(place, load, WINDOW)),
        way(SHARED, shared),
        way(MUTEX, mutex),
    ]
}

/// The cases `producers/1` to `producers/8`.
pub(super) fn run(report: &mut Report, settings: &Settings) {
    let subjects = subjects();
    for producers in PRODUCERS {
        let case = format!("producers/{producers}");
        let span = Duration::from_nanos(settings.span_ns_or(SPAN_NS));
        let load = Load { producers, span };
        let Some(trial) = settings.trial(&case, METRICS, &subjects, &load, REPETITIONS) else {
            continue;
        };
        report.figures(&format!("{case}: each waits for its records"), &trial);
        for metric in [TIME, P99] {
            report.compare(&trial, [RING, SHARED], metric);
            report.compare(&trial, [RING, MUTEX], metric);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_is_acknowledged() {
        let load = Load {
            producers: 3,
            span: Duration::from_millis(5),
        };
        let too_late = Load {
            producers: 2,
            span: Duration::ZERO,
        };
        for (subject, load) in subjects()
            .iter()
            .flat_map(|way| [(way, &load), (way, &too_late)])
        {
            let ran = subject.run(load).expect("the disk is well");
            let [time, p50, p99] = ran.values[..] else {
                panic!("{ran:?}")
            };
            assert!(time >= 0.0 && 0.0 < p50 && p50 <= p99, "{ran:?}");
        }
    }
}
