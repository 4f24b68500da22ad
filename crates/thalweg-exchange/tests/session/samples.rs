//! Frames of every kind, each with every shape that it has.

use std::sync::Arc;

use thalweg_exchange::book::Level;
use thalweg_exchange::codec::session::{
    AccountView, Answer, Bye, ClientFrame, CloseReason, Conflated, Hello, KeyBytes, NumberedReport,
    OpenOrder, PositionView, QueryAnswer, QueryFrame, QueryResult, Refused, ReportGap, ServerFrame,
    SessionQuery, Symbols, Welcome, client_frame_bytes, encode_client_frame, encode_server_frame,
    encode_submit, server_frame_bytes, submit_bytes,
};
use thalweg_exchange::execution::{Execution, ExecutionReport};
use thalweg_exchange::market::{Channels, Epoch};
use thalweg_exchange::report::BookReport;
use thalweg_exchange::risk::UserStatus;
use thalweg_exchange::session::{ClientSequence, Refusal, ReportNumber, Role};
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, OrderFlags, OrderId, OrderType, Place, ResultCode,
    SymbolId, UserId,
};

pub(crate) fn hello() -> Hello<'static> {
    Hello {
        version_min: 1,
        version_max: 2,
        role: Role::Trade,
        holder: -7,
        number: 3,
        last_report: Some(ReportNumber(0x0102_0304_0506_0708)),
        heartbeat_ms: 1_000,
        cancels_on_disconnect: true,
        market_data_only: false,
        key: KeyBytes(b"a key"),
    }
}

pub(crate) fn welcome() -> Welcome {
    Welcome {
        version: 1,
        heartbeat_ms: 2,
        holder: -3,
        last_executed: ClientSequence(4),
        next_report: ReportNumber(5),
        next_command: 6,
        in_flight_max: 7,
        frame_bytes_max: 8,
        rate_max: 9,
        epoch: Epoch(10),
        channels: Channels::default(),
        exchange: u64::MAX,
    }
}

pub(crate) fn place() -> Place {
    Place::limit((UserId(7), OrderId(3)), SymbolId(2), Action::Bid, (4, 6))
        .with_type(OrderType::Ioc)
        .with_reserve(5)
}

pub(crate) fn report() -> ExecutionReport {
    ExecutionReport {
        command: 11,
        owner: UserId(7),
        symbol: SymbolId(2),
        order: OrderId(3),
        side: Some(Action::Bid),
        price: 4,
        left: 5,
        filled: 6,
        kind: Execution::New,
    }
}

/// A submit's frame.
pub(crate) fn submit(sequence: u64, command: &Command) -> Vec<u8> {
    let mut out = vec![0; submit_bytes(command)];
    let length = encode_submit(ClientSequence(sequence), command, &mut out);
    assert_eq!(length, Ok(out.len()));
    out
}

pub(crate) fn of_client(frame: &ClientFrame<'_>) -> Vec<u8> {
    let mut out = vec![0; client_frame_bytes(frame)];
    assert_eq!(encode_client_frame(frame, &mut out), Ok(out.len()));
    out
}

pub(crate) fn of_server(frame: &ServerFrame<'_>) -> Vec<u8> {
    let mut out = vec![0; server_frame_bytes(frame)];
    assert_eq!(encode_server_frame(frame, &mut out), Ok(out.len()));
    out
}

/// Whatever a client sends.
pub(crate) fn client_frames() -> Vec<Vec<u8>> {
    let read = Hello {
        role: Role::Read,
        last_report: None,
        cancels_on_disconnect: false,
        market_data_only: true,
        key: KeyBytes(b""),
        ..hello()
    };
    let batch = Command::AddAccounts(Arc::new([AccountSpec {
        uid: UserId(1),
        balances: vec![(CurrencyId(2), 3)],
    }]));
    let some = [SymbolId(-5), SymbolId(0), SymbolId(9)];
    let some = Symbols::of(&some).expect("they ascend");
    let query = |query| of_client(&ClientFrame::Query(QueryFrame { id: 77, query }));
    let bye = |why, text| of_client(&ClientFrame::Bye(Bye { why, text }));
    vec![
        of_client(&ClientFrame::Hello(hello())),
        of_client(&ClientFrame::Hello(read)),
        submit(1, &Command::Place(place())),
        submit(u64::MAX, &Command::Nop),
        submit(2, &batch),
        query(SessionQuery::Account(UserId(-2))),
        query(SessionQuery::OpenOrders(UserId(i64::MAX))),
        query(SessionQuery::Book {
            symbol: SymbolId(-1),
            depth: u32::MAX,
        }),
        of_client(&ClientFrame::Subscribe(some)),
        of_client(&ClientFrame::Subscribe(Symbols::ALL)),
        of_client(&ClientFrame::Unsubscribe(some)),
        of_client(&ClientFrame::Heartbeat),
        bye(CloseReason::Done, ""),
        bye(CloseReason::BadFrame, "at byte 9: größer"),
    ]
}

