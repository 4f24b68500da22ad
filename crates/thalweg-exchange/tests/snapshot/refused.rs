//! Errors in bytes are reported: which, where, and what the value may be.

use thalweg_exchange::snapshot::{SnapshotError, decode_state};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Events, OrderId, Place, ResultCode, Rules, State,
    SymbolId, SymbolSpec, UserId, apply,
};

use crate::one_state::encoded as bytes;
use crate::snapshot::example::state;
use crate::snapshot::faults::rows;

/// The error of a state with these bytes changed, which are there once.
#[track_caller]
fn error(from: &[u8], to: &[u8]) -> String {
    refusal(&changed(&bytes(&state(Rules::default())), from, to)).to_string()
}

#[track_caller]
fn refusal(bytes: &[u8]) -> SnapshotError {
    decode_state(bytes).map(drop).expect_err("it is refused")
}

#[track_caller]
fn changed(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let places: Vec<usize> = (0..bytes.len())
        .filter(|&at| bytes[at..].starts_with(from))
        .collect();
    let &[at] = places.as_slice() else {
        panic!("{from:?} is at {places:?}");
    };
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

/// Returns the error after a 64-bit number was replaced.
#[track_caller]
fn other(from: i64, to: i64) -> String {
    error(&from.to_le_bytes(), &to.to_le_bytes())
}

/// The bytes of some numbers, one after another.
fn longs<const N: usize>(numbers: [i64; N]) -> Vec<u8> {
    numbers.map(i64::to_le_bytes).concat()
}

/// The beginning of a level.
fn level(price: i64, orders: u32) -> Vec<u8> {
    [&price.to_le_bytes()[..], &orders.to_le_bytes()].concat()
}

#[track_caller]
fn check_error(from: &[u8], to: &[u8], expected: &str) {
    assert_eq!(error(from, to), expected);
}

/// Checks faults. Each line has numbers that are there once, their replacements, and the reported
/// error.
#[track_caller]
fn check_errors(faults: &str) {
    let bytes = |numbers: &str| -> Vec<u8> {
        let numbers = numbers
            .split(',')
            .map(|text| text.parse().expect("a number"));
        numbers.flat_map(i64::to_le_bytes).collect()
    };
    for [from, to, expected] in rows(faults) {
        check_error(&bytes(from), &bytes(to), expected);
    }
}

#[test]
fn rules_of_levels_are_checked() {
    let from = level(66_001, 1);
    for (to, expected) in [
        (
            level(70_008, 1),
            "a level's price at byte 930 is 70007, it may be from 70009 to 9223372036854775807",
        ),
        (
            level(35, 1),
            "a level's price at byte 876 is 35, it may be from 36 to 9223372036854775807",
        ),
        (
            level(66_001, 0),
            "a level without orders at byte 884: none is kept",
        ),
    ] {
        check_error(&from, &to, expected);
    }
    let crossed = "a level's price at byte 1112 is 66001, it may be from 1 to 66000";
    check_error(&level(60_013, 1), &level(66_001, 1), crossed);
    let outside = "a level's price at byte 1359 is 30011, it may be from 30012 to 40009";
    let [from, to] = [[20_011, 40_009], [30_012, 40_009]].map(longs);
    check_error(&from, &to, outside);
}

#[test]
fn rules_of_orders_are_checked() {
    check_errors(
        "1002,2003 1009,2003 there is no user 1009, which byte 942 refers to
         1001,2010 1003,2010 an order at byte 1371: its owner has no record in futures
         1001,2004 1002,2003 the order at byte 984 has the id 2003 of another one
         7,4 0,4 what is left of an order at byte 912 is 0, it may be from 1 to \
             9223372036854775807
         7,4 7,-4 what is filled of an order at byte 912 is -4, it may be from 0 to \
             9223372036854775807
         7,4 7,9223372036854775807 an order at byte 912: it has more lots than 64 bits
         31,0 9223372036854775802,0 an order at byte 942: its hold has more than 64 bits
         7,4 8,4 money beyond what was paid in at byte 38 is 3, it may be from 0 to 0
         36,17 0,17 hidden lots at byte 1026 is 0, it may be from 1 to 9223372036854775807
         36,17 36,16 displayed lots at byte 1026 is 17, it may be from 1 to 16
         36,17 36000,17 an iceberg order at byte 1026: it displays less than a thousandth",
    );
}

#[test]
fn expiry_in_the_wrong_order_or_too_late_is_refused() {
    let over = "the time until which it lives is over";
    let unbounded = Rules {
        bound_work: false,
        ..Rules::default()
    };
    for (from, to, at) in [(600_029_i64, 500_009_i64, 1331), (500_009, 600_029, 1042)] {
        let expired = |rules| {
            let bytes = bytes(&state(rules));
            changed(&bytes, &from.to_le_bytes(), &to.to_le_bytes())
        };
        let error = refusal(&expired(unbounded)).to_string();
        assert_eq!(error, format!("an order at byte {at}: {over}"));
        // Where work is bounded, it may be left over for the next clock command.
        let read = decode_state(&expired(Rules::default())).expect("it is accepted");
        let time = to.max(500_009);
        assert_eq!(read.left_over(), Some(Command::Clock { time }));
    }
    let turn = |turn: u32| [&longs([600_011])[..], &turn.to_le_bytes()].concat();
    let why = "an order's turn at byte 864: those of one time are not 0, 1, 2 and so on";
    check_error(&turn(1), &turn(0), why);
}

#[test]
fn rules_of_stop_orders_are_checked() {
    check_errors(
        "2006,50021 2006,50001 stop orders at byte 1229: 50009 may not follow 50001
         2006,50021 2006,66001 the trigger of what waits at byte 1194 is 66001, it may be from \
             -9223372036854775808 to 66000
         2007,50009 2007,0 a trigger at byte 1245 is 0, it may be from 1 to 9223372036854775807
         50009,50007 50009,35 a stop order's price at byte 1253 is 35, it may be from 36 to \
             9223372036854775807
         90023,90023 90023,90022 a reserve price at byte 1280 is 90022, it may be from 90023 to \
             9223372036854775807",
    );
}

#[test]
fn rules_of_symbols_and_users_are_checked() {
    check_errors(
        "20011,40009 20011,20010 the highest price of a symbol at byte 314 is 20010, it may be \
             from 20011 to 9223372036854775807
         20011,40009 0,40009 the lowest price of futures at byte 306 is 0, it may be from 1 to \
             68719476736
         5003,4003 -5003,4003 a symbol at byte 243: SYMBOL_INVALID_SPEC",
    );
    let protection = "a market protection at byte 195 is -1, it may be from 0 to \
                      9223372036854775807";
    assert_eq!(other(313, -1), protection);
    let id = "a transaction id at byte 826 is -1, it may be from 0 to 9223372036854775807";
    assert_eq!(other(3_000_000_019, -1), id);
}

/// The bytes with these put at a place.
fn put(at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes(&state(Rules::default()));
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

#[test]
fn what_users_have_must_add_up() {
    // The first record in futures: 13 bought for 390,143, and one of as many sold.
    const BALANCES_AT: usize = 523;
    const RECORD_AT: usize = 551;
    let int = |id: i32| id.to_le_bytes().to_vec();
    for (at, new, expected) in [
        (
            BALANCES_AT,
            int(103),
            "there is no currency 103, which byte 523 refers to",
        ),
        (
            BALANCES_AT + 12,
            int(101),
            "balances at byte 535: 101 may not follow 101",
        ),
        (
            BALANCES_AT + 4,
            longs([0]),
            "a balance of 0 at byte 527: none is kept",
        ),
        (
            BALANCES_AT + 4,
            longs([-1]),
            "a balance at byte 527 is -1, it may be from 0 to 9223372036854775807",
        ),
        (
            BALANCES_AT + 4,
            longs([5]),
            "money beyond what was paid in at byte 38 is -6999999752, it may be from 0 to 0",
        ),
        (
            RECORD_AT,
            int(11),
            "there is no futures symbol 11, which byte 551 refers to",
        ),
        (
            RECORD_AT + 4,
            vec![2],
            "a position's direction at byte 555 is 2, it may be from -1 to 1",
        ),
        (
            RECORD_AT + 4,
            vec![0],
            "open lots at byte 556 is 13, it may be from 0 to 0",
        ),
        (
            RECORD_AT + 5,
            longs([12]),
            "lots bought beyond those sold at byte 551 is -1, it may be from 0 to 0",
        ),
        (
            RECORD_AT + 13,
            longs([12]),
            "what was paid for open lots at byte 564 is 12, it may be from 13 to 893353197568",
        ),
        (
            RECORD_AT + 21,
            longs([1]),
            "profit of a position at byte 572 is 1, it may be from 0 to 0",
        ),
    ] {
        assert_eq!(refusal(&put(at, &new)).to_string(), expected);
    }
}

/// A move by the reference's rules takes room for the largest order that is remembered.
#[test]
fn no_order_is_larger_than_the_largest_that_is_remembered() {
    const SIZE: i64 = 777_777;
    let (uid, symbol, [base, quote]) = (UserId(1), SymbolId(1), [1, 2].map(CurrencyId));
    let ask = |id, size| {
        let place = Place::limit((uid, OrderId(id)), symbol, Action::Ask, (5, size));
        Command::Place(place)
    };
    let balances = vec![(base, 10 * SIZE)];
    let mut state = State::new(Rules::REFERENCE);
    for command in [
        Command::AddSymbols([SymbolSpec::pair(symbol, base, quote)].into()),
        Command::AddAccounts([AccountSpec { uid, balances }].into()),
        ask(1, SIZE),
        ask(2, 3),
    ] {
        let result = apply(&mut state, &command, &mut Events::new());
        assert_eq!(result, ResultCode::Success);
    }
    let mut bytes = bytes(&state);
    let most = longs([SIZE]);
    let at = bytes.windows(8).position(|bytes| bytes == most);
    bytes[at.expect("the largest order")] -= 1;
    let text = refusal(&bytes).to_string();
    assert!(text.starts_with("the size of an order at byte"), "{text}");
    assert!(
        text.ends_with("is 777777, it may be from 0 to 777776"),
        "{text}"
    );
}

#[test]
fn what_is_no_state_is_refused() {
    for (at, new, expected) in [
        (
            0,
            b"LOAD".to_vec(),
            "the bytes at 0 are [4c, 4f, 41, 44], a state begins with [54, 57, 58, 53]",
        ),
        (4, vec![2], "the version at byte 4 is 2, only 1 is known"),
        (
            10,
            vec![255],
            "the rules at byte 8 is 16777215, it may be from 0 to 131071",
        ),
        (
            12,
            vec![0],
            "the clock at byte 13 is 500009, it may be from 0 to 0",
        ),
        (
            33,
            vec![2],
            "whether ids count once at byte 33 is 2, it may be from 0 to 1",
        ),
        (
            34,
            vec![255; 4],
            "the number of currencies at byte 34 is 4294967295, there is room for 37",
        ),
    ] {
        assert_eq!(refusal(&put(at, &new)).to_string(), expected);
    }
    let whole = bytes(&state(Rules::default()));
    let longer = [&whole[..], &[0]].concat();
    let surplus = "the state ends at byte 1429, 1 more are there";
    assert_eq!(refusal(&longer).to_string(), surplus);
    let short = "levels at byte 1425 needs 4 bytes, the state ends after 1428";
    assert_eq!(refusal(&whole[..whole.len() - 1]).to_string(), short);
    for end in 0..whole.len() {
        let error = refusal(&whole[..end]).to_string();
        let is_short = ["the state ends after", "there is room for"];
        assert!(
            is_short.iter().any(|why| error.contains(why)),
            "{end}: {error}"
        );
    }
}
