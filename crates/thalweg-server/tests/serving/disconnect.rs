//! Orders that go with their session.

use thalweg_exchange::codec::session::{ClientFrame, CloseReason, Hello};
use thalweg_exchange::event::RemovalReason;
use thalweg_exchange::execution::{CancelReason, Execution};
use thalweg_exchange::session::{ReportNumber, Role};
use thalweg_exchange::{Action, Command, OrderFlags};
use thalweg_server::config::SyncSetting;

use crate::client::{Client, hello, order, submit_of};
use crate::test_server::TestServer;

/// An order that is cancelled on disconnect.
fn bound(user: i64, id: i64) -> Command {
    let Command::Place(mut place) = order(user, id, Action::Bid, 10, 1) else {
        unreachable!("it is an order");
    };
    place.flags = OrderFlags::NONE.with_cancel_on_disconnect();
    Command::Place(place)
}

fn asking(user: i64, number: u32) -> Hello<'static> {
    Hello {
        number,
        cancels_on_disconnect: true,
        ..hello(Role::Trade, user)
    }
}

#[test]
fn the_last_session_that_asked_for_it_takes_the_orders_along() {
    let server = TestServer::with_market(|_| {});
    let (mut reader, _) = Client::connect(server.trade_address(), hello(Role::Read, 1));
    let (mut first, _) = Client::connect(server.trade_address(), asking(1, 0));
    let (second, _) = Client::connect(server.trade_address(), asking(1, 1));
    let number = 2;
    let plain = Hello {
        number,
        ..hello(Role::Trade, 1)
    };
    let (mut third, _) = Client::connect(server.trade_address(), plain);
    first.submit(1, &bound(1, 1));
    first.submit(2, &order(1, 2, Action::Bid, 10, 1));
    first.succeeds(1);
    first.succeeds(2);
    assert_eq!(
        [reader.report(), reader.report()].map(|numbered| numbered.report.order.0),
        [1, 2]
    );
    // One of two goes, by a bye: nothing happens.
    second
        .stream
        .shutdown(std::net::Shutdown::Both)
        .expect("it is open");
    drop(second);
    third.submit(1, &order(1, 3, Action::Bid, 10, 1));
    third.succeeds(1);
    assert_eq!(reader.report().report.order.0, 3);
    // The last one goes: the order that asked for it, and no other.
    first.send(&ClientFrame::Bye(thalweg_exchange::codec::session::Bye {
        why: CloseReason::Done,
        text: "",
    }));
    let cancelled = reader.report().report;
    let why = CancelReason::Removed(RemovalReason::Disconnected);
    assert_eq!(
        (cancelled.order.0, cancelled.kind),
        (1, Execution::Cancelled { size: 1, why })
    );
    third.submit(2, &order(1, 4, Action::Bid, 10, 1));
    third.succeeds(2);
    assert_eq!(reader.report().report.order.0, 4);
}

#[test]
fn a_connection_that_is_replaced_by_one_that_asks_again_keeps_the_orders() {
    let server = TestServer::with_market(|_| {});
    let (mut reader, _) = Client::connect(server.trade_address(), hello(Role::Read, 1));
    let (mut older, _) = Client::connect(server.trade_address(), asking(1, 0));
    older.submit(1, &bound(1, 1));
    older.succeeds(1);
    let (mut newer, _) = Client::connect(server.trade_address(), asking(1, 0));
    let _ = older.bye();
    newer.submit(2, &bound(1, 2));
    newer.succeeds(2);
    assert_eq!(
        [reader.report(), reader.report()].map(|numbered| numbered.report.order.0),
        [1, 2]
    );
    drop(newer);
    let orders = [reader.report(), reader.report()].map(|numbered| numbered.report.order.0);
    assert_eq!(orders, [1, 2]);
}

/// Where commands do not wait for the disk, the cancels are published while the newer connection is
/// being entered.
#[test]
fn a_newcomer_is_welcomed_before_the_orders_of_the_one_before_go_and_has_each_report_once() {
    let server = TestServer::with_market(|config| config.journal.sync = SyncSetting::Never);
    let (mut older, _) = Client::connect(server.trade_address(), asking(1, 0));
    older.submit(1, &bound(1, 1));
    older.succeeds(1);
    let newer = Hello {
        last_report: Some(ReportNumber(0)),
        ..hello(Role::Trade, 1)
    };
    let (mut newer, _) = Client::connect(server.trade_address(), newer);
    newer.submit(2, &order(1, 2, Action::Bid, 10, 1));
    let numbers = [newer.report(), newer.report(), newer.report()].map(|report| report.number.0);
    assert_eq!(numbers, [1, 2, 3]);
}

#[test]
fn what_came_before_a_frame_that_cannot_be_read_has_its_answer_before_the_bye() {
    let server = TestServer::with_market(|config| config.journal.sync = SyncSetting::Never);
    let (mut client, _) = server.trade(1);
    let mut bytes = submit_of(1, &order(1, 1, Action::Bid, 10, 1));
    bytes.extend_from_slice(&[0; 8]);
    client.write(&bytes);
    client.succeeds(1);
    assert_eq!(client.bye().0, CloseReason::BadFrame);
}
