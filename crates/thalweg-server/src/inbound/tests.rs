//! Turns of sessions whose clients have sent certain frames.

use thalweg::pipeline::Placement;
use thalweg_exchange::codec::session::{
    client_frame_bytes, encode_client_frame, encode_submit, submit_bytes,
};
use thalweg_exchange::durable::{Options, SimDisk};
use thalweg_exchange::market::{Channels, Epoch};
use thalweg_exchange::service::ServiceOptions;
use thalweg_exchange::session::SessionKey;
use thalweg_exchange::snapshot::state_hash;
use thalweg_exchange::{
    AccountSpec, Action, CurrencyId, OrderId, OrderType, Place, SymbolId, SymbolSpec,
};
use thalweg_measure::random::SplitMix;

use super::*;
use crate::conditions::NetworkConditions;
use crate::config::Config;
use crate::driver::tests::driver_with;
use crate::feed::Feed;
use crate::output::tests::socket;
use crate::session::tests::session;
use crate::token_bucket::Buckets;

use std::sync::Arc;

/// A server without sockets.
struct Bench {
    shared: Shared,
    driver: Driver<SimDisk>,
    scheduler: Scheduler,
    now: Instant,
}

impl Bench {
    /// A server of users 1 and 2, with a symbol.
    fn new() -> Self {
        Self::with(None)
    }

    fn with(conditions: Option<NetworkConditions>) -> Self {
        let feed = Feed::new(Epoch(1), Channels::default(), 1, 2);
        // Whether the answer of a command that comes again is there depends on no other thread.
        let options = Options {
            service: ServiceOptions::placed(Placement::inline()),
            ..Options::default()
        };
        let mut driver = driver_with(&SimDisk::new(), options);
        let money = vec![(CurrencyId(10), 1 << 50), (CurrencyId(20), 1 << 50)];
        let account = |user| AccountSpec::new(UserId(user), money.clone());
        let pair = SymbolSpec::pair(SymbolId(1), CurrencyId(10), CurrencyId(20));
        let begin = [
            Command::AddSymbols(Arc::new([pair])),
            Command::AddAccounts([1, 2].map(account).into()),
        ];
        for command in begin {
            assert!(driver.own(&command).expect("it goes on"));
        }
        Self {
            shared: Shared::new(
                Config::default(),
                None,
                None,
                Arc::new(feed),
                conditions.map(Arc::new),
            ),
            driver,
            scheduler: Scheduler::default(),
            now: Instant::now(),
        }
    }

    /// A session of a user, and its client.
    fn session(&mut self, role: Role, user: i64) -> (Session, std::net::TcpStream) {
        let (mut session, client) = session(role, user);
        let key = SessionKey::new(role, user, 0);
        session.holder = self.scheduler.enter(key, self.now);
        (session, client)
    }

    /// Gives a session a turn. Returns what it waits for, why it ends, and how many commands were
    /// submitted.
    fn turn(&mut self, session: &mut Session) -> (After, Option<TurnEnding>, usize) {
        let mut turn = Turn {
            shared: &self.shared,
            driver: &mut self.driver,
            scheduler: &mut self.scheduler,
            id: SessionId::new(0, 0),
            session,
            commands: &mut Vec::new(),
            count: 0,
            submitted: 0,
            has_asked: false,
            ending: None,
            now: self.now,
        };
        let after = turn.run().expect("the disk is fine");
        (after, turn.ending, turn.submitted)
    }
}

fn subscribe(symbols: std::ops::Range<i32>) -> Vec<u8> {
    let symbols: Vec<SymbolId> = symbols.map(SymbolId).collect();
    let frame = ClientFrame::Subscribe(Symbols::of(&symbols).expect("they ascend"));
    let mut bytes = vec![0; client_frame_bytes(&frame)];
    encode_client_frame(&frame, &mut bytes).expect("there is room");
    bytes
}

#[test]
fn symbols_that_are_named_are_bounded_for_a_connection_and_for_a_user() {
    let mut bench = Bench::new();
    let most = SYMBOLS_MAX as i32;
    let mut name = |symbols, held: &mut Vec<(Session, std::net::TcpStream)>| {
        let (mut session, client) = bench.session(Role::Read, 1);
        session.input = Input::new(subscribe(symbols));
        let (_, ending, _) = bench.turn(&mut session);
        assert!(session.has_request_changed);
        session.market.serve(session.requested.clone());
        assert_eq!(Arc::strong_count(&session.requested.symbols), 2, "one set");
        held.push((session, client));
        ending.and_then(|ending| ending.text)
    };
    let mut held = Vec::new();
    for at in 0..16 {
        assert_eq!(name(at * most..(at + 1) * most, &mut held), None);
    }
    let text = name(-1..0, &mut held);
    let most_of_all = "all of one user name more than 65536 symbols";
    assert_eq!(text.as_deref(), Some(most_of_all));
    // Two connections go.
    for (session, _client) in held.drain(15..) {
        let symbols = session.requested.symbols.len();
        bench.scheduler.leave(session.holder, symbols);
    }
    let (session, _) = &mut held[0];
    session.input = Input::new(subscribe(-1..0));
    let (_, ending, _) = bench.turn(session);
    let text = ending.and_then(|ending| ending.text);
    let most = "more than 4096 symbols: subscribe to all";
    assert_eq!(text.as_deref(), Some(most));
    let (mut session, _client) = bench.session(Role::Trade, 1);
    session.input = Input::new(subscribe(0..4_095));
    assert!(bench.turn(&mut session).1.is_none());
}

