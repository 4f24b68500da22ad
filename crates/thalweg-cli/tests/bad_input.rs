//! Tests the reaction of the program to bad input: exit code, message, and no other output.

use crate::program;

use flate2::{Compression, write::GzEncoder};
use program::{Scratch, thalweg, words};
use std::io::Write;

const ORDERS: &str = "thalweg-orders,1\nsymbol,1,10,20,1,1,0,0\nuser,7\n";

/// Runs `exchange run` on a file with this content, and expects exit code 2 and these parts in the
/// message.
#[track_caller]
fn refused(content: &[u8], parts: &[&str]) {
    let scratch = Scratch::new();
    let file = scratch.file("input.csv", content);
    thalweg(&["exchange", "run", &file]).refused(parts);
}

#[test]
fn truncated_gzip() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(ORDERS.as_bytes()).unwrap();
    for i in 0..20_000_u32 {
        writeln!(encoder, "user,{}", i.wrapping_mul(2_654_435_761)).unwrap();
    }
    let whole = encoder.finish().unwrap();
    refused(
        &whole[..whole.len() / 2],
        &["input.csv", "truncated gzip", "ends in line "],
    );
    refused(
        &whole[..whole.len() - 1],
        &["input.csv", "truncated gzip", "ends in line 20"],
    );
    refused(&whole[..5], &["input.csv", "truncated gzip", "line 1"]);
}

#[test]
fn corrupt_gzip() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(ORDERS.as_bytes()).unwrap();
    let mut whole = encoder.finish().unwrap();
    let crc = whole.len() - 8;
    whole[crc] ^= 1;
    refused(&whole, &["input.csv", "corrupt gzip"]);
}

#[test]
fn bytes_after_a_gzip() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(ORDERS.as_bytes()).unwrap();
    let mut whole = encoder.finish().unwrap();
    whole.extend_from_slice(b"user,8\n");
    refused(
        &whole,
        &["input.csv: bytes that are not gzip after", "line 4"],
    );
}

#[test]
fn a_placement_that_cannot_be() {
    let line = ["exchange", "run", "/no/such/file", "--placement"];
    let refused = |options: &[&str], parts: &[&str]| {
        thalweg(&[&line[..], options].concat()).refused(parts);
    };
    let limit = "3 stage threads asked for; 2 stages can use 1 to 2";
    refused(&["threads:3"], &["--placement threads:3: ", limit]);
    let limit = "--placement threads:2: with --journal, the sender's thread executes";
    refused(
        &["threads:2", "--journal", "/no/such"],
        &[limit, "threads:1 and auto"],
    );
}

#[test]
fn names_have_no_control_characters() {
    let said = thalweg(&["exchange", "run", "/no/\x1b[31m\nfile"]);
    said.refused(&["/no/\\x1b[31m\\x0afile: cannot be opened: No such file or directory\n"]);
    let said = thalweg(&["exchange", "run", "--html", "/no/\x1b[31m"]);
    said.refused(&["/no/\\x1b[31m: cannot be written: "]);
    thalweg(&["hash", "/no/\x1b[31m"]).refused(&["/no/\\x1b[31m: No such file"]);
}

#[test]
fn a_stream_that_cannot_be_read_does_not_keep_others_from_it() {
    let scratch = Scratch::new();
    let text = b"# marginTrading=ENABLED\nC,1,ADD_USER,7\nR,SUCCESS\n\
        +U,7,0,0\n# FINAL STATE\nU,7,0,0\n# END\n";
    let good = scratch.file("good.txt", text);
    let bad = scratch.file("bad.txt", b"# marginTrading=ENABLED\nC,1,FLY\n");
    let files = ["/no/such/file", &good, &bad, &good];
    let said = thalweg(&[&["exchange", "conform"], &files[..]].concat());
    assert_eq!(said.code, Some(2), "{said:?}");
    let agrees = "agrees: 1 command, 0 events, 0 checkpoints, 4 lines compared\n";
    assert_eq!(said.stdout, format!("{good}: {agrees}").repeat(2));
    for part in [
        "/no/such/file: cannot",
        "bad.txt:2: ",
        "2 files could not be read",
    ] {
        assert!(said.stderr.contains(part), "`{part}` is not in {said:?}");
    }
    let json = thalweg(&[&["exchange", "conform", "--format", "json"], &files[..]].concat());
    let rows: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (json.code, rows[1]["agrees"].as_bool()),
        (Some(2), Some(true))
    );
    assert!(
        rows[0]["error"]
            .as_str()
            .unwrap()
            .contains("cannot be opened")
    );
    thalweg(&["exchange", "conform"]).refused(&["a FILE to compare is missing"]);
}

#[test]
fn unknown_format() {
    refused(
        b"name;size\n",
        &[
            "input.csv:1: unknown format",
            "`name;size`",
            "bitstamp, lobster",
        ],
    );
    refused(
        &[0, 159, 146, 150, 10, 1, 2],
        &["input.csv:1: unknown format"],
    );
}

#[test]
fn letter_for_a_number() {
    let orders = format!("{ORDERS}place,7,1,5,buy,gtc,1oo,5\n");
    refused(
        orders.as_bytes(),
        &["input.csv:4: price `1oo` is not a whole number"],
    );
    refused(
        b"0,1,C,65x,B,23647,2\n",
        &["input.csv:1: order_id `65x` is not a whole number"],
    );
    refused(
        b"1.5,1,65,l8,5853300,1\n",
        &["input.csv:1: size `l8` is not a whole number"],
    );
    refused(
        b"# marginTrading=ENABLED\nC,1,ADD_USER,x\n",
        &["input.csv:2: ", "'x'"],
    );
    let load = b"# symbol,1,0,1,2,1,1,0,0,0,0\nU,1,1,2\nC,1,one\n";
    refused(load, &["input.csv:3: ", "'one'"]);
}

