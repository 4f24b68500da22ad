//! The recording as a profile for [Firefox's profiler](https://profiler.firefox.com), in its
//! processed profile format, version 48; later versions of the profiler upgrade it.
//!
//! Each thread has a sample for each span, with the state as its stack and the time as its weight,
//! and a marker from the span's beginning to its end. Stacks are those of the whole program,
//! without times: two threads of their own have them, weighed by their time.

use super::{Recording, Stack, State, Track, heaviest};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The version of the format (`docs-developer/CHANGELOG-formats.md` of the profiler).
const VERSION: u32 = 48;
/// The categories, by their numbers, with their colours.
const CATEGORIES: [(&str, &str); 4] = [
    ("running", "green"),
    ("runnable", "orange"),
    ("blocked", "grey"),
    ("kernel", "blue"),
];
const KERNEL: usize = 3;

/// The tables of a thread, which are lists of columns. A row of one names rows of another.
#[derive(Default)]
struct Tables {
    strings: Vec<String>,
    string_of: HashMap<String, usize>,
    /// A function and a frame, with its category, for each string that names one.
    functions: Vec<usize>,
    categories: Vec<usize>,
    function_of: HashMap<usize, usize>,
    /// The calling stack, and the function.
    stacks: Vec<(Option<usize>, usize)>,
    stack_of: HashMap<(Option<usize>, usize), usize>,
}

impl Tables {
    fn string(&mut self, text: &str) -> usize {
        if let Some(&at) = self.string_of.get(text) {
            return at;
        }
        self.strings.push(text.to_owned());
        self.string_of
            .insert(text.to_owned(), self.strings.len() - 1);
        self.strings.len() - 1
    }

    /// Returns the row of the stack that these functions make, outermost first.
    fn stack<'f>(&mut self, frames: impl Iterator<Item = &'f str>, category: usize) -> usize {
        let mut stack = None;
        for frame in frames {
            let name = self.string(frame);
            let next = self.functions.len();
            let function = *self.function_of.entry(name).or_insert(next);
            if function == next {
                let is_kernel = frame.ends_with("_[k]");
                self.functions.push(name);
                self.categories
                    .push(if is_kernel { KERNEL } else { category });
            }
            let key = (stack, function);
            let next = self.stacks.len();
            let row = *self.stack_of.entry(key).or_insert(next);
            if row == next {
                self.stacks.push(key);
            }
            stack = Some(row);
        }
        stack.unwrap_or(0)
    }

    fn json(self) -> [(&'static str, Value); 6] {
        let (stacks, frames) = (self.stacks.len(), self.functions.len());
        let all = |value: Value, count: usize| vec![value; count];
        let prefixes: Vec<Option<usize>> = self.stacks.iter().map(|it| it.0).collect();
        let functions: Vec<usize> = self.stacks.iter().map(|it| it.1).collect();
        let of_stacks: Vec<usize> = functions.iter().map(|&it| self.categories[it]).collect();
        let rows: Vec<usize> = (0..frames).collect();
        [
            (
                "stackTable",
                json!({
                    "length": stacks, "prefix": prefixes, "frame": functions,
                    "category": of_stacks, "subcategory": all(json!(0), stacks),
                }),
            ),
            (
                "frameTable",
                json!({
                    "length": frames, "address": all(json!(-1), frames),
                    "inlineDepth": all(json!(0), frames), "category": self.categories,
                    "subcategory": all(json!(0), frames), "func": rows,
                    "nativeSymbol": all(Value::Null, frames),
                    "innerWindowID": all(Value::Null, frames),
                    "implementation": all(Value::Null, frames), "line": all(Value::Null, frames),
                    "column": all(Value::Null, frames),
                }),
            ),
            (
                "funcTable",
                json!({
                    "length": frames, "name": self.functions, "isJS": all(json!(false), frames),
                    "relevantForJS": all(json!(false), frames), "resource": all(json!(-1), frames),
                    "fileName": all(Value::Null, frames), "lineNumber": all(Value::Null, frames),
                    "columnNumber": all(Value::Null, frames),
                }),
            ),
            (
                "resourceTable",
                json!({
                    "length": 0, "lib": [], "name": [], "host": [], "type": [],
                }),
            ),
            (
                "nativeSymbols",
                json!({
                    "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [],
                }),
            ),
            ("stringArray", json!(self.strings)),
        ]
    }
}

/// The samples of a thread, in ms.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Samples {
    length: usize,
    stack: Vec<Option<usize>>,
    time: Vec<f64>,
    weight: Vec<f64>,
    weight_type: &'static str,
    /// The processor time since the sample before, ns.
    #[serde(rename = "threadCPUDelta")]
    cpu_delta: Vec<u64>,
    #[serde(skip)]
    ran_ns: u64,
}

