//! Messages with a topic of each policy.

use thalweg::bus::{Bus, Message, Priority, TopicId, TopicInfo, TopicOverflow};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) topic: TopicId,
    pub(crate) key: u64,
    pub(crate) value: u64,
}

pub(crate) const BLOCK: TopicId = TopicId::new(0);
pub(crate) const REJECT: TopicId = TopicId::new(1);
pub(crate) const OLDEST: TopicId = TopicId::new(2);
pub(crate) const CONFLATE: TopicId = TopicId::new(3);
pub(crate) const RETAINED: TopicId = TopicId::new(4);

/// Places of the topics that drop the oldest or conflate.
pub(crate) const KEPT: usize = 8;

const fn topic(name: &'static str, overflow: TopicOverflow) -> TopicInfo {
    TopicInfo {
        overflow,
        ..TopicInfo::new(name)
    }
}

impl Message for Note {
    const TOPICS: &'static [TopicInfo] = &[
        topic("note.block", TopicOverflow::Block),
        TopicInfo {
            priority: Priority::Low,
            ..topic("note.reject", TopicOverflow::Reject)
        },
        topic("note.oldest", TopicOverflow::DropOldest { keep: KEPT }),
        topic("note.conflate", TopicOverflow::Conflate { keys: KEPT }),
        TopicInfo {
            is_retained: true,
            ..topic("note.retained", TopicOverflow::Reject)
        },
    ];

    fn topic(&self) -> TopicId {
        self.topic
    }

    fn key(&self) -> u64 {
        self.key
    }
}

pub(crate) fn note(topic: TopicId, value: u64) -> Note {
    keyed(topic, 0, value)
}

pub(crate) fn keyed(topic: TopicId, key: u64, value: u64) -> Note {
    Note { topic, key, value }
}

pub(crate) fn bus(capacity: usize) -> Bus<Note> {
    Bus::builder().capacity(capacity).build().unwrap()
}
