//! Classifies what the program computes, from the clock's samples.

use crate::probe::memory::{Frame, Memory};
#[cfg(target_arch = "x86_64")]
use crate::probe::spin_loop;
use crate::probe::symbols::Symbols;
use crate::probe::syscall::{self, Class};
use crate::sys::{self, Used};
use rustix::time::ClockId;
use std::collections::{HashMap, HashSet};

/// The lowest mark in a stack; a mark says whether kernel or user addresses follow.
const MARK_MIN: u64 = -4095_i64 as u64;
const MARK_KERNEL: u64 = -128_i64 as u64;
const MARK_USER: u64 = -512_i64 as u64;

/// The number of bytes of code that are examined around a sampled address.
const CODE_BYTES: usize = 64;
/// The maximum number of different addresses and stacks that are kept.
const KEPT_MAX: usize = 50_000;

/// The properties of code that its bytes show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Code {
    spins: bool,
    yields: bool,
    calls: bool,
    polls: bool,
    /// Whether it is where the kernel lets programs read the clock without a call (the vDSO).
    clock: bool,
}

/// The samples of a thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadSamples {
    pub(crate) all: u64,
    pub(crate) pause: u64,
    /// The samples next to a system call that polls.
    pub(crate) polls: u64,
    /// The samples where it reads the clock.
    clock: u64,
}

/// The shares of all samples by the kernel's activity.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct KernelShares {
    pub(crate) fault: f64,
    pub(crate) call: f64,
    pub(crate) yields: f64,
    futex: f64,
    pub(crate) disk: f64,
    /// The calls of which only the way into the kernel or out of it is seen.
    unnamed: f64,
}

impl KernelShares {
    /// Returns the share of calls of futex; `counted` is the number of these and that of all calls.
    /// The way in and out is as long for each call; where calls are not counted, it is shared out
    /// by the time of those that have names.
    pub(crate) fn futex(&self, counted: Option<(f64, f64)>) -> f64 {
        match counted.filter(|(_, all)| *all > 0.0) {
            Some((futex, all)) => self.futex + self.unnamed * futex / all,
            None => with_unnamed(self.futex, self.call, self.unnamed),
        }
    }
}

/// The activity of a sample: its own code, a page fault, or a call of this name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Doing {
    Own,
    Fault,
    Call(String),
}

/// Returns the name of the system call that a function of the kernel is a part of; its entry may be
/// inlined, and the name is lost then.
fn called(function: &str) -> Option<String> {
    let named = ENTRIES
        .iter()
        .find_map(|entry| function.strip_prefix(entry));
    let named = named.map(|name| name.trim_start_matches("new"));
    let yields = function.ends_with("sched_yield").then_some("sched_yield");
    let unnamed = CALLS.contains(&function).then_some(UNNAMED);
    named.or(yields).or(unnamed).map(str::to_owned)
}

/// The name of a call of which only the way into the kernel or out of it is seen.
const UNNAMED: &str = "a system call";

/// Returns the share of one call with its part of the samples that name no call: the ways in and
/// out belong to the calls that have names.
fn with_unnamed(share: f64, calls: f64, unnamed: f64) -> f64 {
    share * calls / (calls - unnamed).max(share).max(1e-9)
}

/// The properties of a stack that its functions of the kernel show.
#[derive(Debug, Default)]
struct Kernel {
    /// Whether any of them is known.
    known: bool,
    /// Whether one of them goes to a disk.
    disk: bool,
}

/// Returns the activity that a stack shows, and what is known of the kernel's functions in it.
fn doing(stack: &[Frame], symbols: &mut Symbols, memory: &Memory) -> (Doing, Kernel) {
    let (mut fault, mut call, mut kernel) = (false, None, Kernel::default());
    let is_kernel = |frame: &&Frame| matches!(frame, Frame::Kernel(_));
    for &frame in stack.iter().take_while(is_kernel) {
        let Some(name) = symbols.name(frame, memory) else {
            continue;
        };
        kernel.known = true;
        kernel.disk |= DISK.iter().any(|start| name.starts_with(start));
        fault |= FAULTS.contains(&name);
        call = call.or_else(|| called(name));
    }
    let doing = match (fault, call) {
        (true, _) => Doing::Fault,
        (false, Some(call)) => Doing::Call(call),
        (false, None) => Doing::Own,
    };
    (doing, kernel)
}

