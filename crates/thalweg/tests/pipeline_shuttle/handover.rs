//! From the caller to its stage threads and back: answers, room, and the hand-over of `auto`.

use crate::pipeline_shuttle::{answering, explore};
use shuttle::sync::mpsc::{Receiver, sync_channel};
use thalweg::pipeline::{Pipeline, Placement};
use thalweg::wait::WaitStrategy;

/// Each event's answer is awaited without touching the pipeline.
fn answered(placement: Placement) {
    let (builder, answers) = answering(2);
    let mut pipeline = builder
        .placement(placement)
        // `auto` moves stages at each sample; between two, they stay.
        .sample_every(2)
        .build()
        .unwrap();
    for number in 0..8 {
        pipeline.publish(|event| *event = number).unwrap();
        assert_eq!(answers.recv().unwrap(), number + 1);
    }
    pipeline.flush().unwrap();
    pipeline.join().unwrap();
}

#[test]
fn answers_of_one_thread() {
    explore(|| answered(Placement::threads(1)));
}

#[test]
fn answers_of_two_threads() {
    explore(|| answered(Placement::threads(2).waiting(WaitStrategy::Park)));
}

#[test]
fn answers_behind_the_caller() {
    explore(|| answered(Placement::caller_and_threads(1, 1)));
}

#[test]
fn answers_while_stages_change_hands() {
    explore(|| answered(Placement::auto()));
}

/// More events than the ring has slots, and answers are taken afterwards.
fn through_a_full_ring(placement: Placement) {
    let (builder, answers) = answering(2);
    let mut pipeline = builder.placement(placement).build().unwrap();
    for number in 0..6 {
        pipeline.publish(|event| *event = number).unwrap();
    }
    for number in 0..6 {
        assert_eq!(answers.recv().unwrap(), number + 1);
    }
    pipeline.join().unwrap();
}

#[test]
fn room_comes_from_one_thread() {
    explore(|| through_a_full_ring(Placement::threads(1)));
}

#[test]
fn room_comes_from_two_threads() {
    explore(|| through_a_full_ring(Placement::threads(2)));
}

#[test]
fn room_comes_while_stages_change_hands() {
    explore(|| through_a_full_ring(Placement::auto().waiting(WaitStrategy::Park)));
}

/// Publishes, takes results between publishes, and then the rest.
fn drain_between(mut pipeline: Pipeline<u64>, results: &Receiver<u64>) {
    const COUNT: u64 = 8;
    let mut seen = Vec::new();
    for number in 0..COUNT {
        pipeline.publish(|event| *event = number).unwrap();
        seen.extend(results.try_iter());
    }
    while (seen.len() as u64) < COUNT {
        seen.push(results.recv().unwrap());
    }
    assert_eq!(seen, (0..COUNT).collect::<Vec<_>>());
    pipeline.join().unwrap();
}

/// The last stage waits until the caller takes its results.
fn drained_between(placement: Placement) {
    let (sender, results) = sync_channel(1);
    let pipeline = Pipeline::builder(4, || 0_u64)
        .stage("a", |_: &mut u64, _| ())
        .observe("b", move |event, _| sender.send(*event).unwrap())
        .after("a")
        .placement(placement)
        // As above.
        .sample_every(2)
        .build()
        .unwrap();
    drain_between(pipeline, &results);
}

#[test]
fn results_are_drained_between_publishes() {
    explore(|| drained_between(Placement::threads(1)));
}

#[test]
fn results_are_drained_by_a_caller_that_sleeps() {
    explore(|| drained_between(Placement::threads(1).waiting(WaitStrategy::Park)));
}

#[test]
fn results_of_a_stage_alone_are_drained_between_publishes() {
    explore(|| drained_between(Placement::caller_and_threads(1, 1)));
}

#[test]
fn results_of_two_threads_are_drained_between_publishes() {
    explore(|| drained_between(Placement::threads(2)));
}

/// "waits" waits for the caller, which needs "other", on the same thread, for room.
#[test]
fn results_are_drained_beside_another_last_stage() {
    explore(|| {
        let (sender, results) = sync_channel(1);
        let pipeline = Pipeline::builder(4, || 0_u64)
            .stage("a", |_: &mut u64, _| ())
            .observe("other", |_, _| ())
            .after("a")
            .observe("waits", move |event, _| sender.send(*event).unwrap())
            .after("a")
            .placement(
                Placement::explicit()
                    .on_thread(["other", "waits"])
                    .on_thread(["a"])
                    .waiting(WaitStrategy::Park),
            )
            .build()
            .unwrap();
        drain_between(pipeline, &results);
    });
}

/// The end of the first stage is no news while the others have still to wait for another thread: a
/// thread that took it for such would never give that one a turn.
#[test]
fn a_thread_whose_first_stage_is_done_sleeps() {
    explore(|| {
        let mut pipeline = Pipeline::builder(4, || 0_u64)
            .stage("a", |_: &mut u64, _| ())
            .stage("b", |_, _| ())
            .after("a")
            .stage("c", |_, _| ())
            .after("b")
            .placement(
                Placement::explicit()
                    .on_thread(["a", "c"])
                    .on_thread(["b"])
                    .waiting(WaitStrategy::Park),
            )
            .build()
            .unwrap();
        pipeline.publish_batch(4, |_, _| ()).unwrap();
        pipeline.join().unwrap();
    });
}

#[test]
fn results_are_drained_while_stages_change_hands() {
    explore(|| drained_between(Placement::auto().waiting(WaitStrategy::Park)));
}
