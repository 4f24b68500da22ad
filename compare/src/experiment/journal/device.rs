//! What a disk was asked for, as Linux counts it for all programs together.

use std::fs;
use std::path::{Path, PathBuf};

/// The disk on which a directory is.
#[derive(Debug)]
pub(super) struct Device {
    stat: PathBuf,
}

/// Requests that were completed since the system started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) writes: u64,
    pub(super) flushes: u64,
}

impl Device {
    /// None where the system does not count, or has no such disk.
    #[cfg(target_os = "linux")]
    pub(super) fn of(place: &Path) -> Option<Device> {
        use std::os::linux::fs::MetadataExt;
        let device = fs::metadata(place).ok()?.st_dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let known = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        // Flushes are those of a whole disk.
        let stat = match known.join("partition").exists() {
            true => known.join("../stat"),
            false => known.join("stat"),
        };
        let device = Device { stat };
        device.asked()?;
        Some(device)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(_: &Path) -> Option<Device> {
        None
    }

    pub(super) fn asked(&self) -> Option<Asked> {
        Asked::parse(&fs::read_to_string(&self.stat).ok()?)
    }
}

impl Asked {
    /// Reads the one line of a `stat` file (`Documentation/block/stat.rst` in Linux); before 5.5 it
    /// has no flushes.
    fn parse(stat: &str) -> Option<Asked> {
        let mut fields = stat.split_ascii_whitespace().map(str::parse);
        let writes = fields.nth(4)?.ok()?;
        let flushes = fields.nth(10)?.ok()?;
        Some(Asked { writes, flushes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_flushes_are_read() {
        let line = "  176561 15667 16569378 183691 310214 80579 60715976 189764 0 33228 381180 \
                    10033 63 17397576 3841 120493 3881\n";
        let asked = Asked {
            writes: 310_214,
            flushes: 120_493,
        };
        assert_eq!(Asked::parse(line), Some(asked));
        assert_eq!(Asked::parse("1 2 3 4 5 6 7 8 9 10 11"), None);
        assert_eq!(Asked::parse(""), None);
    }
}
