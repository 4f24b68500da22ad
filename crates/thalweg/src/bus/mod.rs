//! A message bus inside a program: typed messages over topics, with priorities.

mod pattern;
mod priority;
mod subscriptions;
mod topic;
mod visit;

pub use crate::topics;
pub use priority::Priority;
pub use subscriptions::{HandlerId, Subscriptions};
pub use topic::{Carries, Message, PatternError, Policy, TopicError, TopicId, TopicInfo, Topics};
pub use visit::Visit;
