//! The whole exchange, and the one function that changes it.
//!
//! *The fast path* does common commands in one go: check, execution and settlement. A command that
//! is done there is done whole, and comes to what the three parts come to one after another. A
//! command that needs the slow path is left alone, nothing of it done, and goes through the three
//! parts; an order that trades does so from the first maker on that needs it. A symbol is found
//! once, and the risk side and the book are asked for nothing that such a command does not need.
//!
//! *The levels that a command changed* follow from the command and its events: the price of each
//! maker, of each order that was removed or reduced, the price from which an order was moved, and
//! the price at which the command's order or a triggered stop order rests. Only the makers of an
//! auction have events without their own price: [`Events::note_level`] has them.

use crate::command::{Action, Command, Place};
use crate::engine::level_list::list_levels;
use crate::event::{Events, Made, UserHint};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::matching::{Matching, PrefetchGroup};
use crate::result_code::ResultCode;
use crate::risk::Risk;
use crate::rules::Rules;

/// The state of the exchange.
#[derive(Clone, Debug)]
pub struct State {
    /// Users, balances, symbols, fees: for the risk check and settlement.
    pub risk: Risk,
    /// Order books.
    pub matching: Matching,
}

impl State {
    /// Returns an empty exchange under these rules.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self {
            risk: Risk::new(rules),
            matching: Matching::new(rules),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new(Rules::default())
    }
}

/// Executes one command: checks it, matches it, settles it. Fills `events` (cleared first).
///
/// Never fails: a command that cannot be done is refused by its result, and changes nothing.
///
/// ```
/// use thalweg_exchange::{Command, Events, ResultCode, State, UserId, apply};
///
/// let mut state = State::default();
/// let mut events = Events::new();
/// let command = Command::AddUser { uid: UserId(7) };
/// assert_eq!(apply(&mut state, &command, &mut events), ResultCode::Success);
/// let again = apply(&mut state, &command, &mut events);
/// assert_eq!((again, events.len()), (ResultCode::UserMgmtUserAlreadyExists, 0));
/// ```
#[inline(always)]
pub fn apply(state: &mut State, command: &Command, events: &mut Events) -> ResultCode {
    if events.has_levels() {
        return state.apply_listed(command, events);
    }
    state.apply(command, events)
}

/// Executes all that earlier commands have [left over](State::left_over), and calls `on_outcome`
/// with each command that does, its result and its events.
///
/// ```
/// use thalweg_exchange::{Command, Events, State, apply, apply_left_over};
///
/// let (mut state, mut events) = (State::default(), Events::new());
/// apply(&mut state, &Command::cancel_all(None, None), &mut events);
/// apply_left_over(&mut state, &mut events, |_, _, _| panic!("nothing is left over"));
/// ```
pub fn apply_left_over(
    state: &mut State,
    events: &mut Events,
    mut on_outcome: impl FnMut(&Command, ResultCode, &Events),
) {
    while let Some(command) = state.left_over() {
        let result = apply(state, &command, events);
        on_outcome(&command, result, events);
    }
}

/// Executes one command as [`apply`] does, and calls `end_of_part` when it was checked, when it was
/// matched, and when it was settled. Cost: that of the slow path of [`apply`].
///
/// ```
/// use thalweg_exchange::{Command, Events, State, UserId, apply_in_parts};
///
/// let (mut state, mut events, mut parts) = (State::default(), Events::new(), 0);
/// let command = Command::AddUser { uid: UserId(7) };
/// apply_in_parts(&mut state, &command, &mut events, || parts += 1);
/// assert_eq!(parts, 3);
/// ```
#[inline(always)]
pub fn apply_in_parts(
    state: &mut State,
    command: &Command,
    events: &mut Events,
    end_of_part: impl FnMut(),
) -> ResultCode {
    let result = state.apply_in_parts(command, events, end_of_part);
    if events.has_levels() {
        list_levels(&state.matching, command, result, events);
    }
    result
}

/// The largest part of a batch over which a book is taken to stay as large as it was.
pub(crate) const PART: usize = 4096;

