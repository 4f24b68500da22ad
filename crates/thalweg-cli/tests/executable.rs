//! The program as others start it. `cargo dev clients` and `cargo dev page` build it by the name of
//! this test, since only a test has the features that the other tests were built with.
use std::process::Command;

#[test]
fn the_program_prints_its_version() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    let output = program.arg("--version").output().expect("it starts");
    let version = concat!("thalweg ", env!("CARGO_PKG_VERSION"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!((output.status.code(), text.trim()), (Some(0), version));
}
