//! Market data agrees exactly with the engine's books. A binary of its own, for its allocator.

pub(crate) use crate::properties::commands;

pub(crate) use crate::operations::stream as operations;

mod allocation;
mod following;
mod hidden;
mod mixing;
mod numbers;
pub(crate) mod recording;
mod restart;
mod steps;
mod subscriber;

use std::path::{Path, PathBuf};

use thalweg_testkit::shared;

/// The streams that come with this crate, and those beside the workspace.
fn streams() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut streams = vec![
        root.join("tests/data/edge_nomargin.txt.gz"),
        root.join("tests/data/exchange_20k.txt.gz"),
    ];
    let others = ["edge", "edge_quirks", "margin_20k", "multi_40k"];
    let others = others.map(|name| format!("conformance/{name}.txt.gz"));
    streams.extend(others.iter().filter_map(|name| shared(name)));
    streams
}
