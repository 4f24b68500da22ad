//! The commands of a run on their way to the sender. The commands of a short stream are all read
//! before the run. The first commands of a long stream are read before the run, and the others
//! arrive in chunks, which a thread reads ahead of the sender. A stream may therefore be of any
//! length, and the memory for it is bounded.

use crate::failure::{Failure, RunError};
use crate::flow::kind;
use crate::input::error::InputError;
use crate::input::lines::Lines;
use crate::input::{Streamed, each};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{mem, thread};
use thalweg::channel::{Receiver, RecvTimeoutError, Sender, Spsc, spsc};
use thalweg_exchange::{Command, Events, Rules, State, apply, apply_left_over};

/// The interval at which a thread that waits for a chunk checks whether the run is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The amounts that are read ahead, in commands of 56 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// The number of commands that are read before the run: 59 MB.
    pub(crate) head: usize,
    /// The number of commands that are handed over at a time: 0.9 MB.
    chunk: usize,
    /// The maximum number of chunks that are ready.
    pub(crate) chunks: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            head: 1 << 20,
            chunk: 1 << 14,
            chunks: 16,
        }
    }
}

/// The part of a stream that is wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The number of the first wanted command, counting from 1. The commands before it are
    /// executed, and not kept.
    pub(crate) from: u64,
    /// The maximum number of commands.
    pub(crate) limit: u64,
}

/// The number of commands of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(pub(crate) Vec<(&'static str, u64)>);

impl Kinds {
    fn add(&mut self, name: &'static str, count: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += count,
            None => self.0.push((name, count)),
        }
    }

    fn count(&mut self, commands: &[Command]) {
        commands
            .iter()
            .for_each(|command| self.add(kind(command), 1));
    }
}

/// Commands that are handed over together.
#[derive(Default)]
struct Chunk {
    commands: Vec<Command>,
    kinds: Kinds,
}

/// The beginning of a stream.
pub(crate) struct Begin {
    pub(crate) rules: Rules,
    /// The state of the exchange before the first command that is wanted.
    pub(crate) before: State,
    head: Vec<Command>,
    lines: Vec<u64>,
    /// The number of commands that were executed and not kept.
    pub(crate) passed: u64,
    /// Commands that were executed for what these left over.
    pub(crate) further: u64,
}

impl Begin {
    /// Creates the beginning of a stream under these rules.
    pub(crate) fn new(rules: Rules) -> Begin {
        Begin {
            rules,
            before: State::new(rules),
            head: Vec::new(),
            lines: Vec::new(),
            passed: 0,
            further: 0,
        }
    }
}

/// A message from the reader to the sender.
enum Next {
    /// The first commands of a stream that has more.
    Begin(Begin),
    /// The first commands of a stream that has no more.
    Whole(Begin),
    Chunk(Chunk),
    End(Result<(), InputError>),
}

/// The commands of a run, in order.
pub(crate) struct Feed {
    /// The first commands, which are kept in memory.
    pub(crate) head: Vec<Command>,
    /// The line number of each of these commands, where they have lines; 0 for a command without a
    /// line.
    pub(crate) lines: Vec<u64>,
    is_begun: bool,
    more: Option<More>,
}

/// The source of the commands after the head.
struct More {
    ready: Receiver<Next, Spsc>,
    used: Sender<Chunk, Spsc>,
    /// The chunk that is being sent.
    chunk: Chunk,
    /// The kinds of the commands in the chunks before it.
    kinds: Kinds,
    sent: u64,
    waited: Duration,
    is_over: bool,
}

impl Feed {
    /// Creates a feed of commands that are all in memory.
    pub(crate) fn of(head: Vec<Command>) -> Feed {
        Feed {
            head,
            lines: Vec::new(),
            is_begun: false,
            more: None,
        }
    }

