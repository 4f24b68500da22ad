//! A burst of mixed priorities while the consumer is stopped: what is lost of each priority, and
//! whether everything that says so agrees.

use thalweg::bus::{
    Admission, Bus, Consumer, Losses, Message, Policy, Priority, Publisher, Reserves, TopicId,
    TopicInfo, Topics,
};
use thalweg_measure::random::SplitMix;

use super::admission::{Attempt, check};
use crate::experiment::channels::crew;

/// Messages that may wait.
pub(super) const CAPACITY: usize = 131_072;
pub(super) const PUBLISHERS: usize = 4;
/// Messages of a burst, of all publishers.
pub(super) const TOTALS: [(&str, u64); 2] = [("150k", 150_000), ("300k", 300_000)];
/// Of a burst, by priority.
pub(super) const PERCENT: [u64; Priority::COUNT] = [50, 30, 15, 5];

/// A message of 24 bytes whose topic is its priority.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alarm {
    publisher: u64,
    number: u64,
    priority: Priority,
}

const fn topic(name: &'static str, priority: Priority) -> TopicInfo {
    TopicInfo {
        priority,
        policy: Policy::Reject,
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

/// How the room is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// 60, 80 and 99 %.
    Default,
    /// For each priority, from the highest down as far as there is room, what it brings itself.
    /// Higher ones may take what is kept for lower ones: it is no guarantee for these.
    Sized,
    /// For each priority, as far down as there is room, as many places as it and all above it
    /// bring: whatever the order, none of these is lost.
    Covered,
}

impl Rule {
    pub(super) const EACH: [Self; 3] = [Self::Default, Self::Sized, Self::Covered];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Default => "thalweg bus, default",
            Self::Sized => "thalweg bus, own reserves",
            Self::Covered => "thalweg bus, it and those above",
        }
    }

    pub(super) fn admission(self, total: u64) -> Admission {
        if self == Self::Default {
            return Admission::default();
        }
        let mut elements = [0; Priority::COUNT];
        let (mut left, mut above) = (CAPACITY as u64, 0);
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

/// What one publisher publishes: its share of each priority, in an order of its own.
fn plan(total: u64, publisher: u64, seed: u64) -> Vec<Priority> {
    let each = |priority| {
        let messages = share(total, priority) / PUBLISHERS as u64;
        std::iter::repeat_n(priority, messages as usize)
    };
    let mut plan: Vec<Priority> = Priority::ALL.into_iter().flat_map(each).collect();
    let mut random = SplitMix::new(seed * PUBLISHERS as u64 + publisher);
    for left in (1..plan.len()).rev() {
        plan.swap(left, random.below(left as u64 + 1) as usize);
    }
    plan
}

/// What became of a burst.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) issued: [u64; Priority::COUNT],
    pub(super) lost: [u64; Priority::COUNT],
}

/// What a publisher saw.
struct Published {
    publisher: Publisher<Alarm>,
    plan: Vec<Priority>,
    /// By message.
    admitted: Vec<bool>,
}

/// One burst of `total` messages.
///
/// # Errors
/// Two accounts of it differ, or the rule was broken.
pub(super) fn run(total: u64, rule: Rule, seed: u64) -> Result<Outcome, String> {
    let bus = Bus::builder()
        .capacity(CAPACITY)
        .admission(rule.admission(total))
        .build()
        .map_err(|error| error.to_string())?;
    let consumer = bus.subscribe(Topics::ALL);
    let mut consumer = consumer.map_err(|error| error.to_string())?;
    let publish = |at: usize, mut publisher: Publisher<Alarm>, plan: Vec<Priority>| {
        let mut admitted = Vec::with_capacity(plan.len());
        for (number, &priority) in plan.iter().enumerate() {
            let outcome = publisher.publish(Alarm {
                publisher: at as u64,
                number: number as u64,
                priority,
            });
            admitted.push(outcome.is_ok());
        }
        Published {
            publisher,
            plan,
            admitted,
        }
    };
    let publish = &publish;
    let mut jobs: Vec<crew::Job<'_, Published>> = Vec::new();
    for at in 0..PUBLISHERS {
        let publisher = bus.publisher(&format!("feed-{at}"));
        let publisher = publisher.map_err(|error| error.to_string())?;
        let plan = plan(total, at as u64, seed);
        jobs.push(Box::new(move || publish(at, publisher, plan)));
    }
    let (published, _) = crew::run::<_, ()>(jobs, Vec::new());
    let losses = consumer.losses();
    let received = receive(&mut consumer, &published)?;
    account(&published, &received, &losses, consumer.limits())
}

/// What the consumer got.
struct Received {
    /// By publisher and message: how many were delivered before it.
    positions: Vec<Vec<Option<u64>>>,
    /// By publisher and priority: losses that were told, and the sequence that comes next.
    told: Vec<[u64; Priority::COUNT]>,
    next: Vec<[u64; Priority::COUNT]>,
    count: u64,
}

fn receive(consumer: &mut Consumer<Alarm>, published: &[Published]) -> Result<Received, String> {
    let places = |published: &Published| vec![None; published.plan.len()];
    let mut received = Received {
        positions: published.iter().map(places).collect(),
        told: vec![[0; Priority::COUNT]; PUBLISHERS],
        next: vec![[0; Priority::COUNT]; PUBLISHERS],
        count: 0,
    };
    while let Ok(delivery) = consumer.try_recv() {
        let Alarm {
            publisher,
            number,
            priority,
        } = delivery.message;
        let (publisher, topic) = (publisher as usize, priority.index());
        received.told[publisher][topic] += delivery.lost_before;
        let next = &mut received.next[publisher][topic];
        *next += delivery.lost_before;
        if delivery.sequence != *next || delivery.priority != priority {
            let sequence = delivery.sequence;
            return Err(format!("sequence {sequence}, where gaps say {next}"));
        }
        *next += 1;
        let place = &mut received.positions[publisher][number as usize];
        if place.replace(received.count).is_some() {
            return Err(format!("message {number} of {publisher} came twice"));
        }
        received.count += 1;
    }
    Ok(received)
}

