//! What is compared: this project's pipeline and its peers, behind one trait.

mod peer;
mod pipeline;

pub(crate) use peer::{Disruptor, Waiting};
pub(crate) use pipeline::Thalweg;
