//! Tests the rules by figures made by hand, by recorded ones, and by arbitrary ones.

use crate::evidence::values;
use crate::evidence::{METRICS, Quality};
use crate::rules::engine::{CONTAMINATED_MAX, weigh};
use crate::rules::*;
use proptest::prelude::*;

/// A program that runs all the time on two cores, without other notable figures.
const PLAIN: &[(&str, f64)] = &values! {
    time.wall 2.0, cpu.usable 2.0, cpu.used 1.0, cpu.system_share 0.01, threads.busy 1.0,
    state.running 1.0, state.waiting 0.0, state.blocked 0.0,
    state.blocked_us 1_000.0, run.wait_peers 0.0, switch.handed 10.0,
    switch.run_us 10_000.0, fault.minor 100.0, fault.major 0.0,
    fault.cpu_share 0.01, call.all 50.0, call.cpu_share 0.01, call.yield 0.0, call.futex 0.0,
    poll.busy_share 0.0, spin.cpu_share 0.0,
    yield.cpu_share 0.0, block.futex 0.0, block.file_lock 0.0, block.disk 0.0, block.stream 0.0,
    block.sleep 0.0, block.poll 0.0, block.child 0.0, block.other 0.0, lock.waiters 0.0,
    lock.held_share 0.0, lock.goroutines 0.0, host.steal_share 0.0,
    host.wait_others 0.01, host.throttled_share 0.0, host.others 0.1
};

pub(crate) fn evidence(values: &[(&str, f64)]) -> Evidence {
    Evidence::of(&[PLAIN, values].concat(), Quality::Exact)
}

/// Creates evidence like [`PLAIN`] in which the program blocks for nine tenths of the time.
pub(crate) fn blocked(figures: &[(&str, f64)]) -> Evidence {
    let mut all = vec![("state.running", 0.1), ("state.blocked", 0.9)];
    all.extend([("cpu.used", 0.1), ("threads.busy", 0.1)]);
    all.extend(figures);
    evidence(&all)
}

pub(crate) fn without(evidence: &Evidence, names: &[&str]) -> Evidence {
    let mut less = Evidence::new();
    for (name, reading) in evidence.readings() {
        match reading.value {
            Some(value) if !names.contains(&name) => {
                less.put(name, value, reading.quality, &reading.source);
            }
            _ => less.lack(name, "not here"),
        }
    }
    less
}

pub(crate) fn confidence(id: Id, evidence: &Evidence) -> f64 {
    let verdicts = judge(evidence);
    let found = verdicts.iter().find(|verdict| verdict.id == id);
    found.map_or(0.0, |verdict| verdict.confidence)
}

/// Checks that the first verdict is this one, with a confidence of 0.6 or more.
#[track_caller]
pub(crate) fn first(id: Id, evidence: &Evidence) -> Verdict {
    let verdicts = judge(evidence);
    let short: Vec<_> = verdicts.iter().map(|v| (v.id, v.confidence)).collect();
    assert_eq!(short.first().map(|found| found.0), Some(id), "{short:?}");
    assert!(short[0].1 >= 0.6, "{short:?}");
    verdicts.into_iter().next().expect("there is one")
}

#[test]
fn what_runs_is_reported() {
    first(Id::CpuCompute, &evidence(&[]));
    let faults = [("fault.cpu_share", 0.5), ("fault.minor", 300_000.0)];
    first(Id::PageFaults, &evidence(&faults));
    let calls = values! {
        call.cpu_share 0.7, call.all 2e6, cpu.system_share 0.6
    };
    first(Id::SyscallBound, &evidence(&calls));
    let yields = values! {
        call.cpu_share 0.9, yield.cpu_share 0.85, call.all 3e6, call.yield 3e6
    };
    first(Id::YieldStorm, &evidence(&yields));
    let spin = values! {
        spin.cpu_share 0.9, threads.busy 2.0
    };
    first(Id::SpinBurnsCpu, &evidence(&spin));
    let starved = [("run.wait_peers", 0.5), ("cpu.usable", 1.0)];
    first(
        Id::SpinStarvesPeer,
        &evidence(&[&spin[..], &starved].concat()),
    );
    let crowd = values! {
        threads.busy 8.0, cpu.used 2.0, run.wait_peers 0.75
    };
    first(Id::Oversubscribed, &evidence(&crowd));
}

