//! Prints the figures of a command: `cargo run --example observe -- COMMAND…`, or of a process for
//! five seconds: `-- --attach PID`, or what can be measured here: `-- --caps`.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;
    use std::time::Duration;
    use thalweg_doctor::caps::capabilities;
    use thalweg_doctor::observe::{Options, attach, observe};
    use thalweg_doctor::target::Target;

    let mut arguments = std::env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: observe COMMAND… | --attach PID | --caps");
        return ExitCode::from(2);
    };
    let options = Options::default();
    let seen = match program.to_str() {
        Some("--caps") => {
            for one in capabilities() {
                let works = if one.works { "yes" } else { "no" };
                println!("{:<28}{works:<4}{} ({})", one.name, one.why, one.cost);
            }
            return ExitCode::SUCCESS;
        }
        Some("--attach") => {
            let pid = arguments.next().and_then(|pid| pid.to_str()?.parse().ok());
            attach(pid.unwrap_or(0), Duration::from_secs(5), &options)
        }
        _ => observe(
            &Target {
                program,
                arguments: arguments.collect(),
            },
            &options,
        ),
    };
    let code = match seen {
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
