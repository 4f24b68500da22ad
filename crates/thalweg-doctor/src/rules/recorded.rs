//! Tests evidence recorded from programs that were judged wrongly.

use super::cases::{blocked, confidence, evidence, first, without};
use super::*;

#[test]
fn a_queue_at_a_lock_is_distinguished_from_one_at_a_condition() {
    // Six threads, and the holder of the lock sleeps for 15 ms: it was judged SLEEP-POLLING.
    let asleep = [
        ("block.sleep", 1.0),
        ("sleep.us", 15_100.0),
        ("call.sleep", 66.0),
        ("call.futex", 190.0),
        ("switch.blocked", 140.0),
        ("lock.waiters", 4.9),
        ("lock.held_share", 1.0),
    ];
    first(Id::LockConvoy, &blocked(&asleep));
    // Two senders and a receiver at a queue with one place: it was judged LOCK-CONVOY.
    let senders = [
        ("state.running", 0.59),
        ("state.blocked", 0.41),
        ("block.futex", 1.0),
        ("futex.wake_share", 1.0),
        ("call.all", 120_758.0),
        ("call.futex", 120_540.0),
        ("call.cpu_share", 0.94),
        ("switch.blocked", 63_377.0),
        ("switch.run_us", 7.4),
        ("lock.waiters", 1.53),
        ("lock.held_share", 0.0),
    ];
    first(Id::FutexParking, &evidence(&senders));
    // Six threads at a Java monitor, each at a word of its own: it was judged CPU-COMPUTE.
    let monitor = [
        ("call.futex", 14_281.0),
        ("call.all", 14_500.0),
        ("switch.blocked", 7_140.0),
        ("switch.run_us", 135.0),
        ("lock.waiters", 2.9),
        ("lock.held_share", 0.7),
    ];
    first(Id::LockConvoy, &evidence(&monitor));
}

#[test]
fn two_answers_that_are_near_are_not_sure() {
    let both = [("fault.cpu_share", 0.45), ("call.cpu_share", 0.45)];
    let both = evidence(&[&both[..], &[("call.all", 1e6)]].concat());
    let verdicts = judge(&both);
    assert!(verdicts.len() > 1, "{verdicts:?}");
    for verdict in verdicts {
        assert!(verdict.confidence <= 0.6, "{verdict:?}");
    }
}

/// Made by hand after the view of users without root: the verdicts were wrong with high confidence.
#[test]
fn without_wakers_a_lock_is_not_sure() {
    // Six threads, and the holder of the lock waits for a database: it was judged BLOCKING-IO at
    // 0.93.
    let connection = [
        ("block.stream", 1.0),
        ("state.blocked_us", 2_100.0),
        ("call.futex", 900.0),
        ("switch.blocked", 1_350.0),
        ("lock.waiters", 4.89),
    ];
    let unknown = without(&blocked(&connection), &["lock.held_share"]);
    assert!(confidence(Id::BlockingIo, &unknown) <= 0.6);
    let asleep = [
        ("block.sleep", 1.0),
        ("sleep.us", 2_000.0),
        connection[3],
        connection[4],
    ];
    let unknown = without(&blocked(&asleep), &["lock.held_share"]);
    assert!(confidence(Id::SleepPolling, &unknown) <= 0.6);
    // One thread that waits for a database, and no thread that waits for a lock: the confidence was
    // 0.60.
    let alone = without(
        &blocked(&connection[..4]),
        &["lock.waiters", "lock.held_share"],
    );
    let sure = confidence(Id::BlockingIo, &alone);
    assert!(sure > 0.6, "{sure}");
    // Idle workers, beside one that waits for a disk.
    let pool = [connection[0], connection[1], connection[3], connection[4]];
    first(
        Id::BlockingIo,
        &blocked(&[&pool[..], &[("lock.held_share", 0.0)]].concat()),
    );
}

