//! `thalweg exchange load` sends orders to a served exchange in an open loop.
//!
//! This thread keeps the schedule and gives each command to its session; the sessions run in a
//! runtime with a thread of its own. A session whose window is full delays the schedule, which the
//! facts distinguish from a loader that is late by itself.

use crate::arguments::values::{self, Format};
use crate::failure::{Failure, Finding};
use crate::message::{grouped, percent, rate};
use crate::output::{print, print_json};
use crate::report::facts::Distribution;
use crate::runner::distribution;
use crate::session;
use crate::terminal::{Interruption, Notes};
use clap::Args;
use serde::{Serialize, Serializer};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thalweg_client::{
    AdminClient, AdminCommand, Closed, Options, Outcome, TradeClient, TradeCommand,
};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderId, OrderType, Place, SymbolId, SymbolSpec,
    UserId,
};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Histogram;
use thalweg_measure::load::{LoadReport, OpenLoop, Rate};
use thalweg_measure::random::SplitMix;
use thalweg_measure::table::Nanoseconds;
use tokio::runtime::Runtime;

/// The options of `exchange load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  thalweg exchange load --setup 127.0.0.1:7412 --sessions 8 --rate 20k --for 30s
      Makes a symbol and 8 users with money first; of a server without keys
  thalweg exchange load --user 7 --key-file trader.key --sessions 4 --format json
      4 sessions of user 7")]
pub(crate) struct Load {
    /// Host and port of the exchange
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7411")]
    pub(crate) connect: String,

    /// Sessions, from 1 to 1024
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub(crate) sessions: u32,

    /// Commands a second, of all sessions together; or max
    #[arg(long, default_value = "10k")]
    pub(crate) rate: Rate,

    /// For how long, like 500ms, 10s or 2m
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = values::time)]
    pub(crate) time: Duration,

    /// The first user; each session has the next one. With --key-file all are this user's
    #[arg(long, value_name = "N", default_value_t = 1_000_001)]
    #[arg(value_parser = clap::value_parser!(i64).range(0..=i64::MAX - 1_024))]
    pub(crate) user: i64,

    /// The symbol to trade in, a pair of currencies
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) symbol: i32,

    /// The middle of the prices, in ticks
    #[arg(long, value_name = "TICKS", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(i64).range(100..=1_000_000_000))]
    pub(crate) price: i64,

    /// Commands of a session without an answer at most
    #[arg(long, value_name = "N", default_value_t = 1_024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) in_flight: u32,

    /// A file that holds the key
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// Make symbol and users first, if they are not there, through the admin listener here
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) setup: Option<String>,

    /// The administrator who does so
    #[arg(long, value_name = "N", default_value_t = 1, requires = "setup")]
    #[arg(value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) admin: i64,

    /// A file that holds that key
    #[arg(long, value_name = "FILE", requires = "setup")]
    admin_key_file: Option<PathBuf>,

    /// Format of the facts on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// No progress and no hints on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// One session: its client, the orders that it sends, and their results.
struct Session {
    client: TradeClient,
    orders: Orders,
    tally: Arc<Mutex<Tally>>,
}

pub(crate) fn load(asked: &Load) -> Result<Finding, Failure> {
    let interruption = Interruption::new();
    let notes = Notes::new(asked.quiet);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::Misuse(format!("no thread for the sessions: {error}")))?;
    if let Some(address) = &asked.setup {
        set_up(asked, address, &runtime)?;
    }
    let mut sessions = connect(asked, &runtime)?;
    notes.hint(&format!("{} sessions, {:?}", sessions.len(), asked.time));
    let cpu_before = cpu_time();
    let report = send(asked, &runtime, &mut sessions, &interruption);
    let tallies: Vec<_> = sessions
        .iter()
        .map(|session| Arc::clone(&session.tally))
        .collect();
    for session in sessions {
        runtime.block_on(session.client.close());
    }
    let cpu = cpu_time().saturating_sub(cpu_before);
    let mut total = Tally::default();
    for tally in tallies {
        total.add(&tally.lock().unwrap_or_else(PoisonError::into_inner));
    }
    let facts = Facts::new(asked, &report, &total, cpu);
    match asked.format {
        Format::Text => print(facts.text().as_bytes())?,
        Format::Json => print_json(&facts)?,
    }
    Ok(match (interruption.has_come(), total.is_whole()) {
        (true, _) => interruption.finding(),
        (false, true) => Finding::Fine,
        (false, false) => Finding::Negative,
    })
}

