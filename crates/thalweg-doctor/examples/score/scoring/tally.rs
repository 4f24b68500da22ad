//! Rows, scores, and how they are written.

use super::case::{Case, Folder};
use super::report::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// A wrong verdict with a confidence above this is worse than no verdict.
pub(crate) const SURE: f64 = 0.6;
/// The minimum share of the cases in which another user must get the same first verdict.
const SAME_SHARE_MIN: f64 = 0.8;
/// The verdict that gives a reason to have no answer; it never counts as wrong and sure.
const DECLINED: &str = "CONTAMINATED";

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// The verdicts, the most likely first.
    Verdicts(Vec<Verdict>),
    /// The case cannot run here, for this reason.
    Skipped(String),
    /// There is no report, for this reason.
    Failed(String),
}

/// A run of a case.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    name: String,
    folder: Folder,
    language: String,
    expected: Vec<String>,
    user: Option<String>,
    outcome: Outcome,
    right: Option<bool>,
}

impl Row {
    pub(crate) fn new(case: &Case, user: Option<&str>, outcome: Outcome) -> Row {
        let mut row = Row {
            name: case.name.clone(),
            folder: case.folder,
            language: case.language.clone(),
            expected: case.expected.clone(),
            user: user.map(str::to_owned),
            outcome,
            right: None,
        };
        let is_right = |verdict: &Verdict| row.expected.contains(&verdict.id);
        row.right = match &row.outcome {
            Outcome::Skipped(_) => None,
            _ => Some(row.first().is_some_and(is_right)),
        };
        row
    }

    fn first(&self) -> Option<&Verdict> {
        match &self.outcome {
            Outcome::Verdicts(verdicts) => verdicts.first(),
            _ => None,
        }
    }

    fn sure_and_wrong(&self) -> bool {
        let sure = |verdict: &Verdict| verdict.confidence > SURE && verdict.id != DECLINED;
        self.right == Some(false) && self.first().is_some_and(sure)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_deref().unwrap_or("-");
        let (name, expected, language) = (&self.name, &self.expected[0], &self.language);
        write!(f, "{name:<16} {language:<7} {user:<7} {expected:<17} ")?;
        match (&self.outcome, self.first()) {
            (Outcome::Skipped(why), _) => write!(f, "skipped: {why}"),
            (Outcome::Failed(why), _) => write!(f, "wrong: {why}"),
            (Outcome::Verdicts(_), None) => write!(f, "wrong: no verdict"),
            (Outcome::Verdicts(_), Some(Verdict { id, confidence })) => {
                let right = match self.right {
                    Some(true) => "right",
                    _ if self.sure_and_wrong() => "wrong and sure",
                    _ => "wrong",
                };
                write!(f, "{id:<17} {confidence:>5.2}  {right}")
            }
        }
    }
}

/// Returns the line above the rows.
pub(crate) fn heading() -> String {
    let (name, language, user) = ("case", "in", "as");
    let (expected, first) = ("expected", "first verdict");
    format!("{name:<16} {language:<7} {user:<7} {expected:<17} {first:<17}  sure")
}

/// The number of right runs among all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Score {
    /// The number of runs whose first verdict is right.
    pub(crate) right: usize,
    /// The number of runs that could be right.
    pub(crate) of: usize,
    /// The number of runs that could not be made.
    pub(crate) skipped: usize,
    /// The number of wrong first verdicts with a confidence above [`SURE`].
    pub(crate) wrong_and_sure: usize,
}

/// All runs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Tally {
    rows: Vec<Row>,
    under_load: bool,
}

impl Tally {
    pub(crate) fn new(under_load: bool) -> Tally {
        Tally {
            rows: Vec::new(),
            under_load,
        }
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Returns the scores by folder and user.
    pub(crate) fn scores(&self) -> BTreeMap<(Folder, Option<&str>), Score> {
        let mut scores: BTreeMap<_, Score> = BTreeMap::new();
        for row in &self.rows {
            let score = scores.entry((row.folder, row.user.as_deref())).or_default();
            score.of += usize::from(row.right.is_some());
            score.right += usize::from(row.right == Some(true));
            score.skipped += usize::from(row.right.is_none());
            score.wrong_and_sure += usize::from(row.sure_and_wrong());
        }
        scores
    }

    /// Returns the number of runs of another user with the same first verdict as the run before,
    /// and the number of all such pairs in which both could run.
    pub(crate) fn same(&self) -> (usize, usize) {
        let pairs = self.rows.windows(2).filter(|pair| {
            let both = pair.iter().all(|row| row.right.is_some());
            both && pair[0].user.is_none() && pair[1].user.is_some()
        });
        let same = |pair: &&[Row]| {
            let [one, other] = [pair[0].first(), pair[1].first()];
            one.is_some() && one.map(|verdict| &verdict.id) == other.map(|verdict| &verdict.id)
        };
        (pairs.clone().filter(same).count(), pairs.count())
    }

    /// Returns the exit code. 0: no complaint. 1: wrong verdicts (under a load: wrong and sure), or
    /// another user gets too many different verdicts. 2: no score was possible.
    pub(crate) fn exit_code(&self) -> u8 {
        let scores = self.scores();
        let wrong = |score: &Score| match self.under_load {
            true => score.wrong_and_sure,
            false => score.of - score.right,
        };
        let own = scores.iter().filter(|((_, user), _)| user.is_none());
        let (same, pairs) = self.same();
        if scores.values().all(|score| score.of == 0) {
            2
        } else {
            let differs = (same as f64) < SAME_SHARE_MIN * pairs as f64;
            u8::from(own.map(|(_, score)| wrong(score)).sum::<usize>() > 0 || differs)
        }
    }

    /// Returns all rows and scores as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        let scores = self.scores().into_iter().map(|((folder, user), score)| {
            serde_json::json!({ "folder": folder, "user": user, "score": score })
        });
        let (same, pairs) = self.same();
        serde_json::json!({
            "rows": self.rows,
            "scores": scores.collect::<Vec<_>>(),
            "same_first_verdict": { "same": same, "of": pairs },
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((folder, user), score) in self.scores() {
            let user = user.map(|user| format!(" as {user}")).unwrap_or_default();
            let Score { right, of, .. } = score;
            let (skipped, sure) = (score.skipped, score.wrong_and_sure);
            write!(f, "{folder}{user}: first verdict right in {right} of {of}")?;
            writeln!(f, ", {sure} wrong and sure, {skipped} skipped")?;
        }
        match self.same() {
            (_, 0) => Ok(()),
            (same, pairs) => writeln!(f, "both users: the same in {same} of {pairs}"),
        }
    }
}