#[test]
fn what_blocks_is_reported() {
    let disk = [("block.disk", 0.9)];
    first(Id::BlockingIo, &blocked(&disk));
    let stream = [("block.stream", 0.9)];
    first(Id::BlockingIo, &blocked(&stream));
    let mapped = [("block.disk", 0.9), ("fault.major", 3_000.0)];
    first(Id::PageFaults, &blocked(&mapped));
    let sleep = values! {
        block.sleep 1.0, sleep.us 1_060.0
    };
    first(Id::SleepPolling, &blocked(&sleep));
    let polled = values! {
        block.poll 1.0, poll.timer_share 1.0
    };
    first(Id::SleepPolling, &blocked(&polled));
    // Java and Go sleep in futex.
    let parked = values! {
        block.futex 1.0, futex.wake_share 0.01, call.futex 900.0
    };
    first(Id::SleepPolling, &blocked(&parked));
    first(
        Id::Idle,
        &blocked(&[("block.sleep", 1.0), ("sleep.us", 2e6)]),
    );
    first(
        Id::Idle,
        &blocked(&[("block.stream", 1.0), ("state.blocked_us", 1.5e6)]),
    );
}

#[test]
fn threads_that_wait_for_each_other_are_reported() {
    let parking = values! {
        state.running 0.6, state.blocked 0.4, block.futex 1.0, call.futex 150_000.0,
        call.all 150_100.0, call.cpu_share 0.7, switch.handed 80_000.0, switch.run_us 5.0,
        futex.wake_share 0.5, lock.waiters 1.0, lock.held_share 0.0
    };
    first(Id::FutexParking, &evidence(&parking));
    let convoy = values! {
        call.futex 40_000.0, call.all 40_100.0, call.cpu_share 0.3, switch.handed 20_000.0,
        switch.run_us 40.0, futex.wake_share 0.5, lock.waiters 2.8, lock.held_share 0.99
    };
    first(Id::LockConvoy, &evidence(&convoy));
    let pipes = values! {
        state.running 0.8, state.blocked 0.2, block.stream 1.0,
        call.all 200_000.0, call.cpu_share 0.8, switch.handed 100_000.0, switch.run_us 8.0
    };
    first(Id::SchedChurn, &evidence(&pipes));
}

#[test]
fn what_the_machine_does_is_reported() {
    let quota = values! {
        state.running 0.3, state.waiting 0.7, host.throttled_share 0.69
    };
    first(Id::Throttled, &evidence(&quota));
    let others = [("host.wait_others", 0.45), ("host.others", 2.0)];
    first(Id::Contaminated, &evidence(&others));
    first(Id::Contaminated, &evidence(&[("host.steal_share", 0.4)]));
    let queue = values! { state.running 0.5, state.waiting 0.5, host.others 1.5 };
    first(Id::Contaminated, &evidence(&queue));
}

#[test]
fn what_programs_export_is_reported() {
    let quiet = [("state.running", 0.5), ("state.blocked", 0.5)];
    let with = |figures: &[(&str, f64)]| evidence(&[&quiet[..], figures].concat());
    let imbalance = values! {
        export.arrival 200.0, export.service 100.0, export.full_share 0.9, export.queue_share 0.95
    };
    let verdict = first(Id::RateImbalance, &with(&imbalance));
    assert!(verdict.next.contains("only makes what is delivered older"));
    let burst = values! {
        export.arrival 50.0, export.service 100.0, export.full_share 0.2, export.burst 9_000.0
    };
    let verdict = first(Id::Burst, &with(&burst));
    // The messages that wait in the queue meanwhile are a consequence.
    let waiting = with(&[&burst[..], &[("export.queue_share", 0.998)]].concat());
    first(Id::Burst, &waiting);
    assert!(verdict.next.contains("9000 messages"), "{}", verdict.next);
    let queueing = values! {
        export.arrival 50.0, export.service 100.0, export.queue_share 0.97
    };
    first(Id::QueueingDelay, &with(&queueing));
    // The threads that should serve have no core, as a peer spins on it: that is the first cause.
    let starved = values! {
        run.wait_peers 0.6, spin.cpu_share 0.65, state.running 0.99, threads.busy 5.0
    };
    let starved = with(&[&queueing[..], &starved].concat());
    first(Id::SpinStarvesPeer, &starved);
    assert!(confidence(Id::QueueingDelay, &starved) < 0.55);
    // The sender only waits for room; these values were measured.
    let closed = values! {
        export.arrival 390_894.0, export.service 401_810.0, export.full_share 0.992,
        export.queue_share 0.999, export.stage_share 0.882
    };
    first(Id::StageBound, &with(&closed));
    assert!(confidence(Id::Burst, &with(&closed)) < 0.3);
    let mut stage = with(&[("export.arrival", 99.0), ("export.service", 80.0)]);
    stage.put("export.stage_share", 0.99, Quality::Exact, "stage match");
    let verdict = first(Id::StageBound, &stage);
    assert!(verdict.next.contains("(stage match)"), "{}", verdict.next);
}

