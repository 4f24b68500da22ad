//! Readers at a follower, in three programs with a log in real etcd: they are served from what it
//! has executed, others find the primary by it, and its readers stay when it takes over, with
//! market data that begins anew.

use std::time::{Duration, Instant};

use serde_json::Value;
use thalweg_client::exchange::SymbolId;
use thalweg_client::exchange::codec::session::QueryResult;
use thalweg_client::exchange::market::{BookReplica, Epoch, GapDetector};
use thalweg_client::{
    BlockingEvents, BlockingReadClient, BlockingTradeClient, Event, Outcome, SessionQuery,
};

use super::machines::{MACHINES, Machines};
use super::{Scene, undisturbed};
use crate::program::thalweg;
use crate::served_kills::clients::{command, options, set_up};
use crate::served_kills::served::Folder;

const SYMBOL: SymbolId = SymbolId(1);
const USER: i64 = 1;
/// How often a state that is to be reached is looked at: each look starts a program.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often a reader compares its book with that of its replica.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// A reader of all market data, which fails where a message is missing.
struct Reader {
    client: BlockingReadClient,
    events: BlockingEvents,
    book: BookReplica,
    check: GapDetector,
    /// The epochs in which it was, without those that came twice in a row.
    epochs: Vec<Epoch>,
    connections: usize,
    /// The server has said that messages were missed, and no snapshot has come since.
    has_missed: bool,
}

impl Reader {
    fn new(address: &str) -> Self {
        let mut options = options(address, USER);
        // A replica listens once it has found its place in the log.
        options.connect_within = Duration::from_secs(60);
        let (client, events) = BlockingReadClient::connect(options).expect("it reads");
        client.subscribe_all().expect("it is open");
        Self {
            client,
            events,
            book: BookReplica::new(SYMBOL),
            check: GapDetector::new(),
            epochs: Vec::new(),
            connections: 0,
            has_missed: false,
        }
    }

