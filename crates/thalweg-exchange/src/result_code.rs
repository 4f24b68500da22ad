//! The answer to a command: a code with a fixed number and name.

use crate::codes::codes;

codes! {
    /// How a command ended. Numbers and names up to −9999 are those of exchange-core; the codes of
    /// rules that it lacks are marked "own code".
    #[derive(Default)]
    #[non_exhaustive]
    pub enum ResultCode: i32;
    /// Not looked at yet.
    #[default]
    New = 0, "NEW";
    /// The risk check passed; matching comes next.
    ValidForMatchingEngine = 1, "VALID_FOR_MATCHING_ENGINE";
    /// Done.
    Success = 100, "SUCCESS";
    /// Taken, to be done later.
    Accepted = 110, "ACCEPTED";
    /// No such user.
    AuthInvalidUser = -1001, "AUTH_INVALID_USER";
    /// The session is over.
    AuthTokenExpired = -1002, "AUTH_TOKEN_EXPIRED";
    /// Own code: a suspended user may not place or move.
    AuthUserSuspended = -1101, "AUTH_USER_SUSPENDED";
    /// The symbol is not known to the risk check.
    InvalidSymbol = -1201, "INVALID_SYMBOL";
    /// The price is not a multiple of the step.
    InvalidPriceStep = -1202, "INVALID_PRICE_STEP";
    /// Own code: the symbol is halted, and takes no new and no moved orders.
    SymbolHalted = -1211, "SYMBOL_HALTED";
    /// Own code: the symbol is halted already.
    SymbolAlreadyHalted = -1212, "SYMBOL_ALREADY_HALTED";
    /// Own code: only a halted symbol can be unhalted.
    SymbolNotHalted = -1213, "SYMBOL_NOT_HALTED";
    /// Own code: a futures symbol takes no orders before it has a price band.
    SymbolWithoutPriceBand = -1214, "SYMBOL_WITHOUT_PRICE_BAND";
    /// Own code: the symbol collects orders for an auction; what cannot rest, or must not take,
    /// cannot come, and no second auction can start. While it ends in steps, no order can leave or
    /// change either.
    SymbolInAuction = -1215, "SYMBOL_IN_AUCTION";
    /// Own code: there is no auction to end.
    SymbolNotInAuction = -1216, "SYMBOL_NOT_IN_AUCTION";
    /// No trading in this kind of symbol.
    UnsupportedSymbolType = -1203, "UNSUPPORTED_SYMBOL_TYPE";
    /// Too little money, or another refusal that depends on the symbol's type.
    RiskNsf = -2001, "RISK_NSF";
    /// The reserve price does not fit the price.
    RiskInvalidReserveBidPrice = -2002, "RISK_INVALID_RESERVE_BID_PRICE";
    /// The ask would not cover its own fee.
    RiskAskPriceLowerThanFee = -2003, "RISK_ASK_PRICE_LOWER_THAN_FEE";
    /// Margin trading is off.
    RiskMarginTradingDisabled = -2004, "RISK_MARGIN_TRADING_DISABLED";
    /// Own code: a size must be above zero.
    RiskSizeNotPositive = -2101, "RISK_SIZE_NOT_POSITIVE";
    /// Own code: a price must be above zero.
    RiskPriceNotPositive = -2102, "RISK_PRICE_NOT_POSITIVE";
    /// Own code: the command's arithmetic could leave 64 bits.
    RiskArithmeticOverflow = -2103, "RISK_ARITHMETIC_OVERFLOW";
    /// Own code: the price is outside the symbol's price band.
    RiskPriceOutsideBand = -2104, "RISK_PRICE_OUTSIDE_BAND";
    /// Own code: only a GTC order can be post-only.
    RiskPostOnlyOrderType = -2111, "RISK_POST_ONLY_ORDER_TYPE";
    /// Own code: only a GTC, IOC or market order can be a stop order.
    RiskStopOrderType = -2112, "RISK_STOP_ORDER_TYPE";
    /// Own code: only a GTC order can be an iceberg order.
    RiskIcebergOrderType = -2113, "RISK_ICEBERG_ORDER_TYPE";
    /// Own code: an iceberg order must display at least a lot, and a thousandth of its size.
    RiskIcebergDisplay = -2114, "RISK_ICEBERG_DISPLAY";
    /// Own code: only a GTC order, or a stop order while it waits, can be good till a time.
    RiskGoodTillOrderType = -2115, "RISK_GOOD_TILL_ORDER_TYPE";
    /// Own code: the time till which the order should be good has come.
    RiskGoodTillPassed = -2116, "RISK_GOOD_TILL_PASSED";
    /// Own code: the time is before that of the last clock command.
    RiskClockWentBack = -2117, "RISK_CLOCK_WENT_BACK";
    /// Own code: a user could come to have too many lots open in a futures symbol.
    RiskTooManyLots = -2105, "RISK_TOO_MANY_LOTS";
    /// Own code: the user has orders or positions in as many futures symbols as are allowed
    /// ([`WORK_MAX`](crate::WORK_MAX)), and this is another one.
    RiskTooManyPositions = -2106, "RISK_TOO_MANY_POSITIONS";
    /// Own code: the order has more lots than its owner's limit allows.
    RiskOrderTooLarge = -2121, "RISK_ORDER_TOO_LARGE";
    /// Own code: as many orders of the user rest and wait as the limit allows.
    RiskTooManyOrders = -2122, "RISK_TOO_MANY_ORDERS";
    /// Own code: the user has used the order id, and ids count once.
    RiskOrderIdUsed = -2123, "RISK_ORDER_ID_USED";
    /// Own code: ids count once, and the order id is too far below the highest to know of it.
    RiskOrderIdTooOld = -2124, "RISK_ORDER_ID_TOO_OLD";
    /// The order does not rest in this symbol, or belongs to another user.
    MatchingUnknownOrderId = -3002, "MATCHING_UNKNOWN_ORDER_ID";
    /// The command or order type is not supported.
    MatchingUnsupportedCommand = -3004, "MATCHING_UNSUPPORTED_COMMAND";
    /// The symbol has no book.
    MatchingInvalidOrderBookId = -3005, "MATCHING_INVALID_ORDER_BOOK_ID";
    /// A bid cannot be moved above its reserve price.
    MatchingMoveFailedPriceOverRiskLimit = -3041, "MATCHING_MOVE_FAILED_PRICE_OVER_RISK_LIMIT";
    /// A reduction must be above zero.
    MatchingReduceFailedWrongSize = -3051, "MATCHING_REDUCE_FAILED_WRONG_SIZE";
    /// Own code: an ask cannot be moved to where it would not cover its own fee.
    MatchingMoveFailedPriceLowerThanFee = -3141, "MATCHING_MOVE_FAILED_PRICE_LOWER_THAN_FEE";
    /// Own code: a post-only order cannot be moved to where it would take.
    MatchingMoveFailedPostOnly = -3142, "MATCHING_MOVE_FAILED_POST_ONLY";
    /// Own code: the order cannot be filled whole within its limit or budget.
    MatchingRejectedFillOrKill = -3101, "MATCHING_REJECTED_FILL_OR_KILL";
    /// Own code: the order is post-only and would take.
    MatchingRejectedPostOnly = -3102, "MATCHING_REJECTED_POST_ONLY";
    /// Own code: an order of the same owner with this id rests or waits in the symbol.
    MatchingRejectedDuplicateId = -3103, "MATCHING_REJECTED_DUPLICATE_ID";
    /// Own code: the order would trade with one of its owner's first of all.
    MatchingRejectedSelfTrade = -3104, "MATCHING_REJECTED_SELF_TRADE";
    /// Own code: the order would have to meet more orders than one command may.
    MatchingRejectedWorkLimit = -3105, "MATCHING_REJECTED_WORK_LIMIT";
    /// Own code: the order that should be amended is not as the command says.
    MatchingAmendMismatch = -3143, "MATCHING_AMEND_MISMATCH";
    /// The user is known already.
    UserMgmtUserAlreadyExists = -4001, "USER_MGMT_USER_ALREADY_EXISTS";
    /// The transaction id is the last one again.
    UserMgmtAccountBalanceAdjustmentAlreadyAppliedSame = -4101,
        "USER_MGMT_ACCOUNT_BALANCE_ADJUSTMENT_ALREADY_APPLIED_SAME";
    /// The transaction id is below the last one.
    UserMgmtAccountBalanceAdjustmentAlreadyAppliedMany = -4102,
        "USER_MGMT_ACCOUNT_BALANCE_ADJUSTMENT_ALREADY_APPLIED_MANY";
    /// Too little money to withdraw.
    UserMgmtAccountBalanceAdjustmentNsf = -4103, "USER_MGMT_ACCOUNT_BALANCE_ADJUSTMENT_NSF";
    /// Own code: fewer fees were collected, or more were paid out.
    FeesNsf = -4111, "FEES_NSF";
    /// Own code: fees that are paid out must be above zero.
    FeesAmountNotPositive = -4112, "FEES_AMOUNT_NOT_POSITIVE";
    /// The account has money.
    UserMgmtNonZeroAccountBalance = -4104, "USER_MGMT_NON_ZERO_ACCOUNT_BALANCE";
    /// A user with positions cannot be suspended.
    UserMgmtUserNotSuspendableHasPositions = -4130,
        "USER_MGMT_USER_NOT_SUSPENDABLE_HAS_POSITIONS";
    /// A user with money cannot be suspended.
    UserMgmtUserNotSuspendableNonEmptyAccounts = -4131,
        "USER_MGMT_USER_NOT_SUSPENDABLE_NON_EMPTY_ACCOUNTS";
    /// Only a suspended user can be resumed.
    UserMgmtUserNotSuspended = -4132, "USER_MGMT_USER_NOT_SUSPENDED";
    /// The user is suspended already.
    UserMgmtUserAlreadySuspended = -4133, "USER_MGMT_USER_ALREADY_SUSPENDED";
    /// No such user to suspend.
    UserMgmtUserNotFound = -4201, "USER_MGMT_USER_NOT_FOUND";
    /// The symbol is known already.
    SymbolAlreadyExists = -5001, "SYMBOL_ALREADY_EXISTS";
    /// Own code: a maker fee above the taker fee would drain buying makers.
    SymbolMakerFeeOverTakerFee = -5101, "SYMBOL_MAKER_FEE_OVER_TAKER_FEE";
    /// Own code: a scale below one, a negative margin or market protection, or a fee that the rules
    /// forbid.
    SymbolInvalidSpec = -5102, "SYMBOL_INVALID_SPEC";
    /// Own code: a price band's lowest price is above its highest.
    SymbolInvalidPriceBand = -5103, "SYMBOL_INVALID_PRICE_BAND";
    /// Own code: a user has an open position in the symbol.
    SymbolHasOpenPositions = -5104, "SYMBOL_HAS_OPEN_POSITIONS";
    /// A batch failed.
    BinaryCommandFailed = -8001, "BINARY_COMMAND_FAILED";
    /// No such report.
    ReportQueryUnknownType = -8003, "REPORT_QUERY_UNKNOWN_TYPE";
    /// The risk state could not be saved.
    StatePersistRiskEngineFailed = -8010, "STATE_PERSIST_RISK_ENGINE_FAILED";
    /// The books could not be saved.
    StatePersistMatchingEngineFailed = -8020, "STATE_PERSIST_MATCHING_ENGINE_FAILED";
    /// Dropped.
    Drop = -9999, "DROP";
}

impl ResultCode {
    /// Returns true where the command was refused: every negative code.
    #[must_use]
    pub const fn is_refusal(self) -> bool {
        self.code() < 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_unique_and_found_again() {
        for code in ResultCode::ALL {
            let first = ResultCode::ALL
                .into_iter()
                .find(|one| one.name() == code.name());
            assert_eq!(first, Some(code));
            assert_eq!(ResultCode::from_code(code.code()), Some(code));
            assert_eq!(code.to_string(), code.name());
        }
    }
}
