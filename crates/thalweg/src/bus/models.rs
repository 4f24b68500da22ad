//! loom models of a bus: subscribing, admission, topic buffers and leaving. Each has a seeded fault
//! that it must catch.

use super::*;
use crate::channel::models::{begin, cancelling::run, check, kept::Kept};
use crate::state::Lifecycle;
use loom::thread;

/// `false`: of a topic in the ring; `true`: of a topic with a buffer.
#[derive(Clone, Debug, PartialEq)]
struct Note(bool);

impl Message for Note {
    const TOPICS: &'static [TopicInfo] = &[
        TopicInfo {
            priority: Priority::Low,
            ..TopicInfo::new("ring")
        },
        TopicInfo {
            overflow: TopicOverflow::DropOldest { keep: 2 },
            ..TopicInfo::new("buffered")
        },
    ];

    fn topic(&self) -> TopicId {
        TopicId::new(self.0.into())
    }
}

const RING: Topics = Topics::of(&[TopicId::new(0)]);

fn bus(capacity: usize, admission: Admission) -> Kept<Bus<Note>> {
    let bus = Bus::builder().capacity(capacity).admission(admission);
    Kept::new(bus.build().expect("a capacity in range"))
}

fn subscribed(bus: &Bus<Note>, topics: Topics) -> Kept<Consumer<Note>> {
    Kept::new(bus.subscribe(topics).expect("an open bus"))
}

fn publisher(bus: &Bus<Note>) -> Kept<Publisher<Note>> {
    Kept::new(bus.publisher("p").expect("an open bus"))
}

/// Checks the sums that hold while no thread is at work.
fn check_totals(bus: &Bus<Note>) -> Totals {
    let totals = bus.totals();
    let Totals {
        outcomes,
        consumers,
    } = totals;
    let sum = |by: [u64; Priority::COUNT]| by.iter().sum::<u64>();
    assert_eq!(
        sum(outcomes.issued),
        sum(outcomes.admitted) + sum(outcomes.refused) + sum(outcomes.timed_out)
    );
    let left =
        consumers.taken() + consumers.waiting + sum(outcomes.evicted) + sum(outcomes.discarded);
    assert_eq!(sum(outcomes.admitted), left, "{totals:?}");
    totals
}

#[test]
fn a_publisher_learns_of_each_inbox() {
    check(3, &["version_kept", "version_late"], || {
        let bus = bus(2, Admission::reserve(0, 0, 0));
        let mut tx = publisher(&bus);
        let first = subscribed(&bus, RING);
        let publishing = thread::spawn(move || {
            let early = tx.publish(Note(false)).expect("room for two");
            (early, tx)
        });
        begin();
        let second = subscribed(&bus, RING);
        let (early, mut tx) = publishing.join().unwrap();
        assert!((1..=2).contains(&early));
        assert_eq!(tx.publish(Note(false)).expect("room for two"), 2);
        let waiting = [&first, &second].map(|rx| rx.counts().waiting);
        assert_eq!(waiting, [2, early as u64]);
        check_totals(&bus);
    });
}

#[test]
fn priorities_get_what_their_limits_allow() {
    check(2, &["limit_unasked", "loss_unreported"], || {
        let bus = bus(3, Admission::reserve(0, 0, 1));
        let mut rx = subscribed(&bus, RING);
        let (mut tx, mut other) = (publisher(&bus), publisher(&bus));
        let publishing = thread::spawn(move || {
            let first = other.try_publish(Note(false)).is_ok();
            (first, other.try_publish(Note(false)).is_ok(), other)
        });
        begin();
        let own = tx.try_publish(Note(false)).is_ok();
        let (first, second, mut other) = publishing.join().unwrap();
        assert!(
            first && (own ^ second),
            "two of three are below the limit of 2"
        );
        let high = tx.publish_with_priority(Priority::Critical, Note(false));
        assert_eq!(high.expect("kept free"), 1);
        let mut reported = 0;
        for _ in 0..3 {
            reported += rx.recv().expect("there").lost_before;
        }
        assert_eq!(reported, u64::from(!own));
        // The other publisher's loss is reported by its next message that is admitted.
        assert_eq!(other.publish(Note(false)).expect("empty"), 1);
        assert_eq!(rx.recv().expect("there").lost_before, u64::from(!second));
        assert_eq!(check_totals(&bus).consumers.reported, 1);
    });
}

#[test]
fn nothing_stays_in_a_topic_buffer() {
    check(2, &["token_late"], || {
        let bus = bus(1, Admission::reserve(0, 0, 0));
        let mut rx = subscribed(&bus, Topics::ALL);
        let mut tx = publisher(&bus);
        let publishing = thread::spawn(move || {
            for _ in 0..2 {
                assert_eq!(tx.publish(Note(true)).expect("never refused"), 1);
            }
            tx
        });
        begin();
        for sequence in 0..2 {
            let got = rx.recv().expect("the publisher is there");
            assert_eq!((got.sequence, got.lost_before), (sequence, 0));
        }
        let _tx = publishing.join().unwrap();
        assert_eq!(check_totals(&bus).consumers.waiting, 0);
    });
}

