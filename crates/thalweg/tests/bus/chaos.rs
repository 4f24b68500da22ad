//! Consumers that stall, panic, leave and join while four publishers publish; every message is
//! accounted for. `THALWEG_BUS_CHAOS_S=60` makes it a minute.

use crate::bus::note::{BLOCK, CONFLATE, Note, OLDEST, REJECT, RETAINED, bus, keyed};
use crate::bus::{Random, check_totals, sum};
use std::collections::HashMap;
use std::sync::{Arc, Barrier};
use std::thread::{self, JoinHandle, yield_now};
use std::time::{Duration, Instant};
use thalweg::bus::{Bus, Consumer, Delivery, Priority, Publisher, Topics};

const PUBLISHERS: u64 = 4;
const TOPICS: [thalweg::bus::TopicId; 5] = [BLOCK, REJECT, OLDEST, CONFLATE, RETAINED];
/// The priority that overtakes, where there is an express lane.
const EXPRESS: Priority = Priority::High;
/// Values of the last message of each publisher and topic, after which every loss has been
/// reported.
const LAST: u64 = u64::MAX;

/// The sequences that a consumer sees of each publisher and topic.
#[derive(Default)]
struct Account {
    next: HashMap<(usize, usize), u64>,
    delivered: u64,
    reported: u64,
    last: usize,
}

impl Account {
    /// For the one consumer of an inbox that was there from the start.
    fn take(&mut self, got: &Delivery<Note>) {
        let next = self
            .next
            .entry((got.publisher.index(), got.topic.index()))
            .or_default();
        assert_eq!(*next + got.lost_before, got.sequence, "{got:?}");
        *next = got.sequence + 1;
        self.delivered += 1;
        self.reported += got.lost_before;
        self.last += usize::from(got.message.value == LAST);
    }
}

/// As [`Account`], where some messages overtake others: each sequence is delivered once, or in one
/// gap that was reported; in each lane they ascend.
#[derive(Default)]
struct Mixed {
    seen: HashMap<(usize, usize), Vec<bool>>,
    next: HashMap<(usize, usize, bool), u64>,
    account: Account,
}

impl Mixed {
    fn take(&mut self, got: &Delivery<Note>) {
        let of = (got.publisher.index(), got.topic.index());
        let has_topic_buffer = got.topic == OLDEST || got.topic == CONFLATE;
        let is_express = got.priority >= EXPRESS && !has_topic_buffer;
        let next = self.next.entry((of.0, of.1, is_express)).or_default();
        assert!(*next <= got.sequence, "{got:?} after {next}");
        *next = got.sequence + 1;
        let seen = self.seen.entry(of).or_default();
        let at = got.sequence as usize;
        seen.resize(seen.len().max(at + 1), false);
        for place in &mut seen[at - got.lost_before as usize..=at] {
            assert!(!std::mem::replace(place, true), "twice: {got:?}");
        }
        self.account.delivered += 1;
        self.account.reported += got.lost_before;
        self.account.last += usize::from(got.message.value == LAST);
    }
}

/// Publishes until `end`, then the last of each topic.
fn publish(
    bus: &Bus<Note>,
    mut tx: Publisher<Note>,
    end: Instant,
    quiet: &Barrier,
) -> Publisher<Note> {
    let mut random = Random(77 + tx.id().index() as u64);
    let mut n = 0;
    // A thread that comes late publishes some, too.
    while n < 6_400 || n % 64 != 0 || Instant::now() < end {
        n += 1;
        let note = keyed(TOPICS[random.below(5)], random.below(6) as u64, n);
        let priority = Priority::ALL[random.below(4)];
        let _ = match random.below(3) {
            0 => tx.try_publish_with_priority(priority, note),
            1 => tx.publish_timeout(note, Duration::from_micros(20)),
            _ => tx.publish_with_priority(priority, note),
        };
        if n % 512 == 0 {
            yield_now();
        }
    }
    // No thread publishes until all is taken: then there is room for the last ones everywhere, but
    // with a guest.
    quiet.wait();
    while bus.totals().consumers.waiting > 0 {
        yield_now();
    }
    quiet.wait();
    for topic in TOPICS {
        let last = keyed(topic, 1_000 + tx.id().index() as u64, LAST);
        let _ = tx.publish_with_priority(Priority::Critical, last);
    }
    tx
}

/// Takes everything, and stalls now and then until its inbox is full.
fn take_all(mut rx: Consumer<Note>, seed: u64, stalls: bool) -> (Account, Consumer<Note>) {
    let mut random = Random(seed);
    let mut mixed = Mixed::default();
    let mut stall = 0;
    let has_lane = rx.express().is_some();
    while mixed.account.last < (PUBLISHERS as usize) * TOPICS.len() {
        if stalls && random.below(2_000) == 0 {
            stall = random.below(3_000);
        }
        for _ in 0..std::mem::take(&mut stall) {
            yield_now();
        }
        let take = |got: Delivery<Note>| match has_lane {
            true => mixed.take(&got),
            false => mixed.account.take(&got),
        };
        rx.wait_each(1 + random.below(32), take).unwrap();
    }
    let all: usize = mixed.seen.values().map(Vec::len).sum();
    let Mixed { account, seen, .. } = mixed;
    assert!(seen.into_values().flatten().all(|was_seen| was_seen));
    assert!(!has_lane || all as u64 == account.delivered + account.reported);
    (account, rx)
}

