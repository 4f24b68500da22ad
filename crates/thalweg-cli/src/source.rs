//! Where the commands of a run come from: a file in any format, or a made-up flow.

use crate::arguments::{COMMANDS, FormatIn, Intended, SEED};
use crate::failure::{Failure, counted, shown};
use crate::flow;
use crate::input::error::InputError;
use crate::input::lines::{Lines, RECORDS_MAX};
use crate::input::{self, Format, bitstamp, lobster, orders};
use crate::intake::Intake;
use crate::realflow::{self, RealFlow};
use crate::report::facts::{Check, Score};
use crate::run::rules;
use crate::terminal::{self, Notes};
use std::io::Read;
use std::path::{Path, PathBuf};
use thalweg_exchange::book::Level;
use thalweg_exchange::stream::{Item, LoadStream, Recorded};
use thalweg_exchange::{Action, Command, Rules, State, SymbolId};

/// The longest load stream, in bytes: some 25 million commands, all of which are kept.
const LOAD_BYTES_MAX: u64 = 1 << 30;

/// A stream of commands, and what is known of it beforehand.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) format: String,
    pub(crate) seed: Option<u64>,
    pub(crate) commands: Vec<Command>,
    /// The line of each, where they have lines.
    pub(crate) lines: Vec<u64>,
    /// The number of the first of them in the stream, from 1.
    pub(crate) from: u64,
    /// The exchange before it.
    pub(crate) before: State,
    /// The rules that the commands are meant for.
    pub(crate) rules: Rules,
    /// How the commands agreed with a recording when they were made.
    pub(crate) check: Option<Check>,
    /// The hash of the state that they led to then.
    pub(crate) state_hash: Option<u64>,
    /// The book that must be left.
    pub(crate) final_book: Option<FinalBook>,
}

/// The levels that a load stream says must be left.
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

/// Reads or makes the commands.
///
/// # Errors
/// Those of the input, and of options that do not fit it.
pub(crate) fn load(options: &Intended, notes: &Notes) -> Result<Source, Failure> {
    let rules = rules(options.rules);
    let made_up = options.seed.or(options.commands).is_some();
    let piped = || (!made_up && terminal::has_piped_input()).then(|| PathBuf::from("-"));
    let Some(path) = &options.file.clone().or_else(piped) else {
        if options.books.is_some() {
            return Err(Failure::Misuse(
                "--books needs a FILE of messages to go with".to_owned(),
            ));
        }
        let seed = options.seed.unwrap_or(SEED);
        let commands = flow::commands(seed, options.commands.unwrap_or(COMMANDS));
        let mut intake = Intake::new(rules, options.from, options.limit);
        intake.take_all(commands);
        let mut source = Source::new("made-up flow", "generated", intake, rules)?;
        source.seed = Some(seed);
        return Ok(source);
    };
    let mut lines = Lines::open(path)?;
    let format = match options.format_in {
        FormatIn::Auto => input::recognise(&mut lines)?,
        FormatIn::Bitstamp => Format::Bitstamp,
        FormatIn::Lobster => Format::Lobster,
        FormatIn::Orders => Format::Orders,
        FormatIn::Recorded => Format::Recorded,
        FormatIn::Load => Format::Load,
    };
    let books = options.books.as_deref();
    let real = matches!(format, Format::Bitstamp | Format::Lobster);
    if books.is_some() && !real {
        return Err(Failure::Misuse(format!(
            "--books goes with bitstamp and lobster messages; {} is of format {}",
            lines.name(),
            format.name()
        )));
    }
    if let (true, None, Some(found)) = (real, books, books_beside(path)) {
        notes.hint(&format!(
            "to check against the recorded books: --books {}",
            shown(found.as_os_str())
        ));
    }
    read(&mut lines, format, books, options, rules)
}

