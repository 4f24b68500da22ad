//! The lifecycle of a server, from its start to its end.

thalweg::states! {
    /// See the [module](self).
    pub(crate) enum Lifecycle {
        /// The journal is read.
        Recovering "recovering" => [Following, Ready, Failed],
        /// The log of another replica is executed: this one is no primary.
        Following "following" => [Ready, Failed],
        /// Clients are served.
        Ready "ready" => [Draining, Failed],
        /// No new orders.
        Draining "draining" => [Failed],
        /// The exchange has stopped by itself.
        Failed "failed" => [],
    }
    /// No more connections are taken.
    pub(crate) group OVER = [Draining, Failed];
}
