//! Every error, by the smallest change of a good frame that leads to it, and its text.

use std::sync::Arc;

use thalweg_exchange::book::Level;
use thalweg_exchange::codec::{
    CodecError, FRAME_BYTES_MAX, REPORT_BYTES, command_bytes, decode_command, decode_message,
    decode_report, decode_snapshot, encode_command, encode_message, encode_report, encode_snapshot,
    message_bytes, peek, snapshot_bytes,
};
use thalweg_exchange::execution::{Execution, ExecutionReport};
use thalweg_exchange::market::{
    BestPrices, Body, Channels, Epoch, FeedSequence, Message, Snapshot, SymbolSequence,
};
use thalweg_exchange::{
    AccountSpec, Action, Command, ConditionalOrder, CurrencyId, OrderId, OrderType, Place,
    RemovalReason, SymbolId, SymbolSpec, UserId,
};

use crate::codec::faults;

fn bytes_of(command: &Command) -> Vec<u8> {
    let mut out = vec![0; command_bytes(command)];
    encode_command(command, &mut out).expect("there is room");
    out
}

/// Returns the decoder's error after `bytes` were written over the frame at `at`.
fn error_text(frame: &[u8], at: usize, bytes: &[u8]) -> String {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    let error = match frame[4] {
        // A kind of no command has to be reported by the decoder of commands, too.
        0..128 => decode_command(&frame).expect_err("a fault"),
        128..160 => decode_report(&frame).expect_err("a fault"),
        192.. => decode_snapshot(&frame, &mut Snapshot::default()).expect_err("a fault"),
        _ => decode_message(&frame).expect_err("a fault"),
    };
    error.to_string()
}

#[track_caller]
fn check_error_texts(frame: &[u8], faults: &str) {
    faults::check_error_texts(faults, |at, bytes| error_text(frame, at, bytes));
}

fn place() -> Place {
    Place::limit((UserId(1), OrderId(3)), SymbolId(2), Action::Bid, (4, 6))
        .with_type(OrderType::Ioc)
        .with_reserve(5)
}

