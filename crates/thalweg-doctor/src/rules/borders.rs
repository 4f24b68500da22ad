//! The values at which each clue begins to hold and at which it holds fully, written a second time
//! by hand, so that an accidental change of a threshold is detected.

use crate::evidence::values;
use crate::rules::engine::weigh;
use crate::rules::tests::evidence;
use crate::rules::*;

/// A figure, the values at which its clue begins to hold and holds fully, whether it supports the
/// verdict, and the other figures beside it.
type Border = (&'static str, f64, f64, bool, &'static [(&'static str, f64)]);

const FOR: bool = true;
const AGAINST: bool = false;

/// The figures of a program that is blocked for half of the time.
const BLOCKED: [(&str, f64); 3] = values! {
    state.running 0.4, state.blocked 0.6, threads.busy 1.0
};

/// The figures that let a clue of the lists below be the weakest.
const BASE: &[(&str, f64)] = &values! {
    cpu.used 1.0, cpu.usable 2.0, cpu.system_share 0.8, threads.busy 8.0,
    run.wait_peers 0.9, fault.minor 1e6, fault.cpu_share 0.1, call.all 1e6, call.futex 0.0,
    call.yield 0.0, call.cpu_share 0.1, spin.cpu_share 0.1, switch.handed 1e6, switch.run_us 1.0,
    lock.waiters 4.0, lock.held_share 1.0, lock.goroutines 4.0, futex.wake_share 0.6,
    futex.timeout_us 1_000.0, sleep.us 10.0, host.others 0.1
};

const CALLS: &[(&str, f64)] = &[("call.cpu_share", 0.4), ("call.yield", 0.0)];
const ALL_CALLS: &[(&str, f64)] = &[("call.cpu_share", 0.8)];
const YIELDS: &[(&str, f64)] = &[("yield.cpu_share", 0.4)];
const SPINS: &[(&str, f64)] = &[("spin.cpu_share", 0.4), ("call.futex", 500.0)];
/// All of the time is claimed, however much of it spins.
const UNSPUN: &[(&str, f64)] = &[("fault.cpu_share", 1.0)];
const BURSTS: &[(&str, f64)] = &values! {
    spin.cpu_share 0.4, export.full_share 0.2, export.burst 9.0
};
const LOCKED: &[(&str, f64)] = &[("call.futex", 500.0)];
const NO_CALLS: &[(&str, f64)] = &[("call.cpu_share", 0.0)];

macro_rules! blocked {
    ($($name:literal $value:literal),*) => {
        &[BLOCKED[0], BLOCKED[1], ("call.cpu_share", 0.0), $(($name, $value)),*]
    };
}

type Beside = &'static [(&'static str, f64)];

fn crowd(speaks: bool, with: Beside) -> Vec<Border> {
    vec![
        ("threads.busy", 1.5, 3.0, speaks, with),
        ("run.wait_peers", 0.15, 0.3, speaks, with),
    ]
}

fn lock(speaks: bool, with: Beside) -> Vec<Border> {
    let few = [with, &[("threads.busy", 1.0), ("cpu.usable", 0.25)]].concat();
    vec![
        ("lock.waiters", 0.5, 1.0, speaks, few.leak()),
        ("threads.busy", 16.0, 8.0, speaks, with),
        ("lock.held_share", 0.25, 0.5, speaks, with),
    ]
}

fn brief(speaks: bool, with: Beside) -> Vec<Border> {
    vec![
        ("switch.run_us", 50.0, 25.0, speaks, with),
        ("switch.handed", 2_500.0, 5_000.0, speaks, with),
    ]
}

fn borders(id: Id) -> Vec<Border> {
    let mut all: Vec<Border> = match id {
        Id::Contaminated => vec![(
            "host.throttled_share",
            0.05,
            0.1,
            AGAINST,
            &[("host.wait_others", 0.3)],
        )],
        Id::Oversubscribed => {
            let spins = [("spin.cpu_share", 0.125, 0.25, AGAINST, UNSPUN)];
            [crowd(FOR, &[]), brief(AGAINST, BASE), spins.to_vec()].concat()
        }
        Id::CpuCompute => vec![
            ("lock.goroutines", 0.5, 1.0, AGAINST, NO_CALLS_LOCKED),
            ("call.futex", 100.0, 200.0, AGAINST, NO_CALLS),
        ],
        Id::PageFaults => vec![("fault.major", 50.0, 100.0, FOR, blocked!("block.disk" 1.0))],
        Id::YieldStorm => vec![("call.yield", 25_000.0, 50_000.0, FOR, YIELDS)],
        Id::SpinStarvesPeer => vec![("run.wait_peers", 0.1, 0.2, FOR, SPINS)],
        Id::SpinBurnsCpu => vec![
            ("run.wait_peers", 0.1, 0.2, AGAINST, SPINS),
            ("export.full_share", 0.05, 0.1, AGAINST, BURSTS),
            ("export.burst", 0.5, 1.0, AGAINST, BURSTS),
        ],
        Id::SyscallBound => vec![("switch.handed", 1e5, 2e5, AGAINST, CALLS)],
        Id::SchedChurn => vec![
            ("switch.run_us", 50.0, 25.0, FOR, CALLS),
            ("switch.handed", 2_500.0, 5_000.0, FOR, BRIEF),
            ("switch.handed", 1e5, 2e5, FOR, ALL_CALLS),
        ],
        _ => waits(id),
    };
    match id {
        Id::CpuCompute => {
            all.extend(crowd(AGAINST, LOCKED));
            all.extend(lock(AGAINST, NO_CALLS_LOCKED));
        }
        Id::Oversubscribed => all.extend(lock(AGAINST, NO_CALLS_LOCKED)),
        Id::LockConvoy => all.extend(lock(FOR, NO_CALLS_LOCKED)),
        Id::FutexParking => all.extend(lock(AGAINST, PARKED)),
        Id::BlockingIo => {
            all.extend(lock(AGAINST, blocked!("block.disk" 1.0)));
            all.extend(brief(AGAINST, blocked!("block.stream" 1.0)));
        }
        Id::SyscallBound => all.extend(brief(AGAINST, CALLS)),
        Id::SleepPolling => all.extend(lock(AGAINST, blocked!("block.sleep" 1.0))),
        Id::SpinStarvesPeer | Id::SpinBurnsCpu => all.extend(lock(AGAINST, SPINS)),
        _ => {}
    }
    all
}

const NO_CALLS_LOCKED: &[(&str, f64)] = &[("call.cpu_share", 0.0), ("call.futex", 500.0)];
const BRIEF: &[(&str, f64)] = &values! {
    call.cpu_share 0.4, call.all 10_000.0, switch.run_us 1.0
};
const PARKED: &[(&str, f64)] = blocked!("block.futex" 1.0, "call.futex" 500.0);

/// Returns the borders of a program that has nothing to do.
fn idle() -> Vec<Border> {
    // Where less than four tenths of the time is claimed, the confidence does not move yet.
    let idle_sleep: &[_] = blocked!("block.child" 0.7, "block.sleep" 0.3);
    let idle_stream: &[_] = blocked!("block.child" 0.7, "block.stream" 0.3);
    let idle_futex: &[_] = blocked!("block.child" 0.7, "block.futex" 0.3);
    let idle_lock: &[_] = blocked!("block.child" 0.7, "block.file_lock" 0.3);
    let idle_poll: &[_] = blocked!("block.child" 0.7, "block.poll" 0.3,
        "poll.timer_share" 0.0, "state.blocked_us" 1e6);
    let idle_late: &[_] = blocked!(
        "block.child" 0.7, "block.poll" 0.3, "state.blocked_us" 3.75e5);
    let idle_beat: &[_] = blocked!("block.child" 0.7, "block.poll" 0.3,
        "poll.timer_share" 1.0, "state.blocked_us" 2e5);
    vec![
        ("sleep.us", 50_000.0, 100_000.0, FOR, idle_sleep),
        ("state.blocked_us", 2.5e5, 5e5, FOR, idle_stream),
        ("state.blocked_us", 2.5e5, 5e5, FOR, idle_poll),
        // From here on waits that a timeout ends count as much as waits that nothing ends.
        ("poll.timer_share", 0.25, 0.375, FOR, idle_late),
        ("state.blocked_us", 5e4, 1e5, FOR, idle_beat),
        ("poll.timer_share", 0.25, 0.5, FOR, idle_beat),
        ("call.futex", 50.0, 25.0, FOR, idle_futex),
        ("lock.held_share", 0.5, 0.25, FOR, idle_lock),
    ]
}

/// Returns the borders of the figures of waits and of exports.
fn waits(id: Id) -> Vec<Border> {
    let stream: &[_] = blocked!("block.stream" 1.0);
    let poll: &[_] = blocked!("block.poll" 1.0, "state.blocked_us" 1e3, "poll.timer_share" 0.0);
    let polls: &[_] = blocked!("block.poll" 1.0, "state.blocked_us" 1e3, "poll.timer_share" 1.0);
    let timer: &[_] = blocked!("block.futex" 1.0, "call.futex" 500.0, "futex.wake_share" 0.0);
    let alone: &[_] = blocked!("block.futex" 1.0, "lock.waiters" 0.0);
    let waits_only: &[_] = &values! {
        state.running 0.0, state.blocked 1.0, block.stream 1.0, block.disk 0.0, host.others 2.0,
        call.cpu_share 0.0
    };
    let sleep: &[_] = blocked!("block.sleep" 1.0);
    let go_sleep: &[_] = blocked!("block.sleep" 1.0, "call.futex" 500.0);
    let served: &[_] = &values! {
        export.service 100.0, export.queue_share 0.6, export.full_share 0.2, export.burst 1.0,
        export.stage_share 0.9
    };
    let lively: &[_] = &values! {
        export.arrival 10.0, export.service 100.0, export.queue_share 0.6, export.full_share 0.2,
        export.burst 1.0
    };
    match id {
        Id::BlockingIo => vec![
            ("fault.major", 100.0, 50.0, FOR, blocked!("block.disk" 1.0)),
            ("state.blocked_us", 5e5, 2.5e5, FOR, stream),
            ("state.blocked_us", 5e5, 2.5e5, FOR, poll),
            ("poll.timer_share", 0.5, 0.25, FOR, poll),
            ("state.blocked_us", 5e4, 1e5, AGAINST, stream),
            ("host.others", 1.6, 1.9, AGAINST, waits_only),
            ("block.disk", 0.5, 0.25, AGAINST, waits_only),
        ],
        Id::FutexParking => vec![
            ("futex.wake_share", 0.25, 0.5, FOR, PARKED),
            ("call.futex", 100.0, 200.0, FOR, alone),
        ],
        Id::SleepPolling => vec![
            ("sleep.us", 100_000.0, 50_000.0, FOR, sleep),
            ("poll.timer_share", 0.25, 0.5, FOR, polls),
            ("state.blocked_us", 1e5, 5e4, FOR, polls),
            ("futex.wake_share", 0.5, 0.25, FOR, timer),
            ("futex.timeout_us", 4e4, 2e4, FOR, timer),
            ("lock.goroutines", 0.5, 1.0, AGAINST, go_sleep),
            ("call.futex", 100.0, 200.0, AGAINST, sleep),
            ("state.blocked_us", 1e5, 5e4, FOR, timer),
        ],
        Id::Idle => idle(),
        Id::RateImbalance => vec![("export.arrival", 95.0, 105.0, FOR, served)],
        Id::Burst => vec![
            ("export.arrival", 100.0, 90.0, FOR, served),
            ("run.wait_peers", 0.1, 0.2, AGAINST, lively),
        ],
        Id::QueueingDelay => vec![
            ("export.arrival", 100.0, 90.0, FOR, served),
            ("run.wait_peers", 0.1, 0.2, AGAINST, lively),
            ("export.full_share", 0.05, 0.1, AGAINST, lively),
            ("export.burst", 0.5, 1.0, AGAINST, lively),
        ],
        Id::StageBound => vec![("export.arrival", 100.0, 90.0, AGAINST, served)],
        _ => Vec::new(),
    }
}

/// Returns whether the confidence begins and stops to move at the expected values.
fn stands(rule: &Rule, &(name, from, to, speaks_for, with): &Border) -> bool {
    let at = |value: f64| {
        let figures = [BASE, with, &[(name, value)]].concat();
        weigh(rule, &evidence(&figures)).confidence
    };
    let step = (to - from) / 10.0;
    let sign = if speaks_for { 1.0 } else { -1.0 };
    let still = |a: f64, b: f64| (at(a) - at(b)).abs() < 1e-9;
    let moves = |a: f64, b: f64| sign * (at(b) - at(a)) > 1e-6;
    let outside = still(from - step, from) && still(to, to + step);
    outside && moves(from, from + step) && moves(to - step, to)
}

/// Returns all clues of a rule; a clue may occur in several places.
fn clues(rule: &Rule) -> Vec<Clue> {
    let mut all = rule.needs.to_vec();
    all.extend(rule.contradicts.iter().flat_map(|weighed| weighed.clues));
    if let Claim::Parts(parts) = rule.claim {
        all.extend(parts.iter().flat_map(|(_, clues)| *clues));
    }
    all
}

/// Returns the rule with one of its clues changed, at every place where it occurs.
fn slipped(rule: &Rule, wrong: Clue, factor: f64) -> Rule {
    let slip = |clue: &Clue| Clue {
        from: if *clue == wrong {
            clue.from * factor
        } else {
            clue.from
        },
        to: if *clue == wrong {
            clue.to * factor
        } else {
            clue.to
        },
        ..*clue
    };
    let all = |clues: &[Clue]| &*Vec::leak(clues.iter().map(slip).collect());
    let weighed = |list: &[Weighed]| {
        let each = list.iter().map(|weighed| Weighed {
            clues: all(weighed.clues),
            weight: weighed.weight,
        });
        &*Vec::leak(each.collect())
    };
    let claim = match rule.claim {
        Claim::Parts(parts) => {
            let each = parts.iter().map(|&(part, clues)| (part, all(clues)));
            Claim::Parts(Vec::leak(each.collect()))
        }
        largest @ Claim::Largest(..) => largest,
    };
    Rule {
        claim,
        needs: all(rule.needs),
        contradicts: weighed(rule.contradicts),
        ..*rule
    }
}

#[test]
fn every_threshold_is_where_it_should_be() {
    for rule in rules() {
        for border in borders(rule.id) {
            assert!(stands(rule, &border), "{:?}: {border:?}", rule.id);
        }
    }
}

#[test]
fn a_threshold_that_slips_is_caught() {
    let mut seeded = 0;
    for rule in rules() {
        for clue in clues(rule) {
            for factor in [0.8, 1.25] {
                let wrong = slipped(rule, clue, factor);
                let caught = borders(rule.id)
                    .iter()
                    .any(|border| !stands(&wrong, border));
                assert!(caught, "{:?} with {factor} × {clue:?}", rule.id);
                seeded += 1;
            }
        }
    }
    assert!(seeded > 100, "{seeded}");
}

#[test]
fn curves_are_where_they_should_be() {
    let at = |curve: Curve, shares: [f64; 4]| shares.map(|share| curve.at(share));
    let steps = [0.0, 0.55, 0.85, 0.95];
    assert_eq!(at(Curve::Overhead, [0.05, 0.25, 0.6, 1.0]), steps);
    assert_eq!(at(Curve::Residue, [0.4, 0.75, 0.95, 1.0]), steps);
    let steps = [0.0, 0.5, 0.85, 0.95];
    assert_eq!(at(Curve::Disturbance, [0.03, 0.1, 0.3, 1.0]), steps);
}
