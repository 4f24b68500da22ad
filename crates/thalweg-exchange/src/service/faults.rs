//! A panic in any stage ends the service, and is told with the stage's name.

use std::sync::mpsc;
use std::time::Duration;

use thalweg::pipeline::Placement;

use super::{Options, Service};
use crate::{AccountSpec, Command, CurrencyId, State, UserId};

const STAGES: [&str; 4] = ["front", "risk", "match", "settle"];

/// The tag of a command at which this shard's stage panics.
fn fatal(stage: &str, shard: usize) -> u64 {
    let stage = STAGES.iter().position(|&name| name == stage);
    u64::MAX - (stage.expect("a stage") * 8 + shard) as u64
}

pub(super) fn strike(stage: &str, shard: usize, tag: u64) {
    assert!(tag != fatal(stage, shard), "seeded");
}

/// Commands for both risk shards, among them such as concern all shards.
fn commands() -> Vec<Command> {
    let account = |uid| AccountSpec::new(UserId(uid), vec![(CurrencyId(1), 100)]);
    let cancel = |uid| {
        Command::cancel(
            UserId(uid),
            crate::SymbolId(uid as i32 % 7),
            crate::OrderId(uid),
        )
    };
    (0..200)
        .map(|n| match n {
            0 => Command::AddAccounts((0..50).map(account).collect()),
            n if n % 17 == 0 => Command::AddUser { uid: UserId(n) },
            n => cancel(n),
        })
        .collect()
}

#[test]
fn a_panic_in_any_shard_ends_the_service_and_nobody_hangs() {
    let placements = [
        Placement::inline(),
        Placement::threads(2),
        Placement::threads(3),
        Placement::threads(5),
    ];
    for placement in placements {
        for (stage, shard) in [
            ("front", 0),
            ("risk", 0),
            ("risk", 1),
            ("match", 0),
            ("match", 1),
            ("settle", 0),
            ("settle", 1),
        ] {
            let options = Options {
                capacity: 64,
                placement: placement.clone(),
                risk_shards: 2,
                match_shards: 2,
                ..Options::default()
            };
            let (sender, receiver) = mpsc::channel();
            std::thread::spawn(move || {
                let mut service =
                    Service::start(State::default(), options, |_| ()).expect("valid options");
                let commands = commands();
                // It is told sooner or later; what matters is the end. From the 150th command on,
                // whichever the shard gets first is fatal.
                let tag = |at| if at < 150 { 0 } else { fatal(stage, shard) };
                let _ = (0..20).find_map(|_| service.submit_batch(&commands, tag).err());
                sender.send(service.join().expect_err("told"))
            });
            // Patience is for a hang only, no run comes near it.
            let failure = receiver.recv_timeout(Duration::from_secs(20));
            let failure = failure.expect("the service ends");
            let name = match stage {
                "front" => "front".to_owned(),
                _ => format!("{stage}[{shard}]"),
            };
            assert_eq!(failure.stage, name, "{placement}");
            assert_eq!(failure.message, "seeded");
        }
    }
}
