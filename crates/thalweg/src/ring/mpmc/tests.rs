//! The ticket ring by itself (`singles`), against a queue (`walk`), with elements that count their
//! drops (`drops`), and below a limit (`within`). Between threads it is tested as the store of a
//! channel.

use super::MpmcRing;
use crate::ring::Layout;

const LAYOUTS: [Layout; 2] = [Layout::Packed, Layout::Slotted];

fn ring<T>(capacity: usize, layout: Layout) -> MpmcRing<T> {
    MpmcRing::new(capacity, layout).expect("a capacity in range")
}

mod drops {
    //! Every element is dropped exactly once, whatever happens.

    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::{LAYOUTS, ring};
    use crate::ring::{Layout, PopError};

    /// Adds its weight to a sum when it is dropped, and panics if it is set to.
    struct Item {
        weight: usize,
        dropped: Arc<AtomicUsize>,
        panics: bool,
    }

    impl Drop for Item {
        fn drop(&mut self) {
            // ORDERING: Relaxed, a sum that is read after the threads have joined.
            self.dropped.fetch_add(self.weight, Relaxed);
            assert!(!self.panics, "seeded panic");
        }
    }

    /// Items 1, 10, 100 and so on: the sum of their drops says which were dropped how often.
    #[derive(Clone, Default)]
    struct Ledger(Arc<AtomicUsize>);

    impl Ledger {
        fn item(&self, nth: u32) -> Item {
            let dropped = Arc::clone(&self.0);
            let weight = 10_usize.pow(nth);
            Item {
                weight,
                dropped,
                panics: false,
            }
        }

        fn panicking(&self, nth: u32) -> Item {
            let mut item = self.item(nth);
            item.panics = true;
            item
        }

        fn sum(&self) -> usize {
            // ORDERING: Relaxed, the threads have joined.
            self.0.load(Relaxed)
        }
    }

    #[test]
    fn elements_left_inside_are_dropped_once() {
        for layout in LAYOUTS {
            for capacity in [4, 5] {
                let ledger = Ledger::default();
                let ring = ring(capacity, layout);
                // Start away from slot 0, so that what is left wraps.
                (0..3).for_each(|n| assert!(ring.try_push(ledger.item(n)).is_ok()));
                let mut out = Vec::new();
                ring.pop_into(&mut out, 2).expect("three are in");
                assert_eq!(ledger.sum(), 0);
                drop(out);
                assert_eq!(ledger.sum(), 11);
                let mut claim = ring.claim(2).expect("two are free");
                claim.push(ledger.item(3)).ok().expect("room for two");
                claim.commit();
                ring.try_push(ledger.item(4)).expect("one is free");
                drop(ring);
                assert_eq!(ledger.sum(), 11_111);
            }
        }
    }

    #[test]
    fn a_dropped_claim_drops_what_was_written() {
        let ledger = Ledger::default();
        let ring = ring(4, Layout::Packed);
        let mut claim = ring.claim(3).expect("an empty ring");
        claim.push(ledger.item(0)).ok().expect("room for three");
        claim.push(ledger.item(1)).ok().expect("room for three");
        drop(claim);
        assert_eq!(ledger.sum(), 11);
        // The written positions became holes, the third went back.
        assert_eq!((ring.len(), ring.pushed(), ring.popped()), (0, 2, 2));
        ring.try_push(ledger.item(2)).expect("two are free");
        assert_eq!(ring.try_pop_at().expect("one is in").0, 2);
        drop(ring);
        assert_eq!(ledger.sum(), 111);
    }

    #[test]
    fn a_claim_that_is_dropped_before_a_push_drops_what_was_written() {
        let ledger = Ledger::default();
        let ring = ring(4, Layout::Packed);
        let mut claim = ring.claim(3).expect("an empty ring");
        claim.push(ledger.item(0)).ok().expect("room for three");
        ring.try_push(ledger.item(1)).expect("one is free");
        drop(claim);
        assert_eq!(ledger.sum(), 1);
        assert_eq!((ring.len(), ring.pushed(), ring.popped()), (1, 4, 3));
        assert_eq!(ring.try_pop_at().expect("one is in").0, 3);
        assert_eq!(ledger.sum(), 11);
    }

