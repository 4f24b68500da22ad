//! Commands as bytes: a struct for each, and a table of all. The four that make up nearly all of a
//! stream have a path of their own.

use std::sync::Arc;

use zerocopy::little_endian::{I64, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::batch;
use super::error::CodecError;
use super::fields::Writer;
use super::frame::{Body, Head, put, read, room_for};
use crate::command::{Action, Amend, OrderFlags};
use crate::command::{AdjustmentKind, Command, ConditionalOrder, OrderType, Place, UserLimits};
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};
use crate::wire::{Bits, Form, Wire, present, wire};

wire! {
    /// An order: its type and side in byte 6, its flags in byte 7.
    pub(super) struct PlaceForm = Place [order_type: OrderType, action: Action; flags: OrderFlags] {
        symbol: SymbolId, uid: UserId, order_id: OrderId,
        price: i64, reserve_price: i64, size: i64,
    }
    pub(super) struct CancelForm = Command::Cancel {
        symbol: SymbolId, uid: UserId, order_id: OrderId,
    }
    pub(super) struct MoveForm = Command::Move {
        symbol: SymbolId, uid: UserId, order_id: OrderId, price: i64,
    }
    pub(super) struct ReduceForm = Command::Reduce {
        symbol: SymbolId, uid: UserId, order_id: OrderId, by: i64,
    }
    struct ConditionsForm = Conditions [
        | trigger: "the trigger of an order without one",
        display: "the display size of an order without one",
        good_till: "the last time of an order without one"
    ] { trigger: Option<i64>, display: Option<i64>, good_till: Option<i64> }
    /// An amendment, with the order's side in byte 6.
    struct AmendForm = Amend [action: Action] {
        symbol: SymbolId, uid: UserId, order_id: OrderId,
        reserve_price: i64, size_before: i64, price: i64, size: i64,
    }
    /// A mass cancel: of one user, in one symbol.
    struct CancelAllForm = Command::CancelAll [
        | uid: "the user of a mass cancel of all", symbol: "the symbol of a mass cancel in all"
    ] { symbol: Option<SymbolId>, uid: Option<UserId> }
    struct DisconnectForm = Command::Disconnect { uid: UserId }
    struct AddUserForm = Command::AddUser { uid: UserId }
    /// An adjustment, with the total that it is booked against in byte 6.
    struct BalanceForm = Command::Balance [kind: AdjustmentKind] {
        currency: CurrencyId, uid: UserId, amount: i64, transaction_id: i64,
    }
    struct SuspendForm = Command::Suspend { uid: UserId }
    struct ResumeForm = Command::Resume { uid: UserId }
    struct PayFeesForm = Command::PayFees {
        currency: CurrencyId, uid: UserId, amount: i64, transaction_id: i64,
    }
    struct ClockForm = Command::Clock { time: i64 }
    struct SetPriceBandForm = Command::SetPriceBand { symbol: SymbolId, low: i64, high: i64 }
    struct HaltForm = Command::Halt { symbol: SymbolId }
    struct UnhaltForm = Command::Unhalt { symbol: SymbolId }
    struct RemoveSymbolForm = Command::RemoveSymbol { symbol: SymbolId }
    struct SetMarketProtectionForm = Command::SetMarketProtection { symbol: SymbolId, ticks: i64 }
    struct StartAuctionForm = Command::StartAuction { symbol: SymbolId }
    struct UncrossForm = Command::Uncross [
        | reference: "the reference price of an auction without"
    ] { symbol: SymbolId, reference: Option<i64> }
    struct RunStopsForm = Command::RunStops { symbol: SymbolId }
    struct NopForm = Command::Nop {}
    struct ResetForm = Command::Reset {}
}

/// An order with conditions: the bits of these are behind the side in byte 6.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct PlaceWithForm {
    place: PlaceForm,
    conditions: ConditionsForm,
}

#[derive(Clone, Copy)]
struct Conditions {
    trigger: Option<i64>,
    display: Option<i64>,
    good_till: Option<i64>,
}

const CONDITIONS_BIT: u32 = 4;

impl Form for PlaceWithForm {
    type Value = ConditionalOrder;
    const SMALL_MAX: [u8; 2] = {
        let [first, flags] = PlaceForm::SMALL_MAX;
        [
            first | ConditionsForm::SMALL_MAX[0] << CONDITIONS_BIT,
            flags,
        ]
    };

