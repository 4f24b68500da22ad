//! `thalweg hash`: checksums as `xxhsum -H64` writes them, and lists of them checked.

use crate::program;

use program::{Ended, Scratch, command, thalweg};
use std::io::Write;
use std::process::{Command, Stdio};

/// The XXH64 of no bytes, and of "abc".
const NOTHING: &str = "ef46db3751d8e999";
const ABC: &str = "44bc2cf5ad770999";

/// Runs the program with this data on its standard input.
fn fed(arguments: &[&str], input: &[u8]) -> Ended {
    let mut child = command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut stdin = child.stdin.take().expect("it has one");
    stdin.write_all(input).expect("it reads to the end");
    drop(stdin);
    child.wait_with_output().expect("it ends").into()
}

/// Returns data that needs several pieces and a thread that reads ahead.
fn large() -> Vec<u8> {
    (0..5_000_001_u32)
        .map(|at| (at ^ (at >> 9)) as u8)
        .collect()
}

#[test]
fn files_and_standard_input_have_a_line_each() {
    let scratch = Scratch::new();
    let (abc, empty) = (scratch.file("abc", b"abc"), scratch.file("empty", b""));
    let said = thalweg(&["hash", &abc, &empty]);
    assert_eq!(said.fine(), format!("{ABC}  {abc}\n{NOTHING}  {empty}\n"));
    for arguments in [&["hash"][..], &["hash", "-"]] {
        assert_eq!(fed(arguments, b"abc").fine(), format!("{ABC}  stdin\n"));
    }
}

#[test]
fn a_large_file_is_the_same_from_a_file_and_from_a_pipe() {
    let scratch = Scratch::new();
    let large = large();
    let file = scratch.file("large", &large);
    let hash = thalweg_hash::xxh64(7, &large);
    let said = thalweg(&["hash", "--seed", "7", &file]);
    assert_eq!(said.fine(), format!("{hash:016x}  {file}\n"));
    let piped = fed(&["hash", "--seed", "7"], &large);
    assert_eq!(piped.fine(), format!("{hash:016x}  stdin\n"));
}

#[test]
fn a_stride_leaves_out_what_lies_between() {
    let scratch = Scratch::new();
    let large = large();
    let file = scratch.file("large", &large);
    for (stride, take, apart) in [
        ("512:8", 512, 520),
        ("500:1", 500, 501),
        ("4096:0", 4096, 4096),
    ] {
        let sectors = large.chunks(apart);
        let taken: Vec<u8> = sectors
            .flat_map(|sector| &sector[..take.min(sector.len())])
            .copied()
            .collect();
        let hash = thalweg_hash::xxh64(0, &taken);
        let said = thalweg(&["hash", "--stride", stride, &file]);
        assert_eq!(said.fine(), format!("{hash:016x}  {file}\n"), "{stride}");
    }
}

#[test]
fn json_names_what_was_hashed_and_how() {
    let scratch = Scratch::new();
    let abc = scratch.file("abc", b"abc");
    let rows = thalweg(&["hash", "--format", "json", &abc]).json();
    let expected = serde_json::json!([{ "file": abc, "xxh64": ABC, "bytes": 3, "seed": 0 }]);
    assert_eq!(rows, expected);
    let said = thalweg(&["hash", "--format", "json", "--stride", "2:1", &abc]);
    assert_eq!(said.json()[0]["stride"], "2:1");
}

#[test]
fn a_list_of_its_own_checks() {
    let scratch = Scratch::new();
    let names = ["plain", "two words", "back\\slash"];
    let files: Vec<String> = names
        .iter()
        .map(|name| scratch.file(name, name.as_bytes()))
        .collect();
    let mut arguments = vec!["hash"];
    arguments.extend(files.iter().map(String::as_str));
    let list = thalweg(&arguments).fine().to_owned();
    let sums = scratch.file("SUMS", list.as_bytes());
    let said = thalweg(&["hash", "--check", &sums]);
    let [plain, words, slash] = [&files[0], &files[1], &files[2]];
    let slash = slash.replace('\\', "\\\\");
    let expected = format!("{plain}: OK\n{words}: OK\n\\{slash}: OK\n");
    assert_eq!(said.fine(), expected);
    assert_eq!(
        fed(&["hash", "--check", "-"], list.as_bytes()).fine(),
        expected
    );
    assert_eq!(thalweg(&["hash", "--quiet", "--check", &sums]).fine(), "");
}

