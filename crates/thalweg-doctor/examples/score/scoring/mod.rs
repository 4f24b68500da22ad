//! Scores a doctor: builds programs whose bottleneck is known, runs them under the doctor, and
//! compares its first verdict with the known cause.
pub(crate) mod case;
pub(crate) mod report;
pub(crate) mod stage;
pub(crate) mod tally;

use case::Case;
use stage::Stage;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::thread;
use tally::{Row, Tally};

/// The options of a scoring run.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The command in front of each program's own command, in words.
    pub(crate) doctor: Vec<String>,
    /// The folder that holds the folders of the cases.
    pub(crate) cases: PathBuf,
    /// The folder where programs are built and run.
    pub(crate) out: PathBuf,
    /// The time that each program runs, in seconds.
    pub(crate) seconds: f64,
    /// The number of threads of this process that compute meanwhile.
    pub(crate) load: usize,
    /// The number of times that each case runs.
    pub(crate) repeat: usize,
    /// The user as whom each case also runs.
    pub(crate) user: Option<String>,
}

/// Runs the cases, one after the other, and shows each row when it is complete.
///
/// # Errors
/// Returns an error if a case does not build, or if the machine cannot start one: no score is
/// possible then.
pub(crate) fn score(
    cases: &[Case],
    options: &Options,
    mut show: impl FnMut(&Row),
) -> Result<Tally, String> {
    let stage = Stage::new(options)?;
    let mut tally = Tally::new(options.load > 0);
    for case in cases {
        let missing = stage.build(case)?;
        let _load = Load::start(options.load);
        for _ in 0..options.repeat {
            let users = [None].into_iter().chain(options.user.as_deref().map(Some));
            for user in users {
                let outcome = match &missing {
                    Some(why) => tally::Outcome::Skipped(why.clone()),
                    None => stage.run(case, user)?,
                };
                let row = Row::new(case, user, outcome);
                show(&row);
                tally.add(row);
            }
        }
    }
    Ok(tally)
}

/// A guard for threads that compute until it is dropped.
struct Load {
    _alive: Vec<Sender<()>>,
}

impl Load {
    fn start(threads: usize) -> Load {
        let start = |_| {
            let (alive, end) = channel::<()>();
            thread::spawn(move || {
                let mut sum = 0u64;
                while end.try_recv() != Err(TryRecvError::Disconnected) {
                    for number in 0..100_000u64 {
                        sum = std::hint::black_box(sum.rotate_left(5) ^ number);
                    }
                }
            });
            alive
        };
        Load {
            _alive: (0..threads).map(start).collect(),
        }
    }
}
