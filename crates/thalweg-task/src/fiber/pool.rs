//! Stacks that fibers take and give back.

use super::error::StackError;
use super::switch::PooledStack;
use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// How many stacks one `take` unmaps at most, so that none takes long.
const UNMAPPED_AT_ONCE_MAX: usize = 16;

/// The limits of a [`StackPool`].
///
/// ```
/// use thalweg_task::fiber::{StackOptions, StackPool};
///
/// let options = StackOptions { size_bytes: 64 * 1024, max: 10_000, ..StackOptions::default() };
/// let stacks = StackPool::new(options)?;
/// # Ok::<(), thalweg_task::fiber::StackError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackOptions {
    /// The bytes of each stack, rounded up to whole pages, its guard page not counted: 8 KiB to 1
    /// GiB. Memory is used only for pages that were touched. A fiber that is dropped while it waits
    /// needs some 5 KiB below where it waits to be unwound, a panic that prints a backtrace some 24
    /// KiB: with less left, a panic overflows the stack where `RUST_BACKTRACE` is set, and ends the
    /// process instead of its task. 256 KiB, unless given.
    pub size_bytes: usize,
    /// The number of stacks that are mapped at once and kept; default 0.
    pub min: usize,
    /// The number of stacks that the pool may have, in use or idle: 1 or more; default 4,096.
    pub max: usize,
    /// The number of fibers after which the stacks that none of them needed are unmapped, at most
    /// 16 at once, so that no fiber waits long for its stack. With 0, only [`StackPool::decay`]
    /// unmaps stacks; default 1,024.
    pub decay_after: usize,
}

impl StackOptions {
    /// The sizes that a stack may have. In fewer bytes none can be unwound: the unwinder's first
    /// use takes 5.2 KB where the dynamic linker saves AVX-512 registers (glibc 2.36, AMD EPYC
    /// 9005).
    pub const SIZE_BYTES: RangeInclusive<usize> = super::STACK_BYTES;

    fn check(&self) -> Result<(), StackError> {
        let Self {
            size_bytes,
            min,
            max,
            ..
        } = *self;
        if !Self::SIZE_BYTES.contains(&size_bytes) {
            return Err(StackError::Size { size_bytes });
        }
        if max == 0 || min > max {
            return Err(StackError::Bounds { min, max });
        }
        Ok(())
    }
}

impl Default for StackOptions {
    fn default() -> Self {
        Self {
            size_bytes: 256 * 1024,
            min: 0,
            max: 4096,
            decay_after: 1024,
        }
    }
}

/// The numbers of stacks of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StackCounts {
    /// The number of stacks of fibers and generators that have begun or not, and have not ended.
    pub in_use: usize,
    /// The number of stacks that wait for the next fiber.
    pub idle: usize,
    /// The number of stacks of dropped fibers that caught the unwinding of their stack 64 times and
    /// went on waiting. They stay mapped, count towards [`max`](StackOptions::max), and are never
    /// used again; nothing on them is dropped.
    pub leaked: usize,
    /// The number of stacks that were ever mapped.
    pub mapped: u64,
}

/// Stacks for fibers on one thread, taken last in, first out: the next fiber gets the stack that is
/// likeliest to be in the caches.
///
/// A clone is another handle to the same pool. It is `!Send`: a thread has a pool of its own. The
/// stacks are unmapped with the last handle, and no earlier than their fibers end.
///
/// Each stack has a guard page below it: code that runs out of stack dies with a signal, and writes
/// into nothing else. A guard page costs one more mapping, and Linux allows a process
/// `vm.max_map_count` of them, 65,530 as it comes: room for some 32,600 stacks. The pool looks at
/// what is in use, and returns [`StackError::Mappings`] 256 mappings before the kernel would return
/// `ENOMEM` to it or to the allocator.
///
/// # Cost
/// Taking an idle stack and giving it back costs some ns; mapping one costs 4 µs, its first use 2
/// for each page that is touched, and unmapping it 5.
#[derive(Clone)]
pub struct StackPool(Rc<Pool>);

struct Pool {
    options: StackOptions,
    idle: RefCell<Vec<PooledStack>>,
    in_use: Cell<usize>,
    leaked: Cell<usize>,
    mapped: Cell<u64>,
    /// Stacks taken in this period.
    taken: Cell<usize>,
    /// The fewest stacks that were idle in this period: no fiber needed those.
    idle_least: Cell<usize>,
}

