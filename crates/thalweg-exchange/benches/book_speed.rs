//! Times matching alone on a load stream:
//! `cargo bench -p thalweg-exchange --bench book_speed -- FILE.csv.gz [RUNS]`.
//!
//! Prints nanoseconds of thread CPU time per command, best and median of nine runs on fresh books
//! in one process, and whether the final book is the one that the file states. The risk check
//! runs once, before, to say what it would answer to each command.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use flate2::bufread::GzDecoder;
use rustix::time::{ClockId, clock_gettime};
use thalweg_exchange::book::Level;
use thalweg_exchange::matching::Matching;
use thalweg_exchange::stream::LoadStream;
use thalweg_exchange::{Action, Command, Events, ResultCode, Rules, State};

const RUNS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|text| text != "--bench");
    let path = arguments.next().ok_or("give the path of a load stream")?;
    // Fewer runs, to count instructions.
    let runs = arguments.next().map_or(Ok(RUNS), |text| text.parse())?;
    let file = BufReader::new(File::open(&path)?);
    let stream = LoadStream::read(BufReader::new(GzDecoder::new(file)))?;
    let checked = answers(&stream);
    let mut times: Vec<f64> = Vec::new();
    let mut is_right = true;
    for _ in 0..runs {
        let mut matching = Matching::with_capacity(Rules::default(), 4096);
        let mut events = Events::with_capacity(1024);
        for command in &stream.setup {
            matching.execute(command, ResultCode::Success, &mut events);
        }
        let start = cpu_ns();
        run(&mut matching, &stream.commands, &checked, &mut events);
        times.push((cpu_ns() - start) as f64 / stream.commands.len() as f64);
        is_right &= levels(&matching, &stream) == stream.final_levels;
    }
    times.sort_unstable_by(f64::total_cmp);
    println!(
        "{:.1} ns/command at best, {:.1} in the median of {runs}; final book {}",
        times[0],
        times[runs / 2],
        if is_right { "equal" } else { "DIFFERENT" },
    );
    Ok(())
}

/// What the risk check answers to each command.
fn answers(stream: &LoadStream) -> Vec<ResultCode> {
    let mut state = State::new(Rules::default());
    let mut events = Events::new();
    let mut answer = |command: &Command| {
        let checked = state.risk.check(command);
        let result = state.matching.execute(command, checked, &mut events);
        state.risk.settle(command, result, &events);
        checked
    };
    stream.setup.iter().for_each(|command| {
        answer(command);
    });
    stream.commands.iter().map(answer).collect()
}

#[inline(never)]
fn run(matching: &mut Matching, commands: &[Command], checked: &[ResultCode], events: &mut Events) {
    for (command, &checked) in commands.iter().zip(checked) {
        std::hint::black_box(matching.execute(command, checked, events));
    }
}

fn levels(matching: &Matching, stream: &LoadStream) -> Vec<(Action, Level)> {
    let book = matching.book(stream.symbol.id).expect("it was added");
    [Action::Ask, Action::Bid]
        .into_iter()
        .flat_map(|side| {
            let levels = book.levels(side, usize::MAX);
            levels.map(move |level| (side, level))
        })
        .collect()
}

fn cpu_ns() -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
