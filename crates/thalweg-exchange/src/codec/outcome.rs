//! The outcome of a command as bytes: its result and its events. One that is too long for a frame
//! has several, one after another, each as full as can be.

use zerocopy::little_endian::{I32, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::error::CodecError;
use super::fields::Reader;
use super::frame::{Head, put_form};
use super::layout::{FRAME_BYTES_MAX, HEAD_BYTES, OWN_AT, kind};
use crate::command::Action;
use crate::event::{Event, Events, MovedOrder, RejectReason, RemovalReason, TopOfBook};
use crate::ids::{OrderId, SymbolId, UserId};
use crate::result_code::ResultCode;
use crate::wire::{Form, Wire, check_most, check_zero, wire};

/// The beginning of each frame of an outcome; items follow, and before them in the first frame
/// after a move how the order stood. Bits of byte 6: the order was moved, its side. Byte 7: another
/// frame follows.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct FrontForm {
    head: Head,
    sequence: U64,
    result: I32,
    /// The number of items in this frame.
    count: U32,
}

/// An item: an event, or how a futures book stands.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ItemForm<F> {
    kind: u8,
    /// The first small byte of its fields.
    bits: u8,
    fields: F,
}

/// An outcome with one event and nothing else.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct OneEventForm<F> {
    front: FrontForm,
    item: ItemForm<F>,
}

wire! {
    struct MovedForm = MovedOrder [action: Action] { price: i64, left: i64, filled: i64 }
    struct TradeForm = Event::Trade [
        taker_action: Action, maker_completed: bool, taker_completed: bool
    ] {
        price: i64, size: i64, maker_order: OrderId, maker_uid: UserId,
        bidder_hold_price: i64, maker_filled: i64, maker_left: i64,
    }
    struct RejectForm = Event::Reject [why: RejectReason] {
        order: OrderId, price: i64, size: i64, bidder_hold_price: i64,
    }
    struct ReduceForm = Event::Reduce [action: Action, completed: bool] {
        order: OrderId, price: i64, size: i64, bidder_hold_price: i64, filled: i64, left: i64,
    }
    struct RemovedForm = Event::Removed [action: Action, why: RemovalReason] {
        symbol: SymbolId, order: OrderId, uid: UserId, price: i64, size: i64,
        bidder_hold_price: i64, filled: i64, left: i64,
    }
    struct TriggeredForm = Event::Triggered [action: Action] {
        order: OrderId, uid: UserId, price: i64, size: i64, bidder_hold_price: i64,
    }
    struct RefilledForm = Event::Refilled { order: OrderId, uid: UserId, size: i64 }
    struct UncrossedForm = Event::Uncrossed [action: Action] {
        order: OrderId, uid: UserId, price: i64, size: i64, bidder_hold_price: i64, filled: i64,
    }
    /// How a futures book stands; the price of an empty side is 0.
    struct TopOfBookForm = TopOfBook [
        | ask: "the best price of an empty side", bid: "the best price of an empty side"
    ] { ask: Option<i64>, bid: Option<i64> }
}

/// How the futures book of another symbol stands.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct TopOfBookOfForm {
    symbol: I32,
    top_of_book: TopOfBookForm,
}

impl Form for TopOfBookOfForm {
    type Value = (SymbolId, TopOfBook);
    const SMALL_MAX: [u8; 2] = TopOfBookForm::SMALL_MAX;

    fn of((symbol, top_of_book): &(SymbolId, TopOfBook)) -> ([u8; 2], Self) {
        let (bits, top_of_book) = TopOfBookForm::of(top_of_book);
        let symbol = symbol.bytes();
        (
            bits,
            Self {
                symbol,
                top_of_book,
            },
        )
    }

    fn value(
        &self,
        bits: [u8; 2],
        [bits_at, at]: [usize; 2],
    ) -> Result<(SymbolId, TopOfBook), CodecError> {
        let at = at + size_of::<I32>();
        let top_of_book = self.top_of_book.value(bits, [bits_at, at])?;
        Ok((SymbolId(self.symbol.get()), top_of_book))
    }
}

