//! Recorded streams of the reference, line by line.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use thalweg_exchange::State;
use thalweg_exchange::conformance::{CheckError, Checker, Disagreement, Summary};
use thalweg_exchange::stream::Recorded;

fn text(path: &Path) -> String {
    let file = BufReader::new(File::open(path).expect("the stream can be opened"));
    let mut text = String::new();
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("the stream can be unpacked");
    text
}

fn own(name: &str) -> String {
    text(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name),
    )
}

fn run(text: &str) -> Result<Summary, CheckError> {
    let recorded = Recorded::new(text.as_bytes())?;
    let engine = State::new(recorded.rules());
    Checker::new(recorded, engine).run(|_| ())
}

fn disagreement(text: &str) -> Disagreement {
    match run(text) {
        Err(CheckError::Disagreement(difference)) => *difference,
        other => panic!("expected a disagreement, got {other:?}"),
    }
}

#[test]
fn streams_of_currency_pairs_agree_to_the_end() {
    for (name, commands) in [
        ("edge_nomargin.txt.gz", 16),
        ("exchange_20k.txt.gz", 22_756),
    ] {
        let summary = run(&own(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(summary.commands, commands, "{name}");
        assert!(
            summary.checkpoints > 10 && summary.events > 3,
            "{name}: {summary:?}"
        );
    }
}

#[test]
fn other_streams_agree_up_to_their_first_futures_order() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    if !folder.exists() {
        println!("skipped: no {}", folder.display());
        return;
    }
    // The first line that a stream with futures positions prints for one.
    for (name, first) in [
        ("edge.txt.gz", "C,146,PLACE,15,5002,1,GTC,BID,500,0,2"),
        (
            "edge_quirks.txt.gz",
            "C,30,PLACE,6,6001,60,GTC,ASK,100,0,50",
        ),
        (
            "multi_40k.txt.gz",
            "C,722,PLACE,80,40006,1,GTC,ASK,740956,0,3",
        ),
    ] {
        let difference = disagreement(&text(&folder.join(name)));
        assert_eq!(difference.command, first, "{name}: {difference}");
    }
}
