//! Tests how the samples of blocked threads are counted.

use super::*;

fn wait(cause: Cause, call: i64, timeout: u64) -> Wait {
    Wait {
        cause,
        call: u64::try_from(call).ok(),
        arguments: [0, 0, 0, timeout, 0, 0],
        stack: 0,
        timeout_ns: None,
        timer_at_ns: None,
    }
}

/// All threads are blocked from 100 ns on, and are sampled; `first` wakes first.
fn charged(waits: &[(i32, Wait, bool)], first: Option<i32>) -> Waits {
    let mut timeline = Timeline::new(0, true);
    let mut seen = Waits::default();
    for (at_ns, &(tid, wait, woken)) in (101..).zip(waits) {
        timeline.adopt(1, tid, "a");
        seen.pending.push_back(Look {
            at_ns,
            tid,
            wait,
            spot: None,
            woken,
            due_ns: None,
            since_ns: None,
        });
    }
    (timeline.now_ns, timeline.idle_since_ns) = (200, Some(100));
    seen.pass(200, &timeline);
    seen.end_idle(first, &timeline);
    seen
}

/// The client ran last, and waits for an answer; the server's timeout ends that wait.
#[test]
fn all_wait_for_the_one_that_wakes_first() {
    let server = (1, wait(Cause::Poll, libc::SYS_epoll_pwait, 1), false);
    let client = (2, wait(Cause::Futex, libc::SYS_futex, 0), false);
    let seen = charged(&[server, client], Some(1));
    assert_eq!(seen.critical, HashMap::from([(Cause::Poll, 1.0)]));
    let nobody = charged(&[server, client], None);
    assert_eq!(nobody.critical.values().sum::<f64>(), 1.0);
    assert_eq!(charged(&[client], Some(1)).critical, HashMap::new());
}

/// A shell is killed before the program that it waits for, and so wakes first.
#[test]
fn who_wakes_first_after_a_signal_says_nothing() {
    let shell = wait(Cause::Child, libc::SYS_wait4, 0);
    let sleep = wait(Cause::Sleep, libc::SYS_nanosleep, 0);
    let seen = charged(&[(1, shell, false), (2, sleep, false)], None);
    assert_eq!(seen.critical, HashMap::from([(Cause::Sleep, 1.0)]));
    let alone = charged(&[(1, shell, false)], None);
    assert_eq!(alone.critical, HashMap::from([(Cause::Child, 1.0)]));
}

#[test]
fn a_look_counts_only_while_nothing_runs() {
    let mut seen = charged(&[], None);
    let wait = wait(Cause::Sleep, libc::SYS_nanosleep, 0);
    for at_ns in [50, 150] {
        seen.pending.push_back(Look {
            at_ns,
            tid: 1,
            wait,
            spot: None,
            woken: false,
            due_ns: None,
            since_ns: None,
        });
    }
    let mut timeline = Timeline::new(0, true);
    timeline.idle_since_ns = None;
    seen.pass(100, &timeline);
    timeline.idle_since_ns = Some(110);
    seen.pass(120, &timeline);
    seen.end_idle(Some(1), &timeline);
    assert_eq!(seen.critical, HashMap::new());
    seen.pass(200, &timeline);
    seen.end_idle(Some(1), &timeline);
    assert_eq!(seen.critical, HashMap::from([(Cause::Sleep, 1.0)]));
}

/// `rendezvous` was judged SLEEP-POLLING, because samples of calls showed no wake-up.
#[test]
fn a_wait_without_a_timeout_is_ended_by_a_thread() {
    let waits = |timeout, woken| {
        let one = (1, wait(Cause::Futex, libc::SYS_futex, timeout), woken);
        let seen = charged(&[one], Some(1));
        (seen.timed, seen.open)
    };
    assert_eq!(waits(0, false), (0.0, 0.0));
    assert_eq!(waits(0, true), (0.0, 0.0));
    assert_eq!(waits(0x7f00, false), (1.0, 0.0));
    assert_eq!(waits(0x7f00, true), (0.0, 1.0));
}

/// A heartbeat was judged BLOCKING-IO at 0.57.
#[test]
fn a_poll_that_ends_when_its_time_has_come_was_not_answered() {
    let poll = wait(Cause::Poll, libc::SYS_epoll_pwait, 0);
    let ended = |timeout_ns, timer_at_ns, first| {
        let mut timeline = Timeline::new(1_000_000, true);
        timeline.adopt(1, 1, "a");
        let mut seen = Waits::default();
        seen.pending.push_back(Look {
            at_ns: 2_000_000,
            tid: 1,
            wait: Wait {
                timeout_ns,
                timer_at_ns,
                ..poll
            },
            spot: None,
            woken: false,
            due_ns: None,
            since_ns: None,
        });
        seen.pass(9_000_000, &timeline);
        timeline.advance(9_000_000);
        seen.end_idle(first, &timeline);
        assert_eq!(seen.critical, HashMap::from([(Cause::Poll, 1.0)]));
        seen.polls_timed
    };
    assert_eq!(ended(Some(8_000_000), None, Some(1)), 1.0, "its timeout");
    assert_eq!(ended(None, Some(9_000_000), Some(1)), 1.0, "its timer");
    assert_eq!(ended(Some(90_000_000), Some(8_500_000), Some(1)), 1.0);
    assert_eq!(
        ended(Some(90_000_000), Some(12_000_000), Some(1)),
        0.0,
        "an answer"
    );
    assert_eq!(ended(None, None, Some(1)), 0.0);
    assert_eq!(ended(Some(8_000_000), None, None), 0.0, "it had not ended");
}

/// The JVM's own thread, which wakes every 50 ms, made a Java program that waits for a socket look
/// like one that polls: the futex calls were those of its start.
#[test]
fn a_wait_that_times_out_has_a_length() {
    let after = |since_ns| {
        let mut timeline = Timeline::new(since_ns, true);
        timeline.adopt(1, 1, "a");
        let mut seen = Waits::default();
        seen.pending.push_back(Look {
            at_ns: 60_000_000,
            tid: 1,
            wait: wait(Cause::Futex, libc::SYS_futex, 0x7f00),
            spot: None,
            woken: false,
            due_ns: None,
            since_ns: None,
        });
        seen.pass(70_000_000, &timeline);
        timeline.advance(70_000_000);
        seen.end_idle(Some(1), &timeline);
        seen.timeout_us()
    };
    assert_eq!(after(20_000_000), Some(50_000.0));
    assert_eq!(after(59_000_000), Some(11_000.0));
    assert_eq!(Waits::default().timeout_us(), None);
}
