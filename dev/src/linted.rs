//! The compiler of the test programs: it compiles a crate of ours; for the gate, clippy looks at
//! it, and rustdoc documents it.
//!
//! `cargo clippy` would look at the metadata of every dependency, which the test programs do not
//! need, and `cargo doc` again. Here cargo builds the test programs, with this program as the
//! compiler's wrapper; clippy and rustdoc use what was built for them. Their warnings are those of
//! the build, so cargo keeps and repeats them. The programs themselves come from rustc: clippy's
//! driver turns off the checks of null pointers and of alignment. Clippy does not look at a library
//! or program whose own tests are built: with these it looks at the same code.
//!
//! Where programs are there that were built from the same sources, it can also spare the compiler
//! everything but its checks: crates are no more than metadata, and those programs are copied.
//!
//! Integration tests are not optimised, even where the profile has their package optimised: what
//! they call is, and they take a fifth of the time to compile.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::OnceLock;
use std::{env, fs, io, process};

use crate::workspace::Workspace;

/// Set where this program is the wrapper; the value is the folder for what clippy writes, or empty
/// where it does not look.
const FOLDER: &str = "THALWEG_LINTED";

/// Set, too, where crates are checked only; the value is the folder with programs that were built.
const BUILT: &str = "THALWEG_BUILT";

/// Stack of a thread of a test: four times the standard library's.
const STACK_BYTES: &str = "8388608";

/// Cargo, with this program as the compiler's wrapper.
pub(crate) struct Linted<'w> {
    workspace: &'w Workspace,
    /// Empty where neither clippy nor rustdoc looks.
    folder: PathBuf,
    wrapper: PathBuf,
}

impl<'w> Linted<'w> {
    /// Returns a cargo that compiles, with clippy and rustdoc looking; `None` where clippy is not
    /// installed.
    ///
    /// # Errors
    /// The wrapper cannot be copied to where it stays while cargo builds this program again.
    pub(crate) fn new(workspace: &'w Workspace) -> Result<Option<Self>, String> {
        if !workspace.works("clippy-driver", "--version") {
            return Ok(None);
        }
        let folder = workspace.target.join("linted");
        let wrapper = copied(&folder)?;
        Ok(Some(Self {
            workspace,
            folder,
            wrapper,
        }))
    }

    /// Returns a cargo that compiles. Its wrapper has another path, so that cargo shares nothing of
    /// ours with one that looks.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub(crate) fn unlinted(workspace: &'w Workspace) -> Result<Self, String> {
        let wrapper = copied(&workspace.target.join("unlinted"))?;
        Ok(Self {
            workspace,
            folder: PathBuf::new(),
            wrapper,
        })
    }

    /// Returns the file with the public items of a library that has a list of them.
    pub(crate) fn items(&self, library: &str) -> PathBuf {
        let file = library.replace('-', "_") + ".json";
        self.folder.join("doc").join(file)
    }

    /// Returns the cargo that the gate's step `test` takes, so that nothing is built twice.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub(crate) fn of_the_tests(workspace: &'w Workspace) -> Result<Self, String> {
        match Self::new(workspace)? {
            Some(linted) => Ok(linted),
            None => Self::unlinted(workspace),
        }
    }

    /// Lets a command's cargo check the crates of a workspace of the same sources, and take our
    /// programs for those that it would have compiled.
    ///
    /// # Errors
    /// The wrapper cannot have another path, by which cargo shares nothing of ours.
    pub(crate) fn check_only(&self, command: &mut Command) -> Result<(), String> {
        let wrapper = self.wrapper.with_file_name("checking");
        let _ = fs::remove_file(&wrapper);
        fs::hard_link(&self.wrapper, &wrapper)
            .map_err(|error| format!("{}: {error}", wrapper.display()))?;
        command
            .env("RUSTC_WORKSPACE_WRAPPER", wrapper)
            .env(FOLDER, "")
            .env(BUILT, self.workspace.target.join("debug"));
        Ok(())
    }

    /// Returns cargo with the arguments that `line` holds between blanks.
    pub(crate) fn cargo(&self, line: &str) -> Command {
        let mut cargo = self.workspace.cargo(line);
        cargo
            .env("RUSTC_WORKSPACE_WRAPPER", &self.wrapper)
            .env(FOLDER, &self.folder)
            // Frames that are not optimised are larger.
            .env("RUST_MIN_STACK", STACK_BYTES);
        cargo
    }
}

