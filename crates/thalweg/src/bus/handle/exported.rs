//! The figures of a bus as it exports them.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::bus::inbox::ExpressLaneCounts;
use crate::bus::ledger::InboxReading;
use crate::bus::registry::Core;
use crate::bus::topic::Message;
use crate::bus::{Bus, InboxId};
use crate::export::{Held, Json, Looks, Source, is_full};

/// The number of inboxes whose figures are kept, also when they are gone, until others need the
/// place.
const INBOXES_MAX: usize = 256;

/// The sums over all readings of an inbox.
#[derive(Debug, Default)]
struct Inbox {
    last: InboxReading,
    looks: Looks,
    express: Option<Express>,
    /// When it was seen first, and when it last had moved.
    active: (u64, u64),
}

/// The sums over all readings of an express lane.
#[derive(Debug)]
struct Express {
    last: ExpressLaneCounts,
    waiting_max: u64,
    full_looks: u64,
}

impl Express {
    /// `before` is what it has come to before this look.
    fn seen(before: Option<Self>, last: ExpressLaneCounts) -> Self {
        let (waiting_max, full_looks) = match before {
            Some(before) => (before.waiting_max, before.full_looks),
            None => (0, 0),
        };
        Self {
            last,
            waiting_max: waiting_max.max(last.waiting),
            full_looks: full_looks + u64::from(is_full(last.waiting, last.capacity)),
        }
    }

    fn write(&self, json: &mut Json) {
        json.put("express_capacity", self.last.capacity);
        json.put("express_waiting", self.last.waiting);
        json.put("express_waiting_max", self.waiting_max);
        json.put("express_full_looks", self.full_looks);
    }
}

impl Inbox {
    fn see(&mut self, reading: InboxReading, express: Option<ExpressLaneCounts>) {
        self.express = express.map(|lane| Express::seen(self.express.take(), lane));
        let last = self.last;
        let has_moved = (reading.issued, reading.taken) != (last.issued, last.taken);
        if has_moved {
            self.active.1 = reading.at_ns;
        }
        self.looks.see(reading.waiting, reading.capacity);
        let work = reading.busy_ns as f64 / reading.consumers.max(1) as f64;
        let service = (reading.taken > 0).then(|| work / reading.taken as f64);
        (self.looks.arrivals).see(reading.issued, reading.at_ns, service);
        self.last = reading;
    }

    fn write(&self, json: &mut Json) {
        let last = &self.last;
        self.looks.write(json);
        if let Some(express) = &self.express {
            express.write(json);
        }
        json.put("consumers", last.consumers);
        json.put("issued", last.issued);
        json.put("admitted", last.admitted);
        json.put("lost", last.lost);
        json.put("refused", last.refused);
        json.put("timed_out", last.timed_out);
        json.put("evicted", last.evicted);
        json.put("discarded", last.discarded);
        json.put("events", last.taken);
        json.put("busy_ns", last.busy_ns);
        json.put("active_ns", self.active.1.saturating_sub(self.active.0));
        self.looks.write_arrivals(json);
    }
}

pub(in crate::bus) struct Exported<M: Message> {
    core: Weak<Core<M>>,
    began_ns: u64,
    looked_ns: u64,
    inboxes: BTreeMap<InboxId, Inbox>,
}

impl<M: Message> Exported<M> {
    pub(in crate::bus) fn new(bus: &Bus<M>) -> Self {
        let core = &bus.0.0;
        let now = core.clock.ns(core.clock.ticks());
        Self {
            core: Arc::downgrade(core),
            began_ns: now,
            looked_ns: now,
            inboxes: BTreeMap::new(),
        }
    }

