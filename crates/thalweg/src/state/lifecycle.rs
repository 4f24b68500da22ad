//! The states of what is started, runs and ends.

crate::states! {
    /// The life of something that runs, from its start to its end: a pipeline, a bus, a server.
    pub enum Lifecycle {
        /// Not yet ready: nothing is taken.
        Starting "starting" => [Running, Draining, Stopped],
        /// Arriving work is taken.
        Running "running" => [Paused, Draining, Stopped],
        /// Nothing is taken for now; what was taken goes on its way.
        Paused "paused" => [Running, Draining, Stopped],
        /// Nothing will be taken any more; what was taken goes on its way.
        Draining "draining" => [Stopped],
        /// Nothing moves any more.
        Stopped "stopped" => [],
    }
    /// It has started, and is neither ending nor over.
    pub group OPEN = [Running, Paused];
    /// Nothing will be taken any more.
    pub group ENDING = [Draining, Stopped];
    /// It is known what happens to arriving work: it is taken, or refused for ever. A thread that
    /// finds the state starting or paused may wait for this group.
    pub group SETTLED = [Running, Draining, Stopped];
}
