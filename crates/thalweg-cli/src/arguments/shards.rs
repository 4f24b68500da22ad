//! Into how many shards the stages are cut.

use super::values::{self, Place};
use crate::failure::Failure;
use clap::Args;
use thalweg_exchange::State;
use thalweg_exchange::service::{Options, Service};

/// Into how many parts the stages are cut.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Shards {
    /// Shards of the risk check and of settlement, by user, from 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = values::shards)]
    pub(crate) risk_shards: u64,

    /// Shards of matching, by symbol, from 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = values::shards)]
    pub(crate) match_shards: u64,
}

impl Shards {
    /// How a service runs with these; told at once, where it cannot.
    pub(crate) fn options(self, placement: Place) -> Result<Options, Failure> {
        let options = Options {
            placement: placement.placement(),
            risk_shards: self.risk_shards as usize,
            match_shards: self.match_shards as usize,
            ..Options::default()
        };
        let start = Service::start(State::default(), options.clone(), |_| {});
        start.map(|_| options).map_err(|error| {
            Failure::Misuse(format!("--placement {}: {error}", placement.placement()))
        })
    }

    /// Whether anything is cut.
    pub(crate) fn any(self) -> bool {
        self.risk_shards > 1 || self.match_shards > 1
    }
}
