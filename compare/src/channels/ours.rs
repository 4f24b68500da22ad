//! The rings and channels of this project.

use thalweg::channel::{self, Builder, mpmc, mpsc, spsc};
use thalweg::ring::{self, Layout, SpscConsumer, SpscProducer};
use thalweg::wait::WaitMode;

use super::{BlockingRecv, BlockingSend, TryRecv, TrySend};
use super::{Element, RecvBatch, SendBatch, Topology, alone, fan, fan_in, is_pair};

const FITS: &str = "the experiments' capacities are within the limits";

fn pair<M: Send>(builder: Builder) -> (Vec<spsc::Sender<M>>, Vec<spsc::Receiver<M>>) {
    alone(builder.spsc().expect(FITS))
}

fn is_fan_in(shape: Topology) -> bool {
    shape.senders > 1 && shape.receivers == 1
}

// Users who have several senders or receivers take the narrowest shape that fits.
channels! {
    Element;
    RingPacked "thalweg ring packed": SpscProducer<M>, SpscConsumer<M>, is_pair,
        |capacity, _| alone(ring::spsc(capacity, Layout::Packed).expect(FITS));
    RingSlotted "thalweg ring slotted": SpscProducer<M>, SpscConsumer<M>, is_pair,
        |capacity, _| alone(ring::spsc(capacity, Layout::Slotted).expect(FITS));
    /// It has the defaults.
    Spsc "thalweg spsc": spsc::Sender<M>, spsc::Receiver<M>, is_pair,
        |capacity, _| pair(Builder::new(capacity));
    /// It has the sequence beside each element.
    SpscSlotted "thalweg spsc slotted": spsc::Sender<M>, spsc::Receiver<M>, is_pair,
        |capacity, _| pair(Builder::new(capacity).layout(Layout::Slotted));
    /// It spins for up to 5 ms.
    SpscLatency "thalweg spsc latency": spsc::Sender<M>, spsc::Receiver<M>, is_pair,
        |capacity, _| pair(Builder::new(capacity).layout(Layout::Slotted).mode(WaitMode::Latency));
    /// It never spins.
    SpscPower "thalweg spsc power": spsc::Sender<M>, spsc::Receiver<M>, is_pair,
        |capacity, _| pair(Builder::new(capacity).mode(WaitMode::LowPower));
    OneToOne "thalweg": spsc::Sender<M>, spsc::Receiver<M>, is_pair,
        |capacity, _| pair(Builder::new(capacity));
    FanIn "thalweg": mpsc::Sender<M>, mpsc::Receiver<M>, is_fan_in,
        |capacity, shape| fan_in(Builder::new(capacity).mpsc().expect(FITS), shape);
    FanOut "thalweg": mpmc::Sender<M>, mpmc::Receiver<M>, |shape| shape.receivers > 1,
        |capacity, shape| fan(Builder::new(capacity).mpmc().expect(FITS), shape);
    /// It has a soft limit, which is the default where there may be several senders.
    Balanced "thalweg soft limit": mpmc::Sender<M>, mpmc::Receiver<M>, |shape| shape.senders == 1,
        |capacity, shape| fan(Builder::new(capacity).soft_limit(2048).mpmc().expect(FITS), shape);
}

ends! {
    Element;
    SpscProducer<M>: try_send |tx, message| tx.try_push(message).is_ok();
    SpscConsumer<M>: try_recv |rx| rx.try_pop().ok();
}

impl<M: Element> SendBatch<M> for SpscProducer<M> {
    #[inline]
    fn send_batch(&mut self, count: usize, make: impl FnMut(usize) -> M) -> usize {
        self.push_iter((0..count).map(make))
    }
}

impl<M: Element> RecvBatch<M> for SpscConsumer<M> {
    #[inline]
    fn recv_batch(&mut self, max: usize, take: impl FnMut(M)) -> usize {
        let batch = self.batch(max);
        let count = batch.len();
        batch.for_each(take);
        count
    }
}

impl<M: Element, S: channel::Shape> TrySend<M> for channel::Sender<M, S> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        Self::try_send(self, message).is_ok()
    }
}

impl<M: Element, S: channel::Shape> TryRecv<M> for channel::Receiver<M, S> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        Self::try_recv(self).ok()
    }
}

impl<M: Element, S: channel::Shape> BlockingSend<M> for channel::Sender<M, S> {
    #[inline]
    fn send(&mut self, message: M) {
        // A receiver that is gone shows in the count of what came.
        let _ = Self::send(self, message);
    }
}

impl<M: Element, S: channel::Shape> BlockingRecv<M> for channel::Receiver<M, S> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        Self::recv(self).ok()
    }
}

impl<M: Element, S: channel::Shape> SendBatch<M> for channel::Sender<M, S> {
    #[inline]
    fn send_batch(&mut self, count: usize, mut make: impl FnMut(usize) -> M) -> usize {
        let free = self.capacity() - self.len();
        let Ok(mut claim) = self.try_claim(count.min(free)) else {
            return 0;
        };
        // The claim has room for them.
        (0..claim.capacity()).for_each(|n| _ = claim.push(make(n)));
        claim.commit()
    }
}

impl<M: Element, S: channel::Shape> RecvBatch<M> for channel::Receiver<M, S> {
    #[inline]
    fn recv_batch(&mut self, max: usize, mut take: impl FnMut(M)) -> usize {
        let mut count = 0;
        self.batch(max).for_each(|message| {
            count += 1;
            take(message);
        });
        count
    }
}
