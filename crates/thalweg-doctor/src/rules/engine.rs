//! Weighs the rules.

use crate::evidence::breakdown::Part;
use crate::evidence::{self, Evidence, Quality};
use crate::rules::verdict::{Exhibit, Id, Verdict};
use crate::rules::{Claim, Clue, Quantity, Rule, Weighed};

/// The factor on the confidence for an absent figure that a rule needs.
const WITHOUT_NEED: f64 = 0.6;
/// The factor for an absent figure that could have refuted the rule.
const WITHOUT_CHECK: f64 = 0.85;
/// The degree to which a clue of a claim counts as held where its figure is absent.
const UNKNOWN: f64 = 0.5;
/// The factor on the confidence of any other verdict where others took the machine.
pub(super) const CONTAMINATED_MAX: f64 = 0.6;
/// The confidence from which on the evidence counts as contaminated: a tenth of the time.
const CONTAMINATED_FROM: f64 = 0.5;
/// The minimum distance between the first two answers for the first to be certain: the confidence
/// varies about as much from one run of a program to the next.
const MARGIN: f64 = 0.15;
/// The maximum confidence of an answer that another one is too near to, or that is contradicted by
/// the known figures where the deciding figure is absent.
const UNDECIDED_MAX: f64 = 0.6;
/// The confidence below which verdicts are dropped.
const LEAST: f64 = 0.1;
/// The run time below which the confidence is reduced: at a hundred samples a second it gives ten
/// samples.
const BRIEF_S: f64 = 0.1;

/// Returns the verdicts of the rules on the figures, the most likely first.
///
/// The first is not sure where the second is about as likely, or would be if no figure that could
/// refute it were absent.
pub(super) fn judge(rules: &[&Rule], evidence: &Evidence) -> Vec<Verdict> {
    let mut found: Vec<_> = rules.iter().map(|it| weigh(it, evidence)).collect();
    let disturbance = found.iter().find(|(it, _)| it.id == Id::Contaminated);
    let disturbance = disturbance.map_or(0.0, |(it, _)| it.confidence);
    let scale = 1.0 - (1.0 - CONTAMINATED_MAX) * (disturbance / CONTAMINATED_FROM).min(1.0);
    for (verdict, possible) in &mut found {
        if verdict.id != Id::Contaminated {
            verdict.confidence *= scale;
            *possible *= scale;
        }
        verdict.confidence = (verdict.confidence * 100.0).floor() / 100.0;
    }
    found.retain(|(verdict, _)| verdict.confidence >= LEAST);
    found.sort_by(|(a, _), (b, _)| b.confidence.total_cmp(&a.confidence));
    let second = found.iter().skip(1).map(|(_, it)| *it).fold(0.0, f64::max);
    let is_near =
        |(it, _): &(Verdict, f64)| it.id != Id::Contaminated && it.confidence - second < MARGIN;
    let most = match found.len() > 1 && found.first().is_some_and(is_near) {
        true => UNDECIDED_MAX,
        false => 1.0,
    };
    for (verdict, _) in &mut found {
        verdict.confidence = verdict.confidence.min(most);
    }
    found.into_iter().map(|(verdict, _)| verdict).collect()
}

/// Returns the verdict of one rule, whatever its confidence, and the confidence that it could have
/// if no figure that could refute it were absent.
pub(super) fn weigh(rule: &Rule, evidence: &Evidence) -> (Verdict, f64) {
    let mut confidence = rule.curve.at(claimed(rule.claim, evidence));
    let lacks = |name: &&str| evidence.value(name).is_none();
    if rule.required.iter().any(lacks) {
        confidence = 0.0;
    }
    for need in rule.needs {
        confidence *= need.holds(evidence).unwrap_or(WITHOUT_NEED);
    }
    for weighed in rule.contradicts {
        confidence *= match together(weighed, evidence) {
            Some(holds) => 1.0 - weighed.weight * holds,
            // The absent figure is counted once, below.
            None if weighed.clues.iter().any(|clue| is_blind(rule, clue)) => 1.0,
            None => WITHOUT_CHECK,
        };
    }
    if rule.contradicts.iter().any(|it| is_suspect(it, evidence)) {
        confidence = confidence.min(UNDECIDED_MAX);
    }
    let possible = confidence;
    let unchecked = rule.blind.iter().filter(|(name, _)| lacks(name)).count();
    confidence *= WITHOUT_CHECK.powi(i32::try_from(unchecked).unwrap_or(i32::MAX));
    if let Some(wall) = evidence.value("time.wall") {
        confidence *= (wall / BRIEF_S).clamp(0.0, 1.0);
    }
    let verdict = Verdict {
        id: rule.id,
        confidence: confidence.clamp(0.0, 1.0),
        evidence: speaking_for(rule, evidence),
        contradicts: speaking_against(rule, evidence),
        cannot_tell: open_questions(rule, evidence),
        places: places(rule, evidence),
        next: filled_in(rule.next, evidence),
    };
    (verdict, possible)
}

