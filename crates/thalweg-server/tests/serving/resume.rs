//! The state that a program finds when it comes back: to the same server, and to one that started
//! again.

use thalweg_exchange::codec::session::{CloseReason, Hello};
use thalweg_exchange::session::{Refusal, ReportNumber, Role};
use thalweg_exchange::{Action, ResultCode};

use crate::client::{Client, Received, hello, order};
use crate::test_server::TestServer;

/// A user who has seen reports up to this one.
fn back(user: i64, last: Option<u64>) -> Hello<'static> {
    Hello {
        last_report: last.map(ReportNumber),
        ..hello(Role::Trade, user)
    }
}

#[test]
fn a_repeated_command_gets_its_first_answer_also_after_a_restart() {
    let mut server = TestServer::with_market(|_| {});
    let (mut client, _) = server.trade(1);
    client.submit(3, &order(1, 1, Action::Bid, 10, 1));
    let number = client.succeeds(3);
    for _ in 0..2 {
        drop(client);
        server.stop();
        server.start();
        let (again, welcome) = Client::connect(server.trade_address(), back(1, Some(1)));
        client = again;
        assert_eq!(welcome.last_executed.0, 3);
        assert_eq!(welcome.next_report, ReportNumber(2));
        client.submit(3, &order(1, 1, Action::Bid, 10, 1));
        let Received::Answer(answer) = client.receive() else {
            panic!("an answer was expected");
        };
        assert!(answer.is_repeated);
        assert_eq!(
            (answer.number, answer.result),
            (number, ResultCode::Success)
        );
    }
    client.submit(2, &order(1, 2, Action::Bid, 10, 1));
    assert_eq!(client.refused().why, Refusal::NotExecuted);
    client.submit(3, &order(1, 2, Action::Bid, 10, 1));
    assert_eq!(client.refused().why, Refusal::SequenceReused);
    // No report came of all that, and the next command's is the second.
    client.submit(4, &order(1, 2, Action::Bid, 10, 1));
    assert_eq!(client.report().number, ReportNumber(2));
}

#[test]
fn missed_reports_come_right_after_the_welcome_and_then_live_ones() {
    let mut server = TestServer::with_market(|_| {});
    let (mut client, _) = server.trade(1);
    client.submit(1, &order(1, 1, Action::Ask, 10, 9));
    assert_eq!(client.report().number, ReportNumber(1));
    drop(client);
    // Others trade with the order meanwhile.
    let (mut other, _) = server.trade(2);
    for id in 1..=3 {
        other.submit(id, &order(2, id as i64, Action::Bid, 10, 1));
        other.succeeds(id);
    }
    let numbers = |client: &mut Client, count: usize| -> Vec<u64> {
        let next = || match client.receive() {
            Received::Report(report) => report.number.0,
            other => panic!("a report was expected, not {other:?}"),
        };
        std::iter::repeat_with(next).take(count).collect()
    };
    let (mut client, welcome) = Client::connect(server.trade_address(), back(1, Some(1)));
    assert_eq!(welcome.next_report, ReportNumber(5));
    assert_eq!(numbers(&mut client, 3), [2, 3, 4]);
    other.submit(4, &order(2, 4, Action::Bid, 10, 1));
    assert_eq!(numbers(&mut client, 1), [5]);
    // After a restart they are still there; and a client that asks for none of before gets none.
    server.stop();
    server.start();
    let (mut client, _) = Client::connect(server.trade_address(), back(1, Some(3)));
    assert_eq!(numbers(&mut client, 2), [4, 5]);
    let (mut fresh, welcome) = Client::connect(server.trade_address(), back(1, None));
    assert_eq!(welcome.next_report, ReportNumber(6));
    let (mut other, _) = Client::connect(server.trade_address(), back(2, None));
    other.submit(5, &order(2, 5, Action::Bid, 10, 1));
    assert_eq!(numbers(&mut fresh, 1), [6]);
}

#[test]
fn reports_that_are_not_kept_come_as_a_gap() {
    let server = TestServer::with_market(|config| config.sessions.reports_kept = 4);
    let (mut client, _) = server.trade(1);
    for id in 1..=20 {
        client.submit(id, &order(1, id as i64, Action::Bid, 10, 1));
        client.succeeds(id);
    }
    let (mut again, _) = Client::connect(server.trade_address(), back(1, Some(2)));
    let Received::ReportGap(gap) = again.receive() else {
        panic!("a gap was expected");
    };
    assert_eq!((gap.from, gap.to), (ReportNumber(3), ReportNumber(16)));
    assert_eq!(again.report().number, ReportNumber(17));
}

#[test]
fn a_private_reader_that_is_too_slow_is_cut_and_resumes() {
    let server = TestServer::with_market(|config| {
        config.sessions.out_bytes_max = 1 << 14;
        config.sessions.reports_kept = 1 << 17;
    });
    // It never reads; another session of its user causes the reports.
    let number = 1;
    let stalled = Hello {
        number,
        ..hello(Role::Trade, 1)
    };
    let (mut stalled, _) = Client::connect(server.trade_address(), stalled);
    let (mut busy, _) = server.trade(1);
    let mut sequence = 0;
    let is_cut = |server: &TestServer| {
        let (_, page) = server.get("/metrics");
        page.contains("thalweg_connections_ended_total{reason=\"SlowReader\"} 1")
    };
    while !is_cut(&server) {
        for _ in 0..500 {
            sequence += 1;
            busy.submit(sequence, &order(1, sequence as i64, Action::Bid, 10, 1));
            busy.succeeds(sequence);
        }
    }
    // The client has whole frames, and a bye if there was room for one.
    let mut last = 0;
    loop {
        match stalled.receive_cut() {
            Some(Received::Report(report)) => {
                assert_eq!(report.number.0, last + 1);
                last += 1;
            }
            Some(Received::Bye(why, _)) => assert_eq!(why, CloseReason::SlowReader),
            Some(Received::Closed) | None => break,
            Some(_) => {}
        }
    }
    // It comes back and misses nothing, if it reads now. Its outbox holds fewer reports than it
    // missed, so it may be cut again, and goes on from there.
    while last < sequence {
        let resuming = Hello {
            number,
            ..back(1, Some(last))
        };
        let mut again = Client::with_hello(server.trade_address(), resuming);
        let before = last;
        loop {
            match again.receive_cut() {
                Some(Received::Report(report)) => {
                    assert_eq!(report.number.0, last + 1);
                    last += 1;
                }
                Some(Received::Welcome(_)) => {}
                _ => break,
            }
            if last == sequence {
                break;
            }
        }
        assert!(last > before, "nothing more came after {before}");
    }
    server.serves();
}
