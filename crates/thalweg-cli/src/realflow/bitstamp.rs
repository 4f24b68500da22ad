//! Converts Bitstamp messages into commands. A creation becomes a GTC limit order, or a market
//! order where it has no price; a change lowers an order to the recorded remainder; a deletion
//! cancels. Recorded trades are only compared with.

use crate::input::bitstamp::{Kind, Message, Snapshot};
use crate::realflow::RealFlow;
use crate::realflow::replay::{Replay, Skipped, Trust, Unknown};
use crate::realflow::score::{RowScores, TradeAt, pair_trades};
use crate::report::facts::{Check, Count, Score};
use std::collections::HashSet;
use thalweg_exchange::{Action, OrderId, OrderType, Rules};

/// The slack, in messages, by which the two recorded feeds may be out of step; measured on
/// 2015-05-01.
const SLACK_MESSAGES: (usize, usize) = (40, 12);
/// The window in which trades are paired. The exchange trades when the taker arrives; the feed
/// reports a sweep trade by trade, up to 50 messages later.
const TRADE_WINDOW_MESSAGES: u64 = 100;
/// The number of levels on each side that are kept to compare: as many as the snapshots have.
const LEVELS: usize = 20;

/// The feed gives a market buy this price or a higher one: 999,999,999 dollars. A market sell has
/// the price 0.
const NO_LIMIT_CENTS: i64 = 99_999_999_900;

/// Puts messages through an exchange, and compares the result with the snapshots if there are any.
pub(crate) fn replay(
    messages: &[(u64, Message)],
    snapshots: Option<impl Iterator<Item = Snapshot>>,
    rules: Rules,
) -> RealFlow {
    let mut replay = Replay::new(rules);
    let mut unknown = Unknown::default();
    let mut created = HashSet::new();
    let mut ours = Vec::new();
    let mut recorded = Vec::new();
    let mut market_orders = 0;
    let mut scores = RowScores::new(SLACK_MESSAGES.0, SLACK_MESSAGES.1);
    let has_books = snapshots.is_some();
    let mut rows = snapshots.into_iter().flatten().peekable();
    let mut first = true;
    for (position, (line, message)) in (0_u64..).zip(messages) {
        replay.at(*line);
        replay.set_time(message.time_ns);
        let at = |price, size| TradeAt {
            position,
            price,
            size,
        };
        match skipped(message, &created) {
            Some(why) => replay.pass_over(why),
            None if message.kind == Kind::Trade => {
                recorded.push(at(message.price, message.amount));
            }
            None => {
                market_orders += u64::from(is_market(message));
                step(&mut replay, &mut unknown, &mut created, message);
            }
        }
        if message.kind == Kind::Created {
            ours.extend(replay.trades().map(|trade| at(trade.price, trade.size)));
        }
        if !has_books {
            continue;
        }
        scores.state(replay.row(LEVELS));
        while let Some(snapshot) = rows.next_if(|s| s.after_messages <= position + 1) {
            unknown.learn(&mut replay, &snapshot.row, Trust::Loose);
            // The first snapshot is only learnt from, since nothing is known before it.
            if !std::mem::take(&mut first) {
                scores.row(&snapshot.row, &replay.row(LEVELS));
            }
        }
    }
    let mut check = check(&scores, &unknown, has_books, &ours, &recorded);
    if market_orders > 0 {
        let count = Count::new("market_orders", market_orders);
        check.counts.push(count);
    }
    replay.finish(check)
}

/// Returns whether a new order has no price.
fn is_market(message: &Message) -> bool {
    message.kind == Kind::Created
        && match message.action {
            Action::Bid => message.price >= NO_LIMIT_CENTS,
            Action::Ask => message.price == 0,
        }
}

/// Returns the reason why a message yields no order and no trade, if it is skipped.
fn skipped(message: &Message, created: &HashSet<i64>) -> Option<Skipped> {
    match message.kind {
        Kind::Created if created.contains(&message.order) => Some(Skipped::Repeated),
        Kind::Created | Kind::Trade if message.amount == 0 => Some(Skipped::WithoutSize),
        Kind::Created if message.price == 0 && !is_market(message) => Some(Skipped::WithoutPrice),
        Kind::Trade if message.price == 0 => Some(Skipped::WithoutPrice),
        _ => None,
    }
}

