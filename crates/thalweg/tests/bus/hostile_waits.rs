//! Waits that others disturb, while all ends stay alive: futures that are given up, wakers that
//! panic, members that panic, joiners in the middle of retained messages.

use crate::bus::hostile_types::{self, Moment, Trap, World, throw};
use crate::bus::note::{BLOCK, Note, OLDEST, RETAINED, bus, note};
use crate::bus::watchdog::watched;
use crate::bus::{Random, check_totals};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, yield_now};
use std::time::Duration;
use thalweg::bus::{Consumer, Delivery, Priority, Topics};
use thalweg::channel::RecvError;

/// Wakes a thread, and panics.
struct Panicking(Thread);

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
        resume_unwind(Box::new("a bad waker"));
    }
}

/// Polls up to so often, each time by a waker of its own, and gives up.
fn polled(rx: &mut Consumer<Note>, polls: usize) -> Option<Result<Delivery<Note>, RecvError>> {
    let mut future = pin!(rx.recv_async());
    for _ in 0..polls {
        let waker = Waker::from(Arc::new(Panicking(thread::current())));
        if let Poll::Ready(got) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(got);
        }
        yield_now();
    }
    None
}

/// Two members of a group give futures up all the time, two wait as threads; one publisher's
/// messages come to each in their order, and to one only.
#[test]
fn futures_that_are_given_up_lose_nothing_and_keep_no_other_waiting() {
    watched(|| {
        const EACH: u64 = 20_000;
        let bus = bus(4);
        let first = bus.subscribe(Topics::ALL).unwrap();
        let members: Vec<_> = (0..4)
            .map(|n| {
                let mut rx = first.share();
                thread::spawn(move || {
                    let (mut random, mut got) = (Random(n + 1), Vec::new());
                    loop {
                        let next = if n < 2 {
                            polled(&mut rx, random.below(4))
                        } else {
                            Some(rx.recv())
                        };
                        match next {
                            Some(Ok(delivery)) => {
                                assert_eq!(delivery.lost_before, 0);
                                got.push(delivery.message.value);
                            }
                            Some(Err(_)) => return (got, rx),
                            None => {}
                        }
                    }
                })
            })
            .collect();
        let mut tx = bus.publisher("feed").unwrap();
        for n in 0..EACH {
            tx.publish(note(BLOCK, n)).unwrap();
        }
        bus.close();
        let members: Vec<_> = members.into_iter().map(|t| t.join().unwrap()).collect();
        let mut all: Vec<u64> = Vec::new();
        for (got, _) in &members {
            assert!(got.is_sorted());
            all.extend(got);
        }
        all.sort_unstable();
        assert!(all.into_iter().eq(0..EACH));
        check_totals(&bus.totals());
        drop((tx, members, first));
    });
}

/// Members of a group panic with a message each, while publishers wait below different limits.
#[test]
fn members_that_panic_keep_no_publisher_waiting() {
    watched(|| {
        const EACH: u64 = 1_000;
        let bus = bus(2);
        let first = bus.subscribe(Topics::of(&[BLOCK, OLDEST])).unwrap();
        let publishers = Priority::ALL.map(|priority| {
            let mut tx = bus.publisher("waits").unwrap();
            thread::spawn(move || {
                let mut timed_out = 0;
                for n in 0..EACH {
                    tx.publish_with_priority(priority, note(BLOCK, n)).unwrap();
                    let _ = tx.publish(note(OLDEST, n)).unwrap();
                    let timeout = Duration::from_micros(n % 20);
                    timed_out += u64::from(tx.publish_timeout(note(BLOCK, n), timeout).is_err());
                }
                (tx, timed_out)
            })
        });
        let mut panics = 0;
        while !publishers.iter().all(thread::JoinHandle::is_finished) {
            let mut rx = first.share();
            let member = thread::spawn(move || {
                let mut left = 7;
                while let Ok(_got) = rx.recv_timeout(Duration::from_millis(1)) {
                    left -= 1;
                    if left == 0 {
                        resume_unwind(Box::new("a bad handler"));
                    }
                }
            });
            panics += u64::from(member.join().is_err());
        }
        let publishers = publishers.map(|thread| thread.join().unwrap());
        assert!(panics > 0);
        let timed_out: u64 = publishers.iter().map(|(_, timed_out)| timed_out).sum();
        let totals = bus.totals();
        assert_eq!(crate::bus::sum(totals.outcomes.timed_out), timed_out);
        check_totals(&totals);
        drop((publishers, first));
    });
}

/// A late joiner gets the last message, and then the next one: none twice, none left out.
#[test]
fn a_late_joiner_goes_on_where_the_retained_one_was() {
    watched(|| {
        let bus = bus(64);
        let over = Arc::new(AtomicBool::new(false));
        let mut tx = bus.publisher("feed").unwrap();
        tx.publish(note(RETAINED, 0)).unwrap();
        let publishing = thread::spawn({
            let over = Arc::clone(&over);
            move || {
                while !over.load(SeqCst) {
                    let next = tx.next_sequence(RETAINED);
                    let _ = tx.publish_with_priority(Priority::Critical, note(RETAINED, next));
                }
                tx
            }
        });
        for _ in 0..2_000 {
            let joiner = bus.subscription(Topics::ALL).replay_retained();
            let mut rx = joiner.open().unwrap();
            let last = rx.recv().unwrap();
            assert!(last.is_replay);
            assert_eq!(last.message.value, last.sequence);
            let next = rx.recv().unwrap();
            assert_eq!((next.is_replay, next.lost_before), (false, 0));
            assert_eq!(next.sequence, last.sequence + 1);
        }
        over.store(true, SeqCst);
        let tx = publishing.join().unwrap();
        check_totals(&bus.totals());
        drop(tx);
    });
}

/// A consumer goes with a batch that it holds, while its inbox is full; as these messages are
/// dropped, they publish to it. It was the only one.
#[test]
fn a_drop_that_publishes_does_not_wait_for_the_consumer_that_goes() {
    watched(|| {
        let mut world = World::with(false, 16);
        let mut rx = world.bus.subscribe(Topics::ALL).unwrap();
        for value in 0..6 {
            assert!(!world.publish(hostile_types::BLOCK, value));
        }
        let mut count = 0;
        let bad = AssertUnwindSafe(|| {
            rx.try_recv_each(9, |_| {
                count += 1;
                if count == 2 {
                    throw();
                }
            })
        });
        catch_unwind(bad).unwrap_err();
        let fill = |world: &mut World| {
            let trap = world.trap(hostile_types::BLOCK, 100);
            world.tx.try_publish(trap).is_ok()
        };
        while fill(&mut world) {}
        let other = Mutex::new(world.bus.publisher("other").unwrap());
        world.hooks.set(move |moment, value| {
            if moment == Moment::Drop && value < 100 {
                let trap = Trap::new(hostile_types::BLOCK, 200);
                assert_eq!(other.lock().unwrap().publish(trap).ok(), Some(0));
            }
        });
        drop(rx);
        check_totals(&world.bus.totals());
    });
}
