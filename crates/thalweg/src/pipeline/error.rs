//! Why a pipeline cannot be built.

/// The reason why a pipeline can't be built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PipelineError {
    /// The capacity is outside 1 to [`CAPACITY_MAX`](crate::ring::CAPACITY_MAX) events.
    Capacity(usize),
    /// No stage was declared; at least 1 is needed.
    NoStage,
    /// Two stages have this name.
    DuplicateStage(String),
    /// `after` or a placement names a stage that was not declared.
    UnknownStage {
        /// The name that was given.
        name: String,
        /// The names of the declared stages.
        known: Vec<String>,
    },
    /// An option of a stage, such as `after`, was given before any stage was declared.
    NoStageYet(&'static str),
    /// The dependencies form a cycle: each of these stages depends on the one before it, and the
    /// first on the last.
    Cycle(Vec<String>),
    /// Two stages are not ordered, and at least one of them changes the event: one of them needs an
    /// `after`.
    Conflict {
        /// The stage declared first.
        first: String,
        /// The stage declared later.
        second: String,
    },
    /// A sharded stage has 0 shards; at least 1 is needed.
    NoShard(String),
    /// The progress interval of a stage is 0; it is at least 1 event.
    NoProgress(String),
    /// The sampling interval is outside 1 to [`SAMPLE_EVERY_MAX`](super::SAMPLE_EVERY_MAX) events.
    Sampling(u64),
    /// The number of producers is above [`PRODUCERS_MAX`](super::PRODUCERS_MAX), 1,024.
    Producers(usize),
    /// The number of stage threads is outside 1 to the number of stages that they run.
    Threads {
        /// The number that was asked for.
        asked: usize,
        /// The number of stages without those of the caller, shards counted one by one.
        stages: usize,
    },
    /// The explicit placement names a stage not at all, or twice; it must name each once.
    Unplaced(String),
    /// A thread can't be pinned to the core that was named.
    Pin(crate::wait::cores::PinError),
    /// The OS could not start a thread.
    Spawn(String),
}

errors!(PipelineError {
    Self::Capacity(asked) =>
        "pipeline capacity {asked} is outside 1 to {} events", crate::ring::CAPACITY_MAX;
    Self::Producers(asked) =>
        "{asked} producers asked for; a pipeline has at most {}", super::PRODUCERS_MAX;
    Self::NoStage => "a pipeline needs at least one stage";
    Self::DuplicateStage(name) => "two stages are named {name:?}";
    Self::UnknownStage { name, known } => "no stage is named {name:?}; there are {known:?}";
    Self::NoStageYet(option) => "{option} needs a stage declared before it";
    Self::Cycle(names) => "stages wait for each other: {names:?}";
    Self::Conflict { first, second } =>
        "stages {first:?} and {second:?} are not ordered, and at least one of them changes the \
         event; put one after the other";
    Self::NoShard(name) => "sharded stage {name:?} has 0 shards; 1 or more";
    Self::NoProgress(name) => "stage {name:?} has a progress interval of 0 events; 1 or more";
    Self::Sampling(asked) =>
        "sampling one event in {asked} is outside 1 to {}", super::SAMPLE_EVERY_MAX;
    Self::Threads { asked, stages: 0 } =>
        "{asked} stage threads asked for; no stage is left for them";
    Self::Threads { asked, stages } =>
        "{asked} stage threads asked for; {stages} stages can use 1 to {stages}";
    Self::Unplaced(name) => "the placement must name stage {name:?} exactly once";
    Self::Pin(error) => "{error}";
    Self::Spawn(why) => "a stage thread could not be started: {why}";
});
