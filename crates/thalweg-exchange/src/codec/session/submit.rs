//! A command on its way into the exchange, and the commands that each role may send.

use thiserror::Error;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::super::command::{
    CancelForm, MoveForm, PlaceForm, ReduceForm, check as check_command, command_bytes,
    decode_command, decode_command_into, encode_command, frequent_bytes, is_place,
};
use super::super::error::CodecError;
use super::super::fields::{Reader, Writer, at_least};
use super::super::frame::{Body, Family, Head, Whole, room_for};
use super::super::layout::{FRAME_BYTES_MAX, HEAD_BYTES, kind};
use crate::command::{Amend, Command, ConditionalOrder, Place};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::session::{ClientSequence, Refusal, Role};
use crate::wire::Wire;

/// A submit before the frame of its command.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SubmitForm {
    head: Head,
    sequence: U64,
}

/// A submit of a command of fixed length.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct SubmitOf<B> {
    submit: SubmitForm,
    command: Whole<B>,
}

/// Bytes of a submit before its command's frame.
pub const SUBMIT_HEAD_BYTES: usize = size_of::<SubmitForm>();
/// A submit of a command without fields.
pub(super) const SUBMIT_BYTES_MIN: usize = SUBMIT_HEAD_BYTES + HEAD_BYTES;
const WHAT: &str = "the frame of a command";

/// A command and its sequence (kind 210).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submit<'b> {
    /// Its number in its session; at least 1.
    pub sequence: ClientSequence,
    frame: &'b [u8],
}

/// Why a submit gives no command for a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubmitFrameError {
    /// The bytes are no command. Positions count from the beginning of the submit.
    #[error("{0}")]
    Frame(CodecError),
    /// They are one that this session may not send.
    #[error("{0}")]
    Refused(Refusal),
}

impl<'b> Submit<'b> {
    /// Returns the frame of the command; its head was looked at, not its fields.
    #[must_use]
    pub const fn frame(&self) -> &'b [u8] {
        self.frame
    }

    /// Decodes the command, whether or not the session may send it.
    ///
    /// # Errors
    /// The first of its fields that cannot be decoded.
    pub fn command(&self) -> Result<Command, CodecError> {
        match decode_command(self.frame) {
            Ok((command, _)) => Ok(command),
            Err(error) => Err(error.within(WHAT, SUBMIT_HEAD_BYTES)),
        }
    }

    /// Decodes the command of a trade session of `user`.
    ///
    /// # Errors
    /// Wrong bytes; [`Refusal::Role`] for a command that traders have not, and
    /// [`Refusal::NotYourUser`] for one about another user.
    pub fn trade(&self, user: UserId) -> Result<TradeCommand, SubmitFrameError> {
        let mut command = Command::Nop;
        self.trade_into(user, &mut command)?;
        TradeCommand::try_from(command).map_err(|_| SubmitFrameError::Refused(Refusal::Role))
    }

    /// Decodes as [`trade`](Self::trade) does, but puts the command where it is to be: nothing is
    /// moved that was just written. After an error, there may be any command.
    ///
    /// # Errors
    /// As [`trade`](Self::trade).
    #[inline]
    pub fn trade_into(&self, user: UserId, into: &mut Command) -> Result<(), SubmitFrameError> {
        decode_command_into(self.frame, into)
            .map_err(|error| SubmitFrameError::Frame(error.within(WHAT, SUBMIT_HEAD_BYTES)))?;
        match TradeCommand::user_of(into) {
            Some(of) if of == user => Ok(()),
            Some(_) => Err(SubmitFrameError::Refused(Refusal::NotYourUser)),
            None => Err(SubmitFrameError::Refused(Refusal::Role)),
        }
    }

    /// Decodes the command of an admin session.
    ///
    /// # Errors
    /// Wrong bytes, and [`Refusal::Role`].
    pub fn admin(&self) -> Result<AdminCommand, SubmitFrameError> {
        let command = self.command().map_err(SubmitFrameError::Frame)?;
        AdminCommand::try_from(command).map_err(|_| SubmitFrameError::Refused(Refusal::Role))
    }

    pub(super) const fn bytes(&self) -> usize {
        SUBMIT_HEAD_BYTES + self.frame.len()
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.put(&SubmitForm::new(self.bytes(), self.sequence));
        out.put(self.frame);
    }

    /// Reads a submit of one of the most frequent commands; `None` where it is another frame, or
    /// needs the slow path. Both heads are compared at once.
    #[inline]
    pub(super) fn read_frequent(bytes: &'b [u8]) -> Option<Self> {
        let (submit, rest) = SubmitForm::ref_from_prefix(bytes).ok()?;
        let length = frequent_bytes(Head::read(rest).ok()?)?;
        let head = Head::new(SUBMIT_HEAD_BYTES + length, kind::SUBMIT, [0; 2]);
        let is_submit = submit.head.number() == head.number();
        let frame = rest.get(..length)?;
        let sequence = ClientSequence(submit.sequence.get());
        (is_submit && sequence.0 > 0).then_some(Self { sequence, frame })
    }

    /// Reads a submit from a whole frame that passed [`check`].
    pub(super) fn read(bytes: &'b [u8]) -> Result<Self, CodecError> {
        let fields = &mut Reader::new(bytes, 0);
        let sequence = ClientSequence(fields.get::<SubmitForm>()?.sequence.get());
        check_sequence(sequence)?;
        let frame = fields.rest();
        Ok(Self { sequence, frame })
    }
}

