//! One connection: reads commands, writes what its session is told.
//!
//! Reader and writer are two futures of one task. The reader has the exchange execute commands, and
//! reads nothing while that has no room for them. The writer takes what waits in the outbox, and
//! market data when nothing does; so private answers come before the market's.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_exchange::codec::session::{Bye, Ending, ServerFrame};
use thalweg_exchange::codec::session::{encode_server_frame, server_frame_bytes};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use crate::feed::Subscription;
use crate::figures::raise;
use crate::greeting::greet;
use crate::outbox::{End, Taken};
use crate::reading::Reading;
use crate::request::Request;
use crate::seats::Seat;
use crate::session::Session;
use crate::shared::Shared;

/// How long a bye may take to be written.
const BYE_TIME: Duration = Duration::from_millis(500);
/// How long a connection that ends may take what waits for it: less than the server waits for its
/// connections when it stops.
const LAST_TIME: Duration = Duration::from_secs(2);

/// Serves a connection to its end.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    mut seat: Seat,
    stream: TcpStream,
    peer: SocketAddr,
) {
    // Without it, answers wait for acknowledgements of the ones before.
    let _ = stream.set_nodelay(true);
    let (mut from, mut to) = stream.into_split();
    let mut bytes = Vec::new();
    let session = match greet(&shared, &mut seat, &mut from, &mut bytes).await {
        Ok(Some(session)) => session,
        Ok(None) => return,
        Err(unwelcome) => {
            raise(&shared.figures.hellos_refused, 1);
            if let Some(left_out) = shared.log_refused.pass(Instant::now()) {
                let why = unwelcome.why.text();
                tracing::warn!(
                    %peer,
                    why,
                    text = unwelcome.text,
                    left_out = (left_out > 0).then_some(left_out),
                    "a hello was refused"
                );
            }
            let (why, text) = (unwelcome.why, unwelcome.text);
            shared.figures.end(why);
            return part(
                &mut to,
                &End {
                    why,
                    text,
                    is_told: true,
                },
            )
            .await;
        }
    };
    let key = session.key;
    if let Some(left_out) = shared.log_welcomed.pass(Instant::now()) {
        let key_name = session.key_name();
        let left_out = (left_out > 0).then_some(left_out);
        tracing::info!(%peer, session = %key, key = key_name, left_out, "connected");
    }
    let reading = Reading::new(Arc::clone(&shared), Arc::clone(&session), bytes);
    let mut writing = Writing::new(&shared, &session, to);
    {
        let read = reading.run(from);
        tokio::pin!(read);
        // A session that was ended reads no more, even while its client takes nothing.
        tokio::select! {
            () = &mut read => {}
            () = writing.run() => {}
            () = session.outbox.over() => {}
        }
    }
    // Nothing of it is read any more: its orders go now, not when it has taken what waits for it.
    tokio::join!(leave(&shared, &session), writing.finish());
    let why = session.outbox.ending().unwrap_or(Ending::Done);
    shared.figures.end(why);
    if let Some(left_out) = shared.log_welcomed.pass(Instant::now()) {
        let (why, left_out) = (why.text(), (left_out > 0).then_some(left_out));
        tracing::info!(%peer, session = %key, why, left_out, "disconnected");
    }
    drop(seat);
}

/// Takes a session out, and its orders if they go with it; charges its holder.
async fn leave(shared: &Shared, session: &Arc<Session>) {
    let left = shared.access.serve(Request::Left(Arc::clone(session)));
    let work = left.await.unwrap_or(0);
    let holder = shared.turns.holder(session.key);
    shared.turns.charge(&holder, work);
}

/// Says bye and closes.
async fn part(to: &mut OwnedWriteHalf, end: &End) {
    if end.is_told {
        let bye = ServerFrame::Bye(Bye {
            why: end.why,
            text: &end.text,
        });
        let mut bytes = vec![0; server_frame_bytes(&bye)];
        if encode_server_frame(&bye, &mut bytes).is_ok() {
            let _ = tokio::time::timeout(BYE_TIME, to.write_all(&bytes)).await;
        }
    }
    let _ = tokio::time::timeout(BYE_TIME, to.shutdown()).await;
}

