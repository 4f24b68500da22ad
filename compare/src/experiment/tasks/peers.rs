//! Channels of others whose receivers are coroutines on the sender's thread, each in two ways: its
//! future polled by hand, with a waker that does nothing, which is what the channel alone costs;
//! and as tasks of tokio's `LocalSet`, which is what a program pays.
//!
//! A channel for one element is made for each message, by the receiver, as where it is the reply to
//! a request.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use counts::coroutines::Seen;
use futures_channel::{mpsc as futures_mpsc, oneshot as futures_oneshot};
use thalweg::channel::Spsc;
use thalweg_task::{Local, SlotTx, slot};
use tokio::sync::{mpsc as tokio_mpsc, oneshot as tokio_oneshot};
use tokio::task::LocalSet;

use super::load::{self, Load};
use crate::runner::{Run, Subject, subject};

/// Ends of a channel with which one coroutine gets one message after the other.
trait Line: 'static {
    const NAME: &'static str;
    type Tx: 'static;
    type Rx: 'static;
    fn pair() -> (Self::Tx, Self::Rx);
    fn send(tx: &mut Self::Tx, number: u64);
    fn recv(rx: &mut Self::Rx) -> impl Future<Output = Option<u64>>;
}

/// Takes what comes, as long as something comes.
async fn listen<L: Line>(mut rx: L::Rx, seen: Rc<Seen>) {
    while let Some(number) = L::recv(&mut rx).await {
        seen.take(number);
    }
}

#[inline(always)]
fn resume(listener: &mut Pin<Box<impl Future>>, context: &mut Context<'_>) {
    // It never ends: its sender lives.
    let _ = listener.as_mut().poll(context);
}

fn by_hand<L: Line>(load: &Load) -> Result<Run, String> {
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
    Ok(load::run(seen.sum(), load.sent(), ns))
}

/// Lets the other tasks have their turn.
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

