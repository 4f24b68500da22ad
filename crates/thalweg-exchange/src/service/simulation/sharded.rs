//! The stages of a sharded service in random order of progress, without threads; and the same with
//! faults, which must be noticed.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use thalweg::pipeline::Flow;

use super::commands::{Mix, extreme_command, rules, stream};
use super::{Record, futures, hash, is_noticed, results, serial, slots};
use crate::service::front::Front;
use crate::service::shards::{Shards, match_shard, risk_shard};
use crate::service::stages::{book, check, execute};
use crate::service::{Slot, Waits, Work};
use crate::{Command, Rules, State};

/// What a run does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// What concerns several shards does not wait for what is under way.
    Impatient,
    /// What one user sent is left to one shard, whatever it concerns.
    Narrow,
    /// A shard's refusal counts though settlements are missing.
    Hasty,
}

/// How far each stage is.
struct Run {
    slots: Vec<Slot>,
    front: Front,
    shards: Arc<Shards>,
    passed: usize,
    checked: Vec<usize>,
    matched: Vec<usize>,
    settled: Vec<usize>,
    fault: Fault,
}

fn least(stages: &[usize]) -> usize {
    stages.iter().copied().min().expect("there is a shard")
}

impl Run {
    fn stages(&self) -> usize {
        1 + self.checked.len() + self.matched.len() + self.settled.len()
    }

    /// Gives a stage, by number, a turn of up to `limit` commands.
    fn turn(&mut self, stage: usize, limit: usize) {
        let (risk, books) = (self.checked.len(), self.matched.len());
        match stage {
            0 => self.pass(limit),
            _ if stage <= risk => self.check(stage - 1, limit),
            _ if stage <= risk + books => self.execute(stage - 1 - risk, limit),
            _ => self.settle(stage - 1 - risk - books, limit),
        }
    }

    fn pass(&mut self, limit: usize) {
        let until = self.slots.len().min(self.passed + limit);
        while self.passed < until {
            let slot = &mut self.slots[self.passed];
            let sequence = self.passed as u64;
            if self.fault == Fault::Impatient {
                self.front.believe_alone(sequence);
            }
            let is_let_through = self.fault == Fault::Narrow && slot.command.uid().is_some();
            if !is_let_through && self.front.pass(slot, sequence) == Flow::Retry {
                return;
            }
            self.passed += 1;
        }
    }

    fn check(&mut self, shard: usize, limit: usize) {
        let until = self.passed.min(self.checked[shard] + limit);
        for at in self.checked[shard]..until {
            let slot = &mut self.slots[at];
            if risk_shard(&slot.command, self.checked.len()) == shard {
                let mut ledger = self.shards.risk(shard);
                if check(&mut ledger, slot, at as u64) == Flow::Retry {
                    if self.fault != Fault::Hasty {
                        return;
                    }
                    slot.checked.code = ledger.check_regardless(&slot.command);
                }
            }
            self.checked[shard] = at + 1;
        }
    }

    fn execute(&mut self, shard: usize, limit: usize) {
        let until = least(&self.checked).min(self.matched[shard] + limit);
        for at in self.matched[shard]..until {
            let slot = &mut self.slots[at];
            if match_shard(&slot.command, self.matched.len()) == shard {
                execute(self.shards.books(shard).get(), slot);
            }
            self.matched[shard] = at + 1;
        }
    }

    fn settle(&mut self, shard: usize, limit: usize) {
        let until = least(&self.matched).min(self.settled[shard] + limit);
        for at in self.settled[shard]..until {
            book(&mut self.shards.risk(shard), &self.slots[at], at as u64);
            self.settled[shard] = at + 1;
            self.shards.set_settled(shard, at as u64 + 1);
        }
    }
}

/// Runs the stages in the order of `turns`: which one, and for how many commands at most.
fn sharded(
    rules: Rules,
    commands: &[Command],
    (risk, books): (usize, usize),
    turns: &[(usize, usize)],
    fault: Fault,
) -> (Record, Waits) {
    let shards = Arc::new(Shards::new(State::new(rules), risk, books));
    let waits = Arc::new(Mutex::new(Waits::default()));
    let mut run = Run {
        slots: slots(commands),
        front: Front::new(&shards, &waits),
        shards: Arc::clone(&shards),
        passed: 0,
        checked: vec![0; risk],
        matched: vec![0; books],
        settled: vec![0; risk],
        fault,
    };
    while least(&run.settled) < commands.len() {
        for &(stage, limit) in turns {
            run.turn(stage % run.stages(), limit);
        }
        // Whatever the turns leave out.
        (0..run.stages()).for_each(|stage| run.turn(stage, 2));
    }
    let Run {
        slots,
        front,
        shards: of_run,
        ..
    } = run;
    drop((front, of_run));
    let (state, mut all) = Arc::into_inner(shards)
        .expect("no stage is left")
        .into_state();
    all += *waits.lock().unwrap();
    ((results(slots), hash(&state)), all)
}

fn turns() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((0..64_usize, 0..30_usize), 1..30)
}

#[test]
fn no_order_of_progress_changes_what_comes_of_it() {
    let any = prop_oneof![
        stream(Mix::Plain, 300),
        stream(Mix::Quirks, 300),
        futures(),
        prop::collection::vec(extreme_command(), 1..200),
    ];
    let shards = (1..4_usize, 1..4_usize);
    let strategy = (any, rules(), shards, turns());
    let mut runner = TestRunner::new(ProptestConfig::with_cases(600));
    let outcome = runner.run(&strategy, |(commands, rules, shards, turns)| {
        let (record, _) = sharded(rules, &commands, shards, &turns, Fault::None);
        prop_assert_eq!(record, serial(rules, &commands), "{:?}", shards);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn the_simulation_notices_faults() {
    let turns = [(0, 40), (1, 30), (2, 20), (3, 9), (4, 7), (5, 3), (6, 5)];
    for fault in [Fault::Impatient, Fault::Narrow, Fault::Hasty] {
        let run =
            |commands: &[Command]| sharded(Rules::REFERENCE, commands, (2, 2), &turns, fault).0;
        let any = prop_oneof![stream(Mix::Quirks, 300), futures()];
        let is_seen = is_noticed(any, Rules::REFERENCE, run);
        assert!(is_seen, "the simulation would not notice {fault:?}");
    }
}

/// Orders in pairs by users without positions are the shards' own business.
#[test]
fn usual_orders_do_not_see_all_shards() {
    let mut runner = TestRunner::deterministic();
    let commands = stream(Mix::Plain, 300)
        .new_tree(&mut runner)
        .unwrap()
        .current();
    let shards = Shards::new(State::new(Rules::default()), 3, 2);
    let mut front = Front::new(&Arc::new(shards), &Arc::default());
    let mut alone = 0;
    for (at, slot) in slots(&commands).iter_mut().enumerate() {
        front.believe_alone(at as u64);
        assert_eq!(front.pass(slot, at as u64), Flow::Next);
        alone += usize::from(slot.work == Work::Done);
        let is_order = slot.command.symbol().is_some();
        assert!(
            !is_order || slot.work == Work::Command,
            "{:?}",
            slot.command
        );
    }
    assert!(
        alone > 2 && alone < commands.len() / 4,
        "{alone} of {}",
        commands.len()
    );
}