fn order(is_stop: bool) -> OpenOrder {
    OpenOrder {
        symbol: SymbolId(1),
        order_id: OrderId(2),
        action: Action::Bid,
        order_type: if is_stop {
            OrderType::Market
        } else {
            OrderType::Gtc
        },
        flags: OrderFlags::NONE.with_post_only(),
        price: 3,
        reserve_price: 4,
        size: 5,
        filled: 6,
        hidden: 7,
        trigger: is_stop.then_some(8),
        display: (!is_stop).then_some(9),
        good_till: Some(i64::MIN),
    }
}

pub(crate) fn account() -> AccountView {
    AccountView {
        uid: UserId(1),
        status: UserStatus::Suspended,
        last_transaction_id: 2,
        open_orders: 3,
        balances: vec![(CurrencyId(4), 5), (CurrencyId(6), -7)],
        positions: vec![PositionView {
            symbol: SymbolId(8),
            currency: CurrencyId(9),
            open: -10,
            open_price_sum: 11,
            profit: 12,
            pending_sell: 13,
            pending_buy: 14,
        }],
        waiting: vec![
            (CurrencyId(15), i128::MIN),
            (CurrencyId(16), -1),
            (CurrencyId(17), 1 << 64),
        ],
    }
}

fn query_results() -> Vec<QueryResult> {
    let level = Level {
        price: 1,
        volume: 2,
        orders: 3,
    };
    vec![
        QueryResult::Account(account()),
        QueryResult::OpenOrders {
            orders: vec![order(false), order(true)],
            is_cut: true,
        },
        QueryResult::OpenOrders {
            orders: Vec::new(),
            is_cut: false,
        },
        QueryResult::Book(BookReport {
            asks: vec![level; 2],
            bids: vec![level],
        }),
        QueryResult::UnknownUser,
        QueryResult::UnknownSymbol,
        QueryResult::Refused(Refusal::Rate { limit: 4 }),
        QueryResult::Refused(Refusal::NotYourUser),
    ]
}

/// Whatever a server sends that is of a session.
pub(crate) fn server_frames() -> Vec<Vec<u8>> {
    let sequence = ClientSequence(9);
    let answer = |is_repeated| Answer {
        sequence,
        number: 10,
        result: ResultCode::RiskNsf,
        is_repeated,
    };
    let refused = |why| ServerFrame::Refused(Refused { sequence, why });
    let conflated = |symbol| ServerFrame::Conflated(Conflated { symbol, missed: 12 });
    let number = ReportNumber(13);
    let report = report();
    let mut frames = vec![
        ServerFrame::Welcome(welcome()),
        ServerFrame::Answer(answer(false)),
        ServerFrame::Answer(answer(true)),
        refused(Refusal::InFlight { limit: 11 }),
        refused(Refusal::DiskFull),
        ServerFrame::Report(NumberedReport { number, report }),
        ServerFrame::ReportGap(ReportGap {
            from: ReportNumber(3),
            to: ReportNumber(3),
        }),
        conflated(Some(SymbolId(-4))),
        conflated(None),
        ServerFrame::Heartbeat,
        ServerFrame::Bye(Bye {
            why: CloseReason::SlowReader,
            text: "4,194,304 bytes wait",
        }),
    ];
    frames.extend(query_results().into_iter().map(|result| {
        ServerFrame::QueryAnswer(QueryAnswer {
            id: 14,
            number: 15,
            result,
        })
    }));
    frames.iter().map(of_server).collect()
}
