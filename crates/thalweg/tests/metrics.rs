//! The facade gets what channels, buses and pipelines count.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit, with_local_recorder,
};
use thalweg::bus::{Bus, Message, TopicId, TopicInfo, TopicOverflow, Topics};
use thalweg::channel::{Builder, Overflow};
use thalweg::metrics::Queue;
use thalweg::pipeline::{Pipeline, Placement};

/// Keeps the values of each metric, by its name and labels.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<BTreeMap<String, Vec<f64>>>>);

struct Metric(Kept, String);

impl Kept {
    fn metric(&self, key: &Key) -> Arc<Metric> {
        let labels = key
            .labels()
            .map(|it| format!("{}={}", it.key(), it.value()));
        let labels: Vec<String> = labels.collect();
        let name = format!("{} {}", key.name(), labels.join(","));
        Arc::new(Metric(self.clone(), name))
    }

    fn last(&self, name: &str) -> Option<f64> {
        let kept = self.0.lock().expect("it is not poisoned");
        kept.get(name).and_then(|values| values.last().copied())
    }
}

impl Metric {
    fn put(&self, value: f64) {
        let mut kept = self.0.0.lock().expect("it is not poisoned");
        kept.entry(self.1.clone()).or_default().push(value);
    }
}

impl CounterFn for Metric {
    fn increment(&self, _: u64) {
        panic!("counters are set");
    }

    fn absolute(&self, value: u64) {
        self.put(value as f64);
    }
}

impl GaugeFn for Metric {
    fn increment(&self, _: f64) {
        panic!("gauges are set");
    }

    fn decrement(&self, _: f64) {
        panic!("gauges are set");
    }

    fn set(&self, value: f64) {
        self.put(value);
    }
}

impl HistogramFn for Metric {
    fn record(&self, value: f64) {
        self.put(value);
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.metric(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.metric(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.metric(key))
    }
}

#[test]
fn a_channel_has_its_times_depth_and_losses_under_its_name() {
    let kept = Kept::default();
    let queue = with_local_recorder(&kept, || Queue::new("orders"));
    let builder = Builder::new(4).overflow(Overflow::DropOldest);
    let (mut tx, mut rx) = builder.spsc().expect("valid");
    for number in 0..6 {
        tx.send(queue.stamp(number)).expect("the receiver is there");
    }
    let first = queue.take(rx.recv().expect("there is one"));
    assert_eq!(first, 2);
    assert_eq!(rx.recv().expect("another").into_inner(), 3);
    with_local_recorder(&kept, || {
        queue.channel(&rx.counters(), rx.len(), rx.capacity());
    });
    let of = |name: &str| kept.last(&format!("{name} queue=orders"));
    assert!(of("thalweg_queue_seconds").is_some_and(|seconds| seconds >= 0.0));
    assert_eq!(of("thalweg_queue_depth"), Some(2.0));
    assert_eq!(of("thalweg_queue_capacity"), Some(4.0));
    assert_eq!(of("thalweg_queue_in_total"), Some(6.0));
    assert_eq!(of("thalweg_queue_out_total"), Some(2.0));
    let lost = |cause: &str| {
        kept.last(&format!(
            "thalweg_queue_lost_total queue=orders,cause={cause}"
        ))
    };
    assert_eq!((lost("dropped"), lost("refused")), (Some(2.0), Some(0.0)));
}

#[derive(Clone)]
struct Job;

impl Message for Job {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo {
        overflow: TopicOverflow::Reject,
        ..TopicInfo::new("job")
    }];

    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

#[test]
fn each_inbox_of_a_bus_has_its_losses_by_cause() {
    let kept = Kept::default();
    let bus = Bus::<Job>::builder().capacity(8).build().expect("valid");
    let mut rx = bus.subscribe(Topics::ALL).expect("it is open");
    let mut publisher = bus.publisher("test").expect("it is open");
    let refused = (0..20).filter(|_| publisher.publish(Job).is_err()).count();
    rx.recv().expect("there is one");
    with_local_recorder(&kept, || thalweg::metrics::bus("jobs", &bus));
    let inbox = "queue=jobs,inbox=0";
    let of = |name: &str| kept.last(&format!("{name} {inbox}"));
    assert!(refused > 0);
    let lost = kept.last(&format!("thalweg_queue_lost_total {inbox},cause=refused"));
    assert_eq!(lost, Some(refused as f64));
    assert_eq!(of("thalweg_queue_in_total"), Some(20.0));
    assert_eq!(of("thalweg_queue_out_total"), Some(1.0));
    assert_eq!(of("thalweg_queue_depth"), Some(19.0 - refused as f64));
}

#[test]
fn each_stage_of_a_pipeline_has_its_waits() {
    let kept = Kept::default();
    let mut pipeline = Pipeline::builder(64, || 0_u64)
        .stage("double", |event, _| *event *= 2)
        .placement(Placement::inline())
        .build()
        .expect("valid");
    for number in 0..100 {
        pipeline.publish(|event| *event = number).expect("it runs");
    }
    let stats = pipeline.join().expect("no stage panicked");
    with_local_recorder(&kept, || thalweg::metrics::pipeline("doubles", &stats));
    let stage = "queue=doubles,stage=double";
    let events = kept.last(&format!("thalweg_stage_events_total {stage}"));
    assert_eq!(events, Some(100.0));
    let waits = ["0.5", "0.99", "1"].map(|quantile| {
        let name = format!("thalweg_queue_wait_seconds {stage},quantile={quantile}");
        kept.last(&name).expect("it is there")
    });
    assert!(waits.is_sorted());
}
