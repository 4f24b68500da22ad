//! Commands as bytes: a struct for each, and a table of all. The four that make up nearly all of a
//! stream have a path of their own.

use std::sync::Arc;

use zerocopy::little_endian::{I64, U32};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::batch;
use super::error::CodecError;
use super::fields::{Reader, Writer, nothing, optional};
use super::frame::{Body, HEAD_BYTES, Head, get, kind, put, read, room_for};
use crate::command::{Action, Amend, OrderFlags};
use crate::command::{AdjustmentKind, Command, ConditionalOrder, OrderType, Place, UserLimits};
use crate::ids::{CurrencyId, OrderId, SymbolId, UserId};
use crate::wire::{Bits, Form, wire};

wire! {
    /// An order: its type and side in byte 6, its flags in byte 7.
    struct PlaceForm = Place [order_type: OrderType, action: Action; flags: OrderFlags] {
        symbol: SymbolId, uid: UserId, order_id: OrderId,
        price: i64, reserve_price: i64, size: i64,
    }
    struct CancelForm = Command::Cancel { symbol: SymbolId, uid: UserId, order_id: OrderId }
    struct MoveForm = Command::Move {
        symbol: SymbolId, uid: UserId, order_id: OrderId, price: i64,
    }
    struct ReduceForm = Command::Reduce {
        symbol: SymbolId, uid: UserId, order_id: OrderId, by: i64,
    }
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

/// An order with conditions: the bits behind the side in byte 6 say which it has. A condition that
/// it has not is 0.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct PlaceWithForm {
    place: PlaceForm,
    trigger: I64,
    display: I64,
    good_till: I64,
}

const CONDITION_BITS: [u8; 3] = [1 << 4, 1 << 5, 1 << 6];

impl Form for PlaceWithForm {
    type Value = ConditionalOrder;
    const SMALL_MAX: [u8; 2] = [PlaceForm::SMALL_MAX[0] | 0x70, PlaceForm::SMALL_MAX[1]];

    fn of(order: &ConditionalOrder) -> ([u8; 2], Self) {
        let ([mut first, flags], place) = PlaceForm::of(&order.place);
        let conditions = [order.trigger, order.display, order.good_till];
        for (bit, condition) in CONDITION_BITS.into_iter().zip(conditions) {
            first |= if condition.is_some() { bit } else { 0 };
        }
        let [trigger, display, good_till] =
            conditions.map(|condition| I64::new(condition.unwrap_or_default()));
        let form = Self {
            place,
            trigger,
            display,
            good_till,
        };
        ([first, flags], form)
    }

