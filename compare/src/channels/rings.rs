//! Rings of others, one to one, whose calls try: rtrb, with chunks, and omango.
//!
//! The waiting calls of omango spin a little and then wait on a futex, and lose wake-ups: a waiter
//! looks at the slot, then stores that it is parked, and a wake-up in between is lost. Round
//! trips over two of its queues did not end here (0.2.6, x86-64: each thread asleep with a message
//! before it). So only its calls that try are measured.

use omango::queue::spsc as omango;

use super::{Element, RecvBatch, SendBatch, Topology, alone, is_pair};

channels! {
    Element;
    Rtrb "rtrb": rtrb::Producer<M>, rtrb::Consumer<M>, is_pair,
        |capacity, _| alone(rtrb::RingBuffer::new(capacity));
    Omango "omango spsc": omango::BSender<M>, omango::BReceiver<M>, is_pair, |capacity, _| {
        let capacity = u32::try_from(capacity);
        alone(omango::bounded(capacity.expect("the experiments ask for a million at most")))
    };
}

ends! {
    Element;
    rtrb::Producer<M>: try_send |tx, message| tx.push(message).is_ok();
    rtrb::Consumer<M>: try_recv |rx| rx.pop().ok();
    omango::BSender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok();
    omango::BReceiver<M>: try_recv |rx| Self::try_recv(rx).ok();
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
        // As its documentation takes all elements.
        let count = self.slots().min(max);
        match self.read_chunk(count) {
            Ok(chunk) => chunk.into_iter().for_each(take),
            Err(_) => return 0,
        }
        count
    }
}
