//! Commands out of any bytes: few users, symbols, ids and prices, so that orders meet, and numbers
//! that are extreme.

use std::sync::Arc;

use thalweg_exchange::{
    AccountSpec, Action, AdjustmentKind, Amend, Command, ConditionalOrder, CurrencyId, FeeUnit,
    OrderFlags, OrderId, OrderType, Place, SymbolId, SymbolSpec, SymbolType, UserId, UserLimits,
};

/// The most commands of one input.
const COMMANDS_MAX: usize = 64;

/// Bytes from first to last, then zeros.
#[derive(Debug)]
pub(crate) struct Words<'b> {
    bytes: &'b [u8],
}

impl<'b> Words<'b> {
    pub(crate) const fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let [first, rest @ ..] = self.bytes else {
            return 0;
        };
        self.bytes = rest;
        *first
    }

    const fn is_over(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Mostly small, sometimes as large as numbers get.
    fn number(&mut self) -> i64 {
        match self.byte() {
            byte @ 0..224 => i64::from(byte),
            byte @ 224..240 => i64::from(byte) - 240,
            240..246 => i64::MAX - i64::from(self.byte()),
            246..250 => i64::MIN + i64::from(self.byte()),
            byte => 1 << (5 * (byte - 244) + 5),
        }
    }

    fn below(&mut self, bound: u8) -> u8 {
        self.byte() % bound
    }

    fn uid(&mut self) -> UserId {
        UserId(i64::from(self.below(4)))
    }

    fn symbol(&mut self) -> SymbolId {
        SymbolId(i32::from(self.below(4)))
    }

    fn order(&mut self) -> OrderId {
        OrderId(i64::from(self.below(16)))
    }

    fn wish(&mut self) -> Option<i64> {
        let value = self.number();
        (self.byte() & 1 == 1).then_some(value)
    }

    fn place(&mut self, with_flags: bool) -> Place {
        let bits = self.byte();
        let price = self.number();
        let flags = if with_flags { self.below(32) } else { 0 };
        Place {
            uid: self.uid(),
            symbol: self.symbol(),
            order_id: self.order(),
            order_type: match bits >> 1 & 15 {
                code @ 1..6 => OrderType::ALL[usize::from(code)],
                _ => OrderType::Gtc,
            },
            action: [Action::Ask, Action::Bid][usize::from(bits & 1)],
            price,
            reserve_price: if bits & 0x80 == 0 {
                price
            } else {
                self.number()
            },
            size: self.number(),
            flags: OrderFlags::from_code(flags).unwrap_or(OrderFlags::NONE),
        }
    }

    /// Returns a command that the plain book knows.
    fn plain(&mut self, op: u8) -> Command {
        match op {
            0..10 => Command::Place(self.place(false)),
            10..12 => Command::PlaceConditional(Arc::new(ConditionalOrder {
                display: Some(1 + i64::from(self.below(8))),
                ..self.place(false).into()
            })),
            12..15 => Command::cancel(self.uid(), self.symbol(), self.order()),
            15..20 => Command::move_to(self.uid(), self.symbol(), self.order(), self.number()),
            20..23 => Command::reduce(self.uid(), self.symbol(), self.order(), self.number()),
            23..26 => Command::Balance {
                uid: self.uid(),
                currency: CurrencyId(i32::from(self.below(3))),
                amount: self.number(),
                transaction_id: self.number(),
                kind: match self.byte() & 1 {
                    0 => AdjustmentKind::Adjustment,
                    _ => AdjustmentKind::Suspend,
                },
            },
            26 => Command::AddUser { uid: self.uid() },
            27 => Command::Suspend { uid: self.uid() },
            28 => Command::Resume { uid: self.uid() },
            _ => Command::Nop,
        }
    }

    /// Returns a command that the plain book need not know.
    fn special(&mut self, op: u8) -> Command {
        match op {
            0..4 => Command::Place(self.place(true)),
            4..10 => Command::PlaceConditional(Arc::new(ConditionalOrder {
                place: self.place(true),
                trigger: self.wish(),
                display: self.wish(),
                good_till: self.wish(),
            })),
            10..12 => Command::CancelAll {
                uid: (self.byte() & 1 == 1).then(|| self.uid()),
                symbol: (self.byte() & 1 == 1).then(|| self.symbol()),
            },
            12..14 => Command::Clock {
                time: self.number(),
            },
            14..16 => Command::set_price_band(self.symbol(), self.number(), self.number()),
            16 => Command::Halt {
                symbol: self.symbol(),
            },
            17 => Command::Unhalt {
                symbol: self.symbol(),
            },
            18 => Command::RemoveSymbol {
                symbol: self.symbol(),
            },
            19 => Command::AddSymbols([self.spec()].into()),
            20 => {
                let balances = vec![(CurrencyId(i32::from(self.below(3))), self.number())];
                let uid = self.uid();
                Command::AddAccounts([AccountSpec { uid, balances }].into())
            }
            21 => Command::Disconnect { uid: self.uid() },
            22..24 => Command::Amend(Arc::new(Amend {
                uid: self.uid(),
                symbol: self.symbol(),
                order_id: self.order(),
                action: [Action::Ask, Action::Bid][usize::from(self.byte() & 1)],
                reserve_price: self.number(),
                size_before: self.number(),
                price: self.number(),
                size: self.number(),
            })),
            24 => Command::StartAuction {
                symbol: self.symbol(),
            },
            25 => Command::Uncross {
                symbol: self.symbol(),
                reference: self.wish(),
            },
            26 => Command::SetMarketProtection {
                symbol: self.symbol(),
                ticks: self.number(),
            },
            27..29 => self.of_an_operator(op),
            _ => Command::Reset,
        }
    }

    fn of_an_operator(&mut self, op: u8) -> Command {
        match op {
            27 => Command::SetLimits {
                uid: (self.byte() & 1 == 1).then(|| self.uid()),
                limits: (self.byte() & 1 == 1).then(|| UserLimits {
                    open_orders: self.number() as u32,
                    order_size: self.number(),
                    ids_once: self.byte() & 1 == 1,
                }),
            },
            _ => Command::PayFees {
                uid: self.uid(),
                currency: CurrencyId(i32::from(self.below(3))),
                amount: self.number(),
                transaction_id: self.number(),
            },
        }
    }

    fn spec(&mut self) -> SymbolSpec {
        SymbolSpec {
            id: self.symbol(),
            symbol_type: match self.below(3) {
                0 => SymbolType::CurrencyPair,
                1 => SymbolType::Futures,
                _ => SymbolType::Option,
            },
            base_currency: CurrencyId(i32::from(self.below(3))),
            quote_currency: CurrencyId(i32::from(self.below(3))),
            base_scale: self.number(),
            quote_scale: self.number(),
            taker_fee: self.number(),
            maker_fee: self.number(),
            margin_buy: self.number(),
            margin_sell: self.number(),
            fee_unit: [FeeUnit::PerLot, FeeUnit::Millionth][usize::from(self.below(2))],
        }
    }

    /// Commands to the end of the bytes, for the plain book or of every kind.
    pub(crate) fn commands(&mut self, is_plain: bool) -> Vec<Command> {
        let mut commands = Vec::new();
        while !self.is_over() && commands.len() < COMMANDS_MAX {
            let op = self.byte();
            commands.push(if is_plain || op & 0x80 == 0 {
                self.plain(op & 31)
            } else {
                self.special(op & 0x7F & 31)
            });
        }
        commands
    }
}