#[test]
fn busy_others_alone_contaminate_nothing() {
    let busy = [("host.others", 2.0)];
    let verdict = first(Id::CpuCompute, &evidence(&busy));
    assert!(verdict.confidence > 0.6);
    assert_eq!(confidence(Id::Contaminated, &evidence(&busy)), 0.0);
    // It waits for half of the time that it runs, which is almost nothing.
    let seldom = [("host.wait_others", 0.35), ("threads.busy", 0.06)];
    assert_eq!(confidence(Id::Contaminated, &blocked(&seldom)), 0.0);
}

#[test]
fn nothing_is_sure_on_a_contaminated_machine() {
    let shares = [0.1, 0.2, 0.5, 0.9];
    for share in shares {
        let crowd = [("host.wait_others", share), ("spin.cpu_share", 0.9)];
        for verdict in judge(&evidence(&crowd)) {
            let capped = verdict.confidence <= engine::CONTAMINATED_MAX;
            assert!(capped || verdict.id == Id::Contaminated, "{verdict:?}");
        }
    }
}

/// All other verdicts were cut to 0.60, and what came first among them was chance.
#[test]
fn contamination_keeps_the_order_of_the_others() {
    let mixed = [("fault.cpu_share", 0.8), ("call.cpu_share", 0.65)];
    let order = |others| {
        let mixed = [&mixed[..], &[("host.wait_others", others)]].concat();
        let found = judge(&evidence(&mixed));
        let others = found.iter().filter(|it| it.id != Id::Contaminated);
        others.map(|it| (it.id, it.confidence)).collect::<Vec<_>>()
    };
    let (quiet, busy) = (order(0.0), order(0.5));
    let ids = |found: &[(Id, f64)]| found.iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(ids(&quiet)[..2], [Id::PageFaults, Id::SyscallBound]);
    assert_eq!(ids(&quiet)[..2], ids(&busy)[..2]);
    assert!(busy[0].1 > busy[1].1, "{busy:?}");
    // It computes whenever it has a core, which is for a fifth of the time.
    let crowded = values! {
        state.running 0.2, state.waiting 0.8, cpu.used 0.2, host.wait_others 0.8,
        host.others 1.8
    };
    let found = judge(&evidence(&crowded));
    let ids = found.iter().map(|it| it.id).collect::<Vec<_>>();
    assert_eq!(ids, [Id::Contaminated, Id::CpuCompute], "{found:?}");
}

/// A thread that syncs after each of its transactions, as recorded from `sqlite3`: it was judged
/// SCHED-CHURN at 0.51.
#[test]
fn a_switch_that_waits_for_a_disk_is_no_hand_over() {
    let sync = values! {
        state.running 0.45, state.blocked 0.55, cpu.used 0.45, block.disk 1.0, call.all 30_000.0,
        call.cpu_share 0.8, switch.run_us 24.0, state.blocked_us 200.0
    };
    let disk = evidence(&[&sync[..], &[("switch.handed", 0.0)]].concat());
    first(Id::BlockingIo, &disk);
    assert_eq!(confidence(Id::SchedChurn, &disk), 0.0);
    let peers = evidence(&[&sync[..], &[("switch.handed", 9_000.0)]].concat());
    assert!(confidence(Id::SchedChurn, &peers) > 0.3);
}

/// `dd if=/dev/urandom bs=1M` had no verdict: the time is the kernel's, in 400 calls a second.
#[test]
fn few_calls_that_take_the_time_have_a_verdict() {
    let random = values! {
        call.cpu_share 0.98, call.all 800.0, cpu.system_share 0.99
    };
    first(Id::SyscallBound, &evidence(&random));
}

/// A server whose clients had no core was judged BLOCKING-IO at 0.92.
#[test]
fn a_peer_that_may_have_no_core_is_not_blamed_for_sure() {
    let waits = |others| {
        let poll = [("block.stream", 1.0), ("host.others", others)];
        confidence(Id::BlockingIo, &blocked(&poll))
    };
    assert!(waits(1.0) > 0.8 && waits(1.0) == waits(0.1));
    assert!(waits(1.95) <= 0.6, "{}", waits(1.95));
}

