//! Reads the names of functions.

use crate::probe::memory::{Frame, Memory};
use crate::probe::procfs;
use addr2line::gimli::{self, Dwarf, EndianSlice, NativeEndian, SectionId};
use cpp_demangle::{DemangleOptions, Symbol};
use object::read::{ObjectSection as _, ObjectSegment as _, ObjectSymbol as _};
use object::{Object as _, SymbolKind};
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

/// The maximum size of a file with names, which is read as a whole. A larger one has no names here.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// The number of functions of a stack that are named.
const CALLERS_MAX: usize = 4;

/// A function: its start, its size in bytes if known, and the position of its name in the table of
/// names.
type Function = (u64, u64, (usize, usize));

/// The functions by their start, with their names as they are in the file.
#[derive(Debug, Default)]
struct Table {
    functions: Vec<Function>,
    names: String,
    /// The segments of the file: offset, bytes, address.
    segments: Vec<(u64, u64, u64)>,
    /// Whether it is a Go program, whose runtime parks goroutines by itself.
    is_go: bool,
}

impl Table {
    fn sorted<'a>(
        functions: impl Iterator<Item = (u64, u64, &'a str)>,
        segments: Vec<(u64, u64, u64)>,
    ) -> Table {
        let mut names = String::new();
        let mut functions: Vec<Function> = functions
            .map(|(start, bytes, name)| {
                let from = names.len();
                names.push_str(name);
                (start, bytes, (from, names.len()))
            })
            .collect();
        functions.sort_by_key(|&(start, bytes, _)| (start, std::cmp::Reverse(bytes)));
        functions.dedup_by_key(|function| function.0);
        Table {
            functions,
            names,
            segments,
            is_go: false,
        }
    }

    /// Reads the symbols of a program or library; there are none where there is no file, or where
    /// it cannot be read.
    fn of_file(file: Option<File>) -> Table {
        let content = file.and_then(content).unwrap_or_default();
        let Ok(object) = object::File::parse(&*content) else {
            return Table::default();
        };
        let symbols = object.symbols().chain(object.dynamic_symbols());
        let functions = symbols.filter(|s| s.kind() == SymbolKind::Text && s.address() > 0);
        let functions = functions.filter_map(|s| Some((s.address(), s.size(), s.name().ok()?)));
        let segments = object.segments().map(|segment| {
            let (offset, bytes) = segment.file_range();
            (offset, bytes, segment.address())
        });
        Table {
            is_go: object.section_by_name(".go.buildinfo").is_some(),
            ..Table::sorted(functions, segments.collect())
        }
    }

    /// Reads the names of code that a runtime generated, if it lists them as `perf` expects it.
    /// Only a list of root, of this user or of the process's user is believed.
    fn of_generated(pid: i32) -> Table {
        let user = fs::metadata(format!("/proc/{pid}")).map(|it| it.uid());
        let owners = [0, rustix::process::geteuid().as_raw(), user.unwrap_or(0)];
        let file = procfs::open(format!("/tmp/perf-{pid}.map"), OFlags::NOFOLLOW).ok();
        let is_known = |it: &File| it.metadata().is_ok_and(|it| owners.contains(&it.uid()));
        let content = file.filter(is_known).and_then(content).unwrap_or_default();
        Table::of_list(&String::from_utf8_lossy(&content))
    }

    /// Parses lines of a start, a size and a name.
    fn of_list(text: &str) -> Table {
        let function = |line| {
            let mut words = str::splitn(line, 3, ' ');
            let mut number = || u64::from_str_radix(words.next()?, 16).ok();
            Some((number()?, number()?, words.next()?.trim()))
        };
        let functions = text.lines().filter_map(function);
        Table::sorted(functions, Vec::new())
    }

    /// Reads the kernel's symbols; there are none if it hides their addresses.
    fn of_kernel() -> Table {
        let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let function = |line| {
            let mut words = str::split_ascii_whitespace(line);
            let start = u64::from_str_radix(words.next()?, 16)
                .ok()
                .filter(|&start| start > 0)?;
            words.next().filter(|kind| kind.eq_ignore_ascii_case("t"))?;
            Some((start, 0, words.next()?))
        };
        Table::sorted(text.lines().filter_map(function), Vec::new())
    }