/// Executes commands one after another, as [`apply`] does each, and calls `on_outcome`
/// with every outcome: the command's place in `commands`, its result and its events.
///
/// Results and state are those of [`apply`]. Where books or users are too many for the near caches,
/// the memory of later commands is asked for while earlier ones are executed, which makes a command
/// on a million resting orders several times as fast; where they are not, it costs nothing.
///
/// ```
/// use thalweg_exchange::{Command, Events, ResultCode, State, UserId, apply_batch};
///
/// let mut state = State::default();
/// let commands = [1, 2, 3].map(|uid| Command::AddUser { uid: UserId(uid) });
/// let mut done = 0;
/// apply_batch(&mut state, &commands, &mut Events::new(), |_, result, _| {
///     done += usize::from(result == ResultCode::Success);
/// });
/// assert_eq!(done, 3);
/// ```
pub fn apply_batch(
    state: &mut State,
    commands: &[Command],
    events: &mut Events,
    mut on_outcome: impl FnMut(usize, ResultCode, &Events),
) {
    let mut first = 0;
    for part in commands.chunks(PART) {
        if state.matching.is_large(part) || state.risk.is_large() {
            let mut targets = PrefetchGroup::default();
            let mut at = first;
            for group in part.chunks(PrefetchGroup::COMMANDS_MAX) {
                state.prefetch(group, &mut targets);
                for command in group {
                    let result = apply(state, command, events);
                    on_outcome(at, result, events);
                    at += 1;
                }
            }
        } else {
            for (at, command) in part.iter().enumerate() {
                let result = apply(state, command, events);
                on_outcome(first + at, result, events);
            }
        }
        first += part.len();
    }
}

impl State {
    /// Returns the command that goes on with what earlier ones have left over, which had as many
    /// events as one may: a mass cancel, the end of an auction, a price band of futures, orders
    /// that have expired, or stop orders that were triggered. The owner of the state applies it
    /// before long, and asks again. `None` where nothing is left, or only in symbols that are
    /// halted or in an auction. Cost: a few steps in trees.
    #[must_use]
    pub fn left_over(&self) -> Option<Command> {
        let Self { risk, matching } = self;
        if let Some(symbol) = matching.cancelling().next() {
            return Some(Command::cancel_all(None, Some(symbol)));
        }
        let unfinished = matching.unfinished();
        if let Some(command) = unfinished.and_then(|symbol| risk.next_step(symbol)) {
            return Some(command);
        }
        let stops = matching.left_over();
        let stops = stops.map(|symbol| Command::RunStops { symbol });
        stops.or_else(|| matching.expired_by().map(|time| Command::Clock { time }))
    }

    /// Returns whether something is [left over](Self::left_over).
    #[inline(always)]
    pub(crate) fn may_go_on(&self) -> bool {
        self.matching.may_go_on()
    }

    /// Prefetches what these commands will need.
    #[inline(never)]
    fn prefetch(&self, commands: &[Command], targets: &mut PrefetchGroup) {
        (commands.iter()).for_each(|command| self.prefetch_one(command, targets));
        targets.prefetch(&self.matching);
    }

    /// Adds what a command will need of the books to `targets`, and prefetches the rest.
    #[inline(always)]
    pub(crate) fn prefetch_one(&self, command: &Command, targets: &mut PrefetchGroup) {
        targets.add(&self.matching, command);
        self.risk.prefetch(command);
    }

    #[inline(always)]
    fn apply(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        // Most commands are moves.
        if matches!(command, Command::Move { .. }) {
            return self.move_order(command, events);
        }
        self.apply_but_moves(command, events)
    }

    #[inline(always)]
    fn move_order(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        match self.move_in_pair(command, events) {
            Some(()) => ResultCode::Success,
            None => self.move_slow(command, events),
        }
    }

    #[inline(always)]
    fn move_in_pair(&mut self, command: &Command, events: &mut Events) -> Option<()> {
        let Command::Move {
            uid,
            symbol,
            order_id,
            price,
        } = *command
        else {
            return None;
        };
        let pair = self.risk.pair(symbol)?;
        if !pair.takes_moves_to(price) {
            return None;
        }
        let (book, _) = self.matching.book_near(pair.slot(), symbol)?;
        let moved = book.shift::<true>((uid, order_id), price)?;
        events.begin();
        events.set_moved(moved);
        Some(())
    }

    #[inline(never)]
    fn move_slow(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        match self.move_in_futures(command, events) {
            Some(()) => ResultCode::Success,
            None => self.apply_slow(command, events),
        }
    }

