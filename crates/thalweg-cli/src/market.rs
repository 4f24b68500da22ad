//! The market of `thalweg exchange serve --market`.

use crate::arguments::values::{self, RulesSetting};
use crate::beginning::{Beginning, Found, Span, beginning};
use crate::conditions::ConditionOptions;
use crate::failure::Failure;
use crate::message::counted;
use crate::realflow::{Remainder, replay};
use crate::source::{self, Intended, SEED, Taken};
use crate::terminal::Notes;
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thalweg_exchange::codec::{command_bytes, encode_command};
use thalweg_exchange::{Command, CurrencyId, SymbolSpec, UserId, UserLimits};
use thalweg_hash::xxh64;
use thalweg_server::conditions::NetworkConditions;
use thalweg_server::demo::Demo;
use thalweg_server::flow::{
    FLOW_USERS, Flow, FlowEvent, GeneratedMarket, Pace, Recorded, Source, TimedEvent, funded_users,
};

/// The time between two commands of a recording without times.
const UNTIMED_NS: u64 = 10_000_000;

/// The options of a market that trades beside the users.
#[derive(Debug, Args)]
pub(crate) struct MarketOptions {
    /// A market to trade against: a recording that `exchange run` takes too, or `made-up`
    /// [default of --demo: made-up]
    #[arg(long, value_name = "FILE|made-up")]
    pub(crate) market: Option<PathBuf>,

    /// How fast the market is: 10x, 0.5x, or max for as fast as the exchange takes it
    #[arg(long, value_name = "SPEED", value_parser = speed, default_value = "1x")]
    speed: Speed,

    /// Execute the market's events before the N-th, or before a time, at once: 5000, 90s after the
    /// first, 09:30 of its day (UTC where it has a date), 2015-05-01T01:30:00Z
    #[arg(long, value_name = "N", value_parser = beginning)]
    from: Option<Beginning>,

    /// Begin again at the end of a recording: its orders are cancelled, its money is restored
    #[arg(long = "loop")]
    is_loop: bool,

    /// Recorded books: what rested before a recording of Bitstamp or LOBSTER is learnt from them
    #[arg(long, value_name = "FILE")]
    books: Option<PathBuf>,

    /// Seed of a made-up market, of delays and faults [default: 1]
    #[arg(long, value_name = "N", value_parser = values::any)]
    seed: Option<u64>,

    #[command(flatten)]
    conditions: ConditionOptions,
}

/// How many times as fast as recorded; none for as fast as possible.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Speed(Option<f64>);

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed(None));
    }
    let number = text.strip_suffix('x').and_then(|text| text.parse().ok());
    match number {
        Some(times) if (0.001..=1e6).contains(&times) => Ok(Speed(Some(times))),
        _ => Err("a speed is `max`, or from 0.001x to 1000000x".to_owned()),
    }
}

impl MarketOptions {
    /// Returns the market that was asked for, under the rules of exchange-core 0.5 or the default
    /// ones; of a demo it is made up unless one is named.
    ///
    /// # Errors
    /// Returns the errors of the file, and of options that do not fit the market.
    pub(crate) fn open(&self, is_demo: bool, is_reference: bool) -> Result<Option<Flow>, Failure> {
        let rules = match is_reference {
            true => RulesSetting::Reference,
            false => RulesSetting::Default,
        };
        let guests = match is_demo {
            true => Demo::guests().to_vec(),
            false => Vec::new(),
        };
        let file = self
            .market
            .as_ref()
            .filter(|path| path.as_os_str() != "made-up");
        if let Some(file) = file {
            if self.seed.is_some() && !self.conditions.are_given() {
                return misuse("--seed goes with a made-up market, --latency or --faults");
            }
            return self.recorded(file, rules, &guests).map(Some);
        }
        if self.is_loop || self.books.is_some() {
            return misuse("--loop and --books go with a recorded market: --market FILE");
        }
        if self.market.is_none() && !is_demo {
            if self.conditions.are_given() {
                return misuse("--latency and --faults need --market or --demo");
            }
            let is_default = self.speed == Speed(Some(1.0));
            if self.from.is_some() || self.seed.is_some() || !is_default {
                return misuse("--speed, --from and --seed need --market or --demo");
            }
            return Ok(None);
        }
        self.made_up(&Demo::symbols(), &guests).map(Some)
    }

    fn conditions(&self) -> Result<Option<Arc<NetworkConditions>>, Failure> {
        self.conditions.open(self.seed.unwrap_or(SEED))
    }

    /// Returns where a market of this span begins, if that was asked for.
    fn found(&self, span: Span) -> Result<Option<Found>, Failure> {
        let found = self.from.as_ref().map(|from| from.resolve(span));
        found.transpose().map_err(Failure::Misuse)
    }

