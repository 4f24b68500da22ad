//! Tests `thalweg exchange recover`, `verify` and `export` on the files that an exchange left.

use crate::program;

use std::fs;
use std::path::{Path, PathBuf};

use program::{Ended, thalweg};
use serde_json::Value;
use thalweg_exchange::durable::{Exchange, JournalOptions, Options, Origin, SnapshotOptions};
use thalweg_exchange::session::{ClientSequence, Role, SessionKey};
use thalweg_exchange::{Command, OrderId, SymbolId, UserId};

fn options() -> Options {
    let snapshot = SnapshotOptions {
        in_background: false,
        ..SnapshotOptions::default()
    };
    Options {
        snapshot,
        journal: JournalOptions::default()
            .segment_bytes(64 << 10)
            .block_bytes_max(16 << 10),
        ..Options::default()
    }
}

fn open(directory: &Path) -> Exchange {
    Exchange::open(directory, options(), |_| ())
        .expect("it opens")
        .0
}

/// Creates an exchange with ten commands and with snapshots after none and after five, which is not
/// closed.
pub(crate) fn exchange(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("thalweg-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    let mut exchange = open(&directory);
    let add = Command::AddUser { uid: UserId(7) };
    exchange.submit(Origin::Engine, &add, 0).expect("taken");
    let key = SessionKey::new(Role::Trade, 7, 2);
    for sequence in 1..10 {
        let origin = Origin::Session {
            key,
            sequence: ClientSequence(sequence),
        };
        let cancel = Command::cancel(UserId(7), SymbolId(1), OrderId(3));
        exchange.submit(origin, &cancel, 0).expect("taken");
        if sequence == 4 {
            exchange.drain().expect("it goes on");
            exchange.snapshot_now();
        }
    }
    exchange.drain().expect("it goes on");
    directory
}

fn run(command: &str, directory: &Path, more: &[&str]) -> Ended {
    let directory = directory.to_str().expect("a name");
    thalweg(&[&["exchange", command, directory], more].concat())
}

fn snapshot(directory: &Path, commands: u64) -> PathBuf {
    directory.join(format!("snapshot-{commands:020}.thw"))
}

/// Changes a byte of a file.
fn damage(file: &Path, at: usize) {
    let mut bytes = fs::read(file).expect("it is there");
    bytes[at] ^= 1;
    fs::write(file, bytes).expect("it can be written");
}

fn facts(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).expect("it is JSON")
}

#[test]
fn what_is_whole_is_verified_exported_and_recovered() {
    let directory = exchange("whole");
    let verified = run("verify", &directory, &["--format", "json"]);
    let found = facts(&verified);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert_eq!(
        (&found["commands"], &found["replayed"]),
        (&10.into(), &10.into())
    );
    assert_eq!(found["snapshots_whole"], 2);

    let exported = run("export", &directory, &["--from", "1", "--limit", "2"]);
    let lines: Vec<Value> = (exported.fine().lines())
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect();
    // A refused cancel has one report.
    assert_eq!(lines.len(), 4);
    let keys = [
        "record", "command", "name", "origin", "holder", "session", "sequence", "result",
    ];
    let values: Vec<String> = keys.iter().map(|key| lines[0][key].to_string()).collect();
    let expected = [
        "\"command\"",
        "1",
        "\"cancel\"",
        "\"trade\"",
        "7",
        "2",
        "1",
        "\"MATCHING_INVALID_ORDER_BOOK_ID\"",
    ];
    assert_eq!(values, expected);
    let frame = "1c000000020100000100000007000000000000000300000000000000";
    assert_eq!(lines[0]["frame"], frame);
    assert_eq!(
        (&lines[1]["record"], &lines[1]["report"]),
        (&"request_rejected".into(), &1.into())
    );
    assert_eq!(lines[3]["report"], 2);

    let recovered = run("recover", &directory, &["--format", "json"]);
    let again = facts(&recovered);
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    assert_eq!(
        (&again["replayed"], &again["written"]),
        (&5.into(), &10.into())
    );
    for same in ["digest", "state_hash", "commands"] {
        assert_eq!(again[same], found[same]);
    }
    let text = run("recover", &directory, &[]);
    let place = directory.display();
    let first = format!(
        "{place}: recovered: 10 commands, 0 of them executed again from the snapshot after 10 on\n"
    );
    assert!(text.fine().starts_with(&first), "{text:?}");
    let _ = fs::remove_dir_all(&directory);
}

