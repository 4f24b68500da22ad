//! A stage panics while others sleep: every thread learns of it.

use crate::pipeline_shuttle::explore;
use shuttle::thread;
use thalweg::pipeline::{Pipeline, Placement};
use thalweg::wait::WaitStrategy;

fn panics(placement: Placement, producers: usize) {
    let mut pipeline = Pipeline::builder(1, || 0_u64)
        .stage("a", |_: &mut u64, _| ())
        .observe("b", |_, context| {
            if context.sequence() == 2 {
                // Without the hook, which would print it for each schedule.
                std::panic::resume_unwind(Box::new("seeded"));
            }
        })
        .after("a")
        .placement(placement)
        .producers(producers)
        .build()
        .unwrap();
    let threads: Vec<_> = pipeline
        .take_producers()
        .into_iter()
        .map(|mut producer| {
            thread::spawn(move || {
                let stopped = (0..100).find_map(|n| producer.publish(|event| *event = n).err());
                stopped.unwrap();
            })
        })
        .collect();
    let stopped = (0..100).find_map(|n| pipeline.publish(|event| *event = n).err());
    assert_eq!(stopped.unwrap().failure.unwrap().stage, "b");
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(pipeline.join().unwrap_err().message, "seeded");
}

#[test]
fn the_caller_asleep_for_room_hears_of_it() {
    explore(|| panics(Placement::threads(2).waiting(WaitStrategy::Park), 0));
}

#[test]
fn producers_asleep_for_room_hear_of_it() {
    explore(|| panics(Placement::threads(2), 2));
}

#[test]
fn the_caller_that_merges_hears_of_it() {
    explore(|| panics(Placement::caller_and_threads(1, 1), 1));
}
