//! `cargo dev clients`: real trading programs from PyPI against a fresh server with a gateway.

use std::fs;
use std::process::Command;

use crate::plan::{Outcome, Step};
use crate::workspace::Workspace;

/// The programs, with the versions that are known to work.
const PACKAGES: [&str; 2] = ["ccxt==4.5.90", "python-binance==1.0.37"];

/// The step of `cargo dev clients` and of the gate.
pub(crate) const STEP: Step = Step {
    name: "clients",
    summary: "ccxt and python-binance trade, and find their orders after kills (Python, PyPI)",
    has_own_folder: false,
    run: step,
};

/// Installs the programs into a folder of their own, and has them trade.
///
/// # Errors
/// They do not trade as they should, or the server cannot be built.
fn step(workspace: &Workspace) -> Result<Outcome, String> {
    if !workspace.works("python3", "-m venv --help") {
        return Ok(Outcome::Skipped(
            "python3 with venv is not installed".to_owned(),
        ));
    }
    let folder = workspace.target.join("clients");
    let environment = folder.join("venv");
    let shown = environment.display().to_string();
    let make = workspace.output("python3", &format!("-m venv {shown}"));
    make.map_err(|error| format!("no environment of Python: {error}"))?;
    let python = environment.join("bin/python");
    let python_shown = python.display().to_string();
    let install = format!("-m pip install --quiet {}", PACKAGES.join(" "));
    if let Err(error) = workspace.output(&python_shown, &install) {
        let line = error.lines().last().unwrap_or_default().to_owned();
        return Ok(Outcome::Skipped(format!("PyPI cannot be reached: {line}")));
    }
    workspace.run(&mut workspace.cargo("build --package thalweg-cli"))?;
    let directory = folder.join("exchange");
    let _ = fs::remove_dir_all(&directory);
    let mut trade = Command::new(&python);
    trade.arg(workspace.root.join("dev/clients/trade.py"));
    trade
        .arg(workspace.target.join("debug/thalweg"))
        .arg(&directory);
    trade.current_dir(&folder);
    workspace.run(&mut trade)?;
    Ok(Outcome::Passed)
}
