//! The thread that follows the drop copy: ids for trades, the log, then memory and market data.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use thalweg_exchange::UserId;
use thalweg_exchange::execution::{Execution, ExecutionReport};
use thalweg_exchange::market::{BestPrices, Body, Quote, Snapshot};
use thalweg_exchange::session::ReportNumber;
use thalweg_server::{DropCopy, DropCopyEvent, OpenOrdersOf};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::GatewayError;
use crate::checkpoint::{Checkpoints, Replay};
use crate::market::Trade;
use crate::orders::{Order, Record, UserReport};
use crate::state::{State, now_us};
use crate::trade_ids::TradeIds;

/// The time between two attempts to write a log that has no room.
const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// Something to be applied, once it is in the log.
enum Step {
    Copied(DropCopyEvent),
    Trade(Trade),
    Report(UserReport),
    /// An order that the gateway of another replica has sent.
    Noted(Box<Order>),
}

/// Starts the thread; it ends with the exchange. The receiver gets a message when the log is
/// applied and the books are there.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn follow(
    state: Arc<State>,
    copy: DropCopy,
    runtime: &Handle,
) -> io::Result<oneshot::Receiver<Result<(), GatewayError>>> {
    let (ready, is_ready) = oneshot::channel();
    let runtime = runtime.clone();
    let run = move || Follower::new(state, runtime).run(copy, ready);
    let named = thread::Builder::new().name("gateway-copy".into());
    named.spawn(run)?;
    Ok(is_ready)
}

pub(crate) struct Follower {
    pub(crate) state: Arc<State>,
    runtime: Handle,
    ids: TradeIds,
    checkpoints: Checkpoints,
    /// The last report of each user that has its step.
    last: HashMap<UserId, ReportNumber>,
    steps: Vec<Step>,
    records: Vec<Record>,
    /// The number after that of the last command whose end was read.
    next: u64,
    /// The trades that come next are of an auction.
    is_auction: bool,
    /// Reports may have been dropped before the next end.
    is_lossy: bool,
    /// The claim to lead that came while it is.
    held_claim: Option<DropCopyEvent>,
    /// The log was read, and its users' open orders are the exchange's.
    is_ready: bool,
}

impl Follower {
    fn new(state: Arc<State>, runtime: Handle) -> Self {
        Self {
            checkpoints: Checkpoints::new(state.checkpoint_bytes),
            state,
            runtime,
            ids: TradeIds::default(),
            last: HashMap::new(),
            steps: Vec::new(),
            records: Vec::new(),
            next: 0,
            is_auction: false,
            is_lossy: false,
            held_claim: None,
            is_ready: false,
        }
    }

    fn run(mut self, mut copy: DropCopy, ready: oneshot::Sender<Result<(), GatewayError>>) {
        let runtime = self.runtime.clone();
        let mut entries = Vec::new();
        let mut ready = Some(ready);
        let mut is_first = true;
        while runtime.block_on(copy.next(&mut entries)) {
            let state = Arc::clone(&self.state);
            let followed = self.follow(&mut entries, is_first, state.market.begin(now_us));
            state.market.settle();
            is_first = false;
            let has_failed = followed.is_err();
            if let Err(error) = followed {
                match ready.take() {
                    Some(ready) => _ = ready.send(Err(error)),
                    None => {
                        tracing::error!(%error, "the gateway ends: its log cannot be written");
                    }
                }
            } else if self.is_ready
                && let Some(ready) = ready.take()
            {
                let _ = ready.send(Ok(()));
            }
            if has_failed {
                return;
            }
            self.checkpoints.turn(&self.state, &self.ids);
        }
    }

    /// Reads entries, writes what they have for the log, and applies them.
    pub(crate) fn follow(
        &mut self,
        entries: &mut Vec<DropCopyEvent>,
        is_first: bool,
        time_us: i64,
    ) -> Result<(), GatewayError> {
        if is_first {
            self.recover(entries, time_us)?;
        }
        for entry in entries.drain(..) {
            match entry {
                DropCopyEvent::OpenOrders(list) => self.compare(&list, time_us)?,
                entry => self.prepare(entry, time_us),
            }
        }
        self.write_and_apply(time_us)?;
        if !self.is_ready && self.state.orders.is_compared() {
            for user in self.state.orders.forget_unsent() {
                self.keep(user)?;
            }
            self.is_ready = true;
        }
        Ok(())
    }

    fn write_and_apply(&mut self, time_us: i64) -> Result<(), GatewayError> {
        self.write()?;
        self.apply(time_us);
        Ok(())
    }

    /// Makes a user's open orders those that the exchange has.
    fn compare(&mut self, list: &OpenOrdersOf, time_us: i64) -> Result<(), GatewayError> {
        // They are compared as they were when the list was made.
        self.write_and_apply(time_us)?;
        for report in self.state.orders.missing_reports(list) {
            let reported = UserReport {
                number: ReportNumber::default(),
                report,
                trade: None,
                time_us,
                is_auction: false,
            };
            self.records.push(Record::Report(reported));
            self.steps.push(Step::Report(reported));
        }
        self.write_and_apply(time_us)?;
        if self.state.orders.close_unknown(list) {
            self.keep(list.user)?;
        }
        self.state.orders.compared(list);
        Ok(())
    }

    /// Writes all of a user, and waits until it is durable.
    fn keep(&mut self, user: UserId) -> Result<(), GatewayError> {
        let state = Arc::clone(&self.state);
        let checkpoints = Checkpoints::new(state.checkpoint_bytes);
        let mut checkpoints = std::mem::replace(&mut self.checkpoints, checkpoints);
        let kept = self.with_room(|| {
            checkpoints.finish_begun(&state)?;
            state.orders.log().commit(state.orders.keep(user)?)
        });
        self.checkpoints = checkpoints;
        kept
    }