    fn of(order: &ConditionalOrder) -> ([u8; 2], Self) {
        let ([first, flags], place) = PlaceForm::of(&order.place);
        let ([bits, _], conditions) = ConditionsForm::of(&Conditions {
            trigger: order.trigger,
            display: order.display,
            good_till: order.good_till,
        });
        let small = [first | bits << CONDITIONS_BIT, flags];
        (small, Self { place, conditions })
    }

    fn value(&self, own: [u8; 2], at: [usize; 2]) -> Result<ConditionalOrder, CodecError> {
        let place = self.place.value(own, at)?;
        let bits = own[0] >> CONDITIONS_BIT;
        if bits == 0 {
            return Err(CodecError::NoCondition);
        }
        let at = [at[0], at[1] + size_of::<PlaceForm>()];
        let conditions = self.conditions.value([bits, 0], at)?;
        Ok(ConditionalOrder {
            place,
            trigger: conditions.trigger,
            display: conditions.display,
            good_till: conditions.good_till,
        })
    }
}

/// Limits. Bits of byte 6: of one user, there are some, ids count once; what does not apply is 0.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SetLimitsForm {
    open_orders: U32,
    uid: I64,
    order_size: I64,
}

impl Form for SetLimitsForm {
    type Value = Command;
    const SMALL_MAX: [u8; 2] = [7, 0];

    fn of(command: &Command) -> ([u8; 2], Self) {
        let Command::SetLimits { uid, limits } = *command else {
            unreachable!("a form is made of its own variant")
        };
        let once = limits.is_some_and(|limits| limits.ids_once);
        let bits = Bits::new(0).with(uid.is_some()).with(limits.is_some());
        let form = Self {
            open_orders: limits.map(|limits| limits.open_orders).bytes(),
            uid: uid.bytes(),
            order_size: limits.map(|limits| limits.order_size).bytes(),
        };
        ([bits.with(once).byte(), 0], form)
    }

    fn value(&self, own: [u8; 2], [own_at, at]: [usize; 2]) -> Result<Command, CodecError> {
        let [of_user, has_limits, ids_once] = [1, 2, 4].map(|bit| own[0] & bit != 0);
        if ids_once && !has_limits {
            return Err(CodecError::unknown("what limits have", own_at, own[0]));
        }
        let open_orders = Some(self.open_orders.get());
        let what = "the open orders of limits that are taken away";
        let open_orders = present(has_limits, open_orders, what, at)?;
        let what = "the user of limits of everybody";
        let uid = present(of_user, Some(UserId(self.uid.get())), what, at + 4)?;
        let what = "the size of limits that are taken away";
        let order_size = present(has_limits, Some(self.order_size.get()), what, at + 12)?;
        let limits = open_orders.zip(order_size);
        Ok(Command::SetLimits {
            uid,
            limits: limits.map(|(open_orders, order_size)| UserLimits {
                open_orders,
                order_size,
                ids_once,
            }),
        })
    }
}

