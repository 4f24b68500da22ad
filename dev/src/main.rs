//! `cargo dev`: tidy, the tests, counts, and the gate that a change passes before it lands.
//!
//! No dependencies, so that it builds in a moment on a fresh clone.

#![forbid(unsafe_code)]

mod api;
mod blocks;
mod builds;
mod clients;
mod counts;
#[cfg(test)]
mod dependencies;
mod failures;
mod fuzz;
mod gate;
mod linted;
mod package;
mod page;
mod plan;
mod programs;
mod readme;
mod soak;
mod targets;
mod testing;
mod tidy;
mod workspace;

use std::env;
use std::process::ExitCode;

use plan::{Choice, Step};
use workspace::Workspace;

const USAGE: &str = "\
cargo dev tidy [PATH…]   the habits that a machine can check, in the whole tree or in PATHs
cargo dev tidy --list    its rules
cargo dev test           tidy, all tests, the models (loom, shuttle); needs nothing but Rust
cargo dev gate           fmt, clippy, docs, `cargo dev test`, sanitizers, fuzzing, packages,
                         a fresh clone
cargo dev counts         instructions of the rings and channels against counts/baseline.toml
cargo dev clients        real trading programs from PyPI and npm against a server with a gateway
cargo dev clients --slow those that soak runs: freqtrade and nautilus_trader, too
cargo dev page           the gateway's page in a browser; --screenshots writes those of docs/
cargo dev targets        what compiles and runs on other systems and on the oldest Rust, with
                         compilers from Debian
cargo dev api            the libraries' public items against crates/*/public-api.txt; --update
                         writes these; --since REVISION has rules for what breaks users
cargo dev soak --minutes N  the long forms of the tests for that time, with new seeds (or --seed S)
cargo dev counts --update  makes what is counted the baseline

test and gate take --only STEP and --skip STEP, each as often as needed, and --list.
Exit codes: 0 fine, 1 something was found or failed, 2 misuse.
";

fn main() -> ExitCode {
    if let Some(code) = linted::as_wrapper() {
        return code;
    }
    let args: Vec<String> = env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("", &[][..]),
    };
    let done = match command {
        "tidy" => tidy(rest),
        "test" => run(rest, testing::STEPS),
        "gate" => run(rest, &gate::steps()),
        "clients" if rest == ["--slow"] => here()
            .and_then(|workspace| clients::for_longer(&workspace))
            .map(|()| true),
        "clients" => run(rest, &[clients::STEP]),
        "page" if rest == ["--screenshots"] => run(&[], &[page::SCREENSHOTS]),
        "page" => run(rest, &[page::STEP]),
        "api" if rest == ["--update"] => run(&[], &[api::UPDATE]),
        "api" if rest.len() == 2 && rest[0] == "--since" => here()
            .and_then(|workspace| api::check_since(&workspace, &rest[1]))
            .and_then(|outcome| match outcome {
                plan::Outcome::Skipped(why) => Err(why),
                _ => Ok(true),
            }),
        "api" => run(rest, &[api::STEP]),
        "targets" => run(rest, &[targets::WHOLE]),
        "counts" => counts::command(rest),
        "soak" => here().and_then(|workspace| soak::command(&workspace, rest)),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(true)
        }
        "" => Err(format!("a command is missing\n\n{USAGE}")),
        _ => Err(format!("{command}: no such command\n\n{USAGE}")),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("cargo dev: {}", message.trim_end());
            ExitCode::from(2)
        }
    }
}

fn tidy(args: &[String]) -> Result<bool, String> {
    if args == ["--list"] {
        tidy::print_rules();
        return Ok(true);
    }
    if let Some(option) = args.iter().find(|arg| arg.starts_with('-')) {
        return Err(format!(
            "{option}: not known; tidy takes paths, or --list alone"
        ));
    }
    Ok(tidy::check(&here()?.root, args)?.print())
}

fn run(args: &[String], steps: &[Step]) -> Result<bool, String> {
    let choice = Choice::parse(args, steps)?;
    if choice.list {
        plan::print_steps(steps);
        return Ok(true);
    }
    Ok(plan::run(&here()?, steps, &choice))
}

fn here() -> Result<Workspace, String> {
    let folder = env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
    Workspace::around(&folder)
}
