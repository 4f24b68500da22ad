//! Risk sharded by user and matching by symbol change nothing but where the work is done.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use thalweg::pipeline::Placement;
use thalweg_exchange::service::{Options, Service};
use thalweg_exchange::{
    AccountSpec, Command, ConditionalOrder, CurrencyId, FeeUnit, OrderFlags, Place, Rules, State,
    SymbolId, SymbolSpec, SymbolType, UserId, UserLimits,
};

use super::commands::{Mix, accounts, command, extreme_command, rules, stream, symbols};
use super::recording::recorded;
use super::{Record, serial, served_as};

/// What runs with these shards on no threads, 2, 3 and 5 (one stage a thread where 5 are too many).
fn options(risk_shards: usize, match_shards: usize) -> Vec<Options> {
    let stages = if risk_shards * match_shards == 1 {
        4
    } else {
        2 + 2 * risk_shards + match_shards
    };
    let placements = [
        Placement::inline(),
        Placement::threads(2),
        Placement::threads(3),
        Placement::threads(stages.min(5)),
    ];
    let options = |placement| Options {
        capacity: 256,
        placement,
        risk_shards,
        match_shards,
        ..Options::default()
    };
    placements.map(options).into()
}

fn agrees(name: &str, rules: Rules, commands: &[Command], shards: &[(usize, usize)]) {
    let expected = serial(rules, commands);
    for &(risk_shards, match_shards) in shards {
        for options in options(risk_shards, match_shards) {
            for batch in [1, 64] {
                let what = format!(
                    "{name}: {risk_shards} × {match_shards} shards, {}, batches of {batch}",
                    options.placement
                );
                let (record, _) = served_as(rules, commands, options.clone(), batch);
                same(&what, &record, &expected);
            }
        }
    }
}

fn same(what: &str, record: &Record, expected: &Record) {
    let first = record.results.iter().zip(&expected.results);
    let first = first.enumerate().find(|(_, (got, want))| got != want);
    assert_eq!(first, None, "{what}: the first result that differs");
    assert!(record.events == expected.events, "{what}: events");
    assert!(record.state == expected.state, "{what}: state");
}

const ALL: [(usize, usize); 9] = [
    (1, 1),
    (1, 2),
    (1, 3),
    (2, 1),
    (2, 2),
    (2, 3),
    (3, 1),
    (3, 2),
    (3, 3),
];

