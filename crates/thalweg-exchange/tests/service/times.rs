//! When commands were checked and matched.

use std::sync::mpsc;

use thalweg::pipeline::Placement;
use thalweg_exchange::service::{Options, Service};
use thalweg_exchange::{Command, State};
use thalweg_measure::clock::Clock;

/// What was noted of each command, and when it was published.
fn noted(options: Options, send: impl FnOnce(&mut Service)) -> Vec<[u64; 4]> {
    let (note, notes) = mpsc::channel();
    let mut service = Service::start(State::default(), options, move |outcome| {
        let now = Clock::global().ticks();
        let times = [outcome.due, outcome.checked_at, outcome.matched_at, now];
        note.send(times).expect("somebody listens");
    })
    .expect("options in range");
    send(&mut service);
    service.join().expect("no panic");
    notes.iter().collect()
}

fn inline(is_timed: bool, shards: usize) -> Options {
    Options {
        placement: Placement::inline(),
        risk_shards: shards,
        match_shards: shards,
        is_timed,
        ..Options::default()
    }
}

fn one_by_one(service: &mut Service) {
    for _ in 0..1_000 {
        let due = Clock::global().ticks();
        let submitted = service.submit_due(&Command::Nop, due, 0);
        submitted.expect("it runs");
    }
}

#[test]
fn a_command_by_itself_has_it_noted_when_it_was_checked_and_matched() {
    for shards in [1, 2] {
        let times = noted(inline(true, shards), one_by_one);
        assert_eq!(times.len(), 1_000);
        for [due, checked, matched, now] in times {
            // What one thread reads of the clock never goes backwards.
            assert!(due <= checked && checked <= matched && matched <= now);
            assert_ne!(checked, 0);
        }
    }
}

#[test]
fn commands_together_have_the_time_of_all_unless_there_are_shards_or_nobody_asked() {
    let together = |service: &mut Service| {
        // What is in the slots from commands by themselves is gone.
        one_by_one(service);
        for _ in 0..100 {
            let batch = vec![Command::Nop; 64];
            service.submit_batch(&batch, |_| 0).expect("it runs");
        }
    };
    let times = noted(inline(true, 1), together);
    let mut before = 0;
    for chunk in times[1_000..].chunks(64) {
        // A chunk is 64 commands at most; here it may begin anywhere.
        for [_, checked, matched, now] in chunk {
            assert!(before <= *checked && checked <= matched && matched <= now);
            before = *checked;
        }
        assert!(chunk.iter().all(|times| times[1] != 0));
    }
    let times = noted(inline(true, 2), together);
    assert!(times[..1_000].iter().all(|times| times[1] != 0));
    assert!(times[1_000..].iter().all(|times| times[..3] == [0; 3]));
    let threads = Options {
        placement: Placement::threads(2),
        ..inline(true, 1)
    };
    for [_, checked, matched, now] in noted(threads, together) {
        assert!(checked != 0 && matched != 0);
        // The clocks of two cores may differ a little.
        assert!(checked <= matched + 10_000 && matched <= now + 10_000);
    }
    let times = noted(inline(false, 1), one_by_one);
    assert!(times.iter().all(|times| times[1..3] == [0; 2]));
}