/// The sender is a task as well, and has its turn again after all receivers of a round.
async fn drive<L: Line>(load: &Load, mut txs: Vec<L::Tx>, seen: &Seen) -> f64 {
    let (mut sent, mut sum) = (0, 0);
    let mut begin = Instant::now();
    for round in 0..=load.rounds {
        again().await;
        if round == 1 {
            begin = Instant::now();
        }
        load.round(|at| {
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

fn in_local_set<L: Line>(load: &Load) -> Result<Run, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let tasks = LocalSet::new();
    let seen = Rc::new(Seen::default());
    let mut txs = Vec::with_capacity(load.coroutines);
    for _ in 0..load.coroutines {
        let (tx, rx) = L::pair();
        txs.push(tx);
        tasks.spawn_local(listen::<L>(rx, Rc::clone(&seen)));
    }
    // Receivers begin first, since they were spawned first.
    let own = load.clone();
    let told = Rc::clone(&seen);
    let sender = tasks.spawn_local(async move { drive::<L>(&own, txs, &told).await });
    let ns = tasks.block_on(&runtime, sender);
    let ns = ns.map_err(|error| error.to_string())?;
    Ok(load::run(seen.sum(), load.sent(), ns))
}

fn both<L: Line>() -> [Box<dyn Subject<Load>>; 2] {
    [
        subject(by_hand_name(L::NAME), by_hand::<L>),
        subject(format!("{}, LocalSet", L::NAME), in_local_set::<L>),
    ]
}

/// The name of a peer's subject that is polled by hand.
pub(super) fn by_hand_name(peer: &str) -> String {
    format!("{peer}, by hand")
}

/// All of them, in both ways.
pub(super) fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    let all = [
        both::<TokioOneshot>(),
        both::<TheCrate>(),
        both::<FuturesOneshot>(),
        both::<FuturesUnbounded>(),
        both::<TokioUnbounded>(),
        both::<TokioBounded>(),
        both::<ThalwegSpsc>(),
        both::<ThalwegSlot>(),
    ];
    all.into_iter().flatten().collect()
}

/// Where a receiver leaves the sender of its next message.
type Desk<T> = Rc<Cell<Option<T>>>;

macro_rules! one_a_message {
    ($($(#[$doc:meta])* $line:ident $name:ident: $tx:ty, $make:expr,
        |$value:ident| $recv:expr;)*) => {$(
        $(#[$doc])*
        struct $line;

        impl Line for $line {
            const NAME: &'static str = $name;
            type Tx = Desk<$tx>;
            type Rx = Desk<$tx>;
            fn pair() -> (Self::Tx, Self::Rx) {
                let desk = Desk::default();
                (Rc::clone(&desk), desk)
            }
            // Nothing sent shows in what came.
            #[inline]
            fn send(tx: &mut Self::Tx, number: u64) {
                let _ = tx.take().map(|tx| tx.send(number));
            }
            #[inline]
            async fn recv(rx: &mut Self::Rx) -> Option<u64> {
                let (tx, mut $value) = $make;
                rx.set(Some(tx));
                $recv.await.ok()
            }
        }
    )*};
}

pub(super) const TOKIO_ONESHOT: &str = "tokio oneshot";
pub(super) const THE_CRATE: &str = "oneshot";
const FUTURES_ONESHOT: &str = "futures oneshot";
const THALWEG_SLOT: &str = "thalweg slot a message";
pub(super) const FUTURES_UNBOUNDED: &str = "futures unbounded";

one_a_message! {
    TokioOneshot TOKIO_ONESHOT: tokio_oneshot::Sender<u64>, tokio_oneshot::channel(),
        |value| &mut value;
    /// The crate of that name.
    TheCrate THE_CRATE: oneshot::Sender<u64>, oneshot::channel(), |value| &mut value;
    FuturesOneshot FUTURES_ONESHOT: futures_oneshot::Sender<u64>, futures_oneshot::channel(),
        |value| &mut value;
    /// Ours in the same place.
    ThalwegSlot THALWEG_SLOT: SlotTx<u64, Local>, slot(), |value| value.recv();
}

macro_rules! one_for_all {
    ($(
        $line:ident $name:expr, $tx:ty, $rx:ty, $pair:expr,
        $send:ident, |$from:ident| $recv:expr;
    )*) => {$(
        struct $line;

        impl Line for $line {
            const NAME: &'static str = $name;
            type Tx = $tx;
            type Rx = $rx;
            fn pair() -> (Self::Tx, Self::Rx) {
                $pair
            }
            // Nothing sent shows in what came.
            #[inline]
            fn send(tx: &mut Self::Tx, number: u64) {
                let _ = tx.$send(number);
            }
            #[inline]
            async fn recv($from: &mut Self::Rx) -> Option<u64> {
                $recv
            }
        }
    )*};
}

one_for_all! {
    FuturesUnbounded FUTURES_UNBOUNDED, futures_mpsc::UnboundedSender<u64>,
        futures_mpsc::UnboundedReceiver<u64>, futures_mpsc::unbounded(),
        unbounded_send, |rx| rx.recv().await.ok();
    TokioUnbounded "tokio unbounded", tokio_mpsc::UnboundedSender<u64>,
        tokio_mpsc::UnboundedReceiver<u64>, tokio_mpsc::unbounded_channel(),
        send, |rx| rx.recv().await;
    TokioBounded "tokio mpsc(1)", tokio_mpsc::Sender<u64>, tokio_mpsc::Receiver<u64>,
        tokio_mpsc::channel(1), try_send, |rx| rx.recv().await;
    ThalwegSpsc "thalweg::channel spsc(1)", thalweg::channel::Sender<u64, Spsc>,
        thalweg::channel::Receiver<u64, Spsc>, thalweg::channel::spsc(1),
        try_send, |rx| rx.recv_async().await.ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::tasks::load::Order;

    #[test]
    fn every_peer_takes_every_message() {
        for order in [Order::Made, Order::Random] {
            let load = Load::new(30, 4, order);
            for subject in subjects() {
                let ran = subject.run(&load).map(|run| run.lost);
                assert_eq!(ran, Ok(0), "{} {order:?}", subject.name());
            }
        }
    }
}
