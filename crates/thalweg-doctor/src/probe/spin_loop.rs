//! Recognises loops that wait without a `pause`, by their instructions.
//!
//! Such a loop repeats the same work in each round: it carries no value from one round to the next
//! except a counter that bounds it, and writes nothing that others see except a lock that it tries
//! to take. It ends when another thread changes memory that it reads. In doubt a loop counts as not
//! waiting.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic as M,
    OpAccess, OpKind, Register, UsedMemory,
};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// The maximum length of a loop in bytes.
const BYTES_MAX: u64 = 128;
const INSTRUCTIONS_MAX: usize = 24;

/// The number of bytes before and after an address that [`waits`] needs.
pub(crate) const AROUND: usize = 144;

/// Returns whether the instruction at this position of the code is in a loop that waits.
pub(crate) fn waits(code: &[u8], at: usize) -> bool {
    let sample = at as u64;
    for jump in instructions(code, sample).take(INSTRUCTIONS_MAX) {
        let flow = jump.flow_control();
        let jumps = jump.is_jcc_short_or_near() || jump.is_jmp_short_or_near();
        let start = jump.near_branch_target();
        if jumps && start <= sample && jump.next_ip() - start <= BYTES_MAX {
            let body: Vec<_> = instructions(code, start)
                .take_while(|one| one.ip() <= jump.ip())
                .collect();
            let begins = |ip| body.iter().any(|one| one.ip() == ip);
            if begins(sample) && begins(jump.ip()) && Loop::new(&body).is_some_and(Loop::waits) {
                return true;
            }
        }
        if !matches!(flow, FlowControl::Next | FlowControl::ConditionalBranch) {
            return false;
        }
    }
    false
}

/// Decodes the instructions from a position on; their addresses are positions in the code.
fn instructions(code: &[u8], start: u64) -> impl Iterator<Item = Instruction> {
    let rest = code.get(start as usize..).unwrap_or_default();
    Decoder::with_ip(64, rest, start, DecoderOptions::NONE)
        .into_iter()
        .take_while(|one| !one.is_invalid())
}

/// The instructions that such loops consist of, besides jumps and conditional ones.
#[rustfmt::skip]
const PLAIN: &[M] = &[
    M::Mov, M::Movzx, M::Movsx, M::Movsxd, M::Cdqe, M::Lea, M::Cmp, M::Test, M::And, M::Or, M::Xor,
    M::Not, M::Neg, M::Add, M::Sub, M::Inc, M::Dec, M::Shl, M::Shr, M::Sar, M::Bt, M::Bts, M::Xchg,
    M::Cmpxchg, M::Mfence, M::Jmp,
];

/// An instruction with its full registers and the number of bytes used of each, and its memory
/// accesses.
struct Step {
    one: Instruction,
    registers: Vec<(Register, usize, OpAccess)>,
    memory: Vec<UsedMemory>,
}

impl Step {
    fn writes(&self, register: Register) -> bool {
        let mut uses = self.registers.iter();
        uses.any(|&(used, _, access)| used == register && is_write(access))
    }

    fn is_address(&self, register: Register) -> bool {
        let mut uses = self.memory.iter();
        uses.any(|it| it.base() == register || it.index() == register)
    }

    /// Returns whether the instruction takes a lock or leaves memory unchanged: `lock cmpxchg`,
    /// `xchg` and `lock bts`.
    fn tries(&self) -> bool {
        let mnemonic = self.one.mnemonic();
        let locked = matches!(mnemonic, M::Cmpxchg | M::Bts);
        mnemonic == M::Xchg || locked && self.one.has_lock_prefix()
    }
}