#[test]
fn absent_figures_lower_confidence_and_are_named() {
    let whole = evidence(&[("fault.cpu_share", 0.5), ("fault.minor", 300_000.0)]);
    for name in ["fault.cpu_share", "call.cpu_share", "spin.cpu_share"] {
        let less = without(&whole, &[name]);
        let rule = |id| *rules().iter().find(|rule| rule.id == id).expect("a rule");
        let all = weigh(rule(Id::CpuCompute), &evidence(&[])).0;
        let blind = weigh(rule(Id::CpuCompute), &without(&evidence(&[]), &[name])).0;
        assert!(blind.confidence < all.confidence, "{name}");
        let open = weigh(rule(Id::CpuCompute), &less).0.cannot_tell.join("\n");
        assert!(open.contains(&format!("{name} is absent (not here)")));
    }
    assert_eq!(judge(&Evidence::new()), []);
}

#[test]
fn of_two_the_larger_part_of_the_time_comes_first() {
    for (faults, expected) in [(0.22, Id::CpuCompute), (0.27, Id::PageFaults)] {
        let mixed = [("fault.cpu_share", faults), ("call.cpu_share", 0.0)];
        assert_eq!(judge(&evidence(&mixed))[0].id, expected, "{faults}");
    }
    for (calls, expected) in [(0.3, Id::PageFaults), (0.5, Id::SyscallBound)] {
        let mixed = [("fault.cpu_share", 0.4), ("call.cpu_share", calls)];
        let mixed = evidence(&[&mixed[..], &[("call.all", 1e6)]].concat());
        assert_eq!(judge(&mixed)[0].id, expected, "{calls}");
    }
}

#[test]
fn idle_workers_of_a_busy_thread_are_no_convoy() {
    let pool = values! {
        lock.waiters 7.0, lock.held_share 0.0, call.futex 20.0, switch.handed 500.0
    };
    first(Id::CpuCompute, &evidence(&pool));
}

#[test]
fn a_moment_is_too_brief_to_be_sure() {
    let long = confidence(Id::CpuCompute, &evidence(&[]));
    let brief = confidence(Id::CpuCompute, &evidence(&[("time.wall", 0.05)]));
    assert!(brief < long * 0.6, "{brief} of {long}");
}

#[test]
fn every_kind_has_a_rule_and_every_rule_is_sound() {
    let ids: Vec<Id> = rules().iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), 19);
    for rule in rules() {
        let same = ids.iter().filter(|&&id| id == rule.id).count();
        assert_eq!(same, 1, "{:?}", rule.id);
        let blind = rule.blind.iter().map(|&(name, _)| name);
        for name in engine::looked_at(rule).into_iter().chain(blind) {
            assert!(crate::evidence::named(name).is_some(), "{name}");
        }
        let places = rule.next.matches('{').count();
        let filled = weigh(rule, &Evidence::new()).0.next;
        assert_eq!(filled.matches("unknown").count(), places, "{filled}");
    }
}

#[test]
fn a_queue_at_a_lock_is_distinguished_from_one_at_a_condition() {
    // Six threads, and the holder of the lock sleeps for 15 ms: it was judged SLEEP-POLLING.
    let asleep = values! {
        block.sleep 1.0, sleep.us 15_100.0, call.futex 190.0,
        switch.handed 140.0, lock.waiters 4.9, lock.held_share 1.0
    };
    first(Id::LockConvoy, &blocked(&asleep));
    // Two senders and a receiver at a queue with one place: it was judged LOCK-CONVOY.
    let senders = values! {
        state.running 0.59, state.blocked 0.41, block.futex 1.0, futex.wake_share 1.0,
        call.all 120_758.0, call.futex 120_540.0, call.cpu_share 0.94, switch.handed 63_377.0,
        switch.run_us 7.4, lock.waiters 1.53, lock.held_share 0.0
    };
    first(Id::FutexParking, &evidence(&senders));
    // Six threads at a Java monitor, each at a word of its own: it was judged CPU-COMPUTE.
    let monitor = values! {
        call.futex 14_281.0, call.all 14_500.0, switch.handed 7_140.0, switch.run_us 135.0,
        lock.waiters 2.9, lock.held_share 0.7
    };
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
    let connection = values! {
        block.stream 1.0, state.blocked_us 2_100.0, call.futex 900.0, switch.handed 1_350.0,
        lock.waiters 4.89
    };
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
    let relay = values! {
        state.running 0.55, state.blocked 0.44, block.stream 1.0, call.cpu_share 0.94,
        cpu.used 0.88, call.futex 0.0, state.blocked_us 656.0, switch.handed 75_500.0,
        switch.run_us 6.8
    };
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
    let quiet = values! {
        block.futex 1.0, futex.wake_share 0.0, call.futex 36.4,
        state.blocked_us 1.2e6
    };
    let polling = confidence(Id::SleepPolling, &blocked(&quiet));
    assert!(polling < 0.1, "{polling}");
}

