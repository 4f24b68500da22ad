//! An executor for tasks and fibers on one thread, and channels between them.
//!
//! - [`LocalExecutor`]: runs tasks, thousands of them, on one thread; [`Handle`] spawns, cancels
//!   and sleeps.
//! - [`slot`](mod@slot): a channel for one value at a time; a send may run the receiver at once.
//! - [`fiber`]: coroutines with a stack of their own, as futures.
//! - [`Task`]: the handle of a task, with its result, id and deadline; [`join_all`], [`join_any`]
//!   and [`join_some`] wait for several.
//!
//! Types of the family [`Local`] stay on one thread, without atomics; those of the family
//! [`Shared`] may be shared by threads. The family is a type parameter, so a program can use both.
//!
//! [`porting`] maps the names of libcopp to those of this crate.
//!
//! When not to use it: for work that wants all cores (a work-stealing runtime moves tasks to idle
//! threads), and for sockets and files, which belong to a runtime with a reactor; a
//! [`LocalExecutor`] runs inside of one as a future ([`LocalExecutor::drive`]).

#[macro_use]
mod texts;

mod drive;
mod family;
pub mod fiber;
mod handle;
mod join;
mod local_executor;
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

pub use drive::Drive;
pub use family::{Family, Local, Shared};
pub use handle::{Elapsed, Handle, YieldNow, yield_now};
pub use join::{Joined, join_all, join_any, join_some};
pub use local_executor::{LocalExecutor, LocalExecutorBuilder};
pub use node::{Status, Task, TaskId};
pub use slot::{SlotReceiver, SlotSender, slot, slot_many};
pub use task_error::TaskError;
pub use timer::Sleep;