/// The writer's half.
struct Writing {
    shared: Arc<Shared>,
    session: Arc<Session>,
    to: OwnedWriteHalf,
    market: Subscription,
    bytes: Vec<u8>,
    /// How many of `bytes` the socket has.
    written: usize,
    /// When something was written last.
    wrote: Instant,
}

impl Writing {
    fn new(shared: &Arc<Shared>, session: &Arc<Session>, to: OwnedWriteHalf) -> Self {
        Self {
            shared: Arc::clone(shared),
            session: Arc::clone(session),
            to,
            market: Subscription::new(Arc::clone(&shared.feed)),
            bytes: Vec::new(),
            written: 0,
            wrote: Instant::now(),
        }
    }

    /// Writes until the session ends. Dropped before, `bytes` keeps the rest of a frame.
    async fn run(&mut self) {
        let mut beat = tokio::time::interval(self.session.heartbeat);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            match self.take() {
                Taken::Bytes => {
                    if self.write().await.is_err() {
                        return;
                    }
                    continue;
                }
                Taken::End(_) => return,
                Taken::Nothing => {}
            }
            if let Some(interest) = self.session.interest(self.market.version()) {
                self.market.serve(interest);
            }
            tokio::select! {
                biased;
                () = self.session.outbox.ready() => continue,
                () = self.market.next(&mut self.bytes) => {
                    raise(&self.shared.figures.market_bytes_out, self.bytes.len() as u64);
                }
                _ = beat.tick() => self.beat().await,
            }
            if self.write().await.is_err() {
                return;
            }
        }
    }

    /// Takes what waits, once all that was taken before is written.
    fn take(&mut self) -> Taken {
        self.written = 0;
        let taken = self.session.outbox.take(&mut self.bytes);
        raise(&self.shared.figures.bytes_out, self.bytes.len() as u64);
        taken
    }

    /// A heartbeat, if nothing was written for so long; the end, if nothing was heard.
    async fn beat(&mut self) {
        let heartbeat = self.session.heartbeat;
        if self.session.silent_for(Instant::now()) >= heartbeat * 3 {
            // Something may have come while this thread was busy with a long command. The first
            // time the reader may not be asked before this goes on.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
        let now = Instant::now();
        if self.session.silent_for(now) >= heartbeat * 3 {
            let text = format!("nothing for {} ms", (heartbeat * 3).as_millis());
            self.session.outbox.end(Ending::Silent, text);
        } else if now.duration_since(self.wrote) >= heartbeat / 2 {
            self.session.outbox.push(&ServerFrame::Heartbeat);
            self.session.outbox.wake();
        }
    }

    /// Writes the bytes at hand. Each time that the socket takes some, it has time again.
    async fn write(&mut self) -> Result<(), ()> {
        let limit = Duration::from_millis(self.shared.config.sessions.stall_ms);
        while self.written < self.bytes.len() {
            let some = self.to.write(&self.bytes[self.written..]);
            let why = match tokio::time::timeout(limit, some).await {
                Ok(Ok(count)) if count > 0 => {
                    self.written += count;
                    self.wrote = Instant::now();
                    continue;
                }
                Ok(_) => Ending::Done,
                Err(_) => Ending::SlowReader,
            };
            // In the middle of a frame there is no place for a bye.
            self.session.outbox.end_silently(why);
            return Err(());
        }
        Ok(())
    }

    /// The rest of what was begun, what waits, the bye, and the end.
    async fn finish(&mut self) {
        let rest = async {
            while self.write().await.is_ok() {
                match self.take() {
                    Taken::Bytes => {}
                    Taken::End(end) => return part(&mut self.to, &end).await,
                    Taken::Nothing => return,
                }
            }
        };
        let _ = tokio::time::timeout(LAST_TIME, rest).await;
    }
}
