//! `cargo dev clients`: real trading programs from PyPI and npm against fresh servers with a
//! gateway.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::plan::{Outcome, Step};
use crate::testing;
use crate::workspace::Workspace;

/// The step of `cargo dev clients` and of the gate.
pub(crate) const STEP: Step = Step {
    name: "clients",
    summary: "five trading programs trade; kills; the gateway's guide (Python, Node, PyPI, npm)",
    has_own_folder: true,
    run: |workspace| trade(workspace, 20),
};

/// Where the programs, their pinned versions and the driver are.
const SOURCES: &str = "dev/clients";

/// Replays the requests that these programs sent once, for want of the programs.
const REPLAY: &str = "test --package thalweg-gateway --test websocket -- recorded";

/// Has the programs trade, kills the server as often as is asked, and follows the guide.
///
/// # Errors
/// They do not trade as they should, or the server cannot be built.
pub(crate) fn trade(workspace: &Workspace, kills: u32) -> Result<Outcome, String> {
    let folder = workspace.target.join("clients");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let sources = workspace.root.join(SOURCES);
    let python = match python(workspace, &sources, &folder)? {
        Ok(python) => python,
        Err(why) => return instead(workspace, why),
    };
    let modules = modules(workspace, &sources, &folder)?;
    testing::build_program(workspace)?;
    let directory = folder.join("exchange");
    let _ = fs::remove_dir_all(&directory);
    let mut trade = Command::new(&python);
    trade
        .arg(sources.join("trade.py"))
        .arg(workspace.target.join("debug/thalweg"))
        .arg(&directory)
        .arg(kills.to_string())
        .args(modules.is_ok().then_some(&folder))
        .current_dir(&folder);
    workspace.run(&mut trade)?;
    let mut guide = Command::new(&python);
    guide
        .arg(sources.join("guide.py"))
        .arg(workspace.target.join("debug/thalweg"))
        .arg(&directory)
        .arg(workspace.root.join("docs/gateway.md"));
    workspace.run(&mut guide)?;
    match modules {
        Ok(()) => Ok(Outcome::Passed),
        Err(why) => instead(workspace, format!("programs in JavaScript, {why}")),
    }
}

/// Replays recorded requests. Returns that the programs were skipped, and why.
fn instead(workspace: &Workspace, why: String) -> Result<Outcome, String> {
    workspace.run(&mut workspace.cargo(REPLAY))?;
    Ok(Outcome::Skipped(format!(
        "{why}; recorded requests replayed"
    )))
}

/// Installs the programs in Python. Returns their interpreter, or why they cannot be had.
fn python(
    workspace: &Workspace,
    sources: &Path,
    folder: &Path,
) -> Result<Result<PathBuf, String>, String> {
    if !workspace.works("python3", "-m venv --help") {
        return Ok(Err("python3 with venv is not installed".to_owned()));
    }
    let environment = folder.join("venv");
    let python = environment.join("bin/python");
    let pinned = sources.join("requirements.txt");
    if is_installed(&pinned, &environment) {
        return Ok(Ok(python));
    }
    let shown = environment.display().to_string();
    let make = workspace.output("python3", &format!("-m venv --clear {shown}"));
    make.map_err(|error| format!("no environment of Python: {error}"))?;
    let install = format!(
        "-m pip install --quiet --require-hashes --only-binary=:all: --requirement {}",
        pinned.display()
    );
    let installed = workspace.output(&python.display().to_string(), &install);
    Ok(match installed {
        Ok(_) => {
            note_installed(&pinned, &environment)?;
            Ok(python)
        }
        Err(error) if error.contains("DO NOT MATCH THE HASHES") => return Err(error),
        Err(error) => {
            let line = error.lines().last().unwrap_or_default();
            Err(format!("PyPI cannot be reached: {line}"))
        }
    })
}

