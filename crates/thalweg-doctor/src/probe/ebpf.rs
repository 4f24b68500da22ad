//! eBPF programs that the kernel runs at its tracepoints. They write switches, wake-ups and system
//! calls to the ring buffers of the cores while this is requested, and cost almost nothing
//! otherwise.
//!
//! At a system call, the idle cost is 150 ns (Zen 3), as the kernel takes its slow path. The
//! program at calls is therefore detached in long pauses.
//!
//! An event of a tracepoint costs more: it is prepared at each wake-up before the kernel checks
//! whether it counts, and closing the last one of its kind takes the kernel 40 ms.

use crate::probe::btf::{Context, Layout};
use crate::sys::bpf::{self, MapKind};
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

/// The sampling interval where calls are too many to record each of them. It is a prime, so that it
/// is in step with few loops.
pub(crate) const CALLS_EVERY: u32 = 13;

/// The offsets of the settings that the programs read from their map: whether wake-ups are written,
/// the sampling interval of calls, and whether switches are written.
const WAKES_AT: i16 = 0;
const EVERY_AT: i16 = 4;
const SWITCHES_AT: i16 = 8;
/// The offset in that map of the number of calls until the next sample, one for each core in a
/// cache line of its own. With more cores than this, some cores share one.
const LEFT_AT: i16 = 64;
const LEFT_CORES: i32 = 32;
const LEFT_BYTES_LOG2: i32 = 6;
const ASKED_BYTES: usize = LEFT_AT as usize + ((LEFT_CORES as usize) << LEFT_BYTES_LOG2);

/// The bits of the interrupt depth: in a maskable interrupt of either kind, or in another one.
const IN_INTERRUPT: i32 = 0x00ff_0100;
/// Offsets on the stack of a program.
const ADDRESSES_AT: i16 = -32;
const NUMBERS_AT: i16 = -48;
/// The minimum size of the stack of a task (x86-64).
const STACK_BYTES_LOG2: i32 = 14;
/// The index of the ring buffer of the core that the program runs on.
const CURRENT_CORE: i32 = -1;

/// The kind of a record, in its first word.
pub(super) const WAKE: u32 = 1;
pub(super) const WAKING: u32 = 2;
pub(super) const CALL: u32 = 3;
pub(super) const SWITCH: u32 = 4;
/// The size of a wake-up record: kind, thread, its core or whether an interrupt did it, and 0.
const WAKE_BYTES: i16 = 16;
/// The size of a switch record: kind, whether the thread remains runnable, its process and thread
/// id, and those of the next thread.
const SWITCH_BYTES: i16 = 24;
/// The size of a call record: kind, the number of calls it represents, the call's number, and the
/// registers.
const CALL_BYTES: i16 = 16 + registers::BYTES;

/// The layout in which the kernel stores the arguments of a call: the part that is copied, and
/// their positions in it.
#[cfg(target_arch = "x86_64")]
pub(super) mod registers {
    /// The number of the call.
    pub(super) const CALL_AT: i16 = 120;
    pub(super) const FROM: i16 = 56;
    pub(crate) const BYTES: i16 = 64;
    pub(crate) const ARGUMENTS: [usize; 6] = [56, 48, 40, 0, 16, 8];
}
#[cfg(not(target_arch = "x86_64"))]
pub(super) mod registers {
    // This is aarch64; on other architectures calls are not recorded.
    pub(super) const CALL_AT: i16 = 0;
    pub(super) const FROM: i16 = 0;
    pub(crate) const BYTES: i16 = 48;
    pub(crate) const ARGUMENTS: [usize; 6] = [0, 8, 16, 24, 32, 40];
}

/// The eBPF programs that are attached.
#[derive(Debug)]
pub(crate) struct EbpfPrograms {
    asked: OwnedFd,
    rings: OwnedFd,
    /// The links: programs run as long as these are open.
    links: Vec<OwnedFd>,
    /// The program that runs at calls.
    call: Option<OwnedFd>,
    call_link: Option<OwnedFd>,
}

impl EbpfPrograms {
    /// Prepares programs that will write to these events, one for each core.
    pub(crate) fn new<'a>(
        events: impl Iterator<Item = (i32, &'a File)>,
    ) -> io::Result<EbpfPrograms> {
        let events: Vec<_> = events
            .map(|(core, event)| (core.cast_unsigned(), event.as_raw_fd()))
            .collect();
        let cores = events.iter().map(|&(core, _)| core + 1).max().unwrap_or(1);
        let programs = EbpfPrograms {
            asked: bpf::map(MapKind::Array, ASKED_BYTES as u32, 1)?,
            rings: bpf::map(MapKind::PerfEvents, 4, cores)?,
            links: Vec::new(),
            call: None,
            call_link: None,
        };
        for (core, event) in events {
            bpf::set(&programs.rings, core, &event.to_ne_bytes())?;
        }
        Ok(programs)
    }

