//! Applies each kind of damage to each kind of file of a journal and of an exchange, and runs each
//! command that reads them. Either the undamaged records come out, or an error names the file and
//! advises what to do; no command may hang.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use thalweg_journal::{Journal, JournalOptions, Lsn};

use crate::program::{Ended, Scratch, command};

const PAGE: usize = 4096;
/// A timeout far beyond the duration of any command; it ends a test that hangs.
const HUNG: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// A flipped bit in the byte at this position.
    Flip(usize),
    NewerVersion,
    ZeroedPage,
    Zeroed,
    Empty,
    Half,
    Longer,
    Removed,
    Renamed,
    Directory,
    Fifo,
    LinkToNothing,
    LinkToACopy,
    Unreadable,
}

const DAMAGES: [Damage; 17] = [
    Damage::Flip(0),
    Damage::Flip(20),
    Damage::Flip(PAGE + 20),
    Damage::Flip(PAGE + 70),
    Damage::NewerVersion,
    Damage::ZeroedPage,
    Damage::Zeroed,
    Damage::Empty,
    Damage::Half,
    Damage::Longer,
    Damage::Removed,
    Damage::Renamed,
    Damage::Directory,
    Damage::Fifo,
    Damage::LinkToNothing,
    Damage::LinkToACopy,
    Damage::Unreadable,
];

impl Damage {
    fn of(self, file: &Path) {
        let edit = |edit: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = fs::read(file).expect("it was copied");
            edit(&mut bytes);
            fs::write(file, bytes).expect("the test's own file");
        };
        let aside = file.with_extension("aside");
        match self {
            Damage::Flip(at) => edit(&|bytes| {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1;
                }
            }),
            Damage::NewerVersion => edit(&|bytes| {
                if let Some(byte) = bytes.get_mut(8) {
                    *byte = 9;
                }
            }),
            Damage::ZeroedPage => edit(&|bytes| bytes.iter_mut().take(PAGE).for_each(|b| *b = 0)),
            Damage::Zeroed => edit(&|bytes| bytes.fill(0)),
            Damage::Empty => edit(&|bytes| bytes.clear()),
            Damage::Half => edit(&|bytes| bytes.truncate(bytes.len() / 2)),
            Damage::Longer => edit(&|bytes| bytes.push(0)),
            Damage::Unreadable => {
                let mut mode = fs::metadata(file).expect("it was copied").permissions();
                std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0);
                fs::set_permissions(file, mode).expect("the test's own file");
            }
            _ => {
                fs::rename(file, &aside).expect("the test's own file");
                match self {
                    Damage::Removed => fs::remove_file(aside).expect("the test's own file"),
                    Damage::Directory => fs::create_dir(file).expect("the test's own place"),
                    Damage::Fifo => {
                        let made = Command::new("mkfifo").arg(file).status();
                        assert!(made.expect("there is such a command").success());
                    }
                    Damage::LinkToNothing => symlink("nowhere", file).expect("a link"),
                    Damage::LinkToACopy => symlink(aside, file).expect("a link"),
                    _ => {}
                }
            }
        }
    }
}

