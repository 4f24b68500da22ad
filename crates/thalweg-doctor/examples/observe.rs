//! Prints the figures of a command: `cargo run --example observe -- COMMAND…`

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;
    use thalweg_doctor::observe::{Options, observe};
    use thalweg_doctor::target::Target;

    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: observe COMMAND…");
        return ExitCode::from(2);
    };
    let target = Target {
        program,
        arguments: arguments.collect(),
    };
    let code = match observe(&target, &Options::default()) {
        Ok(observation) => {
            for (name, reading) in observation.evidence.readings() {
                let value = reading
                    .value
                    .map_or("-".into(), |value| format!("{value:.4}"));
                eprintln!(
                    "{name:<22}{value:>16}  {:?}: {}",
                    reading.quality, reading.source
                );
            }
            observation.exit.code()
        }
        Err(error) => {
            eprintln!("observe: {error}");
            error.code()
        }
    };
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("observe: needs Linux");
}
