//! The runner runs subjects side by side: each repetition runs each of them once, in changing
//! order, so that a disturbance of the machine meets all of them, and pairs can be compared.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use thalweg_measure::random::SplitMix;
use thalweg_measure::statistics::{Better, Interval, median, paired_ratio, quantile};

/// The names of this project's subjects begin with this.
const OURS: &str = "thalweg";
/// The names of floors begin with this: they are shown for scale, and not compared.
const FLOORS: &str = "raw ";

/// A figure that a run measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The name in tables and rows.
    pub name: &'static str,
    /// The unit in rows; it decides how tables show the figure.
    pub unit: &'static str,
    /// Whether low or high values are good.
    pub better: Better,
}

impl Metric {
    /// Makes a metric whose low values are good.
    pub const fn lower(name: &'static str, unit: &'static str) -> Self {
        let better = Better::Lower;
        Self { name, unit, better }
    }

    /// Makes metrics that are times in nanoseconds.
    pub(crate) const fn times<const N: usize>(names: [&'static str; N]) -> [Self; N] {
        let mut times = [Self::lower("", "ns"); N];
        let mut at = 0;
        while at < N {
            times[at].name = names[at];
            at += 1;
        }
        times
    }

    /// Makes a metric whose high values are good.
    pub(crate) const fn higher(name: &'static str, unit: &'static str) -> Self {
        let better = Better::Higher;
        Self { name, unit, better }
    }
}

/// The figures of one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Each metric has one value here.
    pub values: Vec<f64>,
    /// The share of the sender's waiting that gaps took, 0 to 1; 0 where it did not wait.
    pub disturbance: f64,
    /// The number of events that did not arrive, or not in their place.
    pub lost: u64,
    /// Whether the run ended early, since the subject could not keep up.
    pub cut: bool,
}

impl Run {
    /// Makes a run that lost nothing, and whose disturbance is not measured.
    pub fn of(values: impl Into<Vec<f64>>) -> Self {
        let values = values.into();
        Self {
            values,
            ..Self::default()
        }
    }

    /// Sets how many events are unaccounted for.
    pub fn with_lost(self, lost: u64) -> Self {
        Self { lost, ..self }
    }
}

/// The figures of one run, or the reason why the subject cannot run here.
pub type Ran = Result<Run, String>;

/// Turns an error into the reason that a report shows.
pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// A subject is compared with others under a load of type `L`.
pub struct Subject<L> {
    pub(crate) name: String,
    run: Box<dyn Fn(&L) -> Ran + Sync>,
}

impl<L> Subject<L> {
    /// Does one run. The runner gives each a thread of its own, so that it may pin itself.
    ///
    /// # Errors
    /// The subject cannot run here.
    pub fn run(&self, load: &L) -> Ran {
        (self.run)(load)
    }
}

/// The subjects of a case.
pub(crate) type Subjects<L> = Vec<Subject<L>>;

/// Makes a subject of a function.
pub fn subject<L>(name: impl Into<String>, run: impl Fn(&L) -> Ran + Sync + 'static) -> Subject<L> {
    let (name, run) = (name.into(), Box::new(run));
    Subject { name, run }
}

/// The runs of one subject, one per repetition.
#[derive(Debug, Clone)]
pub struct Series {
    /// The subject's name.
    pub subject: String,
    /// The runs in the order of the repetitions.
    pub runs: Vec<Run>,
}

impl Series {
    /// Returns one metric's values, one per repetition.
    pub(crate) fn values(&self, metric: usize) -> Vec<f64> {
        self.runs.iter().map(|run| run.values[metric]).collect()
    }

    /// Returns median, best quartile and best of a metric.
    pub fn spread(&self, metric: usize, better: Better) -> [f64; 3] {
        let values = self.values(metric);
        let fractions = match better {
            Better::Lower => [0.5, 0.25, 0.0],
            Better::Higher => [0.5, 0.75, 1.0],
        };
        fractions.map(|q| quantile(&values, q).unwrap_or(f64::NAN))
    }

    /// Returns the median of a metric.
    pub(crate) fn middle(&self, metric: usize) -> Option<f64> {
        median(&self.values(metric))
    }

    /// Returns how many events all runs lost.
    pub fn lost(&self) -> u64 {
        self.runs.iter().map(|run| run.lost).sum()
    }

    /// Returns how many runs ended early.
    pub fn cut(&self) -> usize {
        self.runs.iter().filter(|run| run.cut).count()
    }

    /// Returns the median of the runs' disturbances, 0 to 1.
    pub fn disturbance(&self) -> f64 {
        let runs: Vec<f64> = self.runs.iter().map(|run| run.disturbance).collect();
        median(&runs).unwrap_or(0.0)
    }

