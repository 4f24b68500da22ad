//! Runs subjects side by side: every repetition runs each of them once, in changing order, so that
//! what disturbs the machine meets all of them, and pairs of runs can be compared.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use thalweg_measure::noise::quieter_half;
use thalweg_measure::random::SplitMix;
use thalweg_measure::statistics::{Better, Interval, median, paired_ratio, quantile};

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

    /// A metric whose high values are the good ones.
    pub(crate) const fn higher(name: &'static str, unit: &'static str) -> Self {
        let better = Better::Higher;
        Self { name, unit, better }
    }
}

/// What one run gave.
#[derive(Debug, Clone, PartialEq)]
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
    pub(crate) const fn of(values: Vec<f64>) -> Self {
        Self {
            values,
            disturbance: 0.0,
            lost: 0,
            cut: false,
        }
    }

    /// The same where so many events are unaccounted for.
    pub(crate) fn with_lost(self, lost: u64) -> Self {
        Self { lost, ..self }
    }
}

/// One of the things compared under a load of type `L`.
pub(crate) trait Subject<L>: Sync {
    /// As it stands in tables and rows.
    fn name(&self) -> String;
    /// One run. Each is on a thread of its own, so that it may pin itself.
    ///
    /// # Errors
    /// Why it cannot run here.
    fn run(&self, load: &L) -> Result<Run, String>;
}

/// A subject whose run is a function.
struct Named<F> {
    name: String,
    run: F,
}

impl<L, F: Fn(&L) -> Result<Run, String> + Sync> Subject<L> for Named<F> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn run(&self, load: &L) -> Result<Run, String> {
        (self.run)(load)
    }
}

/// A subject whose run is a function.
pub(crate) fn subject<L>(
    name: impl Into<String>,
    run: impl Fn(&L) -> Result<Run, String> + Sync + 'static,
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
    /// One metric's values, one per repetition.
    pub(crate) fn values(&self, metric: usize) -> Vec<f64> {
        self.runs.iter().map(|run| run.values[metric]).collect()
    }

    /// The values of the less disturbed half of the runs.
    pub(crate) fn quiet_values(&self, metric: usize) -> Vec<f64> {
        let disturbances: Vec<f64> = self.runs.iter().map(|run| run.disturbance).collect();
        let quiet = quieter_half(&disturbances);
        quiet
            .iter()
            .map(|&at| self.runs[at].values[metric])
            .collect()
    }

    /// Median, best quartile and best of a metric.
    pub(crate) fn spread(&self, metric: usize, better: Better) -> Spread {
        let values = self.values(metric);
        let (quartile, best) = match better {
            Better::Lower => (0.25, 0.0),
            Better::Higher => (0.75, 1.0),
        };
        let of = |q| quantile(&values, q).unwrap_or(f64::NAN);
        Spread {
            median: of(0.5),
            best_quartile: of(quartile),
            best: of(best),
        }
    }

    pub(crate) fn lost(&self) -> u64 {
        self.runs.iter().map(|run| run.lost).sum()
    }

    pub(crate) fn cut(&self) -> usize {
        self.runs.iter().filter(|run| run.cut).count()
    }

    /// The median of the runs' disturbances, 0 to 1.
    pub(crate) fn disturbance(&self) -> f64 {
        let disturbances: Vec<f64> = self.runs.iter().map(|run| run.disturbance).collect();
        median(&disturbances).unwrap_or(0.0)
    }
}

