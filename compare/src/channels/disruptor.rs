//! `disruptor` as a channel: events are overwritten in place, one poller takes them.

use std::collections::VecDeque;

use disruptor::{
    BusySpin, EventPoller, Producer, SingleConsumerBarrier, SingleProducer, SingleProducerBarrier,
    build_single_producer,
};

use super::{Element, Pair, TryRecv, TrySend};

/// One event poller behind a producer.
#[derive(Debug)]
pub(crate) struct Disruptor;

/// A producer.
pub(crate) struct Outlet<M>(SingleProducer<M, SingleConsumerBarrier>);

/// A poller, and what it took and did not hand on yet: to take one event at a time would look at
/// all that are there each time.
pub(crate) struct Inlet<M> {
    poller: EventPoller<M, SingleProducerBarrier>,
    taken: VecDeque<M>,
}

/// Events that are taken at once.
const TAKEN_MAX: u64 = 64;

impl<M: Element> Pair<M> for Disruptor {
    const NAME: &'static str = "disruptor";
    type Tx = Outlet<M>;
    type Rx = Inlet<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        // It takes nothing but powers of two.
        let capacity = capacity.next_power_of_two();
        let builder = build_single_producer(capacity, M::default, BusySpin);
        let (poller, builder) = builder.new_event_poller();
        let taken = VecDeque::with_capacity(TAKEN_MAX as usize);
        (Outlet(builder.build()), Inlet { poller, taken })
    }
}

impl<M: Element> TrySend<M> for Outlet<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        self.0.try_publish(|event| *event = message).is_ok()
    }
}

impl<M: Element> TryRecv<M> for Inlet<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        if self.taken.is_empty() {
            let mut events = self.poller.take(TAKEN_MAX).ok()?;
            self.taken.extend((&mut events).copied());
        }
        self.taken.pop_front()
    }
}
