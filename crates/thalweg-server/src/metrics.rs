//! The text of `/metrics`, by the names and types of Prometheus.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Bytes;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text::encode};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use thalweg_exchange::durable::Stats;
use thalweg_exchange::session::{Refusal, Role};
use thalweg_measure::histogram::Histogram;
use tokio::sync::Mutex;

use crate::connection_slots::ListenerKind;
use crate::counters::read;
use crate::gateway_observer::{GatewayRow, RowLabels, RowValues};
use crate::lifecycle::Lifecycle;
use crate::logs;
use crate::replication::ReplicaFigures;
use crate::request::Snapshot;
use crate::shared::Shared;

/// Upper bounds of histograms of times, in nanoseconds.
const BOUNDS_NS: [u64; 15] = [
    100,
    300,
    1_000,
    3_000,
    10_000,
    30_000,
    100_000,
    300_000,
    1_000_000,
    3_000_000,
    10_000_000,
    30_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];
/// The bounds of histograms of counts.
const BOUNDS_COUNT: [u64; 10] = [1, 2, 4, 8, 16, 32, 64, 256, 1_024, 4_096];

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Metrics {
    shared: Arc<Shared>,
    /// The last page, and when it was made.
    page: Mutex<Option<(Instant, Bytes)>>,
}

/// How long a page is good: making one holds up the exchange for some 100 µs.
const PAGE_TIME: Duration = Duration::from_millis(200);

impl Metrics {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            page: Mutex::const_new(None),
        }
    }

    /// Returns false once the exchange has stopped by itself.
    pub(crate) fn is_healthy(&self) -> bool {
        !self.shared.lifecycle.is(Lifecycle::Failed)
    }

    /// Returns whether commands are taken, and a text: the name of the state, and the figures of a
    /// replica.
    pub(crate) fn readiness(&self, now: Instant) -> (bool, String) {
        let state = self.shared.lifecycle.get();
        let replica = self.shared.replica(now);
        let is_ready = state == Lifecycle::Ready;
        let is_hung = is_ready && replica.as_ref().is_some_and(|(_, is_hung)| *is_hung);
        let name = if is_hung { "hung" } else { state.name() };
        let mut text = format!("{name}\n");
        if let Some((replica, _)) = replica {
            for Figure { name, value, .. } in replica_figures(&replica) {
                text.push_str(&format!("{name} {value}\n"));
            }
        }
        (is_ready && !is_hung, text)
    }

    /// Returns the page, which may be 200 ms old.
    pub(crate) async fn page(&self) -> Result<Bytes, fmt::Error> {
        let mut page = self.page.lock().await;
        if let Some((made, bytes)) = &*page
            && made.elapsed() < PAGE_TIME
        {
            return Ok(bytes.clone());
        }
        let snapshot = self.shared.requests.stats().await;
        let bytes = Bytes::from(self.text(snapshot)?);
        *page = Some((Instant::now(), bytes.clone()));
        Ok(bytes)
    }

    fn text(&self, snapshot: Option<Box<Snapshot>>) -> Result<String, fmt::Error> {
        let page = Page {
            shared: Arc::clone(&self.shared),
            snapshot,
        };
        let mut registry = Registry::with_prefix("thalweg");
        registry.register_collector(Box::new(page));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
}

#[derive(Debug)]
struct Page {
    shared: Arc<Shared>,
    snapshot: Option<Box<Snapshot>>,
}

fn labelled<V>(
    label: &'static str,
    values: impl IntoIterator<Item = (impl Into<String>, V)>,
) -> Vec<(RowLabels, V)> {
    let labelled = |(text, value): (_, V)| (vec![(label, Into::into(text))], value);
    values.into_iter().map(labelled).collect()
}

/// Writes one page of metrics.
struct Writer<'w>(DescriptorEncoder<'w>);

