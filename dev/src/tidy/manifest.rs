//! Manifests: which way the arrows between the crates point, peers, licence and lints.
//!
//! Reads the subset of TOML that a Cargo manifest is written in: sections, and `key = value` with
//! the value's first line.

use super::policy::{
    ARROWS, COMPARING, FOR_TESTS, LICENCE, PEERS, PEERS_AT_WORK, WITHOUT_DEPENDENCIES,
};
use super::rule::{Findings, Rule};
use super::source::{Source, Tree};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "crate-order",
        summary: "a crate depends only on those that the design's arrows allow; dev on nothing",
        check: crate_order,
    },
    Rule {
        name: "peer-dependency",
        summary: "only `compare` depends on the crates that it measures",
        check: peer_dependency,
    },
    Rule {
        name: "inherits",
        summary: "every crate inherits the workspace's licence and lints, and those ask for docs",
        check: inherits,
    },
];

/// One `key = value` of a manifest.
struct Entry<'a> {
    section: &'a str,
    key: &'a str,
    value: &'a str,
    line: usize,
}

/// A manifest's sections and entries.
pub(crate) struct Manifest<'a> {
    sections: Vec<(&'a str, usize)>,
    entries: Vec<Entry<'a>>,
}

impl<'a> Manifest<'a> {
    fn new(file: &'a Source) -> Self {
        let (mut sections, mut entries, mut section) = (Vec::new(), Vec::new(), "");
        for (line, text) in file.lines() {
            let text = text.trim();
            if text.starts_with('#') {
                continue;
            } else if let Some(header) = text.strip_prefix('[') {
                section = header.trim_start_matches('[').trim_end_matches(']');
                sections.push((section, line));
            } else if let Some((key, value)) = text.split_once('=') {
                entries.push(Entry {
                    section,
                    key: key.trim(),
                    value: value.trim(),
                    line,
                });
            }
        }
        Self { sections, entries }
    }

    /// The line of a section's header.
    pub(crate) fn section(&self, name: &str) -> Option<usize> {
        self.sections
            .iter()
            .find(|section| section.0 == name)
            .map(|section| section.1)
    }

    /// A value without its quotes.
    pub(crate) fn value(&self, section: &str, key: &str) -> Option<&'a str> {
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.section == section && entry.key == key)?;
        Some(entry.value.trim_matches('"'))
    }

    /// The name and line of every dependency, of whatever kind and target.
    pub(crate) fn dependencies(&self) -> Vec<(&'a str, usize)> {
        let mut found = Vec::new();
        for entry in self
            .entries
            .iter()
            .filter(|entry| entry.section.ends_with("dependencies"))
        {
            let name = entry.key.split('.').next().unwrap_or(entry.key);
            let renamed = entry.value.split("package = \"").nth(1);
            let renamed = renamed.and_then(|rest| rest.split('"').next());
            found.push((renamed.unwrap_or(name), entry.line));
        }
        for &(section, line) in &self.sections {
            if let Some((kind, name)) = section.rsplit_once('.')
                && kind.ends_with("dependencies")
            {
                found.push((self.value(section, "package").unwrap_or(name), line));
            }
        }
        found
    }
}

/// All manifests of the tree, the workspace's own too.
pub(crate) fn manifests(tree: &Tree) -> impl Iterator<Item = (&Source, Manifest<'_>)> {
    let files = tree.files.iter().filter(|file| file.name() == "Cargo.toml");
    files.map(|file| (file, Manifest::new(file)))
}

/// The manifests of crates, with the crate's name.
fn crates(tree: &Tree) -> impl Iterator<Item = (&Source, &str, Manifest<'_>)> {
    manifests(tree).filter_map(|(file, manifest)| {
        manifest
            .value("package", "name")
            .map(|name| (file, name, manifest))
    })
}

fn crate_order(tree: &Tree, findings: &mut Findings) {
    for (file, name, manifest) in crates(tree) {
        let Some((_, allowed)) = ARROWS.iter().find(|arrow| arrow.0 == name) else {
            findings.add(
                &file.path,
                1,
                format!("`{name}` has no place in the order of the crates"),
            );
            continue;
        };
        for (dependency, line) in manifest.dependencies() {
            let ours = ARROWS.iter().any(|arrow| arrow.0 == dependency);
            let is_allowed =
                dependency == FOR_TESTS || allowed.split(' ').any(|name| name == dependency);
            if name == WITHOUT_DEPENDENCIES || (ours && !is_allowed) {
                findings.add(
                    &file.path,
                    line,
                    format!("`{name}` may not depend on `{dependency}`"),
                );
            }
        }
    }
}

