//! Does one group of values tend to be larger than another? The test of Mann and Whitney, and
//! Holm's correction where several such questions are asked at once.
//!
//! H. B. Mann, D. R. Whitney, "On a test of whether one of two random variables is stochastically
//! larger than the other", 1947. S. Holm, "A simple sequentially rejective multiple test
//! procedure", 1979.

/// The number of values in both groups together up to which the test is exact.
const EXACT_MAX: usize = 100;

/// The outcome of the test of Mann and Whitney.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSum {
    /// The number of pairs of one value of each group in which the second group's is larger; ties
    /// count a half.
    pub u: f64,
    /// The two-sided p value: the probability that groups without a difference lie as far apart or
    /// farther.
    pub p: f64,
}

/// Compares two groups by the ranks of their values. `None` where a group is empty or a value is
/// not finite.
///
/// With up to 100 values in both groups together, `p` is exact, with ties too: it counts all ways
/// to split these ranks into two such groups (the shift algorithm of B. Streitberg and J. Röhmel,
/// 1986). With more, it is the normal approximation with the corrections for ties and for
/// continuity. The exact test of twice 50 values takes some 50 ms, that of twice 20 one.
///
/// ```
/// use thalweg_measure::statistics::rank_sum;
/// let result = rank_sum(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).expect("finite values");
/// assert_eq!(result.u, 9.0);
/// assert_eq!(result.p, 0.1); // 2 of the 20 ways to split six values
/// ```
#[must_use]
pub fn rank_sum(first: &[f64], second: &[f64]) -> Option<RankSum> {
    let is_sound = |group: &[f64]| !group.is_empty() && group.iter().all(|v| v.is_finite());
    if !is_sound(first) || !is_sound(second) {
        return None;
    }
    let (ranks, ties) = doubled_ranks(first, second);
    let sum: u64 = ranks[first.len()..].iter().sum();
    let (n1, n2) = (first.len() as f64, second.len() as f64);
    let u = sum as f64 / 2.0 - n2 * (n2 + 1.0) / 2.0;
    let p = if ranks.len() <= EXACT_MAX {
        exact(&ranks, second.len(), sum)
    } else {
        let n = n1 + n2;
        let variance = n1 * n2 / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
        let apart = ((u - n1 * n2 / 2.0).abs() - 0.5).max(0.0);
        if variance > 0.0 {
            erfc(apart / (2.0 * variance).sqrt())
        } else {
            1.0
        }
    };
    Some(RankSum { u, p: p.min(1.0) })
}

/// Twice the rank of each value among all, the first group's before the second's; equal values
/// share the mean of their ranks. And the sum of t³ − t over the ties, t being their lengths.
fn doubled_ranks(first: &[f64], second: &[f64]) -> (Vec<u64>, f64) {
    let values: Vec<f64> = first.iter().chain(second).copied().collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&x, &y| values[x].total_cmp(&values[y]));
    let mut ranks = vec![0; values.len()];
    let (mut begin, mut ties) = (0, 0.0);
    for run in order.chunk_by(|&x, &y| values[x] == values[y]) {
        let end = begin + run.len();
        // The mean of begin + 1 ..= end, doubled.
        run.iter()
            .for_each(|&at| ranks[at] = (begin + 1 + end) as u64);
        ties += (run.len() as f64).powi(3) - run.len() as f64;
        begin = end;
    }
    (ranks, ties)
}

/// Returns the part of all groups of `size` of these ranks whose sum is as far from the mean as
/// `sum`, or farther.
fn exact(ranks: &[u64], size: usize, sum: u64) -> f64 {
    let all: u64 = ranks.iter().sum();
    // ways[k][s]: groups of k ranks with the sum s. At most 2^100: an f64 has room for that, and
    // the parts are exact to 16 digits.
    let width = all as usize + 1;
    let mut ways = vec![0.0_f64; (size + 1) * width];
    ways[0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for k in (1..=size.min(seen + 1)).rev() {
            let (before, here) = ways.split_at_mut(k * width);
            let before = &before[(k - 1) * width..];
            for (to, from) in here[rank as usize..width].iter_mut().zip(before) {
                *to += from;
            }
        }
    }
    // Distances from the mean, times the number of ranks, in whole numbers.
    let mean = u128::from(all) * size as u128;
    let distance = |sum: u64| (u128::from(sum) * ranks.len() as u128).abs_diff(mean);
    let counts = &ways[size * width..];
    let far = counts
        .iter()
        .zip(0..)
        .filter(|&(_, s)| distance(s) >= distance(sum));
    let far: f64 = far.map(|(count, _)| count).sum();
    far / counts.iter().sum::<f64>()
}

