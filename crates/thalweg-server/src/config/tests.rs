//! Tests of the configuration's values.

use thalweg_exchange::codec::REPORT_BYTES;
use thalweg_exchange::codec::session::NUMBERED_REPORT_BYTES;
use thalweg_exchange::service::{EVENTS_IN_FLIGHT, EVENTS_KEPT};

use super::*;
use crate::conditions::relay;
use crate::exchange_thread::delivering::Delivery;
use crate::feed::{CHUNK_BYTES, INLET_BYTES_MAX};
use crate::logs::LINES_MAX;

/// Section and name of every option.
fn names(value: &serde_json::Value) -> Vec<String> {
    let sections = value.as_object().expect("sections");
    let options = sections.iter().flat_map(|(section, options)| {
        let options = options.as_object().expect("options");
        options.keys().map(move |name| format!("{section}.{name}"))
    });
    let mut names: Vec<String> = options.collect();
    names.sort_unstable();
    names
}

#[test]
fn the_printed_configuration_is_the_default_and_names_every_option() {
    let parsed = Config::parse("default", DEFAULT_TEXT).expect("it parses");
    assert_eq!(parsed, Config::default());
    let all = serde_json::to_value(Config::default()).expect("it has a JSON form");
    let table: toml::Table = DEFAULT_TEXT.parse().expect("it is TOML");
    let printed = serde_json::to_value(table).expect("it has a JSON form");
    assert_eq!(names(&printed), names(&all));
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(
        Config::parse("empty", "").expect("it parses"),
        Config::default()
    );
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let error = Config::parse("serve.toml", text).expect_err("it is refused");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_is_not_known_or_possible_is_refused_with_its_line() {
    refused(
        "[trade]\n\nport = 7\n",
        "serve.toml:3: unknown field `port`, expected `listen`",
    );
    refused(
        "[exchange]\nqueue = 9\n",
        "serve.toml:2: exchange.queue is gone: connections execute their commands themselves; \
         exchange.capacity bounds how many are in flight",
    );
    refused(
        "[trade]\nlisten = \"home\"\n",
        "serve.toml:2: invalid socket address syntax",
    );
    refused(
        "[journal]\nsync = \"often\"\n",
        "serve.toml:2: unknown variant `often`, expected `always` or `never`",
    );
    refused(
        "[server]\nworker_threads = 0\n",
        "serve.toml:2: server.worker_threads is 0; 1 to 64 are possible",
    );
    refused(
        "[sessions]\nheartbeat_ms = 50\n",
        "serve.toml:2: sessions.heartbeat_ms is 50; 100 to 3600000 are possible",
    );
}

#[test]
fn every_number_that_cannot_be_is_refused_with_its_option_value_range_and_line() {
    for (section, option, value, possible) in [
        ("exchange", "capacity", 0, "1 to 1048576"),
        (
            "journal",
            "segment_bytes",
            5_000_000,
            "multiples of 4096 from 331776 to 1099511627776",
        ),
        ("snapshots", "every_bytes", 0, "1 to 1099511627776"),
        ("snapshots", "every_s", 0, "1 to 31536000"),
        ("sessions", "per_holder", 0, "1 to 65536"),
        ("sessions", "remembered_max", 0, "1 to 1048576"),
        ("sessions", "reports_kept", 0, "1 to 1048576"),
        ("sessions", "reports_max", 8, "16 to 1073741824"),
    ] {
        let name = format!("{section}.{option}");
        let expected = format!("serve.toml:3: {name} is {value}; {possible} are possible");
        refused(
            &format!("# mine\n[{section}]\n{option} = {value}\n"),
            &expected,
        );
    }
    // An option that is in no file.
    let mut config = Config::default();
    config.server.worker_threads = 0;
    let error = config.check("the configuration").expect_err("no threads");
    let expected = "the configuration: server.worker_threads is 0; 1 to 64 are possible";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn without_keys_only_loopback_addresses_are_served() {
    refused(
        "[trade]\nlisten = \"0.0.0.0:7411\"\n",
        "trade.listen is 0.0.0.0:7411, which other machines reach, and there are no keys: set \
         keys.file, or listen on a loopback address",
    );
    refused(
        "[admin]\nlisten = \"[::]:7412\"\n",
        "admin.listen is [::]:7412, which other machines reach, and there are no keys: set \
         keys.file, or listen on a loopback address",
    );
    let with_keys = "[trade]\nlisten = \"0.0.0.0:7411\"\n[keys]\nfile = \"keys.toml\"\n";
    let config = Config::parse("serve.toml", with_keys).expect("it is fine");
    assert_eq!(config.keys.file, Some(PathBuf::from("keys.toml")));
    assert!(Config::parse("serve.toml", "[admin]\nlisten = \"[::1]:9\"\n").is_ok());
}

/// The numbers of the table of memory in docs/serving.md are those of the default configuration,
/// and add up.
#[test]
fn the_page_for_operators_says_how_much_memory_the_defaults_take() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serving.md");
    let page = std::fs::read_to_string(path).expect("docs/serving.md is there");
    let config = Config::default();
    let sessions = &config.sessions;
    let answers = 24 * sessions.remembered_max as usize * sessions.answers_kept as usize;
    let reports = REPORT_BYTES * sessions.reports_max as usize;
    let events = EVENTS_KEPT * config.exchange.capacity + EVENTS_IN_FLIGHT;
    let ring = config.market.ring_chunks.next_power_of_two();
    let delivered = 2 * (NUMBERED_REPORT_BYTES + size_of::<Delivery>());
    let parts = [
        ("answers", answers),
        ("reports", reports),
        ("while a snapshot is made", 3 * (answers + reports)),
        (
            "events in flight, and answers to queries",
            5 * 1024 * config.exchange.capacity + 64 * EVENTS_IN_FLIGHT,
        ),
        (
            "reports and answers of these, on their way to connections",
            delivered * events,
        ),
        ("what waits for connections", sessions.out_bytes_total),
        (
            "market data that is being written",
            sessions.out_bytes_total,
        ),
        ("market data before it is sent", 3 * INLET_BYTES_MAX),
        ("market data that waits for readers", CHUNK_BYTES * ring),
        ("lines of the log, and of the audit", 2 * LINES_MAX * 4608),
    ];
    let sum = ("*sum*", parts.iter().map(|(_, bytes)| bytes).sum());
    let relay = 2 * (relay::WAITING_MAX + relay::READ_BYTES);
    let relay = ("its relay, with `--latency`", relay);
    for (name, bytes) in parts.into_iter().chain([sum, relay]) {
        let begin = format!("| {name} |");
        let row = page.lines().find(|line| line.starts_with(&begin));
        let row = row.unwrap_or_else(|| panic!("there is no row {name}"));
        let by_default = row.split('|').nth(3).expect("it has three columns").trim();
        let shown = by_default.split(" MB").next().unwrap_or_default();
        let shown: usize = shown.replace(',', "").parse().expect("it begins with MB");
        assert_eq!(shown, (bytes + 500_000) / 1_000_000, "{row}: {bytes} bytes");
    }
}