    fn value(&self, own: [u8; 2], at: [usize; 2]) -> Result<ConditionalOrder, CodecError> {
        let has = CONDITION_BITS.map(|bit| own[0] & bit != 0);
        let place = self.place.value(own, at)?;
        if has == [false; 3] {
            return Err(CodecError::NoCondition);
        }
        let at = at[1] + size_of::<PlaceForm>();
        let [trigger, display, good_till] =
            [self.trigger, self.display, self.good_till].map(I64::get);
        let (none, size, time) = (
            "the trigger of an order without one",
            "the display size of an order without one",
            "the last time of an order without one",
        );
        Ok(ConditionalOrder {
            place,
            trigger: optional(none, at, trigger, has[0])?,
            display: optional(size, at + 8, display, has[1])?,
            good_till: optional(time, at + 16, good_till, has[2])?,
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
            open_orders: U32::new(limits.map_or(0, |limits| limits.open_orders)),
            uid: I64::new(uid.unwrap_or_default().0),
            order_size: I64::new(limits.map_or(0, |limits| limits.order_size)),
        };
        ([bits.with(once).byte(), 0], form)
    }

    fn value(&self, own: [u8; 2], [own_at, at]: [usize; 2]) -> Result<Command, CodecError> {
        let [of_user, has_limits, ids_once] = [1, 2, 4].map(|bit| own[0] & bit != 0);
        if ids_once && !has_limits {
            return Err(CodecError::UnknownCode {
                what: "what limits have",
                at: own_at,
                code: own[0].into(),
            });
        }
        let open_orders = self.open_orders.get();
        if !has_limits {
            let what = "the open orders of limits that are taken away";
            nothing(what, at, open_orders.into())?;
        }
        let what = "the user of limits of everybody";
        let uid = optional(what, at + 4, self.uid.get(), of_user)?;
        let what = "the size of limits that are taken away";
        let order_size = optional(what, at + 12, self.order_size.get(), has_limits)?;
        Ok(Command::SetLimits {
            uid: uid.map(UserId),
            limits: order_size.map(|order_size| UserLimits {
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
    ($($KIND:ident: $what:literal, $form:ident $(, $variant:ident)?;)*) => {
        $(impl Body for $form {
            const KIND: u8 = kind::$KIND;
            const WHAT: &'static str = $what;
        })*

        /// Checks the head of a command of fixed length.
        fn check_fixed(head: Head) -> Result<(), CodecError> {
            let (kind, wanted) = (head.kind, "command");
            match kind {
                $(kind::$KIND => head.check::<$form>(),)*
                _ => Err(CodecError::UnknownKind { kind, wanted }),
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
        pub fn command_bytes(command: &Command) -> usize {
            match command {
                Command::Place(_) => PlaceForm::BYTES,
                Command::PlaceWith(order) if order.has_conditions() => PlaceWithForm::BYTES,
                Command::PlaceWith(_) => PlaceForm::BYTES,
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
                Command::PlaceWith(order) if order.has_conditions() => {
                    put::<PlaceWithForm>(order, out)
                }
                Command::PlaceWith(order) => put::<PlaceForm>(&order.place, out),
                Command::Amend(amend) => put::<AmendForm>(amend, out),
                Command::AddSymbols(_) | Command::AddAccounts(_) => encode_batch(command, out),
                $($(Command::$variant { .. } => put::<$form>(command, out),)?)*
            }
        }
    };
}

commands! {
    PLACE: "an order", PlaceForm;
    CANCEL: "a cancel", CancelForm, Cancel;
    MOVE: "a move", MoveForm, Move;
    REDUCE: "a reduction", ReduceForm, Reduce;
    PLACE_WITH: "a conditional order", PlaceWithForm;
    CANCEL_ALL: "a mass cancel", CancelAllForm, CancelAll;
    DISCONNECT: "a disconnection", DisconnectForm, Disconnect;
    AMEND: "an amendment", AmendForm;
    ADD_USER: "a new user", AddUserForm, AddUser;
    BALANCE: "an adjustment", BalanceForm, Balance;
    SUSPEND: "a suspension", SuspendForm, Suspend;
    RESUME: "a resumption", ResumeForm, Resume;
    PAY_FEES: "a payment of fees", PayFeesForm, PayFees;
    SET_LIMITS: "limits", SetLimitsForm, SetLimits;
    CLOCK: "a time", ClockForm, Clock;
    SET_PRICE_BAND: "a price band", SetPriceBandForm, SetPriceBand;
    HALT: "a halt", HaltForm, Halt;
    UNHALT: "the end of a halt", UnhaltForm, Unhalt;
    REMOVE_SYMBOL: "the removal of a symbol", RemoveSymbolForm, RemoveSymbol;
    SET_MARKET_PROTECTION: "a protection", SetMarketProtectionForm, SetMarketProtection;
    START_AUCTION: "an auction", StartAuctionForm, StartAuction;
    UNCROSS: "the end of an auction", UncrossForm, Uncross;
    RUN_STOPS: "stop orders that are left over", RunStopsForm, RunStops;
    NOP: "nothing", NopForm, Nop;
    RESET: "a reset", ResetForm, Reset;
}

/// Writes a command's frame at the beginning of `out`; the result is its length in bytes. An order
/// [with conditions](Command::PlaceWith) that has none is written as the order that it is, and
/// comes back as a [`Command::Place`].
///
/// # Errors
/// [`CodecError::NoRoom`], or of a batch [`CodecError::TooLong`]; nothing is written then.
#[inline]
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
    match command {
        Command::AddSymbols(symbols) => {
            out.put(&Head::new(length, kind::ADD_SYMBOLS, [0; 2]));
            batch::put_symbols(symbols, out);
        }
        Command::AddAccounts(accounts) => {
            out.put(&Head::new(length, kind::ADD_ACCOUNTS, [0; 2]));
            batch::put_accounts(accounts, out);
        }
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
    match head.number() {
        MoveForm::HEAD => {
            if let Some(decoded) = get::<MoveForm>(bytes) {
                *command = decoded;
                return Ok(MoveForm::BYTES);
            }
        }
        ReduceForm::HEAD => {
            if let Some(decoded) = get::<ReduceForm>(bytes) {
                *command = decoded;
                return Ok(ReduceForm::BYTES);
            }
        }
        CancelForm::HEAD => {
            if let Some(decoded) = get::<CancelForm>(bytes) {
                *command = decoded;
                return Ok(CancelForm::BYTES);
            }
        }
        _ => {
            if is_place(head)
                && let Some(place) = get::<PlaceForm>(bytes)
            {
                *command = Command::Place(place);
                return Ok(PlaceForm::BYTES);
            }
        }
    }
    let (decoded, length) = decode_rare(bytes, head)?;
    *command = decoded;
    Ok(length)
}

/// Whether the head is that of an order, without a look at the codes in its own bytes.
#[inline(always)]
fn is_place(head: Head) -> bool {
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
        _ => {
            let is_order =
                is_place(head) && PlaceForm::new_zeroed().value(head.own, [0; 2]).is_ok();
            is_order.then_some(PlaceForm::BYTES)
        }
    }
}

/// Reads any frame: what is rare, and what is wrong.
#[cold]
#[inline(never)]
fn decode_rare(bytes: &[u8], head: Head) -> Result<(Command, usize), CodecError> {
    check(bytes, head)?;
    let length = head.length()?;
    let command = match head.kind {
        kind::ADD_SYMBOLS | kind::ADD_ACCOUNTS => {
            let mut fields = Reader::new(head.frame(bytes)?, HEAD_BYTES);
            let command = match head.kind {
                kind::ADD_SYMBOLS => Command::AddSymbols(batch::symbols(&mut fields)?),
                _ => Command::AddAccounts(batch::accounts(&mut fields)?),
            };
            fields.end()?;
            command
        }
        _ => decode_fixed(bytes, head)?,
    };
    Ok((command, length))
}

/// Returns the error that a command's head, and the number of items of a batch, prove whatever
/// follows.
pub(super) fn check(bytes: &[u8], head: Head) -> Result<(), CodecError> {
    match batch::Items::of(head.kind) {
        Some(items) => items.check(bytes, head),
        None => check_fixed(head),
    }
}

impl From<Place> for Command {
    fn from(place: Place) -> Self {
        Self::Place(place)
    }
}

impl From<ConditionalOrder> for Command {
    fn from(order: ConditionalOrder) -> Self {
        Self::PlaceWith(Arc::new(order))
    }
}

impl From<Amend> for Command {
    fn from(amend: Amend) -> Self {
        Self::Amend(Arc::new(amend))
    }
}