impl Writer<'_> {
    fn family<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        unit: Option<&'s Unit>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, unit, kind)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counters((name, help), &[(Vec::new(), value)])
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.gauges((name, help), &[(Vec::new(), value)])
    }

    fn counters(&mut self, (name, help): (&str, &str), values: &[(RowLabels, u64)]) -> fmt::Result {
        let encoder = self.family(name, help, None, MetricType::Counter)?;
        each(encoder, values, |metric, value| {
            ConstCounter::new(*value).encode(metric)
        })
    }

    fn gauges(&mut self, (name, help): (&str, &str), values: &[(RowLabels, f64)]) -> fmt::Result {
        let encoder = self.family(name, help, None, MetricType::Gauge)?;
        each(encoder, values, |metric, value| {
            ConstGauge::new(*value).encode(metric)
        })
    }

    /// Histograms of nanoseconds, as seconds.
    fn seconds(
        &mut self,
        (name, help): (&str, &str),
        values: &[(RowLabels, impl Borrow<Histogram>)],
    ) -> fmt::Result {
        let unit = Unit::Seconds;
        let encoder = self.family(name, help, Some(&unit), MetricType::Histogram)?;
        each(encoder, values, |metric, times| {
            histogram_of(metric, times.borrow(), &BOUNDS_NS, 1e9)
        })
    }
}

/// A figure of a replica.
struct Figure {
    name: &'static str,
    help: &'static str,
    value: f64,
}

/// Returns the figures of a replica, each as it is after `thalweg_replication_`.
fn replica_figures(replica: &ReplicaFigures) -> [Figure; 6] {
    let stats = &replica.stats;
    let figure = |name, help, value| Figure { name, help, value };
    [
        figure(
            "primary",
            "1 where this replica is the primary, 0 where it follows.",
            f64::from(stats.leads),
        ),
        figure(
            "epoch",
            "The number of the present claim of the command log, as far as it is known.",
            stats.epoch as f64,
        ),
        figure(
            "acknowledged_commands",
            "Commands that the log has acknowledged, as far as this replica knows.",
            stats.commands as f64,
        ),
        figure(
            "lag_commands",
            "How many of them are not executed here, at least.",
            stats.lag as f64,
        ),
        figure(
            "halted",
            "1 where this replica has halted: it executes nothing more, and ends.",
            f64::from(replica.has_halted),
        ),
        figure(
            "log_silent_seconds",
            "For how long the log has not answered; 0 where it answers.",
            stats.silent_for.as_secs_f64(),
        ),
    ]
}

/// Writes a figure of the gateway.
fn gateway_row(row: &GatewayRow, to: &mut Writer<'_>) -> fmt::Result {
    let (name, help) = (&format!("gateway_{}", row.name), row.help);
    match &row.values {
        RowValues::Counters(values) => to.counters((name, help), values),
        RowValues::Gauges(values) => to.gauges((name, help), values),
        RowValues::Seconds(values) => to.seconds((name, help), values),
    }
}

fn each<V>(
    mut encoder: MetricEncoder<'_>,
    values: &[(RowLabels, V)],
    write: impl Fn(MetricEncoder<'_>, &V) -> fmt::Result,
) -> fmt::Result {
    for (labels, value) in values {
        if labels.is_empty() {
            return write(encoder, value);
        }
        write(encoder.encode_family(labels)?, value)?;
    }
    Ok(())
}

/// Buckets as the encoder wants them: each with what is in it alone.
fn histogram_of(
    mut metric: MetricEncoder<'_>,
    histogram: &Histogram,
    bounds: &[u64],
    unit: f64,
) -> fmt::Result {
    let buckets = buckets(histogram, bounds);
    let buckets: Vec<(f64, u64)> = buckets
        .into_iter()
        .map(|(bound, count)| (bound.map_or(f64::MAX, |bound| bound as f64 / unit), count))
        .collect();
    let sum = histogram.sum() as f64 / unit;
    metric.encode_histogram::<RowLabels>(sum, histogram.count(), &buckets, None)
}

impl Collector for Page {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Writer(encoder);
        self.server(&mut to)?;
        self.market(&mut to)?;
        if let Some((replica, _)) = self.shared.replica(Instant::now()) {
            for Figure { name, help, value } in replica_figures(&replica) {
                to.gauge(&format!("replication_{name}"), help, value)?;
            }
        }
        let snapshot = self.snapshot.as_ref();
        let stats = snapshot.and_then(|snapshot| snapshot.stats.as_ref());
        let commands = stats.map_or(0, |stats| stats.number);
        for row in self.shared.gateway_rows.read(commands) {
            gateway_row(&row, &mut to)?;
        }
        let Some(stats) = stats else {
            return Ok(());
        };
        exchange(stats, &mut to)?;
        journal(stats, &mut to)?;
        stages(stats, &mut to)?;
        self.execution(&mut to)
    }
}

