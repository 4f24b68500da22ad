//! The token of a select, by which exactly one of its arms fires.
//!
//! # Rules
//! 1. A thread that lets an arm of a waiting select fire takes the select's token first, and holds
//!    the lock of the arm's rendezvous while it does.
//! 2. A thread that needs two tokens, since it waits in a select itself, locks them in the order of
//!    their numbers, and takes both or none. A thread that holds a token's lock locks nothing but a
//!    second token.
//! 3. A select shuts its token before it fires an arm itself, or leaves.
//!
//! # Why it works
//! By rule 2 the waits for locks have no cycle, and no thread sees a token that is taken and later
//! is not. So of two selects with arms for each other, the second one fires both; neither backs off
//! to let the other try, which both could do for ever.

use crate::ring::sync::{Arc, Mutex, MutexGuard, fault, lock};
// Not the model's: it distinguishes tokens, and synchronizes nothing.
use crate::wait::Lent;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The select waits.
    Open,
    /// This arm fires.
    Taken(usize),
    /// The select does not wait any more.
    Shut,
}

#[derive(Debug)]
pub(in crate::channel) struct Token {
    number: u64,
    state: Mutex<State>,
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Token {
    fn new() -> Self {
        Self {
            // ORDERING: Relaxed; only that no two are equal matters.
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(State::Shut),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Opens the token: the select waits from now on.
    pub(in crate::channel) fn open(&self) {
        *self.state() = State::Open;
    }

    /// Ends the wait of the select; returns the arm that another thread has fired.
    pub(in crate::channel) fn shut(&self) -> Option<usize> {
        match std::mem::replace(&mut *self.state(), State::Shut) {
            State::Taken(arm) => Some(arm),
            State::Open | State::Shut => None,
        }
    }

    fn is_open(&self) -> bool {
        *self.state() == State::Open
    }
}

std::thread_local! {
    /// The thread's last token, for its next select.
    static KEPT: Cell<Option<Arc<Token>>> = const { Cell::new(None) };
}

/// A token for the time of a select. Allocates for the first of a thread, and for a select within
/// a select.
pub(in crate::channel) type LentToken = Lent<Arc<Token>>;

pub(in crate::channel) fn lend() -> LentToken {
    Lent::new(&KEPT, || Arc::new(Token::new()))
}

/// One arm of a waiting select.
#[derive(Debug, Clone)]
pub(in crate::channel) struct ArmRef {
    token: Arc<Token>,
    arm: usize,
}

impl ArmRef {
    /// Returns a reference to an arm by its select's token.
    pub(in crate::channel) fn of(token: &Arc<Token>, arm: usize) -> Self {
        let token = Arc::clone(token);
        Self { token, arm }
    }
}

/// The outcome of the attempt to take both tokens of a rendezvous.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Both,
    /// The other side does not wait any more, or is an arm of the same select.
    OtherGone,
    /// This thread's own select has been fired by another thread.
    OwnGone,
}

/// Takes the tokens of two sides, as far as they have one.
pub(super) fn claim(own: Option<&ArmRef>, other: Option<&ArmRef>) -> Claim {
    let (own, other) = match (own, other) {
        (None, None) => return Claim::Both,
        (Some(own), None) => return claim_one(own, Claim::OwnGone),
        (None, Some(other)) => return claim_one(other, Claim::OtherGone),
        (own @ Some(_), other @ Some(_)) if is_same_select(own, other) => return Claim::OtherGone,
        (Some(own), Some(other)) => (own, other),
    };
    let (mut own_state, mut other_state);
    if own.token.number < other.token.number {
        own_state = own.token.state();
        other_state = other.token.state();
    } else {
        other_state = other.token.state();
        own_state = own.token.state();
    }
    if *own_state != State::Open {
        return Claim::OwnGone;
    }
    if *other_state != State::Open {
        return Claim::OtherGone;
    }
    *own_state = State::Taken(own.arm);
    *other_state = State::Taken(other.arm);
    Claim::Both
}

fn claim_one(arm_ref: &ArmRef, gone: Claim) -> Claim {
    let mut state = arm_ref.token.state();
    if fault::is("select_token") {
        *state = State::Open;
    }
    if *state != State::Open {
        return gone;
    }
    *state = State::Taken(arm_ref.arm);
    Claim::Both
}

/// Returns whether both are arms of one select.
fn is_same_select(one: Option<&ArmRef>, other: Option<&ArmRef>) -> bool {
    let number = |arm_ref: &ArmRef| arm_ref.token.number;
    one.is_some() && one.map(number) == other.map(number)
}

/// Returns whether a side is still available at this moment.
pub(super) fn is_open(arm_ref: Option<&ArmRef>) -> bool {
    arm_ref.is_none_or(|arm_ref| arm_ref.token.is_open())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn arm_ref(arm: usize) -> ArmRef {
        let token = Arc::new(Token::new());
        token.open();
        ArmRef { token, arm }
    }

    #[test]
    fn both_tokens_are_taken_or_none() {
        let (one, two, three) = (arm_ref(1), arm_ref(2), arm_ref(3));
        assert_eq!(claim(Some(&two), Some(&two)), Claim::OtherGone, "itself");
        assert_eq!(claim(Some(&two), Some(&one)), Claim::Both);
        assert_eq!(claim(Some(&three), Some(&one)), Claim::OtherGone);
        assert_eq!(claim(Some(&one), Some(&three)), Claim::OwnGone);
        assert!(is_open(Some(&three)) && !is_open(Some(&one)) && is_open(None));
        assert_eq!((one.token.shut(), two.token.shut()), (Some(1), Some(2)));
        assert_eq!(claim(None, Some(&one)), Claim::OtherGone);
        assert_eq!(claim(Some(&three), None), Claim::Both);
        assert_eq!(claim(Some(&three), None), Claim::OwnGone);
    }

    #[test]
    fn a_token_is_kept_for_the_next_select() {
        let mut lent = lend();
        assert!(lent.get().is_none());
        let number = lent.fetch().number;
        let mut inner = lend();
        assert_ne!(inner.fetch().number, number);
        drop(inner);
        drop(lent);
        assert_eq!(lend().fetch().number, number);
    }
}
