//! How much a message matters.

/// The priority of a message: where a bus has little room left, lower ones are refused first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Priority {
    /// The first to be refused.
    Low,
    /// What a topic has unless it says otherwise.
    #[default]
    Medium,
    /// Still admitted where those below are refused.
    High,
    /// The last to be refused.
    Critical,
}
