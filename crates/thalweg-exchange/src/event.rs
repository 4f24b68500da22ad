//! The events that a command caused in a book, and the buffer that collects them.

use std::ops::Deref;

use crate::codes::codes;
use crate::command::Action;
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;

/// One thing that happened in a book.
///
/// The *hold price* is the price at which the buying order's money was held: its reserve price
/// (of a FOK_BUDGET BID that takes: its budget).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Event {
    /// The command's order (the taker) met a resting order (the maker).
    Trade {
        /// The maker's price.
        price: i64,
        /// Lots.
        size: i64,
        /// The resting order.
        maker_order: OrderId,
        /// Its owner.
        maker_uid: UserId,
        /// Lots of the maker that are filled by now, these included.
        maker_filled: i64,
        /// Lots that are left of it, hidden ones included.
        maker_left: i64,
        /// True if the maker is filled and gone. An iceberg order with hidden lots left is not; a
        /// `Refilled` event follows when they are displayed.
        maker_completed: bool,
        /// True for the trade that fills the taker completely.
        taker_completed: bool,
        /// Hold price of the buying order.
        bidder_hold_price: i64,
        /// The taker's side: settlement needs it for a moved order.
        taker_action: Action,
    },
    /// Lots of a new order that neither traded nor rest. Comes before the trades.
    Reject {
        /// The order.
        order: OrderId,
        /// The command's price.
        price: i64,
        /// Lots.
        size: i64,
        /// The command's reserve price.
        bidder_hold_price: i64,
        /// Why.
        why: RejectReason,
    },
    /// Lots that left a resting order by cancel or reduce; of an iceberg order, hidden ones first.
    Reduce {
        /// The order.
        order: OrderId,
        /// The order's price.
        price: i64,
        /// Lots.
        size: i64,
        /// Lots that are left of it, hidden ones included.
        left: i64,
        /// Lots of it that are filled.
        filled: i64,
        /// True where the order is gone.
        completed: bool,
        /// The order's reserve price.
        bidder_hold_price: i64,
        /// The order's side.
        action: Action,
    },
    /// An order of any user and symbol that the command removed from its book, or a stop order that
    /// it removed while it waited; with all its details. A moved order that met one of its owner's
    /// is removed last, at its new price.
    Removed {
        /// Where.
        symbol: SymbolId,
        /// The order.
        order: OrderId,
        /// Its owner.
        uid: UserId,
        /// Its side.
        action: Action,
        /// Its price.
        price: i64,
        /// Lots removed, hidden ones included: all it had, except for [`RemovalReason::Reduced`]
        /// and [`RemovalReason::Decremented`].
        size: i64,
        /// Lots that are left: none, except for [`RemovalReason::Reduced`] and
        /// [`RemovalReason::Decremented`].
        left: i64,
        /// Lots of it that are filled.
        filled: i64,
        /// Its reserve price.
        bidder_hold_price: i64,
        /// Why.
        why: RemovalReason,
    },
    /// A stop order that waited is now executed: the trades and rejects from here on, up to the
    /// next `Triggered`, are its own.
    Triggered {
        /// The order.
        order: OrderId,
        /// Its owner.
        uid: UserId,
        /// Its side.
        action: Action,
        /// Its limit price.
        price: i64,
        /// Its size.
        size: i64,
        /// Its reserve price.
        bidder_hold_price: i64,
    },
    /// A buyer's resting order trades in an auction: the trades from here on, up to the next event
    /// of this kind or [`Triggered`](Self::Triggered), are its own, with sellers as their makers,
    /// and all at the price of the auction.
    Uncrossed {
        /// The order.
        order: OrderId,
        /// Its owner.
        uid: UserId,
        /// Its side: it buys.
        action: Action,
        /// Its limit price.
        price: i64,
        /// Lots that are left of it before these trades, hidden ones included.
        size: i64,
        /// Lots of it that are filled before them.
        filled: i64,
        /// Its reserve price.
        bidder_hold_price: i64,
    },
    /// The display of an order was replenished, at the end of the queue (FIX: refreshed): the
    /// displayed lots of an iceberg order were filled, or it was moved, or an order was amended to
    /// more lots. `size` = displayed after − (displayed before − lots just traded, or lost to
    /// self-trade prevention). No event reports the first display: it is min(unfilled, display).
    Refilled {
        /// The order.
        order: OrderId,
        /// Its owner.
        uid: UserId,
        /// Lots.
        size: i64,
    },
}

