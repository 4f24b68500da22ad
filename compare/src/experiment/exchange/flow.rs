//! A stream of commands to be timed: what comes before it, what it must leave, and states that
//! are ready for it.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use flate2::bufread::GzDecoder;
use thalweg_exchange::book::{Book, Level};
use thalweg_exchange::stream::LoadStream;
use thalweg_exchange::{
    Action, Command, Event, Events, OrderId, ResultCode, Rules, State, SymbolId, apply,
};

/// Levels of both sides, asks first, best first.
pub(super) type Levels = Vec<(Action, Level)>;

/// Commands to be timed, all of one symbol.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) symbol: SymbolId,
    /// Adds the symbol and the users, and funds them.
    pub(super) setup: Vec<Command>,
    /// Fills the book.
    pub(super) prefill: Vec<Command>,
    /// What is timed, or a part of it.
    pub(super) commands: Vec<Command>,
    /// The parts that are timed: from one command to before another. None for all.
    pub(super) blocks: Vec<[usize; 2]>,
    /// The book that must be left.
    pub(super) levels: Levels,
}

impl Flow {
    /// A stream of the reference's load generator, from `../shared/streams` beside the workspace.
    ///
    /// # Errors
    /// It is not there, or is not of the format.
    pub(super) fn shared(name: &str) -> Result<Self, String> {
        let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let path = manifest
            .join("../../shared/streams")
            .join(format!("{name}.csv.gz"));
        if !path.exists() {
            return Err(format!("{} is not there", path.display()));
        }
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = BufReader::new(File::open(&path).map_err(|error| told(&error))?);
        let stream = LoadStream::read(BufReader::new(GzDecoder::new(file)));
        let stream = stream.map_err(|error| told(&error))?;
        Ok(Self {
            symbol: stream.symbol.id,
            setup: stream.setup,
            prefill: Vec::new(),
            commands: stream.commands,
            blocks: Vec::new(),
            levels: stream.final_levels,
        })
    }

    /// A state right before the commands, whose memory is warm: all of them were applied to it
    /// once, and what rested then was cancelled.
    pub(super) fn ready(&self, rules: Rules) -> State {
        self.ready_seen(rules, |_, _, _| ())
    }

    /// The same, with somebody who sees what came of each command.
    pub(super) fn ready_seen(
        &self,
        rules: Rules,
        mut see: impl FnMut(&Command, ResultCode, &Events),
    ) -> State {
        let mut state = State::new(rules);
        let mut events = Events::with_capacity(1024);
        let mut run = |state: &mut State, commands: &[Command], all_succeed: bool| {
            for command in commands {
                let code = apply(state, command, &mut events);
                let fine = !all_succeed || code == ResultCode::Success;
                assert!(fine, "wrong result of {command:?}: {code:?}");
                see(command, code, &events);
            }
        };
        run(&mut state, &self.setup, true);
        run(&mut state, &self.prefill, true);
        run(&mut state, &self.commands, false);
        self.assert_levels(&state, "the rehearsal");
        let leftover = self.leftover(&state);
        run(&mut state, &leftover, true);
        run(&mut state, &self.prefill, true);
        state
    }

    /// Commands that are timed.
    pub(super) fn timed(&self) -> usize {
        match &self.blocks[..] {
            [] => self.commands.len(),
            blocks => blocks.iter().map(|[begin, end]| end - begin).sum(),
        }
    }

    /// Runs all commands, and gives what `clock` says of those that are timed.
    #[inline]
    pub(super) fn time(
        &self,
        clock: impl Fn() -> f64,
        mut run: impl FnMut(usize, &Command),
    ) -> f64 {
        self.time_parts(clock, |first, commands| {
            for (at, command) in (first..).zip(commands) {
                run(at, command);
            }
        })
    }

    /// The same, where `run` gets what is timed, or not, in one piece.
    #[inline]
    pub(super) fn time_parts(
        &self,
        clock: impl Fn() -> f64,
        mut run: impl FnMut(usize, &[Command]),
    ) -> f64 {
        let whole = [[0, self.commands.len()]];
        let blocks = match &self.blocks[..] {
            [] => &whole[..],
            blocks => blocks,
        };
        let (mut took, mut done) = (0.0, 0);
        for &[begin, end] in blocks {
            run(done, &self.commands[done..begin]);
            let before = clock();
            run(begin, &self.commands[begin..end]);
            took += clock() - before;
            done = end;
        }
        took
    }

    /// Cancels of all that rests.
    pub(super) fn leftover(&self, state: &State) -> Vec<Command> {
        let book = self.book(state);
        let sides = [Action::Ask, Action::Bid].into_iter();
        let orders = sides.flat_map(|side| book.orders(side));
        let cancel = |order: thalweg_exchange::book::RestingOrder| {
            Command::cancel(order.uid, self.symbol, order.order_id)
        };
        orders.map(cancel).collect()
    }

