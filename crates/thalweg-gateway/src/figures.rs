//! Counts and times of requests, and their lines in the log.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use thalweg_server::{Histogram, RowLabels, RowValues};

use crate::keys::ApiKey;
use crate::lock;

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Market,
    Account,
    Order,
    WebSocketApi,
    /// The page, handshakes of WebSockets, and paths without an endpoint.
    Other,
}

const CLASSES: [&str; 5] = ["market", "account", "order", "websocket-api", "other"];
const STATUSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// The length of a path in the access log at most.
const PATH_BYTES_MAX: usize = 256;

/// Reasons that have a count before they first occur.
const REASONS: [&str; 4] = ["evicted", "no slot", "too often", "too slow"];

/// A request that is worked on: what the access log says about it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) address: IpAddr,
    /// The method of HTTP; `WS` for one of the WebSocket API.
    pub(crate) method: String,
    /// The path without the query, or the method of the WebSocket API.
    pub(crate) path: String,
    started: Instant,
}

impl Request {
    pub(crate) fn new(address: IpAddr, method: &str, path: &str) -> Self {
        let end = path.floor_char_boundary(PATH_BYTES_MAX);
        Self {
            id: next_id(),
            address,
            method: method.to_owned(),
            path: path[..end].to_owned(),
            started: Instant::now(),
        }
    }
}

/// Returns an id for a request: of this start, and its number.
fn next_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // ORDERING: Relaxed; a counter.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{:08x}-{number:012x}", std::process::id())
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Figures {
    has_access_log: bool,
    requests: [[AtomicU64; STATUSES.len()]; CLASSES.len()],
    times: [Mutex<Histogram>; CLASSES.len()],
    /// Connections that the gateway has closed, by reason.
    cut: Mutex<BTreeMap<&'static str, u64>>,
}

impl Figures {
    pub(crate) fn new(has_access_log: bool) -> Self {
        Self {
            has_access_log,
            requests: Default::default(),
            times: Default::default(),
            cut: Mutex::new(REASONS.iter().map(|why| (*why, 0)).collect()),
        }
    }

    /// Counts a request that is answered, and writes its line; `key` signed it.
    pub(crate) fn answered(
        &self,
        request: &Request,
        class: Class,
        status: u16,
        key: Option<&ApiKey>,
    ) {
        let took = request.started.elapsed();
        self.count(class, status, took);
        let Request {
            id, method, path, ..
        } = request;
        let (address, took_us) = (request.address, took.as_micros() as u64);
        let (user, key) = (key.map(|key| key.user.0), key.map(ApiKey::name));
        if self.has_access_log {
            tracing::info!(
                target: "access", id, %address, method, path, status, took_us, user, key, "request"
            );
        } else {
            tracing::debug!(
                target: "access", id, %address, method, path, status, took_us, user, key, "request"
            );
        }
    }

    fn count(&self, class: Class, status: u16, took: Duration) {
        let of_status = usize::from(status / 100).clamp(1, STATUSES.len()) - 1;
        // ORDERING: Relaxed; a count alone.
        self.requests[class as usize][of_status].fetch_add(1, Ordering::Relaxed);
        lock(&self.times[class as usize]).record(took.as_nanos() as u64);
    }

    /// Counts a connection that the gateway closes; a reason is named up to its first colon.
    pub(crate) fn cut(&self, why: &'static str) {
        let why = why.split(':').next().unwrap_or(why);
        *lock(&self.cut).entry(why).or_insert(0) += 1;
    }

    pub(crate) fn requests(&self) -> RowValues {
        let rows = self.requests.iter().zip(CLASSES);
        let values = rows.flat_map(|(counts, class)| {
            counts.iter().zip(STATUSES).map(move |(count, status)| {
                let labels = vec![("class", class.to_owned()), ("status", status.to_owned())];
                // ORDERING: Relaxed; a count alone.
                (labels, count.load(Ordering::Relaxed))
            })
        });
        RowValues::Counters(values.collect())
    }

    pub(crate) fn times(&self) -> RowValues {
        let times = self.times.iter().zip(CLASSES);
        let values = times.map(|(times, class)| (by("class", class), lock(times).clone()));
        RowValues::Seconds(values.collect())
    }

    pub(crate) fn cuts(&self) -> RowValues {
        let cut = lock(&self.cut);
        let values = cut.iter().map(|(why, count)| (by("reason", why), *count));
        RowValues::Counters(values.collect())
    }
}

fn by(name: &'static str, value: &str) -> RowLabels {
    vec![(name, value.to_owned())]
}

#[cfg(test)]
mod tests {
    use std::fmt::{Debug, Write as _};
    use std::sync::Arc;

    use thalweg_exchange::UserId;
    use thalweg_testkit::alone;
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::subscriber::with_default;
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Keeps the lines of events.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    struct Fields(String);

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            let _ = write!(self.0, " {field}={value:?}");
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut fields = Fields(event.metadata().level().to_string());
            event.record(&mut fields);
            lock(&self.0).push(fields.0);
        }
    }

    #[test]
    fn a_request_is_a_line_at_level_info_where_the_log_is_asked_for() {
        // Whether an event is wanted is asked once in a process, in the thread that has it first.
        alone(
            a_request_is_a_line_at_level_info_where_the_log_is_asked_for,
            access_log,
        );
    }

    fn access_log() {
        let address = IpAddr::from([127, 0, 0, 1]);
        let key = ApiKey::read_only(UserId(7));
        let mut first = Vec::new();
        for has_access_log in [true, false] {
            let lines = Lines::default();
            let request = Request::new(address, "GET", &format!("/api/{}", "é".repeat(200)));
            assert!((250..=PATH_BYTES_MAX).contains(&request.path.len()));
            with_default(lines.clone(), || {
                let figures = Figures::new(has_access_log);
                figures.answered(&request, Class::Account, 401, Some(&key));
            });
            let lines = lock(&lines.0).clone();
            let id = format!("id={:?}", request.id);
            for part in [
                "address=127.0.0.1",
                "method=\"GET\"",
                "status=401",
                "user=7",
                &id,
            ] {
                assert!(lines[0].contains(part), "{part}: {lines:?}");
            }
            assert!(
                lines[0].contains("took_us=") && lines.len() == 1,
                "{lines:?}"
            );
            first.push(lines[0].split(' ').next().map(str::to_owned));
        }
        assert_eq!(first, [Some("INFO".to_owned()), Some("DEBUG".to_owned())]);
    }
}