#[test]
fn a_changed_file_is_a_negative_finding() {
    let scratch = Scratch::new();
    let (good, bad) = (scratch.file("good", b"abc"), scratch.file("bad", b"abd"));
    let list = format!("# sums\n{ABC}  {good}\n{ABC}  {bad}\nnonsense\n");
    let sums = scratch.file("SUMS", list.as_bytes());
    let said = thalweg(&["hash", "--check", &sums]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let expected = format!(
        "{good}: OK\n{bad}: FAILED\n1 line is improperly formatted\n\
         1 computed checksum did NOT match\n"
    );
    assert_eq!(said.stdout, expected);
    assert_eq!(said.stderr, "");

    let said = thalweg(&["hash", "--format", "json", "--check", &sums]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let rows: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        (&rows[0]["status"], &rows[1]["status"]),
        (&"ok".into(), &"failed".into())
    );
    assert_eq!(
        rows[2],
        serde_json::json!({ "line": 4, "status": "improper" })
    );
    assert_eq!(rows[1]["line"], 3);
    assert_eq!(rows[1]["expected"], ABC);
    assert_ne!(rows[1]["got"], ABC);
}

#[test]
fn what_cannot_be_read_is_a_failure_after_all_that_can() {
    let scratch = Scratch::new();
    let (abc, missing) = (scratch.file("abc", b"abc"), scratch.path("missing"));
    let said = thalweg(&["hash", &missing, &abc]);
    assert_eq!(
        (said.code, said.stdout),
        (Some(2), format!("{ABC}  {abc}\n"))
    );
    assert!(said.stderr.contains(&missing), "{}", said.stderr);
    assert!(said.stderr.ends_with("thalweg: 1 file could not be read\n"));

    let sums = scratch.file(
        "SUMS",
        format!("{ABC}  {missing}\n{ABC}  {abc}\n").as_bytes(),
    );
    let said = thalweg(&["hash", "--check", &sums]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stdout
            .contains(&format!("SUMS:1: Could not open or read '{missing}': "))
    );
    assert!(
        said.stdout
            .ends_with(&format!("{abc}: OK\n1 listed file could not be read\n"))
    );
}

#[test]
fn a_check_may_be_silent_strict_or_lenient() {
    let scratch = Scratch::new();
    let (abc, missing) = (scratch.file("abc", b"abc"), scratch.path("missing"));
    let list = |name: &str, text: String| scratch.file(name, text.as_bytes());
    let improper = list("IMPROPER", format!("\u{feff}{ABC}  {abc}\nnonsense\n"));
    let wrong = list("WRONG", format!("{NOTHING}  {abc}\n"));
    let gone = list("GONE", format!("{ABC}  {missing}\n"));
    let some = list("SOME", format!("{ABC}  {missing}\n{ABC}  {abc}\n"));
    let check = |options: &[&str], list: &str| {
        let said = thalweg(&[&["hash", "--check", list], options].concat());
        (said.code, said.stdout, said.stderr)
    };
    let code = |found: (Option<i32>, String, String)| found.0.unwrap();
    let ok = format!("{abc}: OK\n");
    let summary = "1 line is improperly formatted\n";
    assert_eq!(
        check(&[], &improper),
        (Some(0), format!("{ok}{summary}"), String::new())
    );
    assert_eq!(code(check(&["--strict"], &improper)), 1);
    let warned = format!("{improper}:2: Error: Improperly formatted checksum line.\n");
    assert_eq!(
        check(&["--warn", "-q"], &improper),
        (Some(0), summary.to_owned(), warned)
    );
    for (list, code) in [(&improper, 0), (&wrong, 1), (&gone, 2), (&some, 2)] {
        let silent = (Some(code), String::new(), String::new());
        assert_eq!(check(&["--status"], list), silent, "{list}");
    }
    assert_eq!(code(check(&["--status", "--strict"], &improper)), 1);
    assert_eq!(
        check(&["--ignore-missing"], &some),
        (Some(0), ok, String::new())
    );
    let none = format!("thalweg: {gone}: no file was verified\n");
    assert_eq!(
        check(&["--ignore-missing"], &gone),
        (Some(2), String::new(), none)
    );
    assert_eq!(code(check(&["--format", "json", "--strict"], &improper)), 1);
    thalweg(&["hash", "--strict", &abc]).refused(&["--strict", "cannot be used with"]);
    thalweg(&["hash", "--strict"]).refused(&["--check <LIST>"]);
}

#[test]
fn names_that_are_no_utf8_are_kept() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new();
    let name = [scratch.path("a").as_bytes(), b"\xff\n"].concat();
    std::fs::write(std::ffi::OsStr::from_bytes(&name), b"abc").unwrap();
    let hash = |options: &[&str]| {
        let mut command = command(&["hash"]);
        command
            .args(options)
            .arg(std::ffi::OsStr::from_bytes(&name));
        command.output().unwrap().stdout
    };
    let sums = scratch.path("SUMS");
    std::fs::write(&sums, hash(&[])).unwrap();
    let checked = command(&["hash", "--check", &sums]).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    assert!(checked.stdout.ends_with(b"\xff\\n: OK\n"), "{checked:?}");
    let rows: serde_json::Value = serde_json::from_slice(&hash(&["--format", "json"])).unwrap();
    let hex: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(rows[0]["file_hex"], hex);
    std::fs::remove_file(std::ffi::OsStr::from_bytes(&name)).unwrap();
    let gone = program::Ended::from(command(&["hash", "--check", &sums]).output().unwrap());
    assert!(
        gone.stdout.contains("a\\xff\\x0a': No such file"),
        "{gone:?}"
    );
}

