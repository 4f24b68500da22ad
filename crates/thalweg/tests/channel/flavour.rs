//! What the suite needs of a channel: a way to make one.

use thalweg::channel::{BuildError, Builder, Mpmc, Mpsc, Receiver, Sender, Shape, Spsc};
use thalweg::ring::Layout;

/// The ends of a channel.
pub(crate) type Ends<F, T> = (Sender<T, <F as Flavour>::S>, Receiver<T, <F as Flavour>::S>);

/// A kind of channel.
pub(crate) trait Flavour: 'static {
    type S: Shape;
    /// Each sender has room of its own, and elements of different senders are in no order.
    const HAS_LANES: bool;
    /// Its memory can be claimed.
    const HAS_CLAIMS: bool;
    /// Room that is claimed and not used comes back at once.
    const GIVES_BACK: bool;
    /// It stores nothing.
    const IS_MEETING: bool;

    /// Options that make it, for so many elements.
    fn options(capacity: usize) -> Builder;

    fn make<T: Send + 'static>(options: Builder) -> Result<Ends<Self, T>, BuildError>
    where
        Self: Sized;
}

pub(crate) fn channel<F: Flavour, T: Send + 'static>(capacity: usize) -> Ends<F, T> {
    F::make(F::options(capacity)).unwrap()
}

macro_rules! flavours {
    ($($(#[$doc:meta])* $name:ident: $shape:ident by $make:ident,
        $traits:tt, $options:expr;)+) => { $(
        $(#[$doc])*
        pub(crate) struct $name;

        impl Flavour for $name {
            type S = $shape;
            flavours!(@traits $traits);

            fn options(capacity: usize) -> Builder {
                let options: fn(usize) -> Builder = $options;
                options(capacity)
            }

            fn make<T: Send + 'static>(options: Builder) -> Result<Ends<Self, T>, BuildError> {
                options.$make()
            }
        }
    )+ };
    (@traits [$lanes:literal $claims:literal $gives_back:literal $meeting:literal]) => {
        const HAS_LANES: bool = $lanes;
        const HAS_CLAIMS: bool = $claims;
        const GIVES_BACK: bool = $gives_back;
        const IS_MEETING: bool = $meeting;
    };
    (@traits ring) => { flavours!(@traits [false true true false]); };
    (@traits rings) => { flavours!(@traits [true true true false]); };
    (@traits shared_ring) => { flavours!(@traits [false true false false]); };
    (@traits queue) => { flavours!(@traits [false false true false]); };
    (@traits meeting) => { flavours!(@traits [false false true true]); };
}

flavours! {
    /// One ring, elements side by side.
    Packed: Spsc by spsc, ring, |n| Builder::new(n).layout(Layout::Packed);
    /// One ring, each element beside its sequence.
    Slotted: Spsc by spsc, ring, |n| Builder::new(n).layout(Layout::Slotted);
    /// A ring for each sender.
    Lanes: Mpsc by mpsc, rings, Builder::new;
    /// One ring for all senders.
    Ordered: Mpsc by mpsc, shared_ring, |n| Builder::new(n).ordered();
    /// One ring for all.
    Tickets: Mpmc by mpmc, shared_ring, Builder::new;
    /// A ring for each sender, shared by receivers.
    Shards: Mpmc by mpmc, rings, |n| Builder::new(n).sharded();
    /// Segments behind a lock, for one sender and one receiver.
    UnboundedSpsc: Spsc by spsc, queue, Builder::unbounded;
    /// Segments behind a lock, for many senders and one receiver.
    UnboundedMpsc: Mpsc by mpsc, queue, Builder::unbounded;
    /// Segments behind a lock.
    Unbounded: Mpmc by mpmc, queue, Builder::unbounded;
    /// No room at all: a sender meets a receiver.
    MeetSpsc: Spsc by spsc, meeting, |_| Builder::new(0);
    /// Senders meet one receiver.
    MeetMpsc: Mpsc by mpsc, meeting, |_| Builder::new(0);
    /// Senders meet receivers.
    Meet: Mpmc by mpmc, meeting, |_| Builder::new(0);
}