/// The commands of fixed length: kind, name in errors, struct; and the variant, where that has the
/// fields itself.
macro_rules! commands {
    ($($KIND:ident = $kind:literal: $what:literal, $form:ident $(, $variant:ident)?;)*) => {
        /// The kinds of commands: the code that the reference engine has, where it has one.
        pub(crate) mod kind {
            $(pub(crate) const $KIND: u8 = $kind;)*
            pub(crate) const ADD_SYMBOLS: u8 = 20;
            pub(crate) const ADD_ACCOUNTS: u8 = 21;
        }

        $(impl Body for $form {
            const KIND: u8 = kind::$KIND;
            const WHAT: &'static str = $what;
        })*

        /// Checks the head of a command of fixed length.
        fn check_fixed(head: Head) -> Result<(), CodecError> {
            match head.kind {
                $(kind::$KIND => head.check::<$form>(),)*
                _ => head.unknown("command"),
            }
        }

        /// Reads a command of fixed length whose head was checked.
        fn decode_fixed(bytes: &[u8], head: Head) -> Result<Command, CodecError> {
            Ok(match head.kind {
                $(kind::$KIND => Command::from(read::<$form>(bytes, head)?),)*
                _ => unreachable!("the head was checked"),
            })
        }

        /// Returns how long a command's frame is, in bytes.
        #[must_use]
        #[inline]
        pub fn command_bytes(command: &Command) -> usize {
            match command {
                Command::Place(_) => PlaceForm::BYTES,
                Command::PlaceConditional(order) if order.has_conditions() => PlaceWithForm::BYTES,
                Command::PlaceConditional(_) => PlaceForm::BYTES,
                Command::Amend(_) => AmendForm::BYTES,
                Command::AddSymbols(symbols) => batch::symbols_bytes(symbols),
                Command::AddAccounts(accounts) => batch::accounts_bytes(accounts),
                $($(Command::$variant { .. } => $form::BYTES,)?)*
            }
        }

        #[cold]
        #[inline(never)]
        fn encode_rare(command: &Command, out: &mut [u8]) -> Result<usize, CodecError> {
            match command {
                Command::Place(place) => put::<PlaceForm>(place, out),
                Command::PlaceConditional(order) if order.has_conditions() => {
                    put::<PlaceWithForm>(order, out)
                }
                Command::PlaceConditional(order) => put::<PlaceForm>(&order.place, out),
                Command::Amend(amend) => put::<AmendForm>(amend, out),
                Command::AddSymbols(_) | Command::AddAccounts(_) => encode_batch(command, out),
                $($(Command::$variant { .. } => put::<$form>(command, out),)?)*
            }
        }
    };
}

commands! {
    PLACE = 1: "an order", PlaceForm;
    CANCEL = 2: "a cancel", CancelForm, Cancel;
    MOVE = 3: "a move", MoveForm, Move;
    REDUCE = 4: "a reduction", ReduceForm, Reduce;
    PLACE_WITH = 5: "a conditional order", PlaceWithForm;
    CANCEL_ALL = 7: "a mass cancel", CancelAllForm, CancelAll;
    DISCONNECT = 8: "a disconnection", DisconnectForm, Disconnect;
    AMEND = 9: "an amendment", AmendForm;
    ADD_USER = 10: "a new user", AddUserForm, AddUser;
    BALANCE = 11: "an adjustment", BalanceForm, Balance;
    SUSPEND = 12: "a suspension", SuspendForm, Suspend;
    RESUME = 13: "a resumption", ResumeForm, Resume;
    PAY_FEES = 14: "a payment of fees", PayFeesForm, PayFees;
    SET_LIMITS = 15: "limits", SetLimitsForm, SetLimits;
    CLOCK = 30: "a time", ClockForm, Clock;
    SET_PRICE_BAND = 31: "a price band", SetPriceBandForm, SetPriceBand;
    HALT = 32: "a halt", HaltForm, Halt;
    UNHALT = 33: "the end of a halt", UnhaltForm, Unhalt;
    REMOVE_SYMBOL = 34: "the removal of a symbol", RemoveSymbolForm, RemoveSymbol;
    SET_MARKET_PROTECTION = 35: "a protection", SetMarketProtectionForm, SetMarketProtection;
    START_AUCTION = 36: "an auction", StartAuctionForm, StartAuction;
    UNCROSS = 37: "the end of an auction", UncrossForm, Uncross;
    RUN_STOPS = 38: "stop orders that are left over", RunStopsForm, RunStops;
    NOP = 120: "nothing", NopForm, Nop;
    RESET = 124: "a reset", ResetForm, Reset;
}

/// Writes a command's frame at the beginning of `out`; the result is its length in bytes. An order
/// [with conditions](Command::PlaceConditional) that has none is written as the order that it is,
/// and comes back as a [`Command::Place`].
///
/// # Errors
/// [`CodecError::BufferTooSmall`], or of a batch [`CodecError::TooLong`]; nothing is written then.
#[inline(always)]
pub fn encode_command(command: &Command, out: &mut [u8]) -> Result<usize, CodecError> {
    match command {
        Command::Place(place) => put::<PlaceForm>(place, out),
        Command::Cancel { .. } => put::<CancelForm>(command, out),
        Command::Move { .. } => put::<MoveForm>(command, out),
        Command::Reduce { .. } => put::<ReduceForm>(command, out),
        _ => encode_rare(command, out),
    }
}

