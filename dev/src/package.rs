//! The crates as `cargo publish` would pack them: what is in them, and that the code of the guide
//! compiles with nothing but them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

use crate::blocks::modules;
use crate::builds::libraries;
use crate::plan::{Outcome, Step};
use crate::tidy::policy::PACKED_FILES;
use crate::workspace::{Scratch, Workspace};

/// The step of the gate.
pub(crate) const STEP: Step = Step {
    name: "package",
    summary: "packed crates hold licences and README; the guide compiles with them alone",
    has_own_folder: false,
    run,
};

fn run(workspace: &Workspace) -> Result<Outcome, String> {
    for (name, folder) in published(&workspace.root)? {
        let list = workspace
            .output(
                "cargo",
                &format!("package --list --allow-dirty --package {name}"),
            )
            .map_err(|error| format!("{name}: {error}"))?;
        for file in PACKED_FILES {
            if !list.lines().any(|line| line == *file) {
                let folder = folder.display();
                return Err(format!(
                    "{name}: its package has no {file}; put it into {folder}"
                ));
            }
        }
        workspace.say(format_args!("{name}: {} files", list.lines().count()))?;
        let manifest = folder.join("Cargo.toml");
        let text = read(&workspace.root.join(&manifest))?;
        let program = workspace.root.join(folder.join("src/lib.rs"));
        let source = fs::read_to_string(program).unwrap_or_default();
        if let Some(missing) = undescribed(&text, &source) {
            return Err(format!("{}: it has no `{missing}`", manifest.display()));
        }
    }
    compile_alone(workspace)?;
    Ok(Outcome::Passed)
}

/// Beginnings of lines of a manifest by which a registry describes a crate, and makes its
/// documentation.
const DESCRIBED_BY: [&str; 7] = [
    "description",
    "readme",
    "categories",
    "keywords",
    "rust-version",
    "[package.metadata.docs.rs]",
    "targets",
];

/// The line of a library with features: items say which feature they need.
const BADGES: &str = "#![cfg_attr(docsrs, feature(doc_cfg))]";

/// Returns what a manifest, or the library's first file, does not have of that.
fn undescribed(manifest: &str, library: &str) -> Option<&'static str> {
    let lacks = |text: &str, begin: &str| !text.lines().any(|line| line.starts_with(begin));
    let missing = DESCRIBED_BY.iter().find(|key| lacks(manifest, key));
    let needs_badges = !library.is_empty() && !lacks(manifest, "[features]");
    let has_none = needs_badges && lacks(library, BADGES);
    missing.copied().or(has_none.then_some(BADGES))
}

/// Name and folder of every crate that may be published.
pub(crate) fn published(root: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let mut found = Vec::new();
    let crates = fs::read_dir(root.join("crates")).map_err(|error| format!("crates: {error}"))?;
    for entry in crates {
        let folder = entry.map_err(|error| error.to_string())?.path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else {
            continue;
        };
        if manifest
            .lines()
            .any(|line| line.trim() == "publish = false")
        {
            continue;
        }
        if let Some(name) = folder.file_name().and_then(|name| name.to_str()) {
            let inside = folder.strip_prefix(root).unwrap_or(&folder).to_owned();
            found.push((name.to_owned(), inside));
        }
    }
    found.sort();
    Ok(found)
}

/// A crate for rings alone, without features.
const RINGS: &str = "use thalweg::ring::{Layout, MpmcRing, spsc};\n\npub fn rings() {\n    \
    let (mut tx, mut rx) = spsc(4, Layout::Packed).expect(\"a small ring\");\n    \
    tx.try_push(1).expect(\"there is room\");\n    assert_eq!(rx.try_pop(), Ok(1));\n    \
    assert!(MpmcRing::<u8>::new(4, Layout::Packed).is_ok());\n}\n";

/// An empty folder with the packed crates, and crates that depend on nothing of ours but these.
pub(crate) struct Alone<'w> {
    workspace: &'w Workspace,
    folder: Scratch,
    target: PathBuf,
}

