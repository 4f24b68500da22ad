//! Texts, and options that can't be had.

use crate::bus::note::{Note, bus};
use thalweg::bus::{
    Admission, AdmissionError, Bus, BusError, Message, Priority, TopicId, TopicInfo, Topics,
};

#[derive(Clone)]
struct Mute;

impl Message for Mute {
    const TOPICS: &'static [TopicInfo] = &[];

    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

#[test]
fn what_cannot_be_had_is_an_error() {
    let error = Bus::<Mute>::new().unwrap_err();
    assert_eq!(
        error.to_string(),
        "topics of a bus: 0 topics, where a message has 1 to 64"
    );
    for capacity in [0, usize::MAX, 1 << 31] {
        let error = Bus::<Note>::builder()
            .capacity(capacity)
            .build()
            .unwrap_err();
        assert_eq!(error, BusError::Capacity(capacity));
        let range = "is outside 1 to 536870912 messages";
        let expected = format!("inbox of a bus: capacity {capacity} {range}");
        assert_eq!(error.to_string(), expected);
    }
    let admission = Admission::reserve(1, 1, 1);
    let error = Bus::<Note>::builder()
        .capacity(3)
        .admission(admission)
        .build()
        .unwrap_err();
    let expected = AdmissionError::Reserves {
        needed: 4,
        capacity: 3,
    };
    assert_eq!(error, BusError::Admission(expected));
    assert_eq!(
        error.to_string(),
        "inbox of a bus: reserves need room for 4 messages, and an inbox has 3"
    );
    let bus = bus(8);
    let subscription = bus
        .subscription(Topics::ALL)
        .admission(Admission::percent(9, 8, 7));
    assert_eq!(
        subscription.open().unwrap_err().to_string(),
        "inbox of a bus: limits of [9, 8, 7] percent do not ascend up to 100"
    );
    bus.close();
    assert_eq!(bus.subscribe(Topics::ALL).unwrap_err(), BusError::Closed);
    let error = bus.publisher("late").unwrap_err();
    assert_eq!(error.to_string(), "the bus was closed or stopped");
}

/// A message of which there is no room for many.
#[derive(Clone)]
struct Huge(#[expect(dead_code, reason = "its size is what matters")] [u8; 1 << 18]);

impl Message for Huge {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("huge")];

    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

/// Rings have more places than were asked for, and errors name what was.
#[test]
fn memory_that_cannot_be_had_is_an_error() {
    // With room for such messages.
    let thread = std::thread::Builder::new().stack_size(1 << 27);
    let thread = thread.spawn(|| {
        let asked = (1 << 29) - 1;
        let bus = Bus::<Huge>::new().unwrap();
        let options = || bus.subscription(Topics::ALL);
        for options in [
            options().capacity(asked),
            options().capacity(1).express(Priority::High, asked),
        ] {
            let text = options.open().unwrap_err().to_string();
            let begin = "inbox of a bus: there is no memory for a channel of 536870911 elements";
            assert!(text.starts_with(begin), "{text}");
        }
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn handles_say_what_they_are() {
    let bus = bus(8);
    let tx = bus.publisher("feed").unwrap();
    let rx = bus.subscribe(Topics::of(&[])).unwrap();
    assert!(format!("{bus:?}").starts_with("Bus { state: Running"));
    let text = format!("{tx:?}");
    assert_eq!(
        text,
        "Publisher { id: PublisherId(0), name: \"feed\", inboxes: 0 }"
    );
    assert!(format!("{rx:?}").starts_with("Consumer { inbox: InboxId(0)"));
}
