//! The drop copy: all market data, execution reports and administrators' commands in one order, for
//! a gateway in the same process.
//!
//! The publisher appends on the exchange's thread and never waits. The reader takes some [`PIECE`]
//! entries at a time, so that it never has much to make durable before it shows the first. At most
//! [`ENTRIES_MAX`] entries wait to be taken: beyond that messages and reports are dropped, and once
//! the reader has taken what is left it gets [`DropCopyEvent::Restart`] and the books anew, some at
//! a time, also while no commands come: the exchange's thread sees to that. Administrators'
//! commands are kept in short: see [`DropCopyEvent::Admin`]. Reports that were dropped can be had
//! from [`Reports`](thalweg_exchange::durable::Reports), by their numbers.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, MutexGuard};

use thalweg_exchange::codec::session::OpenOrder;
use thalweg_exchange::durable::Executed;
use thalweg_exchange::execution::ExecutionReport;
use thalweg_exchange::market::{Builder, Channels, Epoch, Message, Snapshot};
use thalweg_exchange::risk::TradingLimits;
use thalweg_exchange::service::{Answered, QueryReply};
use thalweg_exchange::session::ReportNumber;
use thalweg_exchange::{Command, ResultCode, State, SymbolId, SymbolSpec, UserId};
use tokio::sync::Notify;

use crate::lock;
use crate::open_order_queries::{LISTED_MAX, OpenOrderQuery};

/// Entries that wait for the reader, of some 100 bytes each.
const ENTRIES_MAX: usize = 1 << 18;
/// Entries that the reader takes together, and the rest of the last one's command.
const PIECE: usize = 1 << 12;
/// Levels of books that are copied in a hand-over, after which no further book is.
const LEVELS_TOGETHER: usize = 1 << 12;

/// One entry of a drop copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum DropCopyEvent {
    /// Entries were dropped, or this is the first: [books](Self::Book) of all symbols follow,
    /// perhaps between other commands, and [`Restarted`](Self::Restarted).
    Restart,
    /// All books came since the [restart](Self::Restart): symbols without one are gone.
    Restarted,
    /// A symbol that is there when the exchange is opened.
    Symbol(Box<(SymbolSpec, TradingLimits)>),
    /// The book of a symbol, from which messages go on.
    Book(Box<Snapshot>),
    /// Market data of the command whose [end](Self::End) comes next.
    Message(Message),
    /// An execution report of that command, with its number among those of its owner.
    Report(ReportNumber, ExecutionReport),
    /// Trades that come next are of an auction, until its end or the report of a triggered order.
    Auction,
    /// The open orders of a user, between two commands, for
    /// [`ask_open_orders`](crate::ExchangeHandle::ask_open_orders).
    /// None comes while entries are dropped: the reader asks again after a
    /// [restart](Self::Restart).
    OpenOrders(Box<OpenOrdersOf>),
    /// The command, if it succeeded and is no order of a user. For a reader that was behind,
    /// deposits and withdrawals of one user in one currency come as one with their sum, and of
    /// commands of one sort about one symbol the last comes alone. Symbols that the exchange had
    /// before are left out of those that are added. The flag says whether further commands go on
    /// with the end of an auction or a price band.
    Admin(Box<Command>, bool),
    /// The note that the gateway of another replica has of an order, whose reports come next.
    Noted(Box<[u8]>),
    /// The commands that come next are written to a command log under this claim, by this server
    /// or another one; 0 before the claim is known. There is none on one machine.
    Claimed {
        /// The number of the claim.
        epoch: u64,
        /// Whether this server takes commands.
        leads: bool,
    },
    /// The command with this number is complete. Commands without other entries have none, but the
    /// last one before the reader is woken.
    End(u64),
}

/// The open orders of a user at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOrdersOf {
    /// The owner.
    pub user: UserId,
    /// The token of the question.
    pub token: u64,
    /// The number of the next command then: those before it are executed, and what they reported
    /// came before this in the drop copy.
    pub number: u64,
    /// Orders that rest, then stop orders that wait.
    pub orders: Vec<OpenOrder>,
    /// Whether there are more than the server gives.
    pub is_cut: bool,
}

#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<DropCopyEvent>,
    /// Entries that the reader has, and has not given out.
    taken: usize,
    is_closed: bool,
    is_abandoned: bool,
}

