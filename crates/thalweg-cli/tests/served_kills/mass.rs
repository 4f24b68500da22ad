//! Kills in the midst of mass operations: what is left over goes on after the next start, and the
//! state in the end is that of an exchange that was never interrupted.
//!
//! `THALWEG_MASS_KILLS=200` sets the number of kills in the midst of one to 200.

use std::env;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_client::exchange::codec::decode_command;
use thalweg_client::exchange::codec::session::{QueryResult, SessionQuery};
use thalweg_client::exchange::snapshot::state_hash;
use thalweg_client::exchange::{
    Action, Command, ConditionalOrder, Events, OrderId, OrderType, Place, ResultCode, State,
    SymbolId, UserId, apply, apply_left_over,
};
use thalweg_client::{AdminCommand, TradeCommand};
use thalweg_client::{BlockingAdminClient, BlockingTicket, BlockingTradeClient};
use thalweg_journal::{Lsn, Reader};

use super::clients::{options, set_up};
use super::served::{Folder, Served};
use super::{KILLS, RECORD_HEAD, snapshot};

const SYMBOL: SymbolId = SymbolId(1);
/// Orders of each user: many times what one command may cancel.
const ORDERS: i64 = 6_000;
/// Kills until one comes in the midst, at most.
const ROUNDS_MAX: u64 = 40;

/// No limit of open orders, no commands of the server's own but those for what is left over, and
/// often a snapshot.
const CONFIG: &str = "[sessions]\nopen_orders_max = 0\n[exchange]\nclock_ms = 0\n\
                      [snapshots]\nevery_bytes = 300000\nkept = 100\n";

/// The journal, executed by itself.
struct Replay {
    next: Lsn,
    /// The state after all of it.
    state: State,
    /// The state after the commands of sessions, each with all that it leaves over.
    uninterrupted: State,
    events: Events,
}

impl Replay {
    fn new() -> Self {
        Self {
            next: Lsn::new(1),
            state: State::default(),
            uninterrupted: State::default(),
            events: Events::new(),
        }
    }

    /// Executes what was added.
    fn go_on(&mut self, directory: &Path) {
        let mut reader = Reader::open(directory, self.next).expect("there is a journal");
        while let Some(block) = reader.next_block().expect("it is whole") {
            for (_, record) in block.bytes() {
                let (head, frame) = record.split_at(RECORD_HEAD);
                let (command, _) = decode_command(frame).expect("a command");
                apply(&mut self.state, &command, &mut self.events);
                if head[1] != 0 {
                    let state = &mut self.uninterrupted;
                    apply(state, &command, &mut self.events);
                    apply_left_over(state, &mut self.events, |_, _, _| {});
                }
            }
        }
        self.next = reader.next();
    }
}

fn succeeds(ticket: BlockingTicket) {
    let outcome = ticket.wait();
    assert_eq!(outcome.result(), Some(ResultCode::Success), "{outcome}");
}

fn administer(admin: &BlockingAdminClient, command: Command) -> BlockingTicket {
    let command = AdminCommand::try_from(command).expect("an operator's");
    admin.submit(command).expect("it is open")
}

/// Has a user place orders, made of their ids.
fn place(client: &BlockingTradeClient, round: u64, order: impl Fn(OrderId) -> TradeCommand) {
    let first = round as i64 * 2 * ORDERS;
    let submit = |id| client.submit(order(OrderId(id))).expect("it is open");
    let tickets: Vec<BlockingTicket> = (first..first + ORDERS).map(submit).collect();
    tickets.into_iter().for_each(succeeds);
}

