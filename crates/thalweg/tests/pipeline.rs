//! What a pipeline promises, whatever the placement.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use thalweg::pipeline::{BuildError, Builder, Flow, Pipeline, Placement, Spent, TryPublishError};
use thalweg::wait::Strategy;

#[derive(Default, Debug)]
struct Event {
    number: u64,
    trail: Vec<u8>,
    sum: u64,
}

fn placements() -> Vec<Placement> {
    let mut all = vec![
        Placement::inline(),
        Placement::auto(),
        Placement::threads(1),
        Placement::threads(2),
        Placement::threads(3),
        Placement::caller_and_threads(1, 1),
        Placement::caller_and_threads(2, 1),
        Placement::caller_and_threads(1, 2),
        Placement::explicit().on_caller(["b"]).on_thread(["a", "c"]),
        Placement::threads(3).unpinned(),
    ];
    for strategy in [Strategy::Yield, Strategy::Park, Strategy::Adaptive] {
        all.push(Placement::threads(2).waiting(strategy));
    }
    all
}

/// Three stages in a row, each of which adds its mark; the last notes what it sees.
fn chain(capacity: usize) -> (Builder<Event>, Arc<Mutex<Vec<u64>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let out = Arc::clone(&seen);
    let builder = Pipeline::builder(capacity, Event::default)
        .stage("a", |event: &mut Event, _| {
            event.trail.clear();
            event.trail.push(b'a');
            event.sum = event.number;
        })
        .stage("b", |event, _| {
            event.trail.push(b'b');
            event.sum = event.sum * 31 + 7;
        })
        .after("a")
        .observe("c", move |event, context| {
            assert_eq!(event.trail, b"ab");
            assert_eq!(event.number, context.sequence());
            out.lock().expect("no panic").push(event.sum);
        })
        .after("b");
    (builder, seen)
}

#[test]
fn every_placement_gives_the_same_results_in_order() {
    for placement in placements() {
        let (builder, seen) = chain(64);
        let mut pipeline = builder.placement(placement.clone()).build().unwrap();
        let count = 3_000;
        for number in 0..count / 2 {
            pipeline.publish(|event| event.number = number).unwrap();
        }
        let half = count / 2;
        pipeline
            .publish_batch(half as usize, |at, event| event.number = half + at as u64)
            .unwrap();
        pipeline.drain().unwrap();
        assert_eq!(seen.lock().unwrap().len() as u64, count, "{placement}");
        let stats = pipeline.join().unwrap();
        let expected: Vec<u64> = (0..count).map(|n| n * 31 + 7).collect();
        assert_eq!(*seen.lock().unwrap(), expected, "{placement}");
        for stage in &stats.stages {
            assert_eq!(stage.events, count, "{placement} {}", stage.name);
        }
    }
}

#[test]
fn several_producers_lose_nothing_and_keep_their_own_order() {
    for placement in placements() {
        let seen = Arc::new(Mutex::new(vec![Vec::new(); 4]));
        let out = Arc::clone(&seen);
        let mut pipeline = Pipeline::builder(32, || (0usize, 0u64))
            .stage("a", |event: &mut (usize, u64), _| event.1 += 1)
            .stage("b", |event, _| event.1 += 1)
            .after("a")
            .observe("c", move |event, _| {
                out.lock().unwrap()[event.0].push(event.1)
            })
            .after("b")
            .placement(placement.clone())
            .producers(3)
            .build()
            .unwrap();
        let threads: Vec<_> = pipeline
            .take_producers()
            .into_iter()
            .enumerate()
            .map(|(at, mut producer)| {
                std::thread::spawn(move || {
                    for number in 0..500 {
                        producer.publish(|event| *event = (at, number)).unwrap();
                    }
                })
            })
            .collect();
        for number in 0..500 {
            pipeline.publish(|event| *event = (3, number)).unwrap();
        }
        while threads.iter().any(|thread| !thread.is_finished()) {
            pipeline.drive().unwrap();
            std::thread::yield_now();
        }
        pipeline.drain().unwrap();
        assert_eq!(
            seen.lock().unwrap()[3].len(),
            500,
            "the handle's own events are through"
        );
        let stats = pipeline.join().unwrap();
        for thread in threads {
            thread.join().unwrap();
        }
        for lane in &*seen.lock().unwrap() {
            assert_eq!(*lane, (2..502).collect::<Vec<u64>>(), "{placement}");
        }
        assert_eq!(stats.stages[2].events, 2_000);
        assert!(stats.end_to_end_ns.count() > 0);
    }
}

