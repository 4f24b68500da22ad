//! However a service ends, every client gets a reply or an error, once, and no client hangs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use thalweg::pipeline::Placement;
use thalweg_exchange::service::{
    Client, ClientError, ServiceOptions, SharedOptions, SharedService,
};
use thalweg_exchange::{Command, State};

/// Runs `work` on a thread, and fails if it does not end.
fn ends<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, end) = channel();
    let thread = thread::spawn(move || done.send(work()));
    // Patience is for a hang only; no run comes near it.
    match end.recv_timeout(Duration::from_secs(600)) {
        Ok(result) => result,
        Err(_) if thread.is_finished() => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => panic!("ended without a result"),
        },
        Err(error) => panic!("it hangs: {error}"),
    }
}

fn options(placement: Placement) -> SharedOptions {
    SharedOptions {
        service: ServiceOptions {
            capacity: 16,
            placement,
            ..ServiceOptions::default()
        },
        queue: 8,
        ..SharedOptions::default()
    }
}

fn placements() -> [Placement; 3] {
    [
        Placement::inline(),
        Placement::threads(2),
        Placement::caller_and_threads(1, 1),
    ]
}

/// Sends and waits until the service ends; returns how many commands were executed, and the error.
fn until_the_end(mut client: Client) -> (u64, ClientError) {
    let mut done = 0;
    let mut pending = Vec::new();
    loop {
        let submitted = client.submit_batch(&[const { Command::Nop }; 7], &mut pending);
        let mut end = submitted.err();
        for reply in pending.drain(..) {
            match reply.wait() {
                Ok(_) => done += 1,
                Err(error) => assert_eq!(end.get_or_insert(error.clone()), &error),
            }
        }
        if let Some(end) = end {
            return (done, end);
        }
    }
}

#[test]
fn what_was_accepted_before_the_end_is_done_and_answered() {
    for placement in placements() {
        let (published, replied) = ends(move || {
            let count = Arc::new(AtomicU64::new(0));
            let published = Arc::clone(&count);
            let service = SharedService::start(State::default(), options(placement), move |_| {
                // ORDERING: Relaxed; read after the join of the threads.
                published.fetch_add(1, Ordering::Relaxed);
            })
            .expect("good options");
            let start = Arc::new(Barrier::new(4));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (client, start) = (service.client(), Arc::clone(&start));
                    thread::spawn(move || {
                        start.wait();
                        until_the_end(client)
                    })
                })
                .collect();
            start.wait();
            let mut late = service.client();
            late.call(&Command::Nop).expect("it runs");
            service.join().expect("no failure");
            assert_eq!(late.call(&Command::Nop).err(), Some(ClientError::Closed));
            assert_eq!(
                late.clone().try_submit(&Command::Nop).err(),
                Some(ClientError::Closed)
            );
            let mut replied = 1;
            for thread in threads {
                let (done, end) = thread.join().expect("no panic");
                assert_eq!(end, ClientError::Closed);
                assert_eq!(end.to_string(), "the service has ended");
                replied += done;
            }
            // ORDERING: Relaxed; the threads are joined.
            (count.load(Ordering::Relaxed), replied)
        });
        assert_eq!(published, replied, "each answered, none twice");
    }
}

#[test]
fn a_panic_fails_the_requests_that_wait_and_those_that_come_later() {
    for placement in placements() {
        for run in 0..10 {
            let placement = placement.clone();
            ends(move || fail_at(100 + run, placement));
        }
    }
}

fn fail_at(sequence: u64, placement: Placement) {
    let service = SharedService::start(State::default(), options(placement), move |outcome| {
        assert!(outcome.sequence != sequence, "seeded");
    })
    .expect("good options");
    let mut late = service.client();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let client = service.client();
            thread::spawn(move || until_the_end(client))
        })
        .collect();
    let mut done = 0;
    for thread in threads {
        let (replies, end) = thread.join().expect("no panic");
        assert_eq!(
            end.to_string(),
            "the service has failed: stage \"publish\" panicked: seeded"
        );
        done += replies;
    }
    assert_eq!(done, sequence, "all before it, none after");
    assert!(matches!(
        late.call(&Command::Nop),
        Err(ClientError::Failed(_))
    ));
    assert!(matches!(
        late.clone().submit(&Command::Nop),
        Err(ClientError::Failed(_))
    ));
    assert_eq!(service.join().expect_err("it has failed").stage, "publish");
}

/// Sends a message when it is dropped.
struct Dropped(Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn dropping_the_service_ends_it_and_what_it_accepted_is_done() {
    ends(|| {
        let (sender, dropped) = channel();
        let publisher = Dropped(sender);
        let service = SharedService::start(State::default(), SharedOptions::default(), move |_| {
            let _ = &publisher;
        })
        .expect("good options");
        let mut client = service.client();
        let reply = client.submit(&Command::Nop).expect("it runs");
        drop(service);
        dropped.recv().expect("the publish stage is gone");
        assert_eq!(reply.wait().expect("accepted").sequence, 0);
        assert_eq!(client.call(&Command::Nop).err(), Some(ClientError::Closed));
    });
}
