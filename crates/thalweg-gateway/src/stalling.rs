//! A transport whose client must take something of what is written to it, or its connection ends.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::connection_slots::ConnectionSlot;

/// See the [module](self). A WebSocket has bounds of its own: its outbox, and pongs.
#[derive(Debug)]
pub(crate) struct Stalling<S> {
    stream: S,
    slot: Arc<ConnectionSlot>,
    limit: Duration,
    /// Since when nothing has been taken: when that has been for too long.
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalling<S> {
    /// Has writes fail once the client has taken nothing of one for this long.
    pub(crate) const fn new(stream: S, slot: Arc<ConnectionSlot>, limit: Duration) -> Self {
        Self {
            stream,
            slot,
            limit,
            until: None,
        }
    }

    fn written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() || self.slot.is_websocket() {
            self.until = None;
            return written;
        }
        let limit = self.limit;
        let until = self
            .until
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(until.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::connection_slots::ConnectionSlots;

    const LIMIT: Duration = Duration::from_secs(10);

    fn slot() -> Arc<ConnectionSlot> {
        let slots = ConnectionSlots::new(2, None);
        Arc::new(slots.take([127, 0, 0, 1].into()).expect("room"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_ends_the_write_and_one_that_is_slow_does_not() {
        let (mut client, server) = duplex(16);
        let mut server = Stalling::new(server, slot(), LIMIT);
        let slow = async {
            for _ in 0..100 {
                tokio::time::sleep(LIMIT - Duration::from_secs(1)).await;
                client.read_u8().await.expect("a byte");
            }
        };
        let (written, ()) = tokio::join!(server.write_all(&[0; 116]), slow);
        written.expect("it was taken");
        let error = server.write_all(&[0]).await.expect_err("it has no room");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(client);
    }

    #[tokio::test(start_paused = true)]
    async fn a_websocket_may_wait() {
        let (mut client, server) = duplex(16);
        let slot = slot();
        assert!(slot.follow([127, 0, 0, 1].into()));
        let mut server = Stalling::new(server, slot, LIMIT);
        let late = async {
            tokio::time::sleep(LIMIT * 10).await;
            client.read_exact(&mut [0; 32]).await.expect("all");
        };
        let (written, ()) = tokio::join!(server.write_all(&[0; 32]), late);
        written.expect("it was taken");
    }
}
