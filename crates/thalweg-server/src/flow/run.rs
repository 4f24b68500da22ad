//! A flow on the exchange's thread: which event is next, and when.

use std::sync::Arc;
use std::time::Instant;

use thalweg_exchange::Command;
use thalweg_exchange::durable::{Exchange, ExchangeError, Storage};
use thalweg_exchange::session::{ClientSequence, SessionKey};

use super::{Flow, FlowCounts, Step, is_flow};
use crate::counters::{lower, raise};
use crate::driver::Driver;
use crate::error::ServeError;
use crate::scheduler::{HolderId, Ticket};

/// Events without a command after which others have their turn.
const SKIPPED_TOGETHER: usize = 1 << 10;

/// Commands that are not durable yet: as many as go into one write of the journal while the one
/// before is synced.
const IN_FLIGHT_MAX: u64 = 1 << 12;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct FlowRun {
    flow: Flow,
    key: SessionKey,
    counts: Arc<FlowCounts>,
    /// Its account in the scheduler, once it has one.
    pub(crate) holder: Option<HolderId>,
    /// While it waits for a turn.
    pub(crate) ticket: Option<Ticket>,
    /// Whether it waits for room in the exchange.
    pub(crate) is_blocked: bool,
    has_ended: bool,
    /// When it had its first turn since the start.
    began: Option<Instant>,
    next: u64,
    /// The first event that was executed at its time, and that time.
    origin: Option<(u64, Instant)>,
    /// Whether others may have changed what rests before the server was started.
    has_past: bool,
    batch: Vec<(ClientSequence, Command)>,
}

impl FlowRun {
    /// Makes a flow go on in an exchange that was opened.
    ///
    /// # Errors
    /// The exchange has another flow, or its symbols with other terms.
    pub(crate) fn open<S: Storage>(
        flow: Flow,
        exchange: &Exchange<S>,
        counts: Arc<FlowCounts>,
    ) -> Result<Self, ServeError> {
        let key = flow.session();
        let reports = exchange.reports();
        if let Some(other) = reports.sessions().into_iter().find(|key| is_flow(*key))
            && other != key
        {
            let name = &flow.name;
            let text = format!("{name}: this exchange has another market; take a new directory");
            return Err(ServeError::Market(text));
        }
        for spec in flow.source.symbols() {
            let book = exchange.state().matching.book(spec.id);
            if book.is_some_and(|book| *book.spec() != spec) {
                let (name, id) = (&flow.name, spec.id);
                let text = format!("{name}: symbol {id} of this exchange has other terms");
                return Err(ServeError::Market(text));
            }
        }
        let next = reports.session(key).last_executed.0;
        tracing::info!(market = flow.name, event = next + 1, "the market goes on");
        Ok(Self {
            flow,
            key,
            counts,
            holder: None,
            ticket: None,
            is_blocked: false,
            has_ended: false,
            began: None,
            next,
            origin: None,
            has_past: exchange.number() > 1,
            batch: Vec::new(),
        })
    }

    pub(crate) const fn key(&self) -> SessionKey {
        self.key
    }

