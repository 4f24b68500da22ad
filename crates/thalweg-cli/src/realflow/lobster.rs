//! Converts LOBSTER messages into commands. An addition rests; a visible execution becomes an IOC
//! order of the other side at its price and size; cancellations reduce and cancel. Hidden
//! executions and halts do not change the book.

use crate::input::fields::Row;
use crate::input::lobster::{Kind, Message};
use crate::realflow::RealFlow;
use crate::realflow::replay::{Replay, Skipped, Trust, Unknown};
use crate::realflow::score::RowScores;
use crate::report::facts::{Check, Count, Score};
use std::collections::HashSet;
use thalweg_exchange::{Action, OrderId, OrderType, Rules};

/// The results of the executions and additions.
#[derive(Debug, Default)]
struct Tally {
    executions: u64,
    /// The number of executions that hit exactly the recorded order, alone and in full.
    makers: u64,
    /// The number of these whose maker is older than the recording.
    anonymous_makers: u64,
    /// The number of additions that traded although a recorded addition never does.
    trades_not_recorded: u64,
    /// The number of messages without an order book row, and of rows without a message.
    rows_missing: u64,
    rows_over: u64,
}

/// Puts messages through an exchange, and compares the result with the order book rows if there are
/// any.
pub(crate) fn replay(
    messages: &[(u64, Message)],
    rows: Option<impl Iterator<Item = Row>>,
    rules: Rules,
) -> RealFlow {
    let mut replay = Replay::new(rules);
    let mut unknown = Unknown::default();
    let mut added = HashSet::new();
    let mut tally = Tally::default();
    let mut scores = RowScores::new(0, 0);
    let has_books = rows.is_some();
    let mut rows = rows.into_iter().flatten().peekable();
    if let (Some(first), Some((_, message))) = (rows.peek(), messages.first()) {
        unknown.learn(&mut replay, &before(first, message), Trust::Exact);
    }
    for (line, message) in messages {
        replay.at(*line);
        replay.set_time(message.time_ns);
        step(&mut replay, &mut unknown, &mut added, &mut tally, message);
        let Some(row) = rows.next() else {
            tally.rows_missing += u64::from(has_books);
            continue;
        };
        scores.state(replay.row(row.bids.len().max(row.asks.len())));
        unknown.learn(&mut replay, &row, Trust::Exact);
        scores.row(&row, &replay.row(1));
    }
    if has_books {
        tally.rows_over = rows.count() as u64;
    }
    let check = check(&scores, &unknown, has_books, &tally);
    replay.finish(check)
}

/// Returns the first row without the effect of its own message, so that it can be learnt before
/// that message.
fn before(row: &Row, message: &Message) -> Row {
    let mut row = row.clone();
    let by = match message.kind {
        Kind::Added => -message.size,
        Kind::Reduced | Kind::Deleted | Kind::Executed => message.size,
        Kind::Unseen => return row,
    };
    let side = match message.action {
        Action::Bid => &mut row.bids,
        Action::Ask => &mut row.asks,
    };
    match side.iter_mut().find(|(price, _)| *price == message.price) {
        Some((_, size)) => *size += by,
        None => side.push((message.price, by)),
    }
    side.retain(|&(_, size)| size > 0);
    side.sort_unstable_by_key(|&(price, _)| match message.action {
        Action::Bid => -price,
        Action::Ask => price,
    });
    row
}

fn step(
    replay: &mut Replay,
    unknown: &mut Unknown,
    added: &mut HashSet<i64>,
    tally: &mut Tally,
    message: &Message,
) {
    let order = OrderId(message.order);
    let Message {
        action,
        price,
        size,
        ..
    } = *message;
    let known = added.contains(&message.order);
    match message.kind {
        Kind::Added if !added.insert(message.order) => replay.pass_over(Skipped::Repeated),
        Kind::Added => {
            replay.place(order, action, OrderType::Gtc, price, size);
            tally.trades_not_recorded += replay.trades().count() as u64;
        }
        Kind::Reduced if known => {
            replay.reduce(order, size);
        }
        Kind::Deleted if known => replay.lower(order, 0),
        Kind::Reduced | Kind::Deleted => {
            unknown.take(replay, action, price, size);
        }
        Kind::Executed => {
            let taker = replay.own_order();
            replay.place(taker, action.opposite(), OrderType::Ioc, price, size);
            let mut fills = replay.trades();
            let hit = fills.next().is_some_and(|fill| {
                let maker = match known {
                    true => fill.maker == order,
                    false => unknown.is_anonymous(fill.maker),
                };
                maker && fill.price == price && fill.size == size
            });
            let hit = hit && fills.next().is_none();
            tally.executions += 1;
            tally.makers += u64::from(hit);
            tally.anonymous_makers += u64::from(hit && !known);
        }
        Kind::Unseen => {}
    }
    if known && matches!(message.kind, Kind::Reduced | Kind::Deleted | Kind::Executed) {
        replay.note_remainder(order, action);
    }
}

