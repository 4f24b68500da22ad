//! Tests the calls and wake-ups of this process that the kernel records.

use super::super::hooks::CALLS_EVERY;
use super::super::record::What;
use super::*;
use rustix::fs::{Advice, fadvise};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Opens the events with eBPF programs, or skips the test.
fn with_hooks(name: &str) -> Option<Perf> {
    match Perf::open(&[tid()]).map(|perf| (perf.missing(name).map(String::from), perf)) {
        Ok((None, mut perf)) => {
            perf.set_counting(true);
            perf.set_pace(Pace::Blind, false);
            return Some(perf);
        }
        Ok((Some(why), _)) => println!("skipped: {why}"),
        Err(why) => println!("skipped: {why}"),
    }
    None
}

fn tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

fn drained(perf: &mut Perf) -> Vec<Event> {
    let mut events = Vec::new();
    perf.drain(&mut events);
    events
}

#[test]
fn each_call_is_reported_with_its_arguments_while_it_is_asked_for() {
    let Some(mut perf) = with_hooks("sys_enter") else {
        return;
    };
    let own = tid();
    let file = File::open("/dev/null").unwrap();
    let mut seen = |pace, count: u64| -> Vec<(u64, [u64; 4])> {
        perf.set_pace(pace, true);
        for round in 0..count {
            fadvise(&file, round, NonZeroU64::new(7), Advice::Random).unwrap();
        }
        perf.set_pace(Pace::Blind, false);
        let ours = drained(&mut perf).into_iter().filter(|it| it.tid == own);
        let sent = ours.filter_map(|it| match it.what {
            What::Called {
                number,
                arguments,
                weight,
            } if number == libc::SYS_fadvise64 as u64 => {
                Some((weight, arguments[..4].try_into().unwrap()))
            }
            _ => None,
        });
        sent.collect()
    };
    let each = seen(Pace::Each, 100);
    let random = Advice::Random as u64;
    let descriptor = file.as_raw_fd() as u64;
    let expected = |round| (1, [descriptor, round, 7, random]);
    assert_eq!(each, (0..100).map(expected).collect::<Vec<_>>());
    assert_eq!(seen(Pace::Paused, 100), []);
    let few = seen(Pace::Few, 10_000);
    assert!(few.iter().all(|it| it.0 == u64::from(CALLS_EVERY)));
    let weight: u64 = few.iter().map(|it| it.0).sum();
    // Calls of others on this core shift the sampling as well: if they come at random, a sum of
    // 10,000 varies by 360.
    assert!((7_000..13_000).contains(&weight), "{weight}");
}

fn is_blocked(tid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
    stat.contains(") S ")
}

#[test]
fn wakes_are_reported_with_waker_and_core() {
    let Some(mut perf) = with_hooks("sched_wakeup") else {
        return;
    };
    let (begun, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (mut peer, mut spinners) = (0, Vec::new());
    thread::scope(|scope| {
        let (to_other, from_here) = channel();
        let (to_here, from_other) = channel();
        scope.spawn(move || {
            let answer = |()| to_here.send(tid()).unwrap();
            answer(());
            from_here.into_iter().for_each(answer);
        });
        // Timers expire while these threads have the cores, and run no call.
        let (names, named) = channel();
        for _ in 0..cores().len() {
            let (names, begun, is_over) = (names.clone(), &begun, &is_over);
            scope.spawn(move || {
                names.send(tid()).unwrap();
                // ORDERING: Release, pairs with the Acquire below: its wake-ups are done.
                begun.fetch_add(1, Ordering::Release);
                // ORDERING: Relaxed: nothing else depends on it.
                while !is_over.load(Ordering::Relaxed) {
                    (0..20_000).for_each(|_| std::hint::spin_loop());
                    thread::yield_now();
                }
            });
        }
        spinners.extend(named.iter().take(cores().len()));
        // ORDERING: Acquire, pairs with the Release above.
        while begun.load(Ordering::Acquire) < spinners.len() {
            thread::yield_now();
        }
        peer = from_other.recv().unwrap();
        perf.set_pace(Pace::Each, false);
        for _ in 0..200 {
            thread::sleep(Duration::from_micros(200));
            while !is_blocked(peer) {
                thread::yield_now();
            }
            to_other.send(()).unwrap();
            from_other.recv().unwrap();
        }
        perf.set_pace(Pace::Blind, false);
        // ORDERING: Relaxed: as above.
        is_over.store(true, Ordering::Relaxed);
    });
    let (own, cores) = (tid(), cores());
    let events = drained(&mut perf);
    let count = |of: i32, wanted: &dyn Fn(&What) -> bool| {
        let is_it = |it: &&Event| it.tid == of && wanted(&it.what);
        events.iter().filter(is_it).count()
    };
    let roused = |of, by| count(of, &|what| *what == What::Roused { waker: by });
    let by_us = roused(peer, Some(own));
    assert!((200..600).contains(&by_us), "{by_us}");
    assert!(roused(own, None) >= 100, "sleeps are ended by interrupts");
    for spinner in spinners {
        assert_eq!(roused(own, Some(spinner)), 0, "it only had the core");
    }
    let woken = count(peer, &|what| matches!(what, What::Woken { .. }));
    assert!((200..600).contains(&woken), "{woken}");
    let is_there = |it: &Event| match it.what {
        What::Woken { target } => cores.contains(&target.cast_signed()),
        _ => true,
    };
    assert!(events.iter().all(is_there));
}

/// This is a user who may open the events of the machine, but may not load eBPF programs.
#[test]
fn where_programs_are_refused_events_tell_switches() {
    // Capabilities belong to a thread, and end with this one.
    let seen = thread::spawn(|| {
        let mut rights = capabilities(None).unwrap();
        (rights.effective).remove(CapabilitySet::BPF | CapabilitySet::SYS_ADMIN);
        set_capabilities(None, rights).unwrap();
        let mut perf = Perf::open(&[tid()]).ok()?;
        if !perf.is_whole_machine() {
            return None;
        }
        perf.set_counting(true);
        (0..20).for_each(|_| thread::sleep(Duration::from_micros(200)));
        perf.set_counting(false);
        let own = tid();
        let events = drained(&mut perf);
        let blocked = What::Out { preempted: false };
        let blocks = (events.iter()).filter(|it| it.tid == own && it.what == blocked);
        let why = perf.missing("sys_enter").unwrap_or_default().to_string();
        Some((perf.hooks_switches, blocks.count(), why))
    });
    let Some((hooked, blocks, why)) = seen.join().unwrap() else {
        return println!("skipped: no events of the machine without programs");
    };
    assert!(!hooked && blocks >= 15, "{hooked} {blocks}");
    assert!(
        why.ends_with("needs root, or CAP_BPF and CAP_PERFMON"),
        "{why}"
    );
}
