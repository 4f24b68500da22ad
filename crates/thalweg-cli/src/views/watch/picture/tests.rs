//! Pictures of made-up markets.

use super::*;
use thalweg_exchange::market::{Body, Channels, Epoch, FeedSequence};
use thalweg_exchange::market::{Message, Snapshot, SymbolSequence};
use thalweg_exchange::{OrderFlags, OrderId, OrderType};

fn level(price: i64, volume: i64) -> Level {
    Level {
        price,
        volume,
        orders: 2,
    }
}

fn view(symbols: i32) -> View {
    let mut books = Books::default();
    for symbol in (1..=symbols).map(SymbolId) {
        let snapshot = Snapshot {
            symbol,
            epoch: Epoch(1),
            asks: vec![level(10_002, 5), level(10_004, 120)],
            bids: vec![level(9_999, 60)],
            ..Snapshot::default()
        };
        books.restart(&snapshot).expect("it has levels");
        let trade = Message {
            epoch: Epoch(1),
            sequence: FeedSequence(1),
            symbol_sequence: SymbolSequence(1),
            channels: Channels::default(),
            symbol,
            is_last: true,
            body: Body::Trade {
                price: 10_001,
                size: 7,
                taker_side: Action::Ask,
            },
        };
        books.apply(&trade).expect("it is the first");
    }
    let order = OpenOrder {
        symbol: SymbolId(1),
        order_id: OrderId(77),
        action: Action::Bid,
        order_type: OrderType::Gtc,
        flags: OrderFlags::NONE,
        price: 9_999,
        reserve_price: 9_999,
        size: 10,
        filled: 4,
        hidden: 0,
        trigger: None,
        display: None,
        good_till: None,
    };
    View {
        names: Names::default(),
        address: "127.0.0.1:7411".to_owned(),
        user: 7,
        link: Link::Live,
        books,
        chosen: None,
        orders: Some((vec![order], false)),
        figures: Some(Ok(Figures::default())),
    }
}

fn texts(view: &View, size: (usize, usize), colours: bool) -> Vec<String> {
    let lines = view.lines(size).into_iter();
    lines.map(|line| line.text(size.0, colours)).collect()
}

#[test]
fn a_picture_has_the_ladder_the_trades_the_orders_and_the_figures() {
    let picture = texts(&view(1), (80, 30), false).join("\n");
    for part in [
        "symbol 1  live  q quits  user 7 at 127.0.0.1:7411",
        "sell 10004   120       2  ============",
        "sell 10002     5       2  =",
        "---- spread 3 ----",
        "buy   9999*   60       2  ======",
        "sell      10001 x 7",
        "user 7: 1 open order",
        "buy  6 of 10 at 9999  1  order 77",
        "0 commands, 0 refused, 0 sessions",
    ] {
        assert!(picture.contains(part), "`{part}` is not in\n{picture}");
    }
}

#[test]
fn no_picture_is_larger_than_its_terminal() {
    for symbols in [0, 1, 3, 40] {
        for size in [
            (1, 1),
            (10, 4),
            (30, 10),
            (40, 24),
            (71, 50),
            (80, 24),
            (300, 100),
        ] {
            for colours in [false, true] {
                let picture = texts(&view(symbols), size, colours);
                assert!(picture.len() <= size.1, "{size:?}: {picture:#?}");
            }
            for line in texts(&view(symbols), size, false) {
                assert!(line.chars().count() <= size.0, "{size:?}: {line}");
            }
        }
    }
}

#[test]
fn a_lost_connection_is_a_word_and_not_a_colour_alone() {
    let mut view = view(1);
    view.link = Link::Stale {
        since: Instant::now(),
        why: "connection refused".to_owned(),
    };
    let picture = texts(&view, (80, 24), false);
    assert_eq!(
        picture[0],
        "symbol 1   STALE for 0 s   connection refused; trying again"
    );
    // The last book stays.
    assert!(picture.join("\n").contains("buy   9999*"));
    let coloured = texts(&view, (80, 24), true);
    assert!(coloured[0].contains("\x1b[7m STALE"), "{coloured:?}");
    let plain: String = texts(&view, (80, 24), false).concat();
    assert!(!plain.contains('\x1b'), "{plain}");
}

#[test]
fn a_choice_of_symbols_shows_those_near_it() {
    let mut view = view(40);
    view.chosen = Some(SymbolId(20));
    let picture = texts(&view, (80, 40), false);
    assert!(picture[0].starts_with("symbol 20"), "{picture:#?}");
    assert!(
        picture[2].starts_with("  18  bid 9999 x 60"),
        "{picture:#?}"
    );
    assert!(picture[4].starts_with("> 20"), "{picture:#?}");
    assert!(picture[6].ends_with("  40 symbols: n, p"), "{picture:#?}");
}