impl<'w> Alone<'w> {
    /// Packs the crates and unpacks them into a new folder.
    ///
    /// # Errors
    /// Cargo, tar or the file system fails.
    pub(crate) fn new(workspace: &'w Workspace) -> Result<Self, String> {
        let folder = Scratch(env::temp_dir().join(format!("thalweg-packed-{}", process::id())));
        let target = workspace.target.join("packed");
        let mut pack = workspace.cargo("package --quiet --allow-dirty --no-verify --target-dir");
        pack.arg(&target);
        for name in libraries() {
            pack.args(["--package", name]);
        }
        workspace.run(&mut pack)?;
        let crates = folder.0.join("crates");
        fs::create_dir_all(&crates).map_err(|error| format!("{}: {error}", crates.display()))?;
        for name in libraries() {
            let file = target.join(format!("package/{name}-{VERSION}.crate"));
            let mut unpack = workspace.command("tar");
            // Files in packages are of 2006. Without times of today cargo would take what it
            // compiled of them in an earlier run.
            workspace.run(unpack.arg("-xzmf").arg(file).arg("-C").arg(&crates))?;
        }
        Ok(Self {
            workspace,
            folder,
            target,
        })
    }

    /// Writes a crate with the code of every page about these crates: chapters of the guide, with
    /// the crates that they migrate from, and the READMEs in the packages.
    ///
    /// # Errors
    /// A page cannot be read or has no code, or the crate cannot be written.
    pub(crate) fn write_pages(&self) -> Result<(), String> {
        let guide = self.workspace.root.join("docs/guide");
        let readmes = libraries().map(|name| {
            let place = format!("crates/{name}-{VERSION}/README.md");
            (place.clone(), self.folder.0.join(place))
        });
        let chapters = CHAPTERS.map(|name| (name.to_owned(), guide.join("src").join(name)));
        let mut source = "//! Pages.\n#![allow(warnings)]\n".to_owned();
        for (page, path) in chapters.into_iter().chain(readmes) {
            source += &modules(&page, &read(&path)?)?;
        }
        self.write(&dependencies(&read(&guide.join("Cargo.toml"))?), &source)
    }

    /// Writes the crate's manifest, with its dependencies, and its only source file.
    fn write(&self, dependencies: &str, source: &str) -> Result<(), String> {
        let patches: String = libraries()
            .map(|name| format!("{name} = {{ path = \"crates/{name}-{VERSION}\" }}\n"))
            .collect();
        let manifest = format!(
            "[package]\nname = \"thalweg-pages\"\nedition = \"2024\"\nrust-version = \"{OLDEST}\"\n\
             [workspace]\n[dependencies]\n{dependencies}[patch.crates-io]\n{patches}"
        );
        let folder = &self.folder.0;
        let write = || {
            fs::create_dir_all(folder.join("src"))?;
            // The versions that the workspace is tested with.
            fs::copy(
                self.workspace.root.join("Cargo.lock"),
                folder.join("Cargo.lock"),
            )?;
            fs::write(folder.join("Cargo.toml"), manifest)?;
            fs::write(folder.join("src/lib.rs"), source)
        };
        write().map_err(|error| format!("{}: {error}", folder.display()))
    }

    /// Returns cargo, to be run in the folder.
    pub(crate) fn cargo(&self, line: &str) -> Command {
        let mut cargo = self.workspace.cargo(line);
        cargo
            .current_dir(&self.folder.0)
            .env("CARGO_TARGET_DIR", self.target.join("build"));
        cargo
    }
}

