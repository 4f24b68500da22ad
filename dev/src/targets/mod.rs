//! `cargo dev targets`: which crate compiles, and which runs, on other systems, with fewer features
//! and on the oldest compiler. Compilers and emulator are Debian's; without them parts are skipped.

mod debian;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::builds::{Build, RINGS};
use crate::package::Alone;
use crate::plan::{Outcome, Step};
use crate::workspace::{Tally, Workspace};
use debian::Compiler;
use table::{Cell, Table};

/// The step of the gate: what takes seconds.
pub(crate) const QUICK: Step = Step {
    name: "targets",
    summary: "crates with fewer features, and rings without an operating system (apt)",
    has_own_folder: true,
    run: |workspace| run(workspace, Extent::Quick),
};

/// The step of `cargo dev targets`.
pub(crate) const WHOLE: Step = Step {
    summary: "every crate on other systems and on the oldest Rust; rings on emulated ARM (apt)",
    run: |workspace| run(workspace, Extent::Whole),
    ..QUICK
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Quick,
    Whole,
}

/// A system that this one is not: its column, its name for compilers, and the crates of the
/// standard library for `-Zbuild-std`. The gate has the first.
const SYSTEMS: [[&str; 3]; 6] = [
    ["thumbv7em", "thumbv7em-none-eabi", "core,alloc"],
    ["aarch64-none", "aarch64-unknown-none", "core,alloc"],
    ["aarch64-linux", ARM_LINUX, "std"],
    ["aarch64-apple", "aarch64-apple-darwin", "std"],
    ["x86_64-windows", "x86_64-pc-windows-msvc", "std"],
    ["wasm32", "wasm32-unknown-unknown", "std,panic_abort"],
];

/// The system whose programs are run, by an emulator.
const ARM_LINUX: &str = "aarch64-unknown-linux-gnu";

/// The oldest Rust, 1.88, on which these crates compile.
const OLDEST: u32 = 88;

/// The oldest compiler that may stand in for it, with these features, which are stable in 1.88:
/// the first six for the crates themselves, the last for `hdrhistogram` as well.
const STAND_IN: u32 = 85;
const STABLE_SINCE: &str = "let_chains,unsigned_is_multiple_of,target_feature_11,\
     float_next_up_down,trait_upcasting,slice_as_chunks";

fn run(workspace: &Workspace, extent: Extent) -> Result<Outcome, String> {
    let mut table = Table::default();
    let bench = Bench { workspace, extent };
    bench.features(&mut table);
    if extent == Extent::Whole {
        bench.rings_without_std(&mut table);
    }
    match debian::newest(workspace) {
        Ok(compiler) => bench.systems(&compiler, &mut table)?,
        Err(why) => table.skip("other systems", &why),
    }
    let oldest = match extent {
        Extent::Quick => Err("for `cargo dev targets`, with other systems".to_owned()),
        Extent::Whole => debian::between(workspace, STAND_IN, OLDEST),
    };
    match oldest {
        Ok(compiler) => bench.oldest(&compiler, &mut table),
        Err(why) => table.skip("the oldest Rust", &why),
    }
    workspace.say(&table)?;
    let tally = table.tally();
    match table.has_failed() {
        true => Err("not all compiles or runs".to_owned()),
        false if tally.passed > 0 => Ok(Outcome::Repeated(tally)),
        false => Ok(Outcome::Passed),
    }
}

struct Bench<'w> {
    workspace: &'w Workspace,
    extent: Extent,
}

