//! Options that a builder refuses, with the texts of its errors.

use thalweg::pipeline::{Pipeline, PipelineBuilder, PipelineError, Placement};

#[test]
fn clashing_stages_are_named() {
    let build = |builder: PipelineBuilder<u64>| builder.build().unwrap_err().to_string();
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
    let text = |builder: PipelineBuilder<u64>| builder.build().unwrap_err().to_string();
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
        text(stage().producers(usize::MAX)),
        "18446744073709551615 producers asked for; a pipeline has at most 1024"
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
        Err(PipelineError::UnknownStage { .. })
    ));
}