impl Queue {
    fn waiting(&self) -> usize {
        self.entries.len() + self.taken
    }
}

#[derive(Debug, Default)]
struct Inner {
    queue: Mutex<Queue>,
    filled: Notify,
}

impl Inner {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

/// The reader's end.
#[derive(Debug)]
pub struct DropCopy {
    inner: Arc<Inner>,
    /// Entries that were taken from the queue together, and are given out in pieces.
    taken: VecDeque<DropCopyEvent>,
}

impl DropCopy {
    /// Waits for entries and puts some of them into `entries`, whose content is dropped: 4,096, and
    /// those that follow up to the next [end](DropCopyEvent::End) of a command. Returns false when
    /// the exchange is closed and all was taken. Safe to cancel.
    pub async fn next(&mut self, entries: &mut Vec<DropCopyEvent>) -> bool {
        entries.clear();
        loop {
            {
                let mut queue = self.inner.queue();
                if self.taken.is_empty() {
                    std::mem::swap(&mut queue.entries, &mut self.taken);
                }
                // Entries that were given out before count until now.
                queue.taken = self.taken.len();
                if self.taken.is_empty() && queue.is_closed {
                    return false;
                }
            }
            if !self.taken.is_empty() {
                let behind = self.taken.iter().skip(PIECE - 1);
                let to_end = behind.take_while(|entry| !matches!(entry, DropCopyEvent::End(_)));
                let length = (PIECE + to_end.count()).min(self.taken.len());
                entries.extend(self.taken.drain(..length));
                return true;
            }
            self.inner.filled.notified().await;
        }
    }
}

impl Drop for DropCopy {
    fn drop(&mut self) {
        let mut queue = self.inner.queue();
        (queue.entries, queue.taken) = (VecDeque::new(), 0);
        queue.is_abandoned = true;
    }
}

/// The publisher's end, which the exchange's thread has too.
pub(crate) type SharedWriter = Arc<Mutex<CopyWriter>>;

/// Returns the writer, where there is one. Both that have it are on one thread.
pub(crate) fn writer(shared: Option<&SharedWriter>) -> Option<MutexGuard<'_, CopyWriter>> {
    shared.map(|writer| lock(writer))
}

/// See [`SharedWriter`].
#[derive(Debug)]
pub(crate) struct CopyWriter {
    inner: Arc<Inner>,
    epoch: Epoch,
    /// `None` before the exchange is open, and once the copy has ended.
    builder: Option<Box<Builder>>,
    symbols: BTreeSet<SymbolId>,
    /// Those whose books are to come after a restart; their messages are left out until then.
    unsent: BTreeSet<SymbolId>,
    is_restarting: bool,
    /// Entries since the last hand-over.
    entries: VecDeque<DropCopyEvent>,
    /// Commands for a reader that is behind: those of a topic as one, with its place.
    short: HashMap<Topic, (u64, Command, bool)>,
    shortened: u64,
    next_command: u64,
    /// The note of the next outcome's command.
    note: Option<Box<[u8]>>,
    /// The last command whose end is in the queue, and one more.
    ended: u64,
    is_behind: bool,
    is_half_full: bool,
}

/// Makes both ends.
pub(crate) fn new(epoch: Epoch) -> (CopyWriter, DropCopy) {
    let inner = Arc::<Inner>::default();
    let writer = CopyWriter {
        inner: Arc::clone(&inner),
        epoch,
        builder: None,
        symbols: BTreeSet::new(),
        unsent: BTreeSet::new(),
        is_restarting: false,
        entries: VecDeque::new(),
        short: HashMap::new(),
        shortened: 0,
        next_command: 0,
        note: None,
        ended: 0,
        is_behind: true,
        is_half_full: false,
    };
    let taken = VecDeque::new();
    (writer, DropCopy { inner, taken })
}

impl CopyWriter {
    /// Begins with the state of the exchange as it was opened.
    pub(crate) fn start(&mut self, state: &State, next_command: u64) {
        self.next_command = next_command;
        for book in state.matching.books() {
            let spec = *book.spec();
            let limits = state.risk.limits(spec.id).unwrap_or(TradingLimits::NONE);
            self.symbols.insert(spec.id);
            self.entries
                .push_back(DropCopyEvent::Symbol(Box::new((spec, limits))));
        }
        let builder = Builder::from_books(&state.matching, self.epoch, Channels::default());
        self.builder = Some(Box::new(builder));
        // Nothing else waits for this thread yet.
        self.restart();
        self.copy_books(usize::MAX);
        self.hand_over();
    }

