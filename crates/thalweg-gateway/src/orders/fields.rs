//! The fields of records, in little-endian order.

use thalweg_exchange::{Action, OrderFlags, SymbolId, UserId};

use super::order::{Kind, Life, Order};
use crate::market::Trade;

/// Stands for an absent number.
const NONE: i64 = i64::MIN;

pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn int(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(super) fn optional(&mut self, value: Option<i64>) -> &mut Self {
        self.int(value.unwrap_or(NONE))
    }

    pub(super) fn wide(&mut self, value: i128) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
}

pub(super) struct Bytes<'b>(pub(super) &'b [u8]);

impl<'b> Bytes<'b> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn int(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(super) fn wide(&mut self) -> Option<i128> {
        Some(i128::from_le_bytes(self.take(16)?.try_into().ok()?))
    }

    pub(super) fn optional(&mut self) -> Option<Option<i64>> {
        self.int().map(|value| (value != NONE).then_some(value))
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(super) fn side(&mut self) -> Option<Action> {
        Action::from_code(self.byte()?)
    }
}

pub(super) fn encode_trade(trade: &Trade, out: &mut Writer) {
    out.int(trade.id).int(trade.symbol.0.into());
    out.int(trade.price).int(trade.lots);
    out.byte(trade.taker_side as u8).int(trade.time_us);
    out.int(trade.command as i64);
}

pub(super) fn decode_trade(fields: &mut Bytes<'_>) -> Option<Trade> {
    let (id, symbol) = (fields.int()?, SymbolId(fields.int()?.try_into().ok()?));
    let (price, lots) = (fields.int()?, fields.int()?);
    let (taker_side, time_us) = (fields.side()?, fields.int()?);
    Some(Trade {
        id,
        command: fields.int()? as u64,
        symbol,
        price,
        lots,
        taker_side,
        time_us,
    })
}

pub(super) fn encode_order(order: &Order, out: &mut Writer) {
    out.int(order.user.0).int(order.symbol.into());
    out.int(order.id).byte(order.client_id.len() as u8);
    out.0.extend_from_slice(order.client_id.as_bytes());
    out.byte(order.kind as u8)
        .byte(order.life as u8)
        .byte(order.side as u8);
    out.int(order.price).int(order.lots).int(order.quote);
    out.optional(order.stop).optional(order.display);
    out.byte(order.flags.code()).int(order.created_us);
}

pub(super) fn decode_order(fields: &mut Bytes<'_>) -> Option<Order> {
    let (user, symbol) = (UserId(fields.int()?), fields.int()?.try_into().ok()?);
    let id = fields.int()?;
    let length = fields.byte()?.into();
    let client_id = std::str::from_utf8(fields.take(length)?).ok()?.to_owned();
    let kind = Kind::from_code(fields.byte()?)?;
    let life = Life::from_code(fields.byte()?)?;
    let side = fields.side()?;
    let (price, lots, quote) = (fields.int()?, fields.int()?, fields.int()?);
    let (stop, display) = (fields.optional()?, fields.optional()?);
    let flags = OrderFlags::from_code(fields.byte()?)?;
    let created_us = fields.int()?;
    Some(Order {
        kind,
        life,
        quote,
        stop,
        display,
        flags,
        ..Order::pending(
            (user, symbol, id),
            client_id,
            (side, price, lots),
            created_us,
        )
    })
}