/// Go's `sync.Mutex`, held over a computation, as a user without root sees it: it was judged
/// CPU-COMPUTE at 0.62, and the waiting goroutines are not visible.
#[test]
fn where_goroutines_may_wait_unseen_it_is_not_sure() {
    let goroutines = [("call.futex", 20_000.0), ("switch.handed", 11_000.0)];
    let unseen = without(&evidence(&goroutines), &["lock.goroutines"]);
    assert!(confidence(Id::CpuCompute, &unseen) <= 0.6);
    let open = judge(&unseen)[0].cannot_tell.join("\n");
    assert!(open.contains("lock.goroutines"), "{open}");
    // A mutex held over a sleep was judged SLEEP-POLLING at 0.93.
    let asleep = values! {
        block.futex 1.0, futex.wake_share 0.0, futex.timeout_us 1_100.0, call.futex 900.0
    };
    let asleep = without(&blocked(&asleep), &["lock.goroutines"]);
    let polling = confidence(Id::SleepPolling, &asleep);
    assert!((0.3..=0.6).contains(&polling), "{polling}");
    // No goroutine is handed on where no thread parks.
    let alone = without(&evidence(&[]), &["lock.goroutines"]);
    first(Id::CpuCompute, &alone);
}

/// `stress-ng --mutex`, as recorded as root: its real-time threads leave the doctor no core to see
/// who waits. It was SYSCALL-BOUND at 0.87 where few calls were counted, as the time of calls was
/// divided by their number, and at 0.74 where many were: parking came second only because it is not
/// known whether the threads wait for a lock.
#[test]
fn an_answer_is_not_sure_beside_one_that_could_not_be_checked() {
    let mutex = values! {
        state.running 0.9, state.waiting 0.05, state.blocked 0.05, cpu.used 1.7,
        cpu.system_share 0.95, call.cpu_share 0.92, futex.cpu_share 0.36, yield.cpu_share 0.07,
        call.all 90_300.0, call.yield 20_100.0, threads.busy 2.2, run.wait_peers 0.25,
        switch.handed 9_920.0, switch.run_us 167.0
    };
    for counted in [28_500.0, 0.0] {
        let mutex = [&mutex[..], &[("call.futex", counted)]].concat();
        let unseen = without(&evidence(&mutex), &["lock.waiters", "lock.held_share"]);
        let found = judge(&unseen);
        assert!(found.iter().all(|it| it.confidence <= 0.6), "{found:?}");
        assert!(confidence(Id::FutexParking, &unseen) > 0.4, "{found:?}");
    }
}

/// `stress-ng --futex`, as recorded without root: it was SYSCALL-BOUND at 0.78. Which calls take
/// the time is not known, but 11,400 of them a second are of futex.
#[test]
fn calls_that_may_be_of_futex_are_no_sure_answer() {
    let storm = values! {
        state.running 0.978, state.waiting 0.017, state.blocked 0.005, cpu.used 1.83,
        cpu.system_share 0.906, call.cpu_share 0.906, call.futex 11_400.0, threads.busy 1.86,
        switch.handed 5_700.0, switch.run_us 312.0
    };
    let unknown = ["futex.cpu_share", "call.all", "call.yield"];
    let found = judge(&without(&evidence(&storm), &unknown));
    assert!(found[0].confidence <= 0.6, "{found:?}");
    // A few parks a second are another matter.
    let few = [&storm[..], &[("call.futex", 90.0)]].concat();
    let few = without(&evidence(&few), &unknown);
    assert!(first(Id::SyscallBound, &few).confidence > 0.7);
}

