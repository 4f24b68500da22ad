//! loom models of the broadcast ring, each with the weakened ordering that it must catch.

mod line;

use loom::thread;

use super::{Builder, Polled, Publisher, Reader};
use crate::ring::sync::fault;

/// Returns a ring of one slot with readers in a row, one behind the other: writers where `writes`
/// says so, else lookers.
fn row<const N: usize>(writes: [bool; N]) -> (Publisher<u32>, [Reader<u32>; N]) {
    let mut builder = Builder::new(1);
    let mut before = None;
    for writes in writes {
        let after = before.as_slice();
        before = Some(match writes {
            true => builder.writer(after),
            false => builder.looker(after),
        });
    }
    let (publisher, readers) = builder.build(|| 0).expect("a valid ring");
    (publisher, readers.try_into().expect("as many as declared"))
}

/// Returns a ring of one slot with one looker.
fn one() -> (Publisher<u32>, Reader<u32>) {
    let (publisher, [reader]) = row([false]);
    (publisher, reader)
}

fn publish(publisher: &mut Publisher<u32>, value: u32) {
    while publisher.publish(|slot| *slot = value).is_err() {
        thread::yield_now();
    }
}

fn drain(reader: &mut Reader<u32>) -> Vec<u32> {
    let mut seen = Vec::new();
    loop {
        match reader.poll() {
            Polled::Ready(_) => {
                reader.for_each(1, |_, value| seen.push(*value));
            }
            Polled::Empty => thread::yield_now(),
            Polled::Closed => return seen,
        }
    }
}

/// Two elements through one slot: publish and consume, wrap-around, close.
fn wraps_and_closes() {
    let (mut publisher, mut reader) = one();
    let producer = thread::spawn(move || {
        publish(&mut publisher, 1);
        publish(&mut publisher, 2);
    });
    assert_eq!(drain(&mut reader), [1, 2]);
    producer.join().unwrap();
}

#[test]
fn elements_wrap_and_close() {
    fault::check(
        wraps_and_closes,
        &["publish", "observe", "release", "reclaim"],
    );
}

/// Closing right after publishing: the reader must not take "gone" for the end before it saw the
/// element.
fn closes_behind_an_element() {
    let (mut publisher, mut reader) = one();
    let producer = thread::spawn(move || publish(&mut publisher, 7));
    assert_eq!(drain(&mut reader), [7]);
    producer.join().unwrap();
}

#[test]
fn nothing_is_lost_by_closing() {
    fault::check(closes_behind_an_element, &["close", "closed"]);
}

/// A claim that is dropped publishes nothing, also while the reader looks.
#[test]
fn close_during_a_claim_publishes_nothing() {
    loom::model(|| {
        let (mut publisher, mut reader) = one();
        let producer = thread::spawn(move || {
            let mut claim = publisher.claim(1).unwrap();
            claim.write(0, |slot| *slot = 9);
            drop(claim);
        });
        assert!(drain(&mut reader).is_empty());
        producer.join().unwrap();
    });
}

/// A writer, and a looker behind it: the looker sees the writer's work.
fn chain() {
    let (mut publisher, [mut writer, mut looker]) = row([true, false]);
    let worker = thread::spawn(move || {
        while writer.change(1, |_, value| *value += 1) == 0 {
            thread::yield_now();
        }
        writer
    });
    publish(&mut publisher, 1);
    let mut seen = 0;
    while looker.for_each(1, |_, value| seen = *value) == 0 {
        thread::yield_now();
    }
    assert_eq!(seen, 2);
    worker.join().unwrap();
}

#[test]
fn a_later_reader_sees_the_earlier_ones_work() {
    fault::check(chain, &["release"]);
}

/// Two shards of one group write different slots at the same time.
#[test]
fn shards_touch_only_their_own() {
    loom::model(|| {
        let mut builder = Builder::<u32>::new(2);
        builder.shards(2, |value| *value as usize, &[]);
        let (mut publisher, mut readers) = builder.build(|| 0).expect("a valid ring");
        publish(&mut publisher, 0);
        publish(&mut publisher, 1);
        let run = |mut shard: Reader<u32>, number: u32| {
            let mut mine = 0;
            shard.change(2, |_, value| {
                assert_eq!(*value, number);
                *value += 10;
                mine += 1;
            });
            assert_eq!(mine, 1);
            shard
        };
        let second = readers.remove(1);
        let first = readers.remove(0);
        let worker = thread::spawn(move || run(second, 1));
        run(first, 0);
        worker.join().unwrap();
    });
}

/// The publisher takes a slot that was given back early, before the reader says so to others.
fn given_back_early() {
    let (mut publisher, [mut reader]) = row([false]);
    publish(&mut publisher, 1);
    let consumer = thread::spawn(move || {
        assert_eq!(reader.visit(1, |_, value| *value == 1), 1);
        reader.give_back();
        reader
    });
    while publisher.free_early(1) == 0 {
        thread::yield_now();
    }
    publisher.publish(|slot| *slot = 2).expect("there is room");
    drop(consumer.join().unwrap());
}

#[test]
fn a_slot_given_back_early_is_written_again() {
    fault::check(given_back_early, &["release", "reclaim"]);
}
