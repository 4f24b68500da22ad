//! Files without an end: whatever is kept in memory has a limit, which the error names.

use crate::hostile::ORDERS;
use crate::program::{Ended, Scratch, command};

#[cfg(target_os = "linux")]
#[test]
fn a_device_without_an_end_is_refused_with_its_limit() {
    let scratch = Scratch::new();
    let zero = "/dev/zero";
    let orders = scratch.file("orders.csv", ORDERS.as_bytes());
    let messages = scratch.file("messages.csv", b"34200.1,1,11,18,5853300,1\n");
    let directory = scratch.path("exchange");
    // Files are read before a port is opened.
    let serve = ["exchange", "serve", &directory];
    let to = ["--connect", "127.0.0.1:1"];
    let send = [&["exchange", "send", &orders, "--user", "7"][..], &to].concat();
    let cases: [(&[&str], &[&str], &str); 12] = [
        (&serve, &["--config", zero], "limit of 1048576 bytes"),
        (&serve, &["--key-file", zero], "limit of 67108864 bytes"),
        (
            &["exchange", "key", "new", "--user", "7"],
            &["--key-file", zero],
            "limit of 67108864 bytes",
        ),
        (
            &["exchange", "run", &orders],
            &["--costs", zero],
            "limit of 1048576 bytes",
        ),
        (
            &["exchange", "sweep", &orders],
            &["--costs", zero],
            "limit of 1048576 bytes",
        ),
        (&["hash"], &["--check", zero], "limit of 268435456 bytes"),
        (&send, &["--key-file", zero], "256 bytes at most"),
        (&send, &["--store", zero], "limit of 4096 bytes"),
        (&["exchange", "run"], &[zero], "longer than 1048576 bytes"),
        (
            &["exchange", "run", &messages],
            &["--books", zero],
            "longer than 1048576 bytes",
        ),
        (&["exchange", "sweep"], &[zero], "longer than 1048576 bytes"),
        (&["exchange", "conform"], &[zero], "longer than"),
    ];
    for (words, more, limit) in cases {
        let arguments = [words, more].concat();
        let said: Ended = command(&arguments)
            .output()
            .expect("it can be started")
            .into();
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        for part in [zero, limit] {
            assert!(
                said.stderr.contains(part),
                "{arguments:?}: `{part}` is not in {said:?}"
            );
        }
    }
    let config = scratch.file("serve.toml", b"[keys]\nfile = \"/dev/zero\"\n");
    let said: Ended = command(&[&serve[..], &["--config", &config]].concat())
        .output()
        .expect("it can be started")
        .into();
    said.refused(&[zero, "limit of 67108864 bytes"]);
}
