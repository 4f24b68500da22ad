//! Every experiment from the command line, in one process with tiny loads; and misuse.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Output};

fn compare(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_compare");
    let output = Command::new(program).args(arguments).output();
    output.expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

const TINY: [&str; 4] = ["--repetitions", "1", "--scale", "0.002"];

/// Returns standard output and standard error of a run that succeeds.
fn ran(arguments: &[&str]) -> [String; 2] {
    let output = compare(arguments);
    let [out, err] = [text(&output.stdout), text(&output.stderr)];
    assert!(output.status.success(), "{arguments:?}\n{err}\n{out}");
    [out, err]
}

/// Returns a field of a row.
fn field<'r>(row: &'r str, name: &str) -> Option<&'r str> {
    let (_, value) = row.split_once(&format!("\"{name}\":"))?;
    match value.strip_prefix('"') {
        Some(value) => value.split('"').next(),
        None => value.split([',', '}']).next(),
    }
}

/// README.md and docs/results.md quote these rows, or open work needs them: case, subject and
/// metric.
const NEEDED: &str = "\
pipeline/1M/s | no pipeline (the machine alone) | latency_p50
pipeline/1M/s | thalweg inline | latency_p99
pipeline/1M/s | thalweg auto | latency_p50
pipeline/1M/s | thalweg threads:1 | latency_p50
pipeline/1M/s | thalweg threads:3 | latency_p99
pipeline/1M/s | disruptor busy-spin:3 | latency_p50
pipeline/1M/s | disruptor sleep:3 | latency_p99
pipeline/1M/s | disruptor yield:3 pinned | latency_p50
pipeline/max batch 1 | disruptor busy-spin:1 pinned | throughput
pipeline/max batch 64 | thalweg caller:1+threads:1 | throughput
channels/one/8B/1024 | thalweg ring packed | time_per_message
channels/one/8B/1024 | gil spsc | time_per_message
channels/batch/8B/1024 | rtrb | time_per_message
channels/roundtrip/8B | omango spsc | round_trip_p50
channels/fanin/4x1 | crossbeam | time_per_message
channels/fanin/20x1 | thalweg | time_per_message
channels/fanin/20x1 | gil mpsc sharded | time_per_message
channels/fanout/1x20 | gil spmc | time_per_message
channels/sparse/20us/regular/across | thalweg spsc latency | latency_p50
channels/sparse/1ms/regular/shared-core | crossbeam | latency_p50
channels/oneshot/across | tokio oneshot | reply_p50
exchange/core/trading | thalweg all parts | cpu_per_command
exchange/core/sweeps | thalweg all parts | cpu_per_trade
exchange/core/resting_1m | thalweg all parts, batches of 256 | cpu_per_command
exchange/cores/engine/trading | thalweg service caller:1+threads:1 | throughput
exchange/cores/bytes/trading | thalweg apply_batch, a loop | throughput
gateway/websocket/1k | gateway, WebSocket API | acknowledged p50
gateway/websocket/1k | serve, binary protocol | acknowledged p99
gateway/rest/8 | hyper echo | orders a second
hash/short/8 | thalweg | time
hash/one/64KiB | C xxHash 0.8.3 | time
hash/scatter/1 | thalweg | time
hash/keys/8B | thalweg | time
journal/unsynced | BufWriter 64 KiB, no checksum | time of a record
journal/commit/1 | fjall | commit p50
journal/commit/256 | okaywal | commit p99
journal/commit/4096 | growing file + fdatasync | commit p50
journal/load/synced | thalweg-journal | time of a record
serve/tcp/32 | serve, durable | server's processor time of a command
serve/tcp/1 | serve, not durable, with reports | commands a second
serve/open-tcp/500k | bare echo | acknowledged p50
serve/light/32 | serve, not durable | acknowledged p50
serve/in-process/max | service without a journal | processor time of a command
serve/recovery | opened | commands a second
replicate/acknowledged/1k | three replicas | acknowledged p50
replicate/acknowledged/50k | bare etcd transactions | acknowledged p99
replicate/fault/both | three replicas | answered again after
tasks/one | thalweg fiber | time of one
tasks/many/in order | thalweg stack switch | time of one
tasks/peers/one | tokio oneshot, by hand | time of one
tasks/peers/one | futures unbounded, LocalSet | time of one
bus/publish/2/1024 | thalweg bus | time_of_a_call
bus/hop | disruptor (try, yield) | latency_p50
bus/stream/1 | tokio broadcast | time_per_message
bus/fan/2 | crossbeam, callbacks | time_per_message";

