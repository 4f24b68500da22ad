//! `thalweg doctor compare`.

use crate::arguments::Format;
use crate::arguments::doctor_compare::Compare;
use crate::failure::{Failure, Finding, print, print_json};
use crate::terminal::{Interruption, Notes};
use thalweg_doctor::compare::{CommandLine, Comparison, Error, Plan};

/// Runs two commands in turn, and reports which one is faster.
///
/// # Errors
/// Returns an error if a command is empty, cannot be started or fails.
pub(crate) fn compare(options: &Compare) -> Result<Finding, Failure> {
    let line = |name: &str, text: &str| {
        CommandLine::parse(text)
            .map_err(|error| Failure::Misuse(format!("--{name} '{text}': {error}")))
    };
    let plan = Plan {
        a: line("a", &options.a)?,
        b: line("b", &options.b)?,
        runs: options.runs as usize,
        warmup: options.warmup as usize,
        seed: options.seed,
        ignores_failure: options.ignore_failure,
        shows_output: options.show_output,
    };
    let interruption = Interruption::new();
    let bar = Notes::new(options.quiet).progress(Some(2 * (plan.runs + plan.warmup)), "runs");
    let pairs = plan.measure(&interruption.stop, || bar.inc(1));
    bar.finish_and_clear();
    let pairs = match pairs {
        Ok(pairs) => pairs,
        Err(Error::Interrupted) => return Ok(interruption.finding()),
        Err(error) => return Err(Failure::Misuse(error.to_string())),
    };
    let found = Comparison::of(&plan, [&options.a, &options.b], &pairs);
    match options.format == Format::Json {
        true => print_json(&found)?,
        false => print(found.to_string().as_bytes())?,
    }
    Ok(match found.contaminated {
        Some(_) => Finding::Negative,
        None => Finding::Fine,
    })
}