    /// Returns whether the subject is one of this project.
    pub fn is_ours(&self) -> bool {
        self.subject.starts_with(OURS)
    }

    /// Returns whether the subject is one of others.
    pub fn is_peer(&self) -> bool {
        !self.is_ours() && !self.subject.starts_with(FLOORS)
    }
}

/// The runs of all subjects of one case.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The case's name.
    pub case: String,
    /// The metrics, of which each run has a value.
    pub metrics: &'static [Metric],
    /// The subjects that ran.
    pub series: Vec<Series>,
    /// The subjects that could not run, and the reasons.
    pub skipped: Vec<(String, String)>,
}

impl Trial {
    /// Returns the runs of a subject.
    pub fn of(&self, subject: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.subject == subject)
    }

    /// Returns two subjects' values of a metric, repetition by repetition.
    pub fn pairs(&self, [subject, versus]: [&str; 2], metric: usize) -> Vec<(f64, f64)> {
        let (Some(subject), Some(versus)) = (self.of(subject), self.of(versus)) else {
            return Vec::new();
        };
        let pairs = subject.values(metric).into_iter();
        pairs.zip(versus.values(metric)).collect()
    }

    /// Returns the ratio of two subjects; more than 1 means that the first is better.
    pub(crate) fn ratio(&self, sides: [&str; 2], metric: usize) -> Option<Interval> {
        paired_ratio(&self.pairs(sides, metric), self.metrics[metric].better)
    }

    /// Returns the best by the median, among the wanted that lost nothing.
    pub fn best(&self, metric: usize, wanted: impl Fn(&Series) -> bool) -> Option<&str> {
        let cost = |series: &Series| {
            let middle = series.middle(metric).filter(|middle| !middle.is_nan());
            match self.metrics[metric].better {
                Better::Lower => middle.unwrap_or(f64::INFINITY),
                Better::Higher => -middle.unwrap_or(0.0),
            }
        };
        let whole = self.series.iter();
        let whole = whole.filter(|series| wanted(series) && series.lost() == 0);
        let best = whole.min_by(|one, other| cost(one).total_cmp(&cost(other)));
        best.map(|series| series.subject.as_str())
    }
}

/// Returns the order in which `count` subjects run in this repetition. In every `count` repetitions
/// each has each place once; the next `count` begin with another shuffle.
pub fn order(count: usize, repetition: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if let Some(block) = repetition.checked_div(count) {
        shuffle(&mut order, block as u64);
        order.rotate_left(repetition % count);
    }
    order
}

/// Shuffles a slice; the order follows from the seed.
pub(crate) fn shuffle<T>(all: &mut [T], seed: u64) {
    let mut random = SplitMix::new(seed);
    for left in (1..all.len()).rev() {
        all.swap(left, random.below(left as u64 + 1) as usize);
    }
}

/// Does one run on a thread of its own. If it does not end, the program names it and exits.
fn run_watched<L: Sync>(case: &str, subject: &Subject<L>, load: &L, hangs_after: Duration) -> Ran {
    let (ended, end) = mpsc::channel::<()>();
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(move || {
            // Dropped at the end of the run, also by a panic.
            let _ended = ended;
            subject.run(load)
        });
        if end.recv_timeout(hangs_after) == Err(RecvTimeoutError::Timeout) {
            let name = &subject.name;
            eprintln!("error: {case}/{name} does not end: its threads wait for each other");
            std::process::exit(2);
        }
        run.join()
    });
    run.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs every subject `repetitions` times under `load`. A subject that cannot run is left out; one
/// that takes longer than `hangs_after` ends the program.
pub fn interleave<L: Sync>(
    case: &str,
    metrics: &'static [Metric],
    subjects: &[&Subject<L>],
    load: &L,
    (repetitions, hangs_after): (usize, Duration),
) -> Trial {
    let mut runs: Vec<Result<Vec<Run>, String>> = subjects.iter().map(|_| Ok(vec![])).collect();
    for repetition in 0..repetitions {
        for at in order(subjects.len(), repetition) {
            let Ok(done) = &mut runs[at] else { continue };
            match run_watched(case, subjects[at], load, hangs_after) {
                Ok(run) => {
                    assert_eq!(run.values.len(), metrics.len(), "a value per metric");
                    done.push(run);
                }
                Err(why) => runs[at] = Err(why),
            }
        }
    }
    let (mut series, mut skipped) = (Vec::new(), Vec::new());
    for (subject, runs) in subjects.iter().zip(runs) {
        let subject = subject.name.clone();
        match runs {
            Ok(runs) => series.push(Series { subject, runs }),
            Err(why) => skipped.push((subject, why)),
        }
    }
    Trial {
        case: case.to_owned(),
        metrics,
        series,
        skipped,
    }
}
