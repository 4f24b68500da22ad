//! What the program computes, as the clock's ticks show it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

/// Marks in a stack that say whose addresses follow.
const MARK_MIN: u64 = -4095_i64 as u64;
const MARK_KERNEL: u64 = -128_i64 as u64;
const MARK_USER: u64 = -512_i64 as u64;

/// How far from the sampled address a pause may be, in bytes.
const PAUSE_BYTES: u64 = 32;
/// Different addresses and stacks that are kept.
const KEPT_MAX: usize = 50_000;

/// The ticks of a thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OfThread {
    pub(crate) all: u64,
    pub(crate) pause: u64,
}

/// All ticks.
#[derive(Debug, Default)]
pub(crate) struct Ticks {
    pub(crate) all: u64,
    pub(crate) user: u64,
    pub(crate) pause: u64,
    pub(crate) threads: HashMap<i32, OfThread>,
    /// Kernel stacks, innermost address first.
    kernel: HashMap<Box<[u64]>, u64>,
    beside_pause: HashMap<(i32, u64), bool>,
}

impl Ticks {
    pub(crate) fn add(&mut self, pid: i32, tid: i32, stack: &[u64]) {
        self.all += 1;
        let thread = self.threads.entry(tid).or_default();
        thread.all += 1;
        let (kernel, user) = split(stack);
        if let (true, Some(&address)) = (kernel.is_empty(), user.first()) {
            self.user += 1;
            let known = self.beside_pause.get(&(pid, address)).copied();
            let beside = known.unwrap_or_else(|| beside_pause(pid, address));
            if known.is_none() && self.beside_pause.len() < KEPT_MAX {
                self.beside_pause.insert((pid, address), beside);
            }
            self.pause += u64::from(beside);
            thread.pause += u64::from(beside);
        } else if self.kernel.len() < KEPT_MAX {
            *self.kernel.entry(kernel.into()).or_default() += 1;
        }
    }

    /// Parts of all ticks whose kernel stack holds one of the functions: of each list.
    pub(crate) fn kernel_shares<const N: usize>(
        &self,
        functions: [&[&str]; N],
    ) -> Option<[f64; N]> {
        let symbols = Symbols::of_kernel(&functions.concat())?;
        let mut shares = [0.0; N];
        for (stack, &count) in &self.kernel {
            for (share, names) in shares.iter_mut().zip(functions) {
                let within =
                    |address: &u64| symbols.find(*address).is_some_and(|s| names.contains(&s));
                if stack.iter().any(within) {
                    *share += count as f64 / self.all.max(1) as f64;
                }
            }
        }
        Some(shares)
    }
}

/// The kernel's and the program's addresses of a stack.
fn split(stack: &[u64]) -> (&[u64], &[u64]) {
    let (mut kernel, mut user): (&[u64], &[u64]) = (&[], &[]);
    let mut rest = stack;
    while let Some((&mark, after)) = rest.split_first() {
        let length = after
            .iter()
            .position(|&word| word >= MARK_MIN)
            .unwrap_or(after.len());
        match mark {
            MARK_KERNEL => kernel = &after[..length],
            MARK_USER => user = &after[..length],
            _ => {}
        }
        rest = &after[length..];
    }
    (kernel, user)
}

/// Is there an instruction near an address that tells the core that the thread spins?
fn beside_pause(pid: i32, address: u64) -> bool {
    let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else {
        return false;
    };
    let mut bytes = [0; 2 * PAUSE_BYTES as usize];
    let start = address.saturating_sub(PAUSE_BYTES) & !3;
    let read = memory.read_at(&mut bytes, start).unwrap_or(0);
    has_pause(&bytes[..read])
}

fn has_pause(code: &[u8]) -> bool {
    if cfg!(target_arch = "aarch64") {
        let yields = 0xd503_203f_u32.to_le_bytes();
        let barrier = 0xd503_3fdf_u32.to_le_bytes();
        return code
            .chunks_exact(4)
            .any(|word| word == yields || word == barrier);
    }
    code.windows(2).any(|pair| pair == [0xf3, 0x90])
}

/// Some functions of the kernel.
struct Symbols<'a> {
    /// Start, end and name, in the order of addresses.
    functions: Vec<(u64, u64, &'a str)>,
}

impl<'a> Symbols<'a> {
    /// Nothing if the kernel hides its addresses.
    fn of_kernel(names: &[&'a str]) -> Option<Symbols<'a>> {
        let text = fs::read_to_string("/proc/kallsyms").ok()?;
        let mut starts: Vec<(u64, &str)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let start = u64::from_str_radix(words.next()?, 16)
                    .ok()
                    .filter(|&start| start > 0)?;
                words.next().filter(|kind| kind.eq_ignore_ascii_case("t"))?;
                Some((start, words.next()?))
            })
            .collect();
        starts.sort_unstable();
        let end = |at: usize| {
            starts[at..]
                .iter()
                .map(|s| s.0)
                .find(|&next| next > starts[at].0)
        };
        let mut functions = Vec::new();
        for (at, (start, found)) in starts.iter().enumerate() {
            if let Some(name) = names.iter().find(|name| *name == found) {
                functions.push((*start, end(at).unwrap_or(u64::MAX), *name));
            }
        }
        (!functions.is_empty()).then_some(Symbols { functions })
    }

    fn find(&self, address: u64) -> Option<&'a str> {
        let within = |(start, end, _): &&(u64, u64, &str)| (*start..*end).contains(&address);
        self.functions.iter().find(within).map(|(_, _, name)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_a_kernel_part_and_a_user_part() {
        let stack = [MARK_KERNEL, 1, 2, MARK_USER, 3, 4, 5];
        assert_eq!(split(&stack), (&[1, 2][..], &[3, 4, 5][..]));
        assert_eq!(split(&[MARK_USER, 3]), (&[][..], &[3][..]));
        assert_eq!(split(&[]), (&[][..], &[][..]));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_pause_is_found_in_code() {
        assert!(has_pause(&[0x8a, 0x07, 0xf3, 0x90, 0xeb, 0xfa]));
        assert!(!has_pause(&[0x8a, 0x07, 0x90, 0xeb, 0xfa]));
    }
}
