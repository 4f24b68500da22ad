//! The state of a pipeline, and producers that are held back.

use std::sync::mpsc::channel;
use std::thread;

use thalweg::pipeline::{Handle, Pipeline, Placement, TryPublishError};
use thalweg::state::Lifecycle::{self, Draining, Paused, Running, Starting, Stopped};

use crate::pipeline::placements;

fn pipeline(placement: &Placement, producers: usize) -> Pipeline<u64> {
    Pipeline::builder(8, || 0_u64)
        .stage("a", |event: &mut u64, _| {
            assert_ne!(*event, 1_000, "seeded")
        })
        .stage("b", |event, _| *event += 1)
        .after("a")
        .observe("c", |_, _| ())
        .after("b")
        .placement(placement.clone())
        .producers(producers)
        .build()
        .expect("it is valid")
}

fn passed(handle: &Handle) -> Vec<Lifecycle> {
    let changes = handle.state().changes();
    assert!(changes.first().is_none_or(|first| first.from == Starting));
    changes.iter().map(|change| change.to).collect()
}

#[test]
fn a_pipeline_runs_drains_and_stops() {
    for placement in placements() {
        for (producers, is_joined) in [(0, true), (0, false), (2, true), (2, false)] {
            let mut pipeline = pipeline(&placement, producers);
            assert_eq!(pipeline.state().get(), Running);
            let handle = pipeline.handle();
            (0..20).for_each(|_| pipeline.publish(|event| *event = 1).unwrap());
            if is_joined {
                pipeline.join().unwrap();
            } else {
                drop(pipeline);
            }
            assert_eq!(passed(&handle), [Running, Draining, Stopped], "{placement}");
        }
    }
}

#[test]
fn a_panic_stops_it_at_once() {
    for placement in placements() {
        let mut pipeline = pipeline(&placement, 0);
        let handle = pipeline.handle();
        while pipeline.publish(|event| *event = 1_000).is_ok() {}
        handle.state().wait_for(Stopped).unwrap();
        assert_eq!(handle.state().changes()[1].why, "a stage panicked");
        assert!(handle.pause("late").is_err());
        pipeline.join().unwrap_err();
        assert_eq!(passed(&handle), [Running, Stopped], "{placement}");
    }
}

#[test]
fn paused_producers_wait_and_the_owner_does_not() {
    for placement in placements() {
        let mut pipeline = pipeline(&placement, 2);
        let handle = pipeline.handle();
        handle.pause("a test").unwrap();
        let mut producers = pipeline.take_producers().into_iter();
        let (mut trying, mut waiting) = (producers.next().unwrap(), producers.next().unwrap());
        assert_eq!(
            trying.try_publish(|_| unreachable!("it is paused")),
            Err(TryPublishError::Paused)
        );
        let (sender, published) = channel();
        let theirs = handle.clone();
        let thread = thread::spawn(move || {
            waiting.publish(|event| *event = 7).unwrap();
            sender.send(theirs.state().changes()).unwrap();
        });
        pipeline.publish(|event| *event = 1).unwrap();
        pipeline.try_publish(|event| *event = 1).unwrap();
        pipeline.flush().unwrap();
        // Mostly long enough that the producer sleeps.
        (0..200).for_each(|_| thread::yield_now());
        assert!(published.try_recv().is_err());
        assert_eq!(
            handle
                .pause("twice")
                .unwrap_err()
                .to_string()
                .split(':')
                .next(),
            Some("the pipeline is paused, not running")
        );
        handle.resume("a test").unwrap();
        assert!(
            published
                .recv()
                .unwrap()
                .iter()
                .any(|change| change.from == Paused)
        );
        trying.try_publish(|event| *event = 1).unwrap();
        thread.join().unwrap();
        drop(trying);
        let stats = pipeline.join().unwrap();
        assert_eq!(stats.stages[0].events, 4, "{placement}");
    }
}

/// A producer that is held back is let go by a join, and refused by a drop.
#[test]
fn an_end_of_the_pipeline_ends_a_pause() {
    for placement in placements() {
        for is_joined in [true, false] {
            let mut pipeline = pipeline(&placement, 1);
            let mut producer = pipeline.take_producers().remove(0);
            pipeline.handle().pause("a test").unwrap();
            let thread = thread::spawn(move || producer.publish(|event| *event = 1));
            (0..200).for_each(|_| thread::yield_now());
            if is_joined {
                assert_eq!(pipeline.join().unwrap().stages[0].events, 1);
                thread.join().unwrap().unwrap();
            } else {
                drop(pipeline);
                let stopped = thread.join().unwrap().unwrap_err();
                assert_eq!(stopped.to_string(), "the pipeline has stopped");
            }
        }
    }
}