fn peer_dependency(tree: &Tree, findings: &mut Findings) {
    for (file, name, manifest) in crates(tree).filter(|krate| !COMPARING.contains(&krate.1)) {
        for (dependency, line) in manifest.dependencies() {
            let at_work =
                |(peer, crates): &(&str, &[&str])| *peer == dependency && crates.contains(&name);
            if PEERS.split(' ').any(|peer| peer == dependency) && !PEERS_AT_WORK.iter().any(at_work)
            {
                let allowed = COMPARING.join(" and ");
                let message = format!("`{name}` depends on `{dependency}`, only {allowed} may");
                findings.add(&file.path, line, message);
            }
        }
    }
}

fn inherits(tree: &Tree, findings: &mut Findings) {
    for (file, manifest) in manifests(tree) {
        let has = |section, key, value| manifest.value(section, key) == Some(value);
        if manifest.section("package").is_some()
            && !(has("package", "license.workspace", "true") && has("lints", "workspace", "true"))
        {
            let message = "no `license.workspace = true` and `[lints] workspace = true`";
            findings.add(&file.path, 1, message);
        }
        let Some(line) = manifest.section("workspace") else {
            continue;
        };
        if !has("workspace.package", "license", LICENCE) {
            findings.add(&file.path, line, format!("the licence is not `{LICENCE}`"));
        }
        let docs = manifest.value("workspace.lints.rust", "missing_docs");
        if docs.is_none_or(|level| level == "allow") {
            let message = "the workspace's lints do not name missing_docs";
            findings.add(&file.path, line, message);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rule::case::Case;

    pub(crate) fn cases() -> Vec<Case> {
        [order_cases(), peer_cases(), inherits_cases()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n\n{rest}")
    }

    fn order_cases() -> Vec<Case> {
        let rejects = |line, name, rest| {
            Case::rejects("crate-order", line, "a/Cargo.toml", &manifest(name, rest))
        };
        let accepts =
            |name, rest| Case::accepts("crate-order", "a/Cargo.toml", &manifest(name, rest));
        let renamed = "[dependencies]\nx = { path = \"..\", package = \"thalweg\" }\n";
        vec![
            rejects(
                5,
                "thalweg",
                "[dependencies]\nthalweg-exchange.workspace = true\n",
            ),
            rejects(
                5,
                "thalweg-measure",
                "[dev-dependencies]\nthalweg = { path = \"..\" }\n",
            ),
            rejects(4, "thalweg-hash", "[dependencies.thalweg]\npath = \"..\"\n"),
            rejects(5, "thalweg-doctor", renamed),
            rejects(
                5,
                "dev",
                "[target.\"cfg(unix)\".dependencies]\nlibc = \"1\"\n",
            ),
            rejects(1, "thalweg-unheard-of", ""),
            accepts(
                "thalweg",
                "[dependencies]\nthalweg-measure.workspace = true\n",
            ),
            accepts(
                "thalweg-cli",
                "[dependencies]\n# thalweg-cli = 1\nclap = \"4\"\n",
            ),
            accepts("dev", "[dependencies]\n"),
        ]
    }

    fn peer_cases() -> Vec<Case> {
        let path = "a/Cargo.toml";
        let depends = "[dev-dependencies]\ndisruptor = \"4\"\n";
        vec![
            Case::rejects("peer-dependency", 5, path, &manifest("thalweg", depends)),
            Case::accepts(
                "peer-dependency",
                path,
                &manifest("thalweg-compare", depends),
            ),
            Case::accepts("peer-dependency", path, &manifest("thalweg", "")),
        ]
    }

    fn inherits_cases() -> Vec<Case> {
        let rule = "inherits";
        let root = "[workspace]\n[workspace.package]\nlicense = \"MIT OR Apache-2.0\"\n\
            [workspace.lints.rust]\nmissing_docs = \"warn\"\n";
        let inherits = "[package]\nlicense.workspace = true\n[lints]\nworkspace = true\n";
        let rejects =
            |path, text: &str, from, to| Case::rejects(rule, 1, path, &text.replace(from, to));
        vec![
            rejects("a/Cargo.toml", inherits, ".workspace = true", " = \"MIT\""),
            rejects("a/Cargo.toml", inherits, "\nworkspace", "\nrust"),
            rejects("Cargo.toml", root, "MIT OR ", ""),
            rejects("Cargo.toml", root, "warn", "allow"),
            rejects("Cargo.toml", root, "missing_docs = \"warn\"\n", ""),
            Case::accepts(rule, "Cargo.toml", root),
            Case::accepts(rule, "a/Cargo.toml", inherits),
        ]
    }
}
