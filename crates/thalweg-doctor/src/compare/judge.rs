//! Judges the measured runs of two commands.

use crate::compare::{Arm, CommandLine, Plan, Run, Taken};
use serde::Serialize;
use std::fmt;
use thalweg_measure::statistics::{
    Interval, REPETITIONS_MIN, holm, median, rank_sum, relative_shift_interval, shift_interval,
};
use thalweg_measure::table::{Cell, Nanoseconds, Table, three_digits};

/// A difference is reported where Holm's p is below this level.
pub const LEVEL: f64 = 0.05;
/// A command counts as contaminated where others took this much more of its runs, as a share of
/// their time, and where the runs show this significantly.
pub const CONTAMINATION: f64 = 0.02;

/// The result for one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    /// B takes less time.
    Faster,
    /// B takes more time.
    Slower,
    /// B has less of it.
    Less,
    /// B has more of it.
    More,
    /// The runs do not distinguish the two commands.
    #[serde(rename = "not shown to differ")]
    NotShown,
    /// Others took more time from one of the two commands.
    Contaminated,
}

/// The interval of a difference that no runs show.
const NO_INTERVAL: Interval = Interval {
    value: 0.0,
    low: f64::NEG_INFINITY,
    high: f64::INFINITY,
};

/// Returns the interval in per cent.
fn percent(interval: Interval) -> Interval {
    Interval {
        value: interval.value * 100.0,
        low: interval.low * 100.0,
        high: interval.high * 100.0,
    }
}

/// Formats the value with one decimal and its sign, and with its bounds where there are any.
fn shown(interval: Interval) -> String {
    let bounds = match interval.is_bounded() {
        true => format!(" {}", interval.bounds(|bound| format!("{bound:+.1}"))),
        false => String::new(),
    };
    format!("{:+.1}{bounds}", interval.value)
}

/// The values of one metric for both commands.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The name of the metric.
    pub metric: &'static str,
    /// The name for people.
    #[serde(skip)]
    pub title: &'static str,
    /// The unit of all values but the shares.
    pub unit: Unit,
    /// The median of A's runs.
    pub a: f64,
    /// The median of B's runs.
    pub b: f64,
    /// The difference B - A.
    pub shift: Interval,
    /// The difference in per cent of A's median; `None` where that median is 0.
    pub shift_percent: Option<Interval>,
    /// The statistic of the Mann-Whitney test: the number of pairs of runs in which B's value is
    /// larger.
    pub u: f64,
    /// The probability that two equal commands would differ as much.
    pub p: f64,
    /// This probability with Holm's correction over all metrics that vary at all.
    pub p_holm: f64,
    /// The conclusion.
    pub verdict: Finding,
}

/// A command and its runs.
#[derive(Debug, Clone, Serialize)]
pub struct Side {
    /// The command line that was given.
    pub command: String,
    /// Whether a shell ran it.
    pub shell: bool,
    /// The median of what others took of its runs.
    pub taken: Taken,
    /// All of its runs, in order.
    pub runs: Vec<Run>,
}

/// The whole result of a comparison.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The verdict on the wall time.
    pub verdict: Finding,
    /// The command that others took more time from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contaminated: Option<Arm>,
    /// The share of time that others took of B's runs minus that of A's runs.
    pub taken_shift: Interval,
    /// Advice on what to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// All metrics.
    pub metrics: Vec<Row>,
    /// The number of measured runs of each command.
    pub n: usize,
    /// The number of unmeasured warm-up runs of each command.
    pub warmup: usize,
    /// The seed for the order of the runs.
    pub seed: u64,
    /// The first command.
    pub a: Side,
    /// The second.
    pub b: Side,
}

/// Returns how much more time others took of B than of A, as a share of its time.
fn taken_shift(pairs: &[(Run, Run)], seed: u64) -> Interval {
    let shares = pairs
        .iter()
        .map(|(a, b)| (a.taken.share(), b.taken.share()));
    let shares: Vec<(f64, f64)> = shares.collect();
    shift_interval(&shares, seed).unwrap_or(NO_INTERVAL)
}

