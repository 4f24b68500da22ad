//! The gateway (Binance Spot's API before a served exchange): orders by WebSocket API beside the
//! binary protocol, and orders by REST beside a bare echo of hyper.

pub(crate) mod client;

use std::fs;
use std::path::Path;
use std::time::Duration;

use thalweg_exchange::session::Role;
use thalweg_exchange::{Action, Command, OrderId, OrderType, Place, UserId};
use thalweg_gateway::keys::{KeyKind, NewKey, create};
use thalweg_measure::random::SplitMix;

use super::Experiment;
use super::serve::child::{API_KEYS, Child, GATEWAY, HTTP_ECHO, SYMBOLS, SYNCED};
use super::serve::loader::{FIRST_USER, Plan, drive_lines};
use super::serve::session::{Caller, Session, administer, hello};
use super::serve::{SYMBOL, set_up};
use crate::case::{Case, Goal, Settings};
use crate::runner::{Metric, Ran, Subjects, subject, text};
use client::{Client, Transport};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "gateway",
    shows: "orders in Binance Spot's dialect, beside the binary protocol and an echo",
    peers: &["hyper"],
    notes: "Durable: the exchange's journal and the gateway's log. Each order is signed (HMAC); \
            one in eight trades.",
    cases,
};

const WEBSOCKET: &str = "gateway, WebSocket API";
const BINARY: &str = "serve, binary protocol";
const REST: &str = "gateway, REST";
const ECHO: &str = "hyper echo";

const METRICS: &[Metric] = &[
    Metric::higher("orders a second", "1/s"),
    Metric::lower("acknowledged p50", "ns"),
    Metric::lower("acknowledged p99", "ns"),
    Metric::lower("sent late p99", "ns"),
    Metric::lower("server's processor time of an order", "ns"),
    Metric::lower("loader's processor time of an order", "ns"),
];
const THROUGHPUT: usize = 0;
const P50: usize = 1;

/// Connections, each of a user of its own.
const CONNECTIONS: usize = 8;
/// This user has the orders that the others meet.
const MAKER: i64 = 1;

fn cases(settings: &Settings) -> Vec<Case> {
    let time = |ms: u64| Duration::from_nanos(settings.count(ms * 1_000_000));
    let plan = |saturating, scheduled, per_s| Plan {
        saturating,
        scheduled,
        per_s,
        warm_up: time(500),
        span: time(3_000),
    };
    let open = vec![
        subject(WEBSOCKET, |plan: &Plan| {
            by_http(plan, GATEWAY, Transport::WebSocket)
        }),
        subject(BINARY, by_binary_protocol),
    ];
    let closed = vec![
        subject(REST, |plan: &Plan| by_http(plan, GATEWAY, Transport::Rest)),
        subject(ECHO, |plan: &Plan| {
            by_http(plan, HTTP_ECHO, Transport::Rest)
        }),
    ];
    let orders = |name, heading, subjects: Subjects<Plan>, plan| {
        Case::of(name, heading, METRICS, subjects, plan)
    };
    let heading = "order.place to response over 8 connections, open loop";
    let websocket = orders("websocket/1k", heading, open, plan(0, CONNECTIONS, 1_000));
    let heading = "POST order over 8 keep-alive connections, one after the other on each";
    let rest = orders("rest/8", heading, closed, plan(CONNECTIONS, 0, 0));
    vec![
        websocket.goal(Goal::ratio([WEBSOCKET, BINARY], P50, 1.0 / 3.0)),
        rest.goal(Goal::ratio([REST, ECHO], THROUGHPUT, 0.5)),
    ]
}

/// Writes the files of a gateway: symbol 1, and a key for each user.
fn prepare(directory: &Path) -> Result<Vec<NewKey>, String> {
    fs::create_dir_all(directory).map_err(text)?;
    let file = "[assets]\nBTC = { currency = 1, decimals = 4 }\n\
                USDT = { currency = 2, decimals = 6 }\n\
                [symbols.BTCUSDT]\nsymbol = 1\nbase = \"BTC\"\nquote = \"USDT\"\n";
    fs::write(directory.join(SYMBOLS), file).map_err(text)?;
    let place = directory.join(API_KEYS);
    let key = |user| create(&place, KeyKind::Hmac, UserId(user), false).map_err(text);
    users().map(key).collect()
}

/// Adds users, and orders for them to meet.
fn set_up_users(child: &Child) -> Result<(), String> {
    let Some(admin) = child.admin else {
        return Ok(());
    };
    administer(admin, &set_up(std::iter::once(MAKER).chain(users())))?;
    let mut maker = Caller::connect(child.trade, hello(Role::Trade, MAKER, false))?;
    for (id, side, price) in [(1, Action::Bid, PRICE - 1), (2, Action::Ask, PRICE + 1)] {
        let terms = (price, 1 << 34);
        let place = Place::limit((UserId(MAKER), OrderId(id)), SYMBOL, side, terms);
        maker.call(&Command::Place(place))?;
    }
    Ok(())
}

fn users() -> std::ops::Range<i64> {
    FIRST_USER..FIRST_USER + CONNECTIONS as i64
}

/// Loads a gateway, or the echo of hyper.
fn by_http(plan: &Plan, work: &str, transport: Transport) -> Ran {
    let mut keys = Vec::new();
    let child = Child::start_in(work, |directory| {
        keys = prepare(directory)?;
        Ok(())
    })?;
    if let Some(to) = child.gateway {
        set_up_users(&child)?;
        client::until_listed(to, "BTCUSDT")?;
    }
    let to = child.gateway.unwrap_or(child.trade);
    let lines = users().zip(keys);
    let lines = lines.map(|(user, key)| Client::connect(to, transport, key, orders(user)));
    drive_lines(&child, lines.collect::<Result<Vec<_>, _>>()?, plan, 1)
}

fn by_binary_protocol(plan: &Plan) -> Ran {
    let child = Child::start(SYNCED)?;
    set_up_users(&child)?;
    let sessions = users().map(|user| {
        let mut orders = orders(user);
        Session::connect(child.trade, user, true, move || orders().into())
    });
    drive_lines(&child, sessions.collect::<Result<Vec<_>, _>>()?, plan, 1)
}

const PRICE: i64 = 10_000;
const LOTS: i64 = 5;

/// Makes the orders of one connection, around a price, one in eight of which trades. None of them
/// rests, so that the last is placed under the same conditions as the first.
fn orders(user: i64) -> impl FnMut() -> Place {
    let (mut last, mut random) = (0, SplitMix::new(user as u64));
    move || {
        last += 1;
        let random = random.next_u64();
        let distance = 1 + ((random >> 8) % 50) as i64;
        let is_bid = random >> 40 & 1 != 0;
        let is_above = is_bid == random.is_multiple_of(8);
        let price = PRICE + if is_above { distance } else { -distance };
        let side = if is_bid { Action::Bid } else { Action::Ask };
        let mut place = Place::limit((UserId(user), OrderId(last)), SYMBOL, side, (price, LOTS));
        place.order_type = OrderType::Ioc;
        place
    }
}
