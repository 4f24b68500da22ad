//! The files of `packaging`: what they name is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::client::order;
use crate::test_server::TestServer;
use thalweg_exchange::Action;

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(packaging().join(name)).expect(name)
}

/// Returns the names of the series that a page may have, each with its lines.
fn series(page: &str) -> BTreeMap<String, Vec<String>> {
    let mut series: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in page.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').expect("a name and a type");
            let endings: &[&str] = match kind {
                "counter" => &["_total"],
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            for ending in endings {
                series.entry(format!("{name}{ending}")).or_default();
            }
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let lines = series.get_mut(name).expect("its type comes first");
            lines.push(line.to_owned());
        }
    }
    series
}

/// Returns the words of a query that are names of ours, and the labels that it groups by.
fn parts(query: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let names = words.filter(|word| word.starts_with("thalweg_")).collect();
    let groups = query.split(" by (").skip(1);
    let labels = groups.filter_map(|group| group.split(')').next());
    let labels = labels.flat_map(|list| list.split(", "));
    (names, labels.collect())
}

/// Calls `check` with each query of a dashboard, and with its legend.
fn each_query(value: &Value, check: &mut impl FnMut(&str, &str)) {
    if let (Some(query), Some(legend)) = (value["expr"].as_str(), value["legendFormat"].as_str()) {
        check(query, legend);
    }
    match value {
        Value::Array(list) => list.iter().for_each(|value| each_query(value, check)),
        Value::Object(fields) => fields.values().for_each(|value| each_query(value, check)),
        _ => {}
    }
}

#[test]
fn every_metric_and_label_of_the_dashboard_is_served() {
    let server = TestServer::with_market(|_| {});
    let (mut client, _) = server.trade(1);
    client.submit(1, &order(1, 1, Action::Bid, 10, 1));
    client.succeeds(1);
    drop(client);
    // Until a connection has ended, there is no reason for it.
    let page = loop {
        let (_, page) = server.get("/metrics");
        if page.contains("thalweg_connections_ended_total{") {
            break page;
        }
        std::thread::yield_now();
    };
    let series = series(&page);
    let dashboard = text("grafana/dashboards/thalweg.json");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("it is JSON");
    let replication = text("../../../docs/replication.md");
    let mut queries = 0;
    each_query(&dashboard, &mut |query, legend| {
        queries += 1;
        let (names, mut labels) = parts(query);
        assert!(!names.is_empty(), "{query}");
        labels.extend(
            legend
                .split("{{")
                .skip(1)
                .filter_map(|part| part.split('}').next()),
        );
        for name in names {
            // Replicas alone serve these: the test of the program with etcd looks for all of them.
            if let Some(name) = name.strip_prefix("thalweg_replication_") {
                assert!(replication.contains(&format!("  | `{name}` | ")), "{name}");
                continue;
            }
            let lines = series.get(name);
            let lines = lines.unwrap_or_else(|| panic!("`{name}` of `{query}` is not served"));
            for label in &labels {
                let has_it = |line: &String| line.contains(&format!("{label}=\""));
                assert!(lines.iter().any(has_it), "{label} of `{query}`: {lines:?}");
            }
        }
    });
    assert!(queries > 20, "{queries}");
}

#[test]
fn a_dashboard_has_the_source_that_is_provisioned() {
    let source = text("grafana/provisioning/datasources/prometheus.yaml");
    let dashboard = text("grafana/dashboards/thalweg.json");
    let dashboard: Value = serde_json::from_str(&dashboard).expect("it is JSON");
    let uid = dashboard["panels"][0]["datasource"]["uid"].as_str();
    let uid = uid.expect("it has a source");
    assert!(source.contains(&format!("uid: {uid}\n")), "{source}");
}

/// Its form is that of the Compose Specification; this looks for what it names.
#[test]
fn every_file_that_the_compose_file_mounts_is_there() {
    let compose = text("compose.yaml");
    let mounts = compose
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ./"));
    let mounts = mounts.filter_map(|mount| mount.split(':').next());
    // These two are the operator's.
    let mounts: Vec<&str> = mounts
        .filter(|name| !["exchange", "keys.toml"].contains(name))
        .collect();
    assert!(mounts.len() >= 3, "{mounts:?}");
    for mount in mounts {
        assert!(packaging().join(mount).exists(), "{mount}");
    }
    let value = |name: &str| {
        let line = compose
            .lines()
            .find_map(|line| line.trim().strip_prefix(name));
        line.expect(name).trim().to_owned()
    };
    let context = packaging().join(value("context:"));
    assert!(context.join(value("dockerfile:")).exists());
    // Where Prometheus finds the exchange.
    assert!(compose.contains("--http-listen=0.0.0.0:7413"));
    assert!(text("prometheus.yml").contains("[\"exchange:7413\"]"));
}
