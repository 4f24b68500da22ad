//! What the hash promises, by the kernel that is picked.

use super::job::ONE_BY_ONE;
use super::{C, ENTRIES, LONG_BYTES, MANY_BYTES, OURS, TIME};
use crate::report::{Report, times};
use crate::runner::Trial;
use crate::target::{Limit, Target};

/// As good as: what a change of the machine's mood takes is allowed for.
const NO_WORSE: f64 = 0.97;

/// One promise: so many times better than somebody.
#[derive(Debug, Clone, PartialEq)]
struct Goal {
    case: String,
    versus: &'static str,
    at_least: f64,
}

fn goals(kernel: &str) -> Vec<Goal> {
    let goal = |case: String, versus, at_least| Goal {
        case,
        versus,
        at_least,
    };
    let (at_512, above) = match kernel {
        "avx512" => (1.25, 1.5),
        "avx2" => (1.2, 1.4),
        // Nothing is promised of machines that nobody measured.
        _ => (NO_WORSE, NO_WORSE),
    };
    let mut goals = Vec::new();
    for (name, bytes) in LONG_BYTES {
        let at_least = if bytes < 8 << 10 { at_512 } else { above };
        goals.push(goal(format!("one/{name}"), C, at_least));
    }
    for entries in ENTRIES {
        goals.push(goal(format!("scatter/{entries}"), C, 1.5));
    }
    for (name, bytes) in MANY_BYTES {
        let case = format!("many/{name}");
        goals.push(match kernel {
            "avx512" => goal(case, C, if bytes < 4 << 10 { 2.0 } else { 2.6 }),
            _ => goal(case, ONE_BY_ONE, NO_WORSE),
        });
    }
    goals.push(goal("keys/8B".to_owned(), C, 4.0));
    goals
}

/// The promises whose cases ran.
pub(super) fn targets(report: &mut Report, trials: &[Trial], kernel: &str) -> Vec<Target> {
    let mut targets = Vec::new();
    targets.extend(worst_short(trials));
    for Goal {
        case,
        versus,
        at_least,
    } in goals(kernel)
    {
        let Some(trial) = trials.iter().find(|trial| trial.case == case) else {
            continue;
        };
        let sides = [OURS, versus];
        let ratio = report.compare(trial, sides, TIME);
        let what = format!("{case} time");
        targets.push(Target::ratio(&what, sides, Limit::AtLeast(at_least), ratio));
    }
    targets
}

/// The short length with the worst ratio.
fn worst_short(trials: &[Trial]) -> Option<Target> {
    let short = trials
        .iter()
        .filter(|trial| trial.case.starts_with("short/"));
    let ratios = short.filter_map(|trial| {
        let ratio = trial.interval([OURS, C], TIME)?;
        Some((ratio, &trial.case))
    });
    let (worst, case) = ratios.min_by(|a, b| a.0.value.total_cmp(&b.0.value))?;
    let (low, high) = (times(worst.low), times(worst.high));
    let what = format!("short, the worst length: {OURS} over {C} [{low}, {high}] ({case})");
    let limit = Limit::AtLeast(NO_WORSE);
    Some(Target::new(what, limit, Some(worst.value), times))
}

#[cfg(test)]
mod tests {
    use super::super::METRICS;
    use super::*;

    #[test]
    fn the_promises_are_those_of_the_kernel() {
        let of = |kernel: &str, case: &str| {
            let goal = goals(kernel).into_iter().find(|goal| goal.case == case);
            goal.map(|goal| (goal.versus, goal.at_least))
        };
        assert_eq!(of("avx512", "one/512B"), Some((C, 1.25)));
        assert_eq!(of("avx512", "one/8KiB"), Some((C, 1.5)));
        assert_eq!(of("avx2", "one/512B"), Some((C, 1.2)));
        assert_eq!(of("avx2", "one/1MiB"), Some((C, 1.4)));
        assert_eq!(of("avx512", "many/4KiB"), Some((C, 2.6)));
        assert_eq!(of("avx2", "many/4KiB"), Some((ONE_BY_ONE, 0.97)));
        assert_eq!(of("avx2", "keys/8B"), Some((C, 4.0)));
    }

    #[test]
    fn the_worst_length_is_the_one_that_is_told() {
        let trial = |case: &str, ours: f64| {
            Trial::scripted(case, METRICS, &[(OURS, &[ours][..]), (C, &[10.0][..])])
        };
        let trials = [
            trial("short/1", 8.0),
            trial("short/2", 10.5),
            trial("one/1", 99.0),
        ];
        let worst = worst_short(&trials).expect("two lengths ran");
        assert!(worst.what.ends_with("(short/2)"), "{}", worst.what);
        assert!((worst.measured.expect("both ran") - 10.0 / 10.5).abs() < 1e-9);
        assert!(worst_short(&trials[2..]).is_none());
    }
}
