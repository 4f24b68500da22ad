//! `omango`. Its waiting calls spin a little and then wait on a futex, and lose wake-ups: who waits
//! looks at the slot, then stores that it is parked, and a wake-up in between finds nobody. Round
//! trips over two of its queues did not end here (0.2.6, x86-64: each thread asleep with a message
//! before it). So they only try.

use omango::queue::spsc;

use super::{Element, Pair, TryRecv, TrySend};

/// One to one.
#[derive(Debug)]
pub(crate) struct Spsc;

/// Capacities are `u32` there.
fn size(capacity: usize) -> u32 {
    u32::try_from(capacity).expect("the experiments ask for a million at most")
}

impl<M: Element> Pair<M> for Spsc {
    const NAME: &'static str = "omango spsc";
    type Tx = spsc::BSender<M>;
    type Rx = spsc::BReceiver<M>;
    fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
        spsc::bounded(size(capacity))
    }
}

impl<M: Element> TrySend<M> for spsc::BSender<M> {
    #[inline]
    fn try_send(&mut self, message: M) -> bool {
        spsc::BSender::try_send(self, message).is_ok()
    }
}

impl<M: Element> TryRecv<M> for spsc::BReceiver<M> {
    #[inline]
    fn try_recv(&mut self) -> Option<M> {
        spsc::BReceiver::try_recv(self).ok()
    }
}
