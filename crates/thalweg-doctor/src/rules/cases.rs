//! Tests evidence made by hand, for each verdict and for cases between two of them.

use super::engine::weigh;
use super::*;
use crate::evidence::Quality;

/// A program that runs all the time on two cores, without other notable figures.
const PLAIN: &[(&str, f64)] = &[
    ("time.wall", 2.0),
    ("cpu.usable", 2.0),
    ("cpu.used", 1.0),
    ("cpu.system_share", 0.01),
    ("threads.busy", 1.0),
    ("threads.spinners", 0.0),
    ("state.running", 1.0),
    ("state.waiting", 0.0),
    ("state.blocked", 0.0),
    ("state.blocked_us", 1_000.0),
    ("run.wait_share", 0.0),
    ("run.wait_peers", 0.0),
    ("switch.blocked", 10.0),
    ("switch.preempted", 10.0),
    ("switch.run_us", 10_000.0),
    ("fault.minor", 100.0),
    ("fault.major", 0.0),
    ("fault.cpu_share", 0.01),
    ("call.all", 50.0),
    ("call.cpu_share", 0.01),
    ("call.yield", 0.0),
    ("call.futex", 0.0),
    ("call.sleep", 0.0),
    ("call.poll", 0.0),
    ("call.io", 5.0),
    ("poll.busy_share", 0.0),
    ("spin.cpu_share", 0.0),
    ("yield.cpu_share", 0.0),
    ("block.futex", 0.0),
    ("block.file_lock", 0.0),
    ("block.disk", 0.0),
    ("block.stream", 0.0),
    ("block.sleep", 0.0),
    ("block.poll", 0.0),
    ("block.child", 0.0),
    ("block.other", 0.0),
    ("lock.waiters", 0.0),
    ("lock.held_share", 0.0),
    ("lock.goroutines", 0.0),
    ("io.delay_share", 0.0),
    ("host.steal_share", 0.0),
    ("host.wait_others", 0.01),
    ("host.throttled_share", 0.0),
];

pub(super) fn evidence(figures: &[(&str, f64)]) -> Evidence {
    let mut evidence = Evidence::new();
    for &(name, value) in PLAIN.iter().chain(figures) {
        evidence.put(name, value, Quality::Exact, "by hand");
    }
    evidence
}

/// Creates evidence like [`PLAIN`] in which the program blocks for nine tenths of the time.
pub(super) fn blocked(figures: &[(&str, f64)]) -> Evidence {
    let mut all = vec![("state.running", 0.1), ("state.blocked", 0.9)];
    all.extend([("cpu.used", 0.1), ("threads.busy", 0.1)]);
    all.extend(figures);
    evidence(&all)
}

