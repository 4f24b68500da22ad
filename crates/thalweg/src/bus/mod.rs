//! A message bus: typed messages from many threads to many consumers, by topic, with priorities and
//! exact loss counts.
//!
//! ```
//! use thalweg::bus::{Bus, TopicOverflow, Priority, Topics};
//!
//! #[derive(Clone, Debug, PartialEq)]
//! pub struct Trade { price: u64 }
//! #[derive(Clone, Debug, PartialEq)]
//! pub struct Halt;
//!
//! thalweg::topics! {
//!     #[derive(Debug, PartialEq)]
//!     pub enum Market => MarketVisitor {
//!         Trade(Trade) in "market.trade" => on_trade { overflow: TopicOverflow::Reject },
//!         Halt(Halt) in "market.halt" => on_halt { priority: Priority::Critical },
//!     }
//! }
//!
//! let bus = Bus::<Market>::builder().capacity(4).build()?;
//! let mut rx = bus.subscribe(Topics::ALL)?;
//! let mut tx = bus.publisher("feed")?;
//! // Medium priority may fill 80 % of 4 slots: the last of these trades is refused.
//! for price in 1..=4 {
//!     let outcome = tx.publish(Trade { price });
//!     assert_eq!(outcome.is_ok(), price < 4);
//! }
//! tx.publish(Halt)?;
//! for price in 1..=3 {
//!     assert_eq!(rx.recv()?.message, Market::Trade(Trade { price }));
//! }
//! assert_eq!(rx.recv()?.message, Market::Halt(Halt));
//! tx.publish(Trade { price: 5 })?;
//! let trade = rx.recv()?;
//! assert_eq!((trade.sequence, trade.lost_before), (4, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Priority decides which message is refused when an inbox is nearly full. Messages of high
//! priority are delivered before others only in a priority queue of their own:
//! [`express`](SubscriptionBuilder::express).
//!
//! # How it works
//! Every consumer, or group of consumers ([`Consumer::share`]), has an *inbox*: a subscriber queue,
//! which is a bounded ring. A [`Publisher`] puts a message into each inbox that wants its topic. A
//! message for several inboxes is cloned; put large payloads into an `Arc`. A late joiner has a new
//! inbox, and gets the messages that are published after [`subscribe`](Bus::subscribe) returned;
//! with [`SubscriptionBuilder::replay_retained`] it first gets the last message of each topic that
//! is retained.
//!
//! *A slow consumer fills its own inbox only, but with the default policy,
//! [`TopicOverflow::Block`], it stalls publishers:* one that waits for room in that inbox publishes
//! to no other one meanwhile, so all consumers of its messages wait, too. Where that must not be,
//! choose another policy for the topic.
//!
//! # Priorities
//! An inbox admits a message if fewer messages are in its ring than the limit of that [`Priority`],
//! at the instant at which the message is assigned its slot; see [`Admission`]. By default low
//! priority may fill 60 % of the capacity, medium 80 %, high 99 % and critical all of it. So a
//! topic without a priority of its own, which is medium, gets 80 % of the capacity: for that it is
//! full at 0.8 × `capacity`. Order is not changed by priority, unless the inbox has an express lane
//! ([`SubscriptionBuilder::express`]): a priority queue, which is a second ring for high priorities
//! that consumers empty first.
//!
//! # When an inbox is full
//! The [`TopicOverflow`] of the topic decides. The default is `Block`:
//!
//! | policy | the publisher | lost |
//! |---|---|---|
//! | [`TopicOverflow::Block`] | waits | what it gives up (*) |
//! | [`TopicOverflow::Reject`] | gets the message back | that message |
//! | [`TopicOverflow::DropOldest`] | goes on | the oldest message of the topic that waits |
//! | [`TopicOverflow::Conflate`] | goes on | the older message with the same key |
//!
//! (*) When [`try_publish`](Publisher::try_publish) finds no room, or
//! [`publish_timeout`](Publisher::publish_timeout) gets none in time.
//!
//! With the last two policies, messages wait in an overflow buffer for each topic and inbox, which
//! holds as many as the policy says, and are admitted whatever their priority. A consumer that
//! reaches the first of them receives all messages of the buffer, oldest first.
//!
//! # Order
//! An inbox delivers the messages of one publisher in the order in which they were published,
//! except that
//! - those of a topic that drops the oldest or conflates are delivered together, when the consumer
//!   reaches the first of them: so they may be delivered before messages of other topics that were
//!   published earlier. Among themselves they keep their order; with `Conflate` a message that
//!   replaces another is the newest of its topic;
//! - the messages of an express lane overtake the others.
//!
//! Messages of several publishers are in the order in which they took their slots in that inbox.
//! Two inboxes may get the messages of two publishers in different orders. Members of a group each
//! get their share in order.
//!
//! # Loss
//! Each publisher numbers the messages of each topic before they are admitted, so a consumer sees
//! which ones it did not get. [`Delivery::lost_before`] is the number of that publisher's messages
//! of that topic that this inbox lost since the last one that it took (in a group: since the last
//! one that any of them took). [`Consumer::publisher_counts`] has all losses by publisher, priority
//! and reason. While the bus is idle and the inbox empty: losses = [`ConsumerCounts::reported`] +
//! [`ConsumerCounts::unreported`] + losses after the last message taken of each publisher and
//! topic, which no message reports.
//!
//! Messages that a consumer holds when it is dropped are discarded: no other consumer gets them,
//! and no later message reports the losses before them, since others of the group may have got some
//! in between. Those are counted in [`ConsumerCounts::unreported`].
//!
//! # What adapts
//! [`Consumer::try_recv_each`] takes batches whose size follows the number of waiting messages, and
//! a consumer that waits spins before it sleeps where that pays
//! ([`WaitMode`](crate::wait::WaitMode)). [`Bus::inbox_readings`] has the counters that show
//! whether an inbox keeps up, and [`Bus::snapshot`] has all counts.
//!
//! # Ends
//! A consumer that is dropped, also by a panic, closes its inbox if it is the last of its group;
//! the messages in it are discarded and counted, and publishers continue without it. Publishing
//! without any consumer is no error. [`Bus::pause`] makes publishers wait. [`Bus::close`] ends
//! publishing for ever; consumers get the messages in their inboxes, then an error. [`Bus::stop`]
//! discards those messages. The bus drains when the last [`Bus`] and [`Publisher`] of it is
//! dropped. [`Bus::state`] is its [`Lifecycle`](crate::state::Lifecycle), which threads and tasks
//! can wait for.
//!
//! # Memory ordering
//! All that a thread did before it published a message is visible, after the receive, to the thread
//! that received it.

mod consumer;
mod handle;
mod inbox;
mod ledger;
mod link;
#[cfg(all(test, loom))]
mod models;
mod priority;
mod publisher;
mod registry;
mod topic;
mod topic_buffer;
mod visit;

pub use crate::topics;
pub use consumer::{BATCH_MAX, Consumer, Delivery};
pub use handle::{Bus, BusBuilder, SubscriptionBuilder};
pub use inbox::{BusError, ExpressLaneCounts};
pub use ledger::{ConsumerCounts, InboxReading, OutcomeCounts, PublisherCounts, Totals};
pub use link::{PublishError, Reason};
pub use priority::{Admission, AdmissionError, Priority};
pub use publisher::Publisher;
pub use registry::{InboxStats, Snapshot};
pub use topic::{
    Message, PatternError, PayloadOf, TopicError, TopicId, TopicInfo, TopicOverflow, Topics,
};
pub use visit::Visit;

/// The id of a publisher of a bus.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PublisherId(u32);

/// The id of an inbox of a bus.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InboxId(u32);

macro_rules! ids {
    ($($id:ident),+) => {$(
        impl $id {
            /// Returns the index, counted from 0 in the order in which they were made.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

ids!(PublisherId, InboxId);
