//! The outcomes, answers and ends that an exchange publishes.

use super::error::Failed;
use super::record::Origin;
use super::tables::ReportFrame;
use crate::engine::state::State;
use crate::service::{Answered, Outcome};

/// Reports for which there is room from one call to the next.
const REPORTS_ROOM: usize = 4096;

/// A command that was executed and is durable.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'e> {
    /// Its outcome; the [`sequence`](Outcome::sequence) is the command's number.
    pub outcome: Outcome<'e>,
    /// The sender: a session or the exchange itself.
    pub origin: Origin,
    /// The execution reports that users get of it, in order, each with its number among those of
    /// its owner.
    pub reports: &'e [ReportFrame],
}

/// The output of an exchange, in the order of the commands.
#[derive(Debug)]
#[non_exhaustive]
pub enum Published<'p> {
    /// The exchange is open, and has executed nothing since: published once, first.
    Started {
        /// The state that it continues from.
        state: &'p State,
        /// The number of the next command.
        number: u64,
    },
    /// A command was executed.
    Outcome(Executed<'p>),
    /// The [note](super::Notes) of the command whose outcome comes next, where a replica that
    /// follows executes it; again where the disk had no room for the command before.
    Noted(&'p [u8]),
    /// The exchange follows a command log: outcomes are of commands that others answer.
    Following,
    /// A claim of the command log, under which all commands from now on are. It is that of another
    /// replica, or of this one once it has executed everything before. Epochs never go back.
    Claimed {
        /// The number of the claim, higher than those of all claims before.
        epoch: u64,
        /// Whether this replica writes the log from now on.
        leads: bool,
    },
    /// A query was answered.
    Answer {
        /// The note of the caller that asked.
        tag: u64,
        /// The answer. Like an outcome, it shows nothing that is not durable.
        answered: Answered,
    },
    /// Nothing more for now: the moment to pass on what was gathered.
    ChunkEnd,
    /// The exchange has stopped; nothing comes after this.
    Failed(&'p Failed),
}

/// Reports and senders of the commands that are being published.
#[derive(Debug, Default)]
pub(super) struct Reported {
    pub(super) reports: Vec<ReportFrame>,
    /// Holds the number of reports of each command.
    pub(super) counts: Vec<usize>,
    pub(super) origins: Vec<Origin>,
}

impl Reported {
    /// Room for more reports than most need is given back: few users could else make it that of the
    /// longest sweep.
    pub(super) fn clear(&mut self) {
        self.counts.clear();
        self.origins.clear();
        self.reports.clear();
        self.reports.shrink_to(REPORTS_ROOM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::REPORT_BYTES;
    use crate::ids::UserId;
    use crate::session::ReportNumber;

    #[test]
    fn room_for_the_reports_of_a_sweep_is_not_kept() {
        let numbered = ReportFrame {
            number: ReportNumber(1),
            owner: UserId(7),
            frame: [0; REPORT_BYTES],
        };
        let mut reported = Reported::default();
        reported.reports.resize(100, numbered);
        let before = reported.reports.capacity();
        reported.clear();
        assert_eq!(reported.reports.capacity(), before);
        reported.reports.resize(100_000, numbered);
        reported.clear();
        assert!(reported.reports.is_empty());
        assert!(reported.reports.capacity() <= 2 * REPORTS_ROOM);
    }
}
