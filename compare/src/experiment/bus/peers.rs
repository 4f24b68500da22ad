//! What others have for the job. None of them knows priorities, or more than one topic.

use std::collections::VecDeque;

use crossbeam_channel as crossbeam;
use disruptor::{
    BusySpin, EventPoller, MultiConsumerBarrier, MultiProducer, MultiProducerBarrier, Producer,
    SingleConsumerBarrier, build_multi_producer,
};
use thalweg::bus::Message;
use tokio::sync::broadcast::{self, error::TryRecvError};

use super::broker::{Broker, Publish, Take, Tick};
use crate::channels::Shape;

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

/// Gets a message, and a place for it, which here is whoever measures.
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
