//! Finds Java threads that wait to enter a monitor. Each waits at a futex word of its own, as a
//! thread without work does, so only its stack shows the difference. The code of the virtual
//! machine shows it if its file has symbols: the innermost of its functions is
//! `os::PlatformEvent::park`, and the next one is the reason.

use super::memory::{Frame, Memory};
use super::symbols::Symbols;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

const LIBRARY: &str = "/libjvm.so";
/// The maximum number of threads and places that are remembered.
const KEPT_MAX: usize = 4_096;
/// The size of the stack that is read. The frames from the futex call up to the reason take about
/// 300 bytes (OpenJDK 17, x86-64).
const STACK_BYTES: usize = 1 << 10;
/// The functions `ObjectMonitor::EnterI`, and `ReenterI` after a wait for a condition.
const ENTERS: [&str; 2] = ["13ObjectMonitor6EnterI", "13ObjectMonitor8ReenterI"];

/// The callers of the futex call: the two innermost functions of the virtual machine.
type Callers = [Frame; 2];

/// The places at which Java threads were seen to wait.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    /// By process and callers, the number of threads summed over all samples, and the number of
    /// waits that were seen.
    parked: HashMap<(i32, Callers), (f64, f64)>,
    /// The callers at which a thread that has not run since this time was seen.
    known: HashMap<i32, (u64, Callers)>,
}

impl Monitors {
    /// Records that a thread has waited in a futex call since `since_ns`, with this stack pointer.
    pub(crate) fn see(
        &mut self,
        (pid, tid): (i32, i32),
        since_ns: u64,
        stack: u64,
        scale: f64,
        memory: &mut Memory,
    ) {
        let Some(code) = memory.mapped(pid, LIBRARY) else {
            return;
        };
        let known = self.known.get(&tid).filter(|known| known.0 == since_ns);
        let waits = if known.is_some() { 0.0 } else { scale };
        let callers = match known {
            Some(&(_, callers)) => Some(callers),
            None => callers(pid, stack, &code).map(|both| both.map(|at| memory.frame(pid, at))),
        };
        let Some(callers) = callers else { return };
        if self.known.len() < KEPT_MAX {
            self.known.insert(tid, (since_ns, callers));
        }
        if self.parked.len() < KEPT_MAX || self.parked.contains_key(&(pid, callers)) {
            let parked = self.parked.entry((pid, callers)).or_default();
            *parked = (parked.0 + scale, parked.1 + waits);
        }
    }

    /// Returns the processes with threads that wait to enter a monitor, each with the number of
    /// threads over all samples, and of waits.
    pub(crate) fn lines(&self, symbols: &mut Symbols, memory: &Memory) -> HashMap<i32, (f64, f64)> {
        let mut lines: HashMap<i32, (f64, f64)> = HashMap::new();
        for (&(pid, callers), (count, waits)) in &self.parked {
            let mut enters = |frame| {
                let name = symbols.name(frame, memory).unwrap_or_default();
                ENTERS.iter().any(|part| name.contains(part))
            };
            if callers.into_iter().any(&mut enters) {
                let line = lines.entry(pid).or_default();
                *line = (line.0 + count, line.1 + waits);
            }
        }
        lines
    }
}

/// Returns the two innermost return addresses of a stack that are in this code.
fn callers(pid: i32, stack: u64, code: &std::ops::Range<u64>) -> Option<[u64; 2]> {
    let mut bytes = [[0; 8]; STACK_BYTES / 8];
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    memory.read_at(bytes.as_flattened_mut(), stack).ok()?;
    let words = bytes.iter().map(|bytes| u64::from_ne_bytes(*bytes));
    let mut addresses = words.filter(|word| code.contains(word));
    Some([addresses.next()?, addresses.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_addresses_are_found_on_the_stack() {
        let own = std::process::id().cast_signed();
        let mut stack = [0_u64; STACK_BYTES / 8 + 1];
        (stack[3], stack[4], stack[9], stack[20]) = (0x500, 0x7010, 0x7020, 0x7030);
        let at = std::hint::black_box(&stack).as_ptr() as u64;
        assert_eq!(callers(own, at, &(0x7000..0x8000)), Some([0x7010, 0x7020]));
        assert_eq!(
            callers(own, at, &(0x7020..0x7030)),
            None,
            "one is no reason"
        );
        assert_eq!(callers(own, 8, &(0x7000..0x8000)), None);
    }

    #[test]
    fn code_that_is_not_javas_is_not_looked_at() {
        let mut seen = Monitors::default();
        seen.see((1, 1), 0, 8, 1.0, &mut Memory::default());
        assert!(seen.parked.is_empty());
    }
}