#[test]
fn commands_that_are_much_work_have_a_short_turn_from_the_first_one_on() {
    let mut bench = Bench::new();
    let place = |user, id, side, price| {
        let place = Place::limit((UserId(user), OrderId(id)), SymbolId(1), side, (price, 1));
        Command::Place(place)
    };
    for price in 1..=1_000 {
        let ask = place(2, price, Action::Ask, price);
        assert!(bench.driver.own(&ask).expect("it goes on"));
    }
    let frames = |command: &dyn Fn(i64) -> Command| {
        let mut frames = Vec::new();
        for at in 1..=64 {
            let command = command(at);
            let mut bytes = vec![0; submit_bytes(&command)];
            let sequence = ClientSequence(at as u64);
            encode_submit(sequence, &command, &mut bytes).expect("there is room");
            frames.extend(bytes);
        }
        Input::new(frames)
    };
    let (mut session, _client) = bench.session(Role::Trade, 1);
    session.input = frames(&|id| {
        let Command::Place(mut fok) = place(1, id, Action::Bid, 1_000) else {
            unreachable!("it is an order");
        };
        (fok.order_type, fok.size) = (OrderType::Fok, 1_001);
        Command::Place(fok)
    });
    let before = bench.driver.work();
    let (after, _, submitted) = bench.turn(&mut session);
    let work = bench.driver.work() - before;
    assert_eq!(after, After::Turn);
    assert!((1_000..TURN_WORK + 8 * 2_049).contains(&work), "{work}");
    assert!(submitted < 64 && session.input.may_have_frame());
    // Those that are little work have a whole turn.
    let (mut session, _client) = bench.session(Role::Trade, 2);
    session.input = frames(&|id| Command::cancel(UserId(2), SymbolId(1), OrderId(2_000 + id)));
    let (_, _, submitted) = bench.turn(&mut session);
    assert_eq!(submitted, 64);
}

/// Frames of a client, drawn from a seed: its own orders, some of them wrong or not its to send,
/// and others between.
fn drawn_frames(seed: u64) -> Vec<u8> {
    let mut random = SplitMix::new(seed);
    let (mut frames, mut sequence) = (Vec::new(), 0);
    for _ in 0..random.below(300) {
        sequence += 1 - random.below(20) / 19;
        let user = UserId(1 + (random.below(16) / 15) as i64);
        let id = OrderId(1 + random.below(50) as i64);
        let command = match random.below(40) {
            0..16 => {
                let terms = (1 + random.below(9) as i64, 1);
                Command::Place(Place::limit((user, id), SymbolId(1), Action::Bid, terms))
            }
            16..30 => Command::cancel(user, SymbolId(1), id),
            30..33 => Command::move_to(user, SymbolId(1), id, 3),
            33..36 => Command::reduce(user, SymbolId(1), id, 1),
            36 => Command::cancel_all(Some(user), None),
            37 => Command::AddUser { uid: user },
            38 => {
                let heartbeat = ClientFrame::Heartbeat;
                let at = frames.len();
                frames.resize(at + client_frame_bytes(&heartbeat), 0);
                encode_client_frame(&heartbeat, &mut frames[at..]).expect("there is room");
                continue;
            }
            _ => Command::Nop,
        };
        let at = frames.len();
        frames.resize(at + submit_bytes(&command), 0);
        let encoded = encode_submit(ClientSequence(sequence.max(1)), &command, &mut frames[at..]);
        encoded.expect("there is room");
        if random.below(400) == 0 {
            // The flags of an order, the side, a version, or a field.
            let at = at + random.below((frames.len() - at) as u64) as usize;
            frames[at] ^= 1 << random.below(8);
        }
    }
    frames
}

#[test]
fn frames_are_taken_in_runs_as_they_are_one_by_one() {
    let limits = |burst| crate::config::Sessions {
        rate_per_s: 1,
        rate_burst: burst,
        ..crate::config::Sessions::default()
    };
    let (mut refused, mut ended) = (0, 0);
    for seed in 0..300 {
        let frames = drawn_frames(seed);
        let burst = [1, 40, 1_000][seed as usize % 3];
        // With conditions of the network, be they none, each command is looked at.
        let took = [None, Some(NetworkConditions::default())].map(|conditions| {
            let mut bench = Bench::with(conditions);
            let (mut session, _client) = bench.session(Role::Trade, 1);
            let key = session.terms.key;
            session.rate = Buckets::new(&limits(burst)).of(key, bench.now);
            session.is_readable = false;
            let (mut random, mut left) = (SplitMix::new(seed), &frames[..]);
            let mut submitted = Vec::new();
            let ending = loop {
                let (after, ending, count) = bench.turn(&mut session);
                submitted.push(count);
                if ending.is_some() || after == After::Input && left.is_empty() {
                    break ending;
                }
                if after == After::Input {
                    let some = left.len().min(1 + random.below(5_000) as usize);
                    let (next, others) = left.split_at(some);
                    left = others;
                    session.input.receive(next);
                }
            };
            let mut socket = socket(usize::MAX);
            let flushed = session.output.flush(&mut socket, usize::MAX);
            flushed.expect("it takes all");
            let exchange = bench.driver.exchange();
            let state = (exchange.number(), state_hash(exchange.state()));
            let ending = ending.map(|ending| (ending.why, ending.text));
            (submitted, socket.taken, state, session.free, ending)
        });
        assert_eq!(took[0], took[1], "{seed}");
        refused += usize::from(!took[0].1.is_empty());
        ended += usize::from(took[0].4.is_some());
    }
    assert!(refused > 200 && ended > 20, "{refused} and {ended}");
}
