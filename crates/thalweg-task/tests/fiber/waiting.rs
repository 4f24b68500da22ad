//! A fiber as a future, and the futures that it waits for.

use crate::fiber::{Drops, poll_once, pool};
use futures::channel::{mpsc, oneshot};
use futures::executor::{LocalPool, block_on};
use futures::future::{self, Either};
use futures::stream::FuturesUnordered;
use futures::task::LocalSpawnExt;
use futures::{SinkExt, StreamExt};
use std::cell::Cell;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use thalweg_task::fiber::{Fiber, FiberContext, StackPool};
use thalweg_testkit::wakers::Alarm;

#[test]
fn a_value_comes_out_and_what_was_captured_went_in() {
    let text = String::from("captured");
    let fiber = pool().fiber(move |_| text + " and returned").unwrap();
    assert_eq!(block_on(fiber), "captured and returned");
}

#[test]
fn a_body_that_does_not_fit_into_a_stacks_top_is_boxed() {
    let large = [7_u64; 1000];
    let fiber = pool().fiber(move |ctx| (ctx.wait(async { 1 }), large));
    assert_eq!(block_on(fiber.unwrap()), (1, large));
    #[repr(align(4096))]
    struct Paged(u64);
    let paged = Paged(5);
    let fiber = pool().fiber(move |_| {
        let paged = paged;
        assert_eq!((&raw const paged).addr() % 4096, 0);
        paged.0
    });
    assert_eq!(block_on(fiber.unwrap()), 5);
}

#[test]
fn locals_are_there_after_each_wait() {
    const MESSAGES: u64 = 1000;
    let (mut tx, mut rx) = mpsc::channel::<u64>(2);
    let stacks = pool();
    let sender = stacks.fiber(move |ctx| {
        for number in 0..MESSAGES {
            ctx.wait(tx.send(number)).unwrap();
        }
        tx
    });
    let receiver = stacks.fiber(move |ctx| {
        let seen: Vec<u64> = (0..MESSAGES)
            .map(|_| ctx.wait(rx.next()).unwrap())
            .collect();
        (seen, rx)
    });
    let (sender, receiver) = (sender.unwrap(), receiver.unwrap());
    let (_tx, (seen, _rx)) = block_on(future::join(sender, receiver));
    assert!(seen.into_iter().eq(0..MESSAGES));
}

#[test]
fn a_wait_below_code_that_is_not_async_suspends_all_of_it() {
    fn sum(ctx: &mut FiberContext<'_>, rx: &mut mpsc::UnboundedReceiver<u32>, deep: u32) -> u32 {
        match deep {
            0 => 0,
            _ => sum(ctx, rx, deep - 1) + ctx.wait(rx.next()).unwrap(),
        }
    }
    let (tx, mut rx) = mpsc::unbounded();
    let mut fiber = pool().fiber(move |ctx| sum(ctx, &mut rx, 100)).unwrap();
    for number in 1..=100 {
        assert!(poll_once(&mut fiber).is_pending());
        tx.unbounded_send(number).unwrap();
    }
    assert_eq!(poll_once(&mut fiber), Poll::Ready(5050));
}

/// Makes a fiber that waits for a fiber that waits for a fiber, `levels` levels deep.
fn nest(stacks: &StackPool, levels: u32, answer: oneshot::Receiver<u32>) -> Fiber<u32> {
    let more = stacks.clone();
    let body = move |ctx: &mut FiberContext<'_>| match levels {
        0 => ctx.wait(answer).unwrap(),
        _ => ctx.wait(nest(&more, levels - 1, answer)) + 1,
    };
    stacks.fiber(body).unwrap()
}

#[test]
fn fifty_fibers_deep_each_polled_by_the_last() {
    let stacks = pool();
    let (tx, rx) = oneshot::channel();
    let mut outermost = nest(&stacks, 50, rx);
    for _ in 0..3 {
        assert!(poll_once(&mut outermost).is_pending());
        assert_eq!(stacks.counts().in_use, 51);
    }
    tx.send(100).unwrap();
    assert_eq!(poll_once(&mut outermost), Poll::Ready(150));
    assert_eq!(stacks.counts().in_use, 0);
}