const _: () = assert!(size_of::<Event>() == 64, "a cache line");

/// The best prices of a futures book after a successful command: settlement does not know books and
/// needs them beside the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TopOfBook {
    /// The best price of a resting sell order.
    pub ask: Option<i64>,
    /// The best price of a resting buy order.
    pub bid: Option<i64>,
}

/// An order before a command changed its price. A move has no event of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MovedOrder {
    /// Its side.
    pub action: Action,
    /// Its price.
    pub price: i64,
    /// Lots that were left of it, hidden ones included.
    pub left: i64,
    /// Lots of it that were filled.
    pub filled: i64,
}

/// Lots that left a plain resting order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduced {
    pub(crate) user: UserHint,
    pub(crate) action: Action,
    pub(crate) size: i64,
    pub(crate) reserve_price: i64,
    pub(crate) completed: bool,
}

/// The events of one command, in order; a reusable buffer.
///
/// Keeps its memory: after the largest command so far, nothing is allocated.
#[derive(Clone, Debug, Default)]
pub struct Events {
    list: Vec<Event>,
    moved: Option<MovedOrder>,
    top_of_book: Option<TopOfBook>,
    tops_of_book: Vec<(SymbolId, TopOfBook)>,
    /// For settlement, the slot where the owner of each event's order may be kept; the default
    /// where no hint was given, and only as long as the list has room.
    hints: Vec<UserHint>,
    /// Orders, levels and books that the command visited without an event.
    visits: u32,
    /// Whether the end of an auction, or a price band, goes on in further commands.
    is_unfinished: bool,
    /// Whether levels are listed.
    has_levels: bool,
    /// The levels that the command may have changed.
    levels: Vec<LevelChange>,
}

impl PartialEq for Events {
    /// Hints are no part of what happened, and levels follow from it.
    fn eq(&self, other: &Self) -> bool {
        let beside = |of: &Self| (of.moved, of.top_of_book);
        self.list == other.list
            && beside(self) == beside(other)
            && self.tops_of_book == other.tops_of_book
    }
}

impl Eq for Events {}