    pub(super) fn book<'s>(&self, state: &'s State) -> &'s Book {
        let book = state.matching.book(self.symbol);
        book.expect("the setup added the symbol")
    }

    /// # Panics
    /// The book is not the one that must be left: there is no figure then.
    pub(super) fn assert_levels(&self, state: &State, what: &str) {
        assert_equal(&levels(self.book(state)), &self.levels, what);
    }

    /// # Panics
    /// The first state has another book than the second.
    pub(super) fn assert_same_levels(&self, state: &State, twin: &State) {
        let [found, expected] = [state, twin].map(|state| levels(self.book(state)));
        assert_equal(&found, &expected, "a run");
    }
}

fn assert_equal(found: &Levels, expected: &Levels, what: &str) {
    let first = found.iter().zip(expected).find(|(a, b)| a != b);
    assert!(
        found == expected,
        "wrong result: {what} left {} levels instead of {}, first difference {first:?}",
        found.len(),
        expected.len(),
    );
}

/// All levels of a book.
pub(super) fn levels(book: &Book) -> Levels {
    let sides = [Action::Ask, Action::Bid].into_iter();
    let level = |side| {
        book.levels(side, usize::MAX)
            .map(move |level| (side, level))
    };
    sides.flat_map(level).collect()
}

/// What came of a flow's commands, taken down to feed the parts of the engine one by one.
#[derive(Debug)]
pub(super) struct Tape {
    pub(super) checked: Vec<ResultCode>,
    pub(super) results: Vec<ResultCode>,
    /// As the engine collects them: `settle` takes them so.
    pub(super) events: Vec<Events>,
    /// Trades of each.
    pub(super) met: Vec<u32>,
    pub(super) trades: u64,
    /// Commands with at least one trade.
    pub(super) trading: u64,
    /// Orders that rest at the end.
    pub(super) resting: Vec<OrderId>,
}

impl Tape {
    /// Runs the flow under these rules.
    pub(super) fn record(flow: &Flow, rules: Rules) -> Self {
        let mut state = flow.ready(rules);
        let mut tape = Self {
            checked: Vec::with_capacity(flow.commands.len()),
            results: Vec::with_capacity(flow.commands.len()),
            events: Vec::with_capacity(flow.commands.len()),
            met: Vec::with_capacity(flow.commands.len()),
            trades: 0,
            trading: 0,
            resting: Vec::new(),
        };
        let mut events = Events::with_capacity(1024);
        for command in &flow.commands {
            let checked = state.risk.check(command);
            let result = state.matching.execute(command, checked, &mut events);
            state.risk.settle(command, result, &events);
            tape.checked.push(checked);
            tape.results.push(result);
            tape.events.push(events.clone());
            let trades = events.iter();
            let trades = trades.filter(|event| matches!(event, Event::Trade { .. }));
            let trades = trades.count();
            tape.met
                .push(u32::try_from(trades).expect("fewer than the orders of a book"));
            tape.trades += trades as u64;
            tape.trading += u64::from(trades > 0);
        }
        let order_id = |cancel: Command| match cancel {
            Command::Cancel { order_id, .. } => Some(order_id),
            _ => None,
        };
        let leftover = flow.leftover(&state).into_iter();
        tape.resting = leftover.filter_map(order_id).collect();
        tape
    }
}

#[cfg(test)]
mod tests {
    use super::super::mixes;
    use super::*;

    #[test]
    fn a_state_is_ready_when_everything_was_rehearsed_and_taken_back() {
        let flow = mixes::trading(2_000);
        let state = flow.ready(Rules::default());
        assert!(levels(flow.book(&state)) != flow.levels);
        let mut twice = state.clone();
        let mut events = Events::new();
        for command in &flow.commands {
            apply(&mut twice, command, &mut events);
        }
        flow.assert_levels(&twice, "the second pass");
    }

    #[test]
    fn a_tape_holds_what_each_part_needs() {
        let flow = mixes::trading(1_000);
        let tape = Tape::record(&flow, Rules::default());
        assert_eq!(tape.results.len(), 1_000);
        let events: usize = tape.events.iter().map(|events| events.len()).sum();
        assert!(events as u64 > tape.trades);
        assert!(tape.trades >= tape.trading && tape.trading > 400);
        let orders: u64 = flow.levels.iter().map(|(_, level)| level.orders).sum();
        assert_eq!(tape.resting.len() as u64, orders);
    }

    #[test]
    fn blocks_are_timed_and_what_is_between_them_runs_too() {
        let flow = mixes::sweeps(300);
        let (now, seen) = (std::cell::Cell::new(0.0), std::cell::Cell::new(0));
        let took = flow.time(
            || now.get(),
            |at, command| {
                assert_eq!((at, command), (seen.get(), &flow.commands[at]));
                seen.set(at + 1);
                now.set(now.get() + 1.0);
            },
        );
        assert_eq!((took, flow.timed()), (300.0, 300));
        assert_eq!(seen.get(), flow.commands.len());
    }

    #[test]
    #[should_panic(expected = "wrong result: the test left")]
    fn another_book_is_an_error() {
        let mut flow = mixes::trading(100);
        let state = flow.ready(Rules::default());
        flow.levels.pop();
        flow.assert_levels(&state, "the test");
    }

    #[test]
    fn a_stream_that_is_not_there_is_told() {
        let error = Flow::shared("no_such_stream").unwrap_err();
        assert!(
            error.ends_with("no_such_stream.csv.gz is not there"),
            "{error}"
        );
    }
}
