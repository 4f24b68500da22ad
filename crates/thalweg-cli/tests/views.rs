//! Tests `exchange watch`, `book`, `trades`, `orders`, `account`, and an administrator's commands.

#[path = "../../thalweg-client/examples/buy.rs"]
mod buy;
use crate::program;
use crate::serve::Serving;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use program::pty::OnTerminal;
use program::{Ended, Scratch, command, signal, thalweg};
use serde_json::Value;

const SETUP: &str = "thalweg-orders,1\nsymbol,1,10,20,1,1,0,0\nsymbol,2,10,20,1,1,0,0\n\
    user,7\nuser,8\nuser,9\ndeposit,7,10,5000\ndeposit,8,20,900000\n";
const NAMES: &str = "[assets]\nBTC = { currency = 10, decimals = 0 }\n\
    EUR = { currency = 20, decimals = 0 }\n[symbols.BTCEUR]\nsymbol = 1\nbase = \"BTC\"\n\
    quote = \"EUR\"\n";

/// A served market: user 7 sells 9 at 120 and 3 at 121, user 8 has bought 1 and buys 5 at 110.
struct Market {
    scratch: Scratch,
    serving: Serving,
}

impl Market {
    fn new() -> Market {
        Market::at("127.0.0.1:0")
    }

    /// Starts one where traders connect to this address.
    fn at(trade: &str) -> Market {
        let scratch = Scratch::new();
        // The commands of the clock would be counted.
        let config = scratch.file("serve.toml", "[exchange]\nclock_ms = 0\n");
        let directory = scratch.path("exchange");
        let serving = Serving::start_at(&directory, trade, &["--config", &config]);
        let market = Market { scratch, serving };
        let setup = market.scratch.file("setup.csv", SETUP);
        market.admin(&["send", &setup]).fine();
        market.trader("7", "place 7 1 1 sell gtc 120 10").fine();
        market.trader("7", "place 7 1 2 sell gtc 121 3").fine();
        market.trader("8", "place 8 1 3 buy gtc 120 1").fine();
        market.trader("8", "place 8 1 4 buy gtc 110 5").fine();
        market
    }

    fn run(&self, at: &str, arguments: &[&str]) -> Ended {
        thalweg(&[&["exchange"], arguments, &["--connect", at]].concat())
    }

    fn admin(&self, arguments: &[&str]) -> Ended {
        let at = self.serving.admin.to_string();
        self.run(&at, &[arguments, &["--admin", "1"]].concat())
    }

    /// Sends a command of a trader, word by word.
    fn trader(&self, user: &str, line: &str) -> Ended {
        let words = program::words(line);
        self.run(
            &self.serving.trade,
            &[&["send"], &words[..], &["--user", user]].concat(),
        )
    }

    fn read(&self, arguments: &[&str]) -> Ended {
        self.run(&self.serving.trade, arguments)
    }

    /// Returns `watch` of symbol 1 for user 7.
    fn watch(&self, more: &[&str]) -> Command {
        let at = &self.serving.trade;
        let http = &self.serving.http;
        let all = [
            "exchange",
            "watch",
            "--user",
            "7",
            "--connect",
            at,
            "--http",
            http,
        ];
        command(&[&all, more].concat())
    }
}

fn objects(ended: &Ended) -> Vec<Value> {
    let lines = ended.fine().lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a line is an object"))
        .collect()
}

#[test]
fn a_book_is_a_ladder_for_people_and_best_first_for_programs() {
    let market = Market::new();
    let names = market.scratch.file("symbols.toml", NAMES);
    let text = market.read(&["book", "BTCEUR", "--user", "9", "--symbols", &names]);
    assert_eq!(
        text.fine(),
        "BTCEUR after 12 commands\n\
         symbol  side  price  size  orders\n\
         ------  ----  -----  ----  ------\n\
         BTCEUR  sell    121     3       1\n\
         BTCEUR  sell    120     9       1\n\
         BTCEUR  buy     110     5       1\n"
    );
    let csv = market.read(&[
        "book", "1", "--user", "9", "--depth", "1", "--format", "csv",
    ]);
    assert_eq!(
        csv.fine(),
        "symbol,side,price,size,orders\n1,sell,120,9,1\n1,buy,110,5,1\n"
    );
    let json = market.admin(&["book", "1", "--format", "json"]);
    let prices: Vec<Value> = objects(&json).iter().map(|l| l["price"].clone()).collect();
    assert_eq!(prices, [120, 121, 110]);
    let commands: [&[&str]; 4] = [&["book"], &["trades"], &["watch"], &["watch", "--once"]];
    for command in commands {
        let unknown = market.read(&[command, &["3", "--user", "9"]].concat());
        assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(1), ""));
        let why = "symbol 3: the exchange has no such symbol";
        assert!(
            unknown.stderr.contains(why),
            "{command:?}: {}",
            unknown.stderr
        );
    }
    market
        .read(&["book", "BTCEUR", "--user", "9"])
        .refused(&["symbol `BTCEUR` is not a number; --symbols FILE has names"]);
    thalweg(&["exchange", "book", "1"]).refused(&["--user", "--admin"]);
    thalweg(&[
        "exchange",
        "book",
        "1",
        "--user",
        "7",
        "--connect",
        "127.0.0.1:1",
    ])
    .refused(&["cannot connect to 127.0.0.1:1"]);
}