impl StackPool {
    /// Makes a pool with [`min`](StackOptions::min) idle stacks.
    ///
    /// # Errors
    /// Options outside of their ranges; and as [`fiber`](Self::fiber).
    pub fn new(options: StackOptions) -> Result<Self, StackError> {
        options.check()?;
        let pool = Pool {
            idle: RefCell::default(),
            options,
            in_use: Cell::new(0),
            leaked: Cell::new(0),
            mapped: Cell::new(0),
            taken: Cell::new(0),
            idle_least: Cell::new(0),
        };
        for _ in 0..pool.options.min {
            let stack = pool.map()?;
            pool.idle.borrow_mut().push(stack);
        }
        pool.idle_least.set(pool.options.min);
        Ok(Self(Rc::new(pool)))
    }

    /// Returns how many stacks there are.
    pub fn counts(&self) -> StackCounts {
        StackCounts {
            in_use: self.0.in_use.get(),
            idle: self.0.idle.borrow().len(),
            leaked: self.0.leaked.get(),
            mapped: self.0.mapped.get(),
        }
    }

    /// Unmaps the stacks that no fiber has needed since the last call, or since the pool last
    /// looked by itself ([`StackOptions::decay_after`]), and returns their number;
    /// [`StackOptions::min`] stacks stay. It takes about 5 µs a stack.
    pub fn decay(&self) -> usize {
        self.0.decay(usize::MAX)
    }

    pub(super) fn take(&self) -> Result<PooledStack, StackError> {
        let pool = &*self.0;
        let taken = pool.taken.get() + 1;
        pool.taken.set(taken);
        if taken == pool.options.decay_after {
            pool.decay(UNMAPPED_AT_ONCE_MAX);
        }
        let mut idle = pool.idle.borrow_mut();
        let stack = if let Some(stack) = idle.pop() {
            pool.idle_least.set(pool.idle_least.get().min(idle.len()));
            stack
        } else {
            let (max, leaked) = (pool.options.max, pool.leaked.get());
            if pool.in_use.get() + leaked >= max {
                return Err(StackError::Exhausted { max, leaked });
            }
            pool.idle_least.set(0);
            let stack = pool.map()?;
            // So that giving it back does not allocate.
            idle.reserve(pool.in_use.get() + 1);
            stack
        };
        pool.in_use.set(pool.in_use.get() + 1);
        Ok(stack)
    }

    pub(super) fn give(&self, stack: PooledStack) {
        self.0.in_use.set(self.0.in_use.get() - 1);
        self.0.idle.borrow_mut().push(stack);
    }

    pub(super) fn give_up(&self) {
        self.0.in_use.set(self.0.in_use.get() - 1);
        self.0.leaked.set(self.0.leaked.get() + 1);
    }
}

impl Pool {
    fn map(&self) -> Result<PooledStack, StackError> {
        let mapped = self.mapped.get();
        let stack = PooledStack::map(self.options.size_bytes, mapped as usize)?;
        self.mapped.set(mapped + 1);
        Ok(stack)
    }

    /// Ends the period: unmaps up to `most` of the stacks that were idle throughout.
    fn decay(&self, most: usize) -> usize {
        let mut idle = self.idle.borrow_mut();
        let beyond_min = (self.in_use.get() + idle.len()).saturating_sub(self.options.min);
        let unmapped = self.idle_least.get().min(beyond_min).min(most);
        // The first are those that were given back longest ago.
        idle.drain(..unmapped);
        self.idle_least.set(idle.len());
        self.taken.set(0);
        unmapped
    }
}

shown!([] StackPool, "StackPool", this, "options": this.0.options, "counts": this.counts());

#[cfg(test)]
mod tests {
    use super::*;
    use corosensei::stack::Stack;

    #[test]
    fn the_last_stack_in_is_the_first_out() {
        let stacks = StackPool::new(StackOptions::default()).unwrap();
        let [first, second, third] = [(); 3].map(|()| stacks.take().unwrap());
        let tops = [&third, &first, &second].map(|stack| stack.base());
        [second, first, third]
            .into_iter()
            .for_each(|stack| stacks.give(stack));
        let again = [(); 3].map(|()| stacks.take().unwrap());
        assert_eq!(again.each_ref().map(Stack::base), tops);
        again.into_iter().for_each(|stack| stacks.give(stack));
    }
}
