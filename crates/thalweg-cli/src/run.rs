//! `thalweg exchange run`.

use crate::arguments::values::{self, Format, Place};
use crate::durable;
use crate::failure::{Failure, Finding};
use crate::input::InputFormat;
use crate::limits::Limit;
use crate::output::Output;
use crate::report::facts::{BookDepth, Commands, Count, DepthLevel, Facts, Input, Machine};
use crate::report::{explanation, html, machine, text};
use crate::results::{self, Form};
use crate::runner::journaled::{Journaled, Stream};
use crate::runner::{Pipelined, RunOutcome};
use crate::source::{self, Intended, Source, Taken};
use crate::stdin;
use crate::terminal::{self, Interruption, Notes};
use clap::Args;
use indicatif::ProgressBar;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use thalweg_exchange::durable::Files;
use thalweg_exchange::report::state_text::state_text_hash;
use thalweg_exchange::service::ServiceOptions;
use thalweg_exchange::{Action, State, book};
use thalweg_measure::load::Rate;
use thalweg_measure::table::Nanoseconds;

const RUN_EXAMPLES: &str = "\
Examples:
  thalweg exchange run
      One million commands of a realistic flow, as fast as they go
  thalweg exchange run --rate 125k --html flow.html
      The same at 125,000 commands a second, with a report to open in a browser
  thalweg exchange run messages.csv.gz --books books.csv.gz
      Recorded order flow, checked against the books that were recorded with it
  thalweg exchange run orders.csv --format json | jq .latency
      Our own format (docs/orders-csv.md), the facts as JSON
  thalweg exchange run orders.csv --output results.jsonl
      Results, trades and rejects of every command, final balances and open orders
  thalweg exchange run --rate 1M --fail-if 'p99>50us'
      Exit code 1 if more than 1 % of the commands take longer than 50 µs
  thalweg exchange run orders.csv --journal exchange
      The same durably: the directory holds the exchange, which can be served afterwards
  zcat stream.txt.gz | thalweg exchange run
      Any format from standard input";

/// The options of `exchange run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) input: Intended,

    /// Commands a second, from 1 to 1000M, like 125k or 1.5M; or max
    #[arg(long, default_value = "max")]
    pub(crate) rate: Rate,

    /// Where the stages execute and publish run: inline, threads:1, threads:2, or auto. With
    /// --journal the sender's thread executes and publishes, and waits for the disk where this is
    /// inline; else (threads:1, auto) another thread does
    #[arg(long, default_value = "auto", value_parser = values::place)]
    pub(crate) placement: Place,

    #[command(flatten)]
    pub(crate) durable: durable::Journaling,

    /// Also write what became of every command: results, trades, rejects, final balances and open
    /// orders (docs/orders-csv.md). The name of FILE ends in .jsonl or .csv; `-` writes JSON lines
    /// to standard output, and the facts to standard error. More than a million commands are read
    /// a second time for this: from a file, not from a pipe
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Exit with 1 if a figure is beyond a limit, like 'p99>50us' or 'throughput<1M'; may be
    /// repeated. Figures are mean, p50, p90, p99, p99.9, p99.99, max, and throughput. A percentile
    /// above the median takes ten commands beyond it: p99 1,000, p99.9 10,000
    #[arg(long, value_name = "LIMIT")]
    fail_if: Vec<Limit>,

    /// Format of the facts on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// Also write a report as one self-contained HTML file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// No progress and no hints on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The number of levels of a book that are shown.
const LEVELS: usize = 10;
/// The number of books that are shown; further ones are left out.
const BOOKS: usize = 8;

/// The files that a run writes besides its facts.
struct Outputs {
    report: Option<Output>,
    out: Option<(Output, Form)>,
}

impl Outputs {
    fn open(options: &Run) -> Result<Outputs, Failure> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Output::open).transpose();
        let form = |path: &Path| match path.extension().and_then(OsStr::to_str) {
            _ if path.as_os_str() == "-" => Ok(Form::JsonLines),
            Some("jsonl") => Ok(Form::JsonLines),
            Some("csv") => Ok(Form::Csv),
            _ => Err(Failure::Misuse(format!(
                "--output {}: the name must end in .jsonl or .csv",
                crate::message::shown(path.as_os_str())
            ))),
        };
        let form = options.output.as_deref().map(form).transpose()?;
        let outputs = Outputs {
            report: open(&options.html)?,
            out: open(&options.output)?.zip(form),
        };
        outputs.are_apart(&options.input)?;
        Ok(outputs)
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, &Output)> {
        let out = self.out.as_ref().map(|(out, _)| out);
        let all = [("--html", self.report.as_ref()), ("--output", out)];
        all.into_iter()
            .filter_map(|(option, output)| Some((option, output?)))
    }

    /// Refuses outputs that would overwrite an input or each other.
    fn are_apart(&self, input: &Intended) -> Result<(), Failure> {
        for (at, (option, output)) in self.all().enumerate() {
            let inputs = [&input.file, &input.books];
            if inputs.into_iter().flatten().any(|path| output.is_at(path)) {
                return Err(Failure::Misuse(format!(
                    "{option} {}: this is the input, and would be written over",
                    output.name()
                )));
            }
            if let Some((other, _)) = self.all().skip(at + 1).find(|(_, o)| output.is_same(o)) {
                return Err(Failure::Misuse(format!(
                    "{option} and {other} both write to {}",
                    output.name()
                )));
            }
        }
        Ok(())
    }
}