    /// Takes a claim of the command log: it is kept for a reader that is behind as well.
    pub(crate) fn claimed(&mut self, epoch: u64, leads: bool) {
        if self.builder.is_some() {
            self.entries
                .push_back(DropCopyEvent::Claimed { epoch, leads });
        }
    }

    /// Takes the note of the next outcome's command.
    pub(crate) fn noted(&mut self, note: &[u8]) {
        self.note = Some(note.into());
    }

    /// Takes the next outcome in.
    pub(crate) fn take(&mut self, executed: &Executed<'_>) {
        let outcome = &executed.outcome;
        let (number, command, result) = (outcome.sequence, outcome.command, outcome.result);
        self.next_command = number + 1;
        let note = self.note.take().filter(|_| !executed.reports.is_empty());
        let Some(builder) = &mut self.builder else {
            return;
        };
        builder.set_silent(self.is_behind);
        let messages = match builder.apply(number, command, result, outcome.events) {
            Ok(messages) => messages,
            Err(error) => {
                tracing::error!(%error, "the gateway ends: it gets no market data any more");
                self.close();
                return;
            }
        };
        let before = self.entries.len();
        if !self.is_behind {
            if matches!(command, Command::Uncross { .. }) {
                self.entries.push_back(DropCopyEvent::Auction);
            }
            let unsent = &self.unsent;
            let sent = messages.iter().filter(|m| !unsent.contains(&m.symbol));
            self.entries
                .extend(sent.map(|m| DropCopyEvent::Message(*m)));
            self.entries.extend(note.map(DropCopyEvent::Noted));
            let reports = executed.reports.iter();
            let reports = reports.map(|one| DropCopyEvent::Report(one.number, one.report()));
            self.entries.extend(reports);
        }
        if result == ResultCode::Success
            && is_administrative(command)
            && let Some(command) = self.without_known(command)
        {
            self.note_symbols(&command);
            let goes_on = outcome.events.is_unfinished();
            match self.is_behind {
                true => self.keep_short(&command, goes_on),
                false => self
                    .entries
                    .push_back(DropCopyEvent::Admin(Box::new(command), goes_on)),
            }
        }
        if self.entries.len() > before && !self.is_behind {
            self.entries.push_back(DropCopyEvent::End(number));
            self.ended = number + 1;
        }
        if self.entries.len() > ENTRIES_MAX && !self.is_behind {
            self.fall_behind();
        }
    }

    /// Takes the open orders of a user as they are after the last outcome.
    pub(crate) fn list(&mut self, (user, token): OpenOrderQuery, answered: &Answered) {
        if self.is_behind {
            return;
        }
        let mut orders = match &answered.answer {
            QueryReply::OpenOrders(orders) => OpenOrder::all(orders),
            _ => Vec::new(),
        };
        let is_cut = orders.len() > LISTED_MAX;
        orders.truncate(LISTED_MAX);
        self.entries
            .push_back(DropCopyEvent::OpenOrders(Box::new(OpenOrdersOf {
                user,
                token,
                number: answered.sequence,
                orders,
                is_cut,
            })));
    }

    /// Returns a command without the symbols to add that are there already, which stay as they are.
    /// `None` where nothing is left.
    fn without_known(&self, command: &Command) -> Option<Command> {
        let Command::AddSymbols(specs) = command else {
            return Some(command.clone());
        };
        let mut seen = BTreeSet::new();
        let mut is_new = |id| !self.symbols.contains(&id) && seen.insert(id);
        let new: Vec<SymbolSpec> = specs.iter().copied().filter(|s| is_new(s.id)).collect();
        (!new.is_empty()).then(|| Command::AddSymbols(new.into()))
    }

