//! Runs subjects side by side: every repetition runs each of them once, in changing order, so that
//! what disturbs the machine meets all of them, and pairs of runs can be compared.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use thalweg_measure::random::SplitMix;
use thalweg_measure::statistics::{Better, Interval, median, paired_ratio, quantile};

/// What the names of this project's subjects begin with.
pub(crate) const OURS: &str = "thalweg";
/// What the names of floors begin with: they are shown for scale and compared with nobody.
const FLOORS: &str = "raw ";

/// Something that a run measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
}

impl Metric {
    /// A metric whose low values are the good ones.
    pub(crate) const fn lower(name: &'static str, unit: &'static str) -> Self {
        let better = Better::Lower;
        Self { name, unit, better }
    }

    /// Times in nanoseconds, of these names.
    pub(crate) const fn times<const N: usize>(names: [&'static str; N]) -> [Self; N] {
        let mut times = [Self::lower("", "ns"); N];
        let mut at = 0;
        while at < N {
            times[at].name = names[at];
            at += 1;
        }
        times
    }

    /// A metric whose high values are the good ones.
    pub(crate) const fn higher(name: &'static str, unit: &'static str) -> Self {
        let better = Better::Higher;
        Self { name, unit, better }
    }
}

/// What one run gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Run {
    /// One value per metric.
    pub(crate) values: Vec<f64>,
    /// Share of the sender's waiting that gaps took, 0 to 1; 0 where nobody waited.
    pub(crate) disturbance: f64,
    /// Events that did not arrive, or not in their place.
    pub(crate) lost: u64,
    /// Ended early, since the subject could not keep up.
    pub(crate) cut: bool,
}

impl Run {
    /// A run that lost nothing, and whose disturbance is not watched.
    pub(crate) fn of(values: impl Into<Vec<f64>>) -> Self {
        let values = values.into();
        Self {
            values,
            ..Self::default()
        }
    }

    /// Sets how many events are unaccounted for.
    pub(crate) fn with_lost(self, lost: u64) -> Self {
        Self { lost, ..self }
    }
}

/// The outcome of one run, or why the subject cannot run here.
pub(crate) type Ran = Result<Run, String>;

/// Turns an error into the reason that a report shows.
pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// One of the things compared under a load of type `L`.
pub(crate) trait Subject<L>: Sync {
    /// Returns the name that stands in tables and rows.
    fn name(&self) -> String;
    /// Does one run. Each is on a thread of its own, so that it may pin itself.
    ///
    /// # Errors
    /// Why it cannot run here.
    fn run(&self, load: &L) -> Ran;
}

/// Subjects of one load.
pub(crate) type Subjects<L> = Vec<Box<dyn Subject<L>>>;

/// A subject whose run is a function.
struct Named<F> {
    name: String,
    run: F,
}

impl<L, F: Fn(&L) -> Ran + Sync> Subject<L> for Named<F> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn run(&self, load: &L) -> Ran {
        (self.run)(load)
    }
}

/// Makes a subject of a function.
pub(crate) fn subject<L>(
    name: impl Into<String>,
    run: impl Fn(&L) -> Ran + Sync + 'static,
) -> Box<dyn Subject<L>> {
    let name = name.into();
    Box::new(Named { name, run })
}

/// All runs of one subject, one per repetition.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) subject: String,
    pub(crate) runs: Vec<Run>,
}

impl Series {
    /// Returns one metric's values, one per repetition.
    pub(crate) fn values(&self, metric: usize) -> Vec<f64> {
        self.runs.iter().map(|run| run.values[metric]).collect()
    }

    /// Returns median, best quartile and best of a metric.
    pub(crate) fn spread(&self, metric: usize, better: Better) -> [f64; 3] {
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

    pub(crate) fn lost(&self) -> u64 {
        self.runs.iter().map(|run| run.lost).sum()
    }

    pub(crate) fn cut(&self) -> usize {
        self.runs.iter().filter(|run| run.cut).count()
    }

    /// Returns the median of the runs' disturbances, 0 to 1.
    pub(crate) fn disturbance(&self) -> f64 {
        let runs: Vec<f64> = self.runs.iter().map(|run| run.disturbance).collect();
        median(&runs).unwrap_or(0.0)
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.subject.starts_with(OURS)
    }

    pub(crate) fn is_peer(&self) -> bool {
        !self.is_ours() && !self.subject.starts_with(FLOORS)
    }
}

/// All subjects' runs of one case.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    pub(crate) case: String,
    pub(crate) metrics: &'static [Metric],
    pub(crate) series: Vec<Series>,
    /// Subjects that could not run, and why.
    pub(crate) skipped: Vec<(String, String)>,
}

