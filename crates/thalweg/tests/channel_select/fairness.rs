//! No arm starves.

use std::thread;
use thalweg::channel::{Select, mpmc, spsc};

#[test]
fn arms_that_are_always_ready_share() {
    const ROUNDS: usize = 3_000;
    let mut channels = [(); 3].map(|()| spsc::<u8>(ROUNDS));
    for (tx, _) in &mut channels {
        tx.send_many(std::iter::repeat_n(0, ROUNDS)).unwrap();
    }
    let (mut out, mut sink) = spsc::<u8>(ROUNDS);
    let [(_a, mut from_a), (_b, mut from_b), (_c, mut from_c)] = channels;
    let mut counts = [0; 4];
    for _ in 0..ROUNDS {
        let at: usize = Select::new()
            .recv(&mut from_a, |_| 0)
            .recv(&mut from_b, |_| 1)
            .send(&mut out, &mut Some(1), |_| 2)
            .recv(&mut from_c, |_| 3)
            .wait();
        counts[at] += 1;
    }
    // By chance, one below this is as likely as a stroke of lightning.
    assert!(counts.iter().all(|count| *count > ROUNDS / 8), "{counts:?}");
    assert_eq!(sink.try_iter().count(), counts[2]);
}

#[test]
fn a_rendezvous_beside_a_busy_channel_happens() {
    let (mut zero, mut from_zero) = mpmc::<u8>(0);
    let (mut busy, mut from_busy) = mpmc::<u8>(16);
    let (done, is_done) = mpmc::<u8>(1);
    let flood = thread::spawn(move || while busy.send(0).is_ok() {});
    let rendezvous = thread::spawn(move || {
        for _ in 0..200 {
            zero.send(1).unwrap();
        }
        drop(done);
    });
    let mut met = 0;
    while met < 200 {
        met += Select::new()
            .recv(&mut from_busy, |_| 0)
            .recv(&mut from_zero, |got| got.map_or(0, usize::from))
            .wait();
    }
    rendezvous.join().unwrap();
    assert!(is_done.is_closed());
    drop(from_busy);
    flood.join().unwrap();
}

#[test]
fn arms_of_a_list_share() {
    const ROUNDS: usize = 2_000;
    let mut channels: Vec<_> = (0..5).map(|_| spsc::<u8>(ROUNDS)).collect();
    for (tx, _) in &mut channels {
        tx.send_many(std::iter::repeat_n(0, ROUNDS)).unwrap();
    }
    let mut counts = [0; 5];
    for _ in 0..ROUNDS {
        let mut select = Select::dynamic();
        for (_, rx) in &mut channels {
            select.push_recv(rx, |at, _| at);
        }
        counts[select.wait().unwrap()] += 1;
    }
    assert!(
        counts.iter().all(|count| *count > ROUNDS / 10),
        "{counts:?}"
    );
}
