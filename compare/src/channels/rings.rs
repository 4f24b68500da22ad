//! Rings of others, one to one, whose calls try: rtrb, with chunks; ringbuf, on the heap, with ends
//! that cache the other's index; omango; and disruptor as a channel, whose events are overwritten
//! in place and taken by one poller.
//!
//! The waiting calls of omango spin a little and then wait on a futex, and lose wake-ups: a waiter
//! looks at the slot, then stores that it is parked, and a wake-up in between finds nobody. Round
//! trips over two of its queues did not end here (0.2.6, x86-64: each thread asleep with a message
//! before it). So they only try.

use std::collections::VecDeque;

use disruptor::{
    BusySpin, EventPoller, Producer, SingleConsumerBarrier, SingleProducer, SingleProducerBarrier,
    build_single_producer,
};
use omango::queue::spsc as omango;
use ringbuf::traits::{Consumer, Producer as _, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use super::{Element, RecvBatch, SendBatch, Shape, alone, is_pair};

/// The most that is taken at once: of [`Ringbuf`] in a batch, of [`Disruptor`] each time.
const TAKEN_MAX: usize = 64;

/// The receiver, and where it puts a batch.
pub(crate) struct RingbufRx<M: Element>(HeapCons<M>, [M; TAKEN_MAX]);

/// A poller, and what it took and did not hand on yet: to take one event at a time would look at
/// all that are there each time.
pub(crate) struct Poller<M>(EventPoller<M, SingleProducerBarrier>, VecDeque<M>);

channels! {
    Element;
    Rtrb "rtrb": rtrb::Producer<M>, rtrb::Consumer<M>, is_pair,
        |capacity, _| alone(rtrb::RingBuffer::new(capacity));
    Ringbuf "ringbuf": HeapProd<M>, RingbufRx<M>, is_pair, |capacity, _| {
        let (tx, rx) = HeapRb::new(capacity).split();
        alone((tx, RingbufRx(rx, [M::default(); TAKEN_MAX])))
    };
    Omango "omango spsc": omango::BSender<M>, omango::BReceiver<M>, is_pair, |capacity, _| {
        let capacity = u32::try_from(capacity);
        alone(omango::bounded(capacity.expect("the experiments ask for a million at most")))
    };
    Disruptor "disruptor": SingleProducer<M, SingleConsumerBarrier>, Poller<M>, is_pair,
    |capacity, _| {
        // It takes nothing but powers of two.
        let capacity = capacity.next_power_of_two();
        let builder = build_single_producer(capacity, M::default, BusySpin);
        let (poller, builder) = builder.new_event_poller();
        alone((builder.build(), Poller(poller, VecDeque::with_capacity(TAKEN_MAX))))
    };
}

ends! {
    Element;
    rtrb::Producer<M>: try_send |tx, message| tx.push(message).is_ok();
    rtrb::Consumer<M>: try_recv |rx| rx.pop().ok();
    HeapProd<M>: try_send |tx, message| tx.try_push(message).is_ok();
    RingbufRx<M>: try_recv |rx| rx.0.try_pop();
    omango::BSender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok();
    omango::BReceiver<M>: try_recv |rx| Self::try_recv(rx).ok();
    SingleProducer<M, SingleConsumerBarrier>:
        try_send |tx, message| tx.try_publish(|event| *event = message).is_ok();
    Poller<M>: try_recv |rx| {
        if rx.1.is_empty() {
            let mut events = rx.0.take(TAKEN_MAX as u64).ok()?;
            rx.1.extend((&mut events).copied());
        }
        rx.1.pop_front()
    };
}

impl<M: Element> SendBatch<M> for rtrb::Producer<M> {
    #[inline]
    fn send_batch(&mut self, count: usize, make: impl FnMut(usize) -> M) -> usize {
        match self.write_chunk_uninit(count) {
            Ok(chunk) => chunk.fill_from_iter((0..count).map(make)),
            Err(_) => 0,
        }
    }
}

impl<M: Element> RecvBatch<M> for rtrb::Consumer<M> {
    #[inline]
    fn recv_batch(&mut self, max: usize, take: impl FnMut(M)) -> usize {
        // As its documentation shows for taking what there is.
        let count = self.slots().min(max);
        match self.read_chunk(count) {
            Ok(chunk) => chunk.into_iter().for_each(take),
            Err(_) => return 0,
        }
        count
    }
}

impl<M: Element> SendBatch<M> for HeapProd<M> {
    #[inline]
    fn send_batch(&mut self, count: usize, make: impl FnMut(usize) -> M) -> usize {
        self.push_iter((0..count).map(make))
    }
}

impl<M: Element> RecvBatch<M> for RingbufRx<M> {
    #[inline]
    fn recv_batch(&mut self, max: usize, take: impl FnMut(M)) -> usize {
        // Not `pop_iter`, which notifies the producer of every single element.
        let count = self.0.pop_slice(&mut self.1[..max.min(TAKEN_MAX)]);
        self.1[..count].iter().copied().for_each(take);
        count
    }
}
