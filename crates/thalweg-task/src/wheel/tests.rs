use std::collections::BTreeMap;
use std::num::NonZeroU32;

use proptest::prelude::*;

use super::links::Link;
use super::{Entry, Timer, Wheel};

/// One step of a history. Choices among timers are made modulo their number.
#[derive(Debug, Clone)]
enum Step {
    Insert(Moment),
    /// A timer of any time: pending, fired or cancelled.
    Cancel(usize),
    Change(usize),
    Advance(Moment),
    /// To just before, onto, or just after what the wheel asks for.
    AdvanceToNext(i64),
    Pop(usize),
}

/// A tick, seen from now.
#[derive(Debug, Clone, Copy)]
enum Moment {
    After(u64),
    Before(u64),
    At(u64),
}

impl Moment {
    fn from(self, now: u64) -> u64 {
        match self {
            Moment::After(ticks) => now.saturating_add(ticks),
            Moment::Before(ticks) => now.saturating_sub(ticks),
            Moment::At(tick) => tick,
        }
    }
}

/// How the wheel seems wrong to a model that is, which the comparison must notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Early,
    Late,
    Unordered,
    CancelsTwice,
}

fn moments() -> impl Strategy<Value = Moment> {
    let near_border = (0..64_u32, -2..=2_i64)
        .prop_map(|(shift, aside)| (1_u64 << shift).saturating_add_signed(aside));
    prop_oneof![
        4 => (0..4_u64).prop_map(Moment::After),
        4 => (0..200_u64).prop_map(Moment::After),
        4 => near_border.clone().prop_map(Moment::After),
        2 => near_border.prop_map(Moment::At),
        2 => (0..20_000_u64).prop_map(Moment::After),
        1 => (0..200_u64).prop_map(Moment::Before),
        1 => any::<u64>().prop_map(Moment::At),
        1 => (0..3_u64).prop_map(|ticks| Moment::At(u64::MAX - ticks)),
    ]
}

/// Time that goes on by leaps to anywhere would be over soon: most steps are of a common size.
fn advances() -> impl Strategy<Value = Moment> {
    prop_oneof![
        6 => (0..200_u64).prop_map(Moment::After),
        3 => (0..5_000_u64).prop_map(Moment::After),
        2 => (0..40_u32).prop_map(|shift| Moment::After(1 << shift)),
        1 => (0..9_u64).prop_map(Moment::Before),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => moments().prop_map(Step::Insert),
        4 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::Change),
        4 => advances().prop_map(Step::Advance),
        4 => (-1..=1_i64).prop_map(Step::AdvanceToNext),
        2 => (0..4_usize).prop_map(Step::Pop),
    ];
    let leap = prop_oneof![
        1 => Just(Vec::new()),
        1 => moments().prop_map(|moment| vec![Step::Advance(moment)]),
    ];
    (leap.clone(), prop::collection::vec(step, 1..300), leap)
        .prop_map(|(first, body, last)| [first, body, last].concat())
}

/// The wheel beside a sorted map of the same timers.
struct Twin {
    wheel: Wheel<u64>,
    fault: Fault,
    now: u64,
    /// Payloads by deadline (that of a late one is the time of its insertion) and number.
    pending: BTreeMap<(u64, usize), u64>,
    /// All there ever were.
    timers: Vec<(Timer, (u64, usize))>,
    /// Those that the last advance found due and that have not been popped.
    due: Vec<(u64, usize)>,
}

impl Twin {
    fn new(fault: Fault) -> Twin {
        Twin {
            wheel: Wheel::new(),
            fault,
            now: 0,
            pending: BTreeMap::new(),
            timers: Vec::new(),
            due: Vec::new(),
        }
    }

    fn insert(&mut self, deadline: u64) {
        let number = self.timers.len();
        let timer = self.wheel.insert(deadline, number as u64);
        let key = (deadline.max(self.now), number);
        self.timers.push((timer, key));
        self.pending.insert(key, number as u64);
    }

    fn advance(&mut self, to: u64) {
        self.wheel.advance(to);
        self.now = self.now.max(to);
        let until = match self.fault {
            Fault::Early => self.now.saturating_sub(1),
            Fault::Late => self.now.saturating_add(1),
            _ => self.now,
        };
        let due = self.pending.range(..=(until, usize::MAX));
        self.due = due.map(|(&key, _)| key).collect();
    }

    fn pop(&mut self) -> Result<bool, String> {
        let found = self.wheel.pop_expired();
        let key = match self.fault {
            Fault::Unordered => self.due.pop(),
            _ if self.due.is_empty() => None,
            _ => Some(self.due.remove(0)),
        };
        let expected = key.and_then(|key| self.pending.remove(&key));
        agree("popped", found, expected)?;
        Ok(found.is_some())
    }

    fn choose(&self, choice: usize) -> Option<(Timer, (u64, usize))> {
        Some(self.timers[choice.checked_rem(self.timers.len())?])
    }

    fn cancel(&mut self, choice: usize) -> Result<(), String> {
        let Some((timer, key)) = self.choose(choice) else {
            return Ok(());
        };
        let expected = self.pending.remove(&key);
        self.due.retain(|&due| due != key);
        agree("cancelled", self.wheel.cancel(timer), expected)?;
        let again = match self.fault {
            Fault::CancelsTwice => expected,
            _ => None,
        };
        agree("cancelled again", self.wheel.cancel(timer), again)
    }

    fn change(&mut self, choice: usize) -> Result<(), String> {
        let Some((timer, key)) = self.choose(choice) else {
            return Ok(());
        };
        let expected = self.pending.get_mut(&key);
        agree(
            "payload",
            self.wheel.get_mut(timer),
            expected.as_deref().copied().as_mut(),
        )?;
        for payload in self.wheel.get_mut(timer).into_iter().chain(expected) {
            *payload += 1 << 32;
        }
        Ok(())
    }