    fn note_symbols(&mut self, command: &Command) {
        match command {
            Command::AddSymbols(specs) => {
                let ids = specs.iter().map(|spec| spec.id);
                self.symbols.extend(ids.clone());
                if self.is_restarting {
                    // It may be one of before.
                    self.unsent.extend(ids);
                }
            }
            Command::RemoveSymbol { symbol } => {
                self.symbols.remove(symbol);
                self.unsent.remove(symbol);
            }
            Command::Reset => {
                self.symbols.clear();
                self.unsent.clear();
            }
            _ => {}
        }
    }

    /// Drops all but the administrators' commands.
    fn fall_behind(&mut self) {
        self.is_behind = true;
        self.is_restarting = false;
        self.unsent.clear();
        for entry in std::mem::take(&mut self.entries) {
            match entry {
                DropCopyEvent::Admin(command, goes_on) => self.keep_short(&command, goes_on),
                DropCopyEvent::Symbol(_) | DropCopyEvent::Claimed { .. } => {
                    self.entries.push_back(entry)
                }
                _ => {}
            }
        }
    }

    /// Keeps a command for a reader that is behind, in place of those that it makes superfluous.
    fn keep_short(&mut self, command: &Command, goes_on: bool) {
        if let Command::AddSymbols(specs) = command
            && specs.len() > 1
        {
            let each = specs.iter();
            return each.for_each(|spec| {
                self.keep_short(&Command::AddSymbols([*spec].into()), goes_on);
            });
        }
        let Some(topic) = topic(command) else {
            return;
        };
        let mut kept = command.clone();
        if let Some((_, before, _)) = self.short.remove(&topic)
            && let Command::Balance { amount: sum, .. } | Command::PayFees { amount: sum, .. } =
                before
            && let Command::Balance { amount, .. } | Command::PayFees { amount, .. } = &mut kept
        {
            *amount = amount.saturating_add(sum);
        }
        self.shortened += 1;
        self.short.insert(topic, (self.shortened, kept, goes_on));
    }

    /// Hands over what there is. Never waits.
    pub(crate) fn hand_over(&mut self) {
        let inner = Arc::clone(&self.inner);
        let mut queue = inner.queue();
        self.hand_over_to(&mut queue);
        self.is_half_full = !self.is_behind && queue.waiting() > ENTRIES_MAX / 2;
        let has_entries = !queue.entries.is_empty();
        drop(queue);
        if has_entries {
            inner.filled.notify_one();
        }
    }

    /// Returns whether books are to come anew: a [hand-over](Self::hand_over) is due soon, though
    /// nothing is published.
    pub(crate) const fn is_late(&self) -> bool {
        self.builder.is_some() && (self.is_behind || self.is_restarting)
    }

    /// Returns whether half of the entries wait for the reader that may: those who cause many are
    /// to pause.
    pub(crate) const fn is_half_full(&self) -> bool {
        self.is_half_full
    }

    fn hand_over_to(&mut self, queue: &mut Queue) {
        if queue.is_abandoned || queue.is_closed {
            (self.builder, self.entries) = (None, VecDeque::new());
            self.short.clear();
            return;
        }
        if self.is_behind && queue.waiting() == 0 {
            self.restart();
        }
        if self.is_restarting && !self.is_behind {
            self.copy_books(LEVELS_TOGETHER);
        }
        if self.ended < self.next_command && self.next_command > 0 && !self.is_behind {
            self.entries
                .push_back(DropCopyEvent::End(self.next_command - 1));
            self.ended = self.next_command;
        }
        if self.entries.is_empty() || self.is_behind {
            return;
        }
        let waiting = queue.waiting();
        if waiting > 0 && waiting + self.entries.len() > ENTRIES_MAX {
            self.fall_behind();
        } else if queue.entries.is_empty() {
            std::mem::swap(&mut queue.entries, &mut self.entries);
        } else {
            queue.entries.append(&mut self.entries);
        }
    }

    /// Ends: the reader gets what it was handed over, and no more.
    fn close(&mut self) {
        (self.builder, self.entries) = (None, VecDeque::new());
        self.short.clear();
        self.is_half_full = false;
        self.inner.queue().is_closed = true;
        self.inner.filled.notify_one();
    }

