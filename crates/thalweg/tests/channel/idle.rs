//! A channel on which nothing happens costs nothing.

use crate::channel::flavour::{Flavour, Made};
use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use thalweg::wait::WaitMode;

/// The counts of the system for a thread of this process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Usage {
    pub(crate) is_asleep: bool,
    pub(crate) cpu_ns: u64,
    switches: u64,
}

pub(crate) fn usage(thread: &str) -> Option<Usage> {
    let of = |file| fs::read_to_string(format!("/proc/self/task/{thread}/{file}")).ok();
    let cpu_ns = of("schedstat")?.split(' ').next()?.parse().ok()?;
    let status = of("status")?;
    let mut lines = status.lines();
    let is_asleep = lines.any(|line| line.starts_with("State:\tS"));
    let switches = status
        .lines()
        .filter(|line| line.contains("voluntary_ctxt_switches"))
        .filter_map(|line| line.split('\t').nth(1)?.parse::<u64>().ok())
        .sum();
    Some(Usage {
        is_asleep,
        cpu_ns,
        switches,
    })
}

pub(crate) fn own_id() -> Option<String> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}

/// Starts a thread that sends its id, and then waits.
fn start(
    ids: &mpsc::Sender<Option<String>>,
    wait: impl FnOnce() + Send + 'static,
) -> thread::JoinHandle<()> {
    let ids = ids.clone();
    thread::spawn(move || {
        ids.send(own_id()).unwrap();
        wait();
    })
}

type Release = Box<dyn FnOnce()>;

/// Both ends of a kind, blocked: a receiver on an empty channel, a sender on a full one.
fn block_both<S: Made>(
    flavour: Flavour<S>,
    ids: &mpsc::Sender<Option<String>>,
    mode: WaitMode,
) -> Vec<Release> {
    let make = || flavour.make::<u32>(flavour.options(2).mode(mode)).unwrap();
    let (tx, mut rx) = make();
    let receiver = start(ids, move || assert!(rx.recv().is_err()));
    crate::channel::crowds::await_parked(|| tx.counters().parked);
    let (mut full, rx) = make();
    let sender = start(ids, move || while full.send(1).is_ok() {});
    crate::channel::crowds::await_parked(|| rx.counters().parked);
    let release = move || {
        drop((tx, rx));
        receiver.join().unwrap();
        sender.join().unwrap();
    };
    vec![Box::new(release)]
}

fn all_kinds(ids: &mpsc::Sender<Option<String>>, mode: WaitMode) -> Vec<Release> {
    use crate::channel::flavour::{MPMC, ORDERED, PACKED, RENDEZVOUS, SLOTTED, UNBOUNDED};
    [
        block_both(PACKED, ids, mode),
        block_both(SLOTTED, ids, mode),
        block_both(ORDERED, ids, mode),
        block_both(MPMC, ids, mode),
        block_both(UNBOUNDED, ids, mode),
        block_both(RENDEZVOUS, ids, mode),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[test]
fn a_blocked_second_costs_no_processor_and_no_wake_up() {
    crate::channel::watchdog::watched(|| {
        let (ids, names) = mpsc::channel();
        let mut releases = all_kinds(&ids, WaitMode::Balanced);
        releases.extend(all_kinds(&ids, WaitMode::Latency));
        releases.extend(all_kinds(&ids, WaitMode::LowPower));
        drop(ids);
        // Each of them is listed to be woken. Latency mode has spun before.
        let names: Option<Vec<String>> = names.iter().take(releases.len() * 2).collect();
        let Some(names) = names.filter(|names| usage(&names[0]).is_some()) else {
            println!("skipped: the system does not say what a thread has used");
            return;
        };
        // A pause is what is tested here, so there is nothing to await.
        let (_keep, nothing) = mpsc::channel::<()>();
        let rest = |time: Duration| assert!(nothing.recv_timeout(time).is_err());
        let all = || -> Vec<Usage> { names.iter().map(|name| usage(name).unwrap()).collect() };
        let mut before = all();
        loop {
            rest(Duration::from_millis(20));
            let now = all();
            let sleep = now == before && now.iter().all(|one| one.is_asleep);
            before = now;
            if sleep {
                break;
            }
        }
        rest(Duration::from_secs(1));
        for (name, before) in names.iter().zip(before) {
            let after = usage(name).unwrap();
            assert!(
                after.cpu_ns - before.cpu_ns < 1_000_000,
                "{before:?}, then {after:?}"
            );
            assert_eq!(after.switches, before.switches, "a sleeper was woken");
        }
        releases.into_iter().for_each(|release| release());
    });
}

/// The figures above are alive: a thread that works has some.
#[test]
fn usage_sees_work_and_wake_ups() {
    let Some(before) = own_id().and_then(|id| usage(&id)) else {
        println!("skipped: the system does not say what a thread has used");
        return;
    };
    let (mut tx, mut rx) = crate::channel::flavour::PACKED.channel::<u32>(1);
    let echo = thread::spawn(move || rx.iter().count());
    for n in 0..2000 {
        tx.send(n).unwrap();
        std::hint::black_box((0..1000).sum::<u32>());
    }
    drop(tx);
    assert_eq!(echo.join().unwrap(), 2000);
    let after = usage(&own_id().unwrap()).unwrap();
    assert!(after.cpu_ns > before.cpu_ns, "{before:?}, then {after:?}");
    assert!(
        after.switches > before.switches,
        "{before:?}, then {after:?}"
    );
}
