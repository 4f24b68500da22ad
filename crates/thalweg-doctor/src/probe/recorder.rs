//! Records each thread's activity for the report, in bounded memory.

use crate::probe::thread::EndedSpan;
use crate::probe::timeline::Timeline;
use crate::recording::{Recording, Span, Stack, State, Track};
use std::collections::HashMap;

/// The maximum number of threads whose spans are kept while the program runs.
const LANES_MAX: usize = 4 * Recording::TRACKS_MAX;
/// The initial length of bins.
const BIN_NS_FIRST: u64 = 20_000;

/// The spans of a thread. If there are too many, time is divided into bins, and each bin holds the
/// state that the thread was in for most of it.
#[derive(Debug, Default)]
struct Lane {
    spans: Vec<Span>,
    total_ns: [u64; 3],
    /// The number of state changes that arrived.
    came: u64,
    end_ns: u64,
    /// The length of a bin; 0 while spans are exact.
    bin_ns: u64,
    in_bin_ns: [u64; 3],
}

impl Lane {
    fn add(&mut self, state: State, from_ns: u64, to_ns: u64) {
        self.total_ns[state as usize] += to_ns.saturating_sub(from_ns);
        self.came += 1;
        self.extend(state, from_ns, to_ns);
        self.end_ns = self.end_ns.max(to_ns);
    }

    fn extend(&mut self, state: State, mut from_ns: u64, to_ns: u64) {
        if self.bin_ns == 0 {
            return self.push(state, from_ns, to_ns);
        }
        while from_ns < to_ns {
            let bin_ns = self.bin_ns;
            let end_ns = (from_ns / bin_ns + 1) * bin_ns;
            self.in_bin_ns[state as usize] += end_ns.min(to_ns) - from_ns;
            from_ns = end_ns.min(to_ns);
            if from_ns == end_ns {
                self.end_bin(end_ns);
            }
        }
    }

    fn end_bin(&mut self, end_ns: u64) {
        let spent = std::mem::take(&mut self.in_bin_ns);
        let states = [State::Running, State::Runnable, State::Blocked];
        let most = states
            .into_iter()
            .max_by_key(|&state| spent[state as usize]);
        let most = most.filter(|&state| spent[state as usize] > 0);
        if let Some(state) = most {
            self.push(state, end_ns - self.bin_ns.min(end_ns), end_ns);
        }
    }

    fn push(&mut self, state: State, from_ns: u64, to_ns: u64) {
        if self.spans.last().is_none_or(|last| last.state != state) {
            self.spans.push(Span { from_ns, state });
        }
        while self.spans.len() >= Recording::SPANS_MAX {
            self.coarsen(to_ns);
        }
    }

    /// Doubles the length of bins.
    fn coarsen(&mut self, end_ns: u64) {
        let old = std::mem::take(&mut self.spans);
        let bin_ns = (2 * self.bin_ns).max(BIN_NS_FIRST);
        let mut coarse = Lane {
            bin_ns,
            ..Lane::default()
        };
        let ends = old.iter().skip(1).map(|next| next.from_ns).chain([end_ns]);
        for (span, to_ns) in old.iter().zip(ends) {
            coarse.extend(span.state, span.from_ns, to_ns);
        }
        (self.spans, self.bin_ns, self.in_bin_ns) = (coarse.spans, bin_ns, coarse.in_bin_ns);
    }

    fn track(mut self, process: i32, thread: i32, name: &str) -> Track {
        if self.in_bin_ns != [0; 3] {
            let bin_ns = self.bin_ns;
            self.end_bin(self.end_ns.div_ceil(bin_ns) * bin_ns);
        }
        Track {
            process: process.cast_unsigned(),
            thread: thread.cast_unsigned(),
            name: name.into(),
            end_ns: self.end_ns,
            spans_left_out: self.came.saturating_sub(self.spans.len() as u64),
            spans: self.spans,
            total_ns: self.total_ns,
        }
    }
}

/// The spans of all threads, recorded as they arrive.
#[derive(Debug)]
pub(crate) struct Recorder {
    from_ns: u64,
    lanes: HashMap<i32, Lane>,
    dropped: u64,
}

impl Recorder {
    pub(crate) fn new(from_ns: u64) -> Recorder {
        Recorder {
            from_ns,
            lanes: HashMap::new(),
            dropped: 0,
        }
    }

    pub(crate) fn add(&mut self, past: EndedSpan) {
        if self.lanes.len() >= LANES_MAX && !self.lanes.contains_key(&past.tid) {
            // The thread that ran least has the least to show.
            let least = self.lanes.iter().min_by_key(|(_, lane)| lane.total_ns[0]);
            if let Some((&tid, _)) = least {
                self.lanes.remove(&tid);
                self.dropped += 1;
            }
        }
        let lane = self.lanes.entry(past.tid).or_default();
        let since_ns = |time_ns: u64| time_ns.saturating_sub(self.from_ns);
        lane.add(past.state, since_ns(past.from_ns), since_ns(past.to_ns));
    }

