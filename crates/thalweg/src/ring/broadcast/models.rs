//! loom models of the broadcast ring, each with the weakened ordering that it must catch.

use loom::thread;

use super::{Availability, Reader, RingBuilder, RingPublisher};
use crate::ring::sync::{fault, models};

models! { fault::check;
    elements_wrap_and_close: wraps_and_closes, ["publish", "observe", "release", "reclaim"];
    nothing_is_lost_by_closing: closes_behind_an_element, ["close", "closed"];
    a_later_reader_sees_the_earlier_ones_work: chain, ["release"];
    a_slot_given_back_early_is_written_again: given_back_early, ["release", "reclaim"];
}

/// Returns a ring of one slot with readers in a row, one behind the other: writers where `writes`
/// says so, else readers.
fn row<const N: usize>(writes: [bool; N]) -> (RingPublisher<u32>, [Reader<u32>; N]) {
    let mut builder = RingBuilder::new(1);
    let mut before = None;
    for writes in writes {
        let after = before.as_slice();
        before = Some(match writes {
            true => builder.reader_mut(after),
            false => builder.reader(after),
        });
    }
    let (publisher, readers) = builder.build(|| 0).expect("a valid ring");
    (publisher, readers.try_into().expect("as many as declared"))
}

/// Returns a ring of one slot with one reader.
fn one() -> (RingPublisher<u32>, Reader<u32>) {
    let (publisher, [reader]) = row([false]);
    (publisher, reader)
}

fn publish(publisher: &mut RingPublisher<u32>, value: u32) {
    while publisher.publish(|slot| *slot = value).is_err() {
        thread::yield_now();
    }
}