/// All samples.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) all: u64,
    /// The samples outside the kernel.
    pub(crate) user: u64,
    /// The samples in a loop that waits, or next to a pause; next to a system call, or to one of
    /// `sched_yield`.
    pub(crate) pause: u64,
    pub(crate) calls: u64,
    pub(crate) yields: u64,
    pub(crate) threads: HashMap<i32, ThreadSamples>,
    /// For each name of a thread, its stacks with the innermost frame first.
    stacks: HashMap<Box<str>, HashMap<Box<[Frame]>, u64>>,
    kept: usize,
    codes: HashMap<Frame, Code>,
}

impl Samples {
    /// Adds a sample of a thread.
    pub(crate) fn add(
        &mut self,
        (pid, tid): (i32, i32),
        name: &str,
        stack: &[u64],
        memory: &mut Memory,
    ) {
        self.all += 1;
        let (kernel, user) = split(stack);
        let mut code = Code::default();
        if let (true, Some(&address)) = (kernel.is_empty(), user.first()) {
            self.user += 1;
            code = self.code(pid, address, memory);
            self.pause += u64::from(code.spins);
            self.calls += u64::from(code.calls);
            self.yields += u64::from(code.yields);
        }
        let thread = self.threads.entry(tid).or_default();
        thread.all += 1;
        thread.pause += u64::from(code.spins);
        thread.polls += u64::from(code.polls);
        thread.clock += u64::from(code.clock);
        let kernel = kernel.iter().map(|&address| Frame::Kernel(address));
        let user = user.iter().map(|&address| memory.frame(pid, address));
        let frames: Box<[Frame]> = kernel.chain(user).collect();
        if !self.stacks.contains_key(name) {
            self.stacks.insert(name.into(), HashMap::new());
        }
        let Some(stacks) = self.stacks.get_mut(name) else {
            return;
        };
        if let Some(count) = stacks.get_mut(&frames) {
            *count += 1;
        } else if self.kept < KEPT_MAX {
            stacks.insert(frames, 1);
            self.kept += 1;
        }
    }

    fn code(&mut self, pid: i32, address: u64, memory: &mut Memory) -> Code {
        let frame = memory.frame(pid, address);
        if let Some(code) = self.codes.get(&frame) {
            return *code;
        }
        let mut bytes = [0; CODE_BYTES];
        let count = memory.code(pid, address, frame, &mut bytes);
        let code = Code {
            spins: has_pause(&bytes[..count]) || waits(pid, address, frame, memory),
            yields: has_yield(&bytes[..count]),
            calls: has_call(&bytes[..count]),
            polls: has_poll(&bytes[..count]),
            clock: (memory.mapped(pid, "[vdso]")).is_some_and(|code| code.contains(&address)),
        };
        if self.codes.len() < KEPT_MAX {
            self.codes.insert(frame, code);
        }
        code
    }

    /// Returns the shares of all samples in page faults, system calls and `sched_yield`; `None` if
    /// the kernel hides the addresses of its functions.
    pub(crate) fn kernel_shares(
        &self,
        symbols: &mut Symbols,
        memory: &Memory,
    ) -> Option<KernelShares> {
        let all = self.all.max(1) as f64;
        let mut shares = KernelShares::default();
        let mut known = self.user == self.all;
        for (stack, &count) in self.stacks.values().flatten() {
            let share = count as f64 / all;
            let (doing, kernel) = doing(stack, symbols, memory);
            known |= kernel.known;
            match doing {
                Doing::Fault => shares.fault += share,
                Doing::Call(name) => {
                    shares.call += share;
                    shares.disk += if kernel.disk { share } else { 0.0 };
                    match &*name {
                        "sched_yield" => shares.yields += share,
                        "futex" | "futex_waitv" => shares.futex += share,
                        UNNAMED => shares.unnamed += share,
                        _ => {}
                    }
                }
                Doing::Own => {}
            }
        }
        known.then_some(shares)
    }

