//! The recording as a trace for [Perfetto](https://ui.perfetto.dev), in the Trace Event Format of
//! Chrome, which `chrome://tracing` and others read as well.
//!
//! Each thread has a slice for each span of a state. Stacks are those of the whole program, without
//! times: they are slices of two processes of their own, side by side, each as wide as its weight.

use super::{Recording, STACKS_MAX};
use serde::Serialize;
use std::borrow::Cow;

/// An event. Times are in µs.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    /// `X` for a slice, `M` for the name of a process or thread.
    ph: &'a str,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Arguments<'a>>,
}

#[derive(Serialize)]
struct Arguments<'a> {
    name: Cow<'a, str>,
}

impl<'a> Event<'a> {
    fn slice(name: &'a str, cat: &'a str, of: (u32, u32), (from, to): (u64, u64)) -> Event<'a> {
        Event {
            name,
            ph: "X",
            pid: of.0,
            tid: of.1,
            cat: Some(cat),
            ts: Some(from as f64 / 1e3),
            dur: Some((to - from) as f64 / 1e3),
            args: None,
        }
    }

    fn named(what: &'a str, of: (u32, u32), name: impl Into<Cow<'a, str>>) -> Event<'a> {
        Event {
            name: what,
            ph: "M",
            pid: of.0,
            tid: of.1,
            cat: None,
            ts: None,
            dur: None,
            args: Some(Arguments { name: name.into() }),
        }
    }
}

/// The text in the making: an event a line.
struct Trace {
    text: Vec<u8>,
    is_empty: bool,
}

impl Trace {
    fn put(&mut self, event: &Event<'_>) -> serde_json::Result<()> {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.text.extend(b",\n");
        }
        serde_json::to_writer(&mut self.text, event)
    }
}

/// Returns the whole file.
///
/// # Errors
/// Returns the errors of serde_json; there is no known one.
pub(super) fn perfetto(recording: &Recording, command: &str) -> serde_json::Result<String> {
    let mut trace = Trace {
        text: b"{\"displayTimeUnit\":\"ns\",\"otherData\":".to_vec(),
        is_empty: true,
    };
    let other = serde_json::json!({
        "command": command,
        "lacks": recording.lacks,
        "threads_left_out": recording.tracks_left_out,
        "stacks_max": STACKS_MAX,
    });
    serde_json::to_writer(&mut trace.text, &other)?;
    trace.text.extend(b",\"traceEvents\":[\n");
    let mut named = Vec::new();
    for track in &recording.tracks {
        let of = (track.process, track.thread);
        if !named.contains(&track.process) {
            named.push(track.process);
            let main = recording
                .tracks
                .iter()
                .find(|it| it.thread == track.process);
            let name = &main.unwrap_or(track).name;
            trace.put(&Event::named("process_name", of, &**name))?;
        }
        let left_out = match track.spans_left_out {
            0 => Cow::Borrowed(&*track.name),
            count => format!("{} ({count} spans left out)", track.name).into(),
        };
        trace.put(&Event::named("thread_name", of, left_out))?;
        for (state, from_ns, to_ns) in track.pieces() {
            let name = state.name();
            trace.put(&Event::slice(name, "state", of, (from_ns, to_ns)))?;
        }
    }
    // A frame is a slice over what it called.
    for (process, name, _, stacks) in recording.by_stack() {
        let of = (process, process);
        let name = format!("{name} (no order of time)");
        trace.put(&Event::named("process_name", of, name))?;
        let mut from = 0;
        for stack in &stacks {
            let to = from + stack.weight_ns;
            for frame in &stack.frames {
                trace.put(&Event::slice(frame, "stack", of, (from, to)))?;
            }
            from = to;
        }
    }
    trace.text.extend(b"\n]}\n");
    // serde_json writes UTF-8.
    Ok(String::from_utf8_lossy(&trace.text).into_owned())
}
