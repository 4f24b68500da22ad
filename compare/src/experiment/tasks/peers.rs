//! Channels of others whose receivers are coroutines on the sender's thread, each in two ways: its
//! future is polled by hand, with a waker that does nothing, which is the cost of the channel
//! alone; and in tasks of tokio's `LocalSet`, as in a program.
//!
//! A channel for one element is made for each message, by the receiver, as for the reply to a
//! request.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use counts::coroutines::Seen;
use futures_channel::mpsc as futures_mpsc;
use tokio::sync::oneshot as tokio_oneshot;
use tokio::task::LocalSet;

use super::{Load, ran};
use crate::runner::{Ran, Subject, Subjects, subject, text};

/// A line is a channel with which one coroutine gets one message after the other.
trait Line: 'static {
    const NAME: &'static str;
    type Tx: 'static;
    type Rx: 'static;
    fn pair() -> (Self::Tx, Self::Rx);
    fn send(tx: &mut Self::Tx, number: u64);
    fn recv(rx: &mut Self::Rx) -> impl Future<Output = Option<u64>>;
}

/// Takes messages until there is none.
async fn listen<L: Line>(mut rx: L::Rx, seen: Rc<Seen>) {
    while let Some(number) = L::recv(&mut rx).await {
        seen.take(number);
    }
}

#[inline(always)]
fn resume(listener: &mut Pin<Box<impl Future>>, context: &mut Context<'_>) {
    // The future never ends: its sender lives.
    let _ = listener.as_mut().poll(context);
}

fn by_hand<L: Line>(load: &Load) -> Ran {
    let seen = Rc::new(Seen::default());
    let mut context = Context::from_waker(Waker::noop());
    let line = |_| {
        let (tx, rx) = L::pair();
        (tx, Box::pin(listen::<L>(rx, Rc::clone(&seen))))
    };
    let mut lines: Vec<_> = (0..load.coroutines).map(line).collect();
    lines
        .iter_mut()
        .for_each(|(_, listener)| resume(listener, &mut context));
    let ns = load.timed(|at, number| {
        let (tx, listener) = &mut lines[at];
        L::send(tx, number);
        resume(listener, &mut context);
    });
    Ok(ran(seen.sum(), load.sent(), ns))
}

/// Lets the other tasks run.
async fn again() {
    let mut came_back = false;
    poll_fn(|context| {
        if came_back {
            return Poll::Ready(());
        }
        came_back = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Sends from a task, which runs again after all receivers of a round.
async fn drive<L: Line>(load: &Load, mut txs: Vec<L::Tx>, seen: &Seen) -> f64 {
    let (mut sent, mut sum) = (0, 0);
    let mut begin = Instant::now();
    for round in 0..=load.rounds {
        again().await;
        if round == 1 {
            begin = Instant::now();
        }
        (0..load.coroutines).for_each(|at| {
            sent += 1;
            sum += sent;
            L::send(&mut txs[at], sent);
        });
        while seen.sum() < sum {
            again().await;
        }
    }
    begin.elapsed().as_nanos() as f64 / load.messages() as f64
}

fn in_local_set<L: Line>(load: &Load) -> Ran {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(text)?;
    let tasks = LocalSet::new();
    let seen = Rc::new(Seen::default());
    let mut txs = Vec::with_capacity(load.coroutines);
    for _ in 0..load.coroutines {
        let (tx, rx) = L::pair();
        txs.push(tx);
        tasks.spawn_local(listen::<L>(rx, Rc::clone(&seen)));
    }
    // The receivers, which were spawned first, begin first.
    let own = load.clone();
    let own_seen = Rc::clone(&seen);
    let sender = tasks.spawn_local(async move { drive::<L>(&own, txs, &own_seen).await });
    let ns = tasks.block_on(&runtime, sender);
    let ns = ns.map_err(text)?;
    Ok(ran(seen.sum(), load.sent(), ns))
}

/// Returns all peers, in both ways.
pub(crate) fn subjects() -> Subjects<Load> {
    fn both<L: Line>() -> [Subject<Load>; 2] {
        [
            subject(format!("{}, by hand", L::NAME), by_hand::<L>),
            subject(format!("{}, LocalSet", L::NAME), in_local_set::<L>),
        ]
    }
    let all = [
        both::<TokioOneshot>(),
        both::<TheCrate>(),
        both::<FuturesUnbounded>(),
    ];
    all.into_iter().flatten().collect()
}

/// A receiver leaves the sender of its next message here.
type Next<T> = Rc<Cell<Option<T>>>;

macro_rules! one_a_message {
    ($($(#[$doc:meta])* $line:ident $name:literal: $tx:ty, $make:expr;)*) => {$(
        $(#[$doc])*
        struct $line;

        impl Line for $line {
            const NAME: &'static str = $name;
            type Tx = Next<$tx>;
            type Rx = Next<$tx>;
            fn pair() -> (Self::Tx, Self::Rx) {
                let next = Next::default();
                (Rc::clone(&next), next)
            }
            // A message that was not sent shows in the sum.
            #[inline]
            fn send(tx: &mut Self::Tx, number: u64) {
                let _ = tx.take().map(|tx| tx.send(number));
            }
            #[inline]
            async fn recv(rx: &mut Self::Rx) -> Option<u64> {
                let (tx, value) = $make;
                rx.set(Some(tx));
                value.await.ok()
            }
        }
    )*};
}

one_a_message! {
    TokioOneshot "tokio oneshot": tokio_oneshot::Sender<u64>, tokio_oneshot::channel();
    /// The crate has this name.
    TheCrate "oneshot": oneshot::Sender<u64>, oneshot::channel();
}

struct FuturesUnbounded;

impl Line for FuturesUnbounded {
    const NAME: &'static str = "futures unbounded";
    type Tx = futures_mpsc::UnboundedSender<u64>;
    type Rx = futures_mpsc::UnboundedReceiver<u64>;
    fn pair() -> (Self::Tx, Self::Rx) {
        futures_mpsc::unbounded()
    }
    #[inline]
    fn send(tx: &mut Self::Tx, number: u64) {
        let _ = tx.unbounded_send(number);
    }
    #[inline]
    async fn recv(rx: &mut Self::Rx) -> Option<u64> {
        rx.recv().await.ok()
    }
}
