//! The frames of a connection: hello, commands with a sequence, answers, numbered reports,
//! subscriptions, queries, and the end. `docs/exchange-protocol.md` says who sends which when.
//!
//! They have the head of every frame, kinds from 208 on and version
//! [`SESSION_VERSION`](super::SESSION_VERSION). A connection carries [`ClientFrame`]s one way; the
//! other way [`ServerFrame`]s and, as they are, the frames of [market
//! messages](crate::codec::decode_message) and [snapshots](crate::codec::decode_snapshot). The
//! content of a frame (a command, a report) is a frame of its own, and an error in it gives the
//! place in the outer one.
//!
//! The commands of a session have a type of their own: a [`TradeCommand`] is about the orders of
//! one user, and can express neither a deposit nor an order of another user; an [`AdminCommand`]
//! can place no order.
//!
//! *Cost.* Encoding allocates nothing. Decoding borrows keys, texts, symbols and commands from the
//! bytes; only the answer to a query has lists of its own.
//!
//! ```
//! use thalweg_exchange::codec::session::{
//!     ClientFrame, SubmitFrameError, TradeCommand, decode_client_frame, encode_submit,
//!     submit_bytes,
//! };
//! use thalweg_exchange::session::{ClientSequence, Refusal};
//! use thalweg_exchange::{OrderId, SymbolId, UserId};
//!
//! let cancel = TradeCommand::cancel(UserId(7), SymbolId(1), OrderId(9));
//! let mut bytes = vec![0; submit_bytes(cancel.as_command())];
//! encode_submit(ClientSequence(1), cancel.as_command(), &mut bytes)?;
//!
//! let (ClientFrame::Submit(submit), _) = decode_client_frame(&bytes)? else { unreachable!() };
//! assert_eq!(submit.trade(UserId(7)), Ok(cancel));
//! assert_eq!(submit.trade(UserId(8)), Err(SubmitFrameError::Refused(Refusal::NotYourUser)));
//! # Ok::<(), thalweg_exchange::codec::CodecError>(())
//! ```

mod account;
mod answer;
mod close_reason;
mod frames;
mod opening;
mod query;
mod submit;
mod symbols;

pub use self::account::{AccountView, OpenOrder, PositionView};
pub use self::answer::{
    ANSWER_BYTES, Answer, Conflated, NUMBERED_REPORT_BYTES, NumberedReport, Refused, ReportGap,
    answer_frame, numbered_report,
};
pub use self::close_reason::{BYE_TEXT_BYTES_MAX, Bye, CloseReason};
pub(super) use self::frames::check;
pub use self::frames::{
    ClientFrame, ServerFrame, client_frame_bytes, decode_client_frame, decode_server_frame,
    encode_client_frame, encode_server_frame, server_frame_bytes,
};
pub use self::opening::{HELLO_BYTES_MAX, Hello, KEY_BYTES_MAX, KeyBytes, Welcome};
pub use self::query::{QueryAnswer, QueryFrame, QueryResult, SessionQuery};
pub use self::submit::{
    AdminCommand, NotForRole, SUBMIT_HEAD_BYTES, Submit, SubmitFrameError, TradeCommand,
    decode_own_order, encode_submit, submit_bytes,
};
pub use self::symbols::{SYMBOLS_MAX, Symbols};
