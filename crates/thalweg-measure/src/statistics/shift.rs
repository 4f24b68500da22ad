//! By how much is one group of values larger than another?
//!
//! The estimate is that of J. L. Hodges and E. L. Lehmann ("Estimates of location based on rank
//! tests", 1963): the median of all differences between a value of the second group and one of the
//! first. A few wild values do not move it, and [`rank_sum`](super::rank_sum) is the test that
//! belongs to it.
//!
//! Its interval is the bootstrap's (B. Efron, "Bootstrap methods", 1979): the estimate of
//! [`RESAMPLES`] series drawn from the pairs that were measured, and of these the middle 95 %.
//! Pairs are drawn, not values: what disturbs both values of a pair does not widen the interval. In
//! 600 simulated series with exponential noise it covers the true shift 93 times in 100 for 6
//! pairs, 94 for 10 and 95 for 20.

use super::{Interval, REPETITIONS_MIN, quantile};
use crate::random::SplitMix;

/// The number of series that the bootstrap draws.
pub const RESAMPLES: usize = 2_000;

/// Returns the median of all differences `second - first`; `None` where a group is empty or a value
/// is not finite. Some 5 µs for twice 20 values, and n log n beyond.
///
/// ```
/// use thalweg_measure::statistics::shift;
/// assert_eq!(shift(&[1.0, 2.0, 9.0], &[4.0, 5.0, 6.0]), Some(3.0));
/// ```
#[must_use]
pub fn shift(first: &[f64], second: &[f64]) -> Option<f64> {
    Some(median_difference(&sorted(first)?, &sorted(second)?))
}

/// `None` for no values, and for one that is not finite.
fn sorted(group: &[f64]) -> Option<Vec<f64>> {
    let mut group = group.to_vec();
    group.sort_by(f64::total_cmp);
    let is_sound = !group.is_empty() && group.iter().all(|value| value.is_finite());
    is_sound.then_some(group)
}

/// Returns the shift of paired runs, `(first, second)`, with its interval; the bounds are infinite
/// for fewer than [`REPETITIONS_MIN`] pairs. `None` for no pairs, and for a value that is not
/// finite. The same `seed` gives the same interval. Some 10 ms for 20 pairs.
#[must_use]
pub fn shift_interval(pairs: &[(f64, f64)], seed: u64) -> Option<Interval> {
    bootstrap(pairs, seed, median_difference)
}

/// Returns the shift interval as a fraction of the first group's median; each drawn series is
/// divided by its own median, so values that are never negative never fall by more than 100 %.
/// `None` where the median of the first group is not above 0 as well; a bound is infinite where
/// that of many series is not.
#[must_use]
pub fn relative_shift_interval(pairs: &[(f64, f64)], seed: u64) -> Option<Interval> {
    let first: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
    super::median(&first).filter(|&middle| middle > 0.0)?;
    bootstrap(pairs, seed, |first, second| {
        let difference = median_difference(first, second);
        match middle_of(first) {
            _ if difference == 0.0 => 0.0,
            middle if middle > 0.0 => difference / middle,
            _ => difference.signum() * f64::INFINITY,
        }
    })
}

fn middle_of(sorted: &[f64]) -> f64 {
    let last = sorted.len() - 1;
    sorted[last / 2].midpoint(sorted[last - last / 2])
}

/// Returns a statistic of two sorted groups, with the middle 95 % of what it is in series drawn
/// from them.
fn bootstrap(
    pairs: &[(f64, f64)],
    seed: u64,
    of: impl Fn(&[f64], &[f64]) -> f64,
) -> Option<Interval> {
    let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let value = of(&sorted(&first)?, &sorted(&second)?);
    if pairs.len() < REPETITIONS_MIN {
        return Some(Interval {
            low: f64::NEG_INFINITY,
            value,
            high: f64::INFINITY,
        });
    }
    let (order_first, order_second) = (order(&first), order(&second));
    let mut random = SplitMix::new(seed);
    let mut drawn = vec![0_usize; pairs.len()];
    let mut shifts = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        drawn.fill(0);
        for _ in pairs {
            drawn[random.below(pairs.len() as u64) as usize] += 1;
        }
        let resample = |values: &[f64], order: &[usize]| -> Vec<f64> {
            let times = order.iter().map(|&at| (values[at], drawn[at]));
            times
                .flat_map(|(value, times)| std::iter::repeat_n(value, times))
                .collect()
        };
        shifts.push(of(
            &resample(&first, &order_first),
            &resample(&second, &order_second),
        ));
    }
    Some(Interval {
        low: quantile(&shifts, 0.025)?.min(value),
        value,
        high: quantile(&shifts, 0.975)?.max(value),
    })
}