/// Returns the path of a copy of this program. It is made once: when cargo has built this program
/// again with the wrapper, the file that it was started from is gone.
fn copied(folder: &Path) -> Result<PathBuf, String> {
    static COPIED: OnceLock<Result<(), String>> = OnceLock::new();
    let wrapper = folder.join("compiler");
    let copy = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let new = folder.join(format!("new-{}", process::id()));
        fs::copy(env::current_exe()?, &new)?;
        // A compiler that runs keeps the old file.
        fs::rename(&new, &wrapper)
    };
    let copied =
        COPIED.get_or_init(|| copy().map_err(|error| format!("{}: {error}", wrapper.display())));
    copied.clone().map(|()| wrapper)
}

/// Compiles, if cargo has called this program as the wrapper of a compiler.
pub(crate) fn as_wrapper() -> Option<ExitCode> {
    let folder = PathBuf::from(env::var_os(FOLDER)?);
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    let (rustc, args) = args.split_first()?;
    Path::new(rustc)
        .file_stem()
        .filter(|name| *name == "rustc")?;
    let compiled = match env::var_os(BUILT) {
        Some(built) => check(Path::new(&built), rustc, args),
        None => compile(&folder, rustc, args),
    };
    Some(match compiled {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    })
}

fn compile(folder: &Path, rustc: &OsString, args: &[OsString]) -> io::Result<bool> {
    // Cargo sets this for integration tests and benchmarks alone.
    let is_integration = env::var_os("CARGO_TARGET_TMPDIR").is_some();
    let compiling = match is_integration {
        true => unoptimised(args),
        false => args.to_vec(),
    };
    if !Command::new(rustc).args(compiling).status()?.success() {
        return Ok(false);
    }
    if folder.as_os_str().is_empty() {
        return Ok(true);
    }
    let Some(looking) = looking(folder, args) else {
        return Ok(true);
    };
    let passed = is_looked_at_again(args)?
        || passes(Command::new("clippy-driver").arg(rustc).args(looking))?;
    let Some(documenting) = documenting(folder, args) else {
        return Ok(passed);
    };
    let documented = passes(Command::new("rustdoc").args(&documenting))?;
    Ok(passed && documented && has_items(&documenting)?)
}

/// Writes the public items as JSON, beside the pages, where the package has a list of them.
fn has_items(documenting: &[OsString]) -> io::Result<bool> {
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
    if !package.join("public-api.txt").is_file() {
        return Ok(true);
    }
    let mut rustdoc = Command::new("rustdoc");
    rustdoc
        .args(documenting)
        .args(["--cap-lints", "allow", "-Zunstable-options"])
        .args(["--output-format", "json"])
        .env("RUSTC_BOOTSTRAP", "1");
    passes(&mut rustdoc)
}

/// Checks a library, or a program of which there is one in `built`. Cargo finds an empty file for
/// the library's code, and that program. A build script, or another program, is compiled.
fn check(built: &Path, rustc: &OsString, args: &[OsString]) -> io::Result<bool> {
    let passes = |args| io::Result::Ok(Command::new(rustc).args(args).status()?.success());
    let Some((file, program)) = made(built, args) else {
        return passes(args.to_vec());
    };
    if !passes(checking(args))? {
        return Ok(false);
    }
    match program {
        Some(program) => fs::copy(program, file).map(drop)?,
        None => fs::write(file, "")?,
    }
    Ok(true)
}

/// Returns the file of a library that cargo expects of the compiler, or that of a program, with the
/// one in `built`; `None` where that is not there.
fn made(built: &Path, args: &[OsString]) -> Option<(PathBuf, Option<PathBuf>)> {
    let mut values = args.iter().filter_map(|arg| arg.to_str());
    let extra = values.find_map(|arg| arg.strip_prefix("extra-filename="))?;
    let (name, folder) = (after(args, "--crate-name")?, after(args, "--out-dir")?);
    let folder = Path::new(folder);
    if after(args, "--crate-type")? == "lib" {
        return Some((folder.join(format!("lib{name}{extra}.rlib")), None));
    }
    let program = match folder.ends_with("examples") {
        true => built.join("examples").join(name),
        false => built.join(name),
    };
    let file = folder.join(format!("{name}{extra}"));
    program.is_file().then_some((file, Some(program)))
}

