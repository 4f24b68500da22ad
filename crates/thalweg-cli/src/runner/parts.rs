//! Measures the cost of a command in each part of the exchange, on one thread and without the
//! pipeline.

use crate::report::facts::Parts;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use thalweg_exchange::{Command, Events, Rules, State, apply, apply_in_parts};
use thalweg_measure::clock::Clock;

/// The maximum number of commands of a stream that are measured, which takes about one second.
const COMMANDS_MAX: usize = 1_000_000;
/// The minimum number of commands for a result.
const COMMANDS_MIN: usize = 1_000;
/// One command in this number has its parts timed.
const TIMED_EVERY: usize = 8;
/// A part that took longer than this was interrupted.
const INTERRUPTED_NS: u64 = 20_000;

/// The time of each part, in ticks, over all timed commands.
#[derive(Debug, Default)]
struct Shares {
    ticks: [u64; 3],
    left_out: u64,
}

/// Executes the stream twice more: once for the CPU time of all parts together, and once for how
/// that time divides among them. The commands before the first order (symbols, users, money) are
/// not counted. Returns `None` for a stream that is too short.
pub(crate) fn costs(rules: Rules, commands: &[Command]) -> Option<Parts> {
    let is_order = |command: &Command| command.symbol().is_some();
    let first = commands.iter().position(is_order)?;
    let (setup, commands) = commands.split_at(first);
    let commands = &commands[..commands.len().min(COMMANDS_MAX)];
    if commands.len() < COMMANDS_MIN {
        return None;
    }
    let together_ns = together(ready(rules, setup), commands) / commands.len() as f64;
    let shares = shares(ready(rules, setup), commands);
    parts(together_ns, &shares, commands.len())
}

fn parts(together_ns: f64, shares: &Shares, commands: usize) -> Option<Parts> {
    let sum: u64 = shares.ticks.iter().sum();
    if sum == 0 {
        return None;
    }
    let [risk_ns, match_ns, settle_ns] = shares
        .ticks
        .map(|ticks| together_ns * ticks as f64 / sum as f64);
    Some(Parts {
        commands: commands as u64,
        together_ns,
        risk_ns,
        match_ns,
        settle_ns,
        timed_every: TIMED_EVERY as u64,
        left_out: shares.left_out,
    })
}

fn ready(rules: Rules, setup: &[Command]) -> State {
    let (mut state, mut events) = (State::new(rules), Events::new());
    for command in setup {
        apply(&mut state, command, &mut events);
    }
    state
}

/// Returns the CPU time of this thread in ns.
fn together(mut state: State, commands: &[Command]) -> f64 {
    let mut events = Events::with_capacity(1024);
    let begin = cpu_ns();
    for command in commands {
        black_box(apply(&mut state, command, &mut events));
    }
    cpu_ns() - begin
}

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn shares(mut state: State, commands: &[Command]) -> Shares {
    let clock = Clock::global();
    let interrupted = clock.ticks_from_ns(INTERRUPTED_NS);
    let read = clock.ticks_from_ns(clock.read_cost_ns().round() as u64);
    let mut events = Events::with_capacity(1024);
    let mut shares = Shares::default();
    for (at, command) in commands.iter().enumerate() {
        if at % TIMED_EVERY != 0 {
            apply(&mut state, command, &mut events);
            continue;
        }
        let (mut from, mut took, mut part) = (clock.ticks(), [0; 3], 0);
        black_box(apply_in_parts(&mut state, command, &mut events, || {
            let end = clock.ticks();
            took[part] = end.saturating_sub(from).saturating_sub(read);
            (from, part) = (end, part + 1);
        }));
        if took.iter().any(|ticks| *ticks > interrupted) {
            shares.left_out += 1;
            continue;
        }
        for (sum, ticks) in shares.ticks.iter_mut().zip(took) {
            *sum += ticks;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow;

    #[test]
    fn the_parts_add_up_and_each_costs_something() {
        let commands = flow::commands(3, 20_000);
        let found = costs(Rules::default(), &commands).unwrap();
        let sum = found.risk_ns + found.match_ns + found.settle_ns;
        assert!((sum - found.together_ns).abs() < 1e-6 * sum);
        assert!(found.risk_ns > 0.0 && found.match_ns > 0.0 && found.settle_ns > 0.0);
        assert!(found.commands <= 20_000 && found.commands > 19_000);
        assert!(found.left_out < found.commands / 8);
    }

    #[test]
    fn time_is_divided_as_the_timed_commands_spent_it() {
        let shares = Shares {
            ticks: [10, 20, 70],
            left_out: 3,
        };
        let found = parts(50.0, &shares, 4_000).unwrap();
        let parts = [found.risk_ns, found.match_ns, found.settle_ns];
        assert_eq!(parts, [5.0, 10.0, 35.0]);
        assert_eq!((found.commands, found.left_out), (4_000, 3));
    }

    #[test]
    fn of_a_few_commands_nothing_is_said() {
        let commands = flow::commands(3, 900);
        assert!(costs(Rules::default(), &commands).is_none());
        assert!(costs(Rules::default(), &[Command::Nop]).is_none());
        assert!(parts(50.0, &Shares::default(), 4_000).is_none());
    }
}