    #[inline(always)]
    fn move_in_futures(&mut self, command: &Command, events: &mut Events) -> Option<()> {
        let Command::Move {
            uid,
            symbol,
            order_id,
            price,
        } = *command
        else {
            return None;
        };
        let slot = self.risk.passes_move_in_futures(uid, symbol, price)?;
        let (book, _) = self.matching.book_near(slot, symbol)?;
        let moved = book.shift::<false>((uid, order_id), price)?;
        let top = book.top_of_book();
        events.begin();
        events.set_moved(moved);
        events.set_top_of_book(top);
        if !self.risk.settle_move_fast(slot, (price, &moved), &top) {
            self.risk.settle_slow(command, ResultCode::Success, events);
        }
        Some(())
    }

    /// Executes every command but a move.
    #[inline(never)]
    fn apply_but_moves(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        match command {
            Command::Place(place) => self.place(place, events),
            Command::Cancel { .. } => self.cancel(command, events),
            Command::Reduce { .. } => self.reduce(command, events),
            _ => self.apply_slow(command, events),
        }
    }

    /// Executes a new order without conditions.
    #[inline(never)]
    fn place(&mut self, place: &Place, events: &mut Events) -> ResultCode {
        let Some(mut pair) = self.risk.pair(place.symbol) else {
            return self.apply_slow(&Command::Place(*place), events);
        };
        let slot = pair.slot();
        let Some(user) = pair.hold(place) else {
            return self.place_slow(place, events);
        };
        self.place_accepted(place, (slot, user), events)
    }

    #[inline(always)]
    fn place_accepted(
        &mut self,
        place: &Place,
        (slot, user): (u32, UserHint),
        events: &mut Events,
    ) -> ResultCode {
        events.begin();
        let Some((book, _)) = self.matching.book_near(slot, place.symbol) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        if book.rest_at_once(place, user) {
            return ResultCode::Success;
        }
        self.place_on(place, (slot, user), events)
    }

    /// Executes an order that was accepted, and does not rest at once.
    #[inline(never)]
    fn place_on(
        &mut self,
        place: &Place,
        (slot, user): (u32, UserHint),
        events: &mut Events,
    ) -> ResultCode {
        if !place.takes_plainly() {
            return self.place_in_parts(place, (slot, user), events);
        }
        match place.action {
            Action::Ask => self.cross::<false>(place, (slot, user), events),
            Action::Bid => self.cross::<true>(place, (slot, user), events),
        }
    }

    #[inline(never)]
    fn place_in_parts(
        &mut self,
        place: &Place,
        (slot, user): (u32, UserHint),
        events: &mut Events,
    ) -> ResultCode {
        let Some((book, rules)) = self.matching.book_near(slot, place.symbol) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        let result = book.place_slow(place, user, rules, events);
        if book.has_left_over() || self.matching.may_go_on() {
            self.matching.note_left_over(place.symbol);
        }
        self.risk.settle_place(place, result, events);
        result
    }

    /// An order without conditions that takes up to its price: trades are booked as they happen.
    #[inline(never)]
    fn cross<const BUYS: bool>(
        &mut self,
        place: &Place,
        (slot, user): (u32, UserHint),
        events: &mut Events,
    ) -> ResultCode {
        let mut crossing = self.risk.crossing(slot);
        let Some((book, rules)) = self.matching.book_near(slot, place.symbol) else {
            return ResultCode::MatchingInvalidOrderBookId;
        };
        let pays = |made: Made| crossing.pays::<BUYS>(made);
        let Some(crossed) = book.cross::<BUYS>(place, rules, events, pays) else {
            return self.place_in_parts(place, (slot, user), events);
        };
        let booked = crossing.booked(place, crossed.left, events);
        let (result, is_left_over) = if crossed.left == 0 {
            let is_left_over = book.run_stops(0, rules, events);
            (ResultCode::Success, is_left_over)
        } else {
            let result = book.end_crossing((place, user), crossed, rules, events);
            (result, book.has_left_over())
        };
        if is_left_over || self.matching.may_go_on() {
            self.matching.note_left_over(place.symbol);
        }
        let is_done = crossing.end::<BUYS>((place, user), &booked, events);
        if is_done.is_none() {
            self.risk.settle_crossed(place, (result, events), &booked);
        }
        result
    }

