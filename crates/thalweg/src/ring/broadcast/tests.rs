use super::{Availability, GraphError, Reader, RingBuilder, RingPublisher, SlotError};

type Ends = (RingPublisher<u64>, Vec<Option<Reader<u64>>>);

fn build(builder: RingBuilder<u64>) -> Ends {
    let (publisher, readers) = builder.build(|| 0).expect("a valid ring");
    (publisher, readers.into_iter().map(Some).collect())
}

fn take(ends: &mut Ends, at: usize) -> Reader<u64> {
    ends.1[at].take().expect("taken once")
}

#[test]
fn a_graph_with_an_unordered_writer_is_refused_and_both_are_named() {
    let mut builder = RingBuilder::<u64>::new(8);
    let a = builder.reader_mut(&[]);
    let b = builder.reader(&[]);
    let error = builder.build(|| 0).unwrap_err();
    assert_eq!(error, GraphError::Conflict(a, b));
    assert_eq!(
        error.to_string(),
        "readers 0 and 1 are not ordered, and at least one of them writes"
    );

    // Ordered through a third is ordered.
    let mut builder = RingBuilder::<u64>::new(8);
    let a = builder.reader_mut(&[]);
    let b = builder.reader(&[a]);
    builder.reader_mut(&[b]);
    builder.build(|| 0).expect("a valid ring");

    // A shard against a reader outside its group is like any writer.
    let mut builder = RingBuilder::<u64>::new(8);
    let shards = builder.shards(2, |v| *v as usize, &[]);
    let outside = builder.reader(&[shards[0]]);
    assert_eq!(
        builder.build(|| 0).unwrap_err(),
        GraphError::Conflict(shards[1], outside)
    );
}

#[test]
fn impossible_rings_are_refused() {
    let with = |capacity| {
        let mut builder = RingBuilder::<u64>::new(capacity);
        builder.reader(&[]);
        builder.build(|| 0).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(
        with(0),
        Err("ring capacity 0 is outside 1 to 1073741824 elements".into())
    );
    assert_eq!(with(usize::MAX).unwrap_err().split(' ').nth(3), Some("is"));
    assert_eq!(with(3), Ok(()));
    assert_eq!(
        RingBuilder::<u64>::new(1).build(|| 0).unwrap_err(),
        GraphError::NoReader
    );
    let mut builder = RingBuilder::<u64>::new(1);
    builder.shards(0, |_| 0, &[]);
    assert_eq!(builder.build(|| 0).unwrap_err(), GraphError::NoShard);
}

#[test]
fn the_publisher_waits_for_the_slowest_last_reader() {
    let mut builder = RingBuilder::new(4);
    let a = builder.reader(&[]);
    builder.reader(&[a]);
    builder.reader(&[]);
    let mut ends = build(builder);
    let (mut a, mut b, mut c) = (take(&mut ends, 0), take(&mut ends, 1), take(&mut ends, 2));
    let publisher = &mut ends.0;
    for value in 0..4 {
        publisher.publish(|slot| *slot = value).unwrap();
    }
    let full = |publisher: &mut RingPublisher<u64>| publisher.publish(|_| ()).unwrap_err();
    assert_eq!(full(publisher), SlotError::Full);
    assert_eq!(b.poll(), Availability::Empty, "b comes after a");
    assert_eq!(a.for_each(3, |_, _| ()), 3);
    assert_eq!(b.for_each(9, |_, _| ()), 3);
    assert_eq!(full(publisher), SlotError::Full);
    assert_eq!(c.for_each(2, |_, _| ()), 2);
    assert_eq!(publisher.free(4), 2);
    assert_eq!(publisher.claim(3).unwrap_err(), SlotError::Full);
    assert_eq!(publisher.claim(2).unwrap().first_sequence(), 4);
    assert!(!publisher.is_drained());
}

#[test]
fn a_dropped_claim_publishes_nothing_and_part_of_one_can_be_committed() {
    let mut builder = RingBuilder::new(4);
    builder.reader(&[]);
    let mut ends = build(builder);
    let mut reader = take(&mut ends, 0);
    let publisher = &mut ends.0;
    drop(publisher.claim(4).unwrap());
    assert_eq!(reader.poll(), Availability::Empty);
    let mut claim = publisher.claim(4).unwrap();
    for at in 0..4 {
        claim.write(at, |slot| *slot = 10 + at as u64);
    }
    claim.commit_first(2);
    let mut seen = Vec::new();
    reader.for_each(9, |sequence, value| seen.push((sequence, *value)));
    assert_eq!(seen, [(0, 10), (1, 11)]);
}

#[test]
fn a_panic_in_a_reader_releases_nothing() {
    let mut builder = RingBuilder::new(4);
    builder.reader_mut(&[]);
    let mut ends = build(builder);
    let mut reader = take(&mut ends, 0);
    ends.0.publish(|slot| *slot = 1).unwrap();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        reader.change(1, |_, _| panic!("seeded"));
    }));
    assert!(outcome.is_err());
    assert_eq!(reader.next_sequence(), 0);
    assert_eq!(reader.change(1, |_, value| assert_eq!(*value, 1)), 1);
}