const FRONT_BYTES: usize = size_of::<FrontForm>();
const RESULT_AT: usize = std::mem::offset_of!(FrontForm, result);
const COUNT_AT: usize = std::mem::offset_of!(FrontForm, count);
const ITEM_BYTES_MIN: usize = item_bytes(TOP_OF_BOOK);
const ITEM_BYTES_MAX: usize = size_of::<ItemForm<RemovedForm>>();

/// Bits of the first own byte: the order was moved, and its side.
const HAS_MOVED: u8 = 1;
const MOVED_BITS_MAX: u8 = HAS_MOVED | MovedForm::SMALL_MAX[0] << 1;

/// The kinds of items that are no events.
const TOP_OF_BOOK: u8 = 8;
const TOP_OF_BOOK_OF: u8 = 9;

/// The kinds of events: number, name of the bits in errors, struct, variant.
macro_rules! events {
    ($($kind:literal: $what:literal, $form:ident, $variant:ident;)*) => {
        const fn event_bytes(event: &Event) -> usize {
            match event {
                $(Event::$variant { .. } => size_of::<ItemForm<$form>>(),)*
            }
        }

        /// Returns the length of an item; one of an unknown kind is reported when it is read.
        const fn item_bytes(kind: u8) -> usize {
            match kind {
                $($kind => size_of::<ItemForm<$form>>(),)*
                TOP_OF_BOOK => size_of::<ItemForm<TopOfBookForm>>(),
                TOP_OF_BOOK_OF => size_of::<ItemForm<TopOfBookOfForm>>(),
                _ => FRAME_BYTES_MAX,
            }
        }

        fn put_event(event: &Event, out: &mut [u8]) {
            match event {
                $(Event::$variant { .. } => put::<$form>($kind, event, out),)*
            }
        }

        #[inline(always)]
        fn event(kind: u8, fields: &mut Reader<'_>) -> Result<Event, CodecError> {
            match kind {
                $($kind => item::<$form>($what, fields),)*
                _ => Err(unknown_kind(kind, fields.at())),
            }
        }
    };
}

events! {
    1: "the bits of a trade", TradeForm, Trade;
    2: "the bits of a reject", RejectForm, Reject;
    3: "the bits of a reduction", ReduceForm, Reduce;
    4: "the bits of a removal", RemovedForm, Removed;
    5: "the bits of a triggered order", TriggeredForm, Triggered;
    6: "the bits of a refilled order", RefilledForm, Refilled;
    7: "the bits of an order in an auction", UncrossedForm, Uncrossed;
}

/// The outcome of a command, without its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutcomeHead {
    /// The command's number, as the writer of the frame counts commands.
    pub sequence: u64,
    /// Its result.
    pub result: ResultCode,
}

/// One thing in the list of an outcome.
enum Item<'e> {
    Event(&'e Event),
    TopOfBook(&'e TopOfBook),
    TopOfBookOf(&'e (SymbolId, TopOfBook)),
}

impl Item<'_> {
    const fn bytes(&self) -> usize {
        match self {
            Self::Event(event) => event_bytes(event),
            Self::TopOfBook(_) => item_bytes(TOP_OF_BOOK),
            Self::TopOfBookOf(_) => item_bytes(TOP_OF_BOOK_OF),
        }
    }

    fn put(&self, out: &mut [u8]) {
        match self {
            Self::Event(event) => put_event(event, out),
            Self::TopOfBook(top_of_book) => put::<TopOfBookForm>(TOP_OF_BOOK, top_of_book, out),
            Self::TopOfBookOf(top_of_book) => {
                put::<TopOfBookOfForm>(TOP_OF_BOOK_OF, top_of_book, out)
            }
        }
    }
}

/// Returns everything in the list: events, how the command's own futures book stands, then others.
fn items(events: &Events) -> impl Iterator<Item = Item<'_>> {
    let own = events.top_of_book().into_iter().map(Item::TopOfBook);
    let others = events.tops_of_book().iter().map(Item::TopOfBookOf);
    events.iter().map(Item::Event).chain(own).chain(others)
}

