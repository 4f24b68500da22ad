//! What a bus carries: messages, and the topics that they belong to.

use super::priority::Priority;

/// Messages of a bus: each belongs to one of up to 64 topics.
///
/// ```
/// use thalweg::bus::{Message, TopicId, TopicInfo};
///
/// #[derive(Clone)]
/// struct Line { text: String, is_error: bool }
///
/// impl Message for Line {
///     const TOPICS: &'static [TopicInfo] =
///         &[TopicInfo::new("log.info"), TopicInfo::new("log.error")];
///     fn topic(&self) -> TopicId {
///         TopicId::new(self.is_error.into())
///     }
/// }
/// ```
pub trait Message: Clone + Send + 'static {
    /// The topics, 1 to 64, in the order of their [`TopicId`]s.
    const TOPICS: &'static [TopicInfo];

    /// The topic of this message: an index into [`TOPICS`](Self::TOPICS). Asked for each message,
    /// so it should be cheap.
    fn topic(&self) -> TopicId;

    /// Which messages replace each other, in topics with [`Policy::Conflate`]. Not asked in others.
    fn key(&self) -> u64 {
        0
    }
}

/// Which topic of its [`Message`]: an index into [`Message::TOPICS`].
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopicId(u8);

impl TopicId {
    /// The topic at `index`.
    ///
    /// # Panics
    /// If `index` is 64 or more.
    #[inline]
    pub const fn new(index: usize) -> Self {
        assert!(index < Topics::COUNT_MAX, "a message has up to 64 topics");
        Self(index as u8)
    }

    /// The index in [`Message::TOPICS`].
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A topic: its name, and how its messages are treated unless their publisher says otherwise.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TopicInfo {
    /// Segments between dots, such as `market.trade`.
    pub name: &'static str,
    /// The priority of a message that is published without one.
    pub priority: Priority,
    /// What happens where there is no room.
    pub policy: Policy,
    /// Whether the bus keeps the last message, for consumers that come later.
    pub is_retained: bool,
}

impl TopicInfo {
    /// A topic of medium priority whose publishers wait for room, and that is not retained.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            priority: Priority::Medium,
            policy: Policy::Block,
            is_retained: false,
        }
    }

    /// Whether these can be the topics of a [`Message`].
    ///
    /// # Errors
    /// The first thing that is not as it must be.
    pub const fn check(topics: &[Self]) -> Result<(), TopicError> {
        if topics.is_empty() || topics.len() > Topics::COUNT_MAX {
            return Err(TopicError::Count(topics.len()));
        }
        Ok(())
    }
}

/// Why topics cannot be those of a [`Message`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TopicError {
    /// So many; there must be 1 to 64.
    Count(usize),
}

errors!(TopicError {
    Self::Count(count) => "{count} topics, where a message has 1 to 64";
});

/// What happens to a message where there is no room for it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Policy {
    /// The publisher waits.
    #[default]
    Block,
    /// The publisher gets it back, in an error.
    Reject,
    /// It takes the place of the oldest one of its topic that no consumer has taken.
    DropOldest {
        /// How many messages of the topic a consumer may have waiting, at least 1.
        keep: usize,
    },
    /// It takes the place of the one with the same [`key`](Message::key) that no consumer has taken
    /// and goes behind all others of its topic. If there is none, and there are as many keys as may
    /// be, it takes the place of the oldest message.
    Conflate {
        /// How many keys of the topic a consumer may have waiting, at least 1.
        keys: usize,
    },
}

/// A set of topics.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Topics(u64);

impl Topics {
    /// All that there can be, so all that there are.
    pub const ALL: Self = Self(u64::MAX);
    /// How many topics a message may have.
    pub const COUNT_MAX: usize = 64;

    /// The topics in the slice.
    pub const fn of(topics: &[TopicId]) -> Self {
        let mut set = 0;
        let mut i = 0;
        while i < topics.len() {
            set |= 1 << topics[i].0;
            i += 1;
        }
        Self(set)
    }

    /// Whether `topic` is one of them.
    pub const fn contains(self, topic: TopicId) -> bool {
        self.0 >> topic.0 & 1 == 1
    }
}
