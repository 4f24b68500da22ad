//! Writes a report as JSON. `docs/doctor-json.md` describes the keys.

use super::{Report, marks};
use crate::verdict::{Exhibit, Id, Verdict};
use serde::{Serialize, Serializer};

#[derive(Serialize)]
struct Object<'a> {
    command: &'a [String],
    exit: &'a Option<super::Ending>,
    time: &'a [super::Spent],
    verdicts: Vec<Answer<'a>>,
    evidence: &'a crate::evidence::Evidence,
    machine: &'a super::Host,
    cannot_tell: &'a [String],
}

#[derive(Serialize)]
struct Answer<'a> {
    id: Id,
    confidence: f64,
    evidence: Vec<Marked<'a>>,
    contradicts: Vec<Marked<'a>>,
    cannot_tell: &'a [String],
    next: &'a str,
}

#[derive(Serialize)]
struct Marked<'a> {
    #[serde(flatten)]
    exhibit: &'a Exhibit,
    reached: Option<bool>,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let answer = |verdict| answer(verdict, self);
        let object = Object {
            command: &self.command,
            exit: &self.exit,
            time: &self.time,
            verdicts: self.verdicts.iter().map(answer).collect(),
            evidence: &self.evidence,
            machine: &self.machine,
            cannot_tell: &self.cannot_tell,
        };
        object.serialize(serializer)
    }
}

fn answer<'a>(verdict: &'a Verdict, report: &Report) -> Answer<'a> {
    let marked = |exhibit| Marked {
        exhibit,
        reached: marks::reached(verdict.id, exhibit, &report.evidence),
    };
    Answer {
        id: verdict.id,
        confidence: verdict.confidence,
        evidence: verdict.evidence.iter().map(marked).collect(),
        contradicts: verdict.contradicts.iter().map(marked).collect(),
        cannot_tell: &verdict.cannot_tell,
        next: &verdict.next,
    }
}
