//! A subscriber's book, made of messages alone.

use std::cmp::Ordering;
use std::{error, fmt};

use super::message::{Body, Epoch, LevelDelta, Message, SymbolSequence};
use super::price_ladder::PriceLadder;
use super::snapshot::Snapshot;
use crate::book::Level;
use crate::command::Action;
use crate::ids::SymbolId;

/// Why a replica did not apply a message of its symbol. It is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplicaError {
    /// A message is missing: the replica is of no use until it gets a new snapshot.
    Gap {
        /// Whose messages.
        symbol: SymbolId,
        /// The number that should have come.
        expected: SymbolSequence,
        /// The number that came.
        got: SymbolSequence,
    },
    /// The message is from an earlier start of the feed than the replica follows. It may be
    /// dropped. If all that come are, the new epoch did not grow: take a snapshot.
    StaleEpoch {
        /// Whose message.
        symbol: SymbolId,
        /// The epoch that the replica follows.
        current: Epoch,
        /// That of the message.
        got: Epoch,
    },
    /// The feed has started again: the replica is of no use until it gets a snapshot of that
    /// epoch.
    NewEpoch {
        /// Whose message.
        symbol: SymbolId,
        /// The epoch that the replica follows.
        current: Epoch,
        /// That of the message.
        got: Epoch,
    },
}

impl fmt::Display for ReplicaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap {
                symbol,
                expected,
                got,
            } => write!(
                f,
                "market data of symbol {symbol} has a gap: message {} expected, {} came",
                expected.0, got.0
            ),
            Self::StaleEpoch {
                symbol,
                current,
                got,
            } => write!(
                f,
                "market data of symbol {symbol} is stale: it is of epoch {}, the replica of {}",
                got.0, current.0
            ),
            Self::NewEpoch {
                symbol,
                current,
                got,
            } => write!(
                f,
                "the feed of symbol {symbol} started again: it is of epoch {now}, the replica of \
                 {}, which needs a snapshot of epoch {now}",
                current.0,
                now = got.0
            ),
        }
    }
}

impl error::Error for ReplicaError {}

/// The price levels of one symbol, kept by level deltas from the symbol's first message on, or by a
/// snapshot and the deltas after it.
///
/// After a message that [is the last](Message::is_last) of its command it equals the engine's
/// book. A replica that started from a snapshot cut at some depth keeps the prices down to the
/// worst that the snapshot shows on that side, and those exactly: what lies beyond was never told.
///
/// It follows one start of the feed, an [`Epoch`]: that of its snapshot, or of the first message
/// that it applies.
///
/// ```
/// use thalweg_exchange::market::{Builder, Epoch, Options, Replica, Snapshot};
/// # use thalweg_exchange::*;
///
/// // The first start of this feed; the next has another epoch.
/// let mut builder = Builder::new(Epoch(1), Options::default());
/// let mut state = State::default();
/// let mut events = Events::new();
/// let spec = SymbolSpec {
///     id: SymbolId(5),
///     base_currency: CurrencyId(1),
///     quote_currency: CurrencyId(2),
///     base_scale: 1,
///     quote_scale: 1,
///     ..SymbolSpec::default()
/// };
/// let account = AccountSpec { uid: UserId(1), balances: vec![(CurrencyId(1), 100)] };
/// let ask = Place {
///     uid: UserId(1),
///     symbol: SymbolId(5),
///     order_id: OrderId(1),
///     order_type: OrderType::Gtc,
///     action: Action::Ask,
///     price: 10,
///     reserve_price: 0,
///     size: 3,
///     flags: OrderFlags::NONE,
/// };
/// let mut replica = Replica::new(SymbolId(5));
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
pub struct Replica {
    symbol: SymbolId,
    /// `None` before the first message.
    epoch: Option<Epoch>,
    sequence: SymbolSequence,
    asks: Half,
    bids: Half,
}

/// One side.
#[derive(Clone, Debug)]
struct Half {
    ladder: PriceLadder,
    /// The worst price that is known, where a snapshot was cut.
    horizon: Option<i64>,
}