/// Holds what publishers saw, what the bus counted, what the consumer was told, and what is missing
/// against each other, for each publisher and priority; and the rule against each message.
fn account(
    published: &[Published],
    received: &Received,
    losses: &[Losses],
    limits: [u64; Priority::COUNT],
) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    for (at, published) in published.iter().enumerate() {
        let id = published.publisher.id();
        let of_it = losses.iter().find(|losses| losses.publisher == id);
        let flow = of_it.ok_or(format!("no figures of publisher {at}"))?.flow;
        let positions = &received.positions[at];
        for priority in Priority::ALL {
            let topic = priority.index();
            let of_it = |number: &usize| published.plan[*number] == priority;
            let numbers = || (0..published.plan.len()).filter(of_it);
            let issued = numbers().count() as u64;
            let refused = numbers().filter(|&number| !published.admitted[number]);
            let missing = numbers().filter(|&number| positions[number].is_none());
            let id = TopicId::new(topic);
            let sequence = published.publisher.next_sequence(id);
            let untold = sequence.saturating_sub(received.next[at][topic]);
            let figures = [
                ("given back", refused.count() as u64),
                ("counted", flow.refused[topic]),
                ("not admitted", issued - flow.admitted[topic]),
                ("missing", missing.count() as u64),
                ("gaps", received.told[at][topic] + untold),
            ];
            let lost = figures[0].1;
            if [sequence, flow.issued[topic]] != [issued; 2]
                || figures.iter().any(|&(_, figure)| figure != lost)
            {
                return Err(format!(
                    "publisher {at}, {priority:?}: issued {issued}, next sequence {sequence}, \
                     counted {}; lost: {figures:?}",
                    flow.issued[topic]
                ));
            }
            outcome.issued[topic] += issued;
            outcome.lost[topic] += lost;
        }
        let attempts = published.plan.iter().zip(positions);
        let attempts = attempts.map(|(&priority, &position)| Attempt { priority, position });
        let attempts: Vec<Attempt> = attempts.collect();
        check(limits, &attempts, received.count)
            .map_err(|error| format!("publisher {at}, {error}"))?;
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_accounts_agree_and_what_room_is_kept_for_is_not_lost() {
        for (_, total) in TOTALS {
            for rule in Rule::EACH {
                let outcome = run(total, rule, 1).unwrap();
                assert_eq!(outcome.issued, Priority::ALL.map(|p| share(total, p)));
                let [low, medium, high, critical] = outcome.lost;
                assert!(low > 0);
                if rule == Rule::Covered {
                    assert_eq!((high, critical), (0, 0));
                    assert_eq!(medium == 0, total == 150_000);
                }
                let lost: u64 = outcome.lost.iter().sum();
                let admitted = total - lost;
                assert!(admitted <= CAPACITY as u64, "{admitted}");
            }
        }
    }

    #[test]
    fn reserves_go_as_far_down_as_there_is_room() {
        let limits = |rule: Rule, total| rule.admission(total).limits(CAPACITY).unwrap();
        let all = CAPACITY as u64;
        let high = all - 7_500;
        let sized = [high - 67_500, high - 22_500, high, all];
        assert_eq!(limits(Rule::Sized, 150_000), sized);
        let covered = [high - 105_000, high - 30_000, high, all];
        assert_eq!(limits(Rule::Covered, 150_000), covered);
        let high = all - 15_000;
        let sized = [high - 45_000, high - 45_000, high, all];
        assert_eq!(limits(Rule::Sized, 300_000), sized);
        let covered = [high - 60_000, high - 60_000, high, all];
        assert_eq!(limits(Rule::Covered, 300_000), covered);
    }

    #[test]
    fn accounts_that_differ_are_told() {
        let bus = Bus::builder().capacity(4).build().unwrap();
        let mut consumer = bus.subscribe(Topics::ALL).unwrap();
        let mut publisher = bus.publisher("feed").unwrap();
        let plan = vec![Priority::Low; 3];
        let mut admitted: Vec<bool> = (0..3)
            .map(|number| {
                let priority = Priority::Low;
                let alarm = Alarm {
                    publisher: 0,
                    number,
                    priority,
                };
                publisher.publish(alarm).is_ok()
            })
            .collect();
        assert_eq!(admitted, [true, true, false]);
        let losses = consumer.losses();
        let publish = |publisher, admitted| {
            let plan = plan.clone();
            [Published {
                publisher,
                plan,
                admitted,
            }]
        };
        let published = publish(publisher, admitted.clone());
        let mut received = receive(&mut consumer, &published).unwrap();
        let limits = consumer.limits();
        let fine = account(&published, &received, &losses, limits).unwrap();
        assert_eq!((fine.issued[0], fine.lost[0]), (3, 1));
        let told = |published: &[Published], received: &Received, losses: &[Losses]| {
            account(published, received, losses, limits).unwrap_err()
        };
        received.told[0][0] += 1;
        assert!(told(&published, &received, &losses).contains("(\"gaps\", 2)"));
        received.told[0][0] -= 1;
        received.positions[0][1] = None;
        assert!(told(&published, &received, &losses).contains("(\"missing\", 2)"));
        received.positions[0][1] = Some(1);
        let [published] = published;
        admitted[2] = true;
        let published = publish(published.publisher, admitted);
        assert!(told(&published, &received, &losses).contains("(\"given back\", 0)"));
        assert!(told(&published, &received, &[]).contains("no figures"));
    }
}
