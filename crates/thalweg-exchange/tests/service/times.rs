//! When commands were where.

use std::sync::mpsc;

use thalweg::pipeline::Placement;
use thalweg_exchange::service::{Service, ServiceOptions, Stamps};
use thalweg_exchange::{Command, State};
use thalweg_measure::clock::Clock;

/// When it was due, the stamps of each command, and when it was published.
fn noted(
    options: ServiceOptions,
    send: impl FnOnce(&mut Service),
) -> (Vec<(u64, Option<Stamps>, u64)>, u64) {
    let (note, notes) = mpsc::channel();
    let mut service = Service::start(State::default(), options, move |outcome| {
        let now = Clock::global().ticks();
        let times = (outcome.due, outcome.stamps.copied(), now);
        note.send(times).expect("somebody listens");
    })
    .expect("options in range");
    let begin = Clock::global().ticks();
    send(&mut service);
    service.join().expect("no panic");
    (notes.iter().collect(), Clock::global().ticks() - begin)
}

fn inline(is_timed: bool) -> ServiceOptions {
    ServiceOptions {
        placement: Placement::inline(),
        is_timed,
        ..ServiceOptions::default()
    }
}

fn one_by_one(service: &mut Service) {
    for _ in 0..1_000 {
        let due = Clock::global().ticks();
        let submitted = service.submit_due(&Command::Nop, due, 0);
        submitted.expect("it runs");
    }
}

fn together(service: &mut Service) {
    for _ in 0..100 {
        let batch = vec![Command::Nop; 64];
        service.submit_batch(&batch, |_| 0).expect("it runs");
    }
}

#[test]
fn the_stamps_of_a_command_are_in_order() {
    let (times, _) = noted(inline(true), one_by_one);
    assert_eq!(times.len(), 1_000);
    for (due, stamps, now) in times {
        let stamps = stamps.expect("each is stamped");
        let Stamps {
            begun,
            checked,
            matched,
            settled,
            journaled,
        } = stamps;
        // The times that one thread reads of the clock never go backwards.
        let order = [due, begun, checked, matched, settled, now];
        assert!(order.is_sorted(), "{order:?}");
        assert_eq!(journaled, 0);
    }
}

#[test]
fn of_commands_in_a_row_each_begins_where_the_one_before_has_ended() {
    let threads = ServiceOptions {
        placement: Placement::threads(2),
        ..inline(true)
    };
    for options in [inline(true), threads] {
        let (times, elapsed) = noted(options, together);
        let stamps: Vec<Stamps> = times.iter().filter_map(|times| times.1).collect();
        assert_eq!(stamps.len(), 6_400);
        let mut chained = 0;
        for pair in stamps.windows(2) {
            assert!(pair[0].settled <= pair[1].begun);
            chained += usize::from(pair[0].settled == pair[1].begun);
        }
        // All but the first ones of chunks.
        assert!(chained > 3_000, "{chained}");
        let executed: u64 = stamps.iter().map(|at| at.settled - at.begun).sum();
        assert!(executed <= elapsed, "{executed} of {elapsed}");
    }
}

#[test]
fn one_command_in_three_is_stamped() {
    let options = ServiceOptions {
        sample_every: 3,
        ..inline(false)
    };
    for send in [one_by_one, together] {
        let (times, _) = noted(options.clone(), send);
        let is_stamped = |at: usize| at.is_multiple_of(3);
        for (at, (_, stamps, _)) in times.iter().enumerate() {
            assert_eq!(stamps.is_some(), is_stamped(at), "{at}");
        }
    }
}