impl Trial {
    pub(crate) fn of(&self, subject: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.subject == subject)
    }

    /// Returns two subjects' values of a metric, repetition by repetition.
    pub(crate) fn pairs(&self, [subject, versus]: [&str; 2], metric: usize) -> Vec<(f64, f64)> {
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
    pub(crate) fn best(&self, metric: usize, wanted: impl Fn(&Series) -> bool) -> Option<&str> {
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
pub(crate) fn order(count: usize, repetition: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if let Some(block) = repetition.checked_div(count) {
        shuffle(&mut order, block as u64);
        order.rotate_left(repetition % count);
    }
    order
}

/// Puts them into an order that follows from the seed.
pub(crate) fn shuffle<T>(all: &mut [T], seed: u64) {
    let mut random = SplitMix::new(seed);
    for left in (1..all.len()).rev() {
        all.swap(left, random.below(left as u64 + 1) as usize);
    }
}

/// After this time a run is taken for one that will never end, as where a wake-up was lost.
const HANGS_AFTER: Duration = Duration::from_secs(180);

/// Does one run on a thread of its own. If it does not end, the program names it and exits.
fn run_watched<L: Sync>(case: &str, subject: &dyn Subject<L>, load: &L) -> Ran {
    let (ended, end) = mpsc::channel::<()>();
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(move || {
            // Dropped at the end of the run, also by a panic.
            let _ended = ended;
            subject.run(load)
        });
        if end.recv_timeout(HANGS_AFTER) == Err(RecvTimeoutError::Timeout) {
            let name = subject.name();
            eprintln!("error: {case}/{name} does not end: its threads wait for each other");
            std::process::exit(2);
        }
        run.join()
    });
    run.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs every subject `repetitions` times under `load`. A subject that cannot run is left out.
pub(crate) fn interleave<L: Sync>(
    case: &str,
    metrics: &'static [Metric],
    subjects: &[&dyn Subject<L>],
    load: &L,
    repetitions: usize,
) -> Trial {
    let mut runs: Vec<Result<Vec<Run>, String>> = subjects.iter().map(|_| Ok(vec![])).collect();
    for repetition in 0..repetitions {
        for at in order(subjects.len(), repetition) {
            let Ok(done) = &mut runs[at] else { continue };
            match run_watched(case, subjects[at], load) {
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
        let subject = subject.name();
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_subject_has_each_place_once() {
        for count in [1, 2, 3, 7, 20] {
            for block in 0..3 {
                let orders = (0..count).map(|at| order(count, block * count + at));
                let orders: Vec<_> = orders.collect();
                for place in 0..count {
                    let mut at_place: Vec<_> = orders.iter().map(|order| order[place]).collect();
                    at_place.sort_unstable();
                    assert_eq!(at_place, (0..count).collect::<Vec<_>>());
                }
            }
        }
        assert!(order(0, 5).is_empty());
        assert_ne!(order(20, 0), order(20, 20), "another shuffle");
    }

    #[test]
    fn runs_are_paired_by_repetition_and_a_failing_subject_is_skipped() {
        let scripted = |name: &str, values: &'static [f64]| {
            let left = Mutex::new(values.iter());
            subject(name, move |load: &f64| {
                let value = *left.lock().unwrap().next().ok_or("no more values")?;
                Ok(Run {
                    values: vec![value * load],
                    disturbance: value,
                    lost: 1,
                    cut: value > 3.0,
                })
            })
        };
        let all = [
            scripted("thalweg", &[1.0, 2.0, 3.0, 4.0]),
            scripted("b", &[5.0, 6.0, 7.0, 8.0]),
            scripted("c", &[1.0]),
        ];
        let all: Vec<&dyn Subject<f64>> = all.iter().map(|subject| &**subject).collect();
        const COST: &[Metric] = &[Metric::lower("cost", "ns")];
        let mut trial = interleave("case", COST, &all, &10.0, 4);
        let pairs = [(10.0, 50.0), (20.0, 60.0), (30.0, 70.0), (40.0, 80.0)];
        assert_eq!(trial.pairs(["thalweg", "b"], 0), pairs);
        assert!(trial.pairs(["thalweg", "z"], 0).is_empty());
        assert_eq!(
            trial.skipped,
            [("c".to_owned(), "no more values".to_owned())]
        );
        let series = trial.of("thalweg").unwrap();
        assert_eq!(series.spread(0, Better::Lower), [25.0, 17.5, 10.0]);
        assert_eq!(series.spread(0, Better::Higher)[2], 40.0);
        assert_eq!((series.lost(), series.cut()), (4, 1));
        assert_eq!(series.disturbance(), 2.5);
        assert_eq!(trial.best(0, Series::is_ours), None, "it lost events");
        trial.series[0].runs.iter_mut().for_each(|run| run.lost = 0);
        assert_eq!(trial.best(0, Series::is_ours), Some("thalweg"));
        assert_eq!(trial.best(0, Series::is_peer), None);
    }
}
