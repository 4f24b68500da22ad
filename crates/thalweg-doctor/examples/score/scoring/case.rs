//! The table of the cases.

use serde::Deserialize;
use std::fmt;
use std::path::Path;

/// Where a case's program stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Folder {
    /// Whoever writes rules may look at these.
    Known,
    /// Written after the rules, to see whether they hold for other programs.
    HeldOut,
}

impl Folder {
    /// Its name in the file system and in the table.
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

/// A program, and what slows it down. In its commands, `{folder}` is the folder of its source,
/// `{out}` what its build writes, `{python}` an interpreter that every user can start, and
/// `{seconds}` how long it is to run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// Unique in the table.
    pub(crate) name: String,
    /// Where it stands.
    pub(crate) folder: Folder,
    /// What it is written in.
    pub(crate) language: String,
    /// How it is built; empty if it need not be.
    #[serde(default)]
    pub(crate) build: Vec<String>,
    /// How it is run.
    pub(crate) run: Vec<String>,
    /// A peer that runs beside it, outside of what the doctor sees. It prints `ready` and is ended.
    #[serde(default)]
    pub(crate) beside: Vec<String>,
    /// Ids of verdicts: the right one, then others that are not wrong.
    pub(crate) expected: Vec<String>,
}

/// Reads `cases.json` of a folder.
///
/// # Errors
/// The file is not there, is not such a table, or has a case without a verdict or a name twice.
pub(crate) fn read(folder: &Path) -> Result<Vec<Case>, String> {
    let path = folder.join("cases.json");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    parse(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Reads the text of such a table.
///
/// # Errors
/// It is none, or has a case without a verdict or a name twice.
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
