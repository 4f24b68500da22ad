//! Where the server is between its start and its end.

thalweg::states! {
    /// See the [module](self).
    pub(crate) enum Stage {
        /// The journal is read.
        Recovering "recovering" => [Ready, Failed],
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