    /// Returns the number of samples by activity and function, with the place in the function where
    /// most were. A call is named by the function that the program is in, if the kernel's part of
    /// the stack is hidden.
    pub(crate) fn functions(
        &self,
        symbols: &mut Symbols,
        memory: &Memory,
    ) -> HashMap<(Doing, String), (u64, Frame)> {
        let mut functions: HashMap<_, (u64, Frame, u64)> = HashMap::new();
        for (stack, &count) in self.stacks.values().flatten() {
            let (mut doing, _) = doing(stack, symbols, memory);
            let mut own = stack
                .iter()
                .filter(|frame| !matches!(frame, Frame::Kernel(_)));
            let leaf = own.next();
            let calls = leaf
                .and_then(|leaf| self.codes.get(leaf))
                .is_some_and(|code| code.calls);
            // The innermost function at a call is that of the C library.
            let caller = match &doing {
                Doing::Call(_) => own.next().or(leaf),
                _ => leaf,
            };
            let Some(&caller) = caller else { continue };
            let function = symbols.label(caller, memory);
            if calls && doing == Doing::Own {
                doing = Doing::Call(function.clone());
            }
            let found = functions.entry((doing, function));
            let (all, place, most) = found.or_insert((0, caller, 0));
            *all += count;
            if count > *most {
                (*place, *most) = (caller, count);
            }
        }
        let known = functions.into_iter();
        known
            .map(|(name, (all, place, _))| (name, (all, place)))
            .collect()
    }

    /// Returns the functions in which threads of these names were most often, with their share;
    /// without names, those of any thread.
    pub(crate) fn heaviest(
        &self,
        names: &HashSet<&str>,
        symbols: &mut Symbols,
        memory: &Memory,
    ) -> Option<(String, f64)> {
        let mut all = 0;
        let mut found: HashMap<String, u64> = HashMap::new();
        let is_named = |name: &str| names.is_empty() || names.contains(name);
        let named = self.stacks.iter().filter(|(name, _)| is_named(name));
        for (stack, count) in named.flat_map(|(_, stacks)| stacks) {
            let own = stack.iter().filter(|it| !matches!(it, Frame::Kernel(_)));
            let own: Vec<Frame> = own.copied().collect();
            *found.entry(symbols.callers(&own, memory)).or_default() += count;
            all += count;
        }
        found.remove("");
        let most = found
            .into_iter()
            .max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)));
        most.map(|(functions, count)| (functions, count as f64 / all as f64))
    }

    /// Returns the file whose code most samples are in; `Some(None)` if it is code that was made
    /// when the program ran.
    pub(crate) fn most_run(&self) -> Option<Option<u32>> {
        let mut files: HashMap<Option<u32>, u64> = HashMap::new();
        for (stack, count) in self.stacks.values().flatten() {
            let own = stack.iter().find_map(|frame| match frame {
                Frame::Kernel(_) => None,
                Frame::Code(file, _) => Some(Some(*file)),
                Frame::Made(..) => Some(None),
            });
            if let Some(file) = own {
                *files.entry(file).or_default() += count;
            }
        }
        (files.into_iter())
            .max_by_key(|it| it.1)
            .map(|(file, _)| file)
    }

    /// Finds loops that wait and call functions meanwhile, by the functions' names. A thread that
    /// checks again and again and finds nothing spins; so does a thread that does little but read
    /// the clock.
    pub(crate) fn find_askers(&mut self, symbols: &mut Symbols, memory: &Memory) {
        let (mut asks, mut found) = (0, 0);
        for (stack, &count) in self.stacks.values().flatten() {
            let mut is = |names: &[&str]| {
                let mut frames = stack.iter().filter(|it| matches!(it, Frame::Code(..)));
                frames.any(|&frame| {
                    let name = symbols.name(frame, memory);
                    name.is_some_and(|name| names.iter().any(|part| name.ends_with(part)))
                })
            };
            match (is(ASKS), is(FOUND)) {
                (true, true) => found += FOUND_SCALE * count,
                (true, false) => asks += count,
                (false, true) => found += 2 * count,
                (false, false) => {}
            }
        }
        let mut vain = asks.saturating_sub(found);
        for of in self.threads.values_mut() {
            if of.clock as f64 >= CLOCK_MOST * of.all as f64 {
                vain += of.all.saturating_sub(of.pause);
                of.pause = of.all;
            }
        }
        self.pause = (self.pause + vain).min(self.user);
    }

    /// Returns for each stack the thread, and the functions from the outermost to the innermost,
    /// with the number of samples.
    pub(crate) fn stacks(&self, symbols: &mut Symbols, memory: &Memory) -> Vec<(Vec<String>, f64)> {
        let mut named: HashMap<Vec<String>, u64> = HashMap::new();
        for (name, stacks) in &self.stacks {
            for (stack, &count) in stacks {
                let mut frames = vec![name.to_string()];
                frames.extend(
                    stack
                        .iter()
                        .rev()
                        .map(|&frame| symbols.label(frame, memory)),
                );
                *named.entry(frames).or_default() += count;
            }
        }
        named
            .into_iter()
            .map(|(frames, count)| (frames, count as f64))
            .collect()
    }
}