/// Three threads that pass an order round through eventfds, as recorded by a user without root, who
/// cannot see which calls they make: it was judged BLOCKING-IO at 0.60.
#[test]
fn threads_that_wait_for_each_others_moments_churn() {
    let relay = [
        ("state.running", 0.55),
        ("state.blocked", 0.44),
        ("block.stream", 1.0),
        ("call.cpu_share", 0.94),
        ("cpu.used", 0.88),
        ("call.futex", 0.0),
        ("state.blocked_us", 656.0),
        ("switch.blocked", 75_500.0),
        ("switch.run_us", 6.8),
    ];
    let uncounted = ["call.all", "lock.waiters", "lock.held_share"];
    let found = judge(&without(&evidence(&relay), &uncounted));
    assert_eq!(found[0].id, Id::SchedChurn);
    assert!(found[1].confidence < 0.4, "{found:?}");
}

/// A member of a cluster that reports every 100 ms to the others that it is alive, as recorded: it
/// was judged BLOCKING-IO at 0.94. A wait of 3 ms is for an answer, and one of 150 ms may be.
#[test]
fn a_heartbeat_waits_for_no_answer() {
    let waits = |blocked_us, timed, cause| {
        let polls = [
            ("state.blocked_us", blocked_us),
            ("call.poll", 38.5),
            ("poll.timer_share", timed),
        ];
        blocked(&[&polls[..], &[(cause, 1.0)]].concat())
    };
    first(Id::Idle, &waits(99_891.0, 1.0, "block.poll"));
    first(Id::SleepPolling, &waits(20_000.0, 1.0, "block.poll"));
    for cause in ["block.poll", "block.stream"] {
        let late = confidence(Id::BlockingIo, &waits(150_000.0, 0.0, cause));
        assert!((0.3..=0.6).contains(&late), "{cause}: {late}");
        first(Id::BlockingIo, &waits(3_000.0, 0.0, cause));
    }
}

/// A Go server that waits for a client, as a user without root sees it: the threads of the runtime
/// park a few times when it starts. It was judged SLEEP-POLLING at 0.72.
#[test]
fn threads_that_time_out_once_do_not_poll() {
    let quiet = [
        ("block.futex", 1.0),
        ("futex.wake_share", 0.0),
        ("call.futex", 36.4),
        ("call.poll", 6.6),
        ("state.blocked_us", 1.2e6),
    ];
    let polling = confidence(Id::SleepPolling, &blocked(&quiet));
    assert!(polling < 0.1, "{polling}");
}

/// Go's `sync.Mutex`, held over a computation, as a user without root sees it: it was judged
/// CPU-COMPUTE at 0.62, and the waiting goroutines are not visible.
#[test]
fn where_goroutines_may_wait_unseen_it_is_not_sure() {
    let goroutines = [("call.futex", 20_000.0), ("switch.blocked", 11_000.0)];
    let unseen = without(&evidence(&goroutines), &["lock.goroutines"]);
    assert!(confidence(Id::CpuCompute, &unseen) <= 0.6);
    let open = judge(&unseen)[0].cannot_tell.join("\n");
    assert!(open.contains("lock.goroutines"), "{open}");
    // No goroutine is handed on where no thread parks.
    let alone = without(&evidence(&[]), &["lock.goroutines"]);
    first(Id::CpuCompute, &alone);
}

/// Java sleeps in futex, and no thread wakes a sleeper. This is made by hand: for such a program
/// the probes still report `lock.held_share` 0.05 where threads take turns in a fixed order.
#[test]
fn a_monitor_that_is_held_asleep_is_a_lock() {
    let monitor = [
        ("block.futex", 1.0),
        ("futex.wake_share", 0.08),
        ("call.futex", 2_400.0),
        ("switch.blocked", 950.0),
        ("lock.waiters", 4.8),
        ("lock.held_share", 0.8),
    ];
    first(Id::LockConvoy, &blocked(&monitor));
}

/// Java's reader-writer lock, held over a computation, as recorded: it was judged OVERSUBSCRIBED,
/// as readers run together.
#[test]
fn readers_that_want_a_core_do_not_hide_the_lock() {
    let lock = [
        ("threads.busy", 3.23),
        ("run.wait_peers", 0.5),
        ("call.futex", 6_630.0),
        ("call.all", 8_890.0),
        ("call.cpu_share", 0.07),
        ("switch.blocked", 2_210.0),
        ("lock.waiters", 1.92),
        ("lock.held_share", 0.57),
    ];
    first(Id::LockConvoy, &evidence(&lock));
}

