//! A directory on a disk whose room a test can take away, or that it can have wait.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_journal::{Files, Storage, StorageFile, WriteSync};

#[derive(Clone, Debug)]
pub(crate) struct Limited {
    files: Files,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    is_full: AtomicBool,
    is_stuck: AtomicBool,
}

impl Limited {
    pub(crate) fn new(directory: &Path) -> Limited {
        Limited {
            files: Files::new(directory),
            state: Arc::default(),
        }
    }

    /// Has writes wait until what it returns is dropped: also by a panic, since a server whose
    /// writes wait does not stop.
    #[must_use]
    pub(crate) fn stick(&self) -> Stuck {
        // ORDERING: Relaxed, pairs with the load in write_at(); a flag and nothing else.
        self.state.is_stuck.store(true, Ordering::Relaxed);
        Stuck(Arc::clone(&self.state))
    }

    /// Whether no file grows from now on.
    pub(crate) fn set_full(&self, is_full: bool) {
        // ORDERING: Relaxed, pairs with the load in allocate(); a flag and nothing else.
        self.state.is_full.store(is_full, Ordering::Relaxed);
    }
}

/// Writes wait while this is there.
#[derive(Debug)]
pub(crate) struct Stuck(Arc<State>);

impl Drop for Stuck {
    fn drop(&mut self) {
        // ORDERING: Relaxed, pairs with the load in write_at(); a flag and nothing else.
        self.0.is_stuck.store(false, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct LimitedFile {
    file: <Files as Storage>::File,
    state: Arc<State>,
}

impl Limited {
    fn file(&self, file: <Files as Storage>::File) -> LimitedFile {
        let state = Arc::clone(&self.state);
        LimitedFile { file, state }
    }
}

impl Storage for Limited {
    type File = LimitedFile;
    type Lock = <Files as Storage>::Lock;

    fn location(&self) -> String {
        self.files.location()
    }

    fn create_directory(&self) -> io::Result<()> {
        self.files.create_directory()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn create(&self, name: &str) -> io::Result<LimitedFile> {
        self.files.create(name).map(|file| self.file(file))
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<LimitedFile> {
        self.files.open(name, writable).map(|file| self.file(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.files.sync_names()
    }

    fn lock(&self) -> io::Result<Option<Self::Lock>> {
        self.files.lock()
    }
}

impl StorageFile for LimitedFile {
    fn length_bytes(&self) -> io::Result<u64> {
        self.file.length_bytes()
    }

    fn read_at(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset_bytes, into)
    }

    fn write_at(&self, offset_bytes: u64, data: &[u8], sync: WriteSync) -> io::Result<usize> {
        // ORDERING: Relaxed, pairs with the stores of stick() and of its guard.
        while self.state.is_stuck.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        self.file.write_at(offset_bytes, data, sync)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn allocate(&self, bytes: u64) -> io::Result<bool> {
        // ORDERING: Relaxed, pairs with the store in set_full().
        if self.state.is_full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.allocate(bytes)
    }
}
