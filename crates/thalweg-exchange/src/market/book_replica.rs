//! A subscriber's book, made of messages alone, and the check that no message is missing.

use std::cmp::Ordering;

use thiserror::Error;

use super::Channels;
use super::message::{Body, Epoch, FeedSequence, LevelDelta, Message, Snapshot, SymbolSequence};
use super::price_ladder::PriceLadder;
use crate::book::Level;
use crate::command::Action;
use crate::ids::SymbolId;

/// Why a message does not follow those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FeedError {
    /// Messages are missing, of whatever symbols.
    #[error("the feed has a gap: message {} expected, {} came", .expected.0, .got.0)]
    Gap {
        /// The number that should have come.
        expected: FeedSequence,
        /// The number that came.
        got: FeedSequence,
    },
    /// The message is from an earlier start of the feed. It may be dropped. If all that come are,
    /// the new epoch did not grow: take snapshots.
    #[error("the message is stale: it is of epoch {}, which was before {}", .got.0, .current.0)]
    StaleEpoch {
        /// The epoch that is followed.
        current: Epoch,
        /// The epoch of the message.
        got: Epoch,
    },
    /// The feed has started again: a snapshot of that epoch is needed, of each symbol.
    #[error("the feed started again: epoch {1} came after {0}, and a \
        snapshot of epoch {1} is needed", .current.0, .got.0)]
    NewEpoch {
        /// The epoch that is followed.
        current: Epoch,
        /// The epoch of the message.
        got: Epoch,
    },
    /// The message is of another feed, which has other messages under other numbers.
    #[error("the message is of another feed: it has {got}, the one that is followed {current}")]
    OtherChannels {
        /// Which messages the feed that is followed has.
        current: Channels,
        /// Which that of the message has.
        got: Channels,
    },
}

/// Checks that a message is of the current feed, by its epoch and its channels.
fn same_feed(current: Option<(Epoch, Channels)>, message: &Message) -> Result<(), FeedError> {
    let Some((epoch, channels)) = current else {
        return Ok(());
    };
    let (current, got) = (epoch, message.epoch);
    match got.cmp(&current) {
        Ordering::Less => Err(FeedError::StaleEpoch { current, got }),
        Ordering::Greater => Err(FeedError::NewEpoch { current, got }),
        Ordering::Equal if channels == message.channels => Ok(()),
        Ordering::Equal => Err(FeedError::OtherChannels {
            current: channels,
            got: message.channels,
        }),
    }
}

/// Stands before the replicas of a subscriber who gets a whole feed, and notices what they cannot:
/// that the last message of a symbol is missing, of which nothing comes any more.
///
/// After an error nothing has changed. If it is a gap or a new epoch, every symbol needs a new
/// [`Snapshot`]; the check goes on [after](Self::after) the first of them.
///
/// A loss at the end of a feed does not show in the messages that arrive: the transport must send
/// the number of the last message from time to time, even when the feed is silent.
#[derive(Clone, Copy, Debug, Default)]
pub struct GapDetector {
    feed: Option<(Epoch, Channels)>,
    sequence: FeedSequence,
}

impl GapDetector {
    /// Returns a check before the first message of a feed, of whatever epoch and channels.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a check after this message of a feed: as a snapshot says, or any message from which
    /// to go on.
    #[must_use]
    pub const fn after(epoch: Epoch, channels: Channels, sequence: FeedSequence) -> Self {
        Self {
            feed: Some((epoch, channels)),
            sequence,
        }
    }

    /// Takes the next message. False where it came already; replicas may get it all the same.
    ///
    /// # Errors
    /// It does not follow the one before.
    pub fn check(&mut self, message: &Message) -> Result<bool, FeedError> {
        same_feed(self.feed, message)?;
        let got = message.sequence;
        if got <= self.sequence {
            return Ok(false);
        }
        let expected = FeedSequence(self.sequence.0 + 1);
        if got != expected {
            return Err(FeedError::Gap { expected, got });
        }
        *self = Self::after(message.epoch, message.channels, got);
        Ok(true)
    }

    /// Returns the number of the last message that was taken.
    #[must_use]
    pub const fn sequence(&self) -> FeedSequence {
        self.sequence
    }
}