    fn check_next(&self) -> Result<(), String> {
        let earliest = self.pending.keys().next().map(|&(deadline, _)| deadline);
        agree("length", self.wheel.len(), self.pending.len())?;
        let (next, now) = (self.wheel.next_deadline(), self.now);
        let right = match (next, earliest) {
            (None, None) => true,
            (Some(next), Some(earliest)) if earliest <= now => next == now,
            // In the same 64 ticks it is exact.
            (Some(next), Some(earliest)) if earliest / 64 == now / 64 => next == earliest,
            (Some(next), Some(earliest)) => now < next && next <= earliest,
            _ => false,
        };
        agree("time", self.wheel.now, now)?;
        right
            .then_some(())
            .ok_or_else(|| format!("at {now}, earliest {earliest:?}: next deadline {next:?}"))
    }

    fn take(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Insert(moment) => self.insert(moment.from(self.now)),
            Step::Cancel(choice) => self.cancel(choice)?,
            Step::Change(choice) => self.change(choice)?,
            Step::Advance(moment) => self.advance(moment.from(self.now)),
            Step::AdvanceToNext(aside) => {
                if let Some(next) = self.wheel.next_deadline() {
                    self.advance(next.saturating_add_signed(aside));
                }
            }
            Step::Pop(count) => {
                for _ in 0..count {
                    self.pop()?;
                }
            }
        }
        self.check_next()
    }

    /// Follows the wheel's own proposals until all timers that are left have fired.
    fn finish(&mut self) -> Result<(), String> {
        while let Some(next) = self.wheel.next_deadline() {
            self.advance(next);
            while self.pop()? {}
            self.check_next()?;
        }
        agree("left", self.pending.len(), 0)
    }
}

fn agree<T: PartialEq<U> + std::fmt::Debug, U: std::fmt::Debug>(
    what: &str,
    found: T,
    expected: U,
) -> Result<(), String> {
    (found == expected)
        .then_some(())
        .ok_or_else(|| format!("{what}: {found:?}, expected {expected:?}"))
}

fn replay(steps: &[Step], fault: Fault) -> Result<(), String> {
    let mut twin = Twin::new(fault);
    for step in steps {
        twin.take(step)?;
    }
    twin.finish()
}

proptest! {
    #[test]
    fn does_as_a_sorted_map_does(steps in steps()) {
        prop_assert_eq!(replay(&steps, Fault::None), Ok(()));
    }
}

#[test]
fn the_comparison_notices_faults() {
    use Moment::After;
    let insert = |ticks| Step::Insert(After(ticks));
    let steps = [
        insert(5_000),
        insert(5_000),
        insert(70),
        Step::Cancel(2),
        Step::Advance(After(4_999)),
        Step::Pop(1),
        Step::Advance(After(1)),
        Step::Pop(2),
    ];
    assert_eq!(replay(&steps, Fault::None), Ok(()));
    let faults = [
        Fault::Early,
        Fault::Late,
        Fault::Unordered,
        Fault::CancelsTwice,
    ];
    for fault in faults {
        assert!(replay(&steps, fault).is_err(), "{fault:?} went unnoticed");
    }
}

/// Numbers that look random, the same in every run.
fn scattered(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn a_single_timer_however_far_asks_for_eleven_advances_at_most() {
    for deadline in (0..64).map(|shift| u64::MAX >> shift) {
        let mut wheel = Wheel::new();
        wheel.insert(deadline, ());
        let mut advances = 0;
        while let Some(next) = wheel.next_deadline() {
            assert!(next <= deadline);
            wheel.advance(next);
            advances += 1;
            let fired = wheel.pop_expired().is_some();
            assert_eq!(fired, next == deadline, "{deadline}");
        }
        assert!(advances <= 11, "{advances} advances to {deadline}");
    }
}

#[test]
fn an_entry_whose_generations_have_run_out_is_not_used_again() {
    let mut wheel = Wheel::new();
    let timer = wheel.insert(5, 'a');
    wheel.cancel(timer);
    wheel.entries[0].generation = NonZeroU32::MAX;
    let last = wheel.insert(5, 'b');
    assert_eq!(last.number, timer.number);
    assert_eq!(wheel.cancel(last), Some('b'));
    assert_eq!(wheel.cancel(last), None);
    let next = wheel.insert(5, 'c');
    assert_ne!(next.number, timer.number);
    assert_eq!(wheel.get_mut(last), None);
    assert_eq!(wheel.len(), 1);
}

#[test]
fn nothing_is_allocated_once_as_many_timers_have_been_pending() {
    let mut wheel = Wheel::new();
    let mut state = 4;
    let mut round = |wheel: &mut Wheel<u64>| {
        let now = wheel.now;
        let timers: Vec<_> = (0..1_000)
            .map(|number| wheel.insert(now + scattered(&mut state), number))
            .collect();
        for timer in &timers[..500] {
            wheel.cancel(*timer);
        }
        wheel.advance(now + (1 << 33));
        while wheel.pop_expired().is_some() {}
    };
    round(&mut wheel);
    let capacities = (wheel.entries.capacity(), wheel.links.capacity());
    for _ in 0..20 {
        round(&mut wheel);
    }
    assert_eq!(
        (wheel.entries.capacity(), wheel.links.capacity()),
        capacities
    );
}

#[test]
fn a_timer_is_a_word_and_its_entry_24_bytes_beside_the_payload() {
    assert_eq!((size_of::<Timer>(), size_of::<Option<Timer>>()), (8, 8));
    let entry = size_of::<Entry<&[u8]>>() + size_of::<Link>();
    assert_eq!(entry - size_of::<&[u8]>(), 24);
}