/// Returns the options with which the exchange of a run is started.
fn service(options: &Run) -> Result<ServiceOptions, Failure> {
    if options.durable.journal.is_some() {
        return crate::arguments::values::journaled_options(options.placement);
    }
    crate::arguments::values::service_options(options.placement)
}

/// Runs a stream and shows its results.
///
/// # Errors
/// Returns the errors of the input, of the files that are written, and of standard output.
pub(crate) fn run(options: &Run) -> Result<Finding, Failure> {
    let notes = Notes::new(options.quiet);
    let service = service(options)?;
    let mut outputs = Outputs::open(options)?;
    let taken = match outputs.out {
        Some(_) => Taken::Again,
        None => Taken::Once,
    };
    let mut source = source::load(&options.input, taken, &notes)?;
    if let Some(count) = source.feed.count() {
        let too_few = options.fail_if.iter().find_map(|l| l.too_few(count as u64));
        too_few.map_or(Ok(()), |too_few| Err(Failure::Misuse(too_few)))?;
    }
    let mut machine = machine::describe();
    let progress = notes.progress(source.feed.count(), "running");
    let signals = Interruption::new();
    let how = (&progress, &*signals.stop);
    let outcome = through(options, &mut source, service, outputs.out.is_some(), how)?;
    machine.disturbance = outcome.disturbance.clone();
    let (hash, was_idle) = (state_text_hash(&outcome.state).hash, source.was_idle);
    let sent = outcome.sent;
    if let Some(planned) = source.state_hash
        && planned != hash
        && source.feed.is_all(sent)
    {
        return Err(Failure::Nondeterminism { planned, run: hash });
    }
    if let Some((out, form)) = &mut outputs.out {
        results::write(&source, sent, hash, out, *form)?;
        if !out.is_standard() {
            notes.hint(&format!("results written to {}", out.name()));
        }
    }
    thalweg::export::export_latencies(&outcome.histograms);
    let (mut facts, mut finding) = facts(options, source, outcome, hash);
    facts.machine = machine;
    if let Some(report) = &mut outputs.report {
        report.write(html::page(&facts).as_bytes())?;
        if !report.is_standard() {
            notes.hint(&format!("report written to {}", report.name()));
        }
    }
    let is_aside = outputs.all().any(|(_, output)| output.is_standard());
    print(options.format, &facts, is_aside)?;
    if tell_failed(&facts, &options.fail_if) {
        finding = Finding::Negative;
    }
    tell_waited(&facts, &notes);
    if facts.input.interrupted {
        let of = facts.commands.total;
        notes.hint(&format!(
            "ended by {} after {}",
            match signals.finding() {
                Finding::Terminated => "SIGTERM",
                _ => "Ctrl-C",
            },
            crate::message::counted(of, "command")
        ));
        finding = signals.finding();
    }
    if was_idle {
        stdin::still_idle()?;
    }
    Ok(finding)
}

/// Puts the stream through the exchange, or through a durable one. In a durable one the stream
/// begins with the state of that exchange, if that is wanted.
fn through(
    options: &Run,
    source: &mut Source,
    service: ServiceOptions,
    is_begin_wanted: bool,
    (progress, stop): (&ProgressBar, &AtomicBool),
) -> Result<RunOutcome, Failure> {
    if let Some(directory) = &options.durable.journal {
        let mut begin = is_begin_wanted.then(|| source.before.clone());
        let bar = Notes::new(options.quiet);
        let bar = bar.progress_bytes(0, crate::message::shown(directory.as_os_str()));
        let journaled = Journaled {
            storage: Files::new(directory),
            sync: options.durable.sync.into(),
            stream: Stream {
                name: source.name.clone(),
                rules: source.rules,
                from: source.from,
                before: source.before.clone(),
                further: source.further,
                is_open: source.format == InputFormat::Orders.name(),
            },
            progress: &mut |read, total| {
                bar.set_length(total);
                bar.set_position(read);
                if read == total {
                    bar.finish_and_clear();
                }
            },
            begin: begin.as_mut(),
        };
        let runner = Pipelined::new(journaled, service);
        let outcome = runner.run(&mut source.feed, options.rate, progress, stop);
        source.before = begin.unwrap_or_else(|| source.before.clone());
        return outcome;
    }
    // On other platforms there is no journal.
    let _ = is_begin_wanted;
    let runner = Pipelined::new(source.before.clone(), service);
    runner.run(&mut source.feed, options.rate, progress, stop)
}

