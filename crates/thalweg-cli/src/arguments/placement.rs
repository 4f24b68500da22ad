//! The option for where the stages run, and the removed options for shards, which are refused.

use super::values::Place;
use crate::failure::Failure;
use clap::Args;
use thalweg_exchange::State;
use thalweg_exchange::service::{Options, Service};

/// Accepts the options that were removed, to refuse them with what to use instead.
#[derive(Clone, Debug, Args)]
pub(crate) struct Removed {
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "", value_parser = removed)]
    risk_shards: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "", value_parser = removed)]
    match_shards: Option<String>,
}

fn removed(_: &str) -> Result<String, String> {
    Err(
        "there are no shards any more, as the exchange executes on one thread: leave this out, or \
         say with --placement where that thread is"
            .to_owned(),
    )
}

/// Returns the options of a service whose stages run at `placement`.
///
/// # Errors
/// Returns an error if a service cannot run with this placement.
pub(crate) fn options(placement: Place) -> Result<Options, Failure> {
    let options = Options {
        placement: placement.placement(),
        ..Options::default()
    };
    let start = Service::start(State::default(), options.clone(), |_| {});
    checked(options, start)
}

/// Returns the options of a durable exchange. With `inline` the sender's thread waits for the disk;
/// with any other placement another thread does.
///
/// # Errors
/// Returns an error if the placement asks for more than one other thread.
#[cfg(unix)]
pub(crate) fn journaled_options(placement: Place) -> Result<Options, Failure> {
    if let Place::Threads(threads @ 2..) = placement {
        return Err(Failure::Misuse(format!(
            "--placement threads:{threads}: with --journal, the sender's thread executes and one \
             other thread waits for the disk: inline, threads:1 and auto are possible"
        )));
    }
    Ok(Options {
        placement: placement.placement(),
        ..Options::default()
    })
}

fn checked<T, E: ToString>(options: Options, start: Result<T, E>) -> Result<Options, Failure> {
    match start {
        Ok(_) => Ok(options),
        Err(error) => {
            let error = error.to_string();
            let placement = &options.placement;
            Err(Failure::Misuse(format!("--placement {placement}: {error}")))
        }
    }
}