fn step(replay: &mut Replay, unknown: &mut Unknown, created: &mut HashSet<i64>, message: &Message) {
    let order = OrderId(message.order);
    let Message {
        action,
        price,
        amount,
        ..
    } = *message;
    match message.kind {
        Kind::Created => {
            created.insert(message.order);
            match is_market(message) {
                true => replay.take(order, action, amount),
                false => replay.place(order, action, OrderType::Gtc, price, amount),
            }
        }
        // After our own engine has matched the order, the message repeats a reduction that is
        // already done: it can only lower the order.
        Kind::Changed => {
            replay.lower(order, amount);
            if created.contains(&message.order) {
                replay.note_remainder(order, action);
            }
        }
        Kind::Deleted if created.contains(&message.order) => {
            replay.lower(order, 0);
            replay.note_remainder(order, action);
        }
        Kind::Deleted => {
            unknown.take(replay, action, price, amount);
        }
        Kind::Trade => {}
    }
}

fn check(
    scores: &RowScores,
    unknown: &Unknown,
    has_books: bool,
    ours: &[TradeAt],
    recorded: &[TradeAt],
) -> Check {
    let paired = pair_trades(ours, recorded, TRADE_WINDOW_MESSAGES);
    let mut check = Check {
        against: "recorded trades".to_owned(),
        ..Check::default()
    };
    if has_books {
        check.against = "recorded books and trades".to_owned();
        (check.scores, check.counts) = scores.finish("snapshots");
        check.counts.extend(unknown.level_counts());
    }
    check.scores.push(Score {
        name: "trades".to_owned(),
        label: "trades with the recorded price and size".to_owned(),
        agree: paired.found,
        of: recorded.len() as u64,
    });
    check
        .counts
        .push(Count::new("trades_not_recorded", paired.not_there));
    check
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::fields::Row;
    use crate::realflow::numbered;

    fn message(kind: Kind, order: i64, action: Action, price: i64, amount: i64) -> Message {
        Message {
            kind,
            order,
            action,
            price,
            amount,
            time_ns: 0,
        }
    }

    #[test]
    fn a_taker_trades_once_though_the_feed_tells_it_three_times() {
        use Kind::{Changed, Created, Deleted, Trade};
        let messages = [
            message(Created, 1, Action::Bid, 100, 10),
            message(Created, 2, Action::Ask, 99, 4),
            message(Changed, 1, Action::Bid, 100, 6),
            message(Deleted, 2, Action::Ask, 99, 0),
            message(Trade, 900, Action::Ask, 100, 4),
            message(Created, 3, Action::Ask, 100, 1),
        ];
        let flow = replay(
            &numbered(&messages),
            None::<std::iter::Empty<_>>,
            Rules::default(),
        );
        assert_eq!(flow.score("trades"), (1, 1));
        assert_eq!(flow.count("trades_not_recorded"), 1);
        // Two commands set up, three place orders; a message that repeats what the exchange did
        // needs no command.
        assert_eq!(flow.commands.len(), 5);
    }

    #[test]
    fn snapshots_teach_what_is_older_than_the_file() {
        let older = message(Kind::Deleted, 7, Action::Ask, 105, 3);
        let messages = [
            message(Kind::Created, 1, Action::Bid, 100, 10),
            older,
            older,
            older,
        ];
        let snapshot = |after_messages, asks: &[(i64, i64)]| Snapshot {
            after_messages,
            row: Row {
                bids: vec![(100, 10)],
                asks: asks.to_vec(),
            },
        };
        let snapshots = [snapshot(1, &[(105, 3), (106, 1)]), snapshot(2, &[(106, 1)])];
        let flow = replay(
            &numbered(&messages),
            Some(snapshots.into_iter()),
            Rules::default(),
        );
        assert_eq!(
            flow.score("all_levels"),
            (1, 1),
            "the first snapshot only teaches"
        );
        assert_eq!(flow.count("levels_learnt"), 2);
    }

    #[test]
    fn volume_that_would_trade_is_not_learnt() {
        let messages = [message(Kind::Created, 1, Action::Bid, 100, 10)];
        let row = Row {
            bids: vec![(100, 10)],
            asks: vec![(99, 5)],
        };
        let snapshots = [Snapshot {
            after_messages: 1,
            row,
        }];
        let flow = replay(
            &numbered(&messages),
            Some(snapshots.into_iter()),
            Rules::default(),
        );
        assert_eq!((flow.count("levels_learnt"), flow.commands.len()), (0, 3));
    }
}
