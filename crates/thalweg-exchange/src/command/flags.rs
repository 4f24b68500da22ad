//! Options of an order that fit into one byte.

/// Self-trade prevention: how a taker is handled that would trade with an order of its own user. It
/// is decided when the resting order would be the next to trade; earlier trades with others stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum SelfTrade {
    /// They trade (code 0): what the reference does.
    #[default]
    Allow = 0,
    /// The taker's unfilled rest is rejected (code 1).
    CancelTaker = 1,
    /// The resting order is cancelled, and the taker goes on (code 2).
    CancelMaker = 2,
    /// Both (code 3).
    CancelBoth = 3,
    /// Both orders lose as many lots as the smaller one has, hidden ones included, without a trade
    /// (code 8): one of them, or both, are gone then, and a taker with lots left goes on. The maker
    /// keeps its place.
    Decrement = 8,
}

/// Options of an order, in one byte: post-only, self-trade prevention, and cancel on disconnect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderFlags(u8);

impl OrderFlags {
    /// No options.
    pub const NONE: Self = Self(0);
    const SELF_TRADE: u8 = 0b1011;
    const POST_ONLY: u8 = 4;
    const WITH_SESSION: u8 = 16;

    /// Flags by their code: bits 0, 1 and 3 the code of [`SelfTrade`], bit 2 post-only, bit 4
    /// cancel on disconnect. `None` where any other bit is set, or bits 0, 1 and 3 are none of its
    /// codes.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code & !(Self::POST_ONLY | Self::WITH_SESSION) {
            0..=3 | 8 => Some(Self(code)),
            _ => None,
        }
    }

    /// Returns the code, as [`from_code`](Self::from_code) takes it.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0
    }

    /// Returns these flags with post-only set: an order that would take is rejected whole.
    #[must_use]
    pub const fn with_post_only(self) -> Self {
        Self(self.0 | Self::POST_ONLY)
    }

    /// Returns these flags with this self-trade prevention.
    #[must_use]
    pub const fn with_self_trade(self, mode: SelfTrade) -> Self {
        Self(self.0 & !Self::SELF_TRADE | mode as u8)
    }

    /// Returns these flags with cancel on disconnect:
    /// [`Command::Disconnect`](crate::Command::Disconnect) of its owner cancels the order. Nothing
    /// else depends on it.
    #[must_use]
    pub const fn with_cancel_on_disconnect(self) -> Self {
        Self(self.0 | Self::WITH_SESSION)
    }

    /// Returns true if the order is cancelled when its owner's session ends.
    #[must_use]
    pub const fn goes_with_session(self) -> bool {
        self.0 & Self::WITH_SESSION != 0
    }

    /// True where matching has nothing to look at.
    #[inline]
    pub(crate) const fn is_plain(self) -> bool {
        self.0 & !Self::WITH_SESSION == 0
    }

    /// Returns true where the order must not take.
    #[must_use]
    pub const fn is_post_only(self) -> bool {
        self.0 & Self::POST_ONLY != 0
    }

    /// Returns the self-trade prevention that applies when this order takes.
    #[must_use]
    pub const fn self_trade(self) -> SelfTrade {
        match self.0 & Self::SELF_TRADE {
            0 => SelfTrade::Allow,
            1 => SelfTrade::CancelTaker,
            2 => SelfTrade::CancelMaker,
            3 => SelfTrade::CancelBoth,
            _ => SelfTrade::Decrement,
        }
    }
}
/// Flags are serialised as their code.
#[cfg(feature = "serde")]
impl serde::Serialize for OrderFlags {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.code())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for OrderFlags {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = <u8 as serde::Deserialize>::deserialize(deserializer)?;
        let error = || serde::de::Error::custom(format_args!("{code} is no code of order flags"));
        Self::from_code(code).ok_or_else(error)
    }
}