#[test]
fn misuse_is_refused() {
    let scratch = Scratch::new();
    let list = scratch.file("SUMS", b"# nothing\nno checksum\n");
    for (arguments, part) in [
        (
            &["hash", "--check", &list][..],
            "no properly formatted XXH64 checksums",
        ),
        (&["hash", "--check", "/does/not/exist"], "/does/not/exist"),
        (&["hash", "--check", &list, "also"], "cannot be used with"),
        (
            &["hash", "--stride", "0:8"],
            "a stride takes at least 1 byte",
        ),
        (&["hash", "--stride", "512"], "like 512:8"),
        (&["hash", "--seed", "one"], "--seed"),
    ] {
        thalweg(arguments).refused(&[part]);
    }
}

/// Values from the self-test of `xxhsum` 0.8: the length and seed of its buffer, and the sum.
const RECORDED: [(usize, &str, &str); 9] = [
    (0, "0", "ef46db3751d8e999"),
    (0, "2654435761", "ac75fda2929b17ef"),
    (1, "0", "e934a84adb052768"),
    (1, "2654435761", "5014607643a9b4c3"),
    (4, "0", "9136a0dca57457ee"),
    (14, "0", "8282dcc4994e35c8"),
    (14, "2654435761", "c3bd6bf63deb6df0"),
    (222, "0", "b641ae8cb691c174"),
    (222, "2654435761", "20cb8ab7ae10c14a"),
];

#[test]
fn sums_that_xxhsum_has_made_are_the_same() {
    let buffer = std::iter::successors(Some(2_654_435_761_u64), |state| {
        Some(state.wrapping_mul(11_400_714_785_074_694_797))
    });
    let buffer: Vec<u8> = buffer.map(|state| (state >> 56) as u8).take(222).collect();
    let scratch = Scratch::new();
    for (length, seed, sum) in RECORDED {
        let file = scratch.file("a b c", &buffer[..length]);
        let said = thalweg(&["hash", "--seed", seed, &file]);
        assert_eq!(said.fine(), format!("{sum}  {file}\n"));
    }
    let file = scratch.file("abc", b"abc");
    let list = format!("{ABC}  {file}\nXXH64 ({file}) = {ABC}\n");
    let list = scratch.file("SUMS", list.as_bytes());
    let said = thalweg(&["hash", "--check", &list]);
    assert_eq!(said.fine(), format!("{file}: OK\n").repeat(2));
}

/// The tool that defines the format must print the same sums, where it is installed.
#[test]
fn xxhsum_agrees() {
    let xxhsum = |arguments: &[&str]| Command::new("xxhsum").args(arguments).output();
    if xxhsum(&["--version"]).is_err() {
        // This bypasses the test harness, which hides the output of a test that passes.
        let _ = std::io::stderr().write_all(
            b"skipped: xxhsum is not installed; its recorded sums are compared all the same\n",
        );
        return;
    }
    let scratch = Scratch::new();
    let (abc, large) = (
        scratch.file("a b c", b"abc"),
        scratch.file("large", large()),
    );
    let ours = thalweg(&["hash", &abc, &large]);
    let theirs: Ended = xxhsum(&["-H64", &abc, &large]).unwrap().into();
    assert_eq!(ours.fine(), theirs.stdout);
    let sums = scratch.file("SUMS", format!("{}nonsense\n", ours.stdout).as_bytes());
    let checked: Ended = xxhsum(&["--check", &sums]).unwrap().into();
    assert_eq!(thalweg(&["hash", "--check", &sums]).fine(), checked.stdout);
}
