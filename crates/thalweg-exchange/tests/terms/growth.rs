//! The work of a command does not grow with what others, or its user, have piled up.
//!
//! Each [`Pile`] is made in two sizes, and the same commands are executed beside it. Each must be
//! as much work beside the large one as beside the small one. `THALWEG_GROWTH` is the large size.

use thalweg_exchange::Action::Bid;
use thalweg_exchange::{
    Amend, Command, CurrencyId, OrderFlags, OrderId, OrderType, Place, ResultCode, Rules,
    SelfTrade, SymbolId, SymbolSpec, UserId, UserLimits,
};

use crate::terms::world::{
    FUTURES, OTHER_PAIR, PAIR, World, ask, bid, cancelled, flagged, good_till, iceberg, in_symbol,
    moved, of_type, reduced, stop, with,
};

/// The user who piles up, the one whose commands are looked at, and one who trades with that one.
const OTHER: i64 = 1;
const USER: i64 = 4;
const PEER: i64 = 5;
/// Ids of the orders of a pile begin here.
const PILED: i64 = 1 << 40;

/// Elements of one kind that are piled up in a state.
struct Pile {
    what: &'static str,
    /// Returns the commands that make the element of this number.
    element: fn(i64) -> Vec<Command>,
    /// Commands whose work is the size of the pile, by their names here.
    grows: &'static [&'static str],
}

/// Returns a pile beside which no work grows.
const fn pile(what: &'static str, element: fn(i64) -> Vec<Command>) -> Pile {
    Pile {
        what,
        element,
        grows: &[],
    }
}

const PILES: [Pile; 13] = [
    pile("orders at one price", |at| {
        vec![Command::Place(ask(OTHER, PILED + at, 150, 1))]
    }),
    pile("levels", |at| {
        vec![Command::Place(ask(OTHER, PILED + at, 150 + at, 1))]
    }),
    pile("levels far apart", |at| {
        vec![Command::Place(ask(OTHER, PILED + at, 150 + at * 10_007, 1))]
    }),
    pile("levels with an iceberg", |at| {
        vec![with(iceberg(ask(OTHER, PILED + at, 150 + at, 9), 1))]
    }),
    pile("orders that go with their session", |at| {
        let goes = OrderFlags::NONE.with_cancel_on_disconnect();
        let order = flagged(ask(OTHER, PILED + at, 150 + at % 7, 1), goes);
        vec![Command::Place(order)]
    }),
    pile("stop orders at one trigger", |at| {
        vec![with(stop(bid(OTHER, PILED + at, 50, 1), 10_000))]
    }),
    pile("stop orders at different triggers", |at| {
        vec![with(stop(bid(OTHER, PILED + at, 50, 1), 10_000 + at))]
    }),
    pile("orders that expire later", |at| {
        let order = bid(OTHER, PILED + at, 10 + at % 40, 1);
        vec![with(good_till(order, 1_000 + at))]
    }),
    Pile {
        what: "orders of the user in another symbol",
        element: |at| {
            let order = bid(USER, PILED + at, 1 + at % 99, 1);
            vec![Command::Place(in_symbol(order, OTHER_PAIR))]
        },
        grows: &["cancel all"],
    },
    Pile {
        what: "orders of the user in the symbol",
        element: |at| vec![Command::Place(bid(USER, PILED + at, 1 + at % 89, 1))],
        grows: &["cancel in a symbol"],
    },
    pile("users", |at| {
        vec![Command::AddUser {
            uid: UserId(PILED + at),
        }]
    }),
    Pile {
        what: "symbols",
        element: |at| {
            let id = SymbolId(1_000 + at as i32);
            let symbol = SymbolSpec::pair(id, CurrencyId(1), CurrencyId(2));
            vec![Command::AddSymbols([symbol].into())]
        },
        // They look into each book.
        grows: &["session ends", "cancel all"],
    },
    pile("trades that were made", |at| {
        let (asked, bought) = (
            ask(OTHER, PILED + at, 120, 1),
            bid(PEER, PILED + at, 120, 1),
        );
        vec![Command::Place(asked), Command::Place(bought)]
    }),
];

/// Executes a command that must succeed.
#[track_caller]
fn done(world: &mut World, command: &Command) {
    assert_eq!(world.apply(command), ResultCode::Success, "{command:?}");
}

