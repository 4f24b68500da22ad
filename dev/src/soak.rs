//! `cargo dev soak`: the long forms of the tests, with new seeds in every round, for a given time.

use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::clients;
use crate::fuzz;
use crate::gate;
use crate::plan::Outcome;
use crate::targets;
use crate::testing::{TESTS, modelled};
use crate::workspace::Workspace;

/// One thing that a round runs for longer than the gate does.
struct Part {
    /// A description, for its line of the output.
    name: &'static str,
    run: fn(&Workspace, u64) -> Result<(), String>,
}

/// A test goes through fewer seeds from the one that it is given, so rounds have none in common.
const SEEDS_OF_A_ROUND: u64 = 1_000_000;

/// Shorter parts come first, so that a short soak has run some of each kind.
const PARTS: [Part; 8] = [
    Part {
        name: "every test, with ten times the cases of each property",
        run: every_test,
    },
    Part {
        name: "schedules of shuttle",
        run: schedules,
    },
    Part {
        name: "a minute of each fuzz target",
        run: |workspace, seed| fuzz::for_longer(workspace, seed, 60),
    },
    Part {
        name: "all tests of thalweg and thalweg-task under the address sanitizer",
        run: all_sanitized,
    },
    Part {
        name: "other systems, and the oldest Rust",
        run: |workspace, _seed| (targets::WHOLE.run)(workspace).map(drop),
    },
    Part {
        name: "trading programs; freqtrade and nautilus_trader, too",
        run: |workspace, _seed| clients::for_longer(workspace),
    },
    Part {
        name: "crashes, kills, histories and chaos",
        run: crashes,
    },
    Part {
        name: "models of loom, one preemption deeper",
        run: deeper_models,
    },
];

