//! `cargo dev targets`: which crate compiles, and which runs, on other systems, with fewer features
//! and on the oldest compiler. Compilers and emulator are Debian's; without them parts are skipped.

mod debian;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

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

/// A crate with features: a row of the table.
#[derive(Clone, Copy)]
struct Build {
    package: &'static str,
    /// Features in place of those by default.
    features: Option<&'static str>,
}

const fn whole(package: &'static str) -> Build {
    let features = None;
    Build { package, features }
}

const fn with(package: &'static str, features: &'static str) -> Build {
    let features = Some(features);
    Build { package, features }
}

impl Build {
    fn label(&self) -> String {
        match self.features {
            None => self.package.to_owned(),
            Some("") => format!("{}, no features", self.package),
            Some(features) => format!("{}, {features}", self.package),
        }
    }
}

const RINGS: Build = with("thalweg", "");
const PLAIN_HASH: Build = with("thalweg-hash", "");
const HASH: Build = whole("thalweg-hash");
const EXCHANGE: Build = whole("thalweg-exchange");

/// Crates that need no more than their sources: `thalweg-gateway`, and with it the program, has C
/// code of its crate `ring`. The first five compile on the oldest Rust, the first seven on Windows.
const ALL: &[Build] = &[
    whole("thalweg"),
    HASH,
    whole("thalweg-measure"),
    whole("thalweg-journal"),
    whole("thalweg-task"),
    EXCHANGE,
    whole("thalweg-client"),
    whole("thalweg-server"),
    whole("thalweg-doctor"),
];

/// A system that this one is not: a column of the table.
struct System {
    title: &'static str,
    triple: &'static str,
    /// The crates of the standard library, for `-Zbuild-std`.
    library: &'static str,
    builds: &'static [Build],
    extent: Extent,
}

const SYSTEMS: [System; 6] = [
    System {
        title: "thumbv7em",
        triple: "thumbv7em-none-eabi",
        library: "core,alloc",
        builds: &[RINGS, PLAIN_HASH],
        extent: Extent::Quick,
    },
    System {
        title: "aarch64-none",
        triple: "aarch64-unknown-none",
        library: "core,alloc",
        builds: &[RINGS, PLAIN_HASH],
        extent: Extent::Whole,
    },
    System {
        title: "aarch64-linux",
        triple: ARM_LINUX,
        library: "std",
        builds: ALL,
        extent: Extent::Whole,
    },
    System {
        title: "aarch64-apple",
        triple: "aarch64-apple-darwin",
        library: "std",
        builds: ALL,
        extent: Extent::Whole,
    },
    System {
        title: "x86_64-windows",
        triple: "x86_64-pc-windows-msvc",
        library: "std",
        builds: ALL.split_at(7).0,
        extent: Extent::Whole,
    },
    System {
        title: "wasm32",
        triple: "wasm32-unknown-unknown",
        library: "std,panic_abort",
        builds: &[HASH, EXCHANGE],
        extent: Extent::Whole,
    },
];

/// The system whose programs are run, by an emulator.
const ARM_LINUX: &str = "aarch64-unknown-linux-gnu";