    /// Attaches the programs for wake-ups, which record where wake-ups come from and go to.
    pub(crate) fn add_wakes(&mut self, layout: &Layout) -> io::Result<()> {
        let (wake, waking) = (self.wake(layout), self.waking(layout));
        self.attach(&[
            (&wake, c"sched_wakeup"),
            (&wake, c"sched_wakeup_new"),
            // For a wake-up across cores, the other tracepoints report only where the thread will
            // run.
            (&waking, c"sched_waking"),
        ])
    }

    /// Attaches the program for calls.
    pub(crate) fn add_calls(&mut self) -> io::Result<()> {
        if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            return Err(io::Error::other("not on processors of this kind"));
        }
        self.call = Some(bpf::load(&self.called())?);
        self.attach_calls()
    }

    fn attach_calls(&mut self) -> io::Result<()> {
        if let (Some(program), None) = (&self.call, &self.call_link) {
            self.call_link = Some(bpf::attach(program.as_fd(), c"sys_enter")?);
        }
        Ok(())
    }

    /// Attaches the program for switches, where the kernel reports whether the leaving thread
    /// remains runnable.
    pub(crate) fn add_switches(&mut self, layout: &Layout) -> io::Result<()> {
        let switch = self.switch(layout);
        self.attach(&[(&switch, c"sched_switch")])
    }

    fn attach(&mut self, all: &[(&[u64], &CStr)]) -> io::Result<()> {
        let attach = |(code, tracepoint): &(&[u64], &CStr)| {
            bpf::attach(bpf::load(code)?.as_fd(), tracepoint)
        };
        // Either all are attached or none: the output of one alone is not useful.
        let links: Vec<OwnedFd> = all.iter().map(attach).collect::<io::Result<_>>()?;
        self.links.extend(links);
        Ok(())
    }

    /// Sets what the programs write from now on, and whether a pause is a long one.
    pub(crate) fn set_pace(&mut self, pace: Pace, for_long: bool) -> io::Result<()> {
        let every = match pace {
            Pace::Blind | Pace::Paused => 0,
            Pace::Few => CALLS_EVERY,
            Pace::Each => 1,
        };
        let mut asked = [0; ASKED_BYTES];
        let mut set = |at: usize, value: u32| {
            asked[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        };
        set(WAKES_AT as usize, u32::from(pace.is_on()));
        set(EVERY_AT as usize, every);
        set(SWITCHES_AT as usize, u32::from(pace != Pace::Blind));
        for core in 0..LEFT_CORES as usize {
            set(LEFT_AT as usize + (core << LEFT_BYTES_LOG2), every);
        }
        bpf::set(&self.asked, 0, &asked)?;
        match (pace.is_on(), for_long) {
            (true, _) => self.attach_calls(),
            (false, true) => {
                self.call_link = None;
                Ok(())
            }
            (false, false) => Ok(()),
        }
    }

    /// Starts a program with its registers: 6 holds the tracepoint's arguments, 7 the settings.
    fn begin(&self) -> Code {
        let mut code = Code::default();
        code.copy(6, 1);
        code.map_value(7, &self.asked);
        code
    }

    /// Emits code that writes the record at the end of the stack to the ring buffer.
    fn write(&self, code: &mut Code, bytes: i16) {
        code.copy(1, 6);
        code.map(2, &self.rings);
        code.set_low(3, CURRENT_CORE);
        code.copy(4, 10);
        code.add(4, (-bytes).into());
        code.set(5, bytes.into());
        code.call(Function::PerfEventOutput);
    }

    /// Emits code that copies the data at register 3 to the stack.
    fn copy(code: &mut Code, to: i16, bytes: i16) {
        code.copy(1, 10);
        code.add(1, to.into());
        code.set(2, bytes.into());
        code.call(Function::ProbeReadKernel);
    }

    /// Emits code that copies the data at an argument of the tracepoint, from this offset on, to
    /// the stack.
    fn copy_of(code: &mut Code, argument: i16, from: i16, to: i16, bytes: i16) {
        code.load(Width::Double, 3, 6, 8 * argument);
        code.add(3, from.into());
        EbpfPrograms::copy(code, to, bytes);
    }

    fn wake(&self, layout: &Layout) -> Vec<u64> {
        self.written(WAKE, layout, |code, to| {
            EbpfPrograms::copy_of(code, 0, layout.core_at, to, 4);
        })
    }

    fn waking(&self, layout: &Layout) -> Vec<u64> {
        self.written(WAKING, layout, |code, to| {
            match layout.context {
                Context::Depth { at } => {
                    code.call(Function::GetCurrentTask);
                    code.copy(3, 0);
                    code.add(3, at.into());
                    EbpfPrograms::copy(code, to, 4);
                    code.load(Width::Word, 1, 10, to);
                    code.and(1, IN_INTERRUPT);
                }
                Context::Entry => {
                    code.call(Function::GetCurrentTaskBtf);
                    code.copy(1, 0);
                    code.call(Function::TaskPtRegs);
                    code.load(Width::Double, 8, 0, registers::CALL_AT);
                    // Both are compared as numbers in memory, as addresses cannot be compared
                    // directly.
                    code.store(Width::Double, 10, ADDRESSES_AT, 0);
                    code.store(Width::Double, 10, ADDRESSES_AT + 8, 10);
                    code.copy(3, 10);
                    code.add(3, ADDRESSES_AT.into());
                    EbpfPrograms::copy(code, NUMBERS_AT, 16);
                    code.load(Width::Double, 1, 10, NUMBERS_AT);
                    code.load(Width::Double, 2, 10, NUMBERS_AT + 8);
                    code.subtract_register(1, 2);
                    code.shift_right(1, STACK_BYTES_LOG2);
                    // An interrupt or a fault, which is not a call, has -1 there.
                    code.shift_right(8, 63);
                    code.or_register(1, 8);
                    let by_thread = code.jump_if_zero(1);
                    code.set(1, 1);
                    code.land(by_thread);
                }
            }
            code.store(Width::Word, 10, to, 1);
        })
    }

    /// Returns a program for a record of a wake-up, the third word of which is stored by `third`.
    fn written(&self, what: u32, layout: &Layout, third: impl Fn(&mut Code, i16)) -> Vec<u64> {
        let at = -WAKE_BYTES;
        let mut code = self.begin();
        code.load(Width::Word, 1, 7, WAKES_AT);
        let none = code.jump_if_zero(1);
        code.set(1, what.cast_signed());
        code.store(Width::Word, 10, at, 1);
        EbpfPrograms::copy_of(&mut code, 0, layout.tid_at, at + 4, 4);
        third(&mut code, at + 8);
        code.set(1, 0);
        code.store(Width::Word, 10, at + 12, 1);
        self.write(&mut code, WAKE_BYTES);
        code.land(none);
        code.end()
    }

    fn switch(&self, layout: &Layout) -> Vec<u64> {
        let at = -SWITCH_BYTES;
        let mut code = self.begin();
        code.load(Width::Word, 1, 7, SWITCHES_AT);
        let none = code.jump_if_zero(1);
        code.set(1, SWITCH.cast_signed());
        code.store(Width::Word, 10, at, 1);
        // The thread is preempted, or in a state in which it remains runnable, which is 0.
        code.load(Width::Double, 8, 6, 0);
        code.load(Width::Double, 1, 6, 8 * 3);
        let blocked = code.jump_unless_zero(1);
        code.set(8, 1);
        code.land(blocked);
        code.store(Width::Word, 10, at + 4, 8);
        for (argument, at) in [(1, at + 8), (2, at + 16)] {
            EbpfPrograms::copy_of(&mut code, argument, layout.pid_at, at, 4);
            EbpfPrograms::copy_of(&mut code, argument, layout.tid_at, at + 4, 4);
        }
        self.write(&mut code, SWITCH_BYTES);
        code.land(none);
        code.end()
    }

    fn called(&self) -> Vec<u64> {
        let at = -CALL_BYTES;
        let mut code = self.begin();
        code.load(Width::Word, 8, 7, EVERY_AT);
        let none = code.jump_if_zero(8);
        code.call(Function::GetSmpProcessorId);
        code.and(0, LEFT_CORES - 1);
        code.shift_left(0, LEFT_BYTES_LOG2);
        code.add_register(7, 0);
        code.load(Width::Word, 1, 7, LEFT_AT);
        code.add(1, -1);
        code.store(Width::Word, 7, LEFT_AT, 1);
        let later = code.jump_if_positive(1);
        code.store(Width::Word, 7, LEFT_AT, 8);
        code.set(1, CALL.cast_signed());
        code.store(Width::Word, 10, at, 1);
        code.store(Width::Word, 10, at + 4, 8);
        code.load(Width::Double, 1, 6, 8);
        code.store(Width::Double, 10, at + 8, 1);
        EbpfPrograms::copy_of(&mut code, 0, registers::FROM, at + 16, registers::BYTES);
        self.write(&mut code, CALL_BYTES);
        code.land(later);
        code.land(none);
        code.end()
    }
}