    /// Applies the log, and what the exchange has done since its last record.
    fn recover(&mut self, entries: &[DropCopyEvent], time_us: i64) -> Result<(), GatewayError> {
        let state = Arc::clone(&self.state);
        for entry in entries {
            if let DropCopyEvent::Symbol(symbol) = entry {
                state.symbols.add(symbol.0, symbol.1);
            }
        }
        for (id, name) in state.symbols.names() {
            let is_of_it =
                |entry: &DropCopyEvent| matches!(entry, DropCopyEvent::Symbol(of) if of.0.id == id);
            if !entries.iter().any(is_of_it) {
                tracing::info!(
                    name,
                    symbol = id.0,
                    "the exchange does not have this symbol yet"
                );
            }
        }
        let mut replay = Replay::new(&state, &mut self.ids, &mut self.checkpoints);
        let first = state
            .orders
            .read(|record, bytes| replay.apply(record, bytes))?;
        replay.end(first)?;
        let first_end = entries.iter().find_map(|entry| match entry {
            DropCopyEvent::End(number) => Some(*number),
            _ => None,
        });
        if let Some(number) = first_end {
            self.fetch(number, time_us);
        }
        self.records.extend(state.orders.begin(&state.keys.users()));
        // The commands after that come with the drop copy.
        self.write_and_apply(time_us)
    }

    /// Takes the reports, up to those of a command, that did not come from the drop copy.
    fn fetch(&mut self, end: u64, time_us: i64) {
        let missed = self.state.orders.missed(self.next..=end, &self.last);
        for (number, report) in missed {
            self.report(number, report, time_us);
        }
    }

    fn prepare(&mut self, entry: DropCopyEvent, time_us: i64) {
        match entry {
            DropCopyEvent::Report(number, report) => {
                // Stop orders trade after the auction.
                self.is_auction &= report.kind != Execution::Triggered;
                let owner = report.owner;
                let Some(user) = self.state.orders.tracked(owner) else {
                    if let Some((trade, true)) = self.ids.of(&report, time_us) {
                        self.trade(trade, &report);
                    }
                    return;
                };
                let applied = || user.memory().last_report;
                let last = self.last.get(&owner).copied().or_else(applied);
                for (number, due) in self.state.orders.due(number, report, last) {
                    let is_auction = self.is_auction;
                    self.is_auction &= due.command == report.command;
                    self.report(number, due, time_us);
                    self.is_auction = is_auction;
                }
                if last.is_some_and(|last| number <= last)
                    && let Some((trade, true)) = self.ids.of(&report, time_us)
                {
                    self.trade(trade, &report);
                }
            }
            DropCopyEvent::Noted(note) => match Record::decode(&note) {
                Some(Record::Order(order)) if self.state.orders.is_wanted(&order) => {
                    self.records.push(Record::Order(order.clone()));
                    self.steps.push(Step::Noted(order));
                }
                Some(Record::Order(_)) => {}
                _ => tracing::error!("the note of an order is of another version"),
            },
            entry => {
                match entry {
                    DropCopyEvent::Restart => self.is_lossy = true,
                    DropCopyEvent::Auction => self.is_auction = true,
                    // Orders are taken when the reports that were dropped are applied.
                    DropCopyEvent::Claimed { leads: true, .. }
                        if self.is_lossy && self.next > 0 =>
                    {
                        self.held_claim = Some(entry);
                        return;
                    }
                    DropCopyEvent::Claimed { .. } => self.held_claim = None,
                    DropCopyEvent::End(number) => {
                        self.is_auction = false;
                        if std::mem::take(&mut self.is_lossy) {
                            self.fetch(number, time_us);
                            if self.next > 0 {
                                self.state.orders.list_again();
                            }
                        }
                        self.steps.extend(self.held_claim.take().map(Step::Copied));
                        self.next = number + 1;
                    }
                    _ => {}
                }
                self.steps.push(Step::Copied(entry));
            }
        }
    }

    fn report(&mut self, number: ReportNumber, report: ExecutionReport, time_us: i64) {
        let traded = self.ids.of(&report, time_us);
        if let Some((trade, true)) = traded {
            self.trade(trade, &report);
        }
        let reported = UserReport {
            number,
            report,
            trade: traded.map(|(trade, _)| trade.id),
            time_us,
            is_auction: self.is_auction,
        };
        self.last.insert(report.owner, number);
        self.records.push(Record::Report(reported));
        self.steps.push(Step::Report(reported));
    }

    fn trade(&mut self, trade: Trade, report: &ExecutionReport) {
        if let Execution::Trade { id, .. } = report.kind {
            self.records.push(Record::Trade(trade, id.index));
            self.steps.push(Step::Trade(trade));
        }
    }

    /// Writes the records, and waits until they are durable.
    fn write(&mut self) -> Result<(), GatewayError> {
        let mut records = std::mem::take(&mut self.records);
        let orders = &self.state.orders;
        let mut last = None;
        for record in records.drain(..) {
            last = Some(self.with_room(|| orders.log().append(&record))?);
        }
        if let Some(last) = last {
            self.with_room(|| orders.log().commit(last))?;
        }
        self.records = records;
        Ok(())
    }

    /// Calls the log; after the start, until it has room, or the gateway stops.
    fn with_room<T>(
        &self,
        call: impl FnMut() -> Result<T, GatewayError>,
    ) -> Result<T, GatewayError> {
        let pause = || {
            let wait = async {
                let mut draining = self.state.draining();
                timeout(ROOM_PAUSE, draining.wait_for(|is| *is))
                    .await
                    .is_err()
            };
            self.is_ready && self.runtime.block_on(wait)
        };
        with_room(pause, call)
    }

