//! A writer that is killed (`kill -9`) under load, on a real file system, again and again.
//!
//! `THALWEG_JOURNAL_KILLS=50` makes it 50 times.

#![cfg(unix)]

use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use thalweg_journal::{Journal, JournalOptions, Lsn, Reader};
use thalweg_testkit::Scratch;

/// The last one comes while it opens the journal.
const KILLS: u32 = 5;
/// The variable that names the directory in which a child shall write.
const DIRECTORY: &str = "THALWEG_JOURNAL_CHILD";

type Record = [u64; 5];

fn options() -> JournalOptions {
    JournalOptions::default()
        .segment_bytes(256 << 10)
        .block_bytes_max(16 << 10)
}

fn record(lsn: u64) -> Record {
    std::array::from_fn(|at| {
        lsn.wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(at as u32)
    })
}

/// Not a test of its own: what the child does.
#[test]
fn child() {
    let Some(directory) = env::var_os(DIRECTORY) else {
        return;
    };
    let mut journal = Journal::<Record>::open(directory, options()).expect("no other writer");
    let mut out = stdout().lock();
    let mut next = journal.next().number();
    loop {
        for _ in 0..next % 40 {
            journal
                .append_with(|slot| *slot = record(next))
                .expect("there is room");
            next += 1;
        }
        journal
            .append_with(|slot| *slot = record(next))
            .expect("there is room");
        next += 1;
        let durable = journal.commit().expect("the disk is well").get();
        if durable.number().is_multiple_of(8) {
            journal
                .truncate_before(Lsn::new(durable.number().saturating_sub(20_000)))
                .expect("the disk is well");
        }
        if writeln!(out, "durable {durable}").is_err() {
            return;
        }
    }
}

fn begin(directory: &Path) -> Child {
    let program = env::current_exe().expect("it runs");
    let mut command = Command::new(program);
    command.args(["--exact", "kill::child", "--nocapture"]);
    command.env(DIRECTORY, directory);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("it can be run again")
}

/// The number behind the word, which the test harness may have written something in front of.
fn acknowledged(line: &str) -> Option<u64> {
    line.split_once("durable ")?.1.trim().parse().ok()
}

#[test]
fn what_a_killed_writer_acknowledged_is_there() {
    let kills = env::var("THALWEG_JOURNAL_KILLS").ok();
    let kills = kills.map_or(KILLS, |text| text.parse().expect("a number of kills"));
    let place = Scratch::within(env!("CARGO_TARGET_TMPDIR"), "killed");
    let mut last = 0;
    for kill in 0..kills {
        let mut child = begin(&place);
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        // Killed at another moment each time, and now and then while it opens the journal.
        let mut wanted = match kill % 5 {
            4 => {
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_millis(u64::from(kill % 20)) {
                    thread::yield_now();
                }
                0
            }
            _ => 30 + kill * 37 % 200,
        };
        while wanted > 0 {
            let line = lines
                .next()
                .expect("the child goes on")
                .expect("it is text");
            if let Some(lsn) = acknowledged(&line) {
                assert!(lsn > last, "{lsn} after {last}");
                last = lsn;
                wanted -= 1;
            }
        }
        child.kill().expect("it runs");
        child.wait().expect("it was killed");
        // Lines that it wrote between the last look and its end count as well.
        for line in lines.map_while(Result::ok) {
            last = acknowledged(&line).unwrap_or(last).max(last);
        }
        let mut reader = Reader::open(&place, Lsn::ZERO).expect("it is there");
        let mut found = reader.next().number() - 1;
        for one in reader.records::<Record>() {
            let (lsn, one) = one.expect("it is whole");
            assert_eq!((lsn.number(), one), (found + 1, record(found + 1)));
            found += 1;
        }
        assert!(
            found >= last,
            "{last} was acknowledged, {found} is the last"
        );
        last = found;
    }
}
