//! `thalweg machine`.

use crate::arguments::values::Format;
use crate::failure::{Failure, Finding};
use crate::message::{reason, shown};
use crate::stdin::whole;
use clap::Args;
use std::fs::File;
use std::path::{Path, PathBuf};
use thalweg::wait::WaitCosts;

const MACHINE_EXAMPLES: &str = "\
Examples:
  thalweg machine
      What waiting costs here, and what that means for spinning and placement
  thalweg machine --dir /var/lib/journal
      The same, with the disk under that directory
  thalweg machine --output costs.json
  thalweg exchange run --costs costs.json
      The figures as JSON, and a run whose waits begin with them";

/// The options of `machine`.
#[derive(Debug, Args)]
#[command(after_help = MACHINE_EXAMPLES)]
pub(crate) struct Machine {
    /// Format of the figures on standard output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,

    /// Also write the figures as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Where the disk is measured, with a file that is removed [default: that of temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Fewer repetitions: less than 1 s, not 3, and wider intervals
    #[arg(long)]
    quick: bool,
}

/// The maximum size of a file of costs, in bytes. Such a file has about 5,000 bytes.
const COSTS_BYTES_MAX: u64 = 1 << 20;
/// The name of the figure that waits begin with.
const WAKE: &str = "wake_50us";

/// Measures the machine.
///
/// # Errors
/// Returns an error if the directory or the file cannot be written to, or if the system does not
/// support pinning threads.
#[cfg(target_os = "linux")]
pub(crate) fn machine(options: &Machine) -> Result<Finding, Failure> {
    use crate::arguments::values::Format;
    use crate::output::Output;
    use crate::output::json;
    use crate::output::print;
    use thalweg_doctor::machine as doctor;

    let output = options.output.as_deref().map(Output::open).transpose()?;
    let asked = doctor::MeasureOptions {
        is_quick: options.quick,
        directory: options.dir.clone().unwrap_or_else(std::env::temp_dir),
    };
    let found = doctor::Machine::measure(&asked);
    let found = found.map_err(|error| Failure::Misuse(error.to_string()))?;
    let rows = json(&found)?;
    if let Some(mut file) = output {
        file.write(rows.as_bytes())?;
    }
    match options.format == Format::Json {
        true => print(rows.as_bytes())?,
        false => print(found.to_string().as_bytes())?,
    }
    Ok(Finding::Fine)
}

/// Refuses to measure: measuring needs threads on chosen cores, futexes and `/proc`, which this
/// platform does not have.
///
/// # Errors
/// Always returns an error.
#[cfg(not(target_os = "linux"))]
pub(crate) fn machine(_: &Machine) -> Result<Finding, Failure> {
    Err(Failure::Misuse(
        "a machine is measured on Linux only".to_owned(),
    ))
}

/// Makes waits begin with the costs that `thalweg machine --output` wrote, if a file is given.
///
/// # Errors
/// Returns an error if the file cannot be read or holds no costs.
pub(crate) fn install(file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else {
        return Ok(());
    };
    let failure = |why: String| Failure::Misuse(format!("{}: {why}", shown(file.as_os_str())));
    let text = File::open(file).and_then(|file| whole(file, COSTS_BYTES_MAX));
    let text = text.map_err(|error| failure(format!("cannot be read: {}", reason(&error))))?;
    let wake_ns = wake_ns(&text).map_err(failure)?;
    // The first costs that a process installs remain; nothing else installs any here.
    let _ = WaitCosts::new(wake_ns).install();
    Ok(())
}

fn wake_ns(text: &[u8]) -> Result<u64, String> {
    let saved: serde_json::Value = serde_json::from_slice(text)
        .map_err(|error| format!("not what `thalweg machine --output` writes: {error}"))?;
    let value = saved["costs"][WAKE]["value"].as_f64();
    match value {
        Some(ns) if ns > 0.0 => Ok(ns as u64),
        _ => Err(format!(
            "no costs.{WAKE}.value: not written by `thalweg machine --output`, or where a program \
             may use one core only"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_wake_up_is_read() {
        let saved = r#"{"costs":{"wake_50us":{"value":4321.5,"low":null}}}"#;
        assert_eq!(wake_ns(saved.as_bytes()), Ok(4_321));
        for wrong in ["{", "[]", "{}", r#"{"costs":{"wake_50us":{"value":-1}}}"#] {
            let why = wake_ns(wrong.as_bytes()).unwrap_err();
            assert!(why.contains("thalweg machine --output"), "{why}");
        }
    }
}