fn taken(runs: &[Run]) -> Taken {
    let middle = |of: fn(Taken) -> f64| {
        let shares: Vec<f64> = runs.iter().map(|run| of(run.taken)).collect();
        median(&shares).unwrap_or(0.0)
    };
    Taken {
        wait_share: middle(|taken| taken.wait_share),
        steal_share: middle(|taken| taken.steal_share),
    }
}

/// Returns the command that others took more time from, if the runs show it.
fn contaminated(a: &[Run], b: &[Run]) -> Option<Arm> {
    let shares = |runs: &[Run]| -> Vec<f64> { runs.iter().map(|run| run.taken.share()).collect() };
    let (a, b) = (shares(a), shares(b));
    let shift = thalweg_measure::statistics::shift(&a, &b)?;
    let is_different = rank_sum(&a, &b)?.p < LEVEL && shift.abs() > CONTAMINATION;
    is_different.then_some(if shift > 0.0 { Arm::B } else { Arm::A })
}

fn rows(pairs: &[(Run, Run)], seed: u64) -> Vec<Row> {
    let mut rows: Vec<Row> = METRICS
        .iter()
        .filter_map(|metric| row(metric, pairs, seed))
        .collect();
    // A metric that does not vary cannot give a false alarm, so it takes no part in the correction.
    let varying: Vec<usize> = (0..rows.len()).filter(|&at| rows[at].p < 1.0).collect();
    let ps: Vec<f64> = varying.iter().map(|&at| rows[at].p).collect();
    for (at, p_holm) in varying.into_iter().zip(holm(&ps)) {
        rows[at].p_holm = p_holm;
    }
    for (row, metric) in rows.iter_mut().zip(METRICS) {
        debug_assert_eq!(row.metric, metric.name);
        row.verdict = match (row.p_holm < LEVEL, row.shift.value > 0.0) {
            (false, _) => Finding::NotShown,
            (true, true) if metric.is_speed => Finding::Slower,
            (true, false) if metric.is_speed => Finding::Faster,
            (true, true) => Finding::More,
            (true, false) => Finding::Less,
        };
    }
    rows
}

fn row(metric: &RunMetric, pairs: &[(Run, Run)], seed: u64) -> Option<Row> {
    let values: Option<Vec<(f64, f64)>> = pairs
        .iter()
        .map(|(a, b)| (metric.of)(a).zip((metric.of)(b)))
        .collect();
    let values = values?;
    let (a, b): (Vec<f64>, Vec<f64>) = values.iter().copied().unzip();
    let test = rank_sum(&a, &b)?;
    let shift = shift_interval(&values, seed)?;
    let middle = median(&a)?;
    Some(Row {
        metric: metric.name,
        title: metric.title,
        unit: metric.unit,
        a: middle,
        b: median(&b)?,
        shift,
        shift_percent: relative_shift_interval(&values, seed).map(percent),
        u: test.u,
        p: test.p,
        p_holm: 1.0,
        verdict: Finding::NotShown,
    })
}

/// A metric of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunMetric {
    /// The name in JSON.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Returns its value for a run; `None` where the system does not report it.
    pub of: fn(&Run) -> Option<f64>,
    /// Whether a smaller value is called "faster" rather than "less".
    pub is_speed: bool,
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Unit {
    /// The value is in seconds.
    #[serde(rename = "s")]
    Seconds,
    /// The value is in bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// The value is a count.
    #[serde(rename = "1")]
    Count,
}

macro_rules! metrics {
    ($($name:ident $title:literal $unit:ident $is_speed:literal $of:expr;)*) => {
        /// All metrics, in the order of a report.
        pub const METRICS: &[RunMetric] = &[
            $(RunMetric {
                name: stringify!($name),
                title: $title,
                unit: Unit::$unit,
                of: $of,
                is_speed: $is_speed,
            },)*
        ];
    };
}

metrics! {
    wall "wall time" Seconds true |run| Some(run.wall);
    user "user CPU" Seconds true |run| Some(run.user);
    system "system CPU" Seconds true |run| Some(run.system);
    max_rss "max RSS" Bytes false |run| Some(run.max_rss);
    minor_faults "page faults, minor" Count false |run| Some(run.minor_faults);
    major_faults "page faults, major" Count false |run| Some(run.major_faults);
    voluntary_switches "switches, voluntary" Count false |run| Some(run.voluntary_switches);
    involuntary_switches "switches, involuntary" Count false |run| Some(run.involuntary_switches);
    queue_wait "run-queue wait" Seconds false |run| run.queue_wait;
}