    #[cfg(feature = "std")] // without it, it ends the program
    #[test]
    fn a_panicking_drop_in_a_claim_leaves_no_gap() {
        let ledger = Ledger::default();
        let ring = ring(4, Layout::Packed);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut claim = ring.claim(4).expect("an empty ring");
            claim.push(ledger.item(0)).ok().expect("room for four");
            claim.push(ledger.panicking(1)).ok().expect("room for four");
            claim.push(ledger.item(2)).ok().expect("room for four");
        }));
        assert!(outcome.is_err());
        // All are dropped, and the ring goes on.
        assert_eq!(ledger.sum(), 111);
        assert_eq!(ring.try_pop().err(), Some(PopError::Empty));
        // The three that were written became holes, which the pop passed over; the fourth went
        // back.
        assert_eq!((ring.len(), ring.pushed()), (0, 3));
        ring.try_push(ledger.item(3)).expect("all are free");
        assert_eq!(ring.try_pop_at().expect("one is in").0, 3);
        drop(ring);
        assert_eq!(ledger.sum(), 1111);
    }

    #[test]
    fn a_forgotten_claim_leaks_and_nothing_worse() {
        let ledger = Ledger::default();
        let ring = ring(4, Layout::Packed);
        ring.try_push(ledger.item(0)).expect("an empty ring");
        let mut claim = ring.claim(2).expect("three are free");
        // Not owned by what is forgotten: a leak checker would complain rightly.
        let mut leaked = ledger.item(1);
        leaked.dropped = Arc::default();
        let kept = Arc::clone(&leaked.dropped);
        claim.push(leaked).ok().expect("room for two");
        std::mem::forget(claim);
        ring.try_push(ledger.item(2)).expect("one is free");
        drop(ring);
        assert_eq!(ledger.sum(), 101);
        // SAFETY: the forgotten item's own reference, which is given up for it.
        unsafe { Arc::decrement_strong_count(Arc::as_ptr(&kept)) };
    }

    #[cfg(feature = "std")] // without it, it ends the program
    #[test]
    fn a_panicking_drop_in_the_ring_is_passed_on() {
        let ledger = Ledger::default();
        let ring = ring(4, Layout::Packed);
        ring.try_push(ledger.item(0)).expect("an empty ring");
        ring.try_push(ledger.panicking(1)).expect("room for four");
        assert!(catch_unwind(AssertUnwindSafe(|| drop(ring))).is_err());
        assert_eq!(ledger.sum(), 11);
    }

    #[test]
    fn zero_sized_elements_are_counted() {
        static DROPS: AtomicUsize = AtomicUsize::new(0);
        struct Nothing;
        impl Drop for Nothing {
            fn drop(&mut self) {
                // ORDERING: Relaxed, one thread.
                DROPS.fetch_add(1, Relaxed);
            }
        }
        for layout in LAYOUTS {
            // ORDERING: Relaxed, one thread.
            DROPS.store(0, Relaxed);
            let ring = ring(3, layout);
            (0..3).for_each(|_| assert!(ring.try_push(Nothing).is_ok()));
            let mut out = Vec::new();
            assert_eq!(ring.pop_into(&mut out, 9), Ok(3));
            assert_eq!(out.len(), 3);
            assert!(ring.try_push(Nothing).is_ok());
            drop((ring, out));
            // ORDERING: Relaxed, one thread.
            assert_eq!(DROPS.load(Relaxed), 4);
        }
    }
}

mod singles {
    //! One thread, one call at a time.

    use super::{LAYOUTS, ring};
    use crate::ring::{CAPACITY_MAX, CapacityError, Layout, MpmcRing, PopError, PushError};

    #[test]
    fn refuses_capacities_out_of_range() {
        for asked in [0, CAPACITY_MAX + 1] {
            let error = MpmcRing::<u8>::new(asked, Layout::Packed).expect_err("out of range");
            assert_eq!(error, CapacityError { asked, bytes: 0 });
        }
    }

    #[test]
    fn a_vector_with_room_is_not_grown() {
        let ring = ring(8, Layout::Packed);
        ring.push_slice(&[1; 8]);
        let mut out = Vec::with_capacity(3);
        let room = out.capacity();
        assert_eq!(ring.pop_into(&mut out, room), Ok(room));
        assert_eq!(out.capacity(), room);
    }