/// Joins, takes some, and leaves or panics, until `end`.
fn come_and_go(bus: &Bus<Note>, seed: u64, end: Instant) -> u64 {
    let mut random = Random(seed);
    let mut lives = 0;
    while lives == 0 || Instant::now() < end {
        lives += 1;
        let mut options = bus.subscription(Topics::ALL).capacity(1 + random.below(64));
        let has_lane = random.below(2) == 0;
        if has_lane {
            options = options.express(EXPRESS, 1 + random.below(16));
        }
        let mut rx = options.replay_retained().open().unwrap();
        let (takes, panics) = (random.below(300), random.below(2) == 0);
        let life = thread::spawn(move || {
            let mut next = HashMap::new();
            for _ in 0..takes {
                let Ok(got) = rx.recv_timeout(Duration::from_millis(1)) else {
                    continue;
                };
                let key = (got.publisher.index(), got.topic.index());
                // A message that overtakes leaves a gap that is none.
                if !has_lane && let Some(next) = next.insert(key, got.sequence + 1) {
                    let lost = got.sequence - next;
                    // A loss between the retained message and the opening is not this inbox's.
                    assert!(lost >= got.lost_before, "{got:?}");
                }
            }
            if panics {
                // Without the noise of a panic hook.
                std::panic::resume_unwind(Box::new("a consumer that panics"));
            }
        });
        assert_eq!(life.join().is_err(), panics);
    }
    lives
}

/// A group whose members come and go.
fn share_out(first: Consumer<Note>, end: Instant) -> u64 {
    let mut taken = 0;
    let mut members: Vec<JoinHandle<u64>> = Vec::new();
    let member = |first: &Consumer<Note>, takes: u64| {
        let mut rx = first.share();
        thread::spawn(move || {
            let work = |rx: &mut Consumer<Note>| rx.recv_timeout(Duration::from_millis(1)).is_ok();
            (0..takes).filter(|_| work(&mut rx)).count() as u64
        })
    };
    while taken == 0 || Instant::now() < end {
        members.extend([300, 500].map(|takes| member(&first, takes)));
        for member in members.drain(..) {
            taken += member.join().unwrap();
        }
    }
    drop(first);
    taken
}

#[test]
fn every_message_is_accounted_for() {
    let seconds = std::env::var("THALWEG_BUS_CHAOS_S");
    let seconds = seconds.map_or(2, |asked| asked.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(seconds);
    let bus = bus(256);
    let stable = [(false, false), (true, false), (true, true)].map(|(stalls, has_lane)| {
        let mut options = bus.subscription(Topics::ALL);
        if has_lane {
            options = options.express(EXPRESS, 64);
        }
        let rx = options.open().unwrap();
        thread::spawn(move || take_all(rx, 5 + u64::from(stalls), stalls))
    });
    let group = bus.subscription(Topics::ALL).express(EXPRESS, 64);
    let group = group.open().unwrap();
    let group = thread::spawn(move || share_out(group, end));
    let guests = [11, 12].map(|seed| {
        let bus = bus.clone();
        thread::spawn(move || come_and_go(&bus, seed, end))
    });
    let quiet = Arc::new(Barrier::new(PUBLISHERS as usize));
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|n| {
            let (tx, quiet) = (bus.publisher(&n.to_string()).unwrap(), Arc::clone(&quiet));
            let bus = bus.clone();
            thread::spawn(move || publish(&bus, tx, end, &quiet))
        })
        .collect();
    let publishers: Vec<_> = publishers.into_iter().map(|t| t.join().unwrap()).collect();
    let lives: u64 = guests.into_iter().map(|guest| guest.join().unwrap()).sum();
    let shared = group.join().unwrap();
    for stable in stable {
        let (account, rx) = stable.join().unwrap();
        // All gaps are reported: each publisher and topic has sent its last message.
        let losses = rx.publisher_counts();
        assert_eq!(losses.len() as u64, PUBLISHERS);
        let lost: u64 = losses.iter().map(|losses| losses.outcomes.lost()).sum();
        assert_eq!(account.reported, lost);
        let consumers = rx.counts();
        assert_eq!((consumers.reported, consumers.waiting), (lost, 0));
        assert_eq!(consumers.taken(), account.delivered);
        let issued: u64 = TOPICS
            .iter()
            .flat_map(|&topic| publishers.iter().map(move |tx| tx.next_sequence(topic)))
            .sum();
        assert_eq!(issued, account.delivered + account.reported, "published");
        drop(rx);
    }
    drop(publishers);
    let totals = bus.totals();
    check_totals(&totals);
    assert_eq!(totals.consumers.waiting, 0, "all inboxes are gone");
    assert!(lives > 0 && shared > 0 && sum(totals.outcomes.discarded) > 0);
    println!("{lives} consumers came and went; {totals:?}");
}
