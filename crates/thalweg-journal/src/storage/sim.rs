//! A disk in memory that loses power.
//!
//! A write is seen at once by those who read, as the page cache shows it, and is on disk after a
//! sync only. When the power goes, each sector of 512 bytes that was written since has, on its own,
//! any of the contents that it had since the last sync: so writes are lost, torn between sectors,
//! and reordered. So are changes of names, among each other and with the files' contents. A failed
//! sync leaves some of its sectors on disk and forgets the others, and the next sync says that all
//! is well.

mod fault;
mod media;
mod names;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Storage, StorageFile, WriteSync};
pub use fault::{Fault, Operation};
use media::{Chance, Media};
use names::Names;

#[derive(Debug, Default)]
struct State {
    files: Vec<Media>,
    names: Names,
    operations: u64,
    power_fails_at: Option<u64>,
    has_power: bool,
    locked: bool,
    /// Files and locks of an earlier life are dead.
    life: u64,
    faults: Vec<(Operation, u64, Fault)>,
    chance: Chance,
}

/// A simulated disk with one directory. Clones are handles to the same one.
#[derive(Debug, Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

impl Default for SimDisk {
    fn default() -> SimDisk {
        SimDisk::new()
    }
}

fn no_power() -> io::Error {
    io::Error::other("the power is off")
}

impl State {
    /// Counts an operation; a fault that is due comes back.
    fn step(&mut self, operation: Operation, life: u64) -> io::Result<Option<Fault>> {
        if !self.has_power || life != self.life {
            return Err(no_power());
        }
        self.operations += 1;
        if self.power_fails_at == Some(self.operations) {
            self.has_power = false;
        }
        let mut due = None;
        self.faults.retain_mut(|(of, countdown, fault)| {
            if *of != operation || due.is_some() {
                return true;
            }
            if *countdown == 0 {
                due = Some(*fault);
                return false;
            }
            *countdown -= 1;
            true
        });
        Ok(due)
    }

    fn plain(&mut self, operation: Operation, life: u64) -> io::Result<()> {
        match self.step(operation, life)? {
            Some(fault) => Err(fault.error()),
            None => Ok(()),
        }
    }

    /// Returns the answer to an operation. One that has begun when the power goes may or may not
    /// happen, and is not answered.
    fn answer<T>(&self, value: T) -> io::Result<T> {
        match self.has_power {
            true => Ok(value),
            false => Err(no_power()),
        }
    }
}

