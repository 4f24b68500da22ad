//! A checker of linearizability: the search of J. Wing and C. Gong ("Testing and verifying
//! concurrent objects", 1993), which remembers where it was, as G. Lowe's does ("Testing for
//! linearizability", 2017).
//!
//! `stateright` has such a tester, too (0.31): it copies the rest of the history at every step, and
//! remembers nothing, so that six calls without an answer in a wrong history of 48 leave it without
//! a verdict after 15 s (November 2026); and it brings a server of web pages. `porcupine` has what
//! is needed, for programs in Go.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

/// An object that clients share, as it is where one call follows the other.
pub trait Object: Clone + Eq + Hash {
    /// A call.
    type Operation: Debug;
    /// An answer to a call.
    type Answer: PartialEq + Debug;

    /// PayloadOf out a call.
    fn apply(&mut self, operation: &Self::Operation) -> Self::Answer;
}

/// A call that a client made. Times are of one clock for all clients.
#[derive(Debug)]
pub struct Call<O: Object> {
    /// The call.
    pub operation: O::Operation,
    /// When the client made it.
    pub called: u64,
    /// When the answer came, and which; `None` where none came: it was carried out, or will be, or
    /// not.
    pub answer: Option<(u64, O::Answer)>,
}

/// Returns whether there is an order of the calls in which each comes between its call and its
/// answer, and which gives the answers that clients had.
///
/// Cost: a few steps for each call where few are under way at a time; in the worst case exponential
/// in the number of those that are, and of those without an answer.
pub fn is_linearizable<O: Object>(start: &O, history: &[Call<O>]) -> bool {
    let mut calls: Vec<&Call<O>> = history.iter().collect();
    calls.sort_by_key(|call| call.called);
    let mut search = Search {
        is_done: vec![false; calls.len()],
        calls,
        seen: HashSet::new(),
    };
    search.goes_on(start)
}

struct Search<'h, O: Object> {
    /// By the time of the call.
    calls: Vec<&'h Call<O>>,
    /// Which calls are in the order so far.
    is_done: Vec<bool>,
    /// The calls that were in the order, and the object after them, for each place of the search.
    seen: HashSet<(Vec<bool>, O)>,
}

impl<O: Object> Search<'_, O> {
    /// Returns whether the other calls can follow, where the object has come to this.
    fn goes_on(&mut self, object: &O) -> bool {
        let open = self.calls.iter().zip(&self.is_done);
        let open = open.filter(|(_, is_done)| !**is_done);
        let answered = open.filter_map(|(call, _)| call.answer.as_ref());
        // A call that was made after this answer came cannot be before it.
        let Some(first) = answered.map(|(at, _)| *at).min() else {
            return true;
        };
        for at in 0..self.calls.len() {
            let call = self.calls[at];
            if call.called > first {
                break;
            }
            if self.is_done[at] {
                continue;
            }
            let mut next = object.clone();
            let answer = next.apply(&call.operation);
            let may_be = match &call.answer {
                Some((_, given)) => *given == answer,
                // Without an effect it may as well not have happened.
                None => next != *object,
            };
            if !may_be {
                continue;
            }
            self.is_done[at] = true;
            let is_new = self.seen.insert((self.is_done.clone(), next.clone()));
            if is_new && self.goes_on(&next) {
                return true;
            }
            self.is_done[at] = false;
        }
        false
    }
}

/// An object of one bit, such as an order that is open or not: whether it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Presence(pub bool);

/// A call to a [`Presence`], which returns whether that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresenceCall {
    /// Puts it there, if it is not.
    Place,
    /// Takes it away, if it is there.
    Cancel,
    /// Succeeds if it is there.
    Look,
}

impl PresenceCall {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Place, Self::Cancel, Self::Look];
}

impl Object for Presence {
    type Operation = PresenceCall;
    type Answer = bool;

