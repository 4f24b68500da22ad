//! The kernel's description of its tracepoints.

use rustix::fs::{Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};

/// A folder of formats. Where tracefs is not mounted, it is opened without being mounted
/// anywhere: that needs root, and leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Formats(OwnedFd);

/// A tracepoint.
#[derive(Debug)]
pub(crate) struct Format {
    pub(crate) id: u64,
    text: String,
}

const PLACES: &[&str] = &[
    "/sys/kernel/tracing/events",
    "/sys/kernel/debug/tracing/events",
];

impl Formats {
    pub(crate) fn open() -> io::Result<Formats> {
        for place in PLACES {
            if let Ok(folder) = File::open(place) {
                return Ok(Formats(folder.into()));
            }
        }
        let system = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(system.as_fd())?;
        let flags = FsMountFlags::FSMOUNT_CLOEXEC;
        let root = fsmount(system.as_fd(), flags, MountAttrFlags::empty())?;
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Formats(openat(root, "events", folder, Mode::empty())?))
    }

    pub(crate) fn read(&self, name: &str) -> io::Result<Format> {
        let read = |file: &str| {
            let path = format!("{name}/{file}");
            let file = openat(
                &self.0,
                path,
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            let mut text = String::new();
            File::from(file).read_to_string(&mut text)?;
            io::Result::Ok(text)
        };
        let id = read("id")?;
        let id = id
            .trim()
            .parse()
            .map_err(|_| io::Error::other(format!("the id is {id}")))?;
        Ok(Format {
            id,
            text: read("format")?,
        })
    }
}

impl Format {
    /// Where a field begins in the raw data.
    pub(crate) fn offset(&self, field: &str) -> io::Result<usize> {
        let names = |line: &&str| {
            let declared = line
                .trim_start()
                .strip_prefix("field:")?
                .split(';')
                .next()?;
            let name = declared.split_whitespace().last()?;
            Some(name.split('[').next() == Some(field))
        };
        let found = self.text.lines().find(|line| names(line) == Some(true));
        let offset = found.and_then(|line| line.split_once("offset:"));
        let offset = offset.and_then(|(_, rest)| rest.split(';').next()?.parse().ok());
        offset.ok_or_else(|| io::Error::other(format!("the format has no field {field}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
                    \tfield:char comm[16];\toffset:8;\tsize:16;\n\
                    \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n";
        let format = Format {
            id: 1,
            text: text.into(),
        };
        assert_eq!(format.offset("pid").unwrap(), 24);
        assert_eq!(format.offset("comm").unwrap(), 8);
        let error = format.offset("prio").unwrap_err();
        assert_eq!(error.to_string(), "the format has no field prio");
    }
}