/// Returns the path and the metric of each row of [`NEEDED`].
fn needed() -> impl Iterator<Item = (String, &'static str)> {
    NEEDED
        .lines()
        .map(|row| match row.split(" | ").collect::<Vec<_>>()[..] {
            [case, subject, metric] => (format!("{case}/{subject}"), metric),
            _ => panic!("{row}"),
        })
}

/// Runs a case again, of which the machine has stopped a run of ours for 0.3 s, and so cut it.
/// Returns whether all of ours have figures.
fn is_whole(experiment: &str, case: &str) -> bool {
    let path = format!("{experiment}/{case}/");
    let case = [experiment, "--format", "json", "--cases", &path];
    let [rows, _] = ran(&[&case[..], &TINY[..]].concat());
    let is_cut = |row: &str| {
        let is_ours = field(row, "subject").is_some_and(|name| name.starts_with("thalweg"));
        is_ours && field(row, "value") == Some("null")
    };
    !rows.lines().any(is_cut)
}

/// Returns whether a metric is 0 only where something is wrong.
fn is_positive(metric: &str) -> bool {
    let parts = ["throughput", "p50", "slowest", "a second"];
    metric.starts_with("time") || parts.iter().any(|it| metric.contains(it))
}

/// Runs a subject of replicas again, which may be disturbed a few times. Returns its metrics.
fn metrics_of(path: &str) -> BTreeSet<String> {
    let case = ["replicate", "--format", "json", "--cases", path];
    let subject = path.rsplit('/').next();
    for _ in 0..4 {
        let [rows, _] = ran(&[&case[..], &TINY[..]].concat());
        let rows = rows.lines();
        let own =
            rows.filter(|row| field(row, "subject") == subject && !row.contains("\"ratio\":"));
        let metric = |row: &str| {
            let metric = field(row, "metric").expect("a row of figures has one");
            let value: f64 = field(row, "value").and_then(|value| value.parse().ok())?;
            assert!(value > 0.0 || !is_positive(metric), "{row}");
            Some(metric.to_owned())
        };
        let metrics: BTreeSet<String> = own.filter_map(metric).collect();
        if !metrics.is_empty() {
            return metrics;
        }
    }
    BTreeSet::new()
}

