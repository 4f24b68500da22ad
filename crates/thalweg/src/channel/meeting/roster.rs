//! Who waits at a meeting, in order of arrival: a list inside a vector of seats.

/// Seats that are there without allocating.
const SEATS_MIN: usize = 8;
/// The end of a chain of seats.
const NONE: u32 = u32::MAX;

/// Where one wait sits, from its listing until it leaves. No two waits have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::channel) struct Seat {
    at: u32,
    number: u64,
}

struct Place<E> {
    number: u64,
    /// There is none in a free place.
    entry: Option<E>,
    is_queued: bool,
    previous: u32,
    /// The next in the queue, or the next free place.
    next: u32,
}

/// Entries that sit until they leave, and stand in a queue until they are served. All operations
/// take a few steps; only more waits together than ever before allocate.
pub(super) struct Roster<E> {
    places: Vec<Place<E>>,
    free: u32,
    first: u32,
    last: u32,
    /// Entries ever seated; also the number of the last one.
    seated: u64,
}

impl<E> Roster<E> {
    pub(super) fn new() -> Self {
        Self {
            places: Vec::with_capacity(SEATS_MIN),
            free: NONE,
            first: NONE,
            last: NONE,
            seated: 0,
        }
    }

    pub(super) fn seated(&self) -> u64 {
        self.seated
    }

    /// Seats an entry, at the end of the queue.
    pub(super) fn push(&mut self, entry: E) -> Seat {
        self.seated += 1;
        let number = self.seated;
        let previous = self.last;
        let place = Place {
            number,
            entry: Some(entry),
            is_queued: true,
            previous,
            next: NONE,
        };
        let at = match self.free {
            NONE => {
                self.places.push(place);
                self.places.len() as u32 - 1
            }
            free => {
                let free_place = &mut self.places[free as usize];
                self.free = free_place.next;
                *free_place = place;
                free
            }
        };
        match previous {
            NONE => self.first = at,
            previous => self.places[previous as usize].next = at,
        }
        self.last = at;
        Seat { at, number }
    }

    /// The first in the queue that `serve` accepts; that one leaves the queue and keeps its seat.
    pub(super) fn serve(&mut self, mut accept: impl FnMut(&mut E) -> Answer) -> Served {
        let mut at = self.first;
        while at != NONE {
            let place = &mut self.places[at as usize];
            let next = place.next;
            let number = place.number;
            if let Some(entry) = &mut place.entry {
                match accept(entry) {
                    Answer::Next => {}
                    Answer::Stop => return Served::Stopped,
                    Answer::Take => {
                        self.unqueue(at);
                        return Served::Seat(Seat { at, number });
                    }
                }
            }
            at = next;
        }
        Served::Nobody
    }

    /// Whether anybody in the queue is accepted.
    pub(super) fn any(&self, accept: impl Fn(&E) -> bool) -> bool {
        let mut at = self.first;
        while at != NONE {
            let place = &self.places[at as usize];
            if place.entry.as_ref().is_some_and(&accept) {
                return true;
            }
            at = place.next;
        }
        false
    }

    /// Everybody in the queue.
    pub(super) fn for_each(&mut self, mut work: impl FnMut(&mut E)) {
        let nobody = self.serve(|entry| {
            work(entry);
            Answer::Next
        });
        debug_assert!(matches!(nobody, Served::Nobody));
    }

    pub(super) fn get_mut(&mut self, seat: Seat) -> Option<&mut E> {
        let place = self.places.get_mut(seat.at as usize)?;
        if place.number == seat.number {
            place.entry.as_mut()
        } else {
            None
        }
    }

    /// Frees a seat; nothing if it was freed before.
    pub(super) fn remove(&mut self, seat: Seat) -> Option<E> {
        self.get_mut(seat)?;
        if self.places[seat.at as usize].is_queued {
            self.unqueue(seat.at);
        }
        let place = &mut self.places[seat.at as usize];
        place.next = self.free;
        self.free = seat.at;
        place.entry.take()
    }

    fn unqueue(&mut self, at: u32) {
        let place = &mut self.places[at as usize];
        place.is_queued = false;
        let (previous, next) = (place.previous, place.next);
        match previous {
            NONE => self.first = next,
            previous => self.places[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.places[next as usize].previous = previous,
        }
    }
}

/// What to do with somebody in the queue.
pub(super) enum Answer {
    Take,
    Next,
    Stop,
}

/// Who was served.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Served {
    Seat(Seat),
    Nobody,
    Stopped,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn who_came_first_is_served_first_and_anybody_may_leave() {
        let mut roster = Roster::new();
        // The same in plain words: who waits, and who was served and has not left.
        let (mut queue, mut served) = (VecDeque::new(), Vec::new());
        let mut random = 1_u64;
        for round in 0..20_000_u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let choice = (random >> 40) as usize;
            match choice % 5 {
                0 | 1 if queue.len() < 40 => queue.push_back((roster.push(round), round)),
                2 => match (roster.serve(|_| Answer::Take), queue.pop_front()) {
                    (Served::Seat(seat), Some(first)) => {
                        assert_eq!(seat, first.0);
                        served.push(first);
                    }
                    (nobody, None) => assert_eq!(nobody, Served::Nobody),
                    (wrong, Some(first)) => panic!("{wrong:?} instead of {first:?}"),
                },
                3 if !queue.is_empty() => {
                    let (seat, entry) = queue.remove(choice / 5 % queue.len()).unwrap();
                    assert_eq!(roster.remove(seat), Some(entry));
                    assert_eq!(roster.remove(seat), None, "it left");
                }
                _ if !served.is_empty() => {
                    let (seat, entry) = served.swap_remove(choice / 5 % served.len());
                    assert_eq!(roster.get_mut(seat), Some(&mut { entry }));
                    assert_eq!(roster.remove(seat), Some(entry));
                }
                _ => {}
            }
        }
        let mut left = Vec::new();
        roster.for_each(|entry| left.push(*entry));
        assert!(left.iter().eq(queue.iter().map(|(_, entry)| entry)));
        assert!(roster.places.len() < 20_000, "seats are used again");
    }
}
