//! Takes connections and gives each a task, which reads its hello.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thalweg_exchange::codec::session::{Bye, CloseReason, ServerFrame};
use thalweg_exchange::codec::session::{encode_server_frame, server_frame_bytes};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection_slots::ListenerKind;
use crate::counters::raise;
use crate::handshake::receive;
use crate::lifecycle::Lifecycle;
use crate::shared::Shared;

/// How long the listener rests where the system gives it no connection, such as for want of file
/// descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until the server drains, and waits until each is a session, or has ended.
pub(crate) async fn listen(shared: Arc<Shared>, kind: ListenerKind, listener: TcpListener) {
    let mut connections = JoinSet::new();
    let mut next = Instant::now();
    loop {
        tokio::select! {
            accepted = accept(&listener, next) => match accepted {
                Ok((stream, peer)) => {
                    raise(&shared.counters.accepted, 1);
                    let now = Instant::now();
                    let (limits, from) = (&shared.connect_limits, peer.ip());
                    let arrival = limits.arrive(kind, from, now.into_std());
                    next = now + arrival.pause;
                    if !arrival.is_taken {
                        let most = shared.config.server.connects_per_address_s;
                        refuse(&shared, &stream, &format!("{most} a second of an address"));
                    } else if let Some(slot) = shared.connection_slots.take(kind) {
                        connections.spawn(receive(Arc::clone(&shared), slot, stream, peer));
                    } else {
                        let most = shared.connection_slots.max(kind);
                        refuse(&shared, &stream, &format!("{most} are served"));
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "a connection could not be taken");
                    next = Instant::now() + PAUSE;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection's task has ended badly");
                }
            }
            _ = shared.lifecycle.wait_for(Lifecycle::OVER) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Accepts a connection, not before this time.
async fn accept(listener: &TcpListener, from: Instant) -> io::Result<(TcpStream, SocketAddr)> {
    tokio::time::sleep_until(from).await;
    listener.accept().await
}

/// Refuses a connection beyond a limit: sends it a bye, if its socket takes that at once.
fn refuse(shared: &Shared, stream: &TcpStream, text: &str) {
    shared.counters.end(CloseReason::Connections);
    let bye = ServerFrame::Bye(Bye {
        why: CloseReason::Connections,
        text,
    });
    let mut bytes = vec![0; server_frame_bytes(&bye)];
    if encode_server_frame(&bye, &mut bytes).is_ok() {
        let _ = stream.try_write(&bytes);
    }
}
