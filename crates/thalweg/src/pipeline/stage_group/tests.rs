//! Turns, and being led.

use super::*;
use crate::pipeline::Context;
use crate::pipeline::meter::Chunked;
use crate::ring::broadcast::{RingBuilder, RingPublisher};
use std::sync::Mutex;

/// The steps that stages have done, in order.
#[derive(Debug, PartialEq)]
enum Done {
    Turn { limit: usize },
    Step { stage: usize, sequence: u64 },
    Measured { stage: usize, events: usize },
    Notified { stage: usize },
    Flushed,
}
use Done::{Flushed, Measured, Notified, Step, Turn as Turned};

/// Notes what is asked of it.
struct Probe {
    stage: usize,
    pace: Option<usize>,
    log: Arc<Mutex<Vec<Done>>>,
}

impl Probe {
    fn note(&self, done: Done) {
        self.log.lock().expect("no panic").push(done);
    }
}

impl Stage<u64> for Probe {
    fn turn(&mut self, _: &mut Reader<u64>, limit: usize, _: &mut Mark) -> Turn {
        self.note(Turned { limit });
        Turn::WORKED
    }

    fn observe(&mut self, _: &u64, context: Context) {
        let (stage, sequence) = (self.stage, context.sequence());
        self.note(Step { stage, sequence });
    }

    fn change(&mut self, _: &mut u64, context: Context) {
        self.observe(&0, context);
    }

    fn measured(&mut self, _: u64, chunk: Chunked, _: usize, mark: &mut Mark) {
        mark.noted = Some(1);
        let (stage, events) = (self.stage, chunk.count);
        self.note(Measured { stage, events });
    }

    fn owed(&self) -> u64 {
        0
    }

    fn count(&mut self, _: Span) {}

    fn notify_interval(&self) -> Option<usize> {
        self.pace
    }

    fn eager_waiters(&self) -> Option<&[usize]> {
        None
    }

    fn notify(&mut self) {
        self.note(Notified { stage: self.stage });
    }

    fn flush(&mut self) {
        self.note(Flushed);
    }

    fn attach(&mut self, _: Box<[usize]>, _: bool, _: bool, _: bool) {}
}

/// A group of stages in a row with these paces, one event in `2^shift` sampled.
struct Scene {
    group: StageGroup<u64>,
    publisher: RingPublisher<u64>,
    timeline: Arc<Timeline>,
    log: Arc<Mutex<Vec<Done>>>,
}

fn scene(paces: &[Option<usize>], shift: u32) -> Scene {
    let mut builder = RingBuilder::new(256);
    let mut after = Vec::new();
    for _ in paces {
        after = vec![builder.reader_mut(&after)];
    }
    let (publisher, readers) = builder.build(|| 0).expect("a valid ring");
    let timeline = Arc::new(Timeline::new(256, shift, paces.len(), 1, false));
    let mut group = StageGroup::new(&timeline, &Arc::new(Control::new(1)));
    let log = Arc::default();
    group.extend(
        paces
            .iter()
            .zip(readers)
            .enumerate()
            .map(|(stage, (&pace, reader))| Placed {
                name: "probe".into(),
                stage: Box::new(Probe {
                    stage,
                    pace,
                    log: Arc::clone(&log),
                }),
                reader,
            }),
    );
    Scene {
        group,
        publisher,
        timeline,
        log,
    }
}

impl Scene {
    fn publish(&mut self, count: usize) {
        for _ in 0..count {
            let sequence = self.publisher.next_sequence();
            if self.timeline.is_sampled(sequence) {
                self.timeline.open(sequence, 1);
            }
            self.publisher.publish(|_| ()).expect("room");
        }
    }

    /// Past the first event of all, which is sampled.
    fn begun(mut self) -> Self {
        self.publish(1);
        self.round();
        self
    }

    fn round(&mut self) -> (Round, Vec<Done>) {
        let round = self.group.round(&mut Mark::default());
        (
            round,
            std::mem::take(&mut *self.log.lock().expect("no panic")),
        )
    }
}

const QUIET: Option<usize> = Some(usize::MAX);

