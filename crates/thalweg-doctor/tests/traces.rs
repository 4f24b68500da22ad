//! Files for Perfetto and Firefox's profiler: each field is the one that its format documents.

use serde_json::Value;
use std::collections::BTreeSet;
use thalweg_doctor::recording::{Recording, Span, Stack, State, Track};

fn track(process: u32, thread: u32, spans: &[(u64, State)], end_ns: u64) -> Track {
    let span = |&(from_ns, state): &(u64, State)| Span { from_ns, state };
    Track {
        process,
        thread,
        name: format!("thread \"{thread}\"\n"),
        end_ns,
        spans: spans.iter().map(span).collect(),
        total_ns: [0; 3],
        spans_left_out: 0,
    }
}

fn stack(text: &str, weight_ns: u64) -> Stack {
    let frames = text.split(';').map(str::to_owned).collect();
    Stack { frames, weight_ns }
}

fn recording() -> Recording {
    use State::{Blocked, Runnable, Running};
    let first = [
        (1_000, Running),
        (3_500, Runnable),
        (4_000, Blocked),
        (4_000, Running),
    ];
    Recording {
        length_ns: 10_000,
        tracks: vec![
            track(70, 70, &first, 9_000),
            track(70, 71, &[(0, Blocked)], 10_000),
        ],
        on_cpu: vec![
            stack("main;parse", 1_000),
            stack("main;match;sys_read_[k]", 3_000),
            stack("main", 0),
        ],
        off_cpu: vec![stack("futex;futex_wait_queue", 2_000)],
        lacks: vec!["no wakes".to_owned()],
        ..Recording::default()
    }
}

fn array<'v>(value: &'v Value, name: &str) -> &'v Vec<Value> {
    value[name]
        .as_array()
        .unwrap_or_else(|| panic!("{name} is no array: {value}"))
}