#[test]
fn orders_account_and_own_trades_of_a_user_are_shown() {
    let market = Market::new();
    let orders = objects(&market.read(&["orders", "--user", "7", "--format", "json"]));
    assert_eq!(orders.len(), 2);
    let first = &orders[0];
    assert_eq!((&first["order"], &first["left"]), (&1.into(), &9.into()));
    assert_eq!(
        (&first["type"], &first["record"]),
        (&"gtc".into(), &"open".into())
    );
    let text = market.admin(&["orders", "--user", "8"]);
    assert!(
        text.fine().starts_with("user 8: 1 open order\n"),
        "{text:?}"
    );
    let csv = market.read(&["account", "--user", "7", "--format", "csv"]);
    assert_eq!(
        csv.fine(),
        "record,user,status,currency,amount,symbol,open,cost,profit,orders\n\
         account,7,active,,,,,,,2\nbalance,7,,10,4987,,,,,\nbalance,7,,20,120,,,,,\n"
    );
    let nobody = market.admin(&["account", "--user", "77"]);
    assert_eq!(nobody.code, Some(1));
    assert!(
        nobody
            .stderr
            .contains("user 77: the exchange has no such user")
    );
    let own = ["trades", "--own", "--user", "7", "--format", "csv"];
    assert_eq!(
        market.read(&own).fine(),
        "trade,symbol,order,side,role,price,size,left,filled\n\
         10-0,1,1,sell,maker,120,1,9,1\n"
    );
    let none = market.read(&["trades", "2", "--own", "--user", "7"]);
    assert_eq!(none.fine(), "user 7: 0 trades\n");
}

#[test]
fn an_administrator_halts_opens_pays_and_suspends_by_words() {
    let market = Market::new();
    let word = |line: &str| market.admin(&[&["send"], &program::words(line)[..]].concat());
    assert!(
        word("halt 1")
            .fine()
            .ends_with("name halt result SUCCESS\n")
    );
    let halted = market.trader("8", "place 8 1 5 buy gtc 109 1");
    assert_eq!(halted.code, Some(1));
    assert!(halted.stdout.contains("SYMBOL_HALTED"), "{halted:?}");
    word("open 1").fine();
    market.trader("8", "place 8 1 6 buy gtc 109 1").fine();
    word("deposit 9 20 30").fine();
    assert!(
        word("withdraw 9 20 30")
            .fine()
            .contains("name withdraw user 9")
    );
    assert_eq!(word("withdraw 9 20 1").code, Some(1));
    word("suspend 9").fine();
    assert_eq!(word("suspend 7").code, Some(1));
    word("resume 9").fine();
    word("halt one").refused(&["the command:1: symbol `one` is not a whole number"]);
    market
        .trader("7", "deposit 7 20 1000")
        .refused(&["the command:1: "]);
}

