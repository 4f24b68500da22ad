//! The stage in front of the shards: executes what concerns several of them, while they rest.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg::pipeline::Flow;

use super::shards::{Shards, risk_shard};
use super::waits::{Counter, Waits};
use super::{Slot, Work};
use crate::command::{AccountSpec, Command};
use crate::event::{Event, Events};
use crate::ids::UserId;
use crate::matching::{Reach, put_in_order};
use crate::result_code::ResultCode;
use crate::risk::{Concern, Risk, share_of};

/// Lets most commands pass to their shards. One that must see several shards together waits until
/// everything before it is settled, and is executed here, before anything behind it is let through:
/// the stages behind have nothing to do with it but to pass it on.
#[derive(Debug)]
pub(super) struct Front {
    shards: Arc<Shards>,
    /// What all risk shards know of symbols; nothing where there is one only, which
    /// [looks after itself](super::ledger).
    symbols: Option<Risk>,
    /// Users with records in futures.
    holders: HashSet<UserId>,
    /// Everything below this number is settled or was executed here.
    alone_until: u64,
    counter: Counter,
    /// Gives the count of waits back at the end.
    returned: Arc<Mutex<Waits>>,
    parts: Vec<Events>,
}

impl Front {
    pub(super) fn new(shards: &Arc<Shards>, returned: &Arc<Mutex<Waits>>) -> Self {
        let is_sharded = shards.risk_shards() > 1;
        let mut holders = HashSet::new();
        for shard in 0..shards.risk_shards() {
            let ledger = shards.risk(shard);
            let users = ledger.risk().users();
            let holding = users.iter().filter(|user| !user.positions().is_empty());
            holders.extend(holding.map(|user| user.uid));
        }
        let symbols = is_sharded.then(|| shards.risk(0).risk().deserted());
        Self {
            shards: Arc::clone(shards),
            symbols,
            holders,
            alone_until: 0,
            counter: Counter::default(),
            returned: Arc::clone(returned),
            parts: Vec::new(),
        }
    }

    /// The stage.
    pub(super) fn pass(&mut self, slot: &mut Slot, sequence: u64) -> Flow {
        if slot.work == Work::Query {
            return self.answer(slot, sequence);
        }
        let concern = self.concern(&slot.command);
        if concern.is_none() {
            return Flow::Next;
        }
        if self.alone_until != sequence && !self.shards.are_settled(sequence) {
            self.counter.note(sequence, concern);
            return Flow::Retry;
        }
        slot.result = self.execute(&slot.command, &mut slot.events);
        slot.work = Work::Done;
        self.alone_until = sequence + 1;
        Flow::Next
    }

    /// Asks all shards, when everything before the query is settled.
    #[cold]
    fn answer(&mut self, slot: &mut Slot, sequence: u64) -> Flow {
        if self.alone_until != sequence && !self.shards.are_settled(sequence) {
            return Flow::Retry;
        }
        if let Some(inquiry) = slot.inquiry.upgrade() {
            for shard in 0..self.shards.risk_shards() {
                inquiry.ask_risk(self.shards.risk(shard).risk());
            }
            for shard in 0..self.shards.match_shards() {
                inquiry.ask_books(self.shards.books(shard).get());
            }
        }
        slot.work = Work::Answered;
        self.alone_until = sequence + 1;
        Flow::Next
    }

    /// A seeded fault: nothing is thought to be under way.
    #[cfg(test)]
    pub(super) const fn believe_alone(&mut self, sequence: u64) {
        self.alone_until = sequence;
    }

    fn concern(&self, command: &Command) -> Option<Concern> {
        let Some(symbols) = &self.symbols else {
            // The one risk shard sees to everything but what concerns several books.
            let every = Reach::of(command, self.shards.match_shards()) == Reach::Every;
            return every.then_some(Concern::Administration);
        };
        let holds = |uid| !self.holders.is_empty() && self.holders.contains(&uid);
        symbols.concern(command, holds)
    }

