//! The table of the cases.

use serde::Deserialize;
use std::fmt;
use std::path::Path;

/// The folder of a case's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Folder {
    /// Authors of rules may look at these cases.
    Known,
    /// These cases were written after the rules, to check whether the rules hold for other
    /// programs.
    HeldOut,
}

impl Folder {
    /// Returns the name in the file system and in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Folder::Known => "known",
            Folder::HeldOut => "held-out",
        }
    }
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A program, and the cause that slows it down. In its commands, `{folder}` is the folder of its
/// source, `{out}` the output of its build, `{python}` an interpreter that every user can start,
/// and `{seconds}` how long it is to run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The name, which is unique in the table.
    pub(crate) name: String,
    /// The folder of its program.
    pub(crate) folder: Folder,
    /// The language in which it is written.
    pub(crate) language: String,
    /// The command that builds it; empty if it need not be built.
    #[serde(default)]
    pub(crate) build: Vec<String>,
    /// The command that runs it.
    pub(crate) run: Vec<String>,
    /// The command of a peer that runs beside it, outside of what the doctor observes. The peer
    /// prints `ready`, and is ended after the run.
    #[serde(default)]
    pub(crate) beside: Vec<String>,
    /// The ids of verdicts: the right one, then others that are not wrong.
    pub(crate) expected: Vec<String>,
}

/// Reads `cases.json` of a folder.
///
/// # Errors
/// Returns an error if the file does not exist, if it is not such a table, or if a case has no
/// verdict or a name occurs twice.
pub(crate) fn read(folder: &Path) -> Result<Vec<Case>, String> {
    let path = folder.join("cases.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Parses the text of such a table.
///
/// # Errors
/// Returns an error if the text is not a table, or if a case has no verdict or a name occurs twice.
pub(crate) fn parse(text: &str) -> Result<Vec<Case>, String> {
    let cases: Vec<Case> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    for (number, case) in cases.iter().enumerate() {
        if case.expected.is_empty() || case.run.is_empty() {
            return Err(format!("case {} lacks a command or a verdict", case.name));
        } else if cases[..number].iter().any(|other| other.name == case.name) {
            return Err(format!("two cases are called {}", case.name));
        }
    }
    Ok(cases)
}
