//! An exchange of version 2, as it was written once: it opens, and is written to the same bytes.
//! `THALWEG_WRITE_GOLDEN=1` writes it anew, after a change of the format that was meant.

use std::path::PathBuf;

use thalweg_exchange::durable::{Exchange, JournalOptions, Options, SimDisk, SnapshotOptions};
use thalweg_exchange::session::{ClientSequence, Role, SessionKey};
use thalweg_exchange::{Action, Command, Rules, UserId};

use crate::durable::world::{by, inline, market, open, order};

fn options() -> Options {
    let snapshot = SnapshotOptions {
        in_background: false,
        ..SnapshotOptions::default()
    };
    Options {
        snapshot,
        // Rules that are younger.
        rules: Rules {
            bound_work: false,
            hold_futures_fees: false,
            ..Rules::default()
        },
        journal: JournalOptions::default()
            .segment_bytes(48 << 10)
            .block_bytes_max(4 << 10)
            .journal_number(0x7468_616c_7765_6721)
            .in_background(false),
        ..inline()
    }
}

/// A market, trades of two sessions, one of an administrator, a snapshot in the midst.
fn written() -> SimDisk {
    let disk = SimDisk::new();
    let (mut exchange, ..) = open(disk.clone(), options());
    market(&mut exchange);
    let key = SessionKey::new(Role::Admin, 99, 3);
    let sequence = ClientSequence(7);
    let origin = thalweg_exchange::durable::Origin::Session { key, sequence };
    let user = Command::AddUser { uid: UserId(9) };
    exchange.submit(origin, &user, 0).expect("taken");
    for sequence in 1..=6 {
        let side = if sequence % 3 == 0 {
            Action::Bid
        } else {
            Action::Ask
        };
        let uid = 1 + sequence % 2;
        let command = order(uid, sequence, side);
        exchange
            .submit(by(uid, 2 * sequence as u64), &command, 0)
            .expect("taken");
        if sequence == 4 {
            exchange.snapshot_now();
        }
    }
    disk
}

const FILES: [&str; 3] = [
    "00000000000000000001.segment",
    "snapshot-00000000000000000000.thw",
    "snapshot-00000000000000000007.thw",
];
const DIGEST: &str = "dde4f417cee49ef2 after 9";

fn path(name: &str) -> PathBuf {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/durable-v2");
    PathBuf::from(data).join(name)
}

#[test]
fn an_exchange_of_version_2_opens_and_is_written_to_the_same_bytes() {
    let disk = written();
    if std::env::var_os("THALWEG_WRITE_GOLDEN").is_some() {
        for name in FILES {
            std::fs::write(path(name), disk.contents(name).expect("it is there")).expect("written");
        }
    }
    let golden = SimDisk::new();
    for name in FILES {
        let bytes = std::fs::read(path(name)).expect("it is in the repository");
        assert!(
            disk.contents(name).expect("it is written") == bytes,
            "{name}"
        );
        golden.put(name, bytes);
    }
    let (_, recovered) = Exchange::open_in(golden, options(), |_| ()).expect("it opens");
    assert_eq!(recovered.digest.to_string(), DIGEST);
    assert_eq!(recovered.replayed, 2);
}
