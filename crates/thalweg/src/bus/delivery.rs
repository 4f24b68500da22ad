//! Deliveries: the messages that a consumer receives, with their sequence and losses.

use super::PublisherId;
use super::inbox::Envelope;
use super::priority::Priority;
use super::topic::TopicId;

/// A message as a consumer gets it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Delivery<M> {
    /// The message.
    pub message: M,
    /// Its topic.
    pub topic: TopicId,
    /// Its priority.
    pub priority: Priority,
    /// The publisher of the message.
    pub publisher: PublisherId,
    /// The number of messages of this topic that the publisher had published before, lost ones
    /// included.
    pub sequence: u64,
    /// The number of these that this inbox lost since the last one that it took: those just before
    /// it.
    pub lost_before: u64,
    /// Whether it was published before the inbox was opened, and is the last one of its topic.
    pub is_replay: bool,
}

impl<M> From<Envelope<M>> for Delivery<M> {
    #[inline(always)]
    fn from(envelope: Envelope<M>) -> Self {
        Self {
            message: envelope.message,
            topic: envelope.topic,
            priority: envelope.priority,
            publisher: envelope.publisher,
            sequence: envelope.sequence,
            lost_before: envelope.lost_before,
            is_replay: false,
        }
    }
}