/// Compiles, with the packed crates and what these need from the registry, rings without features,
/// then the code of every page. Clippy finds what the library of the oldest Rust does not have.
fn compile_alone(workspace: &Workspace) -> Result<(), String> {
    let alone = Alone::new(workspace)?;
    let without = format!("thalweg = {{ version = \"{VERSION}\", default-features = false }}\n");
    alone.write(&without, RINGS)?;
    workspace.compile(&mut alone.cargo("check --quiet"))?;
    if !workspace.works("clippy-driver", "--version") {
        workspace.say("without clippy, what is newer than the oldest Rust is not found")?;
        alone.write_pages()?;
        return workspace.compile(&mut alone.cargo("check --quiet"));
    }
    let lint = || alone.cargo(LINT);
    alone.write("", NEWER)?;
    let output = lint()
        .output()
        .map_err(|error| format!("clippy: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || !said.contains("current MSRV") {
        return Err(format!(
            "clippy lets pass what is newer than {OLDEST}: {said}"
        ));
    }
    alone.write_pages()?;
    workspace.compile(&mut lint())
}

/// The command that compiles, and finds what is newer than a crate's `rust-version`.
const LINT: &str = "clippy --quiet -- --allow clippy::all --deny clippy::incompatible_msrv";

/// A crate that the oldest Rust cannot compile.
const NEWER: &str = "pub fn lock(file: &std::fs::File) {\n    let _ = file.lock();\n}\n";

/// The chapters of the guide that need no other crates of ours.
const CHAPTERS: [&str; 12] = [
    "start.md",
    "channels.md",
    "pipelines.md",
    "bus.md",
    "tasks.md",
    "journal.md",
    "measuring.md",
    "tools.md",
    "from_crossbeam.md",
    "from_tokio.md",
    "from_flume.md",
    "from_disruptor.md",
];

/// Returns the dependencies of the guide, without those that are not packed.
fn dependencies(manifest: &str) -> String {
    let section = manifest
        .split("[dev-dependencies]\n")
        .nth(1)
        .unwrap_or_default();
    let name = |line: &str| line.split([' ', '.']).next().unwrap_or_default().to_owned();
    let lines = section.lines().take_while(|line| !line.is_empty());
    let needed = lines.filter(|line| {
        !line.starts_with("thalweg") || libraries().any(|library| library == name(line))
    });
    let needed = needed.map(|line| {
        let version = if line.starts_with("zerocopy") {
            "0.8"
        } else {
            VERSION
        };
        let version = format!("version = \"{version}\"");
        line.replace(".workspace = true", &format!(" = {{ {version} }}"))
            .replace("workspace = true", &version)
            + "\n"
    });
    needed.collect()
}

/// The version of all crates.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The oldest Rust of the packed crates.
const OLDEST: &str = "1.88";

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_to_publish_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let found = published(root).unwrap();
        let thalweg = ("thalweg".to_owned(), PathBuf::from("crates/thalweg"));
        assert!(found.contains(&thalweg), "{found:?}");
        assert!(libraries().all(|name| found.iter().any(|(known, _)| known == name)));
        assert!(!found.iter().any(|(name, _)| {
            ["dev", "thalweg-compare", "counts", "guide"].contains(&name.as_str())
        }));
    }

    #[test]
    fn what_a_manifest_lacks_is_named() {
        let whole: String = DESCRIBED_BY.map(|key| format!("{key} = 1\n")).concat();
        assert_eq!(undescribed(&whole, "//! A.\n"), None);
        for key in DESCRIBED_BY {
            let part = whole.replace(&format!("{key} = 1\n"), "");
            assert_eq!(undescribed(&part, ""), Some(key));
        }
        let featured = whole + "[features]\n";
        assert_eq!(undescribed(&featured, "//! A.\n"), Some(BADGES));
        assert_eq!(undescribed(&featured, BADGES), None);
    }

    #[test]
    fn chapters_without_code_or_with_other_crates_are_left_out() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide");
        for entry in fs::read_dir(folder.join("src")).expect("chapters") {
            let entry = entry.expect("a chapter");
            let text = fs::read_to_string(entry.path()).expect("its text");
            let needs_others = text.contains("thalweg_exchange") || text.contains("thalweg_client");
            let is_packed = text.contains("```rust") && !needs_others;
            let name = entry.file_name();
            let is_listed = CHAPTERS.iter().any(|chapter| **chapter == *name);
            assert_eq!(is_listed, is_packed, "{}", entry.path().display());
        }
    }

    #[test]
    fn dependencies_are_those_of_the_guide_with_versions() {
        let manifest = "[lib]\n\n[dev-dependencies]\nflume = \"0.12\"\n\
            thalweg = { workspace = true, features = [\"metrics\"] }\n\
            thalweg-client.workspace = true\nthalweg-hash.workspace = true\n\
            zerocopy = { workspace = true, features = [\"derive\"] }\n\n[lints]\n";
        let lines = [
            "flume = \"0.12\"",
            &format!("thalweg = {{ version = \"{VERSION}\", features = [\"metrics\"] }}"),
            &format!("thalweg-hash = {{ version = \"{VERSION}\" }}"),
            "zerocopy = { version = \"0.8\", features = [\"derive\"] }\n",
        ];
        assert_eq!(dependencies(manifest), lines.join("\n"));
    }
}
