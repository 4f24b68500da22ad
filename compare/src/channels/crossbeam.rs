//! The queues of `crossbeam-queue`, which do not wait.

use std::sync::Arc;

use super::yielding::{self, YieldingRecv, YieldingSend};
use super::{Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

/// Queues behind an `Arc`: how each is made and pushed to.
macro_rules! queues {
    ($($(#[$doc:meta])* $queue:ident $name:literal, $waiting:literal:
        $make:expr, $push:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $queue;

        impl<M: Element> Pair<M> for $queue {
            const NAME: &'static str = $name;
            type Tx = Arc<crossbeam_queue::$queue<M>>;
            type Rx = Arc<crossbeam_queue::$queue<M>>;
            fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
                let make: fn(usize) -> crossbeam_queue::$queue<M> = $make;
                let queue = Arc::new(make(capacity));
                (Arc::clone(&queue), queue)
            }
        }

        impl<M: Element> Crowd<M> for $queue {
            const NAME: &'static str = $waiting;
            type Tx = YieldingSend<Arc<crossbeam_queue::$queue<M>>>;
            type Rx = YieldingRecv<Arc<crossbeam_queue::$queue<M>>>;
            fn fits(_: Shape) -> bool {
                true
            }
            fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
                let (tx, rx) = <Self as Pair<M>>::pair(capacity);
                yielding::crowd(copies(tx, shape.senders), copies(rx, shape.receivers))
            }
        }

        impl<M: Element> TrySend<M> for Arc<crossbeam_queue::$queue<M>> {
            #[inline]
            fn try_send(&mut self, message: M) -> bool {
                let push: fn(&crossbeam_queue::$queue<M>, M) -> bool = $push;
                push(self, message)
            }
        }

        impl<M: Element> TryRecv<M> for Arc<crossbeam_queue::$queue<M>> {
            #[inline]
            fn try_recv(&mut self) -> Option<M> {
                self.pop()
            }
        }
    )*};
}

queues! {
    /// A bounded queue.
    ArrayQueue "ArrayQueue", "ArrayQueue (try, yield)":
        crossbeam_queue::ArrayQueue::new, |queue, message| queue.push(message).is_ok();
    /// An unbounded queue: `capacity` means nothing to it.
    SegQueue "SegQueue", "SegQueue (try, yield)":
        |_| crossbeam_queue::SegQueue::new(), |queue, message| {
            queue.push(message);
            true
        };
}
