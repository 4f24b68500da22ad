//! Bounded channels differ in names only: senders can be cloned, and so can receivers where there
//! may be many. tokio's is used with its blocking calls, outside of any runtime.

use tokio::sync::mpsc;

use super::{Element, Topology, fan, fan_in};

fn any(_: Topology) -> bool {
    true
}

fn one_receiver(shape: Topology) -> bool {
    shape.receivers == 1
}

channels! {
    Element;
    Crossbeam "crossbeam": crossbeam_channel::Sender<M>, crossbeam_channel::Receiver<M>, any,
        |capacity, shape| fan(crossbeam_channel::bounded(capacity), shape);
    Flume "flume": flume::Sender<M>, flume::Receiver<M>, any,
        |capacity, shape| fan(flume::bounded(capacity), shape);
    Kanal "kanal": kanal::Sender<M>, kanal::Receiver<M>, any,
        |capacity, shape| fan(kanal::bounded(capacity), shape);
    Std "std": std::sync::mpsc::SyncSender<M>, std::sync::mpsc::Receiver<M>, one_receiver,
        |capacity, shape| fan_in(std::sync::mpsc::sync_channel(capacity), shape);
    Tokio "tokio": mpsc::Sender<M>, mpsc::Receiver<M>, one_receiver,
        |capacity, shape| fan_in(mpsc::channel(capacity), shape);
}

// kanal's calls that try report a channel without room or messages as a success without a value.
ends! {
    Element;
    crossbeam_channel::Sender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok(),
        send |tx, message| Self::send(tx, message);
    crossbeam_channel::Receiver<M>: try_recv |rx| Self::try_recv(rx).ok(),
        recv |rx| Self::recv(rx).ok();
    flume::Sender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok(),
        send |tx, message| Self::send(tx, message);
    flume::Receiver<M>: try_recv |rx| Self::try_recv(rx).ok(), recv |rx| Self::recv(rx).ok();
    kanal::Sender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok_and(|sent| sent),
        send |tx, message| Self::send(tx, message);
    kanal::Receiver<M>: try_recv |rx| Self::try_recv(rx).ok().flatten(),
        recv |rx| Self::recv(rx).ok();
    std::sync::mpsc::SyncSender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok(),
        send |tx, message| Self::send(tx, message);
    std::sync::mpsc::Receiver<M>: try_recv |rx| Self::try_recv(rx).ok(),
        recv |rx| Self::recv(rx).ok();
    mpsc::Sender<M>: try_send |tx, message| Self::try_send(tx, message).is_ok(),
        send |tx, message| tx.blocking_send(message);
    mpsc::Receiver<M>: try_recv |rx| Self::try_recv(rx).ok(), recv |rx| rx.blocking_recv();
}