/// Why a replica did not take a message or a snapshot. It is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReplicaError {
    /// A message is missing: the replica is of no use until it gets a new snapshot.
    #[error("market data of symbol {symbol} has a gap: message {} expected, {} came",
        .expected.0, .got.0)]
    Gap {
        /// The symbol of the messages.
        symbol: SymbolId,
        /// The number that should have come.
        expected: SymbolSequence,
        /// The number that came.
        got: SymbolSequence,
    },
    /// The message is not of the feed that the replica follows, or not of this start of it.
    #[error("{0}")]
    Feed(#[from] FeedError),
    /// The feed does not have [the messages](Channels::levels) by which a replica follows it.
    #[error("market data of symbol {symbol} has no levels: a replica can not follow it")]
    WithoutLevels {
        /// The symbol of the message or snapshot.
        symbol: SymbolId,
    },
    /// The snapshot is of another symbol.
    #[error("the snapshot is of symbol {got}, the replica of symbol {symbol}")]
    OtherSymbol {
        /// The symbol of the replica.
        symbol: SymbolId,
        /// The symbol of the snapshot.
        got: SymbolId,
    },
}

/// How far down one side of a book is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownDepth {
    /// All of it.
    All,
    /// This price, the worst of a snapshot that was cut, and all that are better.
    DownTo(i64),
    /// Nothing: the snapshot was cut at no level at all.
    Nothing,
}

/// The price levels of one symbol, kept by level deltas from the symbol's first message on, or by a
/// snapshot and the deltas after it.
///
/// After a message that [is the last](Message::is_last) of its command it equals the engine's book.
/// A replica that started from a snapshot cut at some depth keeps the prices down to the worst that
/// the snapshot shows on that side, and those exactly: levels beyond it were never sent.
///
/// It follows one start of one feed, an [`Epoch`]: that of its snapshot, or of the first message.
/// The feed must have [levels](Channels::levels). By the messages of other symbols it sees that the
/// feed has started again. It cannot see that the last message of its own symbol was lost: a
/// subscriber of the whole feed uses a [`GapDetector`] for that.
///
/// ```
/// use thalweg_exchange::market::{BookReplica, Builder, Channels, Epoch, Snapshot};
/// # use thalweg_exchange::*;
///
/// // The first start of this feed; the next has another epoch.
/// let mut builder = Builder::new(Epoch(1), Channels::default());
/// let mut state = State::default();
/// let mut events = Events::new().with_levels();
/// let [coins, euros] = [1, 2].map(CurrencyId);
/// let spec = SymbolSpec::pair(SymbolId(5), coins, euros);
/// let account = AccountSpec::new(UserId(1), vec![(coins, 100)]);
/// let ask = Place::limit((UserId(1), OrderId(1)), SymbolId(5), Action::Ask, (10, 3));
/// let mut replica = BookReplica::new(SymbolId(5));
/// let commands = [
///     Command::AddSymbols([spec].into()),
///     Command::AddAccounts([account].into()),
///     Command::Place(ask),
/// ];
/// for (number, command) in commands.iter().enumerate() {
///     let result = apply(&mut state, command, &mut events);
///     for message in builder.apply(number as u64, command, result, &events)? {
///         replica.apply(message)?;
///     }
/// }
/// assert_eq!(replica.levels(Action::Ask).next().map(|level| level.volume), Some(3));
///
/// let mut snapshot = Snapshot::default();
/// assert!(builder.snapshot(SymbolId(5), 10, &mut snapshot));
/// assert_eq!(snapshot.as_of, replica.sequence());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BookReplica {
    symbol: SymbolId,
    /// `None` before the first message.
    feed: Option<(Epoch, Channels)>,
    sequence: SymbolSequence,
    asks: Half,
    bids: Half,
}

/// One side.
#[derive(Clone, Debug)]
struct Half {
    ladder: PriceLadder,
    horizon: KnownDepth,
}

impl Half {
    fn new(side: Action) -> Self {
        Self {
            ladder: PriceLadder::new(side),
            horizon: KnownDepth::All,
        }
    }

    fn restart(&mut self, levels: &[Level], cut: bool) {
        self.ladder.clear();
        for &level in levels.iter().rev() {
            self.ladder.put(level);
        }
        self.horizon = match levels.last() {
            _ if !cut => KnownDepth::All,
            Some(worst) => KnownDepth::DownTo(worst.price),
            None => KnownDepth::Nothing,
        };
    }

    fn put(&mut self, level: Level) {
        let is_known = match self.horizon {
            KnownDepth::All => true,
            KnownDepth::DownTo(worst) => self.ladder.reaches(level.price, worst),
            KnownDepth::Nothing => false,
        };
        if is_known {
            self.ladder.put(level);
        }
    }
}