#[test]
fn readers_drain_after_the_publisher_has_gone() {
    let mut builder = RingBuilder::new(4);
    let a = builder.reader_mut(&[]);
    builder.reader(&[a]);
    let mut ends = build(builder);
    let (mut a, mut b) = (take(&mut ends, 0), take(&mut ends, 1));
    ends.0.publish(|slot| *slot = 5).unwrap();
    drop(ends);
    assert_eq!(b.poll(), Availability::Empty, "a has not been there yet");
    assert_eq!(a.change(1, |_, value| *value += 1), 1);
    assert_eq!(a.poll(), Availability::Closed);
    drop(a);
    assert_eq!(b.poll(), Availability::Ready(1));
    assert_eq!(b.for_each(1, |_, value| assert_eq!(*value, 6)), 1);
    assert_eq!(b.poll(), Availability::Closed);
}

#[test]
fn a_reader_that_leaves_early_closes_the_ring() {
    let mut builder = RingBuilder::new(2);
    let a = builder.reader(&[]);
    builder.reader(&[a]);
    let mut ends = build(builder);
    let (a, mut b) = (take(&mut ends, 0), take(&mut ends, 1));
    ends.0.publish(|_| ()).expect("there is room");
    drop(a);
    assert_eq!(b.poll(), Availability::Closed);
    assert!(ends.0.is_closed());
    ends.0.publish(|_| ()).expect("there is room");
    assert_eq!(ends.0.publish(|_| ()).unwrap_err(), SlotError::Closed);
}

#[test]
#[should_panic(expected = "this reader only reads")]
fn who_was_declared_to_look_changes_nothing() {
    let mut builder = RingBuilder::new(4);
    builder.reader(&[]);
    let mut ends = build(builder);
    let mut reader = take(&mut ends, 0);
    ends.0.publish(|_| ()).expect("there is room");
    reader.visit_mut(1, |_, _| true);
}

#[test]
#[should_panic(expected = "a shard has not all elements")]
fn a_shard_is_shown_no_element_of_another() {
    let mut builder = RingBuilder::new(4);
    builder.shards(2, |value| *value as usize, &[]);
    let mut ends = build(builder);
    ends.0.publish(|slot| *slot = 1).expect("there is room");
    take(&mut ends, 0).visit(4, |_, _| true);
}

#[test]
#[should_panic(expected = "elements, 0 seen")]
fn releasing_more_than_was_seen_is_refused_whatever_the_number() {
    let mut builder = RingBuilder::new(4);
    builder.reader_mut(&[]);
    let mut ends = build(builder);
    let mut reader = take(&mut ends, 0);
    ends.0.publish(|_| ()).expect("there is room");
    reader.change(1, |_, _| ());
    reader.release(usize::MAX);
}

mod chains {
    use super::*;
    use crate::ring::broadcast::{Lent, Reader, ReaderChain};

    /// Returns a chain of all readers that `declare` makes, beside the rest of them.
    fn new_chain(
        slots: usize,
        of: &[usize],
        declare: impl FnOnce(&mut RingBuilder<u64>),
    ) -> (RingPublisher<u64>, ReaderChain<u64>, Vec<Reader<u64>>) {
        let mut builder = RingBuilder::new(slots);
        declare(&mut builder);
        let (publisher, readers) = builder.build(|| 0).expect("a valid ring");
        let (mut chain, mut rest) = (ReaderChain::new(), Vec::new());
        for (at, reader) in readers.into_iter().enumerate() {
            if of.contains(&at) {
                chain.push(reader);
            } else {
                rest.push(reader);
            }
        }
        (publisher, chain, rest)
    }

