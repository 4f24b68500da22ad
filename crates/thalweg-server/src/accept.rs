//! Takes connections and gives each a task, which reads its hello.

use std::sync::Arc;
use std::time::Duration;

use thalweg_exchange::codec::session::{Bye, Ending, ServerFrame};
use thalweg_exchange::codec::session::{encode_server_frame, server_frame_bytes};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::counters::raise;
use crate::handshake::{ListenerKind, receive};
use crate::lifecycle::Lifecycle;
use crate::shared::Shared;

/// How long the listener rests where the system gives it no connection, such as for want of file
/// descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until the server drains, and waits until each is a session, or has ended.
pub(crate) async fn listen(shared: Arc<Shared>, kind: ListenerKind, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    raise(&shared.counters.accepted, 1);
                    match shared.connection_slots.take(kind) {
                        Some(slot) => {
                            connections.spawn(receive(Arc::clone(&shared), slot, stream, peer));
                        }
                        None => refuse(&shared, kind, &stream),
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "a connection could not be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection's task has ended badly");
                }
            }
            _ = shared.lifecycle.reached(Lifecycle::OVER) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Refuses a connection beyond the limit: sends it a bye, if its socket takes that at once.
fn refuse(shared: &Shared, kind: ListenerKind, stream: &TcpStream) {
    let limit = shared.connection_slots.max(kind);
    shared.counters.end(Ending::Connections);
    let text = format!("{limit} are served");
    let bye = ServerFrame::Bye(Bye {
        why: Ending::Connections,
        text: &text,
    });
    let mut bytes = vec![0; server_frame_bytes(&bye)];
    if encode_server_frame(&bye, &mut bytes).is_ok() {
        let _ = stream.try_write(&bytes);
    }
}
