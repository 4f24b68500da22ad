//! Pushes below a limit, alone and in a crowd.

use super::{LAYOUTS, ring};
use crate::ring::sync::Arc;
use crate::ring::{Layout, PushError, TicketEnd};

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
    let mut end = TicketEnd::new(Arc::clone(&ring));
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
            let mut end = TicketEnd::new(Arc::clone(&ring));
            std::thread::spawn(move || {
                (0..pushes)
                    .filter(|_| end.try_push_within(limit, limit).is_ok())
                    .count()
            })
        });
        let admitted: Vec<usize> = threads.map(|t| t.join().expect("no panic")).into();
        // At the end the one with 80 had 100 attempts, so at least that many are in; the highest
        // five always fit.
        let held = ring.len();
        assert_eq!(admitted.iter().sum::<usize>(), held);
        assert!((80..=85).contains(&held), "{held}: {admitted:?}");
        assert_eq!(admitted[3], 5, "the reserve is there for the highest");
        assert!(admitted[0] + admitted[1] <= 60, "{admitted:?}");
    }
}
