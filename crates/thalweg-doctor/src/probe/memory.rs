//! Maps the code addresses of each process to files.
//!
//! A file is opened when its mapping is read from the ring buffers, because at the end of the run
//! another file may lie at its path. `/proc/PID/map_files` (root) and `/proc/PID/exe` lead to the
//! mapped file, whatever happened to the path. The file at a path is used only if its device and
//! inode are those of the mapping, and if it has not changed since then, as a free inode is used
//! again.

use crate::probe::procfs;
use crate::probe::record::Mapping;
use crate::sys::now_ns;
use rustix::fs::{OFlags, major, minor};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::rc::Rc;

/// The maximum number of known files, and of files that are held open. Further files are opened
/// when they are needed, if they still exist.
const FILES_MAX: usize = 4_096;
const HELD_MAX: usize = 256;
/// The number of words of a stack that are read, and of frames that are kept.
const STACK_WORDS: usize = 512;
const FRAMES_MAX: usize = 32;

/// An address of a stack, independent of the process that it was in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    Kernel(u64),
    /// The number of a file, and the offset in it.
    Code(u32, u64),
    /// Code that is in no file, of this process: it was generated at run time, or the process is
    /// not known.
    Made(i32, u64),
}

/// A range of a process's code, and the number of its file.
#[derive(Debug, Clone)]
struct Part {
    start: u64,
    bytes: u64,
    file_offset: u64,
    file: u32,
}

/// The time of a file's last change, in s and ns, and its size in bytes.
type Version = (i64, i64, u64);

fn version(file: &File) -> Option<Version> {
    let found = file.metadata().ok()?;
    Some((found.mtime(), found.mtime_nsec(), found.len()))
}

/// A mapped file, in the state in which it was first seen.
#[derive(Debug)]
struct Source {
    pid: i32,
    mapping: Mapping,
    mapped_ns: u64,
    held: Option<(File, Version)>,
    /// Whether its code was seen to run.
    ran: bool,
}

impl Source {
    /// Returns whether the mapping is of a file. Other memory has names in brackets, or such as
    /// `//anon`.
    fn is_file(&self) -> bool {
        self.mapping.path.starts_with('/') && !self.mapping.path.starts_with("//")
    }

    /// Opens the file that was mapped, if it can still be reached.
    fn open(&self) -> Option<File> {
        let (pid, Mapping { start, path, .. }) = (self.pid, &self.mapping);
        let end = start.saturating_add(self.mapping.bytes);
        let open = |path: &str| {
            let file = procfs::open(path, OFlags::empty()).ok()?;
            let found = file.metadata().ok()?;
            self.is_of(&found).then_some((file, found))
        };
        let itself = [
            format!("/proc/{pid}/map_files/{start:x}-{end:x}"),
            format!("/proc/{pid}/exe"),
        ];
        let by_path = [format!("/proc/{pid}/root{path}"), path.to_string()];
        let itself = itself.iter().find_map(|path| open(path));
        let unchanged = |found: &Metadata| changed_ns(found) <= i128::from(self.mapped_ns);
        let by_path = || {
            let mut found = by_path.iter().filter_map(|path| open(path));
            found.find(|(_, found)| unchanged(found))
        };
        itself.or_else(by_path).map(|(file, _)| file)
    }

    /// Returns whether a file has the device and the inode of the mapping. On a file system without
    /// a device of its own (overlayfs, btrfs), mappings may show another device than files do.
    fn is_of(&self, found: &Metadata) -> bool {
        let device = (major(found.dev()), minor(found.dev()));
        let is_device = device == self.mapping.device || device.0 == 0;
        is_device && found.ino() == self.mapping.inode
    }

    /// Returns whether the file that is held open has been written to since then.
    fn is_rewritten(&self) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|(file, then)| version(file) != Some(*then))
    }
}

/// Returns the time of the last change of a file or its inode, on the monotonic clock.
fn changed_ns(found: &Metadata) -> i128 {
    let now = clock_gettime(ClockId::Realtime);
    let ns = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    let ago_ns = ns(now.tv_sec, now.tv_nsec) - ns(found.ctime(), found.ctime_nsec());
    i128::from(now_ns()) - ago_ns
}

