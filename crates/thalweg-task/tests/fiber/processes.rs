//! Tests that end or leak in a process, each in a process of its own: this program, run again for
//! one test. A fiber that runs out of stack hits its guard, and writes into nothing of others.

use crate::fiber::{poll_once, pool};
use corosensei::Coroutine;
use corosensei::stack::{Stack, StackPointer};
use std::cell::Cell;
use std::env;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{self, Command, Output};
use std::rc::Rc;
use std::thread;
use thalweg_task::fiber::{Fiber, FiberContext, StackOptions, StackPool};

const CHILD: &str = "THALWEG_FIBER_CHILD";
const DAMAGED: i32 = 3;
const CANARY: [u64; 512] = [0x5AFE_5AFE_5AFE_5AFE; 512];

/// Runs the named test of this program again, as a child that is to die.
fn child(test: &str) -> Output {
    let program = env::current_exe().expect("it runs");
    Command::new(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        // So that the signal is what ends it under a sanitizer, too.
        .env(
            "ASAN_OPTIONS",
            "handle_segv=0:handle_sigbus=0:detect_leaks=0",
        )
        .output()
        .expect("it runs again")
}

fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Where canaries are: each an array of its own.
#[derive(Clone, Default)]
struct Canaries(Rc<Cell<Vec<*const [u64; 512]>>>);

impl Canaries {
    fn add(&self, canary: *const [u64; 512]) {
        let mut all = self.0.take();
        all.push(canary);
        self.0.set(all);
    }

    /// Ends the process if one is damaged.
    fn check(&self) {
        let all = self.0.take();
        for &canary in &all {
            // SAFETY: each lives on a stack that is suspended as long as a check runs.
            if unsafe { canary.read_volatile() } != CANARY {
                eprintln!("damaged");
                process::exit(DAMAGED);
            }
        }
        self.0.set(all);
    }
}

/// Calls itself until the stack is at its end, some 200 bytes a level, and looks at the canaries
/// each time.
fn recurse(canaries: &Canaries, levels: u64) -> u64 {
    let frame = black_box([levels; 16]);
    canaries.check();
    if levels == 0 {
        return frame[0];
    }
    recurse(canaries, levels - 1) + black_box(frame)[15]
}

#[test]
fn a_fiber_that_overflows_its_stack_dies_at_its_guard() {
    if is_child() {
        let (stacks, canaries) = (pool(), Canaries::default());
        let with_canary = || {
            let added = canaries.clone();
            let body = move |ctx: &mut FiberContext<'_>| {
                let canary = black_box(CANARY);
                added.add(&raw const canary);
                loop {
                    ctx.suspend();
                    black_box(&canary);
                }
            };
            let mut fiber: Fiber<()> = stacks.fiber(body).expect("stacks are there");
            assert!(poll_once(&mut fiber).is_pending());
            fiber
        };
        // The kernel puts stacks next to each other, from above: some are on either side.
        let _above: Vec<_> = (0..8).map(|_| with_canary()).collect();
        let checked = canaries.clone();
        let mut overflows = stacks
            .fiber(move |ctx| {
                ctx.suspend();
                eprintln!("begins");
                recurse(&checked, u64::MAX)
            })
            .expect("stacks are there");
        assert!(poll_once(&mut overflows).is_pending());
        let _below: Vec<_> = (0..8).map(|_| with_canary()).collect();
        let _ = poll_once(&mut overflows);
        unreachable!("it had no stack left");
    }
    let output = child("fiber::processes::a_fiber_that_overflows_its_stack_dies_at_its_guard");
    let (stderr, signal) = (
        String::from_utf8_lossy(&output.stderr),
        output.status.signal(),
    );
    assert!(stderr.contains("begins"), "{stderr}");
    assert!(!stderr.contains("damaged"), "{stderr}");
    // SIGBUS, SIGSEGV
    assert!(
        matches!(signal, Some(7 | 10 | 11)),
        "{:?}: {stderr}",
        output.status
    );
}

/// A stack without a guard, and a canary below it: what the test above must be able to see.
struct Guardless(Vec<u64>);

const GUARDLESS_WORDS: usize = 64 * 1024;

// SAFETY: none: it has no guard page. It exists in a process that ends when that is noticed.
unsafe impl Stack for Guardless {
    fn base(&self) -> StackPointer {
        let end = self.0.as_ptr_range().end.addr() & !63;
        NonZeroUsize::new(end).expect("a vector is somewhere")
    }

    fn limit(&self) -> StackPointer {
        NonZeroUsize::new(self.0.as_ptr().addr().next_multiple_of(64)).expect("as above")
    }
}