/// Returns the user and the session number that trade in a session.
fn holder(asked: &Load, session: u32) -> (i64, u32) {
    match asked.key_file {
        Some(_) => (asked.user, session),
        None => (asked.user.saturating_add(session.into()), 0),
    }
}

fn connect(asked: &Load, runtime: &Runtime) -> Result<Vec<Session>, Failure> {
    let in_session = |number| {
        let (holder, of_holder) = holder(asked, number);
        let key_file = asked.key_file.as_deref();
        let mut options: Options = session::options(&asked.connect, holder, key_file)?;
        options.number = of_holder;
        options.in_flight_max = asked.in_flight as usize;
        options.without_reports = true;
        let connected = runtime.block_on(TradeClient::connect(options));
        // Lost connections need no message: the latency shows them.
        let failure = |lost| session::failure(lost, key_file, "--key-file");
        let (client, _) = connected.map_err(failure)?;
        let allowed = client.welcome().in_flight_max.min(asked.in_flight);
        Ok(Session {
            orders: Orders::new(asked, holder, client.welcome().next_command, number),
            tally: Arc::new(Mutex::new(Tally::of(allowed.into()))),
            client,
        })
    };
    (0..asked.sessions).map(in_session).collect()
}

/// Creates the symbol and the users.
fn set_up(asked: &Load, address: &str, runtime: &Runtime) -> Result<(), Failure> {
    let options = session::options(address, asked.admin, asked.admin_key_file.as_deref())?;
    let users = (0..asked.sessions).map(|session| holder(asked, session).0);
    let commands = set_up_commands(asked, users);
    runtime.block_on(async {
        let key_file = asked.admin_key_file.as_deref();
        let failure = |lost| session::failure(lost, key_file, "--admin-key-file");
        let (client, events) = AdminClient::connect(options).await.map_err(failure)?;
        drop(events);
        for command in commands {
            execute(&client, command).await?;
        }
        client.close().await;
        Ok(())
    })
}

async fn execute(client: &AdminClient, command: Command) -> Result<(), Failure> {
    let failed = |what: String| Failure::Misuse(format!("--setup: {what}"));
    let command = AdminCommand::try_from(command).map_err(|error| failed(error.to_string()))?;
    let ticket = client.submit(command).await;
    let outcome = ticket.map_err(|Closed| failed(Closed.to_string()))?.await;
    match outcome.result() {
        Some(result) if !result.is_refusal() => Ok(()),
        _ => Err(failed(outcome.to_string())),
    }
}

fn send(
    asked: &Load,
    runtime: &Runtime,
    sessions: &mut [Session],
    interruption: &Interruption,
) -> LoadReport {
    let clock = Clock::global();
    let count = asked.rate.per_s().map(|per_s| commands(per_s, asked.time));
    let until = clock.ticks() + clock.ticks_from_ns(asked.time.as_nanos() as u64);
    let mut schedule = OpenLoop::new(clock, asked.rate).yielding(true);
    let sessions_max = sessions.len() as u64;
    schedule.run_until(count.unwrap_or(u64::MAX), |index, due| {
        let is_over = asked.rate == Rate::MAX && due >= until;
        if is_over || interruption.has_come() {
            return ControlFlow::Break(());
        }
        let session = &mut sessions[(index % sessions_max) as usize];
        let tally = Arc::clone(&session.tally);
        lock(&tally).sent();
        let done = move |outcome| {
            let latency_ns = clock.ns(clock.ticks().saturating_sub(due));
            lock(&tally).done(&outcome, latency_ns);
        };
        let submitted = session.client.submit_with(session.orders.next(), done);
        match runtime.block_on(submitted) {
            Ok(()) => ControlFlow::Continue(()),
            Err(Closed) => {
                lock(&session.tally).not_sent();
                ControlFlow::Break(())
            }
        }
    })
}

