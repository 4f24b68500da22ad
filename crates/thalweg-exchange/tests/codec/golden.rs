//! Frames byte by byte: the layout must not change without a new version.

use std::sync::Arc;

use thalweg_exchange::book::Level;
use thalweg_exchange::codec::{
    REPORT_BYTES, command_bytes, encode_command, encode_message, encode_report, encode_snapshot,
    message_bytes, snapshot_bytes,
};
use thalweg_exchange::execution::{CancelReason, Execution, ExecutionReport, TradeId};
use thalweg_exchange::market::{
    BestPrices, Body, Channels, Epoch, FeedSequence, Message, Quote, Snapshot, SymbolSequence,
};
use thalweg_exchange::{
    AccountSpec, Action, AdjustmentKind, Amend, Command, ConditionalOrder, CurrencyId, FeeUnit,
    OrderFlags, OrderId, OrderType, Place, RemovalReason, SelfTrade, SymbolId, SymbolSpec,
    SymbolType, UserId, UserLimits,
};

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shown(command: &Command) -> String {
    let mut out = vec![0; command_bytes(command)];
    encode_command(command, &mut out).expect("there is room");
    hex(&out)
}

/// 64-bit fields, as they must look.
fn longs(values: &[i64]) -> String {
    values
        .iter()
        .map(|value| hex(&value.to_le_bytes()))
        .collect()
}

fn order() -> Place {
    Place {
        uid: UserId(0x0102_0304_0506_0708),
        symbol: SymbolId(-2),
        order_id: OrderId(9),
        order_type: OrderType::FokBudget,
        action: Action::Bid,
        price: -1,
        reserve_price: i64::MAX,
        size: i64::MIN,
        flags: OrderFlags::NONE
            .with_post_only()
            .with_self_trade(SelfTrade::CancelMaker),
    }
}

#[test]
fn orders() {
    let fields = "feffffff\
                  0807060504030201\
                  0900000000000000\
                  ffffffffffffffff\
                  ffffffffffffff7f\
                  0000000000000080";
    let expected = format!("3400000001010c06{fields}");
    assert_eq!(shown(&Command::Place(order())), expected);
    let conditional = ConditionalOrder::from(order())
        .with_trigger(5)
        .with_good_till(0);
    let expected = format!("4c00000005015c06{fields}{}", longs(&[5, 0, 0]));
    assert_eq!(
        shown(&Command::PlaceConditional(Arc::new(conditional))),
        expected
    );
}

/// Tests that each command is written as these bytes: its head, and the 64-bit fields behind it.
macro_rules! golden {
    ($($command:expr => $head:literal $longs:expr;)+) => {
        for (command, head, behind) in [$(($command, $head, longs(&$longs))),+] {
            assert_eq!(shown(&command), format!("{head}{behind}"), "{command:?}");
        }
    };
}

#[test]
fn changes_of_orders() {
    let (uid, symbol, order_id) = (UserId(1), SymbolId(2), OrderId(3));
    golden! {
        Command::cancel(uid, symbol, order_id) => "1c0000000201000002000000" [1, 3];
        Command::move_to(uid, symbol, order_id, 4) => "240000000301000002000000" [1, 3, 4];
        Command::reduce(uid, symbol, order_id, 4) => "240000000401000002000000" [1, 3, 4];
    }
}

#[test]
fn commands_of_users_symbols_and_the_market() {
    let (uid, symbol, currency) = (UserId(1), SymbolId(2), CurrencyId(7));
    let (amount, transaction_id, kind) = (8, 9, AdjustmentKind::Suspend);
    let all = |uid, symbol| Command::CancelAll { uid, symbol };
    let uncross = |reference| Command::Uncross { symbol, reference };
    let limits = |uid, limits| Command::SetLimits { uid, limits };
    let some_limits = UserLimits::NONE
        .with_open_orders(7)
        .with_order_size(8)
        .with_ids_once();
    let amend = Amend {
        uid,
        symbol,
        order_id: OrderId(9),
        action: Action::Bid,
        reserve_price: 3,
        size_before: 4,
        price: 5,
        size: 6,
    };
    golden! {
        Command::Nop => "0800000078010000" [];
        Command::Reset => "080000007c010000" [];
        Command::AddUser { uid } => "100000000a010000" [1];
        Command::Suspend { uid } => "100000000c010000" [1];
        Command::Resume { uid } => "100000000d010000" [1];
        Command::Disconnect { uid } => "1000000008010000" [1];
        Command::Clock { time: 1 } => "100000001e010000" [1];
        Command::Balance { uid, currency, amount, transaction_id, kind } =>
            "240000000b01010007000000" [1, 8, 9];
        all(Some(uid), Some(symbol)) => "140000000701030002000000" [1];
        all(None, Some(symbol)) => "140000000701020002000000" [0];
        all(Some(uid), None) => "140000000701010000000000" [1];
        Command::set_price_band(symbol, 3, 4) => "1c0000001f01000002000000" [3, 4];
        Command::Halt { symbol } => "0c0000002001000002000000" [];
        Command::Unhalt { symbol } => "0c0000002101000002000000" [];
        Command::RemoveSymbol { symbol } => "0c0000002201000002000000" [];
        Command::from(amend) => "3c0000000901010002000000" [1, 9, 3, 4, 5, 6];
        Command::StartAuction { symbol } => "0c0000002401000002000000" [];
        Command::RunStops { symbol } => "0c0000002601000002000000" [];
        uncross(None) => "140000002501000002000000" [0];
        uncross(Some(3)) => "140000002501010002000000" [3];
        Command::SetMarketProtection { symbol, ticks: 3 } => "140000002301000002000000" [3];
        Command::PayFees { uid, currency, amount, transaction_id } =>
            "240000000e01000007000000" [1, 8, 9];
        limits(Some(uid), Some(some_limits)) => "1c0000000f01070007000000" [1, 8];
        limits(None, None) => "1c0000000f01000000000000" [0, 0];
    }
}