fn encode_batch(command: &Command, out: &mut [u8]) -> Result<usize, CodecError> {
    let length = command_bytes(command);
    let out = &mut Writer::new(room_for(out, length)?);
    let head = |kind| Head::new(length, kind, [0; 2]);
    match command {
        Command::AddSymbols(symbols) => batch::put_symbols(head(kind::ADD_SYMBOLS), symbols, out),
        Command::AddAccounts(list) => batch::put_accounts(head(kind::ADD_ACCOUNTS), list, out),
        _ => unreachable!("it is no batch"),
    }
    Ok(length)
}

/// Reads the command at the beginning of `bytes`; with it, the length of its frame in bytes.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it; any other where not.
#[inline]
pub fn decode_command(bytes: &[u8]) -> Result<(Command, usize), CodecError> {
    let mut command = Command::Nop;
    let length = decode_command_into(bytes, &mut command)?;
    Ok((command, length))
}

/// Decodes as [`decode_command`] does, but puts the command where it is to be and returns the
/// length: twice as fast, since nothing is moved that was just written.
///
/// # Errors
/// As [`decode_command`]; the command is left as it was.
#[inline]
pub fn decode_command_into(bytes: &[u8], command: &mut Command) -> Result<usize, CodecError> {
    let head = Head::read(bytes)?;
    // The first three have no own bits.
    let frequent = match head.number() {
        MoveForm::HEAD => read_into::<MoveForm>(bytes, head, command),
        ReduceForm::HEAD => read_into::<ReduceForm>(bytes, head, command),
        CancelForm::HEAD => read_into::<CancelForm>(bytes, head, command),
        _ if is_place(head) => read_into::<PlaceForm>(bytes, head, command),
        _ => None,
    };
    if let Some(length) = frequent {
        return Ok(length);
    }
    let (decoded, length) = decode_rare(bytes, head)?;
    *command = decoded;
    Ok(length)
}

#[inline(always)]
fn read_into<B: Body<Value: Into<Command>>>(
    bytes: &[u8],
    head: Head,
    command: &mut Command,
) -> Option<usize> {
    *command = read::<B>(bytes, head).ok()?.into();
    Some(B::BYTES)
}

/// Returns whether the head is that of an order, without a look at the codes in its own bytes.
#[inline(always)]
pub(super) fn is_place(head: Head) -> bool {
    head.number() & Head::FORM == PlaceForm::HEAD && head.own[0] <= PlaceForm::SMALL_MAX[0]
}

/// Returns the length of the frame of one of the most frequent commands by its head, which nothing
/// is wrong with; `None` of others.
#[inline(always)]
pub(super) fn frequent_bytes(head: Head) -> Option<usize> {
    match head.number() {
        MoveForm::HEAD => Some(MoveForm::BYTES),
        ReduceForm::HEAD => Some(ReduceForm::BYTES),
        CancelForm::HEAD => Some(CancelForm::BYTES),
        _ if is_place(head) => {
            PlaceForm::check_codes(head.own).ok()?;
            Some(PlaceForm::BYTES)
        }
        _ => None,
    }
}

/// Reads any frame: what is rare, and what is wrong.
#[cold]
#[inline(never)]
fn decode_rare(bytes: &[u8], head: Head) -> Result<(Command, usize), CodecError> {
    check(bytes, head)?;
    let length = head.length()?;
    let command = match head.kind {
        kind::ADD_SYMBOLS => Command::AddSymbols(batch::symbols(head.frame(bytes)?)?),
        kind::ADD_ACCOUNTS => Command::AddAccounts(batch::accounts(head.frame(bytes)?)?),
        _ => decode_fixed(bytes, head)?,
    };
    Ok((command, length))
}

/// Returns the error that a command's head, and the number of items of a batch, prove whatever
/// follows.
pub(super) fn check(bytes: &[u8], head: Head) -> Result<(), CodecError> {
    match head.kind {
        kind::ADD_SYMBOLS => batch::check_symbols(bytes, head),
        kind::ADD_ACCOUNTS => batch::check_accounts(bytes, head),
        _ => check_fixed(head),
    }
}

impl From<Place> for Command {
    fn from(place: Place) -> Self {
        Self::Place(place)
    }
}

impl From<ConditionalOrder> for Command {
    fn from(order: ConditionalOrder) -> Self {
        Self::PlaceConditional(Arc::new(order))
    }
}

impl From<Amend> for Command {
    fn from(amend: Amend) -> Self {
        Self::Amend(Arc::new(amend))
    }
}