/// The Trace Event Format: a complete event has a name, `ph`, `ts`, `dur`, `pid` and `tid`;
/// metadata has `args.name`. Times are in µs.
#[test]
fn a_trace_has_a_complete_event_for_each_span_and_names_of_processes_and_threads() {
    let text = recording().perfetto("./server").expect("it can be written");
    let trace: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(trace["displayTimeUnit"], "ns");
    assert_eq!(trace["otherData"]["command"], "./server");
    assert_eq!(trace["otherData"]["lacks"][0], "no wakes");
    let events = array(&trace, "traceEvents");
    for event in events {
        assert!(event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        assert!(event["name"].is_string(), "{event}");
        match event["ph"].as_str() {
            Some("X") => assert!(event["ts"].is_f64() && event["dur"].as_f64() > Some(0.0)),
            Some("M") => assert!(event["args"]["name"].is_string(), "{event}"),
            other => panic!("{other:?}"),
        }
    }
    let of_thread = events
        .iter()
        .filter(|it| it["tid"] == 70 && it["ph"] == "X");
    let slices: Vec<(&str, f64, f64)> = of_thread
        .map(|it| {
            let number = |name: &str| it[name].as_f64().expect("a number");
            (
                it["name"].as_str().expect("a name"),
                number("ts"),
                number("dur"),
            )
        })
        .collect();
    // The span without a length is left out.
    let expected = [
        ("running", 1.0, 2.5),
        ("runnable", 3.5, 0.5),
        ("running", 4.0, 5.0),
    ];
    assert_eq!(slices, expected);
    let names: Vec<(&Value, &Value)> = events
        .iter()
        .filter(|it| it["ph"] == "M")
        .map(|it| (&it["name"], &it["args"]["name"]))
        .collect();
    assert_eq!(
        names[0],
        (&"process_name".into(), &"thread \"70\"\n".into())
    );
    assert_eq!(names[1].0, "thread_name");
    assert_eq!(names.len(), 5, "{names:?}");
}

/// Slices of a thread nest, or do not overlap: else a viewer refuses them.
#[test]
fn stacks_are_nested_slices_as_wide_as_their_weights() {
    let text = recording().perfetto("x").expect("it can be written");
    let trace: Value = serde_json::from_str(&text).expect("it is JSON");
    let events = array(&trace, "traceEvents").iter();
    let stacks = events.filter(|it| it["cat"] == "stack");
    let slices: Vec<(&Value, f64, f64)> = stacks
        .map(|it| {
            let number = |name: &str| it[name].as_f64().expect("a number");
            (&it["name"], number("ts"), number("dur"))
        })
        .collect();
    let names: Vec<&Value> = slices.iter().map(|it| it.0).collect();
    let expected = [
        "main",
        "match",
        "sys_read_[k]",
        "main",
        "parse",
        "futex",
        "futex_wait_queue",
    ];
    assert_eq!(names, expected);
    let times: Vec<(f64, f64)> = slices.iter().map(|it| (it.1, it.2)).collect();
    assert_eq!(times[..3], [(0.0, 3.0); 3]);
    assert_eq!(times[3..5], [(3.0, 1.0); 2]);
    assert_eq!(times[5..], [(0.0, 2.0); 2]);
}

/// Checks that a table's columns have its length, and are these.
fn columns(table: &Value, expected: &[&str]) {
    let length = table["length"].as_u64().expect("a length") as usize;
    let found: BTreeSet<&str> = table
        .as_object()
        .expect("an object")
        .iter()
        .filter_map(|(name, column)| {
            let column = column.as_array()?;
            assert_eq!(column.len(), length, "{name}");
            Some(name.as_str())
        })
        .collect();
    assert_eq!(found, expected.iter().copied().collect());
}

/// Checks that all numbers of a column are rows of a table with this length.
fn rows(column: &Value, length: &Value) {
    let length = length.as_u64().expect("a length");
    for row in column.as_array().expect("a column") {
        assert!(
            row.is_null() || row.as_u64().is_some_and(|row| row < length),
            "{column}"
        );
    }
}

/// Checks the tables of a thread.
fn tables(thread: &Value, categories: usize) {
    assert!(thread["pid"].is_string() && thread["tid"].is_u64());
    let (stacks, frames) = (&thread["stackTable"], &thread["frameTable"]);
    columns(
        &thread["samples"],
        &["stack", "time", "weight", "threadCPUDelta"],
    );
    columns(
        &thread["markers"],
        &["name", "startTime", "endTime", "phase", "category", "data"],
    );
    columns(stacks, &["prefix", "frame", "category", "subcategory"]);
    columns(
        frames,
        &[
            "address",
            "inlineDepth",
            "category",
            "subcategory",
            "func",
            "nativeSymbol",
            "innerWindowID",
            "implementation",
            "line",
            "column",
        ],
    );
    columns(
        &thread["funcTable"],
        &[
            "name",
            "isJS",
            "relevantForJS",
            "resource",
            "fileName",
            "lineNumber",
            "columnNumber",
        ],
    );
    columns(&thread["resourceTable"], &["lib", "name", "host", "type"]);
    columns(
        &thread["nativeSymbols"],
        &["libIndex", "address", "name", "functionSize"],
    );
    let strings = array(thread, "stringArray").len().into();
    rows(&thread["samples"]["stack"], &stacks["length"]);
    rows(&stacks["prefix"], &stacks["length"]);
    rows(&stacks["frame"], &frames["length"]);
    rows(&stacks["category"], &categories.into());
    rows(&frames["category"], &categories.into());
    rows(&frames["func"], &thread["funcTable"]["length"]);
    rows(&thread["funcTable"]["name"], &strings);
    rows(&thread["markers"]["name"], &strings);
    assert_eq!(thread["samples"]["weightType"], "tracing-ms");
}

/// The processed profile format, version 48 (`src/types/profile.js` of the profiler): tables of
/// columns of one length, which name each other's rows.
#[test]
fn a_profile_has_the_tables_of_the_processed_format() {
    let text = recording().firefox("./server").expect("it can be written");
    let profile: Value = serde_json::from_str(&text).expect("it is JSON");
    let meta = &profile["meta"];
    assert_eq!(
        (&meta["preprocessedProfileVersion"], &meta["product"]),
        (&48.into(), &"./server".into())
    );
    for name in [
        "interval",
        "startTime",
        "processType",
        "stackwalk",
        "version",
    ] {
        assert!(meta[name].is_u64(), "{name}");
    }
    let categories = array(meta, "categories");
    assert!(
        categories
            .iter()
            .all(|it| it["subcategories"][0] == "Other")
    );
    assert!(profile["libs"].is_array());
    let threads = array(&profile, "threads");
    assert_eq!(threads.len(), 4);
    for thread in threads {
        tables(thread, categories.len());
    }
    let samples = &threads[0]["samples"];
    let column = |name: &str, of: [f64; 4]| assert_eq!(samples[name], serde_json::json!(of));
    column("time", [0.001, 0.0035, 0.004, 0.009]);
    column("weight", [0.0025, 0.0005, 0.005, 0.0]);
    // The processor time of the last span, too, is that of a sample.
    let ran = serde_json::json!([0, 2_500, 0, 5_000]);
    assert_eq!(samples["threadCPUDelta"], ran);
    assert_eq!(threads[1]["processName"], "thread \"70\"\n");
    // The profiler reads the categories of frames, and makes those of stacks of them.
    let of_frames = |at: usize| &threads[at]["frameTable"]["category"];
    assert_eq!(*of_frames(0), serde_json::json!([0, 1]));
    assert_eq!(*of_frames(2), serde_json::json!([0, 0, 3, 0]));
    assert_eq!(*of_frames(3), serde_json::json!([2, 2]));
}

#[test]
fn stacks_of_a_profile_lead_from_the_innermost_function_to_the_outermost() {
    let text = recording().firefox("x").expect("it can be written");
    let profile: Value = serde_json::from_str(&text).expect("it is JSON");
    let thread = &profile["threads"][2];
    assert_eq!(thread["name"], "processor time by stack");
    let at = |table: &str, column: &str, row: &Value| {
        let row = row.as_u64().expect("a row") as usize;
        thread[table][column][row].clone()
    };
    let mut names = Vec::new();
    let mut stack = thread["samples"]["stack"][0].clone();
    while !stack.is_null() {
        let frame = at("stackTable", "frame", &stack);
        let function = at("frameTable", "func", &frame);
        let name = at("funcTable", "name", &function);
        names.push(thread["stringArray"][name.as_u64().expect("a row") as usize].clone());
        stack = at("stackTable", "prefix", &stack);
    }
    assert_eq!(names, ["sys_read_[k]", "match", "main"]);
    // Both stacks share the outermost function.
    assert_eq!(thread["stackTable"]["length"], 4);
}

#[test]
fn the_largest_recording_makes_files_of_bounded_size() {
    let spans: Vec<(u64, State)> = (0..Recording::SPANS_MAX as u64)
        .map(|at| {
            (
                at * 1_234_567_891,
                [State::Running, State::Blocked][at as usize % 2],
            )
        })
        .collect();
    let end_ns = spans.len() as u64 * 1_234_567_891;
    let threads = (0..Recording::TRACKS_MAX as u32).map(|at| track(1, at, &spans, end_ns));
    let frames = vec!["a_function_with_a_long_name".repeat(20); 200];
    let stack = |weight_ns| Stack {
        frames: frames.clone(),
        weight_ns,
    };
    let large = Recording {
        tracks: threads.collect(),
        on_cpu: (1..=20_000).map(stack).collect(),
        ..Recording::default()
    };
    let trace = large.perfetto("x").expect("it can be written");
    assert!(trace.len() < 50 << 20, "{}", trace.len());
    let profile = large.firefox("x").expect("it can be written");
    assert!(profile.len() < 50 << 20, "{}", profile.len());
    println!("{} and {} bytes", trace.len(), profile.len());
}

#[test]
fn an_empty_recording_is_a_file_without_events() {
    let trace = Recording::default()
        .perfetto("x")
        .expect("it can be written");
    let trace: Value = serde_json::from_str(&trace).expect("it is JSON");
    assert_eq!(trace["traceEvents"], serde_json::json!([]));
    let profile = Recording::default()
        .firefox("x")
        .expect("it can be written");
    let profile: Value = serde_json::from_str(&profile).expect("it is JSON");
    assert_eq!(profile["threads"], serde_json::json!([]));
}
