//! Random histories, against a model in plain words.
//!
//! A world is a bus with its publishers and one inbox; it goes through many histories, each of
//! which begins and ends with an empty inbox. `THALWEG_BUS_HISTORIES=1000000` sets their number
//! (`--release`). Every other world has an express lane.

use crate::bus::note::{BLOCK, CONFLATE, KEPT, Note, OLDEST, REJECT, bus, keyed};
use crate::bus::{Random, check_totals};
use std::collections::VecDeque;
use thalweg::bus::{Admission, Bus, Consumer, Priority, Publisher, TopicId, Topics};

const HISTORIES: u64 = 40_000;
const HISTORIES_PER_WORLD: u64 = 200;
const PUBLISHERS: usize = 3;
const TOPICS: [TopicId; 4] = [BLOCK, REJECT, OLDEST, CONFLATE];
/// More than there is room for.
const KEYS: usize = KEPT + 3;

/// A message as the model has it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sent {
    publisher: usize,
    note: Note,
    priority: Priority,
    sequence: u64,
    lost_before: u64,
}

/// An element of the ring.
enum Element {
    Message(Sent),
    Token(TopicId),
}

#[derive(Default)]
struct Model {
    limits: [u64; Priority::COUNT],
    ring: VecDeque<Element>,
    /// The express lane, and from which priority on messages go there.
    lane: VecDeque<Element>,
    from: Option<Priority>,
    /// By topic.
    topic_buffers: [VecDeque<Sent>; 4],
    /// Taken from a topic buffer.
    ahead: VecDeque<Sent>,
    /// Taken from the lane.
    first: VecDeque<Sent>,
    /// By publisher and topic.
    sequences: [[u64; 4]; PUBLISHERS],
    unreported: [[u64; 4]; PUBLISHERS],
    refused: [u64; Priority::COUNT],
    evicted: [u64; Priority::COUNT],
    delivered: [u64; Priority::COUNT],
    reported: u64,
}

impl Model {
    fn overtakes(&self, priority: Priority) -> bool {
        self.from.is_some_and(|from| priority >= from)
    }

    fn ring_of(&mut self, priority: Priority) -> &mut VecDeque<Element> {
        match self.overtakes(priority) {
            true => &mut self.lane,
            false => &mut self.ring,
        }
    }

    /// Returns whether it is admitted.
    fn publish(&mut self, publisher: usize, note: Note, priority: Priority) -> bool {
        let topic = note.topic.index();
        let sequence = self.sequences[publisher][topic];
        self.sequences[publisher][topic] += 1;
        let mut sent = Sent {
            publisher,
            note,
            priority,
            sequence,
            lost_before: 0,
        };
        if note.topic == OLDEST || note.topic == CONFLATE {
            self.shelve(sent);
            return true;
        }
        let waiting = self.ring_of(priority).len() as u64;
        let unreported = &mut self.unreported[publisher][topic];
        if waiting >= self.limits[priority.index()] {
            *unreported += 1;
            self.refused[priority.index()] += 1;
            return false;
        }
        sent.lost_before = std::mem::take(unreported);
        self.ring_of(priority).push_back(Element::Message(sent));
        true
    }

    fn shelve(&mut self, sent: Sent) {
        let topic = sent.note.topic;
        if self.topic_buffers[topic.index()].is_empty() {
            // Both of these topics are of medium priority.
            let ring = self.ring_of(Priority::Medium);
            ring.push_back(Element::Token(topic));
        }
        let topic_buffer = &mut self.topic_buffers[topic.index()];
        let same = |other: &Sent| topic == CONFLATE && other.note.key == sent.note.key;
        let older = topic_buffer.iter().position(same);
        let full = (topic_buffer.len() == KEPT).then_some(0);
        if let Some(at) = older.or(full) {
            let evicted = topic_buffer.remove(at).unwrap();
            self.evicted[evicted.priority.index()] += 1;
        }
        topic_buffer.push_back(sent);
    }

    /// Returns the messages for which a message or token stands.
    fn open(&mut self, element: Element) -> VecDeque<Sent> {
        let topic = match element {
            Element::Message(sent) => return VecDeque::from([sent]),
            Element::Token(topic) => topic,
        };
        let mut all = std::mem::take(&mut self.topic_buffers[topic.index()]);
        for sent in &mut all {
            // A message that is not in its topic buffer was evicted.
            let next = &mut self.unreported[sent.publisher][topic.index()];
            sent.lost_before = sent.sequence - *next;
            *next = sent.sequence + 1;
        }
        all
    }

    fn receive(&mut self) -> Option<Sent> {
        if self.first.is_empty() {
            if let Some(element) = self.lane.pop_front() {
                self.first = self.open(element);
            } else if self.ahead.is_empty() {
                let element = self.ring.pop_front()?;
                self.ahead = self.open(element);
            }
        }
        let sent = self.first.pop_front().or_else(|| self.ahead.pop_front())?;
        self.delivered[sent.priority.index()] += 1;
        self.reported += sent.lost_before;
        Some(sent)
    }

