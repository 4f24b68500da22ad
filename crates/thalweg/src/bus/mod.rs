//! A message bus: typed messages from many threads to many consumers, by topic, with priorities,
//! and an exact account of what was lost.
//!
//! ```
//! use thalweg::bus::{Bus, Policy, Priority, Topics};
//!
//! #[derive(Clone, Debug, PartialEq)]
//! pub struct Trade { price: u64 }
//! #[derive(Clone, Debug, PartialEq)]
//! pub struct Halt;
//!
//! thalweg::topics! {
//!     #[derive(Debug, PartialEq)]
//!     pub enum Market => MarketVisitor {
//!         Trade(Trade) in "market.trade" => on_trade { policy: Policy::Reject },
//!         Halt(Halt) in "market.halt" => on_halt { priority: Priority::Critical },
//!     }
//! }
//!
//! let bus = Bus::<Market>::builder().capacity(4).build()?;
//! let mut rx = bus.subscribe(Topics::ALL)?;
//! let mut tx = bus.publisher("feed")?;
//! // Medium priority may fill 80 % of 4 places: the last of these trades is refused.
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
//! Priority decides which message is refused when an inbox is nearly full; for delivery order use
//! [`express`](Subscription::express).
//!
//! # How it works
//! Every consumer, or group of consumers ([`Consumer::share`]), has an *inbox*: a bounded ring. A
//! [`Publisher`] puts a message into each inbox that wants its topic, so a slow consumer fills its
//! own inbox and no other. A message for several inboxes is cloned; large payloads go into an
//! `Arc`. A late joiner is a new inbox, and gets what is published after
//! [`subscribe`](Bus::subscribe) returned; with [`Subscription::replay_retained`] it first gets the
//! last message of each topic that is retained.
//!
//! # Priorities
//! An inbox admits a message if fewer messages wait in its ring than the limit of that
//! [`Priority`] says, at the moment at which it takes its place; see [`Admission`]. By default low
//! priority may fill 60 % of the capacity, medium 80 %, high 99 % and critical all of it. So a
//! topic without a priority of its own, which is medium, gets 80 %. Order is not changed by
//! priority, unless the inbox has an express lane ([`Subscription::express`]): a ring of its own
//! for high priorities, which consumers empty first.
//!
//! # Where there is no room
//! The [`Policy`] of the topic says what happens:
//!
//! | policy | the publisher | lost |
//! |---|---|---|
//! | [`Policy::Block`] | waits | what it gives up (*) |
//! | [`Policy::Reject`] | gets the message back | that message |
//! | [`Policy::DropOldest`] | goes on | the oldest message of the topic that waits |
//! | [`Policy::Conflate`] | goes on | the older message with the same key |
//!
//! (*) By [`try_publish`](Publisher::try_publish) or
//! [`publish_timeout`](Publisher::publish_timeout).
//!
//! Messages of the last two wait beside the ring, up to the number that the policy names for each
//! topic and inbox, and are admitted whatever their priority; a consumer that comes to the first of
//! them gets all that wait there, oldest first.
//!
//! # Loss
//! Sequence numbers are of a publisher and a topic, and taken before admission, so a consumer sees
//! what it did not get. [`Delivery::lost_before`] says how many of that publisher's messages of
//! that topic this inbox lost since the last one that it took (in a group: since the last one that
//! any of them took). [`Consumer::losses`] has all losses by publisher, priority and reason. While
//! the bus is idle and the inbox empty: losses = [`Service::reported`] + [`Service::unreported`] +
//! losses after the last message taken of each publisher and topic, which no message reports.
//!
//! Messages that a consumer holds when it leaves are discarded: no other consumer gets them, and no
//! later one reports the gaps before them, since others of the group may have got some in between.
//!
//! # What adapts
//! [`Consumer::recv_each`] takes batches whose size follows what waits, and a consumer that waits
//! spins before it sleeps where that pays ([`Mode`](crate::wait::Mode)). [`Bus::readings`] has the
//! counters that say whether an inbox keeps up, and [`Bus::snapshot`] has all counts.
//!
//! # Ends
//! A consumer that is dropped, also by a panic, closes its inbox if it is the last of its group;
//! what was there is discarded and counted, and publishers go on without it. Publishing without any
//! consumer is no error. [`Bus::pause`] holds publishers back. [`Bus::drain`] ends publishing, and
//! consumers get what is there, then an error; [`Bus::stop`] discards what is there. The bus drains
//! when the last [`Bus`] and [`Publisher`] of it is dropped. [`Bus::state`] is its
//! [`Lifecycle`](crate::state::Lifecycle), which threads and tasks can wait for.
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
mod shelf;
#[cfg(all(test, not(any(loom, shuttle))))]
mod simulated;
mod topic;
mod visit;

pub use crate::topics;
pub use consumer::{BATCH_MAX, Consumer, Delivery};
pub use handle::{Bus, BusBuilder, Subscription};
pub use inbox::{BusError, ExpressLane};
pub use ledger::{FlowCounts, Losses, Reading, Service, Totals};
pub use link::{PublishError, Reason};
pub use priority::{Admission, AdmissionError, Burst, BurstError, Priority, Reserves};
pub use publisher::Publisher;
pub use registry::{InboxStats, Snapshot};
pub use topic::{Carries, Message, PatternError, Policy, TopicError, TopicId, TopicInfo, Topics};
pub use visit::Visit;

/// A publisher of a bus, by the order in which they were made.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PublisherId(u32);

/// An inbox of a bus, by the order in which they were made.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InboxId(u32);

macro_rules! ids {
    ($($id:ident),+) => {$(
        impl $id {
            /// Returns how many there were before.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

ids!(PublisherId, InboxId);
