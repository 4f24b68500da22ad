//! A copy takes the place of what a directory has: in steps, each of which is durable, so that an
//! interrupted one is finished at the next start.
//!
//! # State
//! | beside the files of the exchange | meaning |
//! |---|---|
//! | `catch-up.part` | a copy that is received or checked: worth nothing |
//! | `catch-up.whole` | a checked copy; the files of the exchange are moved aside |
//! | `catch-up.moving` | a checked copy, whose files are moved into their places |
//! | `before-catch-up` | the files of the exchange before the last copy |
//!
//! # Rules
//! 1. Only one program at a time does any of it: it [holds](hold) the directory.
//! 2. There is room for one copy beside what is there: what an earlier copy has put aside is
//!    removed before the next is received, and so is what was received in vain.
//! 3. Whatever is there meanwhile opens as what was there before, or as the copy, or not at all: of
//!    what goes, snapshots go first, and of what comes, they come last, and without one of them
//!    there is no exchange.

use std::any::Any;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use thalweg_exchange::durable::replication::LOG_FILE;
use thalweg_exchange::durable::{Files, Storage};
use thalweg_journal::{Lsn, Reader};

use crate::private_files::make_directory;

const PART: &str = "catch-up.part";
const WHOLE: &str = "catch-up.whole";
const MOVING: &str = "catch-up.moving";
const ASIDE: &str = "before-catch-up";

/// A call before each step, whose error ends the work there.
type OnStep<'f> = &'f mut dyn FnMut() -> io::Result<()>;

/// A directory that no other program has open.
pub(super) struct LockedDirectory<'d> {
    directory: &'d Path,
    _lock: Box<dyn Any>,
}

/// Keeps other programs out of a directory, which is made if it is not there.
///
/// # Errors
/// Another program has it open, or the system refuses it.
pub(super) fn hold(directory: &Path) -> io::Result<LockedDirectory<'_>> {
    make_directory(directory)?;
    let _lock = Box::new(locked(directory)?);
    Ok(LockedDirectory { directory, _lock })
}

impl LockedDirectory<'_> {
    /// Makes room for a copy. Returns the empty directory in which it is received.
    pub(super) fn empty_part(&self) -> io::Result<PathBuf> {
        self.remove_part()?;
        remove_all(&self.directory.join(ASIDE))?;
        Ok(self.directory.join(PART))
    }

    /// Removes what was received in vain.
    pub(super) fn remove_part(&self) -> io::Result<()> {
        remove_all(&self.directory.join(PART))
    }

    /// Puts the copy in the place of what is there, which is kept aside.
    pub(super) fn replace(&self) -> io::Result<()> {
        self.replace_by(&mut || Ok(()))
    }

    fn replace_by(&self, on_step: OnStep<'_>) -> io::Result<()> {
        on_step()?;
        sync(&self.directory.join(PART))?;
        on_step()?;
        rename(self.directory, PART, WHOLE)?;
        finish_by(self.directory, on_step)
    }
}

/// Finishes what was interrupted, if something was.
pub(super) fn finish(directory: &Path) -> io::Result<()> {
    let is_there = |name| directory.join(name).is_dir();
    match is_there(WHOLE) || is_there(MOVING) {
        true => {
            let _lock = locked(directory)?;
            finish_by(directory, &mut || Ok(()))
        }
        false => Ok(()),
    }
}

fn finish_by(directory: &Path, on_step: OnStep<'_>) -> io::Result<()> {
    let (whole, moving) = (directory.join(WHOLE), directory.join(MOVING));
    if whole.is_dir() {
        let aside = directory.join(ASIDE);
        make_directory(&aside)?;
        let mut names = names(directory)?;
        names.sort_by_key(|name| !is_snapshot(name));
        move_all(&names, (directory, &aside), on_step)?;
        on_step()?;
        rename(directory, WHOLE, MOVING)?;
    }
    if moving.is_dir() {
        let mut names = names(&moving)?;
        names.sort_by_key(|name| is_snapshot(name));
        move_all(&names, (&moving, directory), on_step)?;
        on_step()?;
        // Its lock is left.
        remove_all(&moving)?;
        sync(directory)?;
    }
    Ok(())
}

/// Keeps programs out that would open the directory meanwhile.
fn locked(directory: &Path) -> io::Result<impl Any> {
    let lock = Files::new(directory).lock()?;
    let in_use = || io::Error::new(io::ErrorKind::ResourceBusy, "another program has it open");
    lock.ok_or_else(in_use)
}