impl Half {
    fn new(side: Action) -> Self {
        Self {
            ladder: PriceLadder::new(side, 0),
            horizon: None,
        }
    }

    fn restart(&mut self, levels: &[Level], cut: bool) {
        self.ladder.clear();
        levels
            .iter()
            .rev()
            .for_each(|&level| self.ladder.put(level));
        // Cut at depth 0, nothing is known: no price is as good as the best one there could be.
        let best = match self.ladder.side() {
            Action::Ask => i64::MIN,
            Action::Bid => i64::MAX,
        };
        self.horizon = cut.then(|| levels.last().map_or(best, |level| level.price));
    }

    fn put(&mut self, level: Level) {
        if self
            .horizon
            .is_none_or(|horizon| self.ladder.reaches(level.price, horizon))
        {
            self.ladder.put(level);
        }
    }
}

impl Replica {
    /// An empty book, before the first message of the symbol.
    #[must_use]
    pub fn new(symbol: SymbolId) -> Self {
        Self {
            symbol,
            epoch: None,
            sequence: SymbolSequence(0),
            asks: Half::new(Action::Ask),
            bids: Half::new(Action::Bid),
        }
    }

    /// The book of a snapshot.
    #[must_use]
    pub fn from_snapshot(snapshot: &Snapshot) -> Self {
        let mut replica = Self::new(snapshot.symbol);
        replica.restart(snapshot);
        replica
    }

    /// Forgets everything and starts from a snapshot, of whatever epoch, also after a
    /// [`ReplicaError`]. Keeps the memory.
    pub fn restart(&mut self, snapshot: &Snapshot) {
        self.symbol = snapshot.symbol;
        self.epoch = Some(snapshot.epoch);
        self.sequence = snapshot.as_of;
        self.asks.restart(&snapshot.asks, snapshot.asks_cut);
        self.bids.restart(&snapshot.bids, snapshot.bids_cut);
    }

    /// Applies one message. Those of other symbols, and those from before the snapshot, change
    /// nothing: a subscriber may collect messages first and ask for the snapshot then.
    ///
    /// Cost: that of finding the level, a binary search; a level that comes or goes moves up to 64
    /// others by 24 bytes each.
    ///
    /// # Errors
    /// The message is of another epoch than those before, or one between the last and this one is
    /// missing. Nothing is changed.
    pub fn apply(&mut self, message: &Message) -> Result<(), ReplicaError> {
        let symbol = self.symbol;
        if message.symbol != symbol {
            return Ok(());
        }
        let got = message.epoch;
        let current = self.epoch.unwrap_or(got);
        match got.cmp(&current) {
            Ordering::Equal => {}
            Ordering::Less => {
                return Err(ReplicaError::StaleEpoch {
                    symbol,
                    current,
                    got,
                });
            }
            Ordering::Greater => {
                return Err(ReplicaError::NewEpoch {
                    symbol,
                    current,
                    got,
                });
            }
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
        self.epoch = Some(current);
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
            Body::Trade { .. } | Body::Order(_) | Body::Best(_) => {}
        }
        Ok(())
    }

    /// The symbol.
    #[must_use]
    pub const fn symbol(&self) -> SymbolId {
        self.symbol
    }

    /// The epoch that it follows; `None` before the first message.
    #[must_use]
    pub const fn epoch(&self) -> Option<Epoch> {
        self.epoch
    }

    /// The last message that is in the book.
    #[must_use]
    pub const fn sequence(&self) -> SymbolSequence {
        self.sequence
    }

    /// The levels of one side, best first.
    pub fn levels(&self, side: Action) -> impl ExactSizeIterator<Item = Level> + '_ {
        self.half(side).ladder.levels()
    }

    /// The worst price that this replica knows of on one side, where its snapshot was cut; `None`
    /// where it knows them all. What lies beyond is not in [`levels`](Self::levels).
    #[must_use]
    pub fn horizon(&self, side: Action) -> Option<i64> {
        self.half(side).horizon
    }

    const fn half(&self, side: Action) -> &Half {
        match side {
            Action::Ask => &self.asks,
            Action::Bid => &self.bids,
        }
    }
}
