//! How many more stacks the kernel would map: each has a guard page, and so costs two mappings of
//! the `vm.max_map_count` that a process may have.

use super::error::StackError;
use std::fs::{self, File};
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The guard page, and the stack above it.
const MAPPINGS_PER_STACK: usize = 2;
/// Mappings that are left to the rest of the program: its allocator, its threads, its files.
const MAPPINGS_RESERVED: usize = 256;

/// The count of this process's stacks.
static STACKS: Ledger = Ledger::new();

/// One stack's place in the count, from before it is mapped until after it is unmapped.
pub(super) struct Claim(());

impl Claim {
    pub(super) fn new() -> Result<Self, StackError> {
        STACKS.claim(use_by_kernel).map(|()| Self(()))
    }

    /// Returns how many stacks the process has, this one included.
    pub(super) fn stacks(&self) -> usize {
        // ORDERING: Relaxed; a figure for a message, which publishes nothing.
        STACKS.stacks.load(Ordering::Relaxed)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        STACKS.release();
    }
}

/// Mappings of this process: in use, and allowed.
#[derive(Clone, Copy)]
struct Use {
    mappings: usize,
    mappings_max: usize,
}

/// Counts stacks, and looks at the mappings in use when it has to. Reading them costs up to some
/// 20 ms where there are 60,000. So a look is trusted for half of the stacks that would fit.
struct Ledger {
    stacks: AtomicUsize,
    /// The number of stacks that fit, as far as the last look could find out.
    trusted: AtomicUsize,
}

impl Ledger {
    const fn new() -> Self {
        Self {
            stacks: AtomicUsize::new(0),
            trusted: AtomicUsize::new(0),
        }
    }

    fn claim(&self, look: impl FnOnce() -> Option<Use>) -> Result<(), StackError> {
        // ORDERING: Relaxed; a count, which publishes nothing. Two threads at the limit may both
        // look, and either may be refused for the sake of the other.
        let stacks = self.stacks.fetch_add(1, Ordering::Relaxed) + 1;
        // ORDERING: Relaxed; the store below publishes nothing but the number.
        if stacks <= self.trusted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let Some(Use {
            mappings,
            mappings_max,
        }) = look()
        else {
            return Ok(());
        };
        let fit = mappings_max.saturating_sub(mappings + MAPPINGS_RESERVED) / MAPPINGS_PER_STACK;
        if fit == 0 {
            self.release();
            let stacks = stacks - 1;
            return Err(StackError::Mappings {
                stacks,
                mappings,
                mappings_max,
            });
        }
        // ORDERING: Relaxed; see the load.
        self.trusted
            .store(stacks + (fit - 1) / 2, Ordering::Relaxed);
        Ok(())
    }

    fn release(&self) {
        // ORDERING: Relaxed; a count, as in `claim`.
        self.stacks.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the use that Linux reports; nothing elsewhere, where `mmap` itself will refuse.
fn use_by_kernel() -> Option<Use> {
    let text = fs::read_to_string("/proc/sys/vm/max_map_count").ok()?;
    let mappings_max = text.trim().parse().ok()?;
    let mut maps = File::open("/proc/self/maps").ok()?;
    // Not on the stack, which may be that of a fiber.
    let (mut mappings, mut chunk) = (0, vec![0; 4096]);
    loop {
        match maps.read(&mut chunk).ok()? {
            0 => {
                return Some(Use {
                    mappings,
                    mappings_max,
                });
            }
            bytes => mappings += chunk[..bytes].iter().filter(|&&byte| byte == b'\n').count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: usize = 2_000;
    const OTHERS: usize = 100;

    /// Claims until it is refused. Gives the stacks, the looks, and the refusal.
    fn fill(ledger: &Ledger) -> (usize, usize, StackError) {
        let (mut stacks, mut looks) = (0, 0);
        loop {
            let claimed = ledger.claim(|| {
                looks += 1;
                let mappings = OTHERS + MAPPINGS_PER_STACK * stacks;
                Some(Use {
                    mappings,
                    mappings_max: KERNEL,
                })
            });
            match claimed {
                Ok(()) => stacks += 1,
                Err(error) => return (stacks, looks, error),
            }
        }
    }

    #[test]
    fn stacks_fit_up_to_the_reserve_and_few_looks_are_taken() {
        let ledger = Ledger::new();
        let (stacks, looks, error) = fill(&ledger);
        assert_eq!(stacks, (KERNEL - MAPPINGS_RESERVED - OTHERS) / 2);
        assert!(looks <= 16, "{looks} looks for {stacks} stacks");
        let StackError::Mappings {
            stacks: reported,
            mappings,
            mappings_max,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!(reported, stacks);
        assert_eq!(mappings, OTHERS + 2 * stacks);
        assert_eq!(mappings_max, KERNEL);
        // A stack that was refused does not count.
        // ORDERING: Relaxed; one thread counts.
        assert_eq!(ledger.stacks.load(Ordering::Relaxed), stacks);
    }

    #[test]
    fn a_stack_that_is_unmapped_makes_room_for_one() {
        let ledger = Ledger::new();
        let (stacks, ..) = fill(&ledger);
        ledger.release();
        let mappings = OTHERS + MAPPINGS_PER_STACK * (stacks - 1);
        let room = Use {
            mappings,
            mappings_max: KERNEL,
        };
        ledger.claim(|| Some(room)).expect("one was released");
        let full = Use {
            mappings: mappings + 2,
            ..room
        };
        assert!(ledger.claim(|| Some(full)).is_err());
    }

    #[test]
    fn without_figures_from_the_kernel_nothing_is_refused() {
        let ledger = Ledger::new();
        assert!((0..100).all(|_| ledger.claim(|| None).is_ok()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_kernel_reports_both_numbers() {
        let Use {
            mappings,
            mappings_max,
        } = use_by_kernel().expect("/proc is mounted");
        assert!(mappings > 5, "{mappings}");
        assert!(mappings_max > mappings, "{mappings_max}");
    }
}