    fn apply(&mut self, operation: &PresenceCall) -> bool {
        let was_there = self.0;
        match operation {
            PresenceCall::Place => self.0 = true,
            PresenceCall::Cancel => self.0 = false,
            PresenceCall::Look => {}
        }
        was_there != matches!(operation, PresenceCall::Place)
    }
}

#[cfg(test)]
mod tests {
    use super::PresenceCall::{Cancel, Look, Place};
    use super::*;
    use crate::Random;

    fn call(operation: PresenceCall, called: u64, answer: Option<(u64, bool)>) -> Call<Presence> {
        Call {
            operation,
            called,
            answer,
        }
    }

    fn holds(history: &[Call<Presence>]) -> bool {
        is_linearizable(&Presence(false), history)
    }

    #[test]
    fn what_was_acknowledged_and_is_gone_is_refused() {
        let placed = call(Place, 1, Some((2, true)));
        assert!(holds(&[placed]));
        let again = [
            call(Place, 1, Some((2, true))),
            call(Place, 3, Some((4, true))),
        ];
        assert!(!holds(&again));
    }

    #[test]
    fn a_look_at_what_was_before_is_refused_unless_it_was_pending() {
        let history = |looked| {
            [
                call(Place, 1, Some((4, true))),
                call(Look, looked, Some((6, false))),
            ]
        };
        assert!(holds(&history(3)));
        assert!(!holds(&history(5)));
        // Two that look one after the other go the same way in time.
        let seen_and_gone = [
            call(Place, 1, Some((9, true))),
            call(Look, 2, Some((3, true))),
            call(Look, 4, Some((5, false))),
        ];
        assert!(!holds(&seen_and_gone));
    }

    #[test]
    fn a_call_without_an_answer_happened_once_or_not_at_all_and_at_any_time() {
        let seen = |looks: &[(u64, bool)]| {
            let looks = looks
                .iter()
                .map(|(at, there)| call(Look, *at, Some((at + 1, *there))));
            let all: Vec<_> = [call(Place, 1, None)].into_iter().chain(looks).collect();
            holds(&all)
        };
        assert!(seen(&[(3, false), (5, false)]));
        assert!(seen(&[(3, false), (5, true)]));
        assert!(!seen(&[(3, true), (5, false)]));
        assert!(!holds(&[
            call(Cancel, 1, None),
            call(Look, 2, Some((3, true)))
        ]));
    }

    /// Looks at every order of some of the calls.
    fn holds_by_force(object: Presence, rest: &[&Call<Presence>]) -> bool {
        let answers = rest.iter().filter_map(|call| call.answer);
        let Some(first) = answers.map(|(at, _)| at).min() else {
            return true;
        };
        (0..rest.len()).any(|at| {
            let mut next = object;
            let answer = next.apply(&rest[at].operation);
            let is_right = rest[at].answer.is_none_or(|(_, given)| given == answer);
            let others: Vec<_> = [&rest[..at], &rest[at + 1..]].concat();
            is_right && rest[at].called <= first && holds_by_force(next, &others)
        })
    }

    #[test]
    fn the_search_agrees_with_a_look_at_every_order() {
        let mut random = Random(7);
        let mut verdicts = [0; 2];
        for _ in 0..20_000 {
            let history: Vec<Call<Presence>> = (0..2 + random.below(5))
                .map(|_| {
                    let called = random.below(12);
                    let at = called + 1 + random.below(6);
                    let is_answered = !random.one_in(5);
                    let answer = is_answered.then(|| (at, random.one_in(2)));
                    call(PresenceCall::ALL[random.below(3) as usize], called, answer)
                })
                .collect();
            let all: Vec<_> = history.iter().collect();
            let found = holds(&history);
            assert_eq!(found, holds_by_force(Presence(false), &all), "{history:#?}");
            verdicts[usize::from(found)] += 1;
        }
        assert!(verdicts.iter().all(|count| *count > 2_000), "{verdicts:?}");
    }
}
