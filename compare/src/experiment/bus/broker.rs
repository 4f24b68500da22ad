//! What is published, and the roles that a bus and its peers play. None of the peers knows
//! priorities, or more than one topic.

use std::collections::VecDeque;

use crossbeam_channel as crossbeam;
use disruptor::{
    BusySpin, EventPoller, MultiConsumerBarrier, MultiProducer, MultiProducerBarrier, Producer,
    SingleConsumerBarrier, build_multi_producer,
};
use thalweg::bus::{Admission, Bus, Consumer, Message, Publisher, TopicId, TopicInfo, Topics};
use tokio::sync::broadcast::{self, error::TryRecvError};

use crate::channels::Shape;
use crate::runner::{Ran, Subjects, subject};

/// What is published: 24 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Tick {
    /// When it was published, in ticks of the clock, where that is asked.
    pub(super) stamp: u64,
    /// Its publisher's messages before it.
    pub(super) number: u64,
    pub(super) publisher: u32,
    check: u32,
}

const _: () = assert!(size_of::<Tick>() == 24);

impl Tick {
    #[inline]
    pub(super) fn new(publisher: u32, number: u64, stamp: u64) -> Self {
        Self {
            stamp,
            number,
            publisher,
            check: Self::check(publisher, number),
        }
    }

    /// No other will follow.
    pub(super) fn last() -> Self {
        Self::new(0, u64::MAX, 0)
    }

    #[inline]
    pub(super) fn is_last(&self) -> bool {
        self.number == u64::MAX
    }

    #[inline]
    fn check(publisher: u32, number: u64) -> u32 {
        (number as u32).rotate_left(7) ^ !publisher
    }

    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.check == Self::check(self.publisher, self.number)
    }
}

impl Message for Tick {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("market.tick")];

    #[inline]
    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

/// A bus: every consumer gets every message, all of them from the same publishers.
pub(super) trait Broker: 'static {
    /// As it stands in tables.
    const NAME: &'static str;
    type Tx: Publish;
    type Rx: Take;
    /// Returns whether it can have these publishers and consumers.
    fn fits(_shape: Shape) -> bool {
        true
    }
    /// Opens one where `capacity` messages may wait for each consumer, or more where the peer
    /// rounds up.
    fn open(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>);
}

/// Publishes, and waits for room in its own way, if it waits.
pub(super) trait Publish: Send {
    fn publish(&mut self, tick: Tick);
}

/// Takes the next message, if there is one.
pub(super) trait Take: Send {
    fn take(&mut self) -> Option<Tick>;
}

/// `thalweg::bus`: publishers block where an inbox has no room.
pub(super) struct Ours;

impl Broker for Ours {
    const NAME: &'static str = "thalweg bus";
    type Tx = Publisher<Tick>;
    type Rx = Consumer<Tick>;
    fn open(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        // All priorities have all the room, as they have with the peers, who know none.
        let bus = Bus::builder()
            .capacity(capacity)
            .admission(Admission::percent(100, 100, 100))
            .build()
            .expect("the capacities of this experiment are in range");
        let rx = || bus.subscribe(Topics::ALL).expect("the bus is running");
        let rxs = (0..shape.receivers).map(|_| rx()).collect();
        let tx = |_| bus.publisher("ticks").expect("the bus is running");
        ((0..shape.senders).map(tx).collect(), rxs)
    }
}

impl Publish for Publisher<Tick> {
    #[inline]
    fn publish(&mut self, tick: Tick) {
        if Publisher::publish(self, tick).is_err() {
            unreachable!("the topic blocks, and the bus runs");
        }
    }
}

impl Take for Consumer<Tick> {
    #[inline]
    fn take(&mut self) -> Option<Tick> {
        self.try_recv().ok().map(|delivery| delivery.message)
    }
}

/// Messages of up to two publishers, as a consumer gets them.
#[derive(Debug, Default)]
pub(super) struct Checker {
    next: [u64; 2],
    pub(super) taken: u64,
    misplaced: u64,
}

impl Checker {
    #[inline]
    pub(super) fn take(&mut self, tick: &Tick) {
        self.taken += 1;
        let next = &mut self.next[(tick.publisher & 1) as usize];
        // One that is missing is counted by `lost`.
        self.misplaced += u64::from(tick.number < *next || !tick.is_whole());
        *next = tick.number + 1;
    }

