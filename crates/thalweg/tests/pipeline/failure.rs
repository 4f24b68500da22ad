//! Panics and abandoned pipelines in the places where a thread waits: each of these once hung.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};

use thalweg::pipeline::{Failure, Flow, Pipeline, Placement, Processed};
use thalweg::wait::WaitStrategy;

use crate::pipeline::watchdog::watched;

/// Lets an event pass only when stage "b" is done with the one before, which it never is from event
/// 4 on, since "b" panics at 3.
fn blocked_behind_a_panic(placement: Placement) -> Failure {
    let done = Arc::new(AtomicU64::new(0));
    let see = Arc::clone(&done);
    let mut pipeline = Pipeline::builder(8, || 0u64)
        .stage_chunks("a", move |chunk| {
            chunk.try_for_each(|_: &mut u64, context| {
                if context.sequence() <= see.load(SeqCst) {
                    Flow::Next
                } else {
                    Flow::Retry
                }
            })
        })
        .stage("b", move |_, context| {
            assert!(context.sequence() != 3, "seeded");
            done.store(context.sequence() + 1, SeqCst);
        })
        .after("a")
        .placement(placement)
        .build()
        .expect("a valid pipeline");
    // All at once, so that "a" has events left whenever the panic comes. An error here is fine.
    let _ = pipeline.publish_batch(8, |_, _| ());
    pipeline.join().expect_err("\"b\" panics")
}

#[test]
fn a_stage_that_waits_on_a_thread_for_one_that_panicked_does_not_wait_for_ever() {
    let failure = watched(|| blocked_behind_a_panic(Placement::threads(2)));
    assert_eq!(failure.stage, "b");
}

#[test]
fn a_stage_that_waits_on_the_caller_for_one_that_panicked_does_not_wait_for_ever() {
    let placement = Placement::explicit().on_caller(["a"]).on_thread(["b"]);
    let failure = watched(|| blocked_behind_a_panic(placement));
    assert_eq!(failure.stage, "b");
}

/// Panics when it is dropped, unless that is part of another panic.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("seeded in drop");
        }
    }
}

/// Counts when it is dropped.
struct Tally(Arc<AtomicU64>);

