//! The order in which an inbox delivers messages, and what is not promised.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::bus::note::{BLOCK, CONFLATE, OLDEST, REJECT, bus, keyed, note};
use thalweg::bus::{Bus, Message, TopicId, TopicInfo, Topics};

#[test]
fn an_inbox_keeps_the_order_of_a_publisher() {
    let bus = bus(64);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    for value in 0..20 {
        let topic = if value % 3 == 0 { REJECT } else { BLOCK };
        tx.publish(note(topic, value)).unwrap();
    }
    let values = std::iter::from_fn(|| rx.try_recv().ok()).map(|got| got.message.value);
    assert!(values.eq(0..20));
}

/// Messages in an overflow buffer are delivered together, before messages that were published
/// between the first and the last of it.
#[test]
fn messages_of_an_overflow_buffer_overtake_those_of_other_topics() {
    let bus = bus(64);
    let mut rx = bus.subscribe(Topics::ALL).unwrap();
    let mut tx = bus.publisher("feed").unwrap();
    tx.publish(note(OLDEST, 0)).unwrap();
    tx.publish(note(BLOCK, 1)).unwrap();
    tx.publish(note(OLDEST, 2)).unwrap();
    tx.publish(keyed(CONFLATE, 1, 3)).unwrap();
    tx.publish(keyed(CONFLATE, 2, 4)).unwrap();
    tx.publish(note(BLOCK, 5)).unwrap();
    tx.publish(keyed(CONFLATE, 1, 6)).unwrap();
    let values = std::iter::from_fn(|| rx.try_recv().ok()).map(|got| got.message.value);
    assert_eq!(values.collect::<Vec<_>>(), [0, 2, 1, 4, 6, 5]);
}

type Hook = Box<dyn FnOnce() + Send>;

/// Calls the next of its hooks when it is cloned.
struct Hooked {
    value: u64,
    hooks: Arc<Mutex<VecDeque<Option<Hook>>>>,
}

impl Hooked {
    fn new(value: u64, hooks: impl IntoIterator<Item = Option<Hook>>) -> Self {
        let hooks = Arc::new(Mutex::new(hooks.into_iter().collect()));
        Self { value, hooks }
    }
}

impl Clone for Hooked {
    fn clone(&self) -> Self {
        let hook = self.hooks.lock().unwrap().pop_front().flatten();
        if let Some(hook) = hook {
            hook();
        }
        let (value, hooks) = (self.value, Arc::clone(&self.hooks));
        Self { value, hooks }
    }
}

impl Message for Hooked {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("hooked")];

    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

#[test]
fn two_inboxes_may_get_the_messages_of_two_publishers_in_different_orders() {
    let bus = Bus::<Hooked>::new().unwrap();
    let mut inboxes = [0; 3].map(|_| bus.subscribe(Topics::ALL).unwrap());
    let mut first = bus.publisher("first").unwrap();
    let mut second = bus.publisher("second").unwrap();
    let between: Hook = Box::new(move || {
        let admitted = second.publish(Hooked::new(2, [])).unwrap();
        assert_eq!(admitted, 3);
    });
    // It is cloned for two of the inboxes, for the second one when the first one has it.
    first
        .publish(Hooked::new(1, [None, Some(between)]))
        .unwrap();
    let orders = inboxes.each_mut().map(|rx| {
        let mut next = || rx.try_recv().unwrap().message.value;
        (next(), next())
    });
    assert_eq!(orders, [(1, 2), (2, 1), (2, 1)]);
}
