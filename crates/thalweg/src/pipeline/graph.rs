//! The stages as the user declares them, and the order that follows.

/// The order of the readers, by their places in the ring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) after: Vec<Box<[usize]>>,
    /// The readers that no other reader comes after.
    pub(super) last: Box<[usize]>,
}

/// The reason why a pipeline can't be built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The capacity is outside 1 to [`CAPACITY_MAX`](crate::ring::CAPACITY_MAX) events.
    Capacity(usize),
    /// There is no stage.
    NoStage,
    /// Two stages have this name.
    DuplicateStage(String),
    /// `after` or a placement names a stage that does not exist.
    UnknownStage {
        /// The name that is not known.
        name: String,
        /// The stages that there are.
        known: Vec<String>,
    },
    /// An option such as `after` was given before any stage.
    NoStageYet(&'static str),
    /// Each of these stages comes after the one before it, and the first after the last.
    Cycle(Vec<String>),
    /// Neither stage comes after the other, and at least one of them changes the event.
    Clash {
        /// The stage declared first.
        first: String,
        /// The stage declared later.
        second: String,
    },
    /// A sharded stage with no shards.
    NoShard(String),
    /// The progress interval is 0.
    NoProgress(String),
    /// The sampling interval is outside 1 to [`SAMPLE_EVERY_MAX`](super::SAMPLE_EVERY_MAX) events.
    Sampling(u64),
    /// More producers than [`PRODUCERS_MAX`](super::PRODUCERS_MAX).
    Producers(usize),
    /// More or fewer stage threads than the stages can use.
    Threads {
        /// The number that was asked for.
        asked: usize,
        /// The number of stages (shards counted one by one).
        stages: usize,
    },
    /// A stage that the explicit placement does not name, or names twice.
    Unplaced(String),
    /// A thread can't be pinned as asked.
    Pin(crate::wait::cores::PinError),
    /// The system could not start a thread.
    Spawn(String),
}

errors!(BuildError {
    Self::Capacity(asked) =>
        "pipeline capacity {asked} is outside 1 to {} events", crate::ring::CAPACITY_MAX;
    Self::Producers(asked) =>
        "{asked} producers asked for; a pipeline has at most {}", super::PRODUCERS_MAX;
    Self::NoStage => "a pipeline needs at least one stage";
    Self::DuplicateStage(name) => "two stages are named {name:?}";
    Self::UnknownStage { name, known } => "no stage is named {name:?}; there are {known:?}";
    Self::NoStageYet(option) => "{option} needs a stage declared before it";
    Self::Cycle(names) => "stages wait for each other: {names:?}";
    Self::Clash { first, second } =>
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

/// A stage's name and the names that it comes after.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) after: Vec<String>,
}

/// Puts stages in an order in which each comes after all those it names, keeping the declared order
/// where it can; gives for each place the index of the stage and the places that it comes after.
pub(super) fn sort(stages: &[Declared]) -> Result<Vec<(usize, Vec<usize>)>, BuildError> {
    for (at, stage) in stages.iter().enumerate() {
        if stages[..at].iter().any(|other| other.name == stage.name) {
            return Err(BuildError::DuplicateStage(stage.name.clone()));
        }
    }
    let known = || stages.iter().map(|stage| stage.name.clone()).collect();
    let find = |name: &String| {
        stages
            .iter()
            .position(|stage| stage.name == *name)
            .ok_or_else(|| BuildError::UnknownStage {
                name: name.clone(),
                known: known(),
            })
    };
    let mut after = Vec::with_capacity(stages.len());
    for stage in stages {
        after.push(
            stage
                .after
                .iter()
                .map(find)
                .collect::<Result<Vec<_>, _>>()?,
        );
    }
    let mut sorted: Vec<(usize, Vec<usize>)> = Vec::with_capacity(stages.len());
    let mut place_of = vec![None; stages.len()];
    while sorted.len() < stages.len() {
        let ready = (0..stages.len()).find(|&stage| {
            place_of[stage].is_none()
                && after[stage]
                    .iter()
                    .all(|&before| place_of[before].is_some())
        });
        let Some(stage) = ready else {
            return Err(cycle(stages, &after, &place_of));
        };
        place_of[stage] = Some(sorted.len());
        let mut places: Vec<usize> = after[stage]
            .iter()
            .filter_map(|&before| place_of[before])
            .collect();
        places.sort_unstable();
        places.dedup();
        sorted.push((stage, places));
    }
    Ok(sorted)
}

/// Names the stages of one cycle among those that could not be placed.
fn cycle(stages: &[Declared], after: &[Vec<usize>], place_of: &[Option<usize>]) -> BuildError {
    let mut path: Vec<usize> = Vec::new();
    let mut stage = (0..stages.len())
        .find(|&s| place_of[s].is_none())
        .unwrap_or_default();
    while !path.contains(&stage) {
        path.push(stage);
        let before = after[stage]
            .iter()
            .find(|&&before| place_of[before].is_none());
        stage = *before.unwrap_or(&stage);
    }
    let start = path.iter().position(|&s| s == stage).unwrap_or_default();
    BuildError::Cycle(
        path[start..]
            .iter()
            .map(|&s| stages[s].name.clone())
            .collect(),
    )
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn declared(stages: &[(&str, &[&str])]) -> Vec<Declared> {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        stages
            .iter()
            .map(|(name, after)| Declared {
                name: name.to_string(),
                after: names(after),
            })
            .collect()
    }

    #[test]
    fn stages_may_be_declared_before_those_they_come_after() {
        let sorted = sort(&declared(&[
            ("c", &["b", "a", "b"]),
            ("a", &[]),
            ("b", &["a"]),
        ]));
        assert_eq!(
            sorted.unwrap(),
            [(1, vec![]), (2, vec![0]), (0, vec![0, 1])]
        );
    }

    #[test]
    fn a_cycle_is_named() {
        let stages = [("x", &[][..]), ("a", &["c"]), ("b", &["a"]), ("c", &["b"])];
        let error = sort(&declared(&stages)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "stages wait for each other: [\"a\", \"c\", \"b\"]"
        );
        let own = sort(&declared(&[("a", &["a"])])).unwrap_err();
        assert_eq!(own, BuildError::Cycle(vec!["a".into()]));
    }

    #[test]
    fn unknown_and_duplicate_names_are_reported() {
        let error = sort(&declared(&[("a", &["riks"])])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no stage is named \"riks\"; there are [\"a\"]"
        );
        let error = sort(&declared(&[("a", &[]), ("a", &[])])).unwrap_err();
        assert_eq!(error.to_string(), "two stages are named \"a\"");
    }
}