    /// Begins anew: the books are to come in place of what was dropped.
    fn restart(&mut self) {
        if self.builder.is_none() {
            return;
        }
        let mut short: Vec<(u64, Command, bool)> = self.short.drain().map(|(_, one)| one).collect();
        short.sort_unstable_by_key(|(place, ..)| *place);
        let short = short.into_iter();
        let admin = |(_, command, goes_on)| DropCopyEvent::Admin(Box::new(command), goes_on);
        self.entries.extend(short.map(admin));
        self.entries.push_back(DropCopyEvent::Restart);
        self.unsent.clone_from(&self.symbols);
        (self.is_behind, self.is_restarting) = (false, true);
        self.ended = 0;
    }

    /// Copies books that are to come, until they have this number of levels together.
    fn copy_books(&mut self, levels_max: usize) {
        let Some(builder) = &self.builder else {
            return;
        };
        let mut levels = 0;
        while levels < levels_max
            && let Some(symbol) = self.unsent.pop_first()
        {
            let mut book = Box::<Snapshot>::default();
            if builder.snapshot(symbol, usize::MAX, &mut book) {
                levels += book.bids.len() + book.asks.len() + 1;
                self.entries.push_back(DropCopyEvent::Book(book));
            }
        }
        // Those that come next are of later commands.
        self.ended = 0;
        if self.unsent.is_empty() {
            self.entries.push_back(DropCopyEvent::Restarted);
            self.is_restarting = false;
        }
    }
}

impl Drop for CopyWriter {
    fn drop(&mut self) {
        self.close();
    }
}

/// The topic of a command: its sort, and a symbol, or a user and a currency.
type Topic = (Discriminant<Command>, i64, i32);

/// Returns the topic of a command, where a gateway has a use for it.
fn topic(command: &Command) -> Option<Topic> {
    let (first, second) = match command {
        Command::Balance { uid, currency, .. } | Command::PayFees { uid, currency, .. } => {
            (uid.0, currency.0)
        }
        Command::AddSymbols(specs) => (0, specs.first()?.id.0),
        Command::RemoveSymbol { symbol }
        | Command::Halt { symbol }
        | Command::Unhalt { symbol }
        | Command::StartAuction { symbol }
        | Command::Uncross { symbol, .. }
        | Command::SetPriceBand { symbol, .. } => (0, symbol.0),
        Command::Reset | Command::SetLimits { uid: None, .. } => (0, 0),
        _ => return None,
    };
    Some((discriminant(command), first, second))
}

/// Returns whether a command changes something else than the orders of one user.
fn is_administrative(command: &Command) -> bool {
    let is_mass_cancel = matches!(
        command,
        Command::CancelAll { uid: Some(_), .. } | Command::Disconnect { .. }
    );
    let is_order = command.place().is_some() || command.symbol().is_some() || is_mass_cancel;
    let is_clock = matches!(command, Command::Clock { .. } | Command::Nop);
    !(is_order || is_clock)
}

#[cfg(test)]
pub(crate) mod tests {
    use thalweg_exchange::durable::Origin;
    use thalweg_exchange::service::Outcome;
    use thalweg_exchange::{CurrencyId, Events, UserId, UserLimits};

    use super::*;

    fn take(writer: &mut CopyWriter, command: &Command) {
        let sequence = writer.next_command;
        let outcome = Outcome {
            sequence,
            tag: 0,
            due: 0,
            command,
            stamps: None,
            result: ResultCode::Success,
            events: &Events::default(),
        };
        writer.take(&Executed {
            outcome,
            origin: Origin::Engine,
            reports: &[],
        });
    }

    fn started() -> (CopyWriter, DropCopy) {
        let (mut writer, copy) = new(Epoch(1));
        writer.start(&State::default(), 1);
        (writer, copy)
    }

    /// Returns both ends of a copy whose reader was behind and has taken all that it could, with
    /// books for more than two hand-overs.
    pub(crate) fn behind() -> (CopyWriter, DropCopy) {
        let (mut writer, copy) = started();
        let ids = 0..=2 * LEVELS_TOGETHER as i32;
        let specs = ids.map(|id| SymbolSpec::pair(SymbolId(id), CurrencyId(1), CurrencyId(2)));
        take(&mut writer, &Command::AddSymbols(specs.collect()));
        writer.fall_behind();
        copy.inner.queue().entries.clear();
        (writer, copy)
    }

