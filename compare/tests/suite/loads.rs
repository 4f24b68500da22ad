//! The work of the stages, the loads, and what threads measure.

use std::sync::Arc;

use thalweg::wait::cores;
use thalweg_compare::pipelines::{Event, Stamp, Step, Tail, Tally};
use thalweg_compare::runner::Run;
use thalweg_compare::sender::{LATENCY, Load, line, run};
use thalweg_compare::threads::{Samples, Seats, crew};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Recorder;

#[test]
fn an_event_is_one_cache_line() {
    assert_eq!(size_of::<Event>(), 64);
}

#[test]
fn the_tail_counts_what_came_and_what_was_out_of_place() {
    let recorder = Arc::new(Recorder::new());
    let (mut tail, tally) = Tail::new(Arc::clone(&recorder));
    let mut event = Event::default();
    for (number, intended_ticks) in [(0, 0), (1, 1), (3, 1)] {
        event.set(Stamp {
            number,
            intended_ticks,
        });
        tail.end(&event);
    }
    drop(tail);
    let expected = Tally {
        events: 3,
        misplaced: 1,
    };
    assert_eq!(*tally.lock().unwrap(), expected);
    assert_eq!(recorder.count(), 2);
}

#[test]
fn a_result_depends_on_every_stage_and_on_earlier_events() {
    let result = |rounds: u32, events: u64| {
        let mut steps = [Step::new(0, rounds), Step::new(1, rounds)];
        let mut event = Event::default();
        for number in 0..events {
            event.set(Stamp::untimed(number));
            for step in &mut steps {
                step.work(&event);
            }
        }
        steps[1].last
    };
    assert_eq!(result(5, 3), result(5, 3));
    assert_ne!(result(5, 3), result(6, 3));
    assert_ne!(result(5, 3), result(5, 4));
}

/// Sends to a line that takes events at once, and may leave one out or have no room. Returns the
/// run, and how many events were sent and measured.
fn sent(load: Load, skip: u64, room: u64) -> (Run, [u64; 2]) {
    let (mut events, mut measured) = (0, 0);
    let run = run(load, |tail| {
        let publish = |tail: &mut Tail, stamp: Stamp| {
            if stamp.number == room {
                return false;
            }
            events += 1;
            measured += u64::from(stamp.intended_ticks != 0);
            if stamp.number != skip {
                let mut event = Event::default();
                event.set(stamp);
                tail.end(&event);
            }
            true
        };
        Ok(line(tail, publish, drop))
    });
    (run.expect("the sender is there"), [events, measured])
}

const NEVER: u64 = u64::MAX;
const OPEN: Load = Load::Open {
    per_s: 100_000,
    span_ns: 3_000_000,
};

#[test]
fn a_schedule_sends_every_event_and_measures_those_after_the_warm_up() {
    let (run, counts) = sent(OPEN, NEVER, NEVER);
    assert!(!run.cut || counts[0] < 500, "{counts:?}");
    if !run.cut {
        assert_eq!(counts, [500, 300]);
        assert!(run.values[0] <= run.values[1] && run.values[1] <= run.values[2]);
    }
    assert_eq!((run.lost, run.values.len()), (0, LATENCY.len()));
}

#[test]
fn a_lost_event_counts() {
    assert!(sent(OPEN, 3, NEVER).0.lost > 0);
    let closed = Load::Closed {
        batch: 16,
        span_ns: 100_000,
    };
    assert!(sent(closed, 3, NEVER).0.lost > 0);
    assert_eq!(sent(closed, NEVER, NEVER).0.lost, 0);
}

#[test]
fn a_line_that_takes_no_more_cuts_the_run() {
    let (run, [events, measured]) = sent(OPEN, NEVER, 150);
    assert!(run.cut && events <= 150);
    assert_eq!((run.lost, measured), (0, 0));
    assert_eq!(run.values, [f64::INFINITY; 3]);
}

#[test]
fn both_run_where_they_should_and_a_core_that_is_not_there_stops_both() {
    let seats = Seats::apart().unwrap_or_else(|why| {
        println!("skipped, both on one core: {why}");
        Seats::together().unwrap()
    });
    let ran = std::thread::spawn(move || seats.run(cores::current, cores::current));
    let expected = (Some(seats.sender), Some(seats.receiver));
    assert_eq!(ran.join().unwrap(), Ok(expected));
    let receiver = 9_999;
    let seats = Seats { receiver, ..seats };
    let ran = std::thread::spawn(move || seats.run(|| (), || ()));
    assert!(ran.join().unwrap().is_err());
}

#[test]
fn every_thread_of_a_crew_runs_once() {
    let all = crew(vec![1, 2], vec![3], |at, n| (at, n), |at, n| (at, n));
    assert_eq!(all, (vec![(0, 1), (1, 2)], vec![(0, 3)]));
}

#[test]
fn quantiles_are_of_what_was_recorded() {
    let clock = Clock::global();
    let mut samples = Samples::with_room(101);
    for at in (1..=101).rev() {
        samples.take(clock.ticks_from_ns(at * 1_000_000));
    }
    assert!(samples.is_full());
    samples.take(0);
    let found = samples.quantiles_ns([0.0, 0.5, 1.0]);
    for (found, expected) in found.into_iter().zip([1e6, 51e6, 101e6]) {
        assert!((found - expected).abs() < 10.0, "{found} {expected}");
    }
    assert_eq!(Samples::with_room(1).quantiles_ns([0.5]), [f64::INFINITY]);
}