/// Returns the length of the first frame's part before the list of items.
fn front_bytes(events: &Events) -> usize {
    FRONT_BYTES + events.moved().map_or(0, |_| size_of::<MovedForm>())
}

/// Returns how long the frame of an outcome with these events is, in bytes; of one that is longer
/// than [`FRAME_BYTES_MAX`], all its frames together.
#[must_use]
pub fn outcome_bytes(events: &Events) -> usize {
    let (mut before, mut frame) = (0, front_bytes(events));
    for item in items(events) {
        if frame + item.bytes() > FRAME_BYTES_MAX {
            before += frame;
            frame = FRONT_BYTES;
        }
        frame += item.bytes();
    }
    before + frame
}

/// Writes an outcome at the beginning of `out`; the result is its length in bytes. One that is
/// longer than [`FRAME_BYTES_MAX`] becomes several frames, one behind the other. Hints about users
/// are no part of it.
///
/// # Errors
/// [`CodecError::BufferTooSmall`]; nothing is written then.
#[inline]
pub fn encode_outcome(
    outcome: OutcomeHead,
    events: &Events,
    out: &mut [u8],
) -> Result<usize, CodecError> {
    // Most commands have one event or none, and nothing else: what is to be written is known.
    if events.is_list() {
        if let [event] = events.as_slice() {
            match event {
                Event::Trade { .. } => return put_one::<TradeForm>(outcome, 1, event, out),
                Event::Reject { .. } => return put_one::<RejectForm>(outcome, 2, event, out),
                Event::Reduce { .. } => return put_one::<ReduceForm>(outcome, 3, event, out),
                _ => {}
            }
        } else if events.is_empty() {
            return put_form(outcome.front(FRONT_BYTES, (kind::OUTCOME, [0; 2]), 0), out);
        }
    }
    encode_frames(outcome, events, out)
}

#[inline(always)]
fn put_one<F: Form<Value = Event>>(
    outcome: OutcomeHead,
    kind: u8,
    event: &Event,
    out: &mut [u8],
) -> Result<usize, CodecError> {
    let length = size_of::<OneEventForm<F>>();
    let front = outcome.front(length, (kind::OUTCOME, [0; 2]), 1);
    let item = ItemForm::<F>::of(kind, event);
    put_form(OneEventForm { front, item }, out)
}

/// Writes an item into the beginning of bytes whose number was counted.
#[inline(always)]
fn put<F: Form>(kind: u8, value: &F::Value, out: &mut [u8]) {
    put_form(ItemForm::<F>::of(kind, value), out).expect("the bytes of all items were counted");
}

impl<F: Form> ItemForm<F> {
    #[inline(always)]
    fn of(kind: u8, value: &F::Value) -> Self {
        let ([bits, _], fields) = F::of(value);
        Self { kind, bits, fields }
    }
}

impl OutcomeHead {
    /// The front of a frame of this length, kind and own bytes.
    #[inline(always)]
    fn front(self, length: usize, (kind, own): (u8, [u8; 2]), count: usize) -> FrontForm {
        FrontForm {
            head: Head::new(length, kind, own),
            sequence: self.sequence.bytes(),
            result: self.result.bytes(),
            count: U32::new(count as u32),
        }
    }
}

