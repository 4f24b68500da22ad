//! `cargo compare EXPERIMENT`; see the library of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    thalweg_compare::main()
}