#[test]
fn watch_prints_a_line_for_each_trade_and_change_where_there_is_no_terminal() {
    let market = Market::new();
    let mut child = market
        .watch(&["1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next = || lines.next().expect("a line").expect("it is read");
    assert_eq!(next(), "best symbol 1 bid 110 size 5 ask 120 size 9");
    market.trader("8", "place 8 1 7 buy gtc 120 9").fine();
    assert_eq!(next(), "trade symbol 1 price 120 size 9 taker buy");
    assert_eq!(next(), "best symbol 1 bid 110 size 5 ask 121 size 3");
    market.trader("7", "cancel 7 1 2").fine();
    assert_eq!(next(), "best symbol 1 bid 110 size 5 ask none");
    let trades = market.scratch.path("trades.csv");
    let file = std::fs::File::create(&trades).expect("it can be made");
    let at = &market.serving.trade;
    let follow = ["exchange", "trades", "1", "--user", "9", "--connect", at];
    let mut follow = command(&[&follow[..], &["--limit", "1", "--format", "csv"]].concat())
        .stdout(file)
        .spawn()
        .expect("it starts");
    // It may not have subscribed yet: it gets a later trade then.
    for order in 100.. {
        market.trader("7", &format!("place 7 1 {order} sell ioc 110 1"));
        market.trader("8", &format!("place 8 1 {order} buy gtc 110 1"));
        if let Some(ended) = follow.try_wait().expect("it runs") {
            assert!(ended.success());
            break;
        }
    }
    let text = std::fs::read_to_string(&trades).expect("it was written");
    assert_eq!(text, "symbol,price,size,taker\n1,110,1,sell\n");
    signal(child.id(), 15);
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
}

#[test]
fn watch_prints_one_picture() {
    let market = Market::new();
    // The sessions that sent the commands may be ending.
    for (name, count) in [("sessions{role=\"trade\"} ", 0), ("commands_total ", 12)] {
        while market.serving.metric(&format!("thalweg_{name}")) != count {
            std::thread::yield_now();
        }
    }
    // The server's figures may be of a moment before the picture's own session.
    let text = loop {
        let ended: Ended = market.watch(&["--once"]).output().expect("it runs").into();
        let text = ended.fine().to_owned();
        if !text.contains(" 0 sessions\n") {
            break text;
        }
    };
    for part in [
        "symbol 1  live  q quits  user 7 at 127.0.0.1:",
        "\n  2  bid -             ask -             last -\n",
        "sell   120*    9       1  ============\n",
        "buy    110     5       1  =======\n",
        "user 7: 2 open orders\nsell 9 of 10 at 120  1  order 1\n",
        "12 commands, 0 refused, 1 session\n",
        "execute ",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    assert!(!text.contains('\x1b'));
    let ended = market.read(&[
        "watch",
        "1",
        "--once",
        "--user",
        "7",
        "--http",
        "127.0.0.1:1",
    ]);
    assert!(ended.fine().contains("no figures by stage: 127.0.0.1:1: "));
}

#[test]
fn watch_gives_the_terminal_back_after_q_and_sigterm() {
    let market = Market::new();
    for is_killed in [false, true] {
        let mut on = OnTerminal::start(market.watch(&[]), (80, 24));
        on.await_text("symbol 1");
        on.await_text("---- spread 10");
        on.await_text("2 open orders");
        // A narrow one has the trades below.
        on.resize((40, 30));
        on.await_text("\x1b[2J");
        on.await_text("0 trades, 0 lots seen");
        on.press("n");
        on.await_text("symbol 2");
        match is_killed {
            true => signal(on.child.id(), 15),
            false => on.press("q"),
        }
        on.await_text("\x1b[?25h\x1b[?1049l");
        let code = if is_killed { 143 } else { 0 };
        assert_eq!(on.ended(), (Some(code), true));
    }
}

#[test]
fn watch_has_colours_unless_they_are_not_wanted() {
    let market = Market::new();
    let mut coloured = OnTerminal::start(market.watch(&["1"]), (80, 24));
    coloured.await_text("\x1b[31msell");
    let mut plain = market.watch(&["1"]);
    plain.env("NO_COLOR", "1");
    let mut plain = OnTerminal::start(plain, (80, 24));
    plain.await_text("2 open orders");
    plain.press("q");
    plain.await_text("\x1b[?1049l");
    let mut whole = market.watch(&["1", "--once"]);
    whole.env("NO_COLOR", "1");
    let mut whole = OnTerminal::start(whole, (80, 24));
    whole.await_text("execute ");
    assert_eq!(whole.ended().0, Some(0));
    let mut text = OnTerminal::start(market.watch(&["1", "--once"]), (80, 24));
    text.await_text("\x1b[32mbuy");
    assert_eq!(text.ended().0, Some(0));
}

#[test]
fn watch_shows_that_it_is_stale_and_goes_on_with_the_next_start() {
    // No other program takes its port before the next start.
    let market = Market::at(&format!("{}:0", thalweg_testkit::own_host()));
    let mut on = OnTerminal::start(market.watch(&["1"]), (80, 24));
    on.await_text("live");
    on.await_text("---- spread 10");
    let Market { scratch, serving } = market;
    let trade = serving.trade.clone();
    drop(serving);
    on.await_text("STALE for ");
    let _again = Serving::start_at(&scratch.path("exchange"), &trade, &[]);
    on.await_text("live");
    on.press("q");
    assert_eq!(on.ended(), (Some(0), true));
}

/// A child that does not outlive its test.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_example_of_the_client_buys_on_a_demo() {
    let scratch = Scratch::new();
    let directory = scratch.path("demo");
    let serve = ["exchange", "serve", &directory, "--demo"];
    let mut serve = command(&[&serve[..], &program::LISTEN].concat());
    let serve = serve.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Killed(serve.spawn().expect("it starts"));
    let lines = BufReader::new(child.0.stdout.take().expect("it is piped")).lines();
    let mut lines = lines.map(|line| line.expect("it is text"));
    let mut after = |start: &str| {
        let line = lines.find_map(|line| line.trim().strip_prefix(start).map(str::to_owned));
        line.expect("it prints that").trim().to_owned()
    };
    let address = after("listening: trade ");
    let address = address.split(',').next().expect("there is one");
    let key = after("user  7  ");
    let file = scratch.file("seven.key", &key);
    let own = [
        "exchange",
        "trades",
        "--own",
        "--user",
        "7",
        "--key-file",
        &file,
    ];
    let own = [&own[..], &["--connect", address]].concat();
    // The first order may come before those of the traders.
    while thalweg(&own).fine().lines().count() < 4 {
        buy::buy(address, &key).expect("it trades");
    }
}
