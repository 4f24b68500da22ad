//! Market data tells exactly what the engine's books do. A binary of its own, for its allocator.

#[path = "../properties/commands.rs"]
#[allow(dead_code)] // made for the properties; this file needs a part of it
mod commands;

mod allocation;
mod following;
mod numbers;
mod subscriber;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use thalweg_exchange::stream::{Item, Recorded};
use thalweg_exchange::{Command, Rules};

/// The commands of a recorded stream.
fn recorded(path: &Path) -> (Rules, Vec<Command>) {
    let file = BufReader::new(File::open(path).expect("the stream can be opened"));
    let mut text = String::new();
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("the stream can be unpacked");
    let stream = Recorded::new(text.as_bytes()).expect("a recorded stream");
    let rules = stream.rules();
    let commands = stream
        .filter_map(|item| match item.expect("a good line") {
            (_, Item::Command { command, .. }) => Some(command),
            _ => None,
        })
        .collect();
    (rules, commands)
}

/// The streams that come with this crate, and those beside the workspace.
fn streams() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut streams = vec![
        root.join("tests/data/edge_nomargin.txt.gz"),
        root.join("tests/data/exchange_20k.txt.gz"),
    ];
    for name in ["edge", "edge_quirks", "margin_20k", "multi_40k"] {
        let path = root
            .join("../../../shared/conformance")
            .join(format!("{name}.txt.gz"));
        if path.exists() {
            streams.push(path);
        } else {
            println!("skipped: no {}", path.display());
        }
    }
    streams
}
