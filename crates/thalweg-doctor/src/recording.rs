//! What happened when: what the report draws.

use serde::Serialize;

/// What a thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It had a core.
    Running,
    /// It could run and had no core.
    Runnable,
    /// It waited for something.
    Blocked,
}

/// A thread did one thing from here on, until its next span or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// ns since the observation began.
    pub from_ns: u64,
    /// What it did.
    pub state: State,
}

/// One thread of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Track {
    /// Its process.
    pub process: u32,
    /// Its number.
    pub thread: u32,
    /// Its name, as last seen.
    pub name: String,
    /// When it ended, or was last seen, ns since the observation began.
    pub end_ns: u64,
    /// In the order of time.
    pub spans: Vec<Span>,
    /// Time in each state, ns, by `State as usize`. Exact although spans may be left out.
    pub total_ns: [u64; 3],
    /// Spans that were left out to bound the memory. What is there is then a coarser picture.
    pub spans_left_out: u64,
}

/// A stack, outermost frame first, and its weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stack {
    /// Names of functions; `[unknown]` where there is none; kernel frames end in `_[k]`.
    pub frames: Vec<String>,
    /// ns of processor time, or of waiting.
    pub weight_ns: u64,
}

/// How long messages took, as the program exports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// From where to where.
    pub name: String,
    /// Messages that were timed.
    pub count: u64,
    /// What so many of them did not exceed, ns, at each of [`Latency::PERCENTILES`].
    pub at_ns: [u64; 6],
}

impl Latency {
    /// Each but the last is so many nines: half of them, 90 %, 99 % …
    pub const PERCENTILES: [&str; 6] = ["50", "90", "99", "99.9", "99.99", "max"];
}

/// What happened when, in bounded memory: at most [`Recording::TRACKS_MAX`] tracks of at most
/// [`Recording::SPANS_MAX`] spans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// How long the program was observed, ns.
    pub length_ns: u64,
    /// The threads, those with the most processor time first.
    pub tracks: Vec<Track>,
    /// Threads that have no track of their own.
    pub tracks_left_out: u64,
    /// Where the processor time went.
    pub on_cpu: Vec<Stack>,
    /// What threads waited for while the program did not run: system call, then wait channel.
    pub off_cpu: Vec<Stack>,
    /// Of the program's pipelines; the most messages first, and the whole before its stages.
    pub latencies: Vec<Latency>,
    /// What of this could not be had here, and why.
    pub lacks: Vec<String>,
}

impl Recording {
    /// Most tracks.
    pub const TRACKS_MAX: usize = 64;
    /// Most spans of a track.
    pub const SPANS_MAX: usize = 4_096;
}
