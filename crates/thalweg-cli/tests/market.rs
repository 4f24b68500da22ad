//! Tests `thalweg exchange serve --market`: a recorded market trades in a served exchange.

use crate::program;
use crate::serve::Serving;

use program::{Scratch, command, serve, shared, thalweg};
use thalweg_exchange::durable::History;
use thalweg_exchange::{Event, OrderId};
use thalweg_testkit::Random;

/// Price, size, maker and taker of a trade.
type Trade = (i64, i64, i64, i64);

/// Returns a figure of the market, once it is there.
fn figure(serving: &Serving, what: &str) -> u64 {
    serving.metric(&format!("thalweg_flow_total{{what=\"{what}\"}} "))
}

pub(crate) fn wait_until(serving: &Serving, what: &str, least: u64) {
    while figure(serving, what) < least {
        std::thread::yield_now();
    }
}

/// Returns the trades of a market in an exchange that was served.
fn served(directory: &str) -> Vec<Trade> {
    let mut history = History::open(directory).expect("it is an exchange");
    let mut trades = Vec::new();
    while history.step(|recorded| {
        let place = recorded.outcome.command.place();
        for event in recorded.outcome.events {
            if let Event::Trade {
                price,
                size,
                maker_order,
                ..
            } = *event
            {
                let taker = place.expect("nothing else trades here").order_id;
                trades.push((price, size, maker_order.0, taker.0));
            }
        }
    }) {}
    assert!(history.wrong().is_empty(), "{:?}", history.wrong());
    trades
}

