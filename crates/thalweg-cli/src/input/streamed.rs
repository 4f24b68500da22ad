//! Formats whose lines are commands, so that they can be taken one after another.

use super::error::InputError;
use super::lines::Lines;
use super::{Format, orders};
use thalweg_exchange::Command;
use thalweg_exchange::stream::{Item, Recorded, StreamError};

/// A format whose lines are commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streamed {
    Orders,
    Recorded,
}

impl Streamed {
    /// Returns this format as one of all formats.
    pub(crate) fn format(self) -> Format {
        match self {
            Streamed::Orders => Format::Orders,
            Streamed::Recorded => Format::Recorded,
        }
    }
}

/// Passes the commands of a stream with their line numbers, in order, to a callback until it wants
/// no more. Before the first command, `begin` is called with whether margin trading was on, where
/// the stream says it.
///
/// # Errors
/// Returns an error for a line that does not conform to the format, and for a stream without
/// commands.
pub(crate) fn each<T: FnMut(u64, Command) -> bool>(
    lines: &mut Lines,
    format: Streamed,
    begin: impl FnOnce(Option<bool>) -> T,
) -> Result<(), InputError> {
    match format {
        Streamed::Orders => orders::commands(lines, begin(None)),
        Streamed::Recorded => {
            let found = recorded(lines, begin).map_err(|error| lines.stream_error(error))?;
            found.then_some(()).ok_or_else(|| lines.empty())
        }
    }
}

/// Reads a recorded stream. Returns whether it had a command.
fn recorded<T: FnMut(u64, Command) -> bool>(
    lines: &mut Lines,
    begin: impl FnOnce(Option<bool>) -> T,
) -> Result<bool, StreamError> {
    let stream = Recorded::new(lines.reader())?;
    let mut take = begin(Some(stream.margin_trading()));
    let mut is_found = false;
    for item in stream {
        if let (line, Item::Command { command, .. }) = item? {
            is_found = true;
            if !take(line, command) {
                break;
            }
        }
    }
    Ok(is_found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn parsers_of_whole_streams_name_the_file() {
        let error_of = |text: &'static str| {
            let mut lines = Lines::new("r.txt", Cursor::new(text));
            let read = each(&mut lines, Streamed::Recorded, |_| |_, _| true);
            read.unwrap_err().to_string()
        };
        let error = error_of("# marginTrading=ENABLED\nC,1,NOP\nC,2,FLY\n");
        assert!(error.starts_with("r.txt:3: "), "{error}");
        let error = error_of("# marginTrading=ENABLED\n");
        assert!(error.contains("empty file"), "{error}");
    }
}
