//! Where the server is between its start and its end.

use tokio::sync::watch;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The journal is read.
    Recovering,
    /// Clients are served.
    Ready,
    /// No new orders.
    Draining,
    /// The exchange has stopped by itself.
    Failed,
}

impl Stage {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Recovering => "recovering",
            Self::Ready => "ready",
            Self::Draining => "draining",
            Self::Failed => "failed",
        }
    }
}

/// The stage, for whoever wants to know or to wait for another.
#[derive(Debug)]
pub(crate) struct StageSwitch {
    stage: watch::Sender<Stage>,
}

impl StageSwitch {
    pub(crate) fn new() -> Self {
        let stage = watch::Sender::new(Stage::Recovering);
        Self { stage }
    }

    /// Another stage. What has failed stays so.
    pub(crate) fn set(&self, stage: Stage) {
        self.stage.send_if_modified(|now| {
            let changes = *now != Stage::Failed && *now != stage;
            if changes {
                *now = stage;
            }
            changes
        });
    }

    pub(crate) fn get(&self) -> Stage {
        *self.stage.borrow()
    }

    /// Waits until no more connections are to be taken.
    pub(crate) async fn over(&self) {
        self.until(|stage| matches!(stage, Stage::Draining | Stage::Failed))
            .await;
    }

    /// Waits until the exchange has stopped by itself.
    pub(crate) async fn failed(&self) {
        self.until(|stage| stage == Stage::Failed).await;
    }

    async fn until(&self, holds: impl Fn(Stage) -> bool) {
        // The sender is here, so there is no error.
        let _ = self.stage.subscribe().wait_for(|stage| holds(*stage)).await;
    }
}
