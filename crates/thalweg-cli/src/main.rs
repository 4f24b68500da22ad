//! The program `thalweg`.
#![forbid(unsafe_code)]

mod arguments;
mod conform;
mod failure;
mod flow;
mod hash;
mod input;
mod realflow;
mod report;
mod run;
mod runner;
mod source;
mod terminal;

use arguments::{Arguments, Command, Exchange};
use clap::{CommandFactory, Parser};
use failure::{Failure, Finding};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return misuse(&error),
    };
    let result = match arguments.command {
        Command::Exchange(Exchange::Run(options)) => run::run(&options),
        Command::Exchange(Exchange::Conform(options)) => conform::conform(&options),
        Command::Hash(options) => hash::hash(&options),
        Command::Completions { shell } => completions(shell),
        Command::Man => manual(),
    };
    match result {
        Ok(Finding::Fine) => ExitCode::SUCCESS,
        Ok(Finding::Negative) => ExitCode::from(1),
        // Whoever reads us has enough: `thalweg … | head` is no failure.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(io::stderr(), "thalweg: {failure}");
            ExitCode::from(2)
        }
    }
}

/// Help and version go to standard output and are fine; everything else is misuse.
fn misuse(error: &clap::Error) -> ExitCode {
    match error.print() {
        Err(closed) if closed.kind() != io::ErrorKind::BrokenPipe => ExitCode::from(2),
        _ if error.use_stderr() => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

fn completions(shell: clap_complete::Shell) -> Result<Finding, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "thalweg", &mut script);
    failure::print(&script)?;
    Ok(Finding::Fine)
}

fn manual() -> Result<Finding, Failure> {
    let mut pages = Vec::new();
    let mut command = Arguments::command();
    command.build();
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        clap_mangen::Man::new(command.clone())
            .render(&mut pages)
            .map_err(Failure::Output)?;
        let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
        waiting.extend(shown.cloned().collect::<Vec<_>>().into_iter().rev());
    }
    failure::print(&pages)?;
    Ok(Finding::Fine)
}