fn conformance() -> Vec<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    let Ok(files) = std::fs::read_dir(&shared) else {
        println!("skipped all but two files: no {}", shared.display());
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        return ["edge_nomargin.txt.gz", "exchange_20k.txt.gz"]
            .map(|name| data.join(name))
            .into();
    };
    let files = files.map(|file| file.expect("a readable folder").path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.to_string_lossy().ends_with(".txt.gz"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_recorded_stream_gives_the_same_under_any_sharding() {
    for file in conformance() {
        let (rules, mut commands) = recorded(&file);
        commands.truncate(20_000);
        let name = file.display().to_string();
        for rules in [
            rules,
            Rules::default().with_margin_trading(rules.margin_trading),
        ] {
            let expected = serial(rules, &commands);
            for (at, &(risk_shards, match_shards)) in ALL.iter().enumerate() {
                let all = options(risk_shards, match_shards);
                // Each sharding inline, and on one of the others.
                for options in [all[0].clone(), all[1 + at % 3].clone()] {
                    let what = format!(
                        "{name}: {risk_shards} × {match_shards} shards, {}",
                        options.placement
                    );
                    let (record, _) = served_as(rules, &commands, options, 64);
                    same(&what, &record, &expected);
                }
            }
        }
    }
}

/// What those who run the market do, over the small world of the other commands.
fn operation() -> impl Strategy<Value = Command> {
    let symbol = || (1..=9_i32).prop_map(SymbolId);
    let uid = || (1..=9_i64).prop_map(UserId);
    let spec = (1..=9_i32, 1..=3_i32, 1..=3_i32, 0..4_i64, any::<bool>()).prop_map(
        |(id, base, quote, fee, is_futures)| SymbolSpec {
            id: SymbolId(id),
            symbol_type: if is_futures {
                SymbolType::Futures
            } else {
                SymbolType::CurrencyPair
            },
            base_currency: CurrencyId(base * 10),
            quote_currency: CurrencyId(quote * 10),
            base_scale: 2,
            quote_scale: 3,
            taker_fee: fee + 1,
            maker_fee: fee,
            margin_buy: 5,
            margin_sell: 6,
            fee_unit: [FeeUnit::PerLot, FeeUnit::Millionth][usize::from(base == 1)],
        },
    );
    let money = prop_oneof![8 => -3..500_i64, 1 => Just(i64::MAX - 4_000)];
    let money = prop::collection::vec((1..=4_i32, money), 0..4);
    let account = (1..=9_i64, money).prop_map(|(uid, money)| AccountSpec {
        uid: UserId(uid),
        balances: money
            .into_iter()
            .map(|(currency, amount)| (CurrencyId(currency * 10), amount))
            .collect(),
    });
    prop_oneof![
        4 => (prop::option::of(uid()), prop::option::of(symbol()))
            .prop_map(|(uid, symbol)| Command::CancelAll { uid, symbol }),
        1 => uid().prop_map(|uid| Command::Disconnect { uid }),
        1 => (prop::option::of(uid()), prop::option::of((0..9_u32, 1..30_i64, any::<bool>())))
            .prop_map(|(uid, limits)| Command::SetLimits {
                uid,
                limits: limits.map(|(open_orders, order_size, ids_once)| UserLimits {
                    open_orders,
                    order_size,
                    ids_once,
                }),
            }),
        2 => (uid(), 1..=4_i32, 1..9_i64, 0..4_i64).prop_map(|(uid, currency, amount, more)| {
            Command::PayFees {
                uid,
                currency: CurrencyId(currency * 10),
                amount,
                transaction_id: 2_000_000_000 + more,
            }
        }),
        2 => (symbol(), 0..9_i64, 5..30_i64)
            .prop_map(|(symbol, low, high)| Command::SetPriceBand { symbol, low, high }),
        2 => symbol().prop_map(|symbol| Command::Halt { symbol }),
        3 => symbol().prop_map(|symbol| Command::Unhalt { symbol }),
        2 => symbol().prop_map(|symbol| Command::RemoveSymbol { symbol }),
        3 => prop::collection::vec(spec, 1..4).prop_map(|s| Command::AddSymbols(s.into())),
        3 => prop::collection::vec(account, 1..5).prop_map(|a| Command::AddAccounts(a.into())),
        2 => (0..50_i64).prop_map(|time| Command::Clock { time }),
        9 => conditional(),
        1 => Just(Command::Reset),
    ]
}

/// Orders with conditions and flags, on top of usual ones.
fn conditional() -> impl Strategy<Value = Command> {
    let option = |range: std::ops::Range<i64>| prop::option::of(range);
    let terms = (option(1..16), option(1..5), option(0..50), 0..16_u8);
    (command(Mix::Quirks), terms).prop_map(|(command, (trigger, display, good_till, flags))| {
        let Command::Place(place) = command else {
            return command;
        };
        let flags = OrderFlags::from_code(flags).unwrap_or_default();
        let place = Place { flags, ..place };
        if (trigger, display, good_till) == (None, None, None) {
            return Command::Place(place);
        }
        Command::PlaceWith(Arc::new(ConditionalOrder {
            place,
            trigger,
            display,
            good_till,
        }))
    })
}

/// Orders, money, and the market's own commands, all mixed.
fn mixed(length: usize) -> impl Strategy<Value = Vec<Command>> {
    let any = prop_oneof![10 => command(Mix::Quirks), 2 => operation()];
    prop::collection::vec(any, 1..length).prop_map(|mut commands| {
        commands.splice(0..0, [symbols(Mix::Quirks), accounts()]);
        commands
    })
}

fn some_shards() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::sample::subsequence(ALL.to_vec(), 3)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn usual_orders_give_the_same_under_any_sharding(
        commands in stream(Mix::Plain, 400),
        shards in some_shards(),
    ) {
        agrees("plain", Rules::default(), &commands, &shards);
    }

    #[test]
    fn quirks_and_operations_give_the_same_under_any_sharding(
        commands in mixed(400),
        rules in rules(),
        shards in some_shards(),
    ) {
        agrees("mixed", rules, &commands, &shards);
    }

    #[test]
    fn extreme_numbers_give_the_same_under_any_sharding(
        commands in prop::collection::vec(
            prop_oneof![9 => extreme_command(), 1 => operation()], 1..200),
        rules in rules(),
        shards in some_shards(),
    ) {
        agrees("extreme", rules, &commands, &shards);
    }
}

#[test]
fn impossible_shards_are_refused_with_the_limit() {
    let start = |risk_shards, match_shards| {
        let options = Options {
            risk_shards,
            match_shards,
            ..Options::default()
        };
        Service::start(State::default(), options, |_| ())
            .expect_err("an impossible option")
            .to_string()
    };
    assert_eq!(start(0, 1), "0 risk shards asked for; 1 to 64 are possible");
    assert_eq!(
        start(1, 65),
        "65 match shards asked for; 1 to 64 are possible"
    );
}
