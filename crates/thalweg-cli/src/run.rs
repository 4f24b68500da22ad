//! `thalweg exchange run`.

use crate::arguments::{Format, RulesName, Run};
use crate::failure::{self, Failure, Finding};
use crate::report::facts::{Book, Commands, Count, Facts, Input, Level};
use crate::report::{html, text};
use crate::runner::{Outcome, Pipelined, Runner, kind, parts};
use crate::source::{self, Source};
use crate::terminal::{self, Notes};
use std::collections::BTreeMap;
use thalweg_exchange::state_text::state_hash;
use thalweg_exchange::{Action, Rules, State, book};

/// How many levels of a book are shown.
const LEVELS: usize = 10;
/// How many books are shown; further ones are left out.
const BOOKS: usize = 8;

/// The rules of this name.
pub(crate) fn rules(name: RulesName) -> Rules {
    match name {
        RulesName::Default => Rules::default(),
        RulesName::Reference => Rules::REFERENCE,
    }
}

/// Runs a stream and shows what came of it.
///
/// # Errors
/// Those of the input, of the report and of standard output.
pub(crate) fn run(options: &Run) -> Result<Finding, Failure> {
    let notes = Notes::new(options.quiet);
    let source = source::load(options, &notes)?;
    let service = options.shards.options(options.placement);
    let runner: Box<dyn Runner> = Box::new(Pipelined::new(source.rules, service));
    let progress = notes.progress(source.commands.len() as u64, "running");
    let outcome = runner.run(&source.commands, options.rate, &progress)?;
    let hash = state_hash(&outcome.state).hash;
    if let Some(planned) = source.state_hash
        && planned != hash
    {
        return Err(Failure::Nondeterminism { planned, run: hash });
    }
    let (facts, finding) = facts(options, source, outcome, hash);
    if let Some(path) = &options.report {
        let write = std::fs::write(path, html::page(&facts));
        write.map_err(|source| Failure::Report {
            path: path.clone(),
            source,
        })?;
        notes.hint(&format!("report written to {}", path.display()));
    }
    print(options.format, &facts)?;
    Ok(finding)
}

fn print(format: Format, facts: &Facts) -> Result<(), Failure> {
    let mut out = String::new();
    match format {
        Format::Text => text::write(facts, terminal::colours(), &mut out)
            .map_err(|_| Failure::Output(std::io::Error::other("the text cannot be made")))?,
        Format::Json => {
            out = serde_json::to_string_pretty(facts)
                .map_err(|e| Failure::Output(std::io::Error::other(e)))?;
            out.push('\n');
        }
    }
    failure::print(out.as_bytes())
}

fn facts(options: &Run, source: Source, outcome: Outcome, hash: u64) -> (Facts, Finding) {
    let mut kinds: BTreeMap<&'static str, u64> = BTreeMap::new();
    for command in &source.commands {
        *kinds.entry(kind(command)).or_default() += 1;
    }
    let mut by_kind: Vec<Count> = kinds.into_iter().map(|(k, n)| Count::new(k, n)).collect();
    let results = outcome.results.iter();
    let mut by_result: Vec<Count> = results.map(|(r, n)| Count::new(r.name(), *n)).collect();
    for counts in [&mut by_kind, &mut by_result] {
        counts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    }
    let mut check = source.check;
    let mut finding = Finding::Fine;
    if let Some(expected) = &source.final_book {
        let found = expected.compare(&outcome.state);
        if found.scores.iter().any(|score| score.agree != score.of) {
            finding = Finding::Negative;
        }
        check = Some(found);
    }
    let facts = Facts {
        version: 1,
        input: Input {
            name: source.name,
            format: source.format,
            seed: source.seed,
            rules: options.rules.name().to_owned(),
            placement: outcome.placement,
            rate_per_s: options.rate.per_s(),
        },
        commands: Commands {
            total: source.commands.len() as u64,
            by_kind,
            by_result,
        },
        trades: outcome.trades,
        books: books(&outcome.state),
        state_hash: format!("{hash:016x}"),
        latency: outcome.latency,
        parts: parts::costs(source.rules, &source.commands),
        check,
    };
    (facts, finding)
}

fn books(state: &State) -> Vec<Book> {
    let level = |level: book::Level| Level {
        price_ticks: level.price,
        size_lots: level.volume,
        orders: level.orders,
    };
    let side = |book: &book::Book, action| book.levels(action, LEVELS).map(level).collect();
    let count = |book: &book::Book, action| book.levels(action, usize::MAX).count() as u64;
    let books = state.matching.books().into_iter().take(BOOKS);
    books
        .map(|book| Book {
            symbol: i64::from(book.spec().id.0),
            bids: side(book, Action::Bid),
            asks: side(book, Action::Ask),
            bid_levels: count(book, Action::Bid),
            ask_levels: count(book, Action::Ask),
        })
        .collect()
}
