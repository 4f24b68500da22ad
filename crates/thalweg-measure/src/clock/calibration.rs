//! How many nanoseconds a tick is, found by reading both clocks together twice.

use super::{Source, hardware, os_ns};
use std::time::Duration;

/// Fraction bits of both factors: fine enough that a conversion is exact to 2^-50 or so, coarse
/// enough for counters from 1 MHz (1000 ns a tick) up.
const FRACTION_BITS: u32 = 52;

/// Bracketed reads at each end; the tightest one counts, so a preemption has to hit all of them.
const READS: usize = 32;

/// The shortest distance between the two ends. A bracket is some 50 ns wide and both ends err to
/// the same side, so 10 ms leave about a millionth.
const BASELINE: Duration = Duration::from_millis(10);

/// One moment, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    ticks: u64,
    os_ns: u64,
}

impl Moment {
    /// Reads counter, operating system, counter, and keeps the tightest of several tries.
    pub(super) fn read() -> Self {
        let mut best = Moment { ticks: 0, os_ns: 0 };
        let mut width_min = u64::MAX;
        for _ in 0..READS {
            let before = hardware::counter();
            let os_ns = os_ns();
            let width = hardware::counter().saturating_sub(before);
            if width < width_min {
                width_min = width;
                best = Moment {
                    ticks: before + width / 2,
                    os_ns,
                };
            }
        }
        best
    }

    /// Waits until the baseline is long enough, then reads the other end.
    pub(super) fn read_after_baseline(self) -> Self {
        let due_ns = self.os_ns + BASELINE.as_nanos() as u64;
        loop {
            let left_ns = due_ns.saturating_sub(os_ns());
            if left_ns == 0 {
                return Moment::read();
            }
            #[expect(clippy::disallowed_methods)] // time itself is waited for
            std::thread::sleep(Duration::from_nanos(left_ns));
        }
    }
}

/// The two factors, as fixed-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    ns_per_tick: u64,
    ticks_per_ns: u64,
}

impl Scale {
    /// One tick is one nanosecond.
    pub(super) const ONE: Scale = Scale {
        ns_per_tick: 1 << FRACTION_BITS,
        ticks_per_ns: 1 << FRACTION_BITS,
    };

    /// Returns the rate between two moments; `None` where the counter stood still, ran backwards,
    /// or has a rate that no known machine has (below 1 MHz, above 1 THz).
    pub(super) fn between(from: Moment, to: Moment) -> Option<Scale> {
        let ticks = to.ticks.checked_sub(from.ticks)?;
        let ns = to.os_ns.checked_sub(from.os_ns)?;
        if ns == 0 || ticks < ns / 1000 || ticks == 0 || ticks / 1000 > ns {
            return None;
        }
        let ratio = |over: u64, under: u64| {
            u64::try_from((u128::from(over) << FRACTION_BITS) / u128::from(under)).ok()
        };
        Some(Scale {
            ns_per_tick: ratio(ns, ticks)?,
            ticks_per_ns: ratio(ticks, ns)?,
        })
    }

    #[inline]
    pub(super) fn ns(self, ticks: u64) -> u64 {
        scaled(ticks, self.ns_per_tick)
    }

    #[inline]
    pub(super) fn ticks(self, ns: u64) -> u64 {
        scaled(ns, self.ticks_per_ns)
    }
}

/// `value * factor`, rounded to nearest; u64::MAX where the result has no room.
#[inline]
fn scaled(value: u64, factor: u64) -> u64 {
    const HALF: u128 = 1 << (FRACTION_BITS - 1);
    let product = (u128::from(value) * u128::from(factor) + HALF) >> FRACTION_BITS;
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Where Linux lists the counters that it holds to be usable.
const CLOCK_SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Returns whether the operating system has found the counter to be unreliable: Linux takes a time
/// stamp counter that jumped, or differs between cores, off its list. Where there is no list,
/// nothing says so.
fn is_rejected(source: Source, list: &str) -> bool {
    source == Source::Tsc
        && std::fs::read_to_string(list)
            .is_ok_and(|names| !names.split_whitespace().any(|name| name == "tsc"))
}

/// The result of one calibration: the source to use, and its scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calibration {
    pub(super) source: Source,
    pub(super) scale: Scale,
}