/// A register: 0 holds results, 1 to 5 hold arguments, 6 to 9 are preserved over calls, 10 is the
/// end of the stack.
pub(crate) type Register = u8;

/// Kernel helper functions, by their numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Function {
    GetSmpProcessorId = 8,
    PerfEventOutput = 25,
    GetCurrentTask = 35,
    ProbeReadKernel = 113,
    GetCurrentTaskBtf = 158,
    TaskPtRegs = 175,
}

/// The size of a load or store.
#[derive(Debug, Clone, Copy)]
enum Width {
    Word = 0x00,
    Double = 0x18,
}

/// A jump whose target is not known yet.
#[derive(Debug)]
#[must_use]
struct Jump(usize);

/// An eBPF program under construction.
#[derive(Debug, Default)]
pub(crate) struct Code(Vec<u64>);

macro_rules! instructions {
    (value: $($set:ident $set_code:literal)*;
     register: $($by:ident $by_code:literal)*;
     jump: $($jump:ident $jump_code:literal)*;) => {
        impl Code {
            $(fn $set(&mut self, to: Register, value: i32) {
                self.put($set_code, to, 0, 0, value);
            })*

            $(fn $by(&mut self, to: Register, from: Register) {
                self.put($by_code, to, from, 0, 0);
            })*

            $(fn $jump(&mut self, of: Register) -> Jump {
                self.put($jump_code, of, 0, 0, 0);
                Jump(self.0.len())
            })*
        }
    };
}