    /// Returns the number of books that wait for a reader, and whether they are all.
    pub(crate) fn books(copy: &DropCopy) -> (usize, bool) {
        let queue = copy.inner.queue();
        let is_book = |entry: &&DropCopyEvent| matches!(entry, DropCopyEvent::Book(_));
        let is_last = |entry: &DropCopyEvent| matches!(entry, DropCopyEvent::Restarted);
        let books = queue.entries.iter().filter(is_book).count();
        (books, queue.entries.iter().any(is_last))
    }

    const DEPOSIT: Command = Command::deposit(UserId(1), CurrencyId(1), 1, 1);
    const MASS_CANCELS: [Command; 2] = [
        Command::cancel_all(Some(UserId(1)), None),
        Command::Disconnect { uid: UserId(1) },
    ];

    #[test]
    fn an_entry_has_120_bytes_at_most() {
        assert!(
            size_of::<DropCopyEvent>() <= 120,
            "{}",
            size_of::<DropCopyEvent>()
        );
    }

    #[test]
    fn a_users_mass_cancels_are_not_kept_for_a_reader_that_is_behind() {
        let (mut writer, _copy) = started();
        writer.fall_behind();
        for command in &MASS_CANCELS {
            take(&mut writer, command);
        }
        assert!(writer.entries.is_empty() && writer.short.is_empty());
        take(&mut writer, &DEPOSIT);
        assert!(writer.entries.is_empty() && writer.short.len() == 1);
    }

    #[test]
    fn a_reader_that_is_behind_gets_sums_of_deposits_and_the_last_state_of_symbols() {
        let (mut writer, copy) = started();
        writer.fall_behind();
        let (symbol, amounts) = (SymbolId(1), 1..=1_000);
        for (transaction, amount) in amounts.enumerate() {
            let user = UserId(1 + amount % 2);
            let id = transaction as i64 + 1;
            take(
                &mut writer,
                &Command::deposit(user, CurrencyId(1), amount, id),
            );
            take(&mut writer, &Command::Halt { symbol });
            take(&mut writer, &Command::Unhalt { symbol });
            take(&mut writer, &Command::StartAuction { symbol });
            take(&mut writer, &Command::Halt { symbol });
        }
        assert_eq!((writer.entries.len(), writer.short.len()), (0, 5));
        let commands = caught_up(&mut writer, &copy);
        let deposit = |user, amount, id| Command::deposit(UserId(user), CurrencyId(1), amount, id);
        let expected = [
            deposit(2, 250_000, 999),
            deposit(1, 250_500, 1_000),
            Command::Unhalt { symbol },
            Command::StartAuction { symbol },
            Command::Halt { symbol },
        ];
        assert_eq!(commands, expected);
        assert!(writer.short.is_empty());
    }

    /// Returns the administrators' commands that a reader gets which was behind until now.
    fn caught_up(writer: &mut CopyWriter, copy: &DropCopy) -> Vec<Command> {
        copy.inner.queue().entries.clear();
        writer.hand_over();
        let entries = std::mem::take(&mut copy.inner.queue().entries);
        let commands = entries.iter().filter_map(|entry| match entry {
            DropCopyEvent::Admin(command, ..) => Some((**command).clone()),
            _ => None,
        });
        commands.collect()
    }

    #[test]
    fn limits_of_all_users_and_fees_paid_out_reach_a_reader_that_was_behind() {
        let limits = |most| Command::SetLimits {
            uid: None,
            limits: Some(UserLimits {
                open_orders: most,
                ..UserLimits::NONE
            }),
        };
        let paid = |amount, transaction_id| Command::PayFees {
            uid: UserId(1),
            currency: CurrencyId(1),
            amount,
            transaction_id,
        };
        let (mut writer, copy) = started();
        // One that waits when the reader falls behind, and others meanwhile.
        take(&mut writer, &limits(5));
        writer.fall_behind();
        assert_eq!(writer.short.len(), 1);
        for command in [limits(6), paid(3, 1), paid(4, 2)] {
            take(&mut writer, &command);
        }
        assert_eq!(caught_up(&mut writer, &copy), [limits(6), paid(7, 2)]);
    }

