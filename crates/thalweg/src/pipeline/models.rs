//! loom models of the messages between threads of a pipeline beside the ring, each with the
//! weakened ordering that it must catch. Steps, sleeps and wake-ups are shuttle's, in
//! `tests/pipeline_shuttle`.

use std::sync::Arc;

use loom::thread;

use super::auto::HandOver;
use super::control::{CALLER, Control};
use super::graph::Graph;
use super::lanes::{Merger, Producer};
use super::meter::{Mark, Meter};
use super::publish::have_passed;
use super::stage::{Context, Member, Observe};
use super::stage_group::{Placed, StageGroup};
use super::stage_wait::StageWait;
use super::timeline::Timeline;
use crate::ring::broadcast::{Availability, Reader, RingBuilder};
use crate::ring::sync::{AtomicU32, Ordering, fault, models};
use crate::state::Lifecycle;
use crate::wait::WaitStrategy;

models! { fault::check;
    what_an_owner_published_before_it_went_is_merged: an_owner_goes, ["change", "changed"];
    what_was_merged_is_counted_before_the_lane_is_empty: a_lane_is_drained, ["release", "reclaim"];
    a_drained_pipeline_shows_what_its_stages_did: a_stage_passes, ["level", "release"];
    a_stage_sees_the_row_of_its_event: a_row_is_opened, ["publish", "observe"];
    the_last_of_two_last_stages_sees_the_times_of_both: a_row_is_closed, ["leave", "all_left"];
    a_stage_that_is_called_back_has_nothing_left_to_do:
        a_stage_is_called_back, ["recall", "recalled", "hand_over_undone"];
}

/// Returns a ring of one slot with a reader, behind one lane that is merged into it.
fn merged() -> (Producer<u32>, Merger<u32>, Reader<u32>, Arc<Control>) {
    let mut builder = RingBuilder::new(1);
    builder.reader(&[]);
    let (publisher, mut readers) = builder.build(|| 0).expect("a valid ring");
    let control = Arc::new(Control::new(1));
    control.enter(Lifecycle::Running, "started");
    let timeline = Arc::new(Timeline::new(1, 20, 1, 1, true));
    let mut merger = Merger::new(publisher, &timeline, &control);
    let wait = StageWait::new(WaitStrategy::Yield, true);
    let producer = merger.lane(1, || 0, CALLER, Default::default(), wait);
    let producer = producer.expect("a valid lane");
    (producer, merger, readers.remove(0), control)
}

/// An owner publishes, drops the pipeline, and leaves its lane open.
fn an_owner_goes() {
    let (mut producer, mut merger, mut reader, control) = merged();
    let merging = thread::spawn(move || {
        while !merger.is_done() {
            merger.merge();
            thread::yield_now();
        }
    });
    producer.try_publish(|event| *event = 1).expect("room");
    control.enter(Lifecycle::Draining, "dropped");
    merging.join().unwrap();
    assert_eq!(
        reader.poll(),
        Availability::Ready(1),
        "it was published before"
    );
}

/// A producer whose lane is empty again learns how much was merged.
fn a_lane_is_drained() {
    let (mut producer, mut merger, reader, control) = merged();
    producer.try_publish(|event| *event = 1).expect("room");
    let merging = thread::spawn(move || {
        merger.merge();
        merger
    });
    while !producer.lane.is_drained() {
        thread::yield_now();
    }
    assert_eq!(control.merged(), 1);
    drop((merging.join().unwrap(), reader));
}

/// A stage's work beside the ring is visible to an owner that saw it pass the event.
fn a_stage_passes() {
    let mut builder = RingBuilder::new(1);
    builder.reader(&[]);
    let (mut publisher, mut readers) = builder.build(|| 0_u32).expect("a valid ring");
    let mut reader = readers.remove(0);
    let progress = reader.progress();
    publisher.publish(|event| *event = 1).expect("room");
    let effect = Arc::new(AtomicU32::new(0));
    let theirs = Arc::clone(&effect);
    let stage = thread::spawn(move || {
        assert_eq!(reader.waiting(), 1);
        theirs.store(1, Ordering::Relaxed);
        reader.release(1);
        reader
    });
    while !have_passed([progress.released()].into_iter(), 1) {
        thread::yield_now();
    }
    assert_eq!(effect.load(Ordering::Relaxed), 1);
    drop(stage.join().unwrap());
}

/// A sampled event's row is written before the event is published.
fn a_row_is_opened() {
    let mut builder = RingBuilder::new(1);
    builder.reader(&[]);
    let (mut publisher, mut readers) = builder.build(|| 0_u32).expect("a valid ring");
    let timeline = Arc::new(Timeline::new(1, 0, 1, 1, false));
    let theirs = Arc::clone(&timeline);
    let publishing = thread::spawn(move || {
        theirs.open(0, 7);
        publisher.publish(|event| *event = 1).expect("room");
        publisher
    });
    if readers[0].waiting() == 1 {
        let row = timeline.row(0);
        assert_eq!((row.sequence(), row.published()), (Some(0), 7));
    }
    drop(publishing.join().unwrap());
}

/// Among two last stages, the one that finds itself the last sees the other's times.
fn a_row_is_closed() {
    let timeline = Arc::new(Timeline::new(1, 0, 2, 2, false));
    timeline.open(0, 1);
    let end = |stage: usize, timeline: &Timeline| {
        let row = timeline.row(0);
        row.spend(stage, 1, Some(1));
        row.go_on(stage, 3);
        let is_last = row.close();
        assert!(
            !is_last || row.ready(&[1 - stage]) == 3,
            "its end is not seen"
        );
        is_last
    };
    let theirs = Arc::clone(&timeline);
    let other = thread::spawn(move || end(1, &theirs));
    let is_last = end(0, &timeline);
    assert!(is_last != other.join().unwrap(), "one of them is the last");
}

/// The caller publishes an event and calls the stage back that is to have it: it comes when it is
/// done.
fn a_stage_is_called_back() {
    let mut builder = RingBuilder::new(1);
    builder.reader(&[]);
    let (mut publisher, mut readers) = builder.build(|| 0_u32).expect("a valid ring");
    let reader = readers.remove(0);
    let control = Arc::new(Control::new(1));
    let timeline = Arc::new(Timeline::new(1, 20, 1, 1, false));
    let graph = Graph {
        after: vec![[].into()],
        last: [0].into(),
    };
    let (name, rows) = (Arc::from("a"), Arc::clone(&timeline));
    let (meter, _) = Meter::new(Arc::clone(&name), reader.progress(), rows, 0, &graph.into());
    let work = Observe(|_: &u32, _: Context| ());
    let stage = Box::new(Member::new(work, meter, 1, Arc::clone(&control)));
    let hand_over = Arc::new(HandOver::default());
    hand_over.offer(vec![Placed {
        name,
        stage,
        reader,
    }]);
    let mut group = StageGroup::new(&timeline, &control);
    hand_over.exchange(&mut group);
    let theirs = Arc::clone(&hand_over);
    let worker = thread::spawn(move || {
        while !group.is_empty() {
            theirs.exchange(&mut group);
            group.round(&mut Mark::default());
            thread::yield_now();
        }
    });
    publisher.publish(|event| *event = 1).expect("room");
    hand_over.recall();
    let is_back = hand_over.wait(|| {
        thread::yield_now();
        true
    });
    assert!(is_back);
    let placed = hand_over.take();
    assert_eq!(placed[0].reader.next_sequence(), 1, "it has the event done");
    worker.join().unwrap();
}