impl BookReplica {
    /// Returns an empty book, before the first message of the symbol.
    #[must_use]
    pub fn new(symbol: SymbolId) -> Self {
        Self {
            symbol,
            feed: None,
            sequence: SymbolSequence(0),
            asks: Half::new(Action::Ask),
            bids: Half::new(Action::Bid),
        }
    }

    /// Returns the book of a snapshot.
    ///
    /// # Errors
    /// The snapshot is of a feed without levels.
    pub fn from_snapshot(snapshot: &Snapshot) -> Result<Self, ReplicaError> {
        let mut replica = Self::new(snapshot.symbol);
        replica.restart(snapshot)?;
        Ok(replica)
    }

    /// Forgets everything and starts from a snapshot, of whatever epoch and feed, also after a
    /// [`ReplicaError`]. Keeps the memory.
    ///
    /// # Errors
    /// The snapshot is of another symbol, or of a feed without levels. Nothing is changed.
    pub fn restart(&mut self, snapshot: &Snapshot) -> Result<(), ReplicaError> {
        let (symbol, got) = (self.symbol, snapshot.symbol);
        if symbol != got {
            return Err(ReplicaError::OtherSymbol { symbol, got });
        }
        if !snapshot.channels.levels {
            return Err(ReplicaError::WithoutLevels { symbol });
        }
        self.feed = Some((snapshot.epoch, snapshot.channels));
        self.sequence = snapshot.as_of;
        self.asks.restart(&snapshot.asks, snapshot.asks_cut);
        self.bids.restart(&snapshot.bids, snapshot.bids_cut);
        Ok(())
    }

    /// Applies one message. Messages of other symbols of the feed, and messages from before the
    /// snapshot, change nothing: a subscriber may collect messages first and ask for the snapshot
    /// then.
    ///
    /// Cost: that of finding the level, a binary search; a level that comes or goes moves up to 64
    /// others by 24 bytes each.
    ///
    /// # Errors
    /// The message is not of the feed or the epoch of those before (whatever its symbol), the feed
    /// has no levels, or a message between the last and this one is missing. Nothing is changed.
    pub fn apply(&mut self, message: &Message) -> Result<(), ReplicaError> {
        let symbol = self.symbol;
        same_feed(self.feed, message)?;
        let feed = Some((message.epoch, message.channels));
        if message.symbol != symbol {
            self.feed = feed;
            return Ok(());
        }
        if !message.channels.levels {
            return Err(ReplicaError::WithoutLevels { symbol });
        }
        let got = message.symbol_sequence;
        if got <= self.sequence {
            return Ok(());
        }
        let expected = SymbolSequence(self.sequence.0 + 1);
        if got != expected {
            return Err(ReplicaError::Gap {
                symbol,
                expected,
                got,
            });
        }
        self.feed = feed;
        self.sequence = got;
        match message.body {
            Body::Level(LevelDelta {
                side,
                price,
                volume,
                orders,
            }) => {
                let half = match side {
                    Action::Ask => &mut self.asks,
                    Action::Bid => &mut self.bids,
                };
                half.put(Level {
                    price,
                    volume,
                    orders,
                });
            }
            Body::Cleared => {
                self.asks.restart(&[], false);
                self.bids.restart(&[], false);
            }
            Body::Trade { .. } | Body::Best(_) => {}
        }
        Ok(())
    }

    /// Returns the symbol.
    #[must_use]
    pub const fn symbol(&self) -> SymbolId {
        self.symbol
    }

    /// Returns the epoch that it follows; `None` before the first message.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        self.feed.map(|(epoch, _)| epoch)
    }

    /// Returns the number of the last message that is in the book.
    #[must_use]
    pub const fn sequence(&self) -> SymbolSequence {
        self.sequence
    }

    /// Returns the levels of one side, best first.
    pub fn levels(&self, side: Action) -> impl ExactSizeIterator<Item = Level> + '_ {
        self.half(side).ladder.levels()
    }

    /// Returns how far down this replica knows one side, where its snapshot was cut. Levels beyond
    /// it are not in [`levels`](Self::levels).
    #[must_use]
    pub const fn horizon(&self, side: Action) -> KnownDepth {
        self.half(side).horizon
    }

    const fn half(&self, side: Action) -> &Half {
        match side {
            Action::Ask => &self.asks,
            Action::Bid => &self.bids,
        }
    }
}