    fn in_a_row(builder: &mut RingBuilder<u64>) {
        let first = builder.reader_mut(&[]);
        let second = builder.reader_mut(&[first]);
        builder.reader(&[second]);
    }

    #[test]
    fn readers_are_led_through_each_element_in_their_order() {
        let (mut publisher, mut chain, _) = new_chain(4, &[0, 1, 2], in_a_row);
        publisher.publish(|value| *value = 7).unwrap();
        publisher.publish(|value| *value = 8).unwrap();
        assert_eq!(chain.ahead(), (0, 2));
        let mut seen = Vec::new();
        let mut run = chain.run(5);
        while let Some(mut loan) = run.loan::<1>() {
            for at in 0..3 {
                loan.lend(at, 0, |sequence, element| match element {
                    Lent::Mut(value) => *value *= 10,
                    Lent::Shared(value) => seen.push((at, sequence, *value)),
                });
            }
            loan.done();
        }
        drop(run);
        assert_eq!(seen, [(2, 0, 700), (2, 1, 800)]);
        assert!(publisher.is_drained());
        assert_eq!(chain.ahead(), (2, 0));
        publisher.publish(|_| ()).expect("there is room");
        // Each may go on alone as well.
        for at in 0..3 {
            assert_eq!(chain.reader(at).waiting(), 1);
            assert_eq!(chain.ahead().1, usize::from(at == 0), "some are ahead");
            chain.reader(at).release(1);
        }
        assert!(publisher.is_drained());
    }

    #[test]
    fn a_step_leads_all_readers_through_one_element_and_a_panic_leaves_it_where_it_was() {
        let (mut publisher, mut chain, _) = new_chain(4, &[0, 1, 2], in_a_row);
        publisher
            .publish(|value| *value = 7)
            .expect("there is room");
        let (mut seen, mut places) = (Vec::new(), [0, 1, 2]);
        let single = chain.single().expect("one");
        single.run::<true, _>(&mut places, |at, sequence, element| match element {
            Lent::Mut(value) => *value *= 10,
            Lent::Shared(value) => seen.push((*at, sequence, *value)),
        });
        assert_eq!((seen, publisher.free(4)), (vec![(2, 0, 700)], 4));
        assert!(chain.single().is_none(), "nothing is there");
        publisher.publish(|_| ()).expect("there is room");
        for at in 0..3 {
            let work = std::panic::AssertUnwindSafe(|| {
                let single = chain.single().expect("one");
                single.run::<true, _>(&mut places, |place, _, _| assert!(*place != at, "seeded"));
            });
            std::panic::catch_unwind(work).unwrap_err();
            assert_eq!(chain.behind(), at, "the others are behind the first");
            assert!(at == 0 || chain.single().is_none(), "not level");
            (0..3).for_each(|at| {
                let waiting = chain.reader(at).waiting();
                chain.reader(at).release(waiting);
            });
            assert_eq!((publisher.free(4), chain.behind()), (4, 0));
            publisher.publish(|_| ()).expect("there is room");
        }
        publisher.publish(|_| ()).expect("there is room");
        assert!(chain.single().is_none(), "two are there");
        assert_eq!(publisher.free(4), 2);
    }

    #[test]
    fn what_was_just_published_is_led_at_once_and_released_when_somebody_looks() {
        let (mut publisher, mut chain, _) = new_chain(4, &[0, 1, 2], in_a_row);
        let mut places = [0, 1, 2];
        for round in 0..3 {
            let published = publisher.put(|value| *value = round);
            let single = chain.published(&published).expect("all wait for it");
            single.run::<false, _>(&mut places, |_, sequence, element| match element {
                Lent::Mut(value) => *value += 10,
                Lent::Shared(value) => assert_eq!((sequence, *value), (round, round + 20)),
            });
            assert!(!publisher.is_drained(), "it is not released yet");
        }
        chain.publish_progress();
        assert!(publisher.is_drained());
        // One that panics is left where it was, and so are those behind it.
        for at in 0..3 {
            let start = publisher.next_sequence();
            for panics in [false, true] {
                let work = std::panic::AssertUnwindSafe(|| {
                    let published = publisher.put(|_| ());
                    let single = chain.published(&published).expect("all wait for it");
                    single.run::<false, _>(&mut places, |place, _, _| {
                        assert!(!(panics && *place == at), "seeded");
                    });
                });
                assert_eq!(std::panic::catch_unwind(work).is_err(), panics);
            }
            assert_eq!(chain.behind(), at, "the others are behind the first");
            for (place, reader) in chain.readers().iter_mut().enumerate() {
                assert_eq!(reader.next_sequence(), start + 1 + u64::from(place < at));
                let waiting = reader.waiting();
                reader.release(waiting);
            }
            assert_eq!(publisher.free(4), 4);
        }
    }