#[test]
fn a_panicking_stage_stops_the_pipeline_and_is_named() {
    for placement in placements() {
        let mut pipeline = Pipeline::builder(8, || 0u64)
            .stage("a", |event: &mut u64, _| *event += 1)
            .stage("b", |event, _| assert_ne!(*event, 51, "seeded fault at 50"))
            .after("a")
            .observe("c", |_, _| ())
            .after("b")
            .placement(placement.clone())
            .build()
            .unwrap();
        let mut stopped = None;
        for number in 0..1_000_000 {
            if let Err(error) = pipeline.publish(|event| *event = number) {
                stopped = Some(error);
                break;
            }
        }
        let stopped = stopped.unwrap_or_else(|| panic!("{placement}: the producer was never told"));
        let text = stopped.to_string();
        assert!(text.contains("stage \"b\" panicked"), "{placement}: {text}");
        assert!(text.contains("seeded fault at 50"), "{placement}: {text}");
        assert!(pipeline.drain().is_err());
        assert!(matches!(
            pipeline.try_publish(|_| ()),
            Err(TryPublishError::Stopped(_))
        ));
        let failure = pipeline.join().unwrap_err();
        assert_eq!(failure.stage, "b", "{placement}");
    }
}

#[test]
fn producers_on_other_threads_are_told_of_a_panic() {
    let mut pipeline = Pipeline::builder(8, || 0u64)
        .stage("only", |event: &mut u64, _| {
            assert_ne!(*event, 20, "seeded")
        })
        .placement(Placement::threads(1))
        .producers(2)
        .build()
        .unwrap();
    let threads: Vec<_> = pipeline
        .take_producers()
        .into_iter()
        .map(|mut producer| {
            std::thread::spawn(move || {
                (0..u64::MAX).find_map(|n| producer.publish(|event| *event = n).err())
            })
        })
        .collect();
    for thread in threads {
        let stopped = thread.join().unwrap().unwrap();
        assert_eq!(stopped.failure.unwrap().stage, "only");
    }
    assert_eq!(pipeline.join().unwrap_err().stage, "only");
}

#[test]
fn clashing_stages_are_named() {
    let build = |builder: Builder<u64>| builder.build().unwrap_err().to_string();
    let two = Pipeline::builder(8, || 0u64)
        .stage("risk", |_, _| ())
        .observe("journal", |_, _| ());
    assert_eq!(
        build(two),
        "stages \"risk\" and \"journal\" are not ordered, and at least one of them changes the \
         event; put one after the other"
    );
    let sharded = Pipeline::builder(8, || 0u64)
        .sharded("match", 2, |n| *n as usize, |_| |_: &mut u64, _| ())
        .stage("settle", |_, _| ());
    assert!(build(sharded).contains("\"match[0]\" and \"settle\""));
    let observers = Pipeline::builder(8, || 0u64)
        .observe("a", |_, _| ())
        .observe("b", |_, _| ())
        .placement(Placement::inline());
    observers.build().unwrap();
}

#[test]
fn wrong_options_are_refused_with_their_limits() {
    let stage = || Pipeline::builder(8, || 0u64).stage("a", |_, _| ());
    let text = |builder: Builder<u64>| builder.build().unwrap_err().to_string();
    assert_eq!(
        text(Pipeline::builder(0, || 0u64).stage("a", |_, _| ())),
        "pipeline capacity 0 is outside 1 to 1073741824 events"
    );
    assert_eq!(
        text(Pipeline::builder(8, || 0u64)),
        "a pipeline needs at least one stage"
    );
    assert_eq!(
        text(
            Pipeline::builder(8, || 0u64)
                .after("x")
                .stage("a", |_, _| ())
        ),
        "after needs a stage declared before it"
    );
    assert_eq!(
        text(stage().progress(0)),
        "stage \"a\" has a progress interval of 0 events; 1 or more"
    );
    assert_eq!(
        text(stage().sample_every(0)),
        "sampling one event in 0 is outside 1 to 1048576"
    );
    assert_eq!(
        text(stage().placement(Placement::threads(2))),
        "2 stage threads asked for; 1 stages can use 1 to 1"
    );
    assert_eq!(
        text(
            stage()
                .sharded("m", 0, |_| 0, |_| |_: &mut u64, _| ())
                .after("a")
        ),
        "sharded stage \"m\" has 0 shards; 1 or more"
    );
    assert!(matches!(
        stage().after("zz").build(),
        Err(BuildError::UnknownStage { .. })
    ));
}