fn read(
    lines: &mut Lines,
    format: Format,
    books: Option<&Path>,
    options: &Intended,
    mut rules: Rules,
) -> Result<Source, Failure> {
    let name = lines.name().to_owned();
    let intake = |rules| Intake::new(rules, options.from, options.limit);
    let whole = |intake, rules| Source::new(&name, format.name(), intake, rules);
    match format {
        Format::Orders => {
            let mut intake = intake(rules);
            orders::commands(lines, |line, command| {
                intake.take(Some(line), command);
                !intake.is_full()
            })?;
            fits(&intake, lines)?;
            whole(intake, rules)
        }
        Format::Recorded => {
            let intake = recorded(lines, |margin_trading| {
                rules = rules.with_margin_trading(margin_trading);
                intake(rules)
            })?;
            fits(&intake, lines)?;
            whole(intake, rules)
        }
        Format::Load => {
            let (commands, final_book) = load_stream(lines)?;
            let count = commands.len() as u64;
            let mut intake = intake(rules);
            intake.take_all(commands);
            let is_whole = intake.taken() == count;
            let mut source = whole(intake, rules)?;
            source.final_book = final_book.filter(|_| is_whole);
            Ok(source)
        }
        Format::Bitstamp | Format::Lobster => {
            let real = real_flow(lines, format, books, rules)?;
            let count = real.commands.len() as u64;
            let mut intake = intake(rules);
            intake.take_all(real.commands);
            let is_whole = intake.taken() == count;
            let mut source = whole(intake, rules)?;
            source.check = Some(real.check);
            source.state_hash = is_whole.then_some(real.state_hash);
            Ok(source)
        }
    }
}

/// Recorded messages as commands, compared with the recorded books.
fn real_flow(
    lines: &mut Lines,
    format: Format,
    books: Option<&Path>,
    rules: Rules,
) -> Result<RealFlow, Failure> {
    let mut books = books.map(Lines::open).transpose()?;
    let mut fault = None;
    let real = if format == Format::Bitstamp {
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
    fault.map_or(Ok(()), Err)?;
    real.map_err(|error| Failure::Recording {
        file: lines.name().to_owned(),
        what: error.to_string(),
    })
}

/// Whether no more was read than is kept.
fn fits(intake: &Intake, lines: &Lines) -> Result<(), Failure> {
    match intake.is_too_large() {
        true => Err(Failure::Misuse(format!(
            "{}; --limit N takes N of them, from --from on",
            lines.too_large(RECORDS_MAX as u64, "commands")
        ))),
        false => Ok(()),
    }
}

/// The records before the first fault, which is kept.
fn until_fault<T>(
    records: impl Iterator<Item = Result<T, InputError>>,
    fault: &mut Option<InputError>,
) -> impl Iterator<Item = T> {
    records.map_while(|next| next.map_err(|error| *fault = Some(error)).ok())
}

impl Source {
    fn new(name: &str, format: &str, intake: Intake, rules: Rules) -> Result<Source, Failure> {
        if intake.commands.is_empty() {
            let taken = counted(intake.taken(), "command");
            let from = intake.from;
            return Err(Failure::Misuse(format!(
                "--from {from}: {name} has {taken}"
            )));
        }
        Ok(Source {
            name: name.to_owned(),
            format: format.to_owned(),
            seed: None,
            commands: intake.commands,
            lines: intake.lines,
            from: intake.from,
            before: intake.before,
            rules,
            check: None,
            state_hash: None,
            final_book: None,
        })
    }
}

/// The commands of a recorded stream; `begin` is told whether margin trading was on.
fn recorded(lines: &mut Lines, begin: impl FnOnce(bool) -> Intake) -> Result<Intake, InputError> {
    let read = || {
        let stream = Recorded::new(lines.reader())?;
        let mut intake = begin(stream.margin_trading());
        for item in stream {
            if let (line, Item::Command { command, .. }) = item? {
                intake.take(Some(line), command);
            }
            if intake.is_full() {
                break;
            }
        }
        Ok(intake)
    };
    let intake = read().map_err(|error| lines.stream_error(error))?;
    match intake.taken() {
        0 => Err(lines.empty()),
        _ => Ok(intake),
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

/// A file beside this one whose name says that it holds the books of its messages.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

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

    #[test]
    fn parsers_of_whole_streams_name_the_file() {
        let mut lines = Lines::new(
            "r.txt",
            Cursor::new("# marginTrading=ENABLED\nC,1,NOP\nC,2,FLY\n"),
        );
        let error = recorded(&mut lines, |_| Intake::new(Rules::default(), 1, None))
            .err()
            .unwrap()
            .to_string();
        assert!(error.starts_with("r.txt:3: "), "{error}");
        let mut lines = Lines::new("r.txt", Cursor::new("# marginTrading=ENABLED\n"));
        assert!(
            recorded(&mut lines, |_| Intake::new(Rules::default(), 1, None))
                .err()
                .unwrap()
                .to_string()
                .contains("empty file")
        );
    }
}