/// `grep -r` over files that are not cached, as recorded as root: it was SYSCALL-BOUND at 0.72, as
/// the calls that read from the disk took more time than waiting for it.
#[test]
fn calls_for_a_disk_belong_to_the_disk() {
    let cold = values! {
        state.running 0.617, state.blocked 0.383, block.disk 1.0, cpu.used 0.62,
        cpu.system_share 0.777, call.cpu_share 0.742, disk.cpu_share 0.44, call.all 22_400.0,
        state.blocked_us 492.0, switch.handed 0.0, switch.run_us 138.0, threads.busy 0.61
    };
    assert!(first(Id::BlockingIo, &evidence(&cold)).confidence > 0.7);
    // Cached files are read by the same calls, and the kernel copies them.
    let warm = [("disk.cpu_share", 0.02), ("block.disk", 0.1)];
    first(Id::SyscallBound, &evidence(&[&cold[..], &warm].concat()));
}

/// A channel of Go, as recorded without root on a quiet machine: it was CONTAMINATED at 0.65, as a
/// thread that is woken has no core for a moment. No other program ran.
#[test]
fn nobody_contaminates_what_runs_alone() {
    let channel = values! {
        state.running 0.39, state.waiting 0.19, state.blocked 0.42, block.futex 0.98,
        cpu.used 0.79, cpu.system_share 0.93, call.cpu_share 0.93, call.futex 115_000.0,
        futex.wake_share 1.0, host.others 0.0, host.wait_others 0.0, run.wait_peers 0.49,
        threads.busy 0.79, switch.handed 78_800.0, switch.run_us 4.8, state.blocked_us 757.0
    };
    let unknown = [
        "futex.cpu_share",
        "call.all",
        "call.yield",
        "lock.goroutines",
    ];
    let channel = without(&evidence(&channel), &unknown);
    assert!(first(Id::FutexParking, &channel).confidence > 0.7);
    assert_eq!(confidence(Id::Contaminated, &channel), 0.0);
}

/// Java's `onSpinWait` beside a thread that computes, on two cores that others have for most of the
/// time, as recorded without root: there are no more threads than cores.
#[test]
fn a_spinning_thread_starves_no_peer_that_has_a_core_of_its_own() {
    let spin = values! {
        spin.cpu_share 0.5, threads.busy 1.96, run.wait_peers 0.5, cpu.used 0.43
    };
    assert_eq!(confidence(Id::SpinStarvesPeer, &evidence(&spin)), 0.0);
    first(Id::SpinBurnsCpu, &evidence(&spin));
}

/// `stress-ng --yield` beside other programs, which leave it half a core, as recorded: it was
/// OVERSUBSCRIBED, as it yielded less than 50,000 times a second.
#[test]
fn a_storm_of_yields_is_one_on_half_a_core_too() {
    let storm = values! {
        state.running 0.57, state.waiting 0.43, cpu.used 0.5, threads.busy 3.2,
        run.wait_peers 0.75, call.cpu_share 0.85, yield.cpu_share 0.71, call.all 34_200.0,
        call.yield 34_100.0, host.wait_others 0.38
    };
    let found = judge(&evidence(&storm));
    assert_eq!(found[1].id, Id::YieldStorm, "{found:?}");
}

/// Idle workers of node beside a thread that computes, as recorded without root: who wakes whom is
/// not known. It was LOCK-CONVOY.
#[test]
fn a_queue_of_which_nothing_is_known_is_no_lock() {
    let pool = without(&evidence(&[("lock.waiters", 3.9)]), &["lock.held_share"]);
    assert_eq!(confidence(Id::LockConvoy, &pool), 0.0);
    assert_eq!(judge(&pool)[0].id, Id::CpuCompute);
}

/// `pigz -p 2` with a quota of 0.3 cores, as recorded beside other programs: there are as many
/// threads as cores. It was OVERSUBSCRIBED, as the quota counts as the cores that it may use.
#[test]
fn threads_that_a_quota_stops_are_not_too_many() {
    let stopped = values! {
        state.running 0.3, state.waiting 0.69, cpu.used 0.295, cpu.usable 0.3, threads.busy 2.33,
        run.wait_peers 0.5, host.throttled_share 0.29
    };
    let found = judge(&evidence(&stopped));
    let others = found.iter().find(|it| it.id != Id::Contaminated);
    assert_eq!(others.map(|it| it.id), Some(Id::Throttled), "{found:?}");
}

