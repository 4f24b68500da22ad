//! Log lines on standard error.
//!
//! A thread of their own writes them. Where standard error takes nothing, such as a pipe that is
//! not read, lines are dropped and counted, and no thread waits.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogFormat, LogLevel, Threads};

/// Lines that wait to be written.
pub(crate) const LINES_MAX: usize = 1 << 12;
/// How long the end of the program waits for its last lines.
const LAST_TIME: Duration = Duration::from_secs(1);

static LOST: AtomicU64 = AtomicU64::new(0);

/// Returns how many lines were dropped since the start.
pub(crate) fn lost() -> u64 {
    // ORDERING: Relaxed, pairs with the addition in write(); a count alone.
    LOST.load(Ordering::Relaxed)
}

#[derive(Debug)]
enum Message {
    Line(Box<[u8]>),
    /// All before it are written when it is dropped.
    End(#[allow(dead_code, reason = "it is there to be dropped")] SyncSender<()>),
}

/// The way to the thread that writes.
#[derive(Clone, Debug)]
struct Lines(Arc<SyncSender<Message>>);

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.try_send(Message::Line(line.into())).is_err() {
            // ORDERING: Relaxed, pairs with lost(); a count alone.
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Logging that was begun. Dropped at the end of the program: the last lines are written then, if
/// standard error takes them within a second.
#[derive(Debug)]
#[must_use = "dropped, it waits for the lines until then"]
pub struct Logs(Lines);

impl Drop for Logs {
    fn drop(&mut self) {
        let lines = self.0.clone();
        let (end, ended) = mpsc::sync_channel(1);
        let last = move || {
            let _ = lines.0.send(Message::End(end));
        };
        if thread::Builder::new().spawn(last).is_ok() {
            let _ = ended.recv_timeout(LAST_TIME);
        }
    }
}

/// Begins to log, once a program.
///
/// # Errors
/// The system gives no thread for it.
pub fn start(config: &Threads) -> io::Result<Logs> {
    let level = match config.log_level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let (sender, messages) = mpsc::sync_channel(LINES_MAX);
    let lines = Lines(Arc::new(sender));
    let thread = thread::Builder::new().name("log".into());
    thread.spawn(move || write_lines(&messages, io::stderr()))?;
    let events = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(lines.clone());
    let targets = targets(level);
    // A logger that was set before goes on.
    let _ = match config.log {
        LogFormat::Text => {
            let is_terminal = io::IsTerminal::is_terminal(&io::stderr());
            let wants_color = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            let events = events.with_ansi(is_terminal && wants_color);
            events.finish().with(targets).try_init()
        }
        LogFormat::Json => {
            let events = events.json().flatten_event(true);
            events.finish().with(targets).try_init()
        }
    };
    Ok(Logs(lines))
}

/// Returns what is logged at a level: not each frame of the connections to etcd, which are some
/// thousands a second and would drop the lines of the program.
fn targets(level: LevelFilter) -> Targets {
    let targets = Targets::new().with_default(level);
    targets.with_target("h2", level.min(LevelFilter::WARN))
}

fn write_lines(messages: &mpsc::Receiver<Message>, mut to: impl Write) {
    let mut reported_lost = 0;
    for message in messages {
        let Message::Line(line) = message else {
            continue;
        };
        let lost = lost();
        if lost > reported_lost {
            let more = lost - reported_lost;
            reported_lost = lost;
            // Comes back here when there is room, as any other.
            tracing::warn!(
                lines = more,
                "log lines were lost: standard error did not take them"
            );
        }
        let _ = to.write_all(&line);
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn frames_of_connections_are_not_logged() {
        let targets = targets(LevelFilter::DEBUG);
        assert!(targets.would_enable("thalweg_server", &Level::DEBUG));
        assert!(!targets.would_enable("h2::codec::framed_write", &Level::DEBUG));
        assert!(targets.would_enable("h2::proto", &Level::WARN));
    }
}
