//! Inputs to begin with: what is good, so that a change of it is nearly good.

use thalweg_exchange::codec::{command_bytes, encode_command};
use thalweg_exchange::snapshot::encode_state;
use thalweg_exchange::{
    Action, Command, ConditionalOrder, Events, OrderId, Place, ResultCode, State, SymbolId, UserId,
    UserLimits, apply,
};

use super::language::{Words, setup};
use super::packed::{HEAD_BYTES, packed};
use super::samples::{client_frames, server_frames};

/// Frames of every kind that a connection carries.
pub(crate) fn sessions() -> Vec<u8> {
    [client_frames(), server_frames()].concat().concat()
}

/// A packed batch of records of three lengths, behind their number.
pub(crate) fn packed_batch() -> Vec<u8> {
    let record = |number: u8| {
        [
            vec![number, number / 2, 0, 9],
            vec![0; 60 + number as usize % 3],
        ]
    };
    let records: Vec<Vec<u8>> = (0..9).map(|number| record(number).concat()).collect();
    let batch = packed(records.iter().map(Vec::as_slice));
    [&[9], &batch[HEAD_BYTES..]].concat()
}

/// Frames of many kinds, one after another.
pub(crate) fn frames() -> Vec<u8> {
    let mut commands = setup().to_vec();
    let letters: Vec<u8> = (0..=255_u8)
        .flat_map(|byte| [byte, 1, byte / 3, 2])
        .collect();
    for start in 0..2 {
        commands.extend(Words::new(&letters[start * 61..]).commands(false));
    }
    let mut bytes = vec![0; commands.iter().map(command_bytes).sum()];
    let mut at = 0;
    for command in &commands {
        at += encode_command(command, &mut bytes[at..]).expect("there is room");
    }
    bytes
}

/// Orders that meet: a sell of 5 and one of 6, a buy of 9, and more of the kind.
pub(crate) fn orders() -> Vec<u8> {
    let place = |side, uid, order, size| [0, side, 10, uid, 0, order, size];
    let places = [
        place(0, 0, 1, 5),
        place(0, 1, 2, 6),
        place(1, 2, 3, 9),
        place(1, 0, 4, 7),
    ];
    [&[0_u8][..], places.as_flattened()].concat()
}

/// A recorded stream of every kind of line.
pub(crate) fn lines() -> Vec<u8> {
    b"S,1,5,0,10,20,100,10,3,1,0,0\nW,2,40,20:5000,10:-3\n\
      C,3,PLACE,40,5,-9,FOK_BUDGET,BID,100,100,8\nR,SUCCESS\nC,4,CANCEL,40,5,-9\n\
      C,5,MOVE,40,5,1,7\nC,6,REDUCE,40,5,1,3\nC,7,ADD_USER,7\nC,8,SUSPEND,7\nC,9,RESUME,7\n\
      C,10,BALANCE,7,20,1000000,3,0\nC,11,NOP\nC,12,RESET\nK,12,3,00000000000000aa\n"
        .to_vec()
}

/// The bytes of a state with users, limits, a clock and a band; with orders that rest, hide lots,
/// wait and expire, and with positions.
pub(crate) fn states() -> Vec<u8> {
    let limit = |symbol, uid, id, action, lots| {
        let owner = (UserId(uid), OrderId(id));
        Place::limit(owner, SymbolId(symbol), action, lots)
    };
    let with = |place: Place, trigger: Option<i64>, till: Option<i64>| {
        let order = ConditionalOrder {
            trigger,
            display: Some(2),
            good_till: till,
            ..place.into()
        };
        Command::PlaceConditional(order.into())
    };
    let mut commands = setup().to_vec();
    commands.extend([
        Command::set_price_band(SymbolId(2), 5, 90),
        Command::Clock { time: 3 },
        Command::SetLimits {
            uid: Some(UserId(1)),
            limits: Some(UserLimits::NONE.with_ids_once()),
        },
        Command::Place(limit(0, 0, 1, Action::Ask, (50, 5))),
        Command::Place(limit(0, 1, 2, Action::Bid, (50, 2))),
        with(limit(0, 2, 3, Action::Ask, (52, 7)), None, Some(9)),
        with(limit(0, 2, 4, Action::Bid, (40, 7)), None, Some(9)),
        with(limit(0, 0, 5, Action::Bid, (60, 4)), Some(58), None),
        Command::Place(limit(2, 0, 6, Action::Ask, (30, 4))),
        Command::Place(limit(2, 1, 7, Action::Bid, (30, 3))),
        Command::StartAuction {
            symbol: SymbolId(1),
        },
        Command::Place(limit(1, 0, 8, Action::Ask, (30, 4))),
        Command::Place(limit(1, 1, 9, Action::Bid, (35, 3))),
    ]);
    let mut state = State::default();
    for command in &commands {
        let result = apply(&mut state, command, &mut Events::new());
        assert_eq!(result, ResultCode::Success, "{command:?}");
    }
    let mut bytes = vec![0];
    encode_state(&state, &mut bytes);
    bytes
}