/// Returns the arguments with which the compiler makes metadata, from metadata where a library has
/// no code.
fn checking(args: &[OsString]) -> Vec<OsString> {
    let is_empty = |file: &str| fs::metadata(file).is_ok_and(|metadata| metadata.len() == 0);
    let checked = |arg: &OsString| match arg.to_str() {
        Some(text) if text.starts_with("--emit=") => "--emit=dep-info,metadata".into(),
        Some(text) => match text.split_once('=').zip(text.strip_suffix(".rlib")) {
            Some(((_, file), stem)) if is_empty(file) => format!("{stem}.rmeta").into(),
            _ => arg.clone(),
        },
        None => arg.clone(),
    };
    args.iter().map(checked).collect()
}

fn is_of_tests(args: &[OsString]) -> bool {
    args.iter().any(|arg| arg == "--test")
}

/// Returns the file at which the crate begins.
fn source(args: &[OsString]) -> Option<&str> {
    let mut args = args.iter().filter_map(|arg| arg.to_str());
    args.find(|arg| arg.ends_with(".rs"))
}

/// Whether the crate is one of a package whose unit tests are built, too.
fn is_looked_at_again(args: &[OsString]) -> io::Result<bool> {
    let begins = source(args).map(Path::new).and_then(Path::parent);
    if is_of_tests(args) || begins.is_none_or(|folder| !folder.ends_with("src")) {
        return Ok(false);
    }
    let package = env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
    let manifest = fs::read_to_string(package.join("Cargo.toml"))?;
    Ok(!manifest.lines().any(|line| line == "test = false"))
}

/// Returns the arguments without optimisation.
fn unoptimised(args: &[OsString]) -> Vec<OsString> {
    let is_level = |arg: &&OsString| {
        arg.to_str()
            .is_some_and(|arg| arg.starts_with("opt-level="))
    };
    let level = |arg| match is_level(&arg) {
        true => OsString::from("opt-level=0"),
        false => arg.clone(),
    };
    args.iter().map(level).collect()
}

/// Runs a command, and hands to cargo what it says of the code.
fn passes(command: &mut Command) -> io::Result<bool> {
    let output = command.stdout(Stdio::null()).output()?;
    for line in String::from_utf8_lossy(&output.stderr).lines() {
        // Cargo is to wait for what the compiler has written, not for this.
        if !line.starts_with(r#"{"$message_type":"artifact""#) {
            eprintln!("{line}");
        }
    }
    Ok(output.status.success())
}

/// Returns the value that follows an option.
fn after<'a>(args: &'a [OsString], option: &str) -> Option<&'a str> {
    let at = args.iter().position(|arg| arg == option)?;
    args.get(at + 1)?.to_str()
}

/// Returns the arguments with which clippy looks at what `args` compile, and writes no more than
/// metadata, into `folder`, and the names of the files that it has read. There are none if `args`
/// are a question of cargo about the compiler.
fn looking(folder: &Path, args: &[OsString]) -> Option<Vec<OsString>> {
    let mut values = args.iter().filter_map(|arg| arg.to_str());
    let extra = values.find_map(|arg| arg.strip_prefix("extra-filename="))?;
    let file = format!("{}{extra}", after(args, "--crate-name")?);
    // The names are cargo's list of what the crate depends on: clippy adds `clippy.toml`.
    let names = Path::new(after(args, "--out-dir")?).join(format!("{file}.d"));
    let metadata = folder.join(format!("{file}.rmeta"));
    let (names, metadata) = (names.display(), metadata.display());
    let emitted = format!("--emit=dep-info={names},metadata={metadata}");
    // The compiler's own folder is for what the compiler has made.
    let incremental = format!("incremental={}", folder.join("incremental").display());
    let replaced = |arg: &OsString| match arg.to_str() {
        Some(arg) if arg.starts_with("--emit=") => OsString::from(&emitted),
        Some(arg) if arg.starts_with("incremental=") => OsString::from(&incremental),
        _ => arg.clone(),
    };
    Some(args.iter().map(replaced).collect())
}

