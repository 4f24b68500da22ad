//! The channels of `gil`. Their waiting calls spin and yield, and never end, so adapters end them.
//!
//! The parking queues are left out, since they lose wake-ups: a round trip over two of them did not
//! end here (0.9.0, x86-64: each thread asleep with a message before it).

use std::num::NonZeroUsize;
use std::sync::{Arc, Weak};

use gil::mpsc::sharded;
use gil::{mpsc, spmc, spsc};

use super::yielding::{Yielding, waiting};
use super::{Element, RecvBatch, SendBatch, Topology, alone, fan_in, is_pair};

fn size(capacity: usize) -> NonZeroUsize {
    NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN)
}

type Tx<T> = Yielding<T, Arc<()>>;
type Rx<R> = Yielding<R, Weak<()>>;

channels! {
    Element;
    Spsc "gil spsc": spsc::Sender<M>, spsc::Receiver<M>, is_pair,
        |capacity, _| alone(spsc::channel(size(capacity)));
    Mpsc "gil mpsc": Tx<mpsc::Sender<M>>, Rx<mpsc::Receiver<M>>, |shape| shape.receivers == 1,
        |capacity, shape| waiting(fan_in(mpsc::channel(size(capacity)), shape));
    Spmc "gil spmc": Tx<spmc::Sender<M>>, Rx<spmc::Receiver<M>>, |shape| shape.senders == 1,
    |capacity, shape| {
        let (tx, rx) = spmc::channel(size(capacity));
        waiting((vec![tx], vec![rx; shape.receivers]))
    };
    MpscSharded "gil mpsc sharded": Tx<sharded::Sender<M>>, Rx<sharded::Receiver<M>>,
        |shape| shape.receivers == 1,
    |capacity, shape| {
        // Shards are a power of two, and share the capacity.
        let lane = size(capacity.div_ceil(shape.senders));
        let (tx, rx) = sharded::channel(size(shape.senders.next_power_of_two()), lane);
        let mut txs = vec![tx];
        while txs.len() < shape.senders {
            txs.push(txs[0].clone().expect("there are as many shards as senders"));
        }
        waiting((txs, vec![rx]))
    };
}

ends! {
    Element;
    spsc::Sender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok(),
        send |tx, message| Self::send(tx, message);
    spsc::Receiver<M>: try_recv |rx| Self::try_recv(rx), recv |rx| Some(Self::recv(rx));
    mpsc::Sender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok();
    mpsc::Receiver<M>: try_recv |rx| Self::try_recv(rx);
    sharded::Sender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok();
    sharded::Receiver<M>: try_recv |rx| Self::try_recv(rx);
    spmc::Sender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok();
    spmc::Receiver<M>: try_recv |rx| Self::try_recv(rx);
}

impl<M: Element> SendBatch<M> for spsc::Sender<M> {
    #[inline]
    #[allow(unsafe_code)] // the peer has no other way to send a batch
    fn send_batch(&mut self, count: usize, mut make: impl FnMut(usize) -> M) -> usize {
        let room = self.write_buffer();
        let count = count.min(room.len());
        for (at, slot) in room[..count].iter_mut().enumerate() {
            slot.write(make(at));
        }
        // SAFETY: the first `count` slots of the write buffer were written just now.
        unsafe { self.commit(count) };
        count
    }
}

impl<M: Element> RecvBatch<M> for spsc::Receiver<M> {
    #[inline]
    fn recv_batch(&mut self, max: usize, take: impl FnMut(M)) -> usize {
        let mut guard = self.read_guard();
        let count = guard.len().min(max);
        guard.as_slice()[..count].iter().copied().for_each(take);
        guard.advance(count);
        count
    }
}
