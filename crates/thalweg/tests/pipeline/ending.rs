//! Panics, drops and errors: no thread hangs, and each caller gets the error.

use crate::pipeline::placements;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use thalweg::pipeline::{Pipeline, Placement, TryPublishError};

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
        let stopped = stopped.unwrap_or_else(|| panic!("{placement}: the producer got no error"));
        let text = stopped.to_string();
        assert!(text.contains("stage \"b\" panicked"), "{placement}: {text}");
        assert!(text.contains("seeded fault at 50"), "{placement}: {text}");
        assert!(pipeline.flush().is_err());
        assert!(matches!(
            pipeline.try_publish(|_| ()),
            Err(TryPublishError::Stopped(_))
        ));
        let failure = pipeline.join().unwrap_err();
        assert_eq!(failure.stage, "b", "{placement}");
    }
}

#[test]
fn producers_on_other_threads_get_the_error_of_a_panic() {
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
fn dropping_the_pipeline_does_not_wait_for_producers_and_notifies_them() {
    for placement in [Placement::inline(), Placement::threads(1)] {
        let mut pipeline = Pipeline::builder(8, || 0u64)
            .stage("only", |_, _| ())
            .placement(placement)
            .producers(1)
            .build()
            .unwrap();
        let mut producer = pipeline.take_producers().remove(0);
        producer.publish(|_| ()).unwrap();
        drop(pipeline);
        let stopped = (0..100).find_map(|_| producer.publish(|_| ()).err());
        assert_eq!(stopped.unwrap().to_string(), "the pipeline has stopped");
    }
}

#[test]
fn a_panic_while_writing_publishes_nothing_and_the_pipeline_goes_on() {
    for placement in [Placement::inline(), Placement::threads(1)] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let out = Arc::clone(&seen);
        let mut pipeline = Pipeline::builder(8, || 0u64)
            .observe("see", move |event, _| {
                out.lock().expect("no panic").push(*event)
            })
            .placement(placement)
            .build()
            .unwrap();
        pipeline.publish(|event| *event = 1).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pipeline.publish(|_| panic!("seeded"))
        }));
        assert!(panicked.is_err());
        pipeline.publish(|event| *event = 2).unwrap();
        pipeline.join().unwrap();
        assert_eq!(*seen.lock().unwrap(), [1, 2]);
    }
}

#[test]
fn a_panic_while_a_batch_or_a_producer_writes_publishes_what_came_before() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    for placement in [Placement::inline(), Placement::threads(1)] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let out = Arc::clone(&seen);
        let mut pipeline = Pipeline::builder(256, || 0)
            .observe("see", move |event, _| {
                out.lock().expect("no panic").push(*event)
            })
            .placement(placement)
            .producers(1)
            .build()
            .unwrap();
        let mut producer = pipeline.take_producers().remove(0);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            producer.publish_batch(9, |at, event| {
                *event = at;
                assert!(at < 2, "seeded");
            })
        }));
        assert!(panicked.is_err());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            producer.try_publish(|_| panic!("seeded"))
        }));
        assert!(panicked.is_err());
        producer.publish(|event| *event = 2).unwrap();
        drop(producer);
        pipeline.join().unwrap();
        assert_eq!(*seen.lock().unwrap(), [0, 1, 2]);
    }
    let made = catch_unwind(|| {
        let mut slots = 0;
        let factory = move || {
            slots += 1;
            assert!(slots < 5, "seeded");
        };
        let builder = Pipeline::builder(8, factory).observe("see", |(), _| ());
        builder.placement(Placement::threads(1)).build().is_ok()
    });
    assert!(made.is_err(), "the factory panicked");
}

#[test]
fn a_full_pipeline_whose_room_waits_for_the_callers_own_stages_takes_events_again() {
    // The caller has the last stage, or moves the producers' events: `try_publish` runs them.
    for producers in [0, 1] {
        let placement = match producers {
            0 => Placement::explicit()
                .on_thread(["first"])
                .on_caller(["last"]),
            _ => Placement::inline(),
        };
        let mut pipeline = Pipeline::builder(2, || 0u64)
            .stage("first", |_, _| ())
            .observe("last", |_, _| ())
            .after("first")
            .placement(placement)
            .producers(producers)
            .build()
            .unwrap();
        let mut published = 0;
        while published < 200 {
            match pipeline.try_publish(|_| ()) {
                Ok(()) => published += 1,
                Err(TryPublishError::Full) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn producers_hear_of_a_failure_while_the_caller_still_holds_their_lanes() {
    let mut pipeline = Pipeline::builder(4, || 0u64)
        .stage("a", |_, _| ())
        .stage("b", |_, context| assert!(context.sequence() < 3, "seeded"))
        .after("a")
        .producers(1)
        .placement(Placement::explicit().on_caller(["a"]).on_thread(["b"]))
        .build()
        .unwrap();
    let mut producer = pipeline.take_producers().remove(0);
    let thread = std::thread::spawn(move || while producer.publish(|_| ()).is_ok() {});
    while pipeline.drive().is_ok() {
        std::thread::yield_now();
    }
    thread.join().unwrap();
    assert_eq!(pipeline.join().unwrap_err().stage, "b");
}

#[test]
fn dropping_ends_also_while_a_producer_publishes_without_pause() {
    let mut pipeline = Pipeline::builder(64, || 0u64)
        .stage("only", |_, _| ())
        .producers(1)
        .placement(Placement::threads(1))
        .build()
        .unwrap();
    let mut producer = pipeline.take_producers().remove(0);
    producer.publish(|_| ()).unwrap();
    let thread = std::thread::spawn(move || while producer.publish(|_| ()).is_ok() {});
    drop(pipeline);
    thread.join().unwrap();
}
