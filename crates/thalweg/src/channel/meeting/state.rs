//! Waiting senders and receivers of a meeting, and which gets what.

use super::token::{Claim, Stake, claim, is_kin, is_open};
use crate::wait::{Entry, Roster, Wait};
use std::collections::VecDeque;
use std::task::Waker;

/// Waits of each side, and elements on their way, for which there is room without allocating.
const WAITS_MIN: usize = 8;

pub(super) struct State<T> {
    /// Senders with their elements, and receivers; each perhaps as an arm of a select.
    pub(super) offers: Roster<(T, Option<Stake>)>,
    pub(super) requests: Roster<((), Option<Stake>)>,
    /// The elements that waiting receivers got, as long as these have not left.
    handed: Vec<(Entry, T)>,
    back: VecDeque<T>,
    /// Elements handed over.
    pub(super) met: u64,
    /// Elements that came back, ever.
    returned: u64,
    pub(super) woken: u64,
    pub(super) is_closed: bool,
}

/// The outcome of a sender's look for a receiver.
pub(super) enum Handed<T> {
    To(Option<Waker>),
    NoReceiver(T),
    Gone(T),
}

/// The outcome of a receiver's look for a sender.
pub(super) enum Taken<T> {
    From(T, Option<Waker>),
    NoSender,
    Gone,
}

impl<T> State<T> {
    pub(super) fn new() -> Self {
        Self {
            offers: Roster::default(),
            requests: Roster::default(),
            handed: Vec::with_capacity(WAITS_MIN),
            back: VecDeque::new(),
            met: 0,
            returned: 0,
            woken: 0,
            is_closed: false,
        }
    }

    /// Gives the element to the first receiver that can be had.
    pub(super) fn hand(&mut self, value: T, own: Option<&Stake>) -> Handed<T> {
        let request = match serve(&mut self.requests, own) {
            Ok(Some(request)) => request,
            Ok(None) => return Handed::NoReceiver(value),
            Err(OwnGone) => return Handed::Gone(value),
        };
        self.handed.push((request.entry, value));
        self.met += 1;
        self.woken += 1;
        Handed::To(request.waker)
    }

    /// Takes the element of the first sender that can be had.
    pub(super) fn take(&mut self, own: Option<&Stake>) -> Taken<T> {
        if !self.back.is_empty() {
            if claim(own, None) != Claim::Both {
                return Taken::Gone;
            }
            if let Some(value) = self.back.pop_front() {
                return Taken::From(value, None);
            }
        }
        if self.is_closed {
            // Senders that are still listed have been woken, and take their elements back.
            return Taken::NoSender;
        }
        match serve(&mut self.offers, own) {
            Ok(Some(offer)) => {
                self.met += 1;
                self.woken += 1;
                Taken::From(offer.element.0, offer.waker)
            }
            Ok(None) => Taken::NoSender,
            Err(OwnGone) => Taken::Gone,
        }
    }

    /// Takes the element of a request that is not in the queue any more.
    pub(super) fn collect(&mut self, seat: Entry) -> Option<T> {
        let at = self.handed.iter().position(|(of, _)| *of == seat)?;
        Some(self.handed.swap_remove(at).1)
    }

    /// Takes an element back from a receiver that does not want it any more.
    pub(super) fn give_back(&mut self, value: T) -> Option<Waker> {
        match self.hand(value, None) {
            Handed::To(waker) => {
                // It was counted when it was handed over first.
                self.met -= 1;
                waker
            }
            Handed::NoReceiver(value) | Handed::Gone(value) => {
                self.back.push_back(value);
                self.returned += 1;
                None
            }
        }
    }

    /// Returns whether a receiver waits that can be had, and is not of one's own select.
    pub(super) fn can_push(&self, own: Option<&Stake>) -> bool {
        let mut requests = self.requests.waits();
        requests.any(|request| is_had(request) && !is_kin(own, request.element.1.as_ref()))
    }

    /// Returns whether a sender waits that can be had, or an element came back.
    pub(super) fn can_pop(&self) -> bool {
        !self.back.is_empty() || (!self.is_closed && self.offers.waits().any(is_had))
    }

    /// Returns the number of elements that came back and are still there.
    pub(super) fn len(&self) -> usize {
        self.back.len()
    }

    /// Returns the number of elements that receivers got.
    pub(super) fn popped(&self) -> u64 {
        self.met - self.back.len() as u64
    }

    /// Waits listed ever.
    pub(super) fn seated(&self) -> u64 {
        self.offers.listed + self.requests.listed
    }

    /// Returns a count that grows with everything that makes either side ready.
    pub(super) fn moves(&self) -> u64 {
        self.seated() + self.returned
    }
}

/// Another arm of one's own select fires.
struct OwnGone;

/// Returns whether a waiting end is still available.
fn is_had<E>(wait: &Wait<(E, Option<Stake>)>) -> bool {
    is_open(wait.element.1.as_ref())
}

/// A wait, with what it brought and its stake.
type Served<E> = Wait<(E, Option<Stake>)>;

/// Takes the first that can be had.
fn serve<E>(
    roster: &mut Roster<(E, Option<Stake>)>,
    own: Option<&Stake>,
) -> Result<Option<Served<E>>, OwnGone> {
    let mut at = 0;
    for wait in roster.waits() {
        match claim(own, wait.element.1.as_ref()) {
            Claim::OtherGone => at += 1,
            Claim::OwnGone => return Err(OwnGone),
            Claim::Both => break,
        }
    }
    Ok(roster.take(at))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_came_first_is_served_first_and_anybody_may_leave() {
        let mut state = State::<u64>::new();
        let mut list = |n| state.offers.push(None, (n, None));
        let seats = [10, 11, 12, 13].map(&mut list);
        assert_eq!(state.offers.remove(seats[1]).unwrap().element.0, 11);
        assert!(state.offers.remove(seats[1]).is_none(), "it left");
        let mut take = || match state.take(None) {
            Taken::From(value, _) => Some(value),
            _ => None,
        };
        assert_eq!(
            [take(), take(), take(), take()],
            [Some(10), Some(12), Some(13), None]
        );
        assert_eq!((state.met, state.popped(), state.moves()), (3, 3, 4));
    }
}
