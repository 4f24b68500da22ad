//! The audit log: a line for each command of an administrator: who, when, which command, and its
//! result; and for what a gateway reports.
//!
//! Lines go to the log, and to a file if the configuration names one, by a thread of its own. They
//! are written after the command is durable; one that a crash keeps from being written is in the
//! journal all the same. No command waits for the file: a line that it does not take is counted,
//! and the next line that it takes has one before it that says how many are missing.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use thalweg_exchange::session::{ClientSequence, Refusal, SessionKey};
use thalweg_exchange::{Command, ResultCode};

use crate::counters::{Counters, raise, read};
use crate::private_files;

/// Lines that wait for the thread; beyond that they are lost, and counted.
const LINES_MAX: usize = 1 << 12;

/// The length of a command's text in a line at most, in bytes.
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
    fn new(who: SessionKey, sequence: ClientSequence, command: &Command) -> Self {
        Self {
            time_ms: now_ms(),
            admin: who.holder,
            session: who.number,
            key: None,
            sequence: sequence.0,
            command: shown(command),
            number: None,
            result: "",
        }
    }

    /// Returns the line of a command that was executed under a number.
    pub(crate) fn executed(
        who: SessionKey,
        sequence: ClientSequence,
        command: &Command,
        number: u64,
    ) -> Self {
        let number = Some(number);
        Self {
            number,
            ..Self::new(who, sequence, command)
        }
    }

    pub(crate) fn with_result(mut self, result: ResultCode) -> Self {
        self.result = result.name();
        self
    }

    /// Adds the name of the key.
    pub(crate) fn with_key(mut self, key: Option<&str>) -> Self {
        self.key = key.map(str::to_owned);
        self
    }

    /// Returns the line of a command that was not taken.
    pub(crate) fn refused(
        who: SessionKey,
        sequence: ClientSequence,
        command: &Command,
        why: Refusal,
    ) -> Self {
        Self {
            result: why.name(),
            ..Self::new(who, sequence, command)
        }
    }
}

/// A line of the audit log about a gateway.
#[derive(Clone, Debug, Serialize)]
pub struct GatewayLine {
    /// The event.
    pub event: &'static str,
    /// The client's address, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The public API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its result.
    pub result: String,
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_millis() as u64
}

/// A line that waits for the thread.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Line {
    Command(AuditLine),
    Gateway {
        time_ms: u64,
        #[serde(flatten)]
        line: GatewayLine,
    },
}

impl Line {
    fn log(&self) {
        match self {
            Self::Command(line) => tracing::info!(
                target: "audit",
                admin = line.admin,
                session = line.session,
                key = line.key,
                sequence = line.sequence,
                command = line.command,
                number = line.number,
                result = line.result,
                "admin command"
            ),
            Self::Gateway { line, .. } => tracing::info!(
                target: "audit",
                event = line.event,
                address = line.address.map(tracing::field::display),
                key = line.key,
                result = line.result,
                "gateway"
            ),
        }
    }
}

/// Returns a command as text: the beginning of one that is very long, such as a batch of accounts.
fn shown(command: &Command) -> String {
    let mut short = Short(String::new());
    if write!(short, "{command:?}").is_err() {
        short.0.push('…');
    }
    short.0
}

/// Takes a bounded length of text: the exchange waits while it is written.
struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let fitting = more.floor_char_boundary(COMMAND_BYTES_MAX - self.0.len());
        self.0.push_str(&more[..fitting]);
        if fitting == more.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

/// Where lines go.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    lines: mpsc::SyncSender<Line>,
    counters: Arc<Counters>,
}

impl Audit {
    /// Begins to write. The thread ends with the last [`Audit`].
    ///
    /// # Errors
    /// The file cannot be opened to add to it.
    pub(crate) fn start(
        file: Option<&Path>,
        counters: Arc<Counters>,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let mut options = private_files::options();
        options.append(true).create(true);
        let file = file.map(|path| options.open(path)).transpose()?;
        let (lines, received) = mpsc::sync_channel(LINES_MAX);
        let thread = thread::Builder::new().name("audit".into());
        let counts = Arc::clone(&counters);
        let thread = thread.spawn(move || write_lines(&received, file, &counts))?;
        Ok((Self { lines, counters }, thread))
    }

    pub(crate) fn write(&self, line: AuditLine) {
        self.send(Line::Command(line));
    }

