//! Tests files without an end: all data that is kept in memory has a limit, which the error names.

#![cfg(target_os = "linux")]

use crate::hostile::ORDERS;
use crate::program::{Scratch, thalweg};

#[test]
fn a_device_without_an_end_is_refused_with_its_limit() {
    let scratch = Scratch::new();
    let config = b"[keys]\nfile = \"/dev/zero\"\n";
    let places = [
        ("DIR", scratch.path("exchange")),
        ("ORDERS", scratch.file("orders.csv", ORDERS.as_bytes())),
        (
            "ROWS",
            scratch.file("rows.csv", b"34200.1,1,11,18,5853300,1\n"),
        ),
        ("CONFIG", scratch.file("serve.toml", config)),
    ];
    for (line, limit) in [
        (
            "exchange serve DIR --config /dev/zero",
            "limit of 1048576 bytes",
        ),
        (
            "exchange serve DIR --key-file /dev/zero",
            "limit of 67108864 bytes",
        ),
        (
            "exchange serve DIR --config CONFIG",
            "limit of 67108864 bytes",
        ),
        (
            "exchange key new --user 7 --key-file /dev/zero",
            "limit of 67108864 bytes",
        ),
        (
            "exchange run ORDERS --costs /dev/zero",
            "limit of 1048576 bytes",
        ),
        (
            "exchange sweep ORDERS --costs /dev/zero",
            "limit of 1048576 bytes",
        ),
        ("hash --check /dev/zero", "limit of 268435456 bytes"),
        (
            "exchange send ORDERS --user 7 --key-file /dev/zero",
            "256 bytes at most",
        ),
        (
            "exchange send ORDERS --user 7 --store /dev/zero",
            "limit of 4096 bytes",
        ),
        ("exchange run /dev/zero", "longer than 1048576 bytes"),
        (
            "exchange run ROWS --books /dev/zero",
            "longer than 1048576 bytes",
        ),
        ("exchange sweep /dev/zero", "longer than 1048576 bytes"),
        (
            "exchange conform /dev/zero",
            "longer than the limit of 1048576 bytes",
        ),
    ] {
        let words = line.split(' ').map(|word| {
            let place = places.iter().find(|(name, _)| *name == word);
            place.map_or(word, |(_, path)| path)
        });
        thalweg(&words.collect::<Vec<_>>()).refused(&["/dev/zero", limit]);
    }
}