    /// Takes what has come.
    fn read(&mut self) {
        while let Some(event) = self.events.try_next() {
            match event {
                Event::Connected(_) => self.connections += 1,
                Event::Snapshot(snapshot) => {
                    self.book.restart(&snapshot).expect("it is of the symbol");
                    let (epoch, channels) = (snapshot.epoch, snapshot.channels);
                    self.check = GapDetector::after(epoch, channels, snapshot.sequence);
                    if std::mem::take(&mut self.has_missed) {
                        let is_newer = self.epochs.last() < Some(&epoch);
                        assert!(is_newer, "messages of epoch {epoch:?} were missed");
                    }
                    if self.epochs.last() != Some(&epoch) {
                        self.epochs.push(epoch);
                    }
                }
                // The replica had no core to write what came behind the beginning of an epoch.
                Event::Conflated(conflated) => {
                    assert!(conflated.symbol.is_none() && conflated.missed > 0);
                    self.has_missed = true;
                }
                Event::Market(message) => {
                    assert!(!self.has_missed, "a snapshot comes first");
                    self.check.check(&message).expect("no message is missing");
                    self.book.apply(&message).expect("no message is missing");
                }
                Event::Report(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the levels of the book that it has made of messages.
    fn levels(&self) -> [Vec<(i64, i64)>; 2] {
        use thalweg_client::exchange::Action::{Ask, Bid};
        [Ask, Bid].map(|side| {
            let levels = self.book.levels(side);
            levels.map(|level| (level.price, level.volume)).collect()
        })
    }

    /// Returns the levels of the book that the replica has, and how many commands it has executed.
    fn asked(&self) -> ([Vec<(i64, i64)>; 2], u64) {
        let query = SessionQuery::Book {
            symbol: SYMBOL,
            depth: 1_000,
        };
        let answer = self.client.query(query).expect("it is open");
        let QueryResult::Book(book) = answer.result else {
            panic!("{:?}", answer.result);
        };
        let levels = |levels: &[thalweg_client::exchange::book::Level]| {
            levels
                .iter()
                .map(|level| (level.price, level.volume))
                .collect()
        };
        ([levels(&book.asks), levels(&book.bids)], answer.number)
    }

    /// Waits until it has the book that its replica has after `commands`.
    fn wait_for(&mut self, place: &Folder, commands: u64) {
        let mut looked = None::<Instant>;
        let mut number = 0;
        place.wait("the reader", || {
            // A query costs tokens.
            if looked.is_some_and(|at| at.elapsed() < ASK_EVERY) {
                return Err(number);
            }
            looked = Some(Instant::now());
            self.read();
            let levels;
            (levels, number) = self.asked();
            match number >= commands && levels == self.levels() {
                true => Ok(()),
                false => Err(number),
            }
        });
    }
}

/// Has a user trade for some steps; returns the number of the last command.
fn trade(client: &BlockingTradeClient, steps: std::ops::Range<i64>) -> u64 {
    let mut last = 0;
    for step in steps {
        let ticket = client.submit(command(USER, step)).expect("it is open");
        let outcome = ticket.wait();
        let Outcome::Executed { number, .. } = outcome else {
            panic!("{outcome}");
        };
        last = number;
    }
    last
}

/// Returns the figures of a machine by its page of metrics, after their common beginning.
fn figures(machines: &Machines<'_>, at: usize) -> impl Fn(&str) -> Option<u64> {
    let page = machines.get(at, "/metrics");
    move |name| {
        let name = format!("thalweg_replication_{name} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&name))?;
        Some(line.parse::<f64>().expect("a number") as u64)
    }
}

/// Returns what differs between `exchange status`, `/readyz` and `/metrics`, once all rest.
fn difference(machines: &Machines<'_>, status: &Value, primary: usize) -> Option<String> {
    let replicas = status["replicas"].as_array().expect("a list");
    if replicas.len() != MACHINES {
        return Some(format!("{} replicas", replicas.len()));
    }
    for at in 0..MACHINES {
        let name = machines.address("trade", at);
        let of = replicas.iter().find(|replica| replica["name"] == name);
        let of = of.expect("each machine is there");
        let leads = at == primary;
        let role = if leads { "primary" } else { "follower" };
        let figure = figures(machines, at);
        let pairs = [
            (figure("primary"), Some(leads.into())),
            (figure("epoch"), status["epoch"].as_u64()),
            (figure("acknowledged_commands"), status["commands"].as_u64()),
            (figure("lag_commands"), of["behind"].as_u64()),
            (figure("halted"), Some((!of["halted"].is_null()).into())),
            (figure("log_silent_seconds"), Some(0)),
        ];
        if let Some(wrong) = pairs.iter().position(|(own, stated)| own != stated) {
            return Some(format!("figure {wrong} of {name}: {pairs:?}; {status}"));
        }
        let shown = machines.get(at, "/readyz");
        let (state, code) = if leads {
            ("ready", 200)
        } else {
            ("following", 503)
        };
        let epoch = format!(
            "\r\n\r\n{state}\nprimary {}\nepoch {}\n",
            u8::from(leads),
            status["epoch"]
        );
        if of["role"] != role
            || !shown.starts_with(&format!("HTTP/1.1 {code}"))
            || !shown.contains(&epoch)
        {
            return Some(format!("{name}: {shown}; {status}"));
        }
    }
    None
}

/// Waits until all figures are the same wherever they are shown.
fn wait_for_figures(place: &Folder, machines: &Machines<'_>, (primary, epoch): (usize, u64)) {
    let (mut looked, mut last) = (None::<Instant>, String::new());
    place.wait("figures that agree", || {
        if looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return Err(0);
        }
        looked = Some(Instant::now());
        let status = thalweg(&["exchange", "status", machines.url(), "--format", "json"]).json();
        assert_eq!(status["epoch"], epoch, "no other takes over");
        let Some(difference) = difference(machines, &status, primary) else {
            return Ok(());
        };
        if difference != last {
            println!("{difference}");
            last = difference;
        }
        Err(0)
    });
}

/// Returns what the program shows of the user's account at a machine.
fn account(machines: &Machines<'_>, at: usize) -> String {
    let (user, address) = (USER.to_string(), machines.address("trade", at));
    let asked = ["--user", &user, "--connect", &address, "--format", "csv"];
    let words = [&["exchange", "account"][..], &asked].concat();
    thalweg(&words).fine().to_owned()
}

#[test]
fn a_follower_serves_readers_and_keeps_them_when_it_takes_over() {
    undisturbed("readers", 256 << 20, |_| (), take_over);
}

fn take_over(scene: &Scene<'_, ()>, mut machines: Machines<'_>, epoch: &mut u64) {
    let place = scene.place;
    let primary = machines.wait_for_primary(None);
    set_up(&machines.addresses("admin"));
    // It knows one follower alone, which names the primary.
    let follower = (primary + 1) % MACHINES;
    let address = machines.address("trade", follower);
    let client = place.wait("a follower", || {
        let connected = BlockingTradeClient::connect(options(&address, USER));
        connected.map(|(client, _)| client).map_err(|_| 0)
    });
    let mut readers: Vec<Reader> = (0..MACHINES)
        .map(|at| Reader::new(&machines.address("trade", at)))
        .collect();
    let last = trade(&client, 0..60);
    for reader in &mut readers {
        reader.wait_for(place, last + 1);
    }
    let accounts = [primary, follower].map(|at| account(&machines, at));
    assert_eq!(accounts[0], accounts[1]);
    assert!(accounts[0].lines().count() >= 3, "{}", accounts[0]);
    wait_for_figures(place, &machines, (primary, *epoch));

    let before = readers.iter().map(|reader| reader.epochs.clone());
    let before: Vec<Epoch> = before.map(|epochs| *epochs.last().expect("one")).collect();
    assert!(
        before.iter().all(|epoch| *epoch <= before[primary]),
        "{before:?}"
    );
    drop(readers.remove(primary));
    machines.kill(primary);
    *epoch += 1;
    let next = machines.wait_for_primary(Some(primary));
    let last = trade(&client, 60..120);
    for reader in &mut readers {
        reader.wait_for(place, last + 1);
        // It has seen the epoch change, and its connection is the first.
        assert_eq!(reader.connections, 1);
        let epochs = &reader.epochs;
        assert!(
            epochs.is_sorted() && epochs.last() > Some(&before[primary]),
            "{epochs:?}"
        );
    }
    machines.start_again(primary);
    wait_for_figures(place, &machines, (next, *epoch));
    let accounts = [next, primary].map(|at| account(&machines, at));
    assert_eq!(accounts[0], accounts[1]);
    client.close();
    machines.end();
}