/// Reports which limits of `--fail-if` are exceeded, and which cannot be judged. Returns true if
/// one is exceeded.
fn tell_failed(facts: &Facts, limits: &[Limit]) -> bool {
    let latency = &facts.latency;
    let mut fails = false;
    for limit in limits {
        if let Some(too_few) = limit.too_few(facts.commands.total) {
            let _ = writeln!(io::stderr(), "thalweg: {too_few}");
        } else if let Some(failed) = limit.failed(&latency.end_to_end, latency.throughput_per_s) {
            let _ = writeln!(io::stderr(), "thalweg: {failed}");
            fails = true;
        }
    }
    fails
}

/// Reports that the run had to wait for its commands: always for a run at a rate, otherwise from 1
/// % of its time on.
fn tell_waited(facts: &Facts, notes: &Notes) {
    let (rate, elapsed_ns) = (facts.input.rate_per_s, facts.latency.elapsed_ns);
    let waited_ns = facts.input.waited_ns;
    if let Some(ns) = waited_ns.filter(|ns| rate.is_some() || *ns >= elapsed_ns / 100) {
        let (waited, elapsed) = (ns as f64, elapsed_ns as f64);
        notes.hint(&format!(
            "the sender waited {} ({:.1} % of the run) for commands to be read: {}",
            Nanoseconds(waited),
            100.0 * waited / elapsed.max(waited),
            match rate {
                Some(_) => "this is part of the latencies",
                None => "reading was the bottleneck",
            }
        ));
    }
}

/// Prints the facts, on standard error if standard output carries other data.
fn print(format: Format, facts: &Facts, is_aside: bool) -> Result<(), Failure> {
    let mut out = String::new();
    match format {
        Format::Text => text::write(facts, !is_aside && terminal::colours(), &mut out)
            .map_err(|_| Failure::Output(std::io::Error::other("the text cannot be made")))?,
        Format::Json => out = crate::output::json(facts)?,
    }
    if is_aside {
        let _ = io::stderr().write_all(out.as_bytes());
        return Ok(());
    }
    crate::output::print(out.as_bytes())
}

fn facts(options: &Run, source: Source, mut outcome: RunOutcome, hash: u64) -> (Facts, Finding) {
    let is_whole = source.feed.is_all(outcome.sent);
    for slow in &mut outcome.latency.slowest {
        slow.command += source.from - 1;
    }
    let kinds = source.feed.kinds(outcome.sent).0;
    let mut by_kind: Vec<Count> = kinds.iter().map(|(k, n)| Count::new(*k, *n)).collect();
    let results = outcome.results.iter();
    let mut by_result: Vec<Count> = results.map(|(r, n)| Count::new(r.name(), *n)).collect();
    for counts in [&mut by_kind, &mut by_result] {
        counts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    }
    let mut check = source.check;
    let mut finding = Finding::Fine;
    if let Some(expected) = source.final_book.as_ref().filter(|_| is_whole) {
        let found = expected.compare(&outcome.state);
        if found.scores.iter().any(|score| score.agree != score.of) {
            finding = Finding::Negative;
        }
        check = Some(found);
    }
    let journal = outcome.journal;
    if (journal.as_ref()).is_some_and(|journal| journal.snapshot_failed.is_some()) {
        finding = Finding::Negative;
    }
    let mut facts = Facts {
        version: 3,
        explanation: None,
        machine: Machine::default(),
        input: Input {
            name: source.name,
            format: source.format,
            seed: source.seed,
            rules: options.input.rules.name().to_owned(),
            placement: outcome.placement,
            rate_per_s: options.rate.per_s(),
            from: (source.from > 1).then_some(source.from),
            interrupted: !is_whole,
            waited_ns: Some(source.feed.waited().as_nanos() as u64).filter(|ns| *ns > 0),
        },
        commands: Commands {
            total: outcome.sent,
            by_kind,
            by_result,
        },
        trades: outcome.trades,
        books: books(&outcome.state),
        state_hash: format!("{hash:016x}"),
        journal,
        latency: outcome.latency,
        check,
    };
    facts.explanation = explanation::explain(&facts.input, &facts.latency);
    (facts, finding)
}

fn books(state: &State) -> Vec<BookDepth> {
    let level = |level: book::Level| DepthLevel {
        price_ticks: level.price,
        size_lots: level.volume,
        orders: level.orders,
    };
    let side = |book: &book::Book, action| book.levels(action, LEVELS).map(level).collect();
    let count = |book: &book::Book, action| book.levels(action, usize::MAX).count() as u64;
    let books = state.matching.books().into_iter().take(BOOKS);
    books
        .map(|book| BookDepth {
            symbol: i64::from(book.spec().id.0),
            bids: side(book, Action::Bid),
            asks: side(book, Action::Ask),
            bid_levels: count(book, Action::Bid),
            ask_levels: count(book, Action::Ask),
        })
        .collect()
}