    /// Returns when it is to have a turn, if it waits for nothing else.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        let waits = self.has_ended || self.is_blocked || self.ticket.is_some();
        (!waits).then(|| self.due_of_next(now).unwrap_or(now))
    }

    fn due_of_next(&self, now: Instant) -> Option<Instant> {
        self.flow.pace.speed?;
        let (pace, due_ns) = (self.flow.pace, self.flow.source.due_ns(self.next));
        let origin = self.origin.unwrap_or((due_ns, now));
        pace.due(self.next, due_ns, origin)
    }

    /// Takes a turn: submits what is due, `most` commands at most. Returns how many.
    ///
    /// # Errors
    /// The exchange has stopped.
    pub(crate) fn turn<S: Storage>(
        &mut self,
        driver: &mut Driver<S>,
        most: usize,
        now: Instant,
    ) -> Result<usize, ExchangeError> {
        self.began.get_or_insert(now);
        let room = IN_FLIGHT_MAX.saturating_sub(self.counts.in_flight());
        let most = most.min(room as usize);
        self.is_blocked = most == 0;
        let (mut submitted, mut skipped) = (0, 0);
        while submitted + self.batch.len() < most && skipped < SKIPPED_TOGETHER {
            if self.due_of_next(now).is_some_and(|due| due > now) {
                break;
            }
            if self.origin.is_none() && self.next >= self.flow.pace.from {
                self.origin = Some((self.flow.source.due_ns(self.next), now));
            }
            let command = match self.flow.source.step(self.next) {
                Step::Command(command) => Some(command),
                Step::Skip => None,
                Step::Resolve if self.is_as_recorded(driver) => None,
                Step::Resolve => {
                    submitted += self.submit(driver)?;
                    if self.is_blocked {
                        break;
                    }
                    self.counts
                        .resolve(&self.flow.source, self.next, driver.exchange().state())
                }
                Step::End => {
                    self.end();
                    break;
                }
            };
            self.next += 1;
            match command {
                Some(command) => self.batch.push((ClientSequence(self.next), command)),
                None => skipped += 1,
            }
        }
        Ok(submitted + self.submit(driver)?)
    }

    /// Returns whether nothing can have changed the flow's orders but the flow.
    fn is_as_recorded<S: Storage>(&self, driver: &Driver<S>) -> bool {
        let is_first = self.flow.source.is_first_lap(self.next);
        is_first && !self.has_past && !driver.has_others()
    }

    /// Submits what was gathered. Returns how many commands.
    fn submit<S: Storage>(&mut self, driver: &mut Driver<S>) -> Result<usize, ExchangeError> {
        if self.batch.is_empty() {
            return Ok(0);
        }
        // Before their outcomes are published, some perhaps within the call.
        raise(&self.counts.submitted, self.batch.len() as u64);
        let taken = driver.submit_flow(self.key, &self.batch)?;
        if let Some((sequence, _)) = self.batch.get(taken) {
            lower(&self.counts.submitted, (self.batch.len() - taken) as u64);
            self.next = sequence.0 - 1;
            self.is_blocked = true;
        }
        self.batch.clear();
        self.counts.set_laps(self.flow.source.lap(self.next));
        Ok(taken)
    }

    /// Ends it, once all commands are durable: until then it waits.
    fn end(&mut self) {
        self.is_blocked = self.batch.is_empty() && self.counts.in_flight() > 0;
        if self.batch.is_empty() && !self.is_blocked {
            self.has_ended = true;
            raise(&self.counts.ended, 1);
            let (market, counts) = (&self.flow.name, self.counts.all());
            let took_ms = self
                .began
                .map_or(0, |began| began.elapsed().as_millis() as u64);
            tracing::info!(market, ?counts, took_ms, "the market has ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::durable::SimDisk;
    use thalweg_exchange::report::state_text::state_text_hash;
    use thalweg_exchange::{
        AccountSpec, Action, CurrencyId, OrderId, OrderType, Place, SymbolId, SymbolSpec, UserId,
    };

    use super::*;
    use crate::driver::tests::driver;
    use crate::flow::{FLOW_USERS, FlowEvent, Pace, Recorded, Source, TimedEvent};
    use crate::session::SessionId;
    use crate::session::tests::session;
    use thalweg_exchange::session::Role;

    const SYMBOL: SymbolId = SymbolId(1);
    const MAKER: UserId = UserId(FLOW_USERS + 1);
    const TAKER: UserId = UserId(FLOW_USERS + 2);
    const GUEST: UserId = UserId(7);

    fn place(uid: UserId, id: i64, side: Action, price: i64, size: i64) -> Command {
        Command::Place(Place::limit(
            (uid, OrderId(id)),
            SYMBOL,
            side,
            (price, size),
        ))
    }

    fn lower(id: i64, left: i64) -> FlowEvent {
        FlowEvent::Lower {
            uid: MAKER,
            symbol: SYMBOL,
            order_id: OrderId(id),
            left,
        }
    }

    /// A maker rests 10, and a taker takes 4 of them.
    fn recorded(is_loop: bool) -> Recorded {
        let account = |uid| {
            let balances = vec![(CurrencyId(1), 1_000), (CurrencyId(2), 1_000_000)];
            AccountSpec::new(uid, balances)
        };
        let pair = SymbolSpec::pair(SYMBOL, CurrencyId(1), CurrencyId(2));
        let take = Command::Place(Place {
            order_type: OrderType::Ioc,
            ..*place(TAKER, 2, Action::Ask, 99, 4)
                .place()
                .expect("it is an order")
        });
        let commands = [
            Command::AddSymbols([pair].into()),
            Command::AddAccounts([MAKER, TAKER, GUEST].map(account).into()),
            place(MAKER, 1, Action::Bid, 100, 10),
            take,
        ];
        let events = commands.map(FlowEvent::Command).into_iter();
        let events = events.chain([lower(1, 6), lower(9, 0)]);
        let restore = [MAKER, TAKER].map(|uid| FlowEvent::Restore {
            uid,
            currency: CurrencyId(1),
            balance: 1_000,
        });
        let cancel = Command::cancel_all(Some(MAKER), None);
        let between = [FlowEvent::Command(cancel)].into_iter().chain(restore);
        let timed = |event| TimedEvent { due_ns: 0, event };
        Recorded {
            events: events.map(timed).collect(),
            between: between.filter(|_| is_loop).collect(),
        }
    }

    fn open(driver: &Driver<SimDisk>, is_loop: bool, identity: u64) -> Result<FlowRun, ServeError> {
        let flow = Flow {
            conditions: None,
            name: "test".to_owned(),
            identity,
            source: Source::Recorded(recorded(is_loop)),
            pace: Pace {
                speed: None,
                from: 0,
            },
        };
        FlowRun::open(flow, driver.exchange(), Arc::default())
    }

    /// Takes turns of one command until this number was submitted, or no more are.
    fn run(flow: &mut FlowRun, driver: &mut Driver<SimDisk>, commands: usize) -> usize {
        let mut submitted = 0;
        flow.is_blocked = false;
        while submitted < commands && !flow.is_blocked {
            let turn = flow.turn(driver, 1, Instant::now());
            submitted += turn.expect("the disk is fine");
        }
        submitted
    }

    fn left(driver: &Driver<SimDisk>, uid: UserId, id: i64) -> Option<i64> {
        let book = driver.exchange().state().matching.book(SYMBOL)?;
        let order = book.order(uid, OrderId(id))?;
        Some(order.size - order.filled)
    }

    fn submit_of_guest(driver: &mut Driver<SimDisk>, sequence: u64, command: Command) {
        let (mut session, _client) = session(Role::Trade, GUEST.0);
        let commands = [(ClientSequence(sequence), command)];
        let id = SessionId::new(0, 0);
        driver
            .submit((id, &mut session), &commands)
            .expect("the disk is fine");
    }

    #[test]
    fn without_others_a_recording_is_executed_as_it_is() {
        let mut driver = driver(&SimDisk::new());
        let mut flow = open(&driver, false, 1).expect("it is new");
        assert_eq!(run(&mut flow, &mut driver, 99), 4);
        assert_eq!(left(&driver, MAKER, 1), Some(6));
    }

    #[test]
    fn an_order_whose_place_was_taken_has_what_the_recording_says_and_no_more() {
        let mut driver = driver(&SimDisk::new());
        let mut flow = open(&driver, false, 1).expect("it is new");
        run(&mut flow, &mut driver, 3);
        submit_of_guest(&mut driver, 1, place(GUEST, 5, Action::Bid, 101, 3));
        assert_eq!(run(&mut flow, &mut driver, 1), 1);
        assert_eq!(
            left(&driver, GUEST, 5),
            None,
            "it came first and was filled"
        );
        assert_eq!(left(&driver, MAKER, 1), Some(9));
        assert_eq!(run(&mut flow, &mut driver, 99), 1);
        assert_eq!(left(&driver, MAKER, 1), Some(6));
    }

    #[test]
    fn a_lap_begins_with_the_same_money_and_an_empty_book() {
        let mut driver = driver(&SimDisk::new());
        let mut flow = open(&driver, true, 1).expect("it is new");
        // Four commands, a cancel, two balances; two orders in each further lap.
        run(&mut flow, &mut driver, 7);
        let balance = |driver: &Driver<SimDisk>, uid| {
            driver.exchange().state().risk.balance(uid, CurrencyId(1))
        };
        assert_eq!(left(&driver, MAKER, 1), None);
        assert_eq!(
            (balance(&driver, MAKER), balance(&driver, TAKER)),
            (Some(1_000), Some(1_000))
        );
        run(&mut flow, &mut driver, 2);
        assert_eq!(left(&driver, MAKER, 1), Some(6));
        run(&mut flow, &mut driver, 5 * 100);
        assert_eq!(flow.flow.source.lap(flow.next), 101);
    }

    #[test]
    fn it_goes_on_behind_the_last_event_in_the_journal() {
        let whole = {
            let mut driver = driver(&SimDisk::new());
            let mut flow = open(&driver, true, 1).expect("it is new");
            run(&mut flow, &mut driver, 200);
            state_text_hash(driver.exchange().state()).hash
        };
        let disk = SimDisk::new();
        for part in [1, 3, 96, 100] {
            let mut driver = driver(&disk);
            let mut flow = open(&driver, true, 1).expect("it is the same");
            assert_eq!(run(&mut flow, &mut driver, part), part);
            if part == 100 {
                assert_eq!(state_text_hash(driver.exchange().state()).hash, whole);
            }
            driver.close().expect("the disk is fine");
        }
    }

    #[test]
    fn another_market_and_other_symbols_are_refused() {
        let mut driver = driver(&SimDisk::new());
        let other = SymbolSpec::pair(SYMBOL, CurrencyId(8), CurrencyId(9));
        driver
            .own(&Command::AddSymbols([other].into()))
            .expect("the disk is fine");
        let error = open(&driver, false, 1).expect_err("its symbol is another");
        assert_eq!(
            error.to_string(),
            "test: symbol 1 of this exchange has other terms"
        );
        let mut driver = crate::driver::tests::driver(&SimDisk::new());
        let mut flow = open(&driver, false, 1).expect("it is new");
        run(&mut flow, &mut driver, 2);
        let error = open(&driver, false, 99).expect_err("its events are others");
        assert!(error.to_string().contains("has another market"), "{error}");
    }
}