impl Events {
    /// Returns an empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            list: Vec::new(),
            moved: None,
            top_of_book: None,
            tops_of_book: Vec::new(),
            hints: Vec::new(),
            visits: 0,
            is_unfinished: false,
            has_levels: false,
            levels: Vec::new(),
        }
    }

    /// Returns an empty buffer that lists levels if this one does.
    pub(crate) const fn empty(&self) -> Self {
        match self.has_levels {
            true => Self::new().with_levels(),
            false => Self::new(),
        }
    }

    /// Returns an empty buffer with room for `events` events.
    #[must_use]
    pub fn with_capacity(events: usize) -> Self {
        Self {
            list: Vec::with_capacity(events),
            hints: vec![UserHint::UNKNOWN; events],
            ..Self::new()
        }
    }

    /// Has [`apply`](crate::apply) and all that executes commands list the [levels](Self::levels)
    /// of each command from now on, as [`market::Builder`](crate::market::Builder) needs them.
    /// Cost a command: a few ns for each level.
    #[must_use]
    pub const fn with_levels(mut self) -> Self {
        self.has_levels = true;
        self
    }

    /// Returns whether each command's levels are listed.
    #[inline(always)]
    #[must_use]
    pub const fn has_levels(&self) -> bool {
        self.has_levels
    }

    /// Returns the price levels that the last command may have changed, each once and as it is
    /// after it; none where they [are not listed](Self::with_levels).
    ///
    /// A level may be as it was before. They are in the order in which they were first changed, or
    /// where stop orders were triggered, orders were removed, or an auction ended, sorted by
    /// symbol, side and price. A command that takes a whole book away, as `RemoveSymbol` and
    /// `Reset` do, lists none of its levels.
    #[must_use]
    pub fn levels(&self) -> &[LevelChange] {
        &self.levels
    }

    /// Notes a level that changes, of which no event gives the price. Its command must have called
    /// [`forget_levels`](Self::forget_levels).
    pub(crate) fn note_level(&mut self, level: LevelChange) {
        if self.has_levels && self.levels.last() != Some(&level) {
            self.levels.push(level);
        }
    }

    /// Forgets the levels of the command before.
    pub(crate) fn forget_levels(&mut self) {
        self.levels.clear();
    }

    /// Returns the events, the order before it was moved, and the levels.
    pub(crate) fn split_levels(
        &mut self,
    ) -> (&[Event], Option<&MovedOrder>, &mut Vec<LevelChange>) {
        (&self.list, self.moved.as_ref(), &mut self.levels)
    }

    /// Returns the events as a slice, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Event] {
        &self.list
    }

    /// Forgets the events, keeps the memory.
    pub fn clear(&mut self) {
        self.begin();
        self.forget_levels();
    }

    /// Forgets the events of the command before; its levels are forgotten when new ones are listed.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.list.clear();
        self.moved = None;
        self.top_of_book = None;
        self.tops_of_book.clear();
        self.visits = 0;
        self.is_unfinished = false;
    }

    /// Returns the work of the command: one, its events, and the orders, levels and books that it
    /// visited without an event. Rates and turns of a server are counted in it.
    #[must_use]
    pub const fn work(&self) -> u64 {
        1 + self.list.len() as u64 + self.visits as u64
    }

    /// Counts visits without an event.
    pub(crate) const fn add_visits(&mut self, visits: usize) {
        let visits = if visits < u32::MAX as usize {
            visits as u32
        } else {
            u32::MAX
        };
        self.visits = self.visits.saturating_add(visits);
    }

    /// Returns whether the end of an auction, or a price band, goes on in further commands.
    #[must_use]
    pub const fn is_unfinished(&self) -> bool {
        self.is_unfinished
    }

    pub(crate) const fn set_unfinished(&mut self, is_unfinished: bool) {
        self.is_unfinished = is_unfinished;
    }

    /// Returns the command's order before it was moved; only after a successful move.
    #[must_use]
    pub const fn moved(&self) -> Option<&MovedOrder> {
        self.moved.as_ref()
    }

    pub(crate) const fn set_moved(&mut self, moved: MovedOrder) {
        self.moved = Some(moved);
    }

    /// Returns the book's best prices; only after a successful order command in a futures symbol.
    #[must_use]
    pub const fn top_of_book(&self) -> Option<&TopOfBook> {
        self.top_of_book.as_ref()
    }

    pub(crate) const fn set_top_of_book(&mut self, top_of_book: TopOfBook) {
        self.top_of_book = Some(top_of_book);
    }

    /// Returns the best prices of the futures books from which a command that does not concern a
    /// single order removed orders.
    #[must_use]
    pub fn tops_of_book(&self) -> &[(SymbolId, TopOfBook)] {
        &self.tops_of_book
    }

    pub(crate) fn add_top_of_book(&mut self, symbol: SymbolId, top_of_book: TopOfBook) {
        self.tops_of_book.push((symbol, top_of_book));
    }

    /// Makes room for exactly `events` more events.
    pub(crate) fn reserve_exact(&mut self, events: usize) {
        self.list.reserve_exact(events);
        self.make_room_for_hints();
    }

    fn make_room_for_hints(&mut self) {
        self.hints.resize(self.list.capacity(), UserHint::UNKNOWN);
    }

    /// Notes where the owner of the next event's order is kept.
    #[inline(always)]
    pub(crate) fn hint_next(&mut self, user: UserHint) {
        if let Some(hint) = self.hints.get_mut(self.list.len()) {
            *hint = user;
        }
    }

    /// Returns the hints, by event; of some events there is none, or a wrong one.
    #[inline(always)]
    pub(crate) fn hints(&self) -> Hints<'_> {
        Hints(&self.hints)
    }

    /// Returns how many events it has memory for.
    #[inline(always)]
    pub(crate) const fn room(&self) -> usize {
        self.list.capacity()
    }

    /// Forgets the events of a buffer that has memory for more than `events`, and frees the memory
    /// above that.
    #[inline]
    pub(crate) fn keep_room_for(&mut self, events: usize) {
        // There is no top_of_book without an event, so those have no more memory.
        if self.list.capacity() > events {
            self.shrink(events);
        }
    }

    #[cold]
    #[inline(never)]
    fn shrink(&mut self, events: usize) {
        self.clear();
        self.list.shrink_to(events);
        self.hints.truncate(events);
        self.hints.shrink_to_fit();
        self.tops_of_book.shrink_to(events);
        self.levels.shrink_to(events);
    }

    /// Returns a copy of the events and of the order before it was moved, without how books stand.
    /// Allocates if there are events.
    pub(crate) fn copied(&self) -> Self {
        Self {
            list: self.list.clone(),
            moved: self.moved,
            ..Self::new()
        }
    }

    /// Adds an event at the end.
    pub fn push(&mut self, event: Event) {
        self.list.push(event);
    }

    /// Adds an event at the end, as [`push`](Self::push) does, but makes it in its place.
    #[inline(always)]
    pub(crate) fn push_with(&mut self, event: impl FnOnce() -> Event) {
        if self.list.len() == self.list.capacity() {
            self.push_and_grow(event());
        } else {
            self.list.push(event());
        }
    }

    #[cold]
    #[inline(never)]
    fn push_and_grow(&mut self, event: Event) {
        self.list.push(event);
        self.make_room_for_hints();
    }

    /// Adds an event where the event at `at` is, before it. Cost: moves the rest.
    pub(crate) fn insert(&mut self, at: usize, event: Event) {
        if let Some(hints) = self.hints.get_mut(at..=self.list.len()) {
            hints.rotate_right(1);
        }
        self.list.insert(at, event);
    }

    /// Takes out the event at `at`. Cost: moves the rest.
    pub(crate) fn remove(&mut self, at: usize) {
        self.list.remove(at);
    }
}

