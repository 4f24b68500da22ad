//! `thalweg exchange key new`.

use crate::program;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use program::{Scratch, serve, thalweg};
use thalweg_exchange::session::Role;
use thalweg_server::keys;

#[test]
fn a_new_key_is_printed_once_and_its_hash_opens_a_session() {
    let scratch = Scratch::new();
    let file = scratch.path("keys.toml");
    let new = |arguments: &[&str]| {
        let all = [&["exchange", "key", "new", "--key-file", &file], arguments].concat();
        thalweg(&all).fine().trim_end().to_owned()
    };
    let trade = new(&[
        "--user",
        "7",
        "--role",
        "trade",
        "--name",
        "a \"quoted\" one",
    ]);
    let read = new(&["--user", "8", "--role", "read"]);
    let admin = new(&["--admin", "1"]);
    let text = std::fs::read_to_string(&file).expect("it was made");
    for key in [&trade, &read, &admin] {
        assert!(
            !text.contains(key.as_str()),
            "the key itself is in the file"
        );
    }
    let keys = keys::read(Path::new(&file)).expect("it is a file of keys");
    let name = |key: &str, role, holder| {
        let key = keys.admit(key.as_bytes(), role, holder);
        key.map(|key| key.name.clone())
    };
    assert_eq!(
        name(&trade, Role::Trade, 7),
        Some("a \"quoted\" one".into())
    );
    assert_eq!(name(&read, Role::Read, 8), Some("read 8".into()));
    assert_eq!(name(&admin, Role::Admin, 1), Some("admin 1".into()));
    assert_eq!(name(&read, Role::Trade, 8), None);
    let mode = std::fs::metadata(&file).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
}

#[test]
fn a_key_needs_a_holder_and_a_file_that_is_whole() {
    thalweg(&["exchange", "key", "new"]).refused(&["--user", "--admin"]);
    let both = ["exchange", "key", "new", "--user", "7", "--admin", "1"];
    thalweg(&both).refused(&["cannot be used with"]);
    let scratch = Scratch::new();
    for holder in ["--user", "--admin"] {
        let file = scratch.path("none.toml");
        let below = ["exchange", "key", "new", holder, "-3", "--key-file", &file];
        thalweg(&below).refused(&[holder, "-3 is not in 0.."]);
        assert!(!Path::new(&file).exists());
    }
    let file = scratch.file("keys.toml", b"[[key]]\nname = 7\n");
    let new = ["exchange", "key", "new", "--user", "7", "--key-file", &file];
    thalweg(&new).refused(&["keys.toml:2: invalid type: integer `7`, expected a string"]);
    let text = std::fs::read(&file).expect("it is there");
    assert_eq!(text, b"[[key]]\nname = 7\n", "it is as before");
}

#[test]
fn keys_that_may_open_more_sessions_than_are_remembered_are_not_served() {
    let scratch = Scratch::new();
    let keys = &scratch.path("keys.toml");
    for user in ["7", "8"] {
        thalweg(&["exchange", "key", "new", "--user", user, "--key-file", keys]).fine();
    }
    let config = scratch.file("serve.toml", b"[sessions]\nremembered_max = 31\n");
    let directory = &scratch.path("exchange");
    serve(&[directory, "--key-file", keys, "--config", &config]).refused(&[
        "sessions.remembered_max is 31, and 32 are needed: 2 holders of keys with 16 sessions each",
    ]);
}
