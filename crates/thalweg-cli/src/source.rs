//! The commands of a run: made up, or read from a file.

use crate::arguments::values::{self, FormatIn, RulesSetting};
use crate::failure::Failure;
use crate::feed::{Begin, Feed, Part, Sizes};
use crate::flow;
use crate::input::error::InputError;
use crate::input::lines::{Lines, RECORDS_MAX};
use crate::input::{self, InputFormat, Streamed, bitstamp, lobster};
use crate::message::{counted, shown};
use crate::realflow::{self, RealFlow};
use crate::report::facts::{Check, Score};
use crate::stdin::{self, Given};
use crate::terminal::Notes;
use clap::Args;
use std::io::Read;
use std::path::{Path, PathBuf};
use thalweg_exchange::book::Level;
use thalweg_exchange::stream::LoadStream;
use thalweg_exchange::{Action, Command, Events, Rules, State, SymbolId, apply, apply_left_over};

/// The seed of the generated flow where the command line gives none.
pub(crate) const SEED: u64 = 1;
/// The length of the generated flow, in commands, where the command line gives none.
pub(crate) const COMMANDS: u64 = 1_000_000;

/// The options that choose the commands.
#[derive(Debug, Args)]
pub(crate) struct Intended {
    /// The stream to run, `-` for standard input [default: a made-up flow]
    pub(crate) file: Option<PathBuf>,

    /// Format of FILE
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format_in: FormatIn,

    /// Recorded books to check against: Bitstamp snapshots or LOBSTER order book rows
    #[arg(long, value_name = "FILE")]
    pub(crate) books: Option<PathBuf>,

    /// Seed of the made-up flow [default: 1]
    #[arg(long, value_name = "N", value_parser = values::any, conflicts_with = "file")]
    pub(crate) seed: Option<u64>,

    /// Length of the made-up flow in commands, from 1 to 20M, like 50k [default: 1M]
    #[arg(long, value_name = "N", value_parser = values::count, conflicts_with = "file")]
    pub(crate) commands: Option<u64>,

    /// Rules of the exchange
    #[arg(long, value_enum, default_value_t)]
    pub(crate) rules: RulesSetting,

    /// Costs of waiting, as `thalweg machine --output` wrote them: waits begin with these
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,

    /// Run at most N commands
    #[arg(long, value_name = "N", value_parser = values::from_one)]
    pub(crate) limit: Option<u64>,

    /// Begin with command N, counting from 1; the commands before it are executed, but not measured
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::from_one)]
    pub(crate) from: u64,
}

impl Intended {
    /// Returns the options that choose all commands of a file.
    pub(crate) fn whole(file: PathBuf, books: Option<PathBuf>, rules: RulesSetting) -> Intended {
        Intended {
            file: Some(file),
            format_in: FormatIn::Auto,
            books,
            seed: None,
            commands: None,
            rules,
            costs: None,
            limit: None,
            from: 1,
        }
    }
}

/// The maximum size of a load stream, in bytes: about 25 million commands, all of which are kept in
/// memory.
const LOAD_BYTES_MAX: u64 = 1 << 30;

/// A stream of commands, and the facts known about it before the run.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) format: String,
    pub(crate) seed: Option<u64>,
    pub(crate) feed: Feed,
    /// Whether the flow was generated because no data arrived on standard input.
    pub(crate) was_idle: bool,
    /// The place where a stream of which only a part is kept can be read a second time.
    pub(crate) again: Option<(PathBuf, Streamed)>,
    /// The number of the first command in the stream, counting from 1.
    pub(crate) from: u64,
    /// The state of the exchange before the first command.
    pub(crate) before: State,
    /// The commands before it that are not in the stream: they were executed for what others left
    /// over.
    pub(crate) further: u64,
    /// The rules that the commands are meant for.
    pub(crate) rules: Rules,
    /// Times and remainders of a recorded market.
    pub(crate) recorded: realflow::Recorded,
    /// The agreement of the commands with a recording when they were made.
    pub(crate) check: Option<Check>,
    /// The hash of the state that the commands led to when they were made.
    pub(crate) state_hash: Option<u64>,
    /// The book that the run must end with.
    pub(crate) final_book: Option<FinalBook>,
}