/// Returns the number of commands that are due in this time, which is at least one.
fn commands(per_s: u64, time: Duration) -> u64 {
    let count = u128::from(per_s) * time.as_nanos() / 1_000_000_000;
    u64::try_from(count).unwrap_or(u64::MAX).max(1)
}

fn lock(tally: &Mutex<Tally>) -> std::sync::MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A sender counts as late where one command in a hundred is sent more than this long after it was
/// due, in nanoseconds.
const LATE_NS: u64 = 1_000_000;
/// The window was the limit where more than this share of the commands met a full one.
const HELD_UP: f64 = 0.01;
/// The width of the longest bar, in columns.
const BAR: u64 = 40;

/// The facts of a load. The keys of the JSON are the field names; percentiles beyond which too few
/// values lie are left out.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    sessions: u32,
    rate_asked_per_s: Option<u64>,
    rate_sent_per_s: f64,
    sent: u64,
    executed: u64,
    results: BTreeMap<&'static str, u64>,
    refused: BTreeMap<&'static str, u64>,
    repeated: u64,
    unanswered: u64,
    #[serde(serialize_with = "in_short")]
    latency_ns: Distribution,
    /// The distribution of how much later than due the commands were sent.
    #[serde(serialize_with = "in_short")]
    lateness_ns: Distribution,
    held_up: u64,
    loader_cores: f64,
    limit: Limit,
    /// The histogram: an upper bound in nanoseconds, and the number of latencies up to it.
    histogram: Vec<(u64, u64)>,
}

/// The reason why the rate was not higher, or the latency not lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Limit {
    /// Commands were sent when they were due.
    None,
    /// Commands had to wait for the answers to earlier ones.
    Exchange,
    /// The loader did not send them in time.
    Loader,
}

/// Returns the mean, the percentiles that have enough times, and the maximum, in nanoseconds.
fn figures(times: &Distribution) -> impl Iterator<Item = (&'static str, f64)> {
    let percentiles = times.known().map(|(name, ns)| (name, ns as f64));
    let mean = [("mean", times.summary.mean)].into_iter();
    mean.chain(percentiles)
        .chain([("max", times.summary.max as f64)])
}

/// Serializes the figures without the curve, as `mean`, `p50`, `p999`, `max`.
fn in_short<S: Serializer>(times: &Distribution, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(figures(times).map(|(name, ns)| match name {
        "mean" => (name.to_owned(), json!(ns)),
        _ => (name.replace('.', ""), json!(ns as u64)),
    }))
}

/// Returns the figures as one line of text.
fn shown(times: &Distribution) -> String {
    let figures = figures(times).map(|(name, ns)| format!("{name} {}", Nanoseconds(ns)));
    figures.collect::<Vec<_>>().join("  ")
}

