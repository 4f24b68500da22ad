//! Builds the instructions of short eBPF programs (`linux/bpf.h`, `linux/filter.h`).

use std::os::fd::{AsRawFd as _, OwnedFd};

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
pub(crate) enum Width {
    Word = 0x00,
    Double = 0x18,
}

/// A jump whose target is not known yet.
#[derive(Debug)]
#[must_use]
pub(crate) struct Jump(usize);

/// An eBPF program under construction.
#[derive(Debug, Default)]
pub(crate) struct Code(Vec<u64>);

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

    pub(crate) fn set(&mut self, to: Register, value: i32) {
        self.put(0xb7, to, 0, 0, value);
    }

    /// Sets the lower half of a register to this value, and the upper half to 0.
    pub(crate) fn set_low(&mut self, to: Register, value: i32) {
        self.put(0xb4, to, 0, 0, value);
    }

    pub(crate) fn copy(&mut self, to: Register, from: Register) {
        self.put(0xbf, to, from, 0, 0);
    }

    pub(crate) fn add(&mut self, to: Register, value: i32) {
        self.put(0x07, to, 0, 0, value);
    }

    pub(crate) fn add_register(&mut self, to: Register, from: Register) {
        self.put(0x0f, to, from, 0, 0);
    }

    pub(crate) fn subtract_register(&mut self, from: Register, what: Register) {
        self.put(0x1f, from, what, 0, 0);
    }

    pub(crate) fn or_register(&mut self, to: Register, from: Register) {
        self.put(0x4f, to, from, 0, 0);
    }

    pub(crate) fn and(&mut self, to: Register, value: i32) {
        self.put(0x57, to, 0, 0, value);
    }

    pub(crate) fn shift_left(&mut self, to: Register, bits: i32) {
        self.put(0x67, to, 0, 0, bits);
    }

    pub(crate) fn shift_right(&mut self, to: Register, bits: i32) {
        self.put(0x77, to, 0, 0, bits);
    }

    pub(crate) fn load(&mut self, width: Width, to: Register, from: Register, at: i16) {
        self.put(0x61 | width as u8, to, from, at, 0);
    }

    pub(crate) fn store(&mut self, width: Width, to: Register, at: i16, from: Register) {
        self.put(0x63 | width as u8, to, from, at, 0);
    }

    /// Loads the reference to a map that helper functions take.
    pub(crate) fn map(&mut self, to: Register, map: &OwnedFd) {
        self.put_wide(to, 1, map.as_raw_fd(), 0);
    }

    /// Loads the address of the value in a map with one entry.
    pub(crate) fn map_value(&mut self, to: Register, map: &OwnedFd) {
        self.put_wide(to, 2, map.as_raw_fd(), 0);
    }

    pub(crate) fn call(&mut self, function: Function) {
        self.put(0x85, 0, 0, 0, function as i32);
    }

    pub(crate) fn jump_if_zero(&mut self, of: Register) -> Jump {
        self.put(0x15, of, 0, 0, 0);
        Jump(self.0.len())
    }

    pub(crate) fn jump_unless_zero(&mut self, of: Register) -> Jump {
        self.put(0x55, of, 0, 0, 0);
        Jump(self.0.len())
    }

    pub(crate) fn jump_if_positive(&mut self, of: Register) -> Jump {
        self.put(0x65, of, 0, 0, 0);
        Jump(self.0.len())
    }

    /// Makes the current position the target of a jump.
    pub(crate) fn land(&mut self, jump: Jump) {
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
