//! A line for each command of an administrator: who, when, what, and what came of it.
//!
//! Lines go to the log, and to a file if the configuration names one, by a thread of its own. They
//! are told after the command is durable; one that a crash keeps from being written is in the
//! journal all the same.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use thalweg_exchange::session::{ClientSequence, Refusal, SessionKey};
use thalweg_exchange::{Command, ResultCode};

use crate::figures::{Figures, raise};

/// Lines that wait; who writes more waits.
const LINES_MAX: usize = 1 << 12;

/// What a line shows of a command, in bytes.
const COMMAND_BYTES_MAX: usize = 1 << 12;

/// See the [module](self).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AuditLine {
    /// Milliseconds since 1970.
    time_ms: u64,
    admin: i64,
    session: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    sequence: u64,
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
    result: &'static str,
}

impl AuditLine {
    fn new(
        who: SessionKey,
        key: Option<&str>,
        sequence: ClientSequence,
        command: &Command,
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            time_ms: now.unwrap_or_default().as_millis() as u64,
            admin: who.holder,
            session: who.number,
            key: key.map(str::to_owned),
            sequence: sequence.0,
            command: shown(command),
            number: None,
            result: "",
        }
    }

    /// Of a command that was executed under a number.
    pub(crate) fn executed(
        who: SessionKey,
        key: Option<&str>,
        sequence: ClientSequence,
        command: &Command,
        number: u64,
    ) -> Self {
        let number = Some(number);
        Self {
            number,
            ..Self::new(who, key, sequence, command)
        }
    }

    pub(crate) fn with_result(mut self, result: ResultCode) -> Self {
        self.result = result.name();
        self
    }

    /// Of a command that was not taken.
    pub(crate) fn refused(
        who: SessionKey,
        key: Option<&str>,
        sequence: ClientSequence,
        command: &Command,
        why: Refusal,
    ) -> Self {
        Self {
            result: why.name(),
            ..Self::new(who, key, sequence, command)
        }
    }
}

/// A command as text: of one that is very long, such as a batch of accounts, the beginning.
fn shown(command: &Command) -> String {
    let mut text = format!("{command:?}");
    if text.len() > COMMAND_BYTES_MAX {
        text.truncate(text.floor_char_boundary(COMMAND_BYTES_MAX));
        text.push('…');
    }
    text
}

/// Where lines go.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    lines: mpsc::SyncSender<AuditLine>,
    figures: Arc<Figures>,
}

impl Audit {
    /// Begins to write. The thread ends with the last [`Audit`].
    ///
    /// # Errors
    /// The file cannot be opened to add to it.
    pub(crate) fn start(
        file: Option<&Path>,
        figures: Arc<Figures>,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = file.map(|path| options.open(path)).transpose()?;
        let (lines, received) = mpsc::sync_channel(LINES_MAX);
        let thread = thread::Builder::new().name("audit".into());
        let thread = thread.spawn(move || write_lines(&received, file))?;
        Ok((Self { lines, figures }, thread))
    }

    pub(crate) fn write(&self, line: AuditLine) {
        raise(&self.figures.audit_lines, 1);
        // The thread lives as long as this does.
        let _ = self.lines.send(line);
    }
}

fn write_lines(lines: &mpsc::Receiver<AuditLine>, mut file: Option<File>) {
    for line in lines {
        tracing::info!(
            target: "audit",
            admin = line.admin,
            session = line.session,
            key = line.key,
            sequence = line.sequence,
            command = line.command,
            number = line.number,
            result = line.result,
            "admin command"
        );
        let Some(file) = &mut file else { continue };
        let text = serde_json::to_string(&line).map_err(io::Error::other);
        let written = text.and_then(|text| file.write_all(format!("{text}\n").as_bytes()));
        if let Err(error) = written {
            tracing::error!(%error, "a line of the audit file was not written");
        }
    }
}