/// The share of the samples of a thread in reading the clock from which on the thread waits for a
/// point in time: such a loop in C or Rust has 0.79 and 0.92 (Zen 3).
const CLOCK_MOST: f64 = 0.7;
/// The functions that check without waiting: `select` of Go with a `default`, and attempts to take
/// a lock.
const ASKS: &[&str] = &[
    "runtime.selectgo",
    "runtime.selectnbrecv",
    "runtime.selectnbsend",
    "pthread_mutex_trylock",
    "sem_trywait",
];
/// The weight of samples that show success. A `select` of Go that finds something moves it, or
/// waits, for a few hundredths of its time, and does so very rarely where few attempts succeed.
const FOUND_SCALE: u64 = 100;
/// The functions that run where such a check succeeds, where a partner sends or receives, or where
/// it waits.
const FOUND: &[&str] = &[
    "runtime.typedmemclr",
    "pthread_mutex_unlock",
    "sem_post",
    "runtime.send",
    "runtime.recv",
    "runtime.chansend1",
    "runtime.chanrecv1",
    "runtime.chanrecv2",
    "runtime.mcall",
    "runtime.gopark",
    "runtime.goready",
    "runtime.typedmemmove",
];
const FAULTS: &[&str] = &[
    "asm_exc_page_fault",
    "exc_page_fault",
    "handle_mm_fault",
    "el0_da",
];
/// The prefixes of the kernel's functions that read or write a disk: reading ahead what is not
/// cached, syncs, blocks on their way to the device, and waits for them.
const DISK: &[&str] = &[
    "page_cache_ra_",
    "page_cache_sync_ra",
    "page_cache_async_ra",
    "vfs_fsync",
    "submit_bio",
    "blk_mq_",
    "io_schedule",
];
/// The prefixes of the kernel's functions that are entered at a call.
const ENTRIES: &[&str] = &["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_"];
const CALLS: &[&str] = &[
    "do_syscall_64",
    "entry_SYSCALL_64_after_hwframe",
    "do_el0_svc",
];

/// Splits a stack into the kernel's and the program's addresses.
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

/// Returns whether the address is in a loop that waits without a `pause`.
#[cfg(target_arch = "x86_64")]
fn waits(pid: i32, address: u64, frame: Frame, memory: &Memory) -> bool {
    let mut bytes = [0; 2 * spin_loop::AROUND];
    let count = memory.code(pid, address, frame, &mut bytes);
    // The first byte is at a multiple of four.
    spin_loop::waits(&bytes[..count], spin_loop::AROUND + address as usize % 4)
}

#[cfg(not(target_arch = "x86_64"))]
fn waits(_: i32, _: u64, _: Frame, _: &Memory) -> bool {
    false
}

/// Returns whether the code has an instruction that hints to the core that the thread spins.
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

/// Returns whether the code has a system call.
fn has_call(code: &[u8]) -> bool {
    if cfg!(target_arch = "aarch64") {
        let svc = 0xd400_0001_u32.to_le_bytes();
        return code.chunks_exact(4).any(|word| word == svc);
    }
    code.windows(2).any(|pair| pair == [0x0f, 0x05])
}

