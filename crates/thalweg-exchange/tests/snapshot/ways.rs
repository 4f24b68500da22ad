//! However a state came about, its bytes are the same.

use proptest::prelude::*;
use thalweg::pipeline::Placement;
use thalweg_exchange::matching::Matching;
use thalweg_exchange::service::{Service, ServiceOptions};
use thalweg_exchange::{
    Action, Command, ConditionalOrder, CurrencyId, Events, OrderId, Place, Rules, State, SymbolId,
    SymbolSpec, UserId, apply, apply_batch,
};

use crate::one_state::encoded as bytes;
use crate::snapshot::commands::{Mix, rules, stream};
use crate::snapshot::heavy_flow::HeavyFlow;
use crate::snapshot::stream::market;

fn applied(mut state: State, commands: &[Command]) -> State {
    for command in commands {
        apply(&mut state, command, &mut Events::new());
    }
    state
}

fn served(rules: Rules, commands: &[Command], options: ServiceOptions) -> State {
    let service = Service::start(State::new(rules), options, |_| ());
    let mut service = service.expect("good options");
    for batch in commands.chunks(13) {
        service.submit_batch(batch, |_| 0).expect("no panic");
    }
    service.join().expect("no panic").state
}

fn agree(rules: Rules, commands: &[Command]) {
    let expected = bytes(&applied(State::new(rules), commands));
    let mut batched = State::new(rules);
    apply_batch(&mut batched, commands, &mut Events::new(), |_, _, _| ());
    assert!(bytes(&batched) == expected, "in batches");
    for (placement, is_timed) in [
        (Placement::inline(), false),
        (Placement::inline(), true),
        (Placement::threads(2), false),
    ] {
        let what = format!("{placement}, stamped: {is_timed}");
        let options = ServiceOptions {
            capacity: 64,
            placement,
            is_timed,
            ..ServiceOptions::default()
        };
        let state = served(rules, commands, options);
        assert!(bytes(&state) == expected, "{what}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(24)))]

    #[test]
    fn every_way_leads_to_the_same_bytes(
        (rules, commands) in market(120),
        (any_rules, others) in (rules(), stream(Mix::Quirks, 120)),
    ) {
        agree(rules, &commands);
        agree(any_rules, &others);
    }
}

#[test]
fn every_way_leads_to_the_same_bytes_of_large_books() {
    for seed in 0..3 {
        let mut flow = HeavyFlow::new(seed);
        let commands: Vec<Command> = (0..4_000).map(|_| flow.next()).collect();
        agree(Rules::default(), &commands);
    }
}

const PAIR: SymbolId = SymbolId(1);
const FUTURES: SymbolId = SymbolId(2);

fn setup() -> Vec<Command> {
    let pair = SymbolSpec::pair(PAIR, CurrencyId(1), CurrencyId(2));
    let futures = SymbolSpec {
        id: FUTURES,
        symbol_type: thalweg_exchange::SymbolType::Futures,
        ..pair
    };
    let mut commands = vec![Command::AddSymbols([pair, futures].into())];
    for uid in 1..=3 {
        commands.push(Command::AddUser { uid: UserId(uid) });
        for currency in [1, 2] {
            commands.push(Command::deposit(
                UserId(uid),
                CurrencyId(currency),
                1_000_000,
                i64::from(currency),
            ));
        }
    }
    commands
}

fn limit(uid: i64, id: i64, action: Action, price: i64) -> Place {
    Place::limit((UserId(uid), OrderId(id)), PAIR, action, (price, 5))
}

fn rest(uid: i64, id: i64, action: Action, price: i64) -> Command {
    Command::Place(limit(uid, id, action, price))
}

fn cancel(uid: i64, id: i64) -> Command {
    Command::cancel(UserId(uid), PAIR, OrderId(id))
}

fn with(place: Place, trigger: Option<i64>, good_till: Option<i64>) -> Command {
    let order = ConditionalOrder {
        trigger,
        good_till,
        display: trigger.is_none().then_some(1),
        ..place.into()
    };
    Command::PlaceConditional(order.into())
}

#[track_caller]
fn leads(one: &[Command], other: &[Command], same: bool) {
    let of = |commands: &[Command]| {
        let state = applied(State::default(), &setup());
        bytes(&applied(state, commands))
    };
    assert_eq!(of(one) == of(other), same);
}

fn band(low: i64, high: i64) -> Command {
    Command::set_price_band(FUTURES, low, high)
}

#[test]
fn what_makes_no_difference_leaves_no_trace() {
    use Action::{Ask, Bid};
    // Orders that came and went, far ones among them; levels in any order.
    let mut long: Vec<Command> = (100..400).map(|id| rest(1, id, Bid, id * 97)).collect();
    long.extend((100..400).map(|id| cancel(1, id)));
    long.extend([rest(2, 8, Bid, 40), rest(1, 7, Bid, 50)]);
    leads(&long, &[rest(1, 7, Bid, 50), rest(2, 8, Bid, 40)], true);
    // Lists of owners are kept from here on.
    let of_no_order = Command::cancel_all(Some(UserId(3)), None);
    leads(
        &[of_no_order, rest(1, 7, Ask, 50)],
        &[rest(1, 7, Ask, 50)],
        true,
    );
    // A band that moves, and no user is short.
    leads(
        &[band(5, 90), band(7, 80), band(5, 90)],
        &[band(5, 90)],
        true,
    );
    // Which of two orders that never meet came first.
    let one = with(limit(1, 1, Bid, 90), Some(80), None);
    let other = with(limit(2, 2, Bid, 91), Some(81), Some(9));
    leads(&[one.clone(), other.clone()], &[other, one], true);
    let one = with(limit(1, 1, Bid, 30), None, Some(8));
    let other = with(limit(2, 2, Bid, 31), None, None);
    leads(&[one.clone(), other.clone()], &[other, one], true);
    let large = State {
        matching: Matching::with_capacity(Rules::default(), 5_000),
        ..State::default()
    };
    let large = applied(large, &setup());
    assert!(bytes(&large) == bytes(&applied(State::default(), &setup())));
}

#[test]
fn what_makes_a_difference_leaves_a_trace() {
    use Action::Bid;
    // Which order stands first.
    let [one, other] = [rest(1, 7, Bid, 50), rest(2, 8, Bid, 50)];
    leads(&[one.clone(), other.clone()], &[other, one], false);
    // Which order is triggered first, and which expires first.
    for (trigger, good_till) in [(Some(80), None), (None, Some(9)), (Some(80), Some(9))] {
        let [one, other] = [1, 2].map(|uid| {
            let price = 30 + uid;
            with(limit(uid, uid, Bid, price), trigger, good_till)
        });
        leads(&[one.clone(), other.clone()], &[other, one], false);
    }
    leads(
        &[Command::Clock { time: 1 }],
        &[Command::Clock { time: 2 }],
        false,
    );
    leads(&[band(5, 90)], &[band(5, 91)], false);
}