impl SimDisk {
    /// Returns an empty disk, with power.
    #[must_use]
    pub fn new() -> SimDisk {
        SimDisk(Arc::new(Mutex::new(State {
            has_power: true,
            ..State::default()
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Operations so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Turns the power off in the middle of the operation with this number, counted from the first
    /// of the disk; then every operation fails until [`SimDisk::restart`].
    pub fn fail_power_at(&self, operation: u64) {
        self.state().power_fails_at = Some(operation);
    }

    /// Lets an operation of this kind fail, after `countdown` others of the kind.
    pub fn fail(&self, operation: Operation, countdown: u64, fault: Fault) {
        self.state().faults.push((operation, countdown, fault));
    }

    /// Takes the power away, if it has not gone yet, and gives it back; `seed` decides what is left
    /// of the data that was not durable. Files that are open stay dead. Faults that did not happen
    /// are forgotten.
    pub fn restart(&self, seed: u64) {
        let mut state = self.state();
        let state = &mut *state;
        state.chance = Chance::new(seed);
        for file in &mut state.files {
            file.lose_power(&mut state.chance);
        }
        state.names.lose_power(&mut state.chance);
        state.faults.clear();
        state.power_fails_at = None;
        state.has_power = true;
        state.locked = false;
        state.life += 1;
    }

    /// Returns a file as a reader sees it; none of this name.
    #[must_use]
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let file = state.names.get(name)?;
        Some(state.files[file].view().to_vec())
    }

    /// Puts a file there, durable as all names are then, whatever was there before.
    pub fn put(&self, name: &str, contents: Vec<u8>) {
        let mut state = self.state();
        let file = state.files.len();
        state.files.push(Media::holding(contents));
        state.names.put(name, file);
    }

    fn life(&self) -> u64 {
        self.state().life
    }
}

/// The lock of a simulated disk, which ends with this value.
#[derive(Debug)]
pub struct SimLock {
    disk: SimDisk,
    life: u64,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.life == self.life {
            state.locked = false;
        }
    }
}

impl Storage for SimDisk {
    type File = SimFile;
    type Lock = SimLock;

    fn location(&self) -> String {
        "sim".to_owned()
    }

    fn create_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state();
        let life = state.life;
        state.plain(Operation::Read, life)?;
        Ok(state.names.all().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<SimFile> {
        let mut state = self.state();
        let life = state.life;
        state.plain(Operation::Open, life)?;
        if state.names.get(name).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = state.files.len();
        state.files.push(Media::default());
        state.names.make(name, file);
        let disk = self.clone();
        state.answer(SimFile { disk, file, life })
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<SimFile> {
        let mut state = self.state();
        let life = state.life;
        let operation = match writable {
            true => Operation::Open,
            false => Operation::Read,
        };
        state.plain(operation, life)?;
        let file = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        let disk = self.clone();
        state.answer(SimFile { disk, file, life })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let life = state.life;
        state.plain(Operation::Rename, life)?;
        let file = state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.rename(from, to, file);
        state.answer(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        let life = state.life;
        state.plain(Operation::Remove, life)?;
        let file = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        state.names.remove(name, file);
        state.answer(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.state();
        let life = state.life;
        state.plain(Operation::SyncNames, life)?;
        state.answer(())?;
        state.names.make_durable();
        Ok(())
    }

    fn lock(&self) -> io::Result<Option<SimLock>> {
        let life = self.life();
        let mut state = self.state();
        state.plain(Operation::Lock, life)?;
        if state.locked {
            return Ok(None);
        }
        state.locked = true;
        drop(state);
        let disk = self.clone();
        Ok(Some(SimLock { disk, life }))
    }
}

/// An open file of a [`SimDisk`].
#[derive(Debug)]
pub struct SimFile {
    disk: SimDisk,
    file: usize,
    life: u64,
}

impl StorageFile for SimFile {
    fn length_bytes(&self) -> io::Result<u64> {
        let mut state = self.disk.state();
        state.plain(Operation::Read, self.life)?;
        Ok(state.files[self.file].view().len() as u64)
    }

    fn read_at(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        state.plain(Operation::Read, self.life)?;
        let view = state.files[self.file].view();
        let from = usize::try_from(offset_bytes).unwrap_or(usize::MAX);
        let there = view.get(from..).unwrap_or_default();
        let bytes = there.len().min(into.len());
        into[..bytes].copy_from_slice(&there[..bytes]);
        Ok(bytes)
    }

    fn write_at(&self, offset_bytes: u64, data: &[u8], sync: WriteSync) -> io::Result<usize> {
        let mut state = self.disk.state();
        let operation = match sync {
            WriteSync::Deferred => Operation::Write,
            WriteSync::Immediate => Operation::WriteNow,
        };
        let fault = state.step(operation, self.life)?;
        let mut data = data;
        match fault {
            None => {}
            Some(Fault::Short) => data = &data[..data.len().min(media::SECTOR_BYTES)],
            // An I/O error may come after some of it was written.
            Some(Fault::Io) => {}
            Some(fault) => return Err(fault.error()),
        }
        let state = &mut *state;
        let media = &mut state.files[self.file];
        let from = usize::try_from(offset_bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let sectors = media.write(from, data);
        if !state.has_power {
            return Err(no_power());
        }
        if fault == Some(Fault::Io) {
            media.forget_some(Some(sectors), &mut state.chance);
            return Err(Fault::Io.error());
        }
        if sync == WriteSync::Immediate {
            media.make_durable(Some(sectors));
        }
        Ok(data.len())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        let fault = state.step(Operation::Sync, self.life)?;
        let state = &mut *state;
        if !state.has_power {
            return Err(no_power());
        }
        let media = &mut state.files[self.file];
        if let Some(fault) = fault {
            media.forget_some(None, &mut state.chance);
            return Err(fault.error());
        }
        media.make_durable(None);
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        let mut state = self.disk.state();
        state.plain(Operation::Allocate, self.life)?;
        let length = usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        state.files[self.file].grow(length);
        state.answer(true)
    }
}
