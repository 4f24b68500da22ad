//! Determines whether one command is slower than another, and by how much.
//!
//! Both commands are run in turn, in blocks of A B B A or B A A B as a seed decides, so that any
//! drift affects both. Each metric is compared by the Mann-Whitney test, with Holm's correction
//! over all metrics: of twenty comparisons of a command with itself, one reports a difference in
//! some metric. The difference is the Hodges-Lehmann shift with its bootstrap interval.
//!
//! For each run, the time that others took of the machine is measured. Where they took more from
//! one command than from the other, there is no verdict, because they may have caused the
//! difference.

pub(crate) mod command_line;
pub mod judge;
pub(crate) mod run;

pub use crate::compare::command_line::{CommandLine, CommandLineError};
pub use crate::compare::judge::{Comparison, Finding};
use crate::compare::run::Outcome;
pub use crate::compare::run::{Run, Taken};
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;
use thalweg_measure::random::SplitMix;

/// One of the two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Arm {
    /// The first command, which is the reference for the second.
    A,
    /// The second.
    B,
}

/// The commands to compare, and the options of the comparison.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The command line of A.
    pub a: CommandLine,
    /// The command line of B.
    pub b: CommandLine,
    /// The number of measured runs of each command.
    pub runs: usize,
    /// The number of unmeasured warm-up runs of each command.
    pub warmup: usize,
    /// The seed for the order of the runs, and for the draws of the bootstrap.
    pub seed: u64,
    /// Whether a run counts although its exit code is not 0.
    pub ignores_failure: bool,
    /// Whether the commands' output goes to standard error; otherwise it is dropped.
    pub shows_output: bool,
}

/// The reason why there is no comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// A command cannot be started.
    #[error("the command cannot be started: {0}")]
    Start(#[source] io::Error),
    /// The system refuses something that the measurement needs.
    #[error("a run cannot be measured: {0}")]
    System(#[source] io::Error),
    /// A run failed.
    #[error("{arm:?}: {}run {run} failed: {status}", if *is_warmup { "warm-up " } else { "" })]
    Failed {
        /// The command of the run.
        arm: Arm,
        /// The number of the run of this command, counting from 1.
        run: usize,
        /// Whether it was a warm-up run.
        is_warmup: bool,
        /// The exit status of the run.
        status: ExitStatus,
    },
    /// A command cannot be started, or cannot be waited for.
    #[error("{0:?}: {1}")]
    Arm(Arm, #[source] Box<CompareError>),
    /// The comparison was asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Plan {
    /// Runs both commands; `progress` is called after each run.
    ///
    /// # Errors
    /// Returns an error if a command cannot be started or fails, or if `stop` becomes true.
    pub fn measure(
        &self,
        stop: &AtomicBool,
        mut progress: impl FnMut(),
    ) -> Result<Vec<(Run, Run)>, CompareError> {
        let mut measured = (Vec::new(), Vec::new());
        let order = order(self.warmup, self.seed).map(|arm| (arm, true));
        for (arm, is_warmup) in order.chain(self::order(self.runs, self.seed).map(|a| (a, false))) {
            let (line, runs) = match arm {
                Arm::A => (&self.a, &mut measured.0),
                Arm::B => (&self.b, &mut measured.1),
            };
            let outcome = crate::compare::run::run(line, self.shows_output, stop);
            match outcome.map_err(|error| CompareError::Arm(arm, Box::new(error)))? {
                Outcome::Interrupted => return Err(CompareError::Interrupted),
                Outcome::Ended(status, run) if status.success() || self.ignores_failure => {
                    runs.push(run);
                }
                Outcome::Ended(status, _) => {
                    return Err(CompareError::Failed {
                        arm,
                        run: runs.len() + 1,
                        is_warmup,
                        status,
                    });
                }
            }
            progress();
            if is_warmup && measured.0.len() == self.warmup && measured.1.len() == self.warmup {
                measured = (Vec::new(), Vec::new());
            }
        }
        Ok(measured.0.into_iter().zip(measured.1).collect())
    }
}

/// Returns the order of this number of runs of each command, in blocks of four: A B B A or B A A B.
fn order(pairs: usize, seed: u64) -> impl Iterator<Item = Arm> {
    let mut random = SplitMix::new(seed);
    let mut is_a_first = false;
    (0..pairs).flat_map(move |pair| {
        is_a_first = match pair % 2 {
            0 => random.below(2) == 0,
            _ => !is_a_first,
        };
        match is_a_first {
            true => [Arm::A, Arm::B],
            false => [Arm::B, Arm::A],
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(a: &str, b: &str) -> Plan {
        Plan {
            a: CommandLine::parse(a).expect("a command"),
            b: CommandLine::parse(b).expect("a command"),
            runs: 3,
            warmup: 1,
            seed: 1,
            ignores_failure: false,
            shows_output: false,
        }
    }

    #[test]
    fn each_block_of_four_is_the_same_both_ways() {
        let mut first = [0, 0];
        for seed in 0..100 {
            let order: Vec<Arm> = order(10, seed).collect();
            for block in order.chunks_exact(4) {
                assert_eq!((block[0], block[1]), (block[3], block[2]), "{order:?}");
                assert_ne!(block[0], block[1], "{order:?}");
                first[block[0] as usize] += 1;
            }
        }
        assert!(first.iter().all(|&blocks| blocks > 200), "{first:?}");
        assert_eq!(order(3, 1).filter(|&arm| arm == Arm::A).count(), 3);
    }

    #[test]
    fn both_are_run_as_often_as_was_asked() {
        let mut runs = 0;
        let measured = plan("true", "sh -c :").measure(&AtomicBool::new(false), || runs += 1);
        assert_eq!(measured.expect("both end well").len(), 3);
        assert_eq!(runs, 8);
    }

    #[test]
    fn a_run_that_fails_is_named() {
        let error_of = |plan: &Plan| match plan.measure(&AtomicBool::new(false), || ()) {
            Err(error) => error.to_string(),
            Ok(_) => "nothing".to_owned(),
        };
        let mut failing = plan("true", "sh -c 'exit 4'");
        assert_eq!(
            error_of(&failing),
            "B: warm-up run 1 failed: exit status: 4"
        );
        failing.warmup = 0;
        assert_eq!(error_of(&failing), "B: run 1 failed: exit status: 4");
        failing.ignores_failure = true;
        assert_eq!(error_of(&failing), "nothing");
        let missing = error_of(&plan("no-such-program-here", "true"));
        assert!(
            missing.starts_with("A: the command cannot be started: No such"),
            "{missing}"
        );
        let killed = error_of(&plan("sh -c 'kill -9 $$'", "true"));
        assert!(
            killed.starts_with("A: warm-up run 1 failed: signal: 9"),
            "{killed}"
        );
    }
}
