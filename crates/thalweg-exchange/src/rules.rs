//! The two dialects as one value: which quirks of the reference engine are mended.

/// Which rules hold. [`Rules::REFERENCE`] copies the reference engine, quirks included;
/// [`Rules::default`] mends them all. Each `bool` but `margin_trading` is one quirk: true means
/// mended. They can be mixed freely; arithmetic stays checked under every mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Futures may be traded, and free margin counts for holds. Off, a futures symbol has a book
    /// but is unknown to the risk check.
    pub margin_trading: bool,
    /// FOK fills fully within its limit or is rejected; else it is always rejected. (With SUCCESS,
    /// unless `refuse_rejected` holds.)
    pub fill_fok: bool,
    /// IOC_BUDGET fills what its budget covers; else it is always rejected, with SUCCESS, and a
    /// BID gets more money back than was held, unless `refuse_rejected` holds.
    pub fill_ioc_budget: bool,
    /// A size or price that is not above zero is refused. (A size below zero in futures always is:
    /// positions have no meaning for it.)
    pub refuse_not_positive: bool,
    /// A symbol whose maker fee is above its taker fee is refused: it would drain buying makers.
    pub refuse_maker_fee_over_taker: bool,
    /// A moved ask must cover its fee, like a new one.
    pub refuse_moved_ask_under_fee: bool,
    /// A suspended user may neither place nor move.
    pub refuse_suspended: bool,
    /// A withdrawal must leave what futures margin needs beyond estimated profit.
    pub withdrawal_keeps_margin: bool,
    /// A partly closed futures position realises its share of the profit, by its average price.
    pub realise_partial_close: bool,
    /// Futures are traded inside a price band only, and every order and position is covered by its
    /// owner's money at the worst price of the band; profit is paid out of losses that were paid
    /// in. See `docs/exchange-rules.md`. Else the required margin depends on the best prices, which
    /// any trader can move.
    pub cover_futures: bool,
    /// A budget order takes at no price worse than the symbol's band, and sells no lot that would
    /// not bring in its fee; the budget of a seller is a floor for every order type.
    pub bound_budgets: bool,
    /// A removed user's last transaction id counts when the user comes back: no deposit counts
    /// twice.
    pub keep_transaction_ids: bool,
    /// An order's id is its owner's alone: others may use the same.
    pub ids_per_user: bool,
    /// An order that matching rejects whole (post-only, an id in use, a self-trade, FOK) is refused
    /// with a code of its own; else with SUCCESS. See
    /// [`RejectReason::result`](crate::RejectReason::result).
    pub refuse_rejected: bool,
    /// A stop order whose trigger the symbol's last trade has passed is triggered at once; else it
    /// waits for the next trade there. (The reference has no stop orders. Without this, the last
    /// price is no part of a state's text.)
    pub trigger_passed_stops: bool,
    /// An order ends when it has met as many orders as one command may ([`WORK_MAX`]): what is left
    /// of it is rejected, or removed where it was moved. An order that must be filled whole is
    /// rejected where more would have to be looked at. (The reference has no bound.)
    pub bound_work: bool,
}

/// The bound of a command's work, where [`Rules::bound_work`] holds. As it takes, an order makes at
/// most this many events; a trade is one, and each refill of an iceberg order another. To find
/// whether an order can be filled whole, at most this many levels are visited. Where its makers
/// must be looked at one by one, at most this many orders are. With one clock command at most this
/// many orders expire.
pub const WORK_MAX: usize = 1_024;

impl Rules {
    /// The rules of the reference engine, quirks included.
    pub const REFERENCE: Self = Self {
        margin_trading: true,
        fill_fok: false,
        fill_ioc_budget: false,
        refuse_not_positive: false,
        refuse_maker_fee_over_taker: false,
        refuse_moved_ask_under_fee: false,
        refuse_suspended: false,
        withdrawal_keeps_margin: false,
        realise_partial_close: false,
        cover_futures: false,
        bound_budgets: false,
        keep_transaction_ids: false,
        ids_per_user: false,
        refuse_rejected: false,
        trigger_passed_stops: false,
        bound_work: false,
    };

    /// Every quirk mended.
    pub const MENDED: Self = Self {
        margin_trading: true,
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
        refuse_rejected: true,
        trigger_passed_stops: true,
        bound_work: true,
    };

    /// True where every quirk is mended, with or without margin trading.
    pub(crate) fn are_mended(&self) -> bool {
        self.with_margin_trading(true) == Self::MENDED
    }

    /// True where what an order could lose beyond its hold may hang on orders before it.
    pub(crate) const fn remember_orders(&self) -> bool {
        !(self.fill_ioc_budget
            && self.refuse_not_positive
            && self.refuse_maker_fee_over_taker
            && self.refuse_moved_ask_under_fee)
    }

    /// How many events an order may make as it takes.
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
