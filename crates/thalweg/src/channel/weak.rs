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
            /// Returns the number of senders, which may have changed by the time it is read.
            pub fn sender_count(&self) -> usize {
                self.hub.senders.get()
            }

            /// Returns the number of receivers, which may have changed by the time it is read.
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
            /// Returns whether both belong to the same channel.
            pub fn same_channel(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.hub, &other.hub)
            }
        }
    };
}

counted!(Sender Receiver);
alike!([S: ManySenders] WeakSender);
alike!([S: ManyReceivers] WeakReceiver);

const IS_SHARED_STORE: &str = "what has one user has no clones";

impl<T, S: ManySenders> Clone for Sender<T, S> {
    /// Returns another sender of the channel. It increments a few shared counters, and allocates
    /// nothing.
    fn clone(&self) -> Self {
        self.hub.senders.add();
        let end = self.end.shared().expect(IS_SHARED_STORE);
        Self::new(end, Arc::clone(&self.hub), Arc::clone(&self.gate))
    }
}

impl<T, S: ManySenders> Sender<T, S> {
    /// Returns a weak sender. It does not keep the channel connected, and has to be upgraded to
    /// send.
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
            end: self.end.shared().expect(IS_SHARED_STORE),
            hub: Arc::clone(&self.hub),
            gate: Arc::clone(&self.gate),
            shape: PhantomData,
        }
    }
}

/// A weak sender, which does not keep the channel connected; see [`Sender::downgrade`]. It keeps
/// the channel's memory allocated, and holds no element.
pub struct WeakSender<T, S: ManySenders> {
    end: SendEnd<T>,
    hub: Arc<Hub>,
    gate: Arc<Gate>,
    shape: PhantomData<fn() -> S>,
}

impl<T, S: ManySenders> WeakSender<T, S> {
    /// Returns a sender, or `None` if the last one was dropped. Costs as much as a clone.
    pub fn upgrade(&self) -> Option<Sender<T, S>> {
        self.hub.senders.revive().then(|| {
            let end = self.end.shared().expect(IS_SHARED_STORE);
            Sender::new(end, Arc::clone(&self.hub), Arc::clone(&self.gate))
        })
    }
}

impl<T, S: ManySenders> Clone for WeakSender<T, S> {
    fn clone(&self) -> Self {
        Self {
            end: self.end.shared().expect(IS_SHARED_STORE),
            hub: Arc::clone(&self.hub),
            gate: Arc::clone(&self.gate),
            shape: PhantomData,
        }
    }
}

impl<T, S: ManyReceivers> Clone for Receiver<T, S> {
    /// Returns another receiver of the channel. Each element is received by one of them.
    fn clone(&self) -> Self {
        self.source.hub.receivers.add();
        let end = self.source.end.shared().expect(IS_SHARED_STORE);
        Self::new(end, Arc::clone(&self.source.hub))
    }
}

impl<T, S: ManyReceivers> Receiver<T, S> {
    /// Returns a weak receiver. It does not keep the channel connected: when all receivers were
    /// dropped, senders get an error. It has to be upgraded to receive.
    pub fn downgrade(&self) -> WeakReceiver<T, S> {
        WeakReceiver {
            end: self.source.end.shared().expect(IS_SHARED_STORE),
            hub: Arc::clone(&self.source.hub),
            shape: PhantomData,
        }
    }
}

/// A weak receiver, which does not keep the channel connected; see [`Receiver::downgrade`]. It
/// keeps the channel's memory allocated, and holds no element.
pub struct WeakReceiver<T, S: ManyReceivers> {
    end: RecvEnd<T>,
    hub: Arc<Hub>,
    shape: PhantomData<fn() -> S>,
}

impl<T, S: ManyReceivers> WeakReceiver<T, S> {
    /// Returns a receiver, or `None` if the last one was dropped. Costs as much as a clone.
    pub fn upgrade(&self) -> Option<Receiver<T, S>> {
        self.hub.receivers.revive().then(|| {
            let end = self.end.shared().expect(IS_SHARED_STORE);
            Receiver::new(end, Arc::clone(&self.hub))
        })
    }
}

impl<T, S: ManyReceivers> Clone for WeakReceiver<T, S> {
    fn clone(&self) -> Self {
        Self {
            end: self.end.shared().expect(IS_SHARED_STORE),
            hub: Arc::clone(&self.hub),
            shape: PhantomData,
        }
    }
}

shown!([T, S: ManySenders] WeakSender<T, S>, "WeakSender", _this);

shown!([T, S: ManyReceivers] WeakReceiver<T, S>, "WeakReceiver", _this);