impl Page {
    fn execution(&self, to: &mut Writer<'_>) -> fmt::Result {
        to.seconds(
            (
                "execution_part",
                "How long the parts of execution took, of the commands that are timed.",
            ),
            &labelled("part", self.shared.execution.parts()),
        )
    }

    fn server(&self, to: &mut Writer<'_>) -> fmt::Result {
        let shared = &self.shared;
        let counters = &shared.counters;
        let is_ready = f64::from(shared.lifecycle.is(Lifecycle::Ready));
        to.gauge("ready", "1 while commands are taken.", is_ready)?;
        let snapshot = self.snapshot.as_ref();
        let counts = snapshot.map_or([0; 3], |snapshot| snapshot.sessions);
        let counts = counts.map(|count| count as f64);
        to.gauges(
            ("sessions", "Sessions that are connected."),
            &labelled("role", Role::ALL.map(Role::name).into_iter().zip(counts)),
        )?;
        let connections = shared.connection_slots.taken() as f64;
        to.gauge("connections", "Connections that are open.", connections)?;
        let max = shared.connection_slots.max(ListenerKind::Trade) as f64;
        to.gauge(
            "connections_max",
            "Connections that the trade listener may have.",
            max,
        )?;
        to.counter(
            "connections_accepted",
            "Connections that came.",
            read(&counters.accepted),
        )?;
        to.counter(
            "hellos_refused",
            "Connections that were not welcomed.",
            read(&counters.hellos_refused),
        )?;
        let endings = counters.endings();
        let endings = endings.map(|(why, count)| (format!("{why:?}"), count));
        to.counters(
            ("connections_ended", "Connections that ended, by reason."),
            &labelled("reason", endings),
        )?;
        to.counters(
            (
                "refusals",
                "Commands and queries that were refused, by reason.",
            ),
            &labelled("reason", counters.refusals()),
        )?;
        let bytes = snapshot.map_or(0, |snapshot| snapshot.out_bytes) as f64;
        to.gauge(
            "out_bytes",
            "Bytes of answers, reports and market data that wait for clients.",
            bytes,
        )?;
        to.counter(
            "received_bytes",
            "Bytes from clients.",
            read(&counters.bytes_in),
        )?;
        to.counter(
            "sent_bytes",
            "Bytes of answers and reports to clients.",
            read(&counters.bytes_out),
        )?;
        self.polls(to)?;
        self.lines(to)
    }

    fn polls(&self, to: &mut Writer<'_>) -> fmt::Result {
        let snapshot = self.snapshot.as_ref();
        to.counter(
            "polls",
            "How often the exchange's thread has looked at the sockets.",
            snapshot.map_or(0, |snapshot| snapshot.polls),
        )
    }

    fn lines(&self, to: &mut Writer<'_>) -> fmt::Result {
        let counters = &self.shared.counters;
        let lines = read(&counters.audit_lines);
        to.counter(
            "audit_lines",
            "Lines about commands of administrators, and about a gateway.",
            lines,
        )?;
        to.counter(
            "audit_lines_lost",
            "Lines about them that the audit file, or the thread that writes it, did not take.",
            read(&counters.audit_lost),
        )?;
        to.counter(
            "log_lines_lost",
            "Lines that standard error did not take.",
            logs::lost(),
        )
    }

    fn market(&self, to: &mut Writer<'_>) -> fmt::Result {
        let (inlet, readers) = self.shared.feed.load();
        let counters = &self.shared.counters;
        to.gauge(
            "market_readers",
            "Connections with market data.",
            readers as f64,
        )?;
        to.gauge(
            "market_inlet_bytes",
            "Market data that was not sent on yet.",
            inlet as f64,
        )?;
        to.counter(
            "market_sent_bytes",
            "Bytes of market data to clients.",
            read(&counters.market_bytes_out),
        )?;
        to.counter(
            "market_conflations",
            "How often a reader was notified that it missed messages.",
            read(&self.shared.feed.conflations),
        )?;
        if let Some(conditions) = &self.shared.conditions {
            to.counters(
                ("faults", "Commands that met a fault of the network."),
                &labelled("fault", conditions.fault_counts()),
            )?;
        }
        let Some(flow) = self.shared.flow.get() else {
            return Ok(());
        };
        to.counters(
            ("flow", "What the market that trades beside users has done."),
            &labelled("what", flow.all()),
        )
    }
}

