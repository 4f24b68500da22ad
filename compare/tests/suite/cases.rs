//! Patterns and settings of cases, the order of runs, and reports.

use std::sync::Mutex;
use std::time::Duration;

use thalweg_compare::case::{Goal, Limit, Patterns, Settings};
use thalweg_compare::report::{Report, ns, show, times};
use thalweg_compare::runner::{Metric, Run, Series, Subject, Trial, interleave, order, subject};
use thalweg_measure::statistics::Better;

#[test]
fn patterns_are_parts_of_the_path() {
    let wants = |text: &str, path: &str| Patterns::parse(text).unwrap().wants(path);
    assert!(wants("inline", "pipeline/1M/s/thalweg inline"));
    assert!(!wants("inline", "pipe/1M/s/thalweg auto"));
    assert!(wants("1M*inline", "pipeline/1M/s/thalweg inline"));
    assert!(!wants("inline*1M", "pipe/1M/s/thalweg inline"));
    assert!(wants("2M, auto", "1M/s/thalweg auto"));
    assert!(wants("*", "1M/s/thalweg auto"));
    assert!(Patterns::default().wants("1M/s/thalweg auto"));
    for text in ["", ",", "a,", "a,,b", " "] {
        let error = Patterns::parse(text).unwrap_err();
        assert_eq!(error, format!("pattern {text:?} has an empty part"));
    }
}

#[test]
fn short_runs_do_not_decide() {
    let settings = |quick, repetitions, scale| Settings {
        quick,
        repetitions,
        scale,
        ..Settings::default()
    };
    assert!(settings(false, None, None).decides());
    assert!(!settings(true, None, None).decides());
    assert!(!settings(false, Some(5), None).decides());
    assert!(!settings(false, None, Some(0.5)).decides());
    assert_eq!(settings(true, None, None).count(10), 2);
    assert_eq!(settings(true, None, None).count(1), 1);
    assert_eq!(settings(true, None, None).repetitions(11), 3);
    assert_eq!(settings(true, None, None).repetitions(1), 1);
}

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
    let all: Vec<&Subject<f64>> = all.iter().collect();
    const COST: &[Metric] = &[Metric::lower("cost", "ns")];
    let mut trial = interleave("case", COST, &all, &10.0, (4, Duration::from_secs(60)));
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

const COST: &[Metric] = &[Metric::lower("cost", "ns")];

fn trial() -> Trial {
    let series = |subject: &str, scale: f64, lost: u64| Series {
        subject: subject.to_owned(),
        runs: [1.0, 1.1, 1.2, 1.0, 1.1, 1.2]
            .map(|value| Run {
                disturbance: 0.5,
                ..Run::of([value * scale]).with_lost(lost)
            })
            .to_vec(),
    };
    Trial {
        case: "case".to_owned(),
        metrics: COST,
        series: vec![
            series("slow", 8.0, 0),
            series("thalweg a", 4.0, 0),
            series("broken", 1.0, 7),
            series("thalweg b", 2.0, 0),
            series("fast", 6.0, 0),
            series("raw line", 0.5, 0),
        ],
        skipped: vec![("c".to_owned(), "no core".to_owned())],
    }
}

#[test]
fn a_trial_becomes_a_table_rows_and_comparisons_and_losers_do_not_count() {
    let mut report = Report::new("test");
    report.trial("costs", &trial(), &[0]);
    assert!(report.text.starts_with("case: costs\nsubject"));
    for part in [
        "c skipped: no core",
        "noisy: gaps above 5 µs took up to 50.0 %",
    ] {
        assert!(report.text.contains(part), "{}", report.text);
    }
    let rows = report.rows.join("\n");
    for (part, count) in [
        (
            r#""case":"case","subject":"slow","metric":"cost","unit":"ns""#,
            1,
        ),
        (r#""metric":"lost","unit":"events","value":42.0"#, 1),
        (r#""subject":"thalweg b","versus":"fast","ratio":3.0"#, 1),
        (r#""subject":"thalweg b","versus":"slow""#, 1),
        (r#""subject":"thalweg a","versus":"fast""#, 1),
        (r#""versus":"raw line""#, 0),
    ] {
        assert_eq!(rows.matches(part).count(), count, "{part}\n{rows}");
    }
}

#[test]
fn figures_are_held_against_their_limits() {
    let goals = || {
        vec![
            Goal::at_most("thalweg b", 0, 2.2),
            Goal::at_most("thalweg b", 0, 2.1),
            Goal::at_most("missing", 0, 2.1),
            Goal::Best(0, Limit::AtLeast(2.5)),
            Goal::ratio(["thalweg a", "fast"], 0, 2.0),
            Goal::shown(["thalweg a", "fast"], 0),
        ]
    };
    let verdicts = |decides| {
        let mut report = Report::new("test");
        report.goals(goals(), trial());
        let two = r#""versus":"fast""#;
        assert_eq!(report.rows.join("\n").matches(two).count(), 2);
        report.target("nothing", Limit::AtMost(2.0), Some(f64::NAN), ns);
        report.finish(decides);
        let lines = report.text.lines().skip(3);
        lines.map(|line| line.to_owned()).collect::<Vec<_>>()
    };
    let decided = verdicts(true);
    assert!(
        decided[0].starts_with("case cost: thalweg b"),
        "{decided:?}"
    );
    let ends = [
        "met", "MISSED", "not run", "met", "MISSED", "1.50×", "MISSED", "met",
    ];
    for (line, end) in decided.iter().zip(ends) {
        assert!(line.trim_end().ends_with(end), "{line} {end}");
    }
    assert!(decided[3].contains("thalweg b over fast [3.00×, 3.00×]"));
    assert!(verdicts(false)[0].ends_with("too few runs"));
}

#[test]
fn figures_for_people() {
    assert_eq!(
        (times(123.4), times(1.234)),
        ("123×".into(), "1.23×".into())
    );
    assert_eq!(show("1/s")(8_300_000.0), "8.300 M/s");
    assert_eq!(
        (ns(3.97), ns(43_210.0)),
        ("4.0 ns".into(), "43.2 µs".into())
    );
}
