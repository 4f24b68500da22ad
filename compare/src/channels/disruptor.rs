//! `disruptor` as a channel: events are overwritten in place, one poller takes them. It has no
//! receivers that share the events among them.

use std::collections::VecDeque;

use disruptor::{
    BusySpin, EventPoller, MultiProducer, MultiProducerBarrier, Producer, SingleConsumerBarrier,
    SingleProducer, SingleProducerBarrier, build_multi_producer, build_single_producer,
};

use super::yielding::{self, YieldingRecv, YieldingSend};
use super::{Crowd, Element, Pair, RecvBatch, SendBatch, Shape, TryRecv, TrySend, copies};

/// One event poller behind a producer.
#[derive(Debug)]
pub(crate) struct Disruptor;

/// A producer.
pub(crate) struct Outlet<P>(P);

impl<P: Clone> Clone for Outlet<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// A poller, and what it took and did not hand on yet: to take one event at a time would look at
/// all that are there each time.
pub(crate) struct Inlet<M, B> {
    poller: EventPoller<M, B>,
    taken: VecDeque<M>,
}

/// Events that are taken at once where they are handed on one at a time.
const TAKEN_MAX: usize = 64;

impl<M, B> Inlet<M, B> {
    fn new(poller: EventPoller<M, B>) -> Self {
        let taken = VecDeque::with_capacity(TAKEN_MAX);
        Self { poller, taken }
    }
}

/// It takes nothing but powers of two.
fn size(capacity: usize) -> usize {
    capacity.next_power_of_two()
}

impl<M: Element> Pair<M> for Disruptor {
    const NAME: &'static str = "disruptor";
    type Tx = Outlet<SingleProducer<M, SingleConsumerBarrier>>;
    type Rx = Inlet<M, SingleProducerBarrier>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        let builder = build_single_producer(size(capacity), M::default, BusySpin);
        let (poller, builder) = builder.new_event_poller();
        (Outlet(builder.build()), Inlet::new(poller))
    }
}

impl<M: Element> Crowd<M> for Disruptor {
    const NAME: &'static str = "disruptor (try, yield)";
    type Tx = YieldingSend<Outlet<MultiProducer<M, SingleConsumerBarrier>>>;
    type Rx = YieldingRecv<Inlet<M, MultiProducerBarrier>>;
    fn fits(shape: Shape) -> bool {
        shape.receivers == 1
    }
    fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let builder = build_multi_producer(size(capacity), M::default, BusySpin);
        let (poller, builder) = builder.new_event_poller();
        let txs = copies(Outlet(builder.build()), shape.senders);
        yielding::crowd(txs, vec![Inlet::new(poller)])
    }
}

impl<M: Element, P: Producer<M> + Send + 'static> TrySend<M> for Outlet<P> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        self.0.try_publish(|event| *event = message).is_ok()
    }
}

impl<M: Element, P: Producer<M> + Send + 'static> SendBatch<M> for Outlet<P> {
    #[inline]
    fn send_batch(&mut self, count: usize, mut make: impl FnMut(usize) -> M) -> usize {
        let published = self.0.try_batch_publish(count, |events| {
            for (at, event) in events.enumerate() {
                *event = make(at);
            }
        });
        if published.is_ok() { count } else { 0 }
    }
}

impl<M: Element> TryRecv<M> for Inlet<M, SingleProducerBarrier> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        if self.taken.is_empty() {
            let mut events = self.poller.take(TAKEN_MAX as u64).ok()?;
            self.taken.extend((&mut events).copied());
        }
        self.taken.pop_front()
    }
}

impl<M: Element> TryRecv<M> for Inlet<M, MultiProducerBarrier> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        if self.taken.is_empty() {
            // All that there is: this barrier looks at every event anyway.
            let mut events = self.poller.poll().ok()?;
            self.taken.extend((&mut events).copied());
        }
        self.taken.pop_front()
    }
}

impl<M: Element> RecvBatch<M> for Inlet<M, SingleProducerBarrier> {
    #[inline]
    fn recv_batch(&mut self, max: usize, mut take: impl FnMut(M)) -> usize {
        let Ok(mut events) = self.poller.take(max as u64) else {
            return 0;
        };
        let mut taken = 0;
        for event in &mut events {
            take(*event);
            taken += 1;
        }
        taken
    }
}
