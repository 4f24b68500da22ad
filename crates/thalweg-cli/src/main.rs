//! The program `thalweg`.

#![forbid(unsafe_code)]
mod arguments;
mod beginning;
mod conditions;
mod conform;
#[cfg(target_os = "linux")]
mod doctor;
mod durable;
mod failure;
mod feed;
mod flow;
mod hash;
mod input;
mod journal;
mod limits;
mod load;
mod machine;
mod market;
mod message;
mod output;
mod realflow;
#[cfg(all(unix, feature = "etcd"))]
mod replicas;
mod report;
mod results;
mod run;
mod runner;
mod send;
mod serve;
mod session;
mod source;
mod stdin;
mod sweep;
mod terminal;
#[cfg(target_os = "linux")]
mod top;
mod views;

use crate::arguments::{Command, Exchange};
use crate::failure::{Failure, Finding};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let line: Vec<OsString> = std::env::args_os().collect();
    let arguments = match arguments::parse(&line) {
        Ok(arguments) => arguments,
        Err(error) => return misuse(&error),
    };
    let result = match arguments.command {
        Command::Exchange(Exchange::Run(options)) => run::run(&options),
        Command::Exchange(Exchange::Sweep(options)) => sweep::sweep(&options),
        Command::Exchange(Exchange::Conform(options)) => conform::conform(&options),
        Command::Exchange(Exchange::Send(asked)) => send::send(&asked),
        Command::Exchange(Exchange::Load(asked)) => load::load(&asked),
        Command::Exchange(Exchange::Serve(options)) => serve::serve(&options),
        #[cfg(all(unix, feature = "etcd"))]
        Command::Exchange(Exchange::Status(asked)) => replicas::status(&asked),
        Command::Exchange(Exchange::Watch(asked)) => views::watch::watch(&asked),
        Command::Exchange(Exchange::Book(asked)) => views::query::book(&asked),
        Command::Exchange(Exchange::Trades(asked)) => views::trades::trades(&asked),
        Command::Exchange(Exchange::Orders(asked)) => views::query::orders(&asked),
        Command::Exchange(Exchange::Account(asked)) => views::query::account(&asked),
        Command::Exchange(Exchange::Durable(asked)) => durable::durable(&asked),
        #[cfg(target_os = "linux")]
        Command::Doctor(asked) => doctor::doctor(&asked),
        #[cfg(not(target_os = "linux"))]
        Command::Doctor(_) => Err(Failure::Misuse(
            "programs are observed on Linux only".to_owned(),
        )),
        Command::Hash(options) => hash::hash(&options),
        Command::Journal(command) => journal::journal(&command),
        #[cfg(target_os = "linux")]
        Command::Top(asked) => top::top(&asked),
        Command::Machine(asked) => crate::machine::machine(&asked),
        Command::Completions { shell } => completions(shell),
        Command::Man { directory } => manual(directory.as_deref()),
    };
    match result {
        Ok(Finding::Fine) => ExitCode::SUCCESS,
        Ok(Finding::Negative) => ExitCode::from(1),
        Ok(Finding::Of(code)) => ExitCode::from(code),
        Ok(Finding::Interrupted) => ExitCode::from(130),
        Ok(Finding::Terminated) => ExitCode::from(143),
        // The reader closed the pipe because it has read enough: `thalweg … | head` is not a
        // failure.
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(Failure::Reported) => ExitCode::from(2),
        Err(failure) => {
            let _ = writeln!(io::stderr(), "thalweg: {failure}");
            if let Some(advice) = failure.advice() {
                let _ = writeln!(io::stderr(), "thalweg: {advice}");
            }
            ExitCode::from(2)
        }
    }
}

/// Prints an error of the command line. Help and version go to standard output and are fine;
/// everything else is misuse.
fn misuse(error: &clap::Error) -> ExitCode {
    match error.print() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let _ = writeln!(io::stderr(), "thalweg: {}", Failure::Output(error));
            ExitCode::from(2)
        }
        _ if error.use_stderr() => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    }
}

fn completions(shell: clap_complete::Shell) -> Result<Finding, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut arguments::command(), "thalweg", &mut script);
    crate::output::print(&script)?;
    Ok(Finding::Fine)
}

fn manual(directory: Option<&Path>) -> Result<Finding, Failure> {
    let mut program = arguments::command().disable_help_subcommand(directory.is_some());
    program.build();
    let Some(directory) = directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(program)
            .render(&mut page)
            .map_err(Failure::Output)?;
        crate::output::print(&page)?;
        return Ok(Finding::Fine);
    };
    let mut listed = String::new();
    let made = fs::create_dir_all(directory);
    let written = made.and_then(|()| pages(program, directory, &mut listed));
    written.map_err(|source| Failure::Write {
        name: crate::message::shown(directory.as_os_str()),
        source,
    })?;
    crate::output::print(listed.as_bytes())?;
    Ok(Finding::Fine)
}

/// Writes the manual page of a command and those of the commands below it.
fn pages(command: clap::Command, directory: &Path, listed: &mut String) -> io::Result<()> {
    let below = command
        .get_subcommands()
        .filter(|below| below.get_name() != "help");
    let below: Vec<clap::Command> = below.cloned().collect();
    let page = clap_mangen::Man::new(command).generate_to(directory)?;
    listed.push_str(&crate::message::shown(page.as_os_str()));
    listed.push('\n');
    below
        .into_iter()
        .try_for_each(|command| pages(command, directory, listed))
}
