//! The timeline of an observation, which the report draws.

use serde::Serialize;

/// The state of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It had a core.
    Running,
    /// It was runnable and had no core.
    Runnable,
    /// It waited for something.
    #[default]
    Blocked,
}

/// The beginning of a span in which a thread was in one state, until its next span or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The time since the observation began, ns.
    pub from_ns: u64,
    /// The state from here on.
    pub state: State,
}

/// The timeline of one thread of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Track {
    /// The id of its process.
    pub process: u32,
    /// Its thread id.
    pub thread: u32,
    /// Its name, as last seen.
    pub name: String,
    /// The time at which it ended, or was last seen, ns since the observation began.
    pub end_ns: u64,
    /// Its spans, in the order of time.
    pub spans: Vec<Span>,
    /// The time in each state, ns, indexed by `State as usize`. It is exact even where spans are
    /// left out.
    pub total_ns: [u64; 3],
    /// The number of spans that were left out to bound the memory. The remaining ones give a
    /// coarser picture.
    pub spans_left_out: u64,
}

/// A stack, outermost frame first, and its weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stack {
    /// The names of functions; `[unknown]` where there is none; kernel frames end in `_[k]`.
    pub frames: Vec<String>,
    /// The weight in ns of processor time, or of waiting.
    pub weight_ns: u64,
}

/// The latencies of messages that the program exports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// The name of the part that is measured.
    pub name: String,
    /// The number of messages that were timed.
    pub count: u64,
    /// The latency in ns at each of [`Latency::PERCENTILES`], which that share of the messages did
    /// not exceed.
    pub at_ns: [u64; 6],
}

impl Latency {
    /// The names of the percentiles: the median, then one more nine each time (90 %, 99 %, …), and
    /// the maximum.
    pub const PERCENTILES: [&str; 6] = ["50", "90", "99", "99.9", "99.99", "max"];
}

/// The timeline in bounded memory: at most [`Recording::TRACKS_MAX`] tracks of at most
/// [`Recording::SPANS_MAX`] spans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// The length of the observation, ns.
    pub length_ns: u64,
    /// The threads, those with the most processor time first.
    pub tracks: Vec<Track>,
    /// The number of threads that have no track of their own.
    pub tracks_left_out: u64,
    /// The stacks of processor time.
    pub on_cpu: Vec<Stack>,
    /// The stacks of what threads waited for while the program did not run: system call, then wait
    /// channel.
    pub off_cpu: Vec<Stack>,
    /// The latencies of the program's pipelines; the one with the most messages first, and the
    /// whole before its stages.
    pub latencies: Vec<Latency>,
    /// The parts that are unavailable here, each with the reason.
    pub lacks: Vec<String>,
}

impl Recording {
    /// The maximum number of tracks.
    pub const TRACKS_MAX: usize = 64;
    /// The maximum number of spans of a track.
    pub const SPANS_MAX: usize = 4_096;
}