fn exchange(stats: &Stats, to: &mut Writer<'_>) -> fmt::Result {
    to.counter(
        "commands",
        "Commands that were executed, ever.",
        stats.number,
    )?;
    let in_flight = stats.in_flight as f64;
    to.gauge(
        "in_flight",
        "Commands and queries that were taken and are not published yet.",
        in_flight,
    )?;
    let known = stats.sessions as f64;
    to.gauge(
        "sessions_remembered",
        "Sessions that have sent commands, ever.",
        known,
    )?;
    to.gauge(
        "reports_kept",
        "Execution reports that are kept for users who come back, 80 bytes each.",
        stats.reports as f64,
    )
}

fn journal(stats: &Stats, to: &mut Writer<'_>) -> fmt::Result {
    let journal = &stats.journal;
    to.counter(
        "journal_commands",
        "Commands journaled since the start.",
        journal.commands,
    )?;
    to.counter("journal_bytes", "Bytes of them.", journal.bytes)?;
    to.counter("journal_commits", "Waits for the disk.", journal.commits)?;
    let lacks = f64::from(journal.lack == Some(Refusal::DiskFull));
    to.gauge(
        "journal_full",
        "1 while the disk has no room, and commands are refused.",
        lacks,
    )?;
    to.counter(
        "snapshots",
        "Snapshots written since the start.",
        stats.snapshots.made,
    )?;
    to.counter(
        "snapshot_failures",
        "Snapshots that were not written, panics included.",
        stats.snapshots.failures,
    )?;
    let failed = f64::from(stats.snapshots.failed.is_some());
    to.gauge(
        "snapshot_failed",
        "1 where the last attempt failed.",
        failed,
    )?;
    let archive = &stats.snapshots.archive;
    to.counter(
        "archive_failures",
        "How often something that is no longer needed did not come into the archive.",
        archive.failures,
    )?;
    to.gauge(
        "archive_failed",
        "1 where the last attempt failed: nothing is deleted meanwhile.",
        f64::from(archive.failed.is_some()),
    )?;
    to.seconds(
        ("journal_commit", "How long a commit took."),
        &[(Vec::new(), &journal.commit_ns)],
    )?;
    let help = "Commands that a commit made durable.";
    let family = to.family("journal_group_commands", help, None, MetricType::Histogram)?;
    histogram_of(family, &journal.group, &BOUNDS_COUNT, 1.0)
}

fn stages(stats: &Stats, to: &mut Writer<'_>) -> fmt::Result {
    let stages = &stats.stages.stages;
    let counts = stages.iter().map(|stage| (&stage.name, stage.events));
    let queueing = stages.iter().map(|stage| (&stage.name, &stage.queueing_ns));
    let service = stages.iter().map(|stage| (&stage.name, &stage.service_ns));
    to.counters(
        ("stage_events", "Events that have passed a stage."),
        &labelled("stage", counts),
    )?;
    to.seconds(
        ("stage_wait", "How long sampled events waited for a stage."),
        &labelled("stage", queueing),
    )?;
    to.seconds(
        (
            "stage_service",
            "How long a stage was at work for sampled events.",
        ),
        &labelled("stage", service),
    )?;
    let help = "How long sampled events took from submission to publishing.";
    to.seconds(
        ("pipeline", help),
        &[(Vec::new(), &stats.stages.end_to_end_ns)],
    )
}

/// Returns how many values are at most each bound, and above the one before; the last has no bound.
fn buckets(histogram: &Histogram, bounds: &[u64]) -> Vec<(Option<u64>, u64)> {
    let bounds = bounds.iter().map(|bound| Some(*bound)).chain([None]);
    let mut buckets: Vec<(Option<u64>, u64)> = bounds.map(|bound| (bound, 0)).collect();
    for (value, count) in histogram.iter_recorded() {
        let holds = |(bound, _): &&mut (Option<u64>, u64)| bound.is_none_or(|max| value <= max);
        if let Some((_, bucket)) = buckets.iter_mut().find(holds) {
            *bucket += count;
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_every_value_once() {
        let mut histogram = Histogram::new();
        for value in [1, 2, 3, 4, 5_000] {
            histogram.record(value);
        }
        let counts = buckets(&histogram, &[2, 4, 8]);
        assert_eq!(
            counts,
            [(Some(2), 2), (Some(4), 2), (Some(8), 0), (None, 1)]
        );
    }
}