/// Returns whether the code has a call of `sched_yield`, in the form of C libraries.
fn has_yield(code: &[u8]) -> bool {
    if cfg!(target_arch = "aarch64") {
        // mov x8, #124
        let number = 0xd280_0f88_u32.to_le_bytes();
        return code.chunks_exact(4).any(|word| word == number);
    }
    // mov eax, 24; syscall
    code.windows(7)
        .any(|bytes| bytes == [0xb8, 0x18, 0, 0, 0, 0x0f, 0x05])
}

/// Returns whether the code has a call that polls, in the form of C libraries. Only x86-64 is
/// supported.
fn has_poll(code: &[u8]) -> bool {
    let polls = |number: [u8; 4]| syscall::class(u32::from_le_bytes(number).into()) == Class::Poll;
    // mov eax, number; syscall
    cfg!(target_arch = "x86_64")
        && (code.windows(7)).any(|bytes| match *bytes {
            [0xb8, a, b, c, d, 0x0f, 0x05] => polls([a, b, c, d]),
            _ => false,
        })
}

/// The amount of memory that is touched for the first time.
const BYTES: usize = 8 << 20;
/// The minimum number of faults; with fewer the kernel used large pages, and there is no result.
const FAULTS_MIN: u64 = 200;

/// Returns the seconds for one page fault that is served from memory. The measurement takes some
/// milliseconds.
pub(crate) fn fault_cost_s() -> Option<f64> {
    let own = std::process::id().cast_signed();
    let before = Used::of(own)?.faults_minor;
    let began_s = sys::cpu_s(ClockId::ThreadCPUTime);
    let mut memory = vec![0_u8; BYTES];
    for byte in memory.iter_mut().step_by(rustix::param::page_size()) {
        *byte = 1;
    }
    let took_s = sys::cpu_s(ClockId::ThreadCPUTime) - began_s;
    std::hint::black_box(&memory);
    let faults = Used::of(own)?.faults_minor.saturating_sub(before);
    (faults >= FAULTS_MIN).then(|| took_s / faults as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::record::Mapping;

    /// The entry of `sched_yield` is inlined in some kernels: the storm was SYSCALL-BOUND then.
    #[test]
    fn a_call_is_named_by_the_function_that_is_entered() {
        for (function, expected) in [
            ("__x64_sys_newfstatat", Some("fstatat")),
            ("__x64_sys_futex", Some("futex")),
            ("do_sched_yield", Some("sched_yield")),
            ("do_syscall_64", Some("a system call")),
            ("schedule", None),
        ] {
            assert_eq!(called(function).as_deref(), expected, "{function}");
        }
    }

    /// `stress-ng --mutex`, as recorded: 27 % futex, 25 % `sched_setscheduler`, and 32 % that name
    /// no call. It was SYSCALL-BOUND at 0.77, as none of these were taken for futex.
    #[test]
    fn the_way_into_the_kernel_belongs_to_the_calls() {
        let share = with_unnamed(0.272, 0.916, 0.32);
        assert!((share - 0.418).abs() < 0.001, "{share}");
        assert_eq!(with_unnamed(0.0, 0.9, 0.9), 0.0);
        assert_eq!(with_unnamed(0.25, 0.5, 0.0), 0.25);
        // A program of Go that reads bytes, as recorded: 412 of 454,000 calls a second were of
        // futex, and it was FUTEX-PARKING, as short calls are hardly ever seen by their names.
        let reads = KernelShares {
            call: 0.74,
            futex: 0.036,
            unnamed: 0.66,
            ..KernelShares::default()
        };
        assert!(reads.futex(None) > 0.3);
        assert!(reads.futex(Some((412.0, 454_000.0))) < 0.04);
    }

    #[test]
    fn a_stack_has_a_kernel_part_and_a_user_part() {
        let stack = [MARK_KERNEL, 1, 2, MARK_USER, 3, 4, 5];
        assert_eq!(split(&stack), (&[1, 2][..], &[3, 4, 5][..]));
        assert_eq!(split(&[MARK_USER, 3]), (&[][..], &[3][..]));
        assert_eq!(split(&[]), (&[][..], &[][..]));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn code_tells_what_it_does() {
        assert!(has_pause(&[0x8a, 0x07, 0xf3, 0x90, 0xeb, 0xfa]));
        assert!(!has_pause(&[0x8a, 0x07, 0x90, 0xeb, 0xfa]));
        assert!(has_yield(&[0x90, 0xb8, 0x18, 0, 0, 0, 0x0f, 0x05, 0xc3]));
        assert!(!has_yield(&[0x90, 0xb8, 0x19, 0, 0, 0, 0x0f, 0x05, 0xc3]));
        assert!(has_poll(&[0x90, 0xb8, 0xe8, 0, 0, 0, 0x0f, 0x05, 0xc3]));
        assert!(!has_poll(&[0x90, 0xb8, 0x18, 0, 0, 0, 0x0f, 0x05, 0xc3]));
        assert!(has_call(&[0x90, 0xb8, 0x19, 0, 0, 0, 0x0f, 0x05, 0xc3]));
        assert!(!has_call(&[0x8a, 0x07, 0xf3, 0x90, 0xeb, 0xfa]));
    }

    /// Loops that wait for a point in time had been judged CPU-COMPUTE: they read the clock, and
    /// have no `pause`.
    #[test]
    fn who_does_nothing_but_read_the_clock_waits() {
        let mut memory = Memory::default();
        memory.add(
            1,
            Mapping {
                start: 0x7000,
                bytes: 0x1000,
                file_offset: 0,
                path: "[vdso]".into(),
                device: (0, 0),
                inode: 0,
            },
            0,
        );
        let mut pauses = |reads: u64| {
            let mut ticks = Samples::default();
            (0..reads).for_each(|_| ticks.add((1, 1), "a", &[MARK_USER, 0x7010], &mut memory));
            (reads..10).for_each(|_| ticks.add((1, 1), "a", &[MARK_USER, 16], &mut memory));
            ticks.find_askers(&mut Symbols::default(), &memory);
            (ticks.pause, ticks.threads[&1].pause)
        };
        assert_eq!([pauses(8), pauses(6)], [(10, 10), (0, 0)]);
    }

    /// The holder of a lock is known by the names of its threads.
    #[test]
    fn the_heaviest_functions_are_those_of_the_threads_that_are_asked_for() {
        let own = std::process::id().cast_signed();
        let (mut memory, mut ticks) = (Memory::default(), Samples::default());
        memory.adopt(own);
        let code = [has_call as fn(&[u8]) -> bool, has_pause];
        let [call, pause] = code.map(|it| it as usize as u64 + 1);
        for (name, address, count) in [("a", call, 3), ("b", pause, 9), ("b", 16, 3)] {
            for _ in 0..count {
                ticks.add((own, 1), name, &[MARK_USER, address], &mut memory);
            }
        }
        let heaviest = |names: &[&str]| {
            let names = names.iter().copied().collect();
            ticks.heaviest(&names, &mut Symbols::default(), &memory)
        };
        let (name, share) = heaviest(&["a"]).expect("it ran");
        assert!(name.ends_with("has_call") && share == 1.0, "{name} {share}");
        let (name, share) = heaviest(&[]).expect("both ran");
        assert!(
            name.ends_with("has_pause") && share == 0.6,
            "{name} {share}"
        );
        assert_eq!(heaviest(&["c"]), None);
        let file = ticks.most_run().flatten().expect("this program");
        assert!(memory.path(file).contains("thalweg_doctor"));
    }

    #[test]
    fn equal_stacks_are_counted_together() {
        let mut ticks = Samples::default();
        let mut memory = Memory::default();
        for _ in 0..3 {
            ticks.add((1, 1), "a", &[MARK_USER, 16, 32], &mut memory);
        }
        let stacks = ticks.stacks(&mut Symbols::default(), &memory);
        let frames = ["a", "[unknown]", "[unknown]"].map(String::from).to_vec();
        assert_eq!(stacks, [(frames, 3.0)]);
        assert_eq!((ticks.all, ticks.user), (3, 3));
    }
}