/// Java sleeps in futex, and no thread wakes a sleeper. This is made by hand: for such a program
/// the probes still report `lock.held_share` 0.05 where threads take turns in a fixed order.
#[test]
fn a_monitor_that_is_held_asleep_is_a_lock() {
    let monitor = values! {
        block.futex 1.0, futex.wake_share 0.08, call.futex 2_400.0, switch.handed 950.0,
        lock.waiters 4.8, lock.held_share 0.8
    };
    first(Id::LockConvoy, &blocked(&monitor));
}

/// Java's reader-writer lock, held over a computation, as recorded: it was judged OVERSUBSCRIBED,
/// as readers run together.
#[test]
fn readers_that_want_a_core_do_not_hide_the_lock() {
    let lock = values! {
        threads.busy 3.23, run.wait_peers 0.5, call.futex 6_630.0, call.all 8_890.0,
        call.cpu_share 0.07, switch.handed 2_210.0, lock.waiters 1.92, lock.held_share 0.57
    };
    first(Id::LockConvoy, &evidence(&lock));
}

/// Made by hand after `crossbeam-64` and `slow_stage`, which were sometimes judged wrongly.
#[test]
fn spinning_is_neither_work_nor_a_burst() {
    let crowd = values! {
        threads.busy 9.0, run.wait_peers 0.7, spin.cpu_share 0.3, call.cpu_share 0.3,
        switch.run_us 60.0, switch.handed 4_000.0
    };
    let verdicts = judge(&evidence(&crowd));
    assert_ne!(verdicts[0].id, Id::Oversubscribed, "{verdicts:?}");
    // Its sender spins until the next burst is due, which costs a core but delays no message.
    let bursts = values! {
        spin.cpu_share 0.45, export.arrival 270_000.0,
        export.service 400_000.0, export.full_share 0.15, export.burst 998.0
    };
    let verdicts = judge(&evidence(&bursts));
    assert_eq!(verdicts[0].id, Id::Burst, "{verdicts:?}");
}

/// Five processes that share a file under `flock`, as recorded: it was judged CPU-COMPUTE at 0.50.
/// A program that waits for a lock that another program holds does nothing.
#[test]
fn a_lock_of_a_file_is_a_lock() {
    let handed = values! {
        lock.waiters 3.4, lock.held_share 1.0, switch.handed 537.0
    };
    let busy = [("state.running", 0.96), ("state.blocked", 0.04)];
    let waits = [("block.file_lock", 1.0)];
    first(
        Id::LockConvoy,
        &evidence(&[&handed[..], &busy, &waits].concat()),
    );
    first(Id::LockConvoy, &blocked(&[&handed[..], &waits].concat()));
    let alone = [("lock.waiters", 1.0), ("lock.held_share", 1.0)];
    let rare = [("lock.held_share", 0.0), ("block.file_lock", 1.0)];
    first(Id::Idle, &blocked(&[&alone[..], &rare].concat()));
}