/// Returns the arguments with which rustdoc documents what `args` compile, if that is a library.
fn documenting(folder: &Path, args: &[OsString]) -> Option<Vec<OsString>> {
    if after(args, "--crate-type")? != "lib" || args.iter().any(|arg| arg == "--test") {
        return None;
    }
    let mut documenting = vec!["-o".into(), folder.join("doc").into()];
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.to_str() {
            // Where and how code is written.
            Some("--out-dir" | "-C") => _ = args.next(),
            Some(emit) if emit.starts_with("--emit=") => {}
            _ => documenting.push(arg.clone()),
        }
    }
    Some(documenting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Scratch;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn no_level_of_optimisation_is_left() {
        let args = words("--crate-name a -C opt-level=1 -C debug-assertions=on");
        let without = words("--crate-name a -C opt-level=0 -C debug-assertions=on");
        assert_eq!(unoptimised(&args), without);
    }

    #[test]
    fn what_is_checked_only_is_metadata_and_takes_the_program_that_is_there() {
        let folder = env::temp_dir().join(format!("thalweg-checked-{}", process::id()));
        let folder = Scratch(folder);
        let (built, libraries) = (folder.0.join("built"), folder.0.display());
        fs::create_dir_all(built.join("examples")).expect("there is room");
        for (file, text) in [
            ("built/a", "a"),
            ("built/examples/b", "b"),
            ("libd.rlib", "d"),
        ] {
            fs::write(folder.0.join(file), text).expect("there is room");
        }
        fs::write(folder.0.join("libc.rlib"), "").expect("there is room");
        let made = |name: &str, kind: &str, out: &str| {
            let line = format!(
                "--crate-name {name} --crate-type {kind} -C extra-filename=-1 --out-dir {out}"
            );
            made(&built, &words(&line))
        };
        let made_of = |file: &str, program: &str| Some((file.into(), Some(built.join(program))));
        assert_eq!(
            made("a", "lib", "/o"),
            Some(("/o/liba-1.rlib".into(), None))
        );
        assert_eq!(made("a", "bin", "/o"), made_of("/o/a-1", "a"));
        assert_eq!(
            made("b", "bin", "/o/examples"),
            made_of("/o/examples/b-1", "examples/b")
        );
        for (name, kind) in [
            ("b", "bin"),
            ("build_script_build", "bin"),
            ("c", "proc-macro"),
        ] {
            assert_eq!(made(name, kind, "/o"), None, "{name}");
        }
        let args = |emitted: &str, of_c: &str| {
            let (c, d) = (format!("libc.{of_c}"), "libd.rlib");
            words(&format!(
                "--emit={emitted} --extern c={libraries}/{c} --extern d={libraries}/{d}"
            ))
        };
        assert_eq!(
            checking(&args("dep-info,link", "rlib")),
            args("dep-info,metadata", "rmeta")
        );
    }

    #[test]
    fn what_is_compiled_is_looked_at_and_a_library_documented() {
        let folder = Path::new("/f");
        let args = "--crate-name a --edition=2024 src/lib.rs --crate-type lib \
                    --emit=dep-info,metadata,link -C metadata=1 -C extra-filename=-1 --out-dir /o \
                    -C incremental=/i --extern b=/o/b.rmeta";
        assert_eq!(
            looking(folder, &words(args)).expect("clippy looks at it"),
            words(
                "--crate-name a --edition=2024 src/lib.rs --crate-type lib \
                 --emit=dep-info=/o/a-1.d,metadata=/f/a-1.rmeta -C metadata=1 \
                 -C extra-filename=-1 --out-dir /o -C incremental=/f/incremental \
                 --extern b=/o/b.rmeta"
            )
        );
        assert_eq!(
            documenting(folder, &words(args)).expect("rustdoc documents it"),
            words(
                "-o /f/doc --crate-name a --edition=2024 src/lib.rs --crate-type lib \
                 --extern b=/o/b.rmeta"
            )
        );
        for other in ["--crate-type bin", "--crate-type lib --test", "--test"] {
            assert_eq!(documenting(folder, &words(other)), None, "{other}");
        }
        assert_eq!(
            looking(folder, &words("- --crate-name ___ --print=cfg")),
            None
        );
    }
}
