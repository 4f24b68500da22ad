//! Recorded streams as lists of commands.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use thalweg_exchange::stream::{Item, Recording};
use thalweg_exchange::{Command, Rules};

/// The commands of a recorded stream.
pub(crate) fn recorded(path: &Path) -> (Rules, Vec<Command>) {
    let file = BufReader::new(File::open(path).expect("the stream can be opened"));
    let mut text = String::new();
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("the stream can be unpacked");
    let stream = Recording::new(text.as_bytes()).expect("a recorded stream");
    let rules = stream.rules();
    let commands = stream
        .filter_map(|item| match item.expect("a good line") {
            (_, Item::Command { command, .. }) => Some(command),
            _ => None,
        })
        .collect();
    (rules, commands)
}
