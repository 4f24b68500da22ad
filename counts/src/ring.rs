//! The rings: one element pushed and popped, and batches of 64.

use std::hint::black_box;

use thalweg::ring::{Layout, MpmcRing, spsc};

use super::{BATCH, CAPACITY, Cases, Element, Work, rounds};

macro_rules! add {
    ($cases:ident, $ring:literal, $($name:literal => $work:ident),+) => {
        $(
            add!(@one $cases, concat!($ring, "/packed/8B/", $name), $work, u64, Packed);
            add!(@one $cases, concat!($ring, "/packed/32B/", $name), $work, [u64; 4], Packed);
            add!(@one $cases, concat!($ring, "/slotted/8B/", $name), $work, u64, Slotted);
            add!(@one $cases, concat!($ring, "/slotted/32B/", $name), $work, [u64; 4], Slotted);
        )+
    };
    (@one $cases:ident, $name:expr, $work:ident, $element:ty, $layout:ident) => {
        $cases.insert($name.to_owned(), || $work::<$element>(Layout::$layout));
    };
}

pub(super) fn add(cases: &mut Cases) {
    add!(cases, "ring/spsc",
        "push-pop" => push_pop,
        "slice-64" => slice,
        "claim-64" => claim);
    add!(cases, "ring/mpmc",
        "push-pop" => mpmc_push_pop,
        "slice-64" => mpmc_slice);
}

fn push_pop<T: Element>(layout: Layout) -> Work {
    let (mut producer, mut consumer) = spsc::<T>(CAPACITY, layout).expect("in range");
    rounds(move |number| {
        let pushed = producer.try_push(black_box(T::of(number)));
        assert!(pushed.is_ok());
        black_box(consumer.try_pop().expect("just pushed"));
    })
}

/// 64 elements from a slice, then 64 into a vector.
fn slice<T: Element>(layout: Layout) -> Work {
    let (mut producer, mut consumer) = spsc::<T>(CAPACITY, layout).expect("in range");
    let values = vec![T::of(1); BATCH];
    let mut out = Vec::with_capacity(BATCH);
    rounds(move |_| {
        assert_eq!(producer.push_slice(black_box(&values)), BATCH);
        assert_eq!(consumer.pop_into(&mut out, BATCH), BATCH);
        black_box(&mut out).clear();
    })
}

/// 64 elements written where they will be read, then read there.
fn claim<T: Element>(layout: Layout) -> Work {
    let (mut producer, mut consumer) = spsc::<T>(CAPACITY, layout).expect("in range");
    rounds(move |number| {
        let value = black_box(T::of(number));
        let mut claim = producer.claim(BATCH).expect("room");
        while claim.push(value).is_ok() {}
        assert_eq!(claim.commit(), BATCH);
        let mut count = 0;
        for value in consumer.batch(BATCH) {
            black_box(value);
            count += 1;
        }
        assert_eq!(count, BATCH);
    })
}

fn mpmc_push_pop<T: Element>(layout: Layout) -> Work {
    let ring = MpmcRing::<T>::new(CAPACITY, layout).expect("in range");
    rounds(move |number| {
        let pushed = ring.try_push(black_box(T::of(number)));
        assert!(pushed.is_ok());
        black_box(ring.try_pop().expect("just pushed"));
    })
}

fn mpmc_slice<T: Element>(layout: Layout) -> Work {
    let ring = MpmcRing::<T>::new(CAPACITY, layout).expect("in range");
    let values = vec![T::of(1); BATCH];
    let mut out = Vec::with_capacity(BATCH);
    rounds(move |_| {
        assert_eq!(ring.push_slice(black_box(&values)), BATCH);
        assert!(ring.pop_into(&mut out, BATCH).is_ok());
        assert_eq!(out.len(), BATCH);
        black_box(&mut out).clear();
    })
}
