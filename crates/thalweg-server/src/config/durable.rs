//! How the configuration has the exchange run.

use std::sync::Arc;
use std::time::Duration;

use mio::Waker;
use thalweg::pipeline::Placement;
use thalweg_exchange::durable::{
    JournalOptions, Options, SessionLimits, SnapshotOptions, SyncMode, Wake,
};
use thalweg_exchange::{Rules, service};

use super::{Config, RulesSetting, SyncSetting};

/// Returns the number of commands of which one is timed: where people may watch, seconds are to
/// have some even in a market of few orders.
const fn sample_every(config: &Config) -> u64 {
    match config.gateway.listen.is_some() && config.gateway.instruments {
        true => 16,
        false => thalweg::pipeline::SAMPLE_EVERY,
    }
}

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
        service: service::ServiceOptions {
            capacity: config.exchange.capacity,
            sample_every: sample_every(config),
            // The drop copy has market data from the first command on.
            levels: config.gateway.listen.is_some(),
            // The thread that executes waits for no disk.
            placement: Placement::caller_and_threads(1, 1),
            ..service::ServiceOptions::default()
        },
        wake: Wake(Some(Arc::new(wake))),
        journal: JournalOptions::default().segment_bytes(config.journal.segment_bytes),
        sync: match config.journal.sync {
            SyncSetting::Always => SyncMode::Always,
            SyncSetting::Never => SyncMode::Never,
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
            // The number above all others is the gateway's, also where there is none: replicas with
            // and without one have the same limits.
            sessions_per_user: sessions.per_holder + 1,
            sessions_max: sessions.remembered_max,
        },
        rules: match config.exchange.rules {
            RulesSetting::Default => Rules::default(),
            RulesSetting::Reference => Rules::REFERENCE,
        },
        ..Options::default()
    }
}
