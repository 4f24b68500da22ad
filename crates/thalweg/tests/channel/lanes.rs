//! A property of channels with a lane for each sender alone: lanes take turns.

use thalweg::channel::{Builder, mpsc};

fn lanes<T: Send>(senders: usize, capacity: usize) -> (Vec<mpsc::Sender<T>>, mpsc::Receiver<T>) {
    let (tx, rx) = Builder::new(capacity).lanes().mpsc().unwrap();
    let mut txs = vec![tx];
    while txs.len() < senders {
        txs.push(txs[0].clone());
    }
    (txs, rx)
}

#[test]
fn full_lanes_get_equal_shares() {
    let (mut txs, mut rx) = lanes(5, 256);
    let mut taken = [0_i32; 5];
    for _ in 0..20_000 {
        for (id, tx) in txs.iter_mut().enumerate() {
            while tx.try_send(id).is_ok() {}
        }
        taken[rx.try_recv().unwrap()] += 1;
    }
    // A share of 4,000 each, give or take one turn.
    assert!(
        taken.iter().all(|count| (count - 4000).abs() <= 32),
        "{taken:?}"
    );
}

#[test]
fn a_busy_lane_does_not_starve_a_quiet_one() {
    let (mut txs, mut rx) = lanes(2, 1024);
    let mut waits = Vec::new();
    for round in 0..100 {
        while txs[0].try_send(false).is_ok() {}
        for _ in 0..round {
            assert_eq!(rx.try_recv(), Ok(false));
            txs[0].try_send(false).unwrap();
        }
        txs[1].try_send(true).unwrap();
        let mut wait = 0;
        while !rx.try_recv().unwrap() {
            wait += 1;
        }
        waits.push(wait);
    }
    assert!(waits.iter().all(|&wait| wait <= 32), "{waits:?}");
}

#[test]
fn batches_go_from_lane_to_lane() {
    let (mut txs, mut rx) = lanes(3, 8);
    for (id, tx) in txs.iter_mut().enumerate() {
        tx.send_many([id; 6]).unwrap();
    }
    let batches: Vec<_> = (0..6).map(|_| rx.batch(3).collect::<Vec<_>>()).collect();
    for batch in &batches {
        assert!(
            batch.len() == 3 && batch.iter().all(|id| *id == batch[0]),
            "{batches:?}"
        );
    }
    let order = |batches: &[Vec<usize>]| batches.iter().map(|batch| batch[0]).collect::<Vec<_>>();
    assert_eq!(order(&batches[..3]), order(&batches[3..]));
    assert_eq!(rx.batch(3).count(), 0);
}
