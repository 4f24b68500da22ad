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
        let sent = high.publish_at(Priority::High, Note(false));
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
        assert_eq!(check_totals(&bus).service.waiting, 0);
    });
}

/// One wake-up may stand for two messages of the lane: the consumer that is woken wakes the other.
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
            let sent = tx.publish_at(Priority::High, Note(false));
            assert_eq!(sent.expect("room for two"), 1);
        }
        let _rxs = consuming.map(|consuming| consuming.join().unwrap());
        assert_eq!(check_totals(&bus).service.waiting, 0);
    });
}

#[test]
fn the_end_comes_behind_both_rings() {
    check(2, &["express_end"], || {
        let bus = bus(1, Admission::reserve(0, 0, 0));
        let mut rx = express(&bus);
        let mut tx = publisher(&bus);
        let publishing = thread::spawn(move || {
            let sent = tx.publish_at(Priority::High, Note(false));
            (usize::from(sent.is_ok()), tx)
        });
        begin();
        assert!(bus.drain());
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
        let sent = tx.publish_at(Priority::High, Note(false));
        let taken = sent.expect("it runs, and has room");
        leaving.join().unwrap();
        let totals = check_totals(&bus);
        let discarded: u64 = totals.flow.discarded.iter().sum();
        assert_eq!((discarded, totals.service.waiting), (taken as u64, 0));
    });
}
