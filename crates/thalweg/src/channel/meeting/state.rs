//! Who waits at a meeting, and who gets what.

use super::roster::{Answer, Roster, Served};
use super::token::{Claim, Stake, claim};
use std::collections::VecDeque;
use std::task::Waker;

/// Who waits.
pub(super) struct Waiting {
    /// Taken by who wakes it.
    pub(super) waker: Option<Waker>,
    pub(super) stake: Option<Stake>,
}

pub(super) struct Offer<T> {
    pub(super) value: T,
    pub(super) who: Waiting,
}

pub(super) struct Wish<T> {
    pub(super) place: Option<T>,
    pub(super) who: Waiting,
}

pub(super) struct State<T> {
    pub(super) offers: Roster<Offer<T>>,
    pub(super) wishes: Roster<Wish<T>>,
    pub(super) back: VecDeque<T>,
    /// Elements handed over.
    pub(super) met: u64,
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

impl<T> State<T> {
    pub(super) fn new() -> Self {
        Self {
            offers: Roster::new(),
            wishes: Roster::new(),
            back: VecDeque::new(),
            met: 0,
            woken: 0,
            is_closed: false,
        }
    }

    /// Gives the element to the first receiver that can be had.
    pub(super) fn hand(&mut self, value: T, own: Option<&Stake>) -> Handed<T> {
        let mut value = Some(value);
        let mut waker = None;
        let served = self
            .wishes
            .serve(|wish| match claim(own, wish.who.stake.as_ref()) {
                Claim::OtherGone => Answer::Next,
                Claim::OwnGone => Answer::Stop,
                Claim::Both => {
                    wish.place = value.take();
                    waker = wish.who.waker.take();
                    Answer::Take
                }
            });
        match (served, value) {
            (Served::Stopped, Some(value)) => Handed::Gone(value),
            (_, Some(value)) => Handed::ToNobody(value),
            (_, None) => {
                self.met += 1;
                self.woken += 1;
                Handed::To(waker)
            }
        }
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
        let served = self
            .offers
            .serve(|offer| match claim(own, offer.who.stake.as_ref()) {
                Claim::OtherGone => Answer::Next,
                Claim::OwnGone => Answer::Stop,
                Claim::Both => Answer::Take,
            });
        let seat = match served {
            Served::Nobody => return Taken::FromNobody,
            Served::Stopped => return Taken::Gone,
            Served::Seat(seat) => seat,
        };
        match self.offers.remove(seat) {
            Some(offer) => {
                self.met += 1;
                self.woken += 1;
                Taken::From(offer.value, offer.who.waker)
            }
            None => Taken::FromNobody,
        }
    }

    /// Elements that receivers got.
    pub(super) fn popped(&self) -> u64 {
        self.met - self.back.len() as u64
    }
}
