//! Hello and welcome: who a connection is, and whether it may be that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_exchange::codec::CodecError;
use thalweg_exchange::codec::SESSION_VERSION;
use thalweg_exchange::codec::session::{
    ClientFrame, Ending, HELLO_BYTES_MAX, Hello, ServerFrame, Welcome, decode_client_frame,
};
use thalweg_exchange::session::{ReportNumber, Role, SessionKey};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::config::HEARTBEAT_MS_MAX;
use crate::figures::read;
use crate::keys::Key;
use crate::publisher::resume;
use crate::roster::WITHDRAWN;
use crate::seats::Seat;
use crate::session::{Session, Terms};
use crate::shared::Shared;

/// Which roles a listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Trade and read.
    Trade,
    /// Admin.
    Admin,
}

impl Door {
    fn serves(self, role: Role) -> bool {
        (self == Self::Admin) == (role == Role::Admin)
    }
}

/// Why a connection was not welcomed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unwelcome {
    pub(crate) why: Ending,
    pub(crate) text: String,
}

impl Unwelcome {
    fn new(why: Ending, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { why, text }
    }
}

/// A hello that may be welcomed.
#[derive(Debug)]
struct Guest {
    key: SessionKey,
    shown: Option<Arc<Key>>,
    last_report: Option<ReportNumber>,
    heartbeat_ms: u32,
    cancels_on_disconnect: bool,
    wants_reports: bool,
}

/// Work that a connection is at least: its hello, its end, and lines of the log.
const CONNECTION_WORK: u64 = 256;
/// How long a hello waits for a turn. While a disk stands still, the one who has the turn waits for
/// room; clients are welcomed all the same, and see the market.
const TURN_TIME: Duration = Duration::from_millis(100);

/// Reads a hello and enters the session. `bytes` keeps what came after it. `None` where the other
/// side is gone.
pub(crate) async fn greet(
    shared: &Shared,
    seat: &mut Seat,
    stream: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
) -> Result<Option<Arc<Session>>, Unwelcome> {
    let limit = Duration::from_millis(shared.config.sessions.hello_ms);
    let guest = tokio::select! {
        biased;
        heard = tokio::time::timeout(limit, hear(shared, seat.door, stream, bytes)) => heard,
        () = seat.evicted() => return Err(evicted()),
    };
    let guest = match guest {
        Ok(heard) => heard,
        Err(_) => {
            let text = format!("none came within {} ms", limit.as_millis());
            return Err(Unwelcome::new(Ending::NoHello, text));
        }
    };
    match guest {
        Ok(Some(guest)) => {
            let holder = shared.turns.holder(guest.key);
            let turn = tokio::select! {
                turn = tokio::time::timeout(TURN_TIME, shared.turns.begin(&holder, None)) => turn,
                () = seat.evicted() => return Err(evicted()),
            };
            let entered = enter(shared, seat, guest).map(Some);
            match turn {
                Ok(turn) => drop(turn.end(&holder, 0, CONNECTION_WORK)),
                Err(_) => shared.turns.charge(&holder, CONNECTION_WORK),
            }
            entered
        }
        Ok(None) => Ok(None),
        Err(unwelcome) => {
            if unwelcome.why == Ending::WrongKey {
                // Guessing takes time, unless others need the seat.
                let pause = Duration::from_millis(shared.config.sessions.wrong_key_ms);
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = seat.evicted() => {}
                }
            }
            Err(unwelcome)
        }
    }
}

/// Why a connection ends whose seat was given to another before it was welcomed.
fn evicted() -> Unwelcome {
    Unwelcome::new(Ending::Connections, "others came before its hello")
}

async fn hear(
    shared: &Shared,
    door: Door,
    stream: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
) -> Result<Option<Guest>, Unwelcome> {
    bytes.reserve(2 * HELLO_BYTES_MAX);
    loop {
        let (frame, length) = match decode_client_frame(bytes) {
            Err(CodecError::Incomplete { needed, .. }) if needed <= HELLO_BYTES_MAX => {
                match stream.read_buf(bytes).await {
                    Ok(0) | Err(_) => return Ok(None),
                    Ok(_) => continue,
                }
            }
            Err(CodecError::Incomplete { needed, .. }) => {
                let text = format!("{needed} bytes; a hello has {HELLO_BYTES_MAX} at most");
                return Err(Unwelcome::new(Ending::FrameTooLong, text));
            }
            Err(error) => {
                let text = format!("frame at byte 0: {error}");
                return Err(Unwelcome::new(Ending::BadFrame, text));
            }
            Ok(read) => read,
        };
        let ClientFrame::Hello(hello) = frame else {
            return Err(Unwelcome::new(Ending::NoHello, ""));
        };
        let guest = examine(shared, door, &hello)?;
        bytes.drain(..length);
        return Ok(Some(guest));
    }
}

