//! Waiting for room: `publish` needs one free slot, and waits for no more than that.
#![allow(clippy::unwrap_used)] // tests, though their functions are not #[test]

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

use thalweg::pipeline::{Pipeline, PipelineBuilder, Placement};
use thalweg::wait::WaitStrategy;

use crate::channel::idle::{Usage, own_id, usage};
use crate::pipeline::watchdog::watched;

const CAPACITY: usize = 64;

/// Placements whose last stage is not on the caller.
fn elsewhere() -> Vec<Placement> {
    let mut all = vec![
        Placement::threads(2),
        Placement::threads(2).waiting(WaitStrategy::Park),
        Placement::caller_and_threads(1, 1),
        Placement::caller_and_threads(1, 1).waiting(WaitStrategy::Park),
    ];
    all.extend(
        WaitStrategy::ALL
            .iter()
            .map(|&strategy| Placement::threads(1).waiting(strategy)),
    );
    all
}

/// Two stages, of which the last calls `last`.
fn two(last: impl FnMut(u64) + Send + 'static) -> PipelineBuilder<u64> {
    let mut last = last;
    Pipeline::builder(CAPACITY, || 0_u64)
        .stage("a", |_: &mut u64, _| ())
        .observe("b", move |event, _| last(*event))
        .after("a")
}

/// Lets one event pass for each permit.
#[derive(Default)]
struct Gate {
    permits: AtomicU64,
    arrived: AtomicU64,
    served: AtomicU64,
    open: AtomicBool,
}

impl Gate {
    fn pass(&self) {
        self.arrived.fetch_add(1, SeqCst);
        while self.served.load(SeqCst) >= self.permits.load(SeqCst) && !self.open.load(SeqCst) {
            std::thread::yield_now();
        }
        self.served.fetch_add(1, SeqCst);
    }

    /// Whether all that had a permit has passed, and the stage has published it, and waits.
    fn waits(&self) -> bool {
        let served = self.served.load(SeqCst);
        served == self.permits.load(SeqCst) && self.arrived.load(SeqCst) > served
    }
}

/// A publisher that has run for this long has looked for room.
const LOOKED_NS: u64 = 5_000_000;

/// Whether a thread sleeps, or has run for a while since it had used `before`; true where the
/// system does not say.
fn has_looked(thread: Option<&str>, before: Option<Usage>) -> bool {
    let now = thread.and_then(usage).zip(before);
    now.is_none_or(|(now, before)| now.is_asleep || now.cpu_ns >= before.cpu_ns + LOOKED_NS)
}

/// Returns how many events were served between a full ring and the return of `publish`. The next
/// permit is given once nothing moves any more, so that this ends whatever `publish` waits for.
fn served_for_one_slot(placement: Placement, producers: usize) -> u64 {
    const STILL: u32 = 2_000;
    let gate = Arc::new(Gate::default());
    let inside = Arc::clone(&gate);
    let mut pipeline = two(move |_| inside.pass())
        .placement(placement)
        .producers(producers)
        .build()
        .unwrap();
    // Full when nothing is taken over a long look: stages may be moving events meanwhile.
    let mut refused = 0;
    while refused < STILL {
        match pipeline.try_publish(|_| ()) {
            Ok(()) => refused = 0,
            Err(_) => refused += 1,
        }
        std::thread::yield_now();
    }
    let returned = AtomicBool::new(false);
    let publisher = own_id();
    let served = std::thread::scope(|scope| {
        let (gate, returned, publisher) = (&gate, &returned, publisher.as_deref());
        let sender = scope.spawn(move || {
            while !returned.load(SeqCst) {
                while !gate.waits() && !returned.load(SeqCst) {
                    std::thread::yield_now();
                }
                // An event that passed may have made room: then the publisher is woken by now.
                let before = publisher.and_then(usage);
                let mut still = 0;
                while !returned.load(SeqCst) && (still < STILL || !has_looked(publisher, before)) {
                    still += 1;
                    std::thread::yield_now();
                }
                if !returned.load(SeqCst) {
                    gate.permits.fetch_add(1, SeqCst);
                }
            }
            gate.served.load(SeqCst)
        });
        pipeline.publish(|_| ()).unwrap();
        returned.store(true, SeqCst);
        sender.join().unwrap()
    });
    gate.open.store(true, SeqCst);
    pipeline.join().unwrap();
    served
}

#[test]
fn publish_returns_once_there_is_room_for_its_event() {
    for placement in elsewhere() {
        let label = placement.clone();
        let served = watched(move || served_for_one_slot(placement, 0));
        // The sender may have been a few permits ahead of a thread that had to wake up.
        assert!(served <= 4, "{label}: {served} events for one slot");
    }
}

/// Publishes the numbers up to `count` that were not, in batches, and takes results between two
/// publishes and nowhere else, then the rest.
fn drain_between(
    mut pipeline: Pipeline<u64>,
    receiver: &mpsc::Receiver<u64>,
    numbers: Range<u64>,
    batch: usize,
) {
    let count = numbers.end;
    let mut received = Vec::new();
    for first in numbers.step_by(batch) {
        pipeline
            .publish_batch(batch, |at, event| *event = first + at as u64)
            .unwrap();
        received.extend(receiver.try_iter());
    }
    while (received.len() as u64) < count {
        received.push(receiver.recv().unwrap());
    }
    assert_eq!(received, (0..count).collect::<Vec<_>>());
    // All is answered, and the pipeline is alive: it has nothing to end for.
    pipeline.flush().unwrap();
    pipeline.join().unwrap();
}

