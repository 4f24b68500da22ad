//! Long histories of books that are used much, many symbols, and recorded streams.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;

use flate2::bufread::GzDecoder;
use thalweg_exchange::conformance::{Checker, Engine, Summary};
use thalweg_exchange::stream::Recording;
use thalweg_exchange::{
    AccountSpec, Action, Command, CurrencyId, Events, OrderId, Place, ResultCode, Rules, State,
    SymbolId, SymbolSpec, UserId, apply,
};
use thalweg_testkit::shared;

use crate::snapshot::heavy_flow::HeavyFlow;
use crate::snapshot::twins::{Twins, reopened};

#[test]
fn large_books_go_on_in_and_after_long_auctions() {
    let [mut auctions, mut levels, mut waiting, mut expiring] = [0; 4];
    for seed in 0..6 {
        let (mut flow, mut twins) = (HeavyFlow::new(seed), Twins::new(Rules::default()));
        for at in 0..5_000 {
            if at % 211 == 0 {
                let found = twins.reopen(at % 2 == 0);
                found.unwrap_or_else(|error| panic!("{seed}, {at}: {error}"));
                for book in twins.state.matching.books() {
                    auctions += usize::from(book.is_auction());
                    levels = levels.max(book.levels(Action::Ask, usize::MAX).count());
                    waiting = waiting.max(book.waiting().count());
                    expiring = expiring.max(book.expiries().count());
                }
            }
            let command = flow.next();
            let done = twins.execute(&command);
            done.unwrap_or_else(|error| panic!("{seed}, {at}: {error}"));
        }
        twins.end().expect("both end alike");
    }
    let most = (levels, waiting, expiring);
    let is_much = levels > 150 && waiting > 10 && expiring > 10;
    assert!(auctions > 100 && is_much, "{auctions}, {most:?}");
}

#[test]
fn many_symbols_and_users_come_back_in_order() {
    let ids = |at: i32| SymbolId(at.wrapping_mul(40_503 << 8));
    let spec = |at| SymbolSpec::pair(ids(at), CurrencyId(at % 50), CurrencyId(99));
    let account = |uid: i64| AccountSpec {
        uid: UserId(uid.wrapping_mul(0x5851_F42D_4C95_7F2D)),
        balances: (0..50)
            .chain([99])
            .map(|id| (CurrencyId(id), 1_000))
            .collect(),
    };
    let mut twins = Twins::new(Rules::default());
    let setup = [
        Command::AddSymbols((0..700).map(spec).collect()),
        Command::AddAccounts((0..60).map(account).collect()),
    ];
    for command in &setup {
        let result = twins.execute(command).expect("both do the same");
        assert_eq!(result, ResultCode::Success);
    }
    for at in 0..4_000_i32 {
        if at % 500 == 0 {
            twins.reopen(at % 1_000 == 0).expect("as before");
        }
        let action = [Action::Ask, Action::Bid][(at / 7 % 2) as usize];
        let uid = account(i64::from(at % 60)).uid;
        let owner = (uid, OrderId(i64::from(at)));
        let lots = (i64::from(5 + at % 3), 1);
        let place = Place::limit(owner, ids(at * 31 % 700), action, lots);
        twins
            .execute(&Command::Place(place))
            .expect("both do the same");
    }
    twins.end().expect("both end alike");
}

/// A state that is written and read again after every `step` commands.
struct Reopening {
    state: State,
    step: u32,
    commands: u32,
}

impl Engine for Reopening {
    fn execute(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        self.commands += 1;
        if self.commands.is_multiple_of(self.step) {
            self.state = reopened(&self.state).expect("it comes back");
        }
        apply(&mut self.state, command, events)
    }

    fn state(&mut self) -> &State {
        &self.state
    }
}

fn agrees(path: PathBuf, step: u32) -> Summary {
    let file = BufReader::new(File::open(&path).expect("the stream can be opened"));
    let mut text = String::new();
    let unpacked = GzDecoder::new(file).read_to_string(&mut text);
    unpacked.expect("the stream can be unpacked");
    let recorded = Recording::new(text.as_bytes()).expect("a recorded stream");
    let engine = Reopening {
        state: State::new(recorded.rules()),
        step,
        commands: 0,
    };
    let summary = Checker::new(recorded, engine).run();
    summary.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_reference_agrees_with_an_exchange_that_is_reopened() {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    assert_eq!(agrees(own.join("edge_nomargin.txt.gz"), 1).commands, 16);
    let summary = agrees(own.join("exchange_20k.txt.gz"), 997);
    assert_eq!(summary.commands, 22_756);
}

#[test]
fn the_reference_agrees_in_margin_and_in_many_symbols_too() {
    let Some(folder) = shared("conformance") else {
        return;
    };
    for (name, step) in [
        ("edge.txt.gz", 1),
        ("edge_quirks.txt.gz", 1),
        ("margin_20k.txt.gz", 499),
        ("multi_40k.txt.gz", 1_999),
    ] {
        assert!(agrees(folder.join(name), step).commands > 30, "{name}");
    }
}