    fn execute(&mut self, command: &Command, events: &mut Events) -> ResultCode {
        let checked = self.check(command);
        let result = self.match_up(command, checked, events);
        for shard in 0..self.shards.risk_shards() {
            let mut ledger = self.shards.risk(shard);
            ledger.risk_mut().settle(command, result, events);
        }
        if let (Some(symbols), None) = (&mut self.symbols, command.uid()) {
            symbols.settle(command, result, events);
        }
        self.note_holders(command, events);
        result
    }

    fn check(&mut self, command: &Command) -> ResultCode {
        if self.symbols.is_none() {
            return self.shards.risk(0).risk_mut().check(command);
        }
        if let Command::AddAccounts(accounts) = command {
            return self.add_accounts(accounts);
        }
        if command.uid().is_some() {
            return self.check_alone(command);
        }
        // What changes all shards is accepted by all, or changes nothing where it is accepted.
        let mut answer = None;
        for shard in 0..self.shards.risk_shards() {
            let code = self.shards.risk(shard).risk_mut().check(command);
            let so_far = answer.get_or_insert(code);
            if code.is_refusal() && !so_far.is_refusal() {
                *so_far = code;
            }
        }
        if let Some(symbols) = &mut self.symbols {
            symbols.check(command);
        }
        answer.expect("there are several shards")
    }

    /// A command of one user, checked in the user's shard, which is told what the others know.
    fn check_alone(&mut self, command: &Command) -> ResultCode {
        let shards = &self.shards;
        let own = risk_shard(command, shards.risk_shards());
        let mut ledger = shards.risk(own);
        for shard in (0..shards.risk_shards()).filter(|&shard| shard != own) {
            let mut other = shards.risk(shard);
            ledger.risk_mut().gather(other.risk_mut(), command);
        }
        let code = ledger.risk_mut().check(command);
        if let Command::Balance { currency, .. } = *command {
            for shard in (0..shards.risk_shards()).filter(|&shard| shard != own) {
                let mut other = shards.risk(shard);
                ledger.risk().tell_whether_shaky(other.risk_mut(), currency);
            }
        }
        if let Some(symbols) = &mut self.symbols {
            symbols.learn(command, ledger.risk());
        }
        code
    }

    /// Refused as a whole, or each account added in its user's shard.
    fn add_accounts(&self, accounts: &[AccountSpec]) -> ResultCode {
        let count = self.shards.risk_shards();
        let mut seen = BTreeSet::new();
        let is_new = |account: &&AccountSpec| {
            let ledger = self.shards.risk(share_of(account.uid, count));
            seen.insert(account.uid) && ledger.risk().user(account.uid).is_none()
        };
        let new: Vec<AccountSpec> = accounts.iter().filter(is_new).cloned().collect();
        let mut fits = Ok(());
        for own in 0..count {
            let mut ledger = self.shards.risk(own);
            for shard in (0..count).filter(|&shard| shard != own) {
                let mut other = self.shards.risk(shard);
                ledger.risk_mut().gather_all(other.risk_mut());
            }
            if own == 0 {
                fits = ledger.risk().has_room_for(&new);
            }
            if let Err(code) = fits {
                return code;
            }
            let of_share = |account: &&AccountSpec| share_of(account.uid, count) == own;
            let part = new.iter().filter(of_share).cloned().collect();
            let code = ledger.risk_mut().check(&Command::AddAccounts(part));
            debug_assert_eq!(code, ResultCode::Success, "the whole batch has room");
        }
        ResultCode::Success
    }