/// The last stage sends into a channel of `room` elements.
fn drained_between(placement: Placement, room: usize, batch: usize) {
    let (sender, receiver) = mpsc::sync_channel(room);
    let builder = two(move |event| sender.send(event).unwrap()).placement(placement);
    drain_between(builder.build().unwrap(), &receiver, 0..2_000, batch);
}

#[test]
fn a_last_stage_may_wait_for_the_caller_to_take_its_results_between_publishes() {
    for placement in elsewhere() {
        for (room, batch) in [(2, 1), (CAPACITY, 1), (CAPACITY, 8)] {
            let placement = placement.clone();
            watched(move || drained_between(placement, room, batch));
        }
    }
}

/// Two last stages, of which one waits until the caller has taken its results between publishes.
fn two_last(on_thread: &[&[&str]], strategy: WaitStrategy) {
    let (sender, receiver) = mpsc::sync_channel(2);
    let placement = on_thread.iter().fold(Placement::explicit(), |all, stages| {
        all.on_thread(stages.iter().copied())
    });
    let pipeline = Pipeline::builder(CAPACITY, || 0_u64)
        .stage("a", |_: &mut u64, _| ())
        .observe("other", |_, _| ())
        .after("a")
        .observe("waits", move |event, _| sender.send(*event).unwrap())
        .after("a")
        .placement(placement.waiting(strategy))
        .build()
        .unwrap();
    drain_between(pipeline, &receiver, 0..300, 1);
}

#[test]
fn one_of_two_last_stages_on_a_thread_may_wait_for_the_caller() {
    for &strategy in WaitStrategy::ALL {
        watched(move || two_last(&[&["a", "other", "waits"]], strategy));
        watched(move || two_last(&[&["other", "waits"], &["a"]], strategy));
    }
}

/// As [`two_last`] with the first stage on another thread, which comes ahead while the one that
/// does not wait is at its first event: the one that waits must not go ahead of its fellow.
fn ahead_of_its_fellow(strategy: WaitStrategy) {
    let (sender, receiver) = mpsc::sync_channel(2);
    let ahead = Arc::new(AtomicU64::new(0));
    let reached = Arc::clone(&ahead);
    let begun = Arc::new(AtomicBool::new(false));
    let is_begun = Arc::clone(&begun);
    let mut pipeline = Pipeline::builder(CAPACITY, || 0_u64)
        .stage("a", move |_: &mut u64, context| {
            reached.store(context.sequence(), SeqCst);
        })
        .observe("other", move |_, context| {
            begun.store(true, SeqCst);
            while context.sequence() == 0 && ahead.load(SeqCst) < CAPACITY as u64 - 1 {
                std::thread::yield_now();
            }
        })
        .after("a")
        .observe("waits", move |event, _| sender.send(*event).unwrap())
        .after("a")
        .placement(
            Placement::explicit()
                .on_thread(["other", "waits"])
                .on_thread(["a"])
                .waiting(strategy),
        )
        .build()
        .unwrap();
    // Alone, so that it is the only one that "other" finds.
    pipeline.publish(|event| *event = 0).unwrap();
    while !is_begun.load(SeqCst) {
        std::thread::yield_now();
    }
    drain_between(pipeline, &receiver, 1..300, 1);
}

#[test]
fn a_last_stage_that_may_wait_does_not_go_ahead_of_its_fellow_on_the_thread() {
    for &strategy in WaitStrategy::ALL {
        watched(move || ahead_of_its_fellow(strategy));
    }
}

#[test]
fn a_last_stage_may_wait_for_the_caller_though_another_thread_needs_its_fellow() {
    for &strategy in WaitStrategy::ALL {
        watched(move || two_last(&[&["a", "waits"], &["other"]], strategy));
    }
}

/// Stages "a" and "b" share a thread; "b" waits until "c", on another one, is done with the event
/// before.
fn waits_for_a_later_stage(strategy: WaitStrategy) {
    const COUNT: u64 = 100;
    let settled = Arc::new(AtomicU64::new(0));
    let set = Arc::clone(&settled);
    let mut pipeline = Pipeline::builder(CAPACITY, || 0_u64)
        .stage("a", |_: &mut u64, _| ())
        .stage("b", move |_, context| {
            while settled.load(SeqCst) < context.sequence() {
                std::thread::yield_now();
            }
        })
        .after("a")
        .progress(1)
        .observe("c", move |_, context| {
            set.store(context.sequence() + 1, SeqCst)
        })
        .after("b")
        .placement(
            Placement::explicit()
                .on_thread(["a", "b"])
                .on_thread(["c"])
                .waiting(strategy),
        )
        .build()
        .unwrap();
    pipeline.publish_batch(COUNT as usize, |_, _| ()).unwrap();
    pipeline.flush().unwrap();
    pipeline.join().unwrap();
}

#[test]
fn a_stage_with_a_progress_of_1_may_wait_for_a_later_one_however_threads_wait() {
    for &strategy in WaitStrategy::ALL {
        watched(move || waits_for_a_later_stage(strategy));
    }
}
