//! Random steps, beside a plain model of a cell and of its waiters.

use std::future::Future;
use std::pin::Pin;

use futures_util::FutureExt;
use proptest::prelude::*;
use thalweg::state::{ChangeError, LOG_CAPACITY, Lifecycle, StateCell, StateSet, Unreachable};

use Lifecycle::{Draining, Paused, Running, Starting, Stopped};

const STATES: [Lifecycle; 5] = [Starting, Running, Paused, Draining, Stopped];

#[derive(Debug, Clone)]
enum Step {
    Change(Lifecycle, Lifecycle),
    ChangeTo(Lifecycle),
    Touch,
    Wait(Vec<Lifecycle>),
}

fn step() -> impl Strategy<Value = Step> {
    // Most runs would end early if all states were as likely.
    let state = || {
        prop_oneof![1 => Just(Starting), 9 => Just(Running), 9 => Just(Paused),
        1 => Just(Draining), 1 => Just(Stopped)]
    };
    prop_oneof![
        4 => (state(), state()).prop_map(|(from, to)| Step::Change(from, to)),
        4 => state().prop_map(Step::ChangeTo),
        1 => Just(Step::Touch),
        3 => prop::sample::subsequence(&STATES[..], 1..=5).prop_map(Step::Wait),
    ]
}

type Waiting<'c> = Pin<Box<dyn Future<Output = Result<(), Unreachable>> + Send + 'c>>;

/// Returns whether some sequence of declared transitions leads from one state to one of a group.
fn leads_to(from: Lifecycle, wanted: StateSet, passed: &mut Vec<Lifecycle>) -> bool {
    for to in STATES.into_iter().filter(|&to| from.can_change_to(to)) {
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

fn allowed(now: Lifecycle, from: Lifecycle, to: Lifecycle) -> Result<(), ChangeError> {
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
type Waiters<'c> = Vec<(Waiting<'c>, usize, StateSet)>;

/// Polls all: those whose wait is not over.
fn still_waiting<'c>(
    waiters: Waiters<'c>,
    history: &[Lifecycle],
) -> Result<Waiters<'c>, TestCaseError> {
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
fn run(steps: &[Step]) -> Result<(), TestCaseError> {
    let cell = StateCell::new("thing", Starting);
    let mut history = vec![Starting];
    let mut waiters = Waiters::new();
    let mut version = cell.version();
    for step in steps {
        let now = *history.last().expect("it has a first state");
        let is_new = match step {
            &Step::Change(from, to) => {
                let expected = allowed(now, from, to);
                prop_assert_eq!(cell.change(from, to, "change"), expected);
                history.extend(expected.ok().map(|()| to));
                expected.is_ok()
            }
            &Step::ChangeTo(to) => {
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
                let wanted = StateSet::of(wanted);
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
        prop_assert_eq!(
            &log[..],
            &changes[changes.len().saturating_sub(LOG_CAPACITY)..]
        );
        waiters = still_waiting(waiters, &history)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(512)))]

    #[test]
    fn a_cell_is_like_its_model(steps in prop::collection::vec(step(), 0..120)) {
        run(&steps)?;
    }
}