    #[test]
    fn what_was_just_published_is_led_by_no_reader_that_stands_elsewhere() {
        let (mut other, _, _) = new_chain(4, &[0, 1, 2], in_a_row);
        let (mut publisher, mut all, _) = new_chain(4, &[0, 1, 2], in_a_row);
        assert!(
            all.published(&other.put(|_| ())).is_none(),
            "of another ring"
        );
        publisher.publish(|_| ()).expect("there is room");
        assert!(
            all.published(&publisher.put(|_| ())).is_none(),
            "two are there"
        );
        let (mut publisher, mut tail, _) = new_chain(4, &[1, 2], in_a_row);
        assert!(
            tail.published(&publisher.put(|_| ())).is_none(),
            "one comes before them"
        );
        assert!(
            ReaderChain::<u64>::new()
                .published(&publisher.put(|_| ()))
                .is_none(),
            "no reader"
        );
    }

    #[test]
    fn readers_that_leave_a_line_have_released_what_they_were_led_through() {
        let (mut publisher, mut chain, _) = new_chain(4, &[0, 1, 2], in_a_row);
        let published = publisher.put(|_| ());
        let single = chain.published(&published).expect("all wait for it");
        single.run::<false, _>(&mut [(); 3], |(), _, _| ());
        let rest = chain.split_off(1);
        assert!(rest.iter().all(|reader| reader.next_sequence() == 1));
        assert_eq!((chain.ahead(), publisher.free(4)), ((1, 0), 4));
    }

    #[test]
    fn a_line_is_closed_if_no_reader_outside_it_comes_between() {
        let ahead = |of: &[usize], declare: fn(&mut RingBuilder<u64>)| {
            let (mut publisher, mut chain, mut rest) = new_chain(4, of, declare);
            publisher.publish(|_| ()).expect("there is room");
            for reader in &mut rest {
                let waiting = reader.waiting();
                reader.release(waiting);
            }
            chain.ahead().1
        };
        assert_eq!(ahead(&[0, 1, 2], in_a_row), 1);
        assert_eq!(
            ahead(&[1, 2], in_a_row),
            1,
            "the first is behind one outside"
        );
        assert_eq!(ahead(&[0, 2], in_a_row), 0, "one outside is between");
        let fork = |builder: &mut RingBuilder<u64>| {
            let first = builder.reader_mut(&[]);
            builder.reader(&[first]);
            builder.reader(&[first]);
        };
        assert_eq!(ahead(&[1, 2], fork), 1, "both are behind the same one");
        let plain_readers = |builder: &mut RingBuilder<u64>| {
            builder.reader(&[]);
            builder.reader(&[]);
        };
        assert_eq!(
            ahead(&[0, 1], plain_readers),
            1,
            "both are behind the publisher"
        );
        let join = |builder: &mut RingBuilder<u64>| {
            let (first, second) = (builder.reader(&[]), builder.reader(&[]));
            builder.reader_mut(&[first, second]);
        };
        assert_eq!(ahead(&[0, 1, 2], join), 1);
        assert_eq!(ahead(&[0, 2], join), 0, "the other reader is outside");
        let shards = |builder: &mut RingBuilder<u64>| {
            builder.shards(2, |value| *value as usize, &[]);
        };
        assert_eq!(ahead(&[0, 1], shards), 0, "shards see different elements");
        let (mut publisher, mut mixed, _) = new_chain(4, &[0], plain_readers);
        let (_other, _, foreign) = new_chain(4, &[], plain_readers);
        foreign.into_iter().for_each(|reader| mixed.push(reader));
        publisher.publish(|_| ()).expect("there is room");
        assert_eq!(mixed.ahead().1, 0, "readers of another ring");
    }