impl Unit {
    /// Formats a value for people, with three digits.
    #[must_use]
    pub fn shown(self, value: f64) -> String {
        match self {
            Unit::Seconds if value == 0.0 => "0 s".to_owned(),
            Unit::Seconds => Nanoseconds(value * 1e9).to_string(),
            Unit::Count => format!("{value:.0}"),
            Unit::Bytes => {
                let size = value.abs();
                let (scale, name) = match size {
                    _ if size < 999.5 => return format!("{value:.0} B"),
                    _ if size < 999.5e3 => (1e3, "kB"),
                    _ if size < 999.5e6 => (1e6, "MB"),
                    _ => (1e9, "GB"),
                };
                format!("{} {name}", three_digits(value / scale))
            }
        }
    }

    /// Formats a difference for people, with its sign.
    #[must_use]
    pub fn signed(self, value: f64) -> String {
        let sign = if value > 0.0 { "+" } else { "" };
        format!("{sign}{}", self.shown(value))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Finding::Faster => "B is faster",
            Finding::Slower => "B is slower",
            Finding::Less => "B has less",
            Finding::More => "B has more",
            Finding::NotShown => "not shown to differ",
            Finding::Contaminated => "contaminated",
        })
    }
}

fn p(p: f64) -> String {
    if p < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}

fn cells(row: &Row) -> [Cell; 7] {
    let mut difference = row.unit.signed(row.shift.value);
    if row.shift.is_bounded() {
        let [low, high] = [row.shift.low, row.shift.high].map(|bound| row.unit.signed(bound));
        difference += &format!(" [{low}, {high}]");
    }
    let percent = row.shift_percent.map(shown);
    [
        Cell::Text(row.title.to_owned()),
        Cell::Number(row.unit.shown(row.a)),
        Cell::Number(row.unit.shown(row.b)),
        Cell::Number(difference),
        Cell::Number(percent.unwrap_or_else(|| "-".to_owned())),
        Cell::Number(p(row.p_holm)),
        Cell::Text(row.verdict.to_string()),
    ]
}

impl Comparison {
    /// Judges the pairs of runs of a plan, whose command lines are `commands`.
    #[must_use]
    pub fn of(plan: &Plan, commands: [&str; 2], pairs: &[(Run, Run)]) -> Comparison {
        let (a, b): (Vec<Run>, Vec<Run>) = pairs.iter().copied().unzip();
        let contaminated = contaminated(&a, &b);
        let mut metrics = rows(pairs, plan.seed);
        if contaminated.is_some() {
            let rows = metrics.iter_mut();
            rows.for_each(|row| row.verdict = Finding::Contaminated);
        }
        let side = |line: &CommandLine, command: &str, runs: Vec<Run>| Side {
            command: command.to_owned(),
            shell: matches!(line, CommandLine::Shell(_)),
            taken: taken(&runs),
            runs,
        };
        let wall = metrics.first().map(|row| row.verdict);
        let mut comparison = Comparison {
            verdict: wall.unwrap_or(Finding::NotShown),
            contaminated,
            taken_shift: taken_shift(pairs, plan.seed),
            next: None,
            metrics,
            n: pairs.len(),
            warmup: plan.warmup,
            seed: plan.seed,
            a: side(&plan.a, commands[0], a),
            b: side(&plan.b, commands[1], b),
        };
        comparison.next = comparison.next_step();
        comparison
    }

