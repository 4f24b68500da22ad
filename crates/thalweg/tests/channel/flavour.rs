//! The flavours of channels for the suite: a way to make each, and what to expect of it.
//!
//! Cases are generic over the shape only, and know the flavour as a value: there are three shapes
//! and a dozen flavours, and every case is compiled for each shape.

use std::marker::PhantomData;
use thalweg::channel::{BuildError, Builder, Mpmc, Mpsc, Receiver, Sender, Shape, Spsc};
use thalweg::ring::Layout;

/// The ends of a channel.
pub(crate) type Ends<S, T> = (Sender<T, S>, Receiver<T, S>);

/// A shape, by the builder's method for it.
pub(crate) trait Made: Shape + Sized {
    fn make<T: Send + 'static>(options: Builder) -> Result<Ends<Self, T>, BuildError>;
}

macro_rules! made {
    ($($shape:ident by $make:ident)+) => { $(
        impl Made for $shape {
            fn make<T: Send + 'static>(options: Builder) -> Result<Ends<Self, T>, BuildError> {
                options.$make()
            }
        }
    )+ };
}

made! { Spsc by spsc Mpsc by mpsc Mpmc by mpmc }

/// A kind of channel.
pub(crate) struct Flavour<S> {
    /// Its memory can be claimed.
    pub(crate) has_claims: bool,
    /// Room that is claimed and not used comes back at once.
    pub(crate) gives_back: bool,
    /// It stores nothing.
    pub(crate) is_rendezvous: bool,
    options: fn(usize) -> Builder,
    shape: PhantomData<fn() -> S>,
}

impl<S> Clone for Flavour<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Flavour<S> {}

impl<S: Made> Flavour<S> {
    const fn stored(options: fn(usize) -> Builder) -> Self {
        Self {
            has_claims: false,
            gives_back: true,
            is_rendezvous: false,
            options,
            shape: PhantomData,
        }
    }

    /// A ring of one sender.
    const fn ring(options: fn(usize) -> Builder) -> Self {
        Self {
            has_claims: true,
            ..Self::stored(options)
        }
    }

    /// A ring that senders share.
    const fn shared(options: fn(usize) -> Builder) -> Self {
        Self {
            gives_back: false,
            ..Self::ring(options)
        }
    }

    /// No room at all: a sender meets a receiver.
    const fn rendezvous() -> Self {
        Self {
            is_rendezvous: true,
            ..Self::stored(|_| Builder::new(0))
        }
    }

    /// Returns the options that make it, for `capacity` elements.
    pub(crate) fn options(self, capacity: usize) -> Builder {
        (self.options)(capacity)
    }

    pub(crate) fn make<T: Send + 'static>(
        self,
        options: Builder,
    ) -> Result<Ends<S, T>, BuildError> {
        S::make(options)
    }

    pub(crate) fn channel<T: Send + 'static>(self, capacity: usize) -> Ends<S, T> {
        self.make(self.options(capacity)).unwrap()
    }
}

pub(crate) const PACKED: Flavour<Spsc> =
    Flavour::ring(|capacity| Builder::new(capacity).layout(Layout::Packed));
pub(crate) const SLOTTED: Flavour<Spsc> =
    Flavour::ring(|capacity| Builder::new(capacity).layout(Layout::Slotted));
pub(crate) const ORDERED: Flavour<Mpsc> = Flavour::shared(Builder::new);
pub(crate) const MPMC: Flavour<Mpmc> = Flavour::shared(Builder::new);
pub(crate) const UNBOUNDED_SPSC: Flavour<Spsc> = Flavour::stored(Builder::unbounded);
pub(crate) const UNBOUNDED_MPSC: Flavour<Mpsc> = Flavour::stored(Builder::unbounded);
pub(crate) const UNBOUNDED: Flavour<Mpmc> = Flavour::stored(Builder::unbounded);
pub(crate) const RENDEZVOUS_SPSC: Flavour<Spsc> = Flavour::rendezvous();
pub(crate) const RENDEZVOUS_MPSC: Flavour<Mpsc> = Flavour::rendezvous();
pub(crate) const RENDEZVOUS: Flavour<Mpmc> = Flavour::rendezvous();