/// The symbols that are there from the start: two pairs and a futures contract.
pub(crate) fn symbols() -> [SymbolSpec; 3] {
    let pair = SymbolSpec::pair(SymbolId(0), CurrencyId(0), CurrencyId(1))
        .with_scales(3, 2)
        .with_type(SymbolType::CurrencyPair)
        .with_fees(5, 2);
    let other = SymbolSpec {
        id: SymbolId(1),
        base_currency: CurrencyId(1),
        quote_currency: CurrencyId(2),
        base_scale: 1,
        quote_scale: 1,
        taker_fee: 0,
        maker_fee: 0,
        ..pair
    };
    let futures = SymbolSpec {
        id: SymbolId(2),
        symbol_type: SymbolType::Futures,
        margin_buy: 4,
        margin_sell: 3,
        ..pair
    };
    [pair, other, futures]
}

/// The symbols, and three users with some money.
pub(crate) fn setup() -> [Command; 2] {
    let account = |uid| AccountSpec {
        uid: UserId(uid),
        balances: (0..3)
            .map(|currency| (CurrencyId(currency), 100_000))
            .collect(),
    };
    let accounts: Vec<AccountSpec> = (0..3).map(account).collect();
    [
        Command::AddSymbols(symbols().into()),
        Command::AddAccounts(accounts.into()),
    ]
}
