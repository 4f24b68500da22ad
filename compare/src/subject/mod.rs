//! What is compared: this project's pipeline and its peers, behind one trait.

mod alone;
mod peer;
mod pipeline;

pub(crate) use alone::Alone;
pub(crate) use peer::{Disruptor, Waiting};
pub(crate) use pipeline::Thalweg;
