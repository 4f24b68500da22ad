//! Why orders are rejected, and why they are removed.

use crate::codes::codes;
use crate::result_code::ResultCode;

codes! {
    /// Why lots of a new order, or of a stop order that was triggered, neither trade nor rest.
    #[non_exhaustive]
    pub enum RejectReason: u8;
    /// An IOC order took what was available within its limit, and ends (code 0).
    ImmediateOrCancel = 0;
    /// The next lot would cost more, or bring in less, than the budget allows (code 1).
    Budget = 1;
    /// It cannot be filled completely within its limit or budget (code 2).
    FillOrKill = 2;
    /// It is post-only and would take (code 3).
    PostOnly = 3;
    /// Its owner has an order of this id in the symbol; by the reference's rules, any user has one
    /// (code 4).
    DuplicateId = 4;
    /// It would trade with its owner's own order (code 5).
    SelfTrade = 5;
    /// It has met as many orders as one command may ([`WORK_MAX`](crate::WORK_MAX)), or would have
    /// to, to be filled whole (code 6).
    WorkLimit = 6;
}

impl RejectReason {
    /// Returns how a command ends that places an order of which nothing trades and nothing rests,
    /// for this reason: [`ResultCode::Success`] where the order ends as its type says, else a code
    /// of the reason's own.
    #[must_use]
    pub const fn result(self) -> ResultCode {
        match self {
            Self::ImmediateOrCancel | Self::Budget => ResultCode::Success,
            Self::FillOrKill => ResultCode::MatchingRejectedFillOrKill,
            Self::PostOnly => ResultCode::MatchingRejectedPostOnly,
            Self::DuplicateId => ResultCode::MatchingRejectedDuplicateId,
            Self::SelfTrade => ResultCode::MatchingRejectedSelfTrade,
            Self::WorkLimit => ResultCode::MatchingRejectedWorkLimit,
        }
    }
}

codes! {
    /// Why an order was removed.
    pub enum Removal: u8;
    /// By [`Command::CancelAll`](crate::Command::CancelAll) (code 0).
    CancelAll = 0;
    /// It would have traded with its owner's own order (code 1).
    SelfTrade = 1;
    /// Its good-till time had come (code 2).
    Expired = 2;
    /// Its symbol was removed (code 3).
    SymbolRemoved = 3;
    /// It was a stop order that waited, and its owner cancelled it, or took all its lots off it
    /// (code 4).
    Cancelled = 4;
    /// Its owner reduced it while it waits as a stop order: the rest still waits (code 5).
    Reduced = 5;
    /// Its price is outside the price band: that which its futures symbol was given, or for a stop
    /// order that was triggered, that of its symbol (code 6).
    OutsideBand = 6;
    /// Its owner's session has ended, and it [asked for
    /// that](crate::OrderFlags::with_cancel_on_disconnect) (code 7).
    Disconnected = 7;
    /// It met an order of its owner, and both lost the same number of lots, without a trade: the
    /// rest of it stays (code 8). Where nothing stays, [`SelfTrade`](Self::SelfTrade) reports it.
    Decremented = 8;
    /// It was moved and has met as many orders as one command may ([`WORK_MAX`](crate::WORK_MAX)):
    /// what is left of it would trade at its new price (code 9).
    WorkLimit = 9;
}
