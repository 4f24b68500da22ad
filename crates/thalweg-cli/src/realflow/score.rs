//! The extent to which the books and trades of a run agree with recorded ones.

use crate::input::fields::Row;
use crate::realflow::replay::side;
use crate::report::facts::{Count, Score};
use std::collections::{HashMap, VecDeque};
use thalweg_exchange::Action;

/// The numbers of levels that are compared: the best, the best five, all that were recorded.
const DEPTHS: [(&str, usize); 3] = [("best", 1), ("top_5", 5), ("all", usize::MAX)];

/// Returns whether two rows agree in their best `depth` levels of both sides, as far as `recorded`
/// goes.
fn agrees(ours: &Row, recorded: &Row, depth: usize) -> bool {
    [Action::Bid, Action::Ask].into_iter().all(|action| {
        let recorded = side(recorded, action);
        let n = depth.min(recorded.len());
        side(ours, action).get(..n) == Some(&recorded[..n])
    })
}

/// Compares states of the book with recorded rows, at their exact position and nearby.
#[derive(Debug)]
pub(super) struct RowScores {
    before: usize,
    after: usize,
    /// The latest states, newest last, as many as the slack before needs.
    recent: VecDeque<Row>,
    /// Rows whose later slack has not ended, each with the depths that are still open.
    pending: VecDeque<Pending>,
    rows: u64,
    exact: [u64; DEPTHS.len()],
    slack: [u64; DEPTHS.len()],
    /// The number of rows that agree only after they were learnt from themselves.
    taught: [u64; DEPTHS.len()],
}

#[derive(Debug)]
struct Pending {
    row: Row,
    left: usize,
    agreed: [bool; DEPTHS.len()],
    taught: [bool; DEPTHS.len()],
}

impl RowScores {
    /// Creates scores that accept `before` states of slack before a row and `after` states after
    /// it.
    pub(super) fn new(before: usize, after: usize) -> RowScores {
        RowScores {
            before,
            after,
            recent: VecDeque::new(),
            pending: VecDeque::new(),
            rows: 0,
            exact: [0; DEPTHS.len()],
            slack: [0; DEPTHS.len()],
            taught: [0; DEPTHS.len()],
        }
    }

    /// Takes the state after the next message. The caller calls this once for each message, before
    /// its rows.
    pub(super) fn state(&mut self, ours: Row) {
        for pending in &mut self.pending {
            pending.left -= 1;
            for (i, (_, depth)) in DEPTHS.into_iter().enumerate() {
                if !pending.agreed[i] && agrees(&ours, &pending.row, depth) {
                    pending.agreed[i] = true;
                    self.slack[i] += 1;
                    self.taught[i] += u64::from(pending.taught[i]);
                }
            }
        }
        while self
            .pending
            .front()
            .is_some_and(|pending| pending.left == 0)
        {
            self.pending.pop_front();
        }
        if self.recent.len() > self.before {
            self.recent.pop_front();
        }
        self.recent.push_back(ours);
    }

    /// Takes a row that was recorded at this position. `learnt` is the state after learning from
    /// it.
    pub(super) fn row(&mut self, recorded: &Row, learnt: &Row) {
        let Some(ours) = self.recent.back() else {
            return;
        };
        self.rows += 1;
        let mut agreed = [false; DEPTHS.len()];
        let mut taught = [false; DEPTHS.len()];
        for (i, (_, depth)) in DEPTHS.into_iter().enumerate() {
            self.exact[i] += u64::from(agrees(ours, recorded, depth));
            agreed[i] = self
                .recent
                .iter()
                .rev()
                .any(|state| agrees(state, recorded, depth));
            self.slack[i] += u64::from(agreed[i]);
            taught[i] = !agreed[i] && agrees(learnt, recorded, depth);
        }
        if self.after > 0 && agreed.contains(&false) {
            let row = recorded.clone();
            self.pending.push_back(Pending {
                row,
                left: self.after,
                agreed,
                taught,
            });
        }
    }

    /// Returns the scores, and how many of the agreements with slack are owed to the row itself.
    pub(super) fn finish(&self, what: &str) -> (Vec<Score>, Vec<Count>) {
        let mut scores = Vec::new();
        let mut counts = Vec::new();
        for (i, (name, depth)) in DEPTHS.into_iter().enumerate() {
            let levels = match depth {
                1 => "best level".to_owned(),
                usize::MAX => "all levels".to_owned(),
                n => format!("best {n} levels"),
            };
            let score = |suffix: &str, label: &str, agree| Score {
                name: format!("{name}_levels{suffix}"),
                label: format!("{what}, {levels}{label}"),
                agree,
                of: self.rows,
            };
            scores.push(score("", "", self.exact[i]));
            if self.before + self.after > 0 {
                let label = format!(
                    ", within {} messages before and {} after",
                    self.before, self.after
                );
                scores.push(score("_with_slack", &label, self.slack[i]));
                counts.push(Count {
                    name: format!("{name}_levels_agree_once_learnt"),
                    count: self.taught[i],
                });
            }
        }
        (scores, counts)
    }
}