/// Features of crates, each alone, on this system.
const FEATURES: [Build; 6] = [
    RINGS,
    with("thalweg", "std"),
    with("thalweg", "stream"),
    with("thalweg-measure", ""),
    PLAIN_HASH,
    with("thalweg-measure", "json"),
];

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
    fn wants(&self, extent: Extent) -> bool {
        extent == Extent::Quick || self.extent == Extent::Whole
    }

    /// Returns cargo, with the build's package, in the folder of this step.
    fn cargo(&self, command: &str, build: &Build) -> Command {
        let mut cargo = self.workspace.cargo(command);
        cargo
            .args(["--quiet", "--package", build.package])
            .args(build.features.map(|_| "--no-default-features"))
            .args(
                build
                    .features
                    .map(|features| format!("--features={features}")),
            )
            .env(
                "CARGO_TARGET_DIR",
                self.workspace.target.join("targets/build"),
            );
        cargo
    }

    /// Compiles with a command, of which warnings are failures.
    fn checked(&self, title: &str, build: &Build, command: &mut Command) -> Cell {
        let said = self.workspace.compile_and_listen(command);
        let failure = match said {
            Ok(said) if said.lines().any(|line| line.starts_with("warning")) => "warnings",
            Ok(_) => return Cell::Checked,
            Err(_) => "errors",
        };
        let (label, package) = (build.label(), build.package);
        let line = format!("{title}: {label}: {failure} in {package} or what it needs");
        // The table says it again.
        let _ = self.workspace.say(line);
        Cell::Failed
    }

    fn features(&self, table: &mut Table) {
        let builds = match self.extent {
            Extent::Whole => &FEATURES[..],
            // The others have dependencies that take long.
            Extent::Quick => &FEATURES[..5],
        };
        for build in builds {
            let cell = self.checked("here", build, &mut self.cargo("check", build));
            table.set(&build.label(), "here", cell);
        }
    }

    /// Runs the tests of rings, built as they are without `std`.
    fn rings_without_std(&self, table: &mut Table) {
        let command = || {
            let mut command = self.cargo("test", &RINGS);
            command.arg("--lib");
            command
        };
        let tests = self.workspace.run_tests(command, &[]);
        table.set(&RINGS.label(), "here", ran(tests));
    }

    fn systems(&self, compiler: &Compiler, table: &mut Table) -> Result<(), String> {
        for system in SYSTEMS.iter().filter(|system| self.wants(system.extent)) {
            for build in system.builds {
                let mut check = self.cargo("check", build);
                let check = for_system(&mut check, compiler, system.triple, system.library);
                let cell = self.checked(system.title, build, check);
                table.set(&build.label(), system.title, cell);
            }
        }
        self.reject_std(compiler)?;
        if self.extent == Extent::Whole {
            self.emulated(compiler, table);
        }
        Ok(())
    }

    /// Checks that a crate with `std` is found where there is none.
    fn reject_std(&self, compiler: &Compiler) -> Result<(), String> {
        let folder = self.workspace.target.join("targets/seeded");
        let write = |name: &str, text: &str| {
            fs::create_dir_all(folder.join("src"))?;
            fs::write(folder.join(name), text)
        };
        let manifest = "[package]\nname = \"seeded\"\nedition = \"2024\"\n[workspace]\n";
        write("Cargo.toml", manifest)
            .and_then(|()| write("src/lib.rs", "#![no_std]\nextern crate std;\n"))
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let system = &SYSTEMS[0];
        let mut check = self.cargo("check", &whole("seeded"));
        let check = for_system(&mut check, compiler, system.triple, system.library);
        let output = check.current_dir(&folder).output();
        let output = output.map_err(|error| format!("cargo: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        match said.contains("can't find crate for `std`") && !output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "a crate that needs std passed: {}\n{said}",
                system.title
            )),
        }
    }

    /// Runs tests on an emulated processor.
    fn emulated(&self, compiler: &Compiler, table: &mut Table) {
        if let Err(why) = self.emulator() {
            return table.skip("runs on emulated aarch64-linux", &why);
        }
        for (build, targets, names) in EMULATED {
            let command = || {
                let mut command = self.cargo("test", build);
                for_system(&mut command, compiler, ARM_LINUX, "std");
                command
                    .args(*targets)
                    .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
                    .env(
                        "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER",
                        "qemu-aarch64 -L /usr/aarch64-linux-gnu",
                    )
                    .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
                command
            };
            let tests = self.workspace.run_tests(command, names);
            table.set(&build.label(), "aarch64-linux", ran(tests));
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
        for build in ALL.split_at(5).0 {
            let cell = compiles(self.cargo("check", build));
            table.set(&build.label(), &title, cell.into());
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

/// Builds that run on the emulator: programs of tests, and names of tests.
const EMULATED: &[(&Build, &[&str], &[&str])] = &[
    (&HASH, &["--lib", "--test", "suite"], &[]),
    (
        &ALL[0],
        &["--lib", "--test", "suite"],
        &["ring", "channel", "wait"],
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