/// A path, a device and an inode.
type Key = (Box<str>, (u32, u32), u64);

/// The code mappings of all processes.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    processes: HashMap<i32, Rc<Vec<Part>>>,
    /// The latest file for each path, device and inode.
    numbers: HashMap<Key, u32>,
    files: Vec<Source>,
    held: usize,
}

impl Memory {
    /// Reads the mappings of a process that runs already.
    pub(crate) fn adopt(&mut self, pid: i32) {
        let maps = procfs::text(format!("/proc/{pid}/maps")).unwrap_or_default();
        let now_ns = now_ns();
        for mapping in maps.lines().filter_map(mapping) {
            self.add(pid, mapping, now_ns);
        }
    }

    /// Adds code that a process has mapped since `mapped_ns`.
    pub(crate) fn add(&mut self, pid: i32, mapping: Mapping, mapped_ns: u64) {
        let (start, bytes, file_offset) = (mapping.start, mapping.bytes, mapping.file_offset);
        let file = self.number(pid, mapping, mapped_ns);
        let parts = Rc::make_mut(self.processes.entry(pid).or_default());
        let end = start.saturating_add(bytes);
        parts.retain(|old| old.start >= end || old.start.saturating_add(old.bytes) <= start);
        let at = parts.partition_point(|old| old.start < start);
        let part = |file| Part {
            start,
            bytes,
            file_offset,
            file,
        };
        if let Some(part) = file.map(part) {
            parts.insert(at, part);
        }
    }

