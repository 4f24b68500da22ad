//! No pipeline at all: the same work in a plain loop on the sender's thread. What remains of the
//! tail is the machine's own, and nothing that runs on one core here can be below it.

use std::sync::PoisonError;

use thalweg_measure::histogram::recorder;

use crate::runner::{Run, Subject};
use crate::sender::{Line, Load, figures, send};
use crate::workload::{Event, STAGES, Stamp, Step, Tail, Workload};

/// The machine and the work, and nothing else.
#[derive(Debug)]
pub(crate) struct Alone {
    pub(crate) workload: Workload,
}

impl Alone {
    pub(crate) const NAME: &str = "no pipeline (the machine alone)";
}

impl Subject<Load> for Alone {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn run(&self, load: &Load) -> Result<Run, String> {
        let (writer, reader) = recorder();
        let (tail, tally) = Tail::new(writer);
        let line = Loop {
            event: Event::default(),
            steps: (0..STAGES)
                .map(|place| Step::new(place, self.workload.rounds_of(STAGES)))
                .collect(),
            tail,
        };
        let sent = send(line, *load);
        let tally = *tally.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(figures(*load, sent, tally, &reader))
    }
}

struct Loop {
    event: Event,
    steps: Vec<Step>,
    tail: Tail,
}

impl Line for Loop {
    #[inline]
    fn publish(&mut self, stamp: Stamp, _: u64) -> bool {
        self.event.set(stamp);
        for step in &mut self.steps {
            step.work(&self.event);
        }
        self.tail.end(&self.event);
        true
    }

    fn publish_batch(&mut self, first: u64, count: usize, deadline_ticks: u64) -> bool {
        (first..first + count as u64).all(|number| {
            let stamp = Stamp {
                number,
                intended_ticks: 0,
            };
            self.publish(stamp, deadline_ticks)
        })
    }

    fn finish(self) {}
}
