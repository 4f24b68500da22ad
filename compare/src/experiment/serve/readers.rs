//! Market data for a thousand readers, some of whom read nothing.
//!
//! One session changes a number of price levels in a burst, 50 times a second. The volume of a
//! level says which burst it is of, so each reader can tell how long after it was due a burst has
//! arrived as a whole.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use thalweg_exchange::codec::session::{ClientFrame, ServerFrame, Symbols, decode_server_frame};
use thalweg_exchange::codec::{CodecError, decode_message, decode_snapshot};
use thalweg_exchange::market::{Body, Snapshot};
use thalweg_exchange::session::Role;
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Histogram;
use thalweg_server::config::SyncName;
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Builder;

use super::child::{Child, Work};
use super::greeting::{administer, bytes_of, figure, hello};
use super::venue;
use super::{Settings, Told, bursts, told};
use crate::report::{Report, mebibytes};
use crate::runner::{Metric, Run, Subject};
use crate::target::{Limit, Target};

const CASE: &str = "readers/1000";
const READERS: usize = 950;
const STALLED: usize = 50;
const REPETITIONS: [usize; 2] = [7, 1];
/// Before a run counts: until stalled readers' sockets are full. Then how long it does.
const WARM_UP: Duration = Duration::from_secs(4);
const SPAN_NS: [u64; 2] = [5_000_000_000, 2_000_000_000];
/// What the system keeps for one who reads nothing: little, so that the server soon has to.
const STALLED_BYTES: u32 = 1 << 14;
/// How much longer messages may take with stalled readers.
const SLOWER: f64 = 2.0;
/// What the server may keep for a stalled reader: a write of 256 KiB and the chunk that ends it.
const KEPT_BYTES: u64 = 320 << 10;

const METRICS: &[Metric] = &[
    Metric::lower("message delay p50", "ns"),
    Metric::lower("message delay p99", "ns"),
    Metric::lower("memory at the end", "bytes"),
    Metric::lower("memory at most", "bytes"),
    Metric::lower("memory gained while it counts", "bytes"),
    Metric::lower("times that readers were conflated", "messages"),
];
const P99: usize = 1;
const MEMORY: usize = 3;

struct Load {
    span: Duration,
}

struct Crowd {
    name: &'static str,
    stalled: usize,
}

const ALONE: &str = "950 readers";
const BESIDE: &str = "950 readers and 50 stalled";

/// What readers have seen, all together.
#[derive(Debug, Default)]
struct Seen {
    delay_ns: Histogram,
    bursts: u64,
    conflated: u64,
    error: Option<String>,
}

type Shared = Arc<Mutex<Seen>>;

fn lock(seen: &Shared) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reader that has asked for everything; what it is told first is still to be read.
async fn subscribe(to: SocketAddr, holder: i64, kept_bytes: Option<u32>) -> Told<TcpStream> {
    let socket = TcpSocket::new_v4().map_err(told)?;
    if let Some(bytes) = kept_bytes {
        socket.set_recv_buffer_size(bytes).map_err(told)?;
    }
    let stream = socket.connect(to).await.map_err(told)?;
    let mut first = bytes_of(&ClientFrame::Hello(hello(Role::Read, holder, false)));
    first.extend(bytes_of(&ClientFrame::Subscribe(Symbols::ALL)));
    stream.writable().await.map_err(told)?;
    match stream.try_write(&first) {
        Ok(count) if count == first.len() => Ok(stream),
        other => Err(format!("a hello was not written: {other:?}")),
    }
}

