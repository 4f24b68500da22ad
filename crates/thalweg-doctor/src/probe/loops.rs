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
pub(super) const AROUND: usize = 144;

/// Returns whether the instruction at this position of the code is in a loop that waits.
pub(super) fn waits(code: &[u8], at: usize) -> bool {
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
mod tests;
