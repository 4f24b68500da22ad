//! Compilers of Debian's packages, unpacked into a folder of ours: with the sources of the standard
//! library for systems that this one is not, and older than the one that builds here.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{fs, io};

use crate::workspace::Workspace;

/// The package of the compiler.
const COMPILER: &str = "rustc-web";

/// Where its sources for `-Zbuild-std` are.
const SOURCES: &str = "rust-web-src";

/// A compiler in a folder of ours.
pub(super) struct Compiler {
    /// A script that starts it.
    pub(super) rustc: PathBuf,
    /// Its minor version: 96 is Rust 1.96.
    pub(super) minor: u32,
}

/// Returns Debian's newest compiler, with the sources of its standard library.
///
/// # Errors
/// The packages cannot be had, and why.
pub(super) fn newest(workspace: &Workspace) -> Result<Compiler, String> {
    let versions = versions(workspace)?;
    let newest = versions.iter().max_by_key(|version| minor(version));
    let version = newest.ok_or(format!("apt knows no {COMPILER}"))?;
    unpacked(workspace, version, true)
}

/// Returns Debian's newest compiler that is not newer than this minor version, from `least` on.
///
/// # Errors
/// There is none, or it cannot be had, and why.
pub(super) fn between(workspace: &Workspace, least: u32, most: u32) -> Result<Compiler, String> {
    let versions = versions(workspace)?;
    let old = versions.iter().filter(|version| {
        let minor = minor(version);
        (Some(least)..=Some(most)).contains(&minor)
    });
    let newest = old.max_by_key(|version| minor(version));
    let none = || format!("apt has no {COMPILER} from 1.{least} to 1.{most}");
    unpacked(workspace, newest.ok_or_else(none)?, false)
}

/// Returns 96 of `1.96.0+dfsg1-1`.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

/// Returns the versions of the compiler that apt can fetch.
fn versions(workspace: &Workspace) -> Result<Vec<String>, String> {
    let architecture = workspace.output("dpkg", "--print-architecture")?;
    if architecture != "amd64" {
        return Err(format!("for Debian on amd64, not on {architecture}"));
    }
    let known = || workspace.output("apt-cache", &format!("madison {COMPILER}"));
    let mut lines = known()?;
    if lines.is_empty() {
        // A new machine has no lists.
        workspace.output("apt-get", "update -qq -o Acquire::http::Timeout=20")?;
        lines = known()?;
    }
    Ok(read_versions(&lines))
}

/// Reads lines of `rustc-web | 1.96.0+dfsg1-1~deb12u2 | http://…`.
fn read_versions(lines: &str) -> Vec<String> {
    let version = |line: &str| Some(line.split('|').nth(1)?.trim().to_owned());
    lines.lines().filter_map(version).collect()
}

/// Unpacks the packages of a compiler, unless they are there.
fn unpacked(workspace: &Workspace, version: &str, with_sources: bool) -> Result<Compiler, String> {
    let minor = minor(version).ok_or(format!("{version} is no version"))?;
    let folder = workspace.target.join(format!("targets/rust-1.{minor}"));
    let compiler = Compiler {
        rustc: folder.join("rustc"),
        minor,
    };
    if compiler.rustc.is_file() {
        return Ok(compiler);
    }
    let library = format!("libstd-rust-web-1.{minor}");
    let about = workspace.output("apt-cache", &format!("show {library}={version}"))?;
    let llvm = read_llvm(&about).ok_or(format!("{library} needs no libllvm"))?;
    let mut packages = vec![llvm.to_owned()];
    let own = [COMPILER, &library, "libstd-rust-web-dev"];
    let sources = with_sources.then_some(SOURCES);
    packages.extend(
        own.into_iter()
            .chain(sources)
            .map(|name| format!("{name}={version}")),
    );
    workspace.say(format_args!("fetches {}", packages.join(" ")))?;
    fetch(workspace, &folder, &packages)?;
    write_script(&folder, &compiler.rustc)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(compiler)
}

/// Returns the name of the package with LLVM among those that a package depends on.
fn read_llvm(about: &str) -> Option<&str> {
    let depends = about
        .lines()
        .find_map(|line| line.strip_prefix("Depends: "))?;
    let mut names = depends.split(", ").filter_map(|one| one.split(' ').next());
    names.find(|name| name.starts_with("libllvm"))
}

/// Downloads packages, and unpacks them into a folder. Nothing is installed.
fn fetch(workspace: &Workspace, folder: &Path, packages: &[String]) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let mut download = workspace.command("apt-get");
    download
        .args(["-qq", "-o", "Acquire::http::Timeout=20", "download"])
        .args(packages)
        .current_dir(folder);
    let output = download
        .output()
        .map_err(|error| format!("apt-get: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let error = said.lines().find(|line| line.starts_with("E:"));
        return Err(error.unwrap_or("apt-get failed").to_owned());
    }
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            let mut unpack = workspace.command("dpkg-deb");
            workspace.run(
                unpack
                    .arg("-x")
                    .arg(&path)
                    .arg(folder)
                    .stdout(Stdio::null()),
            )?;
            fs::remove_file(&path).map_err(failed)?;
        }
    }
    Ok(())
}

/// Writes a script that starts the compiler with its libraries. With `THALWEG_FEATURES`, which
/// names features of the language and library that it has as unstable, crates of ours, and those
/// that need a newer compiler than it, get them.
fn write_script(folder: &Path, script: &Path) -> io::Result<()> {
    let usr = folder.join("usr");
    let usr = usr.display();
    let text = format!(
        r#"#!/bin/sh
export LD_LIBRARY_PATH={usr}/lib/x86_64-linux-gnu
features=$THALWEG_FEATURES
case $CARGO_PKG_NAME in
thalweg-task) features=${{features:+$features,extract_if}} ;;
thalweg*|hdrhistogram) ;;
*) features= ;;
esac
if [ -n "$features" ]; then
    set -- "-Zcrate-attr=feature($features)" -Aunused_features "$@"
fi
exec {usr}/bin/rustc "$@"
"#
    );
    let new = script.with_extension("new");
    fs::write(&new, text)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
    }
    fs::rename(&new, script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_says_is_read() {
        let lines = " rustc-web | 1.96.0+dfsg1-1~deb12u2 | http://a main amd64 Packages\n \
                     rustc-web | 1.85.0+dfsg3-1~deb12u3 | http://b main amd64 Packages";
        let versions = read_versions(lines);
        assert_eq!(
            versions,
            ["1.96.0+dfsg1-1~deb12u2", "1.85.0+dfsg3-1~deb12u3"]
        );
        assert_eq!(minor(&versions[1]), Some(85));
        let about = "Package: a\nDepends: libc6 (>= 2.36), libllvm22 (>= 1:22.1), libstdc++6\n";
        assert_eq!(read_llvm(about), Some("libllvm22"));
        assert_eq!(read_llvm("Package: a\n"), None);
    }
}
