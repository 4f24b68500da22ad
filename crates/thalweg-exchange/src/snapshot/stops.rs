//! Stop orders: asks, then bids, each what is reached first before the others, then as they came.

use std::mem::offset_of;

use zerocopy::little_endian::I64;

use super::SnapshotError;
use super::forms::{ExpiryForm, StopForm};
use super::orders::{Owned, check_flags};
use super::reader::{Reader, at_least, within};
use super::symbols::forbid;
use super::writer::Writer;
use crate::book::Turns;
use crate::command::{Action, ConditionalOrder, OrderType, Place, display_is_large_enough};
use crate::ids::{OrderId, UserId};
use crate::wire::Wire;

/// The length of one without further conditions.
pub(super) const BYTES: usize = size_of::<StopForm>();

const BID: u8 = 1;
const HIDES: u8 = 2;
const EXPIRES: u8 = 4;

pub(super) fn encode(stop: &ConditionalOrder, turns: &Turns, out: &mut Writer<'_>) {
    let ConditionalOrder {
        place,
        trigger,
        display,
        good_till,
    } = stop;
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    out.put(&StopForm {
        uid: place.uid.bytes(),
        order_id: place.order_id.bytes(),
        trigger: trigger.unwrap_or(0).bytes(),
        price: place.price.bytes(),
        reserve_price: place.reserve_price.bytes(),
        size: place.size.bytes(),
        order_type: place.order_type.code(),
        flags: place.flags.code(),
        bits: bit(place.action == Action::Bid, BID)
            | bit(display.is_some(), HIDES)
            | bit(good_till.is_some(), EXPIRES),
    });
    if let Some(display) = display {
        out.put(&display.bytes());
    }
    if let Some(time) = good_till {
        out.put(&ExpiryForm {
            good_till: time.bytes(),
            turn: turns.of(place.uid, place.order_id).bytes(),
        });
    }
}

pub(super) fn decode(
    fields: &mut Reader<'_>,
    count: usize,
    owned: &mut Owned<'_>,
) -> Result<(), SnapshotError> {
    let mut last = None;
    for _ in 0..count {
        let at = fields.at();
        let (order, trigger, turn) = decode_one(fields, owned)?;
        // The order that is reached first comes first: of asks the highest, of bids the lowest
        // trigger.
        let key = match order.place.action {
            Action::Ask => (order.place.action, !trigger),
            Action::Bid => (order.place.action, trigger),
        };
        if let Some((before, before_trigger)) = last.replace((key, trigger))
            && before > key
        {
            let what = "stop orders";
            return Err(SnapshotError::out_of_order(
                what,
                at,
                trigger,
                before_trigger,
            ));
        }
        check(&order, trigger, at, owned)?;
        let place = &order.place;
        let terms = (place.action, place.price, place.reserve_price);
        let owner = owned.own(at, place.uid, terms, place.size)?;
        if !owned.book.restore_waiting(&order, (trigger, turn), owner) {
            return Err(SnapshotError::twice(at, place.order_id.0));
        }
    }
    Ok(())
}

/// Returns the order, its trigger, and its turn among those that expire at the same time.
fn decode_one(
    fields: &mut Reader<'_>,
    owned: &mut Owned<'_>,
) -> Result<(ConditionalOrder, i64, u32), SnapshotError> {
    let at = fields.at() + offset_of!(StopForm, order_type);
    let form: StopForm = fields.get("a stop order")?;
    let may_wait =
        |kind: &OrderType| matches!(kind, OrderType::Gtc | OrderType::Ioc | OrderType::Market);
    let order_type = OrderType::from_code(form.order_type).filter(may_wait);
    let why = "its type does not wait";
    forbid(order_type.is_none(), at, "a stop order", why)?;
    let flags = check_flags(at + 1, form.flags)?;
    let bits = form.bits;
    let what = "a stop order's bits";
    within(what, at + 2, bits, 0, BID | HIDES | EXPIRES)?;
    let mut display = None;
    if bits & HIDES != 0 {
        display = Some(fields.get::<I64>("lots displayed at a time")?.get());
    }
    let (good_till, turn) = owned.expiry(bits & EXPIRES != 0, fields)?;
    let place = Place {
        uid: UserId(form.uid.get()),
        symbol: owned.book.spec().id,
        order_id: OrderId(form.order_id.get()),
        order_type: order_type.unwrap_or(OrderType::Gtc),
        action: if bits & BID == 0 {
            Action::Ask
        } else {
            Action::Bid
        },
        price: form.price.get(),
        reserve_price: form.reserve_price.get(),
        size: form.size.get(),
        flags,
    };
    let trigger = form.trigger.get();
    let order = ConditionalOrder {
        place,
        trigger: Some(trigger),
        display,
        good_till,
    };
    Ok((order, trigger, turn))
}

fn check(
    order: &ConditionalOrder,
    trigger: i64,
    at: usize,
    owned: &Owned<'_>,
) -> Result<(), SnapshotError> {
    let place = &order.place;
    at_least("a trigger", at + 16, trigger, 1)?;
    let (least, most) = if place.order_type.has_limit() {
        owned.terms.prices(place.action)
    } else {
        (1, i64::MAX)
    };
    let what = "a stop order's price";
    within(what, at + 24, place.price, least.max(1), most)?;
    at_least("a stop order's size", at + 40, place.size, 1)?;
    let is_limit = place.order_type == OrderType::Gtc;
    let why = "it does not rest";
    let what = "a post-only order";
    forbid(place.flags.is_post_only() && !is_limit, at, what, why)?;
    if let Some(display) = order.display {
        forbid(!is_limit, at, "an iceberg order", why)?;
        at_least("lots displayed at a time", at + 51, display, 1)?;
        let why = "it displays less than a thousandth";
        forbid(
            !display_is_large_enough(display, place.size),
            at,
            "an iceberg order",
            why,
        )?;
    }
    if let Some(price) = owned.terms.passed {
        // A trade at its trigger or beyond would have set it off.
        let (least, most) = match place.action {
            Action::Ask => (i64::MIN, price.saturating_sub(1)),
            Action::Bid => (price.saturating_add(1), i64::MAX),
        };
        within("the trigger of what waits", at + 16, trigger, least, most)?;
    }
    Ok(())
}
