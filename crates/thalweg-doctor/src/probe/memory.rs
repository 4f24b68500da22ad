//! Where the code of each process comes from.

use super::record::Mapping;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;

/// An address of a stack, told apart from the process that it was in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    Kernel(u64),
    /// The number of a file, and the offset in it.
    Code(u32, u64),
    /// Code that is in no file: made at run time, or the process is not known.
    Made(u64),
}

/// The mappings of code of all processes.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    processes: HashMap<i32, Rc<Vec<Mapping>>>,
    numbers: HashMap<Box<str>, u32>,
    files: Vec<Box<str>>,
}

impl Memory {
    /// Reads the mappings of a process that runs already.
    pub(crate) fn adopt(&mut self, pid: i32) {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        for mapping in maps.lines().filter_map(mapping) {
            self.add(pid, mapping);
        }
    }

    pub(crate) fn add(&mut self, pid: i32, mapping: Mapping) {
        let mappings = Rc::make_mut(self.processes.entry(pid).or_default());
        let (start, end) = (mapping.start, mapping.start.saturating_add(mapping.bytes));
        mappings.retain(|old| old.start >= end || old.start.saturating_add(old.bytes) <= start);
        let at = mappings.partition_point(|old| old.start < start);
        mappings.insert(at, mapping);
    }

    /// A new process begins with the memory of its parent.
    pub(crate) fn fork(&mut self, parent: i32, child: i32) {
        if let Some(mappings) = self.processes.get(&parent).filter(|_| parent != child) {
            let mappings = Rc::clone(mappings);
            self.processes.insert(child, mappings);
        }
    }

    /// It is another program now, or none.
    pub(crate) fn clear(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }

    /// What an address of a process's code is.
    pub(crate) fn frame(&mut self, pid: i32, address: u64) -> Frame {
        let mappings = self
            .processes
            .get(&pid)
            .map_or(&[][..], |mappings| &mappings[..]);
        let after = mappings.partition_point(|mapping| mapping.start <= address);
        let found = after.checked_sub(1).map(|at| &mappings[at]);
        let Some(found) = found.filter(|found| address - found.start < found.bytes) else {
            return Frame::Made(address);
        };
        if !found.path.starts_with('/') || found.path.starts_with("//") {
            return Frame::Made(address);
        }
        let offset = address - found.start + found.file_offset;
        let number = match self.numbers.get(&found.path) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.files.len()).expect("few files");
                self.numbers.insert(found.path.clone(), number);
                self.files.push(found.path.clone());
                number
            }
        };
        Frame::Code(number, offset)
    }

    /// Where a process has the code of a file whose path ends so.
    pub(crate) fn mapped(&self, pid: i32, end: &str) -> Option<std::ops::Range<u64>> {
        let mut mappings = self.processes.get(&pid)?.iter();
        let found = mappings.find(|mapping| mapping.path.ends_with(end))?;
        Some(found.start..found.start.saturating_add(found.bytes))
    }

    /// The path of a file.
    pub(crate) fn path(&self, number: u32) -> &str {
        &self.files[number as usize]
    }

    /// All files whose code was seen, and their numbers.
    pub(crate) fn files(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..).zip(self.files.iter().map(|path| &**path))
    }

    /// Fills `bytes` with code that stands before and after `frame`: of the process if it is
    /// still there, else of the file. How many bytes could be read?
    pub(crate) fn code(&self, pid: i32, address: u64, frame: Frame, bytes: &mut [u8]) -> usize {
        let half = bytes.len() as u64 / 2;
        let read = |path: &str, at: u64, bytes: &mut [u8]| {
            File::open(path)?.read_at(bytes, at.saturating_sub(half) & !3)
        };
        let read_live = read(&format!("/proc/{pid}/mem"), address, bytes);
        match (read_live, frame) {
            (Ok(count), _) => count,
            (Err(_), Frame::Code(file, offset)) => {
                read(self.path(file), offset, bytes).unwrap_or(0)
            }
            (Err(_), _) => 0,
        }
    }
}

/// A line of `/proc/…/maps`, if it maps code.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (range, rights, offset) = (words.next()?, words.next()?, words.next()?);
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    let path = words.nth(2).unwrap_or_default().trim();
    rights.contains('x').then(|| Mapping {
        start,
        bytes: end.saturating_sub(start),
        file_offset: number(offset).unwrap_or(0),
        path: path.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(start: u64, path: &str) -> Mapping {
        Mapping {
            start,
            bytes: 0x1000,
            file_offset: 0x200,
            path: path.into(),
        }
    }

    #[test]
    fn an_address_is_an_offset_in_a_file() {
        let mut memory = Memory::default();
        memory.add(1, code(0x5000, "/bin/a"));
        memory.add(1, code(0x7000, "[vdso]"));
        assert_eq!(memory.frame(1, 0x5010), Frame::Code(0, 0x210));
        assert_eq!(memory.frame(1, 0x6000), Frame::Made(0x6000));
        assert_eq!(memory.frame(1, 0x7010), Frame::Made(0x7010));
        assert_eq!(memory.frame(2, 0x5010), Frame::Made(0x5010));
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
        memory.add(1, code(0x5000, "/bin/a"));
        memory.fork(1, 2);
        memory.add(2, code(0x5000, "/bin/b"));
        assert_eq!(memory.frame(1, 0x5000), Frame::Code(0, 0x200));
        assert_eq!(memory.frame(2, 0x5000), Frame::Code(1, 0x200));
        memory.clear(2);
        assert_eq!(memory.frame(2, 0x5000), Frame::Made(0x5000));
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
        assert_eq!(
            mapping("7f00-8f00 rw-p 00001000 fd:00 1234 /usr/lib/a.so"),
            None
        );
        assert_eq!(mapping(""), None);
    }
}