/// Writes one frame, or several where one is not enough.
fn encode_frames(
    outcome: OutcomeHead,
    events: &Events,
    out: &mut [u8],
) -> Result<usize, CodecError> {
    let (needed, have) = (outcome_bytes(events), out.len());
    let out = out
        .get_mut(..needed)
        .ok_or(CodecError::BufferTooSmall { needed, have })?;
    let (mut kind, mut bits) = (kind::OUTCOME, 0);
    if let Some(moved) = events.moved() {
        let ([side, _], form) = MovedForm::of(moved);
        bits = HAS_MOVED | side << 1;
        put_form(form, &mut out[FRONT_BYTES..])?;
    }
    let (mut start, mut at, mut count) = (0, front_bytes(events), 0);
    for item in items(events) {
        if at - start + item.bytes() > FRAME_BYTES_MAX {
            let front = outcome.front(at - start, (kind, [bits, 1]), count);
            put_form(front, &mut out[start..])?;
            (kind, bits) = (kind::OUTCOME_ON, 0);
            (start, count) = (at, 0);
            at += FRONT_BYTES;
        }
        item.put(&mut out[at..]);
        at += item.bytes();
        count += 1;
    }
    let front = outcome.front(at - start, (kind, [bits, 0]), count);
    put_form(front, &mut out[start..])?;
    Ok(needed)
}

/// Reads the outcome at the beginning of `bytes`, and its events into `events` (cleared first);
/// with it, its length in bytes: that of its frame, or of all its frames if it is a long one.
///
/// # Errors
/// [`CodecError::Incomplete`] where more bytes could make a frame of it, or a further frame of one
/// that [is continued](crate::codec::Frame::is_continued); any other where not. Positions are those
/// in the frame that is wrong. `events` may hold a part of the events then.
pub fn decode_outcome(
    bytes: &[u8],
    events: &mut Events,
) -> Result<(OutcomeHead, usize), CodecError> {
    events.clear();
    let head = Head::read(bytes)?;
    if head.kind == kind::OUTCOME_ON {
        return head.unknown("first frame of an outcome");
    }
    check(head)?;
    let frame = head.frame(bytes)?;
    if is_continued(head) {
        all_are_there(bytes, head)?;
    }
    let outcome = list(frame, None, events)?;
    if is_continued(head) {
        let length = further(bytes, outcome, frame.len(), events)?;
        return Ok((outcome, length));
    }
    Ok((outcome, frame.len()))
}

/// Reads all frames but the first; the result is where they end.
#[cold]
fn further(
    bytes: &[u8],
    outcome: OutcomeHead,
    first: usize,
    events: &mut Events,
) -> Result<usize, CodecError> {
    let (mut at, mut before) = (first, first);
    loop {
        let rest = &bytes[at..];
        let head = Head::read(rest)?;
        check_next(head)?;
        let frame = head.frame(rest)?;
        let own = list(frame, Some(before), events)?;
        if own != outcome {
            return Err(CodecError::OtherOutcome {
                expected: outcome.sequence,
                found: own.sequence,
            });
        }
        (at, before) = (at + frame.len(), frame.len());
        if !is_continued(head) {
            return Ok(at);
        }
    }
}

/// Reads one frame, behind one of this length where it is not the first.
#[inline]
fn list(
    frame: &[u8],
    before: Option<usize>,
    events: &mut Events,
) -> Result<OutcomeHead, CodecError> {
    let mut fields = Reader::new(frame, 0);
    let FrontForm {
        head,
        sequence,
        result,
        ..
    } = *fields.get()?;
    let outcome = OutcomeHead {
        sequence: sequence.get(),
        result: ResultCode::value(result, RESULT_AT)?,
    };
    let mut fields = Reader::new(frame, COUNT_AT);
    let mut left = fields.count("events", ITEM_BYTES_MIN)?;
    if head.own[0] & HAS_MOVED != 0 {
        let at = [OWN_AT, fields.at()];
        let moved = fields.get::<MovedForm>()?;
        events.set_moved(moved.value([head.own[0] >> 1, 0], at)?);
    }
    if let Some(before) = before {
        check_cut(before, &fields)?;
    }
    if events.top_of_book().is_none() && events.tops_of_book().is_empty() {
        events.reserve_exact(left);
        while left > 0 {
            let kind = fields.next()?;
            if matches!(kind, TOP_OF_BOOK | TOP_OF_BOOK_OF) {
                break;
            }
            events.push(event(kind, &mut fields)?);
            left -= 1;
        }
    }
    if left > 0 {
        tops_of_book(&mut fields, left, events)?;
    }
    fields.end()?;
    Ok(outcome)
}

