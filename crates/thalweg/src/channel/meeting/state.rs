//! Who waits at a meeting, and who gets what.

use super::token::{Claim, Stake, claim, is_open};
use std::collections::VecDeque;
use std::task::Waker;

/// Waits of each side, and elements on their way, for which there is room without allocating.
const WAITS_MIN: usize = 8;

/// The number of one wait, from its listing until it leaves. No two waits of a meeting have the
/// same.
pub(in crate::channel) type Seat = u64;

/// One that waits: a sender with its element, a receiver with nothing.
pub(super) struct Waiting<E> {
    seat: Seat,
    pub(super) element: E,
    pub(super) waker: Option<Waker>,
    pub(super) stake: Option<Stake>,
}

/// Those who wait, as they came: by rising numbers.
pub(super) type Queue<E> = VecDeque<Waiting<E>>;

pub(super) struct State<T> {
    pub(super) offers: Queue<T>,
    pub(super) wishes: Queue<()>,
    /// What wishes got that have not left yet.
    handed: Vec<(Seat, T)>,
    back: VecDeque<T>,
    /// Waits listed ever; also the number of the last one.
    pub(super) seated: u64,
    /// Elements handed over.
    met: u64,
    /// Elements that came back, ever.
    returned: u64,
    pub(super) woken: u64,
    pub(super) is_closed: bool,
}

/// What a sender finds.
pub(super) enum Handed<T> {
    To(Option<Waker>),
    ToNobody(T),
    Gone(T),
}

/// What a receiver finds.
pub(super) enum Taken<T> {
    From(T, Option<Waker>),
    FromNobody,
    Gone,
}

/// The wait with this number, unless it was served.
pub(super) fn find<E>(queue: &Queue<E>, seat: Seat) -> Option<usize> {
    queue.binary_search_by_key(&seat, |wait| wait.seat).ok()
}

impl<T> State<T> {
    pub(super) fn new() -> Self {
        Self {
            offers: VecDeque::with_capacity(WAITS_MIN),
            wishes: VecDeque::with_capacity(WAITS_MIN),
            handed: Vec::with_capacity(WAITS_MIN),
            back: VecDeque::new(),
            seated: 0,
            met: 0,
            returned: 0,
            woken: 0,
            is_closed: false,
        }
    }

    /// A wait with the next number.
    pub(super) fn seat<E>(
        &mut self,
        element: E,
        waker: Waker,
        stake: Option<Stake>,
    ) -> (Seat, Waiting<E>) {
        self.seated += 1;
        let wait = Waiting {
            seat: self.seated,
            element,
            waker: Some(waker),
            stake,
        };
        (self.seated, wait)
    }

    /// Gives the element to the first receiver that can be had.
    pub(super) fn hand(&mut self, value: T, own: Option<&Stake>) -> Handed<T> {
        let wish = match serve(&mut self.wishes, own) {
            Ok(Some(wish)) => wish,
            Ok(None) => return Handed::ToNobody(value),
            Err(OwnGone) => return Handed::Gone(value),
        };
        self.handed.push((wish.seat, value));
        self.met += 1;
        self.woken += 1;
        Handed::To(wish.waker)
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
            return Taken::FromNobody;
        }
        match serve(&mut self.offers, own) {
            Ok(Some(offer)) => {
                self.met += 1;
                self.woken += 1;
                Taken::From(offer.element, offer.waker)
            }
            Ok(None) => Taken::FromNobody,
            Err(OwnGone) => Taken::Gone,
        }
    }

    /// What a wish got that is not in the queue any more.
    pub(super) fn collect(&mut self, seat: Seat) -> Option<T> {
        let at = self.handed.iter().position(|(of, _)| *of == seat)?;
        Some(self.handed.swap_remove(at).1)
    }

    /// Takes an element back that somebody got who does not want it any more.
    pub(super) fn give_back(&mut self, value: T) -> Option<Waker> {
        match self.hand(value, None) {
            Handed::To(waker) => {
                // It was counted when it was handed over first.
                self.met -= 1;
                waker
            }
            Handed::ToNobody(value) | Handed::Gone(value) => {
                self.back.push_back(value);
                self.returned += 1;
                None
            }
        }
    }

    /// Whether a receiver waits that can be had.
    pub(super) fn can_push(&self) -> bool {
        self.wishes.iter().any(|wish| is_open(wish.stake.as_ref()))
    }

    /// Whether a sender waits that can be had, or an element came back.
    pub(super) fn can_pop(&self) -> bool {
        let is_had = |offer: &Waiting<T>| is_open(offer.stake.as_ref());
        !self.back.is_empty() || (!self.is_closed && self.offers.iter().any(is_had))
    }

    /// Elements that came back and are still there.
    pub(super) fn len(&self) -> usize {
        self.back.len()
    }

    pub(super) fn met(&self) -> u64 {
        self.met
    }

    /// Elements that receivers got.
    pub(super) fn popped(&self) -> u64 {
        self.met - self.back.len() as u64
    }

    /// A count that grows with everything that makes either side ready.
    pub(super) fn moves(&self) -> u64 {
        self.seated + self.returned
    }
}

/// Another arm of one's own select fires.
struct OwnGone;

/// Takes the first off the queue that can be had.
fn serve<E>(queue: &mut Queue<E>, own: Option<&Stake>) -> Result<Option<Waiting<E>>, OwnGone> {
    for at in 0..queue.len() {
        match claim(own, queue[at].stake.as_ref()) {
            Claim::OtherGone => {}
            Claim::OwnGone => return Err(OwnGone),
            Claim::Both => return Ok(queue.remove(at)),
        }
    }
    Ok(None)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn who_came_first_is_served_first_and_anybody_may_leave() {
        let mut state = State::<u64>::new();
        let mut list = |n| {
            let (seat, offer) = state.seat(n, Waker::noop().clone(), None);
            state.offers.push_back(offer);
            seat
        };
        let seats = [10, 11, 12, 13].map(&mut list);
        let at = find(&state.offers, seats[1]).unwrap();
        assert_eq!(state.offers.remove(at).unwrap().element, 11);
        assert_eq!(find(&state.offers, seats[1]), None, "it left");
        let mut take = || match state.take(None) {
            Taken::From(value, _) => Some(value),
            _ => None,
        };
        assert_eq!(
            [take(), take(), take(), take()],
            [Some(10), Some(12), Some(13), None]
        );
        assert_eq!((state.met(), state.popped(), state.moves()), (3, 3, 4));
    }
}