    fn next_step(&self) -> Option<String> {
        let [a, b] = [&self.a, &self.b].map(|side| side.taken.share());
        if self.contaminated.is_some() {
            return Some(format!(
                "Others took {:.1} % of the time of A's runs and {:.1} % of B's, so the difference \
                 may be theirs. Stop what else runs on this machine, also what one of the commands \
                 may have left running, and compare again.",
                a * 100.0,
                b * 100.0
            ));
        }
        if a.max(b) > CONTAMINATION {
            let shift = percent(self.taken_shift);
            let apart = match shift.is_bounded() {
                true => format!("B's less A's: {}", shown(shift)),
                false => "too few runs for an interval".to_owned(),
            };
            return Some(format!(
                "Others took {:.1} % of the time of A's runs and {:.1} % of B's. That these differ \
                 by more than {:.0} % is not shown ({apart}); what they took of one alone may \
                 still be a part of a difference. A quiet machine tells more.",
                a * 100.0,
                b * 100.0,
                CONTAMINATION * 100.0,
            ));
        }
        let shift = self.metrics.first()?.shift_percent?;
        (self.verdict == Finding::NotShown).then(|| match shift.is_bounded() {
            true => format!(
                "The wall times differ by {:.1} % at most, as far as these runs can tell; four \
                 times as many (-n {}) would halve that.",
                shift.low.abs().max(shift.high.abs()).max(shift.value.abs()),
                self.n * 4
            ),
            false => format!(
                "{} runs of each are too few to tell how large a difference may be: ask for {} or \
                 more (-n).",
                self.n, REPETITIONS_MIN
            ),
        })
    }

