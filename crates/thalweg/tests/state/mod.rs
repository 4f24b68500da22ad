//! Control states: declared transitions, their log, their errors, and waits for them.

mod model;
mod texts;
mod waits;

use thalweg::state::{LOG_CAPACITY, Lifecycle, StateCell, StateSet};

use Lifecycle::{Draining, Paused, Running, Starting, Stopped};

#[test]
fn the_lifecycle_is_as_declared() {
    let declared = [
        (Starting, &[Running, Draining, Stopped][..]),
        (Running, &[Paused, Draining, Stopped]),
        (Paused, &[Running, Draining, Stopped]),
        (Draining, &[Stopped]),
        (Stopped, &[]),
    ];
    for (from, next) in declared {
        for (to, _) in declared {
            assert_eq!(
                from.can_change_to(to),
                next.contains(&to),
                "{from:?} to {to:?}"
            );
            let cell = StateCell::new("thing", from);
            let outcome = cell.change(from, to, "a test");
            assert_eq!(outcome.is_ok(), next.contains(&to));
            assert_eq!(cell.get(), if outcome.is_ok() { to } else { from });
        }
    }
}

#[test]
fn groups_are_asked_like_states() {
    let open: Vec<_> = Lifecycle::OPEN.states().collect();
    assert_eq!(open, [Running, Paused]);
    assert_eq!(Lifecycle::OPEN, StateSet::of(&[Paused, Running]));
    let ending = Lifecycle::ENDING;
    let cell = StateCell::new("thing", Paused);
    assert!(cell.is_within(Lifecycle::OPEN) && cell.is(Paused) && !cell.is(Running));
    cell.change_to(Draining, "a test").unwrap();
    assert!(cell.is_within(ending) && !cell.is_within(Lifecycle::OPEN));
}

#[test]
fn the_last_changes_are_logged() {
    let cell = StateCell::new("thing", Starting);
    assert_eq!(cell.changes(), []);
    cell.change(Starting, Running, "first").unwrap();
    assert_eq!(cell.change_to(Paused, "second"), Ok(Running));
    cell.change(Starting, Running, "refused").unwrap_err();
    cell.bump_version();
    cell.change_to(Running, "third").unwrap();
    let shown = |from: usize| {
        let changes = cell.view().changes().into_iter().skip(from);
        let changes = changes.map(|change| (change.number, change.from, change.to, change.why));
        changes.collect::<Vec<_>>()
    };
    let third = (3, Paused, Running, "third");
    let expected = [
        (1, Starting, Running, "first"),
        (2, Running, Paused, "second"),
        third,
    ];
    assert_eq!(shown(0), expected);
    for _ in 0..50 {
        cell.change_to(Paused, "again").unwrap();
        cell.change_to(Running, "again").unwrap();
    }
    assert_eq!(shown(LOG_CAPACITY - 1), [(103, Paused, Running, "again")]);
    let changes = cell.changes();
    assert_eq!(changes.len(), LOG_CAPACITY);
    assert!(changes.is_sorted_by_key(|change| (change.number, change.at_ns)));
    assert!(changes.is_sorted_by_key(|change| change.at_ns));
}

#[test]
fn a_version_changes_with_everything() {
    let cell = StateCell::new("thing", Running);
    let first = cell.version();
    assert_eq!((first, first.state()), (cell.version(), Running));
    cell.bump_version();
    let second = cell.version();
    assert!(second != first && second.state() == Running);
    cell.change_to(Paused, "a test").unwrap();
    cell.change_to(Running, "a test").unwrap();
    assert!(cell.version() != second && cell.version() != first);
}