fn is_write(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

/// A conditional write is also a read, as it may keep the old value.
fn is_read(access: OpAccess) -> bool {
    !matches!(
        access,
        OpAccess::Write | OpAccess::NoMemAccess | OpAccess::None
    )
}

/// Returns the offset and the size of a variable on the stack, as compilers without optimization
/// use them.
fn slot(memory: &UsedMemory) -> Option<(u64, u64)> {
    let is_stack = matches!(memory.base(), Register::RBP | Register::RSP);
    let bytes = memory.memory_size().size() as u64;
    (is_stack && memory.index() == Register::None).then_some((memory.displacement(), bytes))
}

/// The value of a register or variable in a round: the number of bytes that were written, a bit set
/// of the memory reads that it depends on, and an id that equal values share.
#[derive(Debug, Clone, Copy)]
struct Value {
    bytes: usize,
    from: u64,
    id: u64,
}

fn id_of(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

struct Loop {
    steps: Vec<Step>,
    /// The values that the round has written so far.
    registers: HashMap<Register, Value>,
    slots: HashMap<(u64, u64), Value>,
    flags: Option<u64>,
    /// The addresses that it has read, and the reads that registers and variables depend on.
    loads: Vec<u64>,
    kept: u64,
}

impl Loop {
    /// Returns `None` if an instruction is not one that such loops consist of.
    fn new(body: &[Instruction]) -> Option<Self> {
        let mut factory = InstructionInfoFactory::new();
        let mut steps = Vec::new();
        for one in body {
            let is_plain = PLAIN.contains(&one.mnemonic());
            if matches!(one.mnemonic(), M::Nop | M::Endbr64 | M::Pause) {
                continue;
            }
            if !is_plain && one.condition_code() == iced_x86::ConditionCode::None {
                return None;
            }
            let info = factory.info(one);
            let whole = |used: &iced_x86::UsedRegister| {
                let register = used.register();
                (register.full_register(), register.size(), used.access())
            };
            steps.push(Step {
                one: *one,
                registers: info.used_registers().iter().map(whole).collect(),
                memory: info.used_memory().to_vec(),
            });
        }
        Some(Self {
            steps,
            registers: HashMap::new(),
            slots: HashMap::new(),
            flags: None,
            loads: Vec::new(),
            kept: 0,
        })
    }

    fn waits(mut self) -> bool {
        let steps = std::mem::take(&mut self.steps);
        let mut asked = 0;
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            return false;
        };
        let (first, last) = (first.one.ip(), last.one.ip());
        for step in &steps {
            let (ip, target) = (step.one.ip(), step.one.near_branch_target());
            let flow = step.one.flow_control();
            let is_jump = flow != FlowControl::Next;
            let leaves = flow != FlowControl::ConditionalBranch;
            // Code that could be skipped, or executed more often than the rest, is not analysed.
            if is_jump && ip != last && (leaves || target > first && target <= last) {
                return false;
            }
            match self.step(&steps, step) {
                Some(from) if is_jump => asked |= from,
                Some(_) => {}
                None => return false,
            }
        }
        // A value that is read and not tested is work, and this round may be its last.
        asked != 0 && self.kept & !asked == 0
    }

    /// Returns the reads that this instruction depends on; `None` if it cannot be a part of a
    /// waiting loop.
    fn step(&mut self, steps: &[Step], step: &Step) -> Option<u64> {
        let (mut from, mut ids) = (0, Vec::new());
        for &(register, bytes, access) in &step.registers {
            if is_read(access) {
                let value = self.register(steps, register, bytes)?;
                if !step.is_address(register) {
                    from |= value.from;
                    ids.push(value.id);
                }
            }
        }
        if step.one.rflags_read() != 0 {
            from |= self.flags?;
            ids.push(u64::MAX);
        }
        let stored = from;
        for memory in step.memory.iter().filter(|it| is_read(it.access())) {
            let value = self.load(steps, step, memory)?;
            from |= value.from;
            ids.push(value.id);
        }
        if self.compares_with_itself(from) {
            return None;
        }
        let immediate = (0..step.one.op_count())
            .filter_map(|it| step.one.try_immediate(it).ok())
            .next();
        // A copy has the id of its source.
        let copied = step.one.mnemonic() == M::Mov && immediate.is_none();
        let id = match (copied, ids.last()) {
            (true, Some(&id)) => id,
            _ => id_of((step.one.code() as u32, immediate, &ids)),
        };
        for memory in step.memory.iter().filter(|it| is_write(it.access())) {
            let steady = |register| !steps.iter().any(|it| it.writes(register));
            match slot(memory) {
                _ if step.tries() && stored == 0 => {}
                Some(at) if steady(memory.base()) && memory.access() == OpAccess::Write => {
                    let bytes = at.1 as usize;
                    self.kept |= from;
                    self.slots.insert(at, Value { bytes, from, id });
                }
                _ => return None,
            }
        }
        for &(register, bytes, access) in &step.registers {
            if is_write(access) {
                self.kept |= from;
                let before = self.registers.get(&register).map_or(0, |it| it.bytes);
                let bytes = bytes.max(before);
                self.registers.insert(register, Value { bytes, from, id });
            }
        }
        if step.one.rflags_modified() != 0 {
            self.flags = Some(from);
        }
        Some(from)
    }

    /// Returns the value of a register that does not come from the round before, unless it is a
    /// counter.
    fn register(&self, steps: &[Step], register: Register, bytes: usize) -> Option<Value> {
        match self.registers.get(&register) {
            Some(value) if value.bytes >= bytes => return Some(*value),
            _ if !steps.iter().any(|it| it.writes(register)) => {}
            _ if counts(steps, register) => {}
            _ => return None,
        }
        let id = id_of(register as u32);
        Some(Value { bytes, from: 0, id })
    }

    fn load(&mut self, steps: &[Step], step: &Step, memory: &UsedMemory) -> Option<Value> {
        if let Some((at, bytes)) = slot(memory) {
            if let Some(value) = self.slots.get(&(at, bytes)) {
                return Some(*value);
            }
            // Another round has written it, or a part of it.
            let stores = steps.iter().flat_map(|it| &it.memory);
            let mut stores = stores.filter(|it| is_write(it.access())).filter_map(slot);
            if stores.any(|(to, size)| to.wrapping_sub(at) < bytes || at.wrapping_sub(to) < size)
                && !step.tries()
            {
                return None;
            }
        }
        let part = |register| match register {
            Register::None => Some((0, 0)),
            _ => self.register(steps, register, 8).map(|it| (it.from, it.id)),
        };
        let (base, index) = (part(memory.base())?, part(memory.index())?);
        let segment = memory.segment() as u32;
        let displacement = memory.displacement();
        let id = id_of((base.1, index.1, memory.scale(), displacement, segment));
        let known = self.loads.iter().position(|&it| it == id);
        let at = known.filter(|_| slot(memory).is_some());
        let at = at.unwrap_or_else(|| {
            self.loads.push(id);
            self.loads.len() - 1
        });
        Some(Value {
            bytes: memory.memory_size().size(),
            from: base.0 | index.0 | 1 << at,
            id,
        })
    }

    /// Returns whether reads of the same place are compared. Such code checks whether a value that
    /// others change is stable, as a reader of a seqlock does, and most rounds are the last.
    fn compares_with_itself(&self, from: u64) -> bool {
        let bits = (0..self.loads.len()).filter(|bit| from >> bit & 1 == 1);
        let ids: Vec<u64> = bits.map(|bit| self.loads[bit]).collect();
        let different: std::collections::HashSet<_> = ids.iter().collect();
        different.len() < ids.len()
    }
}

/// Returns whether a register only bounds the loop: it changes by a constant, and is tested for its
/// end.
fn counts(steps: &[Step], register: Register) -> bool {
    use M::{Add, Cmp, Dec, Inc, Sub, Test};
    let (mut last, mut bounds) = (false, false);
    for step in steps {
        let one = &step.one;
        bounds |= last && one.flow_control() == FlowControl::ConditionalBranch;
        last = false;
        if !step.registers.iter().any(|it| it.0 == register) {
            continue;
        }
        let is_constant = |it| one.op_kind(it) != OpKind::Register && step.memory.is_empty();
        let is_steady = |it: &Register| *it == register || !steps.iter().any(|s| s.writes(*it));
        last = match one.mnemonic() {
            Inc | Dec => step.memory.is_empty(),
            Add | Sub => step.writes(register) && is_constant(1),
            Cmp | Test => {
                step.memory.is_empty() && step.registers.iter().all(|it| is_steady(&it.0))
            }
            _ => false,
        };
        if !last {
            return false;
        }
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compiled loops that wait, and a position in each at which samples fall.
    #[rustfmt::skip]
    const WAITS: &[(&str, usize, &str)] = &[
        ("gcc -O0: a ticket lock", 0x17,
         "554889e5897dec90488d0500000000488945f8488b45f88b008945f48b45f43b45ec75e49090\
          5dc3"),
        ("gcc -O0: a flag behind a pointer", 0x1d,
         "554889e548897de890488b45e8488945f8488b45f88b008945f48b45f485c074e890905dc3"),
        ("gcc -O0: an empty queue", 0x3b,
         "554889e548897dd890488b45d8488945f8488b45f8488b00488945e8488b55e8488b45d84883\
          c008488945f0488b45f0488b00488945e0488b45e04839c274c990905dc3"),
        ("gcc -O0: atomic_flag_test_and_set", 0xa,
         "554889e590b80100000086050000000084c075f190905dc3"),
        ("gcc -O2: a ticket lock", 0x6,
         "8b050000000039f875f6c3"),
        ("gcc -O2: an empty queue", 0xe,
         "488d4f080f1f4000488b17488b014839c274f5c3"),
        ("gcc -O2: a flag behind two pointers", 0x6,
         "488b07488b004885c074f5c3"),
        ("gcc -O2: a bounded number of reads", 0x17,
         "b8e8030000eb0e660f1f84000000000083e801740c8b1785d274f5b801000000c331c0c3"),
        ("gcc -O2: atomic_flag_test_and_set", 0x10,
         "ba010000000f1f0089d086050000000084c075f4c3"),
        ("gcc -O2: a lock by cmpxchg", 0xd,
         "31c9ba0100000089c8f00fb11775f8c3"),
        ("gcc -O2: a lock that is read until it is free", 0x12,
         "ba010000000f1f0089d0870785c074108b0785c075faebf00f1f840000000000c3"),
        ("rustc -O: AtomicBool::load", 0x3,
         "0fb60784c074f9c3"),
        ("rustc -O: the same, of a static", 0x13,
         "488b0500000000660f1f8400000000000fb60884c974f9c3"),
        ("rustc -O: a number of a sequence", 0x3,
         "488b074839f072f8c3"),
        ("rustc -O: a bounded number of reads, four in a round", 0x21,
         "31c066666666662e0f1f8400000000003d18fcffff742a0fb60f84c975230fb60f84c975270f\
          b60f84c975270fb60f83c0fc84c974daf7d03de80300000f92c0c3f7d83de80300000f92c0c3\
          b901000000eb05b90200000029c189c83de80300000f92c0c3"),
        ("rustc -O: a lock by swap", 0x4,
         "b001860784c075f8c3"),
        ("rustc -O: a lock by compare_exchange", 0x16,
         "b10166666666662e0f1f84000000000031c0f00fb00f75f8c3"),
    ];

    /// Loops that do work, and code that mostly does not loop.
    #[rustfmt::skip]
    const WORKS: &[(&str, &str)] = &[
        ("gcc -O2: a byte is looked for",
         "4889f84885d274204801faeb0c0f1f004883c0014839c2740f0fbe0839f175f0c30f1f800000\
          000031c0c3"),
        ("gcc -O0: a byte is looked for",
         "554889e548897df88975f4488955e8eb1f488b45f80fb6000fbec03945f47506488b45f8eb16\
          48836de801488345f80148837de80075dab8000000005dc3"),
        ("gcc -O2: the sum of an array",
         "4885f6741b488d14b731c00f1f44000003074883c7044839d775f5c30f1f400031c0c3"),
        ("gcc -O0: the sum of an array",
         "554889e548897de8488975e0c745fc0000000048c745f000000000eb1d488b45f0488d148500\
          000000488b45e84801d08b000145fc488345f001488b45f0483b45e072d98b45fc5dc3"),
        ("gcc -O2: a checksum",
         "4885f6742b4801feb8070000000f1f004889c24883c70148c1e2054829c20fb647ff4801d048\
          39f775e6c30f1f440000b807000000c3"),
        ("gcc -O2: a walk over a list",
         "eb0e660f1f4400003977087413488b3f4885ff75f331c0c30f1f840000000000b801000000c3"),
        ("gcc -O0: a walk over a list",
         "554889e548897df88975f4eb0b488b45f8488b00488945f848837df800740c488b45f88b4008\
          3945f475e248837df8000f95c00fb6c05dc3"),
        ("gcc -O0: the length of a string",
         "554889e548897de848c745f800000000eb05488345f801488b55e8488b45f84801d00fb60084\
          c075e9488b45f85dc3"),
        ("gcc -O2: counts in memory",
         "c74424fc000000008b4424fc3d9f8601007f1b0f1f4400008b4424fc83c001894424fc8b4424\
          fc3d9f8601007eeac3"),
        ("gcc -O0: counts in memory",
         "554889e5c745fc00000000eb098b45fc83c0018945fc8b45fc3d9f8601007eed90905dc3"),
        ("gcc -O2: counts in a register",
         "4885ff7e1431c0660f1f8400000000004883c0014839c775f7c3"),
        ("gcc -O2: reads the time-stamp counter",
         "0f3148c1e2204809d04839f872f2c3"),
        ("gcc -O2: the same, and a flag",
         "eb10660f1f4400008b050000000085c075160f3148c1e2204809d04839f872e831c0c30f1f44\
          0000b801000000c3"),
        ("gcc -O2: looks into a hash table",
         "4889f04821d0483b34c774110f1f40004883c0014821d0483934c775f3c3"),
        ("gcc -O2: changes a number by cmpxchg",
         "8b078d544001f00fb11775f6c3"),
        ("gcc -O2: the same, and reads it anew",
         "8b078d544001f00fb11775f4c3"),
        ("gcc -O2: counts until it is stopped",
         "8b050000000085c0b8000000007511908b15000000004883c00185d274f2c390c3"),
        ("gcc -O2: a reader of a sequence lock",
         "8b078b0e448b02a80175f5448b0f4439c875ed428d0401c3"),
        ("gcc -O0: a reader of a sequence lock",
         "554889e548897db8488975b0488955a8488b45b8488945f8488b45f88b008945cc8b45cc8945\
          f4488b45b0488945e8488b45e88b008945c88b55c8488b45a8488945e0488b45e08b008945c4\
          8b45c401d08945dc8b45f483e00185c075b2488b45b8488945d0488b45d08b008945c08b45c0\
          3b45f475998b45dc5dc3"),
        ("gcc -O2: takes numbers by xadd",
         "b801000000f00fc10739f07cf3c3"),
        ("rustc -O: Iterator::position",
         "4885f6741989d131c031d20f1f440000380c17740c48ffc24839d675f3c331c0c3b801000000\
          c3"),
        ("rustc -O: AtomicU64::fetch_update",
         "488b07666666662e0f1f840000000000488d0c40f0480fb10f75f5c3"),
        ("by hand: leaves through a register",
         "8b07ffe085c075f8"),
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digits).collect()
    }

    #[test]
    fn a_loop_that_only_reads_the_same_waits() {
        for &(name, at, code) in WAITS {
            assert!(waits(&bytes(code), at), "{name}");
        }
    }

    #[test]
    fn a_loop_that_gets_on_works() {
        for &(name, code) in WORKS {
            let code = bytes(code);
            for one in instructions(&code, 0) {
                assert!(!waits(&code, one.ip() as usize), "{name}: {one:?}");
            }
        }
    }

    /// The code ends with a partial instruction, as where memory ends.
    #[test]
    fn code_may_end_anywhere() {
        for &(name, at, code) in WAITS {
            let code = bytes(code);
            for end in 0..=at {
                assert!(!waits(&code[..end], at), "{name}");
            }
        }
    }

    /// Parts of loops: reads, stores, locks, counters, tests, jumps in both directions and through
    /// a register.
    const PARTS: &[&[u8]] = &[
        &[0x8b, 0x07],
        &[0x3a, 0x41, 0x7f],
        &[0x38, 0x06],
        &[0x89, 0x45, 0xf8],
        &[0x8b, 0x45, 0xf8],
        &[0xf0, 0x0f, 0xb1, 0x0f],
        &[0x87, 0x07],
        &[0x83, 0xe8, 0x01],
        &[0x85, 0xc0],
        &[0x74, 0x02],
        &[0xeb, 0xfc],
        &[0xff, 0xe0],
        &[0x0f],
    ];

    proptest! {
        /// Arbitrary code must not cause a panic.
        #[test]
        fn any_code_has_an_answer(
            parts in prop::collection::vec(prop::sample::select(PARTS), 0..70),
            noise in prop::collection::vec(any::<u8>(), 0..4),
            back in -128_i8..0,
            at in 0_usize..300,
        ) {
            let mut code = parts.concat();
            code.extend(noise);
            code.extend([0x75, back.cast_unsigned()]);
            waits(&code, at);
            waits(&code, code.len() - 2);
        }
    }
}
