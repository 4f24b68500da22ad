//! Names of functions.

use super::memory::{Frame, Memory};
use object::read::{ObjectSegment as _, ObjectSymbol as _};
use object::{Object as _, ReadCache, SymbolKind};
use std::collections::HashMap;
use std::fs::{self, File};

/// Functions by where they start: a name, and where it ends if that is known.
#[derive(Debug, Default)]
struct Table {
    functions: Vec<(u64, u64, Box<str>)>,
    /// Parts of the file: offset, bytes, address.
    segments: Vec<(u64, u64, u64)>,
    /// It is a program of Go, whose runtime parks goroutines by itself.
    is_go: bool,
}

impl Table {
    fn sorted(mut functions: Vec<(u64, u64, Box<str>)>, segments: Vec<(u64, u64, u64)>) -> Table {
        functions.sort_by_key(|&(start, bytes, _)| (start, std::cmp::Reverse(bytes)));
        functions.dedup_by_key(|function| function.0);
        Table {
            functions,
            segments,
            is_go: false,
        }
    }

    /// The symbols of a program or library; none of a file that cannot be read.
    fn of_file(path: &str) -> Table {
        let Ok(file) = File::open(path) else {
            return Table::default();
        };
        let cache = ReadCache::new(file);
        let Ok(object) = object::File::parse(&cache) else {
            return Table::default();
        };
        let symbols = object.symbols().chain(object.dynamic_symbols());
        let functions = symbols.filter(|s| s.kind() == SymbolKind::Text && s.address() > 0);
        let functions = functions.filter_map(|symbol| {
            let name = symbol.name().ok()?;
            Some((
                symbol.address(),
                symbol.size(),
                format!("{:#}", rustc_demangle::demangle(name)),
            ))
        });
        let functions = functions
            .map(|(start, bytes, name)| (start, bytes, name.into()))
            .collect();
        let segments = object.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            (offset, bytes, segment.address())
        });
        Table {
            is_go: object.section_by_name(".go.buildinfo").is_some(),
            ..Table::sorted(functions, segments.collect())
        }
    }

    /// The kernel's; none if it hides their addresses.
    fn of_kernel() -> Table {
        let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let function = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let start = u64::from_str_radix(words.next()?, 16)
                .ok()
                .filter(|&start| start > 0)?;
            words.next().filter(|kind| kind.eq_ignore_ascii_case("t"))?;
            Some((start, 0, words.next()?.into()))
        };
        Table::sorted(text.lines().filter_map(function).collect(), Vec::new())
    }

    fn find(&self, address: u64) -> Option<&str> {
        let after = self
            .functions
            .partition_point(|function| function.0 <= address);
        let (start, bytes, name) = &self.functions[after.checked_sub(1)?];
        // Code written in assembly has no size.
        (*bytes == 0 || address - start < *bytes).then_some(name)
    }

    fn find_offset(&self, offset: u64) -> Option<&str> {
        let within = |(start, bytes, _): &&(u64, u64, u64)| {
            (*start..start.saturating_add(*bytes)).contains(&offset)
        };
        let (start, _, address) = self.segments.iter().find(within)?;
        self.find(offset - start + address)
    }
}

/// Names, read from files when they are asked for first.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    kernel: Option<Table>,
    files: HashMap<u32, Table>,
}

impl Symbols {
    /// The function of a frame.
    pub(crate) fn name(&mut self, frame: Frame, memory: &Memory) -> Option<&str> {
        match frame {
            Frame::Kernel(address) => self
                .kernel
                .get_or_insert_with(Table::of_kernel)
                .find(address),
            Frame::Code(file, offset) => {
                let table = || Table::of_file(memory.path(file));
                self.files
                    .entry(file)
                    .or_insert_with(table)
                    .find_offset(offset)
            }
            Frame::Made(_) => None,
        }
    }

    /// Is any of the code that was seen to run a program of Go?
    pub(crate) fn has_goroutines(&mut self, memory: &Memory) -> bool {
        let is_go = |(number, path): (u32, &str)| {
            let table = || Table::of_file(path);
            self.files.entry(number).or_insert_with(table).is_go
        };
        memory.files().any(is_go)
    }

    /// The function of a frame, or where it is.
    pub(crate) fn label(&mut self, frame: Frame, memory: &Memory) -> String {
        if let Some(name) = self.name(frame, memory) {
            let kernel = if matches!(frame, Frame::Kernel(_)) {
                "_[k]"
            } else {
                ""
            };
            return format!("{name}{kernel}");
        }
        match frame {
            Frame::Kernel(_) => "[unknown]_[k]".into(),
            Frame::Code(file, _) => {
                let path = memory.path(file);
                format!("[{}]", path.rsplit('/').next().unwrap_or(path))
            }
            Frame::Made(_) => "[unknown]".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_ends_where_its_symbol_says() {
        let functions = vec![(100, 10, "a".into()), (200, 0, "b".into())];
        let table = Table::sorted(functions, vec![(0, 1_000, 50)]);
        assert_eq!(table.find(99), None);
        assert_eq!(table.find(109), Some("a"));
        assert_eq!(table.find(110), None);
        assert_eq!(table.find(10_000), Some("b"));
        assert_eq!(table.find_offset(55), Some("a"));
        assert_eq!(table.find_offset(1_000), None);
    }

    /// A test's own function may be inlined.
    #[inline(never)]
    fn a_name_to_be_found() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn this_program_has_names() {
        assert_eq!(std::hint::black_box(a_name_to_be_found as fn() -> u32)(), 7);
        let path = std::env::current_exe().unwrap();
        let table = Table::of_file(path.to_str().unwrap());
        let own = table
            .functions
            .iter()
            .any(|(_, _, name)| name.contains("a_name_to_be_found"));
        assert!(own, "{} functions", table.functions.len());
        assert!(Table::of_file("/nowhere").functions.is_empty());
        assert!(!table.is_go);
    }
}