#[test]
fn each_poll_brings_its_own_waker() {
    let (tx, mut rx) = mpsc::unbounded::<()>();
    let mut fiber = pool()
        .fiber(move |ctx| while ctx.wait(rx.next()).is_some() {})
        .unwrap();
    let wakes: [Arc<Alarm>; 3] = Default::default();
    for polled in 0..3 {
        let waker = Waker::from(wakes[polled].clone());
        assert!(
            Pin::new(&mut fiber)
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        // The waker that it holds is the last poll's, though that one's `Context` is gone.
        drop(waker);
        tx.unbounded_send(()).unwrap();
        let counts = wakes.each_ref().map(|wakes| wakes.count());
        assert!(
            (0..3).all(|index| counts[index] == usize::from(index <= polled)),
            "{counts:?}"
        );
    }
}

#[test]
fn a_fiber_that_yields_wakes_its_own_task() {
    let wakes = Alarm::new();
    let waker = Waker::from(wakes.clone());
    let mut cx = Context::from_waker(&waker);
    let mut fiber = pool()
        .fiber(|ctx| {
            ctx.yield_now();
            ctx.suspend();
            ctx.yield_now();
        })
        .unwrap();
    for woken in [1, 1, 2] {
        assert!(Pin::new(&mut fiber).poll(&mut cx).is_pending());
        assert_eq!(wakes.count(), woken);
    }
    assert!(Pin::new(&mut fiber).poll(&mut cx).is_ready());
}

#[test]
fn a_fiber_woken_by_another_thread_is_resumed_by_its_own() {
    let (tx, rx) = oneshot::channel();
    let fiber = pool().fiber(move |ctx| (ctx.wait(rx).unwrap(), thread::current().id()));
    let other = thread::spawn(move || tx.send(5));
    assert_eq!(block_on(fiber.unwrap()), (5, thread::current().id()));
    other.join().unwrap().unwrap();
}

#[test]
fn a_fiber_goes_from_one_executor_to_another() {
    let stacks = pool();
    let (tx, rx) = oneshot::channel();
    let mut fiber = stacks.fiber(move |ctx| ctx.wait(rx).unwrap()).unwrap();
    let mut first = LocalPool::new();
    first.run_until(future::poll_fn(|cx| {
        assert!(Pin::new(&mut fiber).poll(cx).is_pending());
        Poll::Ready(())
    }));
    let answer = Rc::new(Cell::new(0));
    let mut second = LocalPool::new();
    let result = answer.clone();
    let task = async move { result.set(fiber.await) };
    second.spawner().spawn_local(task).unwrap();
    second.run_until_stalled();
    tx.send(9).unwrap();
    second.run_until_stalled();
    assert_eq!(answer.get(), 9);
}

#[test]
fn the_loser_of_a_select_goes_on_later() {
    let stacks = pool();
    let (slow_tx, slow_rx) = oneshot::channel();
    let (fast_tx, fast_rx) = oneshot::channel();
    let slow = stacks.fiber(move |ctx| ctx.wait(slow_rx).unwrap()).unwrap();
    let fast = stacks.fiber(move |ctx| ctx.wait(fast_rx).unwrap()).unwrap();
    fast_tx.send("fast").unwrap();
    let Either::Right((first, slow)) = block_on(future::select(slow, fast)) else {
        panic!("nothing was sent to the slow one");
    };
    slow_tx.send("slow").unwrap();
    assert_eq!((first, block_on(slow)), ("fast", "slow"));
}

#[test]
fn a_fiber_waits_for_many_of_its_own() {
    let stacks = pool();
    let more = stacks.clone();
    let fiber = stacks.fiber(move |ctx| {
        let children: FuturesUnordered<_> = (0..100_u32)
            .map(|number| {
                let child = more.fiber(move |ctx| {
                    (0..number % 7).for_each(|_| ctx.yield_now());
                    number
                });
                child.unwrap()
            })
            .collect();
        ctx.wait(children.fold(0, async |sum, number| sum + number))
    });
    assert_eq!(block_on(fiber.unwrap()), 4950);
}

#[test]
fn an_executor_runs_inside_of_a_fiber() {
    let stacks = pool();
    let more = stacks.clone();
    let fiber = stacks.fiber(move |ctx| {
        let before = ctx.wait(async { 1 });
        let mut inside = LocalPool::new();
        let inner = more.fiber(|ctx| {
            ctx.yield_now();
            2
        });
        before + inside.run_until(inner.unwrap())
    });
    let mut cx = Context::from_waker(Waker::noop());
    assert_eq!(pin!(fiber.unwrap()).poll(&mut cx), Poll::Ready(3));
}

/// Another library's coroutine, which may borrow a context, and so suspends the fiber below itself.
fn on_top(ctx: &mut FiberContext<'_>, drops: &Drops) -> u32 {
    let mut seen = 0;
    let coroutine = corosensei::ScopedCoroutine::<(), (), ()>::new(|yielder, ()| {
        for _ in 0..3 {
            let _guard = drops.guard();
            ctx.suspend();
            seen += 1;
            yielder.suspend(());
        }
    });
    coroutine.scope(|mut coroutine| while coroutine.as_mut().resume(()).as_yield().is_some() {});
    seen
}

#[test]
fn what_runs_on_top_of_a_fiber_is_suspended_with_it_and_unwound_with_it() {
    for polls in 1..=3 {
        let (drops, stacks) = (Drops::default(), pool());
        let dropped = drops.clone();
        let body = move |ctx: &mut FiberContext<'_>| on_top(ctx, &dropped);
        let mut fiber = stacks.fiber(body).unwrap();
        (0..polls).for_each(|_| assert!(poll_once(&mut fiber).is_pending()));
        assert_eq!(drops.count(), polls - 1);
        if polls == 3 {
            assert_eq!(poll_once(&mut fiber), Poll::Ready(3));
        }
        drop(fiber);
        assert_eq!((drops.count(), stacks.counts().in_use), (polls, 0));
    }
}

#[test]
#[should_panic(expected = "a fiber was polled after it had finished")]
fn a_finished_fiber_is_not_polled() {
    let mut fiber = pool().fiber(|_| ()).unwrap();
    assert!(poll_once(&mut fiber).is_ready());
    let _ = poll_once(&mut fiber);
}
