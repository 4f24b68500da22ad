//! Requests that carry the sending end of a reply channel, to a worker that leaves: a thread that
//! waits for a reply learns that none will come, though the channel of requests has senders still.

use crate::channel_shuttle::explore;
use crate::channel_shuttle::ledger::{joined, on_threads};
use shuttle::future::block_on;
use shuttle::thread;
use thalweg::channel::{
    Builder, ManySenders, Mpmc, Mpsc, Receiver, Select, Sender, Shape, Spsc, spsc,
};

type Request = Sender<u32, Spsc>;
type Asker<S> = Sender<Request, S>;
type Worker<S> = Receiver<Request, S>;

/// Askers where there may be several.
const MANY: usize = 3;

/// The kinds of channels, each with as many askers as it may have.
mod store {
    use super::*;

    fn many<S: ManySenders>((tx, rx): (Asker<S>, Worker<S>)) -> (Vec<Asker<S>>, Worker<S>) {
        (vec![tx; MANY], rx)
    }

    pub(super) fn ring() -> (Vec<Asker<Spsc>>, Worker<Spsc>) {
        let (tx, rx) = Builder::new(2).spsc().unwrap();
        (vec![tx], rx)
    }

    pub(super) fn ordered() -> (Vec<Asker<Mpsc>>, Worker<Mpsc>) {
        many(Builder::new(4).mpsc().unwrap())
    }

    pub(super) fn mpmc() -> (Vec<Asker<Mpmc>>, Worker<Mpmc>) {
        many(Builder::new(4).mpmc().unwrap())
    }

    pub(super) fn unbounded() -> (Vec<Asker<Mpmc>>, Worker<Mpmc>) {
        many(Builder::unbounded(4).mpmc().unwrap())
    }

    pub(super) fn rendezvous() -> (Vec<Asker<Mpmc>>, Worker<Mpmc>) {
        many(Builder::new(0).mpmc().unwrap())
    }
}

/// The worker answers a number of requests before it leaves.
fn a_worker_leaves<S: Shape>(
    (askers, mut worker): (Vec<Asker<S>>, Worker<S>),
    answers: usize,
    ask: fn(&mut Asker<S>, Request) -> bool,
) {
    let askers = on_threads(askers, move |_, mut tx| {
        let (request, mut reply) = spsc(1);
        let is_answered = ask(&mut tx, request) && reply.recv().is_ok();
        (usize::from(is_answered), tx)
    });
    let worker = thread::spawn(move || {
        let answer = |mut request: Request| request.send(7).unwrap();
        worker.iter().take(answers).for_each(answer);
    });
    worker.join().unwrap();
    let (answered, askers): (Vec<_>, Vec<_>) = joined(askers).into_iter().unzip();
    assert!(answered.iter().sum::<usize>() <= answers);
    for tx in &askers {
        let counters = tx.counters();
        assert_eq!((tx.len(), tx.is_closed()), (0, true));
        let figures = (counters.received, counters.discarded);
        assert_eq!(counters.sent, figures.0 + figures.1, "{counters:?}");
    }
}

/// Ways to ask; each returns whether the request was accepted.
mod ask {
    use super::*;

    pub(super) fn send<S: Shape>(tx: &mut Asker<S>, request: Request) -> bool {
        tx.send(request).is_ok()
    }

    pub(super) fn batch<S: Shape>(tx: &mut Asker<S>, request: Request) -> bool {
        tx.try_send_many([request]).is_ok()
    }

    pub(super) fn claim<S: Shape>(tx: &mut Asker<S>, request: Request) -> bool {
        let Ok(mut claim) = tx.claim(1) else {
            return false;
        };
        assert!(claim.push(request).is_ok());
        claim.commit() == 1
    }

    pub(super) fn select<S: Shape>(tx: &mut Asker<S>, request: Request) -> bool {
        let mut place = Some(request);
        Select::new()
            .send(tx, &mut place, |sent| sent.is_ok())
            .wait()
    }

    pub(super) fn task<S: Shape>(tx: &mut Asker<S>, request: Request) -> bool {
        block_on(tx.send_async(request)).is_ok()
    }
}

macro_rules! asked {
    ($($way:ident: $($store:ident)+;)+) => { $(
        mod $way {
            $(
                #[test]
                fn $store() {
                    for answers in [0, 1] {
                        $crate::channel_shuttle::explore(move || {
                            let ends = super::store::$store();
                            super::a_worker_leaves(ends, answers, super::ask::$way);
                        });
                    }
                }
            )+
        }
    )+ };
}

asked! {
    send: ring ordered mpmc unbounded rendezvous;
    batch: ring ordered mpmc unbounded;
    claim: ring ordered mpmc;
    select: ring mpmc unbounded rendezvous;
    task: ring mpmc unbounded rendezvous;
}

/// One claims room, and gives it up when the worker has gone: those who asked behind it get the
/// error.
#[test]
fn a_claim_that_is_given_up_hides_no_request() {
    explore(|| {
        let (mut askers, worker) = store::mpmc();
        let (mut idle, mut other) = (askers.pop().unwrap(), askers.pop().unwrap());
        let claimer = thread::spawn(move || {
            drop(idle.claim(2));
            // It stays.
            idle
        });
        let asker = thread::spawn(move || {
            let (request, mut reply) = spsc(1);
            if ask::send(&mut other, request) {
                assert!(reply.recv().is_err());
            }
            other
        });
        let worker = thread::spawn(move || drop(worker));
        worker.join().unwrap();
        drop((claimer.join().unwrap(), asker.join().unwrap()));
    });
}

/// A send is under way while a receiver closes the channel: all receivers get the end, also those
/// that the send kept from seeing it, though the sender stays.
#[test]
fn a_send_that_is_pending_hides_no_end() {
    explore(|| {
        let (mut askers, worker) = store::mpmc();
        let mut tx = askers.pop().unwrap();
        let asker = thread::spawn(move || {
            let (request, _reply) = spsc(1);
            let _ = tx.send(request);
            tx
        });
        let workers = [worker.clone(), worker.clone()];
        let workers = workers.map(|mut worker| thread::spawn(move || worker.iter().count()));
        let mut closer = worker;
        closer.close();
        let got: Vec<_> = workers.map(|thread| thread.join().unwrap()).into();
        let tx = asker.join().unwrap();
        assert_eq!(
            got.iter().sum::<usize>() + closer.len(),
            tx.counters().sent as usize
        );
        drop(askers);
    });
}

/// Both requests are dropped, whichever of the two sides finds them, and counted once.
#[test]
fn requests_are_discarded_once() {
    explore(|| {
        let (mut askers, worker) = store::ring();
        let mut tx = askers.pop().unwrap();
        let (first, mut first_reply) = spsc(1);
        let (second, mut second_reply) = spsc(1);
        tx.send(first).unwrap();
        let worker = thread::spawn(move || drop(worker));
        let is_sent = ask::send(&mut tx, second);
        assert!(first_reply.recv().is_err() && second_reply.recv().is_err());
        worker.join().unwrap();
        assert_eq!(tx.counters().discarded, 1 + u64::from(is_sent));
    });
}
