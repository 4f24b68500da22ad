//! Time for tasks: sleeps, deadlines and timeouts, mostly by a clock that the test moves.

use std::cell::Cell;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_task::{Elapsed, LocalExecutor, Task, TaskError, yield_now};
use thalweg_testkit::wakers::Alarm;

/// An executor whose clock stands until it is moved.
struct Bench {
    executor: LocalExecutor,
    begin: Instant,
    now: Rc<Cell<Instant>>,
}

impl Bench {
    fn new() -> Bench {
        let begin = Instant::now();
        let now = Rc::new(Cell::new(begin));
        let read = Rc::clone(&now);
        let executor = LocalExecutor::builder().clock(move || read.get()).build();
        let executor = executor.expect("no processor is named");
        Bench {
            executor,
            begin,
            now,
        }
    }

    fn settle(&self) {
        while self.executor.poll() {}
    }

    fn pass(&self, time: Duration) {
        self.now.set(self.now.get() + time);
        self.settle();
    }

    fn elapsed(&self) -> Duration {
        self.now.get() - self.begin
    }
}

const SECOND: Duration = Duration::from_secs(1);
/// Nothing is late by more, once the executor looks.
const TICK: Duration = Duration::from_nanos(1 << 14);

/// Numbers that look random, the same in every run.
fn scattered(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn of_100_000_tasks_with_deadlines_the_1_percent_that_is_late_times_out_and_nothing_else() {
    const TASKS: usize = 100_000;
    let bench = Bench::new();
    let handle = bench.executor.handle();
    let mut state = 16;
    let began: Rc<Cell<usize>> = Rc::default();
    // One in a hundred needs a minute longer than it has.
    let tasks: Vec<(Duration, Task<usize>)> = (0..TASKS)
        .map(|number| {
            let (handle, began) = (handle.clone(), Rc::clone(&began));
            let needs = Duration::from_nanos(scattered(&mut state) % 60_000_000_000);
            let deadline = SECOND + needs;
            let needs = needs + SECOND * if number % 100 == 37 { 60 } else { 0 };
            let task = bench.executor.spawn(async move {
                began.set(began.get() + 1);
                handle.sleep(needs).await;
                number
            });
            (deadline, task.deadline(deadline))
        })
        .collect();
    bench.settle();
    assert_eq!(began.get(), TASKS);
    let mut ended: Vec<Option<(Duration, Duration)>> = vec![None; TASKS];
    while handle.task_count() > 0 {
        let before = bench.elapsed();
        bench.pass(Duration::from_nanos(
            1 + scattered(&mut state) % 500_000_000,
        ));
        for ((_, task), ended) in tasks.iter().zip(&mut ended) {
            if ended.is_none() && task.is_finished() {
                *ended = Some((before, bench.elapsed()));
            }
        }
    }
    for (number, ((deadline, task), ended)) in tasks.into_iter().zip(ended).enumerate() {
        let outcome = bench.executor.block_on(task);
        if number % 100 == 37 {
            assert_eq!(outcome, Err(TaskError::TimedOut));
            let (before, at) = ended.expect("it is over");
            assert!(before < deadline + TICK && deadline <= at, "{number}");
        } else {
            assert_eq!(outcome, Ok(number));
        }
    }
}

#[test]
fn no_sleep_is_over_early_nor_late_by_more_than_a_tick() {
    let bench = Bench::new();
    let mut state = 3;
    // Waits of all sizes, some set when time has passed; some look at the very end.
    let mut tasks = Vec::new();
    for round in 0..40 {
        for _ in 0..50 {
            let time = Duration::from_nanos(scattered(&mut state) >> (scattered(&mut state) % 31));
            let (handle, now) = (bench.executor.handle(), Rc::clone(&bench.now));
            let until = bench.now.get() + time;
            let task = bench.executor.spawn(async move {
                handle.sleep_until(until).await;
                now.get()
            });
            tasks.push((until, bench.now.get(), task));
        }
        bench.settle();
        let exactly = tasks[scattered(&mut state) as usize % tasks.len()].0;
        let step = Duration::from_nanos(scattered(&mut state) >> (scattered(&mut state) % 31));
        let to = if round % 3 == 0 {
            exactly
        } else {
            bench.now.get() + step
        };
        let before = bench.now.get();
        bench.pass(to.saturating_duration_since(before));
        for (until, seen, task) in &mut tasks {
            if task.is_finished() {
                continue;
            }
            assert!(
                bench.now.get() < *until + TICK,
                "late: {:?}",
                bench.now.get() - *until
            );
            *seen = bench.now.get();
        }
    }
    bench.pass(SECOND * 3);
    for (until, seen, task) in tasks {
        let ended = bench.executor.block_on(task).expect("it only slept");
        assert!(ended >= until && ended >= seen);
    }
}

#[test]
fn times_beyond_the_clock_are_for_ever() {
    let bench = Bench::new();
    let handle = bench.executor.handle();
    let alarm = Alarm::new();
    let mut far = handle.sleep(Duration::MAX);
    assert!(alarm.poll(&mut far).is_pending());
    let mut far = Box::pin(handle.timeout(Duration::MAX, pending::<()>()));
    assert!(alarm.poll(&mut far).is_pending());
    let task = bench
        .executor
        .spawn(pending::<()>())
        .deadline(Duration::MAX);
    bench.pass(SECOND * 3600 * 24 * 365 * 30);
    assert_eq!((alarm.count(), task.is_finished()), (0, false));
    // One that was set before them is not for ever.
    let mut near = handle.sleep(SECOND);
    assert!(alarm.poll(&mut near).is_pending());
    bench.pass(SECOND + TICK);
    assert_eq!(alarm.count(), 1);
    assert!(alarm.poll(&mut near).is_ready());
    // Nor one whose time was before the executor's.
    let mut past = handle.sleep_until(bench.begin - SECOND);
    assert!(alarm.poll(&mut past).is_ready());
    let late = bench
        .executor
        .spawn(pending::<()>())
        .deadline_at(bench.begin);
    bench.settle();
    assert!(late.is_finished());
}

#[test]
fn the_time_of_a_timeout_begins_when_it_is_made() {
    let bench = Bench::new();
    let handle = bench.executor.handle();
    let made = handle.timeout(SECOND, pending::<()>());
    let task = bench.executor.spawn(async move {
        handle.sleep(SECOND / 2).await;
        made.await
    });
    bench.settle();
    bench.pass(SECOND / 2 + TICK);
    assert!(!task.is_finished());
    bench.pass(SECOND / 2 + TICK);
    assert!(task.is_finished());
    assert_eq!(bench.executor.block_on(task), Ok(Err(Elapsed)));
}

#[test]
fn a_sleep_wakes_its_last_waker_once() {
    let bench = Bench::new();
    let mut sleep = bench.executor.handle().sleep(SECOND);
    let bells: [Arc<Alarm>; 3] = Default::default();
    for alarm in bells.iter().chain(&bells) {
        assert!(alarm.poll(&mut sleep).is_pending());
    }
    bench.pass(SECOND / 2);
    bench.pass(SECOND / 2 + TICK);
    bench.pass(SECOND);
    assert_eq!(bells.each_ref().map(|alarm| alarm.count()), [0, 0, 1]);
    // The clones of the wakers are given up.
    assert_eq!(bells.each_ref().map(Arc::strong_count), [1, 1, 1]);
    assert!(bells[0].poll(&mut sleep).is_ready());
    assert!(bells[0].poll(&mut sleep).is_ready());
}

#[test]
fn the_last_deadline_holds() {
    let bench = Bench::new();
    let pending = || bench.executor.spawn(pending::<()>());
    let longer = pending().deadline(SECOND).deadline(SECOND * 3);
    let shorter = pending().deadline(SECOND * 3).deadline(SECOND);
    bench.pass(SECOND + TICK);
    assert_eq!((longer.is_finished(), shorter.is_finished()), (false, true));
    bench.pass(SECOND * 2);
    assert!(longer.is_finished());
    // An ended task takes no more, and a place that is used again has nothing of the old one's.
    let ended = shorter.deadline(SECOND);
    let next = pending();
    bench.pass(SECOND * 10);
    assert!(!next.is_finished());
    assert_eq!(bench.executor.block_on(ended), Err(TaskError::TimedOut));
}

#[test]
fn of_cancel_and_deadline_in_the_same_tick_the_first_holds() {
    let bench = Bench::new();
    let handle = bench.executor.handle();
    let first = bench.executor.spawn(pending::<()>()).deadline(SECOND);
    let second = bench.executor.spawn(pending::<()>());
    let id = second.id();
    let canceller = bench.executor.spawn(async move {
        handle.sleep(SECOND).await;
        handle.cancel(id)
    });
    bench.settle();
    // Its deadline is set last, so it expires behind the sleep; the sleeper runs after both.
    let second = second.deadline_at(bench.begin + SECOND);
    bench.pass(SECOND + TICK);
    assert_eq!(bench.executor.block_on(canceller), Ok(false));
    assert_eq!(bench.executor.block_on(second), Err(TaskError::TimedOut));
    assert_eq!(bench.executor.block_on(first), Err(TaskError::TimedOut));

    let cancelled = bench.executor.spawn(pending::<()>()).deadline(SECOND);
    assert!(cancelled.cancel());
    bench.pass(SECOND * 2);
    assert_eq!(
        bench.executor.block_on(cancelled),
        Err(TaskError::Cancelled)
    );
}

#[test]
fn a_deadline_drops_a_sleep_that_is_over_in_the_same_tick() {
    let bench = Bench::new();
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let handle = bench.executor.handle();
            let task = bench.executor.spawn(async move {
                let _other = handle.timeout(SECOND, handle.sleep(SECOND)).await;
                pending::<()>().await;
            });
            task.deadline(SECOND)
        })
        .collect();
    bench.settle();
    bench.pass(SECOND + TICK);
    for task in tasks {
        assert_eq!(bench.executor.block_on(task), Err(TaskError::TimedOut));
    }
}