#[test]
fn damage_is_found_and_named() {
    let directory = exchange("damaged");
    damage(&snapshot(&directory, 5), 200);
    let message = "the checksum of the file does not agree";
    let verified = run("verify", &directory, &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.stdout.contains(message), "{verified:?}");
    let recovered = run("recover", &directory, &[]);
    assert_eq!(recovered.code, Some(1), "{recovered:?}");
    assert!(
        recovered.stdout.contains("damaged, passed over"),
        "{recovered:?}"
    );
    assert!(
        recovered.stdout.contains("10 of them executed again"),
        "{recovered:?}"
    );
    let verified = run("verify", &directory, &[]);
    assert_eq!(verified.code, Some(0), "it was recovered: {verified:?}");

    // The first block of the journal is damaged: the commands behind it were durable.
    damage(&directory.join("00000000000000000001.segment"), 4096 + 80);
    let verified = run("verify", &directory, &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(
        verified.stdout.contains("damaged at byte 4096"),
        "{verified:?}"
    );
    let _ = fs::remove_dir_all(&directory);
}

#[test]
fn what_is_no_exchange_or_in_use_or_of_another_version_is_refused() {
    let directory = exchange("refused");
    let held = open(&directory);
    run("recover", &directory, &[]).refused(&["another journal writes here"]);
    drop(held);

    let file = snapshot(&directory, 5);
    let good = fs::read(&file).expect("it is there");
    let mut older = good.clone();
    older[8] = 1;
    let sum = thalweg_hash::xxh64(0, &older[..120]);
    older[120..128].copy_from_slice(&sum.to_le_bytes());
    fs::write(&file, older).expect("it can be written");
    for command in ["recover", "verify", "export"] {
        run(command, &directory, &[]).refused(&["version 1 of the format; this program knows 2"]);
    }
    fs::write(&file, good).expect("it can be written");

    let empty = directory.join("empty");
    for command in ["recover", "verify", "export"] {
        run(command, &empty, &[]).refused(&["no exchange is here"]);
        assert!(!empty.exists(), "nothing was made");
    }
    for snapshot in [0, 5].map(|commands| snapshot(&directory, commands)) {
        fs::remove_file(snapshot).expect("it is there");
    }
    for command in ["recover", "verify", "export"] {
        run(command, &directory, &[]).refused(&["there is a journal and no snapshot"]);
    }
    let junk = directory.join("junk");
    fs::create_dir(&junk).expect("a directory");
    fs::write(junk.join("00000000000000000001.segment"), "junk").expect("a file");
    for command in ["recover", "verify", "export"] {
        let message = "junk/00000000000000000001.segment: shorter than a segment's header";
        run(command, &junk, &[]).refused(&[message]);
    }
    let _ = fs::remove_dir_all(&directory);
}

#[test]
fn an_exchange_without_a_whole_snapshot_is_recovered_from_its_whole_journal() {
    let directory = exchange("all-damaged");
    let before = facts(&run("verify", &directory, &["--format", "json"]));
    for commands in [0, 5] {
        damage(&snapshot(&directory, commands), 150);
    }
    let recovered = run("recover", &directory, &[]);
    assert_eq!(recovered.code, Some(1), "{recovered:?}");
    let message = "10 commands, all of them executed again: no snapshot was whole\n";
    assert!(recovered.stdout.contains(message), "{recovered:?}");
    let after = facts(&run("recover", &directory, &["--format", "json"]));
    assert_eq!(after["state_hash"], before["state_hash"]);
    let _ = fs::remove_dir_all(&directory);
}

#[test]
fn recovering_gives_up_no_history() {
    let directory = std::env::temp_dir().join(format!("thalweg-kept-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    let mut kept = options();
    kept.snapshot.kept = 10;
    let (mut exchange, _) = Exchange::open(&directory, kept, |_| ()).expect("it opens");
    for uid in 1..=4 {
        let add = Command::AddUser { uid: UserId(uid) };
        exchange.submit(Origin::Engine, &add, 0).expect("taken");
        exchange.drain().expect("it goes on");
        if uid < 4 {
            exchange.snapshot_now();
        }
    }
    drop(exchange);
    let recovered = facts(&run("recover", &directory, &["--format", "json"]));
    assert_eq!(
        (&recovered["commands"], &recovered["written"]),
        (&4.into(), &4.into())
    );
    let verified = facts(&run("verify", &directory, &["--format", "json"]));
    assert_eq!(verified["snapshots_whole"], 5, "{verified}");
    assert_eq!(verified["replayed"], 4, "{verified}");
    fs::remove_dir_all(directory).expect("it is there");
}
