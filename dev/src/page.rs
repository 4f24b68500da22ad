//! `cargo dev page`: the gateway's page in a browser, by mouse and by keyboard.

use std::fs;
use std::process::Command;

use crate::plan::{Outcome, Step};
use crate::testing;
use crate::workspace::Workspace;

/// The names under which a Chromium may be installed.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The step of `cargo dev page` and of the gate.
pub(crate) const STEP: Step = Step {
    name: "page",
    summary: "the gateway's page trades and comes back (Python, Chromium; axe's rules with npm)",
    has_own_folder: true,
    run: |workspace| step(workspace, false),
};

/// The step of `cargo dev page --screenshots`: it writes the pictures of the documentation as well.
pub(crate) const SCREENSHOTS: Step = Step {
    run: |workspace| step(workspace, true),
    ..STEP
};

/// Drives the page with `dev/page/check.py`.
///
/// # Errors
/// The page does not do what it should, or the server cannot be built.
fn step(workspace: &Workspace, with_screenshots: bool) -> Result<Outcome, String> {
    let works = |program: &&str| workspace.works(program, "--version");
    if !works(&"python3") {
        return Ok(Outcome::Skipped("python3 is not installed".to_owned()));
    }
    let Some(browser) = BROWSERS.into_iter().find(works) else {
        return Ok(Outcome::Skipped("no chromium".to_owned()));
    };
    testing::build_program(workspace)?;
    let folder = workspace.target.join("page");
    let directory = folder.join("exchange");
    let _ = fs::remove_dir_all(&directory);
    let made = fs::create_dir_all(&folder);
    made.map_err(|error| format!("{}: {error}", folder.display()))?;
    let source = workspace.root.join("dev/page");
    let mut check = Command::new("python3");
    check.arg("-B").arg(source.join("check.py"));
    check.arg(workspace.target.join("debug/thalweg"));
    check.arg(&directory).arg(browser).current_dir(&folder);
    for file in ["package.json", "package-lock.json"] {
        let copied = fs::copy(source.join(file), folder.join(file));
        copied.map_err(|error| format!("{file}: {error}"))?;
    }
    // The lock has the hash of the package.
    let install = "ci --ignore-scripts --no-audit --no-fund --prefix";
    match workspace.output("npm", &format!("{install} {}", folder.display())) {
        Ok(_) => {
            let axe = folder.join("node_modules/axe-core/axe.min.js");
            check.arg("--axe").arg(axe);
        }
        Err(error) => {
            let line = error.lines().last().unwrap_or_default();
            workspace.say(format_args!(
                "page: skipped: axe's rules, without npm: {line}"
            ))?;
        }
    }
    if with_screenshots {
        check.arg("--screenshots").arg(workspace.root.join("docs"));
    }
    workspace.run(&mut check)?;
    Ok(Outcome::Passed)
}
