//! Pipelines of drawn stages, placements, waits and ends: whatever the mix, it ends, and every
//! stage gets every event.

use crate::pipeline_shuttle::{STACK_BYTES, explored};
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use thalweg::pipeline::{Context, Flow, Pipeline, PipelineBuilder, Placement, TryPublishError};
use thalweg::wait::WaitStrategy;
use thalweg_testkit::Random;

/// Draws, always the same for a seed.
struct Dice(Random);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        (self.0.next_u64() >> 33) as usize % sides
    }

    fn of<V: Clone>(&mut self, values: &[V]) -> V {
        values[self.below(values.len())].clone()
    }
}

/// The work of a stage on an event: it counts it, and panics at a drawn one.
#[derive(Clone)]
struct Work {
    done: Arc<AtomicU64>,
    panics_at: Option<u64>,
}

impl Work {
    fn on(&self, context: Context) {
        if self.panics_at == Some(context.sequence()) {
            // Without the hook, which would print it for each schedule.
            std::panic::resume_unwind(Box::new("seeded"));
        }
        self.done.fetch_add(1, SeqCst);
    }
}

struct Drawn {
    builder: PipelineBuilder<u64>,
    names: Vec<String>,
    /// Stages, shards counted one by one.
    threads_max: usize,
    done: Vec<Arc<AtomicU64>>,
    panics: bool,
}

/// Stages in levels, each behind all of the level before.
fn stages(dice: &mut Dice) -> Drawn {
    let mut drawn = Drawn {
        builder: Pipeline::builder(dice.of(&[1, 2, 4]), || 0_u64),
        names: vec![],
        threads_max: 0,
        done: vec![],
        panics: false,
    };
    let mut before: Vec<String> = vec![];
    for level in 0..1 + dice.below(3) {
        let kind = dice.below(5);
        let mut names = vec![];
        for at in 0..if kind < 2 { 1 + dice.below(3) } else { 1 } {
            let name = format!("{level}.{at}");
            let panics_at = (dice.below(12) == 0).then(|| dice.below(6) as u64);
            drawn.panics |= panics_at.is_some();
            let work = Work {
                done: Arc::default(),
                panics_at,
            };
            drawn.done.push(Arc::clone(&work.done));
            drawn.threads_max += if kind == 2 { 2 } else { 1 };
            let builder = drawn.builder;
            let mut builder = match kind {
                0 | 1 => builder.observe(&name, move |_, context| work.on(context)),
                2 => builder.sharded(
                    &name,
                    2,
                    |event| *event as usize,
                    move |_| {
                        let work = work.clone();
                        move |_: &mut u64, context| work.on(context)
                    },
                ),
                3 => builder.stage(&name, move |_, context| work.on(context)),
                _ => builder.stage_chunks(&name, move |chunk| {
                    chunk.try_for_each(|_, context| {
                        work.on(context);
                        Flow::Next
                    })
                }),
            };
            builder = builder.progress(dice.of(&[1, 2, 64, usize::MAX]));
            drawn.builder = before
                .iter()
                .fold(builder, |builder, name| builder.after(name));
            names.push(name);
        }
        drawn.names.extend(names.iter().cloned());
        before = names;
    }
    drawn
}

fn placement(dice: &mut Dice, names: &[String], threads_max: usize) -> Placement {
    let placement = match dice.below(6) {
        0 => Placement::inline(),
        1 => Placement::auto(),
        2 => Placement::threads(1 + dice.below(threads_max)),
        3 if threads_max > 1 => {
            let kept = 1 + dice.below(threads_max - 1);
            Placement::caller_and_threads(kept, 1 + dice.below(threads_max - kept))
        }
        _ => {
            let mut seats = vec![vec![]; 3];
            for name in names {
                seats[dice.below(3)].push(name.as_str());
            }
            let explicit = Placement::explicit().on_caller(seats.remove(0));
            seats.into_iter().fold(explicit, Placement::on_thread)
        }
    };
    placement.waiting(dice.of(WaitStrategy::ALL))
}

/// Publishes some events in drawn ways, until the end or a failure.
fn publish(dice: &mut Dice, pipeline: &mut Pipeline<u64>, count: u64) {
    let mut number = 0;
    while number < count {
        let outcome = match dice.below(3) {
            0 => pipeline.publish(|event| *event = number).map(|()| 1),
            1 => {
                let batch = (1 + dice.below(4) as u64).min(count - number);
                let write = |at, event: &mut u64| *event = number + at as u64;
                pipeline
                    .publish_batch(batch as usize, write)
                    .map(|()| batch)
            }
            _ => match pipeline.try_publish(|event| *event = number) {
                Ok(()) => Ok(1),
                Err(TryPublishError::Stopped(stopped)) => Err(stopped),
                Err(_) => {
                    thread::yield_now();
                    Ok(0)
                }
            },
        };
        match outcome {
            Ok(published) => number += published,
            Err(_) => return,
        }
    }
}

fn medley(seed: u64) {
    let dice = &mut Dice(Random(seed));
    let drawn = stages(dice);
    let placement = placement(dice, &drawn.names, drawn.threads_max);
    let producers = dice.of(&[0, 0, 1, 2]);
    let mut pipeline = drawn
        .builder
        .placement(placement)
        .producers(producers)
        .sample_every(dice.of(&[1, 2, 64]))
        .build()
        .unwrap();
    let count = dice.below(10) as u64;
    let spawn = |mut producer: thalweg::pipeline::Producer<u64>| {
        thread::spawn(move || {
            let _ = (0..count).try_for_each(|number| producer.publish(|event| *event = number));
        })
    };
    let mut threads: Vec<_> = pipeline.take_producers().into_iter().map(spawn).collect();
    // Where all is inline, for there must be two.
    threads.push(thread::spawn(thread::yield_now));
    publish(dice, &mut pipeline, count);
    let mut is_whole = !drawn.panics;
    if dice.below(2) == 0 {
        let drained = pipeline.flush();
        assert!(drained.is_ok() || drawn.panics);
    }
    if dice.below(2) == 0 {
        drop(pipeline);
        is_whole &= producers == 0;
    } else {
        let joined = pipeline.join();
        assert!(joined.is_ok() || drawn.panics);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    for done in drawn.done {
        let all = count * (producers as u64 + 1);
        assert!(
            !is_whole || done.load(SeqCst) == all,
            "some events are missing"
        );
    }
}

/// The number of schedules of each kind, for each mix.
pub(crate) const SCHEDULES: usize = 4;

#[test]
fn every_mix_ends_with_every_event_at_every_stage() {
    let seeds = std::env::var("THALWEG_SEED").map_or(0..300, |text| {
        let first = text.parse().unwrap();
        first..first + 1_000
    });
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| {
            explored::explore(SCHEDULES, STACK_BYTES, move || medley(seed));
        });
        assert!(outcome.is_ok(), "medley {seed}");
    }
}
