//! Clients that are tasks.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use thalweg_exchange::service::{ClientError, Query, QueryReply, SharedOptions, SharedService};
use thalweg_exchange::{Command, ResultCode, State, UserId};
use thalweg_testkit::wakers::{block_on, poll_once};

use crate::service::clients::{market, order};

#[test]
fn a_task_asks_and_gets_its_answer() {
    let service = SharedService::start(State::default(), SharedOptions::default(), |_| ())
        .expect("good options");
    let mut client = service.client();
    for command in market() {
        client.call(&command).expect("it runs");
    }
    let answered = block_on(client.query_async(Query::User(UserId(2)))).expect("it runs");
    assert_eq!(answered.sequence, 2);
    assert!(matches!(answered.answer, QueryReply::User(user) if user.uid == UserId(2)));
}

#[test]
fn a_task_gets_its_reply() {
    let service = SharedService::start(State::default(), SharedOptions::default(), |_| ())
        .expect("good options");
    let mut setup = service.client();
    for command in market() {
        setup.call(&command).expect("it runs");
    }
    let tasks: Vec<_> = (0..4)
        .map(|uid| {
            let mut client = service.client();
            thread::spawn(move || {
                block_on(async move {
                    let mut last = None;
                    for at in 0..200 {
                        let reply = client.submit_async(&order(uid, at)).await;
                        let reply = reply.expect("it runs").await.expect("it runs");
                        assert_eq!(reply.result, ResultCode::Success);
                        assert!(last < Some(reply.sequence));
                        last = Some(reply.sequence);
                    }
                });
            })
        })
        .collect();
    for task in tasks {
        task.join().expect("no panic");
    }
    let finished = service.join().expect("no failure");
    assert_eq!(finished.stats.stages[0].events, 802);
}

#[test]
fn a_future_that_is_dropped_loses_no_command_and_blocks_no_caller() {
    let executed = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&executed);
    let (go, wait) = channel::<()>();
    let options = SharedOptions {
        queue: 2,
        ..SharedOptions::default()
    };
    let service = SharedService::start(State::default(), options, move |_| {
        // ORDERING: Relaxed; read after the join.
        count.fetch_add(1, Ordering::Relaxed);
        let _ = wait.recv();
    })
    .expect("good options");
    let mut client = service.client();

    // Never polled: nothing submitted.
    for _ in 0..100 {
        drop(client.submit_async(&Command::Nop));
    }
    // Submitted and dropped: executed. The queue holds two, the driver maybe more.
    drop(client.submit(&Command::Nop).expect("it runs"));
    let mut accepted = 1;
    loop {
        let mut future = Box::pin(client.submit_async(&Command::Nop));
        match poll_once(&mut future) {
            Poll::Ready(reply) => {
                let mut reply = pin!(reply.expect("it runs"));
                assert!(poll_once(&mut reply).is_pending());
                accepted += 1;
            }
            // No room: dropped here, it has submitted nothing.
            Poll::Pending => break,
        }
    }
    assert!(accepted >= 2);
    drop(go);
    let reply = block_on(client.submit_async(&Command::Nop)).expect("it runs");
    let reply = block_on(reply).expect("it runs");
    assert_eq!(reply.result, ResultCode::Success);
    service.join().expect("no failure");
    // ORDERING: Relaxed; the threads are joined.
    let executed = executed.load(Ordering::Relaxed);
    assert_eq!(executed, accepted + 1, "those accepted, and the last");
}

#[test]
fn a_pending_reply_that_was_polled_may_be_waited_for() {
    let gate = Arc::new(std::sync::Mutex::new(()));
    let theirs = Arc::clone(&gate);
    let service = SharedService::start(State::default(), SharedOptions::default(), move |_| {
        drop(theirs.lock());
    })
    .expect("good options");
    let mut client = service.client();
    let mut pending = Vec::new();
    {
        let _closed = gate.lock();
        for _ in 0..2 {
            pending.push(client.submit(&Command::Nop).expect("it runs"));
        }
        for reply in &mut pending {
            let mut context = Context::from_waker(Waker::noop());
            assert!(Pin::new(reply).poll(&mut context).is_pending());
        }
    }
    let timeout = Duration::from_secs(600);
    let mut last = pending.pop().expect("two");
    let reply = last.wait_timeout(timeout).expect("in time");
    assert_eq!(reply.expect("it runs").sequence, 1);
    // A reply comes once.
    assert!(last.wait().is_err());
    let first = pending.pop().expect("two");
    assert_eq!(first.wait().expect("it runs").sequence, 0);
}

#[test]
fn a_pending_reply_may_move_between_tasks_and_threads() {
    let (go, wait) = channel::<()>();
    let service = SharedService::start(State::default(), SharedOptions::default(), move |_| {
        let _ = wait.recv();
    })
    .expect("good options");
    let mut reply = service.client().submit(&Command::Nop).expect("it runs");
    // Listed with a waker that does nothing, then with one that counts.
    assert!(poll_once(&mut reply).is_pending());
    let thread = thread::spawn(move || block_on(reply).map(|reply| reply.sequence));
    go.send(()).expect("the service runs");
    assert_eq!(thread.join().expect("no panic"), Ok(0));
    // A panic wakes tasks, too.
    let failing = SharedService::start(State::default(), SharedOptions::default(), |_| {
        panic!("seeded");
    })
    .expect("good options");
    let mut client = failing.client();
    let end = block_on(async { client.submit_async(&Command::Nop).await?.await });
    let end = end.expect_err("it fails");
    assert!(matches!(end, ClientError::Failed(_)));
}