/// The levels that must remain at the end according to a load stream.
pub(crate) struct FinalBook {
    symbol: SymbolId,
    levels: Vec<(Action, Level)>,
}

impl FinalBook {
    /// Compares each side, level by level.
    pub(crate) fn compare(&self, state: &State) -> Check {
        let book = state.matching.book(self.symbol);
        let score = |action, name: &str, label: &str| {
            let expected: Vec<Level> = self
                .levels
                .iter()
                .filter(|l| l.0 == action)
                .map(|l| l.1)
                .collect();
            let found = book
                .into_iter()
                .flat_map(|book| book.levels(action, usize::MAX));
            let found: Vec<Level> = found.collect();
            let agree = expected.iter().zip(&found).filter(|(a, b)| a == b).count();
            Score {
                name: name.to_owned(),
                label: format!("{label} levels of the final book"),
                agree: agree as u64,
                of: expected.len().max(found.len()) as u64,
            }
        };
        let scores = vec![
            score(Action::Ask, "final_asks", "ask"),
            score(Action::Bid, "final_bids", "bid"),
        ];
        Check {
            against: "the recorded final book".to_owned(),
            scores,
            counts: Vec::new(),
        }
    }
}

/// The number of times that the commands of a stream are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// They are taken once: a long stream is read during the run.
    Once,
    /// They are taken a second time after the run: a long stream must be a file.
    Again,
    /// They are taken several times: all of them are kept in memory.
    Often,
}

/// Reads or generates the commands.
///
/// # Errors
/// Returns the errors of the input, and of options that do not fit it.
pub(crate) fn load(options: &Intended, taken: Taken, notes: &Notes) -> Result<Source, Failure> {
    crate::machine::install(options.costs.as_deref())?;
    let rules = rules(options.rules);
    let given = match options {
        _ if options.file.is_some() || options.seed.or(options.commands).is_some() => {
            Given::Nothing
        }
        // A generated flow has no format and no books, so these options refer to standard input.
        _ if options.books.is_some() || options.format_in != FormatIn::Auto => {
            match stdin::is_given() {
                true => Given::Data,
                false => Given::Nothing,
            }
        }
        _ => stdin::given(*notes),
    };
    let piped = || (given == Given::Data).then(|| PathBuf::from("-"));
    let Some(path) = &options.file.clone().or_else(piped) else {
        if options.books.is_some() {
            return Err(Failure::Misuse(
                "--books needs a FILE of messages to go with".to_owned(),
            ));
        }
        if options.format_in != FormatIn::Auto {
            return Err(Failure::Misuse("--format-in needs a FILE".to_owned()));
        }
        let seed = options.seed.unwrap_or(SEED);
        let commands = flow::commands(seed, options.commands.unwrap_or(COMMANDS));
        let (feed, begin, _) = kept(commands, rules, part(options));
        let mut source = Source::new("made-up flow", "generated", feed, begin, options.from)?;
        source.seed = Some(seed);
        source.was_idle = given == Given::Idle;
        return Ok(source);
    };
    let mut lines = Lines::open(path)?;
    let format = match options.format_in {
        FormatIn::Auto => input::recognise(&mut lines)?,
        FormatIn::Bitstamp => InputFormat::Bitstamp,
        FormatIn::Lobster => InputFormat::Lobster,
        FormatIn::Orders => InputFormat::Orders,
        FormatIn::Recorded => InputFormat::Recorded,
        FormatIn::Load => InputFormat::Load,
    };
    let books = options.books.as_deref();
    let real = matches!(format, InputFormat::Bitstamp | InputFormat::Lobster);
    if books.is_some() && !real {
        return Err(Failure::Misuse(format!(
            "--books goes with bitstamp and lobster messages; {} is of format {}",
            lines.name(),
            format.name()
        )));
    }
    if let (true, None, Some(found)) = (real, books, books_beside(path)) {
        notes.hint(&format!(
            "recorded books are beside it: --books {}",
            shown(found.as_os_str())
        ));
    }
    match format {
        InputFormat::Orders => streamed(lines, path, Streamed::Orders, options, taken),
        InputFormat::Recorded => streamed(lines, path, Streamed::Recorded, options, taken),
        _ => read(&mut lines, format, books, options, rules, notes),
    }
}

