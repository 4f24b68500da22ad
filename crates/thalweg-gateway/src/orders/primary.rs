//! Whether orders are taken here: of several replicas of the exchange, by the primary alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_server::ExchangeHandle;

use crate::error::ApiError;

/// The claim of a replica that follows; no claim has this number.
const FOLLOWS: u64 = u64::MAX;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Primary {
    /// The claim under which orders are taken here: 0 on one machine. A replica follows at first.
    claim: Arc<AtomicU64>,
    exchange: ExchangeHandle,
}

impl Primary {
    pub(super) fn new(exchange: ExchangeHandle) -> Self {
        let first = if exchange.is_replica() { FOLLOWS } else { 0 };
        let claim = Arc::new(AtomicU64::new(first));
        Self { claim, exchange }
    }

    /// Notes a claim; all that came before it is applied.
    pub(super) fn note(&self, epoch: u64, leads: bool) {
        let claim = if leads { epoch } else { FOLLOWS };
        // ORDERING: Release, pairs with the Acquire in claim(); all before it was applied.
        self.claim.store(claim, Ordering::Release);
    }

    /// Returns the claim under which orders are taken here.
    ///
    /// # Errors
    /// -1001, with the primary's address, where this replica follows it.
    pub(super) fn claim(&self) -> Result<u64, ApiError> {
        // ORDERING: Acquire, pairs with the Release in note().
        match self.claim.load(Ordering::Acquire) {
            FOLLOWS => Err(ApiError::follows(&self.exchange.primary())),
            claim => Ok(claim),
        }
    }
}