#[test]
fn shards_get_the_events_of_their_route_and_together_all() {
    for placement in [
        Placement::inline(),
        Placement::threads(2),
        Placement::threads(4),
    ] {
        let counts: Arc<Vec<AtomicU64>> = Arc::new((0..3).map(|_| AtomicU64::new(0)).collect());
        let out = Arc::clone(&counts);
        let mut pipeline = Pipeline::builder(64, || (0u64, 0u64))
            .sharded(
                "match",
                3,
                |event: &(u64, u64)| event.0 as usize,
                move |shard| {
                    let out = Arc::clone(&out);
                    move |event: &mut (u64, u64), _| {
                        assert_eq!(event.0 % 3, shard as u64);
                        event.1 += 1;
                        out[shard].fetch_add(1, SeqCst);
                    }
                },
            )
            .observe("check", |event, _| assert_eq!(event.1, 1))
            .after("match")
            .placement(placement)
            .sample_every(1)
            .build()
            .unwrap();
        for number in 0..999 {
            pipeline.publish(|event| *event = (number, 0)).unwrap();
        }
        let stats = pipeline.join().unwrap();
        let counts: Vec<u64> = counts.iter().map(|count| count.load(SeqCst)).collect();
        assert_eq!(counts, [333, 333, 333]);
        let sampled: u64 = stats.stages[..3].iter().map(|s| s.service_ns.count()).sum();
        assert_eq!(sampled, 999, "each event is served by one shard");
        assert_eq!(stats.stages[3].name, "check");
        assert_eq!(stats.end_to_end_ns.count(), 999);
        assert!(stats.slowest.iter().all(|slow| slow.parts.len() == 2));
    }
}

#[test]
fn an_event_that_has_to_wait_is_offered_again_after_the_others_had_a_turn() {
    // "risk" lets event n pass only when "settle" is done with n - 1.
    for placement in [
        Placement::inline(),
        Placement::auto(),
        Placement::threads(1),
        Placement::threads(2),
    ] {
        let settled = Arc::new(AtomicU64::new(0));
        let (see, set) = (Arc::clone(&settled), Arc::clone(&settled));
        let mut pipeline = Pipeline::builder(64, || 0u64)
            .stage_chunks("risk", move |chunk| {
                chunk.try_for_each(|event, context| {
                    if see.load(SeqCst) < context.sequence() {
                        return Flow::Retry;
                    }
                    *event += 1;
                    Flow::Next
                })
            })
            .stage("settle", move |event, context| {
                assert_eq!(*event, 8);
                set.store(context.sequence() + 1, SeqCst);
            })
            .after("risk")
            .placement(placement)
            .build()
            .unwrap();
        pipeline
            .publish_batch(1_000, |_, event| *event = 7)
            .unwrap();
        pipeline.join().unwrap();
        assert_eq!(settled.load(SeqCst), 1_000);
    }
}

#[test]
fn a_full_pipeline_refuses_and_calls_nothing() {
    let gate = Arc::new(Mutex::new(()));
    let held = gate.lock().unwrap();
    let inside = Arc::clone(&gate);
    let mut pipeline = Pipeline::builder(4, || 0u64)
        .stage("slow", move |_, _| drop(inside.lock().unwrap()))
        .placement(Placement::threads(1))
        .build()
        .unwrap();
    for _ in 0..4 {
        pipeline.try_publish(|_| ()).unwrap();
    }
    let refused = pipeline.try_publish(|_| panic!("must not be called"));
    assert_eq!(refused.unwrap_err().to_string(), "the pipeline is full");
    drop(held);
    pipeline.publish(|_| ()).unwrap();
    assert_eq!(pipeline.join().unwrap().stages[0].events, 5);
}

#[test]
fn dropping_finishes_what_was_published() {
    let seen = Arc::new(AtomicU64::new(0));
    for placement in [
        Placement::inline(),
        Placement::threads(1),
        Placement::auto(),
    ] {
        let out = Arc::clone(&seen);
        let mut pipeline = Pipeline::builder(1024, || 0u64)
            .observe("count", move |_, _| _ = out.fetch_add(1, SeqCst))
            .placement(placement)
            .build()
            .unwrap();
        pipeline.publish_batch(100, |_, _| ()).unwrap();
    }
    assert_eq!(seen.load(SeqCst), 300);
}

#[test]
fn the_parts_of_the_time_add_up() {
    for placement in placements() {
        for every in [1, 32] {
            let (builder, _) = chain(256);
            let mut pipeline = builder
                .placement(placement.clone())
                .sample_every(every)
                .build()
                .unwrap();
            for number in 0..20_000 {
                pipeline.publish(|event| event.number = number).unwrap();
            }
            let stats = pipeline.join().unwrap();
            let sampled = 20_000 / every;
            assert_eq!(stats.end_to_end_ns.count(), sampled);
            let mut parts = 0.0;
            for stage in &stats.stages {
                assert_eq!(stage.queueing_ns.count(), sampled, "no event is missed");
                assert_eq!(stage.service_ns.count(), sampled);
                parts += stage.queueing_mean_ns + stage.service_mean_ns;
            }
            let off = (parts / stats.end_to_end_mean_ns - 1.0).abs();
            assert!(
                off < 0.005,
                "{placement}: parts {parts}, {}",
                stats.end_to_end_mean_ns
            );
        }
    }
}

