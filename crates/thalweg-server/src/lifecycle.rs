//! The lifecycle of a server, from its start to its end.

thalweg::states! {
    /// See the [module](self).
    pub(crate) enum Lifecycle {
        /// The journal is read.
        Recovering "recovering" => [Following, Ready, Failed],
        /// The log of another replica is executed: readers are served, and no commands are taken.
        Following "following" => [Ready, Draining, Failed],
        /// Clients are served.
        Ready "ready" => [CutOff, Draining, Failed],
        /// The command log does not answer: sessions are ended, and none is taken.
        CutOff "cut-off" => [Ready, Draining, Failed],
        /// No new orders.
        Draining "draining" => [Failed],
        /// The exchange has stopped by itself.
        Failed "failed" => [],
    }
    /// No more connections are taken.
    pub(crate) set OVER = [Draining, Failed];
}