    pub(crate) fn finish(self, timeline: &Timeline) -> Recording {
        let gone: HashMap<i32, _> = timeline.gone.iter().map(|(tid, t)| (*tid, t)).collect();
        let tracks = self.lanes.into_iter().map(|(tid, lane)| {
            let thread = timeline
                .threads
                .get(&tid)
                .or_else(|| gone.get(&tid).copied());
            let (pid, name) = thread.map_or((tid, ""), |thread| (thread.pid, &*thread.name));
            lane.track(pid, tid, name)
        });
        let mut tracks: Vec<Track> = tracks.collect();
        tracks.sort_by_key(|track| (std::cmp::Reverse(track.total_ns[0]), track.thread));
        let more = tracks.len().saturating_sub(Recording::TRACKS_MAX);
        tracks.truncate(Recording::TRACKS_MAX);
        Recording {
            length_ns: timeline.now_ns.saturating_sub(self.from_ns),
            tracks,
            tracks_left_out: self.dropped + more as u64,
            ..Recording::default()
        }
    }
}

/// Returns stacks with weights that add up to `total_ns`, the heaviest first.
pub(crate) fn weighed(stacks: Vec<(Vec<String>, f64)>, total_ns: f64) -> Vec<Stack> {
    let all: f64 = stacks.iter().map(|(_, weight)| weight).sum();
    let stack = |(frames, weight): (Vec<String>, f64)| Stack {
        frames,
        weight_ns: (weight / all * total_ns) as u64,
    };
    let mut stacks: Vec<Stack> = stacks.into_iter().map(stack).collect();
    stacks.sort_by(|a, b| {
        b.weight_ns
            .cmp(&a.weight_ns)
            .then_with(|| a.frames.cmp(&b.frames))
    });
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(tid: i32, state: State, from_ns: u64, to_ns: u64) -> EndedSpan {
        EndedSpan {
            tid,
            state,
            from_ns,
            to_ns,
        }
    }

    #[test]
    fn few_spans_are_kept_as_they_are() {
        let mut recorder = Recorder::new(1_000);
        recorder.add(past(7, State::Running, 1_000, 1_300));
        recorder.add(past(7, State::Blocked, 1_300, 1_310));
        let track = recorder.lanes.remove(&7).unwrap().track(1, 7, "a");
        let starts: Vec<u64> = track.spans.iter().map(|span| span.from_ns).collect();
        assert_eq!(starts, [0, 300]);
        assert_eq!((track.end_ns, track.spans_left_out), (310, 0));
        assert_eq!(track.total_ns, [300, 0, 10]);
    }

    #[test]
    fn many_spans_become_a_coarser_picture_and_lose_no_time() {
        let mut recorder = Recorder::new(0);
        for round in 0..200_000_u64 {
            // The thread mostly runs in the first half, and is mostly blocked after that.
            let ran_ns = if round < 100_000 { 700 } else { 100 };
            let at_ns = round * 1_000;
            recorder.add(past(7, State::Running, at_ns, at_ns + ran_ns));
            recorder.add(past(7, State::Blocked, at_ns + ran_ns, at_ns + 1_000));
        }
        let track = recorder.lanes.remove(&7).unwrap().track(1, 7, "a");
        assert!(track.spans.len() < Recording::SPANS_MAX);
        assert_eq!(track.spans.len() as u64 + track.spans_left_out, 400_000);
        assert_eq!(track.total_ns, [80_000_000, 0, 120_000_000]);
        let last_running = track
            .spans
            .iter()
            .rposition(|span| span.state == State::Running);
        let turned_ns = track.spans[last_running.unwrap() + 1].from_ns;
        assert!(
            (99_000_000..101_000_000).contains(&turned_ns),
            "{turned_ns}"
        );
    }

    #[test]
    fn threads_that_are_too_many_are_counted() {
        let mut recorder = Recorder::new(0);
        for tid in 1..=1_000 {
            recorder.add(past(tid, State::Running, 0, tid as u64));
        }
        let recording = recorder.finish(&Timeline::new(0, false));
        assert_eq!(recording.tracks.len(), Recording::TRACKS_MAX);
        assert_eq!(recording.tracks[0].thread, 1_000);
        assert_eq!(
            recording.tracks_left_out,
            1_000 - Recording::TRACKS_MAX as u64
        );
    }

    #[test]
    fn weights_are_parts_of_the_whole() {
        let stacks = vec![(vec!["a".to_string()], 1.0), (vec!["b".to_string()], 3.0)];
        let weighed = weighed(stacks, 400.0);
        assert_eq!(
            (weighed[0].frames[0].as_str(), weighed[0].weight_ns),
            ("b", 300)
        );
        assert_eq!(weighed[1].weight_ns, 100);
    }
}