/// `selectNow` of Java in a loop, as recorded: it was judged SYSCALL-BOUND at 0.85. A poll that
/// finds something each time is followed by a call that takes it.
#[test]
fn polls_that_do_not_wait_are_spins() {
    let calls = |busy| {
        [
            ("call.all", 1.43e6),
            ("call.cpu_share", 0.52),
            ("cpu.system_share", 0.53),
            ("poll.busy_share", busy),
        ]
    };
    let spins = first(Id::SpinBurnsCpu, &evidence(&calls(0.99)));
    assert!(spins.next.contains("poll with a timeout"), "{spins:?}");
    assert!(confidence(Id::SyscallBound, &evidence(&calls(0.99))) < 0.1);
    first(Id::SyscallBound, &evidence(&calls(0.45)));
    let starved = [("run.wait_peers", 0.5), ("threads.busy", 3.0)];
    first(
        Id::SpinStarvesPeer,
        &evidence(&[&calls(0.99)[..], &starved].concat()),
    );
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

/// Generates for each figure: absent, not reported, or a value from zero to beyond its range.
fn any_evidence() -> impl Strategy<Value = Evidence> {
    let value = prop_oneof![
        2 => Just(None),
        4 => (0.0..1.0f64).prop_map(Some),
        2 => (0.0..1e6f64).prop_map(Some),
        1 => prop_oneof![Just(0.0), Just(-1.0), Just(1e300), Just(f64::MIN_POSITIVE)]
            .prop_map(Some),
    ];
    proptest::collection::vec((value, any::<bool>()), METRICS.len()).prop_map(|values| {
        let mut evidence = Evidence::new();
        for (metric, (value, is_known)) in METRICS.iter().zip(values) {
            match value {
                Some(value) => evidence.put(metric.name, value, Quality::Sampled, "any"),
                None if is_known => evidence.lack(metric.name, "any"),
                None => {}
            }
        }
        evidence
    })
}

/// Returns whether the rule uses the figure of the clue in no other place.
fn looks_once(rule: &Rule, clue: &Clue) -> bool {
    let name = clue.figure.name();
    let seen = engine::looked_at(rule);
    seen.iter().filter(|&&seen| seen == name).count() == 1
}

proptest! {
    #[test]
    fn verdicts_are_sorted_and_their_confidence_is_a_share(evidence in any_evidence()) {
        let verdicts = judge(&evidence);
        prop_assert!(verdicts.iter().all(|v| (0.0..=1.0).contains(&v.confidence)));
        prop_assert!(verdicts.is_sorted_by(|a, b| a.confidence >= b.confidence));
    }

    #[test]
    fn contamination_caps_all_others(evidence in any_evidence(), share in 0.1..1.0f64) {
        let mut evidence = evidence;
        evidence.put("host.wait_others", share, Quality::Exact, "any");
        evidence.put("threads.busy", 1.0, Quality::Exact, "any");
        evidence.put("host.throttled_share", 0.0, Quality::Exact, "any");
        evidence.put("host.steal_share", 0.0, Quality::Exact, "any");
        evidence.put("time.wall", 1.0, Quality::Exact, "any");
        for verdict in judge(&evidence) {
            let capped = verdict.confidence <= CONTAMINATED_MAX;
            prop_assert!(capped || verdict.id == Id::Contaminated, "{:?}", verdict);
        }
    }

    #[test]
    fn a_need_that_does_not_hold_leaves_nothing(evidence in any_evidence()) {
        for rule in rules() {
            let figure = |need: &&Clue| matches!(need.figure, Quantity::One(_));
            for need in rule.needs.iter().filter(figure) {
                let mut less = evidence.clone();
                less.put(need.figure.name(), need.from, Quality::Exact, "less");
                prop_assert_eq!(weigh(rule, &less).0.confidence, 0.0, "{:?}", rule.id);
            }
        }
    }

    #[test]
    fn more_that_speaks_for_it_never_lowers(
        evidence in any_evidence(), chosen in any::<prop::sample::Index>(), step in 0.0..2.0f64,
    ) {
        let all: Vec<(&Rule, &Clue)> = rules()
            .into_iter()
            .flat_map(|rule| rule.needs.iter().map(move |clue| (rule, clue)))
            .filter(|(rule, clue)| looks_once(rule, clue))
            .collect();
        let (rule, clue) = all[chosen.index(all.len())];
        let before = weigh(rule, &evidence).0.confidence;
        let name = clue.figure.name();
        let better = match evidence.value(name) {
            Some(value) => value + step * (clue.to - clue.from),
            // A figure that was absent now holds: for a quotient, whatever the divisor is.
            None => if clue.to > clue.from { 1e308 } else { 0.0 },
        };
        let mut more = evidence.clone();
        more.put(name, better, Quality::Exact, "more");
        let after = weigh(rule, &more).0.confidence;
        prop_assert!(after >= before - 1e-12, "{:?} {name}: {before} to {after}", rule.id);
    }

    #[test]
    fn a_part_of_the_time_never_lowers_the_rule_that_claims_it(
        evidence in any_evidence(), share in 0.0..1.0f64, more in 0.0..1.0f64,
    ) {
        let blocked = [
            (Id::BlockingIo, "block.disk"), (Id::FutexParking, "block.futex"),
            (Id::SleepPolling, "block.sleep"), (Id::Idle, "block.child"),
            (Id::PageFaults, "fault.cpu_share"), (Id::SpinBurnsCpu, "spin.cpu_share"),
        ];
        for (id, name) in blocked {
            let rule = *rules().iter().find(|rule| rule.id == id).expect("a rule");
            let weighed = |value: f64| {
                let mut evidence = evidence.clone();
                evidence.put(name, value, Quality::Exact, "any");
                weigh(rule, &evidence).0.confidence
            };
            let (less, more) = (weighed(share), weighed((share + more).min(1.0)));
            prop_assert!(more >= less - 1e-12, "{:?}: {less} to {more}", id);
        }
    }
}
