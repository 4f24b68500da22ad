//! The parts that the suites under shuttle share: schedules, and faults that are seeded, each found
//! in a process of its own, which runs one of the tests.

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner};
use std::env;
use std::process::Command;
use std::sync::Arc;

/// Preemptions that the schedules of the second kind are made of.
const PREEMPTIONS: usize = 3;
/// Several hundred times what a schedule takes; then its threads wait for each other by yielding.
const STEPS_MAX: usize = 300_000;
/// Schedules in which a fault must be found; the first that finds it is the last.
pub(crate) const SCHEDULES_OF_A_FAULT: usize = 10_000;

/// Runs a model under this number of schedules that switch at random at each step, and as many that
/// switch rarely (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized scheduler with
/// probabilistic guarantees of finding bugs", 2010).
pub(crate) fn explore(
    schedules: usize,
    stack_bytes: usize,
    model: impl Fn() + Send + Sync + 'static,
) {
    run(schedules, stack_bytes, Arc::new(model));
}

/// Compiled once for all models.
fn run(schedules: usize, stack_bytes: usize, model: Arc<dyn Fn() + Send + Sync>) {
    let mut config = Config::new();
    config.stack_size = stack_bytes;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true;
    let schedules = setting("THALWEG_SCHEDULES").unwrap_or(schedules as u64) as usize;
    let seed = setting("THALWEG_SEED").unwrap_or(1);
    let random = RandomScheduler::new_from_seed(seed, schedules);
    let again = Arc::clone(&model);
    Runner::new(random, config.clone()).run(move || model());
    let preempting = PctScheduler::new_from_seed(seed, PREEMPTIONS, schedules);
    Runner::new(preempting, config).run(move || again());
}

fn setting(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|error| panic!("{name}={text}: {error}")))
}

/// Runs the test `name` with the fault; it must fail within `schedules` schedules, by one that
/// shuttle prints.
pub(crate) fn is_caught(fault: &str, name: &str, schedules: usize) {
    let output = Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env("THALWEG_FAULT", fault)
        .env("THALWEG_SCHEDULES", schedules.to_string())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success(),
        "{name} does not find the fault `{fault}`"
    );
    assert!(
        stderr.contains("schedule"),
        "{name} with `{fault}`: {stderr}"
    );
}

/// A test for each fault: the model that finds it.
macro_rules! faults {
    ($($fault:ident: $($module:ident)::+;)+) => { $(
        #[test]
        fn $fault() {
            // The program's name and the suite's, as in `suite::channel_shuttle::faults`.
            let suite = module_path!().split("::").nth(1).expect("a suite");
            let name = format!("{suite}::{}", stringify!($($module)::+).replace(' ', ""));
            let schedules = crate::channel_shuttle::explored::SCHEDULES_OF_A_FAULT;
            crate::channel_shuttle::explored::is_caught(stringify!($fault), &name, schedules);
        }
    )+ };
}
pub(crate) use faults;