#[test]
fn a_stack_without_a_guard_is_seen_to_damage_the_next_one() {
    if is_child() {
        let mut memory = vec![0; 2 * GUARDLESS_WORDS];
        memory[GUARDLESS_WORDS..][..CANARY.len()].copy_from_slice(&CANARY);
        let canaries = Canaries::default();
        canaries.add(memory[GUARDLESS_WORDS..].as_ptr().cast());
        let stack = Guardless(memory);
        let body = move |_: &corosensei::Yielder<(), ()>, ()| recurse(&canaries, u64::MAX);
        Coroutine::<(), (), u64, Guardless>::with_stack(stack, body).resume(());
        unreachable!("the canary lies in the way");
    }
    let output = child("fiber::processes::a_stack_without_a_guard_is_seen_to_damage_the_next_one");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(DAMAGED),
        "{:?}: {stderr}",
        output.status
    );
}

/// Waits when it is dropped, for what never comes.
struct WaitsForEver<'a, 'f>(&'a mut FiberContext<'f>);

impl Drop for WaitsForEver<'_, '_> {
    fn drop(&mut self) {
        self.0.wait(std::future::pending())
    }
}

#[test]
fn a_destructor_that_waits_in_a_dropped_fiber_reports_it_and_aborts() {
    if is_child() {
        let mut fiber = pool()
            .fiber(|ctx| {
                let waits = WaitsForEver(ctx);
                waits.0.suspend();
            })
            .expect("stacks are there");
        assert!(poll_once(&mut fiber).is_pending());
        drop(fiber);
        unreachable!("it would have to wait for ever");
    }
    let output =
        child("fiber::processes::a_destructor_that_waits_in_a_dropped_fiber_reports_it_and_aborts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let text =
        "a destructor waits in a fiber that is being dropped: it would have to wait for ever";
    assert!(stderr.contains(text), "{stderr}");
    assert_eq!(
        output.status.signal(),
        Some(6),
        "{:?}: {stderr}",
        output.status
    );
}

struct PrintsDrop;

impl Drop for PrintsDrop {
    fn drop(&mut self) {
        eprintln!("dropped");
    }
}

#[test]
fn a_body_that_never_stops_waiting_is_leaked_and_counted() {
    if is_child() {
        let stacks = pool();
        let mut fiber: Fiber<()> = stacks
            .fiber(|ctx| {
                let _prints = PrintsDrop;
                loop {
                    let _ = catch_unwind(AssertUnwindSafe(|| ctx.suspend()));
                }
            })
            .expect("stacks are there");
        assert!(poll_once(&mut fiber).is_pending());
        drop(fiber);
        let counts = stacks.counts();
        assert_eq!((counts.leaked, counts.in_use, counts.idle), (1, 0, 0));
        assert!(!thread::panicking());
        // Others are not troubled.
        assert!(poll_once(&mut stacks.fiber(|_| ()).unwrap()).is_ready());
        eprintln!("leaked");
        return;
    }
    let output = child("fiber::processes::a_body_that_never_stops_waiting_is_leaked_and_counted");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {stderr}", output.status);
    // A leaked value is not dropped.
    assert!(
        stderr.contains("leaked") && !stderr.contains("dropped"),
        "{stderr}"
    );
}

/// Stacks of the smallest size, of which all but the last colours, which have least room, are used.
fn smallest() -> (StackPool, Vec<Fiber<()>>) {
    let options = StackOptions {
        size_bytes: *StackOptions::SIZE_BYTES.start(),
        max: 30_000,
        ..StackOptions::default()
    };
    let stacks = StackPool::new(options).expect("the size is in its range");
    let others = (0..63).map(|_| stacks.fiber(|_| ()).expect("stacks are there"));
    let others = others.collect();
    (stacks, others)
}

/// In a process of its own, since the first use of the unwinder takes most.
#[test]
fn the_smallest_stack_has_room_to_be_unwound() {
    if is_child() {
        let (stacks, _others) = smallest();
        let waits = stacks.fiber(|ctx| {
            let _prints = PrintsDrop;
            ctx.suspend();
        });
        let mut waits = waits.expect("stacks are there");
        assert!(poll_once(&mut waits).is_pending());
        drop(waits);
        return;
    }
    let output = child("fiber::processes::the_smallest_stack_has_room_to_be_unwound");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {stderr}", output.status);
    assert!(stderr.contains("dropped"), "{stderr}");
}

/// Making that many has the pool look at the mappings of the process meanwhile.
#[test]
fn a_fiber_on_the_smallest_stack_makes_others() {
    if is_child() {
        let (stacks, _others) = smallest();
        let more = stacks.clone();
        let makes = stacks.fiber(move |_| {
            let room = [0_u8; 2048];
            let made = (0..20_000).map(|_| more.fiber(|_| ()).expect("stacks are there"));
            let made: Vec<_> = made.collect();
            assert_eq!((made.len(), black_box(&room).len()), (20_000, 2048));
        });
        assert!(poll_once(&mut makes.expect("stacks are there")).is_ready());
        return;
    }
    let output = child("fiber::processes::a_fiber_on_the_smallest_stack_makes_others");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {stderr}", output.status);
}