type Named = (&'static str, Command);

/// Orders of one user that rest or wait, changes of them, and orders that trade with them. Each
/// finds the state that the ones before it leave.
fn resting() -> [Named; 17] {
    let amended = Amend {
        uid: UserId(USER),
        symbol: PAIR,
        order_id: OrderId(1),
        action: Bid,
        reserve_price: 1 << 20,
        size_before: 8,
        price: 102,
        size: 9,
    };
    let resting = Place {
        reserve_price: 1 << 20,
        ..bid(USER, 1, 100, 9)
    };
    [
        ("an order rests", Command::Place(resting)),
        ("it is moved", moved(USER, PAIR, 1, 101)),
        ("reduced", reduced(USER, PAIR, 1, 1)),
        ("amended", Command::Amend(amended.into())),
        ("traded with", Command::Place(ask(PEER, 1, 102, 1))),
        ("cancelled", cancelled(USER, PAIR, 1)),
        ("a new worst level", Command::Place(bid(USER, 2, 1, 1))),
        ("it is cancelled", cancelled(USER, PAIR, 2)),
        ("an iceberg rests", with(iceberg(bid(USER, 3, 100, 9), 3))),
        ("it is refilled twice", Command::Place(ask(PEER, 2, 100, 6))),
        ("an iceberg is cancelled", cancelled(USER, PAIR, 3)),
        ("a stop order waits", with(stop(bid(USER, 4, 50, 1), 9_999))),
        ("it is cancelled too", cancelled(USER, PAIR, 4)),
        (
            "a stop order that is triggered next",
            with(stop(ask(USER, 5, 200, 1), 100)),
        ),
        ("a bid for it", Command::Place(bid(PEER, 3, 100, 1))),
        ("a trade triggers it", Command::Place(ask(USER, 6, 100, 1))),
        ("it is cancelled again", cancelled(USER, PAIR, 5)),
    ]
}

/// Orders that take, or expire, or go with their session, and what ends them.
fn ending() -> [Named; 13] {
    let fok = |place| of_type(place, OrderType::Fok);
    let maker = OrderFlags::NONE.with_self_trade(SelfTrade::CancelMaker);
    let goes = OrderFlags::NONE.with_cancel_on_disconnect();
    let posts = OrderFlags::NONE.with_post_only();
    [
        (
            "an order that expires",
            with(good_till(bid(USER, 7, 100, 1), 9)),
        ),
        (
            "the best is taken",
            of_type(bid(USER, 8, 1 << 40, 1), OrderType::Ioc),
        ),
        (
            "the best is taken by a market order",
            of_type(bid(USER, 9, 1 << 40, 1), OrderType::Market),
        ),
        (
            "by a budget",
            of_type(bid(USER, 10, 1 << 40, 1), OrderType::IocBudget),
        ),
        ("filled whole", fok(bid(USER, 11, 1 << 40, 2))),
        ("not filled whole", fok(bid(USER, 12, 110, 9))),
        (
            "whole, own orders cancelled",
            fok(flagged(bid(USER, 13, 1 << 40, 1), maker)),
        ),
        (
            "whole, own orders alone",
            fok(flagged(ask(USER, 14, 1, 1), maker)),
        ),
        (
            "post-only",
            Command::Place(flagged(bid(USER, 15, 100, 1), posts)),
        ),
        ("clock", Command::Clock { time: 10 }),
        (
            "goes with the session",
            Command::Place(flagged(bid(USER, 16, 100, 1), goes)),
        ),
        ("session ends", Command::Disconnect { uid: UserId(USER) }),
        (
            "futures",
            Command::Place(in_symbol(bid(USER, 17, 100, 1), FUTURES)),
        ),
    ]
}

/// Commands of the administrator about the user and the symbol, and mass cancels.
fn others() -> [Named; 9] {
    let (uid, limits) = (UserId(USER), UserLimits::NONE);
    [
        ("deposit", Command::deposit(uid, CurrencyId(1), 5, 1)),
        (
            "limits",
            Command::SetLimits {
                uid: Some(uid),
                limits: Some(limits),
            },
        ),
        ("band", Command::set_price_band(PAIR, 1, 1 << 50)),
        ("halt", Command::Halt { symbol: PAIR }),
        ("unhalt", Command::Unhalt { symbol: PAIR }),
        ("stops", Command::RunStops { symbol: PAIR }),
        ("resume", Command::Resume { uid }),
        (
            "cancel in a symbol",
            Command::cancel_all(Some(uid), Some(PAIR)),
        ),
        ("cancel all", Command::cancel_all(Some(uid), None)),
    ]
}

/// Returns the name, the result and the work of each command beside `count` elements of a pile.
fn works(pile: &Pile, count: i64) -> Vec<(&'static str, ResultCode, u64)> {
    let mut world = World::with_money(Rules::default(), 1 << 60);
    // Lists of owners are kept from then on.
    done(&mut world, &Command::Disconnect { uid: UserId(OTHER) });
    // Enough to take, at a better price than any of a pile.
    for at in 0..9 {
        done(&mut world, &Command::Place(ask(OTHER, at, 140, 2)));
    }
    for at in 0..count {
        for command in (pile.element)(at) {
            done(&mut world, &command);
        }
    }
    let work = |(name, command)| {
        let result = world.apply(&command);
        (name, result, world.events.work())
    };
    let commands = resting().into_iter().chain(ending()).chain(others());
    commands.map(work).collect()
}

#[test]
fn the_work_of_a_command_does_not_grow_with_what_is_piled_up() {
    let large = std::env::var("THALWEG_GROWTH").map_or(2_000, |text| text.parse().expect("a size"));
    for pile in &PILES {
        let [small, large] = [20, large].map(|count| works(pile, count));
        let mut grown: Vec<&str> = Vec::new();
        for (&(name, result, work), &(_, result_beside, work_beside)) in small.iter().zip(&large) {
            assert_eq!(result, result_beside, "{name} beside {}", pile.what);
            if work != work_beside {
                grown.push(name);
            }
        }
        assert_eq!(grown, pile.grows, "beside {}", pile.what);
    }
}
