//! Finds fields in this kernel's structures, from its own type description (BTF).
//!
//! This parser is our own because existing libraries parse all 150,000 types, which takes as long
//! as many programs run. It looks up only four names.

use std::io;

const PATH: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
/// The maximum nesting of unnamed unions.
const DEPTH_MAX: u32 = 8;

/// The kinds of types, with their numbers in `linux/btf.h`.
const STRUCT: u32 = 4;
const UNION: u32 = 5;

/// The offsets of the fields in the kernel's structures that probes read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The offsets in a task: the ids of its process and of itself, and its core.
    pub(crate) pid_at: i16,
    pub(crate) tid_at: i16,
    pub(crate) core_at: i16,
    pub(crate) context: Context,
}

/// The way to distinguish a call of the running thread from an interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    /// The interrupt depth, which the task stores at this offset.
    Depth { at: i16 },
    /// The stack, which an interrupt during a call does not use, and the registers at the entry to
    /// the kernel, which an interrupt of the program marks (x86-64).
    Entry,
}

impl Layout {
    /// Returns the layout of the running kernel.
    pub(crate) fn of_kernel() -> io::Result<Layout> {
        let bytes = std::fs::read(PATH)
            .map_err(|why| io::Error::new(why.kind(), format!("{PATH}: {why}")))?;
        Layout::parse(&bytes).ok_or_else(|| {
            io::Error::other(format!("{PATH}: it does not describe what the probes read"))
        })
    }

    /// Parses a description. Returns `None` if a needed field is missing.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Layout> {
        let types = Types::parse(bytes)?;
        let task = types.structure("task_struct")?;
        let of_task = |field: &str| i16::try_from(types.member(task, field, 0)?.0).ok();
        // The thread information for the processor is a part of the task.
        let thread = types.member(task, "thread_info", 0);
        let of_thread = |field: &str| {
            let (at, inner) = thread?;
            i16::try_from(at + types.member(types.at(inner)?, field, 0)?.0).ok()
        };
        let entry = cfg!(target_arch = "x86_64").then_some(Context::Entry);
        Some(Layout {
            pid_at: of_task("tgid")?,
            tid_at: of_task("pid")?,
            core_at: of_thread("cpu").or_else(|| of_task("cpu"))?,
            context: match of_thread("preempt_count") {
                Some(at) => Context::Depth { at },
                None => entry?,
            },
        })
    }
}

/// All types, in one piece of memory.
struct Types<'a> {
    types: &'a [u8],
    names: &'a [u8],
    /// The offset of each type; the first has the id 1.
    starts: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Type {
    name: u32,
    kind: u32,
    members: usize,
    has_bit_fields: bool,
    /// The offset of the data that depends on the kind.
    rest: usize,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(word.try_into().ok()?))
}

impl<'a> Types<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Types<'a>> {
        if bytes.get(..2)? != MAGIC.to_ne_bytes() {
            return None;
        }
        let header = u32_at(bytes, 4)? as usize;
        let section = |at: usize| {
            let (from, len) = (u32_at(bytes, at)? as usize, u32_at(bytes, at + 4)? as usize);
            let from = header.checked_add(from)?;
            bytes.get(from..from.checked_add(len)?)
        };
        let mut all = Types {
            types: section(8)?,
            names: section(16)?,
            starts: Vec::new(),
        };
        let mut at = 0;
        while at < all.types.len() {
            all.starts.push(u32::try_from(at).ok()?);
            let found = all.read(all.starts.len() as u32)?;
            at = found.rest + size_of_rest(found.kind, found.members)?;
        }
        Some(all)
    }

    fn read(&self, id: u32) -> Option<Type> {
        let at = *self.starts.get(id.checked_sub(1)? as usize)? as usize;
        let info = u32_at(self.types, at + 4)?;
        Some(Type {
            name: u32_at(self.types, at)?,
            kind: info >> 24 & 0x1f,
            members: (info & 0xffff) as usize,
            has_bit_fields: info >> 31 == 1,
            rest: at + 12,
        })
    }

    /// Returns a structure or union by its id.
    fn at(&self, id: u32) -> Option<Type> {
        self.read(id)
            .filter(|found| matches!(found.kind, STRUCT | UNION))
    }

    fn is_name(&self, name: u32, wanted: &str) -> bool {
        let text = self.names.get(name as usize..).unwrap_or_default();
        text.strip_prefix(wanted.as_bytes())
            .is_some_and(|rest| rest.first() == Some(&0))
    }

    fn structure(&self, name: &str) -> Option<Type> {
        let mut all = (1..=self.starts.len() as u32).filter_map(|id| self.read(id));
        all.find(|found| found.kind == STRUCT && self.is_name(found.name, name))
    }

    /// Returns the offset of a field in bytes, and its type. Fields of unnamed members are found
    /// too.
    fn member(&self, of: Type, name: &str, depth: u32) -> Option<(u32, u32)> {
        (0..of.members).find_map(|index| {
            let at = of.rest + 12 * index;
            let (field, kind) = (u32_at(self.types, at)?, u32_at(self.types, at + 4)?);
            let bits = u32_at(self.types, at + 8)?;
            let bits = if of.has_bit_fields {
                bits & 0x00ff_ffff
            } else {
                bits
            };
            if self.is_name(field, name) {
                return Some((bits / 8, kind));
            }
            let inner = self
                .at(kind)
                .filter(|_| self.is_name(field, "") && depth < DEPTH_MAX)?;
            let (at, kind) = self.member(inner, name, depth + 1)?;
            Some((bits / 8 + at, kind))
        })
    }
}

