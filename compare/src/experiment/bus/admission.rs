//! Whether admission follows the rule that `thalweg::bus` documents, where a consumer is stopped:
//! a message of priority p is admitted if and only if fewer than `limit[p]` wait at the moment at
//! which it draws its place.
//!
//! Nobody takes anything, so what waits only grows, and an admitted message's position is how many
//! waited when it was drawn. A refused one has no position; but it came before the next one of its
//! publisher that was admitted, when no more waited than that one's position, or than all if there
//! is none.

use thalweg::bus::Priority;

/// One message, in the order of its publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) priority: Priority,
    /// How many were admitted before it, of all publishers; `None` if it was refused.
    pub(super) position: Option<u64>,
}

/// The first attempt of a publisher, from its end, that the rule does not allow, in a burst of
/// which `admitted` messages of all publishers were.
pub(super) fn check(
    limits: [u64; Priority::COUNT],
    attempts: &[Attempt],
    admitted: u64,
) -> Result<(), String> {
    let mut most = admitted;
    for (at, attempt) in attempts.iter().enumerate().rev() {
        let limit = limits[attempt.priority.index()];
        let told = |what: String| {
            let priority = attempt.priority;
            Err(format!(
                "message {at}, {priority:?} with limit {limit}: {what}"
            ))
        };
        match attempt.position {
            Some(position) if position >= most => {
                return told(format!("position {position}, and a later one {most}"));
            }
            Some(position) if position >= limit => {
                return told(format!("admitted where {position} waited"));
            }
            Some(position) => most = position,
            None if most < limit => {
                return told(format!("refused where no more than {most} waited"));
            }
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: [u64; 4] = [2, 3, 4, 5];

    fn attempts(all: &[(Priority, Option<u64>)]) -> Vec<Attempt> {
        let attempt = |&(priority, position)| Attempt { priority, position };
        all.iter().map(attempt).collect()
    }

    fn told(all: &[(Priority, Option<u64>)], admitted: u64) -> Result<(), String> {
        check(LIMITS, &attempts(all), admitted)
    }

    #[test]
    fn what_the_rule_allows_passes() {
        use Priority::{Critical, High, Low, Medium};
        let alone = [
            (Low, Some(0)),
            (Low, Some(1)),
            (Low, None),
            (Medium, Some(2)),
            (Medium, None),
            (High, Some(3)),
            (Low, None),
            (Critical, Some(4)),
            (Critical, None),
        ];
        assert_eq!(told(&alone, 5), Ok(()));
        // Another publisher took what is between.
        let beside = [(Low, Some(0)), (Low, None), (Medium, Some(2)), (High, None)];
        assert_eq!(told(&beside, 4), Ok(()));
    }

    #[test]
    fn what_it_does_not_allow_is_told() {
        use Priority::{Critical, High, Low};
        for (all, admitted, what) in [
            (
                &[(Low, Some(2))][..],
                3,
                "message 0, Low with limit 2: admitted where 2 waited",
            ),
            (
                &[(Low, None), (High, Some(1))],
                3,
                "message 0, Low with limit 2: refused where no more than 1 waited",
            ),
            (
                &[(Critical, Some(0)), (Critical, None)],
                4,
                "message 1, Critical with limit 5: refused where no more than 4 waited",
            ),
            (
                &[(Low, Some(1)), (High, Some(0))],
                2,
                "message 0, Low with limit 2: position 1, and a later one 0",
            ),
            (
                &[(High, Some(2))],
                2,
                "message 0, High with limit 4: position 2, and a later one 2",
            ),
        ] {
            assert_eq!(told(all, admitted), Err(what.to_owned()));
        }
    }
}
