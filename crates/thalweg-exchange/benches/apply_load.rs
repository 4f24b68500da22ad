//! Times `apply` on a load stream:
//! `cargo bench -p thalweg-exchange --bench apply_load -- FILE.csv.gz [RUNS]`.
//!
//! Prints nanoseconds per command of each of five runs on fresh states, and whether the final book
//! is the one that the file states.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

use flate2::bufread::GzDecoder;
use thalweg_exchange::stream::LoadStream;
use thalweg_exchange::{Action, Command, Events, ResultCode, Rules, State, apply, apply_batch};

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|text| text != "--bench");
    let path = arguments.next().ok_or("give the path of a load stream")?;
    // Fewer runs, to count instructions.
    let runs = arguments.next().map_or(Ok(5), |text| text.parse::<u32>())?;
    let file = BufReader::new(File::open(&path)?);
    let stream = LoadStream::read(BufReader::new(GzDecoder::new(file)))?;
    for (name, rules) in [
        ("reference", Rules::REFERENCE),
        ("mended", Rules::default()),
    ] {
        for _ in 0..runs {
            run(name, rules, &stream)?;
        }
    }
    Ok(())
}

fn run(name: &str, rules: Rules, stream: &LoadStream) -> Result<(), Box<dyn Error>> {
    let mut state = State::new(rules);
    let mut events = Events::with_capacity(1024);
    for command in &stream.setup {
        assert_eq!(apply(&mut state, command, &mut events), ResultCode::Success);
    }
    let start = Instant::now();
    let (succeeded, count) = execute(&mut state, &stream.commands, &mut events);
    let elapsed = start.elapsed();
    let book = state
        .matching
        .book(stream.symbol.id)
        .ok_or("the symbol has no book")?;
    let levels: Vec<_> = [Action::Ask, Action::Bid]
        .into_iter()
        .flat_map(|side| {
            book.levels(side, usize::MAX)
                .map(move |level| (side, level))
        })
        .collect();
    println!(
        "{name}: {:.1} ns/command, {} commands, {succeeded} succeeded, {count} events, \
         {} orders rest, final book {}",
        elapsed.as_secs_f64() * 1e9 / stream.commands.len() as f64,
        stream.commands.len(),
        book.order_count(),
        if levels == stream.final_levels {
            "equal"
        } else {
            "DIFFERENT"
        },
    );
    Ok(())
}

/// How many commands succeeded, and how many events there were. Not inlined, so that its
/// instructions can be counted.
#[inline(never)]
fn execute(state: &mut State, commands: &[Command], events: &mut Events) -> (usize, usize) {
    let (mut succeeded, mut count) = (0, 0);
    apply_batch(state, commands, events, |_, result, events| {
        succeeded += usize::from(result == ResultCode::Success);
        count += events.len();
    });
    (succeeded, count)
}