    fn find(&self, address: u64) -> Option<&str> {
        let after = self
            .functions
            .partition_point(|function| function.0 <= address);
        let (start, bytes, (from, to)) = self.functions[after.checked_sub(1)?];
        // Code written in assembly has no size.
        (bytes == 0 || address - start < bytes).then(|| &self.names[from..to])
    }

    fn address(&self, offset: u64) -> Option<u64> {
        let within = |(start, bytes, _): &&(u64, u64, u64)| {
            (*start..start.saturating_add(*bytes)).contains(&offset)
        };
        let (start, _, address) = self.segments.iter().find(within)?;
        Some(offset - start + address)
    }

    fn find_offset(&self, offset: u64) -> Option<&str> {
        self.find(self.address(offset)?)
    }
}

/// Returns the content of a file that is not too large. It is read from its beginning: the position
/// belongs to all who hold this file open.
fn content(file: File) -> Option<Vec<u8>> {
    let bytes = file.metadata().ok()?.len();
    let mut content = vec![
        0;
        usize::try_from(bytes)
            .ok()
            .filter(|_| bytes <= FILE_BYTES_MAX)?
    ];
    file.read_exact_at(&mut content, 0).ok()?;
    Some(content)
}

/// Returns the source file and line of an address in a program or library.
fn line_of(content: &[u8], address: u64) -> Option<String> {
    let object = object::File::parse(content).ok()?;
    let section = |id: SectionId| {
        let section = object.section_by_name(id.name());
        let data = section.and_then(|it| it.data().ok()).unwrap_or_default();
        Ok::<_, gimli::Error>(EndianSlice::new(data, NativeEndian))
    };
    let context = addr2line::Context::from_dwarf(Dwarf::load(section).ok()?).ok()?;
    let place = context.find_location(address).ok()??;
    let file = place.file?.rsplit('/').next()?;
    Some(format!("{file}:{}", place.line?))
}

/// Returns the name as the source has it, for Rust and C++.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let symbol = name.starts_with("_Z").then(|| Symbol::new(name).ok());
    let cpp = symbol
        .flatten()
        .map(|symbol| symbol.demangle_with_options(&options));
    cpp.and_then(Result::ok).unwrap_or_else(|| name.to_owned())
}

/// The names of functions, read from a file when its first name is requested.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    kernel: Option<Table>,
    files: HashMap<u32, Table>,
    /// The names of generated code, by process.
    generated: HashMap<i32, Table>,
}

impl Symbols {
    /// Returns the function of a frame, with the name that its file gives it.
    pub(crate) fn name(&mut self, frame: Frame, memory: &Memory) -> Option<&str> {
        match frame {
            Frame::Kernel(address) => self
                .kernel
                .get_or_insert_with(Table::of_kernel)
                .find(address),
            Frame::Code(file, offset) => {
                let table = || Table::of_file(memory.file(file));
                self.files
                    .entry(file)
                    .or_insert_with(table)
                    .find_offset(offset)
            }
            Frame::Made(pid, address) => {
                let table = || Table::of_generated(pid);
                self.generated
                    .entry(pid)
                    .or_insert_with(table)
                    .find(address)
            }
        }
    }

    /// Returns the source file and line of a frame, where its own file has debug information.
    pub(crate) fn line(&self, frame: Frame, memory: &Memory) -> Option<String> {
        let Frame::Code(file, offset) = frame else {
            return None;
        };
        let address = self.files.get(&file)?.address(offset)?;
        line_of(&content(memory.file(file)?)?, address)
    }

    /// Returns whether any of the code that was seen to run is that of a Go program.
    pub(crate) fn has_goroutines(&mut self, memory: &Memory) -> bool {
        let is_go = |number| {
            let table = || Table::of_file(memory.file(number));
            self.files.entry(number).or_insert_with(table).is_go
        };
        memory.files().any(is_go)
    }