    fn apply(&mut self, time_us: i64) {
        let state = Arc::clone(&self.state);
        let mut moved: BTreeMap<UserId, BTreeSet<i32>> = BTreeMap::new();
        let mut next = None;
        for step in self.steps.drain(..) {
            match step {
                Step::Trade(trade) => state.market.trade(&trade),
                Step::Report(reported) => {
                    if state.orders.apply(&reported, &state.symbols)
                        && let Some(symbol) = state.symbols.by_id(reported.report.symbol)
                    {
                        let currencies = moved.entry(reported.report.owner).or_default();
                        currencies.insert(symbol.spec.base_currency.0);
                        currencies.insert(symbol.spec.quote_currency.0);
                    }
                }
                Step::Noted(order) => state.orders.noted(*order),
                Step::Copied(DropCopyEvent::End(number)) => {
                    state.market.end(number, time_us);
                    next = Some(number + 1);
                }
                Step::Copied(copied) => apply_copied(&state, copied, time_us),
            }
        }
        self.last.clear();
        if let Some(next) = next {
            state.orders.pass(next);
        }
        for (user, currencies) in moved {
            if let Some(user) = state.orders.moved(user, currencies) {
                let state = Arc::clone(&state);
                let send = async move { state.orders.send_positions(&user, &state.symbols).await };
                self.runtime.spawn(send);
            }
        }
    }
}

impl Drop for Follower {
    /// Has the gateway end, whatever the reason: it would take orders, and never report them.
    fn drop(&mut self) {
        self.state.orders.end();
        self.state.drain();
    }
}