/// Made by hand after `crossbeam-64` and `slow_stage`, which were sometimes judged wrongly.
#[test]
fn spinning_is_neither_work_nor_a_burst() {
    let crowd = [
        ("threads.busy", 9.0),
        ("run.wait_peers", 0.7),
        ("spin.cpu_share", 0.3),
        ("call.cpu_share", 0.3),
        ("switch.run_us", 60.0),
        ("switch.blocked", 4_000.0),
    ];
    let verdicts = judge(&evidence(&crowd));
    assert_ne!(verdicts[0].id, Id::Oversubscribed, "{verdicts:?}");
    // Its sender spins until the next burst is due, which costs a core but delays no message.
    let bursts = [
        ("spin.cpu_share", 0.45),
        ("threads.spinners", 1.0),
        ("export.arrival", 270_000.0),
        ("export.service", 400_000.0),
        ("export.full_share", 0.15),
        ("export.burst", 998.0),
    ];
    let verdicts = judge(&evidence(&bursts));
    assert_eq!(verdicts[0].id, Id::Burst, "{verdicts:?}");
}

/// Five processes that share a file under `flock`, as recorded: it was judged CPU-COMPUTE at 0.50.
/// A program that waits for a lock that another program holds does nothing.
#[test]
fn a_lock_of_a_file_is_a_lock() {
    let handed = [
        ("lock.waiters", 3.4),
        ("lock.held_share", 1.0),
        ("switch.blocked", 537.0),
    ];
    let busy = [("state.running", 0.96), ("state.blocked", 0.04)];
    let waits = [("block.file_lock", 1.0)];
    first(
        Id::LockConvoy,
        &evidence(&[&handed[..], &busy, &waits].concat()),
    );
    first(Id::LockConvoy, &blocked(&[&handed[..], &waits].concat()));
    let alone = [("lock.waiters", 1.0), ("lock.held_share", 1.0)];
    let rare = [("switch.blocked", 1.0), ("block.file_lock", 1.0)];
    first(Id::Idle, &blocked(&[&alone[..], &rare].concat()));
}

/// `selectNow` of Java in a loop, as recorded: it was judged SYSCALL-BOUND at 0.85. A poll that
/// finds something each time is followed by a call that takes it.
#[test]
fn polls_that_do_not_wait_are_spins() {
    let calls = |busy| {
        [
            ("call.all", 1.43e6),
            ("call.poll", 1.42e6),
            ("call.cpu_share", 0.52),
            ("cpu.system_share", 0.53),
            ("poll.busy_share", busy),
        ]
    };
    let spins = first(Id::SpinBurnsCpu, &evidence(&calls(0.99)));
    assert!(spins.next.starts_with("Poll with a timeout"), "{spins:?}");
    assert!(confidence(Id::SyscallBound, &evidence(&calls(0.99))) < 0.1);
    first(Id::SyscallBound, &evidence(&calls(0.45)));
    let starved = [("run.wait_peers", 0.5)];
    first(
        Id::SpinStarvesPeer,
        &evidence(&[&calls(0.99)[..], &starved].concat()),
    );
    let pause = evidence(&[("spin.cpu_share", 0.9)]);
    assert!(first(Id::SpinBurnsCpu, &pause).next.starts_with("Bound"));
}

/// A Java client that waits for a socket, as recorded: it was judged SLEEP-POLLING at 0.83. The
/// JVM's own thread wakes every 50 ms, and the futex calls are those of its start.
#[test]
fn a_runtime_that_looks_after_itself_does_not_poll() {
    let client = |timeout_us| {
        blocked(&[
            ("block.stream", 0.54),
            ("block.futex", 0.46),
            ("futex.wake_share", 0.0),
            ("futex.timeout_us", timeout_us),
            ("call.futex", 477.0),
            ("state.blocked_us", 27_710.0),
        ])
    };
    first(Id::BlockingIo, &client(50_000.0));
    let polls = confidence(Id::SleepPolling, &client(50_000.0));
    assert!(polls < 0.1, "{polls}");
    assert!(confidence(Id::SleepPolling, &client(1_000.0)) > 0.5);
}
