//! Figures of the server, from the page that Prometheus reads.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long the server may take for the page.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The longest page that is read.
const PAGE_BYTES_MAX: u64 = 4 << 20;
/// The stages, in the order in which a command passes them.
const STAGES: [&str; 3] = ["execute", "journal", "publish"];

/// A page of metrics, and when it was read.
#[derive(Clone, Debug)]
pub(super) struct Page {
    read: Instant,
    values: BTreeMap<String, f64>,
}

/// The figures between two pages, or since the server's start where there is one page only.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Whether the times are those between two pages; else since the start.
    pub(super) is_recent: bool,
    /// Commands a second; none of one page only.
    pub(super) commands_per_s: Option<f64>,
    pub(super) commands: f64,
    pub(super) refusals: f64,
    pub(super) sessions: f64,
    pub(super) is_disk_full: bool,
    pub(super) stages: Vec<Stage>,
}

/// The times of a stage, in seconds; none where no event was sampled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stage {
    pub(super) name: &'static str,
    /// Median and 99th percentile.
    pub(super) wait: [Option<f64>; 2],
    pub(super) service: [Option<f64>; 2],
}

impl Page {
    /// Reads the page of a server.
    pub(super) fn fetch(address: &str) -> io::Result<Page> {
        let at = address.to_socket_addrs()?.next();
        let at = at.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mut stream = TcpStream::connect_timeout(&at, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut page = String::new();
        stream.take(PAGE_BYTES_MAX).read_to_string(&mut page)?;
        let other = || io::Error::other("it serves no metrics of an exchange");
        let (head, body) = page.split_once("\r\n\r\n").ok_or_else(other)?;
        let is_fine = head.split(' ').nth(1) == Some("200") && body.contains("thalweg_");
        is_fine.then(|| Page::parse(body)).ok_or_else(other)
    }

    fn parse(text: &str) -> Page {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let values = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Page {
            read: Instant::now(),
            values: values.collect(),
        }
    }

    fn value(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or_default()
    }

    /// Returns the sum of a family over its labels.
    fn sum(&self, family: &str) -> f64 {
        let of = self.values.range(format!("{family}{{")..);
        let of = of.take_while(|(name, _)| name.starts_with(family));
        of.map(|(_, value)| value).sum()
    }

    /// Returns the counts of a histogram's buckets by their upper bounds, ascending.
    fn buckets(&self, family: &str, stage: &str) -> Vec<(f64, f64)> {
        let begin = format!("{family}_bucket{{");
        let label = format!("stage=\"{stage}\"");
        let of = self.values.range(begin.clone()..);
        let of = of.take_while(|(name, _)| name.starts_with(&begin));
        let of = of.filter(|(name, _)| name.contains(&label));
        let mut found: Vec<(f64, f64)> = of
            .filter_map(|(name, count)| {
                let bound = name.split("le=\"").nth(1)?.split('"').next()?;
                let bound = match bound {
                    "+Inf" => f64::INFINITY,
                    bound => bound.parse().ok()?,
                };
                Some((bound, *count))
            })
            .collect();
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found
    }

    /// Returns the figures since another page; the times since the start where nothing was sampled
    /// meanwhile: one command in 512 is.
    pub(super) fn since(&self, before: Option<&Page>) -> Figures {
        let commands = self.value("thalweg_commands_total");
        // A server that was started again counts from the beginning.
        let counted = "thalweg_journal_commands_total";
        let before = before.filter(|before| before.value(counted) <= self.value(counted));
        let per_s = before.map(|before| {
            let time = self.read.duration_since(before.read).as_secs_f64();
            (commands - before.value("thalweg_commands_total")) / time.max(1e-3)
        });
        let recent = before.map(|_| STAGES.map(|name| self.stage(name, before)));
        let has_samples = |stage: &Stage| stage.service[0].is_some();
        let recent = recent.filter(|stages| stages.iter().all(has_samples));
        Figures {
            is_recent: recent.is_some(),
            commands_per_s: per_s,
            commands,
            refusals: self.sum("thalweg_refusals_total"),
            sessions: self.sum("thalweg_sessions"),
            is_disk_full: self.value("thalweg_journal_full") > 0.0,
            stages: recent
                .unwrap_or_else(|| STAGES.map(|name| self.stage(name, None)))
                .into(),
        }
    }

    /// Returns a stage's times since another page, or since the start.
    fn stage(&self, name: &'static str, before: Option<&Page>) -> Stage {
        let times = |family: &str| {
            let now = self.buckets(family, name);
            let before = before.map(|page| page.buckets(family, name));
            let counts = difference(&now, &before.unwrap_or_default());
            [0.5, 0.99].map(|part| quantile(&counts, part))
        };
        Stage {
            name,
            wait: times("thalweg_stage_wait_seconds"),
            service: times("thalweg_stage_service_seconds"),
        }
    }
}

fn difference(now: &[(f64, f64)], before: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let of = |bound: f64| before.iter().find(|(at, _)| *at == bound);
    let all = now.iter().map(|&(bound, count)| {
        let earlier = of(bound).map_or(0.0, |(_, count)| *count);
        (bound, count - earlier)
    });
    all.collect()
}

/// Returns a quantile of cumulative counts, as Prometheus estimates it: linear within a bucket, and
/// the last bound where it is beyond.
fn quantile(cumulative: &[(f64, f64)], part: f64) -> Option<f64> {
    let total = cumulative.last()?.1;
    if total <= 0.0 {
        return None;
    }
    let rank = part * total;
    let mut below = (0.0, 0.0);
    for &(bound, count) in cumulative {
        if count >= rank {
            let share = (rank - below.1) / (count - below.1).max(f64::MIN_POSITIVE);
            return Some(match bound.is_finite() {
                true => below.0 + (bound - below.0) * share.clamp(0.0, 1.0),
                false => below.0,
            });
        }
        below = (bound, count);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# TYPE thalweg_stage_wait_seconds histogram
thalweg_stage_wait_seconds_bucket{le=\"1e-06\",stage=\"execute\"} 50
thalweg_stage_wait_seconds_bucket{le=\"3e-06\",stage=\"execute\"} 100
thalweg_stage_wait_seconds_bucket{le=\"+Inf\",stage=\"execute\"} 100
thalweg_commands_total 1000
thalweg_journal_commands_total 1000
thalweg_refusals_total{reason=\"RATE\"} 2
thalweg_refusals_total{reason=\"DISK_FULL\"} 3
thalweg_journal_full 1
";

    #[test]
    fn a_page_has_figures_by_stage() {
        let page = Page::parse(PAGE);
        let figures = page.since(None);
        assert_eq!((figures.commands, figures.refusals), (1000.0, 5.0));
        assert!(figures.is_disk_full && !figures.is_recent);
        let execute = &figures.stages[0];
        assert_eq!(execute.name, "execute");
        assert_eq!(execute.wait[0], Some(1e-6));
        let p99 = execute.wait[1].expect("there are samples");
        assert!((p99 - 2.96e-6).abs() < 1e-9, "{p99}");
        assert_eq!(execute.service, [None, None]);
        // Between two equal pages nothing was sampled.
        let again = page.since(Some(&page));
        assert!(!again.is_recent);
        assert_eq!(again.stages, figures.stages);
        assert_eq!(again.commands_per_s, Some(0.0));
    }
}