    /// Reads the first commands of a stream, and starts a thread that reads on where there are
    /// more.
    ///
    /// # Errors
    /// Returns the errors of the stream's first commands, and an error if the thread cannot be
    /// started.
    pub(crate) fn open(
        lines: Lines,
        format: Streamed,
        rules: Rules,
        part: Part,
        sizes: Sizes,
    ) -> Result<(Feed, Begin), Failure> {
        let (begin, mut ready) = spsc(sizes.chunks);
        let (used, back) = spsc(sizes.chunks + 2);
        let reader = Reader::new(rules, part, sizes, (begin, back));
        let thread = thread::Builder::new().name("reader".to_owned());
        let started = thread.spawn(move || reader.read(lines, format));
        started.map_err(|error| RunError(format!("no thread to read with: {error}")))?;
        let (mut begin, is_whole) = match ready.recv() {
            Ok(Next::Begin(begin)) => (begin, false),
            Ok(Next::Whole(begin)) => (begin, true),
            Ok(Next::End(Err(error))) => return Err(error.into()),
            _ => return Err(gone()),
        };
        let mut feed = Feed::of(mem::take(&mut begin.head));
        feed.lines = mem::take(&mut begin.lines);
        feed.more = (!is_whole).then(|| More {
            ready,
            used,
            chunk: Chunk::default(),
            kinds: Kinds::default(),
            sent: 0,
            waited: Duration::ZERO,
            is_over: false,
        });
        Ok((feed, begin))
    }

    /// Returns the number of commands, if it is known.
    pub(crate) fn count(&self) -> Option<usize> {
        self.more.is_none().then_some(self.head.len())
    }

    /// Returns the next commands to send; `None` at the end, and where the run is to stop.
    ///
    /// # Errors
    /// Returns the errors of the stream.
    pub(crate) fn next(&mut self, stop: &AtomicBool) -> Result<Option<&[Command]>, Failure> {
        if !mem::replace(&mut self.is_begun, true) {
            return Ok(Some(&self.head));
        }
        self.more.as_mut().map_or(Ok(None), |more| more.next(stop))
    }

    /// Starts again from the first command. This is for feeds whose count is known.
    pub(crate) fn rewind(&mut self) {
        self.is_begun = false;
    }

    /// Returns whether the `sent` commands are all that the feed has.
    pub(crate) fn is_all(&self, sent: u64) -> bool {
        match &self.more {
            None => sent == self.head.len() as u64,
            Some(more) => more.is_over,
        }
    }

    /// Returns how long the sender waited for the reader.
    pub(crate) fn waited(&self) -> Duration {
        self.more
            .as_ref()
            .map_or(Duration::ZERO, |more| more.waited)
    }

    /// Returns the kinds of the first `sent` commands, which are the ones that were sent.
    pub(crate) fn kinds(&self, sent: u64) -> Kinds {
        let mut kinds = Kinds::default();
        let head = self.head.len().min(sent as usize);
        kinds.count(&self.head[..head]);
        if let Some(more) = &self.more {
            for (name, count) in &more.kinds.0 {
                kinds.add(name, *count);
            }
            let begun = (sent - head as u64).saturating_sub(more.sent) as usize;
            kinds.count(&more.chunk.commands[..begun]);
        }
        kinds
    }
}

