//! Statistics as serde values.

use thalweg::bus::{Bus, Message, TopicId, TopicInfo, Topics};
use thalweg::pipeline::{Pipeline, Placement};

#[derive(Clone)]
struct Job;

impl Message for Job {
    const TOPICS: &'static [TopicInfo] = &[TopicInfo::new("job")];

    fn topic(&self) -> TopicId {
        TopicId::new(0)
    }
}

#[test]
fn figures_of_a_pipeline_have_summaries_in_place_of_histograms() {
    let mut pipeline = Pipeline::builder(8, || 0_u64)
        .stage("double", |event, _| *event *= 2)
        .placement(Placement::inline())
        .build()
        .expect("valid");
    pipeline.publish(|event| *event = 1).expect("it runs");
    let stats = pipeline.join().expect("no stage panicked");
    let json = serde_json::to_value(&stats).expect("it is a value");
    assert_eq!(json["end_to_end_ns"]["count"], 1);
    let stage = &json["stages"][0];
    assert_eq!(
        (&stage["name"], &stage["events"]),
        (&"double".into(), &1.into())
    );
    assert_eq!(stage["service_ns"]["max"], stats.stages[0].service_ns.max());
    assert_eq!(json["slowest"][0]["sequence"], 0);
    let breakdown = serde_json::to_value(stats.breakdown_of_all()).expect("it is a value");
    assert_eq!(breakdown["events"], 1);
}

#[test]
fn figures_of_channels_and_buses_are_objects() {
    let (mut tx, mut rx) = thalweg::channel::spsc(8);
    tx.send(1).expect("the receiver is there");
    rx.recv().expect("there is one");
    let counters = serde_json::to_value(rx.counters()).expect("it is a value");
    assert_eq!(
        (&counters["sent"], &counters["dropped"]),
        (&1.into(), &0.into())
    );
    let bus = Bus::<Job>::builder().capacity(8).build().expect("valid");
    let rx = bus.subscribe(Topics::ALL).expect("it is open");
    let mut publisher = bus.publisher("test").expect("it is open");
    assert!(publisher.publish(Job).is_ok());
    let readings = serde_json::to_value(bus.inbox_readings()).expect("it is a value");
    assert_eq!(
        (&readings[0][0], &readings[0][1]["issued"]),
        (&0.into(), &1.into())
    );
    let totals = serde_json::to_value(bus.totals()).expect("it is a value");
    assert_eq!(
        totals["outcomes"]["issued"].as_array().map(Vec::len),
        Some(4)
    );
    let losses = serde_json::to_value(rx.publisher_counts()).expect("it is a value");
    assert_eq!(losses[0]["name"], "test");
}