/// A frame that is all there can't be mended by more bytes.
#[test]
fn a_list_that_is_longer_than_its_frame_is_not_incomplete() {
    let account = |uid| AccountSpec::new(UserId(uid), vec![(CurrencyId(1), 2)]);
    let mut frame = bytes_of(&Command::AddAccounts(Arc::new([account(1)])));
    assert_eq!(frame.len(), 36);
    // Two accounts, of which the first takes all the bytes.
    frame[8] = 2;
    let text = "the frame ends at byte 36, and 8 bytes are wanted from byte 36 on";
    let mut more = frame.clone();
    more.resize(4_096, 0);
    for bytes in [frame, more] {
        let error = decode_command(&bytes).expect_err("a fault");
        assert!(matches!(error, CodecError::Truncated { .. }), "{error:?}");
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn heads_that_are_wrong() {
    let nop = bytes_of(&Command::Nop);
    check_error_texts(
        &nop,
        "0 7 the length at byte 0 is 7, a frame has 8 bytes at least",
    );
    assert_eq!(
        error_text(&nop, 0, &(FRAME_BYTES_MAX as u32 + 1).to_le_bytes()),
        "a frame of 16777217 bytes, the limit is 16777216"
    );
    // Market messages have a version of their own.
    check_error_texts(
        &nop,
        "5 2 the version at byte 5 is 2, only 1 is known
         4 168,1 the version at byte 5 is 1, only 4 is known
         4 6 the kind at byte 4 is 6, which is no known command
         0 9 the length at byte 0 is 9, that of nothing is 8
         6 1 byte 6 of nothing is 1, the greatest is 0",
    );
    for wrong in [0, 1, 7] {
        let needed = 8;
        let error = CodecError::Incomplete {
            needed,
            have: wrong,
        };
        assert_eq!(peek(&nop[..wrong]), Err(error));
        assert_eq!(
            error.to_string(),
            format!("the frame needs 8 bytes, {wrong} are there")
        );
    }
    // Faults that more bytes cannot mend are reported before those are there.
    let mut head = nop;
    head[..5].copy_from_slice(&[200, 0, 0, 0, 1]);
    let error = decode_command(&head).expect_err("a wrong length");
    assert_eq!(
        error.to_string(),
        "the length at byte 0 is 200, that of an order is 52"
    );
}

#[test]
fn kinds_of_another_family() {
    let nop = bytes_of(&Command::Nop);
    let error = decode_message(&nop).expect_err("a command");
    assert_eq!(
        error.to_string(),
        "the kind at byte 4 is 120, which is no known message"
    );
    let mut report = nop;
    report[4..6].copy_from_slice(&[129, 3]);
    let error = decode_command(&report).expect_err("a report");
    assert_eq!(
        error.to_string(),
        "the kind at byte 4 is 129, which is no known command"
    );
    report[4] = 128;
    let error = decode_report(&report).expect_err("a kind that reports had once");
    assert_eq!(
        error.to_string(),
        "the kind at byte 4 is 128, which is no known execution report"
    );
}

#[test]
fn orders_that_are_wrong() {
    let order = bytes_of(&Command::Place(place()));
    check_error_texts(
        &order,
        "6 6 the order type at byte 6 is 6, which is not known
         6 16 byte 6 of an order is 16, the greatest is 13
         7 29 byte 7 of an order is 29, the greatest is 28
         7 9 the order's flags at byte 7 is 9, which is not known",
    );
    let with = |trigger, good_till| {
        bytes_of(&Command::PlaceConditional(Arc::new(ConditionalOrder {
            trigger,
            good_till,
            ..place().into()
        })))
    };
    for (at, what) in [
        (52, "the trigger"),
        (60, "the display size"),
        (68, "the last time"),
    ] {
        let conditional = if at == 68 {
            with(Some(1), None)
        } else {
            with(None, Some(1))
        };
        assert_eq!(
            error_text(&conditional, at, &[9]),
            format!("{what} of an order without one at byte {at} is 9, the greatest is 0")
        );
    }
    assert_eq!(
        error_text(&with(Some(1), None), 6, &[1]),
        "byte 6 of a conditional order names no condition; such an order has kind 1"
    );
    let cancel = bytes_of(&Command::cancel(UserId(1), SymbolId(2), OrderId(3)));
    check_error_texts(
        &cancel,
        "7 1 byte 7 of a cancel is 1, the greatest is 0
         4 3 the length at byte 0 is 28, that of a move is 36",
    );
}

#[test]
fn other_commands_that_are_wrong() {
    let all = bytes_of(&Command::cancel_all(None, None));
    check_error_texts(
        &all,
        "8 1 the symbol of a mass cancel in all at byte 8 is 1, the greatest is 0
         12 1 the user of a mass cancel of all at byte 12 is 1, the greatest is 0
         6 4 byte 6 of a mass cancel is 4, the greatest is 3",
    );
    let symbols = bytes_of(&Command::AddSymbols([SymbolSpec::default(); 2].into()));
    check_error_texts(
        &symbols,
        "8 3 3 symbols said at byte 8, the frame has room for 2
         8 1 the frame's fields end at byte 76, and 64 bytes follow
         16 3 the type of a symbol at byte 16 is 3, which is not known
         0 11 the length at byte 0 is 11, that of a batch of symbols is 12",
    );
    let account = AccountSpec::new(UserId(1), vec![(CurrencyId(1), 5)]);
    let accounts = bytes_of(&Command::AddAccounts([account].into()));
    // Announced items may still not be there: the second account would begin where nothing is.
    check_error_texts(
        &accounts,
        "0 47 the length at byte 0 is 47, that of a batch of accounts is 36
         8 0 the frame's fields end at byte 12, and 24 bytes follow
         8 255,255,255,255 4294967295 accounts said at byte 8, the frame has room for 2
         20 2 2 balances said at byte 20, the frame has room for 1
         8 2 the frame ends at byte 36, and 8 bytes are wanted from byte 36 on",
    );
}

fn new_report() -> ExecutionReport {
    ExecutionReport {
        command: 1,
        owner: UserId(2),
        symbol: SymbolId(3),
        order: OrderId(4),
        side: None,
        price: 5,
        left: 6,
        filled: 7,
        kind: Execution::New,
    }
}

#[test]
fn reports_that_are_wrong() {
    let report = new_report();
    let mut frame = vec![0; REPORT_BYTES];
    encode_report(&report, &mut frame).expect("there is room");
    check_error_texts(
        &frame,
        "0 79 the length at byte 0 is 79, that of an execution report is 80
         5 1 the version at byte 5 is 1, only 3 is known
         6 128 byte 6 of an execution report is 128, the greatest is 127
         6 8 the execution at byte 6 is 8, which is not known
         6 32 the side of no order at byte 6 is 32, the greatest is 0
         6 64 the maker's bit of no trade at byte 6 is 64, the greatest is 0
         7 1 the reason of no cancel at byte 7 is 1, the greatest is 0
         60 1 the number of no trade at byte 60 is 1, the greatest is 0
         64 1 the price of no trade at byte 64 is 1, the greatest is 0
         72 1 the size of no change at byte 72 is 1, the greatest is 0",
    );
    frame[6] = 6;
    let text = "the result at byte 60 is 7, which is not known";
    assert_eq!(error_text(&frame, 60, &[7]), text);
    frame[6] = 3;
    let text = "the reason of a cancel at byte 7 is 60, which is not known";
    assert_eq!(error_text(&frame, 7, &[60]), text);
}

/// These reasons are reported by kinds of their own.
#[test]
fn a_cancel_has_no_reason_that_is_a_kind() {
    let (report, mut frame) = (new_report(), vec![0; REPORT_BYTES]);
    encode_report(&report, &mut frame).expect("there is room");
    frame[6] = 3;
    for why in [
        RemovalReason::Expired,
        RemovalReason::Cancelled,
        RemovalReason::Reduced,
        RemovalReason::Decremented,
    ] {
        let code = 64 + why as u8;
        let text = format!("the reason of a cancel at byte 7 is {code}, which is not known");
        assert_eq!(error_text(&frame, 7, &[code]), text);
    }
}

#[test]
fn messages_that_are_wrong() {
    let message = Message {
        epoch: Epoch(1),
        sequence: FeedSequence(1),
        symbol_sequence: SymbolSequence(1),
        channels: Channels::default(),
        symbol: SymbolId(1),
        is_last: true,
        body: Body::Best(BestPrices::default()),
    };
    let mut frame = vec![0; message_bytes(&message)];
    encode_message(&message, &mut frame).expect("there is room");
    check_error_texts(
        &frame,
        "0 67 the length at byte 0 is 67, that of best prices is 68
         4 169 the kind at byte 4 is 169, which is no known message
         6 8 byte 6 of best prices is 8, the greatest is 7
         7 14 byte 7 of best prices is 14, the greatest is 13
         7 2 the channels at byte 7 is 2, which is not known
         36 1 the best ask of an empty side at byte 36 is 1, the greatest is 0
         60 1 the best bid of an empty side at byte 60 is 1, the greatest is 0",
    );
}

#[test]
fn snapshots_that_are_wrong() {
    let level = Level {
        price: 0,
        volume: 0,
        orders: 0,
    };
    let snapshot = Snapshot {
        asks: vec![level; 2],
        ..Snapshot::default()
    };
    let mut frame = vec![0; snapshot_bytes(&snapshot)];
    encode_snapshot(&snapshot, &mut frame).expect("there is room");
    check_error_texts(
        &frame,
        "0 91 the length at byte 0 is 91, that of a snapshot is 68
         0 9 the length at byte 0 is 9, that of a snapshot is 44
         4 193 the kind at byte 4 is 193, which is no known snapshot
         6 4 byte 6 of a snapshot is 4, the greatest is 3
         7 14 byte 7 of a snapshot is 14, the greatest is 13
         40 1 3 levels said at byte 36, the frame has room for 2
         36 1 the frame's fields end at byte 68, and 24 bytes follow",
    );
    // And is reported as soon as the numbers are there.
    frame[36] = 1;
    let error = decode_snapshot(&frame[..44], &mut Snapshot::default()).expect_err("a fault");
    assert!(
        matches!(error, CodecError::TrailingBytes { .. }),
        "{error:?}"
    );
}
