//! Where the commands of a run come from: a file in any format, or a made-up flow.

use crate::arguments::{FormatIn, Run};
use crate::failure::Failure;
use crate::flow;
use crate::input::error::InputError;
use crate::input::lines::Lines;
use crate::input::{self, Format, bitstamp, lobster, orders};
use crate::realflow::{self, RealFlow};
use crate::report::facts::{Check, Score};
use crate::run::rules;
use crate::terminal::Notes;
use std::path::{Path, PathBuf};
use thalweg_exchange::book::Level;
use thalweg_exchange::stream::{Item, LoadStream, Recorded};
use thalweg_exchange::{Action, Command, Rules, State, SymbolId};

/// A stream of commands, and what is known of it beforehand.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) format: String,
    pub(crate) seed: Option<u64>,
    pub(crate) commands: Vec<Command>,
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
pub(crate) fn load(options: &Run, notes: &Notes) -> Result<Source, Failure> {
    let rules = rules(options.rules);
    let Some(path) = &options.file else {
        if options.books.is_some() {
            return Err(Failure::Misuse(
                "--books needs a FILE of messages to go with".to_owned(),
            ));
        }
        let commands = flow::commands(options.seed, options.commands);
        let mut source = Source::new("made-up flow", "generated", commands, rules);
        source.seed = Some(options.seed);
        return Ok(source);
    };
    let mut lines = Lines::open(path)?;
    let format = match options.format_in {
        FormatIn::Auto => input::recognise(&lines)?,
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
            found.display()
        ));
    }
    read(&mut lines, format, books, rules)
}

fn read(
    lines: &mut Lines,
    format: Format,
    books: Option<&Path>,
    rules: Rules,
) -> Result<Source, Failure> {
    let name = lines.name().to_owned();
    let source = |commands| Source::new(&name, format.name(), commands, rules);
    let refused = |error: realflow::desk::DeskError| Failure::Recording {
        file: name.clone(),
        what: error.to_string(),
    };
    Ok(match format {
        Format::Orders => source(orders::commands(lines)?),
        Format::Recorded => {
            let (commands, margin_trading) = recorded(lines)?;
            let mut source = source(commands);
            source.rules = rules.with_margin_trading(margin_trading);
            source
        }
        Format::Load => load_stream(lines, source)?,
        Format::Bitstamp => {
            let messages = bitstamp::messages(lines)?;
            let snapshots = match books {
                Some(path) => Some(bitstamp::snapshots(&mut Lines::open(path)?)?),
                None => None,
            };
            let real = realflow::bitstamp::replay(&messages, snapshots.as_deref(), rules);
            source(Vec::new()).with_real_flow(real.map_err(refused)?)
        }
        Format::Lobster => {
            let messages = lobster::messages(lines)?;
            let rows = match books {
                Some(path) => Some(lobster::rows(&mut Lines::open(path)?)?),
                None => None,
            };
            let real = realflow::lobster::replay(&messages, rows.as_deref(), rules);
            source(Vec::new()).with_real_flow(real.map_err(refused)?)
        }
    })
}

impl Source {
    fn new(name: &str, format: &str, commands: Vec<Command>, rules: Rules) -> Source {
        Source {
            name: name.to_owned(),
            format: format.to_owned(),
            seed: None,
            commands,
            rules,
            check: None,
            state_hash: None,
            final_book: None,
        }
    }

    fn with_real_flow(mut self, real: RealFlow) -> Source {
        self.commands = real.commands;
        self.check = Some(real.check);
        self.state_hash = Some(real.state_hash);
        self
    }
}

/// The commands of a recorded stream, and whether margin trading was on.
fn recorded(lines: &mut Lines) -> Result<(Vec<Command>, bool), InputError> {
    let mut commands = Vec::new();
    let mut read = || {
        let stream = Recorded::new(lines.reader())?;
        let margin_trading = stream.margin_trading();
        for item in stream {
            if let (_, Item::Command { command, .. }) = item? {
                commands.push(command);
            }
        }
        Ok(margin_trading)
    };
    let margin_trading = read().map_err(|error| lines.stream_error(error))?;
    if commands.is_empty() {
        Err(lines.empty())
    } else {
        Ok((commands, margin_trading))
    }
}

fn load_stream(
    lines: &mut Lines,
    source: impl Fn(Vec<Command>) -> Source,
) -> Result<Source, InputError> {
    let stream = LoadStream::read(lines.reader()).map_err(|error| lines.stream_error(error))?;
    let mut commands = stream.setup;
    commands.extend(stream.commands);
    let mut source = source(commands);
    if !stream.final_levels.is_empty() {
        let symbol = stream.symbol.id;
        source.final_book = Some(FinalBook {
            symbol,
            levels: stream.final_levels,
        });
    }
    Ok(source)
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
        let error = recorded(&mut lines).unwrap_err().to_string();
        assert!(error.starts_with("r.txt:3: "), "{error}");
        let mut lines = Lines::new("r.txt", Cursor::new("# marginTrading=ENABLED\n"));
        assert!(
            recorded(&mut lines)
                .unwrap_err()
                .to_string()
                .contains("empty file")
        );
    }
}
