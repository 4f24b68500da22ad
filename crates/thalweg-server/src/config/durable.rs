//! How the configuration has the exchange run.

use std::sync::Arc;
use std::time::Duration;

use mio::Waker;
use thalweg::pipeline::Placement;
use thalweg_exchange::durable::{
    JournalOptions, Options, SessionLimits, SnapshotOptions, SyncMode, Wake,
};
use thalweg_exchange::{Rules, service};

use super::{Config, RulesName, SyncName};

/// Returns the options of the durable exchange, whose committer wakes the exchange's thread.
pub(crate) fn durable_options(config: &Config, waker: &Arc<Waker>) -> Options {
    let sessions = &config.sessions;
    let waker = Arc::clone(waker);
    let wake = move || {
        if let Err(error) = waker.wake() {
            tracing::error!(%error, "the exchange's thread could not be woken");
        }
    };
    Options {
        service: service::Options {
            capacity: config.exchange.capacity,
            // The thread that executes waits for no disk.
            placement: Placement::caller_and_threads(1, 1),
            ..service::Options::default()
        },
        wake: Wake(Some(Arc::new(wake))),
        journal: JournalOptions::default().segment_bytes(config.journal.segment_bytes),
        sync: match config.journal.sync {
            SyncName::Always => SyncMode::Always,
            SyncName::Never => SyncMode::Never,
        },
        snapshot: SnapshotOptions {
            every_bytes: config.snapshots.every_bytes,
            every: Duration::from_secs(config.snapshots.every_s),
            kept: config.snapshots.kept,
            ..SnapshotOptions::default()
        },
        sessions: SessionLimits {
            answers_kept: sessions.answers_kept,
            reports_kept: sessions.reports_kept,
            reports_max: sessions.reports_max,
            // The number above all others is the gateway's.
            sessions_per_user: sessions.per_holder + u32::from(config.gateway.listen.is_some()),
            sessions_max: sessions.remembered_max,
        },
        rules: match config.exchange.rules {
            RulesName::Default => Rules::default(),
            RulesName::Reference => Rules::REFERENCE,
        },
        ..Options::default()
    }
}
