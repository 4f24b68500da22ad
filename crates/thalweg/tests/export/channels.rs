//! Figures of channels with a name.

use std::sync::Arc;

use thalweg::channel::{Builder, Ends, Overflow, Shape, TrySendError};

use crate::export::Directory;

/// Sends six into a channel of four, receives one, and lets the ends go, the given one last.
fn figures_of<S: Shape>((mut tx, mut rx): Ends<Arc<()>, S>, is_sender_last: bool) {
    let element = Arc::new(());
    for _ in 0..6 {
        match tx.try_send(Arc::clone(&element)) {
            Ok(()) | Err(TrySendError::Full(_)) => {}
            Err(error) => panic!("the receiver is there: {error}"),
        }
    }
    rx.recv().expect("there are four");
    if is_sender_last {
        drop(rx);
        drop(tx);
    } else {
        drop(tx);
        drop(rx);
    }
    assert_eq!(Arc::strong_count(&element), 1, "no element stays");
}

#[test]
fn a_channel_of_any_shape_and_policy_has_its_counts_in_the_last_snapshot() {
    for (at, (overflow, issued, sent, refused, dropped, discarded)) in [
        (Overflow::Block, 4, 4, 2, 0, 3),
        (Overflow::Reject, 4, 4, 2, 0, 3),
        (Overflow::DropNewest, 6, 4, 0, 2, 3),
        (Overflow::DropOldest, 6, 6, 0, 2, 3),
    ]
    .into_iter()
    .enumerate()
    {
        let named = |directory: &Directory| {
            let builder = Builder::new(4).overflow(overflow);
            builder.name("orders \"a\"").export_to(&*directory.0)
        };
        for shape in ["spsc", "mpsc", "mpmc"] {
            let directory = Directory::new();
            let named = named(&directory);
            match shape {
                "spsc" => figures_of(named.spsc().expect("valid"), at % 2 == 0),
                "mpsc" => figures_of(named.mpsc().expect("valid"), at % 2 == 0),
                _ => figures_of(named.mpmc().expect("valid"), at % 2 == 0),
            }
            let exported = directory.only();
            assert_eq!(exported["kind"], "channel");
            assert_eq!(exported["has_ended"], true);
            assert_eq!(exported["name"], "orders \"a\"");
            let inbox = &exported["inboxes"][0];
            let of = |member: &str| inbox[member].as_u64().expect("a count");
            assert_eq!(of("capacity"), 4);
            let evicted = u64::from(overflow == Overflow::DropOldest) * dropped;
            assert_eq!(of("evicted"), evicted);
            let counts = ["issued", "admitted", "refused", "lost", "discarded"].map(of);
            let expected = [issued, sent, refused, dropped, discarded];
            assert_eq!(counts, expected, "{shape}, {overflow:?}");
            assert_eq!((of("events"), of("waiting")), (1, 0), "{inbox}");
        }
    }
}

#[test]
fn looks_find_what_waits_while_both_ends_are_there() {
    let directory = Directory::new();
    let named = Builder::unbounded(100)
        .name("jobs")
        .export_to(&*directory.0);
    let (mut tx, mut rx) = named.mpmc().expect("valid");
    for number in 0..90 {
        tx.send(number).expect("the receiver is there");
    }
    // Looks before the last element was sent found fewer.
    let looks_after = |before: u64| loop {
        if let Some((_, snapshot)) = directory.read().pop() {
            assert_eq!(snapshot["has_ended"], false);
            let inbox = &snapshot["inboxes"][0];
            assert_eq!(inbox["events"], 0);
            let counts = ["waiting", "looks", "full_looks"].map(|name| inbox[name].as_u64());
            let [waiting, looks, full] = counts.map(|count| count.expect("a count"));
            if waiting == 90 && looks > before {
                break [looks, full];
            }
        }
        std::thread::yield_now();
    };
    let [looks, full] = looks_after(0);
    let [later, later_full] = looks_after(looks);
    assert_eq!(later_full - full, later - looks);
    assert_eq!(rx.recv(), Ok(0));
}
