//! The checkers of the experiments accept what is right, and refuse what is not.

use std::cell::Cell;

use thalweg_compare::channels::LAST;
use thalweg_compare::experiment::bus::broker;
use thalweg_compare::experiment::channels::stream;
use thalweg_compare::experiment::exchange::cores::looped;
use thalweg_compare::experiment::exchange::flow::{levels, resting, sweeps, trading};
use thalweg_compare::experiment::exchange::wire::Wire;
use thalweg_compare::experiment::serve::{Orders, set_up};
use thalweg_compare::experiment::{hash, tasks};
use thalweg_exchange::{Command, Events, OrderType, ResultCode, Rules, State, apply};
use thalweg_hash::xxh64;

#[test]
fn the_checker_counts_what_is_lost_or_out_of_place() {
    let lost = |values: &[u64], sent: u64| {
        let mut checker = stream::Checker::default();
        values.iter().for_each(|value| checker.take(*value));
        checker.lost(sent)
    };
    assert_eq!(lost(&[0, 1, 2, LAST], 3), 0);
    assert_eq!(lost(&[0, 1], 3), 1);
    assert_eq!(lost(&[0, 2], 3), 1);
    assert!(lost(&[0, 2, 1], 3) >= 2);
}

#[test]
fn a_message_that_is_torn_missing_doubled_or_out_of_order_counts() {
    let lost = |ticks: &[broker::Tick], published: u64| {
        let mut checker = broker::TickChecker::default();
        ticks.iter().for_each(|tick| checker.take(tick));
        checker.lost(published)
    };
    let tick = |publisher, number| broker::Tick::new(publisher, number, 0);
    assert_eq!(lost(&[tick(0, 0), tick(1, 0), tick(0, 1)], 3), 0);
    assert_eq!(lost(&[tick(0, 0), tick(1, 0)], 3), 1);
    assert_eq!(lost(&[tick(0, 0), tick(0, 2)], 3), 1);
    assert_eq!(lost(&[tick(0, 1), tick(0, 0)], 2), 1);
    assert_eq!(lost(&[tick(0, 0), tick(0, 0)], 1), 2);
    let mut torn = tick(0, 0);
    torn.number = 1;
    assert_eq!(lost(&[tick(0, 0), torn], 2), 1);
    assert!(broker::Tick::last().is_last() && !tick(0, 0).is_last());
}

#[test]
fn a_state_is_ready_when_everything_was_rehearsed_and_taken_back() {
    for flow in [trading(2_000), sweeps(300), resting(500, 10, 40, 3_000)] {
        let mut state = flow.ready(|_, _, _| ());
        assert!(levels(flow.book(&state)) != flow.levels);
        let (now, mut events) = (Cell::new(0), Events::new());
        let took = flow.time(
            || now.get(),
            |commands| {
                for command in commands {
                    apply(&mut state, command, &mut events);
                    now.set(now.get() + 1);
                }
            },
        );
        flow.assert_levels(&state, "the second pass");
        assert_eq!(took, flow.timed() as f64);
        assert_eq!(now.get(), flow.commands.len() as u64);
    }
    assert!(trading(2_000).trades > 1_500 && resting(500, 10, 40, 3_000).trades == 0);
    let sweeps = sweeps(300);
    assert_eq!((sweeps.timed(), sweeps.blocks.len()), (300, 3));
    assert!((6_000..9_000).contains(&sweeps.trades), "{}", sweeps.trades);
}

#[test]
#[should_panic(expected = "wrong result: the test left")]
fn another_book_is_an_error() {
    let mut flow = trading(100);
    flow.levels.pop();
    let mut state = flow.ready(|_, _, _| ());
    let mut events = Events::new();
    for command in &flow.commands {
        apply(&mut state, command, &mut events);
    }
    flow.assert_levels(&state, "the test");
}

#[test]
#[should_panic(expected = "wrong result: other bytes went out")]
fn other_bytes_are_an_error() {
    let mut wire = Wire::new(trading(100));
    wire.total.bytes += 1;
    looped::<true>(&wire, true);
}

#[test]
fn another_hash_is_refused() {
    let wrong = hash::job("wrong", |load, seed, out| {
        out[0] = xxh64(seed + 1, &load.data)
    });
    let why = wrong
        .run(&hash::HashLoad::new(1, 40, 1, hash::ONE.1))
        .unwrap_err();
    assert_eq!(why, "another hash than that of the reference");
}

#[test]
fn orders_rest_trade_and_are_cancelled() {
    let mut state = State::new(Rules::default());
    let mut events = Events::new();
    for command in set_up([1, 2].into_iter()) {
        let result = apply(&mut state, &command, &mut events);
        assert_eq!(result, ResultCode::Success);
    }
    let mut sessions = [1, 2].map(Orders::of);
    let (mut cancelled, mut traded) = (0, 0);
    for at in 0..2_000 {
        let command = sessions[at % 2].command();
        events.clear();
        let result = apply(&mut state, &command, &mut events);
        match command {
            Command::Place(place) => {
                assert_eq!(result, ResultCode::Success);
                traded += u32::from(place.order_type == OrderType::Ioc && !events.is_empty());
            }
            _ => cancelled += u32::from(result == ResultCode::Success),
        }
    }
    assert!(cancelled > 500 && traded > 20, "{cancelled} {traded}");
}

#[test]
fn a_message_that_was_not_received_or_received_twice_is_lost() {
    let lost = |received: &[u64]| tasks::ran(received.iter().sum(), 3, 1.0).lost;
    assert_eq!(lost(&[3, 1, 2]), 0);
    assert_eq!(lost(&[3, 1]), 1);
    assert_eq!(lost(&[3, 2, 1, 1]), 1);
}
