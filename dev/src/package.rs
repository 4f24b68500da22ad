//! The crates as `cargo publish` would pack them: what is in them, and that a program which has
//! nothing but them compiles.

use std::path::{Path, PathBuf};
use std::{env, fs, io, process};

use crate::plan::{Outcome, Step};
use crate::readme;
use crate::tidy::policy::PACKED_FILES;
use crate::workspace::{Scratch, Workspace};

/// The step of the gate.
pub(crate) const STEP: Step = Step {
    name: "package",
    summary: "packed crates hold licences and README, and compile in an empty folder alone",
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
        let text = fs::read_to_string(workspace.root.join(&manifest));
        let text = text.map_err(|error| format!("{}: {error}", manifest.display()))?;
        for key in DESCRIBED_BY {
            if !text.lines().any(|line| line.starts_with(key)) {
                return Err(format!("{}: it has no `{key}`", manifest.display()));
            }
        }
    }
    compile_alone(workspace)?;
    Ok(Outcome::Passed)
}

/// The keys by which a registry describes a crate.
const DESCRIBED_BY: [&str; 4] = ["description", "categories", "keywords", "rust-version"];

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

/// Crates that are packed and compiled without the rest of the workspace.
const ALONE: [&str; 5] = [
    "thalweg",
    "thalweg-measure",
    "thalweg-hash",
    "thalweg-journal",
    "thalweg-task",
];

/// A program for rings alone, without features.
const RINGS: &str = "use thalweg::ring::{Layout, Ticket, spsc};\n\nfn main() {\n    \
    let (mut tx, mut rx) = spsc(4, Layout::Packed).expect(\"a small ring\");\n    \
    tx.try_push(1).expect(\"there is room\");\n    assert_eq!(rx.try_pop(), Ok(1));\n    \
    assert!(Ticket::<u8>::new(4, Layout::Packed).is_ok());\n}\n";

/// Compiles programs in an empty folder, with the packed crates and what these need from the
/// registry: rings without features, then what the README of each crate shows.
fn compile_alone(workspace: &Workspace) -> Result<(), String> {
    let folder = env::temp_dir().join(format!("thalweg-packed-{}", process::id()));
    let scratch = Scratch(folder);
    let target = workspace.target.join("packed");
    let mut pack = workspace.cargo("package --quiet --allow-dirty --no-verify --target-dir");
    pack.arg(&target);
    for name in ALONE {
        pack.args(["--package", name]);
    }
    workspace.run(&mut pack)?;
    let crates = scratch.0.join("crates");
    let failed = |error: io::Error| format!("{}: {error}", scratch.0.display());
    fs::create_dir_all(&crates).map_err(failed)?;
    for name in ALONE {
        let file = target.join(format!("package/{name}-{VERSION}.crate"));
        let mut unpack = workspace.command("tar");
        workspace.run(unpack.arg("-xzf").arg(file).arg("-C").arg(&crates))?;
    }
    write_program(
        workspace,
        &scratch.0,
        &["thalweg"],
        ", default-features = false",
    )?;
    let source = scratch.0.join("src/main.rs");
    fs::write(&source, RINGS).map_err(failed)?;
    check(workspace, &scratch.0, &target)?;
    write_program(workspace, &scratch.0, &ALONE, "")?;
    for name in ALONE {
        let page = crates.join(format!("{name}-{VERSION}/README.md"));
        let page = fs::read_to_string(page).map_err(failed)?;
        for program in readme::programs(&page)? {
            fs::write(&source, program).map_err(failed)?;
            check(workspace, &scratch.0, &target)?;
        }
    }
    Ok(())
}

/// The crate by which records of a journal are derived.
const RECORDS: &str = "zerocopy = { version = \"0.8\", features = [\"derive\"] }\n";

/// The version of all crates.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Writes the manifest of a program that depends on packed crates.
fn write_program(
    workspace: &Workspace,
    folder: &Path,
    names: &[&str],
    more: &str,
) -> Result<(), String> {
    let dependencies = names
        .iter()
        .map(|name| format!("{name} = {{ version = \"{VERSION}\"{more} }}\n"));
    let patches = ALONE
        .iter()
        .map(|name| format!("{name} = {{ path = \"crates/{name}-{VERSION}\" }}\n"));
    let manifest = format!(
        "[package]\nname = \"alone\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{}{}\
         [patch.crates-io]\n{}",
        dependencies.collect::<String>(),
        if names.len() > 1 { RECORDS } else { "" },
        patches.collect::<String>()
    );
    let write = || {
        fs::create_dir_all(folder.join("src"))?;
        // The versions that the workspace is tested with.
        fs::copy(workspace.root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
        fs::write(folder.join("Cargo.toml"), manifest)
    };
    write().map_err(|error| format!("{}: {error}", folder.display()))
}

fn check(workspace: &Workspace, folder: &Path, target: &Path) -> Result<(), String> {
    let mut check = workspace.cargo("check --quiet");
    check
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target.join("build"));
    workspace.compile(&mut check)
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
        assert!(
            ALONE
                .iter()
                .all(|name| found.iter().any(|(known, _)| known == name))
        );
        assert!(!found.iter().any(|(name, _)| {
            ["dev", "thalweg-compare", "counts", "guide"].contains(&name.as_str())
        }));
    }
}
