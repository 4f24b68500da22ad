//! The beginning: version, rules, the clock, and the default limits.

use super::field::{Field, written};
use super::reader::{Reader, within};
use super::writer::Writer;
use super::{MAGIC, STATE_VERSION, SnapshotError};
use crate::command::UserLimits;
use crate::risk::Risk;
use crate::rules::Rules;

/// How many rules there are.
const RULES: u32 = 16;

/// Each rule's bit, the first at bit 0.
const fn bits_of(rules: &Rules) -> u32 {
    // No `..`: a new rule must have its bit.
    let Rules {
        margin_trading,
        fill_fok,
        fill_ioc_budget,
        refuse_not_positive,
        refuse_maker_fee_over_taker,
        refuse_moved_ask_under_fee,
        refuse_suspended,
        withdrawal_keeps_margin,
        realise_partial_close,
        cover_futures,
        bound_budgets,
        keep_transaction_ids,
        ids_per_user,
        refuse_rejected,
        trigger_passed_stops,
        bound_work,
    } = *rules;
    let rules = [
        margin_trading,
        fill_fok,
        fill_ioc_budget,
        refuse_not_positive,
        refuse_maker_fee_over_taker,
        refuse_moved_ask_under_fee,
        refuse_suspended,
        withdrawal_keeps_margin,
        realise_partial_close,
        cover_futures,
        bound_budgets,
        keep_transaction_ids,
        ids_per_user,
        refuse_rejected,
        trigger_passed_stops,
        bound_work,
    ];
    let (mut bits, mut at) = (0, 0);
    while at < rules.len() {
        bits |= (rules[at] as u32) << at;
        at += 1;
    }
    bits
}

fn rules_of(bits: u32) -> Rules {
    let has = |bit: u32| bits >> bit & 1 == 1;
    Rules {
        margin_trading: has(0),
        fill_fok: has(1),
        fill_ioc_budget: has(2),
        refuse_not_positive: has(3),
        refuse_maker_fee_over_taker: has(4),
        refuse_moved_ask_under_fee: has(5),
        refuse_suspended: has(6),
        withdrawal_keeps_margin: has(7),
        realise_partial_close: has(8),
        cover_futures: has(9),
        bound_budgets: has(10),
        keep_transaction_ids: has(11),
        ids_per_user: has(12),
        refuse_rejected: has(13),
        trigger_passed_stops: has(14),
        bound_work: has(15),
    }
}

pub(super) fn encode(risk: &Risk, out: &mut Writer<'_>) {
    out.bytes(MAGIC);
    out.bytes(STATE_VERSION.to_le_bytes());
    out.bytes(bits_of(risk.rules()).to_le_bytes());
    let clock = written(Field::Clock, risk.clock());
    out.byte(u8::from(clock.is_some()));
    out.long(clock.unwrap_or(0));
    encode_limits(&risk.limits_of_all(), out);
}

pub(super) fn decode(fields: &mut Reader<'_>) -> Result<Risk, SnapshotError> {
    let found = fields.take("the mark of a state")?;
    if found != MAGIC {
        return Err(SnapshotError::NotAState { found });
    }
    let version = fields.word("the version")?;
    if version != STATE_VERSION {
        return Err(SnapshotError::UnknownVersion { version });
    }
    let at = fields.at();
    let rules = fields.word("the rules")?;
    within("the rules", at, rules, 0, (1 << RULES) - 1)?;
    let has_clock = fields.small("whether there is a clock", 1)? == 1;
    let clock = fields.optional("the clock", has_clock)?;
    let limits = decode_limits(fields)?;
    Ok(Risk::restored(rules_of(rules), clock, limits))
}

/// 13 bytes.
pub(super) fn encode_limits(limits: &UserLimits, out: &mut Writer<'_>) {
    out.bytes(limits.open_orders.to_le_bytes());
    out.long(limits.order_size);
    out.byte(u8::from(limits.ids_once));
}

pub(super) fn decode_limits(fields: &mut Reader<'_>) -> Result<UserLimits, SnapshotError> {
    Ok(UserLimits {
        open_orders: fields.word("a limit of open orders")?,
        order_size: fields.long("a limit of an order's size")?,
        ids_once: fields.small("whether ids count once", 1)? == 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_its_bit() {
        assert_eq!(bits_of(&Rules::MENDED), (1 << RULES) - 1);
        assert_eq!(bits_of(&Rules::REFERENCE), 1);
        for bits in 0..1 << RULES {
            assert_eq!(bits_of(&rules_of(bits)), bits);
        }
    }
}
