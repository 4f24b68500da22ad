//! Queues without waiting calls wait as this module does: they try, spin a little, then yield.

use std::hint::spin_loop;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};

use super::{BlockingRecv, BlockingSend, TryRecv, TrySend};

/// A waiting end yields after this many tries, as many as `gil` spins by default.
const SPINS: u32 = 128;

/// Tries until the attempt returns a value; spins, and yields after each `spins` tries.
#[inline]
pub(crate) fn insist<T>(spins: u32, mut attempt: impl FnMut() -> Option<T>) -> T {
    let mut tries = 0_u32;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        tries = tries.wrapping_add(1);
        if tries.is_multiple_of(spins) {
            std::thread::yield_now();
        } else {
            spin_loop();
        }
    }
}

/// This end waits by trying. Senders hold an [`Arc`], so that receivers, which hold a [`Weak`], end
/// when there is no sender and no message left.
#[derive(Debug)]
pub(crate) struct Yielding<E, K> {
    end: E,
    open: K,
}

pub(crate) type Waiting<T, R> = (Vec<Yielding<T, Arc<()>>>, Vec<Yielding<R, Weak<()>>>);

/// Makes waiting ends from ends that try.
pub(crate) fn waiting<T, R>((txs, rxs): (Vec<T>, Vec<R>)) -> Waiting<T, R> {
    let key = Arc::new(());
    let tx = |end| Yielding {
        end,
        open: Arc::clone(&key),
    };
    let rx = |end| Yielding {
        end,
        open: Arc::downgrade(&key),
    };
    let txs = txs.into_iter().map(tx).collect();
    (txs, rxs.into_iter().map(rx).collect())
}

impl<M: Copy, T: TrySend<M>> BlockingSend<M> for Yielding<T, Arc<()>> {
    #[inline]
    fn send(&mut self, message: M) {
        insist(SPINS, || self.end.try_send(message).then_some(()));
    }
}

impl<M, R: TryRecv<M>> BlockingRecv<M> for Yielding<R, Weak<()>> {
    #[inline]
    fn recv(&mut self) -> Option<M> {
        insist(SPINS, || {
            if let Some(message) = self.end.try_recv() {
                return Some(Some(message));
            }
            if self.open.strong_count() > 0 {
                return None;
            }
            // ORDERING: Acquire, pairs with the Release of each sender's drop of its Arc: all that
            // was sent is seen.
            fence(Ordering::Acquire);
            Some(self.end.try_recv())
        })
    }
}
