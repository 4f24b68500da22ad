//! Where the workspace is, and how commands are run in it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fmt, fs, iter};

use crate::failures::failures;

/// The workspace that `cargo dev` was called in.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Where cargo builds: `CARGO_TARGET_DIR`, or `target`.
    pub(crate) target: PathBuf,
    /// Where a step that has company says what it has to say, and its commands too.
    log: Option<File>,
    /// How long cargo has compiled for a step, before it ran anything.
    compiling: Mutex<Duration>,
}

impl Workspace {
    /// The nearest folder at or above `from` whose manifest is a workspace's.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn around(from: &Path) -> Result<Self, String> {
        let is_root = |folder: &&Path| {
            let manifest = fs::read_to_string(folder.join("Cargo.toml"));
            manifest.is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
        };
        let Some(root) = from.ancestors().find(is_root) else {
            return Err(format!("no workspace at or above {}", from.display()));
        };
        let target = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        Ok(Self {
            root: root.to_owned(),
            target: root.join(target),
            log: None,
            compiling: Mutex::default(),
        })
    }

    /// Returns the same workspace for a step of its own, with all output kept in a new file, which
    /// can be read meanwhile.
    ///
    /// # Errors
    /// The file, or its folder, cannot be made.
    pub(crate) fn logging_to(&self, path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        let mut workspace = self.for_a_step();
        // The commands write to it as well: everybody appends.
        File::create(path)?;
        workspace.log = Some(File::options().append(true).open(path)?);
        Ok(workspace)
    }

    /// Returns the same workspace for a step of its own.
    pub(crate) fn for_a_step(&self) -> Self {
        Self {
            root: self.root.clone(),
            target: self.target.clone(),
            log: None,
            compiling: Mutex::default(),
        }
    }

    /// Returns how long cargo has compiled in [`compile`](Self::compile) and
    /// [`run_tests`](Self::run_tests).
    pub(crate) fn compiling(&self) -> Duration {
        *lock(&self.compiling)
    }

    /// Runs a command that does nothing but compile.
    ///
    /// # Errors
    /// As of `run`.
    pub(crate) fn compile(&self, command: &mut Command) -> Result<(), String> {
        let start = Instant::now();
        let done = self.run(command);
        *lock(&self.compiling) += start.elapsed();
        done
    }

    /// Runs a command that does nothing but compile, and returns what it says on stderr.
    ///
    /// # Errors
    /// As of `run`.
    pub(crate) fn compile_and_listen(&self, command: &mut Command) -> Result<String, String> {
        let start = Instant::now();
        let output = command
            .output()
            .map_err(|error| say(command, &error.to_string()))?;
        *lock(&self.compiling) += start.elapsed();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        self.say(said.trim_end())?;
        ended(command, Ok(output.status)).map(|()| said)
    }

    /// Runs a command that does nothing but compile, and hands every line of its stdout to `see`.
    ///
    /// # Errors
    /// As of `run`.
    pub(crate) fn compile_and_watch(
        &self,
        command: &mut Command,
        see: impl FnMut(&str),
    ) -> Result<(), String> {
        let start = Instant::now();
        let child = self.spawn(command.stdout(Stdio::piped()))?;
        let output = child.wait_with_output();
        *lock(&self.compiling) += start.elapsed();
        let output = output.map_err(|error| say(command, &error.to_string()))?;
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .for_each(see);
        ended(command, Ok(output.status))
    }

    /// Compiles what `cargo test` needs, then runs it. `command` makes the command, without what
    /// would follow `--`; `filter` follows it. Returns how many tests ran.
    ///
    /// # Errors
    /// As of `run`, or no test ran.
    pub(crate) fn run_tests(
        &self,
        command: impl Fn() -> Command,
        filter: &[&str],
    ) -> Result<Tally, String> {
        self.compile(command().arg("--no-run"))?;
        let (mut tally, mut said) = (Tally::default(), String::new());
        let mut command = command();
        command
            .arg("--")
            .args(filter.iter().filter(|name| !name.is_empty()));
        let watched = self.run_watched(&mut command, |line| {
            tally.see(line);
            said.extend([line, "\n"]);
        });
        watched.map_err(|why| why + &failures(&said))?;
        if tally.passed == 0 {
            return Err("no test ran".to_owned());
        }
        Ok(tally)
    }

    /// Where output goes that is not for another program.
    fn output_to(&self) -> Box<dyn Write + '_> {
        match &self.log {
            Some(log) => Box::new(log),
            None => Box::new(io::stdout().lock()),
        }
    }

    /// Prints a line, or several.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn say(&self, lines: impl fmt::Display) -> Result<(), String> {
        // In one piece, so that the lines of two programs do not mix.
        let text = format!("{lines}\n");
        let written = self.output_to().write_all(text.as_bytes());
        written.map_err(|error| error.to_string())
    }

    /// A command run at the root.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// The cargo that runs this program, with the arguments that `line` holds between blanks.
    pub(crate) fn cargo(&self, line: &str) -> Command {
        let program = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut command = self.command(&program);
        command.args(line.split_whitespace());
        // The outer cargo describes this package. The build script of `ring` looks at that, and
        // would run again after each `cargo test`.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// Does the command start, and end well? Its output is dropped.
    pub(crate) fn works(&self, program: &str, line: &str) -> bool {
        let mut command = self.command(program);
        command
            .args(line.split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Returns the output of a command, trimmed.
    ///
    /// # Errors
    /// It does not start or does not end well; the text is what it said on stderr.
    pub(crate) fn output(&self, program: &str, line: &str) -> Result<String, String> {
        let mut command = self.command(program);
        let output = command.args(line.split_whitespace()).output();
        let output = output.map_err(|error| format!("{program}: {error}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }

    /// Runs a command with its output let through.
    ///
    /// # Errors
    /// It does not start, or ends with another code than 0.
    pub(crate) fn run(&self, command: &mut Command) -> Result<(), String> {
        if let Some(log) = &self.log {
            let copy = log.try_clone().map_err(|error| error.to_string())?;
            command.stdout(copy);
        }
        let status = self.spawn(command)?.wait();
        ended(command, status)
    }

    /// Runs a command, hands every line of its stdout to `see`, and lets it through unchanged.
    ///
    /// # Errors
    /// As of `run`, or our own output cannot be written to.
    pub(crate) fn run_watched(
        &self,
        command: &mut Command,
        mut see: impl FnMut(&str),
    ) -> Result<(), String> {
        let failed = |error: io::Error| error.to_string();
        let mut child = self.spawn(command.stdout(Stdio::piped()))?;
        let lines = child.stdout.take().ok_or("no stdout")?;
        let mut lines = BufReader::new(lines);
        let mut line = Vec::new();
        let mut output = self.output_to();
        while lines.read_until(b'\n', &mut line).map_err(failed)? > 0 {
            output
                .write_all(&line)
                .and_then(|()| output.flush())
                .map_err(failed)?;
            see(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
        ended(command, child.wait())
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, String> {
        if let Some(log) = &self.log {
            let copy = log.try_clone().map_err(|error| error.to_string())?;
            command.stderr(copy);
        }
        command
            .spawn()
            .map_err(|error| say(command, &error.to_string()))
    }
}

/// An error unless the command ended with 0.
pub(crate) fn ended(command: &Command, status: io::Result<ExitStatus>) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(say(command, &status.to_string())),
        Err(error) => Err(say(command, &error.to_string())),
    }
}

/// The command as one would type it, and what became of it.
fn say(command: &Command, what: &str) -> String {
    let program = Path::new(command.get_program());
    let name = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy();
    let args = command.get_args().map(|arg| arg.to_string_lossy());
    let words: Vec<_> = iter::once(name).chain(args).collect();
    format!("`{}`: {what}", words.join(" "))
}

/// Tests that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// Adds a closing line of the test runner; other lines do not count.
    pub(crate) fn see(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else {
            return;
        };
        let count = |what: &str| {
            let part = counts
                .split(['.', ';'])
                .map(str::trim)
                .find(|part| part.ends_with(what));
            part.and_then(|part| part.split(' ').next()?.parse::<u64>().ok())
                .unwrap_or(0)
        };
        self.passed += count(" passed");
        self.failed += count(" failed");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// A folder that is removed again.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.0);
        if let Err(error) = removed {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The platform that a compiler is for, by what it says of itself.
pub(crate) fn host_of(version: &str) -> &str {
    let mut lines = version.lines();
    lines
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_found_from_inside_it() {
        let dev = Path::new(env!("CARGO_MANIFEST_DIR"));
        let workspace = Workspace::around(&dev.join("src")).unwrap();
        assert_eq!(workspace.root, dev.parent().unwrap());
        let error = Workspace::around(Path::new("/")).err().unwrap();
        assert_eq!(error, "no workspace at or above /");
    }

    #[test]
    fn a_command_that_fails_is_named_with_its_arguments() {
        let workspace = Workspace::around(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let error = workspace.run(&mut workspace.command("no-such-program"));
        let error = error.unwrap_err();
        assert!(error.starts_with("`no-such-program`: "), "{error}");
        let mut command = workspace.cargo("no-such-command -q");
        let error = workspace.run(command.stderr(Stdio::null())).unwrap_err();
        assert!(
            error.starts_with("`cargo no-such-command -q`: exit status: "),
            "{error}"
        );
    }

    #[test]
    fn output_is_watched_line_by_line() {
        let workspace = Workspace::around(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let mut lines = Vec::new();
        let mut command = workspace.cargo("--version");
        workspace
            .run_watched(&mut command, |line| lines.push(line.to_owned()))
            .unwrap();
        assert!(lines[0].starts_with("cargo "), "{lines:?}");
    }
}