/// Checks the head of a submit's command, as soon as its bytes are there.
pub(super) fn check(bytes: &[u8], length: usize) -> Result<(), CodecError> {
    let (what, at) = (WHAT, SUBMIT_HEAD_BYTES);
    let have = bytes.len().min(length);
    let Some(within) = bytes
        .get(at..have)
        .filter(|bytes| bytes.len() >= HEAD_BYTES)
    else {
        return Ok(());
    };
    let head = Head::read(within)?;
    let is_command = Family::of(head.kind) == Family::Command;
    let checked = head.length().and_then(|bytes| {
        if is_command {
            check_command(within, head)?;
        }
        Ok(is_command && bytes == length - at)
    });
    match checked {
        Ok(true) => Ok(()),
        Ok(false) => Err(CodecError::WrongHead { what, at }),
        Err(error) => Err(error.within(what, at)),
    }
}

/// A sequence that stands for a command is not 0.
pub(super) fn check_sequence(sequence: ClientSequence) -> Result<(), CodecError> {
    at_least("the client sequence", HEAD_BYTES, sequence.0, 1)
}

/// Reads a submit at the beginning of `bytes` that is about an order of `user`, and puts its
/// command where it is to be. Returns its sequence and the length of the frame; `None` where it is
/// not one of the most frequent commands, of another user, wrong or not all there: then
/// [`decode_client_frame`](super::decode_client_frame) says what it is. Each head is compared once.
#[inline]
pub fn decode_own_order(
    bytes: &[u8],
    user: UserId,
    into: &mut Command,
) -> Option<(ClientSequence, usize)> {
    let command = bytes.get(SUBMIT_HEAD_BYTES..)?;
    let head = Head::read(command).ok()?;
    match head.number() {
        CancelForm::HEAD => SubmitOf::<CancelForm>::read_own(bytes, user, into),
        MoveForm::HEAD => SubmitOf::<MoveForm>::read_own(bytes, user, into),
        ReduceForm::HEAD => SubmitOf::<ReduceForm>::read_own(bytes, user, into),
        _ if is_place(head) => SubmitOf::<PlaceForm>::read_own(bytes, user, into),
        _ => None,
    }
}

impl<B: Body<Value: Into<Command>>> SubmitOf<B> {
    const HEAD: u64 = Head::new(size_of::<Self>(), kind::SUBMIT, [0; 2]).number();

    /// Reads a submit whose command has the right head.
    #[inline(always)]
    fn read_own(bytes: &[u8], user: UserId, into: &mut Command) -> Option<(ClientSequence, usize)> {
        let (frame, _) = Self::ref_from_prefix(bytes).ok()?;
        let sequence = ClientSequence(frame.submit.sequence.get());
        let command = frame.command.value().ok()?.into();
        let is_own = TradeCommand::user_of(&command) == Some(user);
        if frame.submit.head.number() != Self::HEAD || sequence.0 == 0 || !is_own {
            return None;
        }
        into.put(command);
        Some((sequence, size_of::<Self>()))
    }
}

/// Returns how long the frame of a command with its sequence is, in bytes.
#[must_use]
pub fn submit_bytes(command: &Command) -> usize {
    SUBMIT_HEAD_BYTES + command_bytes(command)
}

/// Writes a command with its sequence at the beginning of `out`; the result is the length of the
/// frame in bytes.
///
/// # Errors
/// [`CodecError::BufferTooSmall`], or of a batch [`CodecError::TooLong`], or a sequence of 0;
/// nothing is written then.
pub fn encode_submit(
    sequence: ClientSequence,
    command: &Command,
    out: &mut [u8],
) -> Result<usize, CodecError> {
    let length = submit_bytes(command);
    if length > FRAME_BYTES_MAX {
        return Err(CodecError::TooLong { length });
    }
    check_sequence(sequence)?;
    let out = room_for(out, length)?;
    let (submit, frame) =
        SubmitForm::mut_from_prefix(out).map_err(|_| CodecError::TooShort { length })?;
    encode_command(command, frame)?;
    *submit = SubmitForm::new(length, sequence);
    Ok(length)
}

impl SubmitForm {
    fn new(length: usize, sequence: ClientSequence) -> Self {
        Self {
            head: Head::new(length, kind::SUBMIT, [0; 2]),
            sequence: sequence.bytes(),
        }
    }
}

/// A command that a role has not; given back.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a session with role {role} has no such command")]
pub struct NotForRole {
    /// The role.
    pub role: Role,
    /// The command.
    pub command: Command,
}