fn what_comes_late_is_counted(is_buffered: bool) {
    let bus = bus(2, Admission::reserve(0, 0, 0));
    let rx = subscribed(&bus, Topics::ALL);
    let mut tx = publisher(&bus);
    let leaving = thread::spawn(move || drop(rx.take()));
    begin();
    let taken = tx
        .publish(Note(is_buffered))
        .expect("it runs, and has room");
    leaving.join().unwrap();
    let totals = check_totals(&bus);
    let discarded: u64 = totals.outcomes.discarded.iter().sum();
    assert_eq!((discarded, totals.consumers.waiting), (taken as u64, 0));
}

#[test]
fn a_late_message_is_discarded_and_counted() {
    check(3, &["shut"], || what_comes_late_is_counted(false));
}

#[test]
fn a_late_message_in_a_topic_buffer_is_discarded_and_counted() {
    check(3, &["left_behind"], || what_comes_late_is_counted(true));
}

#[test]
fn the_end_comes_behind_what_was_published() {
    check(2, &["closed_unbumped"], || {
        let bus = bus(2, Admission::reserve(0, 0, 0));
        let mut rx = subscribed(&bus, RING);
        let mut tx = publisher(&bus);
        let publishing = thread::spawn(move || {
            let first = tx.publish(Note(false)).is_ok();
            let second = tx.publish(Note(false)).is_ok();
            assert!(first || !second, "open again");
            (u64::from(first) + u64::from(second), tx)
        });
        begin();
        assert!(bus.close());
        let mut received = 0;
        while rx.recv().is_ok() {
            received += 1;
        }
        let (published, mut tx) = publishing.join().unwrap();
        assert_eq!(received, published);
        let refused = tx.publish(Note(false)).expect_err("drained");
        assert_eq!(
            (refused.reason, bus.state().get()),
            (Reason::Closed, Lifecycle::Stopped)
        );
        check_totals(&bus);
    });
}

#[test]
fn what_was_buffered_comes_before_the_end() {
    check(2, &["end_unlooked", "left_behind"], || {
        let bus = bus(1, Admission::reserve(0, 0, 0));
        let mut rx = subscribed(&bus, Topics::ALL);
        let (mut tx, mut other) = (publisher(&bus), publisher(&bus));
        let publishing = thread::spawn(move || {
            let published = other.publish(Note(true)).is_ok();
            (u64::from(published), other)
        });
        begin();
        tx.publish(Note(true)).expect("never refused");
        assert!(bus.close());
        let mut received = 0;
        while rx.recv().is_ok() {
            received += 1;
        }
        let (published, _other) = publishing.join().unwrap();
        assert_eq!(received, 1 + published);
        assert_eq!(check_totals(&bus).consumers.waiting, 0);
    });
}

/// A publisher that waits for the end of a pause, which comes in one way or the other.
fn a_pause_ends(end: fn(&Bus<Note>) -> bool, published: Result<usize, Reason>) {
    let bus = bus(2, Admission::reserve(0, 0, 0));
    let mut rx = subscribed(&bus, RING);
    let mut tx = publisher(&bus);
    assert!(bus.pause());
    let publishing = thread::spawn(move || {
        let outcome = tx.publish(Note(false)).map_err(|error| error.reason);
        (outcome, tx)
    });
    begin();
    assert!(end(&bus));
    let (outcome, _tx) = publishing.join().unwrap();
    assert_eq!(outcome, published);
    assert_eq!(rx.try_recv().is_ok(), published.is_ok());
    check_totals(&bus);
}

#[test]
fn a_publisher_goes_on_after_a_pause() {
    check(2, &["change_unnotified", "dekker"], || {
        a_pause_ends(Bus::resume, Ok(1));
    });
}

#[test]
fn a_publisher_that_is_held_back_sees_the_end() {
    check(2, &["change_unnotified"], || {
        a_pause_ends(Bus::stop, Err(Reason::Closed));
    });
}

/// Room in both of two inboxes, which comes in one after the other: the task is woken for it, and
/// what it takes in the one it gives back while there is none in the other.
#[test]
fn a_task_publishes_everywhere_or_nowhere() {
    check(2, &["future_look_again", "dekker"], || {
        let bus = bus(1, Admission::reserve(0, 0, 0));
        let (mut one, mut two) = (subscribed(&bus, RING), subscribed(&bus, RING));
        let mut tx = publisher(&bus);
        assert_eq!(tx.publish(Note(false)).expect("room"), 2);
        let publishing = thread::spawn(move || {
            let published = run(Box::pin(tx.publish_async(Note(false))));
            (published.map_err(|error| error.reason), tx)
        });
        begin();
        for rx in [&mut one, &mut two] {
            assert_eq!(rx.recv().expect("there").sequence, 0);
        }
        let (published, _tx) = publishing.join().unwrap();
        assert_eq!(published, Ok(2));
        for rx in [&mut one, &mut two] {
            let got = rx.try_recv().expect("published");
            assert_eq!((got.sequence, got.lost_before), (1, 0));
        }
        check_totals(&bus);
    });
}