/// Three figures of one metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) best_quartile: f64,
    pub(crate) best: f64,
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

    /// Two subjects' values of a metric, repetition by repetition.
    pub(crate) fn pairs(&self, subject: &str, versus: &str, metric: usize) -> Vec<(f64, f64)> {
        match (self.of(subject), self.of(versus)) {
            (Some(subject), Some(versus)) => {
                let (subject, versus) = (subject.values(metric), versus.values(metric));
                subject.into_iter().zip(versus).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The ratio of two subjects of this trial; more than 1 means that the first is better.
    pub(crate) fn interval(&self, [subject, versus]: [&str; 2], metric: usize) -> Option<Interval> {
        let pairs = self.pairs(subject, versus, metric);
        paired_ratio(&pairs, self.metrics[metric].better)
    }
}

#[cfg(test)]
impl Trial {
    /// Each subject with a few runs of these values, in which nothing was lost.
    pub(crate) fn scripted(
        case: &str,
        metrics: &'static [Metric],
        subjects: &[(&str, &[f64])],
    ) -> Self {
        let series = subjects.iter().map(|(subject, values)| {
            let run = Run::of(values.to_vec());
            Series {
                subject: (*subject).to_owned(),
                runs: vec![run; 6],
            }
        });
        Self {
            case: case.to_owned(),
            metrics,
            series: series.collect(),
            skipped: Vec::new(),
        }
    }
}

/// In which order `count` subjects run in this repetition. In every `count` repetitions each has
/// each place once; the next `count` begin with another shuffle.
pub(crate) fn order(count: usize, repetition: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if count == 0 {
        return order;
    }
    let mut random = SplitMix::new((repetition / count) as u64);
    for left in (1..count).rev() {
        order.swap(left, random.below(left as u64 + 1) as usize);
    }
    order.rotate_left(repetition % count);
    order
}

/// After this time a run is taken for one that will never end, as where a wake-up was lost.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// One run on a thread of its own. If it does not end, nor does this program's work: it says who
/// hangs, and exits.
fn run_watched<L: Sync>(
    case: &str,
    subject: &dyn Subject<L>,
    load: &L,
) -> std::thread::Result<Result<Run, String>> {
    let (ended, end) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
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
    })
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
            let subject = subjects[at];
            match run_watched(case, subject, load) {
                Ok(Ok(run)) => {
                    assert_eq!(run.values.len(), metrics.len(), "a value per metric");
                    done.push(run);
                }
                Ok(Err(why)) => runs[at] = Err(why),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    }
    let mut trial = Trial {
        case: case.to_owned(),
        metrics,
        series: Vec::new(),
        skipped: Vec::new(),
    };
    for (subject, runs) in subjects.iter().zip(runs) {
        let subject = subject.name();
        match runs {
            Ok(runs) => trial.series.push(Series { subject, runs }),
            Err(why) => trial.skipped.push((subject, why)),
        }
    }
    trial
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_subject_has_each_place_once() {
        for count in [1, 2, 3, 7, 20] {
            for block in 0..3 {
                let orders: Vec<_> = (0..count)
                    .map(|at| order(count, block * count + at))
                    .collect();
                for place in 0..count {
                    let mut at_place: Vec<usize> =
                        orders.iter().map(|order| order[place]).collect();
                    at_place.sort_unstable();
                    assert_eq!(at_place, (0..count).collect::<Vec<_>>());
                }
            }
        }
        assert!(order(0, 5).is_empty());
        assert_ne!(order(20, 0), order(20, 20), "another shuffle");
    }

    struct Scripted<'l> {
        name: &'static str,
        log: &'l Mutex<Vec<&'static str>>,
        values: &'l [f64],
    }

    impl Subject<f64> for Scripted<'_> {
        fn name(&self) -> String {
            self.name.to_owned()
        }
        fn run(&self, load: &f64) -> Result<Run, String> {
            let mut log = self.log.lock().unwrap();
            let at = log.iter().filter(|name| **name == self.name).count();
            log.push(self.name);
            let value = self.values.get(at).ok_or("no more values")?;
            Ok(Run {
                values: vec![value * load],
                disturbance: *value,
                lost: 1,
                cut: *value > 3.0,
            })
        }
    }

    const COST: &[Metric] = &[Metric::lower("cost", "ns")];

    #[test]
    fn runs_are_paired_by_repetition_and_a_failing_subject_is_told() {
        let log = Mutex::new(Vec::new());
        let (left, right) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let subject = |name, values| Scripted {
            name,
            log: &log,
            values,
        };
        let (a, b, c) = (
            subject("a", &left[..]),
            subject("b", &right[..]),
            subject("c", &left[..1]),
        );
        let trial = interleave("case", COST, &[&a, &b, &c], &10.0, 4);
        let pairs = [(10.0, 50.0), (20.0, 60.0), (30.0, 70.0), (40.0, 80.0)];
        assert_eq!(trial.pairs("a", "b", 0), pairs);
        assert!(trial.pairs("a", "z", 0).is_empty());
        let skipped = [("c".to_owned(), "no more values".to_owned())];
        assert_eq!(trial.skipped, skipped);
        let series = trial.of("a").unwrap();
        assert_eq!(series.quiet_values(0), [10.0, 20.0]);
        let spread = Spread {
            median: 25.0,
            best_quartile: 17.5,
            best: 10.0,
        };
        assert_eq!(series.spread(0, Better::Lower), spread);
        assert_eq!(series.spread(0, Better::Higher).best, 40.0);
        assert_eq!((series.lost(), series.cut()), (4, 1));
        assert_eq!(series.disturbance(), 2.5);
    }
}