    #[test]
    fn symbols_that_are_added_again_are_left_out() {
        let spec = |id, taker_fee| SymbolSpec {
            taker_fee,
            ..SymbolSpec::pair(SymbolId(id), CurrencyId(1), CurrencyId(2))
        };
        let add = |specs: &[SymbolSpec]| Command::AddSymbols(specs.into());
        let (mut writer, copy) = started();
        take(&mut writer, &add(&[spec(1, 5)]));
        writer.fall_behind();
        take(&mut writer, &add(&[spec(1, 6), spec(2, 7), spec(2, 8)]));
        take(&mut writer, &add(&[spec(1, 6), spec(2, 8)]));
        let expected = [add(&[spec(1, 5)]), add(&[spec(2, 7)])];
        assert_eq!(caught_up(&mut writer, &copy), expected);
    }

    #[test]
    fn a_claim_is_kept_for_a_reader_that_is_behind_and_a_note_goes_with_its_outcome() {
        let (mut writer, copy) = started();
        writer.claimed(3, false);
        writer.noted(b"of the next");
        writer.fall_behind();
        copy.inner.queue().entries.clear();
        writer.claimed(4, true);
        // It has no reports: no gateway has a use for its note.
        take(&mut writer, &DEPOSIT);
        assert!(writer.note.is_none());
        writer.hand_over();
        let entries = std::mem::take(&mut copy.inner.queue().entries);
        let claims = entries.iter().filter_map(|entry| match entry {
            DropCopyEvent::Claimed { epoch, leads } => Some((*epoch, *leads)),
            DropCopyEvent::Noted(_) => panic!("it is of no order"),
            _ => None,
        });
        assert_eq!(claims.collect::<Vec<_>>(), [(3, false), (4, true)]);
    }

    #[test]
    fn a_reader_that_is_gone_leaves_nothing() {
        let (mut writer, copy) = started();
        take(&mut writer, &DEPOSIT);
        writer.hand_over();
        take(&mut writer, &DEPOSIT);
        assert!(!writer.inner.queue().entries.is_empty());
        drop(copy);
        assert!(writer.inner.queue().entries.is_empty());
        writer.hand_over();
        take(&mut writer, &DEPOSIT);
        writer.hand_over();
        assert!(writer.entries.is_empty() && writer.builder.is_none());
        assert!(writer.inner.queue().entries.is_empty());
    }

    #[tokio::test]
    async fn a_reader_gets_an_end_where_market_data_cannot_go_on() {
        let (mut writer, mut copy) = started();
        take(&mut writer, &DEPOSIT);
        writer.hand_over();
        // Its events list no levels.
        let symbol = SymbolId(1);
        take(&mut writer, &Command::RunStops { symbol });
        take(&mut writer, &DEPOSIT);
        writer.hand_over();
        let (mut piece, mut deposits) = (Vec::new(), 0);
        while copy.next(&mut piece).await {
            deposits += piece
                .iter()
                .filter(|e| matches!(e, DropCopyEvent::Admin(..)))
                .count();
        }
        assert_eq!(deposits, 1);
    }

    #[test]
    fn commands_of_a_reader_that_is_behind_are_not_looked_through_again() {
        let (mut writer, copy) = started();
        writer.entries.resize(ENTRIES_MAX, DropCopyEvent::End(0));
        take(&mut writer, &DEPOSIT);
        assert!(writer.is_behind);
        assert_eq!((writer.entries.len(), writer.short.len()), (0, 1));
        // Whatever would be dropped now shows a second look.
        writer
            .entries
            .resize(ENTRIES_MAX + 1, DropCopyEvent::End(0));
        take(&mut writer, &DEPOSIT);
        assert_eq!(writer.entries.len(), ENTRIES_MAX + 1);
        writer.entries.clear();
        // All that the queue has is taken: then the books come anew, after the commands.
        copy.inner.queue().entries.clear();
        writer.hand_over();
        let entries = std::mem::take(&mut copy.inner.queue().entries);
        let entries = Vec::from(entries);
        let is_whole = matches!(
            entries[..],
            [
                DropCopyEvent::Admin(..),
                DropCopyEvent::Restart,
                DropCopyEvent::Restarted,
                DropCopyEvent::End(2)
            ]
        );
        assert!(is_whole, "{entries:?}");
    }