    fn made_up(&self, symbols: &[SymbolSpec], guests: &[UserId]) -> Result<Flow, Failure> {
        let seed = self.seed.unwrap_or(SEED);
        let market = GeneratedMarket::new(seed, symbols, guests);
        let span = Span {
            began_ns: None,
            length_ns: u64::MAX,
            events: u64::MAX,
        };
        let from = match self.found(span)? {
            None => market.opening(),
            Some(Found::Event(event)) => event,
            Some(Found::AfterNs(after_ns)) => GeneratedMarket::event_after(after_ns),
        };
        Ok(Flow {
            name: "made-up".to_owned(),
            identity: xxh64(seed, format!("{symbols:?}{guests:?}").as_bytes()),
            pace: Pace {
                speed: self.speed.0,
                from,
            },
            source: Source::GeneratedMarket(market),
            conditions: self.conditions()?,
        })
    }

    fn recorded(
        &self,
        file: &Path,
        rules: RulesSetting,
        guests: &[UserId],
    ) -> Result<Flow, Failure> {
        let options = Intended::whole(file.to_owned(), self.books.clone(), rules);
        let conditions = self.conditions()?;
        let notes = Notes::new(false);
        let source = source::load(&options, Taken::Often, &notes)?;
        let name = source.name;
        let times = &source.recorded.times_ns;
        let mut events = Events::new(guests, !times.is_empty());
        let mut remainders = source.recorded.remainders.iter().peekable();
        for (at, command) in source.feed.head.into_iter().enumerate() {
            while let Some(remainder) = remainders.next_if(|next| next.after_commands <= at) {
                events.lower(remainder)?;
            }
            // Formats without times have a command each hundredth of a second.
            let time_ns = times.get(at).copied();
            events
                .add(command, time_ns.unwrap_or(at as u64 * UNTIMED_NS))
                .map_err(|why| Failure::Misuse(format!("{name}: command {}: {why}", at + 1)))?;
        }
        for remainder in remainders {
            events.lower(remainder)?;
        }
        if events.passed_over > 0 {
            let rows = counted(events.passed_over, "command");
            notes.hint(&format!(
                "{name}: {rows} about the clock, the whole market or all users \
                passed over"
            ));
        }
        let from = match self.found(events.span())? {
            None => 0,
            Some(Found::Event(event)) => event,
            Some(Found::AfterNs(after_ns)) => events.first_after(after_ns),
        };
        Ok(Flow {
            name,
            identity: events.identity,
            pace: Pace {
                speed: self.speed.0,
                from,
            },
            source: Source::Recorded(events.finish(self.is_loop)),
            conditions,
        })
    }
}

fn misuse<T>(text: &str) -> Result<T, Failure> {
    Err(Failure::Misuse(text.to_owned()))
}

/// The events of a recording, made one by one.
struct Events<'g> {
    events: Vec<TimedEvent>,
    guests: &'g [UserId],
    identity: u64,
    passed_over: u64,
    is_timed: bool,
    /// The time of the first recorded command that is no set-up.
    began_ns: Option<u64>,
    /// The money that the recording has given its users.
    money: BTreeMap<(UserId, CurrencyId), i64>,
}

