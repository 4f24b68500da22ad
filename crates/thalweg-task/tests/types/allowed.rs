//! Code that must compile: a marker too many would prevent it. The other half is in `refused.rs`.
#![allow(dead_code)] // compiled is all that it has to be

use std::marker::PhantomPinned;

use thalweg_task::fiber::{Fiber, Generator, GeneratorContext};
use thalweg_task::slot::{Many, Recv, WaitEmpty};
use thalweg_task::{
    Drive, Handle, Local, LocalExecutor, Shared, Sleep, SlotReceiver, SlotSender, Task, YieldNow,
};

fn send<T: Send>() {}
fn sync<T: Sync>() {}
fn unpin<T: Unpin>() {}

/// The ends of a shared slot move, and are shared, where their values may move.
fn moves<'l, T: Send + 'l>() {
    send::<(
        SlotSender<T, Shared>,
        SlotReceiver<T, Shared>,
        SlotReceiver<T, Shared, Many<Shared>>,
    )>();
    sync::<(
        SlotSender<T, Shared>,
        SlotReceiver<T, Shared>,
        SlotReceiver<T, Shared, Many<Shared>>,
    )>();
    send::<(Recv<'l, T, Shared>, WaitEmpty<'l, T, Shared>)>();
}

/// Values move out of all of these, and none is pinned in its place.
fn is_unpin<T: 'static, S, Z>() {
    unpin::<(
        SlotSender<T, Local>,
        SlotReceiver<T, Shared>,
        Task<T>,
        Fiber<T>,
        Sleep,
        YieldNow,
    )>();
    unpin::<(
        Recv<'_, T, Local>,
        WaitEmpty<'_, T, Shared>,
        Recv<'_, T, Local, Many<Local>>,
    )>();
    unpin::<(
        Drive<'_, S, Z>,
        Generator<T, PhantomPinned, T>,
        LocalExecutor,
        Handle,
    )>();
}

type General = for<'a> fn(&'a u8);
type Special = fn(&'static u8);

/// Types that only give values may give them as less general ones.
fn gives((task, fiber): (Task<General>, Fiber<General>)) -> (Task<Special>, Fiber<Special>) {
    (task, fiber)
}

fn gives_both(body: Generator<u8, General, General>) -> Generator<u8, Special, Special> {
    body
}

/// Types that only take them may take less general ones.
fn takes<'g>(body: GeneratorContext<'g, u8, Special>) -> GeneratorContext<'g, u8, General> {
    body
}
