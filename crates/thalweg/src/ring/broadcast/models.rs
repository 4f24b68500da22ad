//! loom models of the broadcast ring, each with the weakened ordering that it must catch.

use loom::thread;

use super::{Polled, Reader, RingBuilder, RingPublisher};
use crate::ring::sync::{fault, models};

models! { fault::check;
    elements_wrap_and_close: wraps_and_closes, ["publish", "observe", "release", "reclaim"];
    nothing_is_lost_by_closing: closes_behind_an_element, ["close", "closed"];
    a_later_reader_sees_the_earlier_ones_work: chain, ["release"];
    a_slot_given_back_early_is_written_again: given_back_early, ["release", "reclaim"];
}

/// Returns a ring of one slot with readers in a row, one behind the other: writers where `writes`
/// says so, else lookers.
fn row<const N: usize>(writes: [bool; N]) -> (RingPublisher<u32>, [Reader<u32>; N]) {
    let mut builder = RingBuilder::new(1);
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
        reader.give_back();
        reader
    });
    while publisher.free_early(1) == 0 {
        thread::yield_now();
    }
    publisher.publish(|slot| *slot = 2).expect("there is room");
    drop(consumer.join().unwrap());
}

mod line {
    //! Readers that one thread leads together.

    use loom::thread;

    use super::{drain, publish, row};
    use crate::ring::broadcast::{Lent, Line, Reader, RingBuilder};
    use crate::ring::sync::{fault, models};

    models! { fault::check;
        a_line_is_led_through_each_element: line, ["observe", "release"];
        a_line_is_led_through_what_its_own_thread_publishes: own_line, ["release", "reclaim"];
        a_line_with_somebody_between_is_not_led: open_line, ["line_open"];
        a_slot_that_a_line_gives_back_is_written_again: line_gives_back, ["release"];
        a_line_is_led_beside_a_reader_of_another_thread:
            own_line_beside_another, ["release", "reclaim", "observe", "close", "closed"];
        the_first_in_a_hand_is_written_again_while_the_second_is_looked_at:
            hand_gives_back_the_first, ["publish", "observe", "release", "reclaim"];
    }

    fn in_line(readers: impl IntoIterator<Item = Reader<u32>>) -> Line<u32> {
        let mut line = Line::new();
        readers.into_iter().for_each(|reader| line.push(reader));
        line
    }