/// Returns whether the figure of a clue is one of the rule's blind spots.
fn is_blind(rule: &Rule, clue: &Clue) -> bool {
    let mut blind = rule.blind.iter();
    blind.any(|&(name, _)| name == clue.figure.name())
}

/// The minimum share of the time that is left for a program whose cores others had.
const LEFT_MIN: f64 = 0.05;

/// Returns the share of the time that is claimed. The program's own parts are shares of the time
/// that it did not wait for cores which other programs had: they would be its parts without these.
fn claimed(claim: Claim, evidence: &Evidence) -> f64 {
    match claim {
        Claim::Parts(parts) => {
            let share_of = |(part, clues): &(Part, &[Clue])| {
                let holds = clues
                    .iter()
                    .map(|clue| clue.holds(evidence).unwrap_or(UNKNOWN));
                Some(part.share(evidence)? * holds.fold(1.0, f64::min))
            };
            let left = 1.0 - Part::Queue.share(evidence).unwrap_or(0.0);
            let claimed = parts.iter().filter_map(share_of).sum::<f64>();
            (claimed / left.max(LEFT_MIN)).min(1.0)
        }
        Claim::Largest(figures, parts) => {
            let figures = figures.iter().filter_map(|names| product(names, evidence));
            let parts = parts.iter().filter_map(|part| part.share(evidence));
            figures.chain(parts).fold(0.0, f64::max)
        }
    }
}

/// Returns the product of shares, and of a number of threads or cores, which counts only up to one.
fn product(names: &[&str], evidence: &Evidence) -> Option<f64> {
    let factors = names
        .iter()
        .map(|name| Some(evidence.value(name)?.clamp(0.0, 1.0)));
    factors.product()
}

/// Returns the degree to which all clues hold; `None` if the weakest known one holds and another
/// one is absent.
fn together(weighed: &Weighed, evidence: &Evidence) -> Option<f64> {
    let holds: Vec<Option<f64>> = weighed
        .clues
        .iter()
        .map(|clue| clue.holds(evidence))
        .collect();
    let weakest = holds.iter().flatten().copied().fold(1.0, f64::min);
    (weakest == 0.0 || holds.iter().all(Option::is_some)).then_some(weakest)
}

/// Returns whether all known clues hold fully while exactly one other figure is absent. Evidence on
/// something that no thread waits for, such as a lock where there is none, has several absent
/// figures.
fn is_suspect(weighed: &Weighed, evidence: &Evidence) -> bool {
    let holds = || weighed.clues.iter().map(|clue| clue.holds(evidence));
    let known = holds().flatten().count();
    let is_open = known > 0 && known + 1 == weighed.clues.len();
    is_open && holds().flatten().all(|holds| holds >= 1.0)
}

/// Returns the figures that the claim rests on, and the clues that hold at least by half.
fn speaking_for(rule: &Rule, evidence: &Evidence) -> Vec<Exhibit> {
    let mut shown = claim_exhibits(rule, evidence);
    for clue in rule.needs {
        if clue.holds(evidence).is_some_and(|holds| holds >= 0.5) {
            show(&mut shown, exhibit(clue, evidence));
        }
    }
    shown
}

/// Returns the figures that a claim rests on, the largest first.
fn claim_exhibits(rule: &Rule, evidence: &Evidence) -> Vec<Exhibit> {
    let threshold = rule.curve.threshold();
    let mut shown = Vec::new();
    match rule.claim {
        Claim::Parts(parts) => {
            let known = parts
                .iter()
                .filter_map(|&(part, clues)| Some((part.share(evidence)?, part, clues)));
            let mut known: Vec<_> = known.filter(|(share, ..)| *share >= 0.01).collect();
            known.sort_by(|a, b| b.0.total_cmp(&a.0));
            for (_, part, clues) in known {
                // The product of the first two is the share; a third one is how often it happens.
                let names = part.figures();
                let state = names.first().copied();
                if let Some(decides) = names.get(1) {
                    show(&mut shown, share(decides, state, threshold, evidence));
                }
                if let Some(state) = state {
                    show(&mut shown, share(state, None, threshold, evidence));
                }
                let held = clues.iter().filter(|clue| clue.holds(evidence) > Some(0.0));
                held.for_each(|clue| show(&mut shown, exhibit(clue, evidence)));
            }
        }
        Claim::Largest(figures, parts) => {
            let parts = parts.iter().flat_map(|part| part.figures());
            for name in figures.iter().copied().flatten().chain(parts) {
                if evidence.value(name).is_some() {
                    show(&mut shown, share(name, None, threshold, evidence));
                }
            }
        }
    }
    shown
}

