//! loom models of the endpoints, over each kind of store. A lost wake-up is a deadlock, which loom
//! reports. Each model has a seeded fault that it must catch.

pub(crate) mod cancelling;
mod cloning;
mod delivery;
pub(crate) mod kept;
mod leaving;
mod losing;
mod within;

use super::{Builder, Mpmc, Mpsc, Receiver, Sender, Spsc};
use crate::ring::sync::fault;
use kept::Kept;
use loom::thread;
use std::cell::Cell;

/// Steps of an execution in which threads may wait for each other by giving their turns away.
const BRANCHES_MAX: usize = 5_000;

type Ends<S> = (Sender<u32, S>, Receiver<u32, S>);
type KeptEnds<S> = (Kept<Sender<u32, S>>, Kept<Receiver<u32, S>>);

/// Channels of one element, over each kind of store.
mod store {
    use super::*;

    pub(super) fn ring() -> Ends<Spsc> {
        Builder::new(1).spsc().expect("a capacity in range")
    }

    pub(super) fn lanes() -> Ends<Mpsc> {
        Builder::new(1).lanes().mpsc().expect("a capacity in range")
    }

    pub(super) fn ticket() -> Ends<Mpmc> {
        Builder::new(1).mpmc().expect("a capacity in range")
    }

    /// Where an element may hide another.
    pub(super) fn two_tickets() -> Ends<Mpmc> {
        Builder::new(2).mpmc().expect("a capacity in range")
    }

    pub(super) fn unbounded() -> Ends<Mpmc> {
        Builder::unbounded(1).mpmc().expect("a limit in range")
    }
}

std::thread_local! {
    /// Whether the main thread of a model lets the others go first. loom runs all threads of a
    /// model on one OS thread.
    static OTHERS_FIRST: Cell<bool> = const { Cell::new(false) };
}

/// Called by the main thread of a model when the others are there.
pub(crate) fn begin() {
    if OTHERS_FIRST.get() {
        thread::yield_now();
    }
}

/// Returns how many preemptions a long run adds to the bound that a model has in the gate.
pub(crate) fn more_preemptions() -> usize {
    let more = std::env::var("THALWEG_LOOM_MORE").ok();
    more.map_or(0, |text| text.parse().expect("a number of preemptions"))
}

/// The model holds within `preemptions`, and notices each of the `faults`, when begun by
/// either side: loom looks for other schedules only where an access meets the *last* access of
/// another thread, and may miss some if it begins with one side.
pub(crate) fn check<W: Fn() + Copy + Send + Sync + 'static>(
    preemptions: usize,
    faults: &[&'static str],
    model: W,
) {
    const BEGINNINGS: [bool; 2] = [false, true];
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions + more_preemptions());
    builder.max_branches = BRANCHES_MAX;
    for others_first in BEGINNINGS {
        OTHERS_FIRST.set(others_first);
        builder.check(model);
    }
    for fault in faults {
        let caught = BEGINNINGS.into_iter().any(|others_first| {
            OTHERS_FIRST.set(others_first);
            fault::caught_by(fault, &builder, model)
        });
        assert!(caught, "the fault `{fault}` was not caught");
    }
}

/// Declares a test for each kind of store that runs a model over it, within this number of
/// preemptions, with the faults that it must catch there.
macro_rules! over_stores {
    ($model:ident; $($store:ident, $preemptions:expr, $faults:expr;)*) => {
        mod $model {
            $(
                #[test]
                fn $store() {
                    $crate::channel::models::check($preemptions, &$faults, || {
                        let ends = $crate::channel::models::store::$store();
                        super::$model($crate::channel::models::kept::kept(ends));
                    });
                }
            )*
        }
    };
}
use over_stores;
