//! Recording allocates nothing, whatever the value.

use thalweg_measure::histogram::Recorder;
use thalweg_testkit::counting::so_far;

thalweg_testkit::count_allocations!();

#[test]
fn recording_allocates_nothing() {
    let before = so_far();
    let recorder = Recorder::new();
    let made = so_far();
    assert!(made > before, "a recorder has memory");
    for bits in 0..64 {
        recorder.record(1 << bits);
        recorder.record_n(u64::MAX >> bits, 1 << bits);
    }
    let (count, sum) = (recorder.count(), recorder.sum());
    assert_eq!(so_far(), made, "count {count}, sum {sum}");
}