    #[inline(never)]
    fn place_slow(&mut self, place: &Place, events: &mut Events) -> ResultCode {
        let (checked, user) = self.risk.check_unheld(place);
        if checked == ResultCode::ValidForMatchingEngine
            && let Some(slot) = self
                .risk
                .pair(place.symbol)
                .and_then(|pair| pair.simple_slot())
        {
            return self.place_accepted(place, (slot, user), events);
        }
        events.begin();
        let result = self.matching.place(place, checked, user, events);
        events.add_visits(self.risk.visits(Some(place.uid)));
        self.risk.settle_place(place, result, events);
        result
    }

    #[inline(never)]
    fn cancel(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        if let Command::Cancel {
            uid,
            symbol,
            order_id,
        } = *command
            && let Some(()) = self.take_off((uid, symbol), (order_id, i64::MAX), events)
        {
            return ResultCode::Success;
        }
        self.reduce_slow(command, events)
    }

    #[inline(never)]
    fn reduce(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        if let Command::Reduce {
            uid,
            symbol,
            order_id,
            by,
        } = *command
            && by > 0
            && let Some(()) = self.take_off((uid, symbol), (order_id, by), events)
        {
            return ResultCode::Success;
        }
        self.reduce_slow(command, events)
    }

    #[inline(never)]
    fn reduce_slow(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let (owner, (order_id, by)) = match *command {
            Command::Cancel {
                uid,
                symbol,
                order_id,
            } => ((uid, symbol), (order_id, i64::MAX)),
            Command::Reduce {
                uid,
                symbol,
                order_id,
                by,
            } if by > 0 => ((uid, symbol), (order_id, by)),
            _ => return self.apply_slow(command, events),
        };
        match self.take_off_in_futures(owner, (order_id, by), command, events) {
            Some(()) => ResultCode::Success,
            None => self.apply_slow(command, events),
        }
    }

    /// Such a command passes every check.
    #[inline(always)]
    fn take_off_in_futures(
        &mut self,
        (uid, symbol): (UserId, SymbolId),
        (order_id, lots): (OrderId, i64),
        command: &Command,
        events: &mut Events,
    ) -> Option<()> {
        let slot = self.risk.pair(symbol)?.slot();
        let (book, _) = self.matching.book_near(slot, symbol)?;
        // In an auction there may be more to note.
        if !book.is_futures() || book.is_auction() {
            return None;
        }
        let (found, reduced) = book.reducible((uid, order_id), lots)?;
        events.begin();
        book.take_off(found, &reduced, events);
        let top = book.top_of_book();
        events.set_top_of_book(top);
        let position = (uid, symbol);
        if !(self.risk).reduce_in_futures(position, &top, (events, reduced.user)) {
            self.risk.settle_slow(command, ResultCode::Success, events);
        }
        Some(())
    }

    #[inline(always)]
    fn take_off(
        &mut self,
        (uid, symbol): (UserId, SymbolId),
        (order_id, lots): (OrderId, i64),
        events: &mut Events,
    ) -> Option<()> {
        let mut pair = self.risk.pair(symbol)?;
        if !pair.gives_back() {
            return None;
        }
        let (book, _) = self.matching.book_near(pair.slot(), symbol)?;
        let (found, reduced) = book.reducible((uid, order_id), lots)?;
        pair.give_back(uid, &reduced)?;
        events.begin();
        book.take_off(found, &reduced, events);
        Some(())
    }

    /// Executes a command part by part.
    #[inline(never)]
    fn apply_slow(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        self.apply_in_parts(command, events, || {})
    }

    /// Checks a command, matches it and settles it, and calls `end_of_part` after each.
    #[inline(always)]
    fn apply_in_parts(
        &mut self,
        command: &Command,
        events: &mut Events,
        mut end_of_part: impl FnMut(),
    ) -> ResultCode {
        let (checked, user) = self.risk.check_hinted(command);
        end_of_part();
        let result = self.matching.execute_for(command, checked, user, events);
        events.add_visits(self.risk.visits(command.uid()));
        end_of_part();
        self.risk.settle(command, result, events);
        end_of_part();
        result
    }

    /// Executes a command, and lists its levels.
    #[inline(never)]
    fn apply_listed(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let result = self.apply(command, events);
        list_levels(&self.matching, command, result, events);
        result
    }
}

#[cfg(test)]
mod tests;
