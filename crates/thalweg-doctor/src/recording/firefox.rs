//! The recording as a profile for [Firefox's profiler](https://profiler.firefox.com), in its
//! processed profile format, version 48; later versions of the profiler upgrade it.
//!
//! Each thread has a sample for each span, with the state as its stack and the time as its weight,
//! and a marker from the span's beginning to its end. Stacks are those of the whole program,
//! without times: two threads of their own have them, weighed by their time.

use super::{Recording, State};
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

/// Returns a table of columns, each of which is a list, or a value for all rows.
fn table(rows: usize, mut columns: Value) -> Value {
    let each = columns.as_object_mut().into_iter();
    for column in each.flat_map(|columns| columns.values_mut()) {
        if !column.is_array() {
            *column = vec![column.take(); rows].into();
        }
    }
    columns["length"] = rows.into();
    columns
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The tables of a thread. A row of one names rows of another.
#[derive(Default)]
struct Tables {
    /// The functions, by name: there are no other strings.
    names: Vec<String>,
    name_of: HashMap<String, usize>,
    /// The categories of the functions.
    categories: Vec<usize>,
    /// The calling stack, and the function.
    stacks: Vec<(Option<usize>, usize)>,
    stack_of: HashMap<(Option<usize>, usize), usize>,
    /// The stack, the state, the beginning and the weight, ns.
    samples: Vec<(usize, State, u64, u64)>,
}

impl Tables {
    /// Adds a sample of the stack that these functions make, outermost first.
    fn add<'f>(
        &mut self,
        frames: impl Iterator<Item = &'f str>,
        state: State,
        (from_ns, weight_ns): (u64, u64),
    ) {
        let mut stack = None;
        for frame in frames {
            let next = self.names.len();
            let name = *self.name_of.entry(frame.to_owned()).or_insert(next);
            if name == next {
                self.names.push(frame.to_owned());
                let is_kernel = frame.ends_with("_[k]");
                let category = if is_kernel { KERNEL } else { state as usize };
                self.categories.push(category);
            }
            let key = (stack, name);
            let next = self.stacks.len();
            let row = *self.stack_of.entry(key).or_insert(next);
            if row == next {
                self.stacks.push(key);
            }
            stack = Some(row);
        }
        let stack = stack.unwrap_or(0);
        self.samples.push((stack, state, from_ns, weight_ns));
    }

    /// Returns the table of samples. The last one has no stack, but the processor time of the one
    /// before it, as each has.
    fn samples(&self, end_ns: u64) -> Value {
        let samples = &self.samples;
        let ran = samples.iter().map(|&(_, state, _, weight)| match state {
            State::Running => weight,
            _ => 0,
        });
        let times = samples.iter().map(|it| it.2).chain([end_ns]);
        let ran = [0].into_iter().chain(ran);
        let weights = samples.iter().map(|it| it.3).chain([0]);
        let mut sampled = table(
            samples.len() + 1,
            json!({
                "stack": samples.iter().map(|it| Some(it.0)).chain([None]).collect::<Vec<_>>(),
                "time": times.map(ms).collect::<Vec<_>>(),
                "weight": weights.map(ms).collect::<Vec<_>>(),
                "threadCPUDelta": ran.collect::<Vec<_>>(),
            }),
        );
        sampled["weightType"] = "tracing-ms".into();
        sampled
    }

    /// Returns a thread that has these tables, and a marker for each sample if it `is_marked`.
    fn thread(
        self,
        (name, process_name): (&str, &str),
        (process, thread): (u32, u32),
        end_ns: u64,
        is_marked: bool,
    ) -> Value {
        let (stacks, samples) = (&self.stacks, &self.samples);
        let marked = if is_marked { &samples[..] } else { &[] };
        let frames = self.names.len();
        let rows: Vec<usize> = (0..frames).collect();
        json!({
            "name": name,
            "processName": process_name,
            "processType": "default",
            "isMainThread": process == thread,
            "pid": process.to_string(),
            "tid": thread,
            "processStartupTime": 0,
            "processShutdownTime": null,
            "registerTime": 0,
            "unregisterTime": ms(end_ns),
            "pausedRanges": [],
            "showMarkersInTimeline": true,
            "samples": self.samples(end_ns),
            // Phase 1 is an interval.
            "markers": table(marked.len(), json!({
                "name": marked.iter().map(|it| stacks[it.0].1).collect::<Vec<_>>(),
                "startTime": marked.iter().map(|it| ms(it.2)).collect::<Vec<_>>(),
                "endTime": marked.iter().map(|it| ms(it.2 + it.3)).collect::<Vec<_>>(),
                "category": marked.iter().map(|it| it.1 as usize).collect::<Vec<_>>(),
                "phase": 1, "data": null,
            })),
            "stackTable": table(stacks.len(), json!({
                "prefix": stacks.iter().map(|it| it.0).collect::<Vec<_>>(),
                "frame": stacks.iter().map(|it| it.1).collect::<Vec<_>>(),
                "category": stacks.iter().map(|it| self.categories[it.1]).collect::<Vec<_>>(),
                "subcategory": 0,
            })),
            "frameTable": table(frames, json!({
                "address": -1, "inlineDepth": 0, "category": self.categories, "subcategory": 0,
                "func": rows, "nativeSymbol": null, "innerWindowID": null,
                "implementation": null, "line": null, "column": null,
            })),
            "funcTable": table(frames, json!({
                "name": rows, "isJS": false, "relevantForJS": false, "resource": -1,
                "fileName": null, "lineNumber": null, "columnNumber": null,
            })),
            "resourceTable": { "length": 0, "lib": [], "name": [], "host": [], "type": [] },
            "nativeSymbols": {
                "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [],
            },
            "stringArray": self.names,
        })
    }
}

/// Returns the whole file.
///
/// # Errors
/// Returns the errors of serde_json; there is no known one.
pub(super) fn firefox(recording: &Recording, command: &str) -> serde_json::Result<String> {
    let mut threads = Vec::new();
    for track in &recording.tracks {
        let mut tables = Tables::default();
        for (state, from_ns, to_ns) in track.pieces() {
            tables.add(
                [state.name()].into_iter(),
                state,
                (from_ns, to_ns - from_ns),
            );
        }
        let names = (&*track.name, recording.process_name(track));
        let ids = (track.process, track.thread);
        threads.push(tables.thread(names, ids, track.end_ns, true));
    }
    for (id, name, state, stacks) in recording.by_stack() {
        let (mut tables, mut from_ns) = (Tables::default(), 0);
        for stack in &stacks {
            let frames = stack.frames.iter().map(String::as_str);
            tables.add(frames, state, (from_ns, stack.weight_ns));
            from_ns += stack.weight_ns;
        }
        threads.push(tables.thread((name, name), (id, id), from_ns, false));
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
