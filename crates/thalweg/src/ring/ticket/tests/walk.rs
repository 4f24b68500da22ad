//! Random calls, against a `VecDeque` that says what should come of them.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::ring;
use crate::ring::{ClaimError, Layout, PopError, PushError, Ticket};

#[derive(Debug, Clone)]
enum Call {
    Push,
    Slice(usize),
    /// Claims, writes some and commits or not.
    Claim(usize, usize, bool),
    /// As `Claim`, with a push while the claim is open.
    ClaimBefore(usize, usize, bool),
    Pop,
    PopInto(usize),
    Close,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        20 => Just(Call::Push),
        20 => (0..9_usize).prop_map(Call::Slice),
        7 => (0..9_usize, 0..9_usize, any::<bool>()).prop_map(|(n, w, c)| Call::Claim(n, w, c)),
        7 => (0..9_usize, 0..9_usize, any::<bool>())
            .prop_map(|(n, w, c)| Call::ClaimBefore(n, w, c)),
        30 => Just(Call::Pop),
        19 => (0..9_usize).prop_map(Call::PopInto),
        1 => Just(Call::Close),
    ]
}

/// The expected content of the ring: an element or a hole for each ticket.
struct Expected {
    tickets: VecDeque<Option<u32>>,
    capacity: usize,
    popped: u64,
    closed: bool,
}

impl Expected {
    fn free(&self) -> usize {
        if self.closed {
            0
        } else {
            self.capacity - self.tickets.len()
        }
    }

    fn skip_holes(&mut self) {
        while self.tickets.front() == Some(&None) {
            self.tickets.pop_front();
            self.popped += 1;
        }
    }

    fn pop(&mut self) -> Result<(u64, u32), PopError> {
        self.skip_holes();
        match self.tickets.pop_front() {
            Some(value) => {
                self.popped += 1;
                Ok((self.popped - 1, value.expect("holes were skipped")))
            }
            None if self.closed => Err(PopError::Closed),
            None => Err(PopError::Empty),
        }
    }

    fn pop_into(&mut self, out: &mut Vec<u32>, max: usize) -> Result<usize, PopError> {
        let mut count = 0;
        while count < max && (count == 0 || matches!(self.tickets.front(), Some(Some(_)))) {
            out.push(self.pop()?.1);
            count += 1;
        }
        Ok(count)
    }

    /// Claims `n` from `ring`, writes `values` there and pushes `behind` meanwhile, and does the
    /// same here.
    fn claim(
        &mut self,
        ring: &Ticket<u32>,
        n: usize,
        values: &[u32],
        commit: bool,
        behind: Option<u32>,
    ) -> Result<(), TestCaseError> {
        let free = self.free();
        match ring.claim(n) {
            Ok(mut claim) => {
                prop_assert!(n <= free && !self.closed);
                let written = claim.write(values);
                prop_assert_eq!(written, n.min(values.len()));
                let asked = behind.is_some();
                let behind = behind.filter(|value| ring.try_push(*value).is_ok());
                prop_assert_eq!(behind.is_some(), asked && n < free);
                let elements = if commit { written } else { 0 };
                if commit {
                    prop_assert_eq!(claim.commit(), written);
                } else {
                    drop(claim);
                }
                // Positions that are not written go back, unless there is a ticket behind.
                let kept = if behind.is_some() { n } else { written };
                let tickets = (0..kept).map(|i| (i < elements).then(|| values[i]));
                self.tickets.extend(tickets);
                self.tickets.extend(behind.map(Some));
                // The end of a claim passes holes at the head.
                self.skip_holes();
            }
            Err(ClaimError::Closed) => prop_assert!(self.closed),
            Err(ClaimError::TooLarge { .. }) => prop_assert!(n > self.capacity),
            Err(ClaimError::Full { free: reported, .. }) => {
                prop_assert!(reported == free && n > free)
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_ring_does_what_a_queue_would(
        capacity in 1..10_usize,
        slotted in any::<bool>(),
        calls in vec(call(), 0..120),
    ) {
        let layout = if slotted { Layout::Slotted } else { Layout::Packed };
        let ring = ring(capacity, layout);
        let tickets = VecDeque::new();
        let mut expected = Expected { tickets, capacity, popped: 0, closed: false };
        let mut values = 0_u32..;
        for call in calls {
            let free = expected.free();
            match call {
                Call::Push => {
                    let value = values.next().expect("endless");
                    let outcome = match free {
                        _ if expected.closed => Err(PushError::Closed(value)),
                        0 => Err(PushError::Full(value)),
                        _ => {
                            expected.tickets.push_back(Some(value));
                            Ok(())
                        }
                    };
                    prop_assert_eq!(ring.try_push(value), outcome);
                }
                Call::Slice(n) => {
                    let slice: Vec<_> = values.by_ref().take(n).collect();
                    prop_assert_eq!(ring.push_slice(&slice), n.min(free));
                    expected.tickets.extend(slice[..n.min(free)].iter().copied().map(Some));
                }
                Call::Claim(n, written, commit) => {
                    let slice: Vec<_> = values.by_ref().take(written).collect();
                    expected.claim(&ring, n, &slice, commit, None)?;
                }
                Call::ClaimBefore(n, written, commit) => {
                    let slice: Vec<_> = values.by_ref().take(written).collect();
                    expected.claim(&ring, n, &slice, commit, values.next())?;
                }
                Call::Pop => prop_assert_eq!(ring.try_pop_at(), expected.pop()),
                Call::PopInto(max) => {
                    let (mut out, mut wanted) = (Vec::new(), Vec::new());
                    let max = max.min(capacity);
                    prop_assert_eq!(
                        ring.pop_into(&mut out, max),
                        expected.pop_into(&mut wanted, max)
                    );
                    prop_assert_eq!(out, wanted);
                }
                Call::Close => {
                    prop_assert_eq!(ring.close(), !expected.closed);
                    expected.closed = true;
                }
            }
            prop_assert_eq!(ring.len(), expected.tickets.iter().flatten().count());
            prop_assert_eq!(ring.popped(), expected.popped);
            prop_assert_eq!(ring.pushed(), expected.popped + expected.tickets.len() as u64);
            prop_assert_eq!(ring.is_closed(), expected.closed);
            prop_assert_eq!(ring.can_pop(), !expected.tickets.is_empty());
            prop_assert_eq!(ring.can_push(), expected.free() > 0);
        }
    }
}
