//! The message, and the bus beside its peers. Every consumer gets every message of every publisher.
//! None of the peers has priorities, or more than one topic.

use std::collections::VecDeque;

use ::bus::BusReader;
use crossbeam_channel as crossbeam;
use disruptor::{
    BusySpin, EventPoller, MultiProducer, MultiProducerBarrier, Producer, SingleConsumerBarrier,
    build_multi_producer,
};
use thalweg::bus::{Admission, Bus, Consumer, Message, Publisher, TopicId, TopicInfo, Topics};
use tokio::sync::broadcast::{self, error::TryRecvError};

use crate::channels::{BlockingSend, Channel, Element, Topology, TryRecv, channels, ends, insist};

/// A message of 24 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tick {
    /// The time at which it was published, in ticks of the clock, where latency is measured.
    pub(crate) stamp: u64,
    /// The number of its publisher's messages before it.
    pub number: u64,
    pub(crate) publisher: u32,
    check: u32,
}

const _: () = assert!(size_of::<Tick>() == 24);

impl Tick {
    /// Makes a whole message.
    #[inline]
    pub fn new(publisher: u32, number: u64, stamp: u64) -> Self {
        Self {
            stamp,
            number,
            publisher,
            check: Self::check(publisher, number),
        }
    }

    /// Makes the last message.
    pub fn last() -> Self {
        Self::new(0, u64::MAX, 0)
    }

    /// Returns whether no other message follows.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.number == u64::MAX
    }

    #[inline]
    fn check(publisher: u32, number: u64) -> u32 {
        (number as u32).rotate_left(7) ^ !publisher
    }
}

impl Message for Tick {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("market.tick")];

    #[inline]
    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

/// Checks the messages of up to two publishers, as a consumer gets them.
#[derive(Debug, Default)]
pub struct TickChecker {
    next: [u64; 2],
    pub(crate) taken: u64,
    misplaced: u64,
}

impl TickChecker {
    /// Checks the next message.
    #[inline]
    pub fn take(&mut self, tick: &Tick) {
        self.taken += 1;
        let next = &mut self.next[(tick.publisher & 1) as usize];
        let is_whole = tick.check == Tick::check(tick.publisher, tick.number);
        // `lost` counts a message that is missing.
        self.misplaced += u64::from(tick.number < *next || !is_whole);
        *next = tick.number + 1;
    }

    /// Returns how many of the messages that were published did not come, or not once, whole and
    /// in order.
    pub fn lost(&self, published: u64) -> u64 {
        published.abs_diff(self.taken) + self.misplaced
    }
}

/// The bus and all peers can carry notes.
pub(crate) trait Note: Message + Element {}

impl<M: Message + Element> Note for M {}

/// The publishers of a broker wait for room in its own way, if they wait; its consumers try.
pub(crate) trait Broker: Channel<Tick, Tx: BlockingSend<Tick>, Rx: TryRecv<Tick>> {}

impl<B: Channel<Tick, Tx: BlockingSend<Tick>, Rx: TryRecv<Tick>>> Broker for B {}

/// Each consumer has a bounded crossbeam channel; a publisher sends a copy into each.
pub(crate) struct Fan<M>(Vec<crossbeam::Sender<M>>);

/// A callback gets a message, and a place for it.
type Handler<M> = Box<dyn Fn(&M, &mut Option<M>) + Send>;

/// A consumer has a channel, and callbacks by topic.
pub(crate) struct Table<M>(crossbeam::Receiver<M>, Vec<Vec<Handler<M>>>);

/// A poller, and the events that it took and did not return yet: its barrier looks at every event
/// that is there each time, so it takes all of them.
pub(crate) struct Inlet<M>(EventPoller<M, MultiProducerBarrier>, VecDeque<M>);

fn any(_: Topology) -> bool {
    true
}

fn all<T>(count: usize, one: impl FnMut(usize) -> T) -> Vec<T> {
    (0..count).map(one).collect()
}

