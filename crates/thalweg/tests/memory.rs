//! The memory that channels and inboxes take, as their documentation says.

use thalweg::bus::{Bus, Message, Topics};
use thalweg::channel::{Builder, Overflow, mpmc, mpsc, oneshot, unbounded};
use thalweg::ring::Layout;
use thalweg_testkit::counting::held;

/// The largest number of bytes that a channel takes besides its slots.
const FIXED: i64 = 5_000;

thalweg::topics! {
    enum Block => BlockVisitor {
        Bytes([u8; 64]) in "bytes" => on_bytes,
    }
}

/// Returns what `make` made, and the bytes that it holds.
fn taken<R>(make: impl FnOnce() -> R) -> (R, i64) {
    // The first channel of a process prepares barriers and clocks.
    drop(mpmc::<u8>(1));
    let before = held();
    let made = make();
    (made, held() - before)
}

fn check(what: &str, bytes: i64, slots: i64, slot: i64) {
    let expected = slots * slot..slots * slot + FIXED;
    assert!(
        expected.contains(&bytes),
        "{what}: {bytes} bytes for {slots} slots of {slot}"
    );
}

#[test]
fn a_bounded_channel_takes_its_slots_and_a_few_thousand_bytes() {
    type Wide = [u64; 8];
    for (capacity, slots) in [(1, 1), (1_000, 1_024), (4_096, 4_096)] {
        let new = |layout| Builder::new(capacity).layout(layout);
        let (packed, slotted) = (|| new(Layout::Packed), || new(Layout::Slotted));
        let bytes = taken(|| packed().spsc::<u64>().unwrap()).1;
        check("spsc", bytes, slots, 8);
        check(
            "mpsc",
            taken(|| packed().mpsc::<u64>().unwrap()).1,
            slots,
            16,
        );
        check(
            "mpmc",
            taken(|| packed().mpmc::<Wide>().unwrap()).1,
            slots,
            72,
        );
        check(
            "slotted",
            taken(|| slotted().spsc::<u64>().unwrap()).1,
            slots,
            64,
        );
        check(
            "slotted",
            taken(|| slotted().mpmc::<[u64; 7]>().unwrap()).1,
            slots,
            64,
        );
        check(
            "slotted",
            taken(|| slotted().spsc::<Wide>().unwrap()).1,
            slots,
            128,
        );
        let reporting = || packed().overflow(Overflow::DropNewest);
        let bytes = taken(|| reporting().mpmc::<u64>().unwrap()).1;
        check("gaps", bytes - 16 * capacity as i64, slots, 16);
    }
    check("rendezvous", taken(|| mpmc::<u64>(0)).1, 0, 0);
    assert_eq!(taken(oneshot::<u64>).1, 48 + 8);
}

#[test]
fn a_clone_takes_nothing() {
    let (tx, rx) = mpmc::<u64>(64);
    let (clones, bytes) = taken(|| (tx.clone(), rx.clone()));
    assert_eq!(bytes, 0);
    assert!(size_of_val(&clones.0) < 512 && size_of_val(&clones.1) < 512);
    let (tx, _rx) = mpsc::<u64>(64);
    let sender = size_of_val(&tx) as i64;
    let (shared, bytes) = taken(|| tx.into_shared());
    assert_eq!(bytes, sender + 8, "a list of one sender");
    drop(shared);
}

#[test]
fn an_unbounded_channel_grows_and_shrinks_by_segments() {
    drop(mpmc::<u8>(1));
    let before = held();
    let (mut tx, mut rx) = unbounded::<u64>(1_000_000);
    let at_start = held() - before;
    check("one segment", at_start, 512, 8);
    tx.send_many(0..512 * 20).unwrap();
    check("twenty segments", held() - before, 512 * 20, 8);
    assert_eq!(rx.try_iter().count(), 512 * 20);
    check("two segments", held() - before, 512 * 2, 8);
    drop((tx, rx));
    assert_eq!(held(), before);
}

#[test]
fn the_end_of_a_channel_frees_its_memory() {
    drop(mpmc::<u8>(1));
    let before = held();
    drop(Builder::new(100).spsc::<u64>());
    drop(mpsc::<u64>(100));
    drop(
        Builder::new(100)
            .overflow(Overflow::DropNewest)
            .spsc::<u64>(),
    );
    assert_eq!(held(), before);
}

#[test]
fn an_inbox_takes_its_messages_and_32_bytes_each() {
    let bus = Bus::<Block>::new().unwrap();
    let (rx, bytes) = taken(|| bus.subscribe(Topics::ALL).unwrap());
    let per_message = bytes / 65_536;
    assert!((64 + 24..=64 + 40).contains(&per_message), "{per_message}");
    assert_eq!(Block::TOPICS.len(), 1);
    drop(rx);
    assert!(matches!(Block::from([0; 64]), Block::Bytes(_)));
}