fn is_snapshot(name: &str) -> bool {
    name.starts_with("snapshot-") && name.ends_with(".thw")
}

/// Returns whether a directory has commands: in the journal, or in a snapshot, since a journal may
/// have lost its segments. One that cannot be read may have some.
pub(super) fn has_commands(directory: &Path) -> io::Result<bool> {
    let of_commands = |name: &String| {
        let number = name.strip_prefix("snapshot-");
        let number = number.and_then(|rest| rest.strip_suffix(".thw"));
        number.is_some_and(|number| !number.bytes().all(|byte| byte == b'0'))
    };
    let names = names(directory)?;
    if names.iter().any(of_commands) {
        return Ok(true);
    }
    if !names.iter().any(|name| name.ends_with(".segment")) {
        return Ok(false);
    }
    let reader = Reader::open(directory, Lsn::ZERO);
    let first = reader.and_then(|mut reader| Ok(reader.next_block()?.is_none()));
    Ok(!first.unwrap_or(false))
}

/// Returns the names of the files of an exchange in a directory.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let endings = [".segment", ".spare", ".part"];
        let is_ours = is_snapshot(&name)
            || name == LOG_FILE
            || endings.iter().any(|ending| name.ends_with(ending));
        if is_ours && entry.file_type()?.is_file() {
            names.push(name);
        }
    }
    Ok(names)
}

fn move_all(names: &[String], (from, to): (&Path, &Path), on_step: OnStep<'_>) -> io::Result<()> {
    for name in names {
        on_step()?;
        fs::rename(from.join(name), to.join(name))?;
        // One after the other: the next may depend on it.
        sync(to)?;
        sync(from)?;
    }
    Ok(())
}

fn rename(directory: &Path, from: &str, to: &str) -> io::Result<()> {
    fs::rename(directory.join(from), directory.join(to))?;
    sync(directory)
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn remove_all(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use thalweg_exchange::durable::{Exchange, Origin};
    use thalweg_exchange::{Command, UserId};
    use thalweg_testkit::Scratch;

    use super::super::tests::options;
    use super::*;

    /// Makes an exchange with this number of users, and two snapshots.
    fn make(directory: &Path, users: i64) {
        for uids in [0..1, 1..users] {
            let (mut exchange, _) = Exchange::open(directory, options(), |_| ()).expect("it opens");
            for uid in uids {
                let command = Command::AddUser { uid: UserId(uid) };
                exchange
                    .submit(Origin::Engine, &command, 0)
                    .expect("it is taken");
            }
            exchange.close().expect("it is closed");
        }
    }

    /// Returns how many commands the directory has, if it opens.
    fn commands(directory: &Path) -> Option<u64> {
        let opened = Exchange::open(directory, options(), |_| ());
        opened.ok().map(|(_, recovered)| recovered.commands)
    }

    #[test]
    fn a_directory_opens_as_before_or_as_the_copy_wherever_it_was_interrupted() {
        const OLD: u64 = 5;
        const NEW: u64 = 9;
        let mut refused = 0;
        for steps in 0.. {
            let place = Scratch::new("catch-up");
            let directory = &*place;
            make(directory, OLD as i64);
            fs::write(directory.join("keys.toml"), "").expect("there is room");
            let held = hold(directory).expect("nothing else has it");
            make(&held.empty_part().expect("there is room"), NEW as i64);
            let mut left = steps;
            let done = held.replace_by(&mut || {
                left -= 1;
                if left < 0 {
                    Err(io::Error::other("the end"))
                } else {
                    Ok(())
                }
            });
            drop(held);
            match commands(directory) {
                Some(found) => assert!([OLD, NEW].contains(&found), "{steps}: {found}"),
                None => refused += 1,
            }
            if done.is_err() && directory.join(PART).exists() {
                assert_eq!(
                    commands(directory),
                    Some(OLD),
                    "a copy that is not whole is nothing"
                );
                let held = hold(directory).expect("nothing else has it");
                held.replace().expect("it is done again");
            } else {
                finish(directory).expect("it goes on");
            }
            assert_eq!(commands(directory), Some(NEW), "{steps}");
            assert!(directory.join("keys.toml").exists());
            for name in [PART, WHOLE, MOVING] {
                assert!(!directory.join(name).exists(), "{name}");
            }
            let aside = directory.join(ASIDE);
            assert_eq!(
                commands(&aside),
                Some(OLD),
                "{steps}: what was there is kept"
            );
            if done.is_ok() {
                assert!(steps > 8, "each file is a step");
                break;
            }
        }
        assert!(refused > 0, "there are moments at which nothing opens");
    }
}