    fn match_up(
        &mut self,
        command: &Command,
        checked: ResultCode,
        events: &mut Events,
    ) -> ResultCode {
        let count = self.shards.match_shards();
        if let Reach::Shard(shard) = Reach::of(command, count) {
            let mut books = self.shards.books(shard);
            return books.get().execute(command, checked, events);
        }
        self.parts.resize_with(count, Events::new);
        let mut result = checked;
        for (shard, part) in self.parts.iter_mut().enumerate() {
            let mut books = self.shards.books(shard);
            let here = (shard, count);
            result = books.get().execute_part(command, here, checked, part);
        }
        put_in_order(&self.parts, events);
        result
    }

    /// Looks again at whoever the command may have given a record in futures, or taken it from.
    fn note_holders(&mut self, command: &Command, events: &Events) {
        if self.symbols.is_none() {
            return;
        }
        if *command == Command::Reset {
            self.holders.clear();
        }
        if let Some(uid) = command.uid() {
            self.note_holder(uid);
        }
        for event in events {
            match *event {
                Event::Trade { maker_uid: uid, .. }
                | Event::Removed { uid, .. }
                | Event::Triggered { uid, .. }
                | Event::Uncrossed { uid, .. } => self.note_holder(uid),
                Event::Reject { .. } | Event::Reduce { .. } | Event::Refilled { .. } => {}
            }
        }
    }

    fn note_holder(&mut self, uid: UserId) {
        let ledger = self.shards.risk(share_of(uid, self.shards.risk_shards()));
        let user = ledger.risk().user(uid);
        if user.is_some_and(|user| !user.positions().is_empty()) {
            self.holders.insert(uid);
        } else if !self.holders.is_empty() {
            self.holders.remove(&uid);
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let returned = self.returned.lock();
        *returned.unwrap_or_else(PoisonError::into_inner) += self.counter.waits();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Action, Place};
    use crate::command::{SymbolSpec, SymbolType};
    use crate::engine::state::State;
    use crate::ids::{CurrencyId, OrderId, SymbolId};

    const MONEY: CurrencyId = CurrencyId(7);
    const SYMBOL: SymbolId = SymbolId(1);

    fn order(uid: i64, action: Action, price: i64) -> Command {
        Command::Place(Place::limit(
            (UserId(uid), OrderId(price)),
            SYMBOL,
            action,
            (price, 1),
        ))
    }

    fn payment(uid: i64, transaction_id: i64) -> Command {
        Command::deposit(UserId(uid), MONEY, 1_000, transaction_id)
    }

    fn band(high: i64) -> Command {
        Command::set_price_band(SYMBOL, 1, high)
    }

    #[test]
    fn one_payment_after_a_moved_band_looks_for_those_who_are_short() {
        let shards = Arc::new(Shards::new(State::default(), 4, 1));
        let mut front = Front::new(&shards, &Arc::default());
        let mut events = Events::new();
        let mut done = |command| {
            let result = front.execute(&command, &mut events);
            assert_eq!(result, ResultCode::Success, "{command:?}");
        };
        let shaky = || {
            let is_shaky = |&shard: &usize| shards.risk(shard).risk().is_shaky(MONEY);
            (0..4).filter(is_shaky).count()
        };
        let spec = SymbolSpec {
            id: SYMBOL,
            symbol_type: SymbolType::Futures,
            quote_currency: MONEY,
            base_scale: 1,
            quote_scale: 1,
            ..SymbolSpec::default()
        };
        done(Command::AddSymbols([spec].into()));
        done(band(100));
        for uid in 1..9 {
            done(Command::AddUser { uid: UserId(uid) });
            done(payment(uid, 1));
        }
        // User 1 wins what user 2 loses.
        for (buyer, seller, price) in [(1, 2, 10), (2, 1, 90)] {
            done(order(buyer, Action::Bid, price));
            done(order(seller, Action::Ask, price));
        }
        assert_eq!(shaky(), 0, "no band was moved yet");
        done(band(110));
        done(payment(3, 2));
        assert_eq!(shaky(), 4, "who has won nothing is paid nothing");
        done(payment(1, 2));
        assert_eq!(shaky(), 0);
    }
}