impl Facts {
    pub(crate) fn new(asked: &Load, report: &LoadReport, total: &Tally, cpu: Duration) -> Self {
        let lateness = report.lateness_ns.quantile(0.99);
        let held_up = total.held_up as f64 > HELD_UP * report.sent as f64;
        let limit = match asked.rate.per_s() {
            _ if held_up => Limit::Exchange,
            None => Limit::Loader,
            Some(_) if lateness > LATE_NS => Limit::Loader,
            Some(_) => Limit::None,
        };
        Self {
            sessions: asked.sessions,
            rate_asked_per_s: asked.rate.per_s(),
            rate_sent_per_s: report.sent_per_s(),
            sent: report.sent,
            executed: total.latency_ns.count(),
            results: total.results.clone(),
            refused: total.refused.clone(),
            repeated: total.repeated,
            unanswered: total.unanswered,
            latency_ns: distribution(&total.latency_ns),
            lateness_ns: distribution(&report.lateness_ns),
            held_up: total.held_up,
            loader_cores: cpu.as_nanos() as f64 / report.span_ns.max(1) as f64,
            limit,
            histogram: octaves(&total.latency_ns),
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{} commands by {} sessions, {}",
            grouped(self.sent),
            self.sessions,
            rate(self.rate_sent_per_s)
        );
        if let Some(asked) = self.rate_asked_per_s {
            let _ = write!(text, " of {}", rate(asked as f64));
        }
        let _ = writeln!(text, "\nexecuted   {}", grouped(self.executed));
        for (result, count) in &self.results {
            let _ = writeln!(text, "  {result} {}", grouped(*count));
        }
        for (reason, count) in &self.refused {
            let _ = writeln!(text, "refused    {} {reason}", grouped(*count));
        }
        for (what, count) in [
            ("sent again", self.repeated),
            ("no answer ", self.unanswered),
        ] {
            if count > 0 {
                let _ = writeln!(text, "{what} {}", grouped(count));
            }
        }
        let _ = writeln!(text, "latency    {}", shown(&self.latency_ns));
        if self.rate_asked_per_s.is_some() {
            let _ = writeln!(text, "sent late  {}", shown(&self.lateness_ns));
        }
        let _ = writeln!(text, "{}\n", self.limit_text());
        let most = self
            .histogram
            .iter()
            .map(|(_, count)| *count)
            .max()
            .unwrap_or(1);
        for (below, count) in &self.histogram {
            let bar = "#".repeat((count * BAR).div_ceil(most.max(1)) as usize);
            let part = percent(*count as f64 / self.executed.max(1) as f64);
            let _ = writeln!(
                text,
                "  ≤ {:>9} {part:>9} {bar}",
                Nanoseconds(*below as f64)
            );
        }
        text
    }

    fn limit_text(&self) -> String {
        let cores = format!("the loader used {:.2} cores", self.loader_cores);
        match self.limit {
            Limit::None => format!("limit      none: commands were sent when due; {cores}"),
            Limit::Exchange => format!(
                "limit      the exchange: {} of the commands were due while their session had no \
                 answer to earlier ones; {cores}",
                percent(self.held_up as f64 / self.sent.max(1) as f64)
            ),
            Limit::Loader => format!("limit      the loader: it sent late; {cores}"),
        }
    }
}

/// Returns counts by powers of two, from the first that is not zero to the last.
fn octaves(histogram: &Histogram) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (value, count) in histogram.iter_recorded() {
        let below = value.max(1).checked_next_power_of_two().unwrap_or(u64::MAX);
        *counts.entry(below).or_default() += count;
    }
    counts.into_iter().collect()
}

/// The number of orders that a session leaves in the book.
const RESTING: usize = 16;
/// The maximum distance of orders from the middle, in ticks.
const TICKS: u64 = 50;
const LOTS: i64 = 5;
const BASE: CurrencyId = CurrencyId(1_000_001);
const QUOTE: CurrencyId = CurrencyId(1_000_002);
/// The amount of each currency that each user gets.
const MONEY: i64 = 1 << 50;

/// The orders of one session.
#[derive(Debug)]
pub(crate) struct Orders {
    user: UserId,
    symbol: SymbolId,
    price: i64,
    next_id: i64,
    resting: VecDeque<OrderId>,
    random: SplitMix,
}

impl Orders {
    /// Creates the orders of a session. Order ids begin where no earlier load has used any: each
    /// load starts from the number of the exchange's next command. Each session uses a residue
    /// class of its own, as several sessions may belong to one user.
    pub(crate) fn new(asked: &Load, holder: i64, next_command: u64, session: u32) -> Self {
        Self {
            user: UserId(holder),
            symbol: SymbolId(asked.symbol),
            price: asked.price,
            next_id: (next_command as i64) << 11 | i64::from(session),
            resting: VecDeque::with_capacity(RESTING + 1),
            random: SplitMix::new(session.into()),
        }
    }

