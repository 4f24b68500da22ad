//! Nothing to do: one thread waits to receive from an empty channel, another one to send into a
//! full one. What they cost a second, from the system's own count of their time and switches.

use std::fs;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::thread::gettid;

use crate::channels::{BlockingPair, BlockingRecv, BlockingSend, Message};
use crate::experiment::subjects::{BlockingJob, Job, Subjects};
use crate::runner::{Metric, Run, Subject};

pub(super) const METRICS: &[Metric] = &[
    Metric::lower("receiver_cpu_per_s", "ns"),
    Metric::lower("sender_cpu_per_s", "ns"),
    Metric::lower("receiver_switches_per_s", "count"),
    Metric::lower("sender_switches_per_s", "count"),
];
/// Where the CPU time of both ends, and the switches of both, are among them.
pub(super) const CPU: &[usize] = &[0, 1];
pub(super) const SWITCHES: &[usize] = &[2, 3];

const CAPACITY: usize = 16;
/// More than any channel of that capacity has room for.
const MESSAGES: u64 = 100_000;
/// Until both wait.
const SETTLE: Duration = Duration::from_millis(100);

/// How long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) span_ns: u64,
}

/// What the system says of a thread of this process.
#[derive(Debug, Clone, Copy)]
pub(in crate::experiment) struct Account {
    /// Time on a core.
    pub(in crate::experiment) cpu_ns: f64,
    /// Time in which it could have run, and another had the core.
    pub(in crate::experiment) queued_ns: f64,
    switches: f64,
    /// Switches by which the thread itself gave up its core.
    pub(in crate::experiment) voluntary: f64,
}

impl Account {
    /// That of the calling thread.
    ///
    /// # Errors
    /// The system does not tell.
    pub(in crate::experiment) fn own() -> Result<Self, String> {
        Self::of(gettid().as_raw_nonzero().get())
    }

    fn of(thread: i32) -> Result<Self, String> {
        let read = |file: &str| {
            let path = format!("/proc/self/task/{thread}/{file}");
            fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
        };
        Self::parse(&read("schedstat")?, &read("status")?)
    }

    /// Reads `schedstat`, whose first fields are the time on a core and that of waiting for one in
    /// ns, and `status`.
    fn parse(schedstat: &str, status: &str) -> Result<Self, String> {
        let mut times = schedstat.split_whitespace().map(str::parse);
        let mut time = || times.next().and_then(Result::ok);
        let switches = |end: &str| -> f64 {
            let lines = status.lines().filter_map(|line| line.split_once(':'));
            let ours = lines.filter(|(key, _)| key.ends_with(end));
            ours.filter_map(|(_, value)| value.trim().parse::<f64>().ok())
                .sum()
        };
        let all = switches("voluntary_ctxt_switches");
        Ok(Self {
            cpu_ns: time().ok_or("schedstat tells no time")?,
            queued_ns: time().ok_or("schedstat tells no waiting")?,
            switches: all,
            voluntary: all - switches("nonvoluntary_ctxt_switches"),
        })
    }

    /// Time and switches since `earlier`, of a second.
    fn since(self, earlier: Self, seconds: f64) -> [f64; 2] {
        [
            (self.cpu_ns - earlier.cpu_ns) / seconds,
            (self.switches - earlier.switches) / seconds,
        ]
    }
}

/// The job.
struct Waiting;

impl Job for Waiting {
    type Load = Load;
}

impl BlockingJob<u64> for Waiting {
    const SUFFIX: &'static str = "";

    fn run<P: BlockingPair<u64>>(load: &Load) -> Result<Run, String> {
        let (mut waker, mut waiting_rx) = P::pair(CAPACITY);
        let (mut waiting_tx, mut drain) = P::pair(CAPACITY);
        let (tell, threads) = mpsc::channel();
        let tell_too = tell.clone();
        let receiver = std::thread::spawn(move || {
            let _ = tell.send((false, gettid().as_raw_nonzero().get()));
            waiting_rx.recv()
        });
        let sender = std::thread::spawn(move || {
            let _ = tell_too.send((true, gettid().as_raw_nonzero().get()));
            (0..MESSAGES).for_each(|value| waiting_tx.send(value));
            waiting_tx
        });
        let told: Vec<(bool, i32)> = threads.iter().take(2).collect();
        std::thread::sleep(SETTLE);
        let accounts = || -> Result<[Account; 2], String> {
            let thread = |sends| {
                let found = told.iter().find(|(is_sender, _)| *is_sender == sends);
                found.map_or(Err("a thread did not start".to_owned()), |(_, id)| Ok(*id))
            };
            Ok([Account::of(thread(false)?)?, Account::of(thread(true)?)?])
        };
        let (begin, since) = (accounts(), Instant::now());
        std::thread::sleep(Duration::from_nanos(load.span_ns));
        let (end, seconds) = (accounts(), since.elapsed().as_secs_f64());
        waker.send(u64::of(7));
        let mut lost = (0..MESSAGES)
            .filter(|value| drain.recv() != Some(*value))
            .count() as u64;
        let received = receiver.join().map_err(|_| "the receiver panicked")?;
        lost += u64::from(received != Some(7));
        drop(sender.join().map_err(|_| "the sender panicked")?);
        let ([rx_begin, tx_begin], [rx_end, tx_end]) = (begin?, end?);
        let [rx_cpu, rx_switches] = rx_end.since(rx_begin, seconds);
        let [tx_cpu, tx_switches] = tx_end.since(tx_begin, seconds);
        Ok(Run::of(vec![rx_cpu, tx_cpu, rx_switches, tx_switches]).with_lost(lost))
    }
}

pub(super) fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    Subjects::<Waiting>::new().waiting::<u64>().all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_account_is_read() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let account = Account::parse("1554768 20 1\n", status).unwrap();
        assert_eq!((account.cpu_ns, account.switches), (1_554_768.0, 15.0));
        assert_eq!((account.queued_ns, account.voluntary), (20.0, 12.0));
        assert!(Account::parse("", status).is_err());
        let later = Account::parse("3554768 20 1\n", status).unwrap();
        assert_eq!(later.since(account, 2.0), [1e6, 0.0]);
    }
}
