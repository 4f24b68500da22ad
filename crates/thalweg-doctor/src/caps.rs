//! Lists what can be measured on this machine, and what it costs.

use crate::probe::host::Host;
use crate::probe::perf::Perf;
use crate::report::wrapped;
use serde::Serialize;
use std::fs;

/// A way to measure, such as a tracepoint or a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// The name that the sources of figures use.
    pub name: &'static str,
    /// Whether this user can use it on this machine.
    pub works: bool,
    /// Its purpose; if it does not work, the reason.
    pub why: String,
    /// The cost to the program that is observed.
    pub cost: &'static str,
}

/// A name, its purpose, the reason why it does not work, and its cost.
type Row = (&'static str, &'static str, Option<String>, &'static str);

/// Returns what this user can measure on this machine, tried on the doctor's own process.
#[must_use]
pub fn capabilities() -> Vec<Capability> {
    let own = std::process::id().cast_signed();
    let what = "processor time, page faults and blocks of a command";
    let rows = [
        vec![("wait4", what, None, NOTHING)],
        files(own),
        events(own),
    ]
    .concat();
    let capability = |(name, what, failed, cost): Row| Capability {
        name,
        works: failed.is_none(),
        why: failed.map_or(what.to_owned(), |why| format!("{what}: {why}")),
        cost,
    };
    rows.into_iter().map(capability).collect()
}

fn files(own: i32) -> Vec<Row> {
    let read = |path: &str| {
        let path = path.replace('*', &own.to_string());
        let failed = fs::read_to_string(&path).err();
        failed.map(|why| format!("{path}: {why}"))
    };
    let rows = [
        ("/proc/*/task/*/stat", "states", SAMPLES),
        (
            "/proc/*/task/*/syscall",
            "what blocked threads wait for",
            SAMPLES,
        ),
        (
            "/proc/*/task/*/wchan",
            "where in the kernel they are blocked",
            SAMPLES,
        ),
        ("/proc/pressure/cpu", "waits for a core", NOTHING),
        ("/proc/stat", "steal, and what others use", NOTHING),
    ];
    let rows = rows.map(|(path, what, cost)| (path, what, read(path), cost));
    let none = Host::read(own).quota.is_none();
    let none = none.then(|| "no group of this process has one".to_owned());
    [
        &rows[..],
        &[("quota", "throttling by quotas", none, NOTHING)],
    ]
    .concat()
}

fn events(own: i32) -> Vec<Row> {
    let perf = Perf::open(&[own]);
    let refused = perf.as_ref().err();
    let refused = refused.map(|why| format!("perf_event_open: {why}"));
    let missing = |name: &str| match &perf {
        Ok(perf) => perf.missing(name).map(String::from),
        Err(_) => refused.clone(),
    };
    let is = |of: fn(&Perf) -> bool| perf.as_ref().is_ok_and(of);
    let unless = |is: bool, below: u8| {
        (!is).then(|| format!("needs root, CAP_PERFMON, or perf_event_paranoid below {below}"))
    };
    let whole = is(Perf::is_whole_machine);
    let owners = match is(|perf| perf.ebpf_switches) {
        true => "sched_switch",
        false => "PERF_RECORD_SWITCH_CPU_WIDE",
    };
    let clock_cost = if whole { CLOCK_COST } else { CLOCK_COST_OWN };
    let kernel = unless(is(|perf| perf.kernel), 2);
    let [clock, wake, call] = ["cpu-clock", "sched_wakeup", "sys_enter"].map(missing);
    let switch = "when each thread ran, waited for a core and was blocked";
    vec![
        ("PERF_RECORD_SWITCH", switch, refused, SWITCH_COST),
        (owners, "who had the core", unless(whole, 1), SWITCH_COST),
        (
            "cpu-clock",
            "stacks, and what the code does",
            clock,
            clock_cost,
        ),
        (
            "kernel stacks",
            "page faults, calls and yields",
            kernel,
            "part of cpu-clock",
        ),
        (
            "sched_wakeup",
            "waits for a core after a wake",
            wake,
            WAKE_COST,
        ),
        ("sys_enter", "number and kinds of calls", call, CALL_COST),
    ]
}

/// Formats all capabilities for people, in the columns of a terminal.
#[must_use]
pub fn page(all: &[Capability]) -> String {
    let mut lines = vec![format!("{:<28} works  what for; its cost", "probe")];
    for one in all {
        let works = if one.works { "yes" } else { "no" };
        let head = format!("{:<28} {works:<5}  ", one.name);
        let text = match one.works {
            true => format!("{}; cost: {}", one.why, one.cost),
            false => one.why.clone(),
        };
        lines.extend(wrapped(&head, &text, usize::MAX));
    }
    lines.join("\n") + "\n"
}

const NOTHING: &str = "nothing";
const SAMPLES: &str = "up to 100 looks a second, and at most 2 % of one core";
// These costs were measured on a virtual machine with two cores, Linux 6.18; see the README of this
// crate.
const SWITCH_COST: &str = "1.4 µs a switch: paused when frequent";
const CLOCK_COST: &str = "997 ticks a second and busy core: about 1 % of a program that computes";
const CLOCK_COST_OWN: &str = "997 ticks a second and thread, and a timer at each switch: \
                              paused when switches are frequent";
const WAKE_COST: &str = "1.2 µs a wake: paused when frequent";
const CALL_COST: &str = "1 µs a call: when frequent 0.2 µs, and paused";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_measure_is_reported_once_and_says_why() {
        let all = capabilities();
        for (at, one) in all.iter().enumerate() {
            assert!(!one.why.is_empty() && !one.cost.is_empty(), "{one:?}");
            assert!(
                all[..at].iter().all(|other| other.name != one.name),
                "{one:?}"
            );
        }
        let works = |name: &str| all.iter().any(|one| one.name == name && one.works);
        assert!(works("wait4") && works("/proc/stat"), "{all:?}");
        let page = page(&all);
        assert!(
            page.lines().all(|line| line.chars().count() <= 80),
            "{page}"
        );
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for one in &all {
            assert!(words.contains(&one.why), "{} is cut: {page}", one.name);
        }
    }
}
