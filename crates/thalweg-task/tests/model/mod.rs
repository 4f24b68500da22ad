//! Tasks, slots, timers, wakers and cancellations in random order beside a plain model: how each
//! task ended, that no task was polled for nothing or forgotten, and that no value leaks or drops
//! twice.
#![cfg(not(loom))]

mod oracle;
mod script;
mod world;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Once;
use std::task::Poll;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use thalweg_task::{Family, Local, LocalExecutor, Shared, Status};

use oracle::{End, How, Oracle};
use script::{Act, Line, PANIC, Script};
use thalweg_testkit::wakers::poll_once;
use world::{Fault, World};

/// A step of the executor's thread.
#[derive(Debug, Clone)]
enum Step {
    Do(Act),
    Poll,
    Settle,
    Pass(u64),
}

/// A history: tasks a poll, scripts, what happens.
type History = (usize, Vec<Script>, Vec<Step>);

fn times() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..40_000_u64, 0..1_000_000_u64, 0..100_000_000_u64]
}

fn acts() -> impl Strategy<Value = Act> {
    let how = prop_oneof![Just(How::Later), Just(How::Now), Just(How::Replace)];
    let who = any::<usize>;
    prop_oneof![
        4 => (who(), prop::option::weighted(0.3, times())).prop_map(|(s, d)| Act::Spawn(s, d)),
        8 => (who(), how).prop_map(|(to, how)| Act::Send(to, how)),
        1 => (who(), ends()).prop_map(|(of, end)| Act::EndSender(of, end)),
        2 => who().prop_map(Act::Cancel),
        1 => who().prop_map(Act::LetGo),
        1 => (who(), times()).prop_map(|(task, after)| Act::SetDeadline(task, after)),
        2 => who().prop_map(Act::Wake),
        1 => who().prop_map(Act::WakeElsewhere),
        1 => who().prop_map(Act::DropWaker),
    ]
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Closed), Just(End::Cancelled)]
}

fn scripts() -> impl Strategy<Value = Script> {
    let line = prop_oneof![
        4 => acts().prop_map(Line::Do),
        2 => Just(Line::Yield),
        6 => Just(Line::Receive),
        2 => times().prop_map(Line::ReceiveWithin),
        2 => acts().prop_map(Line::ReceiveAnd),
        2 => times().prop_map(Line::Sleep),
        2 => any::<usize>().prop_map(Line::Join),
        2 => Just(Line::Keep),
        1 => ends().prop_map(Line::EndReceiver),
        1 => Just(Line::Panic),
    ];
    let parting = prop::collection::vec(acts(), 0..3);
    (prop::collection::vec(line, 0..8), parting)
        .prop_map(|(lines, parting)| Script { lines, parting })
}

fn histories() -> impl Strategy<Value = History> {
    let step = prop_oneof![
        12 => acts().prop_map(Step::Do),
        5 => Just(Step::Poll),
        2 => Just(Step::Settle),
        3 => times().prop_map(Step::Pass),
    ];
    let scripts = prop::collection::vec(scripts(), 1..6);
    (1..5_usize, scripts, prop::collection::vec(step, 1..120))
}

/// The limit of polls; all work is done in fewer.
const POLLS_MAX: usize = 10_000;

/// Panics that are on purpose are not reported.
fn hush() {
    static HUSH: Once = Once::new();
    HUSH.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&PANIC) {
                report(info);
            }
        }));
    });
}

struct Run<F: Family> {
    executor: LocalExecutor,
    world: Rc<World<F>>,
}

impl<F: Family> Run<F> {
    fn new(budget: usize, scripts: &[Script], fault: Fault) -> Run<F> {
        let begin = Instant::now();
        let now = Rc::new(Cell::new(begin));
        let read = Rc::clone(&now);
        let builder = LocalExecutor::builder()
            .budget(budget)
            .clock(move || read.get());
        let executor = builder.build().expect("no processor is named");
        let world = Rc::new(World {
            handle: executor.handle(),
            oracle: RefCell::new(Oracle::default()),
            begin,
            now,
            scripts: scripts.to_vec(),
            fault,
            counts: Rc::new(RefCell::new(BTreeMap::new())),
            ids: RefCell::default(),
            tasks: RefCell::default(),
            senders: RefCell::default(),
            wakers: RefCell::default(),
        });
        Run { executor, world }
    }

