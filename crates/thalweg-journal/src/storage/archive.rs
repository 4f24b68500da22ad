//! A directory, on any disk, for files that are no longer needed.
//!
//! *Order.* A file is in the archive, whole and durable under its name, before it is removed from
//! where it was; or it is moved by one rename. So a crash leaves it in one place or in both, and
//! what is found in both is compared before it is removed from one.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::Archived;

/// Puts the file `name` of one directory into another.
pub(super) fn archive(directory: &Path, archive: &Path, name: &str) -> io::Result<Archived> {
    let (here, there) = (directory.join(name), archive.join(name));
    // It is not made here: where a disk is not mounted, another one would be filled.
    if !archive.is_dir() {
        let what = format!("the archive {} is not there", archive.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    }
    if !here.exists() {
        return Ok(Archived::No);
    }
    if there.exists() {
        return match is_same(&here, &there)? {
            true => sync(archive).map(|()| Archived::Copied),
            false => Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!(
                    "the archive {} has another file of its name",
                    archive.display()
                ),
            )),
        };
    }
    match fs::rename(&here, &there) {
        Ok(()) => sync(archive).map(|()| Archived::Moved),
        // Another file system, or one that does not rename: what is wrong shows in the copy.
        Err(_) => copy(&here, archive, name).map(|()| Archived::Copied),
    }
}

/// Copies a file under its name, which it gets once it is whole.
fn copy(here: &Path, archive: &Path, name: &str) -> io::Result<()> {
    let part = archive.join(format!("{name}.part"));
    let copied = fs::copy(here, &part).and_then(|_| File::open(&part)?.sync_all());
    if copied.is_err() {
        // Half a file is of no use, and takes room on a disk that may be full.
        let _ = fs::remove_file(&part);
    }
    copied?;
    fs::rename(&part, archive.join(name))?;
    sync(archive)
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn is_same(here: &Path, there: &Path) -> io::Result<bool> {
    let [here, there] = [File::open(here)?, File::open(there)?];
    if here.metadata()?.len() != there.metadata()?.len() {
        return Ok(false);
    }
    let [mut here, mut there] = [here, there].map(|file| BufReader::with_capacity(1 << 16, file));
    let (mut one, mut other) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let bytes = here.read(&mut one)?;
        if bytes == 0 {
            return Ok(true);
        }
        there.read_exact(&mut other[..bytes])?;
        if one[..bytes] != other[..bytes] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use thalweg_testkit::Scratch;

    /// Two directories, the first of which has a file `a`.
    struct Place(Scratch);

    impl Place {
        fn new(name: &str) -> Place {
            let place = Place(Scratch::new(name));
            fs::create_dir_all(place.at("archive")).expect("it can be made");
            fs::write(place.at("a"), [7; 100_000]).expect("it can be written");
            place
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn archive(&self) -> io::Result<Archived> {
            archive(&self.0, &self.at("archive"), "a")
        }
    }

    #[test]
    fn a_file_is_moved_and_one_that_is_there_already_is_compared() -> io::Result<()> {
        let place = Place::new("moved");
        assert_eq!(place.archive()?, Archived::Moved);
        assert!(!place.at("a").exists());
        assert_eq!(place.archive()?, Archived::No);
        // A crash after a copy leaves both.
        fs::copy(place.at("archive/a"), place.at("a"))?;
        assert_eq!(place.archive()?, Archived::Copied);
        let mut other = vec![7; 100_000];
        other[99_999] = 8;
        for other in [other, vec![7; 10]] {
            fs::write(place.at("a"), other)?;
            let error = place.archive().expect_err("it is another file");
            assert!(error.to_string().ends_with("has another file of its name"));
        }
        assert_eq!(fs::read(place.at("archive/a"))?, [7; 100_000]);
        Ok(())
    }

    #[test]
    fn a_copy_has_its_name_when_it_is_whole() -> io::Result<()> {
        let place = Place::new("copied");
        // A crash has left the beginning of one.
        fs::write(place.at("archive/a.part"), [1; 9])?;
        copy(&place.at("a"), &place.at("archive"), "a")?;
        assert_eq!(fs::read(place.at("archive/a"))?, [7; 100_000]);
        assert!(place.at("a").exists() && !place.at("archive/a.part").exists());
        // A directory in its place stands for a disk that takes nothing.
        fs::create_dir(place.at("archive/b.part"))?;
        assert!(copy(&place.at("a"), &place.at("archive"), "b").is_err());
        assert!(!place.at("archive/b").exists());
        Ok(())
    }

    #[test]
    fn an_archive_that_is_not_there_is_not_made() -> io::Result<()> {
        let place = Place::new("missing");
        fs::remove_dir(place.at("archive"))?;
        let error = place.archive().expect_err("there is none");
        assert!(
            error.to_string().ends_with("archive is not there"),
            "{error}"
        );
        assert!(place.at("a").exists() && !place.at("archive").exists());
        Ok(())
    }
}
