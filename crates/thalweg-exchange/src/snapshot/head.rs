//! The beginning: version, rules, the clock, and the default limits.

use std::mem::offset_of;

use zerocopy::little_endian::{I64, U32};

use super::field::{Field, written};
use super::forms::{HeadForm, LimitsForm, MarkForm};
use super::reader::{Reader, within};
use super::writer::Writer;
use super::{MAGIC, STATE_VERSION, SnapshotError};
use crate::command::UserLimits;
use crate::risk::Risk;
use crate::rules::Rules;
use crate::wire::Form;

pub(super) fn encode(risk: &Risk, out: &mut Writer<'_>) {
    let clock = written(Field::Clock, risk.clock());
    out.put(&MarkForm {
        magic: MAGIC,
        version: U32::new(STATE_VERSION),
    });
    out.put(&HeadForm {
        rules: U32::new(risk.rules().bits()),
        has_clock: clock.is_some().into(),
        clock: I64::new(clock.unwrap_or(0)),
        limits: LimitsForm::of(&risk.default_limits()).1,
    });
}

pub(super) fn decode(fields: &mut Reader<'_>) -> Result<Risk, SnapshotError> {
    let mark: MarkForm = fields.get("the mark of a state")?;
    if mark.magic != MAGIC {
        let found = mark.magic;
        let what = format!("the bytes at 0 are {found:02x?}, a state begins with {MAGIC:02x?}");
        return Err(SnapshotError(what));
    }
    let version = mark.version.get();
    if version != STATE_VERSION {
        let what = format!("the version at byte 4 is {version}, only {STATE_VERSION} is known");
        return Err(SnapshotError(what));
    }
    let at = fields.at();
    let head: HeadForm = fields.get("the rules")?;
    let (rules, clock) = (head.rules.get(), head.clock.get());
    within("the rules", at, rules, 0, (1 << Rules::COUNT) - 1)?;
    let what = "whether there is a clock";
    let clock_at = at + offset_of!(HeadForm, clock);
    within(what, clock_at - 1, head.has_clock, 0, 1)?;
    let has_clock = head.has_clock == 1;
    if !has_clock {
        within("the clock", clock_at, clock, 0, 0)?;
    }
    let limits = check_limits(head.limits, at + offset_of!(HeadForm, limits))?;
    let rules = Rules::from_bits(rules);
    Ok(Risk::restored(rules, has_clock.then_some(clock), limits))
}

pub(super) fn check_limits(form: LimitsForm, at: usize) -> Result<UserLimits, SnapshotError> {
    let once_at = at + offset_of!(LimitsForm, ids_once);
    within("whether ids count once", once_at, form.ids_once, 0, 1)?;
    Ok(form.value([0; 2], [at, at])?)
}
