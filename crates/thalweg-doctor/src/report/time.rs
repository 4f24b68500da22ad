//! Divides the time into states and parts, as far as they are known.

use crate::budget::Part;
use crate::evidence::Evidence;
use serde::Serialize;

/// A state of the program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spent {
    /// The name of the state: `running`, `waiting for a core` or `blocked`.
    pub state: &'static str,
    /// Its share of the time, from 0 to 1.
    pub share: f64,
    /// Its parts, the largest first; their sum does not exceed its share.
    pub parts: Vec<Piece>,
}

/// A part of a state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Piece {
    /// Its name.
    pub part: &'static str,
    /// Its share of the time, from 0 to 1.
    pub share: f64,
}

/// The smallest share of a part that is shown.
const LEAST: f64 = 0.005;

/// Returns each state that is known, with its parts.
pub(super) fn spent(evidence: &Evidence) -> Vec<Spent> {
    use Part::{BusyPolls, Child, Disk, Faults, FileLock, Futex, FutexCalls, Other, OtherCalls};
    use Part::{Poll, Queue, Quota, Sleep, Spin, Stream, Work, Yield};
    let waiting = evidence.value("state.waiting");
    // A thread that a quota stops looks blocked where the kernel removes it from the run queue.
    let stopped = Quota.share(evidence).unwrap_or(0.0);
    let moved = (stopped - waiting.unwrap_or(0.0)).max(0.0);
    let waiting = match moved > LEAST {
        true => Some(stopped),
        false => waiting,
    };
    let blocked = evidence.value("state.blocked");
    let states: [(&str, Option<f64>, &[Part]); 3] = [
        (
            "running",
            evidence.value("state.running"),
            &[Work, Faults, Spin, Yield, FutexCalls, BusyPolls, OtherCalls],
        ),
        ("waiting for a core", waiting, &[Queue, Quota]),
        (
            "blocked",
            blocked.map(|share| (share - moved).max(0.0)),
            &[Futex, FileLock, Disk, Stream, Sleep, Poll, Child, Other],
        ),
    ];
    let known = states.into_iter();
    let known = known.filter_map(|(state, share, parts)| Some((state, share?, parts)));
    let spent = known.map(|(state, share, parts)| Spent {
        state,
        share,
        parts: pieces(share, parts, evidence),
    });
    spent.collect()
}

/// Returns the parts of a state. Parts are estimated separately. Where their sum exceeds the state,
/// all are reduced in proportion.
fn pieces(of: f64, parts: &[Part], evidence: &Evidence) -> Vec<Piece> {
    let known = parts.iter().filter_map(|&part| {
        let share = part.share(evidence)?;
        let part = name(part, evidence);
        Some(Piece { part, share })
    });
    let mut known: Vec<Piece> = known.collect();
    let sum: f64 = known.iter().map(|piece| piece.share).sum();
    if sum > of {
        known.iter_mut().for_each(|piece| piece.share *= of / sum);
    }
    known.retain(|piece| piece.share >= LEAST);
    known.sort_by(|a, b| b.share.total_cmp(&a.share));
    known
}

/// Returns the name of a part. Where futex calls are not distinguished from others, the part covers
/// all calls.
fn name(part: Part, evidence: &Evidence) -> &'static str {
    match part {
        Part::OtherCalls if Part::FutexCalls.share(evidence).is_none() => "system calls",
        part => part.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Quality;

    fn of(figures: &[(&str, f64)]) -> Vec<Spent> {
        let mut evidence = Evidence::new();
        for &(name, value) in figures {
            evidence.put(name, value, Quality::Exact, "by hand");
        }
        spent(&evidence)
    }

    #[test]
    fn parts_are_never_more_than_their_state() {
        // Spinning is estimated from samples, calls from the remaining time in the kernel.
        let spent = of(&[
            ("state.running", 0.9),
            ("spin.cpu_share", 0.8),
            ("cpu.system_share", 0.4),
        ]);
        let parts: Vec<&str> = spent[0].parts.iter().map(|piece| piece.part).collect();
        assert_eq!(parts, ["spinning", "system calls"]);
        let sum: f64 = spent[0].parts.iter().map(|piece| piece.share).sum();
        assert!((sum - 0.9).abs() < 1e-9, "{spent:?}");
        assert!((spent[0].parts[0].share - 0.6).abs() < 1e-9, "{spent:?}");
    }

    #[test]
    fn what_a_quota_stops_waits_for_a_core() {
        let spent = of(&[
            ("state.running", 0.5),
            ("state.waiting", 0.1),
            ("state.blocked", 0.4),
            ("host.throttled_share", 0.45),
            ("block.sleep", 1.0),
        ]);
        let shares: Vec<f64> = spent.iter().map(|spent| spent.share).collect();
        assert_eq!(shares[..2], [0.5, 0.45]);
        assert!((shares[2] - 0.05).abs() < 1e-9, "{spent:?}");
        let piece = &spent[1].parts[..];
        assert_eq!(
            (piece[0].part, piece[0].share),
            ("stopped by a quota", 0.45)
        );
        assert!((spent[2].parts[0].share - 0.05).abs() < 1e-9, "{spent:?}");
    }

    #[test]
    fn calls_of_futex_are_split_where_they_are_counted() {
        let figures = [("state.running", 1.0), ("cpu.system_share", 0.5)];
        assert_eq!(of(&figures)[0].parts[1].part, "system calls");
        let counted = [("call.all", 1_000.0), ("call.futex", 250.0)];
        let spent = of(&[figures, counted].concat());
        let parts: Vec<&str> = spent[0].parts.iter().map(|piece| piece.part).collect();
        assert_eq!(parts, ["computing", "other system calls", "calls of futex"]);
    }
}
