//! Orders and trades by user: placing, cancelling, following, asking.

mod event;

use std::path::Path;

use thalweg_exchange::UserId;
use thalweg_server::{GatewayLink, config};
use tokio::sync::broadcast;

pub(crate) use self::event::UserEvent;
use crate::GatewayError;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Orders {}

impl Orders {
    /// Opens the log.
    pub(crate) fn open(
        _config: &config::Gateway,
        _directory: &Path,
        _link: &GatewayLink,
    ) -> Result<Self, GatewayError> {
        Ok(Self {})
    }

    /// Follows a user's orders, balances and deposits from now on. A receiver that is too far
    /// behind gets [`Lagged`](broadcast::error::RecvError::Lagged): the stream must end then.
    pub(crate) fn follow(&self, _user: UserId) -> broadcast::Receiver<std::sync::Arc<UserEvent>> {
        broadcast::channel(1).1
    }
}
