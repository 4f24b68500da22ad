//! Several producers, which stay until everything is answered or the pipeline has gone.

use crate::pipeline_shuttle::{answering, explore};
use shuttle::sync::mpsc::channel;
use shuttle::thread;
use thalweg::pipeline::Placement;
use thalweg::wait::WaitStrategy;

const PRODUCERS: usize = 2;
const EACH: u64 = 3;

#[test]
fn living_producers_are_all_served() {
    explore(|| {
        let (builder, answers) = answering(1);
        let mut pipeline = builder
            .placement(Placement::threads(2))
            .producers(PRODUCERS)
            .build()
            .unwrap();
        let producers: Vec<_> = pipeline
            .take_producers()
            .into_iter()
            .map(|mut producer| {
                let (leave, left) = channel::<()>();
                let thread = thread::spawn(move || {
                    for number in 0..EACH {
                        producer.publish(|event| *event = number).unwrap();
                    }
                    // It lives until everything was answered.
                    left.recv().unwrap();
                });
                (thread, leave)
            })
            .collect();
        for number in 0..EACH {
            pipeline.publish(|event| *event = number).unwrap();
        }
        let mut seen: Vec<u64> = (0..EACH * (PRODUCERS as u64 + 1))
            .map(|_| answers.recv().unwrap())
            .collect();
        seen.sort_unstable();
        let expected = (1..=EACH).flat_map(|number| [number; PRODUCERS + 1]);
        assert_eq!(seen, expected.collect::<Vec<_>>());
        for (thread, leave) in producers {
            leave.send(()).unwrap();
            thread.join().unwrap();
        }
        pipeline.join().unwrap();
    });
}

#[test]
fn an_abandoned_pipeline_serves_its_owners_events() {
    explore(|| {
        let (builder, answers) = answering(2);
        let mut pipeline = builder
            .placement(Placement::threads(1))
            .producers(1)
            .build()
            .unwrap();
        let mut producer = pipeline.take_producers().remove(0);
        let (leave, left) = channel::<()>();
        let thread = thread::spawn(move || {
            let _ = (0..4).try_for_each(|_| producer.publish(|event| *event = 100));
            // It lives on: no thread may wait for its end.
            left.recv().unwrap();
        });
        for number in 0..3 {
            pipeline.publish(|event| *event = number).unwrap();
        }
        drop(pipeline);
        let owners: Vec<u64> = answers.iter().filter(|&answer| answer < 100).collect();
        assert_eq!(owners, [1, 2, 3]);
        leave.send(()).unwrap();
        thread.join().unwrap();
    });
}

#[test]
fn an_owner_may_publish_and_go_at_once() {
    explore(|| {
        let (builder, answers) = answering(2);
        let mut pipeline = builder
            .placement(Placement::threads(1))
            .producers(1)
            .build()
            .unwrap();
        let living = pipeline.take_producers();
        pipeline.publish(|event| *event = 1).unwrap();
        drop(pipeline);
        assert_eq!(answers.iter().collect::<Vec<_>>(), [2]);
        drop(living);
    });
}

/// The merger has an event and no room, and learns that its owner has gone: it waits for the other
/// thread, and does not keep it from running.
#[test]
fn an_abandoned_pipeline_waits_for_room() {
    explore(|| {
        let (builder, answers) = answering(1);
        let mut pipeline = builder
            .placement(Placement::threads(2).waiting(WaitStrategy::Park))
            .producers(1)
            .build()
            .unwrap();
        let living = pipeline.take_producers();
        for number in 0..3 {
            pipeline.publish(|event| *event = number).unwrap();
        }
        drop(pipeline);
        assert_eq!(answers.iter().collect::<Vec<_>>(), [1, 2, 3]);
        drop(living);
    });
}