#[test]
fn a_sleep_of_one_core_wakes_a_task_of_another() {
    let (bench, other) = (Bench::new(), LocalExecutor::new());
    let sleep = bench.executor.handle().sleep(SECOND);
    let task = other.spawn(sleep);
    while other.poll() {}
    bench.pass(SECOND + TICK);
    assert!(!task.is_finished());
    assert!(other.poll());
    assert!(task.is_finished());
}

#[test]
fn a_sleep_whose_core_is_gone_panics_and_is_never_early() {
    let bench = Bench::new();
    let handle = bench.executor.handle();
    let alarm = Alarm::new();
    let mut sleeps = [SECOND, SECOND * 2].map(|time| handle.sleep(time));
    for sleep in &mut sleeps {
        assert!(alarm.poll(sleep).is_pending());
    }
    let now = Rc::clone(&bench.now);
    drop(bench);
    assert_eq!(alarm.count(), 2, "they look again");
    now.set(now.get() + SECOND);
    let [mut over, mut early] = sleeps;
    assert!(alarm.poll(&mut over).is_ready());
    let polled = catch_unwind(AssertUnwindSafe(|| alarm.poll(&mut early)));
    let payload = polled.expect_err("a second is left");
    assert_eq!(
        payload.downcast_ref::<&str>(),
        Some(&"the executor of this sleep is gone, and with it its timers")
    );
    // Nothing of the others is in the place of the new one's timer.
    let mut new = handle.sleep(SECOND);
    assert!(catch_unwind(AssertUnwindSafe(|| alarm.poll(&mut new))).is_err());
    drop((over, early, new));
    let task = handle.spawn(pending::<()>()).deadline(SECOND);
    assert!(task.is_finished());
    assert_eq!(Arc::strong_count(&alarm), 1);
}

