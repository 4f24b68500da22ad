//! Log lines on standard error.

use std::io;

use tracing::level_filters::LevelFilter;

use crate::config::{LogFormat, LogLevel, Threads};

/// Begins to log, once a program.
pub fn start(config: &Threads) {
    let level = match config.log_level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr);
    // Whoever has begun before goes on.
    let _ = match config.log {
        LogFormat::Text => {
            let is_terminal = io::IsTerminal::is_terminal(&io::stderr());
            let wished = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            lines.with_ansi(is_terminal && wished).try_init()
        }
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