/// Runs the program to its end, or reports that it hangs.
fn run(arguments: &[&str]) -> Ended {
    let child = command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let id = child.id();
    let (said, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || said.send(child.wait_with_output()));
    match heard.recv_timeout(HUNG) {
        Ok(ended) => ended.expect("it has ended").into(),
        Err(_) => {
            let _ = Command::new("kill").arg(id.to_string()).status();
            Ended {
                code: None,
                stdout: String::new(),
                stderr: "it hangs".to_owned(),
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).expect("the test's own place");
    for entry in fs::read_dir(from).expect("the test's own place") {
        let entry = entry.expect("the test's own place");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("the test's own file");
    }
}

fn segment(number: u64) -> String {
    format!("{number:020}.segment")
}

/// Creates a journal of records 5 to 16 in three segments, with one segment that was begun and is
/// still empty, one that is prepared, and all other kinds of files. Returns it with the first
/// record of each file.
fn journal(scratch: &Scratch) -> (PathBuf, BTreeMap<String, Option<u64>>) {
    let place = PathBuf::from(scratch.path("whole"));
    let options = || {
        JournalOptions::default()
            .segment_bytes(3 * PAGE as u64)
            .block_bytes_max(PAGE as u64)
    };
    let mut journal = Journal::<[u8; 2]>::open(&place, options()).expect("it is new");
    for number in 1..=18_u8 {
        journal.append(&[number, 0xAB]).expect("there is room");
        if number % 2 == 0 {
            let _ = journal.commit().expect("the disk is well");
        }
    }
    journal.truncate_before(Lsn::new(5)).expect("they can go");
    drop(journal);
    // Records 17 and 18 are removed again, so that their segment is begun and empty.
    let begun = place.join(segment(5));
    let mut bytes = fs::read(&begun).expect("it was begun");
    bytes[PAGE..].fill(0);
    fs::write(&begun, bytes).expect("the test's own file");
    assert!(place.join(segment(6)).exists(), "the next one is prepared");
    let prepared = place.join(segment(6));
    for worthless in [
        "00000000000000000001.spare",
        "new.part",
        "00000000000000000007.part",
    ] {
        fs::copy(&prepared, place.join(worthless)).expect("the test's own file");
    }
    fs::write(place.join("notes.txt"), "not a journal's").expect("the test's own file");
    let mut holds: BTreeMap<String, Option<u64>> = fs::read_dir(&place)
        .expect("the test's own place")
        .map(|entry| entry.expect("the test's own place").file_name())
        .map(|name| (name.into_string().expect("UTF-8"), None))
        .collect();
    for (number, first) in [(2, 5), (3, 9), (4, 13)] {
        holds.insert(segment(number), Some(first));
    }
    (place, holds)
}

const FIRST: u64 = 5;
const LAST: u64 = 16;

/// Returns the last record that a command on a journal reports; `None` where it reports that there
/// is none.
fn last_printed(ended: &Ended) -> Option<u64> {
    let (_, rest) = ended.stdout.split_once(&format!("records {FIRST} to "))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[test]
fn a_damaged_journal_gives_what_is_whole_and_names_the_file_to_blame() {
    let scratch = Scratch::new();
    let (whole, files) = journal(&scratch);
    let place = PathBuf::from(scratch.path("damaged"));
    let mut wrong = Vec::new();
    for (file, first) in &files {
        for damage in DAMAGES {
            let is_gone = matches!(damage, Damage::Removed | Damage::Renamed);
            if is_gone && *first == Some(FIRST) {
                // It looks as if the journal had been given up, which no command can detect.
                continue;
            }
            copy(&whole, &place);
            damage.of(&place.join(file));
            for verb in ["verify", "show"] {
                let ended = run(&["journal", verb, place.to_str().expect("UTF-8")]);
                if let Err(why) = judge_journal(&ended, file, *first) {
                    wrong.push(format!("{verb}, {damage:?} of {file}: {why}: {ended:?}"));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{}\n{} in all",
        wrong.join("\n"),
        wrong.len()
    );
}

fn judge_journal(ended: &Ended, file: &str, first: Option<u64>) -> Result<(), String> {
    let output = format!("{}{}", ended.stdout, ended.stderr);
    if output.contains("panicked") {
        return Err("it panics".to_owned());
    }
    // The records before the damage are intact.
    let least = first.map_or(LAST, |first| first - 1);
    let last = last_printed(ended).unwrap_or(FIRST - 1);
    if last < least.max(FIRST - 1) {
        return Err(format!("records up to {least} are whole"));
    }
    let is_named = output.contains(file);
    match ended.code {
        Some(0) if last == LAST => Ok(()),
        // The last block may be a write that a crash tore.
        Some(0) if is_named && output.contains("unfinished write") => Ok(()),
        Some(0) => Err("records are missing and nothing is said".to_owned()),
        Some(1) if !is_named => Err("the file is not named".to_owned()),
        Some(1) if !output.contains("thalweg journal truncate") && !output.contains("Restore") => {
            Err("nothing is said about what to do".to_owned())
        }
        Some(1) => Ok(()),
        // A future version is unknown to this program.
        Some(2) if is_named && output.contains("this program knows up to") => Ok(()),
        _ => Err("it fails".to_owned()),
    }
}

/// Records behind damage can be read where their own segments are intact.
#[test]
fn records_behind_a_damaged_segment_can_be_shown() {
    let scratch = Scratch::new();
    let (place, _) = journal(&scratch);
    Damage::Flip(20).of(&place.join(segment(2)));
    let place = place.to_str().expect("UTF-8");
    let verified = run(&["journal", "verify", place]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    let advice = format!("thalweg journal show {place} --from 9");
    assert!(verified.stdout.contains(&advice), "{verified:?}");
    let shown = run(&["journal", "show", place, "--from", "9", "--records"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.starts_with("9 09ab\n"), "{shown:?}");
    assert!(shown.stdout.contains("records 9 to 16"), "{shown:?}");
}

/// Returns the number of commands that the output reports for the exchange, if there is one.
fn commands_counted(ended: &Ended) -> Option<u64> {
    let (before, _) = ended.stdout.split_once(" command")?;
    before.rsplit(' ').next()?.parse().ok()
}

#[test]
fn a_damaged_exchange_gives_what_is_whole_or_names_the_file_to_blame() {
    let whole = crate::durable::exchange("damages");
    for worthless in ["00000000000000000001.spare", "new.part"] {
        let prepared = whole.join(segment(2));
        fs::copy(prepared, whole.join(worthless)).expect("the test's own file");
    }
    fs::write(whole.join("snapshot.part"), "half").expect("the test's own file");
    fs::write(whole.join("notes.txt"), "not an exchange's").expect("the test's own file");
    let scratch = Scratch::new();
    let place = PathBuf::from(scratch.path("damaged"));
    let mut wrong = Vec::new();
    for entry in fs::read_dir(&whole).expect("the test's own place") {
        let file = entry.expect("the test's own place").file_name();
        let file = file.into_string().expect("UTF-8");
        for damage in DAMAGES {
            // It opens the exchange as `recover` does.
            let is_served = matches!(
                damage,
                Damage::Flip(20) | Damage::Empty | Damage::Removed | Damage::Fifo
            );
            let verbs = ["verify", "recover", "serve"];
            for verb in &verbs[..if is_served { 3 } else { 2 }] {
                copy(&whole, &place);
                damage.of(&place.join(&file));
                let ended = match *verb {
                    "serve" => served(&place),
                    _ => run(&["exchange", verb, place.to_str().expect("UTF-8")]),
                };
                if let Err(why) = judge_exchange(&ended, &file, verb) {
                    wrong.push(format!("{verb}, {damage:?} of {file}: {why}: {ended:?}"));
                }
            }
        }
    }
    let _ = fs::remove_dir_all(whole);
    assert!(
        wrong.is_empty(),
        "{}\n{} in all",
        wrong.join("\n"),
        wrong.len()
    );
}

/// Ends a server as soon as it serves; its exit code is 0 then.
fn served(place: &Path) -> Ended {
    let any = "127.0.0.1:0";
    let place = place.to_str().expect("UTF-8");
    let arguments = [
        "exchange", "serve", place, "--trade", any, "--admin", any, "--http", any,
    ];
    let mut child = command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let (said, heard) = std::sync::mpsc::channel();
    let mut out = child.stdout.take().expect("it is piped");
    std::thread::spawn(move || {
        let mut some = [0; 256];
        let bytes = out.read(&mut some).unwrap_or(0);
        let _ = said.send(String::from_utf8_lossy(&some[..bytes]).into_owned());
    });
    let stdout = heard
        .recv_timeout(HUNG)
        .unwrap_or_else(|_| "it hangs".to_owned());
    if !stdout.is_empty() {
        child.kill().expect("it runs");
    }
    let ended = child.wait_with_output().expect("it has ended");
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    let code = match stdout.starts_with("listening") {
        true => Some(0),
        false => ended.status.code(),
    };
    Ended {
        code,
        stdout,
        stderr,
    }
}

fn judge_exchange(ended: &Ended, file: &str, verb: &str) -> Result<(), String> {
    const COMMANDS: u64 = 10;
    let output = format!("{}{}", ended.stdout, ended.stderr);
    let is_named = output.contains(file);
    let is_advised = ["Restore", "remove it", "knows up to"];
    let is_advised = is_advised.iter().any(|advice| output.contains(advice));
    if output.contains("panicked") || output.contains("it hangs") {
        return Err("it panics or hangs".to_owned());
    }
    match ended.code {
        Some(0) if verb == "serve" => Ok(()),
        Some(0) if commands_counted(ended) == Some(COMMANDS) => Ok(()),
        Some(0) if is_named && output.contains("unfinished write") => Ok(()),
        Some(0) => Err("commands are missing and nothing is said".to_owned()),
        Some(1) if is_named && commands_counted(ended) == Some(COMMANDS) => Ok(()),
        Some(1 | 2) if !is_named => Err("the file is not named".to_owned()),
        Some(1 | 2) if !is_advised => Err("nothing is said about what to do".to_owned()),
        Some(1 | 2) => Ok(()),
        _ => Err("it fails".to_owned()),
    }
}
