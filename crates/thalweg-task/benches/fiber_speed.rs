//! What switches between stacks cost: `cargo bench -p thalweg-task --bench fiber_speed`.

use std::hint::black_box;
use std::pin::Pin;
use std::process::ExitCode;
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use thalweg_task::fiber::{Fiber, Generator, StackError, StackOptions, StackPool};
use thalweg_task::{Core, Local, slot};

const PAIRS: usize = 1_000_000;
const ROUNDS: usize = 31;
const FIBERS: usize = 30_000;
const LAPS: usize = 20;

/// The median over the rounds of nanoseconds per operation, and the least.
fn print(what: &str, operations: usize, mut round: impl FnMut()) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            round();
            begin.elapsed().as_nanos() as f64 / operations as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!(
        "{what:<34} {:8.2} ns, least {:8.2}",
        rounds[ROUNDS / 2],
        rounds[0]
    );
}

/// A step through a permutation of the first `FIBERS` numbers that no prefetcher foresees.
fn shuffled() -> Vec<usize> {
    let mut order: Vec<usize> = (0..FIBERS).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for last in (1..FIBERS).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    order
}

const HELP: &str = "\
cargo bench -p thalweg-task --bench fiber_speed

Prints what switches between stacks cost: the median of 31 rounds, and the least. Takes no options
but --help.";

fn main() -> ExitCode {
    // `--bench` comes from cargo.
    match std::env::args().skip(1).find(|word| word != "--bench") {
        None => {}
        Some(word) if word == "--help" || word == "-h" => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(word) => {
            eprintln!("fiber_speed: there is no option {word:?}; see --help");
            return ExitCode::from(2);
        }
    }
    if let Err(error) = measure() {
        eprintln!("fiber_speed: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn measure() -> Result<(), StackError> {
    let options = StackOptions {
        size_bytes: 16 * 1024,
        max: 2 * FIBERS,
        ..Default::default()
    };
    let stacks = StackPool::new(options)?;
    let mut cx = Context::from_waker(Waker::noop());

    let mut echo: Generator<u64, u64, ()> = stacks.generator(|ctx, mut value| {
        loop {
            value = ctx.suspend(value + 1);
        }
    })?;
    print("generator, u64 in and out", PAIRS, || {
        (0..PAIRS as u64).for_each(|value| {
            black_box(echo.resume(value));
        });
    });
    let mut fiber: Fiber<()> = stacks.fiber(|ctx| {
        loop {
            ctx.suspend();
        }
    })?;
    print("fiber, poll and suspend", PAIRS, || {
        (0..PAIRS).for_each(|_| assert!(Pin::new(&mut fiber).poll(&mut cx).is_pending()));
    });
    let mut fiber: Fiber<()> = stacks.fiber(|ctx| {
        loop {
            let mut ready = false;
            ctx.wait(std::future::poll_fn(|_| {
                if std::mem::replace(&mut ready, true) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            }));
        }
    })?;
    print("fiber, poll and wait", PAIRS, || {
        (0..PAIRS).for_each(|_| assert!(Pin::new(&mut fiber).poll(&mut cx).is_pending()));
    });
    print("fiber, from beginning to end", PAIRS, || {
        for _ in 0..PAIRS {
            let mut fiber = stacks.fiber(|_| 1).expect("one stack at a time");
            assert!(Pin::new(&mut fiber).poll(&mut cx).is_ready());
        }
    });
    print("fiber, dropped while it waits", PAIRS / 100, || {
        for _ in 0..PAIRS / 100 {
            let mut fiber = stacks
                .fiber(|ctx| ctx.suspend())
                .expect("one stack at a time");
            assert!(Pin::new(&mut fiber).poll(&mut cx).is_pending());
        }
    });
    slots(&stacks)?;
    many(&stacks)
}

/// A message to a fiber that waits for it: sent, received, and waiting again.
fn slots(stacks: &StackPool) -> Result<(), StackError> {
    let core = Core::new();
    let (tx, mut rx) = slot::<u64, Local>();
    let sum = stacks.fiber(move |ctx| {
        let mut sum = 0;
        while let Ok(number) = rx.recv_fiber(ctx) {
            sum += number;
        }
        sum
    })?;
    let sum = core.spawn(sum);
    core.poll();
    print("fiber, resumed by a slot", PAIRS, || {
        (0..PAIRS as u64).for_each(|number| assert!(tx.send_now(number).is_ok_and(|ran| ran)));
    });
    drop(tx);
    black_box(core.block_on(sum).expect("it does not panic"));
    Ok(())
}

fn many(stacks: &StackPool) -> Result<(), StackError> {
    let mut cx = Context::from_waker(Waker::noop());
    let endless = || {
        stacks.fiber(|ctx| -> () {
            loop {
                ctx.suspend()
            }
        })
    };
    let mut fibers: Vec<Fiber<()>> = (0..FIBERS).map(|_| endless()).collect::<Result<_, _>>()?;
    let in_order: Vec<usize> = (0..FIBERS).collect();
    for (what, order) in [("in order", in_order), ("in random order", shuffled())] {
        print(&format!("{FIBERS} fibers, {what}"), LAPS * FIBERS, || {
            for _ in 0..LAPS {
                for &index in &order {
                    assert!(Pin::new(&mut fibers[index]).poll(&mut cx).is_pending());
                }
            }
        });
    }
    Ok(())
}