fn part(options: &Intended) -> Part {
    Part {
        from: options.from,
        limit: options.limit.unwrap_or(u64::MAX),
    }
}

/// Takes the wanted part of commands that are all in memory. Returns also whether these are the
/// last of all.
fn kept(mut commands: Vec<Command>, rules: Rules, part: Part) -> (Feed, Begin, bool) {
    let at_most = |n: u64, max: usize| usize::try_from(n).unwrap_or(max).min(max);
    let (mut begin, mut events) = (Begin::new(rules), Events::new());
    let passed = at_most(part.from - 1, commands.len());
    for command in commands.drain(..passed) {
        apply(&mut begin.before, &command, &mut events);
        apply_left_over(&mut begin.before, &mut events, |_, _, _| begin.further += 1);
    }
    begin.passed = passed as u64;
    let wanted = at_most(part.limit, commands.len());
    let is_last = wanted == commands.len();
    commands.truncate(wanted);
    (Feed::of(commands), begin, is_last)
}

/// Opens a stream whose lines are commands.
fn streamed(
    lines: Lines,
    path: &Path,
    format: Streamed,
    options: &Intended,
    taken: Taken,
) -> Result<Source, Failure> {
    let mut sizes = Sizes::default();
    if taken == Taken::Often {
        sizes.head = RECORDS_MAX;
    }
    let name = lines.name().to_owned();
    let (feed, begin) = Feed::open(lines, format, rules(options.rules), part(options), sizes)?;
    let again = path.is_file();
    let head = counted(sizes.head as u64, "command");
    match (taken, feed.count()) {
        (Taken::Often, None) => Err(Failure::Misuse(format!(
            "{name}: a sweep keeps all commands in memory, and takes {head} at most; --limit N \
             takes N of them, from --from on"
        ))),
        (Taken::Again, None) if !again => Err(Failure::Misuse(format!(
            "{name}: for --output, more than {head} must be in a file, to be read again after the \
             run; --limit N takes N of them, from --from on"
        ))),
        _ => {
            let known = format.format().name();
            let mut source = Source::new(&name, known, feed, begin, options.from)?;
            source.again = Some((path.to_owned(), format));
            Ok(source)
        }
    }
}

/// Reads a stream that is kept in memory as a whole.
fn read(
    lines: &mut Lines,
    format: InputFormat,
    books: Option<&Path>,
    options: &Intended,
    rules: Rules,
    notes: &Notes,
) -> Result<Source, Failure> {
    let name = lines.name().to_owned();
    let source = |commands, lines: Vec<u64>| {
        let (mut feed, begin, is_whole) = kept(commands, rules, part(options));
        feed.lines = lines.into_iter().skip(begin.passed as usize).collect();
        let source = Source::new(&name, format.name(), feed, begin, options.from);
        source.map(|source| (source, is_whole))
    };
    if format == InputFormat::Load {
        let (commands, final_book) = load_stream(lines)?;
        let (mut source, is_whole) = source(commands, Vec::new())?;
        source.final_book = final_book.filter(|_| is_whole);
        return Ok(source);
    }
    let real = real_flow(lines, format, books, rules)?;
    if let Some((rows, line)) = real.passed_over {
        let rows = counted(rows, "row");
        notes.hint(&format!(
            "{name}:{line}: the first of {rows} passed over; the report counts them by reason"
        ));
    }
    let (mut source, is_whole) = source(real.commands, real.lines)?;
    source.recorded = real.recorded;
    source.check = Some(real.check);
    source.state_hash = is_whole.then_some(real.state_hash);
    Ok(source)
}