impl FromIterator<Event> for Events {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        Self {
            list: events.into_iter().collect(),
            ..Self::new()
        }
    }
}

impl Deref for Events {
    type Target = [Event];

    fn deref(&self) -> &[Event] {
        &self.list
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = &'a Event;
    type IntoIter = std::slice::Iter<'a, Event>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

// Price levels as a command left them.

/// A price level after a command that may have changed it; see
/// [`Events::with_levels`](super::Events::with_levels).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LevelChange {
    /// The symbol of the book.
    pub symbol: SymbolId,
    /// The side.
    pub side: Action,
    /// The price.
    pub price: i64,
    /// Lots that are displayed at this price; 0 where the level is gone.
    pub volume: i64,
    /// Orders that they belong to; 0 where the level is gone.
    pub orders: u64,
}

impl LevelChange {
    /// Returns a level that is not read from its book yet.
    pub(crate) const fn unread(symbol: SymbolId, side: Action, price: i64) -> Self {
        Self {
            symbol,
            side,
            price,
            volume: 0,
            orders: 0,
        }
    }

    /// Returns what the level is found by, in the order in which mass changes are listed.
    pub(crate) const fn key(&self) -> (SymbolId, Action, i64) {
        (self.symbol, self.side, self.price)
    }
}

// The trade as settlement gets it, before it is an event.

/// The slot where the risk check keeps an order's owner, as the risk check itself reported it when
/// the order was placed.
///
/// Saves a look-up and proves nothing: its user must check that the user in that slot is the one
/// whose id stands beside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserHint(pub(crate) u32);

impl UserHint {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self(u32::MAX);
}

/// The hints of a list of events, from its first on.
#[derive(Clone, Copy)]
pub(crate) struct Hints<'e>(pub(super) &'e [UserHint]);

impl Hints<'_> {
    /// The hints of a list of events without any.
    pub(crate) const NONE: Self = Self(&[]);

    /// Returns the hint of the event at `at`.
    #[inline(always)]
    pub(crate) fn at(self, at: usize) -> UserHint {
        self.0.get(at).copied().unwrap_or(UserHint::UNKNOWN)
    }

    /// Returns the hints of the events from `at` on.
    pub(crate) fn from(self, at: usize) -> Self {
        Self(self.0.get(at..).unwrap_or_default())
    }
}

/// The maker's side of a trade.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) price: i64,
    pub(crate) size: i64,
    pub(crate) uid: UserId,
    pub(crate) user: UserHint,
    pub(crate) reserve_price: i64,
    pub(crate) completed: bool,
}

// Why orders are rejected, and why they are removed.

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
    pub enum RemovalReason: u8;
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