    #[test]
    fn what_a_claim_leaves_goes_back() {
        for layout in LAYOUTS {
            for capacity in [4, 5] {
                let ring = ring(capacity, layout);
                let all = capacity as u64;
                // Several laps: the slots that come back are at their places for the next producer.
                for lap in 0..3 * all {
                    let (len, pushed) = (ring.len(), ring.pushed());
                    drop(ring.claim(capacity).expect("an empty ring"));
                    assert_eq!(
                        (ring.len(), ring.pushed(), ring.can_pop()),
                        (len, pushed, false)
                    );
                    let mut claim = ring.claim(3).expect("an empty ring");
                    assert_eq!((ring.len(), claim.push(lap)), (0, Ok(())));
                    assert_eq!(claim.commit(), 1);
                    assert_eq!((ring.len(), ring.pushed()), (1, pushed + 1));
                    // A claim behind goes back first; then the one before it is the last.
                    let first = ring.claim(1).expect("room for four");
                    drop(ring.claim(2).expect("room for four"));
                    drop(first);
                    assert_eq!((ring.len(), ring.pushed()), (1, pushed + 1));
                    assert_eq!(ring.try_pop_at(), Ok((pushed, lap)));
                    assert_eq!(ring.try_pop(), Err(PopError::Empty));
                    assert_eq!(ring.popped(), pushed + 1);
                }
                let claim = ring.claim(2).expect("an empty ring");
                assert_eq!(ring.try_push(0), Ok(()));
                drop(ring.claim(1).expect("one is free"));
                assert_eq!(ring.len(), 1);
                // The push is still behind.
                drop(claim);
                assert_eq!(ring.try_pop_at(), Ok((3 * all + 2, 0)));
            }
        }
    }

    #[test]
    fn what_a_claim_leaves_before_others_becomes_holes() {
        for layout in LAYOUTS {
            let ring = ring(5, layout);
            let mut claim = ring.claim(4).expect("an empty ring");
            assert_eq!(
                (claim.len(), claim.remaining(), claim.is_empty()),
                (4, 4, false)
            );
            assert_eq!(claim.push(0), Ok(()));
            assert_eq!(claim.write(&[1]), 1);
            assert_eq!(claim.remaining(), 2);
            // Behind the claim, and not before it.
            assert_eq!(ring.try_push(4), Ok(()));
            assert_eq!(ring.try_pop(), Err(PopError::Empty));
            assert_eq!(claim.commit(), 2);
            assert_eq!((ring.len(), ring.is_full()), (3, true));
            let mut out = Vec::new();
            let taken = ring.pop_into(&mut out, 9);
            assert_eq!(taken, Ok(2));
            assert_eq!(ring.try_pop_at(), Ok((4, 4)));
            let first = ring.claim(3).expect("an empty ring");
            let behind = ring.claim(2).expect("two are free");
            drop(first);
            drop(behind);
            // The one behind went back; the first could not, and was passed over.
            assert_eq!((ring.len(), ring.pushed(), ring.popped()), (0, 8, 8));
            assert_eq!(ring.try_pop(), Err(PopError::Empty));
            assert_eq!(out, [0, 1]);
        }
    }

    #[test]
    fn closed_is_reported_behind_holes() {
        let ring = ring::<u8>(4, Layout::Packed);
        let claim = ring.claim(2).expect("an empty ring");
        ring.close();
        assert_eq!(ring.try_pop(), Err(PopError::Empty));
        drop(claim);
        // After the close nothing goes back.
        assert_eq!((ring.len(), ring.pushed(), ring.is_closed()), (0, 2, true));
        assert_eq!(ring.try_pop(), Err(PopError::Closed));
    }

    #[test]
    fn a_forgotten_claim_stops_the_ring() {
        let ring = ring(2, Layout::Packed);
        std::mem::forget(ring.claim(1));
        assert_eq!(ring.try_push(1), Ok(()));
        assert_eq!(ring.try_push(2), Err(PushError::Full(2)));
        ring.close();
        assert_eq!(ring.try_pop(), Err(PopError::Empty));
    }

    #[test]
    fn debug_names_the_state() {
        let ring = ring(3, Layout::Packed);
        ring.push_slice(&[1_u8]);
        assert_eq!(
            format!("{ring:?}"),
            "MpmcRing { capacity: 3, len: 1, closed: false }"
        );
        let claim = ring.claim(2).expect("two are free");
        assert_eq!(format!("{claim:?}"), "MpmcClaim { len: 2, written: 0 }");
    }