/// Prepares a mass operation, and returns the command with which it begins: a cancel of all
/// orders, the end of an auction, a time that comes, or stop orders that are triggered.
fn prepare(round: u64, admin: &BlockingAdminClient, users: &[BlockingTradeClient; 2]) -> Command {
    let [seller, buyer] = [1, 2].map(UserId);
    let limit = |uid, id, action, price| Place::limit((uid, id), SYMBOL, action, (price, 1));
    let time = 1_000 * (1 + round as i64);
    match round % 4 {
        0 => {
            place(&users[0], round, |id| {
                limit(seller, id, Action::Ask, 200).into()
            });
            Command::cancel_all(None, None)
        }
        1 => {
            succeeds(administer(admin, Command::StartAuction { symbol: SYMBOL }));
            place(&users[0], round, |id| {
                limit(seller, id, Action::Ask, 100 + id.0 % 64).into()
            });
            place(&users[1], round, |id| {
                limit(buyer, id, Action::Bid, 200 + id.0 % 64).into()
            });
            Command::Uncross {
                symbol: SYMBOL,
                reference: None,
            }
        }
        2 => {
            place(&users[0], round, |id| {
                let good_till = Some(time);
                let place = limit(seller, id, Action::Ask, 200);
                TradeCommand::from(ConditionalOrder {
                    good_till,
                    ..place.into()
                })
            });
            Command::Clock { time }
        }
        _ => {
            place(&users[0], round, |id| {
                let place = limit(seller, id, Action::Ask, 10).with_type(OrderType::Ioc);
                TradeCommand::from(ConditionalOrder::from(place).with_trigger(20))
            });
            let own = OrderId(-1 - round as i64);
            let ask = users[0].submit(limit(seller, own, Action::Ask, 15));
            succeeds(ask.expect("it is open"));
            Command::Place(limit(buyer, own, Action::Bid, 15))
        }
    }
}

/// Waits until a user has no open orders.
fn wait_for_end(place: &Folder, client: &BlockingTradeClient, user: i64) {
    place.wait("the end of a mass operation", || {
        let answer = client.query(SessionQuery::OpenOrders(UserId(user)));
        match answer.expect("it is open").result {
            QueryResult::OpenOrders { orders, .. } if orders.is_empty() => Ok(()),
            QueryResult::OpenOrders { orders, .. } => Err(orders.len() as u64),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_mass_operation_that_a_kill_interrupts_ends_as_without_one() {
    let kills = env::var("THALWEG_MASS_KILLS").ok();
    let kills = kills.map_or(KILLS, |text| text.parse().expect("a number of kills"));
    let place = Folder::new("killed-mass-operation");
    place.configure(CONFIG);
    let mut served = Served::start(&place, &Default::default());
    set_up(&served.addresses["admin"]);
    let addresses = served.addresses.clone();
    let (admin, _events) =
        BlockingAdminClient::connect(options(&addresses["admin"], 1)).expect("open");
    let users = [1, 2].map(|user| {
        let mut options = options(&addresses["trade"], user);
        options.in_flight_max = 1_000;
        BlockingTradeClient::connect(options).expect("open").0
    });
    let mut replay = Replay::new();
    let (mut interrupted, mut round) = (0, 0);
    while interrupted < kills {
        assert!(round < kills * ROUNDS_MAX, "{interrupted} in {round} kills");
        let command = prepare(round, &admin, &users);
        let ticket = match TradeCommand::try_from(command.clone()) {
            Ok(command) if command.user() == UserId(2) => users[1].submit(command).expect("open"),
            _ => administer(&admin, command),
        };
        let until = Instant::now() + Duration::from_micros(round * 977 % 12_000);
        while Instant::now() < until {
            thread::yield_now();
        }
        served.kill();
        replay.go_on(&place.exchange);
        interrupted += u64::from(replay.state.left_over().is_some());
        served = Served::start(&place, &addresses);
        succeeds(ticket);
        for (client, user) in users.iter().zip(1..) {
            wait_for_end(&place, client, user);
        }
        round += 1;
    }
    println!("{round} kills, {interrupted} in the midst of a mass operation");
    served.end();
    replay.go_on(&place.exchange);
    let hash = state_hash(&replay.state);
    assert_eq!(state_hash(&replay.uninterrupted), hash);
    assert_eq!(snapshot(&place.exchange)[2], hash);
}
