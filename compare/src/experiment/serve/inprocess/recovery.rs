//! Recovery of an exchange from its journal, and what the parts of it take.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use thalweg_exchange::codec::decode_command_into;
use thalweg_exchange::durable::SyncMode;
use thalweg_exchange::{Command, Events, Rules, State, apply_batch};
use thalweg_journal::{Lsn, Reader};

use super::super::progress_note;
use super::flow::{Flow, open, open_new, send_all};
use super::{Settings, Told, told};
use crate::experiment::journal::Scratch;
use crate::report::{Report, per_second};
use crate::runner::{Metric, Run, Subject, interleave, subject};
use crate::target::{Limit, Target};

const CASE: &str = "recovery";
const REPETITIONS: [usize; 2] = [11, 3];
/// Commands in the journal, `[full, quick]`.
const COMMANDS: [u64; 2] = [3_000_000, 200_000];
/// What a record has before its command's frame.
const HEAD_BYTES: usize = 24;
const PER_S_MIN: f64 = 2e6;

const METRICS: &[Metric] = &[Metric::higher("commands a second", "1/s")];

const OPENED: &str = "opened";
const READ: &str = "read";
const DECODED: &str = "read and decoded";
const APPLIED: &str = "read, decoded and applied";

/// An exchange that ended without a last snapshot.
struct Left {
    place: Scratch,
    commands: u64,
}

fn leave(commands: u64) -> Told<Left> {
    let place = Scratch::new("recovery");
    let (mut exchange, _) = open_new(&place.0, SyncMode::Always)?;
    let before = exchange.number();
    send_all(&mut exchange, &Flow::new(), 0, commands)?;
    exchange.drain().map_err(told)?;
    let commands = before + commands;
    Ok(Left { place, commands })
}

fn opened(left: &Left) -> Told<Duration> {
    let begin = Instant::now();
    let (exchange, _) = open(&left.place.0, SyncMode::Always)?;
    let took = begin.elapsed();
    let number = exchange.number();
    match number == left.commands {
        true => Ok(took),
        false => Err(format!("{number} commands of {}", left.commands)),
    }
}

/// Reads all blocks; `told` gets the records of each.
fn read(left: &Left, mut told_of: impl FnMut(&[u8], usize) -> Told<()>) -> Told<Duration> {
    let begin = Instant::now();
    let mut reader = Reader::open(&left.place.0, Lsn::FIRST).map_err(told)?;
    let mut count = 0;
    while let Some(block) = reader.next_block().map_err(told)? {
        for (at, (_, bytes)) in block.bytes().enumerate() {
            told_of(bytes, at)?;
            count += 1;
        }
    }
    match count == left.commands {
        true => Ok(begin.elapsed()),
        false => Err(format!("{count} records of {}", left.commands)),
    }
}

fn only_read(left: &Left) -> Told<Duration> {
    let mut sum = 0;
    let took = read(left, |bytes, _| {
        sum += bytes.len();
        Ok(())
    });
    std::hint::black_box(sum);
    took
}

fn decoded(left: &Left) -> Told<Duration> {
    let mut command = Command::Nop;
    read(left, |bytes, _| {
        decode_command_into(&bytes[HEAD_BYTES..], &mut command).map_err(told)?;
        std::hint::black_box(&command);
        Ok(())
    })
}

/// As recovery does it, but for what sessions and reports are kept.
fn applied(left: &Left) -> Told<Duration> {
    let begin = Instant::now();
    let mut state = State::new(Rules::default());
    let (mut events, mut commands) = (Events::new(), Vec::new());
    let mut reader = Reader::open(&left.place.0, Lsn::FIRST).map_err(told)?;
    while let Some(block) = reader.next_block().map_err(told)? {
        let mut count = 0;
        for (_, bytes) in block.bytes() {
            if count == commands.len() {
                commands.push(Command::Nop);
            }
            decode_command_into(&bytes[HEAD_BYTES..], &mut commands[count]).map_err(told)?;
            count += 1;
        }
        apply_batch(&mut state, &commands[..count], &mut events, |_, _, _| ());
    }
    Ok(begin.elapsed())
}

struct Load(Mutex<Left>);

fn subjects() -> Vec<Box<dyn Subject<Load>>> {
    // Each gives how long it took for all commands.
    let way = |name, work: fn(&Left) -> Told<Duration>| {
        subject(name, move |load: &Load| {
            let left = load.0.lock().map_err(told)?;
            let took = work(&left)?;
            Ok(Run::of(vec![left.commands as f64 / took.as_secs_f64()]))
        })
    };
    vec![
        way(OPENED, opened),
        way(READ, only_read),
        way(DECODED, decoded),
        way(APPLIED, applied),
    ]
}

/// The case `recovery`.
pub(super) fn run(report: &mut Report, settings: &Settings, targets: &mut Vec<Target>) {
    let repetitions = settings.repetitions_or(REPETITIONS);
    let subjects = subjects();
    let wanted = settings.wanted(CASE, &subjects);
    if wanted.is_empty() {
        return;
    }
    let commands = COMMANDS[usize::from(settings.quick)];
    progress_note(&format!("{CASE}: {commands} commands, {repetitions} runs"));
    let left = match leave(commands) {
        Ok(left) => left,
        Err(error) => return report.say(format!("{CASE} skipped: {error}")),
    };
    let trial = interleave(CASE, METRICS, &wanted, &Load(Mutex::new(left)), repetitions);
    let heading = format!("{CASE}: {commands} commands in a journal, in the page cache");
    report.figures(&heading, &trial);
    let values = trial.of(OPENED).map(|series| series.values(0));
    let median = values.and_then(|values| thalweg_measure::statistics::median(&values));
    let limit = Limit::AtLeast(PER_S_MIN);
    let what = format!("{CASE}: commands a second");
    targets.push(Target::new(what, limit, median, per_second));
}
