//! What is published, and the roles that a bus and its peers play.

use thalweg::bus::{Admission, Bus, Consumer, Message, Publisher, TopicId, TopicInfo, Topics};

use crate::channels::Shape;
use crate::runner::{Run, Subject, subject};

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
    /// Whether there can be so many publishers and consumers.
    fn fits(_shape: Shape) -> bool {
        true
    }
    /// A new one, where so many messages may wait for each consumer, or more where the peer rounds
    /// up.
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

/// [`Ours`], with the call that waits: it spins, then sleeps.
pub(super) struct OursWaiting;

/// A consumer that waits for the next message.
pub(super) struct Waiting(Consumer<Tick>);

fn open(capacity: usize, shape: Shape) -> (Vec<Publisher<Tick>>, Vec<Consumer<Tick>>) {
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

impl Broker for Ours {
    const NAME: &'static str = "thalweg bus";
    type Tx = Publisher<Tick>;
    type Rx = Consumer<Tick>;
    fn open(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        open(capacity, shape)
    }
}

impl Broker for OursWaiting {
    const NAME: &'static str = "thalweg bus, recv";
    type Tx = Publisher<Tick>;
    type Rx = Waiting;
    fn open(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
        let (txs, rxs) = open(capacity, shape);
        (txs, rxs.into_iter().map(Waiting).collect())
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

impl Take for Waiting {
    #[inline]
    fn take(&mut self) -> Option<Tick> {
        self.0.recv().ok().map(|delivery| delivery.message)
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

/// What is measured, of every bus.
pub(super) trait Job: 'static {
    type Load: Sync + 'static;
    fn run<B: Broker>(load: &Self::Load) -> Result<Run, String>;
}

/// Those that are compared, as subjects of a job.
pub(super) struct Subjects<J: Job> {
    shape: Shape,
    all: Vec<Box<dyn Subject<J::Load>>>,
}

impl<J: Job> Subjects<J> {
    pub(super) fn new(shape: Shape) -> Self {
        Self {
            shape,
            all: Vec::new(),
        }
    }

    /// Adds one, if it can have so many publishers and consumers.
    pub(super) fn with<B: Broker>(mut self) -> Self {
        if B::fits(self.shape) {
            self.all.push(subject(B::NAME, J::run::<B>));
        }
        self
    }

    pub(super) fn all(self) -> Vec<Box<dyn Subject<J::Load>>> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_torn_missing_doubled_or_out_of_order_is_told() {
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
