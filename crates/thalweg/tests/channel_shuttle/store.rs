//! The kinds of channels that models run over, each with as many ends as it may have.

use crate::channel_shuttle::ledger::{Item, Ledger};
use thalweg::channel::{Builder, Counters, Mpmc, Mpsc, Receiver, Sender, Shape, Spsc};
use thalweg::ring::Layout;

/// Ends of each side where there may be several.
const MANY: usize = 3;

/// All ends of a new channel.
pub(crate) struct Ends<S: Shape> {
    pub(crate) senders: Vec<Sender<Item, S>>,
    pub(crate) receivers: Vec<Receiver<Item, S>>,
    /// It stores nothing.
    pub(crate) is_rendezvous: bool,
    pub(crate) ledger: Ledger,
}

impl<S: Shape> Ends<S> {
    fn new(senders: Vec<Sender<Item, S>>, receivers: Vec<Receiver<Item, S>>) -> Self {
        let ledger = Ledger::new(senders.len());
        Self {
            is_rendezvous: senders[0].capacity() == 0,
            senders,
            receivers,
            ledger,
        }
    }

    /// A figure of the channel, by what its senders say.
    pub(crate) fn figure(senders: &[Sender<Item, S>], of: Figure) -> usize {
        let all = senders.iter().map(|tx| of(tx.counters()) as usize);
        all.max().unwrap_or_default()
    }
}

type Figure = fn(Counters) -> u64;

/// One to one.
pub(crate) fn one_to_one(builder: Builder) -> Ends<Spsc> {
    let (tx, rx) = builder.spsc().unwrap();
    Ends::new(vec![tx], vec![rx])
}

/// Three to one.
pub(crate) fn many_to_one(builder: Builder) -> Ends<Mpsc> {
    let (tx, rx) = builder.mpsc().unwrap();
    Ends::new(vec![tx; MANY], vec![rx])
}

/// Three to three.
pub(crate) fn many_to_many(builder: Builder) -> Ends<Mpmc> {
    let (tx, rx) = builder.mpmc().unwrap();
    Ends::new(vec![tx; MANY], vec![rx; MANY])
}

pub(crate) fn packed() -> Ends<Spsc> {
    one_to_one(Builder::new(2).layout(Layout::Packed))
}

pub(crate) fn slotted() -> Ends<Spsc> {
    one_to_one(Builder::new(3).layout(Layout::Slotted))
}

pub(crate) fn ordered() -> Ends<Mpsc> {
    many_to_one(Builder::new(3))
}

pub(crate) fn mpmc() -> Ends<Mpmc> {
    many_to_many(Builder::new(2))
}

pub(crate) fn packed_mpmc() -> Ends<Mpmc> {
    many_to_many(Builder::new(4).layout(Layout::Packed))
}

pub(crate) fn unbounded() -> Ends<Mpmc> {
    many_to_many(Builder::unbounded(3))
}

pub(crate) fn rendezvous_of_two() -> Ends<Spsc> {
    one_to_one(Builder::new(0))
}

pub(crate) fn rendezvous() -> Ends<Mpmc> {
    many_to_many(Builder::new(0))
}
