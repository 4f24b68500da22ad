//! Waiting for queues that have none: try, spin a little, then give the core away.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{BlockingRecv, BlockingSend, TryRecv, TrySend};

/// Tries before the core is given away; as many as `gil` spins by default.
const SPINS: u32 = 128;

/// Spins, and from time to time yields.
#[derive(Debug, Default)]
struct Pause {
    spins: u32,
}

impl Pause {
    #[inline]
    fn once(&mut self) {
        if self.spins < SPINS {
            self.spins += 1;
            spin_loop();
        } else {
            self.spins = 0;
            std::thread::yield_now();
        }
    }
}

/// A sender that waits by trying.
#[derive(Debug)]
pub(crate) struct YieldingSend<T> {
    tx: T,
    open: Arc<AtomicUsize>,
}

/// A receiver that waits by trying, and ends when there is no sender and nothing left.
#[derive(Debug)]
pub(crate) struct YieldingRecv<R> {
    rx: R,
    open: Arc<AtomicUsize>,
}

/// Makes waiting endpoints of those that try.
pub(super) fn crowd<T, R>(
    txs: Vec<T>,
    rxs: Vec<R>,
) -> (Vec<YieldingSend<T>>, Vec<YieldingRecv<R>>) {
    let open = Arc::new(AtomicUsize::new(txs.len()));
    let sender = |tx| YieldingSend {
        tx,
        open: Arc::clone(&open),
    };
    let txs = txs.into_iter().map(sender).collect();
    let receiver = |rx| YieldingRecv {
        rx,
        open: Arc::clone(&open),
    };
    (txs, rxs.into_iter().map(receiver).collect())
}

impl<M: Copy, T: TrySend<M>> BlockingSend<M> for YieldingSend<T> {
    #[inline]
    fn send(&mut self, message: M) {
        let mut pause = Pause::default();
        while !self.tx.try_send(message) {
            pause.once();
        }
    }
}

impl<T> Drop for YieldingSend<T> {
    fn drop(&mut self) {
        // ORDERING: Release, pairs with the Acquire in recv: who sees it sees all that was sent.
        self.open.fetch_sub(1, Ordering::Release);
    }
}

impl<M, R: TryRecv<M>> BlockingRecv<M> for YieldingRecv<R> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        let mut pause = Pause::default();
        loop {
            if let Some(message) = self.rx.try_recv() {
                return Some(message);
            }
            // ORDERING: Acquire, pairs with the Release in YieldingSend::drop.
            if self.open.load(Ordering::Acquire) == 0 {
                return self.rx.try_recv();
            }
            pause.once();
        }
    }
}
