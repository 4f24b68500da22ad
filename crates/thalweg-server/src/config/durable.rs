//! How the configuration has the exchange run.

use std::time::Duration;

use thalweg::pipeline::Placement;
use thalweg_exchange::durable::{
    JournalOptions, Options, SessionLimits, SnapshotOptions, SyncMode,
};
use thalweg_exchange::{Rules, service};

use super::{Config, RulesName, SyncName};

/// The options of the durable exchange.
pub(crate) fn durable_options(config: &Config) -> Options {
    let sessions = &config.sessions;
    Options {
        service: service::Options {
            capacity: config.exchange.capacity,
            // Commands are executed and answered by the thread of their connection. Only a commit
            // is waited for by another one, which then publishes.
            placement: match config.journal.sync {
                SyncName::Always => Placement::caller_and_threads(1, 1),
                SyncName::Never => Placement::inline(),
            },
            levels: true,
            ..service::Options::default()
        },
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
            sessions_per_user: sessions.per_holder,
            sessions_max: sessions.remembered_max,
        },
        rules: match config.exchange.rules {
            RulesName::Default => Rules::default(),
            RulesName::Reference => Rules::REFERENCE,
        },
        ..Options::default()
    }
}