fn order(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&x, &y| values[x].total_cmp(&values[y]));
    order
}

/// Returns the median of all differences of sorted values.
fn median_difference(first: &[f64], second: &[f64]) -> f64 {
    let all = first.len() * second.len();
    let lower = difference_of_rank(first, second, all.div_ceil(2));
    let (at_most, next) = up_to(first, second, lower);
    if all % 2 == 1 || at_most > all / 2 {
        lower
    } else {
        lower + (next - lower) / 2.0
    }
}

/// Returns the difference of this rank, counted from 1: found by halving the range of all numbers
/// that there are between the least and the largest.
fn difference_of_rank(first: &[f64], second: &[f64], rank: usize) -> f64 {
    let (last_first, last_second) = (first.len() - 1, second.len() - 1);
    let mut low = ordinal(second[0] - first[last_first]);
    let mut high = ordinal(second[last_second] - first[0]);
    while low < high {
        let middle = low + ((i128::from(high) - i128::from(low)) / 2) as i64;
        if up_to(first, second, of_ordinal(middle)).0 >= rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    of_ordinal(low)
}

/// Returns how many differences are at most `limit`, and the least one above it.
fn up_to(first: &[f64], second: &[f64], limit: f64) -> (usize, f64) {
    let (mut count, mut below, mut next) = (0, 0, f64::INFINITY);
    for &value in first {
        while below < second.len() && second[below] - value <= limit {
            below += 1;
        }
        count += below;
        if let Some(above) = second.get(below) {
            next = next.min(above - value);
        }
    }
    (count, next)
}

/// Returns the place of a number among all; those of equal numbers are equal but for the two zeros.
fn ordinal(number: f64) -> i64 {
    let bits = number.to_bits() as i64;
    if bits < 0 { i64::MIN - bits } else { bits }
}

fn of_ordinal(place: i64) -> f64 {
    let bits = if place < 0 { i64::MIN - place } else { place };
    f64::from_bits(bits as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_sorting(first: &[f64], second: &[f64]) -> f64 {
        let differences = second
            .iter()
            .flat_map(|b| first.iter().map(move |a| b - a))
            .collect::<Vec<_>>();
        crate::statistics::median(&differences).expect("values")
    }

    /// M. Hollander, D. A. Wolfe, "Nonparametric statistical methods", 1973, p. 69 and 75.
    #[test]
    fn a_published_example_comes_out() {
        let at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        let found = shift(&early, &at_term).expect("values");
        assert!((found - 0.305).abs() < 1e-12, "{found}");
    }

    #[test]
    fn shifts_by_hand() {
        // Differences 2 3 4, 1 2 3, 0 1 2.
        assert_eq!(shift(&[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]), Some(2.0));
        // Differences -1 1 and 4 6.
        assert_eq!(shift(&[2.0, -3.0], &[1.0, 3.0]), Some(2.5));
        assert_eq!(shift(&[0.0; 4], &[-0.0; 5]), Some(0.0));
        assert_eq!(shift(&[], &[1.0]), None);
        assert_eq!(shift(&[1.0], &[f64::INFINITY]), None);
    }

    #[test]
    fn few_pairs_have_no_bounds() {
        let pairs = [(1.0, 2.0); 6];
        let few = shift_interval(&pairs[..5], 1).expect("pairs");
        assert_eq!((few.low, few.value), (f64::NEG_INFINITY, 1.0));
        let enough = shift_interval(&pairs, 1).expect("pairs");
        assert_eq!((enough.low, enough.value, enough.high), (1.0, 1.0, 1.0));
        assert_eq!(shift_interval(&[], 1), None);
    }

    #[test]
    fn what_is_never_negative_falls_by_all_of_it_at_most() {
        let mut random = SplitMix::new(3);
        let pairs: Vec<(f64, f64)> = (0..20)
            .map(|_| (1.0 + random.exponential(), 0.01 * random.exponential()))
            .collect();
        let relative = relative_shift_interval(&pairs, 1).expect("pairs");
        assert!(-1.0 <= relative.low && relative.high < -0.9, "{relative:?}");
        // As a part of one median the lower bound would be below -100 %.
        let shift = shift_interval(&pairs, 1).expect("pairs");
        let first: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let middle = crate::statistics::median(&first).expect("values");
        assert!(shift.low / middle < -1.0, "{shift:?}");
        assert!((shift.value / middle - relative.value).abs() < 1e-12);
        assert_eq!(relative_shift_interval(&[(0.0, 1.0); 6], 1), None);
        assert_eq!(relative_shift_interval(&[], 1), None);
        let same = relative_shift_interval(&[(0.5, 0.5); 6], 1).expect("pairs");
        assert_eq!((same.low, same.high), (0.0, 0.0));
    }

    #[test]
    fn what_disturbs_both_of_a_pair_widens_nothing() {
        let mut random = SplitMix::new(4);
        let pairs: Vec<(f64, f64)> = (0..20)
            .map(|_| (random.exponential(), random.exponential()))
            .collect();
        let drifting: Vec<(f64, f64)> = (0..20)
            .map(|at| (f64::from(at), f64::from(at) + 0.5))
            .collect();
        let width = |pairs: &[(f64, f64)]| {
            let interval = shift_interval(pairs, 7).expect("pairs");
            assert_eq!(shift_interval(pairs, 7), Some(interval), "the same seed");
            interval.high - interval.low
        };
        assert!(
            width(&drifting) < width(&pairs) * 2.0,
            "{}",
            width(&drifting)
        );
    }

    #[test]
    fn an_interval_covers_the_true_shift() {
        const DRAWS: u64 = 200;
        for (n, drift) in [(6_u64, 0.0), (20, 0.2)] {
            let covered = (0..DRAWS).filter(|&draw| {
                let mut random = SplitMix::new(draw << 8 | n);
                let pair = |at| {
                    let first = at as f64 * drift + random.exponential();
                    (first, at as f64 * drift + random.exponential() + 0.25)
                };
                let pairs: Vec<(f64, f64)> = (0..n).map(pair).collect();
                let interval = shift_interval(&pairs, draw).expect("pairs");
                !interval.excludes(0.25)
            });
            let covered = covered.count();
            // 93 % less three times the deviation of 200 draws.
            assert!(covered >= 175, "{covered} of {DRAWS} with {n} pairs");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(thalweg_testkit::cases(64)))]

        #[test]
        fn the_shift_is_that_of_all_sorted_differences(
            first in prop::collection::vec(-1e3..1e3, 1..25),
            second in prop::collection::vec(-1e3..1e3, 1..25),
        ) {
            let found = shift(&first, &second).expect("values");
            let known = by_sorting(&first, &second);
            prop_assert!((found - known).abs() <= known.abs() * 1e-12, "{} {}", found, known);
        }

        #[test]
        fn turning_the_groups_turns_the_shift_and_moving_one_moves_it(
            pairs in prop::collection::vec((-500_i32..500, -500_i32..500), 6..20),
            by in -1_000_i32..1_000,
        ) {
            let of = |f: &dyn Fn((i32, i32)) -> (i32, i32)| {
                let moved = pairs.iter().map(|&pair| f(pair));
                let pairs: Vec<_> = moved.map(|(a, b)| (f64::from(a), f64::from(b))).collect();
                shift_interval(&pairs, 5).expect("pairs")
            };
            let (plain, turned) = (of(&|pair| pair), of(&|(a, b)| (b, a)));
            prop_assert_eq!(plain.value, -turned.value);
            prop_assert!((plain.low + turned.high).abs() < 1e-9);
            let moved = of(&|(a, b)| (a, b + by));
            prop_assert_eq!(moved.value, plain.value + f64::from(by));
            prop_assert!((moved.high - plain.high - f64::from(by)).abs() < 1e-9);
            prop_assert!(plain.low <= plain.value && plain.value <= plain.high);
        }
    }
}