/// Returns the complementary error function, to a part of 1.2e-7 (W. H. Press et al., "Numerical
/// Recipes", section 6.2: a Chebyshev fit), for x ≥ 0.
fn erfc(x: f64) -> f64 {
    const FIT: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + 0.5 * x);
    let polynomial = FIT.iter().rev().fold(0.0, |sum, term| sum * t + term);
    t * (polynomial - x * x).exp()
}

/// Returns Holm's adjusted p values, in the given order. If they are compared with a level, the
/// probability of any false positive among the answers is at most that level.
///
/// ```
/// use thalweg_measure::statistics::holm;
/// assert_eq!(holm(&[0.01, 0.5, 0.02]), [0.03, 0.5, 0.04]);
/// ```
#[must_use]
pub fn holm(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|&x, &y| ps[x].total_cmp(&ps[y]));
    let mut adjusted = vec![1.0; ps.len()];
    let mut largest = 0.0_f64;
    for (rank, &at) in order.iter().enumerate() {
        largest = largest.max(ps[at] * (ps.len() - rank) as f64).min(1.0);
        adjusted[at] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix;
    use proptest::prelude::*;

    fn p(first: &[f64], second: &[f64]) -> f64 {
        rank_sum(first, second).expect("finite values").p
    }

    /// Returns groups of `n1` and `n2` values without ties, whose U is `u`.
    fn groups(n1: usize, n2: usize, mut u: usize) -> (Vec<f64>, Vec<f64>) {
        // A value of the second group stands above as many of the first as it is given.
        let second: Vec<f64> = (0..n2)
            .map(|at| {
                let above = u.min(n1);
                u -= above;
                above as f64 + 0.5 - at as f64 * 1e-3
            })
            .collect();
        ((1..=n1).map(|value| value as f64).collect(), second)
    }

    /// The critical values of published tables: two-sided, 5 % and 1 %.
    #[test]
    fn critical_values_are_those_of_the_tables() {
        let at_5 = [
            (5, 5, 2),
            (6, 6, 5),
            (7, 7, 8),
            (8, 8, 13),
            (9, 9, 17),
            (10, 10, 23),
            (12, 12, 37),
            (15, 15, 64),
            (20, 20, 127),
            (4, 10, 5),
            (8, 15, 29),
            (10, 20, 55),
        ];
        let at_1 = [
            (5, 5, 0),
            (8, 8, 7),
            (10, 10, 16),
            (15, 15, 51),
            (20, 20, 105),
        ];
        for (level, table) in [(0.05, &at_5[..]), (0.01, &at_1[..])] {
            for &(n1, n2, critical) in table {
                let by = |u| {
                    let (first, second) = groups(n1, n2, u);
                    let result = rank_sum(&first, &second).expect("finite values");
                    assert_eq!(result.u, u as f64);
                    result.p
                };
                assert!(by(critical) <= level, "{n1} {n2} {}", by(critical));
                assert!(by(critical + 1) > level, "{n1} {n2} {}", by(critical + 1));
            }
        }
    }

    /// M. Hollander, D. A. Wolfe, "Nonparametric statistical methods", 1973, p. 69: W = 35, one-
    /// sided 0.1272.
    #[test]
    fn a_published_example_comes_out() {
        let at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        let result = rank_sum(&early, &at_term).expect("finite values");
        assert_eq!(result.u, 35.0);
        assert!((result.p - 2.0 * 0.127_206).abs() < 1e-6, "{}", result.p);
    }

    #[test]
    fn ties_are_as_counted_one_by_one() {
        let mut random = SplitMix::new(3);
        for _ in 0..200 {
            let n = 2 + random.below(9) as usize;
            let size = 1 + random.below(n as u64 - 1) as usize;
            let values: Vec<f64> = (0..n).map(|_| random.below(4) as f64).collect();
            let (first, second) = values.split_at(n - size);
            let u = |chosen: u32| {
                let is = |at: &usize| chosen >> at & 1 == 1;
                let pairs = (0..n).filter(is).flat_map(|at| {
                    let others = (0..n).filter(|other| !is(other));
                    others.map(move |other| (at, other))
                });
                let above = pairs.map(|(at, other)| match values[at].total_cmp(&values[other]) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                });
                above.sum::<f64>()
            };
            let all: Vec<u32> = (0..1 << n)
                .filter(|chosen: &u32| chosen.count_ones() as usize == size)
                .collect();
            let mean = ((n - size) * size) as f64 / 2.0;
            let found = rank_sum(first, second).expect("finite values");
            let far = |&&chosen: &&u32| (u(chosen) - mean).abs() >= (found.u - mean).abs();
            let part = all.iter().filter(far).count() as f64 / all.len() as f64;
            assert!((found.p - part).abs() < 1e-12, "{first:?} {second:?}");
        }
    }

    #[test]
    fn many_values_come_close_to_the_exact_test() {
        let mut random = SplitMix::new(9);
        for shift in [0.0, 0.3, 1.0] {
            let mut group = |n: usize, shift: f64| -> Vec<f64> {
                let rounded = |value: f64| (value * 20.0).round();
                (0..n)
                    .map(|_| rounded(random.exponential() + shift))
                    .collect()
            };
            let (first, second) = (group(60, 0.0), group(60, shift));
            let (ranks, _) = doubled_ranks(&first, &second);
            let sum = ranks[60..].iter().sum();
            let (near, exact) = (p(&first, &second), exact(&ranks, 60, sum));
            assert!(
                (near - exact).abs() < 0.002 + exact * 0.02,
                "{near} {exact}"
            );
        }
        assert!((erfc(0.0) - 1.0).abs() < 2e-7);
        // 1.96 standard deviations, two-sided.
        assert!((erfc(1.959_963_985 / std::f64::consts::SQRT_2) - 0.05).abs() < 1e-7);
    }

    #[test]
    fn what_has_no_ranks_is_refused() {
        assert_eq!(rank_sum(&[], &[1.0]), None);
        assert_eq!(rank_sum(&[1.0], &[]), None);
        assert_eq!(rank_sum(&[1.0], &[f64::NAN]), None);
        assert_eq!(p(&[2.0; 8], &[2.0; 8]), 1.0);
        assert_eq!(p(&[2.0; 80], &[2.0; 80]), 1.0);
    }

    /// Several metrics of groups that do not differ: a difference is reported in at most 5 % of all
    /// tries.
    #[test]
    fn a_family_of_tests_cries_wolf_in_one_of_twenty() {
        const TRIES: usize = 2_000;
        let mut random = SplitMix::new(21);
        let mut wolves = 0;
        for _ in 0..TRIES {
            let mut metric = |_| {
                let mut group = || -> Vec<f64> { (0..12).map(|_| random.exponential()).collect() };
                p(&group(), &group())
            };
            let ps: Vec<f64> = (0..6).map(&mut metric).collect();
            wolves += usize::from(holm(&ps).iter().any(|&p| p < 0.05));
        }
        // 5 % and three deviations of 2,000 tries; a test that never reports a difference fails
        // too.
        assert!((40..=129).contains(&wolves), "{wolves} of {TRIES}");
    }

    #[test]
    fn holm_by_hand() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, known) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - known).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    proptest! {
        #[test]
        fn the_order_of_groups_and_a_shift_of_all_do_not_matter(
            first in prop::collection::vec(-50_i32..50, 1..20),
            second in prop::collection::vec(-50_i32..50, 1..20),
            shift in -1_000_i32..1_000,
        ) {
            let moved = |group: &[i32], by: i32| -> Vec<f64> {
                group.iter().map(|&value| f64::from(value + by)).collect()
            };
            let (a, b) = (moved(&first, 0), moved(&second, 0));
            let result = rank_sum(&a, &b).expect("finite values");
            let turned = rank_sum(&b, &a).expect("finite values");
            prop_assert!((result.p - turned.p).abs() < 1e-12);
            prop_assert_eq!(result.u + turned.u, (a.len() * b.len()) as f64);
            let shifted = rank_sum(&moved(&first, shift), &moved(&second, shift));
            prop_assert_eq!(shifted, Some(result));
            prop_assert!(result.p > 0.0 && result.p <= 1.0);
        }
    }
}
