//! The bus: a message through one inbox, through two, and in batches.

use std::hint::black_box;

use thalweg::bus::{Bus, Consumer, Message, Publisher, TopicId, TopicInfo, TopicOverflow, Topics};

use super::{BATCH, CAPACITY, Cases, Work, rounds};

/// 24 bytes with the number of the topic.
#[derive(Clone, Copy)]
enum Market {
    Trade { price: u64, at: u64 },
    Quote { bid: u64 },
}

const fn topic(name: &'static str, overflow: TopicOverflow) -> TopicInfo {
    TopicInfo {
        overflow,
        ..TopicInfo::new(name)
    }
}

impl Message for Market {
    const TOPICS: &'static [TopicInfo] = &[
        topic("market.trade", TopicOverflow::Block),
        topic("market.quote", TopicOverflow::Reject),
    ];

    #[inline]
    fn topic(&self) -> TopicId {
        TopicId::new(usize::from(matches!(self, Self::Quote { .. })))
    }
}

fn message(number: u64) -> Market {
    match number % 2 {
        0 => Market::Trade {
            price: number,
            at: 0,
        },
        _ => Market::Quote { bid: number },
    }
}

fn value(message: Market) -> u64 {
    match message {
        Market::Trade { price, at } => price + at,
        Market::Quote { bid } => bid,
    }
}

/// The bus stays with its consumers.
type Ends = (Publisher<Market>, Vec<Consumer<Market>>, Bus<Market>);

fn ends(consumers: usize) -> Ends {
    let bus = Bus::builder().capacity(CAPACITY).build();
    let bus = bus.expect("a capacity in range");
    let subscribed = (0..consumers).map(|_| bus.subscribe(Topics::ALL).expect("an open bus"));
    let subscribed = subscribed.collect();
    (
        bus.publisher("counts").expect("an open bus"),
        subscribed,
        bus,
    )
}

pub(super) fn add(cases: &mut Cases) {
    cases.insert("bus/24B/publish-recv".to_owned(), || publish_recv(1));
    cases.insert("bus/24B/publish-recv-2".to_owned(), || publish_recv(2));
    cases.insert("bus/24B/publish-each-1".to_owned(), || publish_each(1));
    cases.insert("bus/24B/publish-each-64".to_owned(), || publish_each(BATCH));
    cases.insert("bus/24B/try-empty".to_owned(), try_empty);
    cases.insert("bus/24B/try-full".to_owned(), try_full);
}

/// One message to several consumers, each of which takes it.
fn publish_recv(consumers: usize) -> Work {
    let (mut tx, mut rxs, bus) = ends(consumers);
    rounds(move |number| {
        assert_eq!(tx.publish(black_box(message(number))).ok(), Some(rxs.len()));
        for rx in &mut rxs {
            black_box(value(rx.recv().expect("just published").message));
        }
        black_box(&bus);
    })
}

/// A batch of messages, taken together.
fn publish_each(messages: usize) -> Work {
    let (mut tx, mut rxs, bus) = ends(1);
    rounds(move |number| {
        for at in 0..messages as u64 {
            assert!(tx.publish(black_box(message(number + at))).is_ok());
        }
        let taken = rxs[0].try_recv_each(2 * messages, |got| {
            black_box(value(got.message));
        });
        assert_eq!(taken, Ok(messages));
        black_box(&bus);
    })
}

/// The cost of a poll that finds nothing.
fn try_empty() -> Work {
    let (tx, mut rxs, bus) = ends(1);
    rounds(move |_| {
        assert!(rxs[0].try_recv().is_err());
        black_box((&tx, &bus));
    })
}

/// The cost of a refused message.
fn try_full() -> Work {
    let (mut tx, rxs, bus) = ends(1);
    while tx.try_publish(message(0)).is_ok() {}
    rounds(move |number| {
        assert!(tx.try_publish(black_box(message(number))).is_err());
        black_box((&rxs, &bus));
    })
}