/// Returns the trades of a run of the same file: each has a record for its maker and its taker.
fn run(file: &str) -> Vec<Trade> {
    let ran = thalweg(&["exchange", "run", file, "--output", "-"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut trades = Vec::new();
    let mut taker = OrderId(0);
    for line in ran.stdout.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
        let number = |name: &str| record[name].as_i64().expect("a number");
        match (record["record"].as_str(), record["role"].as_str()) {
            (Some("command"), _) if record["name"] == "place" => {
                taker = OrderId(number("order"));
            }
            (Some("trade"), Some("maker")) => {
                trades.push((number("price"), number("size"), number("order"), taker.0));
            }
            _ => {}
        }
    }
    trades
}

/// Returns Bitstamp messages, one a millisecond: orders around a price come, shrink and go.
fn messages(count: i64) -> String {
    messages_with_pauses(count, |_| 0)
}

/// Returns such messages, of which one is later by the hours of the pauses before it.
fn messages_with_pauses(count: i64, paused_h: impl Fn(i64) -> i64) -> String {
    let mut random = Random(5);
    let mut text = "idx,ts_ms,type,order_id,side,price_cents,amount_1e8\n".to_owned();
    for at in 0..count {
        let of = at - 1 - random.below(at.clamp(1, 200) as u64) as i64;
        let (side, price) = match random.below(2) {
            0 => ("A", 9_998 + random.below(40)),
            _ => ("B", 9_962 + random.below(40)),
        };
        let size = 1 + random.below(50);
        let row = match random.below(10) {
            0..6 => format!("C,{at},{side},{price},{size}"),
            6 => format!("U,{of},{side},{price},{}", size / 2),
            7 => format!("T,{at},,{price},{size}"),
            _ => format!("D,{of},{side},{price},0"),
        };
        let time_ms = 1_430_438_404_518 + at + 3_600_000 * paused_h(at);
        text.push_str(&format!("{at},{time_ms},{row}\n"));
    }
    text
}

#[test]
fn a_market_without_users_trades_as_a_run_of_its_file() {
    let scratch = Scratch::new();
    let made = scratch.file("made.csv", messages(4_000).as_bytes());
    let data = [
        "bitstamp_2015-05-01.messages.csv.gz",
        "lobster_aapl_2012-06-21_message_10.csv",
    ];
    let data = data
        .iter()
        .filter_map(|name| shared(&format!("data/{name}")));
    for (at, file) in [made].into_iter().chain(data).enumerate() {
        let directory = scratch.path(&format!("exchange{at}"));
        let more = ["--market", &file, "--speed", "max"];
        let serving = Serving::start_as(command(&[]), &directory, &more);
        wait_until(&serving, "ended", 1);
        drop(serving);
        let (served, run) = (served(&directory), run(&file));
        assert!(run.len() > 50, "{file}: {} trades", run.len());
        assert_eq!(served.len(), run.len(), "{file}");
        let other = served.iter().zip(&run).position(|(a, b)| a != b);
        assert_eq!(other, None, "{file}");
    }
}

#[test]
fn a_market_goes_on_behind_a_kill() {
    let scratch = Scratch::new();
    // Each start comes to a pause that takes hours, the second one soon behind that of the first.
    let paused_h = |at| i64::from(at >= 800) * 2 + i64::from(at >= 3_000) * 20_000;
    let file = messages_with_pauses(4_000, paused_h);
    let file = scratch.file("made.csv", file.as_bytes());
    let directory = scratch.path("exchange");
    for (least, speed) in [(500, "2x"), (1_200, "10000x")] {
        let more = ["--market", &file, "--speed", speed];
        let serving = Serving::start_as(command(&[]), &directory, &more);
        wait_until(&serving, "commands", least);
        assert_eq!(figure(&serving, "ended"), 0);
        drop(serving);
    }
    let more = ["--market", &file, "--speed", "max"];
    let serving = Serving::start_as(command(&[]), &directory, &more);
    wait_until(&serving, "ended", 1);
    drop(serving);
    assert_eq!(served(&directory), run(&file));
}

#[test]
fn a_market_begins_again() {
    let scratch = Scratch::new();
    let file = scratch.file("made.csv", messages(500).as_bytes());
    let directory = scratch.path("exchange");
    let more = ["--market", &file, "--speed", "max", "--loop"];
    let serving = Serving::start_as(command(&[]), &directory, &more);
    // Up to 4,096 commands of the last laps may not be durable.
    wait_until(&serving, "laps", 40);
    drop(serving);
    let (served, run) = (served(&directory), run(&file));
    assert!(!run.is_empty() && served.len() >= 4 * run.len());
    for lap in served.chunks_exact(run.len()).take(4) {
        assert_eq!(lap, run);
    }
}

#[test]
fn a_market_begins_at_a_time_of_its_recording() {
    let scratch = Scratch::new();
    let file = scratch.file("made.csv", messages(4_000).as_bytes());
    let directory = scratch.path("exchange");
    // From then on, an event is due each second.
    let market = ["--market", &file, "--speed", "0.001x", "--from"];
    let serving = Serving::start_as(
        command(&[]),
        &directory,
        &[&market[..], &["2015-05-01T00:00:06Z"]].concat(),
    );
    // The recording begins 1,482 messages before, of which a part makes commands.
    wait_until(&serving, "commands", 1_000);
    assert_eq!(figure(&serving, "ended"), 0);
    assert!(figure(&serving, "commands") < 2_000);
    drop(serving);
    let refused = |from: &str, why: &str| {
        let market = [&market[..], &[from]].concat();
        serve(&[&[directory.as_str()], &market[..]].concat()).refused(&["--from", from, why]);
    };
    refused("9 o'clock", "or a time such as 90s after the first, 09:30");
    refused("1M", "--from 1M: the market has ");
    for from in ["09:30", "1h", "2015-04-30T00:00:00Z"] {
        refused(from, "of 2015-05-01 00:00 UTC: 00:00:04 to 00:00:08");
    }
}

#[test]
fn a_market_that_cannot_be_is_refused_before_anything_is_served() {
    let scratch = Scratch::new();
    let directory = scratch.path("exchange");
    let good = scratch.file("good.csv", messages(5).as_bytes());
    let wrong = scratch.file("wrong.csv", b"thalweg-orders,1\nuser,x\n");
    let far = scratch.file("far.csv", b"thalweg-orders,1\nuser,9223372036854775807\n");
    let letter = scratch.file("letter.txt", b"dear reader\n");
    let refused = |more: &[&str], texts: &[&str]| {
        serve(&[&[directory.as_str()], more].concat()).refused(texts);
        assert!(
            !std::path::Path::new(&directory).exists(),
            "nothing was made"
        );
    };
    refused(&["--market", "none.csv"], &["none.csv", "No such file"]);
    refused(
        &["--market", &wrong],
        &["wrong.csv:2: user `x` is not a whole number"],
    );
    refused(
        &["--market", &far],
        &["far.csv: command 1: user 9223372036854775807 is not from 0"],
    );
    refused(&["--market", &letter], &["letter.txt"]);
    refused(
        &["--market", &good, "--speed", "10"],
        &["from 0.001x to 1000000x"],
    );
    refused(
        &["--market", &good, "--seed", "3"],
        &["--seed goes with a made-up market, --latency or --faults"],
    );
    refused(
        &["--market", "made-up", "--loop"],
        &["--loop and --books go with a recorded"],
    );
    refused(&["--speed", "2x"], &["need --market or --demo"]);
}

#[test]
fn a_network_that_cannot_be_is_refused_with_the_option_its_part_and_its_limit() {
    let scratch = Scratch::new();
    let directory = scratch.path("exchange");
    let refused = |more: &[&str], texts: &[&str]| {
        serve(&[&[directory.as_str()], more].concat()).refused(texts);
    };
    for option in [["--latency", "in=5ms"], ["--faults", "drop=0.1"]] {
        refused(&option, &["--latency and --faults need --market or --demo"]);
    }
    let market = ["--market", "made-up"];
    for (option, why) in [
        (
            ["--latency", "in=5"],
            "in: `5` is not a time from 0s to 60s",
        ),
        (
            ["--latency", "in=1ms,out=61s"],
            "out: `61s` is not a time from 0s to 60s",
        ),
        (
            ["--latency", "in=lognormal:5ms:9"],
            "in: `9` is not a sigma from 0 to 5",
        ),
        (
            ["--latency", "key=bob:in=1ms"],
            "key: `bob` is neither the number of a user nor an API key of 64 characters",
        ),
        (
            ["--latency", "up=1ms"],
            "`up=1ms` begins with none of in=, out=",
        ),
        (
            ["--faults", "drop=2"],
            "drop: `2` is not a probability from 0 to 1",
        ),
        (
            ["--faults", "drop=0.6,reject=0.6"],
            "the probabilities are 1.2 together, 1 at most",
        ),
        (
            ["--faults", "lose=1"],
            "`lose=1` begins with none of drop=, reject=, disconnect=",
        ),
    ] {
        refused(&[market, option].concat(), &[option[0], why]);
    }
    let twice = ["--latency", "in=5ms", "--latency", "out=5ms"];
    let twice = [&market[..], &twice].concat();
    refused(&twice, &["--latency: given twice for all"]);
}
