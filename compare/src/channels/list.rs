//! Who plays which role.

use super::{BatchPair, BlockingPair, Crowd, Element, Message, TryPair};
use super::{
    bounded, crossbeam, crossfire, disruptor, gil, nexus, omango, ringbuf, rtrb, thalweg, thingbuf,
    tokio,
};

/// Meets every pair that can try.
pub(crate) trait TryPairs<M: Message> {
    fn meet<P: TryPair<M>>(&mut self);
}

/// Meets every pair with batches on both sides.
pub(crate) trait BatchPairs<M: Message> {
    fn meet<P: BatchPair<M>>(&mut self);
}

/// Meets every pair whose two sides can wait.
pub(crate) trait BlockingPairs<M: Message> {
    fn meet<P: BlockingPair<M>>(&mut self);
}

/// Meets every crowd.
pub(crate) trait Crowds<M: Element> {
    fn meet<C: Crowd<M>>(&mut self);
}

pub(crate) fn each_try_pair<M: Message>(to: &mut impl TryPairs<M>) {
    thalweg::try_pairs(to);
    to.meet::<bounded::Crossbeam>();
    to.meet::<crossbeam::ArrayQueue>();
    to.meet::<crossbeam::SegQueue>();
    to.meet::<bounded::Flume>();
    to.meet::<bounded::Kanal>();
    to.meet::<bounded::Std>();
    to.meet::<tokio::Tokio>();
    to.meet::<bounded::AsyncChannel>();
    to.meet::<rtrb::Rtrb>();
    to.meet::<ringbuf::Ringbuf>();
    to.meet::<gil::Spsc>();
    to.meet::<gil::SpscParking>();
    to.meet::<omango::Spsc>();
    to.meet::<omango::Mpmc>();
    to.meet::<nexus::Spsc>();
    to.meet::<crossfire::Spsc>();
    to.meet::<crossfire::Mpmc>();
    to.meet::<thingbuf::Thingbuf>();
    to.meet::<disruptor::Disruptor>();
}

pub(crate) fn each_batch_pair<M: Message>(to: &mut impl BatchPairs<M>) {
    thalweg::batch_pairs(to);
    to.meet::<rtrb::Rtrb>();
    to.meet::<ringbuf::Ringbuf>();
    to.meet::<gil::Spsc>();
    to.meet::<tokio::Tokio>();
    to.meet::<disruptor::Disruptor>();
}

/// Who has no batches on both sides, and what it has.
pub(crate) const WITHOUT_BATCHES: &str = "without batches on both sides: crossbeam-channel, \
    crossbeam-queue, std, async-channel, omango, nexus-queue, crossfire, thingbuf; flume and kanal \
    can drain but not send several";

pub(crate) fn each_blocking_pair<M: Message>(to: &mut impl BlockingPairs<M>) {
    thalweg::blocking_pairs(to);
    to.meet::<bounded::Crossbeam>();
    to.meet::<bounded::Flume>();
    to.meet::<bounded::Kanal>();
    to.meet::<bounded::Std>();
    to.meet::<tokio::Tokio>();
    to.meet::<bounded::AsyncChannel>();
    to.meet::<gil::Spsc>();
    to.meet::<crossfire::Spsc>();
    to.meet::<crossfire::Mpmc>();
    to.meet::<thingbuf::Thingbuf>();
}

/// Who has no waiting calls, and is left out where both ends wait.
pub(crate) const WITHOUT_WAITING: &str = "without waiting calls: crossbeam-queue, rtrb, ringbuf, \
    nexus-queue; disruptor's consumers spin or sleep for fixed times; omango's waiting calls and \
    gil's parking queues lose wake-ups";

pub(crate) fn each_crowd<M: Element>(to: &mut impl Crowds<M>) {
    thalweg::crowds(to);
    to.meet::<bounded::Crossbeam>();
    to.meet::<crossbeam::ArrayQueue>();
    to.meet::<crossbeam::SegQueue>();
    to.meet::<bounded::Flume>();
    to.meet::<bounded::Kanal>();
    to.meet::<bounded::Std>();
    to.meet::<tokio::Tokio>();
    to.meet::<bounded::AsyncChannel>();
    to.meet::<gil::Mpsc>();
    to.meet::<gil::MpscSharded>();
    to.meet::<gil::Spmc>();
    to.meet::<gil::Mpmc>();
    to.meet::<gil::MpmcSharded>();
    to.meet::<omango::Mpmc>();
    to.meet::<nexus::Mpsc>();
    to.meet::<nexus::Spmc>();
    to.meet::<crossfire::Mpsc>();
    to.meet::<crossfire::Mpmc>();
    to.meet::<thingbuf::Thingbuf>();
    to.meet::<disruptor::Disruptor>();
}
