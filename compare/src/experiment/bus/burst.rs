//! A burst of mixed priorities while the consumer is stopped: the loss of each priority, by several
//! accounts, which must agree.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::case::{Case, Settings};
use crate::runner::{Metric, Ran, Run, shuffle, subject, text};
use crate::threads::crew;
use thalweg::bus::{
    Admission, Bus, Losses, Message, Priority, Publisher, Reserves, TopicId, TopicInfo,
    TopicOverflow, Topics,
};

const PUBLISHERS: usize = 4;
/// The shares of the priorities, per cent.
const PERCENT: [u64; Priority::COUNT] = [50, 30, 15, 5];

/// The topic of this message of 24 bytes is its priority.
#[derive(Debug, Clone, Copy)]
struct Alarm {
    publisher: u64,
    number: u64,
    priority: Priority,
}

const fn topic(name: &'static str, priority: Priority) -> TopicInfo {
    TopicInfo {
        priority,
        overflow: TopicOverflow::Reject,
        ..TopicInfo::new(name)
    }
}

impl Message for Alarm {
    const TOPICS: &'static [TopicInfo] = &[
        topic("alarm.low", Priority::Low),
        topic("alarm.medium", Priority::Medium),
        topic("alarm.high", Priority::High),
        topic("alarm.critical", Priority::Critical),
    ];

    #[inline]
    fn topic(&self) -> TopicId {
        TopicId::new(self.priority.index())
    }
}

/// The size of a burst, and of the inbox.
#[derive(Debug, Clone, Copy)]
pub struct BurstLoad {
    /// The messages of all publishers.
    pub total: u64,
    /// The number of messages that may wait.
    pub capacity: u64,
}

/// A rule shares the room between the priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The default shares are 60, 80 and 99 %.
    Default,
    /// Each priority, from the highest down until there is no room, has a reserve as large as its
    /// own messages. Higher ones may use the reserves of lower ones, which have no guarantee.
    Sized,
    /// Each priority, from the highest down until there is no room, has a reserve as large as its
    /// messages and all above it: in any order, none of these is lost.
    Covered,
}

impl Rule {
    fn admission(self, BurstLoad { total, capacity }: BurstLoad) -> Admission {
        if self == Self::Default {
            return Admission::default();
        }
        let mut elements = [0; Priority::COUNT];
        let (mut left, mut above) = (capacity, 0);
        for priority in Priority::ALL.into_iter().rev() {
            let own = share(total, priority);
            above += own;
            let messages = if self == Self::Sized { own } else { above };
            if messages > left {
                break;
            }
            left -= messages;
            elements[priority.index()] = messages;
        }
        Reserves { elements }.into()
    }
}

fn share(total: u64, priority: Priority) -> u64 {
    total * PERCENT[priority.index()] / 100
}

/// Returns the messages of one publisher: its share of each priority, in an order of its own.
fn plan(total: u64, publisher: u64, seed: u64) -> Vec<Priority> {
    let each = |priority| {
        let messages = share(total, priority) / PUBLISHERS as u64;
        std::iter::repeat_n(priority, messages as usize)
    };
    let mut plan: Vec<Priority> = Priority::ALL.into_iter().flat_map(each).collect();
    shuffle(&mut plan, seed * PUBLISHERS as u64 + publisher);
    plan
}

/// The lost messages, by priority.
const METRICS: &[Metric] = &[
    Metric::lower("lost_low", "messages"),
    Metric::lower("lost_medium", "messages"),
    Metric::lower("lost_high", "messages"),
    Metric::lower("lost_critical", "messages"),
];

pub(crate) fn case(settings: &Settings) -> Case {
    let rule = |name, rule| {
        let seed = AtomicU64::new(0);
        subject(name, move |load: &BurstLoad| {
            // ORDERING: Relaxed; runs are one after another.
            run(*load, rule, seed.fetch_add(1, Ordering::Relaxed))
        })
    };
    let subjects = vec![
        rule("thalweg bus, default", Rule::Default),
        rule("thalweg bus, own reserves", Rule::Sized),
        rule("thalweg bus, it and those above", Rule::Covered),
    ];
    let (total, capacity) = (settings.count(300_000), settings.count(131_072));
    let heading = format!(
        "{total} messages of {PUBLISHERS} publishers while the consumer is stopped, room for \
         {capacity}; each message accounted for"
    );
    let load = BurstLoad { total, capacity };
    Case::of("burst/300k", heading, METRICS, subjects, load)
}