impl More {
    fn next(&mut self, stop: &AtomicBool) -> Result<Option<&[Command]>, Failure> {
        let used = mem::take(&mut self.chunk);
        self.sent += used.commands.len() as u64;
        for (name, count) in &used.kinds.0 {
            self.kinds.add(name, *count);
        }
        // The channel has room for all chunks; sending fails only if the reader has ended.
        let _ = self.used.try_send(used);
        let next = match self.ready.try_recv() {
            Ok(next) => Some(next),
            Err(_) => {
                let began = Instant::now();
                let next = self.wait(stop)?;
                self.waited += began.elapsed();
                next
            }
        };
        match next {
            Some(Next::Chunk(chunk)) => {
                self.chunk = chunk;
                Ok(Some(&self.chunk.commands))
            }
            Some(Next::End(Err(error))) => Err(error.into()),
            Some(_) => {
                self.is_over = true;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    fn wait(&mut self, stop: &AtomicBool) -> Result<Option<Next>, Failure> {
        loop {
            match self.ready.recv_timeout(LOOK) {
                Ok(next) => return Ok(Some(next)),
                // ORDERING: Relaxed, pairs with the signal's store; nothing else is read
                // because of it.
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(_) => return Err(gone()),
            }
        }
    }
}

fn gone() -> Failure {
    RunError("the thread that reads has ended".to_owned()).into()
}

/// The thread that reads a stream ahead of the sender.
struct Reader {
    /// The beginning of the stream, until it is handed over.
    begin: Option<Begin>,
    chunk: Chunk,
    part: Part,
    taken: u64,
    sizes: Sizes,
    ready: Sender<Next, Spsc>,
    used: Receiver<Chunk, Spsc>,
    events: Events,
}

impl Reader {
    fn new(
        rules: Rules,
        part: Part,
        sizes: Sizes,
        (ready, used): (Sender<Next, Spsc>, Receiver<Chunk, Spsc>),
    ) -> Reader {
        Reader {
            begin: Some(Begin::new(rules)),
            chunk: Chunk::default(),
            part,
            taken: 0,
            sizes,
            ready,
            used,
            events: Events::new(),
        }
    }

    fn read(mut self, mut lines: Lines, format: Streamed) {
        let reader = &mut self;
        let read = each(&mut lines, format, move |margin_trading| {
            if let (Some(begin), Some(on)) = (&mut reader.begin, margin_trading) {
                *begin = Begin::new(begin.rules.with_margin_trading(on));
            }
            move |line, command| reader.take(line, command)
        });
        let last = match (self.begin.take(), read) {
            (Some(begin), Ok(())) => Next::Whole(begin),
            (None, Ok(())) if !self.hand_over() => return,
            (_, read) => Next::End(read),
        };
        // Sending fails if the run is over and no thread receives.
        let _ = self.ready.send(last);
    }

    /// Takes the next command. Returns whether a further one is wanted.
    fn take(&mut self, line: u64, command: Command) -> bool {
        let is_open = match &mut self.begin {
            Some(begin) if begin.passed + 1 < self.part.from => {
                begin.passed += 1;
                apply(&mut begin.before, &command, &mut self.events);
                let further = |_: &_, _, _: &_| begin.further += 1;
                apply_left_over(&mut begin.before, &mut self.events, further);
                return true;
            }
            Some(begin) if begin.head.len() < self.sizes.head => {
                begin.head.push(command);
                begin.lines.push(line);
                true
            }
            _ => self.take_more(command),
        };
        self.taken += 1;
        is_open && self.taken < self.part.limit
    }

    fn take_more(&mut self, command: Command) -> bool {
        if let Some(begin) = self.begin.take()
            && self.ready.send(Next::Begin(begin)).is_err()
        {
            return false;
        }
        if self.chunk.commands.len() == self.sizes.chunk && !self.hand_over() {
            return false;
        }
        self.chunk.commands.push(command);
        true
    }

    /// Hands the chunk over when there is room. Returns whether a receiver was there to take it.
    fn hand_over(&mut self) -> bool {
        let mut empty = self.used.try_recv().unwrap_or_default();
        empty.commands.clear();
        empty.kinds.0.clear();
        let mut chunk = mem::replace(&mut self.chunk, empty);
        chunk.kinds.count(&chunk.commands);
        self.ready.send(Next::Chunk(chunk)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Pipelined;
    use indicatif::ProgressBar;
    use std::io::{self, Cursor, Read};
    use thalweg_exchange::report::state_text::state_text_hash;
    use thalweg_exchange::service::ServiceOptions;
    use thalweg_measure::load::Rate;

    const SMALL: Sizes = Sizes {
        head: 50,
        chunk: 16,
        chunks: 2,
    };

    fn orders(count: u64) -> String {
        let users = (0..count).map(|i| match i % 3 {
            0 => format!("user,{i}\n"),
            _ => format!("cancel,{i},1,9\n"),
        });
        "thalweg-orders,1\n".to_owned() + &users.collect::<String>()
    }

    fn open(input: impl Read + Send + 'static, part: Part, sizes: Sizes) -> (Feed, Begin) {
        let lines = Lines::new("o", input);
        Feed::open(lines, Streamed::Orders, Rules::default(), part, sizes).unwrap()
    }

    fn run(feed: &mut Feed, before: State, stop: &AtomicBool) -> Result<(u64, u64), Failure> {
        let hidden = ProgressBar::hidden();
        let pipelined = Pipelined::new(before, ServiceOptions::default());
        let outcome = pipelined.run(feed, Rate::MAX, &hidden, stop)?;
        Ok((outcome.sent, state_text_hash(&outcome.state).hash))
    }

    fn part(from: u64, limit: u64) -> Part {
        Part { from, limit }
    }

    #[test]
    fn a_stream_in_chunks_gives_what_it_gives_in_one() {
        for count in [1, 49, 50, 51, 65, 66, 67, 82, 500] {
            for part in [
                part(1, u64::MAX),
                part(7, u64::MAX),
                part(7, 30),
                part(3, 77),
            ] {
                let go = AtomicBool::new(false);
                let found = [SMALL, Sizes::default()].map(|sizes| {
                    let (mut feed, begin) = open(Cursor::new(orders(count)), part, sizes);
                    let is_small = count.saturating_sub(begin.passed).min(part.limit) <= 50;
                    assert_eq!(feed.count().is_some(), is_small || sizes.head > 50);
                    let (sent, hash) = run(&mut feed, begin.before, &go).unwrap();
                    assert!(feed.is_all(sent));
                    (sent, hash, feed.kinds(sent), begin.passed)
                });
                assert_eq!(found[0], found[1], "{count}, {part:?}");
                let wanted = count.saturating_sub(part.from - 1).min(part.limit);
                assert_eq!(found[0].0, wanted, "{count}, {part:?}");
            }
        }
    }

    #[test]
    fn a_fault_far_into_a_stream_ends_the_run() {
        let text = orders(400) + "user,x\n";
        let (mut feed, begin) = open(Cursor::new(text), part(1, u64::MAX), SMALL);
        let error = run(&mut feed, begin.before, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.to_string(), "o:402: user `x` is not a whole number");
        let bad = Lines::new("o", Cursor::new("thalweg-orders,1\nfly\n"));
        let opened = Feed::open(
            bad,
            Streamed::Orders,
            Rules::default(),
            part(1, 9),
            Sizes::default(),
        );
        assert!(opened.err().unwrap().to_string().contains("o:2: command"));
    }

    /// An endless stream of orders, to check that reading ahead is bounded.
    struct Endless {
        read: std::sync::Arc<std::sync::atomic::AtomicU64>,
    }

    impl Read for Endless {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = out.len() / 7 * 7;
            out[..count]
                .iter_mut()
                .zip(b"user,7\n".iter().cycle())
                .for_each(|(o, b)| *o = *b);
            // ORDERING: Relaxed, pairs with the test's load: a count and nothing else.
            self.read.fetch_add(count as u64, Ordering::Relaxed);
            Ok(count)
        }
    }

    #[test]
    fn a_stream_without_end_is_read_as_far_as_it_is_sent() {
        let read = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let endless = Cursor::new("thalweg-orders,1\n").chain(Endless {
            read: std::sync::Arc::clone(&read),
        });
        let (mut feed, _) = open(endless, part(1, u64::MAX), SMALL);
        let stop = AtomicBool::new(false);
        let mut sent = 0;
        while sent < 2_000_000 {
            sent += feed.next(&stop).unwrap().unwrap().len() as u64;
            // ORDERING: Relaxed, as in `Endless`.
            let read = read.load(Ordering::Relaxed) / 7;
            assert!(read < sent + 50_000, "{read} read where {sent} were sent");
        }
        assert!(!feed.is_all(sent));
    }

    /// A pipe that no writer uses, or whose writer has finished.
    struct Silent(std::sync::mpsc::Receiver<()>);

    impl Read for Silent {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(0)
        }
    }

    #[test]
    fn a_run_that_waits_for_a_silent_pipe_can_be_stopped() {
        let (_held, silent) = std::sync::mpsc::channel();
        let input = Cursor::new(orders(51 + 16)).chain(Silent(silent));
        let (mut feed, begin) = open(input, part(1, u64::MAX), SMALL);
        let (sent, _) = run(&mut feed, begin.before, &AtomicBool::new(true)).unwrap();
        assert!(sent == 0 && !feed.is_all(sent));
        let stop = AtomicBool::new(false);
        let first = feed.next(&stop).unwrap().map(<[Command]>::len);
        assert_eq!(first, Some(16));
        stop.store(true, Ordering::Relaxed);
        assert!(feed.next(&stop).unwrap().is_none());
        assert!(!feed.is_all(66) && feed.waited() > Duration::ZERO);
    }
}
