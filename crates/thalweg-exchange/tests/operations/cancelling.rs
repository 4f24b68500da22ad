//! One command that cancels many orders does what a cancel for each of them does.

use proptest::prelude::*;
use thalweg_exchange::{
    Action, Command, Event, Events, OrderFlags, OrderId, RemovalReason, ResultCode, State,
    SymbolId, UserId, apply,
};

use crate::operations::stream::market;
use crate::operations::{money_is_conserved, run, text};

/// The orders that must go: of which user, in which symbol, and whether only those that go with
/// their owner's session.
type Wanted = (Option<UserId>, Option<SymbolId>, bool);

/// The orders that are wanted, in the order in which they must go.
fn orders(
    state: &State,
    (uid, symbol, with_session): Wanted,
) -> Vec<(SymbolId, OrderId, UserId, i64)> {
    let mut found = Vec::new();
    for book in state.matching.books() {
        if symbol.is_some_and(|symbol| symbol != book.spec().id) {
            continue;
        }
        let is_meant = |owner, flags: OrderFlags| {
            uid.is_none_or(|uid| uid == owner) && (flags.is_cancel_on_disconnect() || !with_session)
        };
        for side in [Action::Ask, Action::Bid] {
            let own = book.orders(side).filter(|o| is_meant(o.uid, o.flags));
            let id = book.spec().id;
            found.extend(own.map(|o| (id, o.order_id, o.uid, o.size - o.filled)));
        }
        let places = book.waiting().map(|stop| stop.place);
        let own = places.filter(|place| is_meant(place.uid, place.flags));
        found.extend(own.map(|place| (place.symbol, place.order_id, place.uid, place.size)));
    }
    found
}

/// Returns how many orders went.
fn check(
    before: &State,
    after: &State,
    wanted: Wanted,
    (result, events): (ResultCode, &Events),
) -> Result<usize, TestCaseError> {
    let (_, symbol, with_session) = wanted;
    let reason = if with_session {
        RemovalReason::Disconnected
    } else {
        RemovalReason::CancelAll
    };
    if symbol.is_some_and(|symbol| before.matching.book(symbol).is_none()) {
        prop_assert_eq!(result, ResultCode::MatchingInvalidOrderBookId);
        prop_assert_eq!(text(after), text(before));
        return Ok(0);
    }
    prop_assert_eq!(result, ResultCode::Success);
    prop_assert_eq!(orders(after, wanted), []);
    let expected = orders(before, wanted);
    let mut gone = Vec::new();
    for event in events {
        match *event {
            Event::Removed {
                symbol,
                order,
                uid,
                size,
                why,
                ..
            } if why == reason => gone.push((symbol, order, uid, size)),
            _ => prop_assert!(false, "{event:?}"),
        }
    }
    prop_assert_eq!(&gone, &expected);
    let mut one_by_one = before.clone();
    for (symbol, order_id, uid, _) in expected {
        let cancel = Command::cancel(uid, symbol, order_id);
        prop_assert_eq!(run(&mut one_by_one, &cancel), ResultCode::Success);
    }
    prop_assert_eq!(text(after), text(&one_by_one));
    // The debug text shows everything, what is reserved and remembered included.
    prop_assert_eq!(
        format!("{:?}", after.risk),
        format!("{:?}", one_by_one.risk)
    );
    Ok(gone.len())
}

proptest! {
    #[test]
    fn all_orders_go_as_if_cancelled_one_by_one((rules, commands) in market(150)) {
        let mut state = State::new(rules);
        let mut events = Events::new();
        for command in &commands {
            let wanted = match *command {
                Command::CancelAll { uid, symbol } => (uid, symbol, false),
                Command::Disconnect { uid } => (Some(uid), None, true),
                _ => {
                    apply(&mut state, command, &mut events);
                    continue;
                }
            };
            let before = state.clone();
            let result = apply(&mut state, command, &mut events);
            money_is_conserved(&state, command)?;
            check(&before, &state, wanted, (result, &events))?;
        }
    }
}

#[test]
fn the_streams_have_much_to_cancel_and_to_follow() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let (mut gone, mut futures, mut waited, mut left) = (0, 0, 0, 0);
    let (mut triggered, mut refilled, mut self_trades, mut expired) = (0, 0, 0, 0);
    for _ in 0..200 {
        let tree = market(250).new_tree(&mut runner).expect("a stream");
        let (rules, commands) = tree.current();
        let mut state = State::new(rules);
        let mut events = Events::new();
        for command in &commands {
            let waiting = |state: &State| {
                let books = state.matching.books();
                books
                    .iter()
                    .map(|book| book.waiting().count())
                    .sum::<usize>()
            };
            let before = waiting(&state);
            apply(&mut state, command, &mut events);
            if let Command::Disconnect { .. } = command {
                left += events.len();
            }
            if let Command::CancelAll { .. } = command {
                gone += events.len();
                futures += events.tops_of_book().len();
                waited += before - waiting(&state);
            }
            for event in &events {
                match event {
                    Event::Triggered { .. } => triggered += 1,
                    Event::Refilled { .. } => refilled += 1,
                    Event::Removed { why, .. } => {
                        self_trades += usize::from(*why == RemovalReason::SelfTrade);
                        expired += usize::from(*why == RemovalReason::Expired);
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(
        gone > 200 && futures > 25 && waited > 10 && left > 30,
        "{gone} orders, {futures} books, {waited} waited, {left} went with their session"
    );
    assert!(
        triggered > 40 && refilled > 40 && self_trades > 8 && expired > 60,
        "{triggered} triggered, {refilled} refilled, {self_trades} self-trades, {expired} expired"
    );
}
