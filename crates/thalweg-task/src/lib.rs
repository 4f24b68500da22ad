//! Coroutines of one thread, and their channels.
//!
//! - [`Core`]: runs tasks, thousands of them, on one thread; [`Handle`] spawns, cancels and sleeps.
//! - [`slot`](mod@slot): a channel for one value at a time; a send may run the receiver at once.
//! - [`fiber`]: coroutines with a stack of their own, as futures.
//! - [`Task`]: what a task comes to, with its id, deadline and panic; [`join_all`], [`join_any`],
//!   [`join_some`].
//!
//! Parts that live on one thread are not atomic ([`Local`]); parts that threads share are
//! ([`Shared`]): the family is a type parameter, so that one program has both.
//!
//! The names of libcopp's parts in this crate: [`porting`].
//!
//! When not to use it: for work that wants all cores (a work-stealing runtime moves tasks to idle
//! threads), and for sockets and files, which belong to a runtime with a reactor; a [`Core`] runs
//! inside of one as a future ([`Core::drive`]).

#[macro_use]
mod texts;

mod core;
mod drive;
mod family;
pub mod fiber;
mod handle;
mod join;
#[allow(unsafe_code)] // the one node type
mod node;
#[doc = include_str!("porting.md")]
pub mod porting {}
pub mod slot;
mod sync;
mod task_error;
mod time;
mod timer;
mod wheel;

pub use core::{Core, CoreBuilder};
pub use drive::Drive;
pub use family::{Family, Local, Shared};
pub use handle::{Elapsed, Handle, YieldNow, yield_now};
pub use join::{Joined, join_all, join_any, join_some};
pub use node::{Status, Task, TaskId};
pub use slot::{SlotRx, SlotTx, slot, slot_many};
pub use task_error::TaskError;
pub use timer::Sleep;
