//! The timeline of an observation, which the report draws.

mod firefox;
mod perfetto;

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

impl State {
    const fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Runnable => "runnable",
            State::Blocked => "blocked",
        }
    }
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

impl Track {
    /// Returns the spans, each with its beginning and its end, ns. Spans without a length are left
    /// out.
    fn pieces(&self) -> impl Iterator<Item = (State, u64, u64)> {
        let ends = self.spans.iter().skip(1).map(|next| next.from_ns);
        let pieces = self.spans.iter().zip(ends.chain([self.end_ns]));
        let pieces = pieces.map(|(span, to_ns)| (span.state, span.from_ns, to_ns));
        pieces.filter(|(_, from_ns, to_ns)| from_ns < to_ns)
    }
}

/// The maximum number of stacks in a file for another tool, of frames in one, and of characters in
/// a function's name.
const STACKS_MAX: usize = 500;
const FRAMES_MAX: usize = 128;
const NAME_MAX: usize = 200;

/// Returns the stacks that go into a file for another tool: those with a weight and frames, the
/// heaviest first.
fn heaviest(stacks: &[Stack]) -> Vec<Stack> {
    let stacks = stacks.iter();
    let mut stacks: Vec<&Stack> = stacks
        .filter(|stack| stack.weight_ns > 0 && !stack.frames.is_empty())
        .collect();
    stacks.sort_by_key(|stack| std::cmp::Reverse(stack.weight_ns));
    stacks.truncate(STACKS_MAX);
    let cut = |stack: &Stack| {
        let frames = stack.frames.iter().take(FRAMES_MAX);
        let frames = frames.map(|frame| frame.chars().take(NAME_MAX).collect());
        Stack {
            frames: frames.collect(),
            weight_ns: stack.weight_ns,
        }
    };
    stacks.into_iter().map(cut).collect()
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
    /// Returns the stacks of processor time and of waits for a file of another tool, the heaviest
    /// first, each with a name and the number of a process, which no process of Linux has: its
    /// numbers are below 2^22.
    fn by_stack(&self) -> impl Iterator<Item = (u32, &'static str, State, Vec<Stack>)> {
        let (ran, waited) = ("processor time by stack", "waiting by stack");
        let all = [
            (1 << 30, ran, State::Running, heaviest(&self.on_cpu)),
            (
                (1 << 30) + 1,
                waited,
                State::Blocked,
                heaviest(&self.off_cpu),
            ),
        ];
        all.into_iter().filter(|(.., stacks)| !stacks.is_empty())
    }

    /// The maximum number of tracks.
    pub const TRACKS_MAX: usize = 64;
    /// The maximum number of spans of a track.
    pub const SPANS_MAX: usize = 4_096;

    /// Returns the recording as a trace for Perfetto (Trace Event Format): at most some 50 MB.
    /// `command` is the program's name there.
    ///
    /// # Errors
    /// Returns the errors of serde_json; there is no known one.
    pub fn perfetto(&self, command: &str) -> serde_json::Result<String> {
        perfetto::perfetto(self, command)
    }

    /// Returns the recording as a profile for Firefox's profiler: at most some 50 MB.
    ///
    /// # Errors
    /// Returns the errors of serde_json; there is no known one.
    pub fn firefox(&self, command: &str) -> serde_json::Result<String> {
        firefox::firefox(self, command)
    }
}
