//! What shards cost: a load stream through the service in batches of 64, for several shardings and
//! placements, and how often commands waited.
//!
//! ```text
//! cargo bench -p thalweg-exchange --bench shards -- STREAM.csv.gz
//! ```

use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

use flate2::bufread::GzDecoder;
use thalweg::pipeline::Placement;
use thalweg_exchange::report::state_text::state_hash;
use thalweg_exchange::service::{Options, Service, Waits};
use thalweg_exchange::stream::LoadStream;
use thalweg_exchange::{Command, State};

const BATCH: usize = 64;
const RUNS: usize = 5;

/// The quickest of some runs in ns a command, how often commands waited, and the state's hash.
fn run(setup: &[Command], commands: &[Command], options: &Options) -> (f64, Waits, u64) {
    let mut best = (f64::INFINITY, Waits::default(), 0);
    for _ in 0..RUNS {
        let service = Service::start(State::default(), options.clone(), |_| ());
        let mut service = service.expect("options that can be");
        service.submit_batch(setup, |_| 0).expect("no failure");
        service.drain().expect("no failure");
        let begin = Instant::now();
        for batch in commands.chunks(BATCH) {
            service.submit_batch(batch, |_| 0).expect("no failure");
        }
        service.drain().expect("no failure");
        let ns = begin.elapsed().as_nanos() as f64 / commands.len() as f64;
        let finished = service.join().expect("no failure");
        if ns < best.0 {
            best = (ns, finished.waits, state_hash(&finished.state).hash);
        }
    }
    best
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo bench` adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|text| text != "--bench");
    let path = arguments.next().ok_or("which load stream?")?;
    let file = BufReader::new(File::open(path)?);
    let stream = LoadStream::read(BufReader::new(GzDecoder::new(file)))?;
    let mut hashes = Vec::new();
    println!("risk × match  placement   ns/command  waited: administration futures quirk refusal");
    for placement in [Placement::inline(), Placement::threads(2)] {
        for (risk_shards, match_shards) in [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3)] {
            let options = Options {
                placement: placement.clone(),
                risk_shards,
                match_shards,
                ..Options::default()
            };
            let (ns, waits, hash) = run(&stream.setup, &stream.commands, &options);
            println!(
                "{risk_shards:4} × {match_shards:<5}  {:<10}  {ns:10.1}  {:22} {:7} {:5} {:7}",
                placement.to_string(),
                waits.administration,
                waits.futures,
                waits.quirk,
                waits.refusal
            );
            hashes.push(hash);
        }
    }
    hashes.dedup();
    println!("state hashes: {hashes:x?}");
    Ok(())
}
