//! A subscriber to market data, who must hear of every gap, and come to the book of the primary.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thalweg_client::exchange::codec::session::{QueryResult, SessionQuery};
use thalweg_client::exchange::market::BookReplica;
use thalweg_client::exchange::{Action, SymbolId};
use thalweg_client::{BlockingEvents, BlockingTradeClient, Event};

use crate::served_kills::clients::options;
use crate::served_kills::served::Folder;

const USER: i64 = 10;
const SYMBOL: SymbolId = SymbolId(1);
const LOOK: Duration = Duration::from_millis(20);
/// More levels than the clients' orders have.
const DEPTH: u32 = 100;

#[derive(Debug, Default)]
struct Course {
    is_over: AtomicBool,
    messages: AtomicU64,
}

/// The subscriber, on a thread of its own.
pub(crate) struct Subscriber {
    course: Arc<Course>,
    thread: JoinHandle<usize>,
}

/// The book as the messages give it.
struct Followed {
    replica: BookReplica,
    /// Whether the next message must follow the one before.
    is_current: bool,
    epochs: BTreeSet<u64>,
}

impl Followed {
    fn take(&mut self, event: Event, course: &Course) {
        match event {
            Event::Connected(_) | Event::Disconnected(_) | Event::Conflated(_) => {
                self.is_current = false;
            }
            Event::Snapshot(snapshot) if snapshot.symbol == SYMBOL => {
                self.replica.restart(&snapshot).expect("a feed with levels");
                self.is_current = true;
                self.epochs.insert(snapshot.epoch.0);
            }
            Event::Market(message) => {
                course.messages.fetch_add(1, Ordering::Relaxed);
                if self.is_current {
                    let applied = self.replica.apply(&message);
                    applied.expect("the feed says where messages are missing");
                }
            }
            Event::Closed(reason) => panic!("the subscriber's connection ended: {reason}"),
            _ => {}
        }
    }

    fn drain(&mut self, events: &mut BlockingEvents, course: &Course) {
        while let Some(event) = events.next_timeout(LOOK) {
            self.take(event, course);
        }
    }
}

impl Subscriber {
    pub(crate) fn start(address: &str) -> Self {
        let mut options = options(address, USER);
        options.without_reports = true;
        options.connect_within = Duration::from_secs(60);
        let course = Arc::<Course>::default();
        let ours = Arc::clone(&course);
        let thread = thread::spawn(move || {
            let (client, mut events) = BlockingTradeClient::connect(options).expect("a primary");
            client.subscribe([SYMBOL]).expect("it is open");
            let mut followed = Followed {
                replica: BookReplica::new(SYMBOL),
                is_current: false,
                epochs: BTreeSet::new(),
            };
            while !ours.is_over.load(Ordering::Relaxed) {
                followed.drain(&mut events, &ours);
            }
            // Nobody trades any more: what the primary has must be what was heard.
            loop {
                let (symbol, depth) = (SYMBOL, DEPTH);
                let query = SessionQuery::Book { symbol, depth };
                let answer = client.query(query).expect("it is open");
                followed.drain(&mut events, &ours);
                let QueryResult::Book(book) = answer.result else {
                    continue;
                };
                let heard = |side| followed.replica.levels(side).collect::<Vec<_>>();
                if heard(Action::Ask) == book.asks && heard(Action::Bid) == book.bids {
                    client.close();
                    return followed.epochs.len();
                }
            }
        });
        Self { course, thread }
    }

    /// Waits until the subscriber has the book of the primary, of which no client changes
    /// anything. Returns how many feeds it has followed.
    pub(crate) fn end(self, place: &Folder) -> usize {
        self.course.is_over.store(true, Ordering::Relaxed);
        place.wait("the book of a subscriber", || {
            let messages = self.course.messages.load(Ordering::Relaxed);
            self.thread.is_finished().then_some(()).ok_or(messages)
        });
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| place.fail("a gap in market data was not announced"))
    }
}
