//! The memory of a session beyond a connection.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use thalweg_exchange::session::{ClientSequence, ReportNumber};

/// The values that a session remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedSession {
    /// The exchange that they belong to; `None` before the first connection.
    pub exchange: Option<u64>,
    /// No sequence above this one was ever used.
    pub last_sequence: ClientSequence,
    /// The last report that the user has seen; `None` for none.
    pub last_report: Option<ReportNumber>,
}

/// Where a session keeps what it must not forget. A client saves sequences *before* it uses them,
/// many at a time, and reports after they were seen.
///
/// A session whose program may be killed and started again needs one that survives, or a session
/// number of its own for each start.
pub trait SessionStore: Send {
    /// Returns the values that were saved last; the default ones if none were.
    ///
    /// # Errors
    /// Whatever keeps it from being read: the client does not connect then.
    fn load(&mut self) -> io::Result<SavedSession>;

    /// Saves it; when this returns, [`load`](Self::load) gives it, also after a restart.
    ///
    /// # Errors
    /// Whatever keeps it from being saved: the client closes then.
    fn save(&mut self, saved: &SavedSession) -> io::Result<()>;
}

/// A store in memory, which lasts as long as this value.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(SavedSession);

impl SessionStore for MemoryStore {
    fn load(&mut self) -> io::Result<SavedSession> {
        Ok(self.0)
    }

    fn save(&mut self, saved: &SavedSession) -> io::Result<()> {
        self.0 = *saved;
        Ok(())
    }
}

/// A store in a small text file, which is replaced as a whole.
#[derive(Clone, Debug)]
pub struct FileStore {
    path: PathBuf,
}

const HEADING: &str = "thalweg session 1";
/// The longest store, in bytes: it has some 100.
const STORE_BYTES_MAX: u64 = 4_096;

impl FileStore {
    /// Returns a store in this file, which need not be there yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn named(path: &Path, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    }

    fn wrong(&self, line: usize) -> io::Error {
        let path = self.path.display();
        let message = format!("{path}:{line}: not what a session's store has there");
        io::Error::new(io::ErrorKind::InvalidData, message)
    }

    fn parse(&self, text: &str) -> io::Result<SavedSession> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADING) {
            return Err(self.wrong(1));
        }
        let mut field = |line: usize, name: &str| {
            let value = lines
                .next()
                .and_then(|text| text.strip_prefix(name)?.strip_prefix(' '));
            value.ok_or(self.wrong(line))
        };
        let exchange = match field(2, "exchange")? {
            "none" => None,
            hex => Some(u64::from_str_radix(hex, 16).map_err(|_| self.wrong(2))?),
        };
        let last_sequence = field(3, "sequence")?.parse().map_err(|_| self.wrong(3))?;
        let last_report = match field(4, "report")? {
            "none" => None,
            number => Some(ReportNumber(number.parse().map_err(|_| self.wrong(4))?)),
        };
        Ok(SavedSession {
            exchange,
            last_sequence: ClientSequence(last_sequence),
            last_report,
        })
    }
}

impl SessionStore for FileStore {
    fn load(&mut self) -> io::Result<SavedSession> {
        let mut text = String::new();
        let read = File::open(&self.path)
            .and_then(|file| file.take(STORE_BYTES_MAX + 1).read_to_string(&mut text));
        match read {
            Ok(bytes) if bytes as u64 > STORE_BYTES_MAX => {
                let what = format!("larger than the limit of {STORE_BYTES_MAX} bytes");
                Err(Self::named(&self.path, &io::Error::other(what)))
            }
            Ok(_) => self.parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(SavedSession::default()),
            Err(error) => Err(Self::named(&self.path, &error)),
        }
    }

    fn save(&mut self, saved: &SavedSession) -> io::Result<()> {
        let none = || "none".to_owned();
        let exchange = saved
            .exchange
            .map_or_else(none, |number| format!("{number:016x}"));
        let sequence = saved.last_sequence;
        let report = saved
            .last_report
            .map_or_else(none, |number| number.to_string());
        let text =
            format!("{HEADING}\nexchange {exchange}\nsequence {sequence}\nreport {report}\n");
        let mut part = self.path.clone().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        let written = File::create(&part).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|error| Self::named(&part, &error))?;
        fs::rename(&part, &self.path).map_err(|error| Self::named(&self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use thalweg_testkit::Scratch;

    use super::*;

    #[test]
    fn a_file_remembers() {
        let folder = Scratch::new("remembers");
        let path = folder.join("session");
        assert_eq!(
            FileStore::new(&path).load().expect("no file is none"),
            SavedSession::default()
        );
        for saved in [
            SavedSession::default(),
            SavedSession {
                exchange: Some(u64::MAX),
                last_sequence: ClientSequence(7),
                last_report: Some(ReportNumber(0)),
            },
        ] {
            FileStore::new(&path).save(&saved).expect("it is written");
            assert_eq!(FileStore::new(&path).load().expect("it is there"), saved);
        }
    }

    #[test]
    fn a_wrong_file_is_named_with_its_line() {
        let folder = Scratch::new("wrong");
        let path = folder.join("session");
        for (text, line) in [
            ("", 1),
            ("thalweg session 2\n", 1),
            ("thalweg session 1\nexchange x\n", 2),
            ("thalweg session 1\nexchange none\nsequence -1\n", 3),
            ("thalweg session 1\nexchange none\nsequence 1\nreport\n", 4),
        ] {
            fs::write(&path, text).expect("it is written");
            let error = FileStore::new(&path).load().expect_err("it is wrong");
            let expected = format!(
                "{}:{line}: not what a session's store has there",
                path.display()
            );
            assert_eq!(error.to_string(), expected);
        }
        let error = FileStore::new(&*folder).load().expect_err("it is a folder");
        assert!(
            error
                .to_string()
                .starts_with(&*folder.display().to_string()),
            "{error}"
        );
        let nowhere = folder.join("no").join("session");
        let error = FileStore::new(&nowhere)
            .save(&SavedSession::default())
            .expect_err("nowhere");
        assert!(
            error
                .to_string()
                .starts_with(&nowhere.display().to_string()),
            "{error}"
        );
    }
}
