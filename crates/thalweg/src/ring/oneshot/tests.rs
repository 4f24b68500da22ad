use super::*;
use std::rc::Rc;
use thalweg_testkit::wakers::{Alarm, panicking};

#[test]
fn every_way_drops_the_element_once() {
    let element = Rc::new(());
    for way in 0..5 {
        let (producer, mut consumer) = oneshot();
        match way {
            0 => producer.send(Rc::clone(&element)).unwrap(),
            1 => {
                producer.send(Rc::clone(&element)).unwrap();
                assert_eq!(consumer.try_pop(), Ok(Rc::clone(&element)));
                assert_eq!(consumer.try_pop(), Err(PopError::Closed), "once");
            }
            2 => {
                consumer.close();
                assert_eq!(producer.send(Rc::clone(&element)), Err(Rc::clone(&element)));
            }
            3 => {
                drop(consumer);
                assert_eq!(producer.send(Rc::clone(&element)), Err(Rc::clone(&element)));
                continue;
            }
            _ => drop(producer),
        }
        drop(consumer);
        assert_eq!(Rc::strong_count(&element), 1);
    }
    assert_eq!(Rc::strong_count(&element), 1);
}

#[test]
fn the_last_waker_is_woken_once() {
    let (producer, mut consumer) = oneshot();
    let ((first, first_waker), (second, second_waker)) = (Alarm::pair(), Alarm::pair());
    assert!(consumer.register(first_waker));
    assert!(consumer.register(second_waker));
    assert_eq!(std::sync::Arc::strong_count(&first), 1, "forgotten at once");
    producer.send(1).unwrap();
    // ORDERING: Relaxed, a test's counts.
    let woken = [&first, &second].map(|count| count.count());
    assert_eq!(woken, [0, 1]);
    assert_eq!(std::sync::Arc::strong_count(&second), 1);
    assert_eq!(consumer.try_pop(), Ok(1));
}

#[test]
fn a_waker_that_stays_is_dropped_with_the_rest() {
    let (mut producer, mut consumer) = oneshot::<u8>();
    let (theirs, waker) = Alarm::pair();
    assert!(producer.register(waker.clone()) && consumer.register(waker));
    consumer.unregister();
    assert_eq!(std::sync::Arc::strong_count(&theirs), 2);
    producer.send(1).unwrap();
    drop(consumer);
    assert_eq!(std::sync::Arc::strong_count(&theirs), 1);
}

#[test]
fn a_dropped_side_drops_its_waker() {
    let (theirs, waker) = Alarm::pair();
    let (mut producer, mut consumer) = oneshot::<u8>();
    assert!(consumer.register(waker.clone()));
    drop(consumer);
    assert_eq!(std::sync::Arc::strong_count(&theirs), 2);
    assert!(!producer.register(Waker::noop().clone()), "it has gone");
    let (mut other, consumer) = oneshot::<u8>();
    assert!(other.register(waker));
    drop(other);
    assert_eq!(std::sync::Arc::strong_count(&theirs), 1);
    assert!(consumer.is_closed());
}

#[test]
fn a_panicking_waker_leaves_the_element() {
    let (producer, mut consumer) = oneshot();
    assert!(consumer.register(panicking()));
    let sending = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| producer.send(1)));
    assert!(matches!(sending, Ok(Ok(()))), "it is not the producer's");
    assert_eq!(consumer.try_pop(), Ok(1));
}
