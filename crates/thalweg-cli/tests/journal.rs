//! `thalweg journal show|verify|cut`.

#![cfg(unix)]

mod program;

use program::{Scratch, thalweg};
use thalweg_journal::{Journal, Options};

/// A journal of six records of two bytes, in three blocks and two segments.
fn journal(scratch: &Scratch) -> String {
    let place = scratch.path("log");
    let options = Options::default()
        .segment_bytes(12 << 10)
        .block_bytes_max(4 << 10);
    let mut journal = Journal::<[u8; 2]>::open(&place, options).expect("nobody else writes");
    for number in 1..=6_u8 {
        journal.append(&[number, 0xAB]).expect("there is room");
        if number.is_multiple_of(2) {
            let _ = journal.commit().expect("the disk is well");
        }
    }
    place
}

fn damage(place: &str, segment: u64, byte: usize) {
    let file = format!("{place}/{segment:020}.segment");
    let mut bytes = std::fs::read(&file).expect("it was written");
    bytes[byte] ^= 1;
    std::fs::write(file, bytes).expect("the test's own file");
}

#[test]
fn a_whole_journal_is_shown_and_verified() {
    let scratch = Scratch::new();
    let place = journal(&scratch);
    let summary =
        format!("{place}: whole: records 1 to 6, of 2 bytes, in 3 blocks and 2 segments\n");
    assert_eq!(thalweg(&["journal", "verify", &place]).fine(), summary);
    assert_eq!(thalweg(&["journal", "show", &place]).fine(), summary);
    let some = ["--records", "--from", "4", "--limit", "2"];
    let shown = thalweg(&[&["journal", "show", &place][..], &some].concat());
    let first_line = shown.fine().lines().take(2).collect::<Vec<_>>();
    assert_eq!(first_line, ["4 04ab", "5 05ab"]);
    let json = thalweg(&["journal", "show", &place, "--records", "--format", "json"]).json();
    assert_eq!((&json["first"], &json["last"]), (&1.into(), &6.into()));
    assert_eq!(json["records"][5]["hex"], "06ab");
    assert_eq!(json["torn"], serde_json::Value::Null);
    let told = format!("{place}: no damage, nothing was cut\n");
    assert_eq!(
        thalweg(&["journal", "cut", "--damaged", &place]).fine(),
        told
    );
}

#[test]
fn a_torn_write_is_told_and_is_no_damage() {
    let scratch = Scratch::new();
    let place = journal(&scratch);
    damage(&place, 2, 4096 + 64);
    let verified = thalweg(&["journal", "verify", &place]);
    let text = verified.fine();
    assert!(text.contains("whole: records 1 to 4"), "{text}");
    assert!(
        text.contains("an unfinished write at byte 4096 (record 5)"),
        "{text}"
    );
}

#[test]
fn damage_is_a_finding_and_can_be_cut_off() {
    let scratch = Scratch::new();
    let place = journal(&scratch);
    damage(&place, 1, 8192 + 64);
    let verified = thalweg(&["journal", "verify", &place]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let told = "damaged at byte 8192: record 3 was durable and cannot be read: the next segment \
                begins with a later record";
    assert!(
        verified.stdout.contains("DAMAGED: records 1 to 2"),
        "{verified:?}"
    );
    assert!(verified.stdout.contains(told), "{verified:?}");
    let verified = thalweg(&["journal", "verify", &place, "--format", "json"]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let json: serde_json::Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!(
        (&json["whole"], &json["damage"]["lsn"]),
        (&false.into(), &3.into())
    );
    let cut = thalweg(&["journal", "cut", "--damaged", &place]);
    let expected = format!(
        "{place}: cut behind record 2, in {place}/00000000000000000001.segment at byte 8192; 1 \
         segment removed\n"
    );
    assert_eq!(cut.fine(), expected);
    let verified = thalweg(&["journal", "verify", &place]);
    let text = verified.fine();
    assert!(text.contains("whole: records 1 to 2"), "{text}");
    let cut = thalweg(&["journal", "cut", "--at", "1", &place, "--format", "json"]).json();
    assert_eq!((&cut["cut"], &cut["last"]), (&true.into(), &0.into()));
    let text = format!("{place}: whole: no records, of 2 bytes\n");
    assert_eq!(thalweg(&["journal", "show", &place]).fine(), text);
}

/// A header that is damaged and a segment that is missing are findings too.
#[test]
fn a_segment_that_is_bad_or_missing_is_a_finding_and_can_be_cut_off() {
    for is_missing in [false, true] {
        let scratch = Scratch::new();
        let place = journal(&scratch);
        let options = Options::default()
            .segment_bytes(12 << 10)
            .block_bytes_max(4 << 10);
        let mut grown = Journal::<[u8; 2]>::open(&place, options).expect("it is whole");
        for number in 7..=10 {
            grown.append(&[number, 0xAB]).expect("there is room");
            let _ = grown.commit().expect("the disk is well");
        }
        drop(grown);
        let second = format!("{place}/00000000000000000002.segment");
        let why = match is_missing {
            true => {
                std::fs::remove_file(&second).expect("the test's own file");
                "this segment is missing"
            }
            false => {
                damage(&place, 2, 20);
                "its header is damaged"
            }
        };
        for command in ["show", "verify"] {
            let told = thalweg(&["journal", command, &place]);
            assert_eq!(told.code, Some(1), "{told:?}");
            let begin = format!("{place}: DAMAGED: no records\n{second}: {why}");
            assert!(told.stdout.starts_with(&begin), "{told:?}");
        }
        let json = thalweg(&["journal", "verify", &place, "--format", "json"]).stdout;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&json["whole"], &json["damage"]["why"]),
            (&false.into(), &why.into())
        );
        let cut = thalweg(&["journal", "cut", "--damaged", &place]);
        let told = "cut behind record 4, in ";
        assert!(cut.fine().contains(told), "{cut:?}");
        let verified = thalweg(&["journal", "verify", &place]);
        assert!(
            verified.fine().contains("whole: records 1 to 4"),
            "{verified:?}"
        );
    }
}

#[test]
fn a_directory_without_a_journal_is_left_as_it_is() {
    let scratch = Scratch::new();
    let place = scratch.path("other");
    std::fs::create_dir(&place).expect("the test's own folder");
    std::fs::write(format!("{place}/notes.txt"), "").expect("the test's own folder");
    thalweg(&["journal", "cut", "--at", "1", &place]).refused(&[&format!("{place}: no journal")]);
    let names = std::fs::read_dir(&place).expect("the test's own folder");
    assert_eq!(names.count(), 1);
}

#[test]
fn what_cannot_be_done_is_told() {
    let scratch = Scratch::new();
    let place = journal(&scratch);
    let nothing = scratch.path("nothing");
    thalweg(&["journal", "verify", &nothing]).refused(&[&format!("{nothing}: no journal")]);
    thalweg(&["journal", "cut", "--damaged", &nothing]).refused(&["no journal"]);
    thalweg(&["journal", "cut", &place]).refused(&["--at", "--damaged"]);
    thalweg(&["journal", "cut", "--at", "2", &place]).refused(&["cut at 1 or at 3"]);
    thalweg(&["journal", "show", &place, "--from", "9"]).fine();
    let open = Journal::<[u8; 2]>::open(&place, Options::default()).unwrap();
    thalweg(&["journal", "cut", "--at", "3", &place]).refused(&["another journal writes here"]);
    drop(open);
}
