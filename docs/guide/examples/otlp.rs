//! Figures of a channel for an OpenTelemetry collector: a recorder of the facade `metrics` that
//! keeps them, and posts them as OTLP in JSON over HTTP. Its address is the first argument, such as
//! 127.0.0.1:4318; without one, a listener of this program takes its place.

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};
use thalweg::metrics::Queue;

/// The upper bounds of a histogram's buckets, in s; one more bucket is above.
const BOUNDS: [f64; 6] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1];

enum Value {
    Counter(u64),
    Gauge(f64),
    Histogram(Vec<f64>),
}

/// The present values, by metric and labels.
#[derive(Clone, Default)]
struct Figures(Arc<Mutex<BTreeMap<Key, Value>>>);

struct Metric(Figures, Key);

impl Metric {
    fn put(&self, change: impl FnOnce(Option<Value>) -> Value) {
        let mut figures = self.0.0.lock().expect("no thread panicked");
        let value = change(figures.remove(&self.1));
        figures.insert(self.1.clone(), value);
    }
}

impl CounterFn for Metric {
    fn increment(&self, more: u64) {
        self.put(|old| match old {
            Some(Value::Counter(count)) => Value::Counter(count + more),
            _ => Value::Counter(more),
        });
    }

    fn absolute(&self, count: u64) {
        self.put(|_| Value::Counter(count));
    }
}

impl GaugeFn for Metric {
    fn increment(&self, more: f64) {
        self.put(|old| match old {
            Some(Value::Gauge(value)) => Value::Gauge(value + more),
            _ => Value::Gauge(more),
        });
    }

    fn decrement(&self, less: f64) {
        GaugeFn::increment(self, -less);
    }

    fn set(&self, value: f64) {
        self.put(|_| Value::Gauge(value));
    }
}

impl HistogramFn for Metric {
    fn record(&self, value: f64) {
        self.put(|old| match old {
            Some(Value::Histogram(mut values)) => {
                values.push(value);
                Value::Histogram(values)
            }
            _ => Value::Histogram(vec![value]),
        });
    }
}

impl Recorder for Figures {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Metric(self.clone(), key.clone())))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(Metric(self.clone(), key.clone())))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Metric(self.clone(), key.clone())))
    }
}

/// Returns a metric as OTLP: `aggregationTemporality` 2 is cumulative. Names and labels here need
/// no escapes.
fn otlp(key: &Key, value: &Value, now_ns: u128) -> String {
    let attribute = |name: &str, text: &str| {
        format!(r#"{{"key":"{name}","value":{{"stringValue":"{text}"}}}}"#)
    };
    let attributes: Vec<String> = key
        .labels()
        .map(|label| attribute(label.key(), label.value()))
        .collect();
    let point = format!(
        r#""attributes":[{}],"timeUnixNano":"{now_ns}""#,
        attributes.join(",")
    );
    let points = |value: String| format!(r#""dataPoints":[{{{point},{value}}}]"#);
    let cumulative = r#""aggregationTemporality":2"#;
    let data = match value {
        Value::Gauge(value) => {
            let points = points(format!(r#""asDouble":{value}"#));
            format!(r#""gauge":{{{points}}}"#)
        }
        Value::Counter(count) => {
            let points = points(format!(r#""asInt":"{count}""#));
            format!(r#""sum":{{{cumulative},"isMonotonic":true,{points}}}"#)
        }
        Value::Histogram(values) => {
            let mut counts = [0; BOUNDS.len() + 1];
            for value in values {
                counts[BOUNDS.partition_point(|bound| bound < value)] += 1;
            }
            let counts = counts.map(|count| format!("\"{count}\"")).join(",");
            let buckets = format!(r#""bucketCounts":[{counts}],"explicitBounds":{BOUNDS:?}"#);
            let (count, sum) = (values.len(), values.iter().sum::<f64>());
            let points = points(format!(r#""count":"{count}","sum":{sum},{buckets}"#));
            format!(r#""histogram":{{{cumulative},{points}}}"#)
        }
    };
    format!(r#"{{"name":"{}",{data}}}"#, key.name())
}

impl Figures {
    /// Posts all figures to a collector; call it every few seconds.
    fn post(&self, collector: &str) -> io::Result<String> {
        let now_ns = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        let figures = self.0.lock().expect("no thread panicked");
        let metrics = figures.iter().map(|(key, value)| otlp(key, value, now_ns));
        let metrics: Vec<String> = metrics.collect();
        drop(figures);
        let scope = r#""scope":{"name":"thalweg"}"#;
        let metrics = format!(r#"{{{scope},"metrics":[{}]}}"#, metrics.join(","));
        let body = format!(r#"{{"resourceMetrics":[{{"scopeMetrics":[{metrics}]}}]}}"#);
        let mut stream = TcpStream::connect(collector)?;
        write!(
            stream,
            "POST /v1/metrics HTTP/1.1\r\nHost: {collector}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status)?;
        Ok(status)
    }
}

/// Takes one request in the place of a collector; returns its body.
fn collect(listener: &TcpListener) -> io::Result<String> {
    let (stream, _) = listener.accept()?;
    let mut reader = BufReader::new(&stream);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")?;
    String::from_utf8(body).map_err(io::Error::other)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let figures = Figures::default();
    metrics::set_global_recorder(figures.clone()).expect("it is the first");
    let (mut tx, mut rx) = thalweg::channel::spsc(64);
    let orders = Queue::new("orders");
    for order in 0..10 {
        tx.send(orders.stamp(order))?;
    }
    for _ in 0..7 {
        orders.take(rx.recv()?);
    }
    orders.channel(&rx.counters(), rx.len(), rx.capacity());
    if let Some(collector) = std::env::args().nth(1).filter(|it| it.contains(':')) {
        print!("{}", figures.post(&collector)?);
        return Ok(());
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?.to_string();
    let collector = thread::spawn(move || collect(&listener));
    assert!(figures.post(&address)?.contains("200"));
    let body = collector.join().expect("it does not panic")?;
    println!("{body}");
    assert!(
        body.contains(r#""name":"thalweg_queue_depth","gauge":"#),
        "{body}"
    );
    assert!(
        body.contains(r#""asDouble":3"#) && body.contains(r#""count":"7""#),
        "{body}"
    );
    Ok(())
}
