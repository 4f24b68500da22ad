//! Advice beside queues that lose, or do not.

use std::time::Duration;

use super::queue::Case;
use crate::bus::{AdviceError, Burst};
use proptest::prelude::*;

fn burst(case: &Case) -> Burst {
    Burst {
        messages: case.messages,
        rate_per_s: case.rate_per_s as f64,
        period: Duration::from_nanos(case.period_ns),
    }
}

fn advised(case: &Case) -> Result<u64, AdviceError> {
    let stall = Duration::from_nanos(case.stall_ns);
    let advice = burst(case).advice(case.service_per_s as f64, stall)?;
    Ok(advice.capacity)
}

/// The formula that these replace: what comes above the service rate, by the mean rates, for as
/// long as a period.
fn by_means(case: &Case) -> u64 {
    let more_per_s = burst(case).mean_per_s() - case.service_per_s as f64;
    (more_per_s * case.period_ns as f64 / 1e9).max(0.0).ceil() as u64
}

/// `B·(1 − C/P) + P·t`: what comes in a stall is added, as if all of it came on top of the burst.
fn by_sum(case: &Case) -> u64 {
    let Case {
        messages,
        rate_per_s,
        service_per_s,
        stall_ns,
        ..
    } = *case;
    let unserved = 1.0 - service_per_s as f64 / rate_per_s as f64;
    let stalled = rate_per_s as f64 * stall_ns as f64 / 1e9;
    (messages as f64 * unserved.max(0.0) + stalled).ceil() as u64
}

/// Bursts that are within what the consumer serves; `slack` is how much more it could, in percent.
fn case(messages: u64, rate: u64, service: u64, slack: u64, stall_percent: u64, at: u64) -> Case {
    let slower = rate.min(service);
    let period_ns = (messages * 1_000_000_000).div_ceil(slower) * (100 + slack) / 100;
    Case {
        messages,
        rate_per_s: rate,
        period_ns,
        service_per_s: service,
        stall_begin_ns: period_ns * at / 100,
        stall_ns: period_ns * stall_percent / 100,
    }
}

fn cases(at: std::ops::Range<u64>) -> impl Strategy<Value = Case> {
    let rates = (1_000_u64..1_000_000, 1_000_u64..1_000_000);
    (
        1_u64..400,
        rates,
        0_u64..200,
        prop_oneof![Just(0), 0_u64..600],
        at,
    )
        .prop_map(|(messages, (rate, service), slack, stall, at)| {
            case(messages, rate, service, slack, stall, at)
        })
}

/// Bursts until a stall of six periods is forgotten as far as it changes the most that waits.
const BURSTS: u64 = 20;

proptest! {
    /// Where the stall begins with a burst, one message less than advised is lost, but where a
    /// service ends on the very moment of an arrival; then one more.
    #[test]
    fn advice_is_exact_to_a_message(case in cases(0..1)) {
        let capacity = advised(&case).unwrap();
        prop_assert_eq!(case.lost(BURSTS, capacity), 0);
        if capacity > 2 {
            prop_assert!(case.lost(BURSTS, capacity - 2) > 0, "{} is too much", capacity);
        }
    }

    /// Wherever the stall begins, nothing is lost.
    #[test]
    fn advice_holds_for_any_stall(case in cases(0..1_000)) {
        prop_assert_eq!(case.lost(BURSTS, advised(&case).unwrap()), 0);
    }

    /// Above what is served, whatever the queue, it loses in the end; and that is said.
    #[test]
    fn no_capacity_helps_an_overload(
        messages in 10_u64..100, service in 1_000_u64..100_000, capacity in 1_u64..500,
    ) {
        let mut case = case(messages, 1_000_000, service, 0, 0, 0);
        case.period_ns = case.period_ns * 9 / 10;
        let is_refused = matches!(advised(&case), Err(AdviceError::Overload { .. }));
        prop_assert!(is_refused);
        // A tenth more comes than is served, and two more than the queue holds.
        let bursts = (capacity + 2) * 10 / messages + 2;
        prop_assert!(case.lost(bursts.max(1) * 2, capacity) > 0);
    }
}

/// How often the bound of one message is needed.
#[test]
fn advice_is_nearly_always_exact() {
    let mut random = super::Random(17);
    let mut within = |low: u64, high: u64| low + (random.next() * (high - low) as f64) as u64;
    let (mut exact, mut all) = (0, 0);
    for _ in 0..500 {
        let rates = (within(1_000, 1_000_000), within(1_000, 1_000_000));
        let case = case(
            within(2, 300),
            rates.0,
            rates.1,
            within(0, 200),
            within(0, 300),
            0,
        );
        let capacity = advised(&case).unwrap();
        assert_eq!(case.lost(BURSTS, capacity), 0);
        if capacity > 1 {
            all += 1;
            exact += u64::from(case.lost(BURSTS, capacity - 1) > 0);
        }
    }
    assert!(exact * 100 >= all * 99, "{exact} of {all}");
}

/// Stalls as far apart as advised: each finds the queue as the first did.
#[test]
fn stalls_may_come_as_often_as_advised() {
    let case = case(200, 50_000, 40_000, 25, 150, 0);
    let stall = Duration::from_nanos(case.stall_ns);
    let advice = burst(&case).advice(40_000.0, stall).unwrap();
    let apart_ns = advice.stalls_apart.unwrap().as_nanos() as u64;
    // The queue is empty by then: no longer queue is needed for what comes later, so a run that
    // begins there is like one that begins at 0.
    let bursts = apart_ns / case.period_ns + 1;
    assert!(case.is_empty_at(bursts, apart_ns), "{apart_ns}");
    assert!(!case.is_empty_at(bursts, case.stall_ns));
}

/// The table of `docs/notes/bus-balance.md`: messages lost of the bursts, by capacity.
#[test]
fn the_table_of_the_notes() {
    const MS: u64 = 1_000_000;
    let row = |messages, rate, period_ms: u64, service, stall_ms: u64| {
        let case = Case {
            messages,
            rate_per_s: rate,
            period_ns: period_ms * MS,
            service_per_s: service,
            stall_begin_ns: 0,
            stall_ns: stall_ms * MS,
        };
        let lost = |capacity| (capacity, case.lost(10, capacity));
        let ours = advised(&case).unwrap();
        [by_means(&case), 4_096, by_sum(&case), ours, ours - 1].map(lost)
    };
    let rows = [
        row(10_000, 100_000_000, 1_000, 20_000, 0),
        row(10_000, 1_000_000, 1_000, 500_000, 0),
        row(10_000, 1_000_000, 1_000, 500_000, 5),
        row(10_000, 1_000_000, 1_000, 500_000, 20),
        row(10_000, 1_000_000, 100, 120_000, 250),
        row(10_000, 100_000, 200, 200_000, 30),
    ];
    let all = (0, 100_000);
    let expected = [
        [all, (4_096, 59_030), (9_998, 10), (9_999, 0), (9_998, 10)],
        [all, (4_096, 9_050), (5_000, 10), (5_001, 0), (5_000, 10)],
        [all, (4_096, 11_550), (10_000, 0), (7_501, 0), (7_500, 1)],
        [all, (4_096, 14_049), (25_000, 0), (10_000, 0), (9_999, 1)],
        [all, (4_096, 58_839), (258_800, 0), (32_801, 0), (32_800, 1)],
        [all, (4_096, 0), (3_000, 1), (3_001, 0), (3_000, 1)],
    ];
    assert_eq!(rows, expected);
}
