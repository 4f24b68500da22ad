//! As many fibers as the kernel has mappings for, in a process of their own.
#![cfg(all(not(loom), target_os = "linux"))]
#![allow(clippy::unwrap_used)] // all of it is a test

use std::process::Command;
use std::task::Poll;
use std::{env, fs, thread};
use thalweg_task::fiber::{StackError, StackOptions, StackPool};
use thalweg_testkit::wakers::poll_once;

const FIBERS: usize = 30_000;
/// The limits of mappings for which the test runs: from Linux's default to twice the number that is
/// worth a test's time.
const MAPPINGS: std::ops::RangeInclusive<usize> = 65_530..=200_000;

fn all_kept() -> Result<StackPool, StackError> {
    StackPool::new(StackOptions {
        min: usize::MAX,
        max: usize::MAX,
        ..Default::default()
    })
}

/// Set in the process that has the mappings for itself: beside this test, others found none left.
const ALONE: &str = "THALWEG_FIBERS_ALONE";

#[test]
fn thirty_thousand_stacks_in_a_process_of_their_own() {
    if env::var_os(ALONE).is_some() {
        return thirty_thousand_stacks_have_guards_and_the_pool_refuses_before_the_kernel_does();
    }
    let name = "fiber_many::thirty_thousand_stacks_in_a_process_of_their_own";
    let ended = Command::new(env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let [stdout, stderr] = [&ended.stdout, &ended.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(ended.status.success(), "{stdout}{stderr}");
    let has_run = stdout.contains(" mappings") || stdout.contains("skipped");
    assert!(has_run, "{stdout}");
    println!("{stdout}");
}

fn thirty_thousand_stacks_have_guards_and_the_pool_refuses_before_the_kernel_does() {
    let limit = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    if !MAPPINGS.contains(&limit) {
        println!("skipped: vm.max_map_count is {limit}, and the test is for {MAPPINGS:?}");
        return;
    }
    let options = StackOptions {
        size_bytes: 16 * 1024,
        max: usize::MAX,
        ..Default::default()
    };
    // Stacks that are unmapped do not count.
    let min = 100;
    drop(
        StackPool::new(StackOptions {
            min,
            ..options.clone()
        })
        .unwrap(),
    );
    let stacks = StackPool::new(options).unwrap();
    let mut fibers: Vec<_> = (0..FIBERS)
        .map(|index| {
            let fiber = stacks.fiber(move |ctx| {
                ctx.suspend();
                index
            });
            fiber.unwrap()
        })
        .collect();
    fibers
        .iter_mut()
        .for_each(|fiber| assert!(poll_once(fiber).is_pending()));
    let mut more = Vec::new();
    let refused = loop {
        match stacks.fiber(|_| ()) {
            Ok(fiber) => more.push(fiber),
            Err(refused) => break refused,
        }
    };
    let StackError::Mappings {
        stacks: reported,
        mappings_max,
        ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!((reported, mappings_max), (FIBERS + more.len(), limit));
    // The allocator and threads still have mappings.
    assert_eq!(
        thread::spawn(|| vec![1_u8; 1 << 24].len()).join().unwrap(),
        1 << 24
    );
    // One that ends makes room for one.
    drop(more.pop());
    assert!(stacks.fiber(|_| ()).is_ok());
    for (index, fiber) in fibers.iter_mut().enumerate() {
        assert_eq!(poll_once(fiber), Poll::Ready(index));
    }
    // More than there can be are refused as one too many is.
    assert!(matches!(all_kept(), Err(StackError::Mappings { .. })));
    println!("{reported} stacks of {limit} mappings");
}
