//! Publishing where the caller runs all stages, and the question about a state.

use std::hint::black_box;

use thalweg::pipeline::{Pipeline, PipelineBuilder, Placement, SAMPLE_EVERY_MAX};
use thalweg::state::{Lifecycle, StateCell};

use super::{CAPACITY, Cases, rounds};

/// One stage, on the caller's thread; hardly an event is measured.
fn inline() -> PipelineBuilder<u64> {
    Pipeline::builder(CAPACITY, || 0_u64)
        .stage("only", |event, _| *event = black_box(*event + 1))
        .placement(Placement::inline())
        .sample_every(SAMPLE_EVERY_MAX)
}

pub(super) fn add(cases: &mut Cases) {
    cases.insert("pipeline/inline/publish".to_owned(), || {
        let mut pipeline = inline().build().expect("it is valid");
        rounds(move |number| {
            let published = pipeline.publish(|event| *event = number);
            published.expect("no stage panics");
        })
    });
    // A producer besides the owner, which moves the event and runs the stage.
    cases.insert("pipeline/inline/producer-publish".to_owned(), || {
        let mut pipeline = inline().producers(1).build().expect("it is valid");
        let mut producer = pipeline.take_producers().remove(0);
        rounds(move |number| {
            producer.publish(|event| *event = number).expect("room");
            assert!(pipeline.drive().expect("no stage panics"));
        })
    });
    cases.insert("state/is".to_owned(), || {
        let state = StateCell::new("counted", Lifecycle::Running);
        rounds(move |_| assert!(black_box(&state).is(Lifecycle::Running)))
    });
    cases.insert("state/get".to_owned(), || {
        let state = StateCell::new("counted", Lifecycle::Running);
        rounds(move |_| _ = black_box(black_box(&state).get()))
    });
}