#[test]
fn only_a_stage_that_is_neither_shared_nor_called_back_takes_all_at_once() {
    let alone = scene(&[None], 20).round().1;
    assert_eq!(alone, [Turned { limit: usize::MAX }]);
    let two = scene(&[None, QUIET], 20).round().1;
    assert_eq!(two, [Turned { limit: ROUND }, Turned { limit: ROUND }]);
    let mut called = scene(&[None], 20);
    called.group.limit_alone =
        StageGroup::<u64>::on_call(&called.timeline, &called.group.control).limit_alone;
    assert_eq!(called.round().1, [Turned { limit: ROUND }]);
}

#[test]
fn stages_that_can_be_led_share_a_handful_of_events_before_the_next_one() {
    let mut scene = scene(&[QUIET, QUIET], 20).begun();
    scene.publish(3);
    let step = |stage, sequence| Step { stage, sequence };
    let hand = [step(0, 1), step(0, 2), step(1, 1), step(1, 2)];
    let expected = hand.into_iter().chain([step(0, 3), step(1, 3)]).collect();
    assert_eq!(scene.round(), (Round::Worked { more: false }, expected));
    scene.publish(ROUND + 1);
    let (round, steps) = scene.round();
    assert_eq!(
        (round, steps.len()),
        (Round::Worked { more: true }, 2 * ROUND)
    );
    assert_eq!(scene.round().0, Round::Worked { more: false });
}

#[test]
fn others_are_notified_at_the_pace_of_the_stage_that_wants_it_first() {
    let mut scene = scene(&[QUIET, Some(2), QUIET], 20).begun();
    scene.publish(3);
    let steps: Vec<_> = scene.round().1;
    let notices = |of: &[Done]| {
        of.iter()
            .filter(|done| matches!(done, Notified { .. }))
            .count()
    };
    // After two events of three steps, and at the end.
    assert_eq!(
        (steps.len(), notices(&steps), notices(&steps[..6])),
        (9 + 6, 6, 0)
    );
    assert!(
        steps[6..9]
            .iter()
            .all(|done| matches!(done, Notified { .. }))
    );
}

#[test]
fn a_sampled_event_is_measured_in_its_hand_and_the_round_is_flushed_then_only() {
    let mut scene = scene(&[QUIET, QUIET], 4).begun();
    let sampled = scene.timeline.sampled_in(1) as usize;
    scene.publish(sampled - 1);
    let is_step = |done: &Done| matches!(done, Step { .. });
    assert!(scene.round().1.iter().all(is_step), "none is sampled");
    scene.publish(3);
    let (_, done) = scene.round();
    let measured = |stage, events| Measured { stage, events };
    assert!(done[..2].iter().all(is_step) && done[3..5].iter().all(is_step));
    assert_eq!([&done[2], &done[5]], [&measured(0, 2), &measured(1, 2)]);
    assert!(done[6..8].iter().all(is_step));
    assert_eq!(done[8..], [Flushed, Flushed]);
}

#[test]
fn a_sampled_event_that_is_alone_is_measured_alone() {
    let mut scene = scene(&[QUIET, QUIET], 4).begun();
    let sampled = scene.timeline.sampled_in(1) as usize;
    scene.publish(sampled - 1);
    scene.round();
    scene.publish(1);
    let done = scene.round().1;
    let alone: Vec<&Done> = done
        .iter()
        .filter(|done| !matches!(done, Step { .. }))
        .collect();
    let measured = |stage| Measured { stage, events: 1 };
    assert_eq!(alone, [&measured(0), &measured(1), &Flushed, &Flushed]);
}

#[test]
fn a_stage_that_fell_behind_gets_turns() {
    let mut scene = scene(&[QUIET, QUIET], 20).begun();
    scene.publish(3);
    scene.group.chain.reader(0).waiting();
    scene.group.chain.reader(0).release(1);
    let turn = || Turned { limit: ROUND };
    assert_eq!(scene.round().1, [turn(), turn()]);
    scene.group.chain.reader(1).waiting();
    scene.group.chain.reader(1).release(1);
    assert_eq!(scene.round().1.len(), 2 * 2, "level again: led");
}
