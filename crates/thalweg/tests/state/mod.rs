//! Control states: declared transitions, their log, their errors, and waits for them.

mod model;
mod texts;
mod waits;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use thalweg::state::{
    Change, LOG_CAPACITY_DEFAULT, Lifecycle, StateCell, StateInfo, StateSet, States,
};

use Lifecycle::{Draining, Paused, Running, Starting, Stopped};

thalweg::states! {
    /// States that are left and entered again for ever, but for one.
    pub(crate) enum Ring {
        A "a" => [B, A],
        B "b" => [C, D],
        C "c" => [A],
        D "d" => [],
    }
    pub(crate) set TURNING = [A, B, C];
}

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
    assert_eq!(Lifecycle::OPEN, [Paused, Running].into_iter().collect());
    let ending = Lifecycle::ENDING;
    assert_eq!(ending.union(Running.into()), Lifecycle::RUNNING_OR_ENDING);
    assert!(!ending.intersects(Lifecycle::OPEN) && ending.intersects(Stopped.into()));
    let cell = StateCell::new("thing", Paused);
    assert!(cell.is_within(Lifecycle::OPEN) && cell.is(Paused) && !cell.is(Running));
    cell.change_to(Draining, "a test").unwrap();
    assert!(cell.is_within(ending) && !cell.is_within(Lifecycle::OPEN));
}

#[test]
fn changes_are_logged_by_the_clock_given() {
    let clock = Arc::new(AtomicU64::new(100));
    let theirs = Arc::clone(&clock);
    let cell = StateCell::new("thing", Starting)
        .with_log_capacity(2)
        .with_clock(move || theirs.load(SeqCst));
    cell.change(Starting, Running, "first").unwrap();
    // A clock that goes back does not make a change older than the one before it.
    clock.store(70, SeqCst);
    assert_eq!(cell.change_to(Paused, "second"), Ok(Running));
    cell.change(Starting, Running, "refused").unwrap_err();
    cell.bump_version();
    let change = |number, from, to, why| Change {
        number,
        from,
        to,
        at_ns: 100,
        why,
    };
    let (first, second) = (
        change(1, Starting, Running, "first"),
        change(2, Running, Paused, "second"),
    );
    assert_eq!(cell.changes(), [first, second]);
    clock.store(101, SeqCst);
    cell.change_to(Stopped, "third").unwrap();
    let third = Change {
        at_ns: 101,
        ..change(3, Paused, Stopped, "third")
    };
    assert_eq!(cell.view().changes(), [second, third]);

    let cell = StateCell::new("thing", Ring::A);
    (0..100).for_each(|_| _ = cell.change_to(Ring::A, "again").unwrap());
    let numbers: Vec<u64> = cell.changes().iter().map(|change| change.number).collect();
    assert_eq!(
        numbers,
        (101 - LOG_CAPACITY_DEFAULT as u64..=100).collect::<Vec<_>>()
    );
    let cell = StateCell::new("thing", Ring::A).with_log_capacity(0);
    cell.change_to(Ring::B, "not logged").unwrap();
    assert_eq!(cell.changes(), []);
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

/// Tables that contradict themselves, declared by hand.
macro_rules! unsound {
    ($($name:ident: $States:ident $table:expr;)+) => {$(
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        struct $States(u8);

        impl States for $States {
            const TABLE: &'static [StateInfo<Self>] = $table;

            fn number(self) -> u8 {
                self.0
            }

            fn from_number(number: u8) -> Self {
                Self(number)
            }
        }

        #[test]
        #[should_panic(expected = "the states of the thing are numbered as they are declared")]
        fn $name() {
            StateCell::new("thing", $States(0));
        }
    )+};
}

const fn declared<S>(state: S, next: u64) -> StateInfo<S> {
    StateInfo {
        state,
        name: "state",
        next: StateSet::from_bits(next),
    }
}

unsound! {
    a_table_without_states_is_refused: Empty &[];
    a_table_in_another_order_is_refused: Swapped &[
        declared(Self(1), 0), declared(Self(0), 0),
    ];
    a_table_that_leads_out_of_itself_is_refused: Leading &[declared(Self(0), 0b11)];
}
