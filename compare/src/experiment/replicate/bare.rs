//! The transactions of a primary without an exchange: what is due is a batch, one is under way.

use std::thread;
use std::time::Duration;

use thalweg_etcd::EtcdLog;
use thalweg_exchange::durable::replication::{
    BATCH_BYTES, Claim, CommandLog, LogStart, WriteOutcome,
};
use thalweg_measure::clock::Clock;
use thalweg_measure::histogram::Histogram;

use super::machines::{Etcd, wait};
use crate::experiment::serve::loader::Plan;
use crate::runner::{Ran, Run, text};

/// Bytes of a batch's head, and of a record with its length: the mean of the flow that is sent.
const HEAD_BYTES: usize = 56;
const RECORD_BYTES: usize = 69;
/// Bytes that a packed batch of that flow has, about: some, and some more for each command.
const PACKED_BYTES: (usize, usize) = (100, 10);

/// How often a batch is sent that has no clear answer.
const ATTEMPTS: usize = 20;

/// Appends batches by a plan's rate; returns the figures of its metrics.
pub(super) fn run(plan: &Plan) -> Ran {
    let (_etcd, mut log) = Etcd::start()?;
    let claim = Claim {
        epoch: 1,
        nonce: 1,
        log: 1,
        identity: 1,
        start: LogStart::default(),
        holder: "bare".to_owned(),
    };
    wait("the claim", || match log.claim(None, &claim) {
        WriteOutcome::Acked => Ok(()),
        other => Err(format!("{other:?}")),
    })?;
    let clock = Clock::global();
    let ticks = |time: Duration| clock.ticks_from_ns(time.as_nanos() as u64);
    let begin = clock.ticks();
    let counts_from = begin + ticks(plan.warm_up);
    let end = counts_from + ticks(plan.span);
    let due_of = |number: u64| begin + clock.ticks_from_ns(number * 1_000_000_000 / plan.per_s);
    let count_max = ((BATCH_BYTES - HEAD_BYTES) / RECORD_BYTES) as u64;
    let (mut next, mut previous, mut counted) = (0, None, 0);
    let mut latency_ns = Histogram::default();
    let batch = vec![0x5A; BATCH_BYTES];
    // One answer counts at least, however short the run.
    while clock.ticks() < end || counted == 0 {
        let (now, first) = (clock.ticks(), next);
        while due_of(next) <= now && next - first < count_max {
            next += 1;
        }
        if next == first {
            thread::park_timeout(Duration::from_nanos(
                clock.ns(due_of(next).saturating_sub(now)),
            ));
            continue;
        }
        let bytes = PACKED_BYTES.0 + (next - first) as usize * PACKED_BYTES.1;
        append(&mut log, &claim, (previous, first), &batch[..bytes])?;
        previous = Some(first);
        let now = clock.ticks();
        for due in (first..next).map(due_of).filter(|due| *due >= counts_from) {
            latency_ns.record(clock.ns(now.saturating_sub(due)));
            counted += 1;
        }
    }
    let took_ns = clock
        .ns(clock.ticks() - counts_from.min(clock.ticks()))
        .max(1);
    Ok(Run::of([
        counted as f64 * 1e9 / took_ns as f64,
        latency_ns.quantile(0.5) as f64,
        latency_ns.quantile(0.99) as f64,
    ]))
}

/// Appends a batch, as often as there is no clear answer. One that was stored without an answer is
/// fenced by itself the next time.
fn append(
    log: &mut EtcdLog,
    claim: &Claim,
    (previous, index): (Option<u64>, u64),
    bytes: &[u8],
) -> Result<(), String> {
    let mut is_unknown = false;
    for _ in 0..ATTEMPTS {
        match log.append(claim, previous, index, bytes) {
            WriteOutcome::Acked => return Ok(()),
            WriteOutcome::Unknown(_) => is_unknown = true,
            WriteOutcome::Fenced if is_unknown => {
                let newest = wait("the log", || log.read(u64::MAX).map_err(text))?.newest;
                let is_own = newest == Some(index);
                return is_own
                    .then_some(())
                    .ok_or_else(|| format!("fenced by {newest:?}"));
            }
            other => return Err(format!("an append: {other:?}")),
        }
    }
    Err(format!("no clear answer to {ATTEMPTS} appends"))
}