/// Converts recorded messages into commands, and compares the result with the recorded books.
fn real_flow(
    lines: &mut Lines,
    format: InputFormat,
    books: Option<&Path>,
    rules: Rules,
) -> Result<RealFlow, Failure> {
    let books = books.map(Lines::open);
    let mut books = books.transpose()?;
    let mut fault = None;
    let real = if format == InputFormat::Bitstamp {
        let messages = bitstamp::messages(lines)?;
        let snapshots = books.as_mut().map(bitstamp::snapshots);
        let snapshots = snapshots.map(|all| until_fault(all, &mut fault));
        realflow::bitstamp::replay(&messages, snapshots, rules)
    } else {
        let messages = lobster::messages(lines)?;
        let rows = books.as_mut().map(lobster::rows);
        let rows = rows.map(|all| until_fault(all, &mut fault));
        realflow::lobster::replay(&messages, rows, rules)
    };
    fault.map_or(Ok(real), |fault| Err(fault.into()))
}

/// Iterates over the records before the first fault, which is stored.
fn until_fault<T>(
    records: impl Iterator<Item = Result<T, InputError>>,
    fault: &mut Option<InputError>,
) -> impl Iterator<Item = T> {
    records.map_while(|next| next.map_err(|error| *fault = Some(error)).ok())
}

impl Source {
    fn new(
        name: &str,
        format: &str,
        feed: Feed,
        begin: Begin,
        from: u64,
    ) -> Result<Source, Failure> {
        if feed.head.is_empty() {
            let taken = counted(begin.passed, "command");
            return Err(Failure::Misuse(format!(
                "--from {from}: {name} has {taken}"
            )));
        }
        Ok(Source {
            name: name.to_owned(),
            format: format.to_owned(),
            seed: None,
            was_idle: false,
            feed,
            again: None,
            from,
            before: begin.before,
            further: begin.further,
            rules: begin.rules,
            recorded: realflow::Recorded::default(),
            check: None,
            state_hash: None,
            final_book: None,
        })
    }
}

fn load_stream(lines: &mut Lines) -> Result<(Vec<Command>, Option<FinalBook>), InputError> {
    let mut reader = lines.reader().take(LOAD_BYTES_MAX);
    let stream = LoadStream::read(&mut reader);
    if reader.limit() == 0 {
        return Err(lines.too_large(LOAD_BYTES_MAX, "bytes"));
    }
    let stream = stream.map_err(|error| lines.stream_error(error))?;
    let mut commands = stream.setup;
    commands.extend(stream.commands);
    let (symbol, levels) = (stream.symbol.id, stream.final_levels);
    let final_book = (!levels.is_empty()).then_some(FinalBook { symbol, levels });
    Ok((commands, final_book))
}

/// Returns the file beside this one whose name says that it holds the books of its messages.
fn books_beside(messages: &Path) -> Option<PathBuf> {
    let name = messages.file_name()?.to_str()?;
    let pairs = [
        ("messages", "books"),
        ("message", "orderbook"),
        ("messages", "orderbook"),
    ];
    pairs
        .iter()
        .filter(|(ours, _)| name.contains(ours))
        .map(|(ours, theirs)| messages.with_file_name(name.replace(ours, theirs)))
        .find(|path| path.is_file())
}

/// Returns the rules of this name.
fn rules(name: RulesSetting) -> Rules {
    match name {
        RulesSetting::Default => Rules::default(),
        RulesSetting::Reference => Rules::REFERENCE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_final_book_is_counted() {
        let level = |price| Level {
            price,
            volume: 1,
            orders: 1,
        };
        let symbol = SymbolId(1);
        let levels = vec![(Action::Ask, level(5)), (Action::Ask, level(6))];
        let check = FinalBook { symbol, levels }.compare(&State::default());
        assert_eq!((check.scores[0].agree, check.scores[0].of), (0, 2));
        assert_eq!((check.scores[1].agree, check.scores[1].of), (0, 0));
    }
}