#[test]
fn batches() {
    let spec = SymbolSpec::pair(SymbolId(2), CurrencyId(3), CurrencyId(4))
        .with_scales(5, 6)
        .with_type(SymbolType::Futures)
        .with_fees(7, 8)
        .with_margins(9, 10);
    let ids = "02000000010000000300000004000000";
    let fields = longs(&[5, 6, 7, 8, 9, 10]);
    let expected = format!("4c0000001401000001000000{ids}{fields}");
    assert_eq!(shown(&Command::AddSymbols([spec].into())), expected);
    let of_value = spec.with_fee_unit(FeeUnit::Millionth);
    let expected = expected.replacen("0200000001000000", "0200000001010000", 1);
    assert_eq!(shown(&Command::AddSymbols([of_value].into())), expected);
    let accounts = [
        AccountSpec::new(UserId(1), vec![(CurrencyId(7), 8)]),
        AccountSpec::default(),
    ];
    let expected = format!(
        "300000001501000002000000{}0100000007000000{}{}00000000",
        longs(&[1]),
        longs(&[8]),
        longs(&[0]),
    );
    assert_eq!(shown(&Command::AddAccounts(accounts.into())), expected);
}

#[test]
fn reports() {
    let report = ExecutionReport {
        command: 1,
        owner: UserId(2),
        symbol: SymbolId(7),
        order: OrderId(3),
        side: Some(Action::Bid),
        price: 4,
        left: 5,
        filled: 6,
        kind: Execution::Trade {
            id: TradeId {
                command: 1,
                index: 8,
            },
            price: 9,
            size: 10,
            is_maker: true,
        },
    };
    let mut out = vec![0; REPORT_BYTES];
    encode_report(&report, &mut out).expect("there is room");
    let fields = longs(&[1, 2, 3, 4, 5, 6]);
    let last = longs(&[9, 10]);
    let expected = format!("5000000081037100{fields}0700000008000000{last}");
    assert_eq!(hex(&out), expected);
    let why = CancelReason::Removed(RemovalReason::OutsideBand);
    let cancelled = ExecutionReport {
        side: Some(Action::Ask),
        kind: Execution::Cancelled { size: 10, why },
        ..report
    };
    encode_report(&cancelled, &mut out).expect("there is room");
    let last = longs(&[0, 10]);
    let expected = format!("5000000081031346{fields}0700000000000000{last}");
    assert_eq!(hex(&out), expected);
}

#[test]
fn messages() {
    let message = Message {
        epoch: Epoch(i64::MAX as u64 + 8),
        sequence: FeedSequence(1),
        symbol_sequence: SymbolSequence(2),
        channels: Channels::default(),
        symbol: SymbolId(4),
        is_last: true,
        body: Body::Best(BestPrices {
            ask: None,
            bid: Some(Quote {
                price: 5,
                volume: 6,
            }),
        }),
    };
    let mut out = vec![0; message_bytes(&message)];
    encode_message(&message, &mut out).expect("there is room");
    let fields = longs(&[i64::MIN + 7, 1, 2, 0, 0, 5, 6]);
    let expected = format!("44000000a704050d04000000{fields}");
    assert_eq!(hex(&out), expected);
    let trade = Message {
        is_last: false,
        body: Body::Trade {
            price: 5,
            size: 6,
            taker_side: Action::Bid,
        },
        ..message
    };
    let mut out = vec![0; message_bytes(&trade)];
    encode_message(&trade, &mut out).expect("there is room");
    let fields = longs(&[i64::MIN + 7, 1, 2, 5, 6]);
    assert_eq!(hex(&out), format!("34000000a004020d04000000{fields}"));
}

#[test]
fn snapshots() {
    let level = |price| Level {
        price,
        volume: 20,
        orders: 2,
    };
    let snapshot = Snapshot {
        symbol: SymbolId(4),
        epoch: Epoch(5),
        channels: Channels::default(),
        sequence: FeedSequence(6),
        as_of: SymbolSequence(7),
        asks: vec![level(9)],
        bids: vec![],
        asks_cut: false,
        bids_cut: true,
    };
    let mut out = vec![0; snapshot_bytes(&snapshot)];
    encode_snapshot(&snapshot, &mut out).expect("there is room");
    let counts = "0100000000000000";
    let items = longs(&[9, 20, 2]);
    let expected = format!(
        "44000000c004020d04000000{}{counts}{items}",
        longs(&[5, 6, 7])
    );
    assert_eq!(hex(&out), expected);
}
