//! Scores a doctor: builds programs whose bottleneck is known, runs them under it, and compares its
//! first verdict with what is known.
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

/// What is scored, and how.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The command in front of each program's own, in words.
    pub(crate) doctor: Vec<String>,
    /// The folder that holds the folders of the cases.
    pub(crate) cases: PathBuf,
    /// Where programs are built, and where they run.
    pub(crate) out: PathBuf,
    /// How long each program runs, in seconds.
    pub(crate) seconds: f64,
    /// Threads of this process that compute meanwhile.
    pub(crate) load: usize,
    /// How often each case runs.
    pub(crate) repeat: usize,
    /// Each case also runs as this user.
    pub(crate) user: Option<String>,
}

/// Runs the cases, one after the other, and shows each row as soon as it is there.
///
/// # Errors
/// A case that does not build, or a machine that cannot start one: nothing can be scored then.
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

/// Threads that compute until this is dropped.
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