/// Reads an item of a known kind.
#[inline(always)]
fn item<F: Form>(what: &'static str, fields: &mut Reader<'_>) -> Result<F::Value, CodecError> {
    let at = fields.at();
    let item = fields.get::<ItemForm<F>>()?;
    check_most(what, at + 1, item.bits, F::SMALL_MAX[0])?;
    item.fields.value([item.bits, 0], [at + 1, at + 2])
}

/// Reads how futures books stand: the command's own, then others.
#[inline(never)]
fn tops_of_book(
    fields: &mut Reader<'_>,
    count: usize,
    events: &mut Events,
) -> Result<(), CodecError> {
    let what = "the bits of a standing";
    for left in (1..=count).rev() {
        let is_first = events.top_of_book().is_none() && events.tops_of_book().is_empty();
        match fields.next()? {
            TOP_OF_BOOK if is_first => events.set_top_of_book(item::<TopOfBookForm>(what, fields)?),
            TOP_OF_BOOK_OF => {
                let (symbol, top_of_book) = item::<TopOfBookOfForm>(what, fields)?;
                events.reserve_tops_of_book(left);
                events.add_top_of_book(symbol, top_of_book);
            }
            kind => return Err(unknown_kind(kind, fields.at())),
        }
    }
    Ok(())
}

fn unknown_kind(kind: u8, at: usize) -> CodecError {
    CodecError::unknown("the kind of an event", at, kind)
}

/// Checks that a frame that goes on had no room for what is first in the next one.
fn check_cut(before: usize, fields: &Reader<'_>) -> Result<(), CodecError> {
    let bytes = fields.next().map_or(0, item_bytes);
    if before + bytes <= FRAME_BYTES_MAX {
        return Err(goes_on_early(before, before + bytes));
    }
    Ok(())
}

const fn goes_on_early(length: usize, expected: usize) -> CodecError {
    CodecError::WrongLength {
        what: "a frame of an outcome that goes on",
        length,
        expected,
    }
}

/// Returns the error that the head of an outcome proves whatever follows.
pub(super) fn check(head: Head) -> Result<(), CodecError> {
    let (length, kind) = (head.length()?, head.kind);
    let (what, least, bits_max) = match kind {
        kind::OUTCOME => ("an outcome", FRONT_BYTES, MOVED_BITS_MAX),
        kind::OUTCOME_ON => {
            let what = "a further frame of an outcome";
            (what, FRONT_BYTES + ITEM_BYTES_MIN, 0)
        }
        _ => return head.unknown("outcome"),
    };
    head.check_length(what, length.max(least))?;
    head.check_own(what, [bits_max, 1])?;
    if head.own[0] & HAS_MOVED == 0 {
        let what = "the side of an order that was not moved";
        check_zero(what, OWN_AT, head.own[0])?;
    }
    if is_continued(head) && length + ITEM_BYTES_MAX <= FRAME_BYTES_MAX {
        return Err(goes_on_early(length, FRAME_BYTES_MAX + 1 - ITEM_BYTES_MAX));
    }
    Ok(())
}

/// Whether another frame of the same outcome follows.
const fn is_continued(head: Head) -> bool {
    head.own[1] != 0
}

/// Checks the heads of all frames of an outcome, of which the first is there: all must be.
///
/// # Errors
/// [`CodecError::Incomplete`] up to the end of the next frame, or of its head; a frame of something
/// else.
#[cold]
fn all_are_there(bytes: &[u8], first: Head) -> Result<(), CodecError> {
    let (mut at, mut head) = (0, first);
    while is_continued(head) {
        at += head.length()?;
        let have = bytes.len();
        let incomplete = |needed| CodecError::Incomplete { needed, have };
        let rest = &bytes[at..];
        head = Head::read(rest).map_err(|_| incomplete(at + HEAD_BYTES))?;
        check_next(head)?;
        if rest.len() < head.length()? {
            return Err(incomplete(at + head.length()?));
        }
    }
    Ok(())
}

