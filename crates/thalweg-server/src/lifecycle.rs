//! The lifecycle of a server, from its start to its end.

thalweg::states! {
    /// See the [module](self).
    pub(crate) enum Lifecycle {
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
