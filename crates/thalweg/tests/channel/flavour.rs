//! What the suite needs of a channel: a way to make one.

use thalweg::channel::{BuildError, Builder, Mpmc, Mpsc, Receiver, Sender, Shape, Spsc};
use thalweg::ring::Layout;

/// The ends of a channel.
pub(crate) type Ends<F, T> = (
    Sender<T, <F as Flavour>::S>,
    Receiver<T, <F as Flavour>::S>,
);

/// A kind of channel.
pub(crate) trait Flavour: 'static {
    type S: Shape;
    /// Each sender has room of its own, and elements of different senders are in no order.
    const HAS_LANES: bool;
    /// Its memory can be claimed.
    const HAS_CLAIMS: bool;

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
        lanes $lanes:literal, claims $claims:literal, $options:expr;)+) => { $(
        $(#[$doc])*
        pub(crate) struct $name;

        impl Flavour for $name {
            type S = $shape;
            const HAS_LANES: bool = $lanes;
            const HAS_CLAIMS: bool = $claims;

            fn options(capacity: usize) -> Builder {
                let options: fn(usize) -> Builder = $options;
                options(capacity)
            }

            fn make<T: Send + 'static>(options: Builder) -> Result<Ends<Self, T>, BuildError> {
                options.$make()
            }
        }
    )+ };
}

flavours! {
    /// One ring, elements side by side.
    Packed: Spsc by spsc, lanes false, claims true, |n| Builder::new(n).layout(Layout::Packed);
    /// One ring, each element beside its sequence.
    Slotted: Spsc by spsc, lanes false, claims true, |n| Builder::new(n).layout(Layout::Slotted);
    /// A ring for each sender.
    Lanes: Mpsc by mpsc, lanes true, claims true, Builder::new;
    /// One ring for all senders.
    Ordered: Mpsc by mpsc, lanes false, claims true, |n| Builder::new(n).ordered();
    /// One ring for all.
    Tickets: Mpmc by mpmc, lanes false, claims true, Builder::new;
    /// A ring for each sender, shared by receivers.
    Shards: Mpmc by mpmc, lanes true, claims true, |n| Builder::new(n).sharded();
    /// Segments behind a lock, for one sender and one receiver.
    UnboundedSpsc: Spsc by spsc, lanes false, claims false, Builder::unbounded;
    /// Segments behind a lock, for many senders and one receiver.
    UnboundedMpsc: Mpsc by mpsc, lanes false, claims false, Builder::unbounded;
    /// Segments behind a lock.
    Unbounded: Mpmc by mpmc, lanes false, claims false, Builder::unbounded;
    /// No room at all: a sender meets a receiver.
    MeetSpsc: Spsc by spsc, lanes false, claims false, |_| Builder::new(0);
    /// Senders meet one receiver.
    MeetMpsc: Mpsc by mpsc, lanes false, claims false, |_| Builder::new(0);
    /// Senders meet receivers.
    Meet: Mpmc by mpmc, lanes false, claims false, |_| Builder::new(0);
}