#[test]
fn negative_size() {
    let orders = format!("{ORDERS}place,7,1,5,buy,gtc,100,-5\n");
    refused(
        orders.as_bytes(),
        &["input.csv:4: size -5 is below the smallest value 1"],
    );
    refused(
        b"0,1,C,65,B,23647,-2\n",
        &["input.csv:1: amount_1e8 -2 is below the smallest value 0"],
    );
    refused(
        b"1.5,1,65,-18,5853300,1\n",
        &["input.csv:1: size -18 is below the smallest value 1"],
    );
}

#[test]
fn overflowing_id() {
    let limit = "above the largest value 9223372036854775807";
    let orders = format!("{ORDERS}cancel,7,1,9223372036854775808\n");
    refused(
        orders.as_bytes(),
        &["input.csv:4: order `9223372036854775808`", limit],
    );
    let symbol = format!("{ORDERS}cancel,7,2147483648,1\n");
    refused(
        symbol.as_bytes(),
        &["input.csv:4: symbol 2147483648", "largest value 2147483647"],
    );
    refused(
        b"0,1,C,99999999999999999999,B,1,2\n",
        &["input.csv:1: order_id", limit],
    );
    let recorded = b"# marginTrading=ENABLED\nC,1,ADD_USER,9223372036854775808\n";
    refused(recorded, &["input.csv:2: ", "9223372036854775808"]);
}

#[test]
fn empty_file() {
    for content in [&b""[..], b"\n\n", b"# nothing\n", b"thalweg-orders,1\n"] {
        refused(content, &["input.csv: empty file"]);
    }
    let scratch = Scratch::new();
    let file = scratch.file("empty.txt", b"");
    thalweg(&["exchange", "conform", &file]).refused(&["empty.txt: empty file"]);
}

#[test]
fn missing_file_and_directory() {
    thalweg(&["exchange", "run", "/no/such/file"]).refused(&["/no/such/file: cannot be opened"]);
    let scratch = Scratch::new();
    thalweg(&["exchange", "run", &scratch.path("")]).refused(&["it is a directory"]);
}

#[test]
fn option_values_name_their_limits() {
    let limits: [(&[&str], &[&str]); 10] = [
        (
            &["--rate", "0"],
            &["'0'", "--rate", "least is 1 event a second"],
        ),
        (&["--rate", "fast"], &["'fast'", "--rate", "125k"]),
        (
            &["--placement", "threads:0"],
            &["'threads:0'", "--placement", "N from 1 to 64"],
        ),
        (
            &["--commands", "0"],
            &["'0'", "--commands", "from 1 to 20M"],
        ),
        (&["--seed=-1"], &["'-1'", "--seed", "below 0"]),
        (
            &["--seed", "1x"],
            &["'1x'", "--seed", "such as 250, 50k, 1.5M, 1e6 or 0x10"],
        ),
        (
            &["--seed", "99999999999999999999"],
            &["above the largest, 18446744073709551615"],
        ),
        (&["--risk-shards", "2"], &["on one thread", "--placement"]),
        (
            &["--match-shards", "two"],
            &["on one thread", "--placement"],
        ),
        (&["--format", "xml"], &["'xml'", "--format", "json"]),
    ];
    for (options, parts) in limits {
        thalweg(&[&["exchange", "run"], options].concat()).refused(parts);
    }
}

#[test]
fn options_that_do_not_go_together() {
    let scratch = Scratch::new();
    let orders = scratch.file("o.csv", ORDERS.as_bytes());
    let books = thalweg(&["exchange", "run", &orders, "--books", &orders]);
    books.refused(&["--books goes with bitstamp and lobster", "format orders"]);
    thalweg(&["exchange", "run", "--books", &orders]).refused(&["--books needs a FILE"]);
    thalweg(&["exchange", "run", &orders, "--seed", "3"]).refused(&["--seed", "cannot be used"]);
    let rows = scratch.file("rows.csv", b"5859400,200,5853300,18\n");
    thalweg(&["exchange", "run", &rows]).refused(&["rows.csv:1: ", "name it with --books"]);
}

#[test]
fn unwritable_report() {
    let line = words("exchange run /no/such/file --html /no/such/place.html");
    thalweg(&line).refused(&["/no/such/place.html: cannot be written: No such file"]);
}

#[test]
fn a_stream_that_disagrees_is_a_finding() {
    let scratch = Scratch::new();
    let text = b"# marginTrading=ENABLED\nC,1,ADD_USER,7\nR,AUTH_INVALID_USER\n";
    let file = scratch.file("stream.txt", text);
    let out = thalweg(&["exchange", "conform", &file]);
    assert_eq!(out.code, Some(1), "{out:?}");
    for part in [
        "stream.txt:3: disagrees",
        "R,AUTH_INVALID_USER",
        "R,SUCCESS",
        "ADD_USER,7",
    ] {
        assert!(out.stdout.contains(part), "{part} is not in {out:?}");
    }
    assert_eq!(out.stderr, "");
    let load = b"# symbol,1,0,1,2,1,1,0,0,0,0\nU,1,1,2\nP,1,5,0,1,100,100,7\nQ,B,100,6,1\n";
    let file = scratch.file("load.csv", load);
    let out = thalweg(&["exchange", "run", &file]);
    assert_eq!(out.code, Some(1), "{out:?}");
    assert!(out.stdout.contains("0 of 1"), "{out:?}");
}