    /// Returns the number of a mapping's file, which is new if it was not seen before, or was
    /// written to since; `None` if there are too many.
    fn number(&mut self, pid: i32, mapping: Mapping, mapped_ns: u64) -> Option<u32> {
        let key = (mapping.path.clone(), mapping.device, mapping.inode);
        let known = self.numbers.get(&key).copied();
        let known = known.filter(|&number| !self.files[number as usize].is_rewritten());
        if known.is_some() || self.files.len() >= FILES_MAX {
            return known;
        }
        let mut source = Source {
            pid,
            mapping,
            mapped_ns,
            held: None,
            ran: false,
        };
        if source.is_file() && self.held < HELD_MAX {
            let file = source.open();
            source.held = file.and_then(|file| version(&file).map(|now| (file, now)));
            self.held += usize::from(source.held.is_some());
        }
        let number = u32::try_from(self.files.len()).expect("few files");
        self.files.push(source);
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Copies the mappings of the parent to a new process.
    pub(crate) fn fork(&mut self, parent: i32, child: i32) {
        if let Some(parts) = self.processes.get(&parent).filter(|_| parent != child) {
            let parts = Rc::clone(parts);
            self.processes.insert(child, parts);
        }
    }

    /// Removes the mappings of a process that runs another program now, or has ended.
    pub(crate) fn clear(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }

    /// Returns the file and offset of an address in a process's code.
    pub(crate) fn frame(&mut self, pid: i32, address: u64) -> Frame {
        let parts = self.processes.get(&pid).map_or(&[][..], |parts| &parts[..]);
        let after = parts.partition_point(|part| part.start <= address);
        let found = after.checked_sub(1).map(|at| &parts[at]);
        let Some(found) = found.filter(|found| address - found.start < found.bytes) else {
            return Frame::Made(pid, address);
        };
        let source = &mut self.files[found.file as usize];
        if !source.is_file() {
            return Frame::Made(pid, address);
        }
        source.ran = true;
        Frame::Code(found.file, address - found.start + found.file_offset)
    }

    /// Returns the address range at which a process has mapped the code of a file whose path ends
    /// with `end`.
    pub(crate) fn mapped(&self, pid: i32, end: &str) -> Option<std::ops::Range<u64>> {
        let mut parts = self.processes.get(&pid)?.iter();
        let found = parts.find(|part| self.path(part.file).ends_with(end))?;
        Some(found.start..found.start.saturating_add(found.bytes))
    }

    /// Returns the path of a file.
    pub(crate) fn path(&self, number: u32) -> &str {
        &self.files[number as usize].mapping.path
    }

    /// Returns a file in the state in which it was mapped; `None` if it cannot be reached, or was
    /// written to since.
    pub(crate) fn file(&self, number: u32) -> Option<File> {
        let source = &self.files[number as usize];
        match &source.held {
            Some((file, _)) => file.try_clone().ok().filter(|_| !source.is_rewritten()),
            None => source.open(),
        }
    }

    /// Returns the numbers of all files whose code was seen to run.
    pub(crate) fn files(&self) -> impl Iterator<Item = u32> {
        let ran = (0..).zip(&self.files).filter(|(_, source)| source.ran);
        ran.map(|(number, _)| number)
    }

    /// Returns where a blocked thread will return to, the innermost function first: the addresses
    /// in its stack that are behind a call. Some may be of functions that have returned.
    pub(crate) fn stack(&mut self, pid: i32, pointer: u64) -> Box<[Frame]> {
        let mut words = [[0; 8]; STACK_WORDS];
        let count = procfs::memory(pid, pointer, words.as_flattened_mut());
        let words = words[..count.unwrap_or(0) / 8].iter();
        let frames = words.filter_map(|word| {
            let address = u64::from_ne_bytes(*word);
            let frame = self.frame(pid, address);
            let mut bytes = [0; 16];
            let is_code = matches!(frame, Frame::Code(..));
            let count = if is_code {
                self.code(pid, address, frame, &mut bytes)
            } else {
                0
            };
            let behind = bytes[..count].get(..8 + address as usize % 4)?;
            is_call(behind).then_some(frame)
        });
        frames.take(FRAMES_MAX).collect()
    }

    /// Fills `bytes` with the code around `frame`, from its file, or else from the process if it
    /// still exists. Returns the number of bytes that could be read.
    pub(crate) fn code(&self, pid: i32, address: u64, frame: Frame, bytes: &mut [u8]) -> usize {
        let half = bytes.len() as u64 / 2;
        let mut read = |file: &File, at: u64| {
            let count = file.read_at(bytes, at.saturating_sub(half) & !3);
            count.ok()
        };
        let file = match frame {
            Frame::Code(number, offset) => self.file(number).map(|file| (file, offset)),
            Frame::Kernel(_) | Frame::Made(..) => None,
        };
        let of_file = file.and_then(|(file, offset)| read(&file, offset));
        let live = || read(&File::open(format!("/proc/{pid}/mem")).ok()?, address);
        of_file.or_else(live).unwrap_or(0)
    }
}

/// Returns whether code ends with a call of a function.
fn is_call(code: &[u8]) -> bool {
    let from_end = |count: usize| code.len().checked_sub(count).map(|at| &code[at..]);
    if cfg!(target_arch = "aarch64") {
        // bl, and blr
        return from_end(4).is_some_and(|it| it[3] >> 2 == 0x25 || it[3] == 0xd6 && it[2] == 0x3f);
    }
    let through = |bytes: &[u8]| bytes[0] == 0xff && bytes[1] >> 3 & 7 == 2;
    let mut lengths = [2, 3, 4, 6, 7].into_iter().filter_map(from_end);
    from_end(5).is_some_and(|bytes| bytes[0] == 0xe8) || lengths.any(through)
}

/// Parses a line of `/proc/…/maps`, if it maps code.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
    let (devices, inode) = (words.next()?.split_once(':')?, words.next()?);
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    let device = |text| u32::from_str_radix(text, 16).unwrap_or(0);
    let path = words.next().unwrap_or_default().trim();
    // The name of a deleted file remains.
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    rights.contains('x').then(|| Mapping {
        start,
        bytes: end.saturating_sub(start),
        file_offset: number(offset).unwrap_or(0),
        path: path.into(),
        device: (device(devices.0), device(devices.1)),
        inode: inode.parse().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read as _;
    use std::path::Path;

    fn code(start: u64, path: &str) -> Mapping {
        Mapping {
            start,
            bytes: 0x1000,
            file_offset: 0x200,
            path: path.into(),
            device: (0, 0),
            inode: 0,
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_return_address_is_behind_a_call() {
        let calls: [&[u8]; 4] = [
            &[0x90, 0xe8, 1, 2, 3, 4],
            &[0x41, 0xff, 0xd4],
            &[0xff, 0x15, 1, 2, 3, 4],
            &[0xff, 0x54, 0x24, 8],
        ];
        assert!(calls.into_iter().all(is_call));
        assert!(!is_call(&[0x90, 0x48, 0x89, 0xe5, 0x5d, 0xc3]));
        assert!(!is_call(&[]));
    }

    /// This thread itself is blocked in nothing, but its stack is one.
    #[test]
    fn the_callers_of_a_thread_are_in_its_stack() {
        let own = std::process::id().cast_signed();
        let mut memory = Memory::default();
        memory.adopt(own);
        let here = 0_u64;
        let stack = memory.stack(own, std::hint::black_box(&raw const here) as u64);
        let mut symbols = crate::probe::symbols::Symbols::default();
        let names: Vec<String> = (stack.iter())
            .map(|&frame| symbols.label(frame, &memory))
            .collect();
        let test = "the_callers_of_a_thread_are_in_its_stack";
        assert!(names.iter().any(|name| name.contains(test)), "{names:?}");
        assert!(memory.stack(own, 8).is_empty());
    }

    #[test]
    fn an_address_is_an_offset_in_a_file() {
        let mut memory = Memory::default();
        memory.add(1, code(0x5000, "/bin/a"), 0);
        memory.add(1, code(0x7000, "[vdso]"), 0);
        assert_eq!(memory.frame(1, 0x5010), Frame::Code(0, 0x210));
        assert_eq!(memory.frame(1, 0x6000), Frame::Made(1, 0x6000));
        assert_eq!(memory.frame(1, 0x7010), Frame::Made(1, 0x7010));
        assert_eq!(memory.frame(2, 0x5010), Frame::Made(2, 0x5010));
        assert_eq!(memory.path(0), "/bin/a");
        assert_eq!(memory.mapped(1, "/a"), Some(0x5000..0x6000));
        assert_eq!(
            (memory.mapped(1, "/b"), memory.mapped(2, "/a")),
            (None, None)
        );
    }

    #[test]
    fn a_new_process_has_the_memory_of_its_parent_until_it_changes() {
        let mut memory = Memory::default();
        memory.add(1, code(0x5000, "/bin/a"), 0);
        memory.fork(1, 2);
        memory.add(2, code(0x5000, "/bin/b"), 0);
        assert_eq!(memory.frame(1, 0x5000), Frame::Code(0, 0x200));
        assert_eq!(memory.files().collect::<Vec<_>>(), [0], "only this has run");
        assert_eq!(memory.frame(2, 0x5000), Frame::Code(1, 0x200));
        memory.clear(2);
        assert_eq!(memory.frame(2, 0x5000), Frame::Made(2, 0x5000));
    }

    /// Creates a mapping of a file at a path, mapped this many ns from now, by a process that does
    /// not exist.
    fn mapped(path: &Path, later_ns: u64) -> (Mapping, u64) {
        let found = fs::metadata(path).unwrap();
        let mapping = Mapping {
            device: (major(found.dev()), minor(found.dev())),
            inode: found.ino(),
            ..code(0x5000, path.to_str().unwrap())
        };
        (mapping, now_ns() + later_ns)
    }

    fn content(memory: &mut Memory, pid: i32) -> Option<String> {
        let Frame::Code(number, _) = memory.frame(pid, 0x5000) else {
            panic!("it is in a file")
        };
        let mut text = String::new();
        memory.file(number)?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    /// `doctor` had labelled the samples of a program with names from another file that was at its
    /// path at the end.
    #[test]
    fn a_file_is_that_which_was_mapped() {
        const NOBODY: i32 = i32::MAX;
        const HOUR_NS: u64 = 3_600_000_000_000;
        let folder = thalweg_testkit::Scratch::new("memory");
        let (path, next) = (folder.join("a"), folder.join("b"));
        let put = |text: &str| {
            fs::write(&next, text).unwrap();
            fs::rename(&next, &path).unwrap();
        };
        let mut memory = Memory::default();
        put("first");
        let first = mapped(&path, HOUR_NS);
        memory.add(NOBODY, first.0.clone(), first.1);
        put("second");
        let second = mapped(&path, HOUR_NS);
        memory.add(NOBODY - 1, second.0, second.1);
        assert_eq!(content(&mut memory, NOBODY).as_deref(), Some("first"));
        assert_eq!(content(&mut memory, NOBODY - 1).as_deref(), Some("second"));
        // The file is no longer that of the first mapping.
        let mut late = Memory::default();
        late.add(NOBODY, first.0, first.1);
        assert_eq!(content(&mut late, NOBODY), None);
        // The inode was written to after it was mapped: this is noticed at once, or later.
        let (mapping, _) = mapped(&path, 0);
        late.add(NOBODY, mapping.clone(), 1);
        assert_eq!(content(&mut late, NOBODY), None);
        fs::write(&path, "third, in place").unwrap();
        assert_eq!(content(&mut memory, NOBODY - 1), None);
        let third = mapped(&path, HOUR_NS);
        memory.add(NOBODY - 2, third.0, third.1);
        let text = content(&mut memory, NOBODY - 2);
        assert_eq!(text.as_deref(), Some("third, in place"));
        assert_eq!(content(&mut memory, NOBODY - 1), None);
    }

    /// An upgrade replaces the file of a running program.
    #[test]
    fn the_program_of_a_process_is_found_without_its_path() {
        let folder = thalweg_testkit::Scratch::new("exe");
        let path = folder.join("cat");
        fs::copy("/bin/cat", &path).unwrap();
        let mut cat = std::process::Command::new(&path);
        let mut cat = cat.stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = cat.id().cast_signed();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "another").unwrap();
        let mut memory = Memory::default();
        // A program that has just started may have no code yet.
        let code = loop {
            memory.adopt(pid);
            match memory.mapped(pid, "/cat") {
                Some(code) => break code,
                None => std::thread::yield_now(),
            }
        };
        let Frame::Code(number, _) = memory.frame(pid, code.start) else {
            panic!("it is in a file")
        };
        drop(cat.stdin.take());
        cat.wait().unwrap();
        let mut magic = [0; 4];
        let file = memory.file(number).expect("it was opened while it ran");
        file.read_exact_at(&mut magic, 0).unwrap();
        assert_eq!(&magic, b"\x7fELF");
    }

    #[test]
    fn files_beyond_those_that_are_held_are_opened_when_needed() {
        let path = std::env::current_exe().unwrap();
        let mut memory = Memory {
            held: HELD_MAX,
            ..Memory::default()
        };
        memory.adopt(std::process::id().cast_signed());
        assert_eq!(memory.held, HELD_MAX);
        let is_own = |source: &Source| *source.mapping.path == *path.to_str().unwrap();
        let own = memory.files.iter().position(is_own).expect("this program");
        assert!(memory.files[own].held.is_none() && memory.file(own as u32).is_some());
    }

    #[test]
    fn only_code_is_of_interest() {
        let line = "7f00-8f00 r-xp 00001000 fd:00 1234       /usr/lib/a b.so";
        let found = mapping(line).unwrap();
        assert_eq!(
            (found.start, found.bytes, found.file_offset),
            (0x7f00, 0x1000, 0x1000)
        );
        assert_eq!(&*found.path, "/usr/lib/a b.so");
        assert_eq!((found.device, found.inode), ((0xfd, 0), 1234));
        let gone = mapping("7f00-8f00 r-xp 0 fe:10 7 /a/b (deleted)").unwrap();
        assert_eq!((&*gone.path, gone.device), ("/a/b", (0xfe, 16)));
        assert_eq!(
            mapping("7f00-8f00 rw-p 00001000 fd:00 1234 /usr/lib/a.so"),
            None
        );
        assert_eq!(mapping(""), None);
    }
}