// `set_low` sets the lower half of a register to the value, and the upper half to 0.
instructions! {
    value: set 0xb7 set_low 0xb4 add 0x07 and 0x57 shift_left 0x67 shift_right 0x77;
    register: copy 0xbf add_register 0x0f subtract_register 0x1f or_register 0x4f;
    jump: jump_if_zero 0x15 jump_unless_zero 0x55 jump_if_positive 0x65;
}

impl Code {
    fn put(&mut self, code: u8, to: Register, from: Register, offset: i16, value: i32) {
        let low = u64::from(code) | u64::from(to) << 8 | u64::from(from) << 12;
        let offset = u64::from(offset.cast_unsigned()) << 16;
        self.0
            .push(low | offset | u64::from(value.cast_unsigned()) << 32);
    }

    fn put_wide(&mut self, to: Register, kind: u8, value: i32, more: i32) {
        self.put(0x18, to, kind, 0, value);
        self.put(0, 0, 0, 0, more);
    }

    fn load(&mut self, width: Width, to: Register, from: Register, at: i16) {
        self.put(0x61 | width as u8, to, from, at, 0);
    }

    fn store(&mut self, width: Width, to: Register, at: i16, from: Register) {
        self.put(0x63 | width as u8, to, from, at, 0);
    }

    /// Loads the reference to a map that helper functions take.
    pub(crate) fn map(&mut self, to: Register, map: &OwnedFd) {
        self.put_wide(to, 1, map.as_raw_fd(), 0);
    }

    /// Loads the address of the value in a map with one entry.
    fn map_value(&mut self, to: Register, map: &OwnedFd) {
        self.put_wide(to, 2, map.as_raw_fd(), 0);
    }

    pub(crate) fn call(&mut self, function: Function) {
        self.put(0x85, 0, 0, 0, function as i32);
    }

    /// Makes the current position the target of a jump.
    fn land(&mut self, jump: Jump) {
        let over = (self.0.len() - jump.0) as u64;
        self.0[jump.0 - 1] |= over << 16;
    }

    /// Appends an instruction sequence that returns 0, and returns the program.
    pub(crate) fn end(mut self) -> Vec<u64> {
        self.set(0, 0);
        self.put(0x95, 0, 0, 0, 0);
        self.0
    }
}

/// The selection of events that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// No event counts, and no switch either: it is not known which threads run.
    Blind,
    /// Only switches count.
    Paused,
    /// All events count; of the calls, a few are sampled.
    Few,
    /// All events count.
    Each,
}

impl Pace {
    /// Returns whether any of these events count.
    pub(crate) fn is_on(self) -> bool {
        !matches!(self, Pace::Blind | Pace::Paused)
    }
}