    #[test]
    fn what_is_given_back_early_is_room_for_who_asks_for_it() {
        let (mut publisher, mut chain, _) = new_chain(2, &[0, 1, 2], in_a_row);
        publisher.publish(|_| ()).expect("there is room");
        publisher.publish(|_| ()).expect("there is room");
        assert_eq!(chain.ahead(), (0, 2));
        let mut run = chain.run(2);
        let mut loan = run.loan::<2>().expect("two");
        assert_eq!(publisher.free_including_early(1), 0);
        loan.release_early();
        assert_eq!(
            (publisher.free(1), publisher.free_including_early(1)),
            (0, 1)
        );
        loan.lend(0, 1, |sequence, _| assert_eq!(sequence, 1));
        loan.done();
        assert!(run.loan::<1>().is_none());
        drop(run);
        assert_eq!(publisher.free(2), 2);
        publisher.publish(|_| ()).expect("there is room");
        assert_eq!(chain.ahead(), (2, 1));
    }

    #[test]
    fn a_panic_keeps_its_element_and_releases_those_before_it() {
        let (mut publisher, mut chain, _) = new_chain(4, &[0, 1, 2], in_a_row);
        (0..3).for_each(|_| publisher.publish(|_| ()).expect("there is room"));
        assert_eq!(chain.ahead(), (0, 3));
        let work = std::panic::AssertUnwindSafe(|| {
            let mut run = chain.run(3);
            run.loan::<1>().expect("three").done();
            let _hand = run.loan::<1>().expect("two");
            panic!("seeded");
        });
        std::panic::catch_unwind(work).unwrap_err();
        assert_eq!(publisher.free(4), 2);
        assert_eq!(chain.ahead(), (1, 2));
    }

    #[test]
    fn a_panic_keeps_nothing_that_was_given_back() {
        let (mut publisher, mut chain, _) = new_chain(2, &[0, 1, 2], in_a_row);
        (0..2).for_each(|_| publisher.publish(|_| ()).expect("there is room"));
        assert_eq!(chain.ahead(), (0, 2));
        let work = std::panic::AssertUnwindSafe(|| {
            let mut run = chain.run(2);
            run.loan::<2>().expect("two").release_early();
            panic!("seeded");
        });
        std::panic::catch_unwind(work).unwrap_err();
        assert_eq!((publisher.free(2), chain.ahead()), (1, (1, 1)));
    }

    #[test]
    #[should_panic(expected = "the element was given back")]
    fn only_what_is_in_the_hand_is_lent() {
        let (mut publisher, mut chain, _) = new_chain(2, &[0, 1, 2], in_a_row);
        publisher.publish(|_| ()).expect("there is room");
        assert_eq!(chain.ahead(), (0, 1));
        let mut run = chain.run(2);
        assert!(run.loan::<2>().is_none(), "only one is there");
        let mut loan = run.loan::<1>().expect("one");
        loan.release_early();
        loan.lend(0, 0, |_, _| ());
    }

    #[test]
    fn a_line_that_is_not_level_is_not_led() {
        let (mut publisher, mut chain, _) = new_chain(4, &[0, 1, 2], in_a_row);
        (0..2).for_each(|_| publisher.publish(|_| ()).expect("there is room"));
        assert_eq!(chain.reader(0).waiting(), 2);
        chain.reader(0).release(1);
        assert!(chain.run(2).loan::<1>().is_none());
        assert_eq!(chain.reader(0).next_sequence(), 1, "no reader was moved");
    }

    #[test]
    fn a_lone_reader_gives_back_early_too() {
        let (mut publisher, mut chain, _) = new_chain(1, &[0], |builder| _ = builder.reader(&[]));
        publisher.publish(|_| ()).expect("there is room");
        let reader = chain.reader(0);
        assert_eq!(reader.waiting(), 1);
        reader.release_early();
        assert_eq!(
            (publisher.free(1), publisher.free_including_early(1)),
            (0, 1)
        );
        publisher.publish(|_| ()).expect("there is room");
        assert_eq!((publisher.free(1), reader.next_sequence()), (0, 1));
        reader.release(0);
        assert_eq!((publisher.free(1), publisher.is_drained()), (0, false));
    }
}

#[test]
fn a_reader_of_another_ring_is_refused() {
    let mut other = RingBuilder::<u8>::new(8);
    let foreign = other.reader_mut(&[]);
    let mut mine = RingBuilder::<u8>::new(8);
    let own = mine.reader_mut(&[]);
    assert_ne!(own, foreign);
    mine.reader(&[foreign]);
    let error = mine.build(|| 0).map(drop).expect_err("it is of another");
    assert_eq!(error, GraphError::Foreign(foreign));
    let text = "a reader is to come after reader 0 of another ring";
    assert_eq!(error.to_string(), text);
}
