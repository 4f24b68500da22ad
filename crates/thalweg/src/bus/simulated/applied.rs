//! The rules as a bus applies them: its ring, its ledgers and its governor, with a load and a clock
//! that are scripted; and the same with threads, whose clock is the machine's.

#![allow(clippy::unwrap_used)] // all of it is tests

use super::swings;
use crate::bus::inbox::Inbox;
use crate::bus::{
    Bus, Consumer, Decision, Event, Level, Message, Policy, Priority, Publisher, Reading, Rule,
    Slow, TopicId, TopicInfo, Topics,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const CAPACITY: usize = 4_096;
/// Of medium priority: 80 %.
const LIMIT: u64 = 3_276;
const SERVICE_NS: u64 = 1_000;
const PRODUCERS: u64 = 4;
/// Between two looks.
const LOOK_NS: u64 = 1_000_000;

#[derive(Clone)]
struct Job(u64);

impl Message for Job {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo {
        policy: Policy::Block,
        ..TopicInfo::new("job")
    }];

    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

fn bus(rule: Rule) -> (Bus<Job>, Consumer<Job>) {
    let bus = Bus::builder().capacity(CAPACITY).slowing(rule).trace(1_000);
    let bus = bus.build().unwrap();
    let rx = bus.subscribe(Topics::ALL).unwrap();
    (bus, rx)
}

fn inbox(bus: &Bus<Job>) -> Arc<Inbox<Job>> {
    let mut inbox = None;
    bus.0
        .0
        .read(|entries| inbox = Some(Arc::clone(&entries[0].inbox)));
    inbox.unwrap()
}

/// A bus whose time is scripted. Publishers ask the governor as [`Publisher::publish`] does, and
/// then publish without waiting.
struct Script {
    bus: Bus<Job>,
    inbox: Arc<Inbox<Job>>,
    rx: Consumer<Job>,
    /// With the times at which each published last and looks again.
    producers: Vec<(Publisher<Job>, u64, u64)>,
    urgent: Publisher<Job>,
    began_ns: u64,
    now: u64,
    busy_ns: u64,
    looked: u64,
    refused: u64,
    service_ns: u64,
}

impl Script {
    fn new(producers: u64, service_ns: u64) -> Self {
        let (bus, rx) = bus(Rule::slow_producers());
        let producer = |n| (bus.publisher("producer").unwrap(), 0, n);
        Self {
            producers: (0..producers).map(producer).collect(),
            urgent: bus.publisher("urgent").unwrap(),
            inbox: inbox(&bus),
            began_ns: bus.0.0.now_ns(),
            bus,
            rx,
            now: 0,
            busy_ns: 0,
            looked: 0,
            refused: 0,
            service_ns,
        }
    }

    fn waiting(&self) -> u64 {
        self.bus.readings()[0].1.waiting
    }

    /// So many services, while each producer wants to publish once in `gap_ns`: what waits, every
    /// 100 services.
    fn run(&mut self, services: u64, gap_ns: u64) -> Vec<f64> {
        let mut depths = Vec::new();
        for service in 1..=services {
            self.now += self.service_ns;
            self.publish(gap_ns);
            if self.rx.try_recv().is_ok() {
                self.busy_ns += self.service_ns;
            }
            if service % 100 == 0 {
                let urgent = self.urgent.try_publish_at(Priority::High, Job(0));
                assert_eq!(
                    urgent.ok(),
                    Some(1),
                    "of high priority, whatever the others do"
                );
                depths.push(self.waiting() as f64);
            }
            if self.now - self.looked >= LOOK_NS {
                self.looked = self.now;
                self.look();
            }
        }
        depths
    }

    fn publish(&mut self, gap_ns: u64) {
        let mut waiting = self.waiting();
        let look_ns = (50 * self.service_ns).min(LOOK_NS);
        while let Some((tx, last, look)) = self.producers.iter_mut().min_by_key(|tx| tx.2)
            && *look < self.now
        {
            let now = *look;
            let gap_ns = match self.inbox.governor.slowing() {
                Some(slowing) => match slowing.slow(waiting, LIMIT) {
                    Slow::Free => gap_ns,
                    Slow::Gap(ns) => gap_ns.max(ns),
                    Slow::Hold => u64::MAX,
                },
                None => gap_ns,
            };
            let due = last.saturating_add(gap_ns);
            if due > now {
                *look = due.min(now + look_ns);
                continue;
            }
            let published = tx.try_publish(Job(now)).is_ok();
            self.refused += u64::from(!published);
            waiting += u64::from(published);
            (*last, *look) = (now, now + 1);
        }
    }

    fn look(&self) {
        let (_, reading) = self.bus.readings()[0];
        self.inbox.look_at(Reading {
            at_ns: self.began_ns + self.now,
            busy_ns: self.busy_ns,
            ..reading
        });
    }

    fn decisions(&self, event: Event) -> Vec<Decision> {
        let mut decisions = self.bus.trace();
        decisions.retain(|decision| decision.event == event);
        decisions
    }
}

#[test]
fn an_overloaded_bus_comes_to_rest_and_starts_anew() {
    let mut script = Script::new(PRODUCERS, SERVICE_NS);
    for round in 0..3 {
        // Twice what is served, then half of it.
        let depths = script.run(60_000, 2 * SERVICE_NS);
        let settled = &depths[100..];
        assert_eq!(swings(settled, 40.0), 0, "round {round}: {settled:?}");
        let within = |depth: &f64| (0.6..0.9).contains(&(depth / LIMIT as f64));
        assert!(settled.iter().all(within), "round {round}: {settled:?}");
        let depths = script.run(60_000, 8 * SERVICE_NS);
        assert!(
            depths[300..].iter().all(|&depth| depth < 8.0),
            "round {round}: {depths:?}"
        );
    }
    // The first look may come too late.
    assert!(script.refused < LIMIT, "{}", script.refused);
    // Once up and once down a round, and never back in between.
    let slow: Vec<_> = script.decisions(Event::Slow).iter().map(|d| d.to).collect();
    assert_eq!(slow, [1, 0, 1, 0, 1, 0]);
    let levels = script.decisions(Event::Level);
    assert!(levels.len() <= 12, "{levels:?}");
    let totals = script.bus.totals();
    assert_eq!(totals.flow.refused[Priority::High.index()], 0);
}

/// Where the gaps that publishers keep are longer than the time between two looks.
#[test]
fn a_slow_service_settles_as_a_fast_one_does() {
    for (producers, service_ns) in [(4, 1_000_000), (16, 300_000), (64, 20_000)] {
        let mut script = Script::new(producers, service_ns);
        let depths = script.run(20_000, producers * service_ns / 2);
        let settled = &depths[100..];
        assert_eq!(swings(settled, 100.0), 0, "{producers}: {settled:?}");
        let within = |depth: &f64| (0.65..0.85).contains(&(depth / LIMIT as f64));
        assert!(settled.iter().all(within), "{producers}: {settled:?}");
        // Whoever else looks changes nothing.
        let gap_ns = |script: &Script| script.inbox.governor.slowing().map(|s| s.share_ns());
        let before = gap_ns(&script);
        script.now += 1;
        script.look();
        assert!(before.is_some() && gap_ns(&script) == before, "{before:?}");
    }
}

#[test]
fn nobody_is_slowed_while_the_service_rate_is_unknown() {
    let (bus, _rx) = bus(Rule::slow_producers());
    let mut tx = bus.publisher("feed").unwrap();
    for n in 0..LIMIT {
        assert_eq!(tx.publish(Job(n)).ok(), Some(1));
    }
    let told = bus.explain()[2].to_string();
    assert_eq!(
        told,
        "inbox 0: slow-producers is off: 0 messages/s served, at least 1"
    );
    assert_eq!(tx.level(), Level::Elevated);
}

#[test]
fn the_higher_priorities_are_never_slowed() {
    let (free, _rx) = bus(Rule::slow_producers().off());
    assert_eq!(inbox(&free).free_limits, inbox(&free).limits);
    let (slowed, _rx) = bus(Rule::slow_producers());
    let inbox = inbox(&slowed);
    assert_eq!(inbox.free_limits[..2], [1_229, 1_639]);
    assert_eq!(inbox.free_limits[2..], inbox.limits[2..]);
}

/// What waits at a consumer that takes 20 µs for a message, every 100 messages, while two threads
/// publish as fast as they may; `may` is asked before each message.
fn depths(rule: Rule, may: impl Fn(u64, &mut bool) -> bool + Copy + Send + 'static) -> Vec<f64> {
    let (bus, mut rx) = bus(rule);
    let is_over = Arc::new(AtomicBool::new(false));
    let threads = [(); 2].map(|()| {
        let (bus, is_over) = (bus.clone(), Arc::clone(&is_over));
        thread::spawn(move || {
            let mut tx = bus.publisher("producer").unwrap();
            let mut is_held = false;
            while !is_over.load(Ordering::Relaxed) {
                if may(bus.readings()[0].1.waiting, &mut is_held) {
                    let _ = tx.publish(Job(1));
                } else {
                    thread::yield_now();
                }
            }
        })
    });
    let mut depths = Vec::new();
    for n in 1..=20_000 {
        let Job(value) = rx.recv().unwrap().message;
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_micros(20) * value as u32 {}
        if n % 100 == 0 {
            depths.push(rx.service().waiting as f64);
        }
    }
    is_over.store(true, Ordering::Relaxed);
    bus.stop();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(bus.totals().flow.lost(), 0);
    depths.split_off(40)
}

#[test]
fn threads_that_are_slowed_do_not_swing() {
    const BAND: f64 = LIMIT as f64 / 4.0;
    // Between a fifth and four fifths, as a switch would.
    let switched = depths(Rule::slow_producers().off(), |waiting, is_held| {
        let bound = if *is_held { LIMIT / 5 } else { LIMIT * 4 / 5 };
        *is_held = waiting > bound;
        !*is_held
    });
    let slowed = depths(Rule::slow_producers(), |_, _| true);
    let turns = [&switched, &slowed].map(|depths| swings(depths, BAND));
    assert!(
        turns[1] * 2 < turns[0],
        "{turns:?}: {switched:?} {slowed:?}"
    );
}
