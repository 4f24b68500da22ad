use super::*;
use std::rc::Rc;
use std::task::Wake;

struct Count(std::sync::atomic::AtomicU32);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        // ORDERING: Relaxed, a test's count.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn count() -> (std::sync::Arc<Count>, Waker) {
    let count = std::sync::Arc::new(Count(0.into()));
    (std::sync::Arc::clone(&count), Waker::from(count))
}

#[test]
fn every_way_drops_the_element_once() {
    let element = Rc::new(());
    for way in 0..5 {
        let (giver, mut taker) = oneshot();
        match way {
            0 => giver.send(Rc::clone(&element)).unwrap(),
            1 => {
                giver.send(Rc::clone(&element)).unwrap();
                assert_eq!(taker.try_take(), Ok(Rc::clone(&element)));
                assert_eq!(taker.try_take(), Err(PopError::Closed), "once");
            }
            2 => {
                taker.close();
                assert_eq!(giver.send(Rc::clone(&element)), Err(Rc::clone(&element)));
            }
            3 => {
                drop(taker);
                assert_eq!(giver.send(Rc::clone(&element)), Err(Rc::clone(&element)));
                continue;
            }
            _ => drop(giver),
        }
        drop(taker);
        assert_eq!(Rc::strong_count(&element), 1);
    }
    assert_eq!(Rc::strong_count(&element), 1);
}

#[test]
fn the_last_waker_is_woken_once() {
    let (giver, mut taker) = oneshot();
    let ((first, first_waker), (second, second_waker)) = (count(), count());
    assert!(taker.list(first_waker));
    assert!(taker.list(second_waker));
    assert_eq!(std::sync::Arc::strong_count(&first), 1, "forgotten at once");
    giver.send(1).unwrap();
    // ORDERING: Relaxed, a test's counts.
    let woken = [&first, &second].map(|count| count.0.load(Ordering::Relaxed));
    assert_eq!(woken, [0, 1]);
    assert_eq!(std::sync::Arc::strong_count(&second), 1);
    assert_eq!(taker.try_take(), Ok(1));
}

#[test]
fn a_waker_that_stays_is_dropped_with_the_rest() {
    let (mut giver, mut taker) = oneshot::<u8>();
    let (theirs, waker) = count();
    assert!(giver.list(waker.clone()) && taker.list(waker));
    taker.unlist();
    assert_eq!(std::sync::Arc::strong_count(&theirs), 2);
    giver.send(1).unwrap();
    drop(taker);
    assert_eq!(std::sync::Arc::strong_count(&theirs), 1);
}

#[test]
fn who_goes_takes_its_waker_along() {
    let (theirs, waker) = count();
    let (mut giver, mut taker) = oneshot::<u8>();
    assert!(taker.list(waker.clone()));
    drop(taker);
    assert_eq!(std::sync::Arc::strong_count(&theirs), 2);
    assert!(!giver.list(Waker::noop().clone()), "it has gone");
    let (mut other, taker) = oneshot::<u8>();
    assert!(other.list(waker));
    drop(other);
    assert_eq!(std::sync::Arc::strong_count(&theirs), 1);
    assert!(taker.is_closed());
}

#[test]
fn a_panicking_waker_leaves_the_element() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: std::sync::Arc<Self>) {
            panic!("made up");
        }
    }
    let (giver, mut taker) = oneshot();
    assert!(taker.list(Waker::from(std::sync::Arc::new(Panics))));
    let sending = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| giver.send(1)));
    assert!(matches!(sending, Ok(Ok(()))), "it is not the sender's");
    assert_eq!(taker.try_take(), Ok(1));
}