impl Calibration {
    const OS: Calibration = Calibration {
        source: Source::Os,
        scale: Scale::ONE,
    };

    /// Calibrates the counter of the processor, or falls back to the operating system's clock.
    pub(super) fn take() -> Self {
        if !hardware::present() || is_rejected(hardware::SOURCE, CLOCK_SOURCES) {
            return Calibration::OS;
        }
        let begin = Moment::read();
        match Scale::between(begin, begin.read_after_baseline()) {
            Some(scale) => Calibration {
                source: hardware::SOURCE,
                scale,
            },
            None => Calibration::OS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CENTURY_NS: u64 = 100 * 366 * 24 * 3600 * 1_000_000_000;

    fn scale(ticks: u64, os_ns: u64) -> Option<Scale> {
        let origin = Moment {
            ticks: 77,
            os_ns: 5,
        };
        Scale::between(
            origin,
            Moment {
                ticks: 77 + ticks,
                os_ns: 5 + os_ns,
            },
        )
    }

    #[test]
    fn a_rate_without_sense_is_refused() {
        assert_eq!(scale(0, 1_000_000), None);
        assert_eq!(scale(1_000_000, 0), None);
        assert_eq!(scale(999, 1_000_000), None, "below 1 MHz");
        assert_eq!(scale(1_001_000_000, 1_000_000), None, "above 1 THz");
        let later = Moment {
            ticks: 10,
            os_ns: 10,
        };
        assert!(
            Scale::between(
                later,
                Moment {
                    ticks: 9,
                    os_ns: 20
                }
            )
            .is_none()
        );
        assert_eq!(scale(1_000_000, 1_000_000), Some(Scale::ONE));
    }

    #[test]
    fn a_counter_that_the_kernel_rejected_is_not_used() {
        let place = thalweg_testkit::Scratch::new("clock");
        let list = |name: &str, text: &str| {
            let path = place.join(name);
            std::fs::write(&path, text).expect("a temporary file");
            let path = path.to_str().expect("a path of text");
            [Source::Tsc, Source::ArmCounter].map(|source| is_rejected(source, path))
        };
        assert_eq!(list("kept", "tsc hpet acpi_pm \n"), [false, false]);
        assert_eq!(list("early", "tsc-early hpet\n"), [true, false]);
        assert_eq!(list("gone", "hpet acpi_pm\n"), [true, false]);
        assert!(!is_rejected(Source::Tsc, "/nowhere"));
    }

    #[test]
    fn results_without_room_stop_at_the_top() {
        let slow = scale(24_000, 1_000_000).expect("24 MHz");
        assert_eq!(slow.ns(u64::MAX), u64::MAX);
        assert_eq!(Scale::ONE.ns(u64::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn conversions_come_back(khz in 1_000u64..10_000_000, ns in 0..CENTURY_NS) {
            let scale = scale(khz * 10, 10_000_000).expect("a rate with sense");
            let ticks = scale.ticks(ns);
            let exact = u128::from(ns) * u128::from(khz) / 1_000_000;
            prop_assume!(exact <= u128::from(u64::MAX));
            let off = u128::from(ticks).abs_diff(exact);
            prop_assert!(off <= 1 + exact / 1_000_000, "{ticks} for {exact}");
            // Half a tick of rounding on the way, and at most a millionth.
            let bound = 1 + 500_000_u64.div_ceil(khz) + ns / 1_000_000;
            prop_assert!(scale.ns(ticks).abs_diff(ns) <= bound);
        }
    }
}
