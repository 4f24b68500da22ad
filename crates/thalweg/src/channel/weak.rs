//! How many endpoints a channel has, and weak ones, which do not count.
//!
//! *No channel ends while an upgrade succeeds.* A weak sender adds itself to the count of senders
//! only if that is not 0, and it never leaves 0 again.

use std::marker::PhantomData;

use super::hub::{Gate, Hub, ManyReceivers, ManySenders, Shape};
use super::receiver::Receiver;
use super::sender::Sender;
use super::stores::{RecvEnd, SendEnd};
use crate::ring::sync::Arc;

macro_rules! counted {
    ($($end:ident)+) => {$(
        impl<T, S: Shape> $end<T, S> {
            /// Returns how many senders there are; may be old by the time it is read.
            pub fn sender_count(&self) -> usize {
                self.hub.senders.get()
            }

            /// Returns how many receivers there are; may be old by the time it is read.
            pub fn receiver_count(&self) -> usize {
                self.hub.receivers.get()
            }
        }
        alike!([S: Shape] $end);
    )+};
}

macro_rules! alike {
    ([$($bound:tt)+] $end:ident) => {
        impl<T, $($bound)+> $end<T, S> {
            /// Returns whether both are ends of the same channel.
            pub fn same_channel(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.hub, &other.hub)
            }
        }
    };
}

counted!(Sender Receiver);
alike!([S: ManySenders] WeakSender);
alike!([S: ManyReceivers] WeakReceiver);

const FELLOWS: &str = "what has one user has no clones";

impl<T, S: ManySenders> Clone for Sender<T, S> {
    /// Returns another sender. Increments a few shared counters.
    fn clone(&self) -> Self {
        self.hub.senders.add();
        let end = self.end.shared().expect(FELLOWS);
        Self::new(end, Arc::clone(&self.hub), Arc::clone(&self.gate))
    }
}

impl<T, S: ManySenders> Sender<T, S> {
    /// Returns a sender that does not count: the channel ends without it, and it sends only when it
    /// has been upgraded.
    ///
    /// ```
    /// let (tx, mut rx) = thalweg::channel::mpsc(8);
    /// let weak = tx.downgrade();
    /// let mut again = weak.upgrade().expect("`tx` is there");
    /// again.send(1).expect("`rx` is there");
    /// drop((tx, again));
    /// assert_eq!(rx.iter().collect::<Vec<_>>(), [1]);
    /// assert!(weak.upgrade().is_none());
    /// ```
    pub fn downgrade(&self) -> WeakSender<T, S> {
        WeakSender {
            end: self.end.shared().expect(FELLOWS),
            hub: Arc::clone(&self.hub),
            gate: Arc::clone(&self.gate),
            shape: PhantomData,
        }
    }
}

/// A sender that does not count; see [`Sender::downgrade`]. It keeps the channel's memory, and no
/// element.
pub struct WeakSender<T, S: ManySenders> {
    end: SendEnd<T>,
    hub: Arc<Hub>,
    gate: Arc<Gate>,
    shape: PhantomData<fn() -> S>,
}

impl<T, S: ManySenders> WeakSender<T, S> {
    /// Returns a sender, unless the last one is gone. Costs what a clone costs.
    pub fn upgrade(&self) -> Option<Sender<T, S>> {
        self.hub.senders.revive().then(|| {
            let end = self.end.shared().expect(FELLOWS);
            Sender::new(end, Arc::clone(&self.hub), Arc::clone(&self.gate))
        })
    }
}

impl<T, S: ManySenders> Clone for WeakSender<T, S> {
    fn clone(&self) -> Self {
        Self {
            end: self.end.shared().expect(FELLOWS),
            hub: Arc::clone(&self.hub),
            gate: Arc::clone(&self.gate),
            shape: PhantomData,
        }
    }
}

impl<T, S: ManyReceivers> Clone for Receiver<T, S> {
    /// Returns another receiver of the same elements; each goes to one of them.
    fn clone(&self) -> Self {
        self.source.hub.receivers.add();
        let end = self.source.end.shared().expect(FELLOWS);
        Self::new(end, Arc::clone(&self.source.hub))
    }
}

impl<T, S: ManyReceivers> Receiver<T, S> {
    /// Returns a receiver that does not count: senders find the channel closed without it, and it
    /// receives only when it has been upgraded.
    pub fn downgrade(&self) -> WeakReceiver<T, S> {
        WeakReceiver {
            end: self.source.end.shared().expect(FELLOWS),
            hub: Arc::clone(&self.source.hub),
            shape: PhantomData,
        }
    }
}

/// A receiver that does not count; see [`Receiver::downgrade`]. It keeps the channel's memory, and
/// no element.
pub struct WeakReceiver<T, S: ManyReceivers> {
    end: RecvEnd<T>,
    hub: Arc<Hub>,
    shape: PhantomData<fn() -> S>,
}

impl<T, S: ManyReceivers> WeakReceiver<T, S> {
    /// Returns a receiver, unless the last one is gone. Costs what a clone costs.
    pub fn upgrade(&self) -> Option<Receiver<T, S>> {
        self.hub.receivers.revive().then(|| {
            let end = self.end.shared().expect(FELLOWS);
            Receiver::new(end, Arc::clone(&self.hub))
        })
    }
}

impl<T, S: ManyReceivers> Clone for WeakReceiver<T, S> {
    fn clone(&self) -> Self {
        Self {
            end: self.end.shared().expect(FELLOWS),
            hub: Arc::clone(&self.hub),
            shape: PhantomData,
        }
    }
}

shown!([T, S: ManySenders] WeakSender<T, S>, "WeakSender", _this);

shown!([T, S: ManyReceivers] WeakReceiver<T, S>, "WeakReceiver", _this);
