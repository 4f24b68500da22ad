//! A stage panics wherever it is, at whatever event: it is named, no thread hangs, and each stage
//! had its events once, in order, and after those before it.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use thalweg::pipeline::{Context, Pipeline, PipelineBuilder, Placement};

use crate::pipeline::placements;

/// The events that each stage had.
#[derive(Default)]
struct Course {
    had: [Mutex<Vec<u64>>; 3],
    dropped: [AtomicUsize; 3],
}

/// One stage's, which panics at one event.
struct Note {
    course: Arc<Course>,
    stage: usize,
    panics_at: Option<u64>,
}

impl Note {
    fn take(&self, event: u64, context: Context) {
        assert_eq!(event, context.sequence());
        assert_ne!(Some(event), self.panics_at, "seeded");
        self.course.had[self.stage]
            .lock()
            .expect("no panic under it")
            .push(event);
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.course.dropped[self.stage].fetch_add(1, SeqCst);
    }
}

/// Which stages come after which.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Chain,
    Fan,
    Beside,
}

impl Shape {
    fn befores(self, stage: usize) -> &'static [usize] {
        match (self, stage) {
            (Self::Beside, _) | (_, 0) => &[],
            (Self::Chain, 2) => &[0, 1],
            _ => &[0],
        }
    }

    fn build(self, notes: [Note; 3], capacity: usize, every: u64) -> PipelineBuilder<u64> {
        let [a, b, c] = notes;
        let builder = Pipeline::builder(capacity, || 0).sample_every(every);
        match self {
            Self::Chain => builder
                .stage("a", move |event, context| a.take(*event, context))
                .stage("b", move |event, context| b.take(*event, context))
                .after("a")
                .observe("c", move |event, context| c.take(*event, context))
                .after("b"),
            Self::Fan => builder
                .stage("a", move |event, context| a.take(*event, context))
                .observe("b", move |event, context| b.take(*event, context))
                .after("a")
                .observe("c", move |event, context| c.take(*event, context))
                .after("a"),
            Self::Beside => builder
                .observe("a", move |event, context| a.take(*event, context))
                .observe("b", move |event, context| b.take(*event, context))
                .observe("c", move |event, context| c.take(*event, context)),
        }
    }
}

/// Publishes until the pipeline stops, one by one or in pieces.
fn run(pipeline: &mut Pipeline<u64>, piece: u64) {
    let mut next = 0;
    loop {
        let published = match piece {
            1 => pipeline.publish(|event| *event = next),
            _ => pipeline.publish_batch(piece as usize, |at, event| *event = next + at as u64),
        };
        next += piece;
        if published.is_err() {
            return;
        }
        assert!(next < 1 << 30, "no error was given");
    }
}

fn check(shape: Shape, placement: &Placement, (capacity, every, piece): (usize, u64, u64)) {
    for (panics, at) in [(0, 0), (0, 70), (1, 0), (1, 131), (2, 1), (2, 200)] {
        let what = format!("{shape:?} {placement} {capacity} {every} {piece} {panics} {at}");
        let course = Arc::new(Course::default());
        let notes = std::array::from_fn(|stage| Note {
            course: Arc::clone(&course),
            stage,
            panics_at: (stage == panics).then_some(at),
        });
        let builder = shape.build(notes, capacity, every);
        let mut pipeline = builder
            .placement(placement.clone())
            .build()
            .expect("a valid pipeline");
        run(&mut pipeline, piece);
        let failure = pipeline.join().expect_err("a stage has panicked");
        assert_eq!(failure.stage, ["a", "b", "c"][panics], "{what}");
        let had = course
            .had
            .each_ref()
            .map(|had| had.lock().expect("no panic under it").clone());
        for (stage, own) in had.iter().enumerate() {
            assert!(own.iter().copied().eq(0..own.len() as u64), "{what}");
            for &before in shape.befores(stage) {
                assert!(own.len() <= had[before].len(), "{what}: {stage}");
            }
            assert_eq!(course.dropped[stage].load(SeqCst), 1, "{what}: {stage}");
        }
        assert_eq!(had[panics].len() as u64, at, "{what}");
    }
}

#[test]
fn a_panic_anywhere_is_named_and_repeats_and_skips_nothing() {
    for shape in [Shape::Chain, Shape::Fan, Shape::Beside] {
        for placement in placements() {
            let all = [
                (1, 1, 1),
                (8, 2, 1),
                (2, 512, 3),
                (8, 512, 64),
                (256, 512, 1),
            ];
            // A sanitizer makes every event slow, and others use the memory in the same way.
            let chosen = if cfg!(sanitized) { 2 } else { all.len() };
            for options in &all[..chosen] {
                check(shape, &placement, *options);
            }
        }
    }
}