/// A place that is given up beside a publisher that waits behind it, and a consumer.
#[test]
fn a_place_that_is_given_up_hides_nothing() {
    check(1, &["place_kept"], || {
        let bus = bus(2, Admission::reserve(0, 0, 0));
        let mut rx = subscribed(&bus, RING);
        let mut full = subscribed(&bus, RING);
        let (mut tx, mut other) = (publisher(&bus), publisher(&bus));
        for _ in 0..2 {
            assert_eq!(tx.publish(Note(false)).expect("room"), 2);
        }
        for _ in 0..2 {
            rx.recv().expect("there");
        }
        let publishing = thread::spawn(move || {
            let published = run(Box::pin(other.publish_async(Note(false))));
            (published.map_err(|error| error.reason), other)
        });
        begin();
        // Takes the places, or one of them, when there is room for one of the two.
        full.recv().expect("there");
        let own = tx.try_publish(Note(false)).map_err(|error| error.admitted);
        full.recv().expect("there");
        let (published, _other) = publishing.join().unwrap();
        assert_eq!(published, Ok(2));
        let mut received = 0;
        while rx.try_recv().is_ok() {
            received += 1;
        }
        assert_eq!(received, 1 + own.unwrap_or_else(|admitted| admitted).min(1));
        check_totals(&bus);
    });
}

mod express {
    //! The express lane: a consumer that waits is woken for either ring, and gets what is in both
    //! before the end.

    use super::*;

    fn express(bus: &Bus<Note>) -> Kept<Consumer<Note>> {
        let options = bus.subscription(RING).express(Priority::High, 2);
        Kept::new(options.open().expect("an open bus"))
    }

    /// One message into each ring, by two publishers that stay.
    fn one_into_each(bus: &Bus<Note>) -> impl FnOnce() -> [Kept<Publisher<Note>>; 2] + use<> {
        let (mut low, mut high) = (publisher(bus), publisher(bus));
        move || {
            assert_eq!(low.publish(Note(false)).expect("room for one"), 1);
            let sent = high.publish_with_priority(Priority::High, Note(false));
            assert_eq!(sent.expect("room for one"), 1);
            [low, high]
        }
    }

    #[test]
    fn a_consumer_is_woken_for_either_ring() {
        check(2, &["express_unseen", "dekker"], || {
            let bus = bus(1, Admission::reserve(0, 0, 0));
            let mut rx = express(&bus);
            let publishing = thread::spawn(one_into_each(&bus));
            begin();
            let mut priorities = [(); 2].map(|()| rx.recv().expect("it comes").priority);
            priorities.sort_unstable();
            assert_eq!(priorities, [Priority::Low, Priority::High]);
            let _txs = publishing.join().unwrap();
            assert_eq!(check_totals(&bus).consumers.waiting, 0);
        });
    }

    /// One wake-up may stand for two messages of the lane: the consumer that is woken wakes the
    /// other.
    #[test]
    fn each_member_of_a_group_is_woken() {
        check(1, &["express_kept"], || {
            let bus = bus(1, Admission::reserve(0, 0, 0));
            let first = express(&bus);
            let second = Kept::new(first.share());
            let consuming = [first, second].map(|mut rx| {
                thread::spawn(move || {
                    rx.recv().expect("one for each");
                    rx
                })
            });
            begin();
            let mut tx = publisher(&bus);
            for _ in 0..2 {
                let sent = tx.publish_with_priority(Priority::High, Note(false));
                assert_eq!(sent.expect("room for two"), 1);
            }
            let _rxs = consuming.map(|consuming| consuming.join().unwrap());
            assert_eq!(check_totals(&bus).consumers.waiting, 0);
        });
    }

    #[test]
    fn the_end_comes_behind_both_rings() {
        check(2, &["express_end"], || {
            let bus = bus(1, Admission::reserve(0, 0, 0));
            let mut rx = express(&bus);
            let mut tx = publisher(&bus);
            let publishing = thread::spawn(move || {
                let sent = tx.publish_with_priority(Priority::High, Note(false));
                (usize::from(sent.is_ok()), tx)
            });
            begin();
            assert!(bus.close());
            let mut received = 0;
            while rx.recv().is_ok() {
                received += 1;
            }
            let (published, _tx) = publishing.join().unwrap();
            assert_eq!(received, published);
            assert_eq!(bus.state().get(), Lifecycle::Stopped);
            check_totals(&bus);
        });
    }

    #[test]
    fn a_late_message_in_the_lane_is_discarded_and_counted() {
        check(3, &["shut", "express_left"], || {
            let bus = bus(1, Admission::reserve(0, 0, 0));
            let rx = express(&bus);
            let mut tx = publisher(&bus);
            let leaving = thread::spawn(move || drop(rx.take()));
            begin();
            let sent = tx.publish_with_priority(Priority::High, Note(false));
            let taken = sent.expect("it runs, and has room");
            leaving.join().unwrap();
            let totals = check_totals(&bus);
            let discarded: u64 = totals.outcomes.discarded.iter().sum();
            assert_eq!((discarded, totals.consumers.waiting), (taken as u64, 0));
        });
    }
}