/// A command about the orders of one user: a new one, its change, its cancel. Nothing else can be
/// put in here, and so nothing else comes out.
///
/// ```
/// use thalweg_exchange::codec::session::TradeCommand;
/// use thalweg_exchange::{Command, UserId};
///
/// assert!(TradeCommand::try_from(Command::AddUser { uid: UserId(7) }).is_err());
/// assert_eq!(TradeCommand::cancel_all(UserId(7), None).user(), UserId(7));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TradeCommand {
    command: Command,
    user: UserId,
}

impl TradeCommand {
    /// Takes an order out of its book.
    #[must_use]
    pub const fn cancel(uid: UserId, symbol: SymbolId, order_id: OrderId) -> Self {
        let command = Command::cancel(uid, symbol, order_id);
        Self { command, user: uid }
    }

    /// Changes an order's price.
    #[must_use]
    pub const fn move_to(uid: UserId, symbol: SymbolId, order_id: OrderId, price: i64) -> Self {
        let command = Command::move_to(uid, symbol, order_id, price);
        Self { command, user: uid }
    }

    /// Takes lots off an order.
    #[must_use]
    pub const fn reduce(uid: UserId, symbol: SymbolId, order_id: OrderId, by: i64) -> Self {
        let command = Command::reduce(uid, symbol, order_id, by);
        Self { command, user: uid }
    }

    /// Cancels all orders of the user, in a symbol or everywhere.
    #[must_use]
    pub const fn cancel_all(user: UserId, symbol: Option<SymbolId>) -> Self {
        let command = Command::cancel_all(Some(user), symbol);
        Self { command, user }
    }

    /// Returns the user whose orders a command is about; `None` if traders may not send it.
    #[inline(always)]
    fn user_of(command: &Command) -> Option<UserId> {
        match command {
            Command::Place(place) => Some(place.uid),
            Command::PlaceConditional(order) => Some(order.place.uid),
            Command::Amend(amend) => Some(amend.uid),
            Command::Cancel { uid, .. }
            | Command::Move { uid, .. }
            | Command::Reduce { uid, .. } => Some(*uid),
            Command::CancelAll { uid, .. } => *uid,
            _ => None,
        }
    }

    /// Returns the user whose orders it is about.
    #[must_use]
    pub const fn user(&self) -> UserId {
        self.user
    }

    /// Returns the command as its general type.
    #[must_use]
    pub const fn as_command(&self) -> &Command {
        &self.command
    }

    /// Returns the command, as the exchange takes it.
    #[must_use]
    pub fn into_command(self) -> Command {
        self.command
    }
}

/// Each is a command about the orders of the user that it names.
macro_rules! from_orders {
    ($($order:ident: $($user:ident).+;)*) => {$(
        impl From<$order> for TradeCommand {
            fn from(order: $order) -> Self {
                let user = order.$($user).+;
                let command = order.into();
                Self { command, user }
            }
        }
    )*};
}

from_orders! {
    Place: uid;
    ConditionalOrder: place.uid;
    Amend: uid;
}

impl TryFrom<Command> for TradeCommand {
    type Error = NotForRole;

    fn try_from(command: Command) -> Result<Self, NotForRole> {
        match Self::user_of(&command) {
            Some(user) => Ok(Self { command, user }),
            None => Err(NotForRole {
                role: Role::Trade,
                command,
            }),
        }
    }
}

/// A command of the market's operator: users, money, symbols, halts, the time, and the cancel of
/// any user's orders. No orders, and neither [`Disconnect`](Command::Disconnect), which is the
/// server's own, nor [`Reset`](Command::Reset).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminCommand(Command);

impl AdminCommand {
    /// Returns the command as its general type.
    #[must_use]
    pub const fn as_command(&self) -> &Command {
        &self.0
    }

    /// Returns the command, as the exchange takes it.
    #[must_use]
    pub fn into_command(self) -> Command {
        self.0
    }
}

impl TryFrom<Command> for AdminCommand {
    type Error = NotForRole;

    fn try_from(command: Command) -> Result<Self, NotForRole> {
        match command {
            Command::Cancel { .. }
            | Command::CancelAll { .. }
            | Command::AddUser { .. }
            | Command::Balance { .. }
            | Command::PayFees { .. }
            | Command::SetLimits { .. }
            | Command::Suspend { .. }
            | Command::Resume { .. }
            | Command::AddSymbols(_)
            | Command::AddAccounts(_)
            | Command::SetPriceBand { .. }
            | Command::SetMarketProtection { .. }
            | Command::Halt { .. }
            | Command::Unhalt { .. }
            | Command::StartAuction { .. }
            | Command::Uncross { .. }
            | Command::RunStops { .. }
            | Command::RemoveSymbol { .. }
            | Command::Clock { .. }
            | Command::Nop => Ok(Self(command)),
            Command::Place(_)
            | Command::PlaceConditional(_)
            | Command::Move { .. }
            | Command::Amend(_)
            | Command::Reduce { .. }
            | Command::Disconnect { .. }
            | Command::Reset => Err(NotForRole {
                role: Role::Admin,
                command,
            }),
        }
    }
}