#[test]
fn a_time_that_has_come_is_no_wait_though_the_clock_stands() {
    let bench = Bench::new();
    bench.now.set(bench.begin + Duration::from_nanos(7));
    let handle = bench.executor.handle();
    let task = bench.executor.spawn(async move {
        handle.sleep(Duration::ZERO).await;
        handle.sleep_until(handle.now()).await;
        let late = handle.timeout(Duration::ZERO, pending::<()>()).await;
        (late, handle.timeout(Duration::ZERO, async { 5 }).await)
    });
    bench.settle();
    assert!(task.is_finished());
    assert_eq!(bench.executor.block_on(task), Ok((Err(Elapsed), Ok(5))));
}

#[test]
fn timers_have_their_turn_while_tasks_are_always_ready() {
    let bench = Bench::new();
    let (polls, over) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    for _ in 0..3 {
        let (polls, over) = (Rc::clone(&polls), Rc::clone(&over));
        let busy = bench.executor.spawn(async move {
            while !over.get() {
                polls.set(polls.get() + 1);
                yield_now().await;
            }
        });
        busy.detach();
    }
    let late = bench.executor.spawn(pending::<()>()).deadline(SECOND);
    assert!(bench.executor.poll());
    bench.now.set(bench.begin + SECOND + TICK);
    polls.set(0);
    while !late.is_finished() {
        assert!(bench.executor.poll() && polls.get() <= 128 + 3);
    }
    over.set(true);
    bench.executor.run();
}