#[test]
fn the_slowest_event_is_blamed_on_the_stage_that_was_slow() {
    let mut pipeline = Pipeline::builder(64, || 0u64)
        .stage("quick", |_, _| ())
        .stage("sleepy", |event: &mut u64, _| {
            if *event == 777 {
                // The fault to be found: ten milliseconds in this stage.
                let begin = std::time::Instant::now();
                while begin.elapsed().as_millis() < 10 {
                    std::thread::yield_now();
                }
            }
        })
        .after("quick")
        .placement(Placement::inline())
        .sample_every(1)
        .build()
        .unwrap();
    for number in 0..2_000 {
        pipeline.publish(|event| *event = number).unwrap();
    }
    let stats = pipeline.join().unwrap();
    let slow = stats
        .slowest
        .iter()
        .find(|slow| slow.sequence == 777)
        .unwrap();
    let (stage, spent, ns) = slow.longest().unwrap();
    assert_eq!((stage, spent), ("sleepy", Spent::Served));
    assert!(ns >= 9_000_000);
    assert!(
        stats.to_string().contains("served by \"sleepy\""),
        "{stats}"
    );
}

#[test]
fn auto_gives_stages_away_under_load_and_takes_them_back() {
    let cores = thalweg::wait::cores::usable().count();
    if cores < 2 {
        println!("skipped: one usable core, auto stays inline");
        return;
    }
    let work = |turns: u64| {
        move |event: &mut u64, _| {
            for _ in 0..turns {
                *event = std::hint::black_box(event.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1);
            }
        }
    };
    let mut pipeline = Pipeline::builder(1024, || 0u64)
        .stage("a", work(100))
        .stage("b", work(100))
        .after("a")
        .placement(Placement::auto())
        .build()
        .unwrap();
    let mut published = 0;
    // Flat out until it moves: a core that does nothing else is busy enough.
    while pipeline.stats().moves == 0 && published < 20_000_000 {
        for _ in 0..10_000 {
            pipeline.publish(|event| *event = published).unwrap();
            published += 1;
        }
    }
    assert!(pipeline.stats().moves > 0, "after {published} events");
    // Then at a trickle until it moves back.
    let mut trickle = 0;
    while pipeline.stats().moves % 2 == 1 && trickle < 2_000_000 {
        pipeline.publish(|event| *event = trickle).unwrap();
        trickle += 1;
        for _ in 0..20 {
            std::thread::yield_now();
        }
    }
    assert_eq!(
        pipeline.stats().moves % 2,
        0,
        "after {trickle} events at a trickle"
    );
    let stats = pipeline.join().unwrap();
    assert!(
        stats
            .stages
            .iter()
            .all(|stage| stage.events == published + trickle)
    );
}

#[test]
fn auto_never_leaves_stages_on_the_desk_when_the_ring_is_full() {
    // A small ring, flat out, with the other core taken: splits fail and are undone again and
    // again, while the caller waits for room most of the time.
    let stop = Arc::new(AtomicU64::new(0));
    let hogs: Vec<_> = (0..2)
        .map(|_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                while stop.load(SeqCst) == 0 {
                    std::hint::black_box(
                        (0..100).fold(0u64, |a: u64, b: u64| a ^ b.wrapping_mul(a)),
                    );
                }
            })
        })
        .collect();
    let begin = std::time::Instant::now();
    let mut published = 0;
    let mut pipeline = Pipeline::builder(16, || 0u64)
        .stage("a", |event: &mut u64, _| {
            *event =
                std::hint::black_box((0..100).fold(*event, |a: u64, b: u64| a ^ b.wrapping_add(a)));
        })
        .stage("b", |event, _| {
            *event =
                std::hint::black_box((0..300).fold(*event, |a: u64, b: u64| a ^ b.wrapping_add(a)));
        })
        .after("a")
        .build()
        .unwrap();
    while begin.elapsed().as_millis() < 1_500 {
        pipeline
            .publish_batch(100, |_, event| *event = published)
            .unwrap();
        published += 100;
    }
    stop.store(1, SeqCst);
    for hog in hogs {
        hog.join().unwrap();
    }
    let stats = pipeline.join().unwrap();
    assert_eq!(stats.stages[1].events, published);
}
