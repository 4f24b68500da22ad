//! The units and the compose file for three machines: each command line in them is one that its
//! program takes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use thalweg_testkit::etcd::Cluster;

use crate::program::{Scratch, thalweg};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../thalweg-server/packaging/replicated")
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).expect(name)
}

/// Returns the words of a command, with the variables of `replica.env` in their places. As systemd
/// and compose have it, an empty one leaves no word.
fn words(command: &str, bootstrap: &str) -> Vec<String> {
    let env = text("replica.env");
    let lines = env.lines().filter(|line| !line.starts_with('#'));
    let mut variables: BTreeMap<&str, &str> = lines
        .map(|line| line.split_once('=').expect("a variable"))
        .collect();
    variables.insert("BOOTSTRAP", bootstrap);
    let mut command = command.replace("\\\n", " ");
    for (name, value) in variables {
        command = command.replace(&format!("${{{name}}}"), value);
        command = command.replace(&format!("${name}"), value);
    }
    assert!(!command.contains('$'), "{command}");
    command.split_whitespace().map(str::to_owned).collect()
}

/// Returns what a unit of systemd starts.
fn started_by(unit: &str) -> String {
    let text = text(unit);
    let (_, rest) = text
        .split_once("\nExecStart=")
        .expect("it starts something");
    let ends = rest
        .match_indices('\n')
        .find(|(at, _)| !rest[..*at].ends_with('\\'));
    rest[..ends.expect("more follows").0].to_owned()
}

/// Returns the `command: >-` of a service of the compose file.
fn command_of(service: &str) -> String {
    let text = text("compose.yaml");
    let (_, rest) = text
        .split_once(&format!("\n  {service}:\n"))
        .expect(service);
    let (_, rest) = rest.split_once("\n    command: >-\n").expect("a command");
    let lines = rest.lines().take_while(|line| line.starts_with("      "));
    lines.collect::<Vec<_>>().join(" ")
}

/// Checks a line of the program, which prints its configuration once it has read its options.
fn is_taken(words: &[String]) {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.push("--print-config");
    let ended = thalweg(&words);
    assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
}

/// Checks a line of etcd, which prints its version once it has read its options.
fn is_taken_by_etcd(words: &[String]) {
    let output = Command::new("etcd").args(words).arg("--version").output();
    let output = output.expect("it is there");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {text}");
}

#[test]
fn the_command_lines_of_units_and_containers_are_those_of_their_programs() {
    let serve = ["exchange", "serve", "/var/lib/thalweg/exchange"].map(str::to_owned);
    for bootstrap in ["", "--bootstrap"] {
        let unit = words(&started_by("thalweg-replica.service"), bootstrap);
        assert_eq!(unit[0], "/usr/local/bin/thalweg");
        assert_eq!(unit[1..4], serve);
        is_taken(&unit[1..]);
        // The entry point of the Containerfile comes before it.
        let container = words(&command_of("exchange"), bootstrap);
        is_taken(&[&serve[..], &container].concat());
    }
    let unit = words(&started_by("thalweg-etcd.service"), "");
    let container = words(&command_of("etcd"), "");
    // A data directory apart, both are the same.
    let options = |words: &[String]| [&words[1..4], &words[5..]].concat();
    assert_eq!(options(&unit), options(&container));
    match Cluster::is_installed() {
        true => is_taken_by_etcd(&unit[1..]),
        false => println!("skipped: no etcd that takes its options"),
    }
}

#[test]
#[should_panic(expected = "unexpected argument '--advertised'")]
fn an_option_that_is_not_known_is_found() {
    let line = started_by("thalweg-replica.service").replace("--advertise", "--advertised");
    is_taken(&words(&line, "")[1..]);
}

#[test]
fn units_are_such_that_systemd_takes_them() {
    let verify = |files: &[String]| {
        let mut command = Command::new("systemd-analyze");
        command
            .args(["verify", "--recursive-errors=no"])
            .args(files)
            .output()
    };
    if verify(&[]).is_err() {
        println!("skipped: no systemd-analyze");
        return;
    }
    let scratch = Scratch::new();
    let copy = |name: &str, change: fn(&str) -> String| {
        // The programs are not where they are installed.
        let text = text(name).replace("/usr/local/bin/thalweg", env!("CARGO_BIN_EXE_thalweg"));
        scratch.file(name, change(&text.replace("/usr/bin/etcd", "/bin/true")))
    };
    for name in ["thalweg-replica.service", "thalweg-etcd.service"] {
        let good = verify(&[copy(name, str::to_owned)]).expect("it is there");
        let said = String::from_utf8_lossy(&good.stderr);
        assert!(!said.contains(name), "{said}");
        let bad = verify(&[copy(name, |text| text.replace("Restart=", "Restarts="))]);
        let bad = bad.expect("it is there");
        let said = String::from_utf8_lossy(&bad.stderr);
        assert!(said.contains("'Restarts'"), "{said}");
    }
}