fn examine(shared: &Shared, door: Door, hello: &Hello<'_>) -> Result<Guest, Unwelcome> {
    let ours = u16::from(SESSION_VERSION);
    if !(hello.version_min..=hello.version_max).contains(&ours) {
        let text = format!("this server speaks version {ours}");
        return Err(Unwelcome::new(Ending::Version, text));
    }
    if !door.serves(hello.role) {
        return Err(Unwelcome::new(Ending::Listener, ""));
    }
    let shown = match shared.keys() {
        None => None,
        Some(keys) => {
            let key = keys.admit(hello.key.0, hello.role, hello.holder);
            let wrong = || Unwelcome::new(Ending::WrongKey, "");
            Some(Arc::new(key.ok_or_else(wrong)?.clone()))
        }
    };
    let limit = shared.config.sessions.per_holder;
    // Each gets all reports of its user; only who wants none may be there any number of times.
    let is_many = hello.role == Role::Read && hello.market_data_only;
    if !is_many && hello.number >= limit {
        let text = format!("session number {}: numbers are below {limit}", hello.number);
        return Err(Unwelcome::new(Ending::Sessions, text));
    }
    Ok(Guest {
        key: SessionKey::new(hello.role, hello.holder, hello.number),
        shown,
        last_report: hello.last_report,
        heartbeat_ms: heartbeat_ms(shared, hello.heartbeat_ms),
        cancels_on_disconnect: hello.cancels_on_disconnect && hello.role == Role::Trade,
        wants_reports: !hello.market_data_only && hello.role != Role::Admin,
    })
}

fn heartbeat_ms(shared: &Shared, asked: u32) -> u32 {
    let sessions = &shared.config.sessions;
    match asked {
        0 => sessions.heartbeat_ms,
        asked => asked.clamp(sessions.heartbeat_min_ms, HEARTBEAT_MS_MAX as u32),
    }
}

fn enter(shared: &Shared, seat: &mut Seat, guest: Guest) -> Result<Arc<Session>, Unwelcome> {
    let kept = seat.keep(guest.key);
    kept.map_err(|text| Unwelcome::new(Ending::Connections, text))?;
    let sessions = &shared.config.sessions;
    let session = Arc::new(Session::new(
        Terms {
            id: seat.id,
            key: guest.key,
            shown: guest.shown,
            cancels_on_disconnect: guest.cancels_on_disconnect,
            wants_reports: guest.wants_reports,
            heartbeat: Duration::from_millis(guest.heartbeat_ms.into()),
            out_bytes_max: sessions.out_bytes_max,
            budget: Arc::clone(&shared.budget),
        },
        Instant::now(),
    ));
    let (Some(reports), Some(exchange)) = (shared.reports.get(), shared.exchange.get()) else {
        return Err(Unwelcome::new(Ending::Shutdown, "the exchange is not open"));
    };
    let refused = |why| Unwelcome::new(why, "");
    let entered = shared.roster.enter(&session, || {
        let user = session.user();
        let state = reports.session(guest.key);
        let frame_bytes_max = match guest.key.role {
            Role::Admin => sessions.admin_frame_bytes_max,
            _ => sessions.frame_bytes_max,
        };
        session.outbox.push(&ServerFrame::Welcome(Welcome {
            version: u16::from(SESSION_VERSION),
            heartbeat_ms: guest.heartbeat_ms,
            holder: guest.key.holder,
            last_executed: state.last_executed,
            next_report: user.map_or(ReportNumber(1), |user| reports.next(user)),
            next_command: read(&shared.next_command),
            in_flight_max: sessions.answers_kept,
            frame_bytes_max,
            rate_max: sessions.rate_per_s,
            epoch: shared.feed.epoch,
            channels: shared.feed.channels,
            exchange: *exchange,
        }));
        if let Some(user) = user.filter(|_| guest.wants_reports) {
            resume(&session, reports, user, guest.last_report);
        }
    });
    entered.map_err(refused)?;
    // They may have changed since its hello was examined.
    if let (Some(keys), Some(shown)) = (shared.keys(), &session.shown)
        && !keys.holds(shown)
    {
        session.outbox.end(Ending::WrongKey, WITHDRAWN);
    }
    Ok(session)
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::codec::session::KeyBytes;
    use thalweg_exchange::durable::{Exchange, Options, SimDisk};
    use thalweg_exchange::market::{Channels, Epoch};

    use super::*;
    use crate::config::Config;
    use crate::feed::Feed;
    use crate::keys::{Keys, hash};

    #[test]
    fn a_key_that_is_withdrawn_between_the_hello_and_the_welcome_ends_the_session() {
        let key = Key {
            name: "a".into(),
            role: Role::Trade,
            holder: 7,
            hash: hash(b"secret"),
        };
        let opened = Exchange::open_in(SimDisk::new(), Options::default(), |_| ());
        let (exchange, _) = opened.expect("the disk is empty");
        let channels = Channels {
            trades: true,
            orders: false,
            levels: true,
            best: true,
        };
        let feed = Arc::new(Feed::new(Epoch(1), channels, 1, 2));
        let keys = Keys::new(vec![key]);
        let shared = Shared::new(Config::default(), Some(keys.clone()), feed);
        let _ = shared.reports.set(exchange.reports());
        let _ = shared.exchange.set(exchange.identity());
        let shared = Arc::new(shared);
        let hello = Hello {
            version_min: 1,
            version_max: 1,
            role: Role::Trade,
            holder: 7,
            number: 0,
            last_report: None,
            heartbeat_ms: 0,
            cancels_on_disconnect: false,
            market_data_only: false,
            key: KeyBytes(b"secret"),
        };
        let examined = || examine(&shared, Door::Trade, &hello).expect("the key is right");
        let (early, late) = (examined(), examined());
        let seat = || shared.seats.take(Door::Trade).expect("there is room");
        let mut seats = [(); 2].map(|()| seat());
        let stays = enter(&shared, &mut seats[0], early).expect("it is welcomed");
        assert_eq!(stays.outbox.ending(), None);
        // The roster does not have the second one yet: nobody ends that but itself.
        assert_eq!(shared.change_keys(Keys::default()), 1);
        let ends = enter(&shared, &mut seats[1], late).expect("its bye says why");
        assert_eq!(ends.outbox.ending(), Some(Ending::WrongKey));
    }
}
