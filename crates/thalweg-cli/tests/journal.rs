//! `thalweg journal show|verify|truncate`.

use crate::program;

use program::{Scratch, thalweg};
use thalweg_journal::{Journal, JournalOptions};

/// Creates a journal of six records of two bytes, in three blocks and two segments.
fn journal(scratch: &Scratch) -> String {
    let place = scratch.path("log");
    let options = JournalOptions::default()
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
    let none = ["--records", "--limit", "0", "--format", "json"];
    let json = thalweg(&[&["journal", "show", &place][..], &none].concat()).json();
    assert_eq!(
        (&json["records"], &json["last"]),
        (&[(); 0][..].into(), &6.into())
    );
    assert_eq!(json["torn"], serde_json::Value::Null);
    let message = format!("{place}: no damage, nothing was truncated\n");
    assert_eq!(
        thalweg(&["journal", "truncate", "--damaged", &place]).fine(),
        message
    );
}

/// However many records are requested, the program holds only a few of them at a time.
#[cfg(target_os = "linux")]
#[test]
fn records_are_printed_as_they_are_read() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;

    // More than the pages of the program itself.
    const RECORDS: u64 = 40 << 10;
    let scratch = Scratch::new();
    let place = scratch.path("log");
    let mut journal =
        Journal::<[u8; 1024]>::open(&place, JournalOptions::default()).expect("it is new");
    for number in 0..RECORDS {
        journal
            .append(&[number as u8; 1024])
            .expect("there is room");
    }
    let _ = journal.commit().expect("the disk is well");
    drop(journal);
    for format in ["text", "json"] {
        let arguments = [
            "journal",
            "show",
            &place,
            "--records",
            "--format",
            format,
            "--limit",
        ];
        let mut show = program::command(&[&arguments[..], &["18446744073709551615"]].concat());
        let mut show = show
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let mut out = BufReader::new(show.stdout.take().expect("it is piped"));
        let mut lines = out.by_ref().lines().map(|line| line.expect("it is UTF-8"));
        let heads = if format == "json" { 2 } else { 0 };
        // The remaining output exceeds what a pipe and a buffer hold, so the program must wait with
        // most of its work done.
        let first = lines
            .by_ref()
            .take(RECORDS as usize - 500)
            .collect::<Vec<_>>();
        assert!(
            first[heads + 9].contains(&"09".repeat(1024)),
            "{}",
            first[heads + 9]
        );
        let status = std::fs::read_to_string(format!("/proc/{}/status", show.id()));
        let status = status.expect("the program waits");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.expect("Linux tells it").trim().trim_end_matches(" kB");
        let peak_bytes = peak.parse::<u64>().expect("it is a number") << 10;
        assert!(
            peak_bytes < RECORDS * 1024,
            "{format}: {peak_bytes} bytes held"
        );
        let end = lines.collect::<Vec<_>>().join("\n");
        assert!(end.contains(&RECORDS.to_string()), "{end}");
        assert!(show.wait().expect("it ends").success());
        if format == "json" {
            let all = first.join("\n") + "\n" + &end;
            let all: serde_json::Value = serde_json::from_str(&all).expect("it is JSON");
            let rows = all["records"].as_array().expect("a list");
            assert_eq!(
                (rows.len(), &all["last"]),
                (RECORDS as usize, &RECORDS.into())
            );
        }
    }
}

#[test]
fn a_torn_write_is_reported_and_is_no_damage() {
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
fn damage_is_a_finding_and_can_be_truncated() {
    let scratch = Scratch::new();
    let place = journal(&scratch);
    damage(&place, 1, 8192 + 64);
    let verified = thalweg(&["journal", "verify", &place]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let message = "damaged at byte 8192: record 3 was durable and cannot be read: the next segment \
                begins with a later record";
    assert!(
        verified.stdout.contains("DAMAGED: records 1 to 2"),
        "{verified:?}"
    );
    assert!(verified.stdout.contains(message), "{verified:?}");
    let verified = thalweg(&["journal", "verify", &place, "--format", "json"]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let json: serde_json::Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!(
        (&json["whole"], &json["damage"]["lsn"]),
        (&false.into(), &3.into())
    );
    let done = thalweg(&["journal", "truncate", "--damaged", &place]);
    let expected = format!(
        "{place}: truncated behind record 2, in {place}/00000000000000000001.segment at byte \
         8192; 1 segment removed\n"
    );
    assert_eq!(done.fine(), expected);
    let verified = thalweg(&["journal", "verify", &place]);
    let text = verified.fine();
    assert!(text.contains("whole: records 1 to 2"), "{text}");
    let done = thalweg(&[
        "journal", "truncate", "--at", "1", &place, "--format", "json",
    ])
    .json();
    assert_eq!(
        (&done["truncated"], &done["last"]),
        (&true.into(), &0.into())
    );
    let text = format!("{place}: whole: no records, of 2 bytes\n");
    assert_eq!(thalweg(&["journal", "show", &place]).fine(), text);
}

/// A damaged header and a missing segment are findings too.
#[test]
fn a_segment_that_is_bad_or_missing_is_a_finding_and_can_be_truncated() {
    for is_missing in [false, true] {
        let scratch = Scratch::new();
        let place = journal(&scratch);
        let options = JournalOptions::default()
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
            let run = thalweg(&["journal", command, &place]);
            assert_eq!(run.code, Some(1), "{run:?}");
            let whole = "records 1 to 4, of 2 bytes, in 2 blocks and 1 segment";
            let begin = format!("{place}: DAMAGED: {whole}\n{second}: {why}");
            assert!(run.stdout.starts_with(&begin), "{run:?}");
        }
        let json = thalweg(&["journal", "verify", &place, "--format", "json"]).stdout;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(
            (&json["whole"], &json["damage"]["why"]),
            (&false.into(), &why.into())
        );
        let done = thalweg(&["journal", "truncate", "--damaged", &place]);
        let message = "truncated behind record 4, in ";
        assert!(done.fine().contains(message), "{done:?}");
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
    thalweg(&["journal", "truncate", "--at", "1", &place])
        .refused(&[&format!("{place}: no journal")]);
    let names = std::fs::read_dir(&place).expect("the test's own folder");
    assert_eq!(names.count(), 1);
}

#[test]
fn what_cannot_be_done_is_reported() {
    let scratch = Scratch::new();
    let place = journal(&scratch);
    let nothing = scratch.path("nothing");
    thalweg(&["journal", "verify", &nothing]).refused(&[&format!("{nothing}: no journal")]);
    thalweg(&["journal", "truncate", "--damaged", &nothing]).refused(&["no journal"]);
    thalweg(&["journal", "truncate", &place]).refused(&["--at", "--damaged"]);
    thalweg(&["journal", "truncate", "--at", "2", &place]).refused(&["truncate at 1 or at 3"]);
    thalweg(&["journal", "show", &place, "--from", "9"]).fine();
    let open = Journal::<[u8; 2]>::open(&place, JournalOptions::default()).expect("it is made");
    thalweg(&["journal", "truncate", "--at", "3", &place])
        .refused(&["another journal writes here"]);
    drop(open);
}