    /// Messages in the lane.
    fn in_lane(&self) -> u64 {
        let messages = |element: &&Element| matches!(element, Element::Message(_));
        let topic_buffers: usize = match self.overtakes(Priority::Medium) {
            true => self.topic_buffers.iter().map(VecDeque::len).sum(),
            false => 0,
        };
        (self.lane.iter().filter(messages).count() + topic_buffers) as u64
    }

    fn waiting(&self) -> u64 {
        let messages = |element: &&Element| matches!(element, Element::Message(_));
        let rings = self.ring.iter().chain(&self.lane);
        let rings = rings.filter(messages).count();
        let topic_buffers: usize = self.topic_buffers.iter().map(VecDeque::len).sum();
        (rings + topic_buffers + self.ahead.len() + self.first.len()) as u64
    }
}

struct World {
    bus: Bus<Note>,
    publishers: Vec<Publisher<Note>>,
    consumer: Consumer<Note>,
    model: Model,
}

impl World {
    fn new(random: &mut Random) -> Self {
        let capacity = 1 + random.below(9);
        let admission = if random.below(2) == 0 {
            let mut percent = [0; 3].map(|_: u8| random.below(101) as u8);
            percent.sort_unstable();
            Admission::percent(percent[0], percent[1], percent[2])
        } else {
            let mut left = capacity as u64 - 1;
            let reserves = [0; 3].map(|_: u64| {
                let reserve = random.below(left as usize + 1) as u64;
                left -= reserve;
                reserve
            });
            Admission::reserve(reserves[0], reserves[1], reserves[2])
        };
        let bus = bus(8);
        let mut limits = admission.limits(capacity).unwrap();
        let mut options = bus.subscription(Topics::ALL).capacity(capacity);
        let from = [None, Some(Priority::ALL[1 + random.below(3)])][random.below(2)];
        if let Some(from) = from {
            let messages = 1 + random.below(4);
            options = options.express(from, messages);
            limits[from.index()..].fill(messages as u64);
        }
        let consumer = options.admission(admission).open().unwrap();
        let publisher = |n: usize| bus.publisher(&n.to_string()).unwrap();
        assert_eq!(limits, consumer.limits());
        Self {
            publishers: (0..PUBLISHERS).map(publisher).collect(),
            consumer,
            model: Model {
                limits,
                from,
                ..Model::default()
            },
            bus,
        }
    }

    fn publish(&mut self, random: &mut Random) {
        let publisher = random.below(PUBLISHERS);
        let topic = TOPICS[[0, 0, 0, 1, 1, 1, 2, 3][random.below(8)]];
        let note = keyed(topic, random.below(KEYS) as u64, 7);
        let priority = Priority::ALL[random.below(4)];
        let outcome = self.publishers[publisher].try_publish_with_priority(priority, note);
        let expected = self.model.publish(publisher, note, priority);
        assert_eq!(outcome.is_ok(), expected, "{note:?} {priority:?}");
    }

    fn receive(&mut self) -> bool {
        let expected = self.model.receive();
        let got = self.consumer.try_recv().ok().map(|got| Sent {
            publisher: got.publisher.index(),
            note: got.message,
            priority: got.priority,
            sequence: got.sequence,
            lost_before: got.lost_before,
        });
        assert_eq!(got, expected);
        got.is_some()
    }

    fn check(&self) {
        let totals = self.bus.totals();
        check_totals(&totals);
        let model = &self.model;
        assert_eq!(totals.outcomes.refused, model.refused);
        assert_eq!(totals.outcomes.evicted, model.evicted);
        assert_eq!(totals.consumers.delivered, model.delivered);
        assert_eq!(totals.consumers.reported, model.reported);
        assert_eq!(totals.consumers.waiting, model.waiting());
        let in_lane = self.consumer.express().map(|lane| lane.waiting);
        assert_eq!(in_lane, model.from.map(|_| model.in_lane()));
    }
}

#[test]
fn admission_is_as_in_the_model() {
    let asked = std::env::var("THALWEG_BUS_HISTORIES");
    let histories = asked.map_or(HISTORIES, |asked| asked.parse().unwrap());
    let first = std::env::var("THALWEG_SEED");
    let first = first.map_or(0, |asked| asked.parse::<u64>().expect("a seed"));
    for world in first..first + histories.div_ceil(HISTORIES_PER_WORLD) {
        let mut random = Random(0x9E37_79B9_u64.wrapping_add(world.wrapping_mul(0x1234_5677)));
        let mut world = World::new(&mut random);
        for history in 0..HISTORIES_PER_WORLD {
            // From seldom full to always full.
            let publishes = 2 + random.below(7);
            for _ in 0..4 + random.below(20) {
                if random.below(10) < publishes {
                    world.publish(&mut random);
                } else {
                    world.receive();
                }
            }
            if history % 16 == 0 {
                world.check();
            }
            while world.receive() {}
        }
        world.check();
    }
}