/// Returns the size of the data behind the first three words of a type.
fn size_of_rest(kind: u32, members: usize) -> Option<usize> {
    Some(match kind {
        // Pointers, typedefs, qualifiers, functions, floats, tags.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables, declaration tags.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        STRUCT | UNION | 15 | 19 => 12 * members,
        // Enumerations, parameters.
        6 | 13 => 8 * members,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Creates a description with these names and types.
    fn described(types: &[&[u32]], names: &str) -> Vec<u8> {
        let types: Vec<u32> = types.concat();
        let (types_len, names_len) = (4 * types.len() as u32, names.len() as u32);
        let header = [0x0001_eb9f, 24, 0, types_len, types_len, names_len];
        let words = header
            .iter()
            .chain(&types)
            .flat_map(|word| word.to_ne_bytes());
        words.chain(names.bytes()).collect()
    }

    /// Creates a description of a task: the thread information with its core at 8, and the ids at
    /// 16 and 20.
    fn small() -> Vec<u8> {
        let names = "\0task_struct\0pid\0tgid\0thread_info\0cpu\0";
        let at = |name: &str| names.find(&format!("\0{name}\0")).unwrap() as u32 + 1;
        let of = |kind: u32, members: u32| kind << 24 | members;
        described(
            &[
                &[0, of(1, 0), 4, 32],
                // An unnamed union inside the thread information.
                &[0, of(UNION, 1), 4, at("cpu"), 1, 0],
                &[at("thread_info"), of(STRUCT, 1), 16, 0, 2, 64],
                &[at("task_struct"), of(STRUCT, 3), 24],
                &[
                    at("thread_info"),
                    3,
                    0,
                    at("pid"),
                    1,
                    128,
                    at("tgid"),
                    1,
                    160,
                ],
            ],
            names,
        )
    }

    #[test]
    fn fields_are_found_in_unnamed_parts_too() {
        let layout = Layout {
            pid_at: 20,
            tid_at: 16,
            core_at: 8,
            context: Context::Entry,
        };
        let expected = cfg!(target_arch = "x86_64").then_some(layout);
        assert_eq!(Layout::parse(&small()), expected);
    }

    #[test]
    fn the_kernel_that_runs_describes_what_is_read() {
        match Layout::of_kernel() {
            Ok(layout) => assert!(layout.tid_at > 0 && layout.core_at >= 0, "{layout:?}"),
            Err(why) => println!("skipped: {why}"),
        }
    }

    #[test]
    fn what_is_cut_off_describes_nothing() {
        let whole = small();
        for len in 0..whole.len() - 1 {
            assert_eq!(Layout::parse(&whole[..len]), None, "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn broken_descriptions_are_refused_or_read(at in 0..200_usize, byte: u8) {
            let mut bytes = small();
            let len = bytes.len();
            bytes[at % len] = byte;
            let _ = Layout::parse(&bytes);
        }
    }
}