/// Returns the needed clues that do not hold, and the contradictions that do.
fn speaking_against(rule: &Rule, evidence: &Evidence) -> Vec<Exhibit> {
    let mut shown = Vec::new();
    for need in rule.needs {
        if need.holds(evidence).is_some_and(|holds| holds < 0.5) {
            show(&mut shown, exhibit(need, evidence));
        }
    }
    for weighed in rule.contradicts {
        if together(weighed, evidence).is_some_and(|holds| holds > 0.0) {
            let clues = weighed.clues.iter();
            clues.for_each(|clue| show(&mut shown, exhibit(clue, evidence)));
        }
    }
    shown
}

/// Returns what absent figures would have shown, other absent figures that the rule uses, and its
/// limits.
fn open_questions(rule: &Rule, evidence: &Evidence) -> Vec<String> {
    let mut open = Vec::new();
    for (name, what) in rule.blind {
        if evidence.value(name).is_none() {
            let why = evidence.reading(name).map_or("not measured", |r| &r.source);
            open.push(format!("{what}: {name} is absent ({why})"));
        }
    }
    let is_blind = |name| rule.blind.iter().any(|&(blind, _)| blind == name);
    let others = looked_at(rule).into_iter().filter(|&name| !is_blind(name));
    open.extend(evidence.absent(others));
    open.extend(rule.limits.iter().map(|&limit| limit.to_owned()));
    open
}

/// Returns the names of all figures that a rule uses, except its blind spots.
pub(super) fn looked_at(rule: &Rule) -> Vec<&'static str> {
    let mut names = rule.required.to_vec();
    let mut clues: Vec<Clue> = rule.needs.to_vec();
    match rule.claim {
        Claim::Parts(parts) => {
            for (part, of) in parts {
                names.extend(part.figures());
                clues.extend(*of);
            }
        }
        Claim::Largest(figures, parts) => {
            names.extend(figures.iter().copied().flatten());
            names.extend(parts.iter().flat_map(|part| part.figures()));
        }
    }
    clues.extend(rule.contradicts.iter().flat_map(|weighed| weighed.clues));
    for clue in clues {
        match clue.figure {
            Quantity::One(name) => names.push(name),
            Quantity::Ratio(over, under) => names.extend([over, under]),
        }
    }
    names
}

/// Adds an exhibit unless its figure is already shown with this threshold.
fn show(shown: &mut Vec<Exhibit>, exhibit: Exhibit) {
    let same = |other: &Exhibit| other.metric == exhibit.metric;
    if !shown.iter().any(same) {
        shown.push(exhibit);
    }
}

fn exhibit(clue: &Clue, evidence: &Evidence) -> Exhibit {
    let reached = clue.holds(evidence).map(|holds| holds >= 1.0);
    reading(clue.figure.name(), clue.threshold(), reached, evidence)
}

/// Returns a share of the time that a claim rests on, which may count by its product with `state`.
fn share(
    name: &'static str,
    state: Option<&'static str>,
    threshold: f64,
    evidence: &Evidence,
) -> Exhibit {
    let text = match state {
        Some(state) => format!("× {state} > {threshold}"),
        None => format!("> {threshold}"),
    };
    let factor = state.map_or(Some(1.0), |state| evidence.value(state));
    let share = evidence.value(name).zip(factor);
    let reached = share.map(|(share, factor)| share * factor >= threshold);
    reading(name, text, reached, evidence)
}

fn reading(
    name: &'static str,
    threshold: String,
    reached: Option<bool>,
    evidence: &Evidence,
) -> Exhibit {
    let reading = evidence.reading(name);
    Exhibit {
        metric: name,
        value: reading.and_then(|reading| reading.value),
        unit: evidence::named(name).map_or("", |metric| metric.unit),
        threshold,
        source: reading.map_or_else(String::new, |reading| reading.source.clone()),
        quality: reading.map_or(Quality::Absent, |reading| reading.quality),
        reached,
    }
}

/// Replaces the names in braces in a text by figures.
fn filled_in(text: &str, evidence: &Evidence) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, tail) = after.split_once('}').unwrap_or((after, ""));
        filled.push_str(before);
        let figure = match name.split_once(':') {
            Some((name, _)) => evidence.reading(name).map(|reading| reading.source.clone()),
            None => evidence.value(name).map(|value| format!("{value:.0}")),
        };
        filled.push_str(&figure.unwrap_or_else(|| "unknown".to_owned()));
        rest = tail;
    }
    filled.push_str(rest);
    filled
}

/// Returns the places that a rule names, of all of its topics.
fn places(rule: &Rule, evidence: &Evidence) -> Vec<String> {
    let topics = rule.places.iter();
    topics
        .flat_map(|&topic| evidence.places(topic))
        .cloned()
        .collect()
}