channels! {
    Note;
    /// `thalweg::bus`: publishers block where an inbox has no room.
    Ours "thalweg bus": Publisher<M>, Consumer<M>, any, |capacity, shape| {
        // All priorities have all the room, as with the peers, which have no priorities.
        let admission = Admission::percent(100, 100, 100);
        let bus = Bus::builder().capacity(capacity).admission(admission).build();
        let bus = bus.expect("the capacities of this experiment are in range");
        let rx = |_| bus.subscribe(Topics::ALL).expect("the bus is running");
        let rxs = all(shape.receivers, rx);
        (all(shape.senders, |_| bus.publisher("ticks").expect("the bus is running")), rxs)
    };
    /// The crate `bus` is a ring of slots that each consumer visits. It has one publisher, which
    /// cannot be cloned (its documents put a channel and a thread before it), and which *blocks*
    /// while the slowest consumer is a lap behind. Each consumer but the last of a slot clones.
    TheCrate "bus": ::bus::Bus<M>, BusReader<M>, |shape| shape.senders == 1, |capacity, shape| {
        let mut bus = ::bus::Bus::new(capacity);
        let rxs = all(shape.receivers, |_| bus.add_rx());
        (vec![bus], rxs)
    };
    /// `tokio::sync::broadcast`: publishers never wait and *overwrite* the oldest; a consumer that
    /// is a lap behind *lags*: it gets the number of missed messages, which are lost here, and goes
    /// on.
    Tokio "tokio broadcast": broadcast::Sender<M>, broadcast::Receiver<M>, any,
    |capacity, shape| {
        let (tx, _) = broadcast::channel(capacity);
        let rxs = all(shape.receivers, |_| tx.subscribe());
        (vec![tx; shape.senders], rxs)
    };
    /// A bus that its user writes: channels, and a table of callbacks by topic behind each.
    /// Publishers *block*.
    Callbacks "crossbeam, callbacks": Fan<M>, Table<M>, any, |capacity, shape| {
        let (txs, rxs): (Vec<_>, Vec<_>) =
            all(shape.receivers, |_| crossbeam::bounded(capacity)).into_iter().unzip();
        let handler = || -> Handler<M> { Box::new(|tick, taken| *taken = Some(*tick)) };
        let table = |rx| Table(rx, vec![vec![handler()]]);
        let tables = rxs.into_iter().map(table).collect();
        (all(shape.senders, |_| Fan(txs.clone())), tables)
    };
    /// `disruptor` has its multi-producer, also for one publisher, as a bus needs: events are
    /// written in place, each consumer polls with a cursor of its own. Its own call that waits
    /// *spins* without an end, also on few cores: here it tries, and yields after [`SPINS`] tries.
    Disruptor "disruptor (try, yield)": MultiProducer<M, SingleConsumerBarrier>, Inlet<M>,
    |shape| shape.receivers == 1, |capacity, shape| {
        let capacity = capacity.next_power_of_two();
        let builder = build_multi_producer(capacity, M::default, BusySpin);
        let (poller, builder) = builder.new_event_poller();
        (vec![builder.build(); shape.senders], vec![Inlet(poller, VecDeque::new())])
    };
}

/// A disruptor's publisher yields after this many tries.
const SPINS: u32 = 64;

// Topics block, the bus runs, and consumers live as long as the publishers: no call fails.
ends! {
    Note;
    Publisher<M>: send |tx, tick| Self::publish(tx, tick);
    Consumer<M>: try_recv |rx| Self::try_recv(rx).ok().map(|delivery| delivery.message);
    ::bus::Bus<M>: send |tx, tick| tx.broadcast(tick);
    BusReader<M>: try_recv |rx| Self::try_recv(rx).ok();
    broadcast::Sender<M>: send |tx, tick| Self::send(tx, tick);
    broadcast::Receiver<M>: try_recv |rx| {
        loop {
            match Self::try_recv(rx) {
                Ok(tick) => return Some(tick),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    };
    Fan<M>: send |tx, tick| tx.0.iter().try_for_each(|tx| tx.send(tick));
    Table<M>: try_recv |rx| {
        let tick = rx.0.try_recv().ok()?;
        let mut taken = None;
        for handler in &rx.1[tick.topic().index()] {
            handler(&tick, &mut taken);
        }
        taken
    };
    MultiProducer<M, SingleConsumerBarrier>: send |tx, tick| {
        insist(SPINS, || tx.try_publish(|event| *event = tick).ok())
    };
    Inlet<M>: try_recv |rx| {
        if rx.1.is_empty() {
            let mut events = rx.0.poll().ok()?;
            rx.1.extend((&mut events).copied());
        }
        rx.1.pop_front()
    };
}

/// Returns the brokers that are possible in a shape, as subjects of a job.
macro_rules! each_broker {
    ($job:ident, $shape:expr) => {
        subjects! {
            $job, Tick, $shape; broker::Ours, broker::TheCrate, broker::Tokio, broker::Callbacks,
            broker::Disruptor,
        }
    };
}

pub(super) use each_broker;