    /// Returns the names of the innermost functions of a stack, of the C library only that of the
    /// call that was made first: what lies farther out starts threads, or is left over.
    pub(crate) fn callers(&mut self, stack: &[Frame], memory: &Memory) -> String {
        let library = |frame: &Frame| match frame {
            Frame::Code(file, _) => memory.path(*file).contains("/libc."),
            _ => false,
        };
        let inner = stack.iter().take_while(|frame| library(frame)).count();
        let (inner, outer) = stack.split_at(inner);
        let own = outer.iter().filter(|frame| !library(frame));
        let mut names: Vec<String> = Vec::new();
        for &frame in inner.last().into_iter().chain(own) {
            let name = self.label(frame, memory);
            if names.last() != Some(&name) && !name.starts_with("[unknown]") {
                names.push(name);
            }
            if names.len() == CALLERS_MAX {
                break;
            }
        }
        names.join(" ← ")
    }

    /// Returns the function of a frame, or its location.
    pub(crate) fn label(&mut self, frame: Frame, memory: &Memory) -> String {
        if let Some(name) = self.name(frame, memory) {
            let kernel = if matches!(frame, Frame::Kernel(_)) {
                "_[k]"
            } else {
                ""
            };
            return format!("{}{kernel}", demangled(name));
        }
        match frame {
            Frame::Kernel(_) => "[unknown]_[k]".into(),
            Frame::Code(file, _) => {
                let path = memory.path(file);
                format!("[{}]", path.rsplit('/').next().unwrap_or(path))
            }
            Frame::Made(..) => "[unknown]".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_ends_where_its_symbol_says() {
        let functions = [(100, 10, "a"), (200, 0, "b")];
        let table = Table::sorted(functions.into_iter(), vec![(0, 1_000, 50)]);
        assert_eq!(table.find(99), None);
        assert_eq!(table.find(109), Some("a"));
        assert_eq!(table.find(110), None);
        assert_eq!(table.find(10_000), Some("b"));
        assert_eq!(table.find_offset(55), Some("a"));
        assert_eq!(table.find_offset(1_000), None);
    }

    #[test]
    fn generated_code_has_the_names_of_its_list() {
        let list = "7f00 20 LazyCompile:*turn /srv/a b.js:3\n7f20 8 Stub:x\nnonsense\n";
        let table = Table::of_list(list);
        assert_eq!(table.find(0x7f1f), Some("LazyCompile:*turn /srv/a b.js:3"));
        assert_eq!(table.find(0x7f20), Some("Stub:x"));
        assert_eq!((table.find(0x7f28), table.find(0x7eff)), (None, None));
    }

    /// A C program of one function, built by `gcc -g`, where there is a compiler.
    #[test]
    fn a_place_has_a_file_and_a_line() {
        let folder = thalweg_testkit::Scratch::new("lines");
        let (source, program) = (folder.join("work.c"), folder.join("work"));
        fs::write(&source, "int sum;\nint main(void) {\n  return sum;\n}\n").expect("room");
        let mut compiler = std::process::Command::new("cc");
        compiler.arg("-g").arg("-o").arg(&program).arg(&source);
        let built = compiler.status().is_ok_and(|status| status.success());
        let content = built.then(|| fs::read(&program).expect("it was built"));
        let Some(content) = content else {
            return println!("skipped: no C compiler");
        };
        let object = object::File::parse(&*content).expect("a program");
        let main = object.symbols().find(|it| it.name() == Ok("main"));
        let address = main.expect("it has a main").address();
        assert_eq!(line_of(&content, address).as_deref(), Some("work.c:2"));
        assert_eq!(line_of(&content, 1), None);
        assert_eq!(line_of(b"no program", address), None);
    }

    /// A test's own function may be inlined.
    #[inline(never)]
    fn a_name_to_be_found() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn names_are_those_of_the_source() {
        let cases = [
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_ZN4Heap4siftEii", "Heap::sift"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            ("deflate_slow", "deflate_slow"),
            ("_Zzz", "_Zzz"),
        ];
        for (name, expected) in cases {
            assert_eq!(demangled(name), expected);
        }
    }

    #[test]
    fn this_program_has_names() {
        assert_eq!(std::hint::black_box(a_name_to_be_found as fn() -> u32)(), 7);
        let own = File::open(std::env::current_exe().unwrap()).unwrap();
        let table = Table::of_file(Some(own));
        assert!(table.names.contains("a_name_to_be_found"));
        assert!(Table::of_file(None).functions.is_empty());
        assert!(!table.is_go);
    }
}