/// Installs the modules of the programs in JavaScript, and puts these beside them. Returns why they
/// cannot be had, if that is so.
fn modules(
    workspace: &Workspace,
    sources: &Path,
    folder: &Path,
) -> Result<Result<(), String>, String> {
    if !workspace.works("node", "--version") || !workspace.works("npm", "--version") {
        return Ok(Err("node and npm are not installed".to_owned()));
    }
    for entry in fs::read_dir(sources).map_err(|error| format!("{SOURCES}: {error}"))? {
        let file = entry.map_err(|error| error.to_string())?.path();
        let is_wanted = file.extension().is_some_and(|e| e == "mjs" || e == "json");
        if let (true, Some(name)) = (is_wanted, file.file_name()) {
            let copied = fs::copy(&file, folder.join(name));
            copied.map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    let (pinned, installed) = (
        sources.join("package-lock.json"),
        folder.join("node_modules"),
    );
    if is_installed(&pinned, &installed) {
        return Ok(Ok(()));
    }
    let prefix = folder.display();
    let install = format!("ci --ignore-scripts --no-audit --no-fund --prefix {prefix}");
    match workspace.output("npm", &install) {
        Ok(_) => note_installed(&pinned, &installed).map(Ok),
        Err(error) if error.contains("EINTEGRITY") => Err(error),
        Err(error) => {
            let line = error.lines().next().unwrap_or_default();
            Ok(Err(format!("npm cannot be reached: {line}")))
        }
    }
}

/// Returns whether these pinned versions are those that a folder has.
fn is_installed(pinned: &Path, folder: &Path) -> bool {
    let (wanted, found) = (fs::read(pinned), fs::read(folder.join("installed")));
    matches!((wanted, found), (Ok(wanted), Ok(found)) if wanted == found)
}

/// Notes that a folder has these pinned versions.
fn note_installed(pinned: &Path, folder: &Path) -> Result<(), String> {
    let noted = fs::copy(pinned, folder.join("installed"));
    noted
        .map(drop)
        .map_err(|error| format!("{}: {error}", folder.display()))
}

/// A program that trades for minutes, and is installed for as long.
struct Slow {
    package: &'static str,
    script: &'static str,
    /// The oldest Python that it installs with is 3 and this.
    minor: u32,
}

const SLOW: [Slow; 2] = [
    Slow {
        package: "nautilus_trader==1.231.0",
        script: "nautilus.py",
        minor: 12,
    },
    Slow {
        package: "freqtrade==2026.9",
        script: "freqtrade_bot.py",
        minor: 11,
    },
];

/// Has the five programs trade, then those that take minutes. Says which are skipped, and why.
///
/// # Errors
/// One does not trade as it should, or the server cannot be built.
pub(crate) fn for_longer(workspace: &Workspace) -> Result<(), String> {
    let skipped = |why: &str| workspace.say(format_args!("skipped: {why}"));
    if let Outcome::Skipped(why) = trade(workspace, 20)? {
        skipped(&why)?;
    }
    testing::build_program(workspace)?;
    for slow in &SLOW {
        let folder = workspace.target.join("clients").join(slow.script);
        let python = match slow.install(workspace, &folder) {
            Ok(python) => python,
            Err(why) => {
                skipped(&format!("{}: {why}", slow.package))?;
                continue;
            }
        };
        let run = folder.join("run");
        let _ = fs::remove_dir_all(&run);
        let mut command = Command::new(python);
        command
            .arg(workspace.root.join(SOURCES).join(slow.script))
            .arg(workspace.target.join("debug/thalweg"))
            .arg(&run)
            .current_dir(&folder);
        workspace.run(&mut command)?;
    }
    Ok(())
}

impl Slow {
    /// Installs the package in a folder of its own. Returns its Python, or why it cannot be had.
    fn install(&self, workspace: &Workspace, folder: &Path) -> Result<PathBuf, String> {
        let minor = self.minor;
        let is_new = |python: &PathBuf| {
            // No blanks: the line is split at them.
            let version =
                format!("-c __import__('sys').exit(__import__('sys').version_info<(3,{minor}))");
            workspace.works(&python.display().to_string(), &version)
        };
        let named = (minor..20).map(|minor| PathBuf::from(format!("python3.{minor}")));
        let home = env::var_os("HOME").unwrap_or_default();
        let by_pyenv = fs::read_dir(Path::new(&home).join(".pyenv/versions"));
        let by_pyenv = by_pyenv.into_iter().flatten().flatten();
        let by_pyenv = by_pyenv.map(|entry| entry.path().join("bin/python3"));
        let all = [PathBuf::from("python3")].into_iter().chain(named);
        let found = all.chain(by_pyenv).find(is_new);
        let found = found.ok_or_else(|| format!("no Python from 3.{minor} on"))?;
        let shown = folder.display();
        workspace.output(&found.display().to_string(), &format!("-m venv {shown}"))?;
        let python = folder.join("bin/python");
        let install = format!("-m pip install --quiet {}", self.package);
        let installed = workspace.output(&python.display().to_string(), &install);
        let last = |error: String| error.lines().last().unwrap_or_default().to_owned();
        installed.map(|_| python).map_err(last)
    }
}
