//! Changes of states and the slowest events are events of `tracing`.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use thalweg::pipeline::{Pipeline, Placement};
use thalweg::state::{Lifecycle, StateCell};
use thalweg_testkit::alone;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps a line for each event.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").expect("texts take all");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        panic!("there are no spans");
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().target().to_owned());
        event.record(&mut text);
        self.0.lock().expect("it is not poisoned").push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns the lines of what `work` does in this thread. No other thread of the process may have an
/// event of the same place first: whether it is wanted is asked once, in that thread.
fn lines(work: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), work);
    let lines = lines.0.lock().expect("it is not poisoned");
    lines.clone()
}

#[test]
fn a_change_of_a_state_is_an_event_and_a_refused_one_is_none() {
    alone(
        a_change_of_a_state_is_an_event_and_a_refused_one_is_none,
        changes,
    );
}

fn changes() {
    let lines = lines(|| {
        let cell = StateCell::new("feed", Lifecycle::Starting);
        cell.change(Lifecycle::Starting, Lifecycle::Running, "connected")
            .expect("it is declared");
        cell.change(Lifecycle::Starting, Lifecycle::Running, "again")
            .expect_err("it runs");
        cell.bump_version();
    });
    let line = "thalweg::state message=the state changed of=\"feed\" from=\"starting\" \
                to=\"running\" why=\"connected\"";
    assert_eq!(lines, [line]);
}

#[test]
fn the_slowest_events_so_far_are_events_and_others_are_not() {
    alone(
        the_slowest_events_so_far_are_events_and_others_are_not,
        slowest,
    );
}

fn slowest() {
    let lines = lines(|| {
        let mut pipeline = Pipeline::builder(8, || 0_u64)
            .stage("wait", |_, _| std::hint::spin_loop())
            .placement(Placement::inline())
            .sample_every(1)
            .build()
            .expect("valid");
        for number in 0..1_000 {
            pipeline.publish(|event| *event = number).expect("it runs");
        }
        pipeline.join().expect("no stage panicked");
    });
    let slow: Vec<&String> = lines
        .iter()
        .filter(|line| line.starts_with("thalweg::slow message=the slowest event so far "))
        .collect();
    let times = slow.iter().map(|line| {
        let at = line.find("end_to_end_ns=").expect("it has a time") + 14;
        let digits = line[at..].split(' ').next().expect("a number");
        digits.parse::<u64>().expect("a number")
    });
    let times: Vec<u64> = times.collect();
    assert!(!times.is_empty(), "{lines:?}");
    assert!(times.is_sorted(), "{times:?}");
    // One that is no record is left out.
    assert!(times.len() < 1_000, "{}", times.len());
    assert!(
        slow.iter().all(|line| line.contains("stage=\"wait\"")),
        "{slow:?}"
    );
    assert!(
        lines.iter().any(|line| line.starts_with("thalweg::state ")),
        "{lines:?}"
    );
}
