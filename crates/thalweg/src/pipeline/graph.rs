//! The order of the stages that follows from what the user declares.

use super::error::PipelineError;

/// The order of the readers, by their places in the ring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) after: Vec<Box<[usize]>>,
    /// The readers that no other reader comes after.
    pub(super) last: Box<[usize]>,
}

/// A stage's name and the names that it comes after.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    pub(super) name: String,
    pub(super) after: Vec<String>,
}

/// Puts stages in an order in which each comes after all those it names, keeping the declared order
/// where it can; gives for each place the index of the stage and the places that it comes after.
pub(super) fn sort(stages: &[Declared]) -> Result<Vec<(usize, Vec<usize>)>, PipelineError> {
    for (at, stage) in stages.iter().enumerate() {
        if stages[..at].iter().any(|other| other.name == stage.name) {
            return Err(PipelineError::DuplicateStage(stage.name.clone()));
        }
    }
    let known = || stages.iter().map(|stage| stage.name.clone()).collect();
    let find = |name: &String| {
        stages
            .iter()
            .position(|stage| stage.name == *name)
            .ok_or_else(|| PipelineError::UnknownStage {
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
fn cycle(stages: &[Declared], after: &[Vec<usize>], place_of: &[Option<usize>]) -> PipelineError {
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
    PipelineError::Cycle(
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
        assert_eq!(own, PipelineError::Cycle(vec!["a".into()]));
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