fn drain(reader: &mut Reader<u32>) -> Vec<u32> {
    let mut seen = Vec::new();
    loop {
        match reader.poll() {
            Availability::Ready(_) => {
                reader.for_each(1, |_, value| seen.push(*value));
            }
            Availability::Empty => thread::yield_now(),
            Availability::Closed => return seen,
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

/// Closing right after publishing: the reader must not take "gone" for the end before it saw the
/// element.
fn closes_behind_an_element() {
    let (mut publisher, mut reader) = one();
    let producer = thread::spawn(move || publish(&mut publisher, 7));
    assert_eq!(drain(&mut reader), [7]);
    producer.join().unwrap();
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

/// A writer, and a reader behind it: the reader sees the writer's work.
fn chain() {
    let (mut publisher, [mut writer, mut reader]) = row([true, false]);
    let worker = thread::spawn(move || {
        while writer.change(1, |_, value| *value += 1) == 0 {
            thread::yield_now();
        }
        writer
    });
    publish(&mut publisher, 1);
    let mut seen = 0;
    while reader.for_each(1, |_, value| seen = *value) == 0 {
        thread::yield_now();
    }
    assert_eq!(seen, 2);
    worker.join().unwrap();
}

/// Two shards of one group write different slots at the same time.
#[test]
fn shards_touch_only_their_own() {
    loom::model(|| {
        let mut builder = RingBuilder::<u32>::new(2);
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
        reader.release_early();
        reader
    });
    while publisher.free_including_early(1) == 0 {
        thread::yield_now();
    }
    publisher.publish(|slot| *slot = 2).expect("there is room");
    drop(consumer.join().unwrap());
}

mod chain {
    //! Readers that one thread leads together.

    use loom::thread;

    use super::{drain, publish, row};
    use crate::ring::broadcast::{Lent, Reader, ReaderChain, RingBuilder};
    use crate::ring::sync::{fault, models};

    models! { fault::check;
        a_chain_runs_through_each_element: chain, ["observe", "release"];
        a_chain_runs_through_what_its_own_thread_publishes: own_chain, ["release", "reclaim"];
        a_chain_with_a_reader_between_does_not_run: open_chain, ["line_open"];
        a_slot_that_a_chain_gives_back_is_written_again: chain_gives_back, ["release"];
        a_chain_runs_beside_a_reader_of_another_thread:
            own_chain_beside_another, ["release", "reclaim", "observe", "close", "closed"];
        the_first_of_a_loan_is_written_again_while_the_second_is_read:
            loan_gives_back_the_first, ["publish", "observe", "release", "reclaim"];
    }

    fn in_chain(readers: impl IntoIterator<Item = Reader<u32>>) -> ReaderChain<u32> {
        let mut chain = ReaderChain::new();
        readers.into_iter().for_each(|reader| chain.push(reader));
        chain
    }

    /// A writer and a reader, taken through each element of a ring of one slot on one thread:
    /// through the first as a single element, through the second as a loan.
    fn chain() {
        let (mut publisher, readers) = row([true, false]);
        let mut chain = in_chain(readers);
        let producer = thread::spawn(move || {
            publish(&mut publisher, 1);
            publish(&mut publisher, 2);
        });
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let is_first = seen.is_empty();
            let mut work = |element: Lent<'_, u32>| match element {
                Lent::Mut(value) => *value += 10,
                Lent::Shared(value) => seen.push(*value),
            };
            if let Some(single) = chain.single().filter(|_| is_first) {
                single.run::<true, _>(&mut [(); 2], |(), _, element| work(element));
                continue;
            }
            let (_, ahead) = chain.ahead();
            if let Some(mut loan) = chain.run(ahead).loan::<1>() {
                (0..2).for_each(|at| loan.lend(at, 0, |_, element| work(element)));
                loan.done();
            }
            thread::yield_now();
        }
        assert_eq!(seen, [11, 12]);
        producer.join().unwrap();
    }

    /// The publisher's own thread leads the first reader of a ring of one slot, without a look at
    /// the ring; one behind it is on another thread.
    fn own_chain() {
        let (mut publisher, [first, mut behind]) = row([true, false]);
        let mut chain = in_chain([first]);
        let worker = thread::spawn(move || {
            let mut seen = Vec::new();
            while seen.len() < 2 {
                behind.for_each(1, |_, value| seen.push(*value));
                thread::yield_now();
            }
            seen
        });
        for number in 1..=2 {
            while publisher.free(1) == 0 {
                thread::yield_now();
            }
            let published = publisher.put(|slot| *slot = number);
            let single = chain.published(&published).expect("it stands there");
            single.run::<true, _>(&mut [()], |(), _, element| match element {
                Lent::Mut(value) => *value += 10,
                Lent::Shared(_) => panic!("declared as a writer"),
            });
        }
        assert_eq!(worker.join().expect("it did not panic"), [11, 12]);
    }

    /// Two readers of one thread, and a third of another that comes between them.
    fn open_chain() {
        let (mut publisher, [first, mut between, last]) = row([false, true, false]);
        let mut chain = in_chain([first, last]);
        publish(&mut publisher, 1);
        let worker = thread::spawn(move || {
            between.change(1, |_, value| *value += 1);
            between
        });
        let (_, ahead) = chain.ahead();
        if let Some(mut loan) = chain.run(ahead).loan::<1>() {
            for at in 0..2 {
                loan.lend(at, 0, |_, element| match element {
                    Lent::Mut(_) => panic!("declared as readers"),
                    Lent::Shared(value) => assert!(*value > 0),
                });
            }
            loan.done();
        }
        // The slot is free only when the writer between the two is done with it.
        let _ = publisher.publish(|slot| *slot = 2);
        worker.join().unwrap();
    }

    /// A chain gives its only slot back early; the publisher writes it again meanwhile.
    fn chain_gives_back() {
        let (mut publisher, readers) = row([true, false]);
        let mut chain = in_chain(readers);
        publish(&mut publisher, 1);
        let consumer = thread::spawn(move || {
            let (_, ahead) = chain.ahead();
            if let Some(mut loan) = chain.run(ahead).loan::<1>() {
                loan.lend(0, 0, |_, element| {
                    if let Lent::Mut(value) = element {
                        *value += 10;
                    }
                });
                loan.release_early();
            }
            chain
        });
        while publisher.free_including_early(1) == 0 {
            thread::yield_now();
        }
        publisher.publish(|slot| *slot = 2).expect("there is room");
        drop(consumer.join().unwrap());
    }

    /// The publisher's own thread leads two readers of a ring of one slot, each released after its
    /// turn; a third, on another thread, comes after the first and beside the second.
    fn own_chain_beside_another() {
        let mut builder = RingBuilder::<u32>::new(1);
        let writer = builder.reader_mut(&[]);
        builder.reader(&[writer]);
        builder.reader(&[writer]);
        let (mut publisher, mut readers) = builder.build(|| 0).expect("a valid ring");
        let mut beside = readers.pop().expect("three readers");
        let mut chain = in_chain(readers);
        let worker = thread::spawn(move || drain(&mut beside));
        let mut seen = Vec::new();
        for number in 1..=2 {
            while publisher.free(1) == 0 {
                thread::yield_now();
            }
            let published = publisher.put(|slot| *slot = number);
            let single = chain.published(&published).expect("it stands there");
            single.run::<true, _>(&mut [(); 2], |(), _, element| match element {
                Lent::Mut(value) => *value += 10,
                Lent::Shared(value) => seen.push(*value),
            });
        }
        drop((publisher, chain));
        assert_eq!(seen, [11, 12]);
        assert_eq!(worker.join().expect("it did not panic"), [11, 12]);
    }

    /// A chain gives back the first of two elements of its loan; the publisher writes that slot
    /// again while the second is still looked at, and closes.
    fn loan_gives_back_the_first() {
        let mut builder = RingBuilder::<u32>::new(2);
        let writer = builder.reader_mut(&[]);
        builder.reader(&[writer]);
        let (mut publisher, readers) = builder.build(|| 0).expect("a valid ring");
        let mut chain = in_chain(readers);
        publish(&mut publisher, 1);
        publish(&mut publisher, 2);
        let consumer = thread::spawn(move || {
            let mut seen = Vec::new();
            while seen.len() < 3 {
                let (_, ahead) = chain.ahead();
                let mut run = chain.run(ahead.min(2));
                while let Some(mut loan) = run.loan::<1>() {
                    for at in 0..2 {
                        loan.lend(at, 0, |_, element| match element {
                            Lent::Mut(value) => *value += 10,
                            Lent::Shared(value) => seen.push(*value),
                        });
                    }
                    loan.release_early();
                }
                drop(run);
                thread::yield_now();
            }
            seen
        });
        while publisher.free_including_early(1) == 0 {
            thread::yield_now();
        }
        publisher.publish(|slot| *slot = 3).expect("there is room");
        drop(publisher);
        let seen = consumer.join().expect("it did not panic");
        assert_eq!(seen, [11, 12, 13]);
    }
}