    pub(crate) fn write_gateway(&self, line: GatewayLine) {
        let time_ms = now_ms();
        self.send(Line::Gateway { time_ms, line });
    }

    fn send(&self, line: Line) {
        raise(&self.counters.audit_lines, 1);
        if self.lines.try_send(line).is_err() {
            raise(&self.counters.audit_lost, 1);
        }
    }
}

fn write_lines(lines: &mpsc::Receiver<Line>, file: Option<File>, counters: &Counters) {
    let mut file = file.map(|file| AuditFile::new(file, counters));
    for line in lines {
        line.log();
        let Some(file) = &mut file else { continue };
        if let Err(error) = file.write(&line) {
            tracing::error!(%error, "the audit file takes nothing; lines are lost");
        }
    }
}

/// The audit file. Every line in it is whole, and a line is preceded by the number of lines that
/// were left out.
#[derive(Debug)]
struct AuditFile<'f, W> {
    to: W,
    counters: &'f Counters,
    /// The part of the last line that is not written yet.
    rest: Vec<u8>,
    /// Lines that were lost, as far as the file reports them.
    reported_lost: u64,
}

impl<'f, W: Write> AuditFile<'f, W> {
    const fn new(to: W, counters: &'f Counters) -> Self {
        Self {
            to,
            counters,
            rest: Vec::new(),
            reported_lost: 0,
        }
    }

    /// Writes a line, or as much of it as the file takes: the rest comes before the next one. A
    /// line is lost where that cannot be written either.
    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        if let Err(error) = self.finish() {
            raise(&self.counters.audit_lost, 1);
            return Err(error);
        }
        let lost = read(&self.counters.audit_lost);
        if lost > self.reported_lost {
            let missing = lost - self.reported_lost;
            self.reported_lost = lost;
            writeln!(self.rest, "{{\"lost\":{missing}}}")?;
        }
        serde_json::to_writer(&mut self.rest, line)?;
        self.rest.push(b'\n');
        self.finish()
    }

    /// Writes what is left of the lines before.
    fn finish(&mut self) -> io::Result<()> {
        while !self.rest.is_empty() {
            match self.to.write(&self.rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => drop(self.rest.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::session::Role;
    use thalweg_exchange::{AccountSpec, UserId};

    use super::*;

    /// Takes this number of bytes, and then none.
    #[derive(Debug)]
    struct Full {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= count;
            self.bytes.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn line(sequence: u64) -> AuditLine {
        let who = SessionKey::new(Role::Admin, 1, 0);
        AuditLine::refused(
            who,
            ClientSequence(sequence),
            &Command::Nop,
            Refusal::Draining,
        )
    }

    #[test]
    fn lines_stay_whole_and_those_that_are_lost_are_counted() {
        let counters = Counters::default();
        let (bytes, room) = (Vec::new(), 20);
        let mut file = AuditFile::new(Full { bytes, room }, &counters);
        // Some of the first one, and nothing more.
        for sequence in 1..=4 {
            let error = file.write(&line(sequence)).expect_err("there is no room");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        file.to.room = usize::MAX;
        file.write(&line(5)).expect("there is room");
        file.write(&line(6)).expect("there is room");
        let text = String::from_utf8(file.to.bytes).expect("it is text");
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line is whole"))
            .collect();
        let sequences: Vec<_> = lines.iter().map(|line| line["sequence"].as_u64()).collect();
        assert_eq!(sequences, [Some(1), None, Some(5), Some(6)]);
        assert_eq!(lines[1]["lost"], 3);
        assert_eq!(read(&counters.audit_lost), 3);
    }

    #[test]
    fn a_long_command_is_cut_and_takes_no_room_for_the_rest() {
        let short = Command::AddUser { uid: UserId(5) };
        assert_eq!(shown(&short), "AddUser { uid: UserId(5) }");
        let account = |uid| AccountSpec::new(UserId(uid), Vec::new());
        let many: Vec<AccountSpec> = (0..10_000).map(account).collect();
        let text = shown(&Command::AddAccounts(many.into()));
        assert!(text.starts_with("AddAccounts([AccountSpec { uid: UserId(0)"));
        assert_eq!(text.len(), COMMAND_BYTES_MAX + '…'.len_utf8());
        assert!(text.capacity() <= 3 * COMMAND_BYTES_MAX);
    }
}
