//! Scores a doctor by programs whose bottleneck is known; `cases/README.md` lists them.
//!
//! `cargo run -p thalweg-doctor --example score -- --doctor "thalweg doctor --json --"`
#![forbid(unsafe_code)]

mod scoring;

use scoring::{Case, Options, heading, read, score};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: score --doctor COMMAND [options]
  --doctor COMMAND   what stands before each program; words are split at spaces
  --only NAME        only this case, or this folder; may be given again
  --as USER          run each case as this user too, and compare the first verdicts
  --repeat K         run each case K times (1)
  --seconds S        how long each program runs (1.5)
  --out DIR          where programs are built and run (target/doctor-cases)
exit code: 0 all right, 1 wrong verdicts, 2 nothing could be scored";

fn main() -> ExitCode {
    match run() {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<u8, String> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut options = Options {
        doctor: Vec::new(),
        cases: home.join("cases"),
        out: home.join("../../target/doctor-cases"),
        seconds: 1.5,
        repeat: 1,
        user: None,
    };
    let mut only = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--help" {
            println!("{USAGE}");
            return Ok(0);
        }
        let value = arguments.next();
        let value = value.ok_or_else(|| format!("{argument} needs a value\n{USAGE}"))?;
        match argument.as_str() {
            "--doctor" => options.doctor = value.split_whitespace().map(str::to_owned).collect(),
            "--only" => only.push(value),
            "--as" => options.user = Some(value),
            "--repeat" => options.repeat = number(&argument, &value)?,
            "--seconds" => options.seconds = number(&argument, &value)?,
            "--out" => options.out = PathBuf::from(value),
            _ => return Err(format!("{argument} {value} is not understood\n{USAGE}")),
        }
    }
    let program = options.doctor.first_mut();
    let program = program.ok_or_else(|| format!("--doctor is missing\n{USAGE}"))?;
    if program.contains('/') {
        *program = absolute(Path::new(program))?.to_string_lossy().into_owned();
    }
    std::fs::create_dir_all(&options.out).map_err(|e| format!("{}: {e}", options.out.display()))?;
    options.out = absolute(&options.out)?;
    let mut cases = read(&options.cases)?;
    let is = |case: &Case, word: &str| word == case.name || word == case.folder.name();
    if let Some(word) = only.iter().find(|o| !cases.iter().any(|case| is(case, o))) {
        return Err(format!("no case and no folder of one is called {word}"));
    }
    cases.retain(|case| only.is_empty() || only.iter().any(|word| is(case, word)));
    println!("{}", heading());
    let tally = score(&cases, &options, |row| println!("{row}"))?;
    print!("\n{tally}");
    Ok(tally.exit_code())
}

fn number<N: std::str::FromStr>(argument: &str, value: &str) -> Result<N, String> {
    value
        .parse()
        .map_err(|_| format!("{argument} {value}: not a number that fits\n{USAGE}"))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize()
        .map_err(|e| format!("{}: {e}", path.display()))
}
