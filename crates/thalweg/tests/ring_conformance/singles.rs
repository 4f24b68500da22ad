//! One element at a time, on one thread.

use crate::ring_conformance::shape::Shape;
use thalweg::ring::{CAPACITY_MAX, PopError, PushError, spsc};

pub(crate) fn elements_come_out_in_order<S: Shape>() {
    let (mut tx, mut rx) = S::ring(4);
    for round in 0..10 {
        for i in 0..3 {
            tx.try_push(10 * round + i).unwrap();
        }
        for i in 0..3 {
            assert_eq!(rx.try_pop(), Ok(10 * round + i));
        }
        assert_eq!(rx.try_pop(), Err(PopError::Empty));
    }
}

pub(crate) fn holds_exactly_its_capacity<S: Shape>() {
    for capacity in [1, 2, 3, 5, 8, 100, 1000] {
        let (mut tx, mut rx) = S::ring(capacity);
        assert_eq!(tx.capacity(), capacity);
        for lap in 0..3 {
            for i in 0..capacity {
                assert!(!tx.is_full());
                tx.try_push((lap, i)).unwrap();
            }
            assert!(tx.is_full());
            assert_eq!(tx.try_push((9, 9)), Err(PushError::Full((9, 9))));
            // One out, one in: a freed cell is usable at once.
            assert_eq!(rx.try_pop(), Ok((lap, 0)));
            assert!(!tx.is_full());
            tx.try_push((8, 8)).unwrap();
            assert!(tx.is_full());
            for i in 1..capacity {
                assert_eq!(rx.try_pop(), Ok((lap, i)));
            }
            assert_eq!(rx.try_pop(), Ok((8, 8)));
        }
    }
}

pub(crate) fn refuses_capacities_out_of_range<S: Shape>() {
    for capacity in [0, CAPACITY_MAX + 1, usize::MAX] {
        let error = spsc::<u8>(capacity, S::LAYOUT).err().unwrap();
        assert_eq!(error.asked, capacity);
    }
}

pub(crate) fn full_gives_the_element_back<S: Shape>() {
    let (mut tx, mut rx) = S::ring(1);
    tx.try_push(String::from("in")).unwrap();
    let error = tx.try_push(String::from("out")).unwrap_err();
    assert!(error.is_full());
    assert_eq!(error.into_inner(), "out");
    assert_eq!(rx.try_pop().unwrap(), "in");
    tx.try_push(String::from("again")).unwrap();
    assert_eq!(rx.try_pop().unwrap(), "again");
}

pub(crate) fn empty_and_closed_are_distinguished<S: Shape>() {
    let (tx, mut rx) = S::ring::<u8>(2);
    assert_eq!(rx.try_pop(), Err(PopError::Empty));
    assert_eq!(rx.peek(), Err(PopError::Empty));
    assert!(!rx.is_closed() && !tx.is_closed());
    drop(tx);
    assert!(rx.is_closed());
    assert_eq!(rx.try_pop(), Err(PopError::Closed));
    assert_eq!(rx.peek(), Err(PopError::Closed));
    assert_eq!(rx.batch(3).len(), 0);
}

pub(crate) fn closed_by_the_producer_delivers_what_was_published<S: Shape>() {
    let (mut tx, mut rx) = S::ring(4);
    tx.try_push(1).unwrap();
    tx.try_push(2).unwrap();
    tx.close();
    assert!(tx.is_closed() && rx.is_closed());
    assert_eq!(tx.try_push(3), Err(PushError::Closed(3)));
    assert_eq!(tx.push_slice(&[3]), 0);
    assert_eq!(rx.try_pop(), Ok(1));
    drop(tx);
    assert_eq!(rx.try_pop(), Ok(2));
    assert_eq!(rx.try_pop(), Err(PopError::Closed));
}