    /// How many of the messages that were published did not come, or not once, whole and in order.
    pub(super) fn lost(&self, published: u64) -> u64 {
        published.abs_diff(self.taken) + self.misplaced
    }
}

/// The crate `bus`: a ring of seats that each consumer visits. One publisher; it *blocks* while the
/// slowest consumer of all is a lap behind. Each consumer but the last of a seat clones.
pub(super) struct TheCrate;

/// Has no publishers that are cloned; its documents put a channel and a thread before it.
impl Broker for TheCrate {
    const NAME: &'static str = "bus";
    type Tx = ::bus::Bus<Tick>;
    type Rx = ::bus::BusReader<Tick>;
    fn fits(shape: Shape) -> bool {
        shape.senders == 1
    }
    fn open(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let mut bus = ::bus::Bus::new(capacity);
        let rxs = (0..shape.receivers).map(|_| bus.add_rx()).collect();
        (vec![bus], rxs)
    }
}

impl Publish for ::bus::Bus<Tick> {
    #[inline]
    fn publish(&mut self, tick: Tick) {
        self.broadcast(tick);
    }
}

impl Take for ::bus::BusReader<Tick> {
    #[inline]
    fn take(&mut self) -> Option<Tick> {
        self.try_recv().ok()
    }
}

/// `tokio::sync::broadcast`: publishers never wait and *overwrite* the oldest; a consumer that is a
/// lap behind *lags*: it learns how many it missed, and goes on. They are lost here.
pub(super) struct Tokio;

impl Broker for Tokio {
    const NAME: &'static str = "tokio broadcast";
    type Tx = broadcast::Sender<Tick>;
    type Rx = broadcast::Receiver<Tick>;
    fn open(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (tx, _) = broadcast::channel(capacity);
        let rxs = (0..shape.receivers).map(|_| tx.subscribe()).collect();
        (vec![tx; shape.senders], rxs)
    }
}

impl Publish for broadcast::Sender<Tick> {
    #[inline]
    fn publish(&mut self, tick: Tick) {
        if self.send(tick).is_err() {
            unreachable!("a consumer is kept for as long as the publishers");
        }
    }
}

