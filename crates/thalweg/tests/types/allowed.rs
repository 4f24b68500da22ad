//! Code that must compile: a marker too many would prevent it. The other half is in `refused.rs`.
#![allow(dead_code)] // compiled is all that it has to be

use thalweg::bus::{self, Bus, Message, PublishError, SubscriptionBuilder};
use thalweg::channel::select::{Select, Timer};
use thalweg::channel::{self, Closed, IntoIter, Iter, Mpmc, Mpsc, OneshotReceiver, OneshotSender};
use thalweg::channel::{RecvFuture, RecvStream, SendError, SendFuture, Spsc, TryIter};
use thalweg::channel::{WeakReceiver, WeakSender};
use thalweg::pipeline::{self, Chunk, Pipeline};
use thalweg::ring::{MpmcClaim, MpmcRing, broadcast};
use thalweg::ring::{
    OneshotConsumer, OneshotProducer, SpscBatch, SpscClaim, SpscConsumer, SpscProducer,
};
use thalweg::state::{StateCell, StateView};

fn send<T: Send>() {}
fn sync<T: Sync>() {}
fn unpin<T: Unpin>() {}

/// Types that hold elements move to another thread where the elements may.
fn moves<'a, T: Send + 'a, M: Message>() {
    send::<(
        SpscProducer<T>,
        SpscConsumer<T>,
        SpscClaim<'a, T>,
        SpscBatch<'a, T>,
    )>();
    send::<(
        MpmcRing<T>,
        MpmcClaim<'a, T>,
        OneshotProducer<T>,
        OneshotConsumer<T>,
    )>();
    send::<(
        channel::Sender<T, Spsc>,
        channel::Sender<T, Mpsc>,
        channel::Sender<T, Mpmc>,
    )>();
    send::<(
        channel::Receiver<T, Spsc>,
        channel::Receiver<T, Mpsc>,
        channel::Receiver<T, Mpmc>,
    )>();
    send::<(
        WeakSender<T, Mpmc>,
        WeakReceiver<T, Mpmc>,
        channel::Claim<'a, T>,
    )>();
    send::<(
        channel::Batch<'a, T>,
        Iter<'a, T, Mpsc>,
        TryIter<'a, T, Mpsc>,
        IntoIter<T, Mpsc>,
    )>();
    send::<(
        RecvFuture<'a, T, Mpmc>,
        SendFuture<'a, T, Mpmc, Option<T>>,
        RecvStream<T, Mpmc>,
    )>();
    send::<(
        SendFuture<'a, T, Spsc, &'a mut Option<T>>,
        Closed,
        Timer,
        Select<T>,
    )>();
    send::<(OneshotSender<T>, OneshotReceiver<T>, SendError<T>)>();
    send::<(
        Bus<M>,
        bus::Publisher<M>,
        bus::Consumer<M>,
        bus::Delivery<M>,
    )>();
    send::<(bus::BusBuilder<M>, SubscriptionBuilder<M>, PublishError<M>)>();
    send::<(
        pipeline::Handle,
        pipeline::Processed,
        StateCell,
        broadcast::Progress,
    )>();
}

/// Events are looked at by several stages at once.
fn moves_shared<'a, T: Send + Sync + 'a>() {
    send::<(
        broadcast::RingPublisher<T>,
        broadcast::Reader<T>,
        broadcast::SlotClaim<'a, T>,
    )>();
    send::<(
        broadcast::RingBuilder<T>,
        pipeline::Producer<T>,
        Pipeline<T>,
    )>();
    send::<Chunk<'a, T>>();
    sync::<broadcast::Reader<T>>();
}

/// Types that threads share.
fn is_shared<'a, T: Send + 'a, M: Message>() {
    sync::<(
        MpmcRing<T>,
        OneshotProducer<T>,
        OneshotConsumer<T>,
        OneshotSender<T>,
        OneshotReceiver<T>,
    )>();
    sync::<(
        Bus<M>,
        SubscriptionBuilder<M>,
        Closed,
        pipeline::Handle,
        StateView,
    )>();
    sync::<(
        std::sync::Mutex<channel::Sender<T, Mpmc>>,
        std::sync::Mutex<SpscProducer<T>>,
    )>();
}

/// Nothing holds an element in a place of its own that would be pinned.
fn is_unpin<'a, T: 'a, M: Message>() {
    unpin::<(
        SpscProducer<T>,
        SpscConsumer<T>,
        SpscClaim<'a, T>,
        SpscBatch<'a, T>,
    )>();
    unpin::<(
        MpmcRing<T>,
        MpmcClaim<'a, T>,
        OneshotProducer<T>,
        OneshotConsumer<T>,
    )>();
    unpin::<(
        broadcast::RingPublisher<T>,
        broadcast::Reader<T>,
        broadcast::SlotClaim<'a, T>,
    )>();
    unpin::<(
        channel::Sender<T, Spsc>,
        channel::Receiver<T, Mpmc>,
        WeakSender<T, Mpmc>,
    )>();
    unpin::<(
        channel::Claim<'a, T>,
        channel::Batch<'a, T>,
        RecvFuture<'a, T, Mpmc>,
    )>();
    unpin::<(
        SendFuture<'a, T, Mpmc, Option<T>>,
        RecvStream<T, Mpmc>,
        Closed,
    )>();
    unpin::<(
        OneshotSender<T>,
        OneshotReceiver<T>,
        Pipeline<T>,
        pipeline::Producer<T>,
    )>();
    unpin::<(Bus<M>, bus::Publisher<M>)>();
}

/// Types that only give elements may give them for shorter.
fn gives<'a>(ring: SpscConsumer<&'static str>) -> SpscConsumer<&'a str> {
    ring
}

type Guards<'l, T> = (SpscClaim<'l, T>, SpscBatch<'l, T>, channel::Claim<'l, T>);

/// A guard may be held for shorter than it could.
fn is_held_for_shorter<'a: 'b, 'b>(guards: Guards<'a, u8>) -> Guards<'b, u8> {
    guards
}
