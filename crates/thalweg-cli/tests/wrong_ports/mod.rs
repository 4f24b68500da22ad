//! Tests wrong ports: the messages of `exchange send` and `load` where another service answers than
//! they expect.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::program::{Scratch, thalweg};
use crate::serve::Serving;

/// Starts a listener that answers the first bytes of a connection with these bytes, and closes it.
fn answering(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has one").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            // The hello is read as a whole: a connection that is closed before that is reset.
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer);
        }
    });
    address
}

/// Expects `send` and `load` to refuse this address with a message.
#[track_caller]
fn refused(orders: &str, address: &str, parts: &[&str]) {
    let line = format!("exchange send {orders} --user 7 --connect {address}");
    thalweg(&line.split(' ').collect::<Vec<_>>()).refused(parts);
    let line = format!("exchange load --for 1s --sessions 1 --connect {address}");
    thalweg(&line.split(' ').collect::<Vec<_>>()).refused(parts);
}

#[test]
fn what_is_not_an_exchange_is_called_so() {
    let scratch = Scratch::new();
    let orders = scratch.file("orders.csv", b"place,7,1,1,buy,gtc,500,20\n");
    let not_that = "is not an exchange but";
    let web = "a web server (HTTP): it says `HTTP/1.1 400 Bad Request`";
    let answer = answering(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    refused(&orders, &answer, &[not_that, web]);
    let answer = answering(b"\x15\x03\x03\x00\x02\x02\x28");
    refused(&orders, &answer, &[not_that, "a TLS server"]);
    let answer = answering(b"220 mail.example ESMTP\r\n");
    refused(
        &orders,
        &answer,
        &[
            not_that,
            "another program: it says `220 mail.example ESMTP`",
        ],
    );
    let mute = ["closed the connection without a welcome; is it an exchange?"];
    refused(&orders, &answering(b""), &mute);
    let closed = thalweg_testkit::refusing().to_string();
    refused(&orders, &closed, &["cannot connect to", "refused"]);
    // These are listeners of an exchange that serve other purposes.
    let serving = Serving::start(&scratch.path("exchange"));
    refused(&orders, &serving.http, &[not_that, web]);
    let admin = serving.admin.to_string();
    refused(
        &orders,
        &admin,
        &[
            "this listener does not serve that role",
            "the trade listener",
        ],
    );
    let admin = ["exchange", "send", &orders, "--admin", "1", "--connect"];
    thalweg(&[&admin[..], &[&serving.trade]].concat()).refused(&["the admin listener"]);
}

#[test]
fn where_a_key_is_needed_its_option_is_named() {
    let scratch = Scratch::new();
    let keys = scratch.path("keys.toml");
    thalweg(&["exchange", "key", "new", "--user", "7", "--key-file", &keys]).fine();
    let more = ["--key-file", &keys];
    let command = crate::program::command(&[]);
    let serving = Serving::start_as(command, &scratch.path("exchange"), &more);
    let orders = scratch.file("orders.csv", b"place,7,1,1,buy,gtc,500,20\n");
    let (trade, admin) = (&serving.trade, &serving.admin.to_string());
    let send = [
        "exchange",
        "send",
        &orders,
        "--user",
        "7",
        "--connect",
        trade,
    ];
    thalweg(&send).refused(&[
        "the key does not open this session",
        "--key-file names a file",
    ]);
    let load = ["exchange", "load", "--for", "1s", "--connect", trade];
    thalweg(&load).refused(&["none was sent; --key-file names a file"]);
    let set_up = [&load[..], &["--setup", admin]].concat();
    thalweg(&set_up).refused(&["none was sent; --admin-key-file names a file"]);
    // The file that belongs to the server is not the key.
    let hashes = [&send[..], &["--key-file", &keys]].concat();
    thalweg(&hashes).refused(&["keys.toml: this file of an exchange has the hashes of its keys"]);
}