/// Checks that a head is that of a frame with which an outcome goes on.
fn check_next(head: Head) -> Result<(), CodecError> {
    if head.kind != kind::OUTCOME_ON {
        return head.unknown("frame with which an outcome goes on");
    }
    check(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::CodecError;

    /// A futures book, then those of two others: `ask` and `bid` of each.
    fn tops_of_book() -> Events {
        let mut events = Events::new();
        let (ask, bid) = (Some(5), Some(4));
        events.set_top_of_book(TopOfBook { ask, bid: None });
        events.add_top_of_book(SymbolId(7), TopOfBook { ask: None, bid });
        events.add_top_of_book(SymbolId(8), TopOfBook::default());
        events
    }

    fn framed(events: &Events) -> Vec<u8> {
        let outcome = OutcomeHead {
            sequence: 1,
            result: ResultCode::Success,
        };
        let mut frame = vec![0; outcome_bytes(events)];
        let length = encode_outcome(outcome, events, &mut frame);
        assert_eq!(length, Ok(frame.len()));
        frame
    }

    #[test]
    fn standings_have_these_bytes() {
        let frame = framed(&tops_of_book());
        let mut list = vec![8, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        list.extend([9, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        list.extend([4, 0, 0, 0, 0, 0, 0, 0]);
        list.extend([9, 0, 8, 0, 0, 0]);
        list.extend([0; 16]);
        assert_eq!(frame[COUNT_AT..FRONT_BYTES], [3, 0, 0, 0]);
        assert_eq!(frame[FRONT_BYTES..], list);
        let mut back = Events::new();
        assert!(decode_outcome(&frame, &mut back).is_ok());
        assert_eq!(back, tops_of_book());
    }

    #[test]
    fn standings_have_one_form() {
        let frame = framed(&tops_of_book());
        let error_text = |at: usize, byte: u8| {
            let mut frame = frame.clone();
            frame[FRONT_BYTES + at] = byte;
            let error = decode_outcome(&frame, &mut Events::new()).expect_err("it is wrong");
            error.to_string()
        };
        for (at, byte, text) in [
            (
                1,
                4,
                "the bits of a standing at byte 25 is 4, the greatest is 3",
            ),
            (
                10,
                1,
                "the best price of an empty side at byte 34 is 1, the greatest is 0",
            ),
            // The command's own again, and an event behind tops_of_book.
            (
                18,
                8,
                "the kind of an event at byte 42 is 8, which is not known",
            ),
            (
                18,
                6,
                "the kind of an event at byte 42 is 6, which is not known",
            ),
        ] {
            assert_eq!(error_text(at, byte), text);
        }
    }

    /// Standings are cut as events are.
    #[test]
    fn many_standings_go_on_in_another_frame() {
        let mut events = tops_of_book();
        let most = (FRAME_BYTES_MAX - FRONT_BYTES) / item_bytes(TOP_OF_BOOK_OF);
        for id in 0..most as i32 {
            events.add_top_of_book(SymbolId(id), TopOfBook::default());
        }
        let frames = framed(&events);
        assert!(frames.len() > FRAME_BYTES_MAX);
        let mut back = Events::new();
        let decoded = decode_outcome(&frames, &mut back).map(|(_, length)| length);
        assert_eq!(decoded, Ok(frames.len()));
        assert!(back == events);
        // The command's own does not come in a further frame.
        let first = super::super::peek(&frames).expect("a head").bytes;
        let mut wrong = frames;
        wrong[first + FRONT_BYTES] = TOP_OF_BOOK;
        let error = decode_outcome(&wrong, &mut back).expect_err("it is wrong");
        assert!(matches!(
            error,
            CodecError::UnknownCode { .. } | CodecError::WrongLength { .. }
        ));
    }
}
