//! Which quirks of the reference engine are mended, and which later rules hold, as one value.

/// Declares the rules, each with its bit, from bit 0 on.
macro_rules! rules {
    ($(#[$meta:meta])* pub struct Rules; $($(#[$doc:meta])* $rule:ident,)*) => {
        $(#[$meta])*
        pub struct Rules {
            $($(#[$doc])* pub $rule: bool,)*
        }

        impl Rules {
            /// How many rules there are.
            pub(crate) const COUNT: u32 = [$(stringify!($rule)),*].len() as u32;

            /// Returns each rule's bit.
            pub(crate) fn bits(&self) -> u32 {
                let rules = [$(self.$rule),*];
                rules.iter().rev().fold(0, |bits, rule| bits << 1 | u32::from(*rule))
            }

            /// Returns the rules of these bits.
            pub(crate) const fn from_bits(mut bits: u32) -> Self {
                $(
                    let $rule = bits & 1 == 1;
                    bits >>= 1;
                )*
                let _ = bits;
                Self { $($rule),* }
            }
        }
    };
}

rules! {
    /// Which rules hold. [`Rules::REFERENCE`] copies the reference engine, quirks included;
    /// [`Rules::default`] mends them all. Each `bool` but `margin_trading` is one quirk, or a rule
    /// that the reference engine does not have: true means mended. They can be mixed freely;
    /// arithmetic stays checked under every mix. A rule that is added is off in exchanges that were
    /// begun before it, whose journals must replay as they did.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Rules;
    /// Futures may be traded, and free margin counts for holds. Off, a futures symbol has a book
    /// but is unknown to the risk check.
    margin_trading,
    /// FOK fills fully within its limit or is rejected; else it is always rejected. (With SUCCESS,
    /// unless `refuse_rejected` holds.)
    fill_fok,
    /// IOC_BUDGET fills what its budget covers; else it is always rejected, with SUCCESS, and a
    /// BID gets more money back than was held, unless `refuse_rejected` holds.
    fill_ioc_budget,
    /// A size or price that is not above zero is refused. (A size below zero in futures always is:
    /// positions have no meaning for it.)
    refuse_not_positive,
    /// A symbol whose maker fee is above its taker fee is refused: it would drain buying makers.
    refuse_maker_fee_over_taker,
    /// A moved ask must cover its fee, like a new one.
    refuse_moved_ask_under_fee,
    /// A suspended user may neither place nor move.
    refuse_suspended,
    /// A withdrawal must leave what futures margin needs beyond estimated profit.
    withdrawal_keeps_margin,
    /// A partly closed futures position realises its share of the profit, by its average price.
    realise_partial_close,
    /// Futures are traded inside a price band only, and every order and position is covered by its
    /// owner's money at the worst price of the band; profit is paid out of losses that were paid
    /// in. See `docs/exchange-rules.md`. Else the required margin depends on the best prices, which
    /// any trader can move.
    cover_futures,
    /// A budget order takes at no price worse than the symbol's band, and sells no lot that would
    /// not bring in its fee; the budget of a seller is a floor for every order type.
    bound_budgets,
    /// A removed user's last transaction id counts when the user comes back: no deposit counts
    /// twice.
    keep_transaction_ids,
    /// An order's id is its owner's alone: others may use the same.
    ids_per_user,
    /// An order that matching rejects whole (post-only, an id in use, a self-trade, FOK) is refused
    /// with a code of its own; else with SUCCESS. See
    /// [`RejectReason::result`](crate::RejectReason::result).
    refuse_rejected,
    /// A stop order whose trigger the symbol's last trade has passed is triggered at once; else it
    /// waits for the next trade there. (The reference has no stop orders. Without this, the last
    /// price is no part of a state's text.)
    trigger_passed_stops,
    /// An order ends when it has met as many orders as one command may ([`WORK_MAX`]): what is left
    /// of it is rejected, or removed where it was moved. An order that must be filled whole is
    /// rejected where more would have to be looked at. (The reference has no bound.)
    bound_work,
    /// The fees on what orders in covered futures may open are in their owner's balance. Else
    /// profit that waits covers them, and fees that the balance has not are not charged. (The
    /// reference has no covered futures.)
    hold_futures_fees,
}

/// The bound of a command's work, where [`Rules::bound_work`] holds. As it takes, an order makes at
/// most this many events; each refill of an iceberg order counts as [`REFILL_WORK`]. To find
/// whether an order can be filled whole, at most this many levels are visited. Where its makers
/// must be looked at one by one, at most this many orders are. With one clock command at most this
/// many orders expire. A user has orders and positions in at most this many futures symbols.
pub const WORK_MAX: usize = 1_024;

/// As how many events the refill of an iceberg order counts, so that an order meets at most 114 of
/// them, and one that must be filled whole 113. Without that, one placement of an iceberg order
/// would pay for hundreds of trades at once.
pub const REFILL_WORK: usize = 8;

impl Rules {
    /// The rules of the reference engine, quirks included.
    pub const REFERENCE: Self = Self::from_bits(0).with_margin_trading(true);

    /// Every quirk mended.
    pub const MENDED: Self = Self::from_bits(u32::MAX);

    /// The rules without which a balance, or the fees that were collected, can fall below zero:
    /// fees of the value and rebates need them all. The list is closed: a rule that is added here
    /// would take the symbols from exchanges that were begun before it.
    const SOUND_BALANCES: Self = Self {
        fill_fok: true,
        fill_ioc_budget: true,
        refuse_not_positive: true,
        refuse_maker_fee_over_taker: true,
        refuse_moved_ask_under_fee: true,
        refuse_suspended: true,
        withdrawal_keeps_margin: true,
        realise_partial_close: true,
        cover_futures: true,
        bound_budgets: true,
        keep_transaction_ids: true,
        ids_per_user: true,
        trigger_passed_stops: true,
        ..Self::from_bits(0)
    };

    /// The rules under which a snapshot says exactly whether a user is short; without one of them
    /// it says what was noted. This list is closed, too: older snapshots have the one or the other.
    const KNOWN_SHORT: Self = Self::from_bits((1 << 17) - 1);

    /// Returns true where no balance can fall below zero, with or without margin trading and later
    /// rules.
    pub(crate) fn keep_balances_sound(&self) -> bool {
        self.hold_all(Self::SOUND_BALANCES)
    }

    /// Returns true where a snapshot says exactly whether a user is short of cover.
    pub(crate) fn know_who_is_short(&self) -> bool {
        self.with_margin_trading(true).hold_all(Self::KNOWN_SHORT)
    }

    fn hold_all(&self, needed: Self) -> bool {
        self.bits() & needed.bits() == needed.bits()
    }

    /// Returns true where what an order could lose beyond its hold may hang on orders before it.
    pub(crate) const fn remember_orders(&self) -> bool {
        !(self.fill_ioc_budget
            && self.refuse_not_positive
            && self.refuse_maker_fee_over_taker
            && self.refuse_moved_ask_under_fee)
    }

    /// Returns how many events an order may make as it takes.
    pub(crate) const fn work_max(&self) -> usize {
        if self.bound_work {
            WORK_MAX
        } else {
            usize::MAX
        }
    }

    /// Returns these rules with margin trading on or off.
    #[must_use]
    pub const fn with_margin_trading(self, on: bool) -> Self {
        Self {
            margin_trading: on,
            ..self
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::MENDED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_its_bit() {
        assert_eq!(Rules::MENDED.bits(), (1 << Rules::COUNT) - 1);
        assert_eq!(Rules::REFERENCE.bits(), 1);
        for bits in 0..1 << Rules::COUNT {
            assert_eq!(Rules::from_bits(bits).bits(), bits);
        }
    }

    #[test]
    fn later_rules_are_not_needed_for_sound_balances() {
        let off = |rule: u32| Rules::from_bits(Rules::MENDED.bits() & !(1 << rule));
        let later = Rules {
            margin_trading: false,
            refuse_rejected: false,
            bound_work: false,
            hold_futures_fees: false,
            ..Rules::MENDED
        };
        assert!(later.keep_balances_sound());
        for rule in 0..Rules::COUNT {
            let is_needed = later.bits() & 1 << rule != 0;
            assert_eq!(off(rule).keep_balances_sound(), !is_needed, "rule {rule}");
        }
        // A rule that is added is in neither list.
        assert_eq!(Rules::SOUND_BALANCES.bits().count_ones(), 13);
        assert_eq!(Rules::KNOWN_SHORT.bits().count_ones(), 17);
    }
}