    #[tokio::test]
    async fn the_reader_takes_whole_commands_in_pieces_and_all_that_wait_count() {
        let (mut writer, mut copy) = started();
        let mut piece = Vec::new();
        assert!(copy.next(&mut piece).await);
        let waiting = |copy: &DropCopy| copy.inner.queue().waiting();
        // Commands of three entries each, more than two pieces.
        let commands = PIECE as u64;
        for number in 0..commands {
            let books = [(); 2].map(|()| DropCopyEvent::Auction);
            writer.entries.extend(books);
            writer.entries.push_back(DropCopyEvent::End(number));
        }
        writer.hand_over();
        // The reader has the first two entries still.
        assert_eq!(waiting(&copy), 3 * PIECE + piece.len());
        let mut seen = 0;
        let mut left = 3 * PIECE;
        while seen < commands {
            assert!(copy.next(&mut piece).await);
            assert!(piece.len() <= PIECE + 2, "{}", piece.len());
            assert!(matches!(piece.last(), Some(DropCopyEvent::End(_))));
            let ends = piece
                .iter()
                .filter(|entry| matches!(entry, DropCopyEvent::End(_)));
            seen += ends.count() as u64;
            // The piece counts while the reader works on it.
            assert_eq!(waiting(&copy), left);
            left -= piece.len();
            // More may come meanwhile, behind those that wait.
            take(&mut writer, &DEPOSIT);
            writer.hand_over();
            left += 2;
        }
        // A reader that has not given out everything is not sent the books anew.
        writer.fall_behind();
        writer.hand_over();
        assert!(writer.is_behind);
    }

    #[tokio::test]
    async fn after_a_restart_few_books_come_in_a_hand_over_and_messages_behind_their_own() {
        let (mut writer, mut copy) = started();
        let symbols =
            (1..=5).map(|id| SymbolSpec::pair(SymbolId(id), CurrencyId(1), CurrencyId(2)));
        let specs: Vec<SymbolSpec> = symbols.collect();
        take(&mut writer, &Command::AddSymbols(specs[..4].into()));
        writer.hand_over();
        let mut piece = Vec::new();
        assert!(copy.next(&mut piece).await);
        copy.inner.queue().taken = 0;
        writer.fall_behind();
        writer.restart();
        writer.copy_books(2);
        assert_eq!(writer.unsent.len(), 2);
        let books = |entries: &VecDeque<DropCopyEvent>| -> Vec<i32> {
            let books = entries.iter().filter_map(|entry| match entry {
                DropCopyEvent::Book(book) => Some(book.symbol.0),
                DropCopyEvent::Restarted => Some(0),
                _ => None,
            });
            books.collect()
        };
        assert_eq!(books(&writer.entries), [1, 2]);
        // One that goes has no book, and one that comes has: it may be one of before.
        take(
            &mut writer,
            &Command::RemoveSymbol {
                symbol: SymbolId(3),
            },
        );
        take(&mut writer, &Command::AddSymbols(specs[4..].into()));
        writer.copy_books(1);
        assert_eq!(books(&writer.entries), [1, 2, 4]);
        writer.copy_books(1);
        assert_eq!(books(&writer.entries), [1, 2, 4, 5, 0]);
        assert!(!writer.is_restarting);
        // All is followed by the end of its command.
        writer.hand_over();
        let last = copy.inner.queue().entries.back().cloned();
        assert!(matches!(last, Some(DropCopyEvent::End(_))), "{last:?}");
        // One that falls behind meanwhile begins anew.
        writer.restart();
        writer.copy_books(1);
        writer.fall_behind();
        assert!(writer.unsent.is_empty() && !writer.is_restarting);
    }

    #[tokio::test]
    async fn a_copy_is_half_full_until_the_reader_has_worked_it_off() {
        let (mut writer, mut copy) = started();
        writer
            .entries
            .resize(ENTRIES_MAX / 2 - 3, DropCopyEvent::End(0));
        writer.hand_over();
        assert!(!writer.is_half_full());
        writer.entries.push_back(DropCopyEvent::End(0));
        writer.hand_over();
        assert!(writer.is_half_full());
        let mut piece = Vec::new();
        for _ in 0..3 {
            assert!(copy.next(&mut piece).await);
        }
        writer.hand_over();
        assert!(!writer.is_half_full());
        // One that is behind gets nothing: none need pause for it.
        writer.entries.resize(ENTRIES_MAX, DropCopyEvent::End(0));
        writer.hand_over();
        assert!(writer.is_behind && !writer.is_half_full());
    }
}
