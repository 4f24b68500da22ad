//! Figures of buses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use thalweg::bus::{Bus, Message, TopicId, TopicInfo, Topics};

use crate::export::Directory;

#[derive(Clone)]
struct Job(Arc<AtomicU64>);

impl Message for Job {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("job")];

    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn the_last_snapshot_has_what_inboxes_read_and_those_that_are_gone() {
    let directory = Directory::new();
    let builder = Bus::<Job>::builder().capacity(64).export_to(&*directory.0);
    let bus = builder.build().expect("a valid bus");
    let mut gone = bus.subscribe(Topics::ALL).expect("it is open");
    let mut stays = bus.subscribe(Topics::ALL).expect("it is open");
    let mut publisher = bus.publisher("test").expect("it is open");
    let dropped = Arc::new(AtomicU64::new(0));
    for _ in 0..50 {
        let sent = publisher.publish(Job(Arc::clone(&dropped)));
        assert!(sent.is_ok(), "there is room");
    }
    for _ in 0..20 {
        gone.recv().expect("it is there");
    }
    for _ in 0..50 {
        stays.recv().expect("it is there");
    }
    drop(gone);
    let readings = bus.inbox_readings();
    drop((publisher, stays, bus));
    let exported = directory.only();
    assert_eq!(exported["kind"], "bus");
    assert_eq!(exported["has_ended"], true);
    let [(_, reading)] = readings[..] else {
        panic!("one inbox is open: {readings:?}");
    };
    let inboxes = exported["inboxes"].as_array().expect("inboxes");
    let expected = [
        (50, 20, 0),
        (reading.issued, reading.taken, reading.waiting),
    ];
    assert_eq!(inboxes.len(), expected.len());
    for (at, (issued, taken, waiting)) in expected.into_iter().enumerate() {
        let inbox = &inboxes[at];
        assert_eq!(inbox["inbox"], at);
        assert_eq!(inbox["capacity"], reading.capacity);
        assert_eq!(
            (&inbox["issued"], &inbox["lost"]),
            (&issued.into(), &0.into())
        );
        assert_eq!(
            (&inbox["events"], &inbox["waiting"]),
            (&taken.into(), &waiting.into())
        );
        assert_eq!(inbox["arrived"], 50);
        let losses = ["refused", "timed_out", "evicted"].map(|cause| &inbox[cause]);
        assert_eq!(losses, [0, 0, 0]);
        assert!(inbox["waiting_sum"].is_u64(), "{inbox}");
    }
    // The last consumer of the one went before 30 messages came to it.
    let discarded = [0, 1].map(|at| &inboxes[at]["discarded"]);
    assert_eq!(discarded, [30, 0]);
    assert_eq!(dropped.load(SeqCst), 100, "nothing is kept");
}