    #[test]
    fn a_claim_that_could_not_go_back_once_never_does() {
        for layout in LAYOUTS {
            let ring = ring::<u8>(4, layout);
            let mut first = ring.claim(2).unwrap();
            let second = ring.claim(2).unwrap();
            first.give_back();
            drop(second);
            assert_eq!(ring.pushed(), 2, "the second went back");
            // The caller that gave the first back has noted that its positions are used.
            drop(first);
            assert_eq!((ring.pushed(), ring.popped(), ring.len()), (2, 2, 0));
        }
    }
}

mod walk {
    //! Random calls, against a `VecDeque` that says what should come of them.

    use std::collections::VecDeque;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::ring;
    use crate::ring::{Layout, MpmcRing, PopError, PushError, RingClaimError};

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

        /// Claims `n` from `ring`, writes `values` there and pushes `behind` meanwhile, and does
        /// the same here.
        fn claim(
            &mut self,
            ring: &MpmcRing<u32>,
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
                Err(RingClaimError::Closed) => prop_assert!(self.closed),
                Err(RingClaimError::TooLarge { .. }) => prop_assert!(n > self.capacity),
                Err(RingClaimError::Full { free: reported, .. }) => {
                    prop_assert!(reported == free && n > free)
                }
            }
            Ok(())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

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
}

mod within {
    //! Pushes below a limit, alone and in a crowd.

    use super::{LAYOUTS, ring};
    use crate::ring::sync::Arc;
    use crate::ring::{Layout, MpmcEnd, PushError};

    #[test]
    fn a_limit_is_exact() {
        for layout in LAYOUTS {
            for limit in 0..=5 {
                let ring = ring(5, layout);
                // From every position of two laps.
                for _ in 0..10 {
                    for n in 0..limit {
                        assert_eq!(ring.len(), n);
                        assert_eq!(ring.try_push_within(n, limit), Ok(()));
                    }
                    assert_eq!(ring.try_push_within(9, limit), Err(PushError::Full(9)));
                    for n in 0..limit {
                        assert_eq!(ring.try_pop(), Ok(n));
                    }
                    assert_eq!((ring.try_push(7), ring.try_pop()), (Ok(()), Ok(7)));
                }
            }
            let ring = ring(2, layout);
            assert_eq!([1, 2].map(|n| ring.try_push_within(n, 9)), [Ok(()); 2]);
            assert_eq!(ring.try_push_within(3, 9), Err(PushError::Full(3)));
            ring.close();
            assert_eq!(ring.try_push_within(3, 9), Err(PushError::Closed(3)));
        }
    }

    #[test]
    fn an_end_with_an_old_head_finds_the_room() {
        let ring = Arc::new(ring(8, Layout::Packed));
        let mut end = MpmcEnd::new(Arc::clone(&ring));
        for n in 0..40 {
            // Half of them by the end's own way, in one attempt.
            let outcome = match end.push_here_within(n, 3) {
                Ok(()) => Ok(()),
                Err(n) => end.try_push_within(n, 3),
            };
            assert_eq!(outcome, Ok(()));
            if n >= 2 {
                assert_eq!(end.push_here_within(n, 3), Err(n));
                assert_eq!(end.try_push_within(n, 3), Err(PushError::Full(n)));
                assert_eq!(ring.try_pop(), Ok(n - 2));
            }
        }
    }

    /// Two priorities fill the ring at once while no thread pops: each gets exactly its share.
    #[test]
    fn a_crowd_gets_what_its_limits_allow() {
        for _ in 0..200 {
            let ring = Arc::new(ring(100, Layout::Packed));
            let threads = [(60, 100), (60, 100), (80, 100), (100, 5)].map(|(limit, pushes)| {
                let mut end = MpmcEnd::new(Arc::clone(&ring));
                std::thread::spawn(move || {
                    (0..pushes)
                        .filter(|_| end.try_push_within(limit, limit).is_ok())
                        .count()
                })
            });
            let admitted: Vec<usize> = threads.map(|t| t.join().expect("no panic")).into();
            // At the end the one with 80 had 100 attempts, so at least that many are in; the
            // highest five always fit.
            let held = ring.len();
            assert_eq!(admitted.iter().sum::<usize>(), held);
            assert!((80..=85).contains(&held), "{held}: {admitted:?}");
            assert_eq!(admitted[3], 5, "the reserve is there for the highest");
            assert!(admitted[0] + admitted[1] <= 60, "{admitted:?}");
        }
    }
}