fn check(scores: &RowScores, unknown: &Unknown, rows: bool, tally: &Tally) -> Check {
    let mut check = Check {
        against: "recorded executions".to_owned(),
        ..Check::default()
    };
    if rows {
        check.against = "recorded order book rows and executions".to_owned();
        (check.scores, check.counts) = scores.finish("rows");
        check.counts.extend(unknown.level_counts());
        check
            .counts
            .push(Count::new("orders_gone_out_of_view", unknown.corrected));
        for (name, count) in [
            ("messages_without_a_row", tally.rows_missing),
            ("rows_without_a_message", tally.rows_over),
        ] {
            if count > 0 {
                check.counts.push(Count::new(name, count));
            }
        }
    }
    check.scores.push(Score {
        name: "makers".to_owned(),
        label: "visible executions that hit the recorded maker".to_owned(),
        agree: tally.makers,
        of: tally.executions,
    });
    check.counts.push(Count::new(
        "makers_older_than_the_file",
        tally.anonymous_makers,
    ));
    check
        .counts
        .push(Count::new("trades_not_recorded", tally.trades_not_recorded));
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realflow::numbered;

    fn message(kind: Kind, order: i64, price: i64, size: i64) -> Message {
        Message {
            kind,
            order,
            action: Action::Bid,
            price,
            size,
            time_ns: 0,
        }
    }

    fn row(bids: &[(i64, i64)]) -> Row {
        Row {
            bids: bids.to_vec(),
            asks: vec![(200, 1)],
        }
    }

    #[test]
    fn executions_hit_by_price_and_time() {
        use Kind::{Added, Deleted, Executed, Reduced, Unseen};
        let messages = [
            message(Added, 1, 100, 5),
            message(Added, 2, 100, 5),
            message(Unseen, 0, 100, 9),
            message(Executed, 9, 100, 4),
            message(Executed, 1, 100, 5),
            message(Reduced, 2, 100, 2),
            message(Deleted, 2, 100, 3),
        ];
        // Four lots were resting before the first message, at the head of the level.
        let rows = [
            row(&[(100, 9)]),
            row(&[(100, 14)]),
            row(&[(100, 14)]),
            row(&[(100, 10)]),
            row(&[(100, 5)]),
            row(&[(100, 3)]),
            row(&[]),
        ];
        let flow = replay(
            &numbered(&messages),
            Some(rows.into_iter()),
            Rules::default(),
        );
        assert_eq!(flow.score("best_levels"), (7, 7));
        assert_eq!(flow.score("makers"), (2, 2));
        assert_eq!(flow.count("makers_older_than_the_file"), 1);
        let asks_and_head = 2;
        assert_eq!(flow.count("levels_learnt"), asks_and_head);
    }

    #[test]
    fn a_wrong_maker_is_counted() {
        let messages = [
            message(Kind::Added, 1, 100, 5),
            message(Kind::Added, 2, 100, 5),
            message(Kind::Executed, 2, 100, 5),
        ];
        let flow = replay(
            &numbered(&messages),
            None::<std::iter::Empty<_>>,
            Rules::default(),
        );
        assert_eq!(flow.score("makers"), (0, 1));
    }

    #[test]
    fn orders_that_left_out_of_view_go_when_their_level_comes_back() {
        let messages = [
            message(Kind::Added, 1, 90, 5),
            message(Kind::Added, 2, 100, 5),
            message(Kind::Added, 3, 101, 5),
        ];
        let rows = [
            row(&[(90, 5)]),
            row(&[(100, 5)]),
            row(&[(101, 5), (100, 5), (90, 2)]),
        ];
        let flow = replay(
            &numbered(&messages),
            Some(rows.into_iter()),
            Rules::default(),
        );
        assert_eq!(flow.score("all_levels"), (2, 3));
        assert_eq!(flow.count("orders_gone_out_of_view"), 1);
    }

    #[test]
    fn the_first_row_is_learnt_without_its_own_message() {
        let taken = Message {
            kind: Kind::Executed,
            ..message(Kind::Added, 1, 100, 5)
        };
        assert_eq!(before(&row(&[(99, 1)]), &taken).bids, [(100, 5), (99, 1)]);
        let added = message(Kind::Added, 1, 100, 5);
        assert_eq!(before(&row(&[(100, 5), (99, 1)]), &added).bids, [(99, 1)]);
        assert_eq!(before(&row(&[(100, 7)]), &added).bids, [(100, 2)]);
    }
}