    /// A writer and a looker, led through each element of a ring of one slot on one thread: through
    /// the first by a step, through the second by the hand.
    fn line() {
        let (mut publisher, readers) = row([true, false]);
        let mut line = in_line(readers);
        let producer = thread::spawn(move || {
            publish(&mut publisher, 1);
            publish(&mut publisher, 2);
        });
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let is_first = seen.is_empty();
            let mut work = |element: Lent<'_, u32>| match element {
                Lent::Write(value) => *value += 10,
                Lent::Look(value) => seen.push(*value),
            };
            if let Some(single) = line.single().filter(|_| is_first) {
                single.lead::<true, _>(&mut [(); 2], |(), _, element| work(element));
                continue;
            }
            let (_, ahead) = line.ahead();
            if let Some(mut hand) = line.lead(ahead).hand::<1>() {
                (0..2).for_each(|at| hand.lend(at, 0, |_, element| work(element)));
                hand.done();
            }
            thread::yield_now();
        }
        assert_eq!(seen, [11, 12]);
        producer.join().unwrap();
    }

    /// The publisher's own thread leads the first reader of a ring of one slot, without a look at
    /// the ring; one behind it is on another thread.
    fn own_line() {
        let (mut publisher, [first, mut behind]) = row([true, false]);
        let mut line = in_line([first]);
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
            let single = line.published(&published).expect("it stands there");
            single.lead::<true, _>(&mut [()], |(), _, element| match element {
                Lent::Write(value) => *value += 10,
                Lent::Look(_) => panic!("declared as a writer"),
            });
        }
        assert_eq!(worker.join().expect("it did not panic"), [11, 12]);
    }

    /// Two readers of one thread, and a third of another that comes between them.
    fn open_line() {
        let (mut publisher, [first, mut between, last]) = row([false, true, false]);
        let mut line = in_line([first, last]);
        publish(&mut publisher, 1);
        let worker = thread::spawn(move || {
            between.change(1, |_, value| *value += 1);
            between
        });
        let (_, ahead) = line.ahead();
        if let Some(mut hand) = line.lead(ahead).hand::<1>() {
            for at in 0..2 {
                hand.lend(at, 0, |_, element| match element {
                    Lent::Write(_) => panic!("declared as lookers"),
                    Lent::Look(value) => assert!(*value > 0),
                });
            }
            hand.done();
        }
        // The slot is free only when the writer between the two is done with it.
        let _ = publisher.publish(|slot| *slot = 2);
        worker.join().unwrap();
    }

    /// A line gives its only slot back early; the publisher writes it again meanwhile.
    fn line_gives_back() {
        let (mut publisher, readers) = row([true, false]);
        let mut line = in_line(readers);
        publish(&mut publisher, 1);
        let consumer = thread::spawn(move || {
            let (_, ahead) = line.ahead();
            if let Some(mut hand) = line.lead(ahead).hand::<1>() {
                hand.lend(0, 0, |_, element| {
                    if let Lent::Write(value) = element {
                        *value += 10;
                    }
                });
                hand.give_back();
            }
            line
        });
        while publisher.free_early(1) == 0 {
            thread::yield_now();
        }
        publisher.publish(|slot| *slot = 2).expect("there is room");
        drop(consumer.join().unwrap());
    }

    /// The publisher's own thread leads two readers of a ring of one slot, each released after its
    /// turn; a third, on another thread, comes after the first and beside the second.
    fn own_line_beside_another() {
        let mut builder = RingBuilder::<u32>::new(1);
        let writer = builder.writer(&[]);
        builder.looker(&[writer]);
        builder.looker(&[writer]);
        let (mut publisher, mut readers) = builder.build(|| 0).expect("a valid ring");
        let mut beside = readers.pop().expect("three readers");
        let mut line = in_line(readers);
        let worker = thread::spawn(move || drain(&mut beside));
        let mut seen = Vec::new();
        for number in 1..=2 {
            while publisher.free(1) == 0 {
                thread::yield_now();
            }
            let published = publisher.put(|slot| *slot = number);
            let single = line.published(&published).expect("it stands there");
            single.lead::<true, _>(&mut [(); 2], |(), _, element| match element {
                Lent::Write(value) => *value += 10,
                Lent::Look(value) => seen.push(*value),
            });
        }
        drop((publisher, line));
        assert_eq!(seen, [11, 12]);
        assert_eq!(worker.join().expect("it did not panic"), [11, 12]);
    }

    /// A line gives back the first of two elements in its hand; the publisher writes that slot
    /// again while the second is still looked at, and closes.
    fn hand_gives_back_the_first() {
        let mut builder = RingBuilder::<u32>::new(2);
        let writer = builder.writer(&[]);
        builder.looker(&[writer]);
        let (mut publisher, readers) = builder.build(|| 0).expect("a valid ring");
        let mut line = in_line(readers);
        publish(&mut publisher, 1);
        publish(&mut publisher, 2);
        let consumer = thread::spawn(move || {
            let mut seen = Vec::new();
            while seen.len() < 3 {
                let (_, ahead) = line.ahead();
                let mut lead = line.lead(ahead.min(2));
                while let Some(mut hand) = lead.hand::<1>() {
                    for at in 0..2 {
                        hand.lend(at, 0, |_, element| match element {
                            Lent::Write(value) => *value += 10,
                            Lent::Look(value) => seen.push(*value),
                        });
                    }
                    hand.give_back();
                }
                drop(lead);
                thread::yield_now();
            }
            seen
        });
        while publisher.free_early(1) == 0 {
            thread::yield_now();
        }
        publisher.publish(|slot| *slot = 3).expect("there is room");
        drop(publisher);
        let seen = consumer.join().expect("it did not panic");
        assert_eq!(seen, [11, 12, 13]);
    }
}