impl Take for broadcast::Receiver<Tick> {
    #[inline]
    fn take(&mut self) -> Option<Tick> {
        loop {
            match self.try_recv() {
                Ok(tick) => return Some(tick),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }
}

/// A bus as it is made by hand: a bounded crossbeam channel for each consumer, into all of which a
/// publisher sends a copy, and a table of callbacks by topic behind it. Publishers *block*.
pub(super) struct Callbacks;

/// A channel for each consumer.
pub(super) struct Fan(Vec<crossbeam::Sender<Tick>>);

/// Gets a message, and a place for it.
type Handler = Box<dyn Fn(&Tick, &mut Option<Tick>) + Send>;

pub(super) struct Table {
    rx: crossbeam::Receiver<Tick>,
    /// By topic.
    handlers: Vec<Vec<Handler>>,
}

impl Broker for Callbacks {
    const NAME: &'static str = "crossbeam, callbacks";
    type Tx = Fan;
    type Rx = Table;
    fn open(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let channels = (0..shape.receivers).map(|_| crossbeam::bounded(capacity));
        let (txs, rxs): (Vec<_>, Vec<_>) = channels.unzip();
        let table = |rx| Table {
            rx,
            handlers: vec![vec![Box::new(|tick: &Tick, taken: &mut Option<Tick>| {
                *taken = Some(*tick);
            })]],
        };
        let fans = (0..shape.senders).map(|_| Fan(txs.clone()));
        (fans.collect(), rxs.into_iter().map(table).collect())
    }
}

impl Publish for Fan {
    #[inline]
    fn publish(&mut self, tick: Tick) {
        for tx in &self.0 {
            if tx.send(tick).is_err() {
                unreachable!("a consumer is kept for as long as the publishers");
            }
        }
    }
}

impl Take for Table {
    #[inline]
    fn take(&mut self) -> Option<Tick> {
        let tick = self.rx.try_recv().ok()?;
        let mut taken = None;
        for handler in &self.handlers[tick.topic().index()] {
            handler(&tick, &mut taken);
        }
        taken
    }
}

/// `disruptor` with its multi-producer, also for one publisher, as a bus has to be: events are
/// written in place, each consumer polls with a cursor of its own. Its own call that waits *spins*
/// without an end, on however few cores: here it tries, and yields now and then.
pub(super) struct Disruptor;

/// The last consumers of a disruptor are one, or several beside each other, which are two types.
pub(super) enum Outlet {
    One(MultiProducer<Tick, SingleConsumerBarrier>),
    Several(MultiProducer<Tick, MultiConsumerBarrier>),
}

/// A poller, and what it took and did not hand on yet: its barrier looks at every event that is
/// there each time, so it takes all of them.
pub(super) struct Inlet {
    poller: EventPoller<Tick, MultiProducerBarrier>,
    taken: VecDeque<Tick>,
}

/// Spins before a yield.
const SPINS: u32 = 64;

#[inline]
fn insist(mut has_published: impl FnMut() -> bool) {
    let mut tries = 0;
    while !has_published() {
        tries += 1;
        if tries % SPINS == 0 {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}

impl Broker for Disruptor {
    const NAME: &'static str = "disruptor (try, yield)";
    type Tx = Outlet;
    type Rx = Inlet;
    fn fits(shape: Shape) -> bool {
        (1..=2).contains(&shape.receivers)
    }
    fn open(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let capacity = capacity.next_power_of_two();
        let builder = build_multi_producer(capacity, Tick::default, BusySpin);
        let (first, builder) = builder.new_event_poller();
        if shape.receivers == 1 {
            let tx = builder.build();
            let txs = (0..shape.senders).map(|_| Outlet::One(tx.clone()));
            return (txs.collect(), vec![Inlet::new(first)]);
        }
        let (second, builder) = builder.new_event_poller();
        let tx = builder.build();
        let txs = (0..shape.senders).map(|_| Outlet::Several(tx.clone()));
        (txs.collect(), vec![Inlet::new(first), Inlet::new(second)])
    }
}

impl Publish for Outlet {
    #[inline]
    fn publish(&mut self, tick: Tick) {
        match self {
            Self::One(tx) => insist(|| tx.try_publish(|event| *event = tick).is_ok()),
            Self::Several(tx) => insist(|| tx.try_publish(|event| *event = tick).is_ok()),
        }
    }
}

impl Inlet {
    fn new(poller: EventPoller<Tick, MultiProducerBarrier>) -> Self {
        let taken = VecDeque::new();
        Self { poller, taken }
    }
}

impl Take for Inlet {
    #[inline]
    fn take(&mut self) -> Option<Tick> {
        if self.taken.is_empty() {
            let mut events = self.poller.poll().ok()?;
            self.taken.extend((&mut events).copied());
        }
        self.taken.pop_front()
    }
}

/// What is measured, of every bus.
pub(super) trait Job: 'static {
    type Load: Sync + 'static;
    fn run<B: Broker>(load: &Self::Load) -> Ran;
}

/// Returns those that can have these publishers and consumers, as subjects of a job.
pub(super) fn subjects<J: Job>(shape: Shape) -> Subjects<J::Load> {
    let mut all: Subjects<J::Load> = Vec::new();
    macro_rules! add {
        ($($peer:ident),*) => {$(
            if $peer::fits(shape) {
                all.push(subject($peer::NAME, J::run::<$peer>));
            }
        )*};
    }
    add!(Ours, TheCrate, Tokio, Callbacks, Disruptor);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_torn_missing_doubled_or_out_of_order_counts() {
        let lost = |ticks: &[Tick], published: u64| {
            let mut checker = Checker::default();
            ticks.iter().for_each(|tick| checker.take(tick));
            checker.lost(published)
        };
        let tick = |publisher, number| Tick::new(publisher, number, 0);
        assert_eq!(lost(&[tick(0, 0), tick(1, 0), tick(0, 1)], 3), 0);
        assert_eq!(lost(&[tick(0, 0), tick(1, 0)], 3), 1);
        assert_eq!(lost(&[tick(0, 0), tick(0, 2)], 3), 1);
        assert_eq!(lost(&[tick(0, 1), tick(0, 0)], 2), 1);
        assert_eq!(lost(&[tick(0, 0), tick(0, 0)], 1), 2);
        let torn = Tick {
            number: 1,
            ..tick(0, 0)
        };
        assert_eq!(lost(&[tick(0, 0), torn], 2), 1);
        assert!(Tick::last().is_last() && !tick(0, 0).is_last());
    }
}