    fn see(&mut self, readings: Vec<(InboxId, InboxReading, Option<ExpressLaneCounts>)>) {
        let since_ns = self.looked_ns;
        let open: Vec<InboxId> = readings.iter().map(|(id, ..)| *id).collect();
        for (id, reading, express) in readings {
            if !self.inboxes.contains_key(&id) && !self.make_room(&open) {
                continue;
            }
            let inbox = self.inboxes.entry(id).or_insert_with(|| {
                let mut inbox = Inbox {
                    active: (since_ns, since_ns),
                    ..Inbox::default()
                };
                inbox.looks.arrivals.see(0, since_ns, None);
                inbox
            });
            inbox.see(reading, express);
        }
    }

    /// Forgets the inbox that has gone longest, if there is no room for another; `false` if all
    /// are open.
    fn make_room(&mut self, open: &[InboxId]) -> bool {
        if self.inboxes.len() < INBOXES_MAX {
            return true;
        }
        let inboxes = self.inboxes.iter();
        let gone = inboxes.filter(|(id, _)| !open.contains(id));
        let longest = gone.min_by_key(|(_, inbox)| inbox.last.at_ns);
        let Some(id) = longest.map(|(id, _)| *id) else {
            return false;
        };
        self.inboxes.remove(&id).is_some()
    }
}

impl<M: Message> Source for Exported<M> {
    fn kind(&self) -> &'static str {
        "bus"
    }

    fn sample(&mut self) -> Held {
        let core = self.core.upgrade()?;
        self.see(core.inbox_readings());
        self.looked_ns = core.clock.ns(core.clock.ticks());
        // It may be the last of the bus: that takes locks, and drops messages.
        Some(core)
    }

    fn write(&mut self, json: &mut Json) {
        json.put("elapsed_ns", self.looked_ns - self.began_ns);
        json.objects("inboxes", &self.inboxes, |json, (id, inbox)| {
            json.put("inbox", id.0);
            inbox.write(json);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::{Bus, Consumer, TopicId, TopicInfo, Topics};

    #[derive(Clone)]
    struct Job;

    impl Message for Job {
        const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("job")];

        fn topic(&self) -> TopicId {
            TopicId::new(0)
        }
    }

    fn shown(exported: &mut Exported<Job>) -> Vec<InboxId> {
        assert!(exported.sample().is_some(), "the bus is there");
        exported.inboxes.keys().copied().collect()
    }

    #[test]
    fn the_inbox_that_has_gone_longest_makes_room() {
        let bus = Bus::<Job>::builder().capacity(1).build().expect("valid");
        let mut exported = Exported::new(&bus);
        let subscribe = || bus.subscribe(Topics::ALL).expect("it is open");
        let (first, mut short) = (subscribe(), Vec::new());
        for _ in 1..INBOXES_MAX {
            short.push(subscribe());
        }
        let ids = |consumers: &[Consumer<Job>]| -> Vec<InboxId> {
            consumers.iter().map(Consumer::inbox).collect()
        };
        let all: Vec<_> = [first.inbox()].into_iter().chain(ids(&short)).collect();
        assert_eq!(shown(&mut exported), all);

        let late = subscribe();
        assert_eq!(shown(&mut exported), all, "all are open");
        drop(late);

        let longest = short.remove(INBOXES_MAX - 3).inbox();
        assert_eq!(shown(&mut exported), all, "the place is not needed");
        let shorter = ids(&short[..2]);
        short.drain(..2);
        assert_eq!(shown(&mut exported), all, "no place is needed");
        let mut late = vec![subscribe()];
        let kept = shown(&mut exported);
        assert!(!kept.contains(&longest));
        assert!(kept.contains(&late[0].inbox()));
        assert!(shorter.iter().all(|id| kept.contains(id)));
        late.push(subscribe());
        late.push(subscribe());
        let open = [first.inbox()].into_iter().chain(ids(&short));
        let open: Vec<_> = open.chain(ids(&late)).collect();
        assert_eq!(shown(&mut exported), open);

        // Open inboxes stay, however many come.
        late.push(subscribe());
        assert_eq!(shown(&mut exported), open);
    }
}
