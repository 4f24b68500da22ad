//! The exchange on three machines, that is three programs and three nodes of etcd on loopback:
//! beside one machine, and beside a bare loop of the same transactions; and after faults.
//!
//! All run on one machine, whose processors and disk they share: on three, each has its own.

mod bare;
mod faults;
mod machines;

use std::thread;
use std::time::Duration;

use super::Experiment;
use super::serve::child::SYNCED;
use super::serve::loader::{FIRST_USER, Plan, connect_all, drive, drive_lines};
use super::serve::{WINDOW, set_up};
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Ran, Run, Subjects, subject};
use faults::Fault;
use machines::Machines;

pub(crate) use machines::child;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "replicate",
    shows: "three replicas by etcd beside one machine and bare transactions; faults",
    peers: &[],
    notes: "Replicas, nodes of etcd and the loader share one machine.",
    cases,
};

const REPLICAS: &str = "three replicas";
const ALONE: &str = "one machine, durable";
const BARE: &str = "bare etcd transactions";
/// The loader and an exchange take their part of the processors there too.
const BESIDE: &str = "bare, beside one machine";

const METRICS: &[Metric] = &[
    Metric::higher("commands a second", "1/s"),
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
];
const P50: usize = 1;

const AGAIN: &[Metric] = &[Metric::lower("answered again after", "ns")];

fn cases(settings: &Settings) -> Vec<Case> {
    let time = |ms: u64| Duration::from_nanos(settings.count(ms * 1_000_000));
    let acknowledged = |name: &str, per_s| {
        let plan = Plan {
            saturating: 0,
            scheduled: 8,
            per_s,
            warm_up: time(1_000),
            span: time(5_000),
        };
        let heading = "open loop over 8 sessions; the bare loop has no sessions";
        let case = Case::of(name, heading, METRICS, subjects(), plan).repeated(5);
        case.goal(Goal::ratio([REPLICAS, BARE], P50, 1.0 / 1.3))
            .goal(Goal::ratio([REPLICAS, BESIDE], P50, 1.0 / 1.3))
    };
    let fault = |name: &str, fault: Fault| {
        let heading = "from kill -9 until the next command is answered";
        let subjects = vec![subject(REPLICAS, move |fault: &Fault| faults::run(*fault))];
        Case::of(name, heading, AGAIN, subjects, fault).repeated(20)
    };
    vec![
        acknowledged("acknowledged/1k", 1_000),
        acknowledged("acknowledged/50k", 50_000),
        acknowledged("acknowledged/200k", 200_000),
        fault("fault/primary", Fault::Primary),
        fault("fault/leader of etcd", Fault::Leader),
        fault("fault/both", Fault::Both),
    ]
}

fn subjects() -> Subjects<Plan> {
    vec![
        subject(REPLICAS, replicas),
        subject(ALONE, |plan: &Plan| {
            drive(SYNCED, plan, false).map(shortened)
        }),
        subject(BARE, bare::run),
        subject(BESIDE, |plan: &Plan| {
            // Etcd takes longer to begin than the machine does.
            let span = plan.span + 3 * plan.warm_up;
            let longer = Plan { span, ..*plan };
            thread::scope(|scope| {
                let one = scope.spawn(|| drive(SYNCED, &longer, false));
                let bare = bare::run(plan);
                one.join().expect("it says its errors")?;
                bare
            })
        }),
    ]
}

/// Returns a run with the first metrics of the loader.
fn shortened(mut run: Run) -> Run {
    run.values.truncate(METRICS.len());
    run
}

fn replicas(plan: &Plan) -> Ran {
    let mut machines = Machines::start()?;
    let users = FIRST_USER..FIRST_USER + plan.scheduled as i64;
    let primary = machines.primary()?;
    machines.administer(&set_up(users.clone()))?;
    let sessions = connect_all(machines.trade(primary), users, false)?;
    let child = machines.child(primary);
    drive_lines(child, sessions, plan, WINDOW).map(shortened)
}