pub(crate) fn closed_by_the_consumer_refuses_pushes<S: Shape>() {
    let (mut tx, mut rx) = S::ring(4);
    tx.try_push(1).unwrap();
    rx.close();
    assert!(tx.is_closed());
    assert_eq!(tx.try_push(2), Err(PushError::Closed(2)));
    assert_eq!(rx.try_pop(), Ok(1));
    assert_eq!(rx.try_pop(), Err(PopError::Closed));

    let (mut tx, rx) = S::ring(4);
    drop(rx);
    assert!(tx.is_closed());
    assert_eq!(tx.try_push(2), Err(PushError::Closed(2)));
}

pub(crate) fn peek_leaves_the_element<S: Shape>() {
    let (mut tx, mut rx) = S::ring(2);
    tx.try_push(String::from("a")).unwrap();
    tx.try_push(String::from("b")).unwrap();
    assert_eq!(rx.peek().unwrap(), "a");
    assert_eq!(rx.peek().unwrap(), "a");
    assert!(tx.is_full());
    assert_eq!(rx.try_pop().unwrap(), "a");
    assert_eq!(rx.peek().unwrap(), "b");
}

pub(crate) fn lengths_agree_on_both_sides<S: Shape>() {
    let (mut tx, mut rx) = S::ring(7);
    assert!(tx.is_empty() && rx.is_empty());
    // Two in, one out: every length at many offsets in the array.
    for i in 0..100 {
        while tx.len() < 6 {
            let before = tx.len();
            tx.try_push(i).unwrap();
            assert_eq!((tx.len(), rx.len()), (before + 1, before + 1));
        }
        assert!(!tx.is_empty() && !rx.is_empty());
        for _ in 0..=i % 6 {
            let before = rx.len();
            rx.try_pop().unwrap();
            assert_eq!((tx.len(), rx.len()), (before - 1, before - 1));
        }
    }
}

pub(crate) fn zero_sized_elements<S: Shape>() {
    let (mut tx, mut rx) = S::ring(3);
    for _ in 0..10 {
        assert_eq!(tx.push_iter([(); 5]), 3);
        assert_eq!(tx.try_push(()), Err(PushError::Full(())));
        assert_eq!(rx.len(), 3);
        assert_eq!(rx.try_pop(), Ok(()));
        assert_eq!(rx.batch(10).count(), 2);
        assert_eq!(tx.push_slice(&[(), ()]), 2);
        let mut out = Vec::new();
        assert_eq!(rx.pop_into(&mut out, 10), 2);
        assert_eq!(out, [(), ()]);
    }
}

pub(crate) fn large_elements<S: Shape>() {
    let (mut tx, mut rx) = S::ring::<[u64; 500]>(3);
    for i in 0..20 {
        tx.try_push([i; 500]).unwrap();
        assert_eq!(tx.push_slice(&[[i + 1; 500]; 4]), 2);
        assert_eq!(rx.try_pop(), Ok([i; 500]));
        assert_eq!(rx.batch(5).collect::<Vec<_>>(), [[i + 1; 500]; 2]);
    }
    // Elements that ask for more alignment than a cache line.
    #[repr(align(256))]
    struct Wide(u8);
    let (mut tx, mut rx) = S::ring(3);
    for i in 0..20 {
        tx.try_push(Wide(i))
            .unwrap_or_else(|_| panic!("there is room"));
        let wide = rx.peek().unwrap();
        assert_eq!(std::ptr::from_ref(wide).addr() % 256, 0);
        assert_eq!(rx.try_pop().unwrap().0, i);
    }
}

pub(crate) fn wraps_many_times<S: Shape>() {
    let (mut tx, mut rx) = S::ring(5);
    let (mut next_in, mut next_out) = (0_u64, 0);
    for step in 0..10_000_u64 {
        for _ in 0..step % 4 {
            if tx.try_push(next_in).is_ok() {
                next_in += 1;
            }
        }
        for _ in 0..(step + 2) % 4 {
            if let Ok(value) = rx.try_pop() {
                assert_eq!(value, next_out);
                next_out += 1;
            }
        }
    }
    assert!(next_out > 10_000);
}
