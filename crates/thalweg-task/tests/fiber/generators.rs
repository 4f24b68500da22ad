//! Generators: values both ways at each switch.

use crate::fiber::{Drops, pool};
use std::panic::{AssertUnwindSafe, catch_unwind};
use thalweg_task::fiber::{Generator, Step};

#[test]
fn values_that_own_memory_go_both_ways() {
    let stacks = pool();
    let mut generator = stacks
        .generator(|ctx, first: String| {
            let second = ctx.suspend(first.clone() + "!");
            let third = ctx.suspend(first + &second);
            vec![third]
        })
        .unwrap();
    assert_eq!(
        generator.resume("a".to_owned()),
        Step::Yielded("a!".to_owned())
    );
    assert_eq!(
        generator.resume("b".to_owned()),
        Step::Yielded("ab".to_owned())
    );
    assert!(!generator.is_finished());
    assert_eq!(
        generator.resume("c".to_owned()),
        Step::Returned(vec!["c".to_owned()])
    );
    assert!(generator.is_finished());
    assert_eq!(stacks.counts().in_use, 0);
}

#[test]
fn an_iterator_ends_and_stays_ended() {
    let stacks = pool();
    let mut squares = stacks
        .generator(|ctx, ()| (1..=3_u32).for_each(|number| ctx.suspend(number * number)))
        .unwrap();
    assert_eq!(squares.by_ref().collect::<Vec<_>>(), [1, 4, 9]);
    assert_eq!((squares.next(), squares.next()), (None, None));
}

#[test]
fn generators_take_turns() {
    let stacks = pool();
    let mut generators: Vec<_> = (0..10_u32)
        .map(|start| {
            let counter =
                stacks.generator(move |ctx, ()| (start..start + 100).for_each(|n| ctx.suspend(n)));
            counter.unwrap()
        })
        .collect();
    for step in 0..100 {
        let values: Vec<u32> = generators.iter_mut().filter_map(Iterator::next).collect();
        assert!(values.into_iter().eq(step..step + 10));
    }
}

#[test]
fn what_goes_through_is_dropped_once() {
    let (into, out, on_stack) = (Drops::default(), Drops::default(), Drops::default());
    let stacks = pool();
    let (yields, keeps) = (out.clone(), on_stack.clone());
    let mut generator = stacks
        .generator(move |ctx, mut value| {
            let _kept = keeps.guard();
            loop {
                drop(value);
                value = ctx.suspend(yields.guard());
            }
        })
        .unwrap();
    for resumed in 1..=5 {
        let step: Step<_, ()> = generator.resume(into.guard());
        assert_eq!((into.count(), out.count()), (resumed, resumed - 1));
        drop(step);
    }
    drop(generator);
    assert_eq!((into.count(), out.count(), on_stack.count()), (5, 5, 1));
    assert_eq!(stacks.counts().in_use, 0);
}

#[test]
fn a_panic_ends_it() {
    let mut generator: Generator<(), (), ()> = pool()
        .generator(|ctx, ()| {
            ctx.suspend(());
            panic!("in the generator");
        })
        .unwrap();
    assert_eq!(generator.resume(()), Step::Yielded(()));
    let panicked = catch_unwind(AssertUnwindSafe(|| generator.resume(()))).unwrap_err();
    assert_eq!(panicked.downcast_ref(), Some(&"in the generator"));
    assert!(generator.is_finished());
    let again = catch_unwind(AssertUnwindSafe(|| generator.resume(()))).unwrap_err();
    let text = "a generator was resumed after it had finished";
    assert_eq!(again.downcast_ref(), Some(&text));
}