    /// Returns the verdict, and the times that show a difference.
    fn headline(&self) -> String {
        let is_different = |row: &&Row| matches!(row.verdict, Finding::Faster | Finding::Slower);
        let text = |row: &Row| {
            let shift = row.shift_percent.map_or_else(String::new, shown);
            format!("{} {shift} %", row.title)
        };
        let times: Vec<String> = self.metrics.iter().filter(is_different).map(text).collect();
        let times = times.join(", ");
        let but = match times.is_empty() {
            true => String::new(),
            false => format!("; but {times}"),
        };
        match (self.verdict, self.metrics.first()) {
            (Finding::NotShown, Some(wall)) if wall.shift.excludes(0.0) => {
                let all = format!("(taken alone; p over all metrics is {})", p(wall.p_holm));
                format!("{}: {} {all}{but}", Finding::NotShown, text(wall))
            }
            (unknown @ Finding::NotShown, Some(wall)) => format!("{unknown}: {}{but}", text(wall)),
            (verdict, _) if times.is_empty() => verdict.to_string(),
            (verdict, _) => format!("{verdict}: {times}"),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &Side| {
            let way = if side.shell { "  (run by sh -c)" } else { "" };
            format!("{}{way}", side.command)
        };
        writeln!(f, "A  {}\nB  {}", side(&self.a), side(&self.b))?;
        write!(f, "{} runs of each, seed {}: ", self.n, self.seed)?;
        writeln!(f, "{}", self.headline())?;
        if let Some(next) = &self.next {
            writeln!(f, "{next}")?;
        }
        let head = ["metric", "A", "B", "B - A", "per cent of A", "p", "verdict"];
        let mut table = Table::new(head);
        for row in &self.metrics {
            table.row(cells(row));
        }
        write!(f, "\n{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_measure::random::SplitMix;

    /// Creates a run of about 0.3 s on a machine with a noise of about 3 %, and sometimes much
    /// more.
    fn run(random: &mut SplitMix, factor: f64, taken: f64) -> Run {
        let wall = 0.3 * factor + 0.003 * random.exponential() * random.exponential();
        let system = 0.001 * random.below(20) as f64;
        Run {
            wall,
            user: (wall - system).max(0.0),
            system,
            max_rss: (1_000 + random.below(8)) as f64 * 4096.0,
            minor_faults: 100.0 + random.below(3) as f64,
            major_faults: 0.0,
            voluntary_switches: random.below(4) as f64,
            involuntary_switches: random.below(9) as f64,
            queue_wait: Some(0.001 * random.exponential()),
            taken: Taken {
                wait_share: taken * random.exponential(),
                steal_share: 0.0,
            },
        }
    }

    fn plan(seed: u64) -> Plan {
        Plan {
            a: CommandLine::parse("old").expect("a command"),
            b: CommandLine::parse("new | cat").expect("a command"),
            runs: 20,
            warmup: 1,
            seed,
            ignores_failure: false,
            shows_output: false,
        }
    }

    fn compared(seed: u64, n: usize, factor: f64, taken: [f64; 2]) -> Comparison {
        let mut random = SplitMix::new(seed);
        let mut pair = |_| {
            let a = run(&mut random, 1.0, taken[0]);
            (a, run(&mut random, factor, taken[1]))
        };
        let pairs: Vec<(Run, Run)> = (0..n).map(&mut pair).collect();
        Comparison::of(&plan(seed), ["old", "new | cat"], &pairs)
    }

    fn wall(comparison: &Comparison) -> Row {
        comparison.metrics[0].clone()
    }

    #[test]
    fn a_slower_command_is_reported_with_its_shift() {
        let slower = compared(1, 20, 1.05, [0.0; 2]);
        assert_eq!(slower.verdict, Finding::Slower);
        let shift = wall(&slower).shift_percent.expect("A takes time");
        assert!(shift.low < 5.0 && 5.0 < shift.high, "{shift:?}");
        assert_eq!(compared(1, 20, 0.95, [0.0; 2]).verdict, Finding::Faster);
        let page = slower.to_string();
        for part in [
            "A  old\n",
            "B  new | cat  (run by sh -c)",
            "B is slower: wall time +",
        ] {
            assert!(page.contains(part), "{page}");
        }
        assert!(
            page.lines().all(|line| line.chars().count() <= 130),
            "{page}"
        );
    }

    #[test]
    fn equal_commands_differ_in_at_most_one_of_twenty_tries() {
        let is_different = |seed: &u64| {
            let equal = compared(*seed, 12, 1.0, [0.0; 2]);
            let mut rows = equal.metrics.iter();
            rows.any(|row| row.verdict != Finding::NotShown)
        };
        let different = (0..60).filter(is_different).count();
        // The limit is 5 % and three deviations of 60 tries; a judge that never finds a difference
        // fails too.
        assert!((1..=8).contains(&different), "{different} of 60");
    }

    #[test]
    fn no_difference_comes_with_what_could_have_been_seen() {
        let equal = compared(2, 20, 1.0, [0.0; 2]);
        assert_eq!(equal.verdict, Finding::NotShown, "{equal}");
        let next = equal.next.expect("there is a step");
        assert!(next.contains("at most") && next.contains("-n 80"), "{next}");
    }

    #[test]
    fn processor_time_may_tell_what_wall_time_does_not() {
        let mut random = SplitMix::new(6);
        let mut pair = |_| {
            let [a, b] = [1.0, 1.05].map(|factor| run(&mut random, factor, 0.1));
            let [disturbed_a, disturbed_b] = [(); 2].map(|()| 0.3 + 0.2 * random.exponential());
            let of = |run, wall| Run { wall, ..run };
            (of(a, disturbed_a), of(b, disturbed_b))
        };
        let pairs: Vec<(Run, Run)> = (0..20).map(&mut pair).collect();
        let found = Comparison::of(&plan(6), ["old", "new | cat"], &pairs);
        assert_eq!(found.verdict, Finding::NotShown);
        let page = found.to_string();
        assert!(page.contains("; but user CPU +"), "{page}");
    }

    #[test]
    fn a_metric_that_does_not_vary_takes_no_part() {
        let equal = compared(3, 20, 1.0, [0.0; 2]);
        let faults = equal
            .metrics
            .iter()
            .find(|row| row.metric == "major_faults");
        let faults = faults.expect("it is a metric");
        assert_eq!((faults.p_holm, faults.verdict), (1.0, Finding::NotShown));
        assert_eq!(faults.shift_percent, None);
        let wall = wall(&compared(3, 20, 1.05, [0.0; 2]));
        // Eight other metrics vary.
        assert!((wall.p_holm / wall.p - 8.0).abs() < 1e-9, "{wall:?}");
    }

    #[test]
    fn what_others_took_from_one_of_them_leaves_no_verdict() {
        for (taken, arm) in [
            ([0.0, 0.2], Arm::B),
            ([0.2, 0.0], Arm::A),
            ([0.1, 0.5], Arm::B),
        ] {
            let found = compared(4, 20, 1.3, taken);
            assert_eq!(found.contaminated, Some(arm));
            assert_eq!(found.verdict, Finding::Contaminated);
            let is_different = |row: &&Row| row.verdict != Finding::Contaminated;
            assert_eq!(found.metrics.iter().filter(is_different).count(), 0);
            assert!(
                found
                    .next
                    .as_ref()
                    .is_some_and(|next| next.contains("Stop what else"))
            );
            assert!(found.to_string().contains(": contaminated\n"));
        }
        // A small disturbance, and an equal one of both commands, is no reason to refuse a verdict.
        assert_eq!(compared(4, 20, 1.3, [0.0, 0.01]).verdict, Finding::Slower);
        let both = compared(4, 20, 1.3, [0.2, 0.2]);
        assert_eq!((both.contaminated, both.verdict), (None, Finding::Slower));
        let next = both.next.expect("there is a step");
        assert!(
            next.contains("differ by more than 2 % is not shown (B's less A's: "),
            "{next}"
        );
    }

    #[test]
    fn what_is_not_shown_to_differ_is_not_called_the_same() {
        // By chance others took half as much again of B, and four runs are too few to show that.
        let page = (0..100).find_map(|seed| {
            let found = compared(seed, 4, 1.0, [0.5, 0.7]);
            let [a, b] = [&found.a, &found.b].map(|side| side.taken.share());
            let is_apart = found.contaminated.is_none() && b > a + 0.1;
            is_apart.then(|| found.to_string())
        });
        let page = page.expect("one of them is so");
        assert!(
            page.contains("more than 2 % is not shown (too few runs for an"),
            "{page}"
        );
        let few = compared(2, 4, 1.0, [0.0; 2]);
        let next = few.next.expect("there is a step");
        assert!(next.starts_with("4 runs of each are too few"), "{next}");
        let page = compared(2, 20, 1.0, [0.0; 2]).to_string();
        assert!(page.contains(": not shown to differ: wall time "), "{page}");
        assert!(
            !page.contains("inf") && !page.contains("the same"),
            "{page}"
        );
    }

    #[test]
    fn an_interval_that_leaves_out_0_is_explained_where_nothing_is_reported() {
        let found = (0..200).find_map(|seed| {
            let found = compared(seed, 20, 1.004, [0.0; 2]);
            let leaves_out = wall(&found).shift.excludes(0.0);
            (found.verdict == Finding::NotShown && leaves_out).then_some(found)
        });
        let found = found.expect("one of them is so");
        let why = format!(
            " % (taken alone; p over all metrics is {:.3})",
            wall(&found).p_holm
        );
        assert!(found.to_string().contains(&why), "{found}");
        let others = (0..20).map(|seed| compared(seed, 20, 1.0, [0.0; 2]));
        let other = others
            .into_iter()
            .find(|other| !wall(other).shift.excludes(0.0));
        let other = other.expect("one of them is so").to_string();
        assert!(!other.contains("alone"), "{other}");
    }

    #[test]
    fn nothing_falls_by_more_than_all_of_it() {
        let faster = compared(5, 20, 0.01, [0.0; 2]);
        for row in &faster.metrics {
            let low = row.shift_percent.map_or(0.0, |shift| shift.low);
            assert!(low >= -100.0, "{row:?}");
        }
        assert_eq!(faster.verdict, Finding::Faster);
    }

    #[test]
    fn json_has_the_verdicts_as_text() {
        let json = serde_json::to_value(compared(1, 20, 1.05, [0.0; 2])).expect("it serializes");
        assert_eq!(json["verdict"], "slower");
        assert_eq!(json["metrics"][0]["metric"], "wall");
        assert_eq!(json["metrics"][0]["unit"], "s");
        assert_eq!(json["metrics"][5]["verdict"], "not shown to differ");
        assert_eq!(
            (&json["a"]["shell"], &json["b"]["shell"]),
            (&false.into(), &true.into())
        );
        assert_eq!(json["b"]["runs"].as_array().map(Vec::len), Some(20));
        assert!(json.get("contaminated").is_none());
    }

    #[test]
    fn values_have_three_digits() {
        assert_eq!(Unit::Seconds.signed(0.0153), "+15.3 ms");
        assert_eq!(Unit::Seconds.signed(-2e-6), "-2.00 µs");
        assert_eq!(Unit::Seconds.signed(0.0), "0 s");
        assert_eq!(Unit::Count.signed(0.0), "0");
        let sizes = [999.0, 1e4, 4_096e3, 123_456_789.0, 9.996e9, -4_096.0];
        let shown = sizes.map(|bytes| Unit::Bytes.shown(bytes));
        let known = [
            "999 B", "10.0 kB", "4.10 MB", "123 MB", "10.0 GB", "-4.10 kB",
        ];
        assert_eq!(shown, known);
    }
}
