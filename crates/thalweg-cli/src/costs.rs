//! `thalweg machine`, and the use of what it has saved.

use crate::arguments::machine::Machine;
use crate::failure::{Failure, Finding, reason, shown};
use std::fs;
use std::path::Path;
use thalweg::wait::Costs;

/// The figure that waits begin with.
const WAKE: &str = "wake_50us";

/// Measures the machine.
///
/// # Errors
/// The directory or the file cannot be written to; the system has no pinning.
#[cfg(target_os = "linux")]
pub(crate) fn machine(options: &Machine) -> Result<Finding, Failure> {
    use crate::arguments::Format;
    use crate::failure::{json, print};
    use crate::output::Output;
    use thalweg_doctor::machine as doctor;

    let save = options.save.as_deref().map(Output::open).transpose()?;
    let asked = doctor::Options {
        is_quick: options.quick,
        directory: options.dir.clone().unwrap_or_else(std::env::temp_dir),
    };
    let found = doctor::Machine::measure(&asked);
    let found = found.map_err(|error| Failure::Misuse(error.to_string()))?;
    let rows = json(&found)?;
    if let Some(mut file) = save {
        file.write(rows.as_bytes())?;
    }
    match options.json || options.format == Format::Json {
        true => print(rows.as_bytes())?,
        false => print(found.to_string().as_bytes())?,
    }
    Ok(Finding::Fine)
}

/// Measuring takes threads on chosen cores, futexes and `/proc`.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub(crate) fn machine(_: &Machine) -> Result<Finding, Failure> {
    Err(Failure::Misuse(
        "a machine is measured on Linux only".to_owned(),
    ))
}

/// Lets waits begin with the costs that `thalweg machine --save` has written, if a file is given.
///
/// # Errors
/// It cannot be read, or is no such file.
pub(crate) fn install(file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else {
        return Ok(());
    };
    let failure = |why: String| Failure::Misuse(format!("{}: {why}", shown(file.as_os_str())));
    let text = fs::read_to_string(file);
    let text = text.map_err(|error| failure(format!("cannot be read: {}", reason(&error))))?;
    let wake_ns = wake_ns(&text).map_err(failure)?;
    // The first of a process stays; there is no second here.
    let _ = Costs::new(wake_ns).install();
    Ok(())
}

fn wake_ns(text: &str) -> Result<u64, String> {
    let saved: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| format!("not what `thalweg machine --save` writes: {error}"))?;
    let value = saved["costs"][WAKE]["value"].as_f64();
    match value {
        Some(ns) if ns > 0.0 => Ok(ns as u64),
        _ => Err(format!(
            "no costs.{WAKE}.value: not written by `thalweg machine --save`, or where a program \
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
        assert_eq!(wake_ns(saved), Ok(4_321));
        for wrong in ["{", "[]", "{}", r#"{"costs":{"wake_50us":{"value":-1}}}"#] {
            let why = wake_ns(wrong).unwrap_err();
            assert!(why.contains("thalweg machine --save"), "{why}");
        }
    }
}