impl Samples {
    fn put(&mut self, stack: Option<usize>, state: State, from_ns: u64, weight_ns: u64) {
        self.length += 1;
        self.stack.push(stack);
        self.time.push(ms(from_ns));
        self.weight.push(ms(weight_ns));
        self.cpu_delta.push(self.ran_ns);
        self.ran_ns = if state == State::Running {
            weight_ns
        } else {
            0
        };
    }

    /// Adds a sample without a stack, which has the processor time of the one before it.
    fn end(&mut self, end_ns: u64) {
        self.put(None, State::Blocked, end_ns, 0);
    }
}

/// The markers of a thread: intervals, in ms.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Markers {
    length: usize,
    name: Vec<usize>,
    start_time: Vec<f64>,
    end_time: Vec<f64>,
    /// 1 for an interval.
    phase: Vec<u8>,
    category: Vec<usize>,
    data: Vec<Value>,
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The head of a thread.
struct Head<'a> {
    name: &'a str,
    process_name: &'a str,
    process: u32,
    thread: u32,
    end_ns: u64,
}

fn thread(
    head: &Head<'_>,
    samples: &Samples,
    markers: &Markers,
    tables: Tables,
) -> serde_json::Result<Value> {
    let mut thread = json!({
        "name": head.name,
        "processName": head.process_name,
        "processType": "default",
        "isMainThread": head.process == head.thread,
        "pid": head.process.to_string(),
        "tid": head.thread,
        "processStartupTime": 0,
        "processShutdownTime": null,
        "registerTime": 0,
        "unregisterTime": ms(head.end_ns),
        "pausedRanges": [],
        "showMarkersInTimeline": true,
        "samples": serde_json::to_value(samples)?,
        "markers": serde_json::to_value(markers)?,
    });
    for (name, table) in tables.json() {
        thread[name] = table;
    }
    Ok(thread)
}

fn of_track(track: &Track, process_name: &str) -> serde_json::Result<Value> {
    let (mut tables, mut markers) = (Tables::default(), Markers::default());
    let mut samples = Samples {
        weight_type: "tracing-ms",
        ..Samples::default()
    };
    for (state, from_ns, to_ns) in track.pieces() {
        let stack = tables.stack([state.name()].into_iter(), state as usize);
        samples.put(Some(stack), state, from_ns, to_ns - from_ns);
        let name = tables.string(state.name());
        markers.length += 1;
        markers.name.push(name);
        markers.start_time.push(ms(from_ns));
        markers.end_time.push(ms(to_ns));
        markers.phase.push(1);
        markers.category.push(state as usize);
        markers.data.push(Value::Null);
    }
    samples.end(track.end_ns);
    let head = Head {
        name: &track.name,
        process_name,
        process: track.process,
        thread: track.thread,
        end_ns: track.end_ns,
    };
    thread(&head, &samples, &markers, tables)
}

/// Returns a thread that holds stacks, one after the other.
fn of_stacks(name: &str, at: u32, state: State, stacks: &[Stack]) -> serde_json::Result<Value> {
    let mut tables = Tables::default();
    let mut samples = Samples {
        weight_type: "tracing-ms",
        ..Samples::default()
    };
    let mut from_ns = 0;
    for stack in heaviest(stacks) {
        let frames = stack.frames.iter().map(String::as_str);
        let row = tables.stack(frames, state as usize);
        samples.put(Some(row), state, from_ns, stack.weight_ns);
        from_ns += stack.weight_ns;
    }
    samples.end(from_ns);
    let head = Head {
        name,
        process_name: name,
        process: at,
        thread: at,
        end_ns: from_ns,
    };
    thread(&head, &samples, &Markers::default(), tables)
}

/// Returns the whole file.
///
/// # Errors
/// Returns the errors of serde_json; there is no known one.
pub(super) fn firefox(recording: &Recording, command: &str) -> serde_json::Result<String> {
    let mut threads = Vec::new();
    for track in &recording.tracks {
        threads.push(of_track(track, recording.process_name(track))?);
    }
    // No process of Linux has these numbers.
    for (at, name, state, stacks) in [
        (
            1 << 30,
            "processor time by stack",
            State::Running,
            &recording.on_cpu,
        ),
        (
            (1 << 30) + 1,
            "waiting by stack",
            State::Blocked,
            &recording.off_cpu,
        ),
    ] {
        if !heaviest(stacks).is_empty() {
            threads.push(of_stacks(name, at, state, stacks)?);
        }
    }
    let categories = CATEGORIES
        .map(|(name, color)| json!({ "name": name, "color": color, "subcategories": ["Other"] }));
    let profile = json!({
        "meta": {
            "interval": 1,
            "startTime": 0,
            "processType": 0,
            "product": command,
            "stackwalk": 0,
            "symbolicated": true,
            "version": 29,
            "preprocessedProfileVersion": VERSION,
            "categories": categories,
            "markerSchema": [],
            "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
            "importedFrom": "thalweg doctor",
        },
        "libs": [],
        "pages": [],
        "counters": [],
        "threads": threads,
    });
    serde_json::to_string(&profile)
}
