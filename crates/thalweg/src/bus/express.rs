//! The express lane of an inbox: a second ring, which consumers empty first.
//!
//! *The rule.* Messages of a chosen priority and above go to the lane, and are admitted if and only
//! if fewer elements than the lane has places are in it at the moment at which they draw their
//! place there, whatever is in the other ring. All priorities of the lane have that one limit. As
//! in `priority.rs`, an element is a message or the token of a shelf; tokens have places besides.
//!
//! *Shelves.* A topic that drops the oldest or conflates has one token, and so one lane: that of
//! the topic's own priority, whatever a message is published with.
//!
//! *Order.* Consumers look at the lane before each message, so a message there is overtaken by
//! nothing but those before it in the lane. Two things come first all the same: retained messages,
//! which are older than all others, and the rest of a shelf of the lane.
//!
//! *Gaps* are counted by publisher and topic, for both lanes together, in the order in which
//! messages were published. So the loss that a message reports is exact whenever it comes: the
//! [`lost_before`](super::Delivery::lost_before) sequences just before its own were lost.
//!
//! *The fast path* of a publisher knows nothing of lanes: for it the limit of such a priority is 0,
//! and a message that is not admitted there comes here.

use super::builder::BuildError;
use super::consumer::Consumer;
use super::delivery::Delivery;
use super::inbox::{Inbox, Item, Receiver, Sender};
use super::priority::Priority;
use super::topic::{Message, TopicId};
use crate::channel;

/// A figure of an inbox's ring, and of its express lane.
pub(super) type Lanes = [u64; 2];

/// The lane as the inbox has it.
pub(super) struct Lane<M> {
    from: Priority,
    messages: u64,
    /// Elements that it holds, tokens included.
    places: u64,
    /// Where publishers have their senders from, and consumers their ends.
    pub(super) end: channel::Express<Item<M>>,
}

/// The express lane of an inbox; see [`Subscription::express`](super::Subscription::express).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ExpressLane {
    /// The lowest priority that goes there.
    pub from: Priority,
    /// The number of messages that it holds at most, besides those of topics that drop the oldest
    /// or conflate.
    pub capacity: u64,
    /// The number of messages in it, those of such topics included.
    pub waiting: u64,
}

impl<M: Message> Lane<M> {
    /// Makes a lane for `messages` messages, and tokens besides, beside the ring of `receiver`.
    pub(super) fn new(
        from: Priority,
        messages: usize,
        tokens: usize,
        receiver: &Receiver<M>,
    ) -> Result<Self, BuildError> {
        let places = (messages + tokens).next_power_of_two();
        Ok(Self {
            from,
            messages: messages as u64,
            places: places as u64,
            end: (receiver.express(places)).map_err(|error| BuildError::ring(error, messages))?,
        })
    }
}

impl<M: Message> Inbox<M> {
    /// Returns whether messages of this priority, by its index, overtake.
    #[inline]
    pub(super) fn is_express(&self, priority: usize) -> bool {
        (self.lane.as_ref()).is_some_and(|lane| priority >= lane.from.index())
    }

    /// Returns whether the token of a topic's shelf goes to the express lane.
    pub(super) fn is_express_topic(&self, topic: TopicId) -> bool {
        self.is_express(M::TOPICS[topic.index()].priority.index())
    }

    /// Returns the number of elements that the lane of a topic's token holds, tokens included.
    pub(super) fn places_of(&self, topic: TopicId) -> u64 {
        match &self.lane {
            Some(lane) if self.is_express_topic(topic) => lane.places,
            _ => self.places,
        }
    }

    /// Returns a sender of the lane, for a publisher or for the thread that closes the inbox.
    pub(super) fn express_sender(&self) -> Option<Sender<M>> {
        self.lane.as_ref().map(|lane| lane.end.sender())
    }

    /// Returns how many elements were taken out of the rings and put into them, where that of the
    /// inbox is at such positions.
    pub(super) fn positions(&self, (popped, pushed): (u64, u64)) -> (Lanes, Lanes) {
        let lane = self.lane.as_ref().map(|lane| lane.end.positions());
        let (lane_popped, lane_pushed) = lane.unwrap_or_default();
        ([popped, lane_popped], [pushed, lane_pushed])
    }

    pub(super) fn express(&self) -> Option<ExpressLane> {
        let lane = self.lane.as_ref()?;
        let (mut waiting, mut tokens) = (lane.end.len() as u64, 0);
        for (index, shelf) in self.shelves.iter().enumerate() {
            if let Some(shelf) = shelf
                && self.is_express_topic(TopicId::new(index))
            {
                let (len, has_token) = shelf.len();
                waiting += len as u64;
                tokens += u64::from(has_token);
            }
        }
        Some(ExpressLane {
            from: lane.from,
            capacity: lane.messages,
            waiting: waiting.saturating_sub(tokens),
        })
    }
}

impl<M: Message> Consumer<M> {
    /// Returns the next message that comes before those of the ring: one of the express lane, or
    /// one of those ahead.
    ///
    /// It is a function of its own so that the fast path of [`next`](Self::next) is shorter.
    #[cold]
    #[inline(never)]
    pub(super) fn next_before(&mut self) -> Option<Delivery<M>> {
        loop {
            let express = match &mut self.express {
                Some(express) if self.fixed == 0 => express.try_pop().ok(),
                _ => None,
            };
            let delivery = match express {
                Some(item) => self.open(item),
                None if self.ahead.is_empty() => return None,
                None => self.next_ahead(),
            };
            if delivery.is_some() {
                return delivery;
            }
        }
    }

    /// Returns whether nothing comes into the express lane any more; also where there is none.
    #[cold]
    #[inline(never)]
    pub(super) fn is_lane_over(&self) -> bool {
        (self.express.as_ref()).is_none_or(channel::Express::is_over)
    }

    /// Returns whether the express lane has something.
    pub(super) fn has_express(&self) -> bool {
        self.express
            .as_ref()
            .is_some_and(|express| express.len() > 0)
    }
}
