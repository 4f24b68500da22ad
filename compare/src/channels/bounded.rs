//! Bounded channels that differ in little but names: senders can be cloned, and so can receivers
//! where there may be many.

use super::{BlockingRecv, BlockingSend, Crowd, Element, Pair, Shape, TryRecv, TrySend, copies};

/// For each channel: where it is, the function that makes it, its endpoints and how many receivers
/// there may be; the calls that wait, and how to read what those that only try answer.
macro_rules! channels {
    ($($(#[$doc:meta])* $subject:ident $name:literal: $($peer:ident)::+,
        $make:ident, $tx:ident, $receivers:ident $rx:ident,
        [$send:ident, try $($sent:tt)+], [$recv:ident, try $($got:tt)+];)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $subject;

        impl<M: Element> Pair<M> for $subject {
            const NAME: &'static str = $name;
            type Tx = ::$($peer)::+::$tx<M>;
            type Rx = ::$($peer)::+::$rx<M>;
            fn pair(capacity: usize) -> (Self::Tx, Self::Rx) {
                ::$($peer)::+::$make(capacity)
            }
        }

        impl<M: Element> Crowd<M> for $subject {
            const NAME: &'static str = $name;
            type Tx = <Self as Pair<M>>::Tx;
            type Rx = <Self as Pair<M>>::Rx;
            fn fits(shape: Shape) -> bool {
                shape.receivers <= channels!(@most $receivers)
            }
            fn crowd(capacity: usize, shape: Shape) -> (Vec<Self::Tx>, Vec<Self::Rx>) {
                let (tx, rx) = <Self as Pair<M>>::pair(capacity);
                (copies(tx, shape.senders), channels!(@all $receivers rx shape))
            }
        }

        // By the type's name: the peer's own calls go before those of the roles.

        impl<M: Element> TrySend<M> for ::$($peer)::+::$tx<M> {
            #[inline]
            fn try_send(&mut self, message: M) -> bool {
                <::$($peer)::+::$tx<M>>::try_send(self, message)$($sent)+
            }
        }

        impl<M: Element> TryRecv<M> for ::$($peer)::+::$rx<M> {
            #[inline]
            fn try_recv(&mut self) -> Option<M> {
                <::$($peer)::+::$rx<M>>::try_recv(self)$($got)+
            }
        }

        impl<M: Element> BlockingSend<M> for ::$($peer)::+::$tx<M> {
            #[inline]
            fn send(&mut self, message: M) {
                // A receiver that is gone shows in the count of what came.
                let _ = <::$($peer)::+::$tx<M>>::$send(self, message);
            }
        }

        impl<M: Element> BlockingRecv<M> for ::$($peer)::+::$rx<M> {
            #[inline]
            fn recv(&mut self) -> Option<M> {
                <::$($peer)::+::$rx<M>>::$recv(self).ok()
            }
        }
    )*};
    (@most many) => { usize::MAX };
    (@most one) => { 1 };
    (@all many $rx:ident $shape:ident) => { copies($rx, $shape.receivers) };
    (@all one $rx:ident $shape:ident) => { vec![$rx] };
}

channels! {
    /// `crossbeam-channel`.
    Crossbeam "crossbeam": crossbeam_channel, bounded, Sender, many Receiver,
        [send, try .is_ok()], [recv, try .ok()];
    /// `flume`.
    Flume "flume": flume, bounded, Sender, many Receiver,
        [send, try .is_ok()], [recv, try .ok()];
    /// `kanal`, whose calls that try say apart that there was no room, and nothing there.
    Kanal "kanal": kanal, bounded, Sender, many Receiver,
        [send, try .is_ok_and(|sent| sent)], [recv, try .ok().flatten()];
    /// `std::sync::mpsc`, its bounded channel.
    Std "std": std::sync::mpsc, sync_channel, SyncSender, one Receiver,
        [send, try .is_ok()], [recv, try .ok()];
}
