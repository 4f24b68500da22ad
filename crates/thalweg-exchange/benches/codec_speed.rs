//! Times the codec on a load stream:
//! `cargo bench -p thalweg-exchange --bench codec_speed -- FILE.csv.gz [COMMANDS]`.
//!
//! Prints nanoseconds for each command, outcome and market message, either way, in the cache: 1,024
//! at a time, through all of the stream once. A second argument ends it after so many commands.

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::io::BufReader;
use std::time::{Duration, Instant};

use flate2::bufread::GzDecoder;
use thalweg_exchange::codec::{
    Outcome, command_bytes, decode_command_into, decode_message, decode_outcome, encode_command,
    encode_message, encode_outcome, message_bytes, outcome_bytes,
};
use thalweg_exchange::market::{Builder, Epoch, Message, Options};
use thalweg_exchange::stream::LoadStream;
use thalweg_exchange::{Command, Events, ResultCode, State, apply};

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo bench` adds `--bench`.
    let mut args = std::env::args().skip(1).filter(|text| text != "--bench");
    let path = args.next().ok_or("give the path of a load stream")?;
    let count = args.next().map_or(Ok(usize::MAX), |text| text.parse())?;
    let file = BufReader::new(File::open(&path)?);
    let mut stream = LoadStream::read(BufReader::new(GzDecoder::new(file)))?;
    stream.commands.truncate(count);
    let (outcomes, messages) = outcomes(&stream)?;

    let sum = |items: &[Command]| items.iter().map(command_bytes).sum();
    time(
        "command",
        &stream.commands,
        sum,
        encode_commands,
        decode_commands,
    );
    let sum =
        |items: &[(Outcome, Events)]| items.iter().map(|(_, events)| outcome_bytes(events)).sum();
    time("outcome", &outcomes, sum, encode_outcomes, decode_outcomes);
    let sum = |items: &[Message]| items.iter().map(message_bytes).sum();
    time("message", &messages, sum, encode_messages, decode_messages);
    Ok(())
}

#[inline(never)]
fn encode_commands(commands: &[Command], mut out: &mut [u8]) {
    for command in commands {
        let bytes = encode_command(command, out).expect("there is room");
        out = &mut out[bytes..];
    }
}

#[inline(never)]
fn decode_commands(mut bytes: &[u8]) {
    let mut command = Command::Nop;
    while !bytes.is_empty() {
        let length = decode_command_into(bytes, &mut command).expect("good frames");
        black_box(&command);
        bytes = &bytes[length..];
    }
}

#[inline(never)]
fn encode_outcomes(outcomes: &[(Outcome, Events)], mut out: &mut [u8]) {
    for (outcome, events) in outcomes {
        let bytes = encode_outcome(*outcome, events, out).expect("there is room");
        out = &mut out[bytes..];
    }
}

#[inline(never)]
fn decode_outcomes(mut bytes: &[u8]) {
    let mut events = Events::with_capacity(1024);
    while !bytes.is_empty() {
        let (outcome, length) = decode_outcome(bytes, &mut events).expect("good frames");
        black_box(outcome);
        bytes = &bytes[length..];
    }
}

#[inline(never)]
fn encode_messages(messages: &[Message], mut out: &mut [u8]) {
    for message in messages {
        let bytes = encode_message(message, out).expect("there is room");
        out = &mut out[bytes..];
    }
}

#[inline(never)]
fn decode_messages(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let (message, length) = decode_message(bytes).expect("good frames");
        black_box(&message);
        bytes = &bytes[length..];
    }
}

type Outcomes = Vec<(Outcome, Events)>;

/// What comes of the stream.
fn outcomes(stream: &LoadStream) -> Result<(Outcomes, Vec<Message>), Box<dyn Error>> {
    let mut state = State::default();
    let mut events = Events::with_capacity(1024);
    let mut builder = Builder::new(Epoch(1), Options::default());
    let (mut outcomes, mut messages) = (Vec::new(), Vec::new());
    let begin = stream.setup.len() as u64;
    for (number, command) in (0..).zip(&stream.setup) {
        let result = apply(&mut state, command, &mut events);
        assert_eq!(result, ResultCode::Success);
        builder.apply(number, command, result, &events)?;
    }
    for (sequence, command) in (begin..).zip(&stream.commands) {
        let result = apply(&mut state, command, &mut events);
        messages.extend_from_slice(builder.apply(sequence, command, result, &events)?);
        outcomes.push((Outcome { sequence, result }, events.clone()));
    }
    Ok((outcomes, messages))
}

fn time<T>(
    what: &str,
    items: &[T],
    sum: impl Fn(&[T]) -> usize,
    encode: impl Fn(&[T], &mut [u8]),
    decode: impl Fn(&[u8]),
) {
    let mut out = Vec::new();
    let (mut encoding, mut decoding) = (Duration::ZERO, Duration::ZERO);
    let mut written = 0;
    for items in items.chunks(1024) {
        // This brings them into the cache, too.
        let bytes = sum(items);
        out.clear();
        out.resize(bytes, 0);
        written += bytes;
        let start = Instant::now();
        encode(items, &mut out);
        let middle = Instant::now();
        decode(&out);
        decoding += middle.elapsed();
        encoding += middle - start;
    }
    let each = |time: Duration| time.as_nanos() as f64 / items.len() as f64;
    println!(
        "{} {what}s of {:.1} bytes: encode {:.2} ns, decode {:.2} ns",
        items.len(),
        written as f64 / items.len() as f64,
        each(encoding),
        each(decoding),
    );
}