impl Bench<'_> {
    /// Returns cargo, with the build's package, in the folder of this step.
    fn cargo(&self, command: &str, build: Build) -> Command {
        let mut cargo = self.workspace.cargo(command);
        cargo
            .args(["--quiet", "--package", build.package()])
            .args(build.features().map(|_| "--no-default-features"))
            .args(
                build
                    .features()
                    .map(|features| format!("--features={features}")),
            )
            .env(
                "CARGO_TARGET_DIR",
                self.workspace.target.join("targets/build"),
            );
        cargo
    }

    /// Compiles with a command, of which warnings are failures.
    fn checked(&self, title: &str, build: Build, command: &mut Command) -> Cell {
        let said = self.workspace.compile_and_listen(command);
        let failure = match said {
            Ok(said) if said.lines().any(|line| line.starts_with("warning")) => "warnings",
            Ok(_) => return Cell::Checked,
            Err(_) => "errors",
        };
        let (label, package) = (build.0, build.package());
        let line = format!("{title}: {label}: {failure} in {package} or what it needs");
        // The table says it again.
        let _ = self.workspace.say(line);
        Cell::Failed
    }

    fn features(&self, table: &mut Table) {
        let more = match self.extent {
            Extent::Whole => "whole",
            Extent::Quick => "",
        };
        for build in Build::on("here").chain(Build::on(more)) {
            let cell = self.checked("here", build, &mut self.cargo("check", build));
            table.set(build.0, "here", cell);
        }
    }

    /// Runs the tests of rings, built as they are without `std`.
    fn rings_without_std(&self, table: &mut Table) {
        let command = || {
            let mut command = self.cargo("test", RINGS);
            command.arg("--lib");
            command
        };
        let tests = self.workspace.run_tests(command, &[]);
        table.set(RINGS.0, "here", ran(tests));
    }

    fn systems(&self, compiler: &Compiler, table: &mut Table) -> Result<(), String> {
        let systems = match self.extent {
            Extent::Whole => &SYSTEMS[..],
            Extent::Quick => &SYSTEMS[..1],
        };
        for [title, triple, library] in systems {
            for build in Build::on(title) {
                let mut check = self.cargo("check", build);
                let check = for_system(&mut check, compiler, triple, library);
                let cell = self.checked(title, build, check);
                table.set(build.0, title, cell);
            }
        }
        self.reject_std(compiler)?;
        if self.extent == Extent::Whole {
            self.emulated(compiler, table);
        }
        Ok(())
    }

    /// Checks that a crate with `std` is found where there is none. The compiler is called without
    /// cargo, which would build `core` once more.
    fn reject_std(&self, compiler: &Compiler) -> Result<(), String> {
        let folder = self.workspace.target.join("targets");
        let seeded = folder.join("seeded.rs");
        let [title, triple, _] = SYSTEMS[0];
        let built = folder.join("build").join(triple).join("debug/deps");
        fs::write(&seeded, "#![no_std]\nextern crate std;\n")
            .map_err(|error| format!("{}: {error}", seeded.display()))?;
        let output = Command::new(&compiler.rustc)
            .args([
                "--crate-type=lib",
                "--emit=metadata",
                "--target",
                triple,
                "-L",
            ])
            .args([&built, &seeded])
            .current_dir(&folder)
            .output();
        let output = output.map_err(|error| format!("{}: {error}", compiler.rustc.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        match said.contains("can't find crate for `std`") && !output.status.success() {
            true => Ok(()),
            false => Err(format!("a crate that needs std passed: {title}\n{said}")),
        }
    }

    /// Runs tests on an emulated processor.
    fn emulated(&self, compiler: &Compiler, table: &mut Table) {
        if let Err(why) = self.emulator() {
            return table.skip("runs on emulated aarch64-linux", &why);
        }
        for (package, names) in EMULATED {
            let command = || {
                let mut command = self.cargo("test", Build(package));
                for_system(&mut command, compiler, ARM_LINUX, "std");
                command
                    .args(["--lib", "--test", "suite"])
                    .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
                    .env(
                        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
                        "qemu-aarch64 -L /usr/aarch64-linux-gnu",
                    )
                    .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
                    // Its suite takes minutes to compile at level 1.
                    .args(["--config", "profile.dev.package.thalweg.opt-level=0"]);
                command
            };
            let tests = self.workspace.run_tests(command, names);
            table.set(package, "aarch64-linux", ran(tests));
        }
    }

    /// Makes sure that emulator and linker are there.
    fn emulator(&self) -> Result<(), String> {
        let is_there = || {
            let works = |program| self.workspace.works(program, "--version");
            works("qemu-aarch64") && works(LINKER)
        };
        if is_there() {
            return Ok(());
        }
        let line = format!("install -qq -y --no-install-recommends {EMULATOR}");
        let installed = self.workspace.output("apt-get", &line);
        installed.map_err(|error| {
            let line = error.lines().find(|line| line.starts_with("E:"));
            format!("apt cannot install {EMULATOR}: {}", line.unwrap_or(&error))
        })?;
        is_there()
            .then_some(())
            .ok_or(format!("{EMULATOR} are installed, but do not start"))
    }

    fn oldest(&self, compiler: &Compiler, table: &mut Table) {
        let title = match compiler.minor {
            OLDEST => "Rust 1.88".to_owned(),
            older => format!("Rust 1.{older} (*)"),
        };
        // Warnings of an old compiler are no failure.
        let compiles = |mut check: Command| {
            check
                .arg("--ignore-rust-version")
                .env("RUSTC", &compiler.rustc);
            if compiler.minor < OLDEST {
                check
                    .env("THALWEG_FEATURES", STABLE_SINCE)
                    .env("RUSTC_BOOTSTRAP", "1");
            }
            self.workspace.compile(&mut check)
        };
        for build in Build::on("oldest") {
            let cell = compiles(self.cargo("check", build));
            table.set(build.0, &title, cell.into());
        }
        let pages = Alone::new(self.workspace).and_then(|alone| {
            alone.write_pages()?;
            compiles(alone.cargo("check --quiet"))
        });
        if let Err(why) = &pages {
            let _ = self.workspace.say(why);
        }
        table.set("the guide, packed crates", &title, pages.into());
        if compiler.minor < OLDEST {
            table.note(format!(
                "(*) with what is stable in 1.{OLDEST}: {STABLE_SINCE}"
            ));
        }
    }
}

/// The linker for ARM.
const LINKER: &str = "aarch64-linux-gnu-gcc";

/// The packages of emulator and linker.
const EMULATOR: &str = "qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross";

/// Packages whose tests run on the emulator, and names of tests.
const EMULATED: [(&str, &[&str]); 2] = [
    ("thalweg-hash", &[]),
    (
        "thalweg",
        &["ring::", "ring_conformance::", "channel", "wait::"],
    ),
];

fn ran(tests: Result<Tally, String>) -> Cell {
    tests.map_or(Cell::Failed, Cell::Ran)
}

/// Adds the arguments with which a compiler compiles for a system, standard library included.
fn for_system<'c>(
    command: &'c mut Command,
    compiler: &Compiler,
    triple: &str,
    library: &str,
) -> &'c mut Command {
    let rustc: &PathBuf = &compiler.rustc;
    command
        .args(["--target", triple, &format!("-Zbuild-std={library}")])
        .env("RUSTC", rustc)
        // A stable compiler takes `-Z` with it.
        .env("RUSTC_BOOTSTRAP", "1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builds::{BUILDS, libraries};

    #[test]
    fn columns_are_known_and_all_are_used() {
        let systems = SYSTEMS.map(|[title, ..]| title);
        let known: Vec<&str> = systems
            .into_iter()
            .chain(["here", "whole", "oldest"])
            .collect();
        for word in BUILDS
            .lines()
            .flat_map(|row| row.split_whitespace().skip(1))
        {
            assert!(known.contains(&word), "{word}");
        }
        assert!(
            known
                .iter()
                .all(|column| Build::on(column).next().is_some())
        );
        assert!(Build::on("here").any(|build| build.0 == RINGS.0));
        assert_eq!(libraries().count(), 5);
    }
}
