//! Lock-free rings: the one place in this crate with `unsafe` code.
//!
//! Every operation is *claim → write → publish* on the sending side and *observe → read → release*
//! on the receiving side. Positions are 64-bit sequences; each index is on its own 128-byte line;
//! each side keeps a private copy of the other's index and looks again only when that copy says
//! full or empty.

pub mod broadcast;
pub(crate) mod identity;
mod one_thread;
mod oneshot;
pub(crate) mod panics;
mod prefetch;
pub(crate) mod sequence;
mod spsc;
pub(crate) mod sync;
mod ticket;

pub(crate) use one_thread::UsedByOneThreadAtATime;
pub use oneshot::{Giver, Taker, oneshot};
pub use prefetch::prefetch;
pub use sequence::{CAPACITY_MAX, CapacityError};
pub use spsc::{Batch, Claim, ClaimError, Consumer, Layout, PopError, Producer, PushError, spsc};
pub(crate) use ticket::{Claimed, TicketEnd};
pub use ticket::{Ticket, TicketClaim};