/// Repeats a call of the log while nothing but room is missing, and `pause` returns true.
fn with_room<T>(
    mut pause: impl FnMut() -> bool,
    mut call: impl FnMut() -> Result<T, GatewayError>,
) -> Result<T, GatewayError> {
    let mut is_logged = false;
    loop {
        match call() {
            Err(error) if is_no_room(&error) => {
                if !std::mem::replace(&mut is_logged, true) {
                    tracing::error!(%error, "the gateway's log has no room");
                }
                if !pause() {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
}

/// Returns whether a call may be repeated: a log that has stopped gives another error.
fn is_no_room(error: &GatewayError) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StorageFull, WouldBlock};
    let GatewayError::Log(thalweg_journal::Error::Io { source, .. }) = error else {
        return false;
    };
    matches!(
        source.kind(),
        StorageFull | QuotaExceeded | OutOfMemory | WouldBlock | Interrupted
    )
}

fn apply_copied(state: &State, copied: DropCopyEvent, time_us: i64) {
    match copied {
        DropCopyEvent::Restart => state.market.restart(),
        DropCopyEvent::Restarted => state.market.restarted(),
        DropCopyEvent::Symbol(symbol) => state.symbols.add(symbol.0, symbol.1),
        DropCopyEvent::Book(book) => {
            state.orders.note_best(book.symbol, best_of(&book));
            state.market.book(&book);
        }
        DropCopyEvent::Message(message) => {
            match message.body {
                Body::Best(best) => state.orders.note_best(message.symbol, best),
                Body::Cleared => state
                    .orders
                    .note_best(message.symbol, BestPrices::default()),
                _ => {}
            }
            state.market.message(&message);
        }
        DropCopyEvent::Admin(command, goes_on) => {
            state.symbols.apply(&command, goes_on);
            state.market.admin(&command);
            state.orders.adjusted(&command, &state.symbols, time_us);
        }
        DropCopyEvent::Claimed { epoch, leads } => state.orders.claimed(epoch, leads),
        _ => {}
    }
}

fn best_of(book: &Snapshot) -> BestPrices {
    let quote = |levels: &[thalweg_exchange::book::Level]| {
        levels.first().map(|level| Quote {
            price: level.price,
            volume: level.volume,
        })
    };
    BestPrices {
        ask: quote(&book.asks),
        bid: quote(&book.bids),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::SocketAddr;
    use std::path::PathBuf;

    use hyper::Method;
    use thalweg_client::{AdminClient, Options, Outcome, TradeClient, TradeCommand};
    use thalweg_exchange::codec::session::AdminCommand;
    use thalweg_exchange::risk::TradingLimits;
    use thalweg_exchange::{
        AccountSpec, Action, Command, CurrencyId, OrderId, Place, ResultCode, SymbolId, SymbolSpec,
    };
    use thalweg_server::GatewayLink;
    use thalweg_server::Server;
    use thalweg_server::config::{Config, SyncSetting};
    use thalweg_testkit::Scratch;

    use super::*;
    use crate::error::ApiError;
    use crate::params::Params;
    use crate::rest;

    pub(crate) const SYMBOL: SymbolId = SymbolId(1);
    const SYMBOLS: &str = include_str!("../tests/symbols.toml");
    /// An order that rests.
    const BUY: &str = "side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.0005&price=1";

    /// A server whose drop copy the test follows itself.
    pub(crate) struct Fixture {
        server: Server,
        pub(crate) follower: Follower,
        link: GatewayLink,
        gateway: thalweg_server::config::Gateway,
        others: usize,
        admin: AdminClient,
        user: TradeClient,
        pub(crate) entries: Vec<DropCopyEvent>,
        directory: Scratch,
    }

    impl Fixture {
        pub(crate) async fn new(name: &str) -> Self {
            Self::with(name, |_| ()).await
        }

        pub(crate) async fn with(name: &str, change: impl FnOnce(&mut Config)) -> Self {
            let directory = Scratch::new(&format!("gateway-link-{name}"));
            std::fs::write(directory.join("symbols.toml"), SYMBOLS).expect("a file");
            std::fs::write(directory.join("api-keys.toml"), "").expect("a file");
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let mut config = Config::default();
            config.trade.listen = any;
            (config.admin.listen, config.http.listen) = (Some(any), None);
            config.gateway.listen = Some(any);
            (config.gateway.checkpoint_bytes, config.gateway.orders_kept) = (1 << 16, 100);
            change(&mut config);
            let gateway = config.gateway.clone();
            let started = Server::start(config, &directory.join("exchange")).await;
            let mut server = started.expect("a server");
            let link = server.gateway_link().expect("a gateway is configured");
            let state = State::open(&gateway, &directory, &link).expect("files that are right");
            let addresses = server.addresses();
            let options = Options::new(addresses.admin.expect("one").to_string(), 1);
            let (admin, _) = AdminClient::connect(options).await.expect("one");
            let options = Options::new(addresses.trade.to_string(), 1);
            let (user, _) = TradeClient::connect(options).await.expect("a user");
            let mut fixture = Self {
                server,
                follower: Follower::new(Arc::new(state), Handle::current()),
                link,
                gateway,
                others: 0,
                admin,
                user,
                entries: Vec::new(),
                directory,
            };
            fixture.next().await;
            fixture.take(true);
            let mut spec = SymbolSpec::pair(SYMBOL, CurrencyId(11), CurrencyId(20));
            spec.fee_unit = thalweg_exchange::FeeUnit::Millionth;
            (spec.maker_fee, spec.taker_fee) = (100_000, 200_000);
            fixture.run(Command::AddSymbols([spec].into())).await;
            let money = vec![(CurrencyId(11), 1 << 40), (CurrencyId(20), 1 << 50)];
            let account = AccountSpec::new(UserId(1), money);
            let number = fixture.run(Command::AddAccounts([account].into())).await;
            fixture.reach(number).await;
            fixture
        }

        pub(crate) fn state(&self) -> &Arc<State> {
            &self.follower.state
        }

        /// Has a checkpoint begin each `bytes` of the log.
        pub(crate) fn checkpoints_each(&mut self, bytes: u64) {
            self.follower.checkpoints = Checkpoints::new(bytes);
        }

        /// Has turns of checkpoints write as little as may be.
        pub(crate) fn short_turns(&mut self) {
            self.follower.checkpoints.set_turn_bytes(1);
        }

        /// Writes all of a user, whatever of a checkpoint is there.
        pub(crate) fn keep(&mut self, user: UserId) {
            self.follower.keep(user).expect("there is room");
        }

        /// Follows reports that are made up.
        pub(crate) fn follow<'r>(&mut self, reports: impl Iterator<Item = &'r UserReport>) {
            let mut time_us = 0;
            for one in reports {
                time_us = one.time_us;
                self.follower.report(one.number, one.report, time_us);
            }
            self.follower.write().expect("there is room");
            self.follower.apply(time_us);
            // As the end of the command does, after trades.
            self.state().market.end(1, time_us);
            self.follower
                .checkpoints
                .turn(&self.follower.state, &self.follower.ids);
        }

        pub(crate) fn all<T>(&self, all: impl FnOnce(&State, &TradeIds) -> T) -> T {
            all(&self.follower.state, &self.follower.ids)
        }

        /// Returns where its log is.
        pub(crate) fn log(&self) -> PathBuf {
            self.directory.join("gateway")
        }

        /// Returns another state, as at a start before it has read the log: an empty one, or a copy
        /// of this as it is on disk.
        pub(crate) fn another(&mut self, is_copy: bool) -> State {
            self.others += 1;
            let directory = self.directory.join(format!("other-{}", self.others));
            std::fs::create_dir_all(directory.join("gateway")).expect("a directory");
            let mut files = vec!["symbols.toml".into(), "api-keys.toml".into()];
            if is_copy {
                let log = std::fs::read_dir(self.log()).expect("a directory");
                let names = log.map(|file| file.expect("a file").file_name());
                files.extend(names.map(|name| PathBuf::from("gateway").join(name)));
            }
            for file in files {
                std::fs::copy(self.directory.join(&file), directory.join(&file)).expect("a file");
            }
            let state = State::open(&self.gateway, &directory, &self.link);
            let state = state.expect("files that are right");
            for symbol in self.state().symbols.all() {
                state.symbols.add(symbol.spec, symbol.limits);
            }
            state
        }

        pub(crate) async fn run(&self, command: Command) -> u64 {
            let command = AdminCommand::try_from(command).expect("an administrator's");
            let submitted = self.admin.submit(command).await.expect("it is sent");
            executed(submitted.await)
        }

        pub(crate) async fn place(&self, id: i64, side: Action) -> u64 {
            let place = Place::limit((UserId(1), OrderId(id)), SYMBOL, side, (100, 5));
            executed(self.submit(place).await)
        }

        /// Submits a command of user 1, by a session that is none of the gateway's.
        pub(crate) async fn submit(&self, command: impl Into<TradeCommand>) -> Outcome {
            let submitted = self.user.submit(command).await.expect("it is sent");
            submitted.await
        }

        /// Returns the USDT that a user has free, and the text of what is held.
        async fn quote(&self, user: &crate::orders::User) -> (i64, String) {
            let state = self.state();
            let answered = state.orders.balances(user, &state.symbols, None).await;
            let (view, balances) = answered.expect("the user is known");
            let free = view.balances.iter().find(|(id, _)| id.0 == 20);
            let held = balances.into_iter().find(|one| one.asset == "USDT");
            (
                free.expect("it has some").1,
                held.expect("it has a name").locked,
            )
        }

        /// Starts a gateway anew on a copy of the log as it is on disk, up to a command.
        pub(crate) async fn restart(&mut self, number: u64) -> Follower {
            let state = Arc::new(self.another(true));
            let mut follower = Follower::new(state, Handle::current());
            let mut entries = vec![DropCopyEvent::Restart, DropCopyEvent::End(number)];
            self.entries.clear();
            let followed = follower.follow(&mut entries, true, 1);
            followed.expect("there is room");
            while !follower.is_ready {
                self.next().await;
                let followed = follower.follow(&mut self.entries, false, 1);
                followed.expect("there is room");
            }
            follower
        }

        /// Returns a state that has read a copy of the log of another.
        pub(crate) fn read_again(&mut self, of: &State) -> State {
            let next = self.another(false);
            let (mut ids, mut checkpoints) = (TradeIds::default(), Checkpoints::new(1 << 20));
            let mut replay = Replay::new(&next, &mut ids, &mut checkpoints);
            let read = of.orders.read(|record, bytes| replay.apply(record, bytes));
            replay.end(read.expect("it is whole")).expect("it is whole");
            next
        }

        pub(crate) async fn next(&mut self) {
            let mut entries = Vec::new();
            assert!(self.link.copy.next(&mut entries).await, "the exchange runs");
            self.entries.append(&mut entries);
        }

        /// Follows the exchange until a request has its response.
        async fn follow_until<T>(&mut self, mut request: tokio::task::JoinHandle<T>) -> T {
            loop {
                tokio::select! {
                    response = &mut request => return response.expect("it does not panic"),
                    () = self.next() => self.take(false),
                }
            }
        }

        /// Waits for the end of a command.
        pub(crate) async fn until(&mut self, number: u64) {
            let is_end =
                |entry: &DropCopyEvent| matches!(entry, DropCopyEvent::End(end) if *end >= number);
            while !self.entries.iter().any(is_end) {
                self.next().await;
            }
        }

        /// Waits for the end of a command, and follows so far.
        pub(crate) async fn reach(&mut self, number: u64) {
            self.until(number).await;
            self.take(false);
        }

        pub(crate) fn take(&mut self, is_first: bool) {
            let mut entries = std::mem::take(&mut self.entries);
            let followed = self.follower.follow(&mut entries, is_first, 1);
            followed.expect("there is room");
        }
    }

    /// Returns a fixture with its state and its user.
    async fn begun(name: &str) -> (Fixture, Arc<State>, Arc<crate::orders::User>) {
        let fixture = Fixture::new(name).await;
        let state = Arc::clone(fixture.state());
        let user = state.orders.user(UserId(1));
        (fixture, state, user)
    }

    /// Begins to place an order that rests.
    pub(crate) fn place_buy(
        state: &Arc<State>,
        user: &Arc<crate::orders::User>,
        client_id: &str,
    ) -> tokio::task::JoinHandle<()> {
        let placing = place(state, user, &format!("{BUY}&newClientOrderId={client_id}"));
        tokio::spawn(async move { drop(placing.await) })
    }

    /// Begins to place an order of the gateway's.
    fn place(
        state: &Arc<State>,
        user: &Arc<crate::orders::User>,
        order: &str,
    ) -> tokio::task::JoinHandle<Result<crate::orders::Order, ApiError>> {
        let params = Params::of_request(&format!("symbol=BTCUSDT&{order}"), "");
        let params = params.expect("parameters");
        let draft = crate::orders::Draft::read(&params, &state.symbols).expect("an order");
        let (state, user) = (Arc::clone(state), Arc::clone(user));
        tokio::spawn(async move {
            let placed = state.orders.place(&user, &draft, i64::MAX).await;
            placed.map(|placed| placed.order)
        })
    }

    /// Begins to give an order of the gateway's other lots.
    fn amend(
        state: &Arc<State>,
        order: &crate::orders::Order,
        lots: i64,
    ) -> tokio::task::JoinHandle<Result<crate::orders::Order, ApiError>> {
        let (state, order) = (Arc::clone(state), order.clone());
        tokio::spawn(async move {
            let user = state.orders.user(UserId(1));
            state.orders.amend(&user, &order, lots, i64::MAX).await
        })
    }

    fn executed(outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Executed { number, result, .. } => {
                assert_eq!(result, ResultCode::Success);
                number
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_gateway_whose_follower_has_ended_takes_no_orders_and_no_signed_requests() {
        let fixture = Fixture::new("ended").await;
        let Fixture {
            server,
            follower,
            link,
            ..
        } = fixture;
        let copy = link.copy;
        let state = Arc::clone(&follower.state);
        let user = state.orders.user(UserId(1));
        let signed = || {
            let row = rest::find(&Method::GET, "/api/v3/openOrders").expect("a row");
            let params = Params::of_request("", "").expect("none");
            rest::authorize(&state, row, &params, None).err()
        };
        assert_eq!(signed(), Some(ApiError::BAD_KEY));
        assert!(state.orders.account(&user).await.is_ok());
        let (ready, _is_ready) = oneshot::channel();
        let following = thread::spawn(move || follower.run(copy, ready));
        drop(server);
        let joined = tokio::task::spawn_blocking(|| following.join()).await;
        joined.expect("a thread").expect("it does not panic");
        assert_eq!(signed(), Some(ApiError::STOPPING));
        let cancelled = state.orders.cancel(&user, (SYMBOL, 1), i64::MAX).await;
        assert_eq!(cancelled.err(), Some(ApiError::STOPPING));
        let account = state.orders.account(&user).await;
        assert_eq!(account.err(), Some(ApiError::STOPPING));
        assert!(*state.draining().borrow());
    }

    #[test]
    fn a_log_without_room_is_written_again_and_one_that_has_stopped_is_not() {
        let io = |kind: io::ErrorKind| thalweg_journal::Error::Io {
            file: "log".to_owned(),
            what: "be written",
            source: Arc::new(kind.into()),
        };
        let mut calls = 0;
        let mut call = |errors: u32, kind| {
            calls = 0;
            let attempt = || {
                calls += 1;
                match calls > errors {
                    true => Ok(()),
                    false => Err(GatewayError::Log(io(kind))),
                }
            };
            (with_room(|| true, attempt).is_ok(), calls)
        };
        assert_eq!(call(2, io::ErrorKind::StorageFull), (true, 3));
        assert_eq!(call(2, io::ErrorKind::PermissionDenied), (false, 1));
        let stopped = || thalweg_journal::Error::Stopped {
            cause: Box::new(io(io::ErrorKind::StorageFull)),
        };
        assert!(with_room(|| true, || Err::<(), _>(stopped().into())).is_err());
        let full = || Err::<(), _>(io(io::ErrorKind::StorageFull).into());
        assert!(with_room(|| false, full).is_err());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn reports_that_the_drop_copy_dropped_are_fetched_before_their_commands_are_passed() {
        let (mut fixture, _, user) = begun("fetched").await;
        fixture.place(7, Action::Bid).await;
        let number = fixture.place(8, Action::Bid).await;
        fixture.until(number).await;
        // As the writer does, when there is no more room.
        fixture.entries = vec![DropCopyEvent::Restart, DropCopyEvent::End(number)];
        fixture.take(false);
        let ids = |user: &crate::orders::User| {
            let memory = user.memory();
            memory.open(None).map(|order| order.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(&user), [7, 8]);
        // Those after that come once.
        let number = fixture.place(9, Action::Bid).await;
        fixture.reach(number).await;
        assert_eq!(ids(&user), [7, 8, 9]);
        let last = user.memory().last_report.expect("reports came");
        assert_eq!(last.0, 3);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_gateway_that_was_behind_leads_when_the_dropped_reports_are_applied() {
        let (mut fixture, state, user) = begun("behind-leads").await;
        let number = fixture.place(7, Action::Bid).await;
        fixture.reach(number).await;
        let claim = |epoch, leads| DropCopyEvent::Claimed { epoch, leads };
        fixture.entries = vec![claim(2, false)];
        fixture.take(false);
        let number = fixture.place(8, Action::Bid).await;
        fixture.until(number).await;
        // The drop copy is read in two parts.
        let order = || place(&state, &user, BUY);
        fixture.entries = vec![DropCopyEvent::Restart, claim(3, true)];
        fixture.take(false);
        let early = order().await.expect("the task ends");
        assert_eq!(early.map_err(|error| error.code).err(), Some(-1001));
        fixture.entries = vec![DropCopyEvent::End(number)];
        fixture.take(false);
        let open = user.memory().open(None).count();
        assert_eq!(open, 2, "the dropped report is applied");
        assert!(state.orders.check_primary().is_ok());
        // A claim that another one has replaced is not kept.
        fixture.entries = vec![
            DropCopyEvent::Restart,
            claim(4, true),
            claim(5, false),
            DropCopyEvent::End(number),
        ];
        fixture.take(false);
        assert!(state.orders.check_primary().is_err());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn market_data_and_reports_come_where_the_journal_is_not_synced() {
        let never = |config: &mut Config| config.journal.sync = SyncSetting::Never;
        let mut fixture = Fixture::with("never-synced", never).await;
        let state = Arc::clone(fixture.state());
        let user = state.orders.user(UserId(1));
        let number = fixture.place(7, Action::Bid).await;
        fixture.until(number).await;
        let is_level = |entry: &DropCopyEvent| match entry {
            DropCopyEvent::Message(message) => matches!(message.body, Body::Level(_)),
            _ => false,
        };
        assert!(fixture.entries.iter().any(is_level));
        fixture.take(false);
        assert_eq!(user.memory().open(None).count(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_stop_order_that_waits_is_amended_from_the_size_that_was_seen() {
        let (mut fixture, state, user) = begun("amended-stop").await;
        let stop = "side=SELL&type=STOP_LOSS_LIMIT&timeInForce=GTC&quantity=0.001";
        let placing = place(&state, &user, &format!("{stop}&price=1&stopPrice=1"));
        let order = fixture.follow_until(placing).await.expect("it waits");
        let lots_of = |lots: i64| {
            let memory = user.memory();
            let order = memory.order(SYMBOL, order.id).expect("it is known");
            assert_eq!(order.lots, lots);
            order.clone()
        };
        // Two that have seen the same order, in flight together: one is executed.
        let both = [(); 2].map(|()| amend(&state, &order, order.lots - 2));
        let mut amended = Vec::new();
        for one in both {
            amended.push(fixture.follow_until(one).await.map(|order| order.lots));
        }
        amended.sort_by_key(Result::is_err);
        assert_eq!(amended, [Ok(order.lots - 2), Err(ApiError::AMEND_LATE)]);
        let order = lots_of(order.lots - 2);
        // The next one is not late, and one from an older size is.
        let next = amend(&state, &order, order.lots - 1);
        assert!(fixture.follow_until(next).await.is_ok());
        let older = amend(&state, &order, order.lots - 2);
        let older = fixture.follow_until(older).await;
        assert_eq!(older.err(), Some(ApiError::AMEND_LATE));
        // Another session takes lots off it, which the gateway has not seen.
        let order = lots_of(order.lots - 1);
        let id = OrderId(order.id);
        let reduce = TradeCommand::reduce(UserId(1), SYMBOL, id, 1);
        fixture.submit(reduce).await;
        let unseen = amend(&state, &order, order.lots - 3);
        while !user.memory().is_reducing((order.symbol, order.id)) {
            tokio::task::yield_now().await;
        }
        let unseen = fixture.follow_until(unseen).await;
        assert_eq!(unseen.map_err(|error| error.code).err(), Some(-2038));
        lots_of(order.lots - 4);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_mass_cancel_that_a_later_command_carries_out_has_no_outcome_yet() {
        let (mut fixture, state, user) = begun("delayed-cancel").await;
        let cancel_all = || {
            let (state, user) = (Arc::clone(&state), Arc::clone(&user));
            tokio::spawn(async move { state.orders.cancel_all(&user, SYMBOL, i64::MAX).await })
        };
        let cancelled = fixture.follow_until(cancel_all()).await;
        assert_eq!(cancelled.err(), Some(ApiError::UNKNOWN_ORDER));
        // An auction ends the order by its next step: after the request has looked, or before.
        for (id, is_before) in [(7, false), (8, true)] {
            let number = fixture.place(id, Action::Bid).await;
            fixture.reach(number).await;
            while !state.orders.is_compared() {
                fixture.next().await;
                fixture.take(false);
            }
            let cancelling = cancel_all();
            let is_report = |entry: &DropCopyEvent| matches!(entry, DropCopyEvent::Report(..));
            while !fixture.entries.iter().any(is_report) {
                fixture.next().await;
            }
            let mut reports = 0;
            fixture.entries.retain_mut(|entry| match entry {
                DropCopyEvent::Report(_, report) => {
                    report.command += 1;
                    reports += 1;
                    is_before
                }
                _ => true,
            });
            assert_eq!(reports, 1);
            fixture.take(false);
            let cancelled = fixture.follow_until(cancelling).await;
            assert_eq!(cancelled.err(), Some(ApiError::TIMEOUT));
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_order_that_was_not_sent_in_time_is_forgotten_for_good() {
        let (mut fixture, state, user) = begun("late").await;
        let order =
            format!("symbol=BTCUSDT&{BUY}&timestamp=1&recvWindow=100&newClientOrderId=late");
        let row = rest::find(&Method::POST, "/api/v3/order").expect("a row");
        let own = Arc::clone(&state);
        // As it was admitted, and waited since.
        let placing = tokio::spawn(async move {
            let params = Params::of_request(&order, "").expect("parameters");
            let call = rest::Call {
                state: &own,
                params: &params,
                unit: crate::time_unit::TimeUnit::default(),
                key: Some(Arc::new(crate::keys::ApiKey::read_only(UserId(1)))),
            };
            rest::run(row, &call).await
        });
        let refused = fixture.follow_until(placing).await;
        assert_eq!(refused.err(), Some(ApiError::TIMESTAMP));
        let next = fixture.follow_until(place(&state, &user, BUY)).await;
        let next = next.expect("it rests");
        let follower = fixture.restart(next.command).await;
        let user = follower.state.orders.user(UserId(1));
        let memory = user.memory();
        assert!(memory.order(SYMBOL, next.id).is_some());
        let late = memory.sent_by_client(SYMBOL, "late");
        assert!(late.is_none(), "{late:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_amend_in_a_halt_is_refused_as_an_order_is() {
        let (mut fixture, state, user) = begun("amended-halt").await;
        let order = fixture.follow_until(place(&state, &user, BUY)).await;
        let order = order.expect("it rests");
        fixture.run(Command::Halt { symbol: SYMBOL }).await;
        let amended = fixture.follow_until(amend(&state, &order, 3)).await;
        assert_eq!(amended.err(), Some(ApiError::MARKET_CLOSED));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_order_that_another_session_has_moved_down_can_be_amended() {
        let (mut fixture, state, user) = begun("amended-moved").await;
        let order = fixture.follow_until(place(&state, &user, BUY)).await;
        let order = order.expect("it rests");
        let id = OrderId(order.id);
        let lower = TradeCommand::move_to(UserId(1), SYMBOL, id, order.price - 10);
        let number = executed(fixture.submit(lower).await);
        fixture.reach(number).await;
        let moved = user.memory().order(SYMBOL, order.id).cloned();
        let moved = moved.expect("it is known");
        assert_eq!(moved.price, order.price - 10);
        let amended = fixture.follow_until(amend(&state, &moved, 3)).await;
        assert_eq!(
            amended.map(|order| (order.lots, order.price)),
            Ok((3, moved.price))
        );
        // The free and the held amount are all there is.
        let (free, held) = fixture.quote(&user).await;
        let symbol = state.symbols.by_id(SYMBOL).expect("it is listed");
        let expected = 3 * symbol.held_per_lot(order.price);
        assert_eq!(i128::from(free) + expected, 1 << 50);
        assert_eq!(held, symbol.quote_text(expected));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_market_order_in_a_band_below_zero_is_refused() {
        let (mut fixture, state, user) = begun("negative-band").await;
        let (symbol, low, high) = (SYMBOL, -10, -1);
        let number = fixture
            .run(Command::SetPriceBand { symbol, low, high })
            .await;
        fixture.reach(number).await;
        let order = place(&state, &user, "side=BUY&type=MARKET&quantity=0.0005");
        let refused = fixture.follow_until(order).await;
        assert_eq!(refused.err(), Some(ApiError::NO_BALANCE));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_symbol_trades_when_the_last_step_of_its_auction_is_done() {
        let mut fixture = Fixture::new("auction-in-steps").await;
        let state = Arc::clone(fixture.state());
        let symbol = SYMBOL;
        fixture.run(Command::StartAuction { symbol }).await;
        // Each buyer has two events in the uncross: more than one command has.
        let buyers = 520;
        let mut placed = Vec::new();
        for id in 1..=buyers {
            let bid = Place::limit((UserId(1), OrderId(id)), symbol, Action::Bid, (100, 1));
            placed.push(fixture.user.submit(bid).await.expect("it is sent"));
        }
        for one in placed {
            executed(one.await);
        }
        let seller = (UserId(1), OrderId(buyers + 1));
        let ask = Place::limit(seller, symbol, Action::Ask, (100, buyers));
        let number = executed(fixture.submit(ask).await);
        fixture.reach(number).await;
        let reference = None;
        let first = fixture.run(Command::Uncross { symbol, reference }).await;
        fixture.until(first + 1).await;
        let status = || state.symbols.by_id(symbol).map(|symbol| symbol.status());
        assert_eq!(status(), Some("BREAK"));
        let is_end =
            |entry: &DropCopyEvent| matches!(entry, DropCopyEvent::End(number) if *number >= first);
        let at = fixture
            .entries
            .iter()
            .position(is_end)
            .expect("it is there");
        let rest = fixture.entries.split_off(at + 1);
        fixture.take(false);
        assert_eq!(status(), Some("BREAK"), "the first step is done");
        // A gateway that starts now begins with what the exchange has.
        let one = state.symbols.by_id(symbol).expect("it is listed");
        let (auction, busy) = (true, true);
        let limits = TradingLimits {
            auction,
            busy,
            ..one.limits
        };
        state.symbols.add(one.spec, limits);
        fixture.entries = rest;
        fixture.take(false);
        assert_eq!(status(), Some("TRADING"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn fees_that_are_paid_out_make_a_balance_update() {
        let fixture = Fixture::new("fees-paid").await;
        let state = fixture.state();
        let (_following, mut events) = state.orders.follow(UserId(1)).expect("it is the first");
        let paid = Command::PayFees {
            uid: UserId(1),
            currency: CurrencyId(20),
            amount: 1_500_000,
            transaction_id: 1,
        };
        state.orders.adjusted(&paid, &state.symbols, 1);
        let event = events.try_recv().expect("it was sent");
        let text = event.text(crate::time_unit::TimeUnit::default());
        let has = |part: &str| text.contains(part);
        assert!(has("balanceUpdate") && has("1.500000"), "{text}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn trades_before_a_key_that_came_after_the_start_are_not_taken_after_a_crash() {
        let mut fixture = Fixture::new("late-key").await;
        fixture.place(7, Action::Bid).await;
        let number = fixture.place(8, Action::Ask).await;
        fixture.until(number).await;
        // As before the log of the gateway.
        fixture.entries.clear();
        let state = Arc::clone(fixture.state());
        let user = state.orders.user(UserId(1));
        let placing = place_buy(&state, &user, "late");
        // It is executed, and the gateway ends before its report is in the log.
        fixture.until(number + 1).await;
        fixture.entries.clear();
        let follower = fixture.restart(number + 1).await;
        let restarted = Arc::clone(&follower.state);
        assert_eq!(follower.ids.last.get(&SYMBOL), None);
        let user = restarted.orders.tracked(UserId(1)).expect("the log has it");
        let memory = user.memory();
        assert_eq!(memory.fills(SYMBOL).count(), 0);
        assert_eq!(memory.open(None).count(), 1);
        drop(memory);
        placing.abort();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_order_that_was_not_sent_is_forgotten_once() {
        let mut fixture = Fixture::new("unsent").await;
        let key = (UserId(1), SYMBOL.0, (1 << 52) + 9);
        let order = crate::orders::Order::pending(key, "unsent".to_owned(), (Action::Bid, 5, 6), 1);
        let orders = &fixture.state().orders;
        let lsn = orders
            .log()
            .append(&Record::Order(Box::new(order)))
            .expect("there is room");
        orders.log().commit(lsn).expect("there is room");
        let follower = fixture.restart(1).await;
        // The next start does not find it.
        let next = fixture.read_again(&follower.state);
        let user = next.orders.tracked(UserId(1)).expect("the log has it");
        assert_eq!(user.memory().forget_unsent(), 0);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn both_sides_of_a_trade_in_an_auction_have_the_takers_fee() {
        let (mut fixture, _, user) = begun("auction").await;
        let symbol = SYMBOL;
        fixture.run(Command::StartAuction { symbol }).await;
        fixture.place(1, Action::Bid).await;
        fixture.place(2, Action::Ask).await;
        let reference = None;
        fixture.run(Command::Uncross { symbol, reference }).await;
        // Continuous trading has both rates.
        fixture.place(3, Action::Bid).await;
        let number = fixture.place(4, Action::Ask).await;
        fixture.reach(number).await;
        let fees = |user: &crate::orders::User| {
            let memory = user.memory();
            let fees = memory.fills(SYMBOL).map(|fill| (fill.order, fill.fee));
            let mut fees: Vec<_> = fees.collect();
            fees.sort_unstable();
            fees
        };
        let expected = [(1, 100), (2, 100), (3, 50), (4, 100)];
        assert_eq!(fees(&user), expected);
        // They are what the exchange took.
        assert_eq!(fixture.quote(&user).await.0, (1 << 50) - 350);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn balances_are_of_one_command_though_later_ones_are_applied() {
        let (mut fixture, state, user) = begun("balances").await;
        let held = |number| {
            let held = user.memory().held(number, |id| state.symbols.by_id(id));
            held.map(|held| held.get(&20).copied().unwrap_or(0))
        };
        let first = fixture.place(1, Action::Bid).await;
        let second = fixture.place(2, Action::Bid).await;
        let traded = fixture.place(3, Action::Ask).await;
        fixture.reach(traded).await;
        let at = [first, second, traded, traded + 1].map(held);
        assert_eq!(at, [Some(0), Some(600), Some(1_200), Some(600)]);
        // The exchange has the same at each: what is free and what is held are all there is.
        let (free, locked) = fixture.quote(&user).await;
        assert_eq!(i128::from(free) + 600, (1 << 50) - 150);
        assert_eq!(locked, "0.000600");
    }
}
