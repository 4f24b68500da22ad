//! Random steps, beside a plain model of a cell and of its waiters.

use std::future::Future;
use std::pin::Pin;

use futures_util::FutureExt;
use proptest::prelude::*;
use thalweg::state::{ChangeError, StateCell, StateSet, States, Unreachable};

use super::{Lifecycle, Ring};

#[derive(Debug, Clone)]
enum Step {
    Change(u8, u8),
    ChangeTo(u8),
    Touch,
    Wait(u64),
}

fn step(states: u8) -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..states, 0..states).prop_map(|(from, to)| Step::Change(from, to)),
        4 => (0..states).prop_map(Step::ChangeTo),
        1 => Just(Step::Touch),
        3 => (1..1_u64 << states).prop_map(Step::Wait),
    ]
}

type Waiting<'c, S> = Pin<Box<dyn Future<Output = Result<(), Unreachable<S>>> + Send + 'c>>;

/// Returns whether some sequence of declared transitions leads from one state to one of a group.
fn leads_to<S: States>(from: S, wanted: StateSet<S>, passed: &mut Vec<S>) -> bool {
    let next = S::TABLE
        .iter()
        .map(|declared| declared.state)
        .filter(|&to| from.can_change_to(to));
    for to in next.collect::<Vec<_>>() {
        if wanted.contains(to) {
            return true;
        }
        if !passed.contains(&to) {
            passed.push(to);
            if leads_to(to, wanted, passed) {
                return true;
            }
        }
    }
    false
}

fn allowed<S: States>(now: S, from: S, to: S) -> Result<(), ChangeError<S>> {
    let of = "thing";
    match from.can_change_to(to) {
        true if from == now => Ok(()),
        true => Err(ChangeError::WrongState {
            of,
            expected: from,
            found: now,
            to,
        }),
        false => Err(ChangeError::NotDeclared { of, from, to }),
    }
}

/// Waiters with what they wait for, and how many states there had been before.
type Waiters<'c, S> = Vec<(Waiting<'c, S>, usize, StateSet<S>)>;

/// Polls all: those whose wait is not over.
fn still_waiting<'c, S: States>(
    waiters: Waiters<'c, S>,
    history: &[S],
) -> Result<Waiters<'c, S>, TestCaseError> {
    let now = *history.last().expect("it has a first state");
    let mut left = Vec::new();
    for (mut waiting, since, wanted) in waiters {
        let has_been = history[since..].iter().any(|&state| wanted.contains(state));
        let expected = match has_been {
            true => Some(Ok(())),
            false if leads_to(now, wanted, &mut Vec::new()) => None,
            false => Some(Err(Unreachable {
                of: "thing",
                found: now,
                wanted,
            })),
        };
        prop_assert_eq!(waiting.as_mut().now_or_never(), expected);
        if expected.is_none() {
            left.push((waiting, since, wanted));
        }
    }
    Ok(left)
}

/// Every state from the beginning on; the last one is the present one.
fn run<S: States>(steps: &[Step]) -> Result<(), TestCaseError> {
    let cell = StateCell::new("thing", S::from_number(0)).with_log_capacity(3);
    let mut history = vec![S::from_number(0)];
    let mut waiters = Waiters::new();
    let mut version = cell.version();
    for step in steps {
        let now = *history.last().expect("it has a first state");
        let is_new = match *step {
            Step::Change(from, to) => {
                let (from, to) = (S::from_number(from), S::from_number(to));
                let expected = allowed(now, from, to);
                prop_assert_eq!(cell.change(from, to, "change"), expected);
                history.extend(expected.ok().map(|()| to));
                expected.is_ok()
            }
            Step::ChangeTo(to) => {
                let to = S::from_number(to);
                let outcome = cell.change_to(to, "change to");
                prop_assert_eq!(outcome.ok(), now.can_change_to(to).then_some(now));
                history.extend(now.can_change_to(to).then_some(to));
                now.can_change_to(to)
            }
            Step::Touch => {
                cell.bump_version();
                true
            }
            Step::Wait(wanted) => {
                let wanted = StateSet::from_bits(wanted);
                waiters.push((
                    Box::pin(cell.wait_for_async(wanted)),
                    history.len() - 1,
                    wanted,
                ));
                false
            }
        };
        let now = *history.last().expect("it has a first state");
        prop_assert_eq!(cell.get(), now);
        prop_assert_eq!(cell.version() != version, is_new);
        version = cell.version();
        let log: Vec<_> = cell
            .changes()
            .iter()
            .map(|change| (change.from, change.to))
            .collect();
        let changes: Vec<_> = history.windows(2).map(|pair| (pair[0], pair[1])).collect();
        prop_assert_eq!(&log[..], &changes[changes.len().saturating_sub(3)..]);
        waiters = still_waiting(waiters, &history)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(512)))]

    #[test]
    fn a_lifecycle_is_like_its_model(steps in prop::collection::vec(step(5), 0..60)) {
        run::<Lifecycle>(&steps)?;
    }

    #[test]
    fn states_that_return_are_like_their_model(steps in prop::collection::vec(step(4), 0..60)) {
        run::<Ring>(&steps)?;
    }
}