impl Drop for Tally {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Returns the placements of stages "a", "b" and "c".
fn placements() -> [Placement; 5] {
    [
        Placement::inline(),
        Placement::threads(1),
        Placement::threads(3),
        Placement::explicit().on_caller(["b"]).on_thread(["a", "c"]),
        Placement::explicit().on_thread(["b"]).on_caller(["a", "c"]),
    ]
}

#[test]
fn what_a_stage_holds_may_panic_in_its_drop_and_that_is_the_stages_failure() {
    for placement in placements() {
        for producers in [0, 1] {
            let asleep = placement.clone().waiting(WaitStrategy::Park);
            let dropped = Arc::new(AtomicU64::new(0));
            let (first, bomb, last) = (Tally(Arc::clone(&dropped)), Bomb, Tally(dropped.clone()));
            let seen = Arc::new(AtomicU64::new(0));
            let see = Arc::clone(&seen);
            let failure = watched(move || {
                let mut pipeline = Pipeline::builder(4, || 0u64)
                    .stage("a", move |_: &mut u64, _| _ = &first)
                    .stage("b", move |_, _| _ = &bomb)
                    .after("a")
                    .observe("c", move |_, _| {
                        let _ = &last;
                        see.fetch_add(1, SeqCst);
                    })
                    .after("b")
                    .producers(producers)
                    .placement(asleep)
                    .build()
                    .unwrap();
                for _ in 0..10 {
                    pipeline.publish(|_| ()).unwrap();
                }
                pipeline.flush().unwrap();
                pipeline.join().unwrap_err()
            });
            assert_eq!(failure.stage, "b", "{placement}");
            assert_eq!(failure.message, "seeded in drop", "{placement}");
            assert_eq!(seen.load(SeqCst), 10, "{placement}");
            assert_eq!(dropped.load(SeqCst), 2, "{placement}: the others go too");
        }
    }
}

/// Is thrown by a panic, and panics itself when it is dropped, with another one.
struct Thrown(u32);

impl Drop for Thrown {
    fn drop(&mut self) {
        if let Some(more) = self.0.checked_sub(1) {
            panic_any(Thrown(more));
        }
    }
}

/// Throws that when it is dropped.
struct Thrower;

impl Drop for Thrower {
    fn drop(&mut self) {
        panic_any(Thrown(2));
    }
}

/// The payload of a panic may panic when it is dropped. It once ended the thread half way through
/// letting its stages go: the others were never woken, and the caller's own panic went on in
/// `publish`.
#[test]
fn what_a_panic_throws_may_panic_in_its_drop_and_all_threads_get_the_error() {
    for placement in placements() {
        for (producers, at_work) in [(0, true), (0, false), (1, true), (1, false)] {
            let asleep = placement.clone().waiting(WaitStrategy::Park);
            let dropped = Arc::new(AtomicU64::new(0));
            let (first, last) = (Tally(Arc::clone(&dropped)), Tally(dropped.clone()));
            let thrower = (!at_work).then(|| Thrower);
            let run = move || {
                let mut pipeline = Pipeline::builder(4, || 0u64)
                    .stage("a", move |_: &mut u64, _| _ = &first)
                    .stage("b", move |_, context| {
                        let _ = &thrower;
                        if at_work && context.sequence() == 3 {
                            panic_any(Thrown(2));
                        }
                    })
                    .after("a")
                    .observe("c", move |_, _| _ = &last)
                    .after("b")
                    .producers(producers)
                    .placement(asleep)
                    .build()
                    .unwrap();
                for _ in 0..10 {
                    // It may get the failure already.
                    let _ = pipeline.publish(|_| ());
                }
                pipeline.join().unwrap_err()
            };
            // A thread that drops the payload here panics, so none may.
            let failure = watched(|| catch_unwind(AssertUnwindSafe(run)).map_err(std::mem::forget));
            let failure = failure.expect("the panic goes no further");
            assert_eq!(failure.stage, "b", "{placement}");
            assert_eq!(
                failure.message, "(a payload that is not text)",
                "{placement}"
            );
            assert_eq!(dropped.load(SeqCst), 2, "{placement}: the others go too");
        }
    }
}

#[test]
fn an_event_may_panic_in_its_drop_and_that_is_a_failure() {
    let placements = [
        Placement::inline(),
        Placement::threads(1),
        Placement::threads(2),
        Placement::explicit().on_caller(["a"]).on_thread(["b"]),
        Placement::explicit().on_thread(["a"]).on_caller(["b"]),
    ];
    for placement in placements {
        for producers in [0, 1] {
            let asleep = placement.clone().waiting(WaitStrategy::Park);
            let dropped = Arc::new(AtomicU64::new(0));
            let (first, last) = (Tally(Arc::clone(&dropped)), Tally(dropped.clone()));
            let run = move || {
                let mut pipeline = Pipeline::builder(4, || None)
                    .stage("a", move |_: &mut Option<Bomb>, _| _ = &first)
                    .observe("b", move |_, _| _ = &last)
                    .after("a")
                    .producers(producers)
                    .placement(asleep)
                    .build()
                    .unwrap();
                pipeline.publish(|event| *event = Some(Bomb)).unwrap();
                pipeline.flush().unwrap();
                pipeline.join().unwrap_err()
            };
            let failure = watched(|| catch_unwind(AssertUnwindSafe(run)).map_err(drop));
            let failure = failure.expect("the panic goes no further");
            assert_eq!(failure.message, "seeded in drop", "{placement}");
            assert_eq!(dropped.load(SeqCst), 2, "{placement}: the stages go too");
        }
    }
}

#[test]
fn a_producer_with_stages_of_its_own_hears_of_another_threads_failure_at_once() {
    let mut pipeline = Pipeline::builder(1 << 12, || 0u64)
        .stage("a", |_, _| ())
        .stage("b", |_, _| panic!("seeded"))
        .after("a")
        .placement(Placement::explicit().on_caller(["a"]).on_thread(["b"]))
        .build()
        .unwrap();
    // It may get the failure of its first event already.
    let _ = pipeline.publish(|_| ());
    while pipeline.failure().is_none() {
        std::thread::yield_now();
    }
    // The ring is far from full, so that nothing but the failure itself can give the error.
    let stopped = pipeline.publish(|_| ()).unwrap_err();
    assert_eq!(stopped.failure.unwrap().stage, "b");
}

#[test]
fn an_owner_that_waits_for_its_lane_hears_of_a_failure_behind_its_own_stage() {
    const IN_FLIGHT: u64 = 8;
    let written = Arc::new(AtomicU64::new(0));
    let see = Arc::clone(&written);
    let (published, failure) = watched(move || {
        let mut pipeline = Pipeline::builder(4, || 0u64)
            .stage("a", |_, _| ())
            .stage("b", move |_, _| {
                // Until the ring and the lane are full: the owner can only wait then.
                while see.load(SeqCst) < IN_FLIGHT {
                    std::thread::yield_now();
                }
                panic!("seeded");
            })
            .after("a")
            .producers(1)
            .placement(Placement::explicit().on_caller(["a"]).on_thread(["b"]))
            .build()
            .unwrap();
        let mut published = 0;
        while pipeline
            .publish(|_| _ = written.fetch_add(1, SeqCst))
            .is_ok()
        {
            published += 1;
        }
        (published, pipeline.join().unwrap_err())
    });
    assert!(published <= IN_FLIGHT, "{published}");
    assert_eq!(failure.stage, "b");
}

#[test]
fn dropping_the_pipeline_loses_nothing_of_what_its_owner_put_into_a_lane() {
    let seen = Arc::new(AtomicU64::new(0));
    let out = Arc::clone(&seen);
    watched(move || {
        let mut pipeline = Pipeline::builder(4, || 0u64)
            .stage("quick", |_, _| ())
            .observe("slow", move |_, _| {
                let begin = std::time::Instant::now();
                while begin.elapsed().as_millis() < 2 {
                    std::thread::yield_now();
                }
                out.fetch_add(1, SeqCst);
            })
            .after("quick")
            .producers(1)
            .placement(Placement::threads(2))
            .build()
            .unwrap();
        drop(pipeline.take_producers());
        for _ in 0..8 {
            pipeline.publish(|_| ()).unwrap();
        }
    });
    assert_eq!(seen.load(SeqCst), 8);
}

/// The result of a chunk says nothing of another one, whose events no stage has worked on.
#[test]
fn what_another_chunk_gave_is_refused() {
    for placement in [Placement::inline(), Placement::threads(1)] {
        let kept = Arc::new(Mutex::new(Vec::<Processed>::new()));
        let mine = Arc::clone(&kept);
        let mut first = Pipeline::builder(64, || 0_u64)
            .stage_chunks("first", move |chunk| {
                mine.lock().unwrap().push(chunk.for_each(|_, _| ()));
                panic!("seeded");
            })
            .placement(placement.clone())
            .build()
            .expect("a valid pipeline");
        let _ = first.publish_batch(32, |_, _| ());
        drop(first);
        let seen = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&seen);
        let mut second = Pipeline::builder(64, || 0_u64)
            .stage_chunks("second", move |chunk| {
                let foreign = kept.lock().unwrap().pop();
                foreign.unwrap_or_else(|| chunk.for_each(|_, _| ()))
            })
            .observe("after", move |_, _| _ = counted.fetch_add(1, SeqCst))
            .after("second")
            .placement(placement)
            .build()
            .expect("a valid pipeline");
        let _ = second.publish_batch(40, |_, _| ());
        let failure = second.join().expect_err("it is refused");
        assert_eq!(failure.stage, "second");
        assert_eq!(failure.message, "it returned what another chunk gave");
        assert_eq!(seen.load(SeqCst), 0, "no event goes on");
    }
}

/// A closure that writes an event panics at any of them: each event that was published goes through
/// once, and the pipeline goes on.
#[test]
fn a_write_that_panics_publishes_nothing_of_its_own() {
    for at in 0..40 {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let mut pipeline = Pipeline::builder(8, || 0_u64)
            .observe("seen", move |event: &u64, _| {
                noted.lock().unwrap().push(*event)
            })
            .placement(Placement::inline())
            .sample_every(1)
            .build()
            .expect("a valid pipeline");
        let (mut next, mut published) = (0, Vec::new());
        while next < 40 {
            let write = |event: &mut u64| {
                *event = next;
                next += 1;
                assert_ne!(*event, at, "seeded");
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| pipeline.publish(write)));
            if let Ok(outcome) = outcome {
                outcome.expect("no stage panics");
                published.push(next - 1);
            }
        }
        let stats = pipeline.join().expect("no stage panics");
        assert_eq!(stats.stages[0].events, 39);
        assert_eq!(*seen.lock().unwrap(), published);
    }
}