/// Runs rounds of all parts until the time is over. A part that has begun is ended.
///
/// # Errors
/// Wrong arguments, or a part has failed: which one, and how to run it again.
pub(crate) fn command(workspace: &Workspace, args: &[String]) -> Result<bool, String> {
    let (time, first) = parse(args)?;
    // A round that is run again must come to what failed.
    let is_given = args.iter().any(|arg| arg == "--seed");
    let start = Instant::now();
    for round in 0.. {
        let seed = first.wrapping_add(round * SEEDS_OF_A_ROUND);
        for part in &PARTS {
            if start.elapsed() >= time && (round > 0 || !is_given) {
                println!("== nothing found in {round} rounds");
                return Ok(true);
            }
            println!("== {}, seed {seed}", part.name);
            if let Err(why) = (part.run)(workspace, seed) {
                println!("\nFAILED at {}: {why}", part.name);
                println!("again: cargo dev soak --minutes 1 --seed {seed}");
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn parse(args: &[String]) -> Result<(Duration, u64), String> {
    let (mut minutes, mut seed) = (None, None);
    for pair in args.chunks(2) {
        let value = match pair {
            [_, value] => value.parse::<u64>().ok(),
            _ => None,
        };
        let number = value.ok_or_else(|| format!("{}: a number must follow", pair[0]))?;
        match pair[0].as_str() {
            "--minutes" => minutes = Some(number),
            "--seed" => seed = Some(number),
            other => {
                return Err(format!(
                    "{other}: not known; there are --minutes and --seed"
                ));
            }
        }
    }
    let minutes = minutes.ok_or("soak needs --minutes N")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = seed.unwrap_or(now.map_or(1, |now| now.as_secs() * SEEDS_OF_A_ROUND));
    Ok((Duration::from_secs(minutes.saturating_mul(60)), seed))
}

/// The workspace's tests, optimised, in a folder that every round uses again.
fn tests(workspace: &Workspace, seed: u64) -> Command {
    let mut command = workspace.cargo(TESTS);
    command
        .args(["--release", "--lib", "--bins", "--test", "*"])
        .env("CARGO_TARGET_DIR", workspace.target.join("soak"))
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
        .env("THALWEG_SEED", seed.to_string())
        .env("PROPTEST_RNG_SEED", seed.to_string());
    command
}

fn every_test(workspace: &Workspace, seed: u64) -> Result<(), String> {
    let command = || {
        let mut command = tests(workspace, seed);
        command.env("PROPTEST_CASES", "2560");
        command
    };
    workspace.run_tests(command, &[]).map(drop)
}

fn crashes(workspace: &Workspace, seed: u64) -> Result<(), String> {
    let command = || {
        let mut command = tests(workspace, seed);
        command
            .env("THALWEG_JOURNAL_CRASHES", "300000")
            .env("THALWEG_JOURNAL_KILLS", "50")
            .env("THALWEG_EXCHANGE_SEEDS", "10000")
            .env("THALWEG_SERVE_KILLS", "50")
            .env("THALWEG_REPLICATED_ROUNDS", "50")
            .env("THALWEG_MASS_KILLS", "200")
            .env("THALWEG_GROWTH", "1000000")
            .env("THALWEG_BUS_HISTORIES", "1000000")
            .env("THALWEG_BUS_CHAOS_S", "60")
            .env("THALWEG_BOOK_COMMANDS", "10000000")
            .env("THALWEG_ACCOUNT_RUNS", "3000");
        command
    };
    let which = [
        "nothing_acknowledged",
        "what_a_killed",
        "what_was_answered",
        "what_a_replicated",
        "a_mass_operation_that_a_kill_interrupts",
        "admission_is_as_in_the_model",
        "every_message_is_accounted_for",
        "a_long_stream_agrees_with_the_plain_book",
        "the_work_of_a_command_does_not_grow",
        "everybody_has_what_the_reports_say",
    ];
    match workspace.run_tests(command, &which)?.passed {
        12.. => Ok(()),
        found => Err(format!("{found} tests were found, not these 12")),
    }
}

fn schedules(workspace: &Workspace, seed: u64) -> Result<(), String> {
    let command = || {
        let mut command = modelled(workspace, "shuttle", "--package thalweg --test suite");
        command
            .env("THALWEG_SEED", seed.to_string())
            .env("THALWEG_SCHEDULES", "5000");
        command
    };
    // The faults are for the gate, which has the numbers that find them.
    workspace
        .run_tests(command, &["--skip", "faults", "--skip", "medley"])
        .map(drop)
}

/// Runs with those that the gate leaves out; seeds of properties are new in every run.
fn all_sanitized(workspace: &Workspace, _seed: u64) -> Result<(), String> {
    match gate::sanitized(workspace, "-Zsanitizer=address", &["--all-features"])? {
        Outcome::Skipped(why) => workspace.say(format_args!("skipped: {why}")),
        _ => Ok(()),
    }
}

fn deeper_models(workspace: &Workspace, _seed: u64) -> Result<(), String> {
    let which = "--package thalweg --package thalweg-task --lib";
    let command = || {
        let mut command = modelled(workspace, "loom", which);
        command
            .env("LOOM_MAX_PREEMPTIONS", "4")
            .env("THALWEG_LOOM_MORE", "1");
        command
    };
    workspace.run_tests(command, &[]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soak_has_a_time_and_perhaps_a_seed() {
        let parsed = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            parse(&args)
        };
        let minute = Duration::from_secs(60);
        assert_eq!(parsed("--minutes 1 --seed 7"), Ok((minute, 7)));
        assert!(parsed("--minutes 2").is_ok_and(|(time, seed)| time == 2 * minute && seed > 0));
        for (line, why) in [
            ("", "soak needs --minutes N"),
            ("--minutes", "--minutes: a number must follow"),
            ("--seed x", "--seed: a number must follow"),
            (
                "--hours 1",
                "--hours: not known; there are --minutes and --seed",
            ),
        ] {
            assert_eq!(parsed(line), Err(why.to_owned()), "{line}");
        }
    }
}
