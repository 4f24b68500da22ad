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

/// Returns what this user can measure on this machine, tried on the doctor's own process.
#[must_use]
pub fn capabilities() -> Vec<Capability> {
    let mut found = Found(Vec::new());
    found.works(
        "wait4",
        "processor time, page faults and blocks of a command",
        NOTHING,
    );
    found.files();
    found.events();
    found.0
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
const LOOKS: &str = "up to 100 looks a second, and at most 2 % of one core";

struct Found(Vec<Capability>);

impl Found {
    fn works(&mut self, name: &'static str, what: &str, cost: &'static str) {
        self.0.push(Capability {
            name,
            works: true,
            why: what.into(),
            cost,
        });
    }

    fn put(&mut self, name: &'static str, what: &str, failed: Option<&str>, cost: &'static str) {
        let works = failed.is_none();
        let why = failed.map_or(what.into(), |why| format!("{what}: {why}"));
        self.0.push(Capability {
            name,
            works,
            why,
            cost,
        });
    }

    fn files(&mut self) {
        let own = std::process::id();
        let mut file = |name, path: &str, what: &str, cost| {
            let failed = fs::read_to_string(path)
                .err()
                .map(|why| format!("{path}: {why}"));
            self.put(name, what, failed.as_deref(), cost);
        };
        file(
            "/proc/*/task/*/stat",
            &format!("/proc/{own}/task/{own}/stat"),
            "states",
            LOOKS,
        );
        let call = format!("/proc/{own}/task/{own}/syscall");
        file(
            "/proc/*/task/*/syscall",
            &call,
            "what blocked threads wait for",
            LOOKS,
        );
        let channel = format!("/proc/{own}/task/{own}/wchan");
        file(
            "/proc/*/task/*/wchan",
            &channel,
            "where in the kernel they are blocked",
            LOOKS,
        );
        file(
            "/proc/pressure/cpu",
            "/proc/pressure/cpu",
            "waits for a core",
            NOTHING,
        );
        file(
            "/proc/stat",
            "/proc/stat",
            "steal, and what others use",
            NOTHING,
        );
        let host = Host::look(own.cast_signed());
        let none = "no group of this process has one";
        self.put(
            "quota",
            "throttling by quotas",
            host.quota.is_none().then_some(none),
            NOTHING,
        );
    }

    fn events(&mut self) {
        let own = std::process::id().cast_signed();
        let perf = Perf::open(&[own]);
        let refused = perf
            .as_ref()
            .err()
            .map(|why| format!("perf_event_open: {why}"));
        let missing = |name: &str| match &perf {
            Ok(perf) => perf.missing(name).map(String::from),
            Err(_) => refused.clone(),
        };
        let whole = perf.as_ref().is_ok_and(Perf::is_whole_machine);
        let kernel = perf.as_ref().is_ok_and(|perf| perf.kernel);
        let switch = "when each thread ran, waited for a core and was blocked";
        self.put(
            "PERF_RECORD_SWITCH",
            switch,
            refused.as_deref(),
            SWITCH_COST,
        );
        let others = (!whole).then_some("needs root, CAP_PERFMON, or perf_event_paranoid below 1");
        let hooked = perf.as_ref().is_ok_and(|perf| perf.hooks_switches);
        let owners = match hooked {
            true => "sched_switch",
            false => "PERF_RECORD_SWITCH_CPU_WIDE",
        };
        self.put(owners, "who had the core", others, SWITCH_COST);
        let clock = missing("cpu-clock");
        let cost = if whole { CLOCK_COST } else { CLOCK_COST_OWN };
        self.put(
            "cpu-clock",
            "stacks, and what the code does",
            clock.as_deref(),
            cost,
        );
        let hidden = (!kernel).then_some("needs root, CAP_PERFMON, or perf_event_paranoid below 2");
        self.put(
            "kernel stacks",
            "page faults, calls and yields",
            hidden,
            "part of cpu-clock",
        );
        let wake = missing("sched_wakeup");
        self.put(
            "sched_wakeup",
            "waits for a core after a wake",
            wake.as_deref(),
            WAKE_COST,
        );
        let call = missing("sys_enter");
        self.put(
            "sys_enter",
            "number and kinds of calls",
            call.as_deref(),
            CALL_COST,
        );
        let hardware = missing("hardware");
        self.put(
            "hardware counters",
            "cycles, misses",
            hardware.as_deref(),
            "not measured: none here",
        );
    }
}

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