/// A trade at a position of the message stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TradeAt {
    pub(super) position: u64,
    pub(super) price: i64,
    pub(super) size: i64,
}

/// The result of pairing two lists of trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paired {
    /// The number of recorded trades that the exchange made with exact price and size.
    pub(super) found: u64,
    /// The number of trades of the exchange that were not recorded.
    pub(super) not_there: u64,
}

/// Pairs each recorded trade with the nearest unpaired trade of ours of the same price and size
/// that is at most `window` messages away.
pub(crate) fn pair_trades(ours: &[TradeAt], recorded: &[TradeAt], window: u64) -> Paired {
    let mut free: HashMap<(i64, i64), Vec<u64>> = HashMap::new();
    for trade in ours {
        free.entry((trade.price, trade.size))
            .or_default()
            .push(trade.position);
    }
    let mut found = 0;
    for trade in recorded {
        let Some(positions) = free.get_mut(&(trade.price, trade.size)) else {
            continue;
        };
        let nearest = positions
            .iter()
            .enumerate()
            .map(|(i, position)| (position.abs_diff(trade.position), i))
            .filter(|&(distance, _)| distance <= window)
            .min();
        if let Some((_, i)) = nearest {
            positions.swap_remove(i);
            found += 1;
        }
    }
    Paired {
        found,
        not_there: ours.len() as u64 - found,
    }
}

/// Returns the number of agreements and the number of comparisons in the score of that name.
#[cfg(test)]
pub(super) fn named(scores: &[Score], name: &str) -> (u64, u64) {
    let score = scores.iter().find(|s| s.name == name);
    let score = score.expect("the check has the score");
    (score.agree, score.of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bid: i64, ask: i64) -> Row {
        Row {
            bids: vec![(bid, 1), (bid - 1, 2)],
            asks: vec![(ask, 1)],
        }
    }

    #[test]
    fn rows_agree_by_depth() {
        let recorded = row(10, 12);
        let mut deep = recorded.clone();
        deep.bids[1].1 = 3;
        assert!(agrees(&deep, &recorded, 1) && !agrees(&deep, &recorded, 5));
        let thin = Row {
            bids: vec![(10, 1)],
            asks: vec![(12, 1)],
        };
        assert!(!agrees(&thin, &recorded, 5));
        assert!(
            agrees(&recorded, &thin, usize::MAX),
            "only what was recorded counts"
        );
    }

    #[test]
    fn slack_looks_back_and_ahead() {
        let mut scores = RowScores::new(2, 2);
        for (state, recorded) in [
            (10, None),
            (11, None),
            (12, Some(10)),
            (13, Some(15)),
            (14, None),
        ] {
            scores.state(row(state, 20));
            if let Some(bid) = recorded {
                scores.row(&row(bid, 20), &row(state, 20));
            }
        }
        scores.state(row(15, 20));
        let (found, counts) = scores.finish("rows");
        assert_eq!(named(&found, "best_levels"), (0, 2));
        assert_eq!(named(&found, "best_levels_with_slack"), (2, 2));
        assert!(counts.iter().all(|c| c.count == 0));
    }

    #[test]
    fn slack_ends_and_self_taught_agreement_is_reported() {
        let mut scores = RowScores::new(0, 1);
        scores.state(row(10, 20));
        scores.row(&row(15, 20), &row(15, 20));
        scores.row(&row(16, 20), &row(10, 20));
        scores.state(row(15, 20));
        scores.state(row(16, 20));
        let (found, counts) = scores.finish("rows");
        assert_eq!(named(&found, "best_levels_with_slack"), (1, 2));
        assert_eq!(counts[0].count, 1);
    }

    #[test]
    fn trades_pair_once_and_nearby() {
        let at = |position, price, size| TradeAt {
            position,
            price,
            size,
        };
        let ours = [at(5, 10, 1), at(6, 10, 1), at(50, 10, 1), at(7, 10, 2)];
        let recorded = [at(6, 10, 1), at(7, 10, 1), at(30, 10, 1), at(8, 11, 2)];
        assert_eq!(
            pair_trades(&ours, &recorded, 10),
            Paired {
                found: 2,
                not_there: 2
            }
        );
    }
}