    fn take(&self, step: &Step) {
        match step {
            Step::Do(act) => self.world.perform(act),
            Step::Poll => drop(self.executor.poll()),
            Step::Settle => self.settle(),
            Step::Pass(time) => {
                let now = self.world.with_oracle(|oracle| {
                    oracle.now += time;
                    oracle.now
                });
                let now = self.world.begin + Duration::from_nanos(now);
                self.world.now.set(now);
            }
        }
    }

    /// Polls until nothing is left to do, and checks that this is so. Everything is kept.
    fn settle(&self) {
        let world = &self.world;
        let is_at_rest = (0..POLLS_MAX).any(|_| !self.executor.poll());
        world.with_oracle(|oracle| oracle.agree("the executor came to rest", is_at_rest, true));
        let live = world.handle.task_count();
        world.with_oracle(|oracle| oracle.rests(live, &alive(world)));
        for (task, id) in world.ids.borrow().iter().enumerate() {
            let is_over = world.with_oracle(|oracle| oracle.outcome(task).is_some());
            let expected = [Status::Waiting, Status::Ended][usize::from(is_over)];
            let found = id.map_or(Status::Ended, |id| world.handle.status(id));
            world.with_oracle(|oracle| oracle.agree("a status", found, expected));
        }
    }

    /// Drops the executor while all handles, senders and wakers are there, then these.
    fn finish(self) -> Result<(), String> {
        self.settle();
        let Run { executor, world } = self;
        world.with_oracle(|oracle| oracle.is_closed = true);
        drop(executor);
        for task in 0..world.ids.borrow().len() {
            let Some(mut held) = world.tasks.borrow_mut()[task].take() else {
                continue;
            };
            let expected = world.with_oracle(|oracle| oracle.outcome(task));
            let found = match poll_once(&mut held) {
                Poll::Ready(outcome) => Some(outcome.map(drop)),
                Poll::Pending => None,
            };
            world.with_oracle(|oracle| oracle.agree("an outcome", found, expected));
        }
        world.senders.take();
        world.wakers.take();
        let left = alive(&world);
        let users = Rc::strong_count(&world);
        world.with_oracle(|oracle| {
            oracle.agree("values that are left", left, BTreeSet::new());
            oracle.agree("users of the world", users, 1);
            oracle.wrong.take().map_or(Ok(()), Err)
        })
    }
}

/// The values that are there, and those that were dropped more than once.
fn alive<F: Family>(world: &World<F>) -> BTreeSet<usize> {
    let counts = world.counts.borrow();
    let alive = counts.iter().filter(|(_, count)| **count != 0);
    alive.map(|(&value, _)| value).collect()
}

fn replay<F: Family>((budget, scripts, steps): &History, fault: Fault) -> Result<(), String> {
    hush();
    let run = Run::<F>::new(*budget, scripts, fault);
    for step in steps {
        run.take(step);
        if let Some(wrong) = run.world.with_oracle(|oracle| oracle.wrong.clone()) {
            return Err(wrong);
        }
    }
    run.finish()
}

proptest! {
    #[test]
    fn tasks_with_local_slots_do_as_the_model(history in histories()) {
        prop_assert_eq!(replay::<Local>(&history, Fault::None), Ok(()));
    }

    #[test]
    fn tasks_with_shared_slots_do_as_the_model(history in histories()) {
        prop_assert_eq!(replay::<Shared>(&history, Fault::None), Ok(()));
    }
}

#[test]
fn the_model_notices_each_fault() {
    let faults = [
        Fault::WakeIsLost,
        Fault::SpuriousWake,
        Fault::ValueLeaks,
        Fault::ValueDropsTwice,
        Fault::SleepIsShort,
        Fault::SleepIsLong,
        Fault::CancelIsLost,
        Fault::SendIsLost,
        Fault::OutcomeIsAnother,
    ];
    for fault in faults {
        let mut runner = TestRunner::deterministic();
        let is_noticed = (0..400).any(|_| {
            let history = histories().new_tree(&mut runner).expect("it has no filter");
            replay::<Local>(&history.current(), fault).is_err()
        });
        assert!(is_noticed, "{fault:?}");
    }
}
