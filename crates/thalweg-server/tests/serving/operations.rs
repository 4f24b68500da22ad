//! The operator's view.

use thalweg_exchange::codec::session::CloseReason;
use thalweg_exchange::{Action, Command, ResultCode};
use thalweg_server::ServeError;

use crate::client::{hello, order};
use crate::test_server::TestServer;

#[test]
fn health_readiness_and_metrics_are_served() {
    let server = TestServer::with_market(|_| {});
    let (mut client, _) = server.trade(1);
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    client.succeeds(1);
    client.submit(2, &order(2, 1, Action::Bid, 10, 1));
    let _ = client.refused();
    assert_eq!(server.get("/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(server.get("/readyz"), (200, "ready\n".to_owned()));
    assert_eq!(server.get("/").0, 404);
    let (status, page) = server.get("/metrics");
    assert_eq!(status, 200);
    for line in [
        "# TYPE thalweg_commands counter",
        "thalweg_commands_total 3",
        "thalweg_sessions{role=\"trade\"} 1.0",
        "thalweg_refusals_total{reason=\"NOT_YOUR_USER\"} 1",
        "thalweg_journal_commands_total 3",
        "thalweg_journal_full 0.0",
        "# TYPE thalweg_journal_commit_seconds histogram",
        "# UNIT thalweg_journal_commit_seconds seconds",
        "thalweg_stage_events_total{stage=\"execute\"} 3",
        "# TYPE thalweg_stage_service_seconds histogram",
        // The first command is stamped.
        "thalweg_execution_part_seconds_count{part=\"match\"} 1",
        "thalweg_ready 1.0",
        "# EOF",
    ] {
        assert!(
            page.lines().any(|found| found == line),
            "`{line}` is not in\n{page}"
        );
    }
}

#[test]
fn every_figure_of_the_page_for_operators_is_served() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serving.md");
    let text = std::fs::read_to_string(path).expect("docs/serving.md is there");
    let (_, figures) = text.split_once("\n## Figures\n").expect("it has them");
    let rows = figures
        .lines()
        .filter(|line| line.starts_with("| `thalweg_"));
    // Every second part stands between backticks.
    let names = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let mut names: Vec<&str> = names.filter(|name| name.starts_with("thalweg_")).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() > 10, "{names:?}");

    let server = TestServer::with_market(|_| {});
    let (_, page) = server.get("/metrics");
    for name in names {
        let (name, label) = name.split_once('{').unwrap_or((name, ""));
        let label = label.trim_end_matches('}');
        let is_there = |line: &str| line.starts_with(name) && line.contains(label);
        assert!(page.lines().any(is_there), "{name}, {label}: {page}");
    }
}

/// The exchange goes on, and keeps everything.
#[test]
fn an_archive_that_is_missing_is_a_figure() {
    let server = TestServer::new(|config| {
        config.snapshots.kept = 1;
        config.snapshots.every_bytes = 1;
        config.journal.archive = Some("/nowhere/archive".into());
    });
    let (mut admin, _) = server.admin();
    let has = |line: &str| server.get("/metrics").1.lines().any(|found| found == line);
    let mut sequence = 0;
    // A snapshot is begun when a command comes.
    while !has("thalweg_archive_failed 1.0") {
        sequence += 1;
        admin.submit(sequence, &Command::Nop);
        admin.succeeds(sequence);
    }
    assert!(!has("thalweg_archive_failures_total 0"));
    assert!(has("thalweg_snapshot_failed 0.0"));
    admin.submit(sequence + 1, &Command::Nop);
    admin.succeeds(sequence + 1);
}

#[test]
fn a_server_that_is_dropped_leaves_its_directory_to_the_next_one() {
    let mut server = TestServer::with_market(|_| {});
    server.abandon();
    let next = loop {
        match server.try_start() {
            Ok(next) => break next,
            // The thread of the exchange ends a little later.
            Err(ServeError::Open(_)) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(next.recovered().commands, 2);
}

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let server = TestServer::with_market(|_| {});
    let error = server.try_start().expect_err("the directory is in use");
    assert!(matches!(error, ServeError::Open(_)), "{error}");
    server.serves();
}

#[test]
fn a_server_that_stops_answers_what_it_took_and_sends_a_bye() {
    let mut server = TestServer::with_market(|_| {});
    let (mut client, _) = server.trade(1);
    for id in 1..=500 {
        client.submit(id, &order(1, id as i64, Action::Bid, 10, 1));
    }
    client.succeeds(1);
    server.stop();
    // Answers and refusals in order, then the bye.
    let (mut answered, mut why) = (1, None);
    while why.is_none() {
        match client.receive_cut() {
            Some(crate::client::Received::Answer(answer)) => {
                answered += 1;
                assert_eq!(
                    (answer.sequence.0, answer.result),
                    (answered, ResultCode::Success)
                );
            }
            Some(crate::client::Received::Bye(reason, _)) => why = Some(reason),
            Some(crate::client::Received::Report(_) | crate::client::Received::Refused(_)) => {}
            other => panic!("{other:?} after {answered} answers"),
        }
    }
    assert_eq!(why, Some(CloseReason::Shutdown));
    // Every answered command is there, and nothing else of the session was executed.
    server.start();
    let trade = hello(thalweg_exchange::session::Role::Trade, 1);
    let (_, welcome) = crate::client::Client::connect(server.trade_address(), trade);
    assert_eq!(welcome.last_executed.0, answered);
}