/// Reads until the connection or the run ends.
async fn read(stream: TcpStream, schedule: bursts::Schedule, seen: Shared) {
    let clock = Clock::global();
    let mut bytes = Vec::new();
    let mut snapshot = Snapshot::default();
    loop {
        if stream.readable().await.is_err() {
            return;
        }
        bytes.reserve(1 << 16);
        match stream.try_read_buf(&mut bytes) {
            Ok(0) => {
                let error = "the server closed a reader's connection".to_owned();
                lock(&seen).error.get_or_insert(error);
                return;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        let now = clock.ticks();
        let mut seen = lock(&seen);
        let mut done = 0;
        while let Some(length) = take(&bytes[done..], &mut snapshot, &mut seen, |seen, volume| {
            let burst = volume as u64 - 1;
            if schedule.counts(burst) {
                let delay = now.saturating_sub(schedule.due_ticks(burst));
                seen.delay_ns.record(clock.ns(delay));
                seen.bursts += 1;
            }
        }) {
            done += length;
        }
        bytes.drain(..done);
    }
}

/// Takes a frame, and says how long it is; tells the volume of a level that ends a burst.
fn take(
    bytes: &[u8],
    snapshot: &mut Snapshot,
    seen: &mut Seen,
    mut ended: impl FnMut(&mut Seen, i64),
) -> Option<usize> {
    let taken = match bytes.get(4)? {
        160..192 => decode_message(bytes).map(|(message, length)| {
            if let Body::Level(level) = message.body
                && level.price == bursts::LAST_PRICE
                && level.volume > 0
            {
                ended(seen, level.volume);
            }
            length
        }),
        192..208 => decode_snapshot(bytes, snapshot),
        _ => decode_server_frame(bytes).map(|(frame, length)| {
            match frame {
                ServerFrame::Conflated(_) => seen.conflated += 1,
                ServerFrame::Bye(bye) => {
                    let error = format!("a reader was told bye: {bye:?}");
                    seen.error.get_or_insert(error);
                }
                _ => {}
            }
            length
        }),
    };
    match taken {
        Ok(length) => Some(length),
        Err(CodecError::Incomplete { .. }) => None,
        Err(error) => {
            seen.error.get_or_insert(error.to_string());
            None
        }
    }
}

impl Crowd {
    /// Who reads, and who does not.
    async fn gather(&self, to: SocketAddr) -> Told<[Vec<TcpStream>; 2]> {
        let mut all = [Vec::new(), Vec::new()];
        for (at, count, kept) in [(0, READERS, None), (1, self.stalled, Some(STALLED_BYTES))] {
            for _ in 0..count {
                let holder = 10_000 + (all[0].len() + all[1].len()) as i64;
                all[at].push(subscribe(to, holder, kept).await?);
            }
        }
        Ok(all)
    }
}

impl Subject<Load> for Crowd {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn run(&self, load: &Load) -> Told<Run> {
        let child = Child::start(Work::Serve(SyncName::Always))?;
        let (Some(admin), Some(http)) = (child.admin, child.http) else {
            return Err("the server has not all its listeners".to_owned());
        };
        administer(admin, &venue::set_up([bursts::USER].into_iter()))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(told)?;
        let [readers, stalled] = runtime.block_on(self.gather(child.trade))?;
        let all = (READERS + self.stalled) as u64;
        while figure(http, "thalweg_market_readers")? < all {
            thread::yield_now();
        }
        let schedule = bursts::Schedule::new(WARM_UP, load.span);
        let seen = Shared::default();
        let before = thread::scope(|scope| {
            let trade = scope.spawn(|| bursts::send(child.trade, schedule, || child.memory()));
            runtime.block_on(async {
                for stream in readers {
                    tokio::spawn(read(stream, schedule, Arc::clone(&seen)));
                }
                tokio::time::sleep(schedule.left()).await;
            });
            trade.join().map_err(|_| "the trader has panicked")?
        })?;
        let after = child.memory();
        drop((runtime, stalled));
        let mut seen = lock(&seen);
        if let Some(error) = seen.error.take() {
            return Err(error);
        }
        let expected = schedule.counted() * READERS as u64;
        let [now, most] = after.unwrap_or_default().map(|bytes| bytes as f64);
        let gained = now - before.map_or(now, |[begin, _]| begin as f64);
        let quantile = |q| seen.delay_ns.quantile(q) as f64;
        Ok(Run::of(vec![
            quantile(0.5),
            quantile(0.99),
            now,
            most,
            gained.max(0.0),
            seen.conflated as f64,
        ])
        .with_lost(expected.saturating_sub(seen.bursts)))
    }
}

fn crowds() -> Vec<Box<dyn Subject<Load>>> {
    let crowd = |name, stalled| -> Box<dyn Subject<Load>> { Box::new(Crowd { name, stalled }) };
    vec![crowd(ALONE, 0), crowd(BESIDE, STALLED)]
}

/// The case `readers/1000`.
pub(super) fn run(report: &mut Report, settings: &Settings, targets: &mut Vec<Target>) {
    let span = Duration::from_nanos(settings.span_ns_or(SPAN_NS));
    let Some(trial) = settings.trial(CASE, METRICS, &crowds(), &Load { span }, REPETITIONS) else {
        return;
    };
    report.figures(&format!("{CASE}: {}", bursts::words()), &trial);
    let ratio = report.compare(&trial, [ALONE, BESIDE], P99);
    let sides = [ALONE, BESIDE];
    let limit = Limit::AtMost(SLOWER);
    targets.push(Target::ratio("message delay p99", sides, limit, ratio));
    let most = |subject: &str| {
        let values = trial.of(subject)?.values(MEMORY);
        values.into_iter().reduce(f64::max)
    };
    let more = most(BESIDE)
        .zip(most(ALONE))
        .map(|(with, without)| with - without);
    let what = "memory at most, with 50 stalled readers more";
    let limit = Limit::AtMost((STALLED as u64 * KEPT_BYTES) as f64);
    targets.push(Target::new(what, limit, more, mebibytes));
}