    /// Cancels the oldest order once there are enough; otherwise places another one, one in eight
    /// of them priced to trade.
    pub(crate) fn next(&mut self) -> TradeCommand {
        if self.resting.len() >= RESTING
            && let Some(oldest) = self.resting.pop_front()
        {
            return TradeCommand::cancel(self.user, self.symbol, oldest);
        }
        self.next_id += 1 << 11;
        let order_id = OrderId(self.next_id);
        let random = self.random.next_u64();
        let takes = random.is_multiple_of(8);
        let distance = 1 + (random >> 8) as i64 % TICKS as i64;
        let action = if random >> 40 & 1 == 0 {
            Action::Ask
        } else {
            Action::Bid
        };
        let sign = if (action == Action::Bid) == takes {
            1
        } else {
            -1
        };
        let price = self.price + sign * distance;
        if !takes {
            self.resting.push_back(order_id);
        }
        TradeCommand::from(
            Place::limit((self.user, order_id), self.symbol, action, (price, LOTS)).with_type(
                if takes {
                    OrderType::Ioc
                } else {
                    OrderType::Gtc
                },
            ),
        )
    }
}

/// Returns the commands that create a pair without fees, and users with money in both currencies.
/// Existing ones remain.
fn set_up_commands(asked: &Load, users: impl Iterator<Item = i64>) -> Vec<Command> {
    let symbol = SymbolSpec::pair(SymbolId(asked.symbol), BASE, QUOTE);
    let account = |uid| AccountSpec::new(UserId(uid), vec![(BASE, MONEY), (QUOTE, MONEY)]);
    let mut accounts: Vec<AccountSpec> = users.map(account).collect();
    accounts.dedup_by_key(|account| account.uid);
    vec![
        Command::AddSymbols(Arc::new([symbol])),
        Command::AddAccounts(accounts.into()),
    ]
}

/// The counts of one session, or of all.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The maximum number of commands without an answer.
    window: u64,
    in_flight: u64,
    /// The number of commands that were due while the window was full.
    held_up: u64,
    /// The latency of executed commands, from when they were due to the acknowledgement.
    latency_ns: Histogram,
    pub(crate) results: BTreeMap<&'static str, u64>,
    pub(crate) refused: BTreeMap<&'static str, u64>,
    /// The number of commands that were sent again after a connection was lost.
    pub(crate) repeated: u64,
    unanswered: u64,
}

impl Tally {
    pub(crate) fn of(window: u64) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    pub(crate) fn sent(&mut self) {
        self.held_up += u64::from(self.in_flight >= self.window);
        self.in_flight += 1;
    }

    pub(crate) fn not_sent(&mut self) {
        self.in_flight -= 1;
    }

    pub(crate) fn done(&mut self, outcome: &Outcome, latency_ns: u64) {
        self.in_flight -= 1;
        match outcome {
            Outcome::Executed {
                result,
                is_repeated,
                ..
            } => {
                self.latency_ns.record(latency_ns);
                *self.results.entry(result.name()).or_default() += 1;
                self.repeated += u64::from(*is_repeated);
            }
            Outcome::Refused { why, .. } => *self.refused.entry(why.name()).or_default() += 1,
            _ => self.unanswered += 1,
        }
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        self.held_up += other.held_up;
        self.latency_ns.merge(&other.latency_ns);
        for (result, count) in &other.results {
            *self.results.entry(result).or_default() += count;
        }
        for (reason, count) in &other.refused {
            *self.refused.entry(reason).or_default() += count;
        }
        self.repeated += other.repeated;
        // A command that has no answer when all is over will get none.
        self.unanswered += other.unanswered + other.in_flight;
    }

    /// Returns whether every command was executed.
    pub(crate) fn is_whole(&self) -> bool {
        self.unanswered == 0 && self.refused.is_empty()
    }
}

/// Returns the processor time that this program has used so far.
fn cpu_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
}