impl Events<'_> {
    fn new(guests: &[UserId], is_timed: bool) -> Events<'_> {
        Events {
            events: Vec::new(),
            guests,
            identity: 0,
            passed_over: 0,
            is_timed,
            began_ns: None,
            money: BTreeMap::new(),
        }
    }

    fn push(&mut self, event: FlowEvent, time_ns: u64) {
        if time_ns > 0 {
            self.began_ns.get_or_insert(time_ns);
        }
        let due_ns = time_ns.saturating_sub(self.began_ns.unwrap_or(0));
        let text = match &event {
            FlowEvent::Command(command) => encoded(command),
            other => format!("{other:?}").into_bytes(),
        };
        self.identity = xxh64(self.identity, &text);
        self.events.push(TimedEvent { due_ns, event });
    }

    /// Returns when the recording was made; one without times begins at 0.
    fn span(&self) -> Span {
        Span {
            began_ns: self.began_ns.filter(|_| self.is_timed),
            length_ns: self.events.last().map_or(0, |last| last.due_ns),
            events: self.events.len() as u64,
        }
    }

    /// Returns the number of the first event at a time after the first one, or later.
    fn first_after(&self, after_ns: u64) -> u64 {
        let is_before = |event: &TimedEvent| event.due_ns < after_ns;
        self.events.partition_point(is_before) as u64
    }

    fn lower(&mut self, remainder: &Remainder) -> Result<(), Failure> {
        let uid = own(remainder.uid).map_err(Failure::Misuse)?;
        let event = FlowEvent::Lower {
            uid,
            symbol: replay::SYMBOL,
            order_id: remainder.order_id,
            left: remainder.left,
        };
        self.push(event, remainder.time_ns);
        Ok(())
    }

    /// Adds a command for the market's own users.
    fn add(&mut self, mut command: Command, time_ns: u64) -> Result<(), String> {
        if !take_over(&mut command)? {
            self.passed_over += 1;
            return Ok(());
        }
        let (mut users, mut symbols) = (Vec::new(), None);
        match &command {
            Command::AddUser { uid } => users.push(*uid),
            Command::AddAccounts(accounts) => {
                for account in accounts.iter() {
                    users.push(account.uid);
                    for (currency, amount) in &account.balances {
                        self.give(account.uid, *currency, *amount);
                    }
                }
            }
            Command::Balance {
                uid,
                currency,
                amount,
                ..
            } => self.give(*uid, *currency, *amount),
            Command::AddSymbols(specs) => symbols = Some(Arc::clone(specs)),
            _ => {}
        }
        self.push(FlowEvent::Command(command), time_ns);
        if let Some(specs) = symbols
            && !self.guests.is_empty()
        {
            let guests = funded_users(self.guests, &specs);
            self.push(FlowEvent::Command(guests), time_ns);
        }
        for uid in users {
            let limits = Command::SetLimits {
                uid: Some(uid),
                limits: Some(UserLimits::NONE),
            };
            self.push(FlowEvent::Command(limits), time_ns);
        }
        Ok(())
    }

    fn give(&mut self, uid: UserId, currency: CurrencyId, amount: i64) {
        let sum = self.money.entry((uid, currency)).or_default();
        *sum = sum.saturating_add(amount);
    }

    fn finish(self, is_loop: bool) -> Recorded {
        let mut between = Vec::new();
        if is_loop {
            let users: BTreeSet<UserId> = self.money.keys().map(|(uid, _)| *uid).collect();
            let cancel = |uid| FlowEvent::Command(Command::cancel_all(Some(uid), None));
            between.extend(users.into_iter().map(cancel));
            let restore = |((uid, currency), balance)| FlowEvent::Restore {
                uid,
                currency,
                balance,
            };
            between.extend(self.money.into_iter().map(restore));
        }
        Recorded {
            events: self.events,
            between,
        }
    }
}

fn encoded(command: &Command) -> Vec<u8> {
    let mut bytes = vec![0; command_bytes(command)];
    let length = encode_command(command, &mut bytes).unwrap_or(0);
    bytes.truncate(length);
    bytes
}

/// Returns the market's own user that stands for one of a recording.
fn own(user: UserId) -> Result<UserId, String> {
    let own = user.0.checked_add(FLOW_USERS).filter(|_| user.0 >= 0);
    let most = i64::MAX - FLOW_USERS;
    own.map(UserId)
        .ok_or_else(|| format!("user {user} is not from 0 to {most}"))
}

/// Has a command be about the market's own users. Returns false for one that is about all users,
/// the clock, or all of the exchange.
fn take_over(command: &mut Command) -> Result<bool, String> {
    match command {
        Command::Place(place) => place.uid = own(place.uid)?,
        Command::PlaceConditional(order) => {
            let order = Arc::make_mut(order);
            order.place.uid = own(order.place.uid)?;
        }
        Command::Amend(amend) => {
            let amend = Arc::make_mut(amend);
            amend.uid = own(amend.uid)?;
        }
        Command::Cancel { uid, .. }
        | Command::Move { uid, .. }
        | Command::Reduce { uid, .. }
        | Command::AddUser { uid }
        | Command::Balance { uid, .. }
        | Command::PayFees { uid, .. }
        | Command::Suspend { uid }
        | Command::Resume { uid }
        | Command::Disconnect { uid }
        | Command::SetLimits { uid: Some(uid), .. }
        | Command::CancelAll { uid: Some(uid), .. } => *uid = own(*uid)?,
        Command::AddAccounts(accounts) => {
            let mut own_accounts = accounts.to_vec();
            for account in &mut own_accounts {
                account.uid = own(account.uid)?;
            }
            *accounts = own_accounts.into();
        }
        Command::SetLimits { uid: None, .. }
        | Command::CancelAll { uid: None, .. }
        | Command::Clock { .. }
        | Command::RemoveSymbol { .. }
        | Command::Reset => return Ok(false),
        _ => {}
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_have_a_unit_and_limits() {
        assert_eq!(speed("max"), Ok(Speed(None)));
        assert_eq!(speed("10x"), Ok(Speed(Some(10.0))));
        assert_eq!(speed("0.5x"), Ok(Speed(Some(0.5))));
        for wrong in ["10", "x", "0x", "-1x", "NaNx", "infx", "1e7x", ""] {
            let text = speed(wrong).expect_err("it is wrong");
            assert!(text.contains("from 0.001x"), "{wrong}: {text}");
        }
    }
}