#[test]
fn every_row_of_every_case_is_there_and_sane() {
    let [listed, _] = ran(&["all", "--list"]);
    let paths: BTreeSet<&str> = listed.lines().collect();
    assert_eq!(paths.len(), listed.lines().count(), "a path twice");
    let [rows, noted] = ran(&[&["all", "--format", "json"], &TINY[..]].concat());
    // The metrics of each path.
    let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut cut = BTreeSet::new();
    for row in rows.lines() {
        let part = |name| field(row, name).unwrap_or_else(|| panic!("no {name}: {row}"));
        let (experiment, case, subject) = (part("experiment"), part("case"), part("subject"));
        if row.contains("\"ratio\":") {
            let ratio: f64 = part("ratio").parse().expect("a ratio");
            assert!(ratio > 0.0, "{row}");
            let versus = format!("{experiment}/{case}/{}", part("versus"));
            assert!(paths.contains(versus.as_str()), "{row}");
            continue;
        }
        let metric = part("metric");
        let path = format!("{experiment}/{case}/{subject}");
        assert!(paths.contains(path.as_str()), "{row}");
        let is_ours = subject.starts_with("thalweg");
        if part("value") == "null" && ["pipeline", "bus", "exchange"].contains(&experiment) {
            // The run was cut before its first event came, since three threads spin on two cores,
            // or all events were overwritten before the consumer took one.
            if is_ours {
                cut.insert([experiment, case]);
            }
            found.entry(path).or_default().insert(metric);
            continue;
        }
        let value: f64 = part("value").parse().unwrap_or(f64::NAN);
        assert!(value.is_finite() && value >= 0.0, "{row}");
        assert!(value > 0.0 || !is_positive(metric), "{row}");
        assert!(metric != "lost" || value == 0.0 || !is_ours, "{row}");
        found.entry(path).or_default().insert(metric);
    }
    for [experiment, case] in cut {
        assert!((0..10).any(|_| is_whole(experiment, case)), "{case} is cut");
    }
    let is_excused = |path: &str| {
        let skipped = noted
            .lines()
            .filter_map(|line| line.split_once(" skipped: "));
        let why = skipped.filter(|(skipped, _)| path.starts_with(skipped));
        // The machine has one core or no etcd, or the stream is not part of this repository.
        let excuses = ["needs 2 cores", ".csv.gz is not there", "there is no etcd"];
        why.into_iter()
            .any(|(_, why)| excuses.iter().any(|excuse| why.contains(excuse)))
    };
    // A replica takes over where the primary is not run, or its disk stands still, for 0.3 s.
    let mut again = BTreeMap::new();
    for path in &paths {
        let mut has = found.contains_key(*path) || is_excused(path);
        if !has && path.starts_with("replicate/") {
            let metrics = again.entry(*path).or_insert_with(|| metrics_of(path));
            has = !metrics.is_empty();
        }
        assert!(has, "no {path}\n{noted}");
    }
    for (path, metric) in needed() {
        assert!(paths.contains(path.as_str()), "{path}");
        let first = found.get(&path).is_some_and(|it| it.contains(metric));
        let has = first || (again.get(path.as_str())).is_some_and(|it| it.contains(metric));
        assert!(has || is_excused(&path), "no {metric} of {path}");
    }
}

#[test]
fn a_report_has_versions_ratios_and_targets_and_only_what_is_wanted() {
    let cases = ["hash", "--quick", "--cases", "one/512B,keys*8B*thalweg"];
    let [report, _] = ran(&[&cases[..], &TINY[..]].concat());
    for part in [
        "Peers: xxhash-c 0.",
        "one/512B: time of one hash\nsubject",
        "one/512B time: thalweg over C xxHash 0.8.3",
        "too few runs",
        "keys/8B time: thalweg over C xxHash 0.8.3",
        "not run",
        "events lost by this project's subjects",
    ] {
        assert!(report.contains(part), "{part}\n{report}");
    }
    assert!(!report.contains("one/4KiB"), "{report}");
}

#[test]
fn misuse_is_an_error() {
    let refused = |arguments: &[&str]| {
        let output = compare(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        text(&output.stderr)
    };
    let [list, _] = ran(&["--list"]);
    let names = list
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.collect();
    let names = names.join(", ");
    let expected = format!("error: no experiment \"pipelines\"; there are {names}, all\n");
    assert_eq!(refused(&["pipelines"]), expected);
    let none = refused(&[&["tasks", "--cases", "nosuch"], &TINY[..]].concat());
    let expected = "error: no case of \"tasks\" is asked for; there are one, many/in order, \
                    peers/one, ends, timers\n";
    assert_eq!(none, expected);
    for wrong in [
        &["pipeline", "--repetitions", "0"][..],
        &["pipeline", "--scale", "0"],
        &["pipeline", "--scale", "-1"],
        &["pipeline", "--scale", "1001"],
        &["pipeline", "--scale", "NaN"],
        &["pipeline", "--cases", ""],
        &["--child", "sleep", "/nowhere"],
        &[],
    ] {
        assert!(refused(wrong).contains("error"), "{wrong:?}");
    }
}