pub(super) fn without(evidence: &Evidence, names: &[&str]) -> Evidence {
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

pub(super) fn confidence(id: Id, evidence: &Evidence) -> f64 {
    let verdicts = judge(evidence);
    let found = verdicts.iter().find(|verdict| verdict.id == id);
    found.map_or(0.0, |verdict| verdict.confidence)
}

/// Checks that the first verdict is this one, with a confidence of 0.6 or more.
#[track_caller]
pub(super) fn first(id: Id, evidence: &Evidence) -> Verdict {
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
    let calls = [
        ("call.cpu_share", 0.7),
        ("call.all", 2e6),
        ("cpu.system_share", 0.6),
    ];
    first(Id::SyscallBound, &evidence(&calls));
    let yields = [
        ("call.cpu_share", 0.9),
        ("yield.cpu_share", 0.85),
        ("call.all", 3e6),
        ("call.yield", 3e6),
    ];
    first(Id::YieldStorm, &evidence(&yields));
    let spin = [
        ("spin.cpu_share", 0.9),
        ("threads.spinners", 2.0),
        ("threads.busy", 2.0),
    ];
    first(Id::SpinBurnsCpu, &evidence(&spin));
    let starved = [("run.wait_peers", 0.5), ("cpu.usable", 1.0)];
    first(
        Id::SpinStarvesPeer,
        &evidence(&[&spin[..], &starved].concat()),
    );
    let crowd = [
        ("threads.busy", 8.0),
        ("cpu.used", 2.0),
        ("run.wait_peers", 0.75),
    ];
    first(Id::Oversubscribed, &evidence(&crowd));
    let slow_memory = [("hardware.memory_share", 0.6), ("hardware.ipc", 0.3)];
    first(Id::MemoryBound, &evidence(&slow_memory));
    let counted = [("hardware.memory_share", 0.05), ("hardware.ipc", 2.5)];
    let sure = first(Id::CpuCompute, &evidence(&counted)).confidence;
    assert!(sure > confidence(Id::CpuCompute, &evidence(&[])));
}

#[test]
fn what_blocks_is_reported() {
    let disk = [("block.disk", 0.9), ("call.io", 10_000.0)];
    first(Id::BlockingIo, &blocked(&disk));
    let stream = [("block.stream", 0.9), ("call.io", 200.0)];
    first(Id::BlockingIo, &blocked(&stream));
    let mapped = [("block.disk", 0.9), ("fault.major", 3_000.0)];
    first(Id::PageFaults, &blocked(&mapped));
    let sleep = [
        ("block.sleep", 1.0),
        ("sleep.us", 1_060.0),
        ("call.sleep", 900.0),
    ];
    first(Id::SleepPolling, &blocked(&sleep));
    let polled = [
        ("block.poll", 1.0),
        ("poll.timer_share", 1.0),
        ("call.poll", 900.0),
    ];
    first(Id::SleepPolling, &blocked(&polled));
    // Java and Go sleep in futex.
    let parked = [
        ("block.futex", 1.0),
        ("futex.wake_share", 0.01),
        ("call.futex", 900.0),
    ];
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
    let parking = [
        ("state.running", 0.6),
        ("state.blocked", 0.4),
        ("block.futex", 1.0),
        ("call.futex", 150_000.0),
        ("call.all", 150_100.0),
        ("call.cpu_share", 0.7),
        ("switch.blocked", 80_000.0),
        ("switch.run_us", 5.0),
        ("futex.wake_share", 0.5),
        ("lock.waiters", 1.0),
        ("lock.held_share", 0.0),
    ];
    first(Id::FutexParking, &evidence(&parking));
    let convoy = [
        ("call.futex", 40_000.0),
        ("call.all", 40_100.0),
        ("call.cpu_share", 0.3),
        ("switch.blocked", 20_000.0),
        ("switch.run_us", 40.0),
        ("futex.wake_share", 0.5),
        ("lock.waiters", 2.8),
        ("lock.held_share", 0.99),
    ];
    first(Id::LockConvoy, &evidence(&convoy));
    let pipes = [
        ("state.running", 0.8),
        ("state.blocked", 0.2),
        ("block.stream", 1.0),
        ("call.io", 200_000.0),
        ("call.all", 200_000.0),
        ("call.cpu_share", 0.8),
        ("switch.blocked", 100_000.0),
        ("switch.run_us", 8.0),
    ];
    first(Id::SchedChurn, &evidence(&pipes));
}

#[test]
fn what_the_machine_does_is_reported() {
    let quota = [
        ("state.running", 0.3),
        ("state.waiting", 0.7),
        ("host.throttled_share", 0.69),
    ];
    first(Id::Throttled, &evidence(&quota));
    let others = [("host.wait_others", 0.45), ("host.others", 2.0)];
    first(Id::Contaminated, &evidence(&others));
    first(Id::Contaminated, &evidence(&[("host.steal_share", 0.4)]));
    let queue = [("state.running", 0.5), ("state.waiting", 0.5)];
    first(Id::Contaminated, &evidence(&queue));
}

#[test]
fn what_programs_export_is_reported() {
    let quiet = [("state.running", 0.5), ("state.blocked", 0.5)];
    let with = |figures: &[(&str, f64)]| evidence(&[&quiet[..], figures].concat());
    let imbalance = [
        ("export.arrival", 200.0),
        ("export.service", 100.0),
        ("export.full_share", 0.9),
        ("export.queue_share", 0.95),
    ];
    let verdict = first(Id::RateImbalance, &with(&imbalance));
    assert!(verdict.next.contains("only makes what is delivered older"));
    let burst = [
        ("export.arrival", 50.0),
        ("export.service", 100.0),
        ("export.full_share", 0.2),
        ("export.burst", 9_000.0),
    ];
    let verdict = first(Id::Burst, &with(&burst));
    // The messages that wait in the queue meanwhile are a consequence.
    let waiting = with(&[&burst[..], &[("export.queue_share", 0.998)]].concat());
    first(Id::Burst, &waiting);
    assert!(verdict.next.contains("9000 messages"), "{}", verdict.next);
    let queueing = [
        ("export.arrival", 50.0),
        ("export.service", 100.0),
        ("export.queue_share", 0.97),
    ];
    first(Id::QueueingDelay, &with(&queueing));
    // The threads that should serve have no core, as a peer spins on it: that is the first cause.
    let starved = [
        ("run.wait_peers", 0.6),
        ("spin.cpu_share", 0.65),
        ("state.running", 0.99),
        ("threads.busy", 5.0),
    ];
    let starved = with(&[&queueing[..], &starved].concat());
    first(Id::SpinStarvesPeer, &starved);
    assert!(confidence(Id::QueueingDelay, &starved) < 0.55);
    // The sender only waits for room; these values were measured.
    let closed = [
        ("export.arrival", 390_894.0),
        ("export.service", 401_810.0),
        ("export.full_share", 0.992),
        ("export.queue_share", 0.999),
        ("export.stage_share", 0.882),
    ];
    first(Id::StageBound, &with(&closed));
    assert!(confidence(Id::Burst, &with(&closed)) < 0.3);
    let mut stage = with(&[("export.arrival", 99.0), ("export.service", 80.0)]);
    stage.put("export.stage_share", 0.99, Quality::Exact, "stage match");
    let verdict = first(Id::StageBound, &stage);
    assert!(verdict.next.contains("(stage match)"), "{}", verdict.next);
}

#[test]
fn busy_others_alone_contaminate_nothing() {
    let busy = [("host.others", 2.0), ("host.pressure", 0.9)];
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

#[test]
fn memory_is_blamed_with_counters_only() {
    let plain = evidence(&[("hardware.ipc", 0.2), ("hardware.miss_rate", 1e8)]);
    assert_eq!(confidence(Id::MemoryBound, &plain), 0.0);
    let verdict = first(Id::CpuCompute, &plain);
    let open = verdict.cannot_tell.join("\n");
    assert!(
        open.contains("whether it computes or waits for memory"),
        "{open}"
    );
}

#[test]
fn absent_figures_lower_confidence_and_are_named() {
    let whole = evidence(&[("fault.cpu_share", 0.5), ("fault.minor", 300_000.0)]);
    for name in ["fault.cpu_share", "call.cpu_share", "spin.cpu_share"] {
        let less = without(&whole, &[name]);
        let rule = |id| *rules().iter().find(|rule| rule.id == id).expect("a rule");
        let all = weigh(rule(Id::CpuCompute), &evidence(&[]));
        let blind = weigh(rule(Id::CpuCompute), &without(&evidence(&[]), &[name]));
        assert!(blind.confidence < all.confidence, "{name}");
        let open = weigh(rule(Id::CpuCompute), &less).cannot_tell.join("\n");
        assert!(open.contains(&format!("{name} is absent (not here)")));
    }
    assert_eq!(judge(&Evidence::new()), []);
}

#[test]
fn of_two_the_larger_part_of_the_time_comes_first() {
    for (faults, expected) in [(0.22, Id::CpuCompute), (0.27, Id::PageFaults)] {
        let mixed = [("fault.cpu_share", faults), ("call.cpu_share", 0.0)];
        let mixed = evidence(&[&mixed[..], &[("hardware.memory_share", 0.0)]].concat());
        assert_eq!(judge(&mixed)[0].id, expected, "{faults}");
    }
    for (calls, expected) in [(0.3, Id::PageFaults), (0.5, Id::SyscallBound)] {
        let mixed = [("fault.cpu_share", 0.4), ("call.cpu_share", calls)];
        let mixed = evidence(&[&mixed[..], &[("call.all", 1e6)]].concat());
        assert_eq!(judge(&mixed)[0].id, expected, "{calls}");
    }
}

#[test]
fn idle_workers_of_a_busy_thread_are_no_convoy() {
    let pool = [
        ("lock.waiters", 7.0),
        ("lock.held_share", 0.0),
        ("call.futex", 20.0),
        ("switch.blocked", 500.0),
    ];
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
    assert_eq!(ids.len(), 20);
    for rule in rules() {
        let same = ids.iter().filter(|&&id| id == rule.id).count();
        assert_eq!(same, 1, "{:?}", rule.id);
        let blind = rule.blind.iter().map(|&(name, _)| name);
        for name in engine::looked_at(rule).into_iter().chain(blind) {
            assert!(crate::metrics::named(name).is_some(), "{name}");
        }
        // A text that appears only if a figure is high is not filled in.
        let places = rule.next.matches('{').count() - rule.next.matches('>').count();
        let filled = weigh(rule, &Evidence::new()).next;
        assert_eq!(filled.matches("unknown").count(), places, "{filled}");
    }
}
