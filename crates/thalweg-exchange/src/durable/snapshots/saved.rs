//! Sessions and reports as bytes, and from bytes again with everything checked.

use super::file_error::SnapshotFileError;
use crate::codec::{REPORT_BYTES, decode_report};
use crate::durable::tables::{Answer, ReportTable, Session, Sessions, UserReports};
use crate::ids::UserId;
use crate::result_code::ResultCode;
use crate::session::{Role, SessionKey};

/// Sessions that have executed something, by key.
pub(super) fn encode_sessions(sessions: &Sessions, out: &mut Vec<u8>) {
    let executed = |session: &&Session| session.last_executed > 0;
    let mut list: Vec<&Session> = sessions.list().iter().filter(executed).collect();
    list.sort_unstable_by_key(|session| session.key);
    put_int(out, list.len() as u32);
    for session in list {
        put_int(out, session.key.role.code());
        put_int(out, session.key.number);
        put_long(out, session.key.holder.cast_unsigned());
        put_long(out, session.last_executed);
        let (gone_until, answers) = sessions.kept(session);
        put_long(out, gone_until);
        put_int(out, answers.len() as u32);
        for answer in answers {
            put_long(out, answer.sequence);
            put_long(out, answer.number);
            put_int(out, answer.result.code().cast_unsigned());
            put_int(out, answer.check);
        }
    }
}

/// Reads sessions of an exchange that has executed this number of commands.
pub(super) fn restore_sessions(
    bytes: &[u8],
    commands: u64,
    into: &mut Sessions,
) -> Result<(), SnapshotFileError> {
    let fields = &mut Fields::new("the sessions", bytes);
    let mut before = None;
    for _ in 0..fields.int()? {
        let session = session(fields, commands)?;
        if before.is_some_and(|before| before >= session.key) {
            return fields.wrong("the place of a session", session.key.holder as u64);
        }
        before = Some(session.key);
        into.add(session);
    }
    fields.end()
}

fn session(fields: &mut Fields<'_>, commands: u64) -> Result<Session, SnapshotFileError> {
    let code = fields.int()?;
    let Some(role) = Role::from_code(code).filter(|role| *role != Role::Read) else {
        return fields.wrong("the role", code.into());
    };
    let number = fields.int()?;
    let holder = fields.long()?.cast_signed();
    let (last_executed, gone_until) = (fields.long()?, fields.long()?);
    if last_executed == 0 {
        return fields.wrong("the last sequence", 0);
    }
    let count = fields.int()?;
    let mut session = Session {
        key: SessionKey::new(role, holder, number),
        last_executed,
        gone_until,
        answers: Default::default(),
        since: 0,
    };
    let mut before = (gone_until, None);
    for _ in 0..count {
        let answer = answer(fields)?;
        if answer.sequence <= before.0 || answer.sequence > last_executed {
            return fields.wrong("the sequence of an answer", answer.sequence);
        }
        if Some(answer.number) <= before.1 || answer.number >= commands {
            return fields.wrong("the number of an answer", answer.number);
        }
        before = (answer.sequence, Some(answer.number));
        session.answers.add(answer);
    }
    if before.0 != last_executed {
        return fields.wrong("the last sequence", last_executed);
    }
    Ok(session)
}

fn answer(fields: &mut Fields<'_>) -> Result<Answer, SnapshotFileError> {
    let (sequence, number, code) = (fields.long()?, fields.long()?, fields.int()?);
    let Some(result) = ResultCode::from_code(code.cast_signed()) else {
        return fields.wrong("the result of an answer", code.into());
    };
    let check = fields.int()?;
    Ok(Answer {
        sequence,
        number,
        result,
        check,
    })
}

/// Users with reports, by id.
pub(super) fn encode_reports(reports: &ReportTable, out: &mut Vec<u8>) {
    let mut list: Vec<&UserReports> = reports.list().iter().collect();
    list.sort_unstable_by_key(|reports| reports.user);
    put_int(out, list.len() as u32);
    for reports in list {
        put_long(out, reports.user.0.cast_unsigned());
        put_long(out, reports.next);
        put_int(out, reports.kept.len() as u32);
        for frame in reports.kept.from(0) {
            out.extend_from_slice(frame);
        }
    }
}

pub(super) fn restore_reports(
    bytes: &[u8],
    into: &mut ReportTable,
) -> Result<(), SnapshotFileError> {
    let fields = &mut Fields::new("the reports", bytes);
    let mut before = None;
    for _ in 0..fields.int()? {
        let user = UserId(fields.long()?.cast_signed());
        if before.is_some_and(|before| before >= user) {
            return fields.wrong("the place of a user", user.0 as u64);
        }
        before = Some(user);
        let (next, count) = (fields.long()?, fields.int()?);
        // No user has had half of all numbers; more would leave none for the next reports.
        if next <= u64::from(count) || next > u64::MAX / 2 {
            return fields.wrong("the number of the next report", next);
        }
        let mut reports = UserReports {
            user,
            next,
            kept: Default::default(),
            since: 0,
        };
        for _ in 0..count {
            let frame = *fields.take::<REPORT_BYTES>()?;
            match decode_report(&frame) {
                Ok((report, _)) if report.owner == user => reports.kept.add(frame),
                _ => return fields.wrong("the frame of a report", frame[4].into()),
            }
        }
        into.add(reports);
    }
    fields.end()
}

fn put_int(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_long(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// The fields of a part, one after another.
struct Fields<'b> {
    what: &'static str,
    bytes: &'b [u8],
    /// Where the last field begins, and where the next one does.
    last: usize,
    at: usize,
}

impl<'b> Fields<'b> {
    const fn new(what: &'static str, bytes: &'b [u8]) -> Self {
        Self {
            what,
            bytes,
            last: 0,
            at: 0,
        }
    }

    fn take<const N: usize>(&mut self) -> Result<&'b [u8; N], SnapshotFileError> {
        let (what, at) = (self.what, self.at);
        let ends_early = SnapshotFileError::Truncated { what, at };
        let field = self.bytes[self.at..].first_chunk().ok_or(ends_early)?;
        self.last = self.at;
        self.at += N;
        Ok(field)
    }

    fn int(&mut self) -> Result<u32, SnapshotFileError> {
        self.take().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn long(&mut self) -> Result<u64, SnapshotFileError> {
        self.take().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The last field is wrong, or one shortly before it.
    fn wrong<T>(&self, what: &'static str, value: u64) -> Result<T, SnapshotFileError> {
        let at = self.last;
        Err(SnapshotFileError::Field { what, at, value })
    }

    fn end(&self) -> Result<(), SnapshotFileError> {
        match self.bytes.len() - self.at {
            0 => Ok(()),
            surplus => Err(SnapshotFileError::Field {
                what: "the surplus of a part",
                at: self.at,
                value: surplus as u64,
            }),
        }
    }
}