/// A publisher's own account: the messages that it published, and which of them were admitted.
struct Published {
    publisher: Publisher<Alarm>,
    plan: Vec<Priority>,
    admitted: Vec<bool>,
}

/// Runs one burst.
///
/// # Panics
/// Two accounts differ, or the rule was broken: there is no figure then.
pub fn run(load: BurstLoad, rule: Rule, seed: u64) -> Ran {
    let bus = Bus::builder()
        .capacity(load.capacity as usize)
        .admission(rule.admission(load))
        .build()
        .map_err(text)?;
    let mut consumer = bus.subscribe(Topics::ALL).map_err(text)?;
    let publishers = (0..PUBLISHERS).map(|_| bus.publisher("feed"));
    let publishers: Result<Vec<_>, _> = publishers.collect();
    let publish = |at: usize, mut publisher: Publisher<Alarm>| {
        let plan = plan(load.total, at as u64, seed);
        let alarm = |(number, &priority)| Alarm {
            publisher: at as u64,
            number: number as u64,
            priority,
        };
        let alarms = plan.iter().enumerate().map(alarm);
        let admitted = alarms.map(|alarm| publisher.publish(alarm).is_ok());
        let admitted = admitted.collect();
        Published {
            publisher,
            plan,
            admitted,
        }
    };
    let publishers = publishers.map_err(text)?;
    let (published, _) = crew(publishers, Vec::<()>::new(), publish, |_, ()| ());
    let losses = consumer.losses();
    // Each message's number of messages that were delivered before it.
    let places = |published: &Published| vec![None; published.plan.len()];
    let mut positions: Vec<Vec<Option<u64>>> = published.iter().map(places).collect();
    let mut count = 0;
    while let Ok(delivery) = consumer.try_recv() {
        let alarm = delivery.message;
        let place = &mut positions[alarm.publisher as usize][alarm.number as usize];
        let before = place.replace(count);
        assert_eq!(before, None, "wrong result: {alarm:?} came twice");
        count += 1;
    }
    account(&published, &positions, &losses, consumer.limits())
}

/// Compares the accounts of the publishers, the bus and the consumer with each other and the rule.
fn account(
    published: &[Published],
    positions: &[Vec<Option<u64>>],
    losses: &[Losses],
    limits: [u64; Priority::COUNT],
) -> Ran {
    let count = positions.iter().flatten().flatten().count() as u64;
    let mut lost = [0.0; Priority::COUNT];
    for (published, positions) in published.iter().zip(positions) {
        let id = published.publisher.id();
        let counted = losses.iter().find(|losses| losses.publisher == id);
        let counted = counted.ok_or("no figures of a publisher")?.flow.refused;
        let came = positions.iter().map(Option::is_some);
        assert!(
            came.eq(published.admitted.iter().copied()),
            "wrong result: other messages came than were admitted"
        );
        for priority in Priority::ALL {
            let refused = published.plan.iter().zip(&published.admitted);
            let refused = refused.filter(|&(of, admitted)| *of == priority && !admitted);
            let refused = refused.count() as u64;
            let at = priority.index();
            assert_eq!(counted[at], refused, "wrong result: {priority:?} counted");
            lost[at] += refused as f64;
        }
        let attempts = published.plan.iter().copied();
        let attempts: Vec<_> = attempts.zip(positions.iter().copied()).collect();
        let broken = broken(limits, &attempts, count);
        assert_eq!(broken, None, "wrong result: the rule was broken");
    }
    Ok(Run::of(lost))
}

/// Returns the last attempt of a publisher that the documented rule does not allow: a message of
/// priority p is admitted if and only if fewer than `limits[p]` wait when it draws its place.
///
/// The consumer takes no message, so the number of waiting ones only grows, and an admitted
/// message's position is how many waited when it was drawn. A refused one has no position; but it
/// came before the next one of its publisher that was admitted, when no more waited than that one's
/// position, or than all if there is none.
pub fn broken(
    limits: [u64; Priority::COUNT],
    attempts: &[(Priority, Option<u64>)],
    admitted: u64,
) -> Option<usize> {
    let mut most = admitted;
    let is_broken = |&(_, (priority, position)): &(usize, &(Priority, Option<u64>))| {
        let limit = limits[priority.index()];
        match *position {
            Some(position) => {
                let is_broken = position >= most || position >= limit;
                most = position;
                is_broken
            }
            None => most < limit,
        }
    };
    let mut attempts = attempts.iter().enumerate().rev();
    attempts.find(is_broken).map(|(at, _)| at)
}
